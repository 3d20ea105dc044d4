"""Parts of `result.json` for back-to-back frames, system recovery and reset. Times are nanoseconds, loads frames/s."""

from __future__ import annotations

from typing import Literal

from gatemark.results.parts import FigurePart, Number, Part

Outcome = Literal["recovered", "not_recovered", "no_loss", "unknown"]


class BurstPart(Part):
    """One search for the longest burst that passes whole."""

    number: int
    kind: Literal["found", "nothing_passes", "ceiling_passed", "tester_limited"]
    lower_bound: int
    """Longest burst that passed below every burst that failed, frames; 0 if none did."""
    upper_bound: int | None
    """Shortest burst that failed, frames; null if none did."""
    tester_limited_at: int | None
    """Burst that the Tester could not send, frames."""


class BackToBackPart(Part):
    """Back-to-back frames (RFC 2544 section 26.4, RFC 9004). Every figure is null unless all searches found a limit."""

    bursts: tuple[BurstPart, ...]
    search: Literal["binary", "loss_verification"]
    verifications: int
    """How often a burst with a loss was sent again before the loss counted."""
    ceiling_frames: int
    resolution_frames: int
    wait_ns: int
    """Wait for the frames of a burst after its end."""
    line_rate: int
    """Rate of the bursts: what the medium carries at this frame size."""
    throughput: int
    near_ceiling: bool
    """A search ended at the ceiling: then there is no result (RFC 9004 section 6.2)."""
    average_frames: Number | None
    """The benchmark (RFC 9004 section 6.3)."""
    minimum_frames: int | None
    maximum_frames: int | None
    standard_deviation_frames: float | None
    """Of the sample, divisor N - 1; null with one search."""
    implied_ns: Number | None
    """Implied buffer time: average / line rate."""
    corrected_ns: Number | None
    """Corrected buffer time: implied time less implied time * throughput / line rate."""


class RecoverySeriesPart(Part):
    """Recovery of one direction and class; a tuple has one value for each valid repetition."""

    direction: Literal["forward", "reverse"]
    class_: Literal["foreground", "background"]
    offered: int
    """Frames, sum of the repetitions, as the next two."""
    lost: int
    faulty: int
    """Frames that came back wrong or late."""
    outcomes: tuple[Outcome, ...]
    recovery_ns: FigurePart
    """B - A: from the fall of the load to the time when the last frame that was lost was due."""
    average_ns: Number | None
    """Mean (RFC 2544 section 26.5); null unless every repetition recovered."""
    last_loss_before_ns: tuple[int | None, ...]
    """How long before the fall of the load the last lost frame was due; null if one was lost after it, or none."""


class RecoveryPart(Part):
    """System recovery (RFC 2544 section 26.5)."""

    throughput: int
    throughput_measured: bool
    """Whether the campaign measured it; else the campaign file names it."""
    overload: int
    overload_ns: int
    """Sending time of the overload."""
    recovery_load: int
    """Half of the overload."""
    observe_ns: int
    """Sending time of that load."""
    repetitions: int
    """Valid repetitions."""
    tester_limited: int
    """Repetitions in which the Tester could not offer the load."""
    series: tuple[RecoverySeriesPart, ...]


class ResetSeriesPart(Part):
    """Reset as one direction and class saw it; a tuple has one value for each valid repetition."""

    direction: Literal["forward", "reverse"]
    class_: Literal["foreground", "background"]
    offered: int
    """Frames, sum of the repetitions."""
    lost: tuple[int, ...]
    """Frames that did not come back correct."""
    faulty: tuple[int, ...]
    """Frames among them that came back wrong or late."""
    outcomes: tuple[Outcome, ...]
    reset_by_loss_ns: FigurePart
    """Frames lost / rate offered (RFC 6201 section 4)."""
    reset_by_gap_ns: FigurePart
    """Longest time between two frames that came back (RFC 6201 section 4)."""
    average_ns: Number | None
    """Mean of the times by loss; null unless every repetition lost frames and recovered."""
    lost_before: bool
    """A frame was lost before the reset began: then not every loss is of the reset."""


class ResetPart(Part):
    """Reset (RFC 2544 section 26.6, RFC 6201 section 4)."""

    kind: str
    """What was reset: ``software``."""
    frames_per_second: int
    throughput_measured: bool
    """Whether the load is the throughput that the campaign measured; else the campaign file names it."""
    before_ns: int
    """Sending time before the reset."""
    observe_ns: int
    """Sending time after that."""
    repetitions: int
    """Valid repetitions."""
    tester_limited: int
    """Repetitions in which the Tester could not offer the load."""
    took_ns: FigurePart
    """How long the command of the reset took."""
    series: tuple[ResetSeriesPart, ...]
