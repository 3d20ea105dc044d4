"""What gatemark asks of the engine, as types: the keys of each request but its `id`, with their limits.

`protocol/README.md` explains the keys. `scripts/references` makes `protocol/request.schema.json` of these types. The
engine has its own reader, `engine/src/control/read_requests.cpp`.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic makes no schema of those of typing before Python 3.12

from gatemark.config.tables import ExtensionHeader, HostMacs, UdpChecksum
from gatemark.config.types import CONNECTIONS_MAX, DURATION_MAX_NS, FRAMES_PER_SECOND_MAX, MIX_PERIOD_MAX
from gatemark.facts import EdgeChoice, OneWay, Order, Variation
from gatemark.technology import EcnMode, SideName

Time = Annotated[int, Field(ge=0, le=DURATION_MAX_NS)]
"""Nanoseconds."""
PositiveTime = Annotated[int, Field(ge=1, le=DURATION_MAX_NS)]
Rate = Annotated[int, Field(ge=1, le=FRAMES_PER_SECOND_MAX)]
"""Frames per second in one direction."""
Connections = Annotated[int, Field(ge=1, le=CONNECTIONS_MAX)]
Word = Annotated[int, Field(ge=0, le=0xFFFF)]
"""A number of 16 bits, such as a port."""
Octet = Annotated[int, Field(ge=0, le=255)]
Cpus = list[Annotated[int, Field(ge=0, le=4095)]]
Queues = Annotated[int, Field(ge=1, le=64)]
VlanId = Annotated[int, Field(ge=1, le=4094)]
Mac = Annotated[str, Field(pattern=r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}$")]
Packets = Annotated[list[Annotated[str, Field(pattern=r"^([0-9a-fA-F]{2}){20,9000}$")]], Field(max_length=1024)]
"""Octets in hexadecimal."""
Prefixes = Annotated[list[str], Field(min_length=1)]


class Hosts(TypedDict):
    """A set of hosts: the two octets at `offset` take the values of a range."""

    address: str
    offset: Annotated[int, Field(ge=0, le=14)]
    mode: Variation
    minimum: Word
    maximum: Word
    networks: Annotated[int, Field(ge=1, le=256)]


class Rule(TypedDict):
    """A MAP rule (RFC 7597 section 5)."""

    ipv6: str
    ipv4: str
    ea_bits: Annotated[int, Field(ge=0, le=48)]
    psid_offset: Annotated[int, Field(ge=0, le=15)]
    psid_bits: NotRequired[Annotated[int, Field(ge=0, le=16)] | None]
    psid: NotRequired[Word | None]
    dmr: NotRequired[str | None]


class Domain(Rule):
    """A MAP domain, whose customer edges are emulated."""

    weight: Annotated[int, Field(ge=1, le=1 << 16)]
    in_identifier: bool
    except_suffixes: bool
    except_system_ports: bool


class GatewayEdge(Rule):
    """The customer edge that the gateway is."""

    ea: Annotated[int, Field(ge=0, lt=1 << 48)]


class EdgeSet(TypedDict):
    """Customer edges of MAP domains."""

    domains: Annotated[list[Domain], Field(min_length=1, max_length=1024)]
    count: Connections
    order: Order
    choice: EdgeChoice


class Edges(TypedDict):
    """Customer edges in the place of a set of hosts."""

    edges: EdgeSet


class PortQueues(TypedDict):
    """A port and its queues."""

    port: str
    queues: NotRequired[Queues | None]


class OpenSide(PortQueues):
    """A port as it is opened."""

    ring_frames: Annotated[int, Field(ge=16, le=65536)]
    vlan_id: NotRequired[VlanId | None]
    mtu: Annotated[int, Field(ge=576, le=9500)]
    answer_for: list[Hosts | Edges]
    host_macs: HostMacs
    teach_hosts: NotRequired[bool]
    gateway_mac: NotRequired[Mac | None]


class OpenRequest(TypedDict):
    """Opens both ports."""

    request: Literal["open"]
    left: OpenSide
    right: OpenSide
    seed: Annotated[int, Field(ge=0)]
    cores: Cpus
    huge_pages: Literal["auto", "never"]


class LayoutRequest(TypedDict):
    """Asks how `open` would lay out its work."""

    request: Literal["layout"]
    left: PortQueues
    right: PortQueues
    cores: Cpus


class ResolveRequest(TypedDict):
    """Asks for the link-layer address of a gateway."""

    request: Literal["resolve"]
    side: SideName
    gateway: str
    source: str
    timeout_ns: Time


class Ports(TypedDict):
    """UDP ports (RFC 4814 section 4.5)."""

    mode: Variation
    minimum: Word
    maximum: Word


class ExplicitMapping(TypedDict):
    """One explicit address mapping (RFC 7757)."""

    ipv4: str
    ipv6: str


class Translation(TypedDict):
    """What a translator makes of a frame."""

    prefix: NotRequired[str | None]
    eam: list[ExplicitMapping]
    zero_udp_checksum: bool


DontFragmentRule = Literal["kept", "rfc7915", "rfc6145"]
"""What the gateway makes of DF in an IPv4 packet (RFC 7915 section 5.1, RFC 6145 section 5.1)."""


class Tunnel(TypedDict):
    """Packets inside others: IPv4 in IPv6 (RFC 2473), or IPv6 in IPv4 (RFC 4213 section 3)."""

    gateway: str
    subscribers: NotRequired[Hosts | None]
    hop_limit: Annotated[int, Field(ge=1, le=255)]
    expected_hop_limit: NotRequired[Octet | None]
    traffic_class: NotRequired[Octet | None]
    ecn: NotRequired[EcnMode | None]


class Peers(TypedDict):
    """Hosts that are customer edges of a rule, all with one PSID, before a gateway that is one (RFC 7597 section 5)."""

    rule: Rule
    psid: Word


class StreamFrames(TypedDict):
    """Frames of a stream without their hosts and ports."""

    frame_octets: Annotated[int, Field(ge=64, le=9256)]
    trailer_octets: Annotated[int, Field(ge=0, le=64)]
    hop_limit: Annotated[int, Field(ge=1, le=255)]
    traffic_classes: list[Octet]
    flow_label: Annotated[int, Field(ge=0, le=0xFFFFF)] | None
    extension_headers: list[ExtensionHeader]
    dont_fragment: bool
    dont_fragment_rule: DontFragmentRule
    udp_checksum: UdpChecksum
    expect: Literal["gateway", "as_sent"]
    hop_limit_decrement: Annotated[int, Field(ge=0, le=254)]
    translation: NotRequired[Translation | None]
    source_tunnel: NotRequired[Tunnel | None]
    destination_tunnel: NotRequired[Tunnel | None]
    source_peers: NotRequired[Peers | None]
    destination_peers: NotRequired[Peers | None]


class StreamHosts(TypedDict):
    """Hosts of a stream, each as they are on their own side."""

    source: Hosts
    destination: Hosts


class Stream(StreamFrames):
    """Foreground or background of one direction: what is sent, and what a correct gateway makes of it."""

    source: Hosts | Edges
    destination: Hosts | Edges
    source_ports: Ports | None
    destination_ports: Ports | None


class LoadStep(TypedDict):
    """Another load from some time on (RFC 2544 section 26.5)."""

    after_ns: PositiveTime
    frames_per_second: Rate


class LoadBursts(TypedDict):
    """The load in bursts (RFC 2544 section 21)."""

    frames: Annotated[int, Field(ge=1, le=1_000_000)]
    frames_per_second: Rate


class LoadFlows(TypedDict):
    """Flows that start one after another (RFC 8219 section 10.2.2)."""

    flows: Annotated[int, Field(ge=1, le=1 << 20)]
    rounds_between: Annotated[int, Field(ge=1, le=1 << 20)]


class LoadForm(TypedDict):
    """How a load is spread over time."""

    step: NotRequired[LoadStep | None]
    bursts: NotRequired[LoadBursts | None]
    flow_start: NotRequired[LoadFlows | None]


class Direction(LoadForm):
    """One direction of a trial."""

    direction: OneWay
    frames_per_second: Rate | None
    foreground_m: Annotated[int, Field(ge=0, le=MIX_PERIOD_MAX)]
    foreground_n: Annotated[int, Field(ge=1, le=MIX_PERIOD_MAX)]
    foreground: NotRequired[Stream | None]
    background: NotRequired[Stream | None]


class Waits(TypedDict):
    """Waits of a trial (RFC 2544 section 23)."""

    settle_ns: Time
    learn_ns: Time
    drain_ns: Time
    rest_ns: Time


class TagsAsked(TypedDict):
    """Tagged frames (RFC 8219 section 7.2)."""

    first_ns: Time
    count: Annotated[int, Field(ge=1, le=100_000_000)]


class Delays(TypedDict):
    """What is recorded of delays beyond their percentiles."""

    timeout_ns: NotRequired[PositiveTime | None]
    tags: NotRequired[TagsAsked | None]
    variation: bool
    histogram: bool


class Phase(TypedDict):
    """A phase of a stateful test (RFC 9693 section 4)."""

    phase: Literal["establish", "use"]
    initiator: SideName
    count: Connections
    order: Order
    send_order: Variation
    read_order: Variation
    pool: Prefixes
    edge: NotRequired[GatewayEdge | None]


class ClosedLoop(TypedDict):
    """The gateway sets the pace."""

    pace_without_reply_ns: PositiveTime


class Echo(TypedDict):
    """Echo requests in the place of UDP."""

    clients: Annotated[int, Field(ge=1, le=4096)]
    window: Annotated[int, Field(ge=1, le=1024)]
    count: Annotated[int, Field(ge=1, le=1 << 16)]
    destinations: Annotated[int, Field(ge=1, le=1 << 24)]
    pool: Prefixes | None
    edge: NotRequired[GatewayEdge | None]
    closed_loop: ClosedLoop | None
    timeout_ns: Annotated[int, Field(ge=1, le=600 * 10**9)]


class Trial(TypedDict):
    """A trial without the word that asks for it."""

    trial_number: Annotated[int, Field(ge=0, lt=1 << 32)]
    seed: Annotated[int, Field(ge=0, lt=1 << 64)]
    duration_ns: PositiveTime
    waits: Waits
    give_up_lateness_ns: PositiveTime
    kept_frames_max: Annotated[int, Field(ge=0, le=1024)]
    progress_ns: Annotated[int, Field(ge=1_000_000, le=DURATION_MAX_NS)]
    delays: NotRequired[Delays | None]
    connections: NotRequired[Phase | None]
    echo: NotRequired[Echo | None]
    directions: Annotated[list[Direction], Field(min_length=1, max_length=2)]


class TrialRequest(Trial):
    """Makes a trial."""

    request: Literal["trial"]


class FramesRequest(TypedDict):
    """Asks for the first frames of a trial; nothing is sent."""

    request: Literal["frames"]
    count: Annotated[int, Field(ge=1, le=100_000)]
    trial: Trial
    left_mac: Mac
    right_mac: Mac
    left_host_macs: HostMacs
    right_host_macs: HostMacs
    left_vlan_id: NotRequired[VlanId | None]
    right_vlan_id: NotRequired[VlanId | None]


class ExchangeRequest(TypedDict):
    """Sends packets exactly as they are."""

    request: Literal["exchange"]
    left: Packets
    right: Packets
    interval_ns: Time
    wait_ns: Time
