"""The section of the report about the frame loss rate. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from gatemark.procedures.frame_loss.result import ClassLoss, FrameLossResult, LossPoint, worst_loss
from gatemark.report.columns import way
from gatemark.report.headline import context_of, not_made
from gatemark.report.model import ReportPart
from gatemark.report.plots import plot_against
from gatemark.report.self_error import CEILING, ceiling_beside
from gatemark.report.table import Column, Plot, Section, Table, plot, repetitions, table_of
from gatemark.report.trial_plots import loss_over_time_plot, search_plot
from gatemark.report.words import DASH, direction_label, format_count, format_percent, run_name
from gatemark.results.coordinates import LOAD, dimension
from gatemark.results.document import ResultDocument

MEANING = (
    "(offered - forwarded) / offered, RFC 2544 section 26.3. A frame that came back wrong or too late was not"
    " forwarded. Frames are sums of the repetitions."
)
NOT_OFFERED = "not offered: the Tester could not send this load"


def section(document: ResultDocument, runs: Sequence[FrameLossResult]) -> Section:
    """Return one table per run, with a row per load, direction and class."""
    tables = tuple(_table(document, run) for run in runs if run.points)
    return Section(title="Frame loss", lead=(MEANING,), tables=tables, notes=not_made(runs))


def _table(document: ResultDocument, run: FrameLossResult) -> Table:
    columns: tuple[Column[_Row], ...] = (
        Column(dimension(LOAD).heading, lambda row: format_count(row.point.frames_per_second), names=True),
        Column("of\nmaximum", lambda row: _of_maximum(run, row.point), names=True),
        Column("direction", lambda row: _way(run, row), names=True, numeric=False),
        Column(f"lost, median\np1 {DASH} p99", lambda row: _lost(row.loss), strong=True),
        *(column.of(attrgetter("loss")) for column in COUNTS),
        repetitions(lambda row: "" if row.loss is None else str(row.point.repetitions)),
    )
    if document.self_test is not None:
        columns += (Column(CEILING, lambda row: "" if row.loss is None else _ceiling(document, run, row.point)),)
    rows = (_Row(point, loss) for point in run.points for loss in point.losses or (None,))
    return table_of(run_name(run), columns, rows)


class _Row(NamedTuple):
    """A direction and class at a load; None at a load that could not be offered."""

    point: LossPoint
    loss: ClassLoss | None


def _of_maximum(run: FrameLossResult, point: LossPoint) -> str:
    return f"{100 * point.frames_per_second / run.maximum:.3g} %" if run.maximum else DASH


def _way(run: FrameLossResult, row: _Row) -> str:
    return "" if row.loss is None else way(run, row.loss.direction, row.loss.class_)


def _lost(loss: ClassLoss | None) -> str:
    if loss is None:
        return NOT_OFFERED
    summary = loss.loss_percent
    if summary is None:
        return f"{loss.not_tried} repetitions\nhad ended" if loss.not_tried else DASH
    return f"{format_percent(summary.median)}\n{format_percent(summary.p1)} {DASH} {format_percent(summary.p99)}"


COUNTS: tuple[Column[ClassLoss], ...] = (
    Column("offered", lambda loss: format_count(sum(loss.offered))),
    Column("forwarded", lambda loss: format_count(loss.forwarded)),
    Column("never\narrived", lambda loss: format_count(sum(loss.lost))),
    Column("wrong", lambda loss: format_count(sum(loss.faulty))),
    Column("dupli-\ncates", lambda loss: format_count(sum(loss.duplicate))),
    Column("reor-\ndered", lambda loss: format_count(sum(loss.reordered))),
    Column("longest\nrun lost", lambda loss: format_count(max(loss.longest_run, default=0))),
)


def _ceiling(document: ResultDocument, run: FrameLossResult, point: LossPoint) -> str:
    return ceiling_beside(document, run, "frames/s", point.frames_per_second, " of the load")


def sentence(part: ReportPart, run: FrameLossResult) -> str:
    """Return the highest median of the loss, and the highest load at which no repetition lost a frame."""
    measured = [point for point in run.points if point.losses]
    context = f"{context_of(part.document, run)}, {direction_label(run)}"
    skipped = len(run.points) - len(measured)
    tail = f" {skipped} of {len(run.points)} loads could not be offered by the Tester." if skipped else ""
    if not measured:
        return f"Frame loss not measured; {context}.{tail}"
    worst = max(measured, key=lambda point: worst_loss(point.losses))
    clean = [point.frames_per_second for point in measured if point.is_lossless]
    return (
        f"Frame loss: median up to {format_percent(worst_loss(worst.losses))} at "
        f"{format_count(worst.frames_per_second)} frames/s; "
        f"{f'none at {format_count(max(clean))} frames/s' if clean else 'no load without loss'}; {context}.{tail}"
    )


def plots(part: ReportPart, runs: Sequence[FrameLossResult]) -> Iterator[Plot]:
    """Yield loss against load, loss over time in the first trial at the highest lossy load, and the loads tried."""
    rows = part.document.figures()
    for run in runs:
        rows_of_run = [row for row in rows if row.quantity.run == run.number]
        drawing = plot_against(rows_of_run, "load", name=f"frame loss against load, run {run.number}", places_min=1)
        lossy = [
            trial for trial in part.valid_trials_of(run) if any(any(row.loss_by_slice) for row in trial.directions)
        ]
        trial = max(lossy, key=lambda trial: (trial.frames_per_second, -trial.trial_number), default=None)
        over_time = None if trial is None else loss_over_time_plot(trial)
        load = "" if trial is None else f" at {format_count(trial.frames_per_second)} frames/s"
        searched = search_plot(part.trials_of(run), unit="frames/s")
        yield from plot(drawing, f"Frame loss against load. {run_name(run)}.")
        yield from plot(over_time, f"Loss over time in one trial{load}. {run_name(run)}.")
        yield from plot(searched, f"Load of every trial. {run_name(run)}.")
