"""What a trial of a pair measures: one row for each figure. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from gatemark.results.quantity import Better
from gatemark.stats.percentiles import DELAY_PERCENTILES
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import DirectionResult
from gatemark.units import NANOSECONDS_PER_SECOND

FigureName = Literal["forwarding rate", "median delay", "connections per second", "throughput"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of a trial, which needs no search, or of a search."""

    name: FigureName
    unit: str
    better: Better
    load_words: str
    """At which load it is measured."""
    load_share: Fraction | None
    """Load / what a gateway forwarded under overload in the search for a load: the faster one if above 1, else the
    slower one. None: each pair is two searches whose trials alternate, from the load that was found on."""
    meaning: str
    """What it is not, in sentences."""

    establishes: bool = False
    """Whether each trial is test phase 1 alone, over an empty table (RFC 9693 section 4.5)."""

    @property
    def described(self) -> str:
        """Name, and what it needs."""
        needs = "stateful gateways" if self.establishes else "two searches" if self.is_searched else ""
        return f"{self.name} ({needs})" if needs else self.name

    @property
    def load_unit(self) -> str:
        """Unit of the load."""
        return "connections/s" if self.establishes else "frames/s"

    @property
    def is_searched(self) -> bool:
        """Whether each pair is two searches."""
        return self.load_share is None

    @property
    def is_overload(self) -> bool:
        """Whether the gateways are to lose frames."""
        return self.load_share is None or self.load_share > 1


FORWARDING_RATE = Figure(
    name="forwarding rate",
    unit="frames/s",
    better="higher",
    load_words="at the maximum offered load",
    load_share=Fraction(4, 3),
    meaning="The forwarding rate at the maximum offered load (RFC 2285 section 3.6.2) is not a throughput: a gateway"
    " that forwards less under overload than just below it has a lower forwarding rate. A search may find a different"
    " rate.",
)
MEDIAN_DELAY = Figure(
    name="median delay",
    unit="ns",
    better="lower",
    load_words="at a load below both",
    load_share=Fraction(1, 2),
    meaning="The median delay is that of all frames of a trial, in the direction in which it is longer, at half the"
    " rate of the slower gateway under overload. It includes the Tester's own paths, which both sides share: they move"
    " the ratio towards 1.",
)
CONNECTIONS_PER_SECOND = Figure(
    name="connections per second",
    unit="connections/s",
    better="higher",
    load_words="at a rate above both",
    load_share=Fraction(4, 3),
    meaning="Connections established per second at a rate too high for the gateway are not its maximum connection"
    " establishment rate, at which none may fail (RFC 9693 section 4.5).",
    establishes=True,
)
THROUGHPUT = Figure(
    name="throughput",
    unit="frames/s",
    better="higher",
    load_words="of alternating searches",
    load_share=None,
    meaning="Each throughput comes from a search with short trials; RFC 2544 section 24 asks for 60 s. Pairs estimate"
    " the ratio: publish the throughput that gatemark run measures.",
)
FIGURES: Mapping[str, Figure] = {
    figure.name: figure for figure in (FORWARDING_RATE, MEDIAN_DELAY, CONNECTIONS_PER_SECOND, THROUGHPUT)
}
assert tuple(FIGURES) == get_args(FigureName)


def established_of(record: TrialRecord) -> int:
    """Return the connections of test phase 1 whose frame came through and which the gateway still counts after it."""
    counted = None if record.connections is None else record.connections.counted_after_phase_one
    established = record.report.established
    return established if counted is None else min(established, counted)


def rate_of(direction: DirectionResult) -> float:
    """Return the frames of a direction that came back correct per second of sending."""
    received = sum(counts.received for _, counts in direction.classes)
    return received * NANOSECONDS_PER_SECOND / max(1, direction.sending_ns)


def delay_of(direction: DirectionResult) -> int:
    """Return the median delay of the frames of a direction, that of the class in which it is longer; 0 without any."""
    medians = (counts.delay.percentile_ns(DELAY_PERCENTILES["p50"]) for _, counts in direction.classes)
    return max((median for median in medians if median is not None), default=0)
