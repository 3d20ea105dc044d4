"""Tables and sections as the page and the terminal both print them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from operator import itemgetter
from typing import Any, Generic, TypeVar

from markupsafe import Markup

from gatemark.report.plot_style import Drawing
from gatemark.report.words import DASH

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Column(Generic[R_contra]):
    """A heading, and what stands below it in each row."""

    heading: str
    """With a line break where the heading may be split."""
    cell: Callable[[R_contra], str]
    """The words of a row; a second line says more about the figure in the first."""
    _: KW_ONLY
    names: bool = False
    """It says what a row is about. Such columns are the first ones."""
    numeric: bool = True
    """Figures are aligned to the right-hand edge."""
    strong: bool = False
    """What the table is about."""
    chosen: bool = False
    """The campaign says it; it was not measured."""
    styles: Mapping[str, str] = field(default_factory=dict)
    """How the terminal shows some of its words."""
    optional: bool = False
    """It is left out where it says nothing of any row, and has a dash in a row of which it says nothing."""

    def of(self, choose: Callable[[S], R_contra | None]) -> Column[S]:
        """Return the same column of other rows: `choose` finds what the cell is about, None where that is nothing."""

        def cell(row: S) -> str:
            chosen = choose(row)
            return "" if chosen is None else self.cell(chosen)

        return replace(self, cell=cell)  # type: ignore[arg-type, return-value]


def repetitions(cell: Callable[[R], str]) -> Column[R]:
    """Return the column of numbers of repetitions."""
    return Column("repe-\ntitions", cell, chosen=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of words; `table_of` and `turned` make them."""

    title: str
    columns: tuple[Column[Any], ...]
    rows: tuple[tuple[str, ...], ...]
    """One cell for each column. A row of one cell is the heading of the rows below it."""
    strong_rows: frozenset[int] = frozenset()
    """Rows that the table is about, by index."""
    remark_rows: frozenset[int] = frozenset()
    """Rows of one cell that say more about the row above them, by index."""
    quiet_rows: frozenset[int] = frozenset()
    """Rows that do not count, by index."""
    notes: tuple[str, ...] = ()
    """Sentences below the table."""

    @property
    def names(self) -> int:
        """Number of leading columns that say what a row is about, at least one."""
        return max(1, sum(column.names for column in self.columns))


def table_of(title: str, columns: Iterable[Column[R]], rows: Iterable[R | str], *, notes: Iterable[str] = ()) -> Table:
    """Return the table of some rows. A row that is a string is the heading of the rows below it."""
    rows = tuple(rows)
    shown, of_columns = [], []
    for column in columns:
        cells = ["" if isinstance(row, str) else column.cell(row) for row in rows]
        if any(cells) or not column.optional:
            shown.append(column)
            of_columns.append([cell or DASH if column.optional else cell for cell in cells])
    words = zip(rows, zip(*of_columns, strict=True), strict=True)
    return Table(
        title=title,
        columns=tuple(shown),
        rows=tuple((row,) if isinstance(row, str) else cells for row, cells in words),
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class Block(Generic[R]):
    """Lines of a table that has a column for each of some entries, as in RFC 9693 section 6."""

    lines: Iterable[Column[R]]
    """Each is a line: its heading, then what it says of each entry."""
    entries: Sequence[R | None]
    """None where a column has no such entry."""
    title: str = ""
    """A heading of its own, left out if there is no line."""


def turned(
    title: str, name: str, headings: Sequence[str], blocks: Iterable[Block[Any]], *, notes: Iterable[str] = ()
) -> Table:
    """Return a table of blocks: a column for each of `headings`, and one before them with what the lines are called.

    A dash stands where a line says nothing.
    """
    rows: list[tuple[str, ...] | str] = []
    strong = set()
    for block in blocks:
        begin = len(rows)
        for line in block.lines:
            cells = ["" if entry is None else line.cell(entry) for entry in block.entries]
            if any(cells) or not line.optional:
                rows += [block.title] if block.title and len(rows) == begin else []
                strong |= {len(rows)} if line.strong else set()
                rows.append((line.heading, *(cell or DASH for cell in cells)))
    words = (Column(heading, itemgetter(place)) for place, heading in enumerate(headings, start=1))
    whole = table_of(title, (Column(name, itemgetter(0), numeric=False), *words), rows, notes=notes)
    return replace(whole, strong_rows=frozenset(strong))


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Tables of one procedure, with what they mean."""

    title: str
    lead: tuple[str, ...] = ()
    """Sentences above the tables."""
    tables: tuple[Table, ...] = ()
    """Those without rows are left out."""
    notes: tuple[str, ...] = ()
    """Sentences below all of them."""
    in_rate_tables: bool = False
    """The terminal shows these figures in its tables of rates, which put all gateways side by side."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple(table for table in self.tables if table.rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot with its caption."""

    drawing: Drawing
    caption: str

    @property
    def svg(self) -> Markup:
        """The element that the page holds."""
        return Markup(self.drawing.svg)


def plot(drawing: Drawing | None, caption: str) -> tuple[Plot, ...]:
    """Return a plot with its caption; none if there is nothing to draw."""
    return () if drawing is None else (Plot(drawing=drawing, caption=caption),)
