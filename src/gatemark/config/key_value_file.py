"""Configuration files of other testers: a line is a key and a value, what follows # is a comment. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gatemark.config.check import nearest
from gatemark.config.types import BadValueError
from gatemark.errors import Problem

Reader = Callable[[str], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What a file says, as a campaign document, and what a user must know of it."""

    document: dict[str, Any]
    notes: tuple[str, ...]
    """What is not in the document, or not as the file has it, a sentence each."""
    comments: Mapping[str, str] = field(default_factory=dict)
    """What keys of the document come from, by path."""


@dataclass(slots=True)
class Entries:
    """Values of a file by key, and everything that is wrong with it."""

    where: str
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, key: str, what: str, fix: str) -> None:
        """Note what is wrong with a key."""
        line = f" line {self.lines[key]}:" if key in self.lines else ""
        self.problems.append(Problem(what=what, where=f"{self.where}:{line} {key}", fix=fix))


def read_entries(text: str, where: str, keys: Mapping[str, Reader], other_spellings: Mapping[str, str]) -> Entries:
    """Read a file of these keys, in any capitals; `other_spellings` are without capitals."""
    entries = Entries(where)
    known = {key.lower(): key for key in keys} | dict(other_spellings)
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        key = known.get(words[0].lower())
        at = f"{where}: line {number}: {words[0]}"
        if key is None:
            guess = nearest(words[0].lower(), known)
            fix = f"did you mean {known[guess]}?" if guess else f"leave it out; known are {', '.join(keys)}"
            entries.problems.append(Problem(what="unknown key", where=at, fix=fix))
            continue
        if key in entries.lines:
            what = f"is written in line {entries.lines[key]} as well"
            entries.problems.append(Problem(what=what, where=at, fix="write it once"))
            continue
        entries.lines[key] = number
        try:
            entries.values[key] = keys[key](_single(words[1:]))
        except BadValueError as error:
            entries.refuse(key, error.what, error.fix)
    return entries


def typed(annotation: Any) -> Reader:
    """Read a value as the campaign file reads it."""
    adapter = TypeAdapter(annotation)

    def reader(text: str) -> Any:
        try:
            return adapter.validate_python(text)
        except ValidationError as error:
            raise error.errors()[0]["ctx"]["error"] from None

    return reader


def address(family: type[IPv4Address] | type[IPv6Address], what: str, fix: str) -> Reader:
    """Read an IP address; of any other text it is told that it is not `what`, with this remedy."""

    def reader(text: str) -> IPv4Address | IPv6Address:
        try:
            return family(text)
        except ValueError:
            raise BadValueError(f"{text!r} is not {what}", fix) from None

    return reader


def integer(lowest: int, highest: int) -> Reader:
    """Read a whole number, with commas between its digits or as 0x."""

    def reader(text: str) -> int:
        digits = text.replace(",", "")
        form = re.fullmatch(r"[0-9]{1,18}|0[xX][0-9a-fA-F]{1,15}", digits)
        value = None if form is None else int(digits, 16 if digits[1:2] in ("x", "X") else 10)
        if value is None or not lowest <= value <= highest:
            raise BadValueError(f"{text!r} is not between {lowest} and {highest}", f"write {lowest} to {highest}")
        return value

    return reader


def _single(words: list[str]) -> str:
    if len(words) != 1:
        what = f"has {len(words)} values" if words else "has no value"
        raise BadValueError(what, "write the key, a space and its value")
    return words[0]
