"""The section of the report about bursty traffic. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gatemark.procedures.bursty_traffic.result import BurstSize, BurstyTrafficResult
from gatemark.report.columns import DIRECTION, TRAFFIC_OF_LINE, Line
from gatemark.report.headline import context_of, not_made
from gatemark.report.model import ReportPart
from gatemark.report.table import Column, Plot, Section, plot, repetitions, table_of
from gatemark.report.trial_plots import search_plot
from gatemark.report.words import (
    DASH,
    direction_label,
    format_count,
    format_in,
    format_percent,
    format_spread_in,
    limited,
    run_name,
    unit_of_times,
)
from gatemark.results.document import ResultDocument
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.units import format_duration_ns

TITLE = "Bursty traffic"
MEANING = (
    "Smallest gap between bursts at line rate with which no frame was lost (RFC 2544 section 21), from the end of a"
    " burst to the start of the next one. The load is that of the bursts and the gaps together."
)


def section(document: ResultDocument, runs: Sequence[BurstyTrafficResult]) -> Section:
    """Return the table of all runs, with a row for each burst size."""
    del document
    unit, unit_ns = unit_of_times(gap for run in runs for size in run.sizes for gap in size.gaps_ns)
    columns: tuple[Column[Line[BurstyTrafficResult, BurstSize]], ...] = (
        *TRAFFIC_OF_LINE,
        DIRECTION.of(lambda line: line.run),
        Column("frames of\na burst", lambda line: format_count(line.part.frames), names=True),
        Column(f"smallest gap,\n{unit}", lambda line: _gap(line, unit_ns), strong=True),
        Column(f"p1 {DASH} p99\ndispersion", lambda line: _spread(line, unit_ns)),
        Column(
            "load passed / failed,\nframes/s",
            lambda line: f"{format_count(line.part.lower_bound)} / {format_count(line.part.upper_bound)}",
        ),
        Column("line rate,\nframes/s", lambda line: format_count(line.part.line_rate)),
        repetitions(lambda line: str(len(line.part.repetitions))),
    )
    how = tuple(
        f"Searched with trials of {format_duration_ns(run.search_duration_ns)}, confirmed with"
        f" {format_duration_ns(run.duration_ns)}. A trial in which a burst left later than it lasts did not count."
        for run in runs[:1]
    )
    gaps = table_of(TITLE, columns, (Line(run, size) for run in runs for size in run.sizes))
    return Section(title=TITLE, lead=(MEANING, *how), tables=(gaps,), notes=not_made(runs))


def _gap(line: Line[BurstyTrafficResult, BurstSize], unit_ns: int) -> str:
    gap = line.part.gap_ns
    return no_gap(line.run, line.part) if gap is None else format_in(gap.median, unit_ns)


def _spread(line: Line[BurstyTrafficResult, BurstSize], unit_ns: int) -> str:
    gap = line.part.gap_ns
    if gap is None:
        return DASH
    return f"{format_spread_in(gap.p1, gap.p99, unit_ns)}\n{format_percent(gap.dispersion_percent)}"


def no_gap(run: BurstyTrafficResult, size: BurstSize) -> str:
    """Why there is no gap for bursts of a size."""
    kinds = {search.kind for search in size.repetitions}
    if size.limited_by in NOT_THE_GATEWAY:
        return f"{limited(run.limited_by)} at {format_count(size.tester_limited_at)} frames/s"
    if kinds == {"nothing_passes"}:
        return "no gap suffices"
    return "repetitions differ: some found no gap or needed none"


def sentence(part: ReportPart, run: BurstyTrafficResult) -> str:
    """Return the gap of each size of bursts."""
    context = f"{context_of(part.document, run)}, {direction_label(run)}"
    unit, unit_ns = unit_of_times(gap for size in run.sizes for gap in size.gaps_ns)
    gaps = [
        f"{format_in(size.gap_ns.median, unit_ns)} {unit} after {format_count(size.frames)}"
        if size.gap_ns is not None
        else f"{no_gap(run, size)} after {format_count(size.frames)}"
        for size in run.sizes
    ]
    return (
        f"Smallest gap between bursts at {format_count(run.line_rate)} frames/s: {', '.join(gaps)} frames (RFC 2544"
        f" section 21), median of {len(run.sizes[0].repetitions)} repetitions; {context}."
    )


def plots(part: ReportPart, runs: Sequence[BurstyTrafficResult]) -> Iterator[Plot]:
    """Yield the loads that were tried."""
    for run in runs:
        searched = search_plot(part.trials_of(run), unit="frames/s")
        yield from plot(searched, f"Load of every trial. {run_name(run)}.")
