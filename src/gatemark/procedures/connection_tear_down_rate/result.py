"""The published result of the connection tear-down rate (RFC 9693 section 4.8). Times are on the gateway's clock."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, computed_field

from gatemark.results.part import Figure
from gatemark.results.quantity import Quantity, QuantityKind
from gatemark.results.run import RunResult
from gatemark.stats.summary import Number, number
from gatemark.units import NANOSECONDS_PER_SECOND

RATE = QuantityKind("connection tear-down rate", "connections/s", "higher", "RFC 9693 section 4.8")
FULL = QuantityKind("time to delete all connections", "ns", "lower", "RFC 9693 section 4.8")
EMPTY = QuantityKind("time to delete no connection", "ns", "lower", "RFC 9693 section 4.8")
LEFT = QuantityKind("connections left by the deletion", "connections", "lower", "RFC 9693 section 4.8")
NET = QuantityKind(
    "time to delete the connections alone",
    "ns",
    "lower",
    "RFC 9693 section 4.8; difference of the medians of the two above",
)


class TearDownResult(RunResult):
    """Net time of deleting all connections at once (RFC 9693 section 4.8), on the gateway's clock.

    Every figure is null without times of a full and an empty table.
    """

    kinds: ClassVar = (RATE, FULL, EMPTY, NET, LEFT)
    procedure: Literal["connection_tear_down_rate"] = "connection_tear_down_rate"
    full_ns: Figure
    """Time to delete all connections."""
    empty_ns: Figure
    """Time to delete none, with an empty table."""
    left: Figure | None = Field(default=None, exclude_if=lambda figure: figure is None)
    """Connections that the gateway still held after the deletion of a full table. Absent where it held none, or cannot
    count them."""

    @property
    def _net(self) -> Fraction | None:
        """Median of the full table's times less median of the empty table's; may be 0 or negative."""
        full, empty = self.full_ns.summary, self.empty_ns.summary
        return None if full is None or empty is None else Fraction(full.median) - Fraction(empty.median)

    @property
    def deleted(self) -> Fraction:
        """Connections that a deletion deleted: N less the median of those that were left."""
        left = None if self.left is None else self.left.summary
        return max(Fraction(0), Fraction(self.connection_count or 0) - (0 if left is None else Fraction(left.median)))

    @property
    def left_varies(self) -> bool:
        """Whether the spread of `left` (p99 - p1) is more than a tenth of what was deleted."""
        left = None if self.left is None else self.left.summary
        return left is not None and (Fraction(left.p99) - Fraction(left.p1)) * 10 > self.deleted

    @computed_field
    @property
    def net_ns(self) -> Number | None:
        """Difference of the medians; may be 0 or negative. Null without times of a full and of an empty table."""
        return None if self._net is None else number(self._net)

    @computed_field
    @property
    def connections_per_second(self) -> float | None:
        """N / net time, not rounded; where connections were left, N less the median of `left`. Null if the difference
        is not known or not above 0, or if nothing was deleted."""
        net, deleted = self._net, self.deleted
        return float(deleted * NANOSECONDS_PER_SECOND / net) if net and net > 0 and deleted else None

    @computed_field
    @property
    def reliable(self) -> bool:
        """Whether both spreads (p99 - p1) together are at most a tenth of the difference, and that of `left` at most a
        tenth of what was deleted."""
        net, full, empty = self._net, self.full_ns.summary, self.empty_ns.summary
        if net is None or full is None or empty is None:
            return False
        spread = Fraction(full.p99) - Fraction(full.p1) + Fraction(empty.p99) - Fraction(empty.p1)
        return net > 0 and spread * 10 <= net and not self.left_varies

    def own_quantities(self) -> Iterator[Quantity]:
        """Return the rate, both times and their difference, and what was left."""
        rate = self.connections_per_second
        yield self.quantity(
            RATE,
            repetitions=len(self.full_ns.values),
            median=rate,
            is_certain=self.reliable or rate is None,
            is_headline=True,
        )
        for kind, figure in ((FULL, self.full_ns), (EMPTY, self.empty_ns), (LEFT, self.left)):
            if figure is not None:
                yield self.quantity(kind, values=figure.values, summary=figure.summary)
        if self.net_ns is not None:
            yield self.quantity(
                NET,
                repetitions=len(self.full_ns.values),
                median=self.net_ns,
                is_certain=self.reliable,
            )
