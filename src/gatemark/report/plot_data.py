"""The figures that a plot shows, taken from what was drawn, so that data and picture cannot differ. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """A point, or a bar or step from `x` to `x_end`."""

    series: str
    """As the legend has it; empty if it is not named there."""
    x: float
    x_end: float | None = None
    y: float | None = None
    """None: a vertical line."""
    low: float | None = None
    """Ends of the bar of its error."""
    high: float | None = None
    category: Literal["", "x", "y"] = ""
    """Axis on which a bar has a name, and no number."""
    name: str = ""
    """Of a bar whose tick may be left out."""


def data_of(axes: Axes, x_value: Callable[[float], float] = lambda x: x) -> tuple[tuple[str, ...], ...]:
    """Return what is drawn as rows: series, places with their names, values, ends of bars of error.

    `x_value` gives what a place on the x axis stands for. The first row names the columns, with the words of the axes;
    columns without a value are left out.
    """
    points = _joined([*_containers(axes), *_lines(axes), *_steps(axes)])
    x_words, y_words = (" ".join(words.split()) for words in (axes.get_xlabel(), axes.get_ylabel()))
    x_names, y_names = _names(axes.xaxis), _names(axes.yaxis)

    def cells(point: _Point) -> tuple[str, ...]:
        x, x_end = (None if at is None else x_value(at) for at in (point.x, point.x_end))
        x_name, y_name = x_names.get(point.x, point.name), "" if point.y is None else y_names.get(point.y, "")
        return (
            point.series,
            x_name if point.category == "x" else _number(x),
            _number(x_end),
            "" if point.category == "x" or x_name.replace(",", "") == _number(x) else x_name,
            y_name if point.category == "y" else _number(point.y),
            _number(point.low),
            _number(point.high),
        )

    rows = [cells(point) for point in points]
    heading = ("series", x_words or "x", "to", "written as", y_words or "name", "low", "high")
    kept = [number for number in range(len(heading)) if any(row[number] for row in rows)]
    return tuple(tuple(row[number] for number in kept) for row in (heading, *rows))


def _containers(axes: Axes) -> Iterator[_Point]:
    """Yield bars, and points with bars of error."""
    from matplotlib.container import BarContainer, ErrorbarContainer

    for container in axes.containers:
        if isinstance(container, ErrorbarContainer):
            line, _, bars = container
            places = list(zip(*line.get_data(), strict=True))
            spans = _spans(bars[0], upright=container.has_yerr) if bars else [(None, None)] * len(places)
            for (x, y), (low, high) in zip(places, spans, strict=True):
                yield _Point(series=_label(container), x=float(x), y=float(y), low=low, high=high)
        elif isinstance(container, BarContainer):
            for bar in container.patches:
                yield _bar(bar, container)


def _bar(bar: Any, container: Any) -> _Point:
    label, name = _label(container), ""
    if len(container.patches) > 1:
        name = _label(bar)
    else:
        label = label or _label(bar)
    if container.orientation == "horizontal":
        middle = float(bar.get_y() + bar.get_height() / 2)
        return _Point(series=label, x=float(bar.get_width()), y=middle, category="y")
    middle = float(bar.get_x() + bar.get_width() / 2)
    return _Point(series=label, x=middle, y=float(bar.get_height()), category="x", name=name)


def _spans(bars: Any, *, upright: bool) -> list[tuple[float, float]]:
    """Return the ends of bars of error."""
    return [
        (float(y), float(y_end)) if upright else (float(x), float(x_end))
        for (x, y), (x_end, y_end) in bars.get_segments()
    ]


def _lines(axes: Axes) -> Iterator[_Point]:
    line: Any
    of_containers = {id(line) for container in axes.containers for line in _line_parts(container)}
    for line in axes.lines:
        if id(line) in of_containers:
            continue
        xs, ys = (line.get_xdata(orig=False).astype(float), line.get_ydata(orig=False).astype(float))
        if line.get_transform() != axes.transData:  # a line across the axes
            if xs[0] == xs[-1]:
                yield _Point(series=_label(line), x=float(xs[0]))
            continue
        yield from (_Point(series=_label(line), x=x, y=y) for x, y in zip(xs.tolist(), ys.tolist(), strict=True))


def _line_parts(container: Any) -> Iterator[Any]:
    from matplotlib.container import ErrorbarContainer

    if isinstance(container, ErrorbarContainer):
        yield container[0]
        yield from container[1]


def _steps(axes: Axes) -> Iterator[_Point]:
    from matplotlib.patches import StepPatch

    for patch in axes.patches:
        if isinstance(patch, StepPatch):
            values, edges, _ = patch.get_data()
            for value, begin, end in zip(values, edges[:-1], edges[1:], strict=True):
                yield _Point(series=_label(patch), x=float(begin), x_end=float(end), y=float(value))


def _joined(points: Sequence[_Point]) -> list[_Point]:
    """Leave out what is drawn without a name beside what has one, after its bars of error were taken from it."""
    named = [point for point in points if point.series]
    if not named:
        return list(points)
    spans = {(point.x, point.y): point for point in points if not point.series and point.low is not None}
    return [
        point
        if point.low is not None or (span := spans.get((point.x, point.y))) is None
        else replace(point, low=span.low, high=span.high)
        for point in named
    ]


def _names(axis: Any) -> dict[float, str]:
    """Return the names of places on an axis; none where its ticks are numbers of their own choice."""
    from matplotlib.ticker import FixedLocator

    locator = axis.get_major_locator()
    if not isinstance(locator, FixedLocator):
        return {}
    places: Any = locator()
    names = axis.get_major_formatter().format_ticks(places)
    return {float(place): " ".join(str(name).split()) for place, name in zip(places, names, strict=True)}


def _label(artist: Any) -> str:
    label = str(artist.get_label() or "")
    return "" if label.startswith("_") else label


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.12g}"
