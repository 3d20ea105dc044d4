"""How plots look: colours, legend, and what a plot becomes: an element of the page, a file, rows of figures."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from gatemark.harmless import visible
from gatemark.report.plot_data import data_of

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
    handles: list[Any] = [*axes.lines, *axes.containers]
    for handle in handles:
        label = str(handle.get_label())
        if label.startswith("_") and not label.startswith(("_child", "_nolegend_", "_container")):
            handle.set_label(f"\u200b{label}")  # matplotlib leaves out what begins with an underscore
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


def far_apart(lowest: int | float, highest: int | float) -> bool:
    """Whether figures are so far apart that their axis is logarithmic."""
    return lowest > 0 and highest > 20 * lowest


def from_zero_or_log(axes: Axes, lowest: int | float, highest: int | float) -> None:
    """An axis that starts at 0, or a logarithmic one if the figures are far apart."""
    if far_apart(lowest, highest):
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
    """Ticks of a logarithmic axis at 1, 2 and 5: closer where its ends are near each other, else so that none touch."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    places = (1, 2, 5) if ratio < 100 else (1, 3) if ratio < 1000 else (1,)
    axis.set_major_locator(MaxNLocator(6) if ratio < 5 else LogLocator(subs=places))
    axis.set_minor_formatter(NullFormatter())
    plain_ticks(axis)


def plain_ticks(axis: Axis) -> None:
    """Values as plain numbers, not as powers of ten."""
    axis.set_major_formatter(lambda value, _position: f"{value:,.10g}")


FileFormat = Literal["svg", "pdf"]


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """One pair of axes, drawn when it is asked for: in a page, in a file, or as the figures that it shows."""

    name: str
    draw: Callable[[Axes], None]
    width: float = 7.6
    """Inches, as the height."""
    height: float = 3.4
    x_value: Callable[[float], float] = lambda x: x
    """What a place on the x axis stands for, where that is not the place itself."""

    @cached_property
    def svg(self) -> str:
        """An inline SVG element; same input, same text."""
        svg = self.file("svg").decode()
        return _inline(svg, self.name)

    def file(self, form: FileFormat) -> bytes:
        """Return a whole file; same input, same octets. A PDF has its fonts inside."""
        import matplotlib  # imported where needed: no other command pays for it
        from matplotlib.backends.backend_pdf import FigureCanvasPdf
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        buffer = io.BytesIO()
        with matplotlib.rc_context(self._settings), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")  # a name in any script
            figure: Any = self._axes().figure
            canvas: Any = FigureCanvasSVG(figure) if form == "svg" else FigureCanvasPdf(figure)
            if form == "svg":  # savefig would draw all of it twice
                canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})
            else:
                canvas.print_pdf(buffer, metadata={"CreationDate": None, "Creator": None, "Producer": None})
        return visible(buffer.getvalue().decode()).encode() if form == "svg" else buffer.getvalue()

    def data(self) -> tuple[tuple[str, ...], ...]:
        """Return the figures that it shows as rows, the first of which names the columns."""
        import matplotlib

        with matplotlib.rc_context(self._settings):
            return data_of(self._axes(), self.x_value)

    @property
    def _settings(self) -> Any:
        return {
            "text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": self.name, "pdf.fonttype": 42,
            "font.family": "sans-serif",
            "font.size": 9.5, "axes.edgecolor": QUIET, "axes.labelcolor": INK, "xtick.color": QUIET,
            "ytick.color": QUIET, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
            "axes.grid.axis": "y", "grid.color": GRID, "axes.axisbelow": True, "axes.linewidth": 0.8,
        }  # fmt: skip

    def _axes(self) -> Axes:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(self.width, self.height), layout="constrained")
        axes: Axes = figure.add_subplot()
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
        self.draw(axes)
        return axes


def _inline(svg: str, name: str) -> str:
    """Only the element, with a name for screen readers and the width of its column."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", element, count=1)
    element = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", element, count=1)
    return element.replace("<svg ", f'<svg role="img" aria-label="{escape(visible(name))}" ', 1).strip()
