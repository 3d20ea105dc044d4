"""In what the set-up of several sides differs: what a figure may depend on, each fact once. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gatemark.compare.document import SetupDifference

Facts = Mapping[tuple[str, str], Any]
NOT_COMPARED = frozenset((("result", "measured_at"),))
RECIPE = ("campaign", "testbed.recipe")
RECIPE_DIGEST = ("gateway", "recipe_sha256")
"""Tells whether recipes of two names are one."""


def differences(sides: Sequence[Mapping[tuple[str, ...], Facts]]) -> tuple[SetupDifference, ...]:
    """Return the facts in which sides differ; a side has facts for each of its columns, by the words of the column.

    Columns that not all sides have are left out: their figures are compared with nothing.
    """
    columns = [column for column in sides[0] if all(column in side for side in sides[1:])]
    differing: dict[tuple[str, str, str], list[tuple[str, ...]]] = {}
    for column in columns:
        for topic, key, values in _of_column([side[column] for side in sides]):
            differing.setdefault((topic, key, json.dumps(values)), []).append(column)
    return tuple(
        SetupDifference(
            topic=topic,
            key=key,
            where=() if len(having) == len(columns) else tuple(", ".join(column) for column in having),
            values=tuple(json.loads(values)),
        )
        for (topic, key, values), having in differing.items()
    )


def flat(table: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every key of a document as a path with its value; a list is one value."""
    for key, value in table.items():
        path = f"{at}{key}"
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}.")
        else:
            yield path, value


def _of_column(sides: Sequence[Facts]) -> Iterator[tuple[str, str, list[Any]]]:
    one_recipe = len({side.get(RECIPE_DIGEST) for side in sides}) == 1
    for name in dict.fromkeys(name for side in sides for name in side):
        values = [side.get(name) for side in sides]
        if name in NOT_COMPARED or (name == RECIPE and one_recipe):
            continue
        if any(value != values[0] for value in values[1:]):
            yield (*name, values)
