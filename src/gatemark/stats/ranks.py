"""By how much two sets of repetitions differ, from their ranks alone: the test of Mann and Whitney, inverted.

No distribution is assumed. If repetitions are independent, and those of one set are those of the other times a factor
(or plus a shift), the interval holds the factor in at least the stated share of all cases, for any number of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, takewhile
from statistics import NormalDist

import numpy as np

EXACT_MAX = 100
"""Repetitions of both sets up to which the distribution of U is counted; above, the normal one is as good."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Where a ratio or a difference lies."""

    low: float
    high: float


def ratio_interval(
    reference: Sequence[float],
    other: Sequence[float],
    confidence: Fraction,
    *,
    resolutions: tuple[float, float] = (0, 0),
) -> Interval | None:
    """Return the interval of other / reference; None if there are too few values for this confidence.

    A value v of a search with resolution r means a figure in [v, v + r]; the interval allows for all of it. All values
    are above 0. Ties make the interval wider than it need be, never narrower.
    """
    first, second = np.asarray(reference, dtype=float), np.asarray(other, dtype=float)
    if min(first.min(), second.min()) <= 0:
        raise ValueError("a ratio needs values above 0")
    lows = np.divide.outer(second, first + resolutions[0])
    highs = np.divide.outer(second + resolutions[1], first)
    return interval_without(pairs_left_out(len(first), len(second), confidence), lows, highs)


def difference_interval(
    reference: Sequence[float],
    other: Sequence[float],
    confidence: Fraction,
    *,
    resolutions: tuple[float, float] = (0, 0),
) -> Interval | None:
    """Return the interval of other - reference, as `ratio_interval` does for the ratio; values may be 0 or below."""
    first, second = np.asarray(reference, dtype=float), np.asarray(other, dtype=float)
    lows = np.subtract.outer(second, first + resolutions[0])
    highs = np.subtract.outer(second + resolutions[1], first)
    return interval_without(pairs_left_out(len(first), len(second), confidence), lows, highs)


def interval_without(left_out: int | None, lows: np.ndarray, highs: np.ndarray) -> Interval | None:
    """Return where values from a low to a high lie, without so many smallest and largest; None without a number."""
    if left_out is None:
        return None
    last = highs.size - 1 - left_out
    return Interval(
        low=float(np.partition(lows, left_out, axis=None)[left_out]),
        high=float(np.partition(highs, last, axis=None)[last]),
    )


@lru_cache
def pairs_left_out(first: int, second: int, confidence: Fraction) -> int | None:
    """Return how many of the smallest pairs, and of the largest, lie outside the interval.

    It is the critical value of U in a two-sided test: the largest k with P(U <= k) <= (1 - confidence) / 2. None if
    even P(U <= 0) is above that, so that no values whatever could be told apart.
    """
    tail = (1 - confidence) / 2
    if first + second > EXACT_MAX:
        middle, deviation = first * second / 2, (first * second * (first + second + 1) / 12) ** 0.5
        at = int(middle + deviation * NormalDist().inv_cdf(float(tail)) - 0.5)
        return at if at >= 0 else None
    return critical_value(_counts_of_u(first, second), tail)


def critical_value(counts: Sequence[int], tail: Fraction) -> int | None:
    """Return the largest k for which 0 to k have a share of `tail` of all counts at most; None if 0 has more."""
    allowed = tail * sum(counts)
    below = sum(1 for _ in takewhile(lambda total: total <= allowed, accumulate(counts)))
    return below - 1 if below else None


def repetitions_needed(confidence: Fraction) -> int:
    """Return how many values each of two sets must have at least for an interval of this confidence."""
    number = 1
    while pairs_left_out(number, number, confidence) is None:
        number += 1
    return number


def _counts_of_u(first: int, second: int) -> list[int]:
    """Return in how many orders of first + second values U is 0, 1, ... first * second (the Gaussian binomial)."""
    counts = [1] + [0] * (first * second)
    for step in range(1, first + 1):
        for at in range(len(counts) - 1, second + step - 1, -1):
            counts[at] -= counts[at - second - step]
        for at in range(step, len(counts)):
            counts[at] += counts[at - step]
    return counts
