"""Which trials a search makes of a gateway that is known: for an estimate before anything is sent. Pure."""

from __future__ import annotations

from typing import Literal

from gatemark.search import binary
from gatemark.search.goal import NANOSECONDS_PER_SECOND, Goal, Measure, Observation, Outcome


def steps_of(
    goal: Goal, search: Literal["binary", "mlrsearch"], *, capacity: int, buffer_frames: int = 0
) -> tuple[Measure, ...]:
    """Return the trials that a search makes of a gateway that forwards `capacity` frames/s.

    Of what exceeds the capacity it keeps up to `buffer_frames` of a trial and forwards them later, so that a short
    trial passes at loads where a long one loses frames.
    """
    made: list[Measure] = []

    def measure(step: Measure) -> Observation:
        made.append(step)
        offered = max(1, step.frames_per_second * step.duration_ns // NANOSECONDS_PER_SECOND)
        lost = max(0, offered - capacity * step.duration_ns // NANOSECONDS_PER_SECOND - buffer_frames)
        return Observation(
            frames_per_second=step.frames_per_second,
            duration_ns=step.duration_ns,
            outcome=Outcome.FAILED if lost else Outcome.PASSED,
            offered=offered,
            undelivered=lost,
        )

    if search == "mlrsearch":
        from gatemark.search import (
            multiple_loss_ratio,
        )  # its package takes 0.2 s to load: only who searches pays for it

        multiple_loss_ratio.search(goal, measure)
    else:
        binary.search(goal, measure)
    return tuple(made)
