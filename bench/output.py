"""What the measurements have in common: a table in columns on standard output, JSON in a file if asked for, progress on
standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gatemark.units import format_duration_ns


def columns(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers_from: int | None = None) -> str:
    """Lay out a table of words, each column as wide as its widest cell; from column `numbers_from` on to the right."""
    table = [tuple(heads), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    right = len(heads) if numbers_from is None else numbers_from
    table.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < right else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    )


def command_line(about: str | None, *, whole: bool = False) -> argparse.ArgumentParser:
    """Return a parser that knows `--json FILE`; it tells the first line of `about`, or the `whole` of it."""
    text = about or ""
    parser = argparse.ArgumentParser(
        description=text if whole else text.partition("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    return parser


def write_json(file: Path | None, figures: Any) -> None:
    """Write the figures if a file was named."""
    if file is not None:
        file.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def progress(text: str) -> None:
    """Show what is being done: one line that changes, or where there is no terminal one line after the other."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def time_left(began: float, done: int, rounds: int) -> str:
    """Say how long all rounds will still take, from `began` on the monotonic clock; nothing before one is done."""
    if not done:
        return ""
    seconds = round((time.monotonic() - began) / done * (rounds - done))
    return f"; about {format_duration_ns(seconds * 10**9)} left"
