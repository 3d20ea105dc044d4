"""The section of the report about back-to-back frames. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gatemark.procedures.back_to_back.result import BackToBackResult
from gatemark.report.columns import DIRECTION, TRAFFIC
from gatemark.report.event_words import MS
from gatemark.report.headline import context_of, not_made
from gatemark.report.model import ReportPart
from gatemark.report.table import Column, Plot, Section, table_of
from gatemark.report.words import DASH, direction_label, format_count, format_in, limited
from gatemark.results.document import ResultDocument
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.units import format_duration_ns

TITLE = "Back-to-back frames"
MEANING = (
    "Longest burst at line rate of which no frame was lost (RFC 2544 section 26.4, RFC 9004). Corrected buffer time is"
    " implied buffer time less what the gateway forwarded meanwhile, at its throughput (RFC 9004 section 6.4)."
)


def section(document: ResultDocument, runs: Sequence[BackToBackResult]) -> Section:
    """Return the table of all runs."""
    del document
    search = "binary search"
    if runs[0].verifications:
        more = runs[0].verifications
        search = f"binary search with loss verification, {more} more tries of a burst that lost frames"
    how = f"Found by {search}; {format_duration_ns(runs[0].wait_ns)} of waiting after each burst."
    measured = table_of(TITLE, COLUMNS, (run for run in runs if run.bursts))
    return Section(title=TITLE, lead=(MEANING, how), tables=(measured,), notes=not_made(runs))


def _average(run: BackToBackResult) -> str:
    return f"no result: {no_average(run)}" if run.average_frames is None else format_count(run.average_frames)


def _spread(run: BackToBackResult) -> str:
    if run.average_frames is None:
        return DASH
    return f"{format_count(run.minimum_frames)} {DASH} {format_count(run.maximum_frames)}"


def no_average(run: BackToBackResult) -> str:
    """Why a run has no average."""
    if run.limited_by in NOT_THE_GATEWAY:
        at = run.lowest_tester_limit
        what = limited(run.limited_by)
        return what if at is None else f"{what} at {format_count(at)} frames"
    if run.refused is not None:
        return "the search ended on lost frames that no buffer has to do with"
    return f"the search ended at its ceiling of {format_count(run.ceiling_frames)} frames"


COLUMNS: tuple[Column[BackToBackResult], ...] = (
    *TRAFFIC,
    DIRECTION,
    Column("average burst,\nframes", _average, strong=True),
    Column(f"minimum {DASH} maximum", _spread),
    Column("standard\ndeviation", lambda run: format_count(run.standard_deviation_frames)),
    Column("searches", lambda run: str(len(run.bursts))),
    Column(
        "ceiling, frames\nstep",
        lambda run: f"{format_count(run.ceiling_frames)}\n{format_count(run.resolution_frames)}",
    ),
    Column(
        "line rate, frames/s\nthroughput", lambda run: f"{format_count(run.line_rate)}\n{format_count(run.throughput)}"
    ),
    Column("implied buffer\ntime, ms", lambda run: format_in(run.implied_ns, MS)),
    Column("corrected buffer\ntime, ms", lambda run: format_in(run.corrected_ns, MS), strong=True),
)


def sentence(part: ReportPart, run: BackToBackResult) -> str:
    """Return the average of the longest bursts and the buffer time that follows (RFC 9004 sections 6.3 and 6.4)."""
    context = f"{context_of(part.document, run)}, {direction_label(run)}"
    if run.average_frames is None:
        return f"Back-to-back frames not measured: {no_average(run)}; {context}."
    several = "es" if len(run.bursts) != 1 else ""
    return (
        f"Back-to-back frames: {format_count(run.average_frames)} frames at {format_count(run.line_rate)} frames/s"
        f" on average, {format_count(run.minimum_frames)} to {format_count(run.maximum_frames)} in"
        f" {len(run.bursts)} search{several}, step {format_count(run.resolution_frames)}; buffer time"
        f" {format_in(run.corrected_ns, MS)} ms corrected, {format_in(run.implied_ns, MS)} ms implied"
        f" (RFC 9004 section 6.4); {context}."
    )


def plots(part: ReportPart, runs: Sequence[BackToBackResult]) -> Iterator[Plot]:
    """Yield nothing: the searches are short, and their bursts are in the table of trials."""
    del part, runs
    yield from ()
