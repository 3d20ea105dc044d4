"""Tables of stateful gateways on the terminal. Pure: document in, tables out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from gatemark.report.scale_up import ScaleUpTable
from gatemark.report.stateful import (
    CAPACITY_COLUMNS,
    SeriesTable,
    capacity_tables,
    series_tables,
    tear_down_rows,
)
from gatemark.report.table_style import PLAIN_WIDTH, make_table
from gatemark.results.schema import ResultDocument

COLUMN_GAP = 2
"""Blanks on both sides of a column together."""

CELL_WIDTH_MAX = 24
"""Longer words of a cell are broken into lines; figures are shorter."""


def series_text(document: ResultDocument, *, width: int = PLAIN_WIDTH) -> tuple[Table, ...]:
    """Rates by number of connections (RFC 9693 section 6): as many columns in a table as `width` has room for."""
    return tuple(
        _series(table, columns)
        for table in series_tables(document)
        for columns in _columns_that_fit(table, width)
    )  # fmt: skip


def tear_down_text(document: ResultDocument) -> Table | None:
    """Tear-down rates (RFC 9693 section 4.8); None if the campaign has none."""
    rows = tear_down_rows(document)
    if not rows:
        return None
    table = make_table(f"{document.gateway.name}: connection tear-down rate (RFC 9693 section 4.8)")
    for heading in ("connections", "full table\nmin, max", "empty table\nmin, max", "net", "connections/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        full, empty = (f"{median}\n{lowest}, {highest}" for median, lowest, highest in (row.full, row.empty))
        table.add_row(row.connections, full, empty, row.net, row.rate)
    if not all(row.reliable for row in rows):
        table.caption = "in parentheses: uncertain, the spreads exceed a tenth of the net time"
        table.caption_justify = "left"
    return table


def capacity_text(document: ResultDocument) -> Iterator[Table]:
    """Connection tracking table capacity (RFC 9693 section 4.9), one table a run."""
    for found in capacity_tables(document):
        name = document.gateway.name
        table = make_table(f"{name}: connection tracking table capacity (RFC 9693 section 4.9)\n{found.title}")
        for heading in CAPACITY_COLUMNS:
            table.add_column(heading, justify="left" if heading in ("Search", "Beyond the capacity") else "right")
        for row in found.rows:
            table.add_row(*row)
        yield table


def scale_up_text(found: ScaleUpTable) -> Table:
    """Medians over the number of processors; below each the relative scale-up and the ratio to the median before."""
    table = make_table(
        f"{found.gateway}: median, relative scale-up X(n) / (n X(1)) with n processors, median / previous median"
    )
    table.add_column("measured")
    for number in found.processors:
        table.add_column(str(number), justify="right", no_wrap=True)
    for row in found.rows:
        cells = zip(row.cells, row.steps, strict=True)
        table.add_row(f"{row.what}, {row.unit}", *(f"{median}\n{ratio}\n{step}" for (median, ratio), step in cells))
    return table


def _columns_that_fit(table: SeriesTable, width: int) -> Iterator[range]:
    """Split the columns into groups that are no wider than `width`; at least one each."""
    rows = [row for block in table.blocks for row in block.rows]
    left = width - COLUMN_GAP - max(len(text) for text in (*(row.label for row in rows), *_titles(table)))
    start, used = 0, 0
    for number, heading in enumerate(table.counts):
        longest = max(len(heading), *(len(row.cells[number]) for row in rows))
        needed = COLUMN_GAP + min(longest, CELL_WIDTH_MAX)
        if number > start and used + needed > left:
            yield range(start, number)
            start, used = number, 0
        used += needed
    yield range(start, len(table.counts))


def _titles(table: SeriesTable) -> Sequence[str]:
    return [line for block in table.blocks for line in (block.title, block.unit)]


def _series(found: SeriesTable, columns: range) -> Table:
    table = make_table(f"{found.title} (RFC 9693 section 6)")
    table.add_column("number of sessions")
    for number in columns:
        table.add_column(found.counts[number], justify="right", max_width=CELL_WIDTH_MAX)
    for block in found.blocks:
        if block.title:
            table.add_section()
            table.add_row(Text(f"{block.title}\n{block.unit}", style="italic"), *("" for _ in columns))
        for row in block.rows:
            style = "bold" if row.strong else ""
            cells = (Text(row.cells[number], style=style, justify="right") for number in columns)
            table.add_row(f"  {row.label}" if block.title else row.label, *cells)
    return table
