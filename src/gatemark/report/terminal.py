"""Tables of words on the terminal. Pure: sections in, tables and sentences out.

Not rich's own tables: these break figures or cut columns off where there is no room, and no cell goes across columns.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from gatemark.consoles import stdout_console
from gatemark.report.table import Column, Section, Table

COLUMN_GAP = 2
"""Blanks between two columns."""

NAME_WIDTH_MAX = 48
"""Characters of a line in the first column."""

COLUMNS_MIN = 3
"""With fewer figures than this side by side, a list is easier to read than a table."""

PAIR_WIDTH_MAX = 12
"""Two figures, or a figure and its unit, stay on one line up to this number of characters, however narrow the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """How narrow a table is made."""

    cell_width: int
    """Characters of a line of words; the first column has twice as many, up to `NAME_WIDTH_MAX`."""
    repeated_apart: bool = False
    """A column that is not measured and says the same in every row becomes part of a line above the table."""
    pairs_apart: bool = False
    """Two figures of a cell are on two lines, and so are a figure and its unit."""


_FORMS = (
    *(_Form(cell_width=width) for width in range(64, 15, -1)),
    *(_Form(cell_width=width, repeated_apart=True) for width in range(64, 11, -1)),
    *(_Form(cell_width=width, repeated_apart=True, pairs_apart=True) for width in range(22, 11, -1)),
)
"""The first of these in which a table fits is used."""

_SEVERAL_PARTS = _Form(cell_width=22, repeated_apart=True)
"""Form of a table that fits in none."""


def print_table(table: Table) -> None:
    """Print a table to standard output."""
    console = stdout_console()
    for part in table_text(table, width=console.width):
        console.print(part)


def section_text(section: Section, *, name: str, width: int) -> Iterator[RenderableType]:
    """Yield the tables of a section, no wider than the terminal, each with its sentences below it.

    `name` is that of the gateway; empty if the section is about several.
    """
    yield from _sentences(section.lead)
    for table in section.tables:
        title = f"{name}: {table.title}" if name else table.title
        yield from table_text(replace(table, title=title), width=width)
        yield from _sentences(table.notes)
    yield from _sentences(section.notes)


def _sentences(sentences: Sequence[str]) -> Iterator[Text]:
    yield from (Text(sentence) for sentence in sentences)
    if sentences:
        yield Text("")


def table_text(table: Table, *, width: int) -> Iterator[RenderableType]:
    """Yield a table in the widest form that fits; figures are never broken.

    If it fits in none, it is yielded in several parts, each of which begins with what a row is about. If there would be
    many parts, because few columns fit, it is a list instead: one line for each figure.
    """
    for form in _FORMS:
        repeated, shaped = _in_form(table, form)
        groups = list(_groups_that_fit(shaped, width))
        if len(groups) == 1:
            break
    else:
        repeated, shaped = _in_form(table, _SEVERAL_PARTS)
        groups = list(_groups_that_fit(shaped, width))
    if len(groups) > 1 and min(len(group) for group in groups[:-1]) < COLUMNS_MIN:
        yield from _titled(table.title, "", _listed(table, width))
        return
    for group in groups:
        yield from _titled(table.title, repeated, _lines(shaped, [*range(shaped.names), *group], width))


def _titled(title: str, repeated: str, lines: Iterator[Text]) -> Iterator[Text]:
    if title:
        yield Text(title, style="bold")
    if repeated:
        yield Text(repeated)
    yield from lines
    yield Text("")


def _in_form(table: Table, form: _Form) -> tuple[str, Table]:
    """Return what all rows have in common in words, and the other columns with their cells broken."""
    apart = _repeated(table) if form.repeated_apart else []
    rows = [row for row in table.rows if len(row) > 1]
    common = "; ".join(f"{_one_line(table.columns[n].heading)}: {_joined(rows[0][n], ', ')}" for n in apart)
    kept = [number for number in range(len(table.columns)) if number not in apart]
    shaped_rows = tuple(
        tuple(_broken(row[n], table.columns[n], form, is_first=n == 0) for n in kept) if len(row) > 1 else row
        for row in table.rows
    )
    columns = []
    for place, number in enumerate(kept):
        heading = table.columns[number].heading
        width = max([form.cell_width, *(_longest(row[place]) for row in shaped_rows if len(row) > 1)])
        columns.append(replace(table.columns[number], heading=_filled(heading, width)))
    shaped = replace(table, columns=tuple(columns), rows=shaped_rows)
    return f"In every row: {common}" if common and len(rows) > 1 else common, shaped


def _repeated(table: Table) -> list[int]:
    """Return the columns that say the same in every row, but no figures, and not all that a row is about."""
    rows = [row for row in table.rows if len(row) > 1]
    repeated = [
        number
        for number, column in enumerate(table.columns)
        if (number < table.names or column.chosen or not column.numeric) and len({row[number] for row in rows}) == 1
    ]
    return repeated[1:] if repeated[: table.names] == [*range(table.names)] else repeated


def _groups_that_fit(table: Table, width: int) -> Iterator[range]:
    """Split the columns after the names into groups no wider than the terminal, with at least one column each."""
    widths = [COLUMN_GAP + _width(table, number) for number in range(len(table.columns))]
    left = width + COLUMN_GAP - sum(widths[: table.names])
    start, used = table.names, 0
    for number in range(table.names, len(widths)):
        if number > start and used + widths[number] > left:
            yield range(start, number)
            start, used = number, 0
        used += widths[number]
    yield range(start, len(widths))


def _width(table: Table, number: int) -> int:
    """Characters of the longest line of a column."""
    cells = [table.columns[number].heading, *(row[number] for row in table.rows if len(row) > 1)]
    return max(map(_longest, cells))


def _longest(cell: str) -> int:
    """Characters of the longest line of a cell."""
    return max(map(len, cell.split("\n")))


def _lines(table: Table, numbers: Sequence[int], width: int) -> Iterator[Text]:
    """Yield the lines of a table with some of its columns."""
    columns = [table.columns[number] for number in numbers]
    numeric = [column.numeric for column in columns]
    widths = [_width(table, number) for number in numbers]
    headings = [column.heading.split("\n") for column in columns]
    height = max(map(len, headings))
    yield from _row(
        [[""] * (height - len(lines)) + lines for lines in headings], numeric, widths, ["bold"] * len(columns)
    )
    yield Text("\u2500" * (sum(widths) + COLUMN_GAP * (len(widths) - 1)))
    for place, row in enumerate(table.rows):
        if len(row) == 1:  # a heading of the rows below it
            yield from (Text(""),) if place else ()
            yield from (Text(line, style="italic") for line in _filled(row[0], width).split("\n"))
            continue
        style = "bold" if place in table.strong_rows else ""
        cells = [row[number] for number in numbers]
        styles = [column.styles.get(cell, style) for cell, column in zip(cells, columns, strict=True)]
        yield from _row([cell.split("\n") for cell in cells], numeric, widths, styles)


def _row(
    cells: Sequence[Sequence[str]], numeric: Sequence[bool], widths: Sequence[int], styles: Sequence[str]
) -> Iterator[Text]:
    """Yield the lines of a row; `cells` has those of each cell."""
    for lines in zip_longest(*cells, fillvalue=""):
        text = Text()
        for place, (line, figures, width, style) in enumerate(zip(lines, numeric, widths, styles, strict=True)):
            text.append(" " * COLUMN_GAP if place else "")
            text.append(line.rjust(width) if figures else line.ljust(width), style=style)
        text.rstrip()
        yield text


def _listed(table: Table, width: int) -> Iterator[Text]:
    """Yield a line for each cell that says something, with its heading."""
    headings = [_one_line(column.heading) for column in table.columns]
    name_width = min(max(map(len, headings)), width // 2 - COLUMN_GAP)
    widths = (name_width, width - name_width - COLUMN_GAP)
    for place, row in enumerate(table.rows):
        yield from (Text(""),) if place else ()
        if len(row) == 1:
            yield Text(row[0], style="italic")
            continue
        for column, cell in zip(table.columns, row, strict=True):
            if cell:
                texts = (_one_line(column.heading, several="\n" in cell), _joined(cell, "; "))
                cells = [
                    _filled(text, room, break_long_words=True).split("\n")
                    for text, room in zip(texts, widths, strict=True)
                ]
                yield from _row(cells, (False, False), widths, ("", ""))


def _one_line(heading: str, *, several: bool = False) -> str:
    """A heading on one line: a word that was broken is joined again, the names of several figures are not."""
    return heading.replace("-\n", "").replace(",\n", ", ").replace("\n", "; " if several else " ")


def _joined(cell: str, separator: str) -> str:
    return separator.join(cell.split("\n"))


def _broken(cell: str, column: Column[Any], form: _Form, *, is_first: bool) -> str:
    """A cell in lines as short as the form asks; figures are not broken."""
    if cell[:1].isalpha() or not column.numeric:
        return _filled(cell, min(NAME_WIDTH_MAX, 2 * form.cell_width) if is_first else form.cell_width)
    return _filled(cell, PAIR_WIDTH_MAX) if form.pairs_apart else cell


def _filled(text: str, width: int, *, break_long_words: bool = False) -> str:
    """A text with each of its lines wrapped between words."""
    return "\n".join(
        line
        if len(line) <= width
        else textwrap.fill(line, width, break_long_words=break_long_words, break_on_hyphens=False)
        for line in text.split("\n")
    )
