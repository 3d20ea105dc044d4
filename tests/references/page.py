"""Pages of the reference: text written by hand, with blocks between two comments that are made of the code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

BLOCK = re.compile(r"(?ms)^<!-- made of (.+?) -->$.*?^<!-- end -->$")


def filled(page: str, make: Callable[[str], str]) -> str:
    """Return a page with each of its blocks made again; `make` gets what stands behind `made of`."""
    return BLOCK.sub(lambda block: f"<!-- made of {block[1]} -->\n\n{make(block[1])}\n\n<!-- end -->", page)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(map(_cell, line))} |".replace("|  |", "| |") for line in (headings, *rows)]
    return "\n".join([lines[0], "|---" * len(headings) + "|", *lines[1:]])


def default_in(words: str) -> tuple[str, str]:
    """Return the words about a key without the default that they state, and that default; empty if they state none."""
    stated = re.search(r" Default: (.+?)\.(?= (?:For|With|Without) [^.]+ only\b|$)", words)
    return (words.replace(stated[0], ""), stated[1]) if stated else (words, "")


def limits(lowest: int | None, highest: int | None) -> str:
    """Return the limits of a number in words that follow those of its type; empty if there are none."""
    if lowest is None:
        return ""
    return f", {_number(lowest)} " + ("or more" if highest is None else f"to {_number(highest)}")


def _number(number: int) -> str:
    power = (number + 1).bit_length() - 1
    if power > 32 and number + 1 == 1 << power:
        return f"2^{power} - 1"
    return f"{number:,}" if number >= 10_000 else str(number)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
