"""When a frame of a trial is due, and whether frames were lost up to the end. Exact integer arithmetic, pure."""

from __future__ import annotations

from gatemark.trial.form import RateStep
from gatemark.units import NANOSECONDS_PER_SECOND, frames_in

END_SHARE = 100
"""The end of an observation is the last hundredth of its frames."""


def due_ns(index: int, frames_per_second: int, step: RateStep | None = None) -> int:
    """Return when frame `index` of a direction is due, from the start of sending, rounded down to nanoseconds.

    Frame i is due at i / rate. After a step of the load, the first remaining frame is due at the time of the step, and
    those after it follow at the later rate, as the engine sends them.
    """
    if step is not None:
        before = frames_in(frames_per_second, step.after_ns)
        if index >= before:
            return step.after_ns + (index - before) * NANOSECONDS_PER_SECOND // step.frames_per_second
    return index * NANOSECONDS_PER_SECOND // frames_per_second


def is_at_end(index: int, frames: int, observed: int, period: int) -> bool:
    """Whether a frame is among the last ones of a trial: then it is unknown whether the gateway recovered.

    They are the last hundredth of the `observed` frames at the end of a trial of `frames`, but at least one `period` of
    foreground and background, so that a frame of each class is among them.
    """
    return index >= frames - max(period, -(-observed // END_SHARE))
