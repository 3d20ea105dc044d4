"""The report as one self-contained page: template, tables and inline SVG. Pure: folder contents in, text out."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from operator import attrgetter
from typing import TypeVar

import jinja2

from gatemark.harmless import visible
from gatemark.report import model, words
from gatemark.report.comparison import comparison_plots, comparison_section
from gatemark.report.counters import counter_section
from gatemark.report.damages import damages_section
from gatemark.report.headline import headlines
from gatemark.report.losses import loss_plots, losses_section
from gatemark.report.model import ReportPart, TrialRow
from gatemark.report.observed import behaviour_section, observations, phase_one_failures, suspect_words
from gatemark.report.plots import lateness_plot, plot_against
from gatemark.report.series import series_section
from gatemark.report.table import Column, Plot, Section, plot, table_of
from gatemark.report.telemetry import telemetry_plots, telemetry_section
from gatemark.report.trial_table import trial_section
from gatemark.results.part import ReasonPart
from gatemark.results.search import RateResult
from gatemark.results.unit import unit_named
from gatemark.trial.named_counts import FAULTS
from gatemark.trial.record import BootFacts
from gatemark.units import format_duration_ns

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A section with its plots."""

    section: Section
    plots: tuple[Plot, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignReport:
    """One campaign with what its procedures say about it."""

    part: ReportPart
    sentences: tuple[str, ...]
    """One for each run; each can stand alone (RFC 2544 section 26.1)."""
    chapters: tuple[Chapter, ...]
    """One for each procedure, in the order in which they were run."""


def render(reports: Sequence[CampaignReport], *, title: str) -> str:
    """The complete page of one or several campaigns."""
    pages = [_page(report, number) for number, report in enumerate(reports, start=1)]
    documents = [report.part.document for report in reports]
    return fill(
        "page.html.j2",
        technology_words=words.technology_words,
        cores_words=words.cores_words,
        suspect_words=suspect_words,
        title=title,
        pages=pages,
        several=len(pages) > 1,
        overview=comparison_section(documents),
        overview_plots=tuple(comparison_plots(documents)) if len(pages) > 1 else (),
    )


def plots_of(reports: Sequence[CampaignReport]) -> Iterator[Plot]:
    """Yield the plots of the page, in its order."""
    if len(reports) > 1:
        yield from comparison_plots([report.part.document for report in reports])
    for report in reports:
        yield from (
            drawn
            for chapter in (*_series(report.part), *report.chapters, *_losses(report.part))
            for drawn in chapter.plots
        )
        yield from _lateness(report.part)
        yield from telemetry_plots(report.part)


def fill(template: str, **values: object) -> str:
    """Return a page from one of the package's templates."""
    return _environment().get_template(template).render(**values)


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=True,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_template),
    )
    environment.filters.update(count=words.format_count, duration=format_duration_ns, share=words.format_share)
    return environment


def _visible(value: object) -> object:
    return type(value)(visible(value)) if isinstance(value, str) else value


def _template(name: str) -> str:
    """Text of one of the package's templates."""
    return resources.files("gatemark.report").joinpath(name).read_text(encoding="utf-8")


def _page(report: CampaignReport, number: int) -> dict[str, object]:
    """Return what the template shows of one campaign."""
    part, document = report.part, report.part.document
    searched = {run.procedure: run for run in reversed(document.runs) if isinstance(run, RateResult)}
    return {
        "part": part,
        "anchor": f"part{number}",
        "headlines": headlines(document),
        "sentences": report.sentences,
        "chapters": (*_series(part), *report.chapters, *_losses(part)),
        "observations": observations(document),
        "behaviour": behaviour_section(document),
        "phase_one_failures": phase_one_failures(document),
        "counters": counter_section(part.trials),
        "lateness_plots": tuple(_lateness(part)),
        "invalid": _section(reasons("invalid because"), document.validity.reasons),
        "suspect": _section(reasons("suspect because"), () if document.host is None else document.host.reasons),
        "booted": _section(BOOTED, [trial for trial in part.trials if trial.boot is not None]),
        "faults": _section(FAULTS_COLUMNS, part.faults()),
        "trials": trial_section(part),
        "telemetry": telemetry_section(part),
        "telemetry_plots": tuple(telemetry_plots(part)),
        "stateful_runs": tuple(run for run in document.runs if run.connections is not None),
        "searched_runs": tuple(searched.values())[::-1],
    }


def _section(columns: Iterable[Column[R]], rows: Iterable[R]) -> Section:
    """Return a section of one table without a title."""
    return Section(title="", tables=(table_of("", columns, rows),))


def reasons(heading: str) -> tuple[Column[ReasonPart], ...]:
    """Return the columns of reasons for which trials did not count."""
    return (
        Column("trials", lambda row: str(row.trials)),
        Column(heading, lambda row: row.reason, numeric=False),
    )


FAULTS_COLUMNS: tuple[Column[tuple[str, int]], ...] = (
    Column("reason", lambda row: row[0], numeric=False),
    Column("frames", lambda row: words.format_count(row[1])),
    Column(
        "the frame that arrived", lambda row: FAULTS.get(row[0], "").replace("`", "").replace("*", ""), numeric=False
    ),
)


BOOT: tuple[Column[BootFacts], ...] = (
    Column("booted at", lambda boot: boot.began_at, numeric=False),
    Column("back after", lambda boot: f"{boot.seconds:.0f} s"),
    Column("why", lambda boot: boot.why, numeric=False),
)
BOOTED: tuple[Column[TrialRow], ...] = (
    Column("trial", lambda trial: str(trial.trial_number)),
    Column("run", lambda trial: str(trial.run)),
    *(column.of(attrgetter("boot")) for column in BOOT),
)


def _lateness(part: ReportPart) -> Iterator[Plot]:
    yield from plot(
        lateness_plot(model.lateness_histogram(part.trials), _edge),
        "Lateness of every burst that the Tester sent, all trials: its own error in keeping the schedule.",
    )


def _losses(part: ReportPart) -> Iterator[Chapter]:
    """Why frames were lost and where they were damaged, where anything can be said."""
    damages, losses = damages_section(part.document), losses_section(part.document)
    if damages.tables:
        yield Chapter(section=damages)
    if losses.tables:
        yield Chapter(section=losses, plots=tuple(loss_plots(part)))


def _series(part: ReportPart) -> Iterator[Chapter]:
    """The rates of a stateful gateway over its numbers of connections."""
    section = series_section(part.document)
    if section is None:
        return
    headline = [row for row in part.document.figures() if row.quantity.is_headline]
    rates = [row for row in headline if unit_named(row.quantity.unit).is_rate]
    drawn = plot(
        plot_against(rates, "connections", name="rates against number of connections"),
        f"Rates against number of connections: median of the repetitions, bars {words.FROM_P1_TO_P99}.",
    )
    yield Chapter(section=section, plots=drawn)


def _edge(nanoseconds: int) -> str:
    return "∞" if nanoseconds >= model.UNBOUNDED_NS else words.format_time(nanoseconds)
