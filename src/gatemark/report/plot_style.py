"""How plots look: colours, legend, and the SVG element that the page holds. Same input, same text."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

INK, QUIET, GRID = "#1c2733", "#68737d", "#e3e7ea"
BLUE, RUST, GREEN, PLUM = "#0b5c94", "#b4481e", "#2c7a54", "#7a4f86"
SERIES = ((BLUE, "o"), (RUST, "s"), (GREEN, "^"), (PLUM, "D"), (INK, "v"), (QUIET, "P"))

LINES = ("-", "--", "-.", ":")

LEGEND_CHARACTERS = 110
"""Most characters in a row of the legend, handles included: more would leave no room for the axes."""


def add_legend(axes: Axes) -> None:
    """A legend above the axes, with the number of columns that its words leave room for."""
    longest = max((len(label) for label in axes.get_legend_handles_labels()[1]), default=0)
    columns = max(1, min(4, LEGEND_CHARACTERS // (longest + 6)))
    axes.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=columns,
        frameon=False,
        fontsize=8.5,
        handletextpad=0.5,
    )


def from_zero_or_log(axes: Axes, lowest: int | float, highest: int | float) -> None:
    """An axis that starts at 0, or a logarithmic one if the figures are far apart."""
    if lowest > 0 and highest > 20 * lowest:
        axes.set_yscale("log")
        few_ticks(axes.yaxis, highest / lowest)
    else:
        axes.set_ylim(bottom=0, top=highest * 1.1 if highest > 0 else 1)


def log_counts(axes: Axes) -> None:
    """A logarithmic axis of counts, on which 1 is seen as well. Typesetting powers of ten would double the work."""
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.5)
    axes.minorticks_off()
    plain_ticks(axes.yaxis)


def few_ticks(axis: Axis, ratio: float) -> None:
    """Ticks of a logarithmic axis at 1, 2 and 5, or closer where its ends are near each other."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    axis.set_major_locator(MaxNLocator(6) if ratio < 5 else LogLocator(subs=(1, 2, 5) if ratio < 1000 else (1,)))
    axis.set_minor_formatter(NullFormatter())
    plain_ticks(axis)


def plain_ticks(axis: Axis) -> None:
    """Values as plain numbers, not as powers of ten."""
    axis.set_major_formatter(lambda value, _position: f"{value:,.10g}")


def draw_svg(name: str, draw: Callable[[Axes], None], *, width: float = 7.6, height: float = 3.4) -> str:
    """Draw on one pair of axes and return an inline SVG element; same input, same text."""
    import matplotlib  # imported where needed: no other command pays for it
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings: Any = {
        "svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif", "font.size": 9.5,
        "axes.edgecolor": QUIET, "axes.labelcolor": INK, "xtick.color": QUIET, "ytick.color": QUIET,
        "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.grid.axis": "y",
        "grid.color": GRID, "axes.axisbelow": True, "axes.linewidth": 0.8,
    }  # fmt: skip
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(width, height), layout="constrained")
        canvas: Any = FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
        draw(axes)
        buffer = io.StringIO()
        canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})  # savefig would draw all of it twice
    return _inline(buffer.getvalue(), name)


def _inline(svg: str, name: str) -> str:
    """Only the element, with a name for screen readers and the width of its column."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", element, count=1)
    element = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", element, count=1)
    return element.replace("<svg ", f'<svg role="img" aria-label="{name}" ', 1).strip()
