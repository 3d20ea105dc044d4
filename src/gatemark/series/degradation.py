"""Degradation with the number of network flows: one table for each benchmark, a column for each frame size. Pure.

RFC 8219 section 10.2.1; nothing here knows a procedure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from gatemark.report.lines import COLUMNS_MAX, FigureWords
from gatemark.report.plots import axis_of, plot_against
from gatemark.report.table import Block, Column, Plot, Section, Table, plot, turned
from gatemark.report.words import format_count
from gatemark.results.coordinates import CONNECTIONS, LOAD, SIZES, Coordinate, dimension, place_words, telling
from gatemark.results.quantity import Quantity, Row
from gatemark.series.document import ColumnFigure, Degradation, Metric, SeriesDocument
from gatemark.series.report import figure_words

MEANING = (
    "Xpd is how much worse a figure is with n network flows than with one (RFC 8219 section 10.2.1): (X1 - Xn) / X1 x"
    " 100 where higher is better, else (Xn - X1) / X1 x 100. A flow is a connection of a stateful gateway, a customer"
    " edge of a MAP-T border relay, and a pair of addresses and ports of any other. The load is that of all flows."
    " Where they start together, each frame belongs to the next one, or to one that is drawn; where they start one"
    " after another (section 10.2.2), a trial is longer by the time until the last one starts. The value after ± is"
    " the error that Xpd may have because searches end at their resolution. Bounds, and figures that the gateway did"
    " not limit, have no Xpd."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Benchmark:
    """What one table is about."""

    procedure: str
    name: str
    """Words that its values have in common, such as IPDV; the quantity's name if it has one value."""
    unit: str
    where: tuple[tuple[str, Coordinate], ...]
    """What it was measured with in every column, without frame sizes and load."""
    titles: tuple[str, ...]
    """The other parts of the series."""
    interval_ns: int | None
    """From the start of one flow to that of the next; None if all start together."""


class _Place(NamedTuple):
    """What a column is about."""

    size: str
    value: str
    """Which of the values that the benchmark has in common, such as "minimum"; empty if it has one."""

    def words(self, separator: str) -> str:
        """Return both, or the one that there is."""
        return separator.join(filter(None, self))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """Figures of one frame size and value with one flow and with n flows."""

    place: _Place
    metric: Metric
    single: ColumnFigure
    many: ColumnFigure
    degradation: Degradation


def degradation_section(document: SeriesDocument) -> Section | None:
    """Return the tables of a series over numbers of flows; None if nothing in it has one flow and more of them."""
    benchmarks: dict[_Benchmark, list[_Cell]] = {}
    for benchmark, cell in _cells(document):
        benchmarks.setdefault(benchmark, []).append(cell)
    tables = [table for benchmark, cells in benchmarks.items() for table in _tables(benchmark, cells)]
    if not tables:
        return None
    return Section(title="Degradation with the number of flows", lead=(MEANING,), tables=tuple(tables))


def _cells(document: SeriesDocument) -> Iterator[tuple[_Benchmark, _Cell]]:
    shared = _shared_words(document.metrics)
    for metric in document.metrics:
        for many in metric.figures:
            single = None if many.degradation is None else metric.of(many.degradation.single_column)
            if many.degradation is None or single is None:
                continue
            first = metric.quantity.split()[0]
            has_values = (metric.procedure, metric.unit, first) in shared
            where = {key: value for key, value in metric.where.items() if key not in (*SIZES, LOAD)}
            benchmark = _Benchmark(
                procedure=metric.procedure,
                name=first if has_values else metric.quantity,
                unit=metric.unit,
                where=tuple(where.items()),
                titles=tuple(_other_titles(document, many, single)),
                interval_ns=many.degradation.interval_ns,
            )
            place = {**metric.where, **many.where}
            size = dimension(SIZES[0]).said(place)
            value = metric.quantity.removeprefix(first).strip() if has_values else ""
            cell = _Cell(
                place=_Place(size, value),
                metric=metric,
                single=single,
                many=many,
                degradation=many.degradation,
            )
            yield benchmark, cell


def _shared_words(metrics: Sequence[Metric]) -> set[tuple[str, str, str]]:
    """Return the first words that several quantities of a procedure share: they are values of one benchmark."""
    names: dict[tuple[str, str, str], set[str]] = {}
    for metric in metrics:
        names.setdefault((metric.procedure, metric.unit, metric.quantity.split()[0]), set()).add(metric.quantity)
    return {key for key, quantities in names.items() if len(quantities) > 1}


def _other_titles(document: SeriesDocument, many: ColumnFigure, single: ColumnFigure) -> Iterator[str]:
    """Yield what tells both columns from others of the series, beside the number of flows."""
    steps, before = (document.columns[figure.column - 1].steps for figure in (many, single))
    for varied, step, other in zip(document.varied, steps, before, strict=True):
        if step == other:
            yield varied.titles[step]


def _tables(benchmark: _Benchmark, cells: Sequence[_Cell]) -> Iterator[Table]:
    """Yield the table of a benchmark, split if it has more columns than fit side by side."""
    places = list(dict.fromkeys(cell.place for cell in cells))
    words = figure_words(*(cell.metric for cell in cells))
    for at in range(0, len(places), COLUMNS_MAX):
        shown = places[at : at + COLUMNS_MAX]
        yield turned(
            _title(benchmark, words),
            "flows",
            [place.words("\n") for place in shown],
            _blocks([cell for cell in cells if cell.place in shown], shown, words),
            notes=_reasons(cells, shown),
        )


def _title(benchmark: _Benchmark, words: FigureWords) -> str:
    where = dict(benchmark.where)
    named = [
        f"Degradation: {benchmark.name}",
        words.title,
        *place_words(where, telling(where)),
        *benchmark.titles,
        "" if benchmark.interval_ns is None else f"a flow started every {benchmark.interval_ns / 1e9:g} s",
    ]
    return ", ".join(word for word in named if word)


def _blocks(cells: Sequence[_Cell], places: Sequence[_Place], words: FigureWords) -> Iterator[Block[Any]]:
    """Yield the figures with one flow, then those with each number of flows and their degradation."""
    singles = {cell.place: cell.metric.row(cell.single) for cell in cells}
    yield Block(_figure_lines("1 flow", words), [singles[place] for place in places])
    for flows in sorted({cell.degradation.flows for cell in cells}):
        many = {cell.place: cell for cell in cells if cell.degradation.flows == flows}
        of_columns = [many.get(place) for place in places]
        figures = [None if cell is None else cell.metric.row(cell.many) for cell in of_columns]
        yield Block(_figure_lines(f"{format_count(flows)} flows", words), figures)
        yield Block(XPD, of_columns)


def _figure_lines(label: str, words: FigureWords) -> tuple[Column[Quantity], ...]:
    """Return a figure with a number of flows, and at which frame rate it was measured where that was given."""
    return (
        Column(label, words.figure),
        Column(f"{label}: frame rate, frames/s", dimension(LOAD).words, optional=True).of(attrgetter("coordinates")),
    )


def _percent(cell: _Cell) -> str:
    degradation = cell.degradation
    if degradation.percent is None:
        return "none"
    error = "" if degradation.error_points is None else f"\n± {degradation.error_points:.2f}"
    return f"{degradation.percent:.2f} %{error}"


XPD: tuple[Column[_Cell], ...] = (Column("Xpd", _percent, strong=True),)


def _reasons(cells: Sequence[_Cell], places: Sequence[_Place]) -> Iterator[str]:
    """Say why there is no degradation, once for each reason."""
    reasons: dict[str, list[str]] = {}
    for cell in cells:
        if cell.degradation.reason is not None and cell.place in places:
            reasons.setdefault(cell.degradation.reason, []).append(cell.place.words(" "))
    for reason, names in reasons.items():
        yield f"No Xpd of {', '.join(dict.fromkeys(names))}: {reason}."


def degradation_plots(document: SeriesDocument) -> Iterator[Plot]:
    """Yield a plot of Xpd against the number of flows, for each headline metric with two numbers above one."""
    by_name: dict[str, list[Metric]] = {}
    for metric in document.metrics:
        if metric.headline:
            by_name.setdefault(metric.quantity, []).append(metric)
    for name, metrics in by_name.items():
        rows = [row for metric in metrics for row in _plotted(document, metric)]
        flows = sorted({int(row.coordinates["flows"] or 0) for row in rows})
        if len(flows) < 2:
            continue
        axis = axis_of("flows", flows)
        yield from plot(
            plot_against(rows, axis, name=f"Degradation of {name} against the number of flows"),
            f"Xpd of {name} against the number of flows: how much worse the median is than with one flow.",
        )


def _plotted(document: SeriesDocument, metric: Metric) -> Iterator[Row]:
    for figure in metric.figures:
        known = figure.degradation
        single = None if known is None else metric.of(known.single_column)
        if known is None or known.percent is None or single is None:
            continue
        where: dict[str, Coordinate] = {"flows": known.flows}
        if titles := list(_other_titles(document, figure, single)):
            where["title"] = ", ".join(titles)
        place = {key: value for key, value in metric.where.items() if key != CONNECTIONS}
        percent = round(known.percent, 4)
        quantity = Quantity(
            run=0,
            procedure=metric.procedure,
            name=f"degradation of {metric.quantity}",
            unit="%",
            better="lower",
            coordinates=place,
            repetitions=figure.repetitions,
            median=percent,
            p1=percent,
            p99=percent,
        )
        yield Row(campaign=document.name, gateway=document.name, quantity=quantity, coordinates=where)
