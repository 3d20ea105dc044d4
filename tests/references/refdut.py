"""The tables of keys in the file of the reference gateway: each key with its default and its docstring."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields

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


def block(name: str) -> str:
    """Return a table of the file as a table of the page, without defaults if no key has any."""
    rows = [_row(TABLES[name], field) for field in fields(TABLES[name])]
    if all(default == "none" for _, default, _ in rows):
        return table(("key", "meaning"), ((key, meaning) for key, _, meaning in rows))
    return table(("key", "default", "meaning"), rows)


def keys_of(field: Field[object]) -> Iterator[str]:
    """Yield what a field is in the file: its name without the unit, and two keys for a window."""
    yield from ("from", "to") if field.name == "window_ns" else (field.name.removesuffix("_ns"),)


def _row(kind: type, field: Field[object]) -> tuple[str, str, str]:
    words = docstring_of(kind, field.name)
    assert words, f"{kind.__name__}.{field.name} has no docstring"
    meaning, default = default_in(words)
    return ", ".join(f"`{key}`" for key in keys_of(field)), default or _default(field), meaning


def _default(field: Field[object]) -> str:
    if field.default is MISSING:
        return "required" if field.default_factory is MISSING else "none"
    return f"`{json.dumps(field.default)}`" if field.default else "none"
