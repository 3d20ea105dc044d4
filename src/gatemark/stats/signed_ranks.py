"""By how much the second of a pair differs from the first, from ranks alone: the test of Wilcoxon, inverted.

Each pair gives a difference. No distribution is assumed, only that differences lie about their centre symmetrically:
so they do if both of a pair see the same conditions and chance decides which of them comes first. The estimate is that
of Hodges and Lehmann (1963), the median of the means of every two differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from gatemark.stats.ranks import Interval, critical_value, interval_without

EXACT_MAX = 60
"""Pairs up to which the distribution of the signed ranks is counted; above, the normal one is as good."""


def centre_interval(lows: Sequence[float], highs: Sequence[float], error: Fraction) -> Interval | None:
    """Return the interval that misses the centre of the differences with a probability of `error` at most.

    A difference is known to lie in [low, high]; the ends are equal where it was measured, and infinite where it is only
    a bound. The interval allows for all of it, so its ends may be infinite as well. None if there are too few pairs.
    """
    return interval_without(means_left_out(len(lows), error), _means(lows), _means(highs))


def centre(differences: Sequence[float]) -> float:
    """Return the estimate of the centre; infinite if most of the differences are."""
    means = _means(differences)
    first, last = (means.size - 1) // 2, means.size // 2
    ordered = np.partition(means, (first, last))
    return float(ordered[first] if ordered[first] == ordered[last] else (ordered[first] + ordered[last]) / 2)


def _means(differences: Sequence[float]) -> np.ndarray:
    """Return the mean of every two differences, each with itself as well."""
    values = np.asarray(differences, dtype=float)
    first, second = np.triu_indices(values.size)
    means: np.ndarray = (values[first] + values[second]) / 2
    return means


@lru_cache
def means_left_out(pairs: int, error: Fraction) -> int | None:
    """Return how many of the smallest means, and of the largest, lie outside the interval.

    It is the critical value of W in a two-sided test: the largest k with P(W <= k) <= error / 2. None if even
    P(W <= 0) is above that.
    """
    if pairs > EXACT_MAX:
        middle, deviation = pairs * (pairs + 1) / 4, math.sqrt(pairs * (pairs + 1) * (2 * pairs + 1) / 24)
        at = math.floor(middle + deviation * NormalDist().inv_cdf(float(error / 2)) - 0.5)
        return at if at >= 0 else None
    return critical_value(_counts_of_w(pairs), error / 2)


def _counts_of_w(pairs: int) -> list[int]:
    """Return for how many choices of signs the sum of the positive ranks is 0, 1, ... pairs (pairs + 1) / 2."""
    counts = [1] + [0] * (pairs * (pairs + 1) // 2)
    for rank in range(1, pairs + 1):
        for at in range(len(counts) - 1, rank - 1, -1):
            counts[at] += counts[at - rank]
    return counts
