"""The section of the report about the connection tear-down rate. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gatemark.procedures.connection_tear_down_rate.result import TearDownResult
from gatemark.report.headline import context_of, not_made
from gatemark.report.model import ReportPart
from gatemark.report.table import Column, Plot, Section, repetitions, table_of
from gatemark.report.words import DASH, format_count, format_long_time
from gatemark.results.document import ResultDocument
from gatemark.results.part import Figure

TITLE = "Connection tear-down rate"
MEANING = (
    "All connections deleted at once, timed on the gateway's clock; the time for an empty table is measured as well and"
    " subtracted (RFC 9693 section 4.8). The rate is N / net time, from the medians before rounding."
)
DOUBT = (
    "In parentheses: uncertain, because the spreads of both times (p99 \u2212 p1) together exceed a tenth of the net"
    " time."
)

LEFT = (
    "Connections that a deletion left are not in the rate: it is (N \u2212 median left) / net time, and uncertain where"
    " their spread exceeds a tenth of those deleted."
)


def section(document: ResultDocument, runs: Sequence[TearDownResult]) -> Section:
    """Return the table of all numbers of connections that have times."""
    del document
    timed = [run for run in runs if run.net_ns is not None]
    some_left = any(run.left is not None for run in timed)
    notes = (*((LEFT,) if some_left else ()), *((DOUBT,) if any(not run.reliable for run in timed) else ()))
    columns = (*COLUMNS[:1], LEFT_COLUMN, *COLUMNS[1:]) if some_left else COLUMNS
    rates = table_of(TITLE, columns, timed, notes=notes)
    untimed = (
        f"Run {run.number}, {format_count(run.connection_count)} connections: not measured, no repetition has the time"
        " of a full and of an empty table."
        for run in runs
        if run.net_ns is None and run.refused is None
    )
    return Section(title=TITLE, lead=(MEANING,), tables=(rates,), notes=(*not_made(runs), *untimed))


def _times(figure: Figure) -> str:
    summary = figure.summary
    if summary is None:
        return DASH
    spread = f"{format_long_time(summary.p1)} {DASH} {format_long_time(summary.p99)}"
    return f"{format_long_time(summary.median)}\n{spread}"


def _left(figure: Figure | None) -> str:
    summary = None if figure is None else figure.summary
    if summary is None:
        return "0"
    if summary.p1 == summary.p99:
        return format_count(summary.median)
    return f"{format_count(summary.median)}\n{format_count(summary.p1)} {DASH} {format_count(summary.p99)}"


def _rate(run: TearDownResult) -> str:
    if run.connections_per_second is None:
        return "no difference"
    rate = format_count(round(run.connections_per_second))
    return rate if run.reliable else f"({rate})"


COLUMNS: tuple[Column[TearDownResult], ...] = (
    Column("number of\nsessions", lambda run: format_count(run.connection_count)),
    Column(f"full table, median\np1 {DASH} p99", lambda run: _times(run.full_ns)),
    Column(f"empty table, median\np1 {DASH} p99", lambda run: _times(run.empty_ns)),
    Column("net", lambda run: DASH if run.net_ns is None else format_long_time(run.net_ns)),
    Column("connections/s", _rate, strong=True),
    repetitions(lambda run: str(len(run.full_ns.values))),
)

LEFT_COLUMN: Column[TearDownResult] = Column(f"left, median\np1 {DASH} p99", lambda run: _left(run.left))


def sentence(part: ReportPart, run: TearDownResult) -> str:
    """Return the rate and both times."""
    context = (
        "on the gateway's clock, all connections at once (RFC 9693 section 4.8);"
        f" {context_of(part.document, run, with_connections=False)}"
    )
    count = f"{format_count(run.connection_count)} connections"
    full, empty = run.full_ns.summary, run.empty_ns.summary
    if full is None or empty is None or run.net_ns is None:
        return f"{TITLE} not measured, {count}; {context}."
    if run.left is not None and run.left.summary is not None:
        left = run.left.summary
        span = "" if left.p1 == left.p99 else f" ({format_count(left.p1)} {DASH} {format_count(left.p99)})"
        were = "was" if left.p99 == 1 else "were"
        count = f"{format_count(left.median)}{span} of {count} {were} left, the others were deleted"
    times = (
        f"{count} in {format_long_time(run.net_ns)} net: full table"
        f" {format_long_time(full.median)}, empty table {format_long_time(empty.median)}, medians of {full.count}"
    )
    if not run.deleted:
        return f"{TITLE}: nothing was deleted; {times}; {context}."
    if run.connections_per_second is None:
        return f"{TITLE}: the full table was not deleted more slowly than the empty one; {times}; {context}."
    doubt = "" if run.reliable else ". Uncertain: the spreads of both times exceed a tenth of their difference"
    if run.left_varies:
        doubt = ". Uncertain: how many were left differs by more than a tenth of those deleted"
    return f"{TITLE}: {format_count(round(run.connections_per_second))} connections/s; {times}; {context}{doubt}."


def plots(part: ReportPart, runs: Sequence[TearDownResult]) -> Iterator[Plot]:
    """Yield nothing: rates over numbers of connections are drawn with the others."""
    del part, runs
    yield from ()
