"""Tables of what searches found, over all gateways: one for each quantity, a row for each run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from gatemark.report.self_error import ceiling_cell, ceiling_of, is_near_ceiling
from gatemark.report.table import REPETITIONS, Column, Table
from gatemark.report.words import (
    DASH,
    bounds_cell,
    capital,
    direction_label,
    format_count,
    format_mix,
    format_percent,
    format_ratio,
    format_share,
    format_sizes,
    limit_text,
    rate_cell,
    spread_cell,
)
from gatemark.results.document import ResultDocument
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.quantity import Quantity
from gatemark.results.run import RunResult
from gatemark.results.search import RateResult

RateRow = tuple[ResultDocument, RunResult, Quantity]
"""A rate with its run and its campaign."""


ONE_CAMPAIGN: tuple[str, ...] = ("campaign",)
"""Headings that a table of one campaign leaves out."""

_NOT_COMPARED = ("sum of both\ndirections", "theoretical\nmaximum")


def searched(documents: Sequence[ResultDocument]) -> dict[tuple[str, str], list[RateRow]]:
    """Return the headline quantities of all searches for a rate, by name and unit, in the order of the runs."""
    tables: dict[tuple[str, str], list[RateRow]] = {}
    for document in documents:
        for run in document.runs:
            if isinstance(run, RateResult):
                for quantity in run.quantities():
                    if quantity.is_headline:
                        tables.setdefault((quantity.name, quantity.unit), []).append((document, run, quantity))
    return tables


def rate_tables(documents: Sequence[ResultDocument]) -> Iterator[Table]:
    """Yield one table for each quantity that was searched for.

    For several campaigns it compares what they forward: the other facts about a rate are in their own tables. A
    direction that all rows have in common is in the title.
    """
    for (name, unit), rows in searched(documents).items():
        labels = {direction_label(run) for _, run, _ in rows}
        title, left_out = f"{capital(name)}, {unit}", ONE_CAMPAIGN
        if len(documents) > 1:
            left_out = ("direction", *_NOT_COMPARED) if len(labels) == 1 else _NOT_COMPARED
        if unit == "frames/s":
            title += f", {labels.pop()}" if "direction" in left_out else " in one direction"
        yield rate_table(title, rows, left_out=left_out)


def rate_table(title: str, rates: Sequence[RateRow], *, left_out: Sequence[str] = ONE_CAMPAIGN) -> Table:
    """Return a table of rates; empty columns are left out too."""
    columns = [
        column
        for column in _COLUMNS
        if column.heading not in left_out and any(_cell(column.heading, row) for row in rates)
    ]
    rows = tuple(tuple(_cell(column.heading, row) or DASH for column in columns) for row in rates)
    names = sum(column.heading in _NAMES for column in columns)
    return Table(title=title, columns=tuple(columns), rows=rows, names=names)


_NAMES = ("campaign", "connec-\ntions", "IPv4 / IPv6\noctets", "direction", "fore:back-\nground", "alpha")
_COLUMNS = (
    Column(heading="campaign", numeric=False),
    Column(heading="connec-\ntions"),
    Column(heading="IPv4 / IPv6\noctets"),
    Column(heading="direction", numeric=False),
    Column(heading="fore:back-\nground"),
    Column(heading="alpha"),
    Column(heading="median", strong=True),
    Column(heading=f"p1 {DASH} p99\ndispersion"),
    Column(heading="sum of both\ndirections"),
    Column(heading="passed / failed\nresolution"),
    Column(heading="loss\ntolerance", chosen=True),
    REPETITIONS,
    Column(heading="theoretical\nmaximum"),
    Column(heading="self-test\nceiling"),
    Column(heading="limited by", numeric=False),
)


def _cell(heading: str, row: RateRow) -> str:
    document, run, quantity = row
    searches = run.repetitions if isinstance(run, RateResult) else ()
    known = quantity.limited_by not in NOT_THE_GATEWAY
    match heading:
        case "campaign":
            return document.name
        case "connec-\ntions":
            return "" if run.connection_count is None else format_count(run.connection_count)
        case "IPv4 / IPv6\noctets":
            return format_sizes(run)
        case "direction":
            return direction_label(run) if quantity.unit == "frames/s" else ""
        case "fore:back-\nground":
            return format_mix(run) if run.mix.is_mixed else ""
        case "alpha":
            alpha = quantity.coordinates.get("alpha")
            return "" if alpha is None else format_ratio(Fraction(str(alpha)))
        case "median":
            return rate_cell(quantity) if known else "not measured"
        case "sum of both\ndirections":
            both = run.direction == "bidirectional" and quantity.unit == "frames/s"
            return format_count(2 * quantity.median) if both and known and quantity.median is not None else ""
        case "loss\ntolerance":
            tolerance = run.goal.loss_tolerance if isinstance(run, RateResult) else Fraction(0)
            return format_share(tolerance) if tolerance else ""
        case "repe-\ntitions":
            return str(len(searches))
        case "theoretical\nmaximum":
            limit = run.theoretical_maximum
            return "" if limit is None else format_count(limit.frames_per_second)
        case "self-test\nceiling":
            return "" if ceiling_of(document, run, quantity.unit) is None else _ceiling(document, run, quantity)
        case "limited by":
            return limit_text(quantity)
    if heading.startswith("p1"):
        spread = spread_cell(quantity) if known else ""
        return f"{spread}\n{format_percent(quantity.dispersion_percent)}" if spread not in ("", DASH) else spread
    return f"{bounds_cell(quantity)}\n{format_count(quantity.resolution)}"


def _ceiling(document: ResultDocument, run: RunResult, quantity: Quantity) -> str:
    """The Tester's own ceiling, with a remark if the rate is near it."""
    cell = ceiling_cell(document, run, quantity.unit).replace("\n", " ")
    highest = max((value for value in quantity.values if value is not None), default=None)
    near = is_near_ceiling(document, run, quantity.unit, highest)
    return f"{cell}\nwithin 5 %" if near else cell
