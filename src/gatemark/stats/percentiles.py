"""Percentiles and medians by the definitions that the benchmarking RFCs use, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

Number = TypeVar("Number", int, Fraction)


def percentile(values: Sequence[Number], percent: int | Fraction) -> Number:
    """Return the smallest of `values` such that `percent` % of them are at or below it (RFC 2330 section 11.3).

    Always one of the values, never interpolated. `percent` is in (0, 100]; the rank is rounded up in integers, so
    99.9 % of 1000 values is written ``Fraction(999, 10)`` and is exactly the 999th.
    """
    if not values:
        raise ValueError("a percentile of no values does not exist")
    share = Fraction(percent)
    if not 0 < share <= 100:
        raise ValueError(f"a percentile lies above 0 and at or below 100, not at {percent}")
    divisor = 100 * share.denominator
    rank = (share.numerator * len(values) + divisor - 1) // divisor
    return sorted(values)[rank - 1]


def median(values: Sequence[int] | Sequence[Fraction]) -> Fraction:
    """Return the middle of `values`, or the mean of the middle two if their number is even (RFC 2330 section 11.3)."""
    if not values:
        raise ValueError("a median of no values does not exist")
    ordered = sorted(Fraction(value) for value in values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


DELAY_PERCENTILES: Mapping[str, int] = {
    "p50": 50_000,
    "p90": 90_000,
    "p99": 99_000,
    "p99.9": 99_900,
    "p99.99": 99_990,
    "p99.999": 99_999,
}
"""Percentiles of delays: published key and rank per 100,000. The one list of them."""

DELAY_FIGURES = ("minimum", *DELAY_PERCENTILES, "maximum")
"""Keys of all figures of a distribution of delays, smallest first."""


def percent_words(key: str) -> str:
    """Return a key of `DELAY_FIGURES` in words: "p99.9" as "99.9 %"."""
    return f"{key[1:]} %" if key in DELAY_PERCENTILES else key
