"""A campaign document as TOML text, for campaigns that were made in Python and never had a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def to_toml(document: Mapping[str, Any], comments: Mapping[str, str] | None = None) -> str:
    """Write a document of strings, integers, booleans, lists and tables as TOML; inner tables inline.

    `comments` are written behind keys, by path: "name" or "trial.duration".
    """

    def line(key: str, value: Any, path: str) -> str:
        comment = (comments or {}).get(path)
        return f"{_key(key)} = {toml_value(value)}" + (f"  # {comment}" if comment else "")

    lines = [line(key, value, key) for key, value in document.items() if not isinstance(value, Mapping)]
    for key, value in document.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{key}]", *(line(inner, item, f"{key}.{inner}") for inner, item in value.items())]
    return "\n".join(lines) + "\n"


def _key(text: str) -> str:
    return text if text.replace("_", "").replace("-", "").isalnum() else json.dumps(text)


def toml_value(value: Any) -> str:
    """Write one value as TOML; a table inline."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)  # strings, integers and booleans are written alike in both
