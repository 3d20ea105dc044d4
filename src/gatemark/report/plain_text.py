"""Tables of words on the terminal. Pure: sections in, tables and sentences out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gatemark.report.plain_table import PlainTable, Section
from gatemark.report.table_style import make_table

CELL_WIDTH_MAX = 22
"""Words of a cell are broken into lines of so many letters; figures are shorter."""

COLUMN_GAP = 3
"""Blanks on both sides of a column and between it and the next one together."""

COLUMNS_MIN = 3
"""Figures beside each other below which a list is easier to read than a table."""


def section_text(section: Section, *, name: str, width: int) -> Iterator[RenderableType]:
    """Yield the tables of a section, as wide as the terminal allows, each with its sentences below it.

    `name` is that of the gateway; empty where the section is about several.
    """
    yield from (Text(line) for line in section.lead)
    for plain in section.tables:
        title = f"{name}: {plain.title}" if name else plain.title
        yield from table_text(replace(plain, title=title), width=width)
        yield from (Text(note) for note in plain.notes)
    yield from (Text(note) for note in section.notes)


def table_text(found: PlainTable, *, width: int) -> Iterator[Table]:
    """Yield a table in as many parts as it takes not to break a figure; each begins with what a row is about.

    Where so few columns fit that parts would be many, it is a list: one line for each figure.
    """
    groups = list(_groups_that_fit(found, width))
    if len(groups) > 1 and min(len(group) for group in groups[:-1]) < COLUMNS_MIN:
        yield _listed(found)
        return
    for group in groups:
        yield _table(found, [*range(found.names), *group])


def _groups_that_fit(found: PlainTable, width: int) -> Iterator[range]:
    """Split the columns behind the names into groups no wider than the terminal; at least one column each."""
    widths = [COLUMN_GAP + _width(found, number) for number in range(len(found.columns))]
    left = width - sum(widths[: found.names])
    start, used = found.names, 0
    for number in range(found.names, len(widths)):
        if number > start and used + widths[number] > left:
            yield range(start, number)
            start, used = number, 0
        used += widths[number]
    yield range(start, len(widths))


def _width(found: PlainTable, number: int) -> int:
    """Letters of the longest line of a column."""
    cells = [found.columns[number].heading, *(_broken(row[number]) for row in found.rows)]
    return max(len(line) for cell in cells for line in cell.split("\n"))


def _table(found: PlainTable, numbers: Sequence[int]) -> Table:
    table = make_table(found.title)
    for number in numbers:
        column = found.columns[number]
        table.add_column(column.heading, justify="right" if column.numeric else "left")
    for row in found.rows:
        table.add_row(*(_broken(row[number]) for number in numbers))
    return table


def _listed(found: PlainTable) -> Table:
    table = make_table(found.title)
    table.add_column("figure", overflow="fold")
    table.add_column("value", overflow="fold")
    for row in found.rows:
        for column, cell in zip(found.columns, row, strict=True):
            if cell:
                table.add_row(_one_line(column.heading, several="\n" in cell), "; ".join(cell.split("\n")))
        table.add_section()
    return table


def _one_line(heading: str, *, several: bool) -> str:
    """A heading in one line: a word that was broken is joined again, the names of several figures are not."""
    return heading.replace("-\n", "").replace(",\n", ", ").replace("\n", "; " if several else " ")


def _broken(cell: str) -> str:
    """A cell with words broken into lines, so that it needs no more room than figures do."""
    if not cell[:1].isalpha():
        return cell
    return "\n".join(textwrap.fill(line, CELL_WIDTH_MAX) for line in cell.split("\n"))
