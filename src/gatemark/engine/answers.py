"""What the engine answers, as types: the keys of each answer but `answer` and `id`. Nothing here checks an answer.

`gatemark.trial` has the types of the answers to `trial` and `exchange`, which are read key by key.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict  # pydantic makes no schema of those of typing before Python 3.12

from gatemark.facts import OneWay, TrafficClass
from gatemark.technology import SideName
from gatemark.trial.facts import Natural
from gatemark.trial.messages import Mac, Queues, Word
from gatemark.trial.report import PhaseName

Hexadecimal = Annotated[str, Field(pattern="^([0-9a-f]{2})*$")]


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


class Port(TypedDict):
    """A port as it was opened."""

    port: str
    driver: str
    mac: Mac
    numa_node: Annotated[int, Field(ge=-1)]
    link_up: bool
    link_mbps: Natural
    mtu: Natural
    timestamps: Literal["software", "hardware"]


class Link(TypedDict):
    """State of both ports."""

    left: Port
    right: Port


class QueuesOfPorts(TypedDict):
    """Queues of each port, in each direction."""

    left: Queues
    right: Queues


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
    mac: Mac


Frame = TypedDict(
    "Frame",
    {
        "direction": OneWay,
        "index": Natural,
        "class": TrafficClass,
        "due_ns": Natural,
        "sent": Hexadecimal,
        "expected": Hexadecimal,
    },
)


class Frames(TypedDict):
    """Frames as a trial would send them."""

    frames: list[Frame]


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
    public_port_minimum: Word
    public_port_maximum: Word
    sources_compared: Natural
    sources_endpoint_independent: Natural


class DirectionProgress(TypedDict):
    """How far one direction of a trial is."""

    direction: OneWay
    offered: Natural
    received: Natural


class Progress(TypedDict):
    """How far a trial is."""

    phase: PhaseName
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
