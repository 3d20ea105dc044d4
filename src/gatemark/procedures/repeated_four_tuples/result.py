"""The published result of repeated four-tuples. It is no connection establishment rate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import computed_field

from gatemark.results.part import Figure
from gatemark.results.quantity import Quantity, QuantityKind
from gatemark.results.search import RateResult
from gatemark.stats.summary import Summary

RATE = QuantityKind(
    "frame rate with repeated four-tuples", "frames/s", "higher", "none: it is not a connection establishment rate"
)
EXPECTED = QuantityKind("expected connections of repeated four-tuples", "connections")
LAST_NEW = QuantityKind("ratio of new connections at the end", "%")
SEEN = QuantityKind("connections of repeated four-tuples", "connections", None, "none: those that the Tester saw")
COUNTED = QuantityKind("connections counted by the gateway", "connections")


class RepeatedFourTuplesResult(RateResult):
    """Highest rate at which all F frames arrive if each one's four-tuple is drawn at random from K of them.

    Not every frame opens a connection: it is no connection establishment rate, and it is never called one. No RFC
    describes it.
    """

    kinds: ClassVar = (RATE, EXPECTED, LAST_NEW, SEEN, COUNTED)
    unit = "frames/s"
    is_load_of_others = False
    procedure: Literal["repeated_four_tuples"] = "repeated_four_tuples"
    drawn_frames: int
    """F: frames of each trial, the connection of each drawn from all K = `connections.count`."""
    established: Figure
    """Connections that had a frame, as the Tester saw it, in the trial at the rate that passed."""
    counted: Figure
    """Connections that the gateway counted after the same trial; null where it cannot count."""

    @computed_field
    @property
    def frames_per_second(self) -> Summary | None:
        """The rate: summary of the lower bounds. Null if a repetition was limited by the Tester, if nothing passed in
        any, or if the maximum passed in some repetitions and not in others."""
        return self.rate

    @computed_field
    @property
    def expected_established(self) -> float | None:
        """K (1 - (1 - 1/K)^F): how many of K connections have a frame on average over the draws. Null without a number
        of connections."""
        count = self.connection_count
        return None if count is None else count * (1 - _left_out(count, self.drawn_frames))

    @computed_field
    @property
    def final_new_ratio(self) -> float | None:
        """(1 - 1/K)^F: probability that the last frame opens a connection, on average over the draws. Null without a
        number of connections."""
        count = self.connection_count
        return None if count is None else _left_out(count, self.drawn_frames)

    def own_quantities(self) -> Iterator[Quantity]:
        """Return the rate, and beside it what tells that it is no rate of connections."""
        if not self.repetitions:
            return
        where = {"drawn_frames": self.drawn_frames}
        yield self.rate_quantity(RATE, where)
        expected, ratio = self.expected_established, self.final_new_ratio
        yield self.quantity(EXPECTED, median=expected, where=where)
        yield self.quantity(LAST_NEW, median=None if ratio is None else 100 * ratio, where=where)
        for kind, figure in ((SEEN, self.established), (COUNTED, self.counted)):
            if figure.summary is not None:
                yield self.quantity(kind, values=figure.values, summary=figure.summary, where=where)


def _left_out(count: int, frames: int) -> float:
    """Return (1 - 1/count)^frames without losing digits where the count is large."""
    return math.exp(frames * math.log1p(-1 / count)) if count > 1 else 0.0
