"""What a procedure is given: a function that makes the trials of one step, and what that function returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gatemark.search import binary
from gatemark.search.goal import Goal, Measure, Observation, SearchResult
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import TrialReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One load, tried until a trial said something about the gateway or the retries were used up."""

    observation: Observation
    record: TrialRecord | None = None
    """The last attempt; None if no trial was made, as in an estimate."""

    @property
    def valid(self) -> TrialRecord | None:
        """The trial, if it says something about the gateway; None if the Tester or the gateway's host was the limit."""
        return self.record if self.record is not None and self.record.is_decisive else None

    @property
    def report(self) -> TrialReport | None:
        """What the engine reported of the valid trial."""
        return None if self.valid is None else self.valid.report


MeasureStep = Callable[[Measure], Measured]
"""Makes the trials of one step. Exceptions such as GatemarkError pass through procedures."""


def search_rate(goal: Goal, measure_step: MeasureStep) -> SearchResult:
    """Search once by halving. The only effects are those of `measure_step`, which must judge as `goal` does.

    Where `goal` says how many connections each trial establishes, the length of a trial follows from its rate, and
    nothing remains to be confirmed: the result is a rate that was measured.
    """
    return binary.search(goal, lambda step: measure_step(step).observation)
