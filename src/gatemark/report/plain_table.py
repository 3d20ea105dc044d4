"""A table as rows of words, which the page and the terminal print alike."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column."""

    heading: str
    """With a line break where it may be broken."""
    numeric: bool = True
    """Figures stand on the right."""
    strong: bool = False
    """What the table is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainTable:
    """Rows of words."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    """One cell for each column; a second line of a cell says more about the figure in the first."""
    names: int = 1
    """So many of the first columns say what a row is about."""
    notes: tuple[str, ...] = ()
    """Sentences below the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Tables of one procedure, with what they mean."""

    title: str
    lead: tuple[str, ...]
    """Sentences above the tables."""
    tables: tuple[PlainTable, ...]
    notes: tuple[str, ...] = ()
    """Sentences below all of them."""
