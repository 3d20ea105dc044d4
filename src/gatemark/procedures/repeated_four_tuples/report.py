"""The section of the report about repeated four-tuples. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gatemark.procedures.repeated_four_tuples.result import RepeatedFourTuplesResult
from gatemark.report.columns import LIMITED_BY, SIZE
from gatemark.report.headline import not_made
from gatemark.report.model import ReportPart
from gatemark.report.rate_sentence import rate_sentence
from gatemark.report.table import Column, Plot, Section, plot, repetitions, table_of
from gatemark.report.trial_plots import search_plot
from gatemark.report.words import DASH, bounds_cell, format_count, rate_cell, run_name
from gatemark.results.document import ResultDocument
from gatemark.results.part import Figure
from gatemark.results.quantity import Quantity

TITLE = "Repeated four-tuples"
MEANING = (
    "Highest rate at which every frame arrived, if the connection of each is drawn at random from K of them,"
    " independently of all others. Some connections repeat and some never occur, so this is not a connection"
    " establishment rate: the table says how many there were. The expected number is K (1 \u2212 (1 \u2212 1/K)^F)"
    " after F frames, of which the last opens a connection in (1 \u2212 1/K)^F of all cases."
)


def section(document: ResultDocument, runs: Sequence[RepeatedFourTuplesResult]) -> Section:
    """Return the table of all numbers of connections."""
    del document
    rates = table_of(TITLE, COLUMNS, (run for run in runs if run.refused is None))
    return Section(title=TITLE, lead=(MEANING,), tables=(rates,), notes=not_made(runs))


def _rate(run: RepeatedFourTuplesResult) -> Quantity:
    return next(quantity for quantity in run.quantities() if quantity.is_headline)


def _expected(run: RepeatedFourTuplesResult) -> str:
    return DASH if run.expected_established is None else format_count(round(run.expected_established))


def _new_at_the_end(run: RepeatedFourTuplesResult) -> str:
    ratio = run.final_new_ratio
    if ratio is None:
        return DASH
    return f"{100 * ratio:.2f} %" if ratio >= 0.001 else f"{100 * ratio:.2g} %"


def _counts(figure: Figure) -> str:
    """Median, and the lowest and highest value of all repetitions."""
    known = [value for value in figure.values if value is not None]
    if figure.summary is None or not known:
        return DASH
    return f"{format_count(figure.summary.median)}\n{format_count(min(known))} {DASH} {format_count(max(known))}"


COLUMNS: tuple[Column[RepeatedFourTuplesResult], ...] = (
    Column("combi-\nnations K", lambda run: format_count(run.connection_count), names=True),
    Column("frames F", lambda run: format_count(run.drawn_frames), names=True),
    SIZE,
    Column("frames/s,\nmedian", lambda run: rate_cell(_rate(run)), strong=True),
    Column("passed /\nfailed", lambda run: bounds_cell(_rate(run))),
    Column("connections,\nexpected", _expected),
    Column("seen by the Tester,\nmedian, range", lambda run: _counts(run.established)),
    Column("counted by the gateway,\nmedian, range", lambda run: _counts(run.counted)),
    Column("new at\nthe end", _new_at_the_end),
    repetitions(lambda run: str(len(run.repetitions))),
    LIMITED_BY.of(_rate),
)


def sentence(part: ReportPart, run: RepeatedFourTuplesResult) -> str:
    """Return the rate in a sentence that says what it is not."""
    of = (
        f"with {format_count(run.drawn_frames)} frames of connections drawn from {format_count(run.connection_count)},"
        f" of which {_expected(run)} are expected to get one and {_new_at_the_end(run)} of the frames at the end open"
        " one (not a connection establishment rate)"
    )
    return rate_sentence(part, run, "Frame rate with repeated four-tuples", passed="rate", of=of)


def plots(part: ReportPart, runs: Sequence[RepeatedFourTuplesResult]) -> Iterator[Plot]:
    """Yield the path of each search."""
    for run in runs:
        drawing = search_plot(part.trials_of(run), unit="frames/s")
        yield from plot(drawing, f"Rate of every trial. {run_name(run)}.")
