"""Tables of words on the terminal. Pure: sections in, tables and sentences out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from gatemark.report.table import Section, Table

PLAIN_WIDTH = 150
"""Columns used if the output is not a terminal: wide enough that few tables are split."""

CELL_WIDTH_MAX = 22
"""Words of a cell are wrapped at this number of characters; figures are shorter."""

NAME_WIDTH_MAX = 48
"""Characters of a line in the first column."""

COLUMN_GAP = 3
"""Total blanks around a column: on both sides, and between it and the next one."""

COLUMNS_MIN = 3
"""With fewer figures than this side by side, a list is easier to read than a table."""


def stdout_console() -> Console:
    """A console on standard output; wide if that is not a terminal, so that tables are not split."""
    console = Console(highlight=False)
    if not console.is_terminal:
        return Console(highlight=False, width=max(PLAIN_WIDTH, console.width))
    return console


def section_text(section: Section, *, name: str, width: int) -> Iterator[RenderableType]:
    """Yield the tables of a section, as wide as the terminal allows, each with its sentences below it.

    `name` is that of the gateway; empty if the section is about several.
    """
    yield from (Text(line) for line in section.lead)
    for table in section.tables:
        title = f"{name}: {table.title}" if name else table.title
        yield from table_text(replace(table, title=title), width=width)
        yield from (Text(note) for note in table.notes)
    yield from (Text(note) for note in section.notes)


def table_text(table: Table, *, width: int) -> Iterator[RichTable]:
    """Yield a table in enough parts that no figure is broken; each part begins with what a row is about.

    If so few columns fit that there would be many parts, it is a list instead: one line for each figure.
    """
    groups = list(_groups_that_fit(table, width))
    if len(groups) > 1 and min(len(group) for group in groups[:-1]) < COLUMNS_MIN:
        yield _listed(table)
        return
    for group in groups:
        yield _table(table, [*range(table.names), *group])


def _groups_that_fit(table: Table, width: int) -> Iterator[range]:
    """Split the columns after the names into groups no wider than the terminal, with at least one column each."""
    widths = [COLUMN_GAP + _width(table, number) for number in range(len(table.columns))]
    left = width - sum(widths[: table.names])
    start, used = table.names, 0
    for number in range(table.names, len(widths)):
        if number > start and used + widths[number] > left:
            yield range(start, number)
            start, used = number, 0
        used += widths[number]
    yield range(start, len(widths))


def _width(table: Table, number: int) -> int:
    """Characters of the longest line of a column."""
    cells = [table.columns[number].heading, *(_broken(row, number) for row in table.rows if len(row) > 1)]
    return max(len(line) for cell in cells for line in cell.split("\n"))


def _table(table: Table, numbers: Sequence[int]) -> RichTable:
    rich = _empty(table.title)
    for number in numbers:
        column = table.columns[number]
        rich.add_column(column.heading, justify="right" if column.numeric else "left")
    for place, row in enumerate(table.rows):
        if len(row) == 1:  # a heading of the rows below it
            rich.add_section()
            rich.add_row(Text(row[0], style="italic"))
            continue
        style = "bold" if place in table.strong_rows else ""
        rich.add_row(*(Text(_broken(row, number), style=style) for number in numbers))
    return rich


def _listed(table: Table) -> RichTable:
    rich = _empty(table.title)
    rich.add_column("figure", overflow="fold")
    rich.add_column("value", overflow="fold")
    for row in table.rows:
        if len(row) == 1:
            rich.add_row(Text(row[0], style="italic"))
            continue
        for column, cell in zip(table.columns, row, strict=True):
            if cell:
                rich.add_row(_one_line(column.heading, several="\n" in cell), "; ".join(cell.split("\n")))
        rich.add_section()
    return rich


def _empty(title: str) -> RichTable:
    """A table with its title above it, still without columns."""
    return RichTable(title=title, title_justify="left", title_style="bold", header_style="bold", box=box.SIMPLE_HEAD)


def _one_line(heading: str, *, several: bool) -> str:
    """A heading on one line: a word that was broken is joined again, the names of several figures are not."""
    return heading.replace("-\n", "").replace(",\n", ", ").replace("\n", "; " if several else " ")


def _broken(row: Sequence[str], number: int) -> str:
    """A cell with its words wrapped, so that it needs no more room than figures do."""
    cell = row[number]
    if not cell[:1].isalpha():
        return cell
    width = NAME_WIDTH_MAX if number == 0 else CELL_WIDTH_MAX
    return "\n".join(textwrap.fill(line, width) for line in cell.split("\n"))
