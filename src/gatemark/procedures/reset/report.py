"""The section of the report about resets. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from gatemark.procedures.reset.result import ResetResult, ResetSeries
from gatemark.report.columns import TRAFFIC_OF_LINE, WAY, Line
from gatemark.report.event_words import (
    MS,
    average_cell,
    of_all,
    outcome_words,
    stated,
    tester_limited_notes,
)
from gatemark.report.headline import context_of, not_made
from gatemark.report.model import ReportPart
from gatemark.report.table import Column, Plot, Section, plot, table_of
from gatemark.report.trial_plots import loss_over_time_plot
from gatemark.report.words import DASH, direction_label, format_count, format_in, format_range, run_name
from gatemark.results.coordinates import LOAD, dimension
from gatemark.results.document import ResultDocument
from gatemark.results.part import Figure

TITLE = "Reset"
MEANING = (
    "Frames undelivered / rate offered, and the longest time between two frames that came back (RFC 6201 section 4), on"
    " average. The protocol is UDP; directions are shown separately, because a gateway that lost its state forwards"
    " answers only after new frames of the Initiator."
)


def section(document: ResultDocument, runs: Sequence[ResetResult]) -> Section:
    """Return the table of all runs, with a row per direction and class."""
    del document
    lost_before = (
        f"Run {run.number}, {run.way_word(series.direction)}: frames were lost before the reset began, so not every"
        " loss is of the reset."
        for run in runs
        for series in run.series
        if series.lost_before
    )
    times = table_of(TITLE, COLUMNS, (Line(run, series) for run in runs for series in run.series))
    notes = (*lost_before, *not_made(runs), *tester_limited_notes(runs))
    return Section(title=TITLE, lead=(MEANING,), tables=(times,), notes=notes)


def _by_loss(series: ResetSeries) -> str:
    why = f"not known: {outcome_words(series.outcomes)}"
    return average_cell(series.average_ns, series.reset_by_loss_ns.values, why)


def _by_gap(series: ResetSeries) -> str:
    gaps = [Fraction(value) for value in series.reset_by_gap_ns.values if value is not None]
    mean = float(sum(gaps) / len(gaps)) if gaps and series.average_ns is not None else None
    return average_cell(mean, series.reset_by_gap_ns.values, DASH)


def _took(run: ResetResult) -> str:
    took = Figure.of(run.took_ns).summary
    return format_in(None if took is None else took.median, MS)


def _range(values: Sequence[int]) -> str:
    return format_range(min(values), max(values)) if values else DASH


COLUMNS: tuple[Column[Line[ResetResult, ResetSeries]], ...] = (
    *TRAFFIC_OF_LINE,
    WAY,
    Column("kind", lambda line: line.run.kind, numeric=False),
    Column(
        dimension(LOAD).heading, lambda line: stated(line.run.frames_per_second, measured=line.run.throughput_measured)
    ),
    Column(f"undelivered,\nminimum {DASH} maximum", lambda line: _range(line.part.undelivered)),
    Column("reset time by loss, ms\nsmallest and largest", lambda line: _by_loss(line.part), strong=True),
    Column("by the gap, ms\nsmallest and largest", lambda line: _by_gap(line.part)),
    Column("trials", lambda line: of_all(line.run.repetitions, line.run.tester_limited)),
    Column("command\ntook, ms", lambda line: _took(line.run)),
)


def sentence(part: ReportPart, run: ResetResult) -> str:
    """Return how long the gateway forwarded nothing after a reset."""
    context = f"{context_of(part.document, run)}, {direction_label(run)}"
    words = "; ".join(_words(run, series) for series in run.series)
    return f"Reset ({run.kind}) at {format_count(run.frames_per_second)} frames/s: {words}; {context}."


def _words(run: ResetResult, series: ResetSeries) -> str:
    way, trials = run.way_word(series.direction), len(series.undelivered)
    frames = format_count(sum(series.undelivered))
    missing = f"{frames} frames not delivered in {trials} trial{'s' if trials != 1 else ''}"
    if series.average_ns is None:
        return f"{way} not known: {outcome_words(series.outcomes)}; {missing}"
    return f"{format_in(series.average_ns, MS)} ms {way} by {missing}, average"


def plots(part: ReportPart, runs: Sequence[ResetResult]) -> Iterator[Plot]:
    """Yield loss over time in the first valid trial of each run."""
    for run in runs:
        trial = next(iter(part.valid_trials_of(run)), None)
        drawing = None if trial is None else loss_over_time_plot(trial)
        yield from plot(drawing, f"Loss over time in one trial. {run_name(run)}.")
