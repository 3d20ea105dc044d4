"""Back-to-back frames: the longest burst at line rate that passes whole (RFC 2544 section 26.4, RFC 9004).

Each trial is one burst at line rate on every direction of the traffic, and it passes if no frame of any direction and
class is lost, faulty or too late. A burst shorter than the 2 s of RFC 2544 is a trial of RFC 9004 as any other.
"""

from __future__ import annotations

from gatemark.procedures.measured import Measured, MeasureStep
from gatemark.search.burst import BurstGoal, BurstResult, BurstTrial, next_burst
from gatemark.search.goal import Measure, sending_ns
from gatemark.units import NANOSECONDS_PER_SECOND


def lateness_max_ns(goal: BurstGoal, line_rate: int) -> int:
    """Return how late a burst may be sent and still be one.

    While the Tester is late, the gateway empties its buffer. So the frames that the line carries in that time must not
    be more than the resolution, or a burst would pass that is too long.
    """
    return goal.resolution * NANOSECONDS_PER_SECOND // line_rate


def measure_burst(goal: BurstGoal, line_rate: int, measure: MeasureStep) -> tuple[BurstResult, Measured]:
    """Search once for the longest burst; also return the last trial. The only effects are those of `measure`.

    `measure` must judge without tolerance, and hold a trial for invalid in which a burst was sent too late.
    """
    history: list[BurstTrial] = []
    while not isinstance(step := next_burst(goal, history), BurstResult):
        made = measure(
            Measure(
                frames_per_second=line_rate,
                duration_ns=sending_ns(step, line_rate),
                purpose="back_to_back",
            )
        )
        history.append(BurstTrial(frames=step, outcome=made.observation.outcome))
    return step, made
