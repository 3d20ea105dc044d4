"""What a procedure gets from the world: a function that makes one step's trials, and what that returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gatemark.search.goal import Measure, Observation
from gatemark.trial.result import TrialReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One load, tried until a trial was valid or the retries were used up."""

    observation: Observation
    report: TrialReport | None
    """The valid trial; None where the Tester was the limit."""


MeasureStep = Callable[[Measure], Measured]
"""Makes the trials of one step. May raise, for example GatemarkError; a procedure lets that pass."""
