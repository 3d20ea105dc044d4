"""The report as one self-contained page: template, tables and inline SVG. Pure: folder contents in, text out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

import jinja2

from gatemark.report import model, plots, words
from gatemark.report.figures import (
    Figure,
    PageSection,
    loss_time_figures,
    make_figure,
    page_sections,
    run_name,
)
from gatemark.report.model import ReportPart, TrialRow
from gatemark.report.observed import observations, phase_one_failures
from gatemark.report.scale_up import scale_up_tables
from gatemark.report.self_error import ceiling_cell, ceiling_notes, no_self_test, reaches_ceiling
from gatemark.report.shares import share_rows
from gatemark.report.stateful import (
    CAPACITY_COLUMNS,
    CapacityTable,
    SeriesTable,
    TearDownRow,
    capacity_tables,
    series_tables,
    tear_down_rows,
)
from gatemark.results.schema import RunPart
from gatemark.units import format_duration_ns

SEARCHED = (
    "throughput",
    "frame_loss",
    "connection_establishment_rate",
    "validated_connection_establishment_rate",
    "connection_tracking_table_capacity",
)
"""Procedures whose path of loads is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One campaign as the template wants it."""

    part: ReportPart
    anchor: str
    timed_runs: tuple[RunPart, ...]
    """Runs whose trials have a length of their own."""
    searched_runs: tuple[RunPart, ...]
    """The first run of each procedure that searches."""
    series: tuple[SeriesTable, ...]
    tear_downs: tuple[TearDownRow, ...]
    capacities: tuple[CapacityTable, ...]
    observations: tuple[str, ...]
    behaviours: tuple[RunPart, ...]
    """Stateful runs with what the state table says about the gateway."""
    phase_one_failures: tuple[str, ...]
    connections_figure: Figure | None
    throughput_figure: Figure | None
    loss_figures: tuple[Figure, ...]
    sections: tuple[PageSection, ...]
    """Delays, bursts, recovery and reset."""
    ceiling_notes: tuple[str, ...]
    """Rates that are not below the Tester's own self-test."""
    search_figures: tuple[Figure, ...]
    lateness_figure: Figure | None


def render(parts: Sequence[ReportPart], *, title: str) -> str:
    """The whole page of one or several campaigns."""
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_template),
    )
    environment.filters.update(
        count=words.format_count, percent=words.format_percent, time=words.format_time, duration=format_duration_ns,
        tolerance=words.format_tolerance, bits=words.format_bits, ratio=words.format_ratio_text,
    )  # fmt: skip
    environment.globals.update(
        sizes=words.format_sizes, name_sizes=words.name_sizes, direction_label=words.direction_label,
        way_word=words.way_word, mix=words.format_mix, connections_of=words.connections_of, unit_of=words.unit_of,
        rate_cell=words.rate_cell, bounds_cell=words.bounds_cell, spread_cell=words.spread_cell,
        found_summary=words.found_summary, limit_text=words.limit_text, technology_words=words.technology_words,
        purposes=words.PURPOSES, procedures=words.PROCEDURES, outcome_mark=outcome_mark, run_name=run_name,
        capacity_columns=CAPACITY_COLUMNS, ceiling_cell=ceiling_cell, reaches_ceiling=reaches_ceiling,
    )  # fmt: skip
    pages = [_page(part, number) for number, part in enumerate(parts, start=1)]
    return environment.get_template("template.html.j2").render(
        title=title,
        pages=pages,
        several=len(pages) > 1,
        scale_ups=scale_up_tables([part.document for part in parts]),
        shares=share_rows([part.document for part in parts]),
    )


def _template(name: str) -> str:
    """Text of one of the package's templates."""
    return resources.files("gatemark.report").joinpath(name).read_text(encoding="utf-8")


def outcome_mark(trial: TrialRow) -> str:
    """Outcome with a sign that survives black-and-white print."""
    return {"passed": "● passed", "failed": "✕ failed", "invalid": "△ invalid"}.get(trial.outcome, "| cancelled")


def _page(part: ReportPart, number: int) -> Page:
    document = part.document
    sizes = {words.format_sizes(run) for run in part.throughput_runs}
    throughput = None if part.is_stateful and len(sizes) < 2 else plots.throughput_plot(part.throughput_runs)
    lateness = plots.lateness_plot(model.lateness_histogram(part.trials))
    return Page(
        part=part,
        anchor=f"part{number}",
        timed_runs=tuple(run for run in document.runs if run.goal.duration_ns is not None),
        searched_runs=tuple({run.procedure: run for run in reversed(document.runs) if run.goal.search}.values())[::-1],
        series=series_tables(document),
        tear_downs=tear_down_rows(document),
        capacities=capacity_tables(document),
        observations=observations(document),
        behaviours=tuple(run for run in document.runs if run.connections is not None and run.connections.behaviour),
        phase_one_failures=phase_one_failures(document),
        connections_figure=make_figure(
            plots.connections_plot(document.runs),
            "Rates against number of connections: median of the repetitions, bars from the 1st to the 99th percentile.",
        ),
        throughput_figure=make_figure(throughput, _throughput_caption(part)),
        loss_figures=(*_loss_figures(part), *loss_time_figures(part)),
        sections=page_sections(part),
        ceiling_notes=(*ceiling_notes(document), *no_self_test(document)),
        search_figures=tuple(
            figure
            for run in part.document.runs
            if (figure := _search_figure(part, run)) is not None
        ),
        lateness_figure=make_figure(
            lateness, "Lateness of every burst that the Tester sent, all trials: its own error in keeping the schedule."
        ),
    )  # fmt: skip


def _loss_figures(part: ReportPart) -> Iterator[Figure]:
    for run in part.frame_loss_runs:
        figure = make_figure(plots.frame_loss_plot(run), f"Frame loss against load. {run_name(run)}.")
        if figure is not None:
            yield figure


def _search_figure(part: ReportPart, run: RunPart) -> Figure | None:
    """Where loads are searched for or stepped through; other procedures have loads of their own."""
    if run.procedure not in SEARCHED:
        return None
    trials = [trial for trial in part.trials if trial.run == run.number]
    established = run.procedure not in words.MEASURES_FRAMES
    unit = "connections/s" if established else "frames/s in one direction"
    return make_figure(plots.search_plot(trials, unit=unit), f"Load of every trial. {run_name(run)}.")


def _throughput_caption(part: ReportPart) -> str:
    caption = "Throughput against frame size: median of the repetitions, bars from the 1st to the 99th percentile."
    if any(run.theoretical_maximum for run in part.throughput_runs):
        return f"{caption} Dashed: theoretical maximum of the medium (RFC 5180 appendix A.1)."
    return f"{caption} No line of the theoretical maximum is drawn; {part.medium}."
