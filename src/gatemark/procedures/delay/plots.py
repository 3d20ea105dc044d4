"""Plots of the delays of all frames: histograms and percentile curves, as SVG text. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gatemark.procedures.delay.result import DelayPoint, DelayResult, DelaySeries
from gatemark.report.plot_style import (
    LINES,
    SERIES,
    Drawing,
    add_legend,
    few_ticks,
    from_zero_or_log,
    log_counts,
    plain_ticks,
)
from gatemark.report.table import Plot, plot
from gatemark.report.words import format_count, run_name, unit_of_times
from gatemark.stats.percentiles import DELAY_PERCENTILES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS_MAX = 120
"""Bins of a histogram, over the range that is drawn."""

Histogram = Sequence[tuple[int, int]]


def of_run(run: DelayResult) -> Iterator[Plot]:
    """Yield the plots of one run; histograms of its first load that could be offered."""
    point = next((point for point in run.points if point.series), None)
    if point is None:
        return
    name = run_name(run)
    load = f"{format_count(point.frames_per_second)} frames/s, first repetition"
    for drawing, caption in (
        (delay_histogram_plot(run, point), f"Delays of all frames at {load}. {name}."),
        (ipdv_histogram_plot(run, point), f"Inter packet delay variation at {load}. {name}."),
        (percentile_plot(run), f"Delay by percentile, first repetition of each load. {name}."),
    ):
        yield from plot(drawing, caption)


def delay_histogram_plot(run: DelayResult, point: DelayPoint) -> Drawing | None:
    """Delays of all frames of the first repetition, with typical and worst case latency; both axes are logarithmic."""
    shown = [(series, histogram) for series in point.series if (histogram := decoded(series.hdr))]
    if not shown:
        return None
    ends = [ns for _, histogram in shown for ns in (histogram[0][0], histogram[-1][0])]
    unit, unit_ns = unit_of_times(ends)

    def draw(axes: Axes) -> None:
        for number, (series, histogram) in enumerate(shown):
            colour, _ = SERIES[number % len(SERIES)]
            edges, counts = _binned(histogram, max(1, min(ends)), max(ends))
            axes.stairs(
                counts, [edge / unit_ns for edge in edges], baseline=0.5, color=colour, fill=number == 0,
                alpha=0.35 if number == 0 else None, linewidth=1.2, linestyle=LINES[max(0, number - 1) % len(LINES)],
                label=_name(run, series),
            )  # fmt: skip
            if series.latency is None:
                continue
            marks = ((series.latency.typical_ns, "typical", "--"), (series.latency.worst_case_ns, "worst case", ":"))
            for figure, word, line in marks:
                if figure.values and figure.values[0] is not None:
                    axes.axvline(
                        figure.values[0] / unit_ns, color=colour, linestyle=line, linewidth=1.1,
                        label=f"{word} latency, {_name(run, series)}",
                    )  # fmt: skip
        axes.set_xscale("log")
        log_counts(axes)
        few_ticks(axes.xaxis, max(ends) / max(1, min(ends)))
        axes.set_xlabel(f"delay, {unit}")
        axes.set_ylabel("frames")
        add_legend(axes)

    return Drawing(name="histogram of delays", draw=draw)


def ipdv_histogram_plot(run: DelayResult, point: DelayPoint) -> Drawing | None:
    """Delay variation between successive frames of the first repetition; None if none was measured."""
    shown = [(series, series.ipdv.histogram) for series in point.series if series.ipdv and series.ipdv.histogram]
    if not shown:
        return None
    unit, unit_ns = unit_of_times(ns for _, histogram in shown for ns in (histogram[0][0], histogram[-1][0]))

    def draw(axes: Axes) -> None:
        for number, (series, histogram) in enumerate(shown):
            colour, marker = SERIES[number % len(SERIES)]
            axes.plot(
                [ns / unit_ns for ns, _ in histogram], [count for _, count in histogram], color=colour, marker=marker,
                markersize=4, linestyle="none", fillstyle="none" if number else "full", label=_name(run, series),
            )  # fmt: skip
        smallest = min((abs(ns) for _, histogram in shown for ns, _ in histogram if ns), default=1)
        axes.set_xscale("symlog", linthresh=max(smallest, 100) / unit_ns)
        log_counts(axes)
        plain_ticks(axes.xaxis)
        axes.set_xlabel(f"delay of a frame less that of the frame before it, {unit}")
        axes.set_ylabel("pairs of frames")
        add_legend(axes)

    return Drawing(name="histogram of delay variation", draw=draw)


def percentile_plot(run: DelayResult) -> Drawing | None:
    """Delay against percentile for every load and direction; each step of the axis leaves a tenth of the frames."""
    shown = [(point, s, histogram) for point in run.points for s in point.series if (histogram := decoded(s.hdr))]
    if not shown:
        return None
    unit, unit_ns = unit_of_times(histogram[-1][0] for _, _, histogram in shown)
    several = len({point.frames_per_second for point, _, _ in shown}) > 1

    def draw(axes: Axes) -> None:
        for number, (point, series, histogram) in enumerate(shown):
            places, delays = _percentile_steps(histogram)
            load = f"{format_count(point.frames_per_second)} frames/s, " if several else ""
            colour, _ = SERIES[number % len(SERIES)]
            axes.plot(
                places, [ns / unit_ns for ns in delays], color=colour, linewidth=1.4, drawstyle="steps-pre",
                linestyle=LINES[number // len(SERIES) % len(LINES)] if number >= len(SERIES) else LINES[number % 4],
                label=f"{load}{_name(run, series)}",
            )  # fmt: skip
        axes.set_xscale("log")
        shares = [0.0, *(rank / 100_000 for rank in DELAY_PERCENTILES.values())]
        ticks = [1 / (1 - share) for share in shares]  # equal distances are tenths of what is left above
        axes.set_xticks(ticks, [f"{100 * share:.10g} %" for share in shares])
        axes.set_xlim(1, ticks[-1] * 2)
        axes.minorticks_off()
        shortest = min(histogram[0][0] for _, _, histogram in shown)
        longest = max(histogram[-1][0] for _, _, histogram in shown)
        from_zero_or_log(axes, shortest / unit_ns, longest / unit_ns)
        axes.set_xlabel("percentile of the frames that have a delay, %")
        axes.set_ylabel(f"delay, {unit}")
        add_legend(axes)

    return Drawing(name="delay by percentile", draw=draw, x_value=lambda place: 100 * (1 - 1 / place))


def decoded(hdr: str) -> list[tuple[int, int]]:
    """Return (ns, frames) of each bucket of an HdrHistogram string, ascending; empty for an empty string."""
    if not hdr:
        return []
    from hdrh.histogram import HdrHistogram  # imported where needed: no other command pays for it

    histogram = HdrHistogram.decode(hdr)
    return [
        (int(item.value_iterated_to), int(item.count_at_value_iterated_to))
        for item in histogram.get_recorded_iterator()
    ]  # fmt: skip


def _name(run: DelayResult, series: DelaySeries) -> str:
    way = run.way_word(series.direction)
    return f"{way} {series.class_}" if run.mix.is_mixed else way


def _binned(histogram: Histogram, lowest: int, highest: int) -> tuple[list[float], list[int]]:
    """Gather buckets into bins of equal width on a logarithmic axis, never narrower than 1 % of their value."""
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
    total, passed = sum(count for _, count in histogram), 0
    places, delays = [1.0], [histogram[0][0]]
    for ns, count in histogram:
        passed += count
        left = max(total - passed, 0)
        places.append(total / left if left else 2.0 * total)
        delays.append(ns)
    return places, delays
