"""Objects of JSON: one table for each, with the types and the docstrings of its fields."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, TypeAdapter
from tests.references.page import limits, table
from typing_extensions import get_original_bases, is_typeddict

from gatemark.config.described import docstring_of, one_line

SHARED = "objects of many places"
RATIO = "^[0-9]+(/[0-9]+)?$"
PLAIN = {
    "integer": ("integer", "integers"),
    "number": ("number", "numbers"),
    "boolean": ("boolean", "booleans"),
    "string": ("text", "texts"),
    "null": ("null", "null"),
}


@dataclass(frozen=True)
class Page:
    """Where a page has which object: in the block of the one that it is in, or, with several places, in `SHARED`."""

    roots: Mapping[str, type]
    """What has a block of its own, by its name; a base of another one has the fields that they share."""
    heading: Callable[[str, str], str] = lambda _, path: f"`{path}`"
    """Heading of an object, by the name of its block and its path."""
    are_anchors: bool = False
    """Whether the names of blocks are those of the headings above them."""
    shown: Callable[[type, str], str] = lambda _kind, _key: ""
    """Where the report shows a field. A table in which it shows none has no such column."""
    has_limits: bool = False
    """Whether the types of keys are told with their limits."""

    def block(self, name: str) -> str:
        """Return the tables of a block."""
        places = {kind: heading for kind, (root, heading) in self._places.items() if root == name}
        tables = [self._table(self.roots[name])] if name in self.roots else []
        return "\n\n".join([*tables, *(part for kind, title in places.items() for part in self._section(title, kind))])

    @property
    def blocks(self) -> list[str]:
        """Return the names of all blocks that the page needs."""
        shared = any(root == SHARED for root, _ in self._places.values())
        return [*self._apart.values(), *([SHARED] if shared else [])]

    @cached_property
    def _apart(self) -> Mapping[type, str]:
        """Return the objects with a block, each with the first of its names."""
        names: dict[type, str] = {}
        for name, kind in self.roots.items():
            names.setdefault(kind, name)
        return names

    @cached_property
    def _places(self) -> Mapping[type, tuple[str, str]]:
        """Return for each other object the block that it is in, and its heading there."""
        places: dict[type, tuple[str, str]] = {}
        for root, name in self._apart.items():
            for kind, path in self._paths_below(root, ""):
                places[kind] = (SHARED, _title(kind)) if kind in places else (name, self.heading(name, path))
        return places

    def _paths_below(self, kind: type, at: str) -> Iterator[tuple[type, str]]:
        for key, annotation in self._fields(kind):
            for inner in kinds_in(annotation):
                if inner not in self._apart:
                    path = f"{at}{key}{'[]' if str(annotation).startswith(('tuple', 'list')) else ''}"
                    yield inner, path
                    yield from self._paths_below(inner, f"{path}.")

    def _section(self, heading: str, kind: type) -> Iterator[str]:
        yield f"### {heading}"
        if (lead := inspect.getdoc(kind)) and not lead.startswith(f"{kind.__name__}("):
            yield one_line(lead).replace("``", "`")
        yield self._table(kind)

    def _table(self, kind: type) -> str:
        whole = TypeAdapter(kind).json_schema(by_alias=True, mode="serialization")
        of_kind = whole if "properties" in whole else whole["$defs"][kind.__name__]  # one that holds its like
        properties = of_kind["properties"]
        meanings = dict(_meanings(kind, properties))
        required = of_kind.get("required", ()) if is_typeddict(kind) else properties
        rows = [
            (f"`{key}`", self._type(properties[key]) + ("" if key in required else "; optional"), meanings[key])
            for key, _ in self._fields(kind)
        ]
        places = [self.shown(kind, key) for key, _ in self._fields(kind)]
        if any(places):
            headings = ("key", "type", "meaning", "in the report")
            return table(headings, ((*row, place) for row, place in zip(rows, places, strict=True)))
        return table(("key", "type", "meaning"), rows)

    def _fields(self, kind: type) -> Iterator[tuple[str, Any]]:
        """Yield the keys of an object with their annotations, without those of a base that has a block."""
        base = next((base for base in kind.__mro__[1:] if base in self._apart), object)
        inherited = dict(_names(base))
        yield from ((key, annotation) for name, key, annotation in _annotated(kind) if name not in inherited)

    def _type(self, part: Mapping[str, Any], *, many: bool = False) -> str:
        """Return what the values of a JSON Schema are called: a single one, or several in a list."""
        if "$ref" in part:
            return self._link(part["$ref"].rpartition("/")[2], many=many)
        if "const" in part or "enum" in part:
            return ", ".join(f"`{json.dumps(value)}`" for value in part.get("enum", [part.get("const")]))
        if "anyOf" in part:
            narrower = {"type": "integer"} if {"type": "number"} in part["anyOf"] else None
            types = [self._type(kind, many=many) for kind in part["anyOf"] if kind != narrower]
            return (", or " if self.has_limits and ", " in types[0] else " or ").join(types)
        if "prefixItems" in part:
            return "pairs" if many else "pair"
        if part.get("type") == "array":
            return f"{'lists' if many else 'list'} of {self._type(part.get('items', {}), many=True)}{self._count(part)}"
        if part.get("type") == "object":
            values = part.get("additionalProperties")
            return f"{self._type(values, many=True)} by name" if isinstance(values, dict) else "object"
        if part.get("pattern") == RATIO:
            return "ratios" if many else "ratio"
        return PLAIN[part["type"]][many] + self._limits(part) if "type" in part else "anything"

    def _limits(self, part: Mapping[str, Any]) -> str:
        """Return the limits of a number; that it is 0 or more goes without saying."""
        highest = part.get("maximum", part["exclusiveMaximum"] - 1 if "exclusiveMaximum" in part else None)
        lowest = part.get("minimum") if highest is not None or part.get("minimum") else None
        return limits(lowest, highest) if self.has_limits else ""

    def _count(self, part: Mapping[str, Any]) -> str:
        """Return how many elements a list has."""
        number = limits(part.get("minItems", 0 if "maxItems" in part else None), part.get("maxItems"))
        return f"{number} of them" if number and self.has_limits else ""

    def _link(self, name: str, *, many: bool) -> str:
        words, heading = "object", ""
        for kind, (root, title) in self._places.items():
            if kind.__name__ == name:
                words, heading = title.lower() if root == SHARED else words, title
        for kind, root in self._apart.items():
            if kind.__name__ == name and self.are_anchors:
                heading = root
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        words += "s" if many and not words.endswith("s") else ""
        return f"[{words}](#{anchor})" if anchor else words


def described_schema(model: type[BaseModel]) -> str:
    """Return the JSON Schema of a file, in which every key has its docstring."""
    whole = model.model_json_schema(by_alias=True, mode="serialization")
    describe(whole, model)
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def describe(schema: Mapping[str, Any], kind: type) -> None:
    """Give each key in the JSON Schema of an object its docstring."""
    kinds = {inner.__name__: inner for inner in _kinds_below(kind)}
    for name, part in (*schema.get("$defs", {}).items(), (kind.__name__, schema)):
        for key, words in _meanings(kinds.get(name, object), part.get("properties", {})):
            part["properties"][key]["description"] = words


def kinds_in(annotation: Any) -> Iterator[type]:
    """Yield the objects that an annotation names."""
    if isinstance(annotation, type) and (
        issubclass(annotation, BaseModel) or is_dataclass(annotation) or is_typeddict(annotation)
    ):
        yield annotation
    for part in get_args(annotation):
        yield from kinds_in(part)


def _kinds_below(kind: type) -> Iterator[type]:
    yield kind
    for _, _, annotation in _annotated(kind):
        for inner in kinds_in(annotation):
            yield from _kinds_below(inner)


def _names(kind: type) -> Iterator[tuple[str, str]]:
    """Yield each field or computed field of an object, with the key that it is published as."""
    if issubclass(kind, BaseModel):
        yield from ((name, field.alias or name) for name, field in kind.model_fields.items() if not field.exclude)
        yield from ((name, field.alias or name) for name, field in kind.model_computed_fields.items())
    elif is_dataclass(kind):
        yield from ((name, name) for name in kind.__dataclass_fields__)
    elif is_typeddict(kind):
        yield from ((name, name) for name in kind.__annotations__ if name != "request")  # it is the heading


def _meanings(kind: type, properties: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, key in _names(kind):
        docstrings = (docstring_of(base, name) for base in _and_bases(kind))
        words = next(filter(None, docstrings), properties[key].get("description"))
        assert words, f"{kind.__name__}.{name} has no docstring"
        yield key, words


def _and_bases(kind: type) -> Iterator[type]:
    """Yield an object and what it inherits keys from; a `TypedDict` forgets that in its `__mro__`."""
    yield kind
    for base in get_original_bases(kind):
        if is_typeddict(base):
            yield from _and_bases(base)


def _annotated(kind: type) -> Iterator[tuple[str, str, Any]]:
    """Yield the name, the key and the annotation of each field of an object."""
    computed = kind.model_computed_fields if issubclass(kind, BaseModel) else {}
    hints = get_type_hints(kind)
    for name, key in _names(kind):
        yield name, key, computed[name].return_type if name in computed else hints[name]


def _title(kind: type) -> str:
    words = re.sub("(?<=[a-z])(?=[A-Z])", " ", kind.__name__).capitalize()
    return re.sub(" (part|result|facts?)$", "", words)
