"""Tables of latency and delay variation (RFC 8219 sections 7.2 and 7.3) as rows of words. Pure.

Page and terminal print them. Times are in milliseconds, or in microseconds where all of a table are below 1 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gatemark.report.delay_statements import delay_meaning
from gatemark.report.plain_table import Column, PlainTable, Section
from gatemark.report.self_error import clock_notes, error_cells, error_columns, error_notes
from gatemark.report.words import (
    DASH,
    connections_of,
    format_count,
    format_in,
    format_mix,
    format_percent,
    format_sizes,
    format_spread_in,
    unit_of_times,
    way_word,
)
from gatemark.results.schema import DelayPointPart, DelaySeriesPart, FigurePart, ResultDocument, RunPart
from gatemark.units import format_duration_ns

NOT_MEASURABLE = "not measurable"

PERCENTILES = (
    ("minimum_ns", "minimum"),
    ("p50_ns", "50 %"),
    ("p90_ns", "90 %"),
    ("p99_ns", "99 %"),
    ("p999_ns", "99.9 %"),
    ("p9999_ns", "99.99 %"),
    ("p99999_ns", "99.999 %"),
    ("maximum_ns", "maximum"),
)
"""Delays of all frames: key and heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row before it is put in words: a direction and class at a load, or a load that could not be offered."""

    run: RunPart
    point: DelayPointPart
    series: DelaySeriesPart | None


def delay_section(document: ResultDocument) -> Section | None:
    """Everything about the delays of a campaign; None if it measured none."""
    if not any(run.procedure == "delay" for run in document.runs):
        return None
    tables = (_latency(document), _pdv(document), _ipdv(document), _all_frames(document))
    return Section(
        title="Delays",
        lead=(delay_meaning(document),),
        tables=tuple(table for table in tables if table is not None),
        notes=(*error_notes(document), *clock_notes(document), *_share_notes(document), *_refusals(document)),
    )


def _latency(document: ResultDocument) -> PlainTable | None:
    lines = _lines(document, lambda one: one.latency is not None)
    figures = [
        figure
        for line in lines
        if line.series is not None and (found := line.series.latency) is not None
        for figure in (found.typical_ns, found.worst_case_ns)
    ]
    first = next((line.series.latency for line in lines if line.series and line.series.latency), None)
    if first is None:
        return None

    def cells(one: DelaySeriesPart, unit_ns: int) -> tuple[str, ...]:
        if one.latency is None:
            return "", "", ""
        return (
            _figure(one.latency.typical_ns, unit_ns, _tags_lost(one, one.latency.typical_ns)),
            _figure(one.latency.worst_case_ns, unit_ns, _tags_lost(one, one.latency.worst_case_ns)),
            f"{format_count(sum(one.latency.tags_lost))}\nof {format_count(sum(one.latency.tags))}",
        )

    return _table(
        document,
        "Latency (RFC 8219 section 7.2)",
        lines,
        figures,
        lambda unit: (
            Column(heading=f"typical, {unit}\np1 {DASH} p99", strong=True),
            Column(heading=f"worst case, {unit}\np1 {DASH} p99", strong=True),
            Column(heading="tags lost"),
        ),
        cells,
        (
            "Typical latency is the median and worst case latency the 99.9th percentile over the tagged frames of a"
            f" trial, tagged from {format_duration_ns(first.first_tag_ns)} on; a lost one ranks above every delay."
            " Shown is the median of the repetitions, below it their 1st and 99th percentile, and their"
            " dispersion (p99 \u2212 p1) / median.",
        ),
    )


def _pdv(document: ResultDocument) -> PlainTable | None:
    lines = _lines(document, lambda one: one.pdv is not None)
    figures = [
        figure
        for line in lines
        if line.series is not None and line.series.pdv is not None
        for figure in (line.series.pdv.p999_offered_ns, line.series.delay.minimum_ns)
    ]

    def cells(one: DelaySeriesPart, unit_ns: int) -> tuple[str, ...]:
        if one.pdv is None:
            return "", "", "", "", ""
        missing = one.offered - one.samples
        why = f"{format_count(missing)} of {format_count(one.offered)} frames without a delay"
        return (
            _figure(one.pdv.pdv_ns, unit_ns, why),
            _median(one.delay.minimum_ns, unit_ns),
            _median(one.pdv.p999_offered_ns, unit_ns),
            format_count(one.negative),
            f"{format_count(one.lost)}\nof {format_count(one.offered)}",
        )

    return _table(
        document,
        "Packet delay variation (RFC 8219 section 7.3.1)",
        lines,
        figures,
        lambda unit: (
            Column(heading=f"PDV, {unit}\np1 {DASH} p99", strong=True),
            Column(heading=f"D minimum,\n{unit}"),
            Column(heading=f"D 99.9 %,\n{unit}"),
            Column(heading="negative\ndelays"),
            Column(heading="frames lost"),
        ),
        cells,
        (
            "PDV is D(99.9 %) less D(minimum) over all frames offered; a frame without a delay ranks above all others."
            " Medians of the repetitions; frames are the sum of the repetitions.",
        ),
    )


def _ipdv(document: ResultDocument) -> PlainTable | None:
    lines = _lines(document, lambda one: one.ipdv is not None)
    figures = [
        figure
        for line in lines
        if line.series is not None and (found := line.series.ipdv) is not None
        for figure in (found.minimum_ns, found.median_ns, found.maximum_ns)
    ]

    def cells(one: DelaySeriesPart, unit_ns: int) -> tuple[str, ...]:
        if one.ipdv is None:
            return "", "", "", "", ""
        return (
            _median(one.ipdv.minimum_ns, unit_ns),
            _median(one.ipdv.median_ns, unit_ns),
            _median(one.ipdv.maximum_ns, unit_ns),
            format_count(one.ipdv.pairs),
            format_count(one.ipdv.skipped),
        )

    return _table(
        document,
        "Inter packet delay variation (RFC 8219 section 7.3.2)",
        lines,
        figures,
        lambda unit: (
            Column(heading=f"D minimum,\n{unit}", strong=True),
            Column(heading=f"D median,\n{unit}", strong=True),
            Column(heading=f"D maximum,\n{unit}", strong=True),
            Column(heading="pairs"),
            Column(heading="pairs\nskipped"),
        ),
        cells,
        (
            "Of the delay of each frame less that of the frame sent before it; negative values are normal. A pair of"
            " which one frame has no delay is skipped. Medians of the repetitions.",
        ),
    )


def _all_frames(document: ResultDocument) -> PlainTable | None:
    lines = _lines(document, lambda _one: True)
    keys = [key for key, _ in PERCENTILES]
    figures = [getattr(line.series.delay, key) for line in lines if line.series is not None for key in keys]

    def cells(one: DelaySeriesPart, unit_ns: int) -> tuple[str, ...]:
        return (*(_median(getattr(one.delay, key), unit_ns) for key in keys), format_count(one.samples))

    return _table(
        document,
        "Delay of all frames that came back correct",
        lines,
        figures,
        lambda unit: (
            *(Column(heading=f"{name},\n{unit}", strong=name == "50 %") for _, name in PERCENTILES),
            Column(heading="frames"),
        ),
        cells,
        (
            "Percentiles of the frames that have a delay, within 0.1 %; minimum and maximum are exact. Medians of the"
            " repetitions. Lost frames are not in them: see the table of packet delay variation for these.",
        ),
    )


def _table(
    document: ResultDocument,
    title: str,
    lines: Sequence[Line],
    figures: Sequence[FigurePart],
    columns: Callable[[str], tuple[Column, ...]],
    cells: Callable[[DelaySeriesPart, int], tuple[str, ...]],
    notes: tuple[str, ...],
) -> PlainTable | None:
    """One table: what was measured, its figures, repetitions, and the Tester's own error."""
    if not any(line.series is not None for line in lines):
        return None
    unit, unit_ns = unit_of_times(value for figure in figures for value in figure.values)
    own, errors = columns(unit), error_columns(document, unit)
    runs = [line.run for line in lines]
    rows = []
    for line in lines:
        known = _known(line, runs)
        if line.series is None:
            blank = ("",) * (len(own) + len(errors))
            rows.append((*known, "not offered", *blank))
            continue
        error = error_cells(document, line.run, line.series, line.point.frames_per_second, unit_ns)
        rows.append((*known, _repetitions(line.point), *cells(line.series, unit_ns), *error))
    heads = (*_known_columns(runs), Column(heading="repe-\ntitions"), *own, *errors)
    names = len(heads) - 1 - len(own) - len(errors)
    return PlainTable(title=title, columns=heads, rows=tuple(rows), names=names, notes=notes)


def _lines(document: ResultDocument, wanted: Callable[[DelaySeriesPart], bool]) -> list[Line]:
    """Return the rows of a table: all series with its figure, and loads that nothing is known about."""
    found: list[Line] = []
    for run in document.runs:
        for point in run.delays:
            found += [Line(run=run, point=point, series=one) for one in point.series if wanted(one)]
            if not point.series:
                found.append(Line(run=run, point=point, series=None))
    return found


def _known_columns(runs: Sequence[RunPart]) -> tuple[Column, ...]:
    """Columns of what was set: connections and mix only where there are any."""
    counted = any(connections_of(run) is not None for run in runs)
    mixed = any(run.mix.m != run.mix.n for run in runs)
    return (
        *((Column(heading="connec-\ntions"),) if counted else ()),
        Column(heading="IPv4 / IPv6\noctets"),
        *((Column(heading="fore:back-\nground"),) if mixed else ()),
        Column(heading="load,\nframes/s"),
        Column(heading="direction", numeric=False),
    )


def _known(line: Line, runs: Sequence[RunPart]) -> tuple[str, ...]:
    run, point, one = line.run, line.point, line.series
    share = "" if point.share is None else f"\n{_share(point.share)}"
    direction = run.direction if one is None else way_word(run, one.direction)
    if one is not None and run.mix.m != run.mix.n:
        direction += f",\n{one.class_}"
    counted = any(connections_of(other) is not None for other in runs)
    mixed = any(other.mix.m != other.mix.n for other in runs)
    return (
        *((format_count(connections_of(run)),) if counted else ()),
        format_sizes(run),
        *((format_mix(run),) if mixed else ()),
        f"{format_count(point.frames_per_second)}{share}",
        direction,
    )


def _share(text: str) -> str:
    percent = float(100 * Fraction(text))
    return f"{percent:g} %" if percent >= 0.1 else format_percent(percent)


def _repetitions(point: DelayPointPart) -> str:
    """Valid repetitions, of how many if the Tester could not offer the load in some."""
    asked = point.repetitions + point.tester_limited
    return f"{point.repetitions}" if not point.tester_limited else f"{point.repetitions} of {asked}"


def _figure(figure: FigurePart, unit_ns: int, why: str) -> str:
    """Median, below it spread and dispersion; where a repetition lacks the figure, why there is none."""
    found = figure.summary
    if found is not None:
        spread = f"{format_spread_in(found, unit_ns)}\n{format_percent(found.dispersion_percent)}"
        return f"{format_in(found.median, unit_ns)}\n{spread}"
    some = f" in {figure.missing} of {len(figure.values)} repetitions" if len(figure.values) > 1 else ""
    return f"{NOT_MEASURABLE}{some}: {why}"


def _median(figure: FigurePart, unit_ns: int) -> str:
    return NOT_MEASURABLE if figure.summary is None else format_in(figure.summary.median, unit_ns)


def _tags_lost(one: DelaySeriesPart, figure: FigurePart) -> str:
    """The tags that were lost where a figure is missing: those of the worst such repetition."""
    if one.latency is None:
        return ""
    rows = zip(figure.values, one.latency.tags_lost, one.latency.tags, strict=True)
    lost = [(gone, tags) for value, gone, tags in rows if value is None]
    gone, tags = max(lost, default=(0, 0))
    most = "up to " if len(lost) > 1 else ""
    return f"{most}{format_count(gone)} of {format_count(tags)} tags lost"


def _share_notes(document: ResultDocument) -> Iterator[str]:
    points = [point for run in document.runs for point in run.delays if point.share is not None]
    if points:
        yield "Loads in % are shares of the lowest throughput that any repetition with the same traffic found."
    if any(point.throughput_limited_by in ("maximum", "tester") for point in points):
        yield (
            "The search for that throughput ended at the chosen maximum or at the Tester's limit: the gateway may do"
            " more, and these loads are then below its throughput."
        )


def _refusals(document: ResultDocument) -> Iterator[str]:
    for run in document.runs:
        if run.procedure == "delay" and run.refused is not None:
            yield f"Run {run.number}, {format_sizes(run)} octets: not measured, {run.refused.rstrip('.')}."
