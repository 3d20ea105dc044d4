"""The published result of throughput (RFC 2544 section 26.1, RFC 8219 section 7.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import computed_field

from gatemark.results.quantity import Quantity, QuantityKind
from gatemark.results.search import RateResult
from gatemark.stats.summary import Summary

THROUGHPUT = QuantityKind("throughput", "frames/s", "higher", "RFC 2544 section 26.1, RFC 8219 section 7.1")
TOLERANT = QuantityKind(
    "rate with loss tolerated",
    "frames/s",
    "higher",
    "none: `throughput.loss_tolerance` is above 0 (RFC 1242 section 3.17)",
)


class ThroughputResult(RateResult):
    """Highest rate at which the loss stays within the tolerance (RFC 2544 section 26.1, RFC 8219 section 7.1).

    It is the throughput if the tolerance is 0 (RFC 1242 section 3.17).
    """

    kinds: ClassVar = (THROUGHPUT, TOLERANT)
    unit = "frames/s"
    procedure: Literal["throughput"] = "throughput"

    @computed_field
    @property
    def rate_per_direction(self) -> Summary | None:
        """The throughput in one direction, frames/s: summary of the lower bounds. Null if a repetition was limited by
        the Tester, if nothing passed in any, or if the maximum passed in some repetitions and not in others."""
        return self.rate

    @computed_field
    @property
    def rate_sum_of_directions(self) -> Summary | None:
        """Summary of twice `rate_per_direction`. Null where that is, and unless the run is bidirectional."""
        rate = self.rate
        if rate is None or self.direction != "bidirectional":
            return None
        return rate.model_copy(update={"median": 2 * rate.median, "p1": 2 * rate.p1, "p99": 2 * rate.p99})

    def own_quantities(self) -> Iterator[Quantity]:
        """Return the rate, with what makes a frame count as delivered if it differs from RFC 2544."""
        if self.repetitions:
            timeout_ns = self.goal.frame_timeout_ns
            where = {} if timeout_ns is None else {"frame_timeout_ns": timeout_ns}
            yield self.rate_quantity(TOLERANT if self.is_tolerant else THROUGHPUT, where)
