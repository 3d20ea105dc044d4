"""Values that follow a JSON Schema, or nearly: each is a function of a seed, so that a failure can be made again."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Iterable, Mapping
from typing import Any

ODD_TEXTS = (
    "", " ", "\0", "\u202e", "ü", "٣", "🙂" * 40, "x" * 70_000, "-1", "1e400", "nan", "%", "0/0", "1.5.5", "1-", "-",
    "9" * 400, "198.18.0.0/33", "198.18.0.2%eth0", "::/129", "fe80::1%lo", "::ffff:198.18.0.1", "02:00:00:00:00", "1G",
    "0", "0s", "100%", "../../etc/passwd", "{left}", "1e9 ns", "+5", "0x10", "1_000", "true", "ring", "null", "netns",
)  # fmt: skip
ODD_NUMBERS = (
    0, -1, 1, 2**31, 2**32, 2**53 + 1, 2**63, 2**64 - 1, 2**64, -(2**63), 10**40, 0.5, -0.0, 1e300,
    float("inf"), float("nan"),
)  # fmt: skip
ODD_DATES = (datetime.date(2026, 2, 28), datetime.time(1, 2), datetime.datetime(1, 1, 1))
"""What TOML knows and JSON does not."""


def texts_of(documents: Iterable[Any]) -> list[str]:
    """Return every text that occurs in documents: they fit somewhere."""
    result: set[str] = set()
    waiting = list(documents)
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            result.add(value)
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return sorted(result)


class Values:
    """Makes values by a schema. `wrong`: the chance of each value to be of another kind, to be left out, or added."""

    def __init__(
        self, schema: Mapping[str, Any], seed: int, *, wrong: float, texts: list[str], odd: tuple[Any, ...] = ()
    ) -> None:
        self._schema = schema
        self._chance = random.Random(seed)
        self._wrong = wrong
        self._texts = texts
        self._odd = odd

    def root(self) -> Any:
        """Return a value of the whole schema."""
        return self.value(self._schema)

    def changed(self, document: Any) -> Any:
        """Return a document that was right with a few of its values replaced, by the schema or against it."""
        document = self._copy(document)
        for _ in range(self._chance.choice((1, 1, 2, 4))):
            turn = self._chance.random()
            if turn < 0.5:
                self._put_by_schema(document)
                continue
            place = self._chance.choice(list(_containers(document)))
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                continue
            key = self._chance.choice(keys)
            if turn < 0.6:
                place[self._text() if isinstance(place, dict) else key] = self.anything()
            elif turn < 0.7:
                del place[key]
            else:
                place[key] = self._varied(place[key])
        return document

    def value(self, schema: Mapping[str, Any], depth: int = 0) -> Any:
        """Return a value of `schema`, mostly."""
        if self._chance.random() < self._wrong:
            return self.anything()
        if "$ref" in schema:
            return self.value(self._at(schema["$ref"]), depth)
        for choice in ("oneOf", "anyOf"):
            if choice in schema:
                return self.value(self._chance.choice(schema[choice]), depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._chance.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            least = schema.get("minItems", 0)
            count = self._chance.randint(least, max(least, min(schema.get("maxItems", 3), 3)))
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(count)]
        if kind in ("integer", "number"):
            return self._number(schema)
        if kind == "boolean":
            return self._chance.random() < 0.5
        return None if kind == "null" else self._fitting_text(schema.get("pattern", ""))

    def anything(self) -> Any:
        """Return a value of any kind."""
        kind = self._chance.randrange(8)
        nested: list[Any] = []
        for _ in range(self._chance.choice((0, 1, 40))):
            nested = [nested]
        odd: tuple[Any, ...] = (
            self._text(), self._chance.choice(ODD_NUMBERS), True, None, [], {}, nested, {self._text(): self._text()}
        )  # fmt: skip
        if self._odd and self._chance.random() < 0.1:
            return self._chance.choice(self._odd)
        return odd[kind]

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        count = {}
        needed = schema.get("required", ())
        for key, inner in schema.get("properties", {}).items():
            wanted = key in needed or self._chance.random() < (0.4 if depth < 2 else 0.25)
            if wanted and self._chance.random() >= self._wrong:
                count[key] = self.value(inner, depth + 1)
        more = schema.get("additionalProperties", True)
        if isinstance(more, Mapping) or self._chance.random() < self._wrong:
            count[self._text()] = self.value(more, depth + 1) if isinstance(more, Mapping) else self.anything()
        return count

    def _number(self, schema: Mapping[str, Any]) -> int:
        low = schema.get("minimum", -3)
        high = schema.get("maximum", schema.get("exclusiveMaximum", low + 1 + 10 ** self._chance.randint(0, 19)) - 1)
        return self._chance.choice((low, high, self._chance.randint(low, max(low, high)), low + (high > low)))

    def _fitting_text(self, pattern: str) -> str:
        fitting = [text for text in self._texts if re.search(pattern, text)]
        return self._chance.choice(fitting or self._texts)

    def _text(self) -> str:
        return self._chance.choice(self._texts if self._chance.random() < 0.5 else ODD_TEXTS)

    def _varied(self, value: Any) -> Any:
        """Return a value of the same kind, near the old one or at the edge of what there is."""
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return self._chance.choice((value + 1, value - 1, 2 * value, *ODD_NUMBERS))
        if isinstance(value, str) and self._chance.random() < 0.8:
            return re.sub(
                r"\d+", lambda digits: str(int(digits[0]) + self._chance.choice((-1, 1, 7, 100))), value, count=1
            )
        return self._text() if isinstance(value, str) else self._copy(value)

    def _put_by_schema(self, document: Any) -> None:
        """Put a value of the schema where it belongs, as deep in the document as there are tables."""
        place, schema = document, self._resolved(self._schema)
        while isinstance(place, dict) and schema.get("properties"):
            key = self._chance.choice(list(schema["properties"]))
            inner = self._resolved(schema["properties"][key])
            if isinstance(place.get(key), dict) and inner.get("properties") and self._chance.random() < 0.9:
                place, schema = place[key], inner
                continue
            place[key] = self.value(schema["properties"][key])
            return

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Follow references, and one of several choices, to what an object or a text may be."""
        while "$ref" in schema or "anyOf" in schema or "oneOf" in schema:
            choices = schema.get("anyOf") or schema.get("oneOf") or ()
            schema = self._at(schema["$ref"]) if "$ref" in schema else self._chance.choice(choices)
        return schema

    def _copy(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._copy(inner) for key, inner in value.items()}
        return [self._copy(inner) for inner in value] if isinstance(value, list) else value

    def _at(self, reference: str) -> Mapping[str, Any]:
        place: Any = self._schema
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]
        return place  # type: ignore[no-any-return]


def _containers(document: Any) -> Iterable[Any]:
    if isinstance(document, dict | list):
        yield document
        for value in document.values() if isinstance(document, dict) else document:
            yield from _containers(value)
