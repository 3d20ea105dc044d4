"""What every part of `result.json` is built on."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict

from gatemark.stats.summary import Summary

Number = int | float


class Part(BaseModel):
    """A frozen part of the document; an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, alias_generator=lambda name: name.rstrip("_")
    )


class SummaryPart(Part):
    """Median with 1st and 99th percentile (RFC 8219 section 12) and dispersion = (p99 - p1) / median, percent."""

    median: Number
    p1: Number
    p99: Number
    dispersion_percent: float | None
    count: int

    @classmethod
    def of(cls, summary: Summary) -> Self:
        """The published form of a summary."""
        return cls(
            median=summary.median,
            p1=summary.p1,
            p99=summary.p99,
            dispersion_percent=summary.dispersion_percent,
            count=summary.count,
        )


class ReasonPart(Part):
    """How many trials were invalid, or attempts failed, for this reason."""

    reason: str
    trials: int
