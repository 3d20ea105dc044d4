"""The report as one self-contained page: template, tables and inline SVG. Pure: folder contents in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import jinja2
from markupsafe import Markup

from gatemark.report import model, plots
from gatemark.report.model import ReportPart, TrialRow
from gatemark.results.schema import RunPart
from gatemark.units import format_duration_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A plot with its caption."""

    svg: Markup
    caption: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One campaign as the template wants it."""

    part: ReportPart
    anchor: str
    throughput_figure: Figure | None
    loss_figures: tuple[Figure, ...]
    search_figures: tuple[Figure, ...]
    lateness_figure: Figure | None


def render(parts: Sequence[ReportPart], *, title: str) -> str:
    """The whole page of one or several campaigns."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters.update(
        count=model.format_count, percent=model.format_percent, time=model.format_time, duration=format_duration_ns,
        tolerance=model.format_tolerance, bits=model.format_bits,
    )  # fmt: skip
    environment.globals.update(
        sizes=model.format_sizes, name_sizes=model.name_sizes, direction_label=model.direction_label,
        mix=model.format_mix,
        rate_cell=model.rate_cell, bounds_cell=model.bounds_cell, spread_cell=model.spread_cell,
        limit_text=model.limit_text, modes=model.MODES, purposes=model.PURPOSES, outcome_mark=outcome_mark,
        run_name=run_name,
    )  # fmt: skip
    source = resources.files("gatemark.report").joinpath("template.html.j2").read_text(encoding="utf-8")
    pages = [_page(part, number) for number, part in enumerate(parts, start=1)]
    return environment.from_string(source).render(title=title, pages=pages, several=len(pages) > 1)


def outcome_mark(trial: TrialRow) -> str:
    """Outcome with a sign that survives black-and-white print."""
    return {"passed": "● passed", "failed": "✕ failed", "invalid": "△ invalid"}.get(trial.outcome, "| cancelled")


def run_name(run: RunPart) -> str:
    """A run in a few words for captions."""
    words = f"Run {run.number}: {model.name_sizes(run)}, {run.direction}"
    return words if run.mix.m == run.mix.n else f"{words}, foreground:background {model.format_mix(run)}"


def _page(part: ReportPart, number: int) -> Page:
    throughput = plots.throughput_plot(part.throughput_runs())
    lateness = plots.lateness_plot(model.lateness_histogram(part.trials))
    return Page(
        part=part,
        anchor=f"part{number}",
        throughput_figure=_figure(throughput, _throughput_caption(part)),
        loss_figures=tuple(
            figure
            for run in part.frame_loss_runs()
            if (figure := _figure(plots.frame_loss_plot(run), f"Frame loss against load. {run_name(run)}.")) is not None
        ),
        search_figures=tuple(
            figure
            for run in part.document.runs
            if (figure := _search_figure(part, run)) is not None
        ),
        lateness_figure=_figure(
            lateness, "Lateness of every burst that the Tester sent, all trials: its own error in keeping the schedule."
        ),
    )  # fmt: skip


def _search_figure(part: ReportPart, run: RunPart) -> Figure | None:
    trials = [trial for trial in part.trials if trial.run == run.number]
    return _figure(plots.search_plot(trials), f"Load of every trial. {run_name(run)}.")


def _throughput_caption(part: ReportPart) -> str:
    words = "Throughput against frame size: median of the repetitions, bars from the 1st to the 99th percentile."
    if any(run.theoretical_maximum for run in part.throughput_runs()):
        return f"{words} Dashed: theoretical maximum of the medium (RFC 5180 appendix A.1)."
    return f"{words} No line of the theoretical maximum is drawn; {part.medium}."


def _figure(svg: str | None, caption: str) -> Figure | None:
    return None if svg is None else Figure(svg=Markup(svg), caption=caption)
