"""The section of the report about system recovery. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gatemark.procedures.system_recovery.result import RecoverySeries, SystemRecoveryResult
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
from gatemark.report.table import Column, Plot, Section, plot, repetitions, table_of
from gatemark.report.trial_plots import loss_over_time_plot
from gatemark.report.words import DASH, direction_label, format_count, format_in, run_name
from gatemark.results.document import ResultDocument
from gatemark.units import format_duration_ns

TITLE = "System recovery"
MEANING = (
    "Time from the fall of the load to the last frame that was lost, by the times when frames were due (RFC 2544"
    " section 26.5); 0 if none was lost after the fall. Below the average are the smallest and the largest."
)


def section(document: ResultDocument, runs: Sequence[SystemRecoveryResult]) -> Section:
    """Return the table of all runs, with a row per direction and class."""
    del document
    times = table_of(TITLE, COLUMNS, (Line(run, series) for run in runs for series in run.series))
    return Section(title=TITLE, lead=(MEANING,), tables=(times,), notes=(*not_made(runs), *tester_limited_notes(runs)))


def _time(series: RecoverySeries) -> str:
    why = f"not known: {outcome_words(series.outcomes)}"
    return average_cell(series.average_ns, series.recovery_ns, why)


def _last_loss(series: RecoverySeries) -> str:
    return format_in(min((ns for ns in series.last_loss_before_ns if ns is not None), default=None), MS)


COLUMNS: tuple[Column[Line[SystemRecoveryResult, RecoverySeries]], ...] = (
    *TRAFFIC_OF_LINE,
    WAY,
    Column("throughput,\nframes/s", lambda line: stated(line.run.throughput, measured=line.run.throughput_measured)),
    Column(
        "overload, frames/s\nfor",
        lambda line: f"{format_count(line.run.overload)}\n{format_duration_ns(line.run.overload_ns)}",
    ),
    Column(
        "then, frames/s\nfor",
        lambda line: f"{format_count(line.run.recovery_load)}\n{format_duration_ns(line.run.observe_ns)}",
    ),
    Column(f"recovery time, ms\nminimum {DASH} maximum", lambda line: _time(line.part), strong=True),
    repetitions(lambda line: of_all(line.run.repetitions, line.run.tester_limited)),
    Column(
        "frames that\nnever arrived",
        lambda line: f"{format_count(sum(line.part.lost))}\nof {format_count(sum(line.part.offered))}",
    ),
    Column("last loss before\nthe fall, ms", lambda line: _last_loss(line.part)),
)


def sentence(part: ReportPart, run: SystemRecoveryResult) -> str:
    """Return how long frames were still lost after the overload."""
    context = f"{context_of(part.document, run)}, {direction_label(run)}"
    words = "; ".join(_words(run, series) for series in run.series)
    return (
        f"System recovery from {format_count(run.overload)} frames/s for {format_duration_ns(run.overload_ns)} to"
        f" {format_count(run.recovery_load)} frames/s: {words}; {context}."
    )


def _words(run: SystemRecoveryResult, series: RecoverySeries) -> str:
    way = run.way_word(series.direction)
    if series.average_ns is None:
        return f"{way} not known: {outcome_words(series.outcomes)}"
    return f"{format_in(series.average_ns, MS)} ms {way}, average of {len(series.outcomes)}"


def plots(part: ReportPart, runs: Sequence[SystemRecoveryResult]) -> Iterator[Plot]:
    """Yield loss over time in the first valid trial of each run, with the fall of the load."""
    for run in runs:
        trial = next(iter(part.valid_trials_of(run)), None)
        if trial is not None and run.recovery_load is not None:
            drawing = loss_over_time_plot(trial, (run.overload_ns, run.recovery_load))
            yield from plot(drawing, f"Loss over time in one trial. {run_name(run)}.")
