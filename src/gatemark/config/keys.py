"""The keys that a campaign file may have, as dotted paths such as `connections.count`. Pure."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

ANY_NAME = "*"
"""Stands in a path for a name that the user chooses."""


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation names."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if issubclass(annotation, BaseModel):
            yield annotation
        return
    for part in typing.get_args(annotation):
        yield from models_in(part)


def key_paths(model: type[BaseModel], at: str = "") -> Iterator[str]:
    """Yield the path of every key of a file: of tables as well as of single values, but of no part of a list."""
    for name, field in model.model_fields.items():
        path = f"{at}{field.alias or name}"
        yield path
        yield from _paths_below(field.annotation, path)


def is_key(path: str, known: typing.Collection[str]) -> bool:
    """Whether a path names one of the keys that `key_paths` yields."""
    if path in known:
        return True
    parts = path.split(".")
    return any(
        len(names := pattern.split(".")) == len(parts)
        and all(name in (ANY_NAME, part) for name, part in zip(names, parts, strict=True))
        for pattern in known
        if ANY_NAME in pattern
    )


def _paths_below(annotation: Any, path: str) -> Iterator[str]:
    origin = typing.get_origin(annotation)
    if origin in (list, tuple):
        return
    if origin in (dict, Mapping):
        inner = typing.get_args(annotation)[1]
        yield f"{path}.{ANY_NAME}"
        yield from _paths_below(inner, f"{path}.{ANY_NAME}")
        return
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield from key_paths(annotation, f"{path}.")
        return
    for part in typing.get_args(annotation):
        yield from _paths_below(part, path)
