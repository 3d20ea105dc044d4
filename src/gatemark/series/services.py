"""Services of two gateways side by side: the customer's alone, the provider's by subscribers, both in a row. Pure.

The five technologies of RFC 9313, as far as the columns of a series measure them; which column is which gateway of
which service follows from its technology.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from gatemark.config.sizes import middle_overhead
from gatemark.report.plots import Bar, axis_of, grouped_plot, plot_against
from gatemark.report.table import Column, Plot, Section, Table, plot, table_of
from gatemark.report.words import DASH, HOLLOW_BAR, format_count, format_percent
from gatemark.results.coordinates import Coordinate
from gatemark.results.quantity import Row
from gatemark.series.document import MemoryEstimate, Metric, SeriesColumn, SeriesDocument, SubscriberMemory
from gatemark.series.report import OUTCOMES, figure_words, metric_title
from gatemark.technology import TECHNOLOGIES, Technology
from gatemark.units import theoretical_maximum

TITLE = "The services side by side"
MEANING = (
    "Figures of these gateways on this machine, not of technologies: the median, in brackets the smallest and the"
    " largest value. The customer's gateway has one customer, and so has a row of both (RFC 8219 section 4.2)."
)
LINE_RATE = 10 * 10**9
OCTETS = (64, 512, 1518)
"""IPv4 frames of customers, with FCS."""

PlaceName = Literal["customer", "provider", "both"]
PLACES: Mapping[PlaceName, str] = {
    "customer": "customer's gateway",
    "provider": "provider's gateway",
    "both": "both in a row",
}


class Place(NamedTuple):
    """What of a service a column measures."""

    name: PlaceName
    subscribers: int = 0
    """Customers of the provider's gateway, where the series has it with several numbers of them; else 0."""

    @property
    def heading(self) -> str:
        """Its heading in a table."""
        if self.name != "provider" or not self.subscribers:
            return PLACES[self.name]
        return f"{PLACES[self.name]},\n{format_count(self.subscribers)} customer{'s' if self.subscribers > 1 else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The columns of a series that are gateways of services."""

    columns: Mapping[Technology, Mapping[Place, SeriesColumn]]
    """By the service, which is the technology of both gateways in a row, in the order of the series."""

    @property
    def places(self) -> list[Place]:
        """All that any service was measured at: the customer's gateway first, both last."""
        order = list(PLACES)
        known = {place for columns in self.columns.values() for place in columns}
        return sorted(known, key=lambda place: (order.index(place.name), place.subscribers))

    @property
    def counts(self) -> list[int]:
        """Numbers of customers that provider's gateways differ in; empty if each service has one."""
        return [place.subscribers for place in self.places if place.subscribers]


def services_of(document: SeriesDocument) -> Services | None:
    """Return the services that a series compares; None if it has not two of them, or two columns for the same place."""
    columns: dict[Technology, dict[Place, SeriesColumn]] = {}
    for column in document.columns:
        for service in TECHNOLOGIES.values():
            place = _place(service, column)
            if place is not None:
                if place in columns.setdefault(service, {}):
                    return None
                columns[service][place] = column
    if len(columns) < 2:
        return None
    if len({place.subscribers for of in columns.values() for place in of if place.name == "provider"}) < 2:
        columns = {service: {Place(place.name): of[place] for place in of} for service, of in columns.items()}
    return Services(columns=columns)


def _place(service: Technology, column: SeriesColumn) -> Place | None:
    """Return what of a service a column measures; None if nothing."""
    name, known = column.parameters.technology, column.parameters
    if service.in_a_row is None:
        return None
    if name == service.name:
        return Place("both")
    if name == service.in_a_row[0]:
        return Place("customer")
    return Place("provider", known.subscribers or 1) if name == service.in_a_row[1] else None


def services_section(document: SeriesDocument) -> Section | None:
    """Return a table of each main figure with a line for each service, and what needs no measurement."""
    services = services_of(document)
    if services is None:
        return None
    tables = [_figures(services, metric) for metric in document.metrics if metric.headline and metric.unit]
    tables += [_memory(document, services), _by_design(services)]
    return Section(title=TITLE, lead=(MEANING,), tables=tuple(tables))


_Line = tuple[Technology, Mapping[Place, SeriesColumn]]


def _figures(services: Services, metric: Metric) -> Table:
    words = figure_words(metric)
    places = [
        place for place in services.places if any(_has(metric, columns, place) for columns in services.columns.values())
    ]

    def of(place: Place) -> Column[_Line]:
        return Column(place.heading, lambda line: cell(line[1].get(place)))

    def cell(column: SeriesColumn | None) -> str:
        if column is None:
            return DASH
        figure = metric.of(column.number)
        if figure is None:
            return OUTCOMES[column.outcome] if column.outcome != "measured" else DASH
        quantity = metric.row(figure)
        low, high = (words.known(quantity, value) for value in (quantity.p1, quantity.p99))
        spread = f"\n({low} to {high})" if low and high and low != high else ""
        return f"{words.figure(quantity)}{spread}"

    return table_of(metric_title(metric), (_service_column(), *map(of, places)), services.columns.items())


def _service_column() -> Column[_Line]:
    return Column("service", lambda line: line[0].service or "", names=True, numeric=False)


def _has(metric: Metric, columns: Mapping[Place, SeriesColumn], place: Place) -> bool:
    return place in columns and metric.of(columns[place].number) is not None


def _memory(document: SeriesDocument, services: Services) -> Table:
    """Return what a customer and a connection cost the provider's host; no rows where nothing says so."""
    of_subscriber, of_connection = document.subscriber_memory, document.memory

    def words(known: Sequence[MemoryEstimate | SubscriberMemory], line: _Line) -> str:
        providers = [column.parameters for place, column in line[1].items() if place.name == "provider"]
        gateways = {(provider.gateway, provider.technology) for provider in providers}
        estimates = [each.words or "no estimate" for each in known if (each.gateway, each.technology) in gateways]
        return "\n".join(dict.fromkeys(estimates))

    columns: tuple[Column[_Line], ...] = (
        _service_column(),
        Column("for each customer", lambda line: words(of_subscriber, line), optional=True),
        Column("for each connection", lambda line: words(of_connection, line), optional=True),
    )
    known = of_subscriber or of_connection
    return table_of("Memory of the provider's host", columns, services.columns.items() if known else ())


def _by_design(services: Services) -> Table:
    """Return what needs no measurement: the longer header between both gateways, and what each has to remember."""

    def highest(octets: int) -> Column[_Line]:
        whole = theoretical_maximum(LINE_RATE, {octets: 1})

        def cell(line: _Line) -> str:
            rate = theoretical_maximum(LINE_RATE, {octets + middle_overhead(line[0]): 1})
            return f"{format_count(rate)}\n({format_percent(100 * rate / whole)})"

        return Column(f"frames/s of 10 Gbit/s,\n{octets} octets", cell)

    columns: tuple[Column[_Line], ...] = (
        _service_column(),
        Column("extra octets\nbetween both", lambda line: str(middle_overhead(line[0]))),
        *(highest(octets) for octets in OCTETS),
        Column("state at the\ncustomer", lambda line: _state(line[0], 0), numeric=False),
        Column("state at the\nprovider", lambda line: _state(line[0], 1), numeric=False),
        Column("ports of a\ncustomer", lambda line: _ports(line[0]), numeric=False),
    )
    return table_of("By design (RFC 9313)", columns, services.columns.items())


def _gateway(service: Technology, number: int) -> Technology:
    assert service.in_a_row is not None, "a service is two gateways in a row"
    return TECHNOLOGIES[service.in_a_row[number]]


def _state(service: Technology, number: int) -> str:
    gateway = _gateway(service, number)
    if gateway.is_stateful:
        return "each connection"
    return "each customer" if gateway.has_bindings else "rules only" if gateway.has_rules else "none"


def _ports(service: Technology) -> str:
    return "as connections come" if _gateway(service, 1).is_stateful else "a fixed set"


def services_plots(document: SeriesDocument) -> Iterator[Plot]:
    """Yield of each main figure the gateways of each service as bars, and provider's gateways over subscribers."""
    services = services_of(document)
    if services is None:
        return
    for metric in document.metrics:
        if metric.headline and metric.unit and metric.unit != "%":
            title = metric_title(metric)
            yield from plot(
                grouped_plot(list(_bars(services, metric)), name=title),
                f"{title}: median, whiskers from the smallest to the largest value. {HOLLOW_BAR}.",
            )
            rows = list(_over_subscribers(services, metric))
            if services.counts and rows:
                axis = axis_of("subscribers", services.counts)
                yield from plot(
                    plot_against(rows, axis, name=f"{title} against customers"),
                    f"{title}: the provider's gateway against its customers; median, bars from the smallest to the"
                    " largest value.",
                )


def _bars(services: Services, metric: Metric) -> Iterator[Bar]:
    """Yield the bars of a metric: of the provider's gateway those with the fewest customers of which all have a figure.

    Where there is no such number, each number has bars of its own.
    """
    of_providers = [
        {place for place in columns if place.name == "provider" and _has(metric, columns, place)}
        for columns in services.columns.values()
    ]
    having = [places for places in of_providers if places]
    common = set[Place].intersection(*having) if having else set[Place]()
    for service, columns in services.columns.items():
        for place in services.places:
            is_provider = place.name == "provider"
            if not _has(metric, columns, place) or (is_provider and common and place != min(common)):
                continue
            name = place.heading.replace("\n", " ") if is_provider and not common else PLACES[place.name]
            yield Bar(group=service.service or "", name=name, row=_row(metric, columns[place]))


def _over_subscribers(services: Services, metric: Metric) -> Iterator[Row]:
    for service, columns in services.columns.items():
        for place in columns:
            if place.subscribers and _has(metric, columns, place):
                yield _row(metric, columns[place], subscribers=place.subscribers, title=service.service or "")


def _row(metric: Metric, column: SeriesColumn, **where: Coordinate) -> Row:
    figure = metric.of(column.number)
    assert figure is not None, "only columns that have it"
    return Row(
        campaign="", gateway="", quantity=replace(metric.row(figure), coordinates=metric.where), coordinates=where
    )
