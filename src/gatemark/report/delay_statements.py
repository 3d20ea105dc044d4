"""What the report says about delays: what they mean, and one sentence for each run. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from gatemark.report.headline import Statement, context_of, said
from gatemark.report.words import (
    direction_label,
    format_count,
    format_in,
    format_sizes,
    unit_of_times,
    way_word,
)
from gatemark.results.schema import DelayPointPart, DelaySeriesPart, FigurePart, ResultDocument, RunPart
from gatemark.units import format_ratio


def delay_meaning(document: ResultDocument) -> str:
    """Which latency of RFC 1242 a delay is, and what else is in it."""
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


def delay_statement(document: ResultDocument, run: RunPart) -> Statement:
    """The headline of a run of delays: at the first load that could be offered, all other loads are in the tables."""
    label = f"{format_sizes(run)} octets (IPv4 / IPv6), {direction_label(run)}"
    context = f"{context_of(document, run)}, {direction_label(run)}"
    point = next((one for one in run.delays if one.series), None)
    if point is None:
        loads = " and ".join(format_count(one.frames_per_second) for one in run.delays)
        sentence = f"Delays not measured: the Tester could not offer {loads} frames/s; {context}."
        return said(run, "Tester-limited", f"delay, {label}", sentence, limited_by="tester")
    words = "; ".join(_parts(run, point))
    times = "s" if point.repetitions != 1 else ""
    sentence = (
        f"At {_load(point)}: {words}; medians of {point.repetitions} repetition{times}; {context}.{_more(run, point)}"
    )
    name, figure = _headline(point)
    if figure is None:
        return said(run, "not measurable", f"{name}, {label}", sentence)
    unit, unit_ns = unit_of_times([figure])
    return said(run, format_in(figure, unit_ns), f"{name} at {_load(point)}, {label}", sentence, unit=unit)


def _parts(run: RunPart, point: DelayPointPart) -> Iterator[str]:
    """Say each metric of a load for each direction and class."""
    for one in point.series:
        way = way_word(run, one.direction)
        where = way if run.mix.m == run.mix.n else f"{way} {one.class_}"
        latency = one.latency
        if latency is not None:
            lost = f" ({format_count(sum(latency.tags_lost))} tags lost)" if any(latency.tags_lost) else ""
            yield (
                f"typical latency {_time(latency.typical_ns)} and worst case latency {_time(latency.worst_case_ns)}"
                f" {where}{lost}"
            )
        if one.pdv is not None:
            yield f"PDV {_time(one.pdv.pdv_ns)} {where}"
        if latency is None and one.pdv is None:
            yield f"median delay {_time(one.delay.p50_ns)} {where}"


def _headline(point: DelayPointPart) -> tuple[str, int | float | None]:
    """Name the figure that is shown large, and the larger one of its directions; None if one is not measurable."""
    for name, figure_of in _FIGURES:
        figures = [figure for one in point.series if (figure := figure_of(one)) is not None]
        if figures:
            medians = [figure.summary.median for figure in figures if figure.summary is not None]
            return name, max(medians) if len(medians) == len(figures) else None
    return "median delay", None


def _typical(one: DelaySeriesPart) -> FigurePart | None:
    return None if one.latency is None else one.latency.typical_ns


def _variation(one: DelaySeriesPart) -> FigurePart | None:
    return None if one.pdv is None else one.pdv.pdv_ns


def _median(one: DelaySeriesPart) -> FigurePart | None:
    return one.delay.p50_ns


_FIGURES = (("typical latency", _typical), ("PDV", _variation), ("median delay", _median))


def _time(figure: FigurePart) -> str:
    if figure.summary is None:
        return "not measurable"
    unit, unit_ns = unit_of_times([figure.summary.median])
    return f"{format_in(figure.summary.median, unit_ns)} {unit}"


def _load(point: DelayPointPart) -> str:
    share = "" if point.share is None else f" ({format_ratio(Fraction(point.share))} of the throughput)"
    return f"{format_count(point.frames_per_second)} frames/s{share}"


def _more(run: RunPart, point: DelayPointPart) -> str:
    """Other loads, and loads that could not be offered."""
    skipped = sum(not one.series for one in run.delays)
    others = len(run.delays) - skipped - 1
    text = f" {others} more load{'s' if others != 1 else ''} in the tables." if others else ""
    if skipped:
        text += f" {skipped} of {len(run.delays)} loads could not be offered by the Tester."
    if point.tester_limited:
        text += f" In {point.tester_limited} more repetitions the Tester could not offer this load."
    return text
