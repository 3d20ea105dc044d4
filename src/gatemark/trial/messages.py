"""What gatemark asks of the engine, as types: the keys of each request but its `id`, with their limits.

`scripts/references` makes `protocol/request.schema.json` and tables of `protocol/messages.md` of these types.
`protocol/README.md` explains what concerns several keys. The engine has its own reader,
`engine/src/control/read_requests.cpp`.
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
    """One host of the set; with `mode` `fixed` the only one."""
    offset: Annotated[int, Field(ge=0, le=14)]
    """Where the two octets are in the address. 0 with `mode` `fixed`."""
    mode: Variation
    """How the value differs from frame to frame. `fixed`: the address is used as it is."""
    minimum: Word
    """Lowest value of the two octets. 0 with `mode` `fixed`."""
    maximum: Word
    """Highest value of the two octets. 0 with `mode` `fixed`."""
    networks: Annotated[int, Field(ge=1, le=256)]
    """Number n of destination networks (RFC 2544 section 12). With n above 1 a destination has from 0 to n - 1 in the
    octet of the network as well, drawn for each frame. It is the third octet of IPv4, and bits 56 to 63 of IPv6."""


class Rule(TypedDict):
    """A MAP rule (RFC 7597 section 5)."""

    ipv6: str
    """Rule IPv6 prefix."""
    ipv4: str
    """Rule IPv4 prefix."""
    ea_bits: Annotated[int, Field(ge=0, le=48)]
    """Number of EA bits. Without any the rule is for one edge."""
    psid_offset: Annotated[int, Field(ge=0, le=15)]
    """Bits of a port before the PSID."""
    psid_bits: NotRequired[Annotated[int, Field(ge=0, le=16)] | None]
    """Bits of `psid` in a rule without EA bits."""
    psid: NotRequired[Word | None]
    """PSID of a rule without EA bits. Null: its edge has all ports."""
    dmr: NotRequired[str | None]
    """Prefix of the default mapping rule, under which the edges know hosts outside (RFC 6052): 32, 40, 48, 56, 64 or 96
    bits. Null in a tunnel."""


class Domain(Rule):
    """A MAP domain, whose customer edges are emulated."""

    weight: Annotated[int, Field(ge=1, le=1 << 16)]
    """Share of the domain in the edges, relative to the other domains. All weights, divided by their common factor,
    have a sum of 65,536 at most."""
    in_identifier: bool
    """Whether the edges are B4s of an lwAFTR, and the EA values the numbers of its softwires (RFC 7596 section 5.1).
    The IPv6 prefix then has 64 bits and is that of all of them. The EA value is in the interface identifier only, as
    IPv4 address and PSID. It is the same for all domains."""
    except_suffixes: bool
    """Whether to leave out the suffixes of the IPv4 address that are all zeros or all ones."""
    except_system_ports: bool
    """Whether to leave out, with `psid_offset` 0, the PSIDs whose ports begin below 1024 (RFC 7596 section 5.1)."""


class GatewayEdge(Rule):
    """The customer edge that the gateway is."""

    ea: Annotated[int, Field(ge=0, lt=1 << 48)]
    """Value of its EA bits."""


class EdgeSet(TypedDict):
    """Customer edges of MAP domains."""

    domains: Annotated[list[Domain], Field(min_length=1, max_length=1024)]
    """MAP domains of the edges."""
    count: Connections
    """Number of edges. An edge takes no memory."""
    order: Order
    """Order in which the edges of a domain come. `pseudorandom`: a bijection keyed by `seed`, the same in both
    directions."""
    choice: EdgeChoice
    """Which edge a frame is of. `cycle`: frame j of the class is of edge j mod `count`; with `order` `pseudorandom`
    each direction has an order of its own for the edges of a domain. `pseudorandom`: drawn for each frame."""


class Edges(TypedDict):
    """Customer edges in the place of a set of hosts."""

    edges: EdgeSet
    """The edges."""


class PortQueues(TypedDict):
    """A port and its queues."""

    port: str
    """Short name of the port: `pci:0000:01:00.0`, `af_xdp:IF`, `af_packet:IF`, `tap:NAME`, `memif:PATH`, `ring`,
    `null`, `pcap:FILE` or `vdev:net_...,args`. `ring` on both sides is a pair of rings: what one port sends, the other
    receives."""
    queues: NotRequired[Queues | None]
    """Queues of the port in each direction. Null: the engine chooses."""


class OpenSide(PortQueues):
    """A port as it is opened."""

    ring_frames: Annotated[int, Field(ge=16, le=65536)]
    """Frames that a receive or transmit ring of the port holds."""
    vlan_id: NotRequired[VlanId | None]
    """VLAN tag of all frames. Null: they have none."""
    mtu: Annotated[int, Field(ge=576, le=9500)]
    """Largest IP packet that will be sent or received, octets."""
    answer_for: list[Hosts | Edges]
    """The hosts that this side emulates. ARP requests and neighbour solicitations for any of them are answered at all
    times, also under load. Of customer edges, those that are on the link themselves: neighbour solicitations for their
    MAP addresses are answered with the MAC address of the port, and `choice` means nothing."""
    host_macs: HostMacs
    """Link-layer addresses of the hosts. `fixed`: every host has that of the port. `random`: each host has its own, by
    the pattern of RFC 4814 section 4.2, `(RR & 0xFC):PP:PP:RR:RR:RR`. PP:PP is the number of the port (left 1, right
    2), and RR a bijection of the host keyed by `seed`. So it is the same in every trial, and no two hosts of a port
    share one. It is the source of the host's frames and is announced for the host. A correct gateway sends the host's
    frames there; with `expect` `as_sent` they are sent there."""
    teach_hosts: NotRequired[bool]
    """Whether learning frames teach the gateway before a trial where each of these hosts is. False if they are behind a
    router. Default: `true`."""
    gateway_mac: NotRequired[Mac | None]
    """Link-layer address of the gateway. Null: that of `resolve`."""


class OpenRequest(TypedDict):
    """Opens both ports."""

    request: Literal["open"]
    left: OpenSide
    """The left port."""
    right: OpenSide
    """The right port."""
    seed: Annotated[int, Field(ge=0)]
    """Key of random link-layer addresses, and of customer edges in `order` `pseudorandom`: then that of the trials."""
    cores: Cpus
    """CPUs for the workers. Empty: the engine chooses."""
    huge_pages: Literal["auto", "never"]
    """`auto`: huge pages, if enough of them are free. `never`: none."""


class LayoutRequest(TypedDict):
    """Asks how `open` would lay out its work."""

    request: Literal["layout"]
    left: PortQueues
    """The left port."""
    right: PortQueues
    """The right port."""
    cores: Cpus
    """CPUs for the workers. Empty: the engine chooses."""


class ResolveRequest(TypedDict):
    """Asks for the link-layer address of a gateway."""

    request: Literal["resolve"]
    side: SideName
    """The port that asks."""
    gateway: str
    """IP address of the gateway."""
    source: str
    """IP address of the host that asks."""
    timeout_ns: Time
    """How long to wait for an answer."""


class Ports(TypedDict):
    """UDP ports (RFC 4814 section 4.5)."""

    mode: Variation
    """How the port differs from frame to frame."""
    minimum: Word
    """Lowest port."""
    maximum: Word
    """Highest port."""


class ExplicitMapping(TypedDict):
    """One explicit address mapping (RFC 7757)."""

    ipv4: str
    """IPv4 prefix."""
    ipv6: str
    """IPv6 prefix that stands for it."""


class Translation(TypedDict):
    """What a translator makes of a frame."""

    prefix: NotRequired[str | None]
    """Prefix of IPv4-embedded IPv6 addresses (RFC 6052). Null: there is none."""
    eam: list[ExplicitMapping]
    """Explicit address mappings. They take precedence over `prefix` (RFC 7757)."""
    zero_udp_checksum: bool
    """Whether the translator is known to write UDP checksum 0x0000 where 0xffff is due. Such a frame is then correct.
    `zero_checksum` counts it as well, and says where any 0x0000 is correct; elsewhere it stays a fault."""


DontFragmentRule = Literal["kept", "rfc7915", "rfc6145"]
"""What the gateway makes of DF in an IPv4 packet (RFC 7915 section 5.1, RFC 6145 section 5.1)."""


class Tunnel(TypedDict):
    """Packets inside others: IPv4 in IPv6 (RFC 2473), or IPv6 in IPv4 (RFC 4213 section 3)."""

    gateway: str
    """Outer address of the gateway, the same in all tunnels."""
    subscribers: NotRequired[Hosts | None]
    """Outer addresses of an end of hosts: a set whose range is that of the end's own. Or a single address, behind which
    all hosts are: of a gateway that is a subscriber itself, the relay. Null: they are the MAP addresses of customer
    edges, and the packets inside have the IPv4 address of their edge and a port of its set, as on the other side."""
    hop_limit: Annotated[int, Field(ge=1, le=255)]
    """Hop limit of the outer header, as sent."""
    expected_hop_limit: NotRequired[Octet | None]
    """Hop limit of the outer header, as it must arrive. Null: any."""
    traffic_class: NotRequired[Octet | None]
    """Traffic class of the outer header. Null: that of the packet inside (RFC 2473 section 6.4)."""
    ecn: NotRequired[EcnMode | None]
    """Last two bits of the outer traffic class: `normal` or `compatibility` (RFC 6040 section 4.1), or
    `full_functionality` (RFC 3168 section 9.1.1). Null: they follow `traffic_class`, as the other bits do."""


class Peers(TypedDict):
    """Hosts that are customer edges of a rule, all with one PSID, before a gateway that is one (RFC 7597 section 5)."""

    rule: Rule
    """The forwarding mapping rule. It holds the IPv4 addresses of the hosts."""
    psid: Word
    """PSID of all of them. The ports of that end are in its set; nobody checks that."""


class StreamFrames(TypedDict):
    """Frames of a stream without their hosts and ports."""

    frame_octets: Annotated[int, Field(ge=64, le=9256)]
    """Size of a frame as sent, with FCS, without VLAN tag, and with the outer header if the sender's end has a tunnel.
    """
    trailer_octets: Annotated[int, Field(ge=0, le=64)]
    """Octets of the frame that are behind the IP packet and not part of it. 0 in echo requests."""
    hop_limit: Annotated[int, Field(ge=1, le=255)]
    """Hop limit or TTL, as sent."""
    traffic_classes: list[Octet]
    """Traffic classes or types of service, 1 to 256 of them. Each flow has one of them."""
    flow_label: Annotated[int, Field(ge=0, le=0xFFFFF)] | None
    """Flow label of IPv6. Null: each flow has its own, never 0."""
    extension_headers: list[ExtensionHeader]
    """Extension headers of IPv6, in this order, up to four. The gateway must not touch them."""
    dont_fragment: bool
    """Whether DF is set. It matters only for IPv4."""
    dont_fragment_rule: DontFragmentRule
    """What the gateway makes of DF in an IPv4 packet. `kept`: as it is. Of a translator from IPv6, and of two
    translators in a row, `rfc7915`: DF = 0 up to 1260 octets, else 1 (RFC 7915 section 5.1); or `rfc6145`: always 1
    (RFC 6145 section 5.1)."""
    udp_checksum: UdpChecksum
    """`zero` sends IPv4 frames without a checksum (RFC 768). That is an error for a sender's side of IPv6 (RFC 8200
    section 8.1). Such a frame must arrive as IPv4 still with checksum 0 (RFC 3022 section 4.1), and as IPv6 with a
    valid one (RFC 7915 section 4.5). Anything else is the fault `udp_checksum`. Nothing then protects its mark, so a
    damaged time stamp passes."""
    expect: Literal["gateway", "as_sent"]
    """What must arrive: what a correct `gateway` makes of a frame, or the frame `as_sent`, unchanged, in a loop-back.
    """
    hop_limit_decrement: Annotated[int, Field(ge=0, le=254)]
    """By how much the gateway decrements the hop limit. 0 with `expect` `as_sent`."""
    translation: NotRequired[Translation | None]
    """How addresses of one family stand for those of the other. Each sender addresses the other side's host by its
    representation in the sender's own family (RFC 7757, else RFC 6052). Null with equal families: the gateway is a
    router."""
    source_tunnel: NotRequired[Tunnel | None]
    """Tunnel at the end of the source. Null: there is none."""
    destination_tunnel: NotRequired[Tunnel | None]
    """Tunnel at the end of the destination. Null: there is none."""
    source_peers: NotRequired[Peers | None]
    """Other customer edges at the end of the source. Null: its hosts are not customer edges."""
    destination_peers: NotRequired[Peers | None]
    """Other customer edges at the end of the destination. Null: its hosts are not customer edges."""


class StreamHosts(TypedDict):
    """Hosts of a stream, each as they are on their own side."""

    source: Hosts
    """Hosts that send."""
    destination: Hosts
    """Hosts that receive."""


class Stream(StreamFrames):
    """Foreground or background of one direction: what is sent, and what a correct gateway makes of it."""

    source: Hosts | Edges
    """Hosts or customer edges that send, as they are on their own side."""
    destination: Hosts | Edges
    """Hosts or customer edges that receive, as they are on their own side."""
    source_ports: Ports | None
    """UDP source ports. Null in echo requests only."""
    destination_ports: Ports | None
    """UDP destination ports. Null in echo requests only."""


class LoadStep(TypedDict):
    """Another load from some time on (RFC 2544 section 26.5)."""

    after_ns: PositiveTime
    """When the other load begins, from the start of sending."""
    frames_per_second: Rate
    """The other load."""


class LoadBursts(TypedDict):
    """The load in bursts (RFC 2544 section 21)."""

    frames: Annotated[int, Field(ge=1, le=1_000_000)]
    """Frames of a burst."""
    frames_per_second: Rate
    """Rate within a burst, at least that of the direction."""


class LoadFlows(TypedDict):
    """Flows that start one after another (RFC 8219 section 10.2.2)."""

    flows: Annotated[int, Field(ge=1, le=1 << 20)]
    """Number of flows."""
    rounds_between: Annotated[int, Field(ge=1, le=1 << 20)]
    """Rounds of all flows from the start of one flow to the start of the next."""


class LoadForm(TypedDict):
    """How a load is spread over time."""

    step: NotRequired[LoadStep | None]
    """Another load from some time on."""
    bursts: NotRequired[LoadBursts | None]
    """The same load in bursts. A direction with a `step` has none."""
    flow_start: NotRequired[LoadFlows | None]
    """Flows that start one after another. Such a direction has foreground only, no `step` and no `bursts`."""


class Direction(LoadForm):
    """One direction of a trial."""

    direction: OneWay
    """The direction; `forward` is left to right."""
    frames_per_second: Rate | None
    """The load. Null in a closed loop only."""
    foreground_m: Annotated[int, Field(ge=0, le=MIX_PERIOD_MAX)]
    """Frame i is foreground if i mod `foreground_n` is below this, else background."""
    foreground_n: Annotated[int, Field(ge=1, le=MIX_PERIOD_MAX)]
    """Period of the mix."""
    foreground: NotRequired[Stream | None]
    """Frames of the foreground. Null exactly if `foreground_m` is 0."""
    background: NotRequired[Stream | None]
    """Frames of the background. Null exactly if `foreground_m` equals `foreground_n`."""


class Waits(TypedDict):
    """Waits of a trial (RFC 2544 section 23)."""

    settle_ns: Time
    """After a routing update, before the learning frames."""
    learn_ns: Time
    """After the learning frames."""
    drain_ns: Time
    """For residual frames, after the last one was sent."""
    rest_ns: Time
    """For the gateway to restabilize."""


class TagsAsked(TypedDict):
    """Tagged frames (RFC 8219 section 7.2)."""

    first_ns: Time
    """Frame `first` is the first one due at this time or later."""
    count: Annotated[int, Field(ge=1, le=100_000_000)]
    """Tagged frames of each direction. Number k is frame first + floor(k * (frames - first) / count)."""


class Delays(TypedDict):
    """What is recorded of delays beyond their percentiles."""

    timeout_ns: NotRequired[PositiveTime | None]
    """A correct frame that takes longer counts as `late` and not as `received`. Null: no frame is late."""
    tags: NotRequired[TagsAsked | None]
    """Tagged frames. Null: there are none."""
    variation: bool
    """Whether to record, for neighbouring frames of one class in sending order, the delay of the later one minus that
    of the earlier one (RFC 8219 section 7.3.2)."""
    histogram: bool
    """Whether the answer contains the whole histograms."""


class Phase(TypedDict):
    """A phase of a stateful test (RFC 9693 section 4)."""

    phase: Literal["establish", "use"]
    """`establish` is test phase 1: the Responder forgets everything, and records the translated source of each
    connection in its state table. Only the Initiator's direction sends. `use` is test phase 2: the table must be full,
    and `count`, `order`, `initiator`, `pool`, `edge`, `seed` and the ranges must be those that it was filled with."""
    initiator: SideName
    """Side of the port that is the Initiator. The other one is the Responder."""
    count: Connections
    """Number of connections."""
    order: Order
    """Order in which four-tuples are enumerated. `pseudorandom`: a bijection keyed by `seed`."""
    send_order: Variation
    """Order in which the Initiator uses the connections. In phase `establish`, `increasing`: foreground frame j opens
    connection j, and the direction has exactly `count` foreground frames. Or `pseudorandom`: the connection of each
    frame is drawn from all of them, so some repeat and some never occur, and there may be any number of frames.
    `connections.established` of the answer then counts the distinct ones of which a frame arrived."""
    read_order: Variation
    """Order in which the Responder reads its state table. `fixed`: connection 0. `pseudorandom`: drawn, so a connection
    may repeat. `increasing`, with only the Responder's direction: `count` frames validate every connection once."""
    pool: Prefixes
    """Prefixes that hold every public address, in the Responder's family; 2^40 addresses in all at most. With `expect`
    `as_sent` they hold the Initiator's own hosts."""
    edge: NotRequired[GatewayEdge | None]
    """The customer edge that the gateway is (RFC 7599 section 8.1). The Initiator is then IPv4. `pool` has exactly the
    MAP address, which both sides compute, with 128 bits, and `translation.prefix` of the streams is `dmr`. Only ports
    of the edge's set are learned. Null: the gateway is not an edge."""


class ClosedLoop(TypedDict):
    """The gateway sets the pace."""

    pace_without_reply_ns: PositiveTime
    """A slot sends its next request so long after one without a reply, too."""


class Echo(TypedDict):
    """Echo requests in the place of UDP."""

    clients: Annotated[int, Field(ge=1, le=4096)]
    """Number of clients."""
    window: Annotated[int, Field(ge=1, le=1024)]
    """Slots of each client, which ask side by side."""
    count: Annotated[int, Field(ge=1, le=1 << 16)]
    """Requests to each destination."""
    destinations: Annotated[int, Field(ge=1, le=1 << 24)]
    """Destinations of each client, a multiple of `window`."""
    pool: Prefixes | None
    """Prefixes that hold every public address of a stateful gateway, in the family of the Responder, which learns the
    public source and identifier of each client and destination. With `expect` `as_sent` they are in the family of the
    clients, whose own addresses they hold. Null: the gateway is stateless or a router, or the clients are customer
    edges."""
    edge: NotRequired[GatewayEdge | None]
    """The customer edge that the gateway is (RFC 7599 section 8.1). Null: the gateway is not an edge."""
    closed_loop: ClosedLoop | None
    """In a closed loop every slot sends its next request when the reply to the previous one has come, however late.
    Sending ends when all requests are sent, or after `duration_ns`. Null: request i is due at the constant rate, like
    any frame, and the first request follows the last again."""
    timeout_ns: Annotated[int, Field(ge=1, le=600 * 10**9)]
    """A correct reply that takes longer is `late`."""


class Trial(TypedDict):
    """One trial (RFC 2544 section 23)."""

    trial_number: Annotated[int, Field(ge=0, lt=1 << 32)]
    """Number of the trial. Frames carry it, so that those of another trial are known."""
    seed: Annotated[int, Field(ge=0, lt=1 << 64)]
    """Seed of all that is drawn."""
    duration_ns: PositiveTime
    """Sending time."""
    waits: Waits
    """Waits before and after sending."""
    give_up_lateness_ns: PositiveTime
    """A sender that is later than this stops."""
    kept_frames_max: Annotated[int, Field(ge=0, le=1024)]
    """Bad frames that the answer contains, at most, for each reason and side."""
    progress_ns: Annotated[int, Field(ge=1_000_000, le=DURATION_MAX_NS)]
    """From one progress record to the next."""
    delays: NotRequired[Delays | None]
    """What is recorded of delays beyond their percentiles. Null: nothing."""
    connections: NotRequired[Phase | None]
    """The phase of a stateful test. Null: the gateway is stateless."""
    echo: NotRequired[Echo | None]
    """Echo requests in the place of UDP. Null: the frames are UDP."""
    directions: Annotated[list[Direction], Field(min_length=1, max_length=2)]
    """The directions that send."""


class TrialRequest(Trial):
    """Makes a trial."""

    request: Literal["trial"]


class FramesRequest(TypedDict):
    """Asks for the first frames of a trial; nothing is sent."""

    request: Literal["frames"]
    count: Annotated[int, Field(ge=1, le=100_000)]
    """Frames of each direction, from the first one."""
    trial: Trial
    """A trial without `request` and `id`. Of echo requests, the frames are the requests."""
    left_mac: Mac
    """Link-layer address of the left port."""
    right_mac: Mac
    """Link-layer address of the right port."""
    left_host_macs: HostMacs
    """Link-layer addresses of the hosts on the left, as in `open`."""
    right_host_macs: HostMacs
    """Link-layer addresses of the hosts on the right, as in `open`."""
    left_vlan_id: NotRequired[VlanId | None]
    """VLAN tag on the left. Null: there is none."""
    right_vlan_id: NotRequired[VlanId | None]
    """VLAN tag on the right. Null: there is none."""


class ExchangeRequest(TypedDict):
    """Sends packets exactly as they are."""

    request: Literal["exchange"]
    left: Packets
    """IP packets that the left side sends, in order, each 20 to 9000 octets in hexadecimal. Checksums and lengths are
    the caller's, so a packet may be wrong on purpose. The engine puts each into a frame from its port to the gateway's
    link-layer address of that side, with the VLAN tag of the port, and pads it."""
    right: Packets
    """IP packets that the right side sends, in the same way."""
    interval_ns: Time
    """From one packet of a side to the next."""
    wait_ns: Time
    """How long to keep receiving after the last packet."""
