"""Delays of a simulated gateway: what the engine would report of them, from a pattern that repeats. Pure arithmetic.

Frame j of a class is delayed by number ``j mod n`` of the n delays of the device, so every figure is known beforehand.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tests.simulated.state import Gaps

PERCENTILES = (50_000, 90_000, 99_000, 99_900, 99_990, 99_999)


class ClassDelays:
    """Delays of one class of frames in one direction; `gaps` says which frames do not come back correct."""

    def __init__(self, gaps: Gaps, pattern: Sequence[int], timeout_ns: int | None) -> None:
        self.gaps = gaps
        self.pattern = pattern
        self._timeout_ns = timeout_ns
        self._frames = [arrivals_of(gaps, place, len(pattern)) for place in range(len(pattern))]

    @property
    def late(self) -> int:
        """Correct frames beyond the timeout."""
        return sum(count for ns, count in zip(self.pattern, self._frames, strict=True) if self._is_late(ns))

    @property
    def negative(self) -> int:
        """Correct frames that seem to have arrived before they were sent."""
        return sum(count for ns, count in zip(self.pattern, self._frames, strict=True) if ns < 0)

    def _is_late(self, ns: int) -> bool:
        return self._timeout_ns is not None and ns > self._timeout_ns

    def _is_sample(self, ns: int) -> bool:
        return ns >= 0 and not self._is_late(ns)

    def histogram(self) -> list[tuple[int, int]]:
        """Return delays and how many frames have them, ascending."""
        return _sorted((ns, count) for ns, count in zip(self.pattern, self._frames, strict=True) if self._is_sample(ns))

    def of(self, number: int) -> int | None:
        """Return the delay of a frame of the class; None if it has none."""
        ns = self.pattern[number % len(self.pattern)]
        return ns if not self.gaps.loses(number) and self._is_sample(ns) else None

    def report(self, options: Mapping[str, Any] | None, tags: Sequence[int]) -> dict[str, Any]:
        """Return the `delay` object of a report; `tags` are the tagged frames of the class."""
        histogram = self.histogram()
        asked = options or {}
        return {
            "samples": sum(count for _, count in histogram),
            "negative": self.negative,
            "negative_maximum_ns": max(0, -min(self.pattern)) if self.negative else 0,
            "minimum_ns": histogram[0][0] if histogram else None,
            "maximum_ns": histogram[-1][0] if histogram else None,
            "percentiles": [
                {"per_100000": rank, "ns": _percentile(histogram, rank)} for rank in PERCENTILES if histogram
            ],
            "histogram": [list(bucket) for bucket in histogram] if asked.get("histogram") else [],
            "tags": self._tags(tags) if asked.get("tags") is not None else None,
            "variation": self._variation(with_histogram=bool(asked.get("histogram")))
            if asked.get("variation")
            else None,
        }

    def _tags(self, tags: Sequence[int]) -> dict[str, Any]:
        delays = sorted(ns for number in tags if (ns := self.of(number)) is not None)

        def of_rank(rank: int) -> int | None:
            return delays[rank - 1] if 0 < rank <= len(delays) else None

        count = len(tags)
        median, upper = of_rank((count + 1) // 2), of_rank(count // 2 + 1)
        if median is not None and count % 2 == 0:
            median = None if upper is None else median + (upper - median) // 2
        p999 = of_rank((count * 999 + 999) // 1000)
        negative = sum(not self.gaps.loses(number) and self.pattern[number % len(self.pattern)] < 0 for number in tags)
        return {
            "count": count,
            "received": len(delays),
            "negative": negative,
            "median_ns": median,
            "p999_ns": p999,
        }

    def _variation(self, *, with_histogram: bool) -> dict[str, Any]:
        """Neighbours of the class that both have a delay (RFC 8219 section 7.3.2)."""
        period = len(self.pattern)
        steps: Counter[int] = Counter()
        for place, ns in enumerate(self.pattern):
            before = self.pattern[place - 1]
            if self._is_sample(ns) and self._is_sample(before):
                steps[ns - before] += arrivals_of(self.gaps, place, period, with_previous=True)
        histogram = _sorted(steps.items())
        pairs = sum(count for _, count in histogram)
        return {
            "pairs": pairs,
            "skipped": max(0, self.gaps.total - 1) - pairs,
            "minimum_ns": histogram[0][0] if histogram else None,
            "median_ns": _percentile(histogram, 50_000) if histogram else None,
            "maximum_ns": histogram[-1][0] if histogram else None,
            "histogram": [list(bucket) for bucket in histogram] if with_histogram else [],
        }


def arrivals_of(gaps: Gaps, place: int, period: int, *, with_previous: bool = False) -> int:
    """Return how many frames number j with ``j mod period = place`` arrive, or arrive after the frame before them."""
    count = 0
    for first, end, every in gaps.spans():
        begin = first + 1 if with_previous else first
        if not every:
            count += _in_class(begin, end, place, period)
            continue
        common = math.lcm(period, every)
        lost = {every - 1, 0} if with_previous else {every - 1}  # j is lost, or the frame before j is
        places = (residue for residue in range(place, common, period) if residue % every not in lost)
        count += sum(_in_class(begin, end, residue, common) for residue in places)
    return count


def _in_class(begin: int, end: int, residue: int, period: int) -> int:
    """Return how many j with begin <= j < end have ``j mod period = residue``."""
    return max(0, -(-(end - residue) // period)) - max(0, -(-(begin - residue) // period)) if end > begin else 0


def tagged(tags: Mapping[str, int] | None, first: int, frames: int) -> list[int]:
    """Return the indexes of the tagged frames of a direction, `first` being the first that may be tagged."""
    if tags is None:
        return []
    count = tags["count"]
    return [first + k * (frames - first) // count for k in range(count)]


def _sorted(pairs: Any) -> list[tuple[int, int]]:
    merged: Counter[int] = Counter()
    for ns, count in pairs:
        if count:
            merged[ns] += count
    return sorted(merged.items())


def _percentile(histogram: Sequence[tuple[int, int]], per_100000: int) -> int:
    rank = -(-per_100000 * sum(count for _, count in histogram) // 100_000)
    cumulative = 0
    for ns, count in histogram:
        cumulative += count
        if cumulative >= rank:
            return ns
    raise AssertionError("the rank of a percentile is among the samples")
