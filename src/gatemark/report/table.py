"""Tables and sections as the page and the terminal both print them."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from gatemark.report.plot_style import Drawing


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column."""

    heading: str
    """With a line break where the heading may be split."""
    numeric: bool = True
    """Figures are aligned to the right-hand edge."""
    strong: bool = False
    """What the table is about."""
    chosen: bool = False
    """The campaign says it; it was not measured."""


REPETITIONS = Column(heading="repe-\ntitions", chosen=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of words."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    """One cell for each column; a second line of a cell says more about the figure in the first. A row of one cell is
    the heading of the rows below it."""
    names: int = 1
    """Number of leading columns that say what a row is about."""
    strong_rows: frozenset[int] = frozenset()
    """Rows that the table is about, by index."""
    notes: tuple[str, ...] = ()
    """Sentences below the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Tables of one procedure, with what they mean."""

    title: str
    lead: tuple[str, ...] = ()
    """Sentences above the tables."""
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences below all of them."""
    in_rate_tables: bool = False
    """The terminal shows these figures in its tables of rates, which put all gateways side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot with its caption."""

    drawing: Drawing
    caption: str

    @property
    def svg(self) -> Markup:
        """The element that the page holds."""
        return Markup(self.drawing.svg)


def plot(drawing: Drawing | None, caption: str) -> Plot | None:
    """Return a plot with its caption; None if there is nothing to draw."""
    return None if drawing is None else Plot(drawing=drawing, caption=caption)
