"""A series as tables and plots: parameters first, then each metric over the columns (RFC 9693 section 6). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

from gatemark.config.vary import value_words
from gatemark.report.lines import (
    COLUMNS_MAX,
    TABLE,
    UDP_TIMEOUT,
    Entry,
    FigureWords,
    Settings,
    coordinate_lines,
    endpoint_lines,
    figure_lines,
    number_line,
    quotient,
    ratio_words,
)
from gatemark.report.plots import Axis, axis_of, overview_plot, plot_against
from gatemark.report.table import Block, Column, Plot, Section, Table, plot, turned
from gatemark.report.words import FEW_REPETITIONS, FROM_P1_TO_P99, HOLLOW_BAR, SCALE_UP, capital, format_count
from gatemark.results.coordinates import CONNECTIONS, Coordinate, ordered, place_words, telling
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.quantity import Row
from gatemark.results.unit import unit_named
from gatemark.series.document import (
    ColumnFigure,
    MemoryEstimate,
    Metric,
    Outcome,
    Parameters,
    SeriesColumn,
    SeriesDocument,
    SubscriberMemory,
    VariedKeys,
)
from gatemark.series.join import ColumnRows, core_groups
from gatemark.series.memory import TRIALS_MIN
from gatemark.stats.summary import Number
from gatemark.units import parse_rate

MEANING = (
    "Each column is a campaign of its own. The ratio to the column before is that of the medians, along the part of the"
    f" series that changes fastest; the {SCALE_UP}. The share of plain forwarding is the median as a part of that of a"
    f" column with a router and the same cores, ports, hosts and frames. {FEW_REPETITIONS}"
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
    of_connections = (
        "estimated from the column with most connections: memory available with an empty table less that with a full"
        " one. In brackets, the smallest and the largest difference between any two of its trials."
    )
    of_subscribers = (
        "estimated from the columns with the fewest and the most: the difference of the memory that was available while"
        " frames were sent. In brackets, the smallest and the largest one between any two of their repetitions."
    )
    yield from _estimate_sentences("connection", document.memory, of_connections)
    yield from _estimate_sentences("subscriber", document.subscriber_memory, of_subscribers)


def _estimate_sentences(
    each: str, estimates: Sequence[MemoryEstimate] | Sequence[SubscriberMemory], how: str
) -> Iterator[str]:
    for estimate in estimates:
        of = f" of {estimate.gateway}" if len(estimates) > 1 else ""
        said = f"{estimate.words}, {how}" if estimate.reason is None else f"no estimate can be made: {estimate.reason}."
        yield f"Memory of the gateway's host for each {each}{of}: {said}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesEntry(Entry):
    """A metric in a column."""

    figure: ColumnFigure | None


def _table(document: SeriesDocument, columns: Sequence[SeriesColumn]) -> Table:
    return turned(
        document.name,
        "column",
        [column.title.replace(", ", "\n") for column in columns],
        [
            Block(_parameters(document, columns), [column.parameters for column in columns]),
            Block(tuple(_column_lines(document, columns)), columns),
            *(_block(metric, columns) for metric in document.metrics),
        ],
    )


def _parameters(document: SeriesDocument, columns: Sequence[SeriesColumn]) -> Iterator[Column[Parameters]]:
    """Yield what the columns were measured with: the lines that any column has."""
    everywhere = [column.parameters for column in document.columns]
    shown = [column.parameters for column in columns]
    if len({(known.gateway, known.technology) for known in everywhere}) > 1:
        yield Column("Gateway", lambda known: f"{known.gateway}\n{known.technology}")
    yield number_line("Cores", lambda known: known.cores)
    yield from (line.of(settings_of) for line in endpoint_lines([*map(settings_of, shown)]))
    yield number_line("Customer edges", lambda known: known.edges)
    if max((known.map_domains or 0 for known in shown), default=0) > 1:
        yield number_line("Domains", lambda known: known.map_domains)
    if len({known.flows for known in everywhere}) > 1 and not any(known.connections or known.edges for known in shown):
        yield number_line("Flows of each direction", lambda known: known.flows)
    yield Column("Connections", lambda known: ", ".join(map(format_count, known.connections)), optional=True)
    yield from (line.of(settings_of) for line in TABLE)
    yield Column(
        "Table size per connection", lambda known: quotient(known.table_size, settings_of(known).count), optional=True
    )
    yield UDP_TIMEOUT.of(settings_of)


def settings_of(known: Parameters) -> Settings:
    """Return what a campaign's own table of several numbers of connections shows as well."""
    return Settings(*(getattr(known, field.name) for field in fields(Settings)))


def _column_lines(document: SeriesDocument, columns: Sequence[SeriesColumn]) -> Iterator[Column[SeriesColumn]]:
    """Yield the keys that vary and have no line of their own, how columns ended, and what connections cost the host."""
    for part, varied in enumerate(document.varied):
        for path in varied.keys:
            if path not in SHOWN_BY_NAME:
                is_long = any(_is_long(column.settings.get(path)) for column in columns)
                yield Column(path, _title_of(varied, part) if is_long else _setting_of(path))
    if any(column.outcome != "measured" for column in document.columns):
        yield Column("Outcome", lambda column: OUTCOMES[column.outcome])
    if any(column.invalid_trials for column in document.columns):
        yield Column("Trials, invalid ones", lambda column: f"{column.trials:,}, {column.invalid_trials:,}")
    memory = _memory_of(document)
    label = "Memory of its host per connection, bytes"
    yield Column(label, lambda column: "\n".join(memory.get(column.number, ())), optional=True)


def _title_of(varied: VariedKeys, part: int) -> Callable[[SeriesColumn], str]:
    return lambda column: varied.titles[column.steps[part]]


def _setting_of(path: str) -> Callable[[SeriesColumn], str]:
    return lambda column: value_words(column.settings[path]) if path in column.settings else ""


def _is_long(value: object) -> bool:
    """Whether a value is a list of tables, which only its title can stand for in a table."""
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def _memory_of(document: SeriesDocument) -> dict[int, list[str]]:
    """Return what a connection costs the host in each column, where that can be told."""
    of_column: dict[int, list[str]] = {}
    for estimate in document.memory:
        for memory in estimate.columns if estimate.reason is None else ():
            known = memory.trials >= TRIALS_MIN and memory.bytes_minimum > 0
            words = f"{memory.bytes:.0f} ({memory.bytes_minimum:.0f} to {memory.bytes_maximum:.0f})"
            of_column.setdefault(memory.column, []).append(words if known else "not known")
    return of_column


def _block(metric: Metric, columns: Sequence[SeriesColumn]) -> Block[SeriesEntry]:
    """One metric over the columns: its heading, then its figures."""
    entries = [_entry(metric, column) for column in columns]
    figures = [entry.figure for entry in entries if entry.figure is not None]
    names = ordered(name for figure in figures for name in figure.where if name != CONNECTIONS)
    lines = figure_lines(figure_words(metric), entries, before=SUMS, after=DERIVED)
    return Block((*coordinate_lines(names), *lines), entries, metric_title(metric))


def _entry(metric: Metric, column: SeriesColumn) -> SeriesEntry:
    figure = metric.of(column.number)
    return SeriesEntry(
        quantity=None if figure is None else metric.row(figure),
        instead="not measured" if column.outcome == "measured" else OUTCOMES[column.outcome],
        ratio=None if figure is None else figure.ratio_to_previous,
        figure=figure,
    )


def _sum(label: str, name: Literal["median", "p1", "p99", "resolution"]) -> Column[SeriesEntry]:
    """Return a line of the rates of both directions together; their error is twice that of one."""

    def cell(figure: ColumnFigure) -> str:
        if figure.sum_of_directions is None or figure.limited_by in NOT_THE_GATEWAY:
            return ""
        least = "≥ " if figure.limited_by == "maximum" and name == "median" else ""
        return f"{least}{format_count(getattr(figure.sum_of_directions, name))}"

    return Column(label, cell, optional=True).of(lambda entry: entry.figure)


SUMS = (
    _sum("Sum of both directions, median", "median"),
    _sum("Sum, minimum (p1)", "p1"),
    _sum("Sum, maximum (p99)", "p99"),
    _sum("Sum, error", "resolution"),
)


def _share(entry: SeriesEntry) -> str:
    share = None if entry.figure is None else entry.figure.share_of_plain_forwarding
    return "" if share is None else f"{100 * share:.2f} %"


DERIVED: tuple[Column[SeriesEntry], ...] = (
    Column(
        "Relative scale-up",
        lambda entry: "" if entry.figure is None else ratio_words(entry.figure.scale_up, 4),
        optional=True,
    ),
    Column("Share of plain forwarding", _share, optional=True),
)


def figure_words(*metrics: Metric) -> FigureWords:
    """Return how the figures of metrics with one unit are written."""
    return FigureWords.of(metrics[0].unit, (metric.row(figure) for metric in metrics for figure in metric.figures))


def metric_title(metric: Metric) -> str:
    """Return what is measured, its unit, and with what in all columns."""
    where, unit = metric.where, unit_named(metric.unit)
    says_something = unit.has_direction and (unit.is_one_way or where.get("direction") != "bidirectional")
    place = metric.row(metric.figures[0]).coordinates
    named = place_words(place, [key for key in telling(where) if key != "direction" or says_something])
    words = [capital(metric.quantity), figure_words(metric).title, *named]
    return ", ".join(word for word in words if word)


def plots(document: SeriesDocument) -> Iterator[Plot]:
    """Yield a plot of each headline metric over each part of the series that has numbers, bars where none has."""
    by_name: dict[tuple[str, str], list[Metric]] = {}
    for metric in document.metrics:
        if metric.headline and metric.unit and metric.unit != "%":
            by_name.setdefault((metric.quantity, metric.unit), []).append(metric)
    for (name, _), metrics in by_name.items():
        title = capital(name)
        drawn = [over for part in range(len(document.varied)) for over in _over(document, metrics, part, title)]
        rows = [_bar(document, metric, figure) for metric in metrics for figure in metric.figures]
        yield from drawn or plot(
            overview_plot(rows, name=name),
            f"{title}: median, whiskers {FROM_P1_TO_P99}. {HOLLOW_BAR}.",
        )


def _bar(document: SeriesDocument, metric: Metric, figure: ColumnFigure) -> Row:
    quantity = replace(metric.row(figure), coordinates=metric.where)
    return Row(campaign=document.columns[figure.column - 1].title, gateway="", quantity=quantity)


def _over(document: SeriesDocument, metrics: Sequence[Metric], part: int, title: str) -> tuple[Plot, ...]:
    """Return a plot over one part of the series, a line for each value of the others; none if it has no numbers."""
    place = _axis(document, part)
    if place is None:
        return ()
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
    caption = f"{title} against {axis.heading}: median, bars {FROM_P1_TO_P99}{dotted}."
    return plot(drawn, caption)


def _axis(document: SeriesDocument, part: int) -> tuple[Axis, str, dict[int, int]] | None:
    """Return an axis for a part of the series, the name of its coordinate, and the place of each column."""
    columns = document.columns
    candidates: list[tuple[str, dict[int, int | None]]] = [
        ("cores", {column.number: column.parameters.cores for column in columns}),
        (CONNECTIONS, {column.number: settings_of(column.parameters).count for column in columns}),
        ("domains", {column.number: column.parameters.map_domains for column in columns}),
        ("flows", {column.number: column.parameters.flows for column in columns}),
    ]
    for key in document.varied[part].keys:
        candidates.append((key, {column.number: _number(column.settings.get(key)) for column in columns}))
    for name, values in candidates:
        known = {number: value for number, value in values.items() if value is not None}
        if len(known) == len(columns) and _follows(document, part, known):
            return axis_of(name, sorted(set(known.values()))), name, known
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
        if not unit_named(metric.unit).is_rate:
            continue
        for group in core_groups(columns):
            base = metric.of(group[1].number)
            single = None if base is None else metric.row(base).comparable
            if single:
                yield {cores: cores * single for cores in sorted(group)}
