"""The report of a series as one self-contained page. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from urllib.parse import quote

from markupsafe import Markup

from gatemark.report.page import fill
from gatemark.report.table import Column, Plot, Section, table_of
from gatemark.report.words import format_count, technology_words
from gatemark.results.document import ResultDocument
from gatemark.series.degradation import degradation_section
from gatemark.series.document import SeriesColumn, SeriesDocument
from gatemark.series.report import OUTCOMES, section
from gatemark.series.services import services_section


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
    gateways = {number: _gateway_words(result) for number, result in results.items()}
    claims = dict.fromkeys(
        said for result in results.values() for said in (result.claim.sentence, result.claim.informational) if said
    )
    return fill(
        "series.html.j2",
        series=document,
        gateways=tuple(dict.fromkeys(gateways.values())),
        services=services_section(document),
        section=section(document),
        degradation=degradation_section(document),
        plots=tuple(plots),
        waiting=tuple(waiting),
        columns=_columns(document, gateways),
        words=OUTCOMES,
        claims=tuple(claims),
        deviations=tuple(_deviations(document, results)),
        text=text,
    )


def _gateway_words(result: ResultDocument) -> str:
    name = f"{result.gateway.name} {result.gateway.version}".strip()
    return f"{name}, {technology_words(result.gateway)}"


def _columns(document: SeriesDocument, gateways: Mapping[int, str]) -> Section:
    """Return the table of the columns, each with its gateway and a link to its report if it has one."""
    link = Markup('<a href="{}/report.html">{}</a>')
    several = len(set(gateways.values())) > 1

    def report(column: SeriesColumn) -> str:
        return link.format(quote(column.folder), column.folder) if column.number in gateways else ""

    columns: tuple[Column[SeriesColumn], ...] = (
        Column("column", lambda column: str(column.number), names=True),
        Column("title", lambda column: column.title, numeric=False),
        Column(
            "gateway", lambda column: gateways.get(column.number, "") if several else "", numeric=False, optional=True
        ),
        Column("sets", lambda column: "\n".join(starmap(_setting, column.settings.items())), numeric=False),
        Column("outcome", lambda column: OUTCOMES[column.outcome], numeric=False),
        Column("trials", lambda column: format_count(column.trials)),
        Column("invalid", lambda column: format_count(column.invalid_trials)),
        Column("report", report, numeric=False),
    )
    return Section(title="", tables=(table_of("", columns, document.columns),))


def _setting(key: str, value: object) -> str:
    return f"{key} = {json.dumps(value, ensure_ascii=False)}"


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
