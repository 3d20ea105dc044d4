"""The tables of the page of the reference gateway: keys with their docstrings, enumerators with their comments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields

from tests.enumerators import described
from tests.references.page import default_in, table

from gatemark.config.described import docstring_of
from gatemark.refdut.document import Configuration, Flow, MapRule, Port, Selector, Table, Translation, Tunnel

TABLES: Mapping[str, type] = {
    "the top level": Configuration,
    "a side": Port,
    "translation": Translation,
    "a rule": MapRule,
    "tunnel": Tunnel,
    "table": Table,
    "a direction": Flow,
    "a selector": Selector,
}


def _named(file: str, enumeration: str, parent: str = "") -> dict[str, str]:
    words = described(f"refdut/{file}", enumeration)
    return {f"{parent}{name}": text for name, text in words.items() if name != "none"}


NAMES: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "the modes": (("`mode`", "the gateway"), _named("translate.hpp", "Mode")),
    "overflow": (("`overflow`", "a full table"), _named("nat_table.hpp", "Overflow")),
    "the damages": (("`field`", "damage", "not in"), _named("corrupt.hpp", "Field")),
    "counts of a direction": (("key", "counts"), _named("counts.hpp", "DirectionCount")),
    "reasons of drops": (
        ("reason in `dropped`", "the frame"),
        _named("packet.hpp", "Drop") | _named("counts.hpp", "OwnDrop"),
    ),
    "other counts": (
        ("key", "counts"),
        _named("nat_table.hpp", "NatCount", "connections.")
        | _named("counts.hpp", "NeighbourCount", "neighbour.")
        | _named("counts.hpp", "OtherCount", "other."),
    ),
}
"""Names with a meaning each; a meaning of two columns has the second behind `Not in:`."""


def block(name: str) -> str:
    """Return a table of the page; one of keys is without defaults if no key has any."""
    if name in NAMES:
        headings, names = NAMES[name]
        return table(headings, ((f"`{key}`", *_cells(words, len(headings) - 1)) for key, words in names.items()))
    rows = [_row(TABLES[name], field) for field in fields(TABLES[name])]
    if all(default == "none" for _, default, _ in rows):
        return table(("key", "meaning"), ((key, meaning) for key, _, meaning in rows))
    return table(("key", "default", "meaning"), rows)


def keys_of(field: Field[object]) -> Iterator[str]:
    """Yield what a field is in the file: its name without the unit, and two keys for a window."""
    yield from ("from", "to") if field.name == "window_ns" else (field.name.removesuffix("_ns"),)


def _cells(words: str, count: int) -> tuple[str, ...]:
    meaning, _, exceptions = words.partition(" Not in: ")
    return (meaning, exceptions.removesuffix("."))[:count]


def _row(kind: type, field: Field[object]) -> tuple[str, str, str]:
    words = docstring_of(kind, field.name)
    assert words, f"{kind.__name__}.{field.name} has no docstring"
    meaning, default = default_in(words)
    return ", ".join(f"`{key}`" for key in keys_of(field)), default or _default(field), meaning


def _default(field: Field[object]) -> str:
    if field.default is MISSING:
        return "required" if field.default_factory is MISSING else "none"
    return f"`{json.dumps(field.default)}`" if field.default else "none"
