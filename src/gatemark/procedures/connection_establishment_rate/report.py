"""The section of the report about connection establishment rates, validated or not. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

from gatemark.procedures.connection_establishment_rate.result import EstablishmentResult
from gatemark.report.columns import TRAFFIC
from gatemark.report.figure_tables import own_rate_tables
from gatemark.report.headline import not_made
from gatemark.report.model import ReportPart
from gatemark.report.rate_sentence import rate_sentence
from gatemark.report.table import Column, Plot, Section, Table, plot, table_of
from gatemark.report.trial_plots import search_plot
from gatemark.report.words import (
    DASH,
    capital,
    format_count,
    format_ratio,
    rate_cell,
    run_name,
    spread_cell,
)
from gatemark.results.document import ResultDocument

SHORT_S = 1
"""A test phase 1 below this is short, seconds: queues of common gateways hold a thousand frames and more."""

MEANING = (
    "Highest rate at which every new connection was established: each arrived translated. Of a validated rate each also"
    " answered afterwards, at alpha times the rate (RFC 9693 sections 4.5 and 4.6)."
)


def section(document: ResultDocument, runs: Sequence[EstablishmentResult]) -> Section:
    """Return the table of all runs of one of the two procedures."""
    tables = own_rate_tables(document, runs)
    if runs[0].is_validated:
        tables += tuple(_validation_tables(document, runs))
    title = runs[0].procedure_words
    notes = (*(_alpha_note(run) for run in runs if run.alphas_tried), *_queue_notes(document, runs), *not_made(runs))
    return Section(title=capital(title), lead=(MEANING,), tables=tables, notes=notes, in_rate_tables=True)


def _validation_tables(document: ResultDocument, runs: Sequence[EstablishmentResult]) -> Iterator[Table]:
    """Yield the rates side by side: one column without validation and one for each alpha, a row for each rest."""
    plain = [run for run in document.runs if isinstance(run, EstablishmentResult) and not run.is_validated]
    alphas = sorted({run.alpha for run in runs if run.alpha is not None}, reverse=True)
    if len(alphas) + bool(plain) < 2 or any(run.is_searched_alpha for run in runs):
        return
    placed: dict[tuple[object, ...], dict[Fraction | None, EstablishmentResult]] = {}
    for run in (*plain, *runs):
        if run.quantities():
            placed.setdefault(tuple(run.coordinates().values()), {})[run.alpha] = run
    headings: dict[Fraction | None, str] = {None: "not\nvalidated"} if plain else {}
    headings |= {alpha: f"alpha\n{format_ratio(alpha)}" for alpha in alphas}
    columns = (
        *(column.of(_any_run) for column in TRAFFIC),
        *(Column(heading, _cell_of(alpha)) for alpha, heading in headings.items()),
    )
    yield table_of(f"Validation, connections/s: median, p1 {DASH} p99", columns, placed.values())


_ByAlpha = Mapping[Fraction | None, EstablishmentResult]


def _any_run(runs: _ByAlpha) -> EstablishmentResult:
    return next(iter(runs.values()))


def _cell_of(alpha: Fraction | None) -> Callable[[_ByAlpha], str]:
    """Return what writes the rate at one alpha, with its spread."""

    def cell(runs: _ByAlpha) -> str:
        if alpha not in runs:
            return DASH
        (rate,) = runs[alpha].quantities()
        return rate_cell(rate) if runs[alpha].rate is None else f"{rate_cell(rate)}\n{spread_cell(rate)}"

    return cell


def _queue_notes(document: ResultDocument, runs: Sequence[EstablishmentResult]) -> Iterator[str]:
    """Tell where test phase 1 is so short that what a gateway keeps in its queues is much of it."""
    short = [run for run in runs if run.rate is not None and (run.connection_count or 0) < SHORT_S * run.rate.median]
    if short:
        counts = " and ".join(dict.fromkeys(format_count(run.connection_count) for run in short))
        yield (
            f"With {counts} connections test phase 1 takes less than {SHORT_S} s at the rate found. A gateway whose"
            " queues hold Q of N frames then shows N / (N - Q) times the rate that it sustains; with more connections"
            " it shows less."
        )
    queued = None if document.host is None else document.host.queue_frames
    if queued is None:
        return
    for run in short:
        count = run.connection_count or 0
        if run.rate is not None and count > queued:
            rate, sustained = run.rate.median, int(run.rate.median * (count - queued) / count)
            yield (
                f"Run {run.number}: the smallest queue of the gateway holds {format_count(queued)} frames. If it was"
                f" full at the end, {format_count(rate)} connections/s are {format_count(sustained)} sustained."
            )


def _alpha_note(run: EstablishmentResult) -> str:
    tried = "; ".join(
        f"{format_ratio(tried.alpha)}: {format_count(tried.lower_bound)} connections/s" for tried in run.alphas_tried
    )
    count = format_count(run.connection_count)
    return (
        f"Run {run.number}, {count} connections: alpha was searched for. {tried}. {format_ratio(run.alpha)} was chosen."
    )


def sentence(part: ReportPart, run: EstablishmentResult) -> str:
    """Return the rate in a sentence; it is never called throughput."""
    what = "Maximum connection establishment rate"
    if run.is_tolerant:
        what = f"Connection establishment rate with up to {format_ratio(run.goal.loss_tolerance)} lost"
    if run.is_validated:
        what = f"Validated maximum connection establishment rate (alpha {format_ratio(run.alpha)})"
    return rate_sentence(part, run, what, passed="rate", of=f"with {format_count(run.connection_count)} connections")


def plots(part: ReportPart, runs: Sequence[EstablishmentResult]) -> Iterator[Plot]:
    """Yield the path of each search."""
    for run in runs:
        drawing = search_plot(part.trials_of(run), unit="connections/s")
        yield from plot(drawing, f"Rate of every trial. {run_name(run)}.")
