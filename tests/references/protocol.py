"""The JSON Schemas of the protocol: of the requests that gatemark makes, and of the answers that it reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict

from gatemark.technology import SideName
from gatemark.trial import messages
from gatemark.trial.exchange import ArrivedFrame
from gatemark.trial.facts import Natural
from gatemark.trial.report import TrialReport

Hexadecimal = Annotated[str, Field(pattern="^([0-9a-f]{2})*$")]


class Nothing(TypedDict):
    """Nothing but its kind."""


class Port(TypedDict):
    """A port as it was opened."""

    port: str
    driver: str
    mac: messages.Mac
    numa_node: Annotated[int, Field(ge=-1)]
    link_up: bool
    link_mbps: Natural
    mtu: Natural
    timestamps: Literal["software", "hardware"]


class Clock(TypedDict):
    """The Tester's clock."""

    resolution_ps: Natural
    read_ps: Natural


class Hello(TypedDict):
    """Version and machine of the engine."""

    protocol: Annotated[int, Field(ge=1)]
    version: str
    dpdk: str
    tsc_hz: Natural
    tsc_invariant: bool
    build: str
    cpus: list[Natural]
    clock: Clock


class Link(TypedDict):
    """State of both ports."""

    left: Port
    right: Port


class QueuesOfPorts(TypedDict):
    """Queues of each port, in each direction."""

    left: messages.Queues
    right: messages.Queues


class Worker(TypedDict):
    """A worker and what it polls."""

    cpu: Natural
    tasks: list[str]


class Layout(TypedDict):
    """Which CPU polls which queue, and why."""

    queues: QueuesOfPorts
    workers: list[Worker]
    why: list[str]


class Opened(Link, Layout):
    """Both ports as they were opened."""

    huge_pages: bool


class Resolved(TypedDict):
    """The link-layer address of a gateway."""

    side: SideName
    gateway: str
    mac: messages.Mac


Frame = TypedDict(
    "Frame",
    {
        "direction": Literal["forward", "reverse"],
        "index": Natural,
        "class": Literal["foreground", "background"],
        "due_ns": Natural,
        "sent": Hexadecimal,
        "expected": Hexadecimal,
    },
)


class Frames(TypedDict):
    """Frames as a trial would send them."""

    frames: list[Frame]


class Taken(TypedDict):
    """Packets that each port took."""

    left: Natural
    right: Natural


class Exchanged(TypedDict):
    """What came of an exchange."""

    cancelled: bool
    sent: Taken
    arrived: list[ArrivedFrame]
    not_kept: Natural


class Behaviour(TypedDict):
    """What the state table says about the gateway."""

    count: Natural
    established: Natural
    examined: Natural
    port_preserved: Natural
    parity_preserved: Natural
    port_class_preserved: Natural
    public_addresses: Natural
    public_ports: Natural
    public_port_minimum: messages.Word
    public_port_maximum: messages.Word
    sources_compared: Natural
    sources_endpoint_independent: Natural


class DirectionProgress(TypedDict):
    """How far one direction of a trial is."""

    direction: Literal["forward", "reverse"]
    offered: Natural
    received: Natural


class Progress(TypedDict):
    """How far a trial is."""

    phase: Literal["settle", "learn", "send", "drain", "rest"]
    elapsed_ns: Natural
    directions: list[DirectionProgress]


class Problem(TypedDict):
    """One problem of a request."""

    what: str
    where: str
    fix: str


class Refusal(TypedDict):
    """All problems of a request."""

    errors: Annotated[list[Problem], Field(min_length=1)]


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
    "hello": Hello,
    "open": Opened,
    "layout": Layout,
    "resolve": Resolved,
    "trial": TrialReport,
    "exchange": Exchanged,
    "frames": Frames,
    "connections": Behaviour,
    "link": Link,
    "close": Nothing,
    "progress": Progress,
    "error": Refusal,
}
"""Answers by the request that they end; the last two are of any."""


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
