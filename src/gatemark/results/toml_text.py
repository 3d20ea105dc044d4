"""A campaign document as TOML text, for campaigns that were made in Python and never had a file."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from typing import Any

from gatemark.harmless import visible_json, visible_line

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(document: Mapping[str, Any], comments: Mapping[str, str] | None = None) -> str:
    """Write a document as TOML; inner tables inline.

    `comments` are written behind keys, by path: "name" or "trial.duration". Whatever texts hold, TOML reads the same
    document, and a comment ends with its line.
    """

    def line(key: str, value: Any, path: str) -> str:
        comment = (comments or {}).get(path)
        return f"{_key(key)} = {toml_value(value)}" + (f"  # {visible_line(comment)}" if comment else "")

    lines = [line(key, value, key) for key, value in document.items() if not isinstance(value, Mapping)]
    for key, value in document.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{_key(key)}]", *(line(inner, item, f"{key}.{inner}") for inner, item in value.items())]
    return "\n".join(lines) + "\n"


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _text(text)


def _text(text: str) -> str:
    return visible_json(json.dumps(text, ensure_ascii=False))


def toml_value(value: Any) -> str:
    """Write one value as TOML; a table inline."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return repr(value) if isinstance(value, float) else json.dumps(value)  # inf and nan have other names in JSON
