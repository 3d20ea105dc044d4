"""Plots as SVG text for the page. Outcomes differ by shape, not by colour alone. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from gatemark.report.model import TrialRow
from gatemark.report.plot_style import (
    BLUE,
    GRID,
    INK,
    QUIET,
    RUST,
    SERIES,
    add_legend,
    draw_svg,
    run_size,
    size_label,
)
from gatemark.report.words import connections_of, format_mix, format_sizes, format_time, found_summary, way_word
from gatemark.results.schema import RunPart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUTCOMES = {
    "passed": ("o", BLUE, "full", "passed"),
    "failed": ("X", RUST, "full", "failed"),
    "invalid": ("^", QUIET, "none", "invalid (neither)"),
    "cancelled": ("|", QUIET, "none", "cancelled (neither)"),
}
"""Outcome of a trial: marker, colour, fill, words."""


def throughput_plot(runs: Sequence[RunPart]) -> str | None:
    """Throughput against frame size with the line of the theoretical maximum (RFC 2544 section 26.1).

    Runs without a measured rate are not drawn. None if fewer than one point is left.
    """
    drawn = [run for run in runs if run.rate_per_direction is not None and run.limited_by != "tester"]
    if not drawn:
        return None

    def draw(axes: Axes) -> None:
        groups: dict[tuple[str, str, int | None], list[RunPart]] = {}
        for run in drawn:
            way = way_word(run, run.direction)
            groups.setdefault((way, format_mix(run), connections_of(run)), []).append(run)
        several_mixes = len({mix for _, mix, _ in groups}) > 1
        for number, ((direction, mix, count), members) in enumerate(groups.items()):
            words = ["measured", "each direction of both" if direction == "bidirectional" else direction]
            words += [mix] if several_mixes else []
            words += [f"{count:,} connections"] if count is not None else []
            _rate_series(axes, members, ", ".join(words), SERIES[number % len(SERIES)])
        limits = _limit_series(drawn)
        rates = [float(run.rate_per_direction.median) for run in drawn if run.rate_per_direction]
        highest_bar = max(float(run.rate_per_direction.p99) for run in drawn if run.rate_per_direction)
        axes.set_ylim(bottom=0, top=max(max(rates) * 1.3, highest_bar * 1.1))
        if limits:
            axes.plot(*zip(*limits, strict=True), color=INK, linestyle="--", linewidth=1.1, label="theoretical maximum")
            highest = max(rate for _, rate in limits)
            axes.set_ylim(bottom=0, top=highest * 1.1)
            if highest > 8 * max(rates):
                axes.set_yscale("log")
                axes.set_ylim(bottom=min([*rates, *(rate for _, rate in limits)]) / 2, top=highest * 2)
        axes.set_xscale("log", base=2)
        sizes = sorted({run_size(run) for run in drawn})
        axes.set_xticks(sizes, [size_label(size, drawn) for size in sizes])
        axes.set_xlim(sizes[0] / 1.2, sizes[-1] * 1.2)
        axes.minorticks_off()
        axes.set_xlabel("frame size IPv4 / IPv6, octets with FCS")
        axes.set_ylabel("frames/s in one direction")
        add_legend(axes)

    return draw_svg("throughput against frame size", draw)


def frame_loss_plot(run: RunPart) -> str | None:
    """Frame loss in percent against the offered load (RFC 2544 section 26.3); loads not offered are left out."""
    points = [point for point in run.points if point.directions]
    if not points:
        return None

    def draw(axes: Axes) -> None:
        series = dict.fromkeys((part.direction, part.class_) for point in points for part in point.directions)
        several_classes = len({kind for _, kind in series}) > 1
        for number, (direction, kind) in enumerate(series):
            rows = [
                (point.frames_per_second, part.loss_percent)
                for point in sorted(points, key=lambda point: point.frames_per_second)
                for part in point.directions
                if (part.direction, part.class_) == (direction, kind)
            ]
            loads = [load for load, _ in rows]
            median = [float(loss.median) for _, loss in rows]
            spread = [
                [max(0.0, float(loss.median - loss.p1)) for _, loss in rows],
                [max(0.0, float(loss.p99 - loss.median)) for _, loss in rows],
            ]
            colour, marker = SERIES[number % len(SERIES)]
            axes.errorbar(
                loads, median, yerr=spread, color=colour, marker=marker, markersize=5, linewidth=1.3, capsize=3,
                linestyle=("-", "--", "-.", ":")[number % 4],
                label=f"{direction}, {kind}" if several_classes else direction,
            )  # fmt: skip
        axes.set_ylim(bottom=min(0.0, -0.02 * axes.get_ylim()[1]), top=max(axes.get_ylim()[1], 0.1))
        axes.set_xlim(left=0)
        axes.set_xlabel("offered load, frames/s in one direction")
        axes.set_ylabel("frames lost, %")
        add_legend(axes)

    return draw_svg("frame loss against load", draw)


def connections_plot(runs: Sequence[RunPart]) -> str | None:
    """Rates against the number of connections, logarithmic: establishment, validated, and throughput in phase 2.

    Runs without a measured rate are not drawn. None if fewer than two numbers of connections are left.
    """
    drawn = [
        run for run in runs if connections_of(run) is not None and found_summary(run) and run.limited_by != "tester"
    ]
    counts = sorted({count for run in drawn if (count := connections_of(run)) is not None})
    if len(counts) < 2:
        return None

    def draw(axes: Axes) -> None:
        groups: dict[str, list[RunPart]] = {}
        for run in drawn:
            groups.setdefault(_connections_label(run, drawn), []).append(run)
        for number, (label, members) in enumerate(groups.items()):
            _rate_series(axes, members, label, SERIES[number % len(SERIES)], place=lambda run: connections_of(run) or 0)
        rates = [float(found.median) for run in drawn if (found := found_summary(run)) is not None]
        bars = [float(found.p99) for run in drawn if (found := found_summary(run)) is not None]
        axes.set_ylim(bottom=0, top=max(max(rates) * 1.2, max(bars) * 1.1))
        axes.set_xscale("log")
        axes.set_xticks(counts, [_short_count(count) for count in counts])
        axes.tick_params(axis="x", labelrotation=35 if len(counts) > 6 else 0)
        axes.set_xlim(counts[0] / 1.3, counts[-1] * 1.3)
        axes.minorticks_off()
        axes.set_xlabel("number of connections")
        axes.set_ylabel("connections/s; frames/s in one direction")
        add_legend(axes)

    return draw_svg("rates against number of connections", draw)


def search_plot(trials: Sequence[TrialRow], *, unit: str = "frames/s in one direction") -> str | None:
    """Load of every trial of one run in the order of the trials; shape tells passed, failed and invalid."""
    if not trials:
        return None
    from matplotlib.ticker import MaxNLocator

    def draw(axes: Axes) -> None:
        numbers = range(1, len(trials) + 1)
        axes.plot(numbers, [trial.frames_per_second for trial in trials], color=GRID, linewidth=1, zorder=1)
        for outcome, (marker, colour, fill, words) in OUTCOMES.items():
            chosen = [(n, t) for n, t in zip(numbers, trials, strict=True) if t.outcome == outcome]
            if not chosen:
                continue
            axes.plot(
                [n for n, _ in chosen], [trial.frames_per_second for _, trial in chosen], linestyle="none",
                marker=marker, markersize=6, color=colour, fillstyle="full" if fill == "full" else "none",
                label=f"{words} ({len(chosen)})", zorder=3,
            )  # fmt: skip
        confirmed = [(n, t) for n, t in zip(numbers, trials, strict=True) if t.purpose == "confirmation"]
        if confirmed:
            axes.plot(
                [n for n, _ in confirmed], [trial.frames_per_second for _, trial in confirmed], linestyle="none",
                marker="o", markersize=12, markeredgewidth=0.8, color=INK, fillstyle="none",
                label="full length (confirmation)", zorder=2,
            )  # fmt: skip
        for first, (before, trial) in enumerate(pairwise(trials), start=2):
            if trial.repetition == before.repetition:
                continue
            axes.axvline(first - 0.5, color=QUIET, linewidth=0.6, linestyle=":")
        axes.set_ylim(bottom=0, top=max(trial.frames_per_second for trial in trials) * 1.15)
        axes.set_xlim(0.3, len(trials) + 0.7)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set_xlabel("trial, in the order measured (dotted line: next repetition)")
        axes.set_ylabel(f"load, {unit}")
        add_legend(axes)

    return draw_svg("search path", draw, height=2.9)


def lateness_plot(histogram: Sequence[tuple[int, int]]) -> str | None:
    """Bursts by lateness: the Tester's own error in sending on time, counts on a logarithmic axis."""
    filled = [number for number, (_, bursts) in enumerate(histogram) if bursts]
    if not filled:
        return None
    shown = list(histogram[: filled[-1] + 1])

    def draw(axes: Axes) -> None:
        axes.bar(range(len(shown)), [bursts for _, bursts in shown], color=BLUE, width=0.85)
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
        step = max(1, len(shown) // 12)
        ticks = range(0, len(shown), step)
        axes.set_xticks(list(ticks), [f"< {_edge(shown[number][0])}" for number in ticks])
        axes.tick_params(axis="x", labelrotation=35 if len(ticks) > 8 else 0)
        axes.set_xlabel("lateness of a burst: actual minus planned sending time")
        axes.set_ylabel("bursts")

    return draw_svg("lateness of the Tester", draw, height=2.6)


def _short_count(count: int) -> str:
    """A number of connections for an axis: 400k, 6.25M."""
    for unit, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= unit:
            return f"{count / unit:.4g}{letter}"
    return str(count)


def _connections_label(run: RunPart, others: Sequence[RunPart]) -> str:
    """A rate in words; frame sizes and mix only where the others differ in them."""
    words = {
        "connection_establishment_rate": "establishment, connections/s",
        "validated_connection_establishment_rate": "validated establishment, connections/s",
    }
    label = [words.get(run.procedure) or f"{way_word(run, run.direction)} throughput, frames/s"]
    if len({format_sizes(other) for other in others}) > 1:
        label.append(f"{format_sizes(run)} octets")
    if len({format_mix(other) for other in others}) > 1:
        label.append(format_mix(run))
    return ", ".join(label)


def _rate_series(
    axes: Axes,
    runs: Sequence[RunPart],
    label: str,
    style: tuple[str, str],
    *,
    place: Callable[[RunPart], int] | None = None,
) -> None:
    """One line of medians with bars from p1 to p99; `place` says where on the axis, by default at the frame size."""
    rows = sorted((((place or run_size)(run), run) for run in runs), key=lambda row: row[0])
    sizes = [size for size, _ in rows]
    summaries = [found for _, run in rows if (found := found_summary(run)) is not None]
    medians = [float(summary.median) for summary in summaries]
    spread = [
        [max(0.0, float(summary.median - summary.p1)) for summary in summaries],
        [max(0.0, float(summary.p99 - summary.median)) for summary in summaries],
    ]
    colour, marker = style
    axes.errorbar(
        sizes, medians, yerr=spread, color=colour, marker=marker, markersize=5.5, linewidth=1.4, capsize=4, label=label
    )
    if any(run.limited_by == "maximum" for _, run in rows):
        both = zip(rows, medians, strict=True)
        least = [(size, median) for (size, run), median in both if run.limited_by == "maximum"]
        axes.plot(
            *zip(*least, strict=True), linestyle="none", marker="^", markersize=11, fillstyle="none", color=colour,
            label="at least (limited by the chosen maximum)",
        )  # fmt: skip


def _limit_series(runs: Sequence[RunPart]) -> list[tuple[int, int]]:
    return sorted(
        {(run_size(run), run.theoretical_maximum.frames_per_second) for run in runs if run.theoretical_maximum}
    )


def _edge(nanoseconds: int) -> str:
    return "∞" if nanoseconds >= 2**62 else format_time(nanoseconds)
