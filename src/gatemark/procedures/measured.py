"""What a procedure is given: a function that makes the trials of one step, and what that function returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gatemark.search.goal import Measure, Observation
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import TrialReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One load, tried until a trial was valid or the retries were used up."""

    observation: Observation
    record: TrialRecord | None = None
    """The last attempt; None if no trial was made, as in an estimate."""

    @property
    def valid(self) -> TrialRecord | None:
        """The trial, if it is valid; None if the Tester was the limit."""
        return None if self.record is None or self.record.verdict is None else self.record

    @property
    def report(self) -> TrialReport | None:
        """What the engine reported of the valid trial."""
        return None if self.valid is None else self.valid.report


MeasureStep = Callable[[Measure], Measured]
"""Makes the trials of one step. Exceptions such as GatemarkError pass through procedures."""
