"""Plots of quantities over any axis. Series differ by marker and line, not by colour alone.

Pure and deterministic: the same rows give the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatemark.report.model import UNBOUNDED_NS
from gatemark.report.plot_style import (
    BLUE,
    INK,
    LINES,
    QUIET,
    SERIES,
    Drawing,
    add_legend,
    far_apart,
    few_ticks,
    from_zero_or_log,
    log_counts,
)
from gatemark.report.words import format_count, format_in, unit_of_times
from gatemark.results.coordinates import CONNECTIONS, LOAD, SIZES, dimension, place_words
from gatemark.results.quantity import Quantity, Row, varying
from gatemark.results.unit import unit_named
from gatemark.stats.summary import Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS_MAX = 60
"""Figures in one overview plot; more would not be readable."""
GROUP_GAP = 0.6
"""Room between two groups of bars, as a part of that of a bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What figures are plotted against."""

    names: tuple[str, ...]
    """Coordinates that say where a row stands: the first that it has."""
    follow: tuple[str, ...] = (LOAD,)
    """Others that do not get a separate line."""
    log_base: int | None = 10
    """Of a logarithmic axis; None for one that starts at 0."""
    names_places: bool = True
    """Whether places have a tick each, rather than round numbers."""

    @property
    def heading(self) -> str:
        return dimension(self.names[0]).axis

    def place(self, row: Row) -> int:
        """Return where a row stands."""
        return next((int(value) for name in self.names if (value := row.place.get(name))), 0)

    def label(self, rows: Sequence[Row], at: int) -> str:
        """Return the words at a place, of the rows that are drawn."""
        if len(self.names) == 1:
            return short_count(at)
        return dimension(self.names[0]).words(next(row.place for row in rows if self.place(row) == at))


AXES: Mapping[str, Axis] = {
    "frame_size": Axis(names=SIZES, log_base=2),
    "connections": Axis(names=(CONNECTIONS,), follow=("alpha", LOAD)),
    "load": Axis(names=(LOAD,), log_base=None, names_places=False),
    "cores": Axis(names=("cores",), log_base=2),
}
"""Axes that any campaign may have."""


def axis_of(name: str, places: Sequence[int]) -> Axis:
    """Return an axis of one coordinate with these places: logarithmic if they span a decade, else from 0.

    Cores are always from 0.
    """
    spans_decade = name != "cores" and min(places) > 0 and max(places) >= 10 * min(places)
    return Axis(names=(name,), log_base=10 if spans_decade else None)


def plot_against(
    rows: Sequence[Row],
    axis: str | Axis,
    *,
    name: str,
    limits: Mapping[int, Number] | None = None,
    ideal: Sequence[Mapping[int, Number]] = (),
    places_min: int = 2,
) -> Drawing | None:
    """Plot figures against an axis, or one of `AXES`: medians with bars from p1 to p99, one line for each other
    difference.

    `limits` has the theoretical maximum at places of the axis, `ideal` what figures would be if they grew like the
    axis. None with fewer than `places_min` places. Rows that say nothing about the gateway are not drawn.
    """
    against = AXES[axis] if isinstance(axis, str) else axis
    place = against.place
    drawn = [row for row in rows if row.quantity.is_measured]
    places = sorted({place(row) for row in drawn})
    if len(places) < places_min or not drawn:
        return None

    def draw(axes: Axes) -> None:
        unit, divisor = _unit(drawn)
        for number, (label, members) in enumerate(_lines(drawn, against).items()):
            _line(axes, sorted(members, key=place), place, divisor, label, number)
        lowest, highest = _ends(drawn, divisor)
        for number, line in enumerate(ideal):
            axes.plot(*zip(*sorted(line.items()), strict=True), color=QUIET, linestyle=":", linewidth=1.1,
                      label=None if number else "ideal scale-up")  # fmt: skip
            highest = max(highest, *line.values())
        if limits:
            axes.plot(*zip(*sorted(limits.items()), strict=True), color=INK, linestyle="--", linewidth=1.1,
                      label="theoretical maximum")  # fmt: skip
            highest = max(highest, *limits.values())
        from_zero_or_log(axes, lowest, highest)
        if against.log_base is not None:
            axes.set_xscale("log", base=against.log_base)
        if against.names_places:
            axes.set_xticks(places, [against.label(drawn, at) for at in places])
            axes.tick_params(axis="x", labelrotation=35 if len(places) > 6 else 0)
            axes.minorticks_off()
        if against.log_base is None:
            axes.set_xlim(left=0)
        else:
            axes.set_xlim(places[0] / 1.3, places[-1] * 1.3)
        axes.set_xlabel(against.heading)
        axes.set_ylabel(unit)
        add_legend(axes)

    return Drawing(name=name, draw=draw)


def overview_plot(rows: Sequence[Row], *, name: str) -> Drawing | None:
    """Compare gateways in one quantity: a bar for each row with its median, and whiskers from p1 to p99.

    None with fewer than two bars. A hollow bar is a lower bound: the search ended at its maximum, or something other
    than the gateway ended it and that load passed in every repetition. Where there are more bars than can be read, the
    axis says how many of them are drawn.
    """
    figures = [row for row in rows if row.quantity.is_measured or row.quantity.passed_at_least is not None]
    drawn = figures[:BARS_MAX]
    if len(drawn) < 2:
        return None
    labels = _bar_labels(drawn)

    def draw(axes: Axes) -> None:
        unit, divisor = _unit(drawn)
        places = range(len(drawn), 0, -1)
        left_out = "" if len(drawn) == len(figures) else f"; the first {len(drawn)} of {len(figures)} figures"
        _bar_axes(axes, dict(zip(places, labels, strict=True)), _ends(drawn, divisor), f"{unit}{left_out}")
        for at, row in zip(places, drawn, strict=True):
            known = row.quantity.limited_by == "gateway"
            _bar(axes, at, row, (unit, divisor), BLUE, label="measured" if known else "at least")

    return Drawing(name=name, draw=draw, height=0.7 + 0.34 * len(drawn))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A figure of one of several groups that have figures of the same names."""

    group: str
    name: str
    row: Row


def grouped_plot(bars: Sequence[Bar], *, name: str) -> Drawing | None:
    """Compare groups in one quantity: bars of the same name have the same colour; see `overview_plot`.

    None with fewer than two bars.
    """
    drawn = [bar for bar in bars if bar.row.quantity.is_measured or bar.row.quantity.passed_at_least is not None]
    if len(drawn) < 2:
        return None
    names = list(dict.fromkeys(bar.name for bar in drawn))
    groups: dict[str, list[Bar]] = {}
    for bar in drawn:
        groups.setdefault(bar.group, []).append(bar)
    rows = [bar.row for bar in drawn]
    height = len(drawn) + GROUP_GAP * (len(groups) - 1)

    def draw(axes: Axes) -> None:
        unit, divisor = _unit(rows)
        centres: dict[float, str] = {}
        places: list[tuple[float, Bar]] = []
        at = height
        for group, members in groups.items():
            centres[at - (len(members) - 1) / 2] = group
            places.extend((at - number, bar) for number, bar in enumerate(members))
            at -= len(members) + GROUP_GAP
        _bar_axes(axes, centres, _ends(rows, divisor), unit)
        shown: set[str] = set()
        for at, bar in places:
            label = "_nolegend_" if bar.name in shown else bar.name
            shown.add(bar.name)
            colour, _ = SERIES[names.index(bar.name) % len(SERIES)]
            _bar(axes, at, bar.row, (unit, divisor), colour, label=label)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(names), frameon=False, fontsize=8.5)

    return Drawing(name=name, draw=draw, height=1.0 + 0.3 * height)


def _bar(axes: Axes, at: float, row: Row, unit: tuple[str, int], colour: str, *, label: str) -> None:
    """A bar with its figure behind it, hollow if that is a lower bound; `unit` has a divisor.

    On a logarithmic axis, where the length of a bar means nothing, a point on a thin line.
    """
    words, divisor = unit
    value, low, high = _spread(row, divisor)
    known = row.quantity.limited_by == "gateway"
    fill = colour if known else "none"
    if axes.get_xscale() == "log":
        axes.barh(at, value, height=0.05, color=colour, label=label)
        axes.plot(value, at, marker="o", markersize=7, color=colour, markerfacecolor=fill, linestyle="none")
    else:
        axes.barh(at, value, height=0.62, color=fill, edgecolor=colour, linewidth=1.1, label=label)
    if row.quantity.is_measured:
        axes.errorbar(value, at, xerr=[[value - low], [high - value]], color=INK, capsize=3, linewidth=1.0)
    figure = _drawn_value(row.quantity)
    written = format_in(figure, divisor) if words in ("µs", "ms") else format_count(figure)
    axes.annotate(
        f"{'' if known else '≥ '}{written}", (max(high, value), at), xytext=(5, 0), textcoords="offset points",
        va="center", fontsize=8.5, color=INK,
    )  # fmt: skip


def _bar_axes(axes: Axes, labels: Mapping[float, str], ends: tuple[float, float], heading: str) -> None:
    """Axes of bars that lie beside these labels: from 0, or logarithmic if the figures are far apart.

    Called before `_bar`, which draws for the scale that is set.
    """
    axes.set_yticks(list(labels), list(labels.values()))
    axes.tick_params(axis="y", length=0)
    axes.margins(y=min(0.05, 0.5 / len(labels)))
    lowest, highest = ends
    if far_apart(lowest, highest):
        axes.set_xscale("log")
        axes.set_xlim(lowest / 2, highest * 3)
        few_ticks(axes.xaxis, highest / lowest * 6)
        heading = f"{heading}; logarithmic scale, a hollow point is a lower bound"
    else:
        axes.set_xlim(0, highest * 1.18)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.set_xlabel(heading)


def lateness_plot(histogram: Sequence[tuple[int, int]], edge: Callable[[int], str]) -> Drawing | None:
    """Bursts by lateness, the Tester's own error in sending on time; counts are on a logarithmic axis."""
    shown = _classes([(below, bursts) for below, bursts in histogram if bursts])
    if not shown:
        return None

    def draw(axes: Axes) -> None:
        names = [f"< {edge(below)}" for below, _ in shown]
        axes.bar(range(len(shown)), [bursts for _, bursts in shown], color=BLUE, width=0.85, label=names)
        log_counts(axes)
        step = max(1, len(shown) // 12)
        ticks = range(0, len(shown), step)
        axes.set_xticks(list(ticks), [names[number] for number in ticks])
        axes.tick_params(axis="x", labelrotation=35 if len(ticks) > 8 else 0)
        axes.set_xlabel("lateness of a burst: actual minus planned sending time")
        axes.set_ylabel("bursts")

    return Drawing(name="lateness of the Tester", draw=draw, height=2.6)


def _classes(filled: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Put the empty classes back between those that have bursts: each edge is twice the one before it."""
    classes: list[tuple[int, int]] = []
    for below, bursts in filled:
        while classes and classes[-1][0] > 0 and 3 * classes[-1][0] <= below < UNBOUNDED_NS:
            classes.append((2 * classes[-1][0], 0))
        classes.append((below, bursts))
    return classes


def short_count(count: int) -> str:
    """A number for an axis: 400k, 6.25M."""
    for unit, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= unit:
            return f"{count / unit:.4g}{letter}"
    return str(count)


def _unit(rows: Sequence[Row]) -> tuple[str, int]:
    """Return the unit of an axis and the divisor of its values; times are in a unit that suits all of them."""
    units = list(dict.fromkeys(row.quantity.unit for row in rows))
    if units != ["ns"]:
        return "; ".join(unit_named(unit).title for unit in units), 1
    return unit_of_times(row.quantity.p99 or row.quantity.value for row in rows)


def _drawn_value(quantity: Quantity) -> Number:
    return (quantity.value if quantity.is_measured else quantity.passed_at_least) or 0


def _spread(row: Row, divisor: int) -> tuple[float, float, float]:
    quantity = row.quantity
    value = low = high = float(_drawn_value(quantity))
    if quantity.is_measured:
        low = value if quantity.p1 is None else min(value, float(quantity.p1))
        high = value if quantity.p99 is None else max(value, float(quantity.p99))
    return value / divisor, low / divisor, high / divisor


def _ends(rows: Sequence[Row], divisor: int) -> tuple[float, float]:
    spreads = [_spread(row, divisor) for row in rows]
    return min(low for _, low, _ in spreads), max(high for _, _, high in spreads)


def _lines(rows: Sequence[Row], axis: Axis) -> dict[str, list[Row]]:
    """Group the rows of a plot by what they differ in apart from its axis, each group with its label."""
    apart = [name for name in varying(rows) if name not in (*axis.names, *axis.follow)]
    names = len({row.quantity.name for row in rows}) > 1
    units = len({row.quantity.unit for row in rows}) > 1
    gateways = len({(row.campaign, row.gateway) for row in rows}) > 1
    lines: dict[str, list[Row]] = {}
    for row in rows:
        words = [row.gateway] if gateways and "cores" not in apart else []
        if names or not apart:
            words.append(f"{row.quantity.name}, {row.quantity.unit}" if units else row.quantity.name)
        words += place_words(row.place, apart)
        lines.setdefault(", ".join(words), []).append(row)
    return lines


def _bar_labels(rows: Sequence[Row]) -> list[str]:
    """Return the campaign of each row, and how the row differs from others of the same campaign."""
    labels = []
    for row in rows:
        apart = varying([other for other in rows if other.campaign == row.campaign])
        words = place_words(row.place, [name for name in apart if name != LOAD])
        labels.append(", ".join([row.campaign, *words]))
    return labels


def _line(axes: Axes, rows: Sequence[Row], place: Callable[[Row], int], divisor: int, label: str, number: int) -> None:
    """One line of figures with bars from p1 to p99; lower bounds are marked."""
    spreads = [_spread(row, divisor) for row in rows]
    colour, marker = SERIES[number % len(SERIES)]
    values = [value for value, _, _ in spreads]
    bars = [[value - low for value, low, _ in spreads], [high - value for value, _, high in spreads]]
    axes.errorbar(
        [place(row) for row in rows], values, yerr=bars, color=colour, marker=marker, markersize=5.5, linewidth=1.4,
        capsize=4, linestyle=LINES[number % len(LINES)], label=label,
    )  # fmt: skip
    least = [(place(row), value) for row, value in zip(rows, values, strict=True)
             if row.quantity.limited_by == "maximum"]  # fmt: skip
    if least:
        axes.plot(*zip(*least, strict=True), linestyle="none", marker="^", markersize=11, fillstyle="none",
                  color=QUIET, label="at least (limited by the chosen maximum)")  # fmt: skip
