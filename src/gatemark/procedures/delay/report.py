"""The section of the report about latency and delay variation (RFC 8219 sections 7.2 and 7.3). Pure.

Times are in milliseconds, or in microseconds if all times of a table are below 1 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from gatemark.procedures.delay import plots as delay_plots
from gatemark.procedures.delay.result import DelayPoint, DelayResult, DelaySeries, Latency, PacketPairs
from gatemark.report.columns import TRAFFIC, way
from gatemark.report.event_words import of_all
from gatemark.report.headline import context_of, not_made
from gatemark.report.model import ReportPart
from gatemark.report.plot_style import Drawing
from gatemark.report.plots import plot_against
from gatemark.report.self_error import Sent, error_columns, error_notes, own_latency
from gatemark.report.table import Column, Plot, Section, Table, plot, repetitions, table_of
from gatemark.report.words import (
    DASH,
    FROM_P1_TO_P99,
    direction_label,
    format_count,
    format_in,
    format_percent,
    format_share,
    format_spread_in,
    run_name,
    unit_of_times,
)
from gatemark.results.coordinates import LOAD, dimension
from gatemark.results.document import ResultDocument
from gatemark.results.part import Figure
from gatemark.results.quantity import Row as TidyRow
from gatemark.stats.percentiles import DELAY_FIGURES, percent_words
from gatemark.units import format_duration_ns, format_ratio

NOT_MEASURABLE = "not measurable"


@dataclass(frozen=True, slots=True)
class Row:
    """A direction and class at a load, or a load that could not be offered."""

    run: DelayResult
    point: DelayPoint
    series: DelaySeries | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a table shows of each series."""

    title: str
    deciding: Callable[[DelaySeries], Sequence[Figure]]
    """Figures that decide the unit; empty if the series has none of the table's figures."""
    columns: Callable[[str, int], Sequence[Column[DelaySeries]]]
    """The columns, given the unit and its nanoseconds."""
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
        tables=tuple(tables),
        notes=(*error_notes(document), *clock_notes(runs), *_share_notes(runs), *not_made(runs)),
    )


def _latency_figures(first_tag_ns: int) -> Figures:
    return Figures(
        title="Latency (RFC 8219 section 7.2)",
        deciding=lambda s: () if s.latency is None else (s.latency.typical_ns, s.latency.worst_case_ns),
        columns=lambda *unit: [column.of(lambda series: series.latency) for column in _latency_columns(*unit)],
        note="Typical latency is the median and worst case latency the 99.9th percentile over the tagged frames of a"
        f" trial, tagged from {format_duration_ns(first_tag_ns)} on; a lost one ranks above every delay."
        " The table shows the median of the repetitions, below it their 1st and 99th percentile, and their"
        " dispersion (p99 \u2212 p1) / median.",
    )


def _latency_columns(unit: str, unit_ns: int) -> tuple[Column[Latency], ...]:
    return (
        Column(f"typical, {unit}\np1 {DASH} p99", lambda part: _latency(part, part.typical_ns, unit_ns), strong=True),
        Column(
            f"worst case, {unit}\np1 {DASH} p99", lambda part: _latency(part, part.worst_case_ns, unit_ns), strong=True
        ),
        Column("tags lost", lambda part: _share(part.tags_lost, part.tags)),
    )


def _latency(latency: Latency, figure: Figure, unit_ns: int) -> str:
    """Return a figure; where it is missing, the tags that were lost in the worst such repetition."""
    rows = zip(figure.values, latency.tags_lost, latency.tags, strict=True)
    lost = [(gone, tags) for value, gone, tags in rows if value is None]
    gone, tags = max(lost, default=(0, 0))
    most = "up to " if len(lost) > 1 else ""
    return _figure(figure, unit_ns, f"{most}{format_count(gone)} of {format_count(tags)} tags lost")


def _share(counts: Sequence[int], whole: Sequence[int]) -> str:
    return f"{format_count(sum(counts))}\nof {format_count(sum(whole))}"


def _pdv(series: DelaySeries, unit_ns: int) -> str:
    if series.pdv is None:
        return ""
    offered = sum(series.offered)
    missing = f"{format_count(offered - sum(series.samples))} of {format_count(offered)} frames without a delay"
    return _figure(series.pdv.pdv_ns, unit_ns, missing)


_PDV = Figures(
    title="Packet delay variation (RFC 8219 section 7.3.1)",
    deciding=lambda s: () if s.pdv is None else (s.pdv.p999_offered_ns, s.delay_ns["minimum"]),
    columns=lambda unit, unit_ns: (
        Column(f"PDV, {unit}\np1 {DASH} p99", lambda s: _pdv(s, unit_ns), strong=True),
        Column(f"D minimum,\n{unit}", lambda s: _median(s.delay_ns["minimum"], unit_ns)),
        Column(f"D 99.9 %,\n{unit}", lambda s: "" if s.pdv is None else _median(s.pdv.p999_offered_ns, unit_ns)),
        Column("negative\ndelays", lambda s: format_count(sum(s.negative))),
        Column("frames\nundelivered", lambda s: _share(s.undelivered, s.offered)),
    ),
    note="PDV is D(99.9 %) less D(minimum) over all frames offered; a frame without a delay ranks above all others."
    " Medians of the repetitions; frames are the sum of the repetitions.",
)


def _ipdv_columns(unit: str, unit_ns: int) -> tuple[Column[PacketPairs], ...]:
    return (
        Column(f"D minimum,\n{unit}", lambda ipdv: _median(ipdv.minimum_ns, unit_ns), strong=True),
        Column(f"D median,\n{unit}", lambda ipdv: _median(ipdv.median_ns, unit_ns), strong=True),
        Column(f"D maximum,\n{unit}", lambda ipdv: _median(ipdv.maximum_ns, unit_ns), strong=True),
        Column("pairs", lambda ipdv: format_count(sum(ipdv.pairs))),
        Column("pairs\nskipped", lambda ipdv: format_count(sum(ipdv.skipped))),
    )


_IPDV = Figures(
    title="Inter packet delay variation (RFC 8219 section 7.3.2)",
    deciding=lambda s: () if s.ipdv is None else (s.ipdv.minimum_ns, s.ipdv.median_ns, s.ipdv.maximum_ns),
    columns=lambda *unit: [column.of(lambda series: series.ipdv) for column in _ipdv_columns(*unit)],
    note="The delay of each frame minus that of the frame sent before it; negative values are normal. A pair with a"
    " frame that has no delay is skipped. Medians of the repetitions.",
)


def _of_frames(key: str, unit: str, unit_ns: int) -> Column[DelaySeries]:
    return Column(f"{percent_words(key)},\n{unit}", lambda s: _median(s.delay_ns[key], unit_ns), strong=key == "p50")


_ALL_FRAMES = Figures(
    title="Delay of all frames that came back correct",
    deciding=lambda series: tuple(series.delay_ns[key] for key in DELAY_FIGURES),
    columns=lambda unit, unit_ns: (
        *(_of_frames(key, unit, unit_ns) for key in DELAY_FIGURES),
        Column("frames", lambda series: format_count(sum(series.samples))),
    ),
    note="Percentiles of the frames that have a delay, within 0.1 %; minimum and maximum are exact. Medians of the"
    " repetitions. Lost frames are not in them: see the table of packet delay variation for these.",
)


def _table(document: ResultDocument, runs: Sequence[DelayResult], figures: Figures) -> Table:
    """One table: what was measured, its figures, repetitions, and the Tester's own error; no rows without a figure."""
    rows = list(_rows(runs, figures))
    known = [row.series for row in rows if row.series is not None]
    unit, unit_ns = unit_of_times(
        value for series in known for figure in figures.deciding(series) for value in figure.values
    )
    columns: tuple[Column[Row], ...] = (
        *(column.of(attrgetter("run")) for column in TRAFFIC),
        Column(dimension(LOAD).heading, lambda row: _load_cell(row.point), names=True),
        Column("direction", _way, names=True, numeric=False),
        replace(repetitions(_repetitions), names=True),
        *(column.of(attrgetter("series")) for column in figures.columns(unit, unit_ns)),
        *(column.of(_sent) for column in error_columns(document, unit, unit_ns)),
    )
    return table_of(figures.title, columns, rows if known else (), notes=(figures.note,))


def _way(row: Row) -> str:
    return row.run.direction if row.series is None else way(row.run, row.series.direction, row.series.class_)


def _sent(row: Row) -> Sent | None:
    if row.series is None:
        return None
    return Sent(
        run=row.run,
        direction=row.series.direction,
        frames_per_second=row.point.frames_per_second,
        lateness_ns=max(row.series.lateness_max_ns, default=0),
    )


def _rows(runs: Sequence[DelayResult], figures: Figures) -> Iterator[Row]:
    """Yield the rows of a table: all series that have its figures, and loads about which nothing is known."""
    for run in runs:
        for point in run.points:
            yield from (Row(run, point, series) for series in point.series if figures.deciding(series))
            if not point.series:
                yield Row(run, point, None)


def _load_cell(point: DelayPoint) -> str:
    if point.share is None:
        return format_count(point.frames_per_second)
    percent = float(100 * point.share)
    share = format_share(point.share) if percent >= 0.1 else format_percent(percent)
    return f"{format_count(point.frames_per_second)}\n{share}"


def _repetitions(row: Row) -> str:
    return "not offered" if row.series is None else of_all(row.point.repetitions, row.point.tester_limited)


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
    words = "; ".join(_parts(part.document, run, point))
    times = "s" if point.repetitions != 1 else ""
    return (
        f"At {_load(point)}: {words}; medians of {point.repetitions} repetition{times}; {context}.{_more(run, point)}"
    )


def _parts(document: ResultDocument, run: DelayResult, point: DelayPoint) -> Iterator[str]:
    """Give each metric of a load for each direction and class, latency with the Tester's own."""
    for series in point.series:
        where = run.way_word(series.direction)
        where = f"{where} {series.class_}" if run.mix.is_mixed else where
        latency = series.latency
        if latency is not None:
            lost = f" ({format_count(sum(latency.tags_lost))} tags lost)" if any(latency.tags_lost) else ""
            known = own_latency(document, run, series.direction, point.frames_per_second)
            alone = (
                "" if known is None else f" (Tester alone: {_duration(known.p50_ns)} and {_duration(known.p999_ns)})"
            )
            yield (
                f"typical latency {_time(latency.typical_ns)} and worst case latency {_time(latency.worst_case_ns)}"
                f" {where}{lost}{alone}"
            )
        if series.pdv is not None:
            yield f"PDV {_time(series.pdv.pdv_ns)} {where}"
        if latency is None and series.pdv is None:
            yield f"median delay {_time(series.delay_ns['p50'])} {where}"


def _time(figure: Figure) -> str:
    if figure.summary is None:
        return NOT_MEASURABLE
    return _duration(figure.summary.median)


def _duration(nanoseconds: float | None) -> str:
    unit, unit_ns = unit_of_times([nanoseconds])
    return f"{format_in(nanoseconds, unit_ns)} {unit}"


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
    spread = f"median of the repetitions, bars {FROM_P1_TO_P99}"
    at_first = [row for row in rows if row.place["load_frames_per_second"] == first[row.quantity.run]]
    for what, names in (("Latency", ("typical latency", "worst case latency")), ("Delay variation", ("PDV",))):
        for caption, drawing in (
            (
                f"{what} against frame size, at the first load of each size: {spread}.",
                _against_size(at_first, what, names),
            ),
            *((f"{what} against load. {run_name(run)}.", _against_load(rows, run, what, names)) for run in runs),
        ):
            yield from plot(drawing, caption)
    for run in runs:
        yield from delay_plots.of_run(run)


def _against_size(rows: Sequence[TidyRow], what: str, names: Sequence[str]) -> Drawing | None:
    chosen = [row for row in rows if row.quantity.name in names]
    return plot_against(chosen, "frame_size", name=f"{what.lower()} against frame size")


def _against_load(rows: Sequence[TidyRow], run: DelayResult, what: str, names: Sequence[str]) -> Drawing | None:
    chosen = [row for row in rows if row.quantity.run == run.number and row.quantity.name in names]
    return plot_against(chosen, "load", name=f"{what.lower()} against load")
