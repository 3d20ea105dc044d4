"""A series as tables and plots: parameters first, then each metric over the columns (RFC 9693 section 6). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gatemark.config.vary import value_words
from gatemark.report.plots import Axis, axis_of, overview_plot, plot_against
from gatemark.report.series import ports_row
from gatemark.report.table import Column, Plot, Section, Table, plot
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
from gatemark.results.coordinates import CONNECTIONS, DIMENSIONS, Coordinate, Dimension, place_words, telling
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.quantity import Quantity, Row
from gatemark.series.document import ColumnFigure, Metric, Outcome, SeriesColumn, SeriesDocument
from gatemark.series.join import ColumnRows, comparable, core_groups
from gatemark.series.memory import TRIALS_MIN
from gatemark.stats.summary import Number
from gatemark.units import format_duration_ns, parse_rate

COLUMNS_MAX = 8
"""Columns side by side in a table of the page."""

MEANING = (
    "Each column is a campaign of its own. The ratio to the column before is that of the medians, along the part of the"
    " series that changes fastest; the relative scale-up is X(n) / (n X(1)) with n cores, 1 being perfect. The share of"
    " plain forwarding is the median as a part of that of a column with a router and the same cores, ports, hosts and"
    " frames. p1 and p99 are the smallest and the largest value with fewer than 100 repetitions."
)

OUTCOMES: Mapping[Outcome, str] = {
    "measured": "measured",
    "collapsed": "gateway collapsed",
    "failed": "failed",
    "skipped": "skipped",
    "missing": "not measured yet",
}

SHOWN_BY_NAME = frozenset(
    (
        "testbed.gateway_cores",
        "connections.count",
        "connections.source_ports",
        "connections.destination_ports",
        "gateway.table.size",
        "gateway.table.hash_size",
        "gateway.table.udp_timeout",
        "map.edges",
    )
)
"""Keys whose values have a row of their own among the parameters."""


def section(document: SeriesDocument, *, columns_max: int = COLUMNS_MAX) -> Section:
    """Return the table of a series, split into several if it has more columns than `columns_max`."""
    shown = [document.columns[at : at + columns_max] for at in range(0, len(document.columns), columns_max)]
    tables = tuple(_table(document, columns) for columns in shown)
    return Section(title="The series", lead=(MEANING,), tables=tables, notes=tuple(reasons(document)))


def reasons(document: SeriesDocument) -> Iterator[str]:
    """Say why a column has no figures, or why a metric is missing in it, and what its connections cost the host."""
    for column in document.columns:
        if column.warning is not None:
            yield f"Column {column.number}, {column.title}: warning before it began: {column.warning}."
        if column.reason is not None:
            yield f"Column {column.number}, {column.title}: {OUTCOMES[column.outcome]}: {column.reason}"
    if near := [str(column.number) for column in document.columns if column.expected]:
        yield (
            f"Searches began near the results of another column in columns {', '.join(near)}. On a steady gateway they"
            " find the same."
        )
    yield from _memory_sentences(document)
    refused: dict[tuple[int, str, str], None] = {}
    for metric in document.metrics:
        for figure in metric.figures:
            if figure.refused is not None:
                refused[figure.column, metric.procedure, figure.refused] = None
    for number, procedure, reason in refused:
        yield f"Column {number}: {procedure.replace('_', ' ')} not measured: {reason.rstrip('.')}."


def _memory_sentences(document: SeriesDocument) -> Iterator[str]:
    for estimate in document.memory:
        of = f" of {estimate.gateway}" if len(document.memory) > 1 else ""
        if estimate.reason is not None:
            yield f"Memory of the gateway's host for each connection{of}: no estimate can be made: {estimate.reason}."
        else:
            yield (
                f"Memory of the gateway's host for each connection{of}: {estimate.words}, estimated from the column"
                " with most connections: memory available with an empty table less that with a full one. In brackets,"
                " the smallest and the largest difference between any two of its trials."
            )


def _table(document: SeriesDocument, columns: Sequence[SeriesColumn]) -> Table:
    rows = [*_parameters(document, columns), *_memory_rows(document, columns)]
    strong = set()
    for metric in document.metrics:
        block = list(_block(document, metric, columns))
        strong |= {len(rows) + place for place, row in enumerate(block) if row[0] in ("Median", "Mean")}
        rows += block
    headings = [Column(heading=column.title.replace(", ", "\n")) for column in columns]
    return Table(
        title=document.name,
        columns=(Column(heading="column", numeric=False), *headings),
        rows=tuple(rows),
        strong_rows=frozenset(strong),
    )


def _parameters(document: SeriesDocument, columns: Sequence[SeriesColumn]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of what the columns were measured with: those that any column has."""
    parameters = [column.parameters for column in columns]

    def row(label: str, cells: Sequence[str | None]) -> Iterator[tuple[str, ...]]:
        if any(cell is not None for cell in cells):
            yield (label, *(DASH if cell is None else cell for cell in cells))

    if len({(column.parameters.gateway, column.parameters.technology) for column in document.columns}) > 1:
        yield from row("Gateway", [f"{column.gateway}\n{column.technology}" for column in parameters])
    yield from row("Cores", [_count(column.cores) for column in parameters])
    for label, ports in (
        ("Source ports", [column.source_ports for column in parameters]),
        ("Destination ports", [column.destination_ports for column in parameters]),
    ):
        known = [None if port_range is None else (port_range.minimum, port_range.ports) for port_range in ports]
        if all(known):
            yield ports_row(label, [pair for pair in known if pair is not None])
        else:
            yield from row(label, [None if pair is None else format_count(pair[1]) for pair in known])
    for label, hosts in (
        ("Initiator's hosts", [column.source_hosts for column in parameters]),
        ("Responder's hosts", [column.destination_hosts for column in parameters]),
    ):
        if max((count or 0 for count in hosts), default=0) > 1:
            yield from row(label, [_count(count) for count in hosts])
    yield from row("Customer edges", [_count(column.edges) for column in parameters])
    if max((column.map_domains or 0 for column in parameters), default=0) > 1:
        yield from row("Domains", [_count(column.map_domains) for column in parameters])
    flows = [column.parameters.flows for column in document.columns]
    if len(set(flows)) > 1 and not any(column.connections or column.edges for column in parameters):
        yield from row("Flows of each direction", [_count(column.flows) for column in parameters])
    yield from row("Connections", [", ".join(map(format_count, column.connections)) or None for column in parameters])
    yield from row("Table size", [_count(column.table_size) for column in parameters])
    yield from row("Hash size", [_count(column.hash_size) for column in parameters])
    for label, divisors in (
        ("Connections per hash size", [column.hash_size for column in parameters]),
        (
            "Table size per connection",
            [column.connections[0] if len(column.connections) == 1 else None for column in parameters],
        ),
    ):
        dividends = [
            column.table_size if label.startswith("Table") else _single(column.connections) for column in parameters
        ]
        quotients = [f"{a / b:.4f}" if a and b else None for a, b in zip(dividends, divisors, strict=True)]
        yield from row(label, quotients)
    timeouts = [column.udp_timeout_ns for column in parameters]
    yield from row("UDP timeout", [None if time is None else format_duration_ns(time) for time in timeouts])
    for part, varied in enumerate(document.varied):
        for path in varied.keys:
            if path not in SHOWN_BY_NAME and not any(_is_long(column.settings.get(path)) for column in columns):
                yield (path, *(_setting_words(column, path) for column in columns))
            elif path not in SHOWN_BY_NAME:
                yield (path, *(varied.titles[column.steps[part]] for column in columns))
    if any(column.outcome != "measured" for column in document.columns):
        yield ("Outcome", *(OUTCOMES[column.outcome] for column in columns))
    if any(column.invalid_trials for column in document.columns):
        yield ("Trials, invalid ones", *(f"{column.trials:,}, {column.invalid_trials:,}" for column in columns))


def _is_long(value: object) -> bool:
    """Whether a value is a list of tables, which only its title can stand for in a table."""
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def _setting_words(column: SeriesColumn, path: str) -> str:
    return value_words(column.settings[path]) if path in column.settings else DASH


def _memory_rows(document: SeriesDocument, columns: Sequence[SeriesColumn]) -> Iterator[tuple[str, ...]]:
    """Yield what a connection costs the host in each column, where that can be told."""
    of_column: dict[int, list[str]] = {}
    for estimate in document.memory:
        for memory in estimate.columns if estimate.reason is None else ():
            known = memory.trials >= TRIALS_MIN and memory.bytes_minimum > 0
            words = f"{memory.bytes:.0f} ({memory.bytes_minimum:.0f} to {memory.bytes_maximum:.0f})"
            of_column.setdefault(memory.column, []).append(words if known else "not known")
    if of_column:
        cells = ("\n".join(of_column.get(column.number, [DASH])) for column in columns)
        yield ("Memory of its host per connection, bytes", *cells)


def _single(counts: Sequence[int]) -> int | None:
    return counts[0] if len(counts) == 1 else None


def _count(value: int | None) -> str | None:
    return None if value is None else format_count(value)


def _block(document: SeriesDocument, metric: Metric, columns: Sequence[SeriesColumn]) -> Iterator[tuple[str, ...]]:
    """One metric over the columns: its heading, then its figures."""
    yield (_title(metric),)
    words = FigureWords.of(metric)
    figures = [metric.of(column.number) for column in columns]

    def row(label: str, cell: Callable[[ColumnFigure, Quantity], str]) -> tuple[str, ...]:
        return (
            label,
            *(DASH if figure is None or figure.refused else cell(figure, metric.row(figure)) for figure in figures),
        )

    for known in DIMENSIONS:
        if CONNECTIONS not in known.names and any(figure and known.said(figure.where) for figure in figures):
            yield row(capital(known.label), _written(known))
    yield row("Number of experiments", lambda figure, _: str(figure.repetitions))
    if any(figure is not None and figure.resolution is not None for figure in figures):
        yield row("Error", lambda figure, _: words.write(figure.resolution))
    label = "Mean" if any(figure is not None and figure.average is not None for figure in figures) else "Median"
    cells = zip(columns, figures, strict=True)
    yield (
        label,
        *(_missing(column) if figure is None else words.figure(metric.row(figure)) for column, figure in cells),
    )
    if any(figure is not None and figure.p1 is not None for figure in figures):
        yield row("Minimum (p1)", lambda figure, rate: words.known(rate, figure.p1))
        yield row("Maximum (p99)", lambda figure, rate: words.known(rate, figure.p99))
        yield row(
            "Dispersion", lambda figure, rate: DASH if figure.p1 is None else format_percent(figure.dispersion_percent)
        )
    yield from _sums(figures, row)
    if any(figure.ratio_to_previous is not None for figure in metric.figures):
        yield row(f"{label} / previous {label.lower()}", lambda figure, _: _ratio(figure.ratio_to_previous, 2))
    if any(figure.scale_up is not None for figure in metric.figures):
        yield row("Relative scale-up", lambda figure, _: _ratio(figure.scale_up, 4))
    if any(figure.share_of_plain_forwarding is not None for figure in metric.figures):
        yield row("Share of plain forwarding", lambda figure, _: _percent(figure.share_of_plain_forwarding))
    if any(figure.limited_by is not None for figure in metric.figures):
        yield row("Limited by", lambda _, rate: limit_text(rate))


def _sums(
    figures: Sequence[ColumnFigure | None],
    row: Callable[[str, Callable[[ColumnFigure, Quantity], str]], tuple[str, ...]],
) -> Iterator[tuple[str, ...]]:
    """Yield the rates of both directions together; their error is twice that of one."""
    if not any(figure is not None and figure.sum_of_directions is not None for figure in figures):
        return

    def cell(name: str) -> Callable[[ColumnFigure, Quantity], str]:
        def write(figure: ColumnFigure, rate: Quantity) -> str:
            known = figure.sum_of_directions is not None and rate.limited_by not in NOT_THE_GATEWAY
            least = "≥ " if known and rate.limited_by == "maximum" and name == "median" else ""
            return f"{least}{format_count(getattr(figure.sum_of_directions, name))}" if known else DASH

        return write

    for label, name in (
        ("Sum of both directions, median", "median"),
        ("Sum, minimum (p1)", "p1"),
        ("Sum, maximum (p99)", "p99"),
        ("Sum, error", "resolution"),
    ):
        yield row(label, cell(name))


def _missing(column: SeriesColumn) -> str:
    return "not measured" if column.outcome == "measured" else OUTCOMES[column.outcome]


def _ratio(value: float | None, decimals: int) -> str:
    return DASH if value is None else f"{value:.{decimals}f}"


def _percent(share: float | None) -> str:
    return DASH if share is None else f"{100 * share:.2f} %"


def _written(known: Dimension) -> Callable[[ColumnFigure, Quantity], str]:
    return lambda _, quantity: known.words(quantity.coordinates) or DASH


def _title(metric: Metric) -> str:
    """What is measured, its unit, and with what in all columns."""
    where = metric.where
    says_nothing = metric.unit == "connections/s" or (
        metric.unit != "frames/s" and where.get("direction") == "bidirectional"
    )
    place = metric.row(metric.figures[0]).coordinates
    named = place_words(place, [key for key in telling(where) if key != "direction" or not says_nothing])
    unit = f"{metric.unit} in one direction" if metric.unit == "frames/s" else FigureWords.of(metric).unit
    words = [capital(metric.quantity), unit, *named]
    return ", ".join(word for word in words if word)


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureWords:
    """How the figures of a metric are written."""

    unit: str
    divisor: int | None
    """Nanoseconds of the unit of times; None for anything else."""

    @classmethod
    def of(cls, *metrics: Metric) -> FigureWords:
        """Return how the figures of metrics with one unit are written: times in a unit that suits all of them."""
        if metrics[0].unit != "ns":
            return cls(unit=metrics[0].unit, divisor=None)
        figures = [figure for metric in metrics for figure in metric.figures]
        times = (value for figure in figures for value in (figure.p99, figure.median, figure.average))
        unit, divisor = unit_of_times(times)
        return cls(unit=unit, divisor=divisor)

    def write(self, value: Number | None) -> str:
        """Return a value without its unit."""
        if self.divisor is not None:
            return format_in(value, self.divisor)
        if self.unit.endswith("/s") and value is not None and 2 * value % 1:  # a quotient
            value = round(value)
        return format_percent(value) if self.unit == "%" else format_count(value)

    def figure(self, quantity: Quantity) -> str:
        """Return a figure, or what is in its place."""
        if quantity.refused is not None:
            return "not made"
        if quantity.limited_by in NOT_THE_GATEWAY:
            return limited(quantity.limited_by)
        if quantity.unit.endswith("/s") and (quantity.limited_by == "maximum" or quantity.value is None):
            return rate_cell(quantity) if quantity.is_certain else "not known"
        if quantity.value is None:
            return "not known"
        least = "≥ " if quantity.limited_by == "maximum" else ""
        written = f"{least}{self.write(quantity.value)}"
        return written if quantity.is_certain else f"({written})"

    def known(self, quantity: Quantity, value: Number | None) -> str:
        """Return a value, or a dash if something else than the gateway limited it."""
        return DASH if quantity.limited_by in NOT_THE_GATEWAY else self.write(value)


def plots(document: SeriesDocument) -> Iterator[Plot]:
    """Yield a plot of each headline metric over each part of the series that has numbers, bars where none has."""
    by_name: dict[tuple[str, str], list[Metric]] = {}
    for metric in document.metrics:
        if metric.headline and metric.unit and metric.unit != "%":
            by_name.setdefault((metric.quantity, metric.unit), []).append(metric)
    for (name, _), metrics in by_name.items():
        title = capital(name)
        drawn = [over for part in range(len(document.varied)) if (over := _over(document, metrics, part, title))]
        if not drawn:
            rows = [_bar(document, metric, figure) for metric in metrics for figure in metric.figures]
            bars = plot(
                overview_plot(rows, name=name),
                f"{title}: median, whiskers from the 1st to the 99th percentile. A hollow bar is a lower bound.",
            )
            drawn = [] if bars is None else [bars]
        yield from drawn


def _bar(document: SeriesDocument, metric: Metric, figure: ColumnFigure) -> Row:
    quantity = replace(metric.row(figure), coordinates=metric.where)
    return Row(campaign=document.columns[figure.column - 1].title, gateway="", quantity=quantity)


def _over(document: SeriesDocument, metrics: Sequence[Metric], part: int, title: str) -> Plot | None:
    """Return a plot over one part of the series, a line for each value of the others; None if it has no numbers."""
    place = _axis(document, part)
    if place is None:
        return None
    axis, name, places = place
    rows = []
    for metric in metrics:
        for figure in metric.figures:
            column = document.columns[figure.column - 1]
            others = [
                varied.titles[step]
                for number, (varied, step) in enumerate(zip(document.varied, column.steps, strict=True))
                if number != part
            ]
            where: dict[str, Coordinate] = {name: places[column.number]}
            if others:
                where["title"] = ", ".join(others)
            quantity = replace(metric.row(figure), coordinates=metric.where)
            rows.append(Row(campaign=document.name, gateway=document.name, quantity=quantity, coordinates=where))
    ideal = list(_ideal(document, metrics)) if name == "cores" else []
    drawn = plot_against(rows, axis, name=f"{title} against {axis.heading}", ideal=ideal)
    dotted = "; dotted: X(1) times the number of cores" if ideal else ""
    caption = f"{title} against {axis.heading}: median, bars from the 1st to the 99th percentile{dotted}."
    return plot(drawn, caption)


def _axis(document: SeriesDocument, part: int) -> tuple[Axis, str, dict[int, int]] | None:
    """Return an axis for a part of the series, the name of its coordinate, and the place of each column."""
    columns = document.columns
    cores = {column.number: column.parameters.cores for column in columns}
    counts = {column.number: _single(column.parameters.connections) for column in columns}
    candidates: list[tuple[str, str, dict[int, int | None]]] = [
        ("cores", "cores of the gateway", cores),
        ("connections", "number of connections", counts),
        ("domains", "number of domains", {column.number: column.parameters.map_domains for column in columns}),
        ("flows", "number of flows", {column.number: column.parameters.flows for column in columns}),
    ]
    for key in document.varied[part].keys:
        values = {column.number: _number(column.settings.get(key)) for column in columns}
        candidates.append((key, key, values))
    for name, heading, values in candidates:
        known = {number: value for number, value in values.items() if value is not None}
        if len(known) == len(columns) and _follows(document, part, known):
            return axis_of(name, heading, sorted(set(known.values())), never_log=name == "cores"), name, known
    return None


def _follows(document: SeriesDocument, part: int, places: Mapping[int, int]) -> bool:
    """Whether each value of a part has one place, and no other value the same."""
    by_step: dict[int, set[int]] = {}
    for column in document.columns:
        by_step.setdefault(column.steps[part], set()).add(places[column.number])
    single = [places_of for places_of in by_step.values() if len(places_of) == 1]
    return len(single) == len(by_step) == len(set().union(*single)) > 1


def _number(value: object) -> int | None:
    """Return a value of the file as a number, if it is one: 4000000, "4M"."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return parse_rate(value)
    except ValueError:
        return None


def _ideal(document: SeriesDocument, metrics: Sequence[Metric]) -> Iterator[dict[int, Number]]:
    """Yield what rates would be if they grew like the cores, for each group of columns that differ in cores alone."""
    columns = [
        ColumnRows(number=column.number, steps=column.steps, cores=column.parameters.cores, quantities=())
        for column in document.columns
    ]
    for metric in metrics:
        if not metric.unit.endswith("/s"):
            continue
        for group in core_groups(columns):
            base = metric.of(group[1].number)
            single = None if base is None else comparable(metric.row(base))
            if single:
                yield {cores: cores * single for cores in sorted(group)}
