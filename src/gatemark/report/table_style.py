"""How tables on the terminal look."""

from __future__ import annotations

from rich import box
from rich.table import Table

PLAIN_WIDTH = 150
"""Columns used where the output is no terminal: wide enough that no row of a table is broken."""


def make_table(title: str) -> Table:
    """A table with its title above, without columns yet."""
    return Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=box.SIMPLE_HEAD)
