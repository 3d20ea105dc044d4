"""Which trial to make: all of it beside the campaign itself, so that two trials with the same order are the same trial.

Pure: resuming compares the orders of the trials that the journal holds with those that the campaign asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from gatemark.search.goal import Measure
from gatemark.trial.cell import Run
from gatemark.trial.form import PLAIN, TrialForm

STEPS_MAX = 16
"""Every trial of the engine has a number of its own, so that stragglers of one phase are foreign to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOrder:
    """Which trial to make."""

    run: Run
    """Run of the plan."""
    trial_number: int
    """Number in the campaign, from 1."""
    repetition: int
    """Repetition of the run, from 0."""
    attempt: int
    """Attempt at this load, from 0; those before it were invalid or suspect."""
    step: Measure
    """The load."""
    connections_per_second: int | None = None
    """Stateful: rate at which test phase 1 begins before the phase that is measured. Null where there is no such
    phase."""
    form: TrialForm = PLAIN
    """What the trial does and records beyond its load; of a stateful trial, in test phase 2."""

    @property
    def connections(self) -> int | None:
        """Number of connections N of a stateful trial; 0 for the tear-down of an empty table."""
        return self.run.cell.connections if self.step.connections is None else self.step.connections

    @property
    def phase_one_rate(self) -> int:
        """Connections/s at which test phase 1 of a stateful trial begins."""
        return self.connections_per_second or self.step.frames_per_second

    def step_number(self, step: int) -> int:
        """Return the engine's number of a phase of a stateful trial, counted from 0."""
        return self.trial_number * STEPS_MAX + step % STEPS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first part in which two orders differ."""

    part: str
    """As a path, such as ``step.frames_per_second``."""
    first: Any
    second: Any


def difference(first: TrialOrder, second: TrialOrder) -> Difference | None:
    """Return the first part in which two orders differ; None if they are equal."""
    return _difference(first, second, "")


def _difference(first: Any, second: Any, part: str) -> Difference | None:
    if first == second:
        return None
    if not is_dataclass(first) or type(first) is not type(second):
        return Difference(part=part, first=first, second=second)
    below = (
        _difference(getattr(first, field.name), getattr(second, field.name), f"{part}.{field.name}".lstrip("."))
        for field in fields(first)
    )
    return next(inner for inner in below if inner is not None)
