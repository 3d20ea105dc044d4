"""How a result changes along a series of measurements: over cores, or over numbers of connections. Exact arithmetic."""

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
    """Return the ratio of each median to the one before it; None for the first, and where the one before is 0."""
    later = tuple(Fraction(after) / Fraction(before) if before else None for before, after in pairwise(medians))
    return (None, *later) if medians else ()
