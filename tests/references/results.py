"""The keys of published JSON: one table for each object, with the types and the docstrings of its fields."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, TypeAdapter
from tests.references.page import table

from gatemark.compare.document import ComparisonDocument
from gatemark.config.described import docstring_of, one_line
from gatemark.procedures.registry import PROCEDURES
from gatemark.results.document import ResultDocument
from gatemark.results.provenance import Provenance
from gatemark.results.run import RunResult
from gatemark.results.search import RateResult
from gatemark.series.document import SeriesDocument

SHARED = "objects of many places"
RATIO = "^[0-9]+(/[0-9]+)?$"
PLAIN = {
    "integer": ("integer", "integers"),
    "number": ("number", "numbers"),
    "boolean": ("boolean", "booleans"),
    "string": ("text", "texts"),
    "null": ("null", "null"),
}

ROOTS: Mapping[str, type[BaseModel]] = {
    "result": ResultDocument,
    "run": RunResult,
    "rate": RateResult,
    **{name: row.result for name, row in PROCEDURES.items()},
    "series": SeriesDocument,
    "comparison": ComparisonDocument,
    "provenance": Provenance,
}
"""Objects that are explained apart, by the names of their blocks."""


def block(name: str) -> str:
    """Return the table of an object and of those that are in it alone, or of all that have several places."""
    places = {kind: heading for kind, (root, heading) in _places().items() if root == name}
    tables = [_table(ROOTS[name])] if name in ROOTS else []
    return "\n\n".join([*tables, *(part for kind, heading in places.items() for part in _section(heading, kind))])


def schema(model: type[BaseModel]) -> str:
    """Return the JSON Schema of a file, in which every key has its docstring."""
    whole = model.model_json_schema(by_alias=True, mode="serialization")
    kinds = {kind.__name__: kind for kind in _kinds_below(model)}
    for name, part in (*whole.get("$defs", {}).items(), (model.__name__, whole)):
        for key, words in _meanings(kinds.get(name, object)):
            part["properties"][key]["description"] = words
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _section(heading: str, kind: type) -> Iterator[str]:
    yield f"### {heading}"
    if (lead := inspect.getdoc(kind)) and not lead.startswith(f"{kind.__name__}("):
        yield one_line(lead).replace("``", "`")
    yield _table(kind)


def _table(kind: type) -> str:
    properties = TypeAdapter(kind).json_schema(by_alias=True, mode="serialization")["properties"]
    inherited = dict(_meanings(_base(kind)))
    meanings = {key: words for key, words in _meanings(kind) if key not in inherited}
    rows = ((f"`{key}`", _type(properties[key]), words) for key, words in meanings.items())
    return table(("key", "type", "meaning"), rows)


def _base(kind: type) -> type:
    """Return what is explained apart of an object: the part that all runs have in common."""
    return next((base for base in kind.__mro__[1:] if base in ROOTS.values()), object)


def _names(kind: type) -> Iterator[tuple[str, str]]:
    """Yield each field or computed field of an object, with the key that it is published as."""
    if issubclass(kind, BaseModel):
        yield from ((name, field.alias or name) for name, field in kind.model_fields.items())
        yield from ((name, field.alias or name) for name, field in kind.model_computed_fields.items())
    elif is_dataclass(kind):
        yield from ((name, name) for name in kind.__dataclass_fields__)


def _meanings(kind: type) -> Iterator[tuple[str, str]]:
    yield from ((key, docstring_of(kind, name)) for name, key in _names(kind))


def _fields(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the keys of an object with their annotations."""
    computed = kind.model_computed_fields if issubclass(kind, BaseModel) else {}
    hints = get_type_hints(kind)
    for name, key in _names(kind):
        yield key, computed[name].return_type if name in computed else hints[name]


def _kinds_in(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and (issubclass(annotation, BaseModel) or is_dataclass(annotation)):
        yield annotation
    for part in get_args(annotation):
        yield from _kinds_in(part)


def _kinds_below(kind: type) -> Iterator[type]:
    yield kind
    for _, annotation in _fields(kind):
        for inner in _kinds_in(annotation):
            yield from _kinds_below(inner)


def apart() -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield each object that is explained apart, once, with the first of its names."""
    for root in dict.fromkeys(ROOTS.values()):
        yield next(name for name, kind in ROOTS.items() if kind is root), root


@cache
def _places() -> Mapping[type, tuple[str, str]]:
    """Return for each object the block that it is in, and its heading there."""
    places: dict[type, tuple[str, str]] = {}
    for name, root in apart():
        for kind, path in _paths_below(root, ""):
            places[kind] = (SHARED, _title(kind)) if kind in places else (name, _heading(name, path))
    return places


def _paths_below(kind: type, at: str) -> Iterator[tuple[type, str]]:
    """Yield every object in another one, with its path."""
    inherited = dict(_names(_base(kind))).values()
    for key, annotation in _fields(kind):
        for inner in _kinds_in(annotation):
            if key not in inherited and inner not in ROOTS.values():
                path = f"{at}{key}{'[]' if str(annotation).startswith('tuple') else ''}"
                yield inner, path
                yield from _paths_below(inner, f"{path}.")


def _heading(root: str, path: str) -> str:
    if root in PROCEDURES:
        return f"`{path}` of `{root}`"
    return f"`runs[].{path}`" if root in ("run", "rate") else f"`{path}`"


def _title(kind: type) -> str:
    words = re.sub("(?<=[a-z])(?=[A-Z])", " ", kind.__name__).capitalize()
    return re.sub(" (part|result|fact)$", "", words)


def _type(part: Mapping[str, Any], *, many: bool = False) -> str:
    """Return what the values of a JSON Schema are called: a single one, or several in a list."""
    if "$ref" in part:
        return _link(part["$ref"].rpartition("/")[2], many=many)
    if "const" in part or "enum" in part:
        return ", ".join(f"`{json.dumps(value)}`" for value in part.get("enum", [part.get("const")]))
    if "anyOf" in part:
        kinds = [
            kind for kind in part["anyOf"] if kind != {"type": "integer"} or {"type": "number"} not in part["anyOf"]
        ]
        return " or ".join(_type(kind, many=many) for kind in kinds)
    if "prefixItems" in part:
        return "pairs" if many else "pair"
    if part.get("type") == "array":
        return f"{'lists' if many else 'list'} of {_type(part.get('items', {}), many=True)}"
    if part.get("type") == "object":
        values = part.get("additionalProperties")
        return f"{_type(values, many=True)} by name" if isinstance(values, dict) else "object"
    if part.get("pattern") == RATIO:
        return "ratios" if many else "ratio"
    return PLAIN[part["type"]][many] if "type" in part else "anything"


def _link(name: str, *, many: bool) -> str:
    kind = next((kind for kind in _places() if kind.__name__ == name), None)
    if kind is None:
        return "objects" if many else "object"
    root, heading = _places()[kind]
    words = heading.lower() if root == SHARED else "object"
    anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    return f"[{words}{'s' if many else ''}](#{anchor})"
