"""The section of the report about throughput. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.report.figure_tables import own_rate_tables
from gatemark.report.headline import not_made
from gatemark.report.model import ReportPart
from gatemark.report.plots import AXES, plot_against
from gatemark.report.rate_sentence import rate_sentence
from gatemark.report.self_error import ceiling_notes, no_self_test
from gatemark.report.table import Plot, Section, plot
from gatemark.report.trial_plots import search_plot
from gatemark.report.words import FROM_P1_TO_P99, direction_label, run_name
from gatemark.results.document import ResultDocument

MEANING = (
    "Highest load at which every frame came back, once and correct (RFC 1242 section 3.17, RFC 2544 section 26.1)."
    " Loads and rates are frames/s in one direction, also where both directions carry traffic; the sum of both is"
    " labelled so. Sizes are octets with FCS."
)
COLUMNS = (
    "p1 and p99 are the 1st and 99th percentile (RFC 8219 section 12); with fewer than 100 repetitions they are the"
    " smallest and the largest value. Dispersion is (p99 - p1) / median. “Passed / failed” is the highest load that"
    " passed in every repetition, and the highest of the lowest loads that failed in each."
)


def section(document: ResultDocument, runs: Sequence[ThroughputResult]) -> Section:
    """Return the table of all runs."""
    tables = own_rate_tables(document, runs)
    notes = (*ceiling_notes(document), *no_self_test(document), *not_made(runs), COLUMNS)
    return Section(title="Throughput", lead=(MEANING,), tables=tables, notes=notes, in_rate_tables=True)


def sentence(part: ReportPart, run: ThroughputResult) -> str:
    """Return the rate with everything that RFC 2544 section 26.1 asks for."""
    what = "Rate with loss tolerated (not RFC 2544 throughput)" if run.is_tolerant else "Throughput"
    return rate_sentence(part, run, what, passed="load", of=direction_label(run))


def plots(part: ReportPart, runs: Sequence[ThroughputResult]) -> Iterator[Plot]:
    """Yield throughput against frame size with the theoretical maximum, and the path of each search."""
    rows = [row for row in part.document.figures() if row.quantity.run in {run.number for run in runs}]
    limits = _limits(runs)
    sizes = {AXES["frame_size"].place(row) for row in rows}
    caption = f"Throughput against frame size: median of the repetitions, bars {FROM_P1_TO_P99}."
    if limits:
        caption = f"{caption} Dashed: theoretical maximum of the medium (RFC 5180 appendix A.1)."
    elif any(run.theoretical_maximum is not None for run in runs):
        caption = (
            f"{caption} No line of the theoretical maximum is drawn: frames of one size have several, see the table."
        )
    else:
        caption = f"{caption} No line of the theoretical maximum is drawn; {part.medium}."
    if not part.is_stateful or len(sizes) > 1:
        drawing = plot_against(rows, "frame_size", name="throughput against frame size", limits=limits, places_min=1)
        yield from plot(drawing, caption)
    for run in runs:
        drawing = search_plot(part.trials_of(run), unit="frames/s")
        yield from plot(drawing, f"Load of every trial. {run_name(run)}.")


def _limits(runs: Sequence[ThroughputResult]) -> dict[int, int]:
    """Return the theoretical maximum of each frame size; nothing if it depends on mix or direction as well."""
    limits: dict[int, int] = {}
    for run in runs:
        if run.theoretical_maximum is not None:
            octets, limit = run.frame_sizes.ipv4 or run.frame_sizes.ipv6 or 0, run.theoretical_maximum.frames_per_second
            if limits.setdefault(octets, limit) != limit:
                return {}
    return limits
