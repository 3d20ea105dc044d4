"""The report of a series as one self-contained page. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gatemark.report.page import fill
from gatemark.report.table import Plot
from gatemark.report.words import technology_words
from gatemark.results.document import ResultDocument
from gatemark.series.degradation import degradation_section
from gatemark.series.document import SeriesColumn, SeriesDocument
from gatemark.series.report import OUTCOMES, section


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A column that has still to be measured."""

    column: SeriesColumn
    is_under_way: bool
    expected_at: str | None
    """When it is expected to be measured, as a time in UTC; None while nobody measures."""


def render_series(
    document: SeriesDocument,
    results: Mapping[int, ResultDocument],
    plots: Sequence[Plot],
    *,
    waiting: Sequence[Waiting],
    text: str,
) -> str:
    """Return the page of a series; `text` is its campaign file."""
    gateways = dict.fromkeys(
        f"{result.gateway.name} {result.gateway.version}".strip() + f", {technology_words(result.gateway)}"
        for result in results.values()
    )
    claims = dict.fromkeys(
        said for result in results.values() for said in (result.claim.sentence, result.claim.informational) if said
    )
    return fill(
        "series.html.j2",
        series=document,
        gateways=tuple(gateways),
        section=section(document),
        degradation=degradation_section(document),
        plots=tuple(plots),
        waiting=tuple(waiting),
        words=OUTCOMES,
        results=results,
        claims=tuple(claims),
        deviations=tuple(_deviations(document, results)),
        text=text,
    )


def _deviations(document: SeriesDocument, results: Mapping[int, ResultDocument]) -> list[str]:
    """Return where the columns leave the RFCs: each sentence once, with the columns if it is not of all."""
    columns: dict[str, list[int]] = {}
    for number, result in sorted(results.items()):
        for sentence in dict.fromkeys((*result.claim.unmet, *(deviation.sentence for deviation in result.deviations))):
            columns.setdefault(sentence, []).append(number)
    return [
        sentence if len(numbers) == len(results) else f"{sentence} (columns {', '.join(map(str, numbers))})"
        for sentence, numbers in columns.items()
    ]
