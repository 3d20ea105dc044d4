"""The figures that the report shows large: the headline quantities of its runs, and the context of a run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gatemark.report.words import (
    at_least,
    capital,
    direction_label,
    format_count,
    format_in,
    format_mix,
    format_percent,
    format_sizes,
    limited,
    name_sizes,
    rate_cell,
    say_sizes,
    technology_words,
    unit_of_times,
)
from gatemark.results.document import ResultDocument
from gatemark.results.part import NOT_THE_GATEWAY, LimitedBy
from gatemark.results.quantity import Quantity
from gatemark.results.run import RunResult
from gatemark.results.unit import unit_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """One figure shown large, and what it is."""

    run: int
    figure: str
    unit: str
    """Empty if the figure is not a number."""
    label: str
    limited_by: LimitedBy


def headlines(document: ResultDocument) -> tuple[Headline, ...]:
    """Return the figures that are shown large: one per run; of a series over connections, the first and the last.

    Runs that were not made have none; losses only where nothing else was measured.
    """
    measured = [run for run in document.runs if run.refused is None]
    shown = {run.number: figures for run in measured if (figures := [q for q in run.quantities() if q.is_headline])}
    rates = {number: figures for number, figures in shown.items() if figures[0].unit != "%"} or shown
    series: dict[tuple[str, str, str, str], list[RunResult]] = {}
    for run in measured:
        if run.number in rates:
            key = (run.procedure, run.direction, format_sizes(run), format_mix(run))
            series.setdefault(key, []).append(run)
    ends = {run.number for runs in series.values() for run in (runs[0], runs[-1])}
    return tuple(_headline(run, rates[run.number]) for run in measured if run.number in ends)


def _headline(run: RunResult, quantities: Sequence[Quantity]) -> Headline:
    """Return the worst of the directions and classes, only if each of them is known."""
    first = quantities[0]
    load = first.coordinates.get("load_frames_per_second")
    named = [first.name]
    if first.unit in ("ns", "%") and load is not None:
        named.append(f"at {format_count(int(load))} frames/s")
    if run.connection_count is not None:
        named.append(f"{format_count(run.connection_count)} connections")
    named.append(say_sizes(run) if run.frame_sizes.tunnel else f"{say_sizes(run)} (IPv4 / IPv6)")
    if unit_named(first.unit).has_direction:
        named.append(direction_label(run))
    figure, unit = _figure(quantities)
    return Headline(run=run.number, figure=figure, unit=unit, label=", ".join(named), limited_by=run.limited_by)


def _figure(quantities: Sequence[Quantity]) -> tuple[str, str]:
    first = quantities[0]
    values = [quantity.value for quantity in quantities if quantity.value is not None]
    if not values and first.limited_by in NOT_THE_GATEWAY:
        return limited(first.limited_by), ""
    if len(values) < len(quantities):
        if first.upper_bound is not None or first.lower_bound is not None:
            return rate_cell(first), "" if at_least(first) is None else first.unit
        return "not known", ""
    worst = max(values) if first.better == "lower" else min(values)
    if first.unit == "ns":
        unit, unit_ns = unit_of_times([worst])
        return format_in(worst, unit_ns), unit
    if first.unit == "%":
        return f"{format_percent(worst)} lost", ""
    least = "≥ " if first.limited_by == "maximum" else ""
    if unit_named(first.unit).is_rate and 2 * worst % 1:  # a quotient; a median of whole rates ends in .5 at most
        worst = round(worst)
    figure = f"{least}{format_count(worst)}"
    return figure if all(quantity.is_certain for quantity in quantities) else f"({figure})", first.unit


def context_of(document: ResultDocument, run: RunResult, *, with_connections: bool = True) -> str:
    """Protocol, frame sizes, technology, and what else the traffic was."""
    protocol = "UDP" if run.connections is None else "UDP only (RFC 9693 section 8)"
    mix = f", foreground:background {format_mix(run)}" if run.mix.is_mixed else ""
    words = f"{protocol}, {name_sizes(run)} frames, {technology_words(document.gateway)}{mix}"
    if run.connection_count is not None and with_connections:
        words += f", {format_count(run.connection_count)} connections"
    return words


def not_made(runs: Iterable[RunResult]) -> tuple[str, ...]:
    """Say why a run has no figures, for each such run."""
    return tuple(
        f"Run {run.number}, {say_sizes(run)}, {direction_label(run)}: not made, {run.refused.rstrip('.')}."
        for run in runs
        if run.refused is not None
    )


def refusal(document: ResultDocument, run: RunResult) -> str:
    """Return the sentence of a run that was not made."""
    assert run.refused is not None, "only of a run that was refused"
    what = run.procedure_words
    context = f"{context_of(document, run)}, {direction_label(run)}"
    return f"{capital(what)} not measured: {run.refused.rstrip('.')}; {context}."
