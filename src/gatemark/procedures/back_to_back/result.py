"""The published result of back-to-back frames (RFC 2544 section 26.4, RFC 9004)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import computed_field

from gatemark.results.coordinates import share_of
from gatemark.results.quantity import Quantity, QuantityKind
from gatemark.results.run import RunResult
from gatemark.results.search import lowest_limit
from gatemark.search.burst import BurstResult
from gatemark.stats.summary import Number, number
from gatemark.units import NANOSECONDS_PER_SECOND

BURST = QuantityKind("back-to-back frames", "frames", "higher", "RFC 2544 section 26.4, RFC 9004 section 6.3")
IMPLIED = QuantityKind("implied buffer time", "ns", "higher", "RFC 9004 section 6.4")
CORRECTED = QuantityKind("corrected buffer time", "ns", "higher", "RFC 9004 section 6.4")


class BackToBackResult(RunResult):
    """Longest bursts at line rate that passed without loss (RFC 2544 section 26.4, RFC 9004).

    Every figure is null unless all searches found a limit of the gateway.
    """

    kinds: ClassVar = (BURST, IMPLIED, CORRECTED)
    ends_on_a_loss: ClassVar[bool] = True
    procedure: Literal["back_to_back"] = "back_to_back"
    bursts: tuple[BurstResult, ...] = ()
    """Searches, one for each repetition up to one that the Tester could not finish; empty if no burst was sent."""
    search: Literal["binary", "loss_verification"]
    """How the searches went on."""
    verifications: int
    """How often a burst with a loss was sent again before the loss counted."""
    ceiling_frames: int | None = None
    """Longest burst that was tried. Null if no burst was sent."""
    resolution_frames: int | None = None
    """Distance of the bounds at which the searches ended, at most. Null if none ended at a limit of the gateway or at
    the ceiling."""
    wait_ns: int
    """Wait for the frames of a burst after its end."""
    line_rate: int | None = None
    """Rate of the bursts: what the medium carries at this frame size, frames/s in one direction. Null if it is not
    known."""
    throughput: int | None = None
    """Median throughput with the same traffic, frames/s in one direction (RFC 9004 section 5). Null if no burst was
    sent."""

    @property
    def burst_frames(self) -> tuple[int, ...]:
        """Longest burst that passed in each search, frames; 0 where not even one frame passed."""
        return tuple(burst.frames for burst in self.bursts)

    @computed_field
    @property
    def near_ceiling(self) -> bool:
        """Whether a search ended within a resolution of the ceiling: then there is no result (RFC 9004 section 6.2)."""
        if self.ceiling_frames is None or self.resolution_frames is None:
            return False
        return any(self.ceiling_frames - frames <= self.resolution_frames for frames in self.burst_frames)

    @property
    def is_valid(self) -> bool:
        """Whether every search found the gateway's limit; without that there is no average and no buffer time."""
        known = all(burst.kind in ("found", "nothing_passes") for burst in self.bursts)
        return self.refused is None and bool(self.bursts) and known and not self.near_ceiling

    @property
    def average(self) -> Fraction | None:
        """Mean of the longest bursts, frames, exact."""
        return Fraction(sum(self.burst_frames), len(self.bursts)) if self.is_valid else None

    @computed_field
    @property
    def average_frames(self) -> Number | None:
        """Mean of the longest bursts: the benchmark (RFC 9004 section 6.3). Null unless all searches found a limit of
        the gateway."""
        return None if self.average is None else number(self.average)

    @computed_field
    @property
    def minimum_frames(self) -> int | None:
        """Shortest of them. Null unless all searches found a limit of the gateway."""
        return min(self.burst_frames) if self.is_valid else None

    @computed_field
    @property
    def maximum_frames(self) -> int | None:
        """Longest of them. Null unless all searches found a limit of the gateway."""
        return max(self.burst_frames) if self.is_valid else None

    @computed_field
    @property
    def standard_deviation_frames(self) -> float | None:
        """Standard deviation of the sample, divisor N - 1. Null unless all searches found a limit of the gateway, and
        with fewer than two searches."""
        average = self.average
        if average is None or len(self.bursts) < 2:
            return None
        return math.sqrt(sum((frames - average) ** 2 for frames in self.burst_frames) / (len(self.bursts) - 1))

    @computed_field
    @property
    def implied_ns(self) -> Number | None:
        """Implied buffer time: average / line rate (RFC 9004 section 6.4). Null unless all searches found a limit of
        the gateway."""
        seconds = self._implied_seconds
        return None if seconds is None else number(seconds * NANOSECONDS_PER_SECOND)

    @computed_field
    @property
    def corrected_ns(self) -> Number | None:
        """Corrected buffer time: implied - implied * throughput / line rate (RFC 9004 section 6.4). The gateway empties
        its buffer while the burst arrives; what is left is the size of the buffer, as a time at line rate. Null unless
        all searches found a limit of the gateway, and without a throughput."""
        seconds, kept = self._implied_seconds, self._kept
        return None if seconds is None or kept is None else number(seconds * kept * NANOSECONDS_PER_SECOND)

    @property
    def _kept(self) -> Fraction | None:
        """Share of a burst that the gateway cannot forward while the burst arrives."""
        if self.throughput is None or self.line_rate is None:
            return None
        return 1 - Fraction(self.throughput, self.line_rate)

    def _resolution_ns(self, kept: Fraction | None) -> int | None:
        """Return the resolution as a time at line rate, rounded up; `kept` is the share that counts of a burst."""
        if kept is None or self.resolution_frames is None or self.line_rate is None:
            return None
        return math.ceil(self.resolution_frames * kept * NANOSECONDS_PER_SECOND / self.line_rate)

    @property
    def _implied_seconds(self) -> Fraction | None:
        return None if self.average is None or self.line_rate is None else self.average / self.line_rate

    @property
    def lowest_tester_limit(self) -> int | None:
        """Shortest burst that the Tester could not send, frames."""
        return lowest_limit(burst.tester_limited_at for burst in self.bursts)

    def own_quantities(self) -> Iterator[Quantity]:
        """Return the burst and both buffer times; `median` is empty, because the RFCs ask for averages here."""
        if not self.bursts:
            return
        load, share = {"load_frames_per_second": self.line_rate}, share_of(Fraction(1), "the line")
        yield self.quantity(
            BURST,
            values=self.burst_frames,
            where=load,
            load_share=share,
            average=self.average_frames,
            resolution=self.resolution_frames,
            is_headline=True,
        )
        for kind, time_ns, kept in (
            (IMPLIED, self.implied_ns, Fraction(1)),
            (CORRECTED, self.corrected_ns, self._kept),
        ):
            yield self.quantity(
                kind,
                repetitions=len(self.bursts),
                where=load,
                load_share=share,
                average=time_ns,
                resolution=None if time_ns is None else self._resolution_ns(kept),
            )
