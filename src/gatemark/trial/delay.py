"""Delays of the frames of a trial as the engine reports them: facts in integers.

A delay is the time from just before the Tester hands a frame to its port until just after the poll that returns it. So
it holds the Tester's own paths of sending and receiving. All times are nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from gatemark.trial.facts import Counter, Facts, Natural

Histogram = tuple[tuple[int, int], ...]
"""Middle of each used bucket in nanoseconds and how many samples it holds, ascending."""

PER_UNIT = 100_000
"""Percentiles are written in hundred-thousandths: 99.9 % is 99,900."""


class Percentile(Facts):
    """A percentile of the samples (RFC 2330 section 11.3)."""

    per_100000: Natural
    """Rank in hundred-thousandths: 99,900 is 99.9 %."""
    ns: Natural
    """The delay, at most 0.1 % or 1 ns off."""


class TagFacts(Facts):
    """Delays of the tagged frames (RFC 8219 section 7.2)."""

    count: Natural
    """Tags that were sent."""
    received: Natural
    """Tagged frames that came back correct, in time and with a delay of 0 or more."""
    negative: Natural
    """Tagged frames that seem to have arrived before they were sent: an error of the clock, in no figure."""
    median_ns: int | None
    """Median over all tags, exact; one that is lost, late, faulty or negative ranks above every delay. Null where it
    falls on one of those."""
    p999_ns: int | None
    """99.9th percentile over all tags (RFC 2330 section 11.3), with the same rule."""

    @property
    def lost(self) -> int:
        """Tags without a delay: lost, late, faulty or negative."""
        return self.count - self.received


class VariationFacts(Facts):
    """Delay of each frame minus the delay of the frame sent before it (RFC 8219 section 7.3.2)."""

    pairs: Natural
    """Pairs of successive frames that both have a delay."""
    skipped: Natural
    """Pairs of which one frame has no delay, or arrived more than a million frames after the other."""
    minimum_ns: int | None
    """Smallest difference, exact. Null without pairs, as are the next two."""
    median_ns: int | None
    """Median of the differences."""
    maximum_ns: int | None
    """Largest difference, exact."""
    histogram: Histogram
    """Middle of each used bucket in ns, and its pairs."""


class DelayFacts(Facts):
    """Delays of one class of frames in one direction."""

    samples: Natural
    """Frames of `received` with a delay of 0 or more."""
    negative: Annotated[Natural, Counter(words="delays below 0, in no figure", whose="Tester")]
    """Frames of `received` that seem to have arrived before they were sent: an error of the clock, in no figure."""
    negative_maximum_ns: Natural = 0
    """How long before it was sent one of those seems to have arrived, at most; more than the clock may be off makes the
    trial invalid. 0 without such frames, and in journals before protocol 12."""
    minimum_ns: int | None
    """Shortest delay, exact. Null without samples."""
    maximum_ns: int | None
    """Longest delay, exact. Null without samples."""
    percentiles: tuple[Percentile, ...]
    """Percentiles of the samples; empty without samples."""
    histogram: Histogram
    """Middle of each used bucket in ns, and its frames; empty unless the trial measures delays."""
    tags: TagFacts | None = None
    """Tagged frames (RFC 8219 section 7.2). Null unless they were asked for."""
    variation: VariationFacts | None = None
    """Delay of each frame less that of the frame of its class sent before it (RFC 8219 section 7.3.2). Null unless it
    was asked for."""

    def percentile_ns(self, per_100000: int) -> int | None:
        """Return a percentile that the engine reports; None if it does not or if there is no sample."""
        return next((percentile.ns for percentile in self.percentiles if percentile.per_100000 == per_100000), None)


def percentile_ns(histogram: Iterable[tuple[int, int]], total: int, per_100000: int) -> int | None:
    """Return the smallest delay that `per_100000` hundred-thousandths of `total` frames do not exceed.

    RFC 2330 section 11.3, by the rank ceil(p * total). `total` may be more than the samples of the histogram: frames
    without a delay rank above all others. None where the rank falls on such a frame, or there is no frame.
    """
    rank = -(-per_100000 * total // PER_UNIT)
    if rank < 1:
        return None
    cumulative = 0
    for ns, count in histogram:
        cumulative += count
        if cumulative >= rank:
            return ns
    return None
