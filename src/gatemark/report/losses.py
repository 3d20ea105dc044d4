"""Why frames were lost: the causes of each run, and plots of the trial that shows one best. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gatemark.facts import LossCause
from gatemark.report.model import ReportPart, TrialRow
from gatemark.report.plot_style import GRID, RUST, Drawing, add_legend
from gatemark.report.table import Column, Plot, Section, plot, table_of
from gatemark.report.trial_plots import loss_over_time_plot
from gatemark.report.words import format_count, format_range
from gatemark.results.document import ResultDocument
from gatemark.results.run import RunResult
from gatemark.trial.loss import LossField

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAD = (
    "A frame is a function of its number, so all fields of a frame that never arrived are known. Each cause named here"
    " distinguishes at least 95 % of the lost frames of a trial from those that arrived, and chance would produce it"
    " in less than one of a million trials. Without such a cause, frames were lost at random, or by a queue that"
    " overflowed: the ordinary end of a search. Only failed trials that count are examined, and no verdict changes."
)
SHOWN_MAX = 4
"""Trials that are plotted."""

COLUMNS: tuple[Column[tuple[RunResult, LossCause]], ...] = (
    Column("run", lambda row: str(row[0].number), names=True),
    Column("frames", lambda row: f"{row[1].direction} {row[1].traffic_class}", names=True, numeric=False),
    Column("failed\ntrials", lambda row: str(row[1].trials)),
    Column("load", lambda row: format_range(row[1].load_minimum, row[1].load_maximum, "to")),
    Column("explained / lost", lambda row: f"{format_count(row[1].explained)} / {format_count(row[1].lost)}"),
    Column("in the trial that lost most", lambda row: row[1].sentence, numeric=False),
)


def losses_section(document: ResultDocument) -> Section:
    """Return the causes of each run; no table if there is none."""
    rows = ((run, cause) for run in document.runs for cause in run.losses)
    return Section(title="Why were frames lost?", lead=(LEAD,), tables=(table_of("", COLUMNS, rows),))


def losses_sentences(document: ResultDocument) -> Iterator[str]:
    """Yield the cause of most failed trials of each run, for the terminal."""
    for run in document.runs:
        for cause in run.losses[:1]:
            trials = "one failed trial" if cause.trials == 1 else f"{cause.trials} failed trials"
            yield (
                f"run {run.number}: why frames were lost in {trials}, {cause.direction} {cause.traffic_class}:"
                f" {cause.sentence}"
            )


def loss_plots(part: ReportPart) -> Iterator[Plot]:
    """Yield when frames were lost, and by what they are told from others, in the trial of a cause that lost most."""
    shown: dict[tuple[str, str], tuple[int, TrialRow, LossField | None]] = {}
    for trial in part.trials:
        for cause, field in trial.losses:
            known = shown.get((cause.cause, cause.what))
            if known is None or known[0] < cause.explained:
                shown[cause.cause, cause.what] = (cause.explained, trial, field)
    for (_, what), (_, trial, field) in list(shown.items())[:SHOWN_MAX]:
        name = f"Trial {trial.trial_number}, {format_count(trial.frames_per_second)} frames/s"
        yield from plot(loss_over_time_plot(trial), f"Frames lost over time. {name}: {what}.")
        if field is not None and field.heaviest:
            yield from plot(_by_field(field), f"Frames by {_words(field)}, those with most losses. {name}: {what}.")


def _by_field(field: LossField) -> Drawing:
    """Return lost frames and those that arrived, of the values with most losses."""

    def draw(axes: Axes) -> None:
        names = [value.name for value in field.heaviest]
        lost, arrived = [value.lost for value in field.heaviest], [value.arrived for value in field.heaviest]
        places = range(len(names))
        axes.barh(places, lost, color=RUST, label="lost")
        axes.barh(places, arrived, left=lost, color=GRID, label="arrived")
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.set_xlabel("frames looked at")
        add_legend(axes)

    return Drawing(name=f"frames lost by {_words(field)}", draw=draw, height=1.0 + 0.25 * len(field.heaviest))


def _words(field: LossField) -> str:
    return "number modulo " + str(field.modulus) if field.modulus else field.field.replace("_", " ")
