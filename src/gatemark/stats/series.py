"""How a result changes along a series of measurements: over cores, connections, flows. Exact arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise


def relative_scale_ups(rates: Mapping[int, int | Fraction]) -> dict[int, Fraction]:
    """Return X(n) / (n * X(1)) for each number n of cores; 1 is perfect scaling.

    `rates` has the median rate of each number of cores; that of one core is required and above 0.
    """
    if 1 not in rates:
        raise ValueError("a relative scale-up needs the rate of one core")
    return {cores: Fraction(rate) / (cores * Fraction(rates[1])) for cores, rate in rates.items()}


def ratios_to_previous(medians: Sequence[int | Fraction]) -> tuple[Fraction | None, ...]:
    """Return the ratio of each median to the one before it; None for the first, after one that is not above 0, and for
    one below 0.
    """
    later = tuple(
        Fraction(after) / Fraction(before) if before > 0 and after >= 0 else None for before, after in pairwise(medians)
    )
    return (None, *later) if medians else ()


def degradation_percent(single: int | Fraction, many: int | Fraction, *, higher_is_better: bool) -> Fraction:
    """Return Xpd, how much worse a figure is with n flows than with one, in % (RFC 8219 section 10.2.1).

    `single` is X1, above 0; `many` is Xn.
    """
    if single <= 0:
        raise ValueError("a degradation needs a figure above 0 with one flow")
    change = (Fraction(many) - Fraction(single)) / Fraction(single) * 100
    return -change if higher_is_better else change


def degradation_error(
    single: Fraction, many: Fraction, true_single: tuple[Fraction, Fraction], true_many: tuple[Fraction, Fraction]
) -> Fraction | None:
    """Return by how many percentage points a degradation may be off at most; None if X1 may be 0, so that none is too
    many.

    Searches give bounds: the true X1 and Xn lie from the first to the second of two figures.
    """
    if true_single[0] <= 0:
        return None
    ratio = many / single
    return max(ratio - true_many[0] / true_single[1], true_many[1] / true_single[0] - ratio) * 100
