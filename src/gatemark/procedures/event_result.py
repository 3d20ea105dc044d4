"""What a run of back-to-back frames, system recovery or reset found. Counts are primary; figures derive from them.

Times are nanoseconds and counted from the start of sending, unless a name says otherwise. Each tuple of a series has
one value for each valid repetition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from gatemark.search.burst import BurstResult

BurstSearch = Literal["binary", "loss_verification"]

BEGAN_ERROR_NS = 10_000_000
"""How exactly it is known when a reset began: the engine's word on its time takes some milliseconds to arrive, and the
first frame is due some milliseconds after that time begins."""

EventOutcome = Literal["recovered", "not_recovered", "no_loss", "unknown"]
"""How one repetition ended for one class of frames in one direction. ``not_recovered``: frames were lost up to the end
of the observation. ``no_loss``: no frame was lost where frames had to be lost, so there was nothing to recover from.
``unknown``: frames came back faulty or late; where in the trial they were is not recorded, so neither is the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackToBack:
    """Longest bursts at line rate that passed whole (RFC 2544 section 26.4, RFC 9004)."""

    searches: tuple[BurstResult, ...]
    """One for each repetition of the search."""
    ceiling_frames: int
    """Longest burst that was tried."""
    resolution_frames: int
    """Gap at which a search stopped."""
    line_rate: int
    """Rate of the bursts: what the medium carries at this frame size, frames/s in one direction."""
    throughput: int
    """Median throughput with the same traffic, frames/s in one direction (RFC 9004 section 5)."""
    search: BurstSearch
    verifications: int
    """How often a burst with a loss was sent again before the loss counted."""
    wait_ns: int
    """Wait for the frames of a burst after its end."""

    @property
    def burst_frames(self) -> tuple[int, ...]:
        """Longest burst that passed in each search, frames; 0 where even one no longer than the resolution failed."""
        return tuple(found.frames for found in self.searches)

    @property
    def near_ceiling(self) -> bool:
        """Whether a search ended within a resolution of the ceiling: then it is no result (RFC 9004 section 6.2)."""
        return any(self.ceiling_frames - frames <= self.resolution_frames for frames in self.burst_frames)

    @property
    def is_valid(self) -> bool:
        """Whether every search found the gateway's limit; without that there is no average and no buffer time."""
        known = all(found.kind in ("found", "nothing_passes") for found in self.searches)
        return bool(self.searches) and known and not self.near_ceiling

    @property
    def average(self) -> Fraction | None:
        """Mean of the longest bursts, frames: the benchmark (RFC 9004 section 6.3)."""
        return Fraction(sum(self.burst_frames), len(self.searches)) if self.is_valid else None

    @property
    def minimum(self) -> int | None:
        """Shortest of them, frames."""
        return min(self.burst_frames) if self.is_valid else None

    @property
    def maximum(self) -> int | None:
        """Longest of them, frames."""
        return max(self.burst_frames) if self.is_valid else None

    @property
    def standard_deviation(self) -> float | None:
        """Standard deviation of the sample (divisor N - 1), frames; None with fewer than two searches."""
        average = self.average
        if average is None or len(self.searches) < 2:
            return None
        return math.sqrt(sum((frames - average) ** 2 for frames in self.burst_frames) / (len(self.searches) - 1))

    @property
    def implied_seconds(self) -> Fraction | None:
        """Implied buffer time: average / line rate (RFC 9004 section 6.4)."""
        return None if self.average is None else self.average / self.line_rate

    @property
    def corrected_seconds(self) -> Fraction | None:
        """Corrected buffer time: implied - implied * throughput / line rate (RFC 9004 section 6.4).

        The gateway empties its buffer while the burst arrives; what is left is the size of the buffer, as a time at
        line rate.
        """
        implied = self.implied_seconds
        return None if implied is None else implied * (1 - Fraction(self.throughput, self.line_rate))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverySeries:
    """Recovery of one class of frames in one direction."""

    direction: str
    """``forward`` or ``reverse``."""
    kind: str
    """``foreground`` or ``background`` (RFC 8219 section 5.3)."""
    offered: tuple[int, ...]
    lost: tuple[int, ...]
    """Frames that did not come back, in the whole trial."""
    faulty: tuple[int, ...]
    """Frames that came back wrong or late. Their place in the trial is not known: see `EventOutcome`."""
    outcomes: tuple[EventOutcome, ...]
    recovery_ns: tuple[int | None, ...]
    """B - A: from the fall of the load to the time when the last frame that was lost was due; 0 if none was lost after
    the fall; None unless recovered (RFC 2544 section 26.5)."""
    last_loss_before_ns: tuple[int | None, ...]
    """How long before the fall of the load the last lost frame was due; None if a frame was lost after the fall."""

    @property
    def average_ns(self) -> Fraction | None:
        """Mean recovery time; None if it is not known of every repetition."""
        known = [ns for ns in self.recovery_ns if ns is not None]
        return Fraction(sum(known), len(known)) if known and len(known) == len(self.recovery_ns) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """System recovery (RFC 2544 section 26.5). Loads are frames/s in one direction."""

    overload_fps: int
    recovery_fps: int
    """Half of the overload."""
    throughput_fps: int
    """Throughput that the overload is a share of: the median of the campaign, or the load that the file names."""
    is_measured_throughput: bool
    """Whether the campaign measured it."""
    duration_ns: int
    """Sending time of the overload."""
    observe_ns: int
    """Sending time of half that load."""
    measured: int
    """Repetitions with a valid trial."""
    tester_limited: int
    """Repetitions in which the Tester could not offer the load validly."""
    series: tuple[RecoverySeries, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetSeries:
    """Reset as one class of frames in one direction saw it."""

    direction: str
    """``forward`` or ``reverse``."""
    kind: str
    """``foreground`` or ``background`` (RFC 8219 section 5.3)."""
    sending_ns: int
    """Sending time of each trial; with `offered` it gives the rate of this class."""
    offered: tuple[int, ...]
    lost: tuple[int, ...]
    """Frames that did not come back as a correct gateway would deliver them: lost, late or faulty."""
    faulty: tuple[int, ...]
    """Frames among them that came back wrong or late."""
    longest_run: tuple[int, ...]
    """Most frames of this class lost one after the other."""
    first_loss_ns: tuple[int | None, ...]
    """When the first frame that did not come back at all was due; None if all came back, right or wrong."""
    last_loss_ns: tuple[int | None, ...]
    """When the last one was due."""
    outcomes: tuple[EventOutcome, ...]

    @property
    def recovered(self) -> tuple[bool, ...]:
        """Whether frames came back, all of them, at the end of the observation."""
        return tuple(outcome in ("recovered", "no_loss") for outcome in self.outcomes)

    @property
    def reset_ns_by_loss(self) -> tuple[int, ...]:
        """Frames lost / rate offered (RFC 6201 section 4, frame loss method), rounded down.

        Where the gateway did not recover, the reset lasts at least so long.
        """
        return tuple(
            lost * self.sending_ns // offered if offered else 0
            for lost, offered in zip(self.lost, self.offered, strict=True)
        )

    @property
    def reset_ns_by_gap(self) -> tuple[int, ...]:
        """Longest time between two frames that came back: (longest run + 1) / rate, rounded down; 0 if none was lost.

        The time stamp method of RFC 6201 section 4, by the times when frames were due.
        """
        return tuple(
            (run + 1) * self.sending_ns // offered if run and offered else 0
            for run, offered in zip(self.longest_run, self.offered, strict=True)
        )

    @property
    def average_ns(self) -> Fraction | None:
        """Mean reset time by loss; None unless every repetition recovered from a loss."""
        values = self.reset_ns_by_loss
        if not values or any(outcome != "recovered" for outcome in self.outcomes):
            return None
        return Fraction(sum(values), len(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """Reset (RFC 2544 section 26.6, RFC 6201 section 4)."""

    kind: str
    """What was reset: ``software``."""
    load: int
    """Frames/s in one direction."""
    is_measured_throughput: bool
    """Whether the load is the lowest throughput that any repetition of the campaign found; else the file names it."""
    before_ns: int
    """Sending time before the reset was due."""
    observe_ns: int
    """Sending time after that."""
    measured: int
    """Repetitions with a valid trial."""
    tester_limited: int
    """Repetitions in which the Tester could not offer the load validly."""
    began_ns: tuple[int, ...]
    """When the command of the reset was started, within some milliseconds: see `BEGAN_ERROR_NS`."""
    took_ns: tuple[int, ...]
    """How long that command took; the gateway may have needed longer or not so long."""
    series: tuple[ResetSeries, ...]

    def lost_before(self, series: ResetSeries) -> bool:
        """Whether a frame of a series was lost before the reset began: then not every loss is of the reset."""
        pairs = zip(series.first_loss_ns, self.began_ns, strict=True)
        return any(first is not None and first < began - BEGAN_ERROR_NS for first, began in pairs)
