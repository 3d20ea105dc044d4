"""Plots of the trials of one run, as SVG text: the path of a search, and loss over time. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from gatemark.report.model import DirectionRow, TrialRow
from gatemark.report.plot_style import BLUE, GRID, INK, LINES, QUIET, RUST, SERIES, Drawing, add_legend
from gatemark.report.words import format_count
from gatemark.results.unit import unit_named
from gatemark.units import NANOSECONDS_PER_SECOND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUTCOMES = {
    "passed": ("o", BLUE, "full", "passed"),
    "failed": ("X", RUST, "full", "failed"),
    "invalid": ("^", QUIET, "none", "invalid (neither)"),
    "suspect": ("v", QUIET, "none", "suspect (does not count)"),
    "cancelled": ("|", QUIET, "none", "cancelled (neither)"),
}
"""Outcome of a trial: marker, colour, fill, words."""


def search_plot(trials: Sequence[TrialRow], *, unit: str) -> Drawing | None:
    """Load of every trial of one run in the order of the trials; the marker shows how each ended."""
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
        axes.set_ylabel(f"load, {unit_named(unit).title}")
        add_legend(axes)

    return Drawing(name="search path", draw=draw, height=2.9)


def loss_over_time_plot(trial: TrialRow, fall: tuple[int, int] | None = None) -> Drawing | None:
    """Lost frames over the sending time of one trial; None if none was lost.

    `fall`: when the load falls (nanoseconds from the start of sending), and to what load (frames/s); it is marked.
    """
    rows = [row for row in trial.directions if any(row.loss_by_slice)]
    if not rows:
        return None

    def draw(axes: Axes) -> None:
        for number, row in enumerate(rows):
            edges = slice_edges(trial, row, fall)
            colour, _ = SERIES[number % len(SERIES)]
            axes.stairs(
                row.loss_by_slice, edges, color=colour, fill=number == 0, alpha=0.35 if number == 0 else None,
                linewidth=1.3, linestyle=LINES[number % len(LINES)], label=row.direction,
            )  # fmt: skip
        if fall is not None:
            fall_ns, later = fall
            axes.axvline(
                fall_ns / NANOSECONDS_PER_SECOND, color=INK, linestyle="--", linewidth=1.1,
                label=f"load falls to {format_count(later)} frames/s",
            )  # fmt: skip
        axes.set_xlim(0, trial.duration_ns / NANOSECONDS_PER_SECOND)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time since the start of sending, s")
        axes.set_ylabel("frames lost in a hundredth\nof the frames")
        add_legend(axes)

    return Drawing(name="frames lost over time", draw=draw, height=2.6)


def slice_edges(trial: TrialRow, row: DirectionRow, fall: tuple[int, int] | None) -> list[float]:
    """Return when the first frame of each hundredth was due, and the end, in seconds; the load may fall in between."""
    slices = len(row.loss_by_slice)
    if fall is None:
        return [trial.duration_ns / NANOSECONDS_PER_SECOND * number / slices for number in range(slices + 1)]
    fall_ns, later = fall
    fall_s = fall_ns / NANOSECONDS_PER_SECOND
    before = trial.frames_per_second * fall_s
    edges = []
    for number in range(slices + 1):
        index = row.intended * number / slices
        edges.append(index / trial.frames_per_second if index <= before else fall_s + (index - before) / later)
    return edges
