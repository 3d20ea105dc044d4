"""Trials that are given instead of made, for procedures whose result is known beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gatemark.campaign.facts import TrialTally, run_facts
from gatemark.config.model import Campaign
from gatemark.procedures.earlier import Earlier
from gatemark.procedures.measured import Measured, MeasureStep
from gatemark.trial.cell import Run


class GivenTrials:
    """One trial for each repetition of a run."""

    line_maximum = None

    def __init__(self, campaign: Campaign, run: Run, trials: Sequence[Measured]) -> None:
        self.campaign = campaign
        self.run = run
        self.earlier = Earlier()
        self._trials = trials

    def repetitions(self) -> Iterator[int]:
        yield from range(len(self._trials))

    def steps(self, repetition: int, **_: Any) -> MeasureStep:
        return lambda _: self._trials[repetition]

    def facts(self) -> dict[str, Any]:
        return run_facts(self.campaign, self.run, TrialTally())
