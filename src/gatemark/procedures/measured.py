"""What a procedure gets from the world: a function that makes one step's trials, and what that returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gatemark.search.goal import Measure, Observation
from gatemark.trial.reset import ResetFacts
from gatemark.trial.result import TrialReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One load, tried until a trial was valid or the retries were used up."""

    observation: Observation
    report: TrialReport | None
    """The valid trial; None where the Tester was the limit."""
    phase_one: TrialReport | None = None
    """Stateful: the last attempt at test phase 1, where `report` may be that of another phase."""
    tear_down_ns: int | None = None
    """Tear-down: time that the gateway took to delete all connections."""
    collapsed: bool = False
    """The gateway stopped working during the trial."""
    reset: ResetFacts | None = None
    """When the gateway was reset; None if it was not."""
    problems: tuple[str, ...] = ()
    """Where the Tester was the limit: what it did wrong in the last attempt."""


MeasureStep = Callable[[Measure], Measured]
"""Makes the trials of one step. May raise, for example GatemarkError; a procedure lets that pass."""
