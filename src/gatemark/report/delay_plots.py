"""Plots of delays, and of loss over time within a trial, as SVG text. Series differ by marker and line, not by colour
alone. Pure and deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatemark.report.model import DirectionRow, TrialRow
from gatemark.report.plot_style import INK, SERIES, add_legend, draw_svg, run_size, size_label
from gatemark.report.words import format_count, unit_of_times, way_word
from gatemark.results.schema import DelayPointPart, DelaySeriesPart, FigurePart, RecoveryPart, RunPart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

LINES = ("-", "--", "-.", ":")
BINS_MAX = 120
"""Of a histogram, over the range that is drawn."""
PERCENTILES_SHOWN = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
"""Ticks of a percentile curve; equal distances are tenths of what is left above."""

Histogram = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One line of a plot against load or size."""

    label: str
    places: tuple[int, ...]
    figures: tuple[FigurePart, ...]


def latency_load_plot(run: RunPart) -> str | None:
    """Typical and worst case latency of a run against its load; None with fewer than two loads."""
    curves = [*_by_load(run, "typical", _typical), *_by_load(run, "worst case", _worst)]
    return _against_load(curves, "latency against load", "latency")


def pdv_load_plot(run: RunPart) -> str | None:
    """Packet delay variation of a run against its load; None with fewer than two loads."""
    return _against_load(_by_load(run, "PDV", _pdv), "delay variation against load", "PDV")


def latency_size_plot(runs: Sequence[RunPart]) -> str | None:
    """Typical and worst case latency at the first load of each run against frame size; None with one size."""
    curves = [*_by_size(runs, "typical", _typical), *_by_size(runs, "worst case", _worst)]
    return _against_size(runs, curves, "latency against frame size", "latency")


def pdv_size_plot(runs: Sequence[RunPart]) -> str | None:
    """Packet delay variation at the first load of each run against frame size; None with one size."""
    return _against_size(runs, _by_size(runs, "PDV", _pdv), "delay variation against frame size", "PDV")


def delay_histogram_plot(run: RunPart, point: DelayPointPart) -> str | None:
    """Delays of all frames of the first repetition, with typical and worst case latency; logarithmic both ways."""
    shown = [(one, histogram) for one in point.series if (histogram := decoded(one.hdr))]
    if not shown:
        return None
    ends = [ns for _, histogram in shown for ns in (histogram[0][0], histogram[-1][0])]
    unit, unit_ns = unit_of_times(ends)

    def draw(axes: Axes) -> None:
        for number, (one, histogram) in enumerate(shown):
            colour, _ = SERIES[number % len(SERIES)]
            edges, counts = _binned(histogram, max(1, min(ends)), max(ends))
            axes.stairs(
                counts, [edge / unit_ns for edge in edges], baseline=0.5, color=colour, fill=number == 0,
                alpha=0.35 if number == 0 else None, linewidth=1.2, linestyle=LINES[max(0, number - 1) % len(LINES)],
                label=_name(run, one),
            )  # fmt: skip
            for figure, word, line in ((_typical(one), "typical", "--"), (_worst(one), "worst case", ":")):
                if figure is not None and figure.values and figure.values[0] is not None:
                    axes.axvline(
                        figure.values[0] / unit_ns, color=colour, linestyle=line, linewidth=1.1,
                        label=f"{word} latency, {_name(run, one)}",
                    )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
        _few_ticks(axes.xaxis, max(ends) / max(1, min(ends)))
        axes.set_xlabel(f"delay, {unit}")
        axes.set_ylabel("frames")
        add_legend(axes)

    return draw_svg("histogram of delays", draw)


def ipdv_histogram_plot(run: RunPart, point: DelayPointPart) -> str | None:
    """Delay variation between successive frames of the first repetition; None if none was measured."""
    shown = [(one, one.ipdv.histogram) for one in point.series if one.ipdv is not None and one.ipdv.histogram]
    if not shown:
        return None
    unit, unit_ns = unit_of_times(ns for _, histogram in shown for ns in (histogram[0][0], histogram[-1][0]))

    def draw(axes: Axes) -> None:
        for number, (one, histogram) in enumerate(shown):
            colour, marker = SERIES[number % len(SERIES)]
            axes.plot(
                [ns / unit_ns for ns, _ in histogram], [count for _, count in histogram], color=colour, marker=marker,
                markersize=4, linestyle="none", fillstyle="none" if number else "full", label=_name(run, one),
            )  # fmt: skip
        smallest = min((abs(ns) for _, histogram in shown for ns, _ in histogram if ns), default=1)
        axes.set_xscale("symlog", linthresh=max(smallest, 100) / unit_ns)
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
        _plain_ticks(axes.xaxis)
        axes.set_xlabel(f"delay of a frame less that of the frame before it, {unit}")
        axes.set_ylabel("pairs of frames")
        add_legend(axes)

    return draw_svg("histogram of delay variation", draw)


def percentile_plot(run: RunPart) -> str | None:
    """Delay against percentile for every load and direction; each step to the right leaves a tenth of the frames."""
    shown = [(point, one, histogram) for point in run.delays for one in point.series if (histogram := decoded(one.hdr))]
    if not shown:
        return None
    unit, unit_ns = unit_of_times(histogram[-1][0] for _, _, histogram in shown)
    several = len({point.frames_per_second for point, _, _ in shown}) > 1

    def draw(axes: Axes) -> None:
        for number, (point, one, histogram) in enumerate(shown):
            places, delays = _percentile_steps(histogram)
            load = f"{format_count(point.frames_per_second)} frames/s, " if several else ""
            colour, _ = SERIES[number % len(SERIES)]
            axes.plot(
                places, [ns / unit_ns for ns in delays], color=colour, linewidth=1.4, drawstyle="steps-pre",
                linestyle=LINES[number // len(SERIES) % len(LINES)] if number >= len(SERIES) else LINES[number % 4],
                label=f"{load}{_name(run, one)}",
            )  # fmt: skip
        axes.set_xscale("log")
        ticks = [1 / (1 - share) for share in PERCENTILES_SHOWN]
        axes.set_xticks(ticks, [f"{100 * share:.10g} %" for share in PERCENTILES_SHOWN])
        axes.set_xlim(1, ticks[-1] * 2)
        axes.minorticks_off()
        shortest = min(histogram[0][0] for _, _, histogram in shown)
        _from_zero_or_log(axes, shortest, max(histogram[-1][0] for _, _, histogram in shown))
        axes.set_xlabel("percentile of the frames that have a delay")
        axes.set_ylabel(f"delay, {unit}")
        add_legend(axes)

    return draw_svg("delay by percentile", draw)


def loss_over_time_plot(trial: TrialRow, recovery: RecoveryPart | None = None) -> str | None:
    """Lost frames over the sending time of one trial; None if none was lost. A fall of the load is marked."""
    rows = [row for row in trial.directions if any(row.loss_by_slice)]
    if not rows:
        return None

    def draw(axes: Axes) -> None:
        for number, row in enumerate(rows):
            edges = slice_edges(trial, row, recovery)
            colour, _ = SERIES[number % len(SERIES)]
            axes.stairs(
                row.loss_by_slice, edges, color=colour, fill=number == 0, alpha=0.35 if number == 0 else None,
                linewidth=1.3, linestyle=LINES[number % len(LINES)], label=row.direction,
            )  # fmt: skip
        if recovery is not None:
            axes.axvline(
                recovery.overload_ns / 10**9, color=INK, linestyle="--", linewidth=1.1,
                label=f"load falls to {format_count(recovery.recovery_load)} frames/s",
            )  # fmt: skip
        axes.set_xlim(0, trial.duration_ns / 10**9)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time since the start of sending, s")
        axes.set_ylabel("frames lost in a hundredth\nof the frames")
        add_legend(axes)

    return draw_svg("frames lost over time", draw, height=2.6)


def decoded(hdr: str) -> list[tuple[int, int]]:
    """Return (ns, frames) of each bucket of an HdrHistogram string, ascending; empty of an empty one."""
    if not hdr:
        return []
    from hdrh.histogram import HdrHistogram  # imported where needed: no other command pays for it

    histogram = HdrHistogram.decode(hdr)
    return [
        (int(item.value_iterated_to), int(item.count_at_value_iterated_to))
        for item in histogram.get_recorded_iterator()
    ]  # fmt: skip


def _typical(one: DelaySeriesPart) -> FigurePart | None:
    return None if one.latency is None else one.latency.typical_ns


def _worst(one: DelaySeriesPart) -> FigurePart | None:
    return None if one.latency is None else one.latency.worst_case_ns


def _pdv(one: DelaySeriesPart) -> FigurePart | None:
    return None if one.pdv is None else one.pdv.pdv_ns


def _name(run: RunPart, one: DelaySeriesPart) -> str:
    way = way_word(run, one.direction)
    return way if run.mix.m == run.mix.n else f"{way} {one.class_}"


def _by_load(run: RunPart, word: str, figure_of: Callable[[DelaySeriesPart], FigurePart | None]) -> list[Curve]:
    rows: dict[str, list[tuple[int, FigurePart]]] = {}
    for point in sorted(run.delays, key=lambda point: point.frames_per_second):
        for one in point.series:
            figure = figure_of(one)
            if figure is not None and figure.summary is not None:
                rows.setdefault(f"{word}, {_name(run, one)}", []).append((point.frames_per_second, figure))
    return [_curve(label, found) for label, found in rows.items()]


def _by_size(
    runs: Sequence[RunPart], word: str, figure_of: Callable[[DelaySeriesPart], FigurePart | None]
) -> list[Curve]:
    rows: dict[str, list[tuple[int, FigurePart]]] = {}
    for run in sorted(runs, key=run_size):
        for one in run.delays[0].series if run.delays else ():
            figure = figure_of(one)
            if figure is not None and figure.summary is not None:
                rows.setdefault(f"{word}, {_name(run, one)}", []).append((run_size(run), figure))
    return [_curve(label, found) for label, found in rows.items()]


def _curve(label: str, rows: Sequence[tuple[int, FigurePart]]) -> Curve:
    return Curve(label=label, places=tuple(place for place, _ in rows), figures=tuple(figure for _, figure in rows))


def _against_load(curves: Sequence[Curve], name: str, what: str) -> str | None:
    if len({place for curve in curves for place in curve.places}) < 2:
        return None

    def draw(axes: Axes) -> None:
        unit = _draw_curves(axes, curves)
        axes.set_xlim(left=0)
        axes.set_xlabel("load, frames/s in one direction")
        axes.set_ylabel(f"{what}, {unit}")
        add_legend(axes)

    return draw_svg(name, draw)


def _against_size(runs: Sequence[RunPart], curves: Sequence[Curve], name: str, what: str) -> str | None:
    sizes = sorted({place for curve in curves for place in curve.places})
    if len(sizes) < 2:
        return None

    def draw(axes: Axes) -> None:
        unit = _draw_curves(axes, curves)
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [size_label(size, runs) for size in sizes])
        axes.set_xlim(sizes[0] / 1.2, sizes[-1] * 1.2)
        axes.minorticks_off()
        axes.set_xlabel("frame size IPv4 / IPv6, octets with FCS")
        axes.set_ylabel(f"{what}, {unit}")
        add_legend(axes)

    return draw_svg(name, draw)


def _draw_curves(axes: Axes, curves: Sequence[Curve]) -> str:
    """Medians with bars from p1 to p99; return the unit of time. Logarithmic where they are far apart."""
    summaries = [figure.summary for curve in curves for figure in curve.figures if figure.summary is not None]
    unit, unit_ns = unit_of_times(summary.p99 for summary in summaries)
    for number, curve in enumerate(curves):
        found = [figure.summary for figure in curve.figures if figure.summary is not None]
        medians = [summary.median / unit_ns for summary in found]
        spread = [
            [max(0.0, (summary.median - summary.p1) / unit_ns) for summary in found],
            [max(0.0, (summary.p99 - summary.median) / unit_ns) for summary in found],
        ]
        colour, marker = SERIES[number % len(SERIES)]
        axes.errorbar(
            curve.places, medians, yerr=spread, color=colour, marker=marker, markersize=5.5, linewidth=1.4,
            capsize=4, linestyle=LINES[number % len(LINES)], label=curve.label,
        )  # fmt: skip
    _from_zero_or_log(axes, min(summary.p1 for summary in summaries), max(summary.p99 for summary in summaries))
    return unit


def _from_zero_or_log(axes: Axes, lowest: int | float, highest: int | float) -> None:
    """Delays from 0 on, or on a logarithmic axis where they are far apart."""
    if lowest > 0 and highest > 20 * lowest:
        axes.set_yscale("log")
        _few_ticks(axes.yaxis, highest / lowest)
    else:
        axes.set_ylim(bottom=0)


def _binned(histogram: Histogram, lowest: int, highest: int) -> tuple[list[float], list[int]]:
    """Gather buckets into bins of equal width on a logarithmic axis, never narrower than 1 % of their place."""
    ratio = max(highest / lowest, 1.05)
    bins = max(5, min(BINS_MAX, int((ratio - 1) * 100)))
    edges = [lowest * ratio ** (number / bins) for number in range(bins + 1)]
    counts, place = [0] * bins, 0
    for ns, count in histogram:
        while place < bins - 1 and ns >= edges[place + 1]:
            place += 1
        counts[place] += count
    return edges, counts


def _percentile_steps(histogram: Histogram) -> tuple[list[float], list[int]]:
    """Return 1 / (1 - p) and the delay that a share p of the frames does not exceed."""
    total, seen = sum(count for _, count in histogram), 0
    places, delays = [1.0], [histogram[0][0]]
    for ns, count in histogram:
        seen += count
        left = max(total - seen, 0)
        places.append(total / left if left else 2.0 * total)
        delays.append(ns)
    return places, delays


def slice_edges(trial: TrialRow, row: DirectionRow, recovery: RecoveryPart | None) -> list[float]:
    """Return when the first frame of each hundredth was due, and the end, seconds; a load may fall in between."""
    slices = len(row.loss_by_slice)
    if recovery is None:
        return [trial.duration_ns / 10**9 * number / slices for number in range(slices + 1)]
    fall_s = recovery.overload_ns / 10**9
    before = recovery.overload * fall_s
    edges = []
    for number in range(slices + 1):
        index = row.intended * number / slices
        later = fall_s + (index - before) / recovery.recovery_load
        edges.append(index / recovery.overload if index <= before else later)
    return edges


def _few_ticks(axis: Axis, ratio: float) -> None:
    """Ticks of a logarithmic axis at 1, 2 and 5, or closer where its ends are near each other."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    axis.set_major_locator(MaxNLocator(6) if ratio < 5 else LogLocator(subs=(1, 2, 5) if ratio < 1000 else (1,)))
    axis.set_minor_formatter(NullFormatter())
    _plain_ticks(axis)


def _plain_ticks(axis: Axis) -> None:
    """Delays on a logarithmic axis as figures, not as powers of ten."""
    axis.set_major_formatter(lambda value, _position: f"{value:,.10g}")
