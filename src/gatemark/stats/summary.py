"""How repeated measurements are summed up: median, first and 99th percentile, dispersion (RFC 8219 section 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from gatemark.stats.percentiles import median, percentile

Figure = int | float
"""An int where the value is whole, else the nearest float (the mean of two integers is exact up to 2**52)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The repetitions of one measurement. Units are those of the values."""

    count: int
    """How many values there were."""
    median: Figure
    p1: Figure
    """First percentile (RFC 2330 section 11.3); with fewer than 100 values the smallest."""
    p99: Figure
    """99th percentile; with fewer than 100 values the largest."""
    minimum: Figure
    maximum: Figure
    dispersion: float | None
    """(p99 - p1) / median, a ratio; None where the median is 0. Times 100 it is per cent."""

    @property
    def dispersion_percent(self) -> float | None:
        """The dispersion in per cent of the median."""
        return None if self.dispersion is None else 100 * self.dispersion


def summarise(values: Sequence[int] | Sequence[Fraction]) -> Summary:
    """Sum up at least one value; computed exactly and rounded once at the end."""
    exact = [Fraction(value) for value in values]
    middle, low, high = median(exact), percentile(exact, 1), percentile(exact, 99)
    return Summary(
        count=len(exact),
        median=_figure(middle),
        p1=_figure(low),
        p99=_figure(high),
        minimum=_figure(min(exact)),
        maximum=_figure(max(exact)),
        dispersion=float((high - low) / middle) if middle else None,
    )


def _figure(value: Fraction) -> Figure:
    return value.numerator if value.denominator == 1 else float(value)
