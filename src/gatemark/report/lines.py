"""Lines of tables that have a column for each number of connections or each campaign (RFC 9693 section 6). Pure.

The settings of the test come first, then a block for each figure that was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean, stdev
from typing import TypeVar

from gatemark.report.table import Column
from gatemark.report.words import (
    DASH,
    capital,
    format_count,
    format_in,
    format_percent,
    limit_text,
    limited,
    rate_cell,
    unit_of_times,
)
from gatemark.results.connections import PortRange
from gatemark.results.coordinates import Dimension, dimension
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.quantity import Quantity
from gatemark.results.unit import unit_named
from gatemark.stats.summary import Number
from gatemark.units import format_duration_ns

COLUMNS_MAX = 8
"""Columns side by side in a table of the page."""


S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a column was measured with; None where nothing is stated."""

    source_ports: PortRange | None
    """Of the Initiator, or of frames from left to right."""
    destination_ports: PortRange | None
    source_hosts: int | None
    destination_hosts: int | None
    connections: tuple[int, ...]
    table_size: int | None
    hash_size: int | None
    udp_timeout_ns: int | None

    @property
    def count(self) -> int | None:
        """The number of connections; None if there are several or none."""
        return self.connections[0] if len(self.connections) == 1 else None


def number_line(label: str, value: Callable[[S], int | None]) -> Column[S]:
    """Return the line of a number, which is left out where no column has one."""

    def cell(settings: S) -> str:
        number = value(settings)
        return "" if number is None else format_count(number)

    return Column(label, cell, optional=True)


def endpoint_lines(settings: Sequence[Settings]) -> Iterator[Column[Settings]]:
    """Yield ports, and hosts where there are several."""
    yield _ports("Source ports", [known.source_ports for known in settings], lambda known: known.source_ports)
    yield _ports(
        "Destination ports", [known.destination_ports for known in settings], lambda known: known.destination_ports
    )
    if max((known.source_hosts or 0 for known in settings), default=0) > 1:
        yield number_line("Initiator's hosts", lambda known: known.source_hosts)
    if max((known.destination_hosts or 0 for known in settings), default=0) > 1:
        yield number_line("Responder's hosts", lambda known: known.destination_hosts)


def _ports(
    label: str, ranges: Sequence[PortRange | None], choose: Callable[[Settings], PortRange | None]
) -> Column[Settings]:
    """Return the line of numbers of ports; the first port is in the label if it is the same everywhere."""
    starts = {None if ports is None else ports.minimum for ports in ranges}
    named = f"{label} from {starts.pop()}" if len(starts) == 1 and None not in starts else label
    return number_line(named, lambda known: None if (ports := choose(known)) is None else ports.ports)


def quotient(dividend: int | None, divisor: int | None) -> str:
    """A quotient with four decimals; empty where a side is not known."""
    return f"{dividend / divisor:.4f}" if dividend and divisor else ""


TABLE: tuple[Column[Settings], ...] = (
    number_line("Table size", lambda known: known.table_size),
    number_line("Hash size", lambda known: known.hash_size),
    Column("Connections per hash size", lambda known: quotient(known.count, known.hash_size), optional=True),
)
UDP_TIMEOUT: Column[Settings] = Column(
    "UDP timeout",
    lambda known: "" if known.udp_timeout_ns is None else format_duration_ns(known.udp_timeout_ns),
    optional=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureWords:
    """How the figures of a metric are written."""

    unit: str
    divisor: int | None
    """Nanoseconds of the unit of times; None for anything else."""

    @classmethod
    def of(cls, unit: str, quantities: Iterable[Quantity]) -> FigureWords:
        """Return how quantities with one unit are written: times in a unit that suits all of them."""
        return cls.of_values(unit, (value for row in quantities for value in (row.p99, row.median, row.average)))

    @classmethod
    def of_values(cls, unit: str, values: Iterable[Number | None]) -> FigureWords:
        """Return the same, given the values that decide the unit of times."""
        words, divisor = unit_of_times(values) if unit == "ns" else (unit, None)
        return cls(unit=words, divisor=divisor)

    @property
    def title(self) -> str:
        """The unit in a title."""
        return unit_named(self.unit).title

    def write(self, value: Number | None) -> str:
        """Return a value without its unit."""
        if self.divisor is not None:
            return format_in(value, self.divisor)
        if unit_named(self.unit).is_rate and value is not None and 2 * value % 1:  # a quotient
            value = round(value)
        return format_percent(value) if self.unit == "%" else format_count(value)

    def figure(self, quantity: Quantity) -> str:
        """Return a figure, or what is in its place."""
        if quantity.refused is not None:
            return "not made"
        if quantity.limited_by in NOT_THE_GATEWAY:
            return limited(quantity.limited_by)
        if unit_named(quantity.unit).is_rate and (quantity.limited_by == "maximum" or quantity.value is None):
            return rate_cell(quantity) if quantity.is_certain else "not known"
        if quantity.value is None:
            return "not known"
        least = "≥ " if quantity.limited_by == "maximum" else ""
        written = f"{least}{self.write(quantity.value)}"
        return written if quantity.is_certain else f"({written})"

    def known(self, quantity: Quantity, value: Number | None) -> str:
        """Return a value, a dash if something else than the gateway limited it; empty where there is none."""
        if value is None:
            return ""
        return DASH if quantity.limited_by in NOT_THE_GATEWAY else self.write(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A figure in a column."""

    quantity: Quantity | None
    """None if the column has no such figure."""
    instead: str = DASH
    """What then stands in its place."""
    ratio: float | None = None
    """Figure / that of the column before."""

    @property
    def made(self) -> Quantity | None:
        """The figure, if it was to be measured here and was not refused."""
        return None if self.quantity is None or self.quantity.refused is not None else self.quantity


E = TypeVar("E", bound=Entry)


def coordinate_lines(names: Iterable[str]) -> Iterator[Column[Entry]]:
    """Yield a line for each of these coordinates."""
    for known in dict.fromkeys(map(dimension, names)):
        yield _quantity_line(capital(known.label), _written(known))


def _written(known: Dimension) -> Callable[[Quantity], str]:
    return lambda quantity: known.words(quantity.coordinates)


def _quantity_line(label: str, cell: Callable[[Quantity], str]) -> Column[Entry]:
    return Column(label, cell, optional=True).of(attrgetter("made"))


def figure_lines(
    words: FigureWords,
    entries: Sequence[E | None],
    *,
    before: Iterable[Column[E]] = (),
    after: Iterable[Column[E]] = (),
) -> Iterator[Column[E]]:
    """Yield a figure over its columns; other lines stand `before` and `after` its ratio to the column before."""
    line = _quantity_line
    known = [entry.quantity for entry in entries if entry is not None and entry.quantity is not None]
    label = "Median" if all(quantity.average is None for quantity in known) else "Mean"
    yield line("Number of experiments", lambda quantity: str(quantity.repetitions))
    yield line("Error", lambda quantity: "" if quantity.resolution is None else words.write(quantity.resolution))
    yield Column(
        label, lambda entry: entry.instead if entry.quantity is None else words.figure(entry.quantity), strong=True
    )
    yield line("Minimum (p1)", lambda quantity: words.known(quantity, quantity.p1))
    yield line("Maximum (p99)", lambda quantity: words.known(quantity, quantity.p99))
    if label == "Median":
        yield line("Average", lambda quantity: words.known(quantity, _average(quantity)))
    yield line("Standard deviation", lambda quantity: words.known(quantity, _deviation(quantity)))
    yield line("Dispersion", lambda known: "" if known.p1 is None else format_percent(known.dispersion_percent))
    yield from before
    yield Column(f"{label} / previous {label.lower()}", lambda entry: ratio_words(entry.ratio), optional=True)
    yield from after
    yield line("Limited by", lambda quantity: "" if quantity.limited_by is None else limit_text(quantity))


def _values(quantity: Quantity) -> list[Number]:
    """Return the values of several repetitions; none if one of them is not known or is a bound of the load."""
    known = [value for value in quantity.values if value is not None]
    is_whole = len(known) == len(quantity.values) > 1 and quantity.limited_by != "maximum"
    return known if is_whole else []


def _average(quantity: Quantity) -> float | None:
    values = _values(quantity)
    return fmean(values) if values else None


def _deviation(quantity: Quantity) -> float | None:
    """Return the standard deviation of a sample, as papers that list their repetitions give it."""
    values = _values(quantity)
    return stdev(values) if values else None


def ratio_words(ratio: float | None, decimals: int = 2) -> str:
    """A ratio; empty where there is none."""
    return "" if ratio is None else f"{ratio:.{decimals}f}"
