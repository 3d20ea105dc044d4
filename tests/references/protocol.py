"""JSON Schemas and tables of the protocol: of the requests that gatemark makes, and of the answers that it reads."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from tests.references.objects import SHARED, Page, describe
from typing_extensions import TypedDict

from gatemark.config.described import one_line
from gatemark.engine import answers
from gatemark.trial import messages
from gatemark.trial.exchange import ExchangeFacts
from gatemark.trial.report import TrialReport


class Nothing(TypedDict):
    """Nothing but its kind."""


class Exchanged(ExchangeFacts):
    """What came of an exchange."""

    cancelled: bool = Field(description="Whether it ended early on demand.")


REQUESTS: Mapping[str, Any] = {
    "hello": Nothing,
    "link": Nothing,
    "close": Nothing,
    "cancel": Nothing,
    "connections": Nothing,
    "open": messages.OpenRequest,
    "layout": messages.LayoutRequest,
    "resolve": messages.ResolveRequest,
    "trial": messages.TrialRequest,
    "frames": messages.FramesRequest,
    "exchange": messages.ExchangeRequest,
}
ANSWERS: Mapping[str, Any] = {
    "hello": answers.Hello,
    "open": answers.Opened,
    "layout": answers.Layout,
    "resolve": answers.Resolved,
    "trial": TrialReport,
    "exchange": Exchanged,
    "frames": answers.Frames,
    "connections": answers.Behaviour,
    "link": answers.Link,
    "close": Nothing,
    "progress": answers.Progress,
    "error": answers.Refusal,
}
"""Answers by the request that they end; the last two are of any."""


PAGE = Page(
    roots={
        **{f"request-{kind}": asked for kind, asked in REQUESTS.items() if asked is not Nothing},
        "request-trial": messages.Trial,
        **{f"answer-{kind}": told for kind, told in ANSWERS.items() if told not in (Nothing, TrialReport)},
    },
    heading=lambda block, path: f"`{path}` of `{block.partition('-')[2]}`",
    are_anchors=True,
    has_limits=True,
)
"""The keys of all messages. Those of a report are in the reference of counters."""

HEAD = """\
# Messages of the protocol

`scripts/references` makes this page from the types that the Python package sends and reads.
[README.md](README.md) has the rules, one example of each message, and what concerns several keys together.
An optional key may be left out.

The requests {bare} have no keys but `request` and `id`,
and the answer to `close` none but `answer` and `id`.
The answer to `trial` has those of a [report](../docs/reference/counters.md#report).
"""


def messages_page() -> str:
    """Return the page of all messages: one table for each, and for each object in one."""
    bare = [f"`{kind}`" for kind, asked in REQUESTS.items() if asked is Nothing]
    parts = [HEAD.format(bare=f"{', '.join(bare[:-1])} and {bare[-1]}")]
    for name, kind in PAGE.roots.items():
        word, _, called = name.partition("-")
        parts += [
            f"## {word.capitalize()} `{called}`\n\n{one_line(inspect.getdoc(kind) or '')}\n\n{PAGE.block(name)}\n"
        ]
    return "\n".join([*parts, f"## {SHARED.capitalize()}\n\n{PAGE.block(SHARED)}\n"])


def request_schema() -> str:
    """Return the schema of a request: what its type says, and its `id`."""
    kinds = {kind: _plain(asked, request={"const": kind}, id={"type": "integer"}) for kind, asked in REQUESTS.items()}
    return _schema("Requests to gatemark-engine", "input", kinds)


def answer_schema() -> str:
    """Return the schema of an answer: its outcome, the `id` of its request, and what its type says, all of it."""
    kinds = {}
    for kind, told in ANSWERS.items():
        outcome = kind if kind in ("progress", "error") else "ok"
        identifier = {"anyOf": [{"type": "integer"}, {"type": "null"}]} if kind == "error" else {"type": "integer"}
        kinds[kind] = _plain(told, answer={"const": outcome}, id=identifier)
    return _schema("Answers of gatemark-engine", "output", kinds, are_whole=True)


class _WithoutTitles(GenerateJsonSchema):
    """A title of a field only repeats its name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _plain(kind: Any, **more: Any) -> dict[str, Any]:
    """Return the schema of a type with further keys, which come first and are required."""
    part = TypeAdapter(kind).json_schema(mode="serialization", schema_generator=_WithoutTitles)
    describe(part, kind)
    part["properties"] = {**more, **{key: of for key, of in part.get("properties", {}).items() if key not in more}}
    part["required"] = list(dict.fromkeys([*more, *part.get("required", [])]))
    return part


def _schema(title: str, stream: str, kinds: Mapping[str, dict[str, Any]], *, are_whole: bool = False) -> str:
    """Put the kinds of a message together: no object has other keys than its type; with `are_whole` it has them all."""
    defs: dict[str, Any] = {}
    for part in kinds.values():
        for name, inner in part.pop("$defs", {}).items():
            assert defs.setdefault(name, inner) == inner, f"two objects are called {name}"
    for part in (*kinds.values(), *defs.values()):
        if "properties" in part:
            part["additionalProperties"] = False
            part["required"] = list(part["properties"]) if are_whole else part.get("required", [])
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": f"One object a line on the engine's standard {stream}; see README.md.",
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds],
        "$defs": {**kinds, **defs},
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
