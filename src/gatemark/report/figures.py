"""The plots of sections with their captions: delays, and loss over time within a trial. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from gatemark.report import delay_plots, words
from gatemark.report.model import ReportPart, TrialRow
from gatemark.report.plain_table import Section
from gatemark.report.sections import sections_of
from gatemark.results.schema import RunPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A plot with its caption."""

    svg: Markup
    caption: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """A section with its plots."""

    section: Section
    figures: tuple[Figure, ...]


def make_figure(svg: str | None, caption: str) -> Figure | None:
    """A plot with its caption; None if there is nothing to draw."""
    return None if svg is None else Figure(svg=Markup(svg), caption=caption)


def run_name(run: RunPart) -> str:
    """A run in a few words for captions."""
    named = [words.name_sizes(run)]
    if run.connections is not None:
        named.insert(0, words.PROCEDURES[run.procedure])
        named += [f"{words.format_count(count)} connections"] if (count := run.connections.count) is not None else []
    if run.connections is None or run.procedure in words.MEASURES_FRAMES:
        named.append(words.way_word(run, run.direction))
    if run.mix.m != run.mix.n:
        named.append(f"foreground:background {words.format_mix(run)}")
    return f"Run {run.number}: {', '.join(named)}"


def page_sections(part: ReportPart) -> tuple[PageSection, ...]:
    """All sections that are plain tables, with their plots."""
    drawn = {"Delays": delay_figures, "System recovery": recovery_figures, "Reset": reset_figures}
    return tuple(
        PageSection(section=section, figures=tuple(drawn[section.title](part)) if section.title in drawn else ())
        for section in sections_of(part.document)
    )


def delay_figures(part: ReportPart) -> Iterator[Figure]:
    """Plots of delays: against frame size for runs that differ in nothing else, then those of each run."""
    runs = [run for run in part.document.runs if run.delays]
    groups: dict[tuple[str, str, int | None], list[RunPart]] = {}
    for run in runs:
        groups.setdefault((run.direction, words.format_mix(run), words.connections_of(run)), []).append(run)
    for members in groups.values():
        named = _group_name(members[0], several=len(groups) > 1)
        spread = "median of the repetitions, bars from the 1st to the 99th percentile"
        first = "at the first load of each size" if any(len(run.delays) > 1 for run in members) else "at the load above"
        yield from _made(
            (delay_plots.latency_size_plot(members), f"Latency against frame size{named}, {first}: {spread}."),
            (delay_plots.pdv_size_plot(members), f"PDV against frame size{named}, {first}: {spread}."),
        )
    for run in runs:
        yield from _of_run(run)


def recovery_figures(part: ReportPart) -> Iterator[Figure]:
    """Loss over time in the first valid trial of each run of system recovery."""
    for run in part.document.runs:
        if run.recovery is not None:
            trial = _first(_valid(part, run))
            svg = None if trial is None else delay_plots.loss_over_time_plot(trial, run.recovery)
            yield from _made((svg, f"Loss over time in one trial. {run_name(run)}."))


def reset_figures(part: ReportPart) -> Iterator[Figure]:
    """Loss over time in the first valid trial of each run of resets."""
    for run in part.document.runs:
        if run.reset is not None:
            trial = _first(_valid(part, run))
            svg = None if trial is None else delay_plots.loss_over_time_plot(trial)
            yield from _made((svg, f"Loss over time in one trial. {run_name(run)}."))


def loss_time_figures(part: ReportPart) -> Iterator[Figure]:
    """Loss over time in one trial of each frame loss run: the first at the highest load that lost frames."""
    for run in part.frame_loss_runs:
        lossy = [trial for trial in _valid(part, run) if any(any(row.loss_by_slice) for row in trial.directions)]
        if lossy:
            trial = max(lossy, key=lambda trial: (trial.frames_per_second, -trial.trial_number))
            load = words.format_count(trial.frames_per_second)
            caption = f"Loss over time in one trial at {load} frames/s. {run_name(run)}."
            yield from _made((delay_plots.loss_over_time_plot(trial), caption))


def _of_run(run: RunPart) -> Iterator[Figure]:
    """Plots of one run; histograms of its first load that could be offered."""
    name = run_name(run)
    yield from _made(
        (delay_plots.latency_load_plot(run), f"Latency against load. {name}."),
        (delay_plots.pdv_load_plot(run), f"PDV against load. {name}."),
    )
    point = next((point for point in run.delays if point.series), None)
    if point is not None:
        load = f"{words.format_count(point.frames_per_second)} frames/s, first repetition"
        yield from _made(
            (delay_plots.delay_histogram_plot(run, point), f"Delays of all frames at {load}. {name}."),
            (delay_plots.ipdv_histogram_plot(run, point), f"Inter packet delay variation at {load}. {name}."),
            (delay_plots.percentile_plot(run), f"Delay by percentile, first repetition of each load. {name}."),
        )


def _made(*drawn: tuple[str | None, str]) -> Iterator[Figure]:
    for svg, caption in drawn:
        made = make_figure(svg, caption)
        if made is not None:
            yield made


def _group_name(run: RunPart, *, several: bool) -> str:
    """What tells this group of runs from the others."""
    if not several:
        return ""
    count = words.connections_of(run)
    connections = "" if count is None else f", {words.format_count(count)} connections"
    mix = "" if run.mix.m == run.mix.n else f", foreground:background {words.format_mix(run)}"
    return f", {words.way_word(run, run.direction)}{connections}{mix}"


def _valid(part: ReportPart, run: RunPart) -> list[TrialRow]:
    return [trial for trial in part.trials if trial.run == run.number and trial.outcome in ("passed", "failed")]


def _first(trials: Sequence[TrialRow]) -> TrialRow | None:
    return next(iter(trials), None)
