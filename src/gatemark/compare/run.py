"""Compares folders: reads them, and puts together what is shown of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from gatemark.compare.condition import Limit, check_names, condition_of, read_limits
from gatemark.compare.document import COMPARISON_SCHEMA, ComparisonDocument
from gatemark.compare.judge import chosen, compared, matched
from gatemark.compare.report import render_comparison
from gatemark.compare.setup import differences
from gatemark.compare.sides import Side, read_sides
from gatemark.errors import ConfigError
from gatemark.results.store import ResultFolder, evaluating
from gatemark.results.this_machine import gatemark_version
from gatemark.units import parse_ratio

CONFIDENCE = "95%"


def compare_folders(
    folders: Sequence[Path],
    *,
    conditions: Sequence[str] = (),
    names: Sequence[str] = (),
    everything: bool = False,
    confidence: str = CONFIDENCE,
    page: Path | None = None,
) -> ComparisonDocument:
    """Compare result folders or folders of series with the first of them.

    Quantities are those that are the purpose of a run, or those with these `names`, or everything; what a condition
    names is always among them. Writes the `page` if one is named. Raises ConfigError or ResultError.
    """
    share = _confidence(confidence)
    limits = read_limits(conditions)
    with evaluating(", ".join(map(str, folders))):
        return _compared(folders, limits, names, share, page, everything=everything)


def _compared(
    folders: Sequence[Path],
    limits: Sequence[Limit],
    names: Sequence[str],
    share: Fraction,
    page: Path | None,
    *,
    everything: bool,
) -> ComparisonDocument:
    sides = read_sides(folders)
    rows = matched([side.quantities for side in sides])
    check_names(limits, names, {row.known.quantity.name.casefold() for row in rows})
    wanted = {name.casefold() for name in names} | {limit.name for limit in limits}
    quantities, intervals = compared(
        chosen(rows, wanted, everything=everything, headlines=not names),
        [side.about.label for side in sides],
        share,
    )
    document = ComparisonDocument(
        schema_=COMPARISON_SCHEMA,
        gatemark=gatemark_version(),
        sides=tuple(side.about for side in sides),
        differences=differences([_facts(side) for side in sides]),
        confidence_percent=float(100 * share),
        intervals=intervals,
        quantities=quantities,
        conditions=tuple(condition_of(limit, quantities) for limit in limits),
    )
    if page is not None:
        configurations = [side.members[0].configuration for side in sides if len(side.members) == 1]
        text = render_comparison(document, configurations if len(configurations) == len(sides) else ())
        ResultFolder(path=page.parent).write_text(page.name, text)
    return document


def _facts(side: Side) -> dict[tuple[str, ...], dict[tuple[str, str], object]]:
    return {
        tuple(f"{key} {value}" for key, value in member.where.items()): dict(member.facts) for member in side.members
    }


def _confidence(text: str) -> Fraction:
    try:
        share = parse_ratio(text)
    except ValueError as error:
        raise ConfigError(
            what=str(error), where=f"--confidence {text}", fix=f"write for example {CONFIDENCE}"
        ) from None
    if not Fraction(1, 2) <= share < 1:
        raise ConfigError(
            what="a confidence lies between 50% and 100%, without the latter",
            where=f"--confidence {text}",
            fix=f"write for example {CONFIDENCE}",
        )
    return share
