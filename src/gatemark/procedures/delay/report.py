"""The section of the report about latency and delay variation (RFC 8219 sections 7.2 and 7.3). Pure.

Times are in milliseconds, or in microseconds if all times of a table are below 1 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gatemark.procedures.delay import plots as delay_plots
from gatemark.procedures.delay.result import DelayPoint, DelayResult, DelaySeries
from gatemark.report.event_words import traffic_cells, traffic_columns, way_cell
from gatemark.report.headline import context_of, not_made
from gatemark.report.model import ReportPart
from gatemark.report.plot_style import Drawing
from gatemark.report.plots import plot_against
from gatemark.report.self_error import error_cells, error_columns, error_notes
from gatemark.report.table import REPETITIONS, Column, Plot, Section, Table, plot
from gatemark.report.words import (
    DASH,
    direction_label,
    format_count,
    format_in,
    format_percent,
    format_share,
    format_spread_in,
    run_name,
    unit_of_times,
)
from gatemark.results.document import ResultDocument
from gatemark.results.part import Figure
from gatemark.results.quantity import Row
from gatemark.stats.percentiles import DELAY_FIGURES, percent_words
from gatemark.units import format_duration_ns, format_ratio

NOT_MEASURABLE = "not measurable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row before it becomes text: a direction and class at a load, or a load that could not be offered."""

    run: DelayResult
    point: DelayPoint
    series: DelaySeries | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a table shows of each series."""

    title: str
    deciding: Callable[[DelaySeries], Sequence[Figure]]
    """Figures that decide the unit; empty if the series has none of the table's figures."""
    columns: Callable[[str], tuple[Column, ...]]
    """The columns, given the unit."""
    cells: Callable[[DelaySeries, int], tuple[str, ...]]
    """The cells, given the nanoseconds of the unit."""
    note: str


def section(document: ResultDocument, runs: Sequence[DelayResult]) -> Section:
    """Return everything about the delays of a campaign."""
    first = next((s.latency for run in runs for p in run.points for s in p.series if s.latency is not None), None)
    tables = [_table(document, runs, figures) for figures in (_PDV, _IPDV, _ALL_FRAMES)]
    if first is not None:
        tables.insert(0, _table(document, runs, _latency_figures(first.first_tag_ns)))
    return Section(
        title="Delays",
        lead=(delay_meaning(document),),
        tables=tuple(table for table in tables if table is not None),
        notes=(*error_notes(document), *clock_notes(runs), *_share_notes(runs), *not_made(runs)),
    )


def _latency_figures(first_tag_ns: int) -> Figures:
    return Figures(
        title="Latency (RFC 8219 section 7.2)",
        deciding=lambda s: () if s.latency is None else (s.latency.typical_ns, s.latency.worst_case_ns),
        columns=lambda unit: (
            Column(heading=f"typical, {unit}\np1 {DASH} p99", strong=True),
            Column(heading=f"worst case, {unit}\np1 {DASH} p99", strong=True),
            Column(heading="tags lost"),
        ),
        cells=_latency_cells,
        note="Typical latency is the median and worst case latency the 99.9th percentile over the tagged frames of a"
        f" trial, tagged from {format_duration_ns(first_tag_ns)} on; a lost one ranks above every delay."
        " Shown is the median of the repetitions, below it their 1st and 99th percentile, and their"
        " dispersion (p99 \u2212 p1) / median.",
    )


def _latency_cells(series: DelaySeries, unit_ns: int) -> tuple[str, ...]:
    latency = series.latency
    if latency is None:
        return "", "", ""
    return (
        _figure(latency.typical_ns, unit_ns, _tags_lost(series, latency.typical_ns)),
        _figure(latency.worst_case_ns, unit_ns, _tags_lost(series, latency.worst_case_ns)),
        f"{format_count(sum(latency.tags_lost))}\nof {format_count(sum(latency.tags))}",
    )


def _pdv_cells(series: DelaySeries, unit_ns: int) -> tuple[str, ...]:
    if series.pdv is None:
        return "", "", "", "", ""
    offered = sum(series.offered)
    missing = offered - sum(series.samples)
    why = f"{format_count(missing)} of {format_count(offered)} frames without a delay"
    return (
        _figure(series.pdv.pdv_ns, unit_ns, why),
        _median(series.delay_ns["minimum"], unit_ns),
        _median(series.pdv.p999_offered_ns, unit_ns),
        format_count(sum(series.negative)),
        f"{format_count(sum(series.undelivered))}\nof {format_count(offered)}",
    )


_PDV = Figures(
    title="Packet delay variation (RFC 8219 section 7.3.1)",
    deciding=lambda s: () if s.pdv is None else (s.pdv.p999_offered_ns, s.delay_ns["minimum"]),
    columns=lambda unit: (
        Column(heading=f"PDV, {unit}\np1 {DASH} p99", strong=True),
        Column(heading=f"D minimum,\n{unit}"),
        Column(heading=f"D 99.9 %,\n{unit}"),
        Column(heading="negative\ndelays"),
        Column(heading="frames\nundelivered"),
    ),
    cells=_pdv_cells,
    note="PDV is D(99.9 %) less D(minimum) over all frames offered; a frame without a delay ranks above all others."
    " Medians of the repetitions; frames are the sum of the repetitions.",
)


def _ipdv_cells(series: DelaySeries, unit_ns: int) -> tuple[str, ...]:
    if series.ipdv is None:
        return "", "", "", "", ""
    return (
        _median(series.ipdv.minimum_ns, unit_ns),
        _median(series.ipdv.median_ns, unit_ns),
        _median(series.ipdv.maximum_ns, unit_ns),
        format_count(sum(series.ipdv.pairs)),
        format_count(sum(series.ipdv.skipped)),
    )


_IPDV = Figures(
    title="Inter packet delay variation (RFC 8219 section 7.3.2)",
    deciding=lambda s: () if s.ipdv is None else (s.ipdv.minimum_ns, s.ipdv.median_ns, s.ipdv.maximum_ns),
    columns=lambda unit: (
        Column(heading=f"D minimum,\n{unit}", strong=True),
        Column(heading=f"D median,\n{unit}", strong=True),
        Column(heading=f"D maximum,\n{unit}", strong=True),
        Column(heading="pairs"),
        Column(heading="pairs\nskipped"),
    ),
    cells=_ipdv_cells,
    note="Of the delay of each frame less that of the frame sent before it; negative values are normal. A pair of"
    " which one frame has no delay is skipped. Medians of the repetitions.",
)

_ALL_FRAMES = Figures(
    title="Delay of all frames that came back correct",
    deciding=lambda series: tuple(series.delay_ns[key] for key in DELAY_FIGURES),
    columns=lambda unit: (
        *(Column(heading=f"{percent_words(key)},\n{unit}", strong=key == "p50") for key in DELAY_FIGURES),
        Column(heading="frames"),
    ),
    cells=lambda series, unit_ns: (
        *(_median(series.delay_ns[key], unit_ns) for key in DELAY_FIGURES),
        format_count(sum(series.samples)),
    ),
    note="Percentiles of the frames that have a delay, within 0.1 %; minimum and maximum are exact. Medians of the"
    " repetitions. Lost frames are not in them: see the table of packet delay variation for these.",
)


def _table(document: ResultDocument, runs: Sequence[DelayResult], figures: Figures) -> Table | None:
    """One table: what was measured, its figures, repetitions, and the Tester's own error."""
    lines = list(_lines(runs, figures))
    if not any(line.series is not None for line in lines):
        return None
    shown = [figure for line in lines if line.series is not None for figure in figures.deciding(line.series)]
    unit, unit_ns = unit_of_times(value for figure in shown for value in figure.values)
    shown_columns, errors = figures.columns(unit), error_columns(document, unit)
    rows = []
    for line in lines:
        known = (*traffic_cells(line.run, runs), _load_cell(line.point))
        if line.series is None:
            rows.append((*known, line.run.direction, "not offered", *("",) * (len(shown_columns) + len(errors))))
            continue
        error = error_cells(
            document,
            line.run,
            direction=line.series.direction,
            load=line.point.frames_per_second,
            lateness_ns=max(line.series.lateness_max_ns, default=0),
            unit_ns=unit_ns,
        )
        way = way_cell(line.run, line.series.direction, line.series.class_)
        rows.append((*known, way, _repetitions(line.point), *figures.cells(line.series, unit_ns), *error))
    names = (*traffic_columns(runs), Column(heading="load,\nframes/s"), Column(heading="direction", numeric=False))
    columns = (*names, REPETITIONS, *shown_columns, *errors)
    return Table(title=figures.title, columns=columns, rows=tuple(rows), names=len(names) + 1, notes=(figures.note,))


def _lines(runs: Sequence[DelayResult], figures: Figures) -> Iterator[Line]:
    """Yield the rows of a table: all series that have its figures, and loads about which nothing is known."""
    for run in runs:
        for point in run.points:
            yield from (Line(run=run, point=point, series=s) for s in point.series if figures.deciding(s))
            if not point.series:
                yield Line(run=run, point=point, series=None)


def _load_cell(point: DelayPoint) -> str:
    if point.share is None:
        return format_count(point.frames_per_second)
    percent = float(100 * point.share)
    share = format_share(point.share) if percent >= 0.1 else format_percent(percent)
    return f"{format_count(point.frames_per_second)}\n{share}"


def _repetitions(point: DelayPoint) -> str:
    """Number of valid repetitions, and the total if the Tester could not offer the load in some."""
    asked = point.repetitions + point.tester_limited
    return f"{point.repetitions}" if not point.tester_limited else f"{point.repetitions} of {asked}"


def _figure(figure: Figure, unit_ns: int, why: str) -> str:
    """Median, with spread and dispersion below it; if a repetition lacks the figure, why there is none."""
    summary = figure.summary
    if summary is not None:
        spread = format_spread_in(summary.p1, summary.p99, unit_ns)
        return f"{format_in(summary.median, unit_ns)}\n{spread}\n{format_percent(summary.dispersion_percent)}"
    some = f" in {figure.missing} of {len(figure.values)} repetitions" if len(figure.values) > 1 else ""
    return f"{NOT_MEASURABLE}{some}: {why}"


def _median(figure: Figure, unit_ns: int) -> str:
    return NOT_MEASURABLE if figure.summary is None else format_in(figure.summary.median, unit_ns)


def _tags_lost(series: DelaySeries, figure: Figure) -> str:
    """The tags that were lost if a figure is missing: those of the worst such repetition."""
    if series.latency is None:
        return ""
    rows = zip(figure.values, series.latency.tags_lost, series.latency.tags, strict=True)
    lost = [(gone, tags) for value, gone, tags in rows if value is None]
    gone, tags = max(lost, default=(0, 0))
    most = "up to " if len(lost) > 1 else ""
    return f"{most}{format_count(gone)} of {format_count(tags)} tags lost"


def _share_notes(runs: Sequence[DelayResult]) -> Iterator[str]:
    points = [point for run in runs for point in run.points if point.share is not None]
    if points:
        yield "Loads in % are shares of the lowest throughput that any repetition with the same traffic found."
    if any(point.throughput_limited_by in ("maximum", "tester", "host") for point in points):
        yield (
            "The search for that throughput ended at the chosen maximum, or at a limit of the Tester or the host: the"
            " gateway may do more, and these loads are then below its throughput."
        )


def clock_notes(runs: Sequence[DelayResult]) -> Iterator[str]:
    """A sentence for each series with delays below zero: they are counted, but are in no figure."""
    for run in runs:
        for point in run.points:
            for series in point.series:
                if negative := sum(series.negative):
                    yield (
                        f"Run {run.number}, {run.way_word(series.direction)} at"
                        f" {format_count(point.frames_per_second)} frames/s: of {format_count(sum(series.offered))}"
                        f" frames {format_count(negative)} arrived, by the clock, before they were sent. That is an"
                        " error of a clock or a damaged time stamp; such frames are in no figure."
                    )


def delay_meaning(document: ResultDocument) -> str:
    """Which latency of RFC 1242 a delay is, and what else it contains."""
    stamps = "software" if document.clock is None else document.clock.timestamps
    received = {
        "software": "B just after the poll that returned the frame",
        "hardware": "B by the port when the frame arrived",
        "mixed": "B by the port when the frame arrived, or just after the poll that returned it where the port cannot",
    }[stamps]
    paths = {
        "software": "the Tester's own path of sending and receiving",
        "hardware": "the Tester's own path of sending",
        "mixed": "the Tester's own path of sending, and of receiving where its port has no time stamps",
    }[stamps]
    return (
        "A delay is the time from A to B: A is read from the Tester's clock just before the frame is handed to its"
        f" port, {received}. It is the latency of a store-and-forward device (RFC 1242 section 3.8) as the Tester can"
        f" see it, so that the time of the frame on both links and {paths} are part of it."
    )


def sentence(part: ReportPart, run: DelayResult) -> str:
    """Return the delays at the first load that could be offered; the other loads are in the tables."""
    context = f"{context_of(part.document, run)}, {direction_label(run)}"
    point = next((point for point in run.points if point.series), None)
    if point is None:
        loads = " and ".join(format_count(point.frames_per_second) for point in run.points)
        return f"Delays not measured: the Tester could not offer {loads} frames/s; {context}."
    words = "; ".join(_parts(run, point))
    times = "s" if point.repetitions != 1 else ""
    return (
        f"At {_load(point)}: {words}; medians of {point.repetitions} repetition{times}; {context}.{_more(run, point)}"
    )


def _parts(run: DelayResult, point: DelayPoint) -> Iterator[str]:
    """Give each metric of a load for each direction and class."""
    for series in point.series:
        where = run.way_word(series.direction)
        where = f"{where} {series.class_}" if run.mix.is_mixed else where
        latency = series.latency
        if latency is not None:
            lost = f" ({format_count(sum(latency.tags_lost))} tags lost)" if any(latency.tags_lost) else ""
            yield (
                f"typical latency {_time(latency.typical_ns)} and worst case latency {_time(latency.worst_case_ns)}"
                f" {where}{lost}"
            )
        if series.pdv is not None:
            yield f"PDV {_time(series.pdv.pdv_ns)} {where}"
        if latency is None and series.pdv is None:
            yield f"median delay {_time(series.delay_ns['p50'])} {where}"


def _time(figure: Figure) -> str:
    if figure.summary is None:
        return NOT_MEASURABLE
    unit, unit_ns = unit_of_times([figure.summary.median])
    return f"{format_in(figure.summary.median, unit_ns)} {unit}"


def _load(point: DelayPoint) -> str:
    share = "" if point.share is None else f" ({format_ratio(point.share)} of the throughput)"
    return f"{format_count(point.frames_per_second)} frames/s{share}"


def _more(run: DelayResult, point: DelayPoint) -> str:
    """Other loads, and loads that could not be offered."""
    skipped = sum(not other.series for other in run.points)
    others = len(run.points) - skipped - 1
    text = f" {others} more load{'s' if others != 1 else ''} in the tables." if others else ""
    if skipped:
        text += f" {skipped} of {len(run.points)} loads could not be offered by the Tester."
    if point.tester_limited:
        text += f" In {point.tester_limited} more repetitions the Tester could not offer this load."
    return text


def plots(part: ReportPart, runs: Sequence[DelayResult]) -> Iterator[Plot]:
    """Yield delays against frame size and load, then those of all frames of each run."""
    first = {run.number: run.points[0].frames_per_second for run in runs if run.points}
    rows = [row for row in part.document.figures() if row.quantity.run in first]
    spread = "median of the repetitions, bars from the 1st to the 99th percentile"
    at_first = [row for row in rows if row.place["load_frames_per_second"] == first[row.quantity.run]]
    for what, names in (("Latency", ("typical latency", "worst case latency")), ("Delay variation", ("PDV",))):
        for caption, drawing in (
            (
                f"{what} against frame size, at the first load of each size: {spread}.",
                _against_size(at_first, what, names),
            ),
            *((f"{what} against load. {run_name(run)}.", _against_load(rows, run, what, names)) for run in runs),
        ):
            if (drawn := plot(drawing, caption)) is not None:
                yield drawn
    for run in runs:
        yield from delay_plots.of_run(run)


def _against_size(rows: Sequence[Row], what: str, names: Sequence[str]) -> Drawing | None:
    chosen = [row for row in rows if row.quantity.name in names]
    return plot_against(chosen, "frame_size", name=f"{what.lower()} against frame size")


def _against_load(rows: Sequence[Row], run: DelayResult, what: str, names: Sequence[str]) -> Drawing | None:
    chosen = [row for row in rows if row.quantity.run == run.number and row.quantity.name in names]
    return plot_against(chosen, "load", name=f"{what.lower()} against load")
