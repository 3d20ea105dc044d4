"""What share of another gateway's rate a gateway reaches, over several campaigns. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from gatemark.report.plain_table import Column, PlainTable, Section
from gatemark.report.words import (
    PROCEDURES,
    connections_of,
    direction_label,
    format_count,
    format_mix,
    format_percent,
    format_sizes,
    format_tolerance,
    found_summary,
    unit_of,
)
from gatemark.results.schema import ResultDocument, RunPart
from gatemark.technology import TECHNOLOGIES

Key = tuple[object, ...]

NOTE = (
    "A share is the median as a part of the median of another campaign with the same traffic: of plain forwarding by as"
    " many processors if that was measured, else of the first campaign of the same technology."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRow:
    """One measurement beside the same measurement of another campaign."""

    campaign: str
    what: str
    unit: str
    median: str
    dispersion: str
    share: str
    """The median in per cent of the median of `reference`."""
    reference: str
    """Name of the other campaign."""


def share_rows(documents: Sequence[ResultDocument]) -> tuple[ShareRow, ...]:
    """Return a row for each run that another campaign made with the same traffic.

    The reference of a translator or NAT is a router with as many processors, if that was measured: the cost of
    translation. Otherwise it is the first campaign of the same technology with as many processors. Runs that the
    gateway did not limit have no share.
    """
    rows = []
    for document in documents:
        for run in document.runs:
            found = _reference(documents, document, run)
            if found is not None:
                rows.append(_row(document, run, *found))
    return tuple(rows)


def share_section(documents: Sequence[ResultDocument]) -> Section | None:
    """Return the shares as a table; None if no two campaigns can be compared."""
    rows = share_rows(documents)
    if not rows:
        return None
    columns = (
        Column(heading="campaign", numeric=False),
        Column(heading="measured", numeric=False),
        Column(heading="median", strong=True),
        Column(heading="dispersion"),
        Column(heading="share"),
        Column(heading="of campaign", numeric=False),
    )
    cells = tuple((r.campaign, f"{r.what}, {r.unit}", r.median, r.dispersion, r.share, r.reference) for r in rows)
    table = PlainTable(title="Campaigns compared", columns=columns, rows=cells, notes=(NOTE,))
    return Section(title="Campaigns compared", lead=(), tables=(table,))


def _row(document: ResultDocument, run: RunPart, other: ResultDocument, reference: RunPart) -> ShareRow:
    own, summary = _median(run), found_summary(run)
    share = 100 * own / _median(reference)
    return ShareRow(
        campaign=document.name,
        what=_what(run),
        unit=unit_of(run),
        median=format_count(float(own)),
        dispersion=format_percent(None if summary is None else summary.dispersion_percent),
        share=f"{float(share):.2f} %",
        reference=other.name,
    )


def _reference(
    documents: Sequence[ResultDocument], document: ResultDocument, run: RunPart
) -> tuple[ResultDocument, RunPart] | None:
    """Return the campaign and the run that a run is compared with; None if there is none but itself."""
    if not _median(run):
        return None
    equal = [other for other in documents if other.gateway.processors == document.gateway.processors]
    routers = [] if _is_router(document) else [other for other in equal if _is_router(other)]
    same = [other for other in equal if other.gateway.technology == document.gateway.technology]
    for other in (*routers, *same):
        for candidate in other.runs:
            if _key(candidate) == _key(run) and _counts_match(candidate, run) and _median(candidate):
                return None if other is document else (other, candidate)
    return None


def _is_router(document: ResultDocument) -> bool:
    return TECHNOLOGIES[document.gateway.technology].is_plain_forwarding


def _counts_match(reference: RunPart, run: RunPart) -> bool:
    """Whether the numbers of connections are equal; a router has none."""
    return connections_of(reference) in (None, connections_of(run))


def _median(run: RunPart) -> Fraction:
    """Return the median of what a search found; 0 where the gateway was not the limit."""
    found = None if run.limited_by != "gateway" or run.capacity is not None else found_summary(run)
    return Fraction(0) if found is None else Fraction(found.median)


def _key(run: RunPart) -> Key:
    """What must be equal for two runs to be the same measurement; the number of connections is looked at apart."""
    goal = run.goal
    return run.procedure, format_sizes(run), run.direction, format_mix(run), goal.loss_tolerance, goal.frame_timeout_ns


def _what(run: RunPart) -> str:
    words = [PROCEDURES[run.procedure], f"{format_sizes(run)} octets"]
    if run.procedure == "throughput":
        words.append(direction_label(run))
    if Fraction(run.goal.loss_tolerance):
        words.append(f"{format_tolerance(run.goal.loss_tolerance)} loss tolerated")
    if run.mix.m != run.mix.n:
        words.append(f"foreground:background {format_mix(run)}")
    if connections_of(run) is not None:
        words.append(f"{format_count(connections_of(run))} connections")
    return ", ".join(words)
