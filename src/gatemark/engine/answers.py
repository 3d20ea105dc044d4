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
    """The Tester's clock, picoseconds."""

    resolution_ps: Natural
    """Smallest difference between two successive readings."""
    read_ps: Natural
    """What a reading costs."""


class Hello(TypedDict):
    """Version and machine of the engine."""

    protocol: Annotated[int, Field(ge=1)]
    """Version of the protocol."""
    version: str
    """Version of the engine."""
    dpdk: str
    """Version of DPDK."""
    tsc_hz: Natural
    """Rate of the processor's counter, of which loads and delays are made."""
    tsc_invariant: bool
    """Whether that counter keeps its rate."""
    build: str
    """Build type."""
    cpus: list[Natural]
    """CPUs that the engine may use."""
    clock: Clock
    """The Tester's clock."""


class Port(TypedDict):
    """A port as it was opened."""

    port: str
    """Its short name."""
    driver: str
    """Poll-mode driver, in words."""
    mac: Mac
    """Link-layer address."""
    numa_node: Annotated[int, Field(ge=-1)]
    """NUMA node, -1 if it has none."""
    link_up: bool
    """State of the link."""
    link_mbps: Natural
    """Link speed that the port reports."""
    mtu: Natural
    """Largest IP packet, octets."""
    timestamps: Literal["software", "hardware"]
    """Who reads the clock when a frame arrives: `software` (the engine) or `hardware` (the port)."""


class Link(TypedDict):
    """State of both ports."""

    left: Port
    """The left port."""
    right: Port
    """The right port."""


class QueuesOfPorts(TypedDict):
    """Queues of each port, in each direction."""

    left: Queues
    """Of the left port."""
    right: Queues
    """Of the right port."""


class Worker(TypedDict):
    """A worker and what it polls."""

    cpu: Natural
    """The CPU that it has."""
    tasks: list[str]
    """What it polls: `send` or `receive`, direction and queue, such as `send forward 0`. The neighbour responder of a
    port goes with the sender of its queue 0."""


class Layout(TypedDict):
    """How the work is laid out."""

    queues: QueuesOfPorts
    """Queues of each port, in each direction. Where the request has null, a port has one for each of its workers, as
    far as its driver has them, if its kind spreads arriving frames over its queues by itself (`pci` by RSS, `ring`,
    `null`). Any other port has one. Only the driver of a PCI port knows how many it has, so `open` may choose fewer."""
    workers: list[Worker]
    """Which CPU polls which queue."""
    why: list[str]
    """A sentence for people for each decision."""


class Opened(Link, Layout):
    """Both ports as they were opened."""

    huge_pages: bool
    """Whether the engine uses huge pages."""


class Resolved(TypedDict):
    """The link-layer address of a gateway."""

    side: SideName
    """As in the request."""
    gateway: str
    """As in the request."""
    mac: Mac
    """Link-layer address of the gateway."""


_ClassOfFrame = TypedDict(
    "_ClassOfFrame", {"class": Annotated[TrafficClass, Field(description="Its class (RFC 8219 section 5.3).")]}
)


class Frame(_ClassOfFrame):
    """A frame as a trial would send it."""

    direction: OneWay
    """Its direction."""
    index: Natural
    """Its index in the direction, from 0."""
    due_ns: Natural
    """When it is due, from the start of sending."""
    sent: Hexadecimal
    """The frame as it is sent, in hexadecimal, without FCS."""
    expected: Hexadecimal
    """The frame as a correct gateway delivers it. Its link-layer addresses are as if each port of the gateway had that
    of the Tester's port at its other side. Its identification is 0 where the gateway is free to choose."""


class Frames(TypedDict):
    """Frames as a trial would send them."""

    frames: list[Frame]
    """The frames."""


class Behaviour(TypedDict):
    """What the state table says about the gateway."""

    count: Natural
    """Number of connections."""
    established: Natural
    """Connections in the state table."""
    examined: Natural
    """Entries read, at most 4,194,304, evenly spaced. All counts below are of these."""
    port_preserved: Natural
    """Entries with the Initiator's source port."""
    parity_preserved: Natural
    """Entries with a port of the same parity (RFC 4787 section 4.2.2)."""
    port_class_preserved: Natural
    """Entries with a port on the same side of 1024 (RFC 4787 section 4.2.1, RFC 6146 section 3.5.1.1)."""
    public_addresses: Natural
    """Number of distinct public addresses; 65,536 means that many or more."""
    public_ports: Natural
    """Number of distinct public ports."""
    public_port_minimum: Word
    """Lowest public port, 0 where nothing is established."""
    public_port_maximum: Word
    """Highest public port, 0 where nothing is established."""
    sources_compared: Natural
    """Initiator endpoints, address and port, with connections to several destinations; at most 4096, evenly spread."""
    sources_endpoint_independent: Natural
    """Those with one public endpoint for all destinations: Endpoint-Independent Mapping (RFC 4787 section 4.1)."""


class DirectionProgress(TypedDict):
    """How far one direction of a trial is."""

    direction: OneWay
    """The direction."""
    offered: Natural
    """Frames offered until then."""
    received: Natural
    """Frames received until then."""


class Progress(TypedDict):
    """How far a trial is."""

    phase: PhaseName
    """The phase (RFC 2544 section 23)."""
    elapsed_ns: Natural
    """Time since the phase began."""
    directions: list[DirectionProgress]
    """Each direction of the trial."""


class Problem(TypedDict):
    """One problem of a request."""

    what: str
    """What is wrong, with the value."""
    where: str
    """Key path or port; may be empty."""
    fix: str
    """What to do about it."""


class Refusal(TypedDict):
    """All problems of a request."""

    errors: Annotated[list[Problem], Field(min_length=1)]
    """All problems."""
