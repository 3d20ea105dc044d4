"""How repeated measurements are summarised: median, first and 99th percentile, dispersion (RFC 8219 section 12)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Self

from pydantic import BaseModel, ConfigDict

from gatemark.stats.percentiles import median, percentile

Number = int | float
"""An int where the value is whole, else the nearest float (the mean of two integers is exact up to 2**52)."""


class Summary(BaseModel):
    """The repetitions of one measurement. Units are those of the values."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    median: Number
    """Median of the repetitions (RFC 8219 section 12)."""
    p1: Number
    """1st percentile (RFC 2330 section 11.3); with fewer than 100 repetitions the smallest."""
    p99: Number
    """99th percentile; with fewer than 100 repetitions the largest."""
    dispersion_percent: float | None
    """(p99 - p1) / median, in percent. Null unless the median is above 0."""
    count: int
    """Number of repetitions in the summary."""

    @classmethod
    def of(cls, values: Sequence[int] | Sequence[Fraction]) -> Self:
        """Summarise at least one value; computed exactly and rounded once at the end."""
        exact = [Fraction(value) for value in values]
        middle, low, high = median(exact), percentile(exact, 1), percentile(exact, 99)
        return cls(
            median=number(middle),
            p1=number(low),
            p99=number(high),
            dispersion_percent=float(100 * (high - low) / middle) if middle > 0 else None,
            count=len(exact),
        )


def number(value: Fraction) -> Number:
    """Return an exact value as JSON can hold it: whole numbers exactly, others as the nearest float."""
    return value.numerator if value.denominator == 1 else float(value)
