"""Tables of figures, over all gateways: one for each quantity, a row for each run. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from gatemark.report.columns import LIMITED_BY, coordinate
from gatemark.report.lines import FigureWords
from gatemark.report.self_error import CEILING, ceiling_beside, ceiling_of
from gatemark.report.table import Column, Table, repetitions, table_of
from gatemark.report.words import (
    DASH,
    bounds_cell,
    capital,
    direction_label,
    format_count,
    format_percent,
)
from gatemark.results.coordinates import CONNECTIONS, LOAD, MIX, SIZES, dimension
from gatemark.results.document import ResultDocument
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.quantity import Quantity, Row, varying
from gatemark.results.run import RunResult
from gatemark.results.search import RateResult
from gatemark.results.unit import unit_named


class FigureRow(NamedTuple):
    """A row of the tidy table with its run and its campaign."""

    document: ResultDocument
    run: RunResult
    row: Row

    @property
    def quantity(self) -> Quantity:
        """The figure."""
        return self.row.quantity

    @property
    def is_known(self) -> bool:
        """Whether the figure is one of the gateway."""
        return self.quantity.limited_by not in NOT_THE_GATEWAY


def headline_rows(documents: Sequence[ResultDocument]) -> dict[tuple[str, str], list[FigureRow]]:
    """Return the headline quantities of the runs, by name and unit of the quantity, in the order of the runs."""
    tables: dict[tuple[str, str], list[FigureRow]] = {}
    for document in documents:
        for run in document.runs:
            for row in map(document.row, run.quantities()):
                if row.quantity.is_headline:
                    key = row.quantity.name, row.quantity.unit
                    tables.setdefault(key, []).append(FigureRow(document, run, row))
    return tables


def rate_tables(documents: Sequence[ResultDocument]) -> Iterator[Table]:
    """Yield one table for each rate that was searched for.

    For several campaigns it compares what they forward: the other facts about a rate are in their own tables. A
    direction that all rows have in common is in the title.
    """
    for (name, unit), rows in headline_rows(documents).items():
        if not isinstance(rows[0].run, RateResult):
            continue
        labels = {direction_label(row.run) for row in rows}
        title = f"{capital(name)}, {unit_named(unit).title}"
        left_out: tuple[Column[FigureRow], ...] = (CAMPAIGN,)
        if len(documents) > 1:
            left_out = (DIRECTION, SUM, MAXIMUM) if len(labels) == 1 else (SUM, MAXIMUM)
        if unit_named(unit).is_one_way and DIRECTION in left_out:
            title = f"{capital(name)}, {unit}, {labels.pop()}"
        yield figure_table(title, rows, left_out=left_out)


def time_tables(documents: Sequence[ResultDocument]) -> Iterator[Table]:
    """Yield one table for each delay or time, over several campaigns."""
    for (name, unit), rows in headline_rows(documents).items():
        if unit == "ns":
            words = FigureWords.of(unit, (row.quantity for row in rows))
            yield figure_table(f"{capital(name)}, {words.unit}", rows, left_out=())


def own_rate_tables(document: ResultDocument, runs: Sequence[RateResult]) -> tuple[Table, ...]:
    """Return the tables of the rates of some runs of a campaign."""
    numbers = {run.number for run in runs}
    return tuple(
        figure_table(capital(name), chosen, left_out=(CAMPAIGN,))
        for (name, unit), rows in headline_rows([document]).items()
        if unit and (chosen := [row for row in rows if row.run.number in numbers])
    )


def figure_table(title: str, rows: Sequence[FigureRow], *, left_out: Collection[Column[FigureRow]]) -> Table:
    """Return a table of figures with one unit. Columns that say nothing of any row are left out as well."""
    words = FigureWords.of(rows[0].quantity.unit, (row.quantity for row in rows))
    others = [name for name in varying([row.row for row in rows]) if not dimension(name).is_common]
    is_rate = isinstance(rows[0].run, RateResult)
    columns: tuple[Column[FigureRow], ...] = (
        CAMPAIGN,
        _traffic(CONNECTIONS),
        _traffic(SIZES[0]),
        DIRECTION,
        _traffic("class"),
        _traffic(MIX[0]),
        _traffic("alpha"),
        _traffic(LOAD),
        *(_traffic(name) for name in (() if is_rate else others)),
        Column("median" if is_rate else words.unit, lambda row: _figure(row, words), strong=True),
        Column(f"p1 {DASH} p99\ndispersion", lambda row: _spread(row, words), optional=True),
        SUM,
        Column("passed / failed\nresolution", lambda row: _bounds(row, words), optional=True),
        replace(_traffic("loss_tolerance"), names=False, chosen=True),
        repetitions(lambda row: str(row.quantity.repetitions)),
        MAXIMUM,
        Column(CEILING, _ceiling, optional=True),
        LIMITED_BY.of(attrgetter("quantity")),
    )
    return table_of(title, (column for column in columns if column not in left_out), rows)


def _traffic(name: str) -> Column[FigureRow]:
    return coordinate(name).of(lambda row: row.row.place)


def _direction(row: FigureRow) -> str:
    unit = unit_named(row.quantity.unit)
    if unit.is_one_way:
        return direction_label(row.run)
    return str(row.row.place.get("direction") or "") if unit.has_direction else ""


def _figure(row: FigureRow, words: FigureWords) -> str:
    """Return a rate only where it is the gateway's; a time also where the Tester could not make every repetition."""
    quantity = row.quantity
    if words.divisor is not None:
        return "not measured" if quantity.value is None else words.write(quantity.value)
    return words.figure(quantity) if row.is_known else "not measured"


def _spread(row: FigureRow, words: FigureWords) -> str:
    quantity = row.quantity
    if quantity.p1 is None or not (row.is_known or words.divisor):
        return ""
    spread = f"{words.write(quantity.p1)} {DASH} {words.write(quantity.p99)}"
    return f"{spread}\n{format_percent(quantity.dispersion_percent)}"


def _bounds(row: FigureRow, words: FigureWords) -> str:
    resolution = row.quantity.resolution
    return "" if resolution is None else f"{bounds_cell(row.quantity)}\n{words.write(resolution)}"


def _sum(row: FigureRow) -> str:
    both = row.quantity.sum_of_directions if row.is_known else None
    return "" if both is None else format_count(both)


def _maximum(row: FigureRow) -> str:
    limit = row.run.theoretical_maximum if isinstance(row.run, RateResult) else None
    return "" if limit is None else format_count(limit.frames_per_second)


def _ceiling(row: FigureRow) -> str:
    """The Tester's own ceiling, with a remark if the rate is near it."""
    document, run, unit = row.document, row.run, row.quantity.unit
    if ceiling_of(document, run, unit) is None:
        return ""
    highest = max((value for value in row.quantity.values if value is not None), default=None)
    return ceiling_beside(document, run, unit, highest)


CAMPAIGN: Column[FigureRow] = Column("campaign", lambda row: row.document.name, names=True, numeric=False)
DIRECTION: Column[FigureRow] = Column("direction", _direction, names=True, numeric=False, optional=True)
SUM: Column[FigureRow] = Column("sum of both\ndirections", _sum, optional=True)
MAXIMUM: Column[FigureRow] = Column("theoretical\nmaximum", _maximum, optional=True)
