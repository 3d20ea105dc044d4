"""Which trials a search makes on a gateway of known capacity, to estimate the work before anything is sent. Pure."""

from __future__ import annotations

from typing import Literal

from gatemark.search import binary
from gatemark.search.goal import NANOSECONDS_PER_SECOND, Goal, Measure, Observation, Outcome


def steps_of(
    goal: Goal, search: Literal["binary", "mlrsearch"], *, capacity: int, buffer_frames: int = 0
) -> tuple[Measure, ...]:
    """Return the trials that a search makes on a gateway that forwards `capacity` frames/s.

    The gateway buffers up to `buffer_frames` of the frames above its capacity and forwards them later, so a short trial
    passes at loads where a long one loses frames.
    """
    steps: list[Measure] = []

    def measure(step: Measure) -> Observation:
        steps.append(step)
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
        )  # its package is slow to load: only a search that uses it pays for that

        multiple_loss_ratio.search(goal, measure)
    else:
        binary.search(goal, measure)
    return tuple(steps)
