"""What every part of `result.json` is built on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict

from gatemark.stats.summary import Summary, summarise

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


class FigurePart(Part):
    """One figure over the repetitions."""

    values: tuple[Number | None, ...]
    """One for each valid repetition; null where it could not be measured."""
    summary: SummaryPart | None
    """Null if any repetition lacks a value."""

    @classmethod
    def of(cls, values: Sequence[int | None]) -> Self:
        """The published form of a figure with these values."""
        known = [value for value in values if value is not None]
        complete = bool(known) and len(known) == len(values)
        return cls(values=tuple(values), summary=SummaryPart.of(summarise(known)) if complete else None)

    @property
    def missing(self) -> int:
        """Repetitions without a value."""
        return sum(value is None for value in self.values)


class ReasonPart(Part):
    """How many trials were invalid, or attempts failed, for this reason."""

    reason: str
    trials: int
