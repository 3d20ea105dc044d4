"""The published result of bursty traffic (RFC 2544 section 21): one entry for each size of bursts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import computed_field

from gatemark.results.part import LimitedBy, Part
from gatemark.results.quantity import Quantity, QuantityKind
from gatemark.results.run import RunResult
from gatemark.results.search import largest_failure, limited_by, lowest_limit, lowest_pass, measured_alike
from gatemark.search.goal import SearchResult
from gatemark.stats.summary import Number, Summary, number
from gatemark.units import NANOSECONDS_PER_SECOND

GAP = QuantityKind("smallest gap between bursts", "ns", "lower", "RFC 2544 section 21")


class BurstSize(Part):
    """Results of searches with bursts of one size."""

    frames: int
    """Frames of each burst."""
    line_rate: int
    """Rate inside a burst, frames/s in one direction."""
    repetitions: tuple[SearchResult, ...]
    """Searches for the highest load in the long run, frames/s in one direction, one for each repetition."""

    @property
    def limited_by(self) -> LimitedBy:
        return limited_by([search.kind for search in self.repetitions])

    @property
    def is_measured(self) -> bool:
        """Whether every repetition found a gap, all in the same way."""
        return measured_alike(search.kind for search in self.repetitions)

    @computed_field
    @property
    def gaps_ns(self) -> tuple[Number, ...]:
        """Smallest gap without loss in each repetition, from the end of a burst to the start of the next one. 0 where a
        load at line rate passes; empty unless all repetitions found one in the same way."""
        return tuple(number(gap) for gap in self._gaps())

    @computed_field
    @property
    def gap_ns(self) -> Summary | None:
        """Summary of the gaps. Null if there are none."""
        gaps = self._gaps()
        return Summary.of(gaps) if gaps else None

    def _gaps(self) -> tuple[Fraction, ...]:
        if not self.is_measured:
            return ()
        return tuple(gap_ns(self.frames, search.lower_bound or 1, self.line_rate) for search in self.repetitions)

    @property
    def resolution_ns(self) -> int | None:
        """From the smallest gap without loss to the largest one with loss, rounded up, the largest of the repetitions;
        None unless all repetitions found both."""
        bounds = [(search.lower_bound, search.upper_bound) for search in self.repetitions]
        distances = [
            gap_ns(self.frames, passed, self.line_rate) - gap_ns(self.frames, failed, self.line_rate)
            for passed, failed in bounds
            if passed and failed
        ]
        return math.ceil(max(distances)) if bounds and len(distances) == len(bounds) else None

    @property
    def lower_bound(self) -> int | None:
        """Highest load that passed in every repetition, frames/s."""
        return lowest_pass([search.lower_bound for search in self.repetitions])

    @property
    def upper_bound(self) -> int | None:
        """Largest of the lowest loads that failed in a repetition, frames/s."""
        return largest_failure(search.upper_bound for search in self.repetitions)

    @property
    def tester_limited_at(self) -> int | None:
        """Lowest load at which the Tester was the limit, frames/s."""
        return lowest_limit(search.tester_limited_at for search in self.repetitions)


class BurstyTrafficResult(RunResult):
    """Smallest gaps between bursts at line rate with which no frame is lost (RFC 2544 section 21)."""

    kinds: ClassVar = (GAP,)
    procedure: Literal["bursty_traffic"] = "bursty_traffic"
    line_rate: int | None = None
    """Rate inside a burst, frames/s in one direction. Null if it is not known."""
    search_duration_ns: int
    """Sending time of the trials that look for a result."""
    duration_ns: int
    """Sending time of the trials that confirm it."""
    sizes: tuple[BurstSize, ...] = ()
    """One entry for each number of frames, in the order of the campaign file; empty if the run was refused."""

    def own_quantities(self) -> Iterator[Quantity]:
        """Return the gap of each burst size; that of the largest bursts is the headline of the run."""
        for size in self.sizes:
            yield self.quantity(
                GAP,
                values=size.gaps_ns,
                summary=size.gap_ns,
                where={"burst_frames": size.frames},
                resolution=size.resolution_ns,
                limited_by=self.limited_by if size.limited_by == "tester" else size.limited_by,
                tester_limited_at=size.tester_limited_at,
                is_headline=size.frames == max(other.frames for other in self.sizes),
            )


def gap_ns(frames: int, load: int, line_rate: int) -> Fraction:
    """Return the gap between bursts at line rate that make up a load, nanoseconds; both rates in frames/s."""
    return frames * NANOSECONDS_PER_SECOND * (Fraction(1, load) - Fraction(1, line_rate))
