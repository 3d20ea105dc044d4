"""The section of the report about bursty traffic. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gatemark.procedures.bursty_traffic.result import BurstSize, BurstyTrafficResult
from gatemark.report.event_words import traffic_cells, traffic_columns
from gatemark.report.headline import context_of, not_made
from gatemark.report.model import ReportPart
from gatemark.report.table import REPETITIONS, Column, Plot, Section, Table, plot
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
    names = (
        *traffic_columns(runs),
        Column(heading="direction", numeric=False),
        Column(heading="frames of\na burst"),
    )
    columns = (
        *names,
        Column(heading=f"smallest gap,\n{unit}", strong=True),
        Column(heading=f"p1 {DASH} p99\ndispersion"),
        Column(heading="load passed / failed,\nframes/s"),
        Column(heading="line rate,\nframes/s"),
        REPETITIONS,
    )
    rows = tuple(_row(run, size, runs, unit_ns) for run in runs for size in run.sizes)
    how = tuple(
        f"Searched with trials of {format_duration_ns(run.search_duration_ns)}, confirmed with"
        f" {format_duration_ns(run.duration_ns)}. A trial in which a burst left later than it lasts did not count."
        for run in runs[:1]
    )
    tables = (Table(title=TITLE, columns=columns, rows=rows, names=len(names)),) if rows else ()
    return Section(title=TITLE, lead=(MEANING, *how), tables=tables, notes=not_made(runs))


def _row(
    run: BurstyTrafficResult, size: BurstSize, runs: Sequence[BurstyTrafficResult], unit_ns: int
) -> tuple[str, ...]:
    gap, spread = size.gap_ns, DASH
    if gap is not None:
        spread = f"{format_spread_in(gap.p1, gap.p99, unit_ns)}\n{format_percent(gap.dispersion_percent)}"
    return (
        *traffic_cells(run, runs),
        direction_label(run),
        format_count(size.frames),
        no_gap(run, size) if gap is None else format_in(gap.median, unit_ns),
        spread,
        f"{format_count(size.lower_bound)} / {format_count(size.upper_bound)}",
        format_count(size.line_rate),
        str(len(size.repetitions)),
    )


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
        searched = search_plot(part.trials_of(run), unit="frames/s in one direction")
        drawn = plot(searched, f"Load of every trial. {run_name(run)}.")
        if drawn is not None:
            yield drawn
