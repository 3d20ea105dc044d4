"""Between whom the packets of the cases go, and as what a conforming gateway delivers them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal, Protocol

from gatemark.config import defaults
from gatemark.config.hosts import HostSet, represented
from gatemark.config.model import Campaign
from gatemark.config.sixrd import sixrd_problems
from gatemark.config.sizes import mtu_of
from gatemark.config.views import Sixrd
from gatemark.embedded_ipv4 import embed_ipv4, embedded_ipv4
from gatemark.map_domains.domain import Edge, MapDomain
from gatemark.map_domains.edges import used_numbers
from gatemark.map_domains.port_set import PortSet
from gatemark.packets import Flow, IpAddress, Tunnel
from gatemark.technology import OPPOSITE, Family, SideName
from gatemark.trial.exchange import PACKET_OCTETS_MAX

CLIENT_PORT = 40_000
"""Source port of the client behind a gateway; the next ports are those of its other clients."""
FRAGMENT_OCTETS = 40
"""Octets of the payload of IP in the first of two fragments."""
TUNNEL_FRAGMENT_OCTETS = 64
"""The same of a tunnel."""
SMALL_FRAGMENT_OCTETS = 24
"""The same of each fragment of an IPv4 packet of 44 octets, which has 2 octets less than Ethernet's least (RFC 894)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An address with a port of it."""

    address: IpAddress
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Where a packet is due, and as what."""

    side: SideName
    flow: Flow
    crossings: int = 1
    """How often it may cross the gateway. Each crossing lowers its hop limit; if there may be several, the gateway may
    also turn it round after a single hop."""
    source_fault: Callable[[Endpoint], str | None] | None = None
    """Returns what is wrong with a source that the gateway chose, None if nothing is. None: it is that of the flow."""
    is_subscriber: Callable[[IpAddress], bool] | None = None
    """Whether a tunnel to an address is that of a subscriber; None where a gateway has no choice of tunnels."""
    in_fragments: bool = True
    """Whether it may arrive in IPv4 fragments."""

    def hop_limits(self, sent: int, decrement: int) -> range:
        """Return the hop limits that are due if a crossing takes off `decrement`."""
        least = decrement if self.crossings == 1 else min(1, decrement)
        return range(sent - self.crossings * decrement, sent - least + 1)

    def __str__(self) -> str:
        if self.source_fault is None:
            return str(self.flow)
        if self.flow.kind == "echo request":
            return f"any public address to {self.flow.destination} with any identifier"
        return f"any public address and port to {self.flow.destination} port {self.flow.destination_port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An ICMP error about a packet, sent in place of the packet."""

    source: IpAddress
    destination: IpAddress
    due_in: Tunnel | None
    """The tunnel in which an error about the packet is due; None if it is due in none."""
    sent_in: Tunnel | None = None
    """The tunnel in which it is sent; None if it is sent in none."""


Differentiated = Literal["alike", "remarked"]
"""A packet with a traffic class of its own (RFC 2474): the header of its tunnel is as the policy has it, or has yet
another class, which a router on its way wrote (RFC 2983 section 5.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A packet that is sent from one side, and what becomes of it in a conforming gateway."""

    side: SideName
    flow: Flow
    delivery: Delivery | None = None
    """None: it is due nowhere."""
    fragment_octets: int | None = None
    """Octets of the payload of IP in each fragment that it is sent in, each of them in its tunnel if there is one;
    None: it is whole."""
    tunnel_fragment_octets: int | None = None
    """The same of the packet of its tunnel."""
    message: Message | None = None
    """The error that is sent about the packet; then the delivery is that of an error about the packet of its flow."""
    hop_limit: int | None = None
    """None: that of the campaign's frames."""
    octets: int | None = None
    """Length of the packet in no tunnel; None: that of the packets of all other cases."""
    dont_fragment: bool = False
    """Whether DF is set."""
    mtus: range | None = None
    """What an answer that it is too large may state; None if it is not too large."""
    differentiated: Differentiated | None = None
    """Whether it has a traffic class other than 0, which is judged where it arrives; None: it has 0."""
    opening: Sending | None = None
    """What the receiver sends first, so that a gateway that filters lets the packet pass (RFC 4787 section 5). Where it
    is due somewhere, it is one of the controls."""


Packets = Literal["udp", "echo request"]


class Scene(Protocol):
    """Who sends to whom."""

    def clients(self) -> tuple[Sending, ...]:
        """Return packets that show which public endpoint the gateway gives each client; none if it keeps no state."""

    def controls(self) -> tuple[Sending, ...]:
        """Return what any gateway has to deliver: packets of the hosts of a case to the server and back."""


class TunnelScene(Scene, Protocol):
    """The same where packets of one side are in tunnels."""

    @property
    def hosts(self) -> Sequence[IpAddress]:
        """Return addresses that are in use on the link with the tunnels."""

    @property
    def decrement(self) -> int:
        """Return what a crossing takes off the hop limit of the packet in the tunnel."""

    @property
    def room(self) -> TunnelRoom | None:
        """Return how large packets in the tunnels may be; None without tunnels."""

    def upward(self) -> Sending:
        """Return a packet to the server and what arrives there; one of both is in a tunnel."""

    def downward(self) -> Sending:
        """Return a packet of the server and what arrives of it; one of both is in a tunnel."""

    def is_taken(self, address: IpAddress) -> bool:
        """Whether an address is in use, or may be."""


class SubscriberScene(TunnelScene, Protocol):
    """The same where the gateway is the subscriber's end of a tunnel, and hosts are behind it."""

    @property
    def uplink(self) -> Tunnel | None:
        """Return the tunnel to its relay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelRoom:
    """How large packets in tunnels may be, and those that a gateway puts into them."""

    link_mtu: int
    """Octets of the largest packet on the link with the tunnels."""
    host_mtu: int
    """Octets of the largest packet on the other link, where packets come from that go into a tunnel."""
    outer_family: Family

    @property
    def mtu(self) -> int:
        """Return the tunnel MTU (RFC 2473 section 6.7): the largest packet that fits into the tunnel, octets."""
        return self.link_mtu - defaults.HEADER_OCTETS[self.outer_family]

    @property
    def too_large(self) -> int | None:
        """Return the octets of a packet that does not fit into the tunnel; None if there is none."""
        octets = min(self.host_mtu, self.link_mtu, PACKET_OCTETS_MAX)
        return octets if octets > self.mtu else None


def in_tunnel(scene: TunnelScene) -> Sending:
    """Return the packet that is sent in a tunnel: to the server where the gateway is a relay, else of the server."""
    sent = scene.upward()
    return scene.downward() if sent.flow.tunnel is None else sent


def into_tunnel(scene: TunnelScene) -> Sending:
    """Return the packet that the gateway puts into a tunnel."""
    sent = scene.upward()
    return sent if sent.flow.tunnel is None else scene.downward()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayScene:
    """One domain of a border relay with what packets need: an edge of it, another one, and a server outside."""

    domains: tuple[MapDomain, ...]
    domain: MapDomain
    edge: Edge
    other: Edge | None
    """Another customer edge, if any is emulated."""
    server: IPv4Address
    server_port: int
    """Where packets to the server go to, and those of the server come from."""

    def inside(self, address: IPv4Address) -> IPv6Address:
        """Return how an address outside is seen from inside (RFC 7599 section 5.1)."""
        return embed_ipv4(address, self.domain.default_rule)

    def clients(self) -> tuple[Sending, ...]:
        """Return nothing: the ports of an edge follow from its rule."""
        return ()

    def controls(self) -> tuple[Sending, ...]:
        """Return a packet of the edge, and one of the server."""
        return self.upward(), self.downward()

    def port_of(self, edge: Edge) -> int:
        """Return a port of an edge: one in the middle of its set."""
        ports = edge.ports
        return ports.port(ports.count // 2)

    def upward(self, kind: Packets = "udp") -> Sending:
        """Return a packet of the edge to the server, and what arrives there."""
        port = self.port_of(self.edge)
        sent = Flow(
            kind=kind,
            source=self.edge.address,
            destination=self.inside(self.server),
            source_port=port,
            destination_port=self.server_port,
        )
        arrives = replace(sent, source=self.edge.ipv4, destination=self.server)
        return Sending(side="left", flow=sent, delivery=Delivery(side="right", flow=arrives))

    def downward(self, kind: Packets = "udp") -> Sending:
        """Return a packet of the server to the edge, and what arrives there."""
        port = self.port_of(self.edge)
        ports = (self.server_port, port) if kind == "udp" else (port, self.server_port)
        sent = Flow(
            kind=kind, source=self.server, destination=self.edge.ipv4, source_port=ports[0], destination_port=ports[1]
        )
        arrives = replace(sent, source=self.inside(self.server), destination=self.edge.address)
        return Sending(side="right", flow=sent, delivery=Delivery(side="left", flow=arrives))

    def hairpin(self) -> Sending | None:
        """Return a packet of the edge to the public address and port of the other one, and what arrives there."""
        if self.other is None:
            return None
        sent = replace(
            self.upward().flow, destination=self.inside(self.other.ipv4), destination_port=self.port_of(self.other)
        )
        source = embed_ipv4(self.edge.ipv4, self.other.domain.default_rule)
        arrives = replace(sent, source=source, destination=self.other.address)
        return Sending(side="left", flow=sent, delivery=Delivery(side="left", flow=arrives, crossings=2))


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelRelayScene(RelayScene):
    """The same of a border relay whose edges are at the ends of tunnels."""

    relay: IPv6Address
    """The relay's end of all tunnels."""
    hosts: tuple[IPv6Address, ...]
    """Other addresses that are in use on the link."""
    decrement: int
    """What a crossing takes off the hop limit of the packet in the tunnel."""
    room: TunnelRoom

    def upward(self, kind: Packets = "udp") -> Sending:
        """Return a packet of the edge to the server, and what arrives there."""
        inside = _flow(kind, self.edge.ipv4, self.server, (self.port_of(self.edge), self.server_port))
        sent = replace(inside, tunnel=Tunnel(source=self.edge.address, destination=self.relay))
        return Sending(side="left", flow=sent, delivery=Delivery(side="right", flow=inside))

    def downward(self, kind: Packets = "udp") -> Sending:
        """Return a packet of the server to the edge, and what arrives there."""
        port = self.port_of(self.edge)
        ports = (self.server_port, port) if kind == "udp" else (port, self.server_port)
        sent = _flow(kind, self.server, self.edge.ipv4, ports)
        return Sending(side="right", flow=sent, delivery=self._delivery(sent, self.edge))

    def hairpin(self) -> Sending | None:
        """Return a packet of the edge to the public address and port of the other one, and what arrives there."""
        if self.other is None:
            return None
        sent = replace(self.upward().flow, destination=self.other.ipv4, destination_port=self.port_of(self.other))
        return Sending(side="left", flow=sent, delivery=self._delivery(sent, self.other, crossings=2))

    def _delivery(self, flow: Flow, edge: Edge, *, crossings: int = 1) -> Delivery:
        """Return what arrives of a packet in the tunnel to an edge."""
        arrives = replace(flow, tunnel=Tunnel(source=self.relay, destination=edge.address))
        return Delivery(side="left", flow=arrives, crossings=crossings, is_subscriber=self.is_subscriber)

    def is_subscriber(self, address: IpAddress) -> bool:
        """Whether an address is the MAP address of a customer edge."""
        known = ((domain, domain.ea_in(IPv6Address(address))) for domain in self.domains)
        return any(ea is not None and Edge(domain, ea).address == address for domain, ea in known)

    def is_taken(self, address: IpAddress) -> bool:
        """Whether an address is in use on the link, or that of any customer edge."""
        return address in self.hosts or any(address in domain.rule_ipv6 for domain in self.domains)


@dataclass(frozen=True, slots=True, kw_only=True)
class SixrdScene:
    """A 6rd border relay with a host behind each of two customer edges, and a server outside."""

    relay: Sixrd
    edges: HostSet
    """All customer edges."""
    edge: IPv4Address
    other: IPv4Address | None
    """Another customer edge, if any is emulated."""
    server: Endpoint
    hosts: tuple[IPv4Address, ...]
    """Other addresses that are in use on the link."""
    decrement: int
    """What a crossing takes off the hop limit of the packet in the tunnel."""
    room: TunnelRoom

    def clients(self) -> tuple[Sending, ...]:
        """Return nothing: what is in the tunnel to an edge follows from its address."""
        return ()

    def controls(self) -> tuple[Sending, ...]:
        """Return packets of the hosts behind both edges to the server and back."""
        edges = (self.edge,) if self.other is None else (self.edge, self.other)
        return tuple(way(edge=edge) for edge in edges for way in (self.upward, self.downward))

    def host_of(self, edge: IPv4Address) -> IPv6Address:
        """Return the host behind an edge."""
        return self.relay.host_of(edge)

    def upward(self, kind: Packets = "udp", edge: IPv4Address | None = None) -> Sending:
        """Return a packet of the host behind an edge to the server, and what arrives there."""
        by = edge or self.edge
        inside = _flow(kind, self.host_of(by), self.server.address, (CLIENT_PORT, self.server.port))
        sent = replace(inside, tunnel=self._tunnel_to(by).back)
        return Sending(side="left", flow=sent, delivery=Delivery(side="right", flow=inside))

    def downward(self, kind: Packets = "udp", edge: IPv4Address | None = None) -> Sending:
        """Return a packet of the server to the host behind an edge, and what arrives there."""
        to = edge or self.edge
        sent = _flow(kind, self.server.address, self.host_of(to), (self.server.port, CLIENT_PORT))
        return Sending(side="right", flow=sent, delivery=self._delivery(sent, to))

    def hairpin(self) -> Sending | None:
        """Return a packet to the host behind the other edge, in the tunnel to the relay, and what arrives there."""
        if self.other is None:
            return None
        sent = replace(self.upward().flow, destination=self.host_of(self.other))
        return Sending(side="left", flow=sent, delivery=self._delivery(sent, self.other, crossings=2))

    def to_own_prefix(self) -> Sending:
        """Return a packet from an edge's prefix to the same, in the tunnel to the relay, and what arrives there."""
        sent = replace(self.upward().flow, destination=self.host_of(self.edge))
        return Sending(side="left", flow=sent, delivery=self._delivery(sent, self.edge))

    def to_relays_prefix(self) -> Sending | None:
        """Return a packet of the server to the prefix of the relay's own IPv4 address; None if it has none."""
        end = self.relay.end
        if end not in IPv4Network((self.edge, self.relay.tunnel.masked_bits), strict=False):
            return None
        return Sending(side="right", flow=replace(self.downward().flow, destination=self.host_of(end)))

    def _tunnel_to(self, edge: IPv4Address) -> Tunnel:
        return Tunnel(source=self.relay.end, destination=edge)

    def _delivery(self, flow: Flow, edge: IPv4Address, *, crossings: int = 1) -> Delivery:
        """Return what arrives of a packet in the tunnel to an edge."""
        arrives = replace(flow, tunnel=self._tunnel_to(edge))
        return Delivery(side="left", flow=arrives, crossings=crossings, is_subscriber=self.is_subscriber)

    def is_subscriber(self, address: IpAddress) -> bool:
        """Whether an address is that of a customer edge."""
        return isinstance(address, IPv4Address) and address in self.edges

    def is_taken(self, address: IpAddress) -> bool:
        """Whether an address is in use on the link."""
        return address in self.hosts or self.is_subscriber(address)


def error_from_outside(scene: TunnelScene) -> Sending:
    """Return the server's error about what arrived there, and the packet that an error arrives about where it is from.

    One of both errors is in the tunnel.
    """
    sent = scene.upward()
    assert sent.delivery is not None, "it is due at the server"
    about, at_sender = sent.delivery.flow, sent.flow
    message = Message(
        source=about.destination,
        destination=about.source,
        due_in=None if at_sender.tunnel is None else at_sender.tunnel.back,
        sent_in=None if about.tunnel is None else about.tunnel.back,
    )
    due = Delivery(side=sent.side, flow=at_sender.inside)
    return Sending(side=sent.delivery.side, flow=about.inside, delivery=due, message=message)


def error_from_tunnel(scene: TunnelScene) -> Sending:
    """Return an error about the tunnel that the gateway put a packet into, and that packet as it was sent."""
    sent = into_tunnel(scene)
    assert sent.delivery is not None and sent.delivery.flow.tunnel is not None, "it is due in a tunnel"
    message = Message(source=scene.hosts[0], destination=sent.delivery.flow.tunnel.source, due_in=None)
    due = Delivery(side=sent.side, flow=sent.flow)
    return Sending(side=sent.delivery.side, flow=sent.delivery.flow, delivery=due, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeScene:
    """A customer edge as gateway, with a client inside and a server outside."""

    inside: SideName
    outside: SideName
    edge: Edge
    client: IPv4Address
    server: IPv4Address
    server_port: int
    public_port: int
    """What the gateway made of `CLIENT_PORT`."""

    def clients(self) -> tuple[Sending, ...]:
        """Return a packet of the client."""
        return (self.upward(),)

    def controls(self) -> tuple[Sending, ...]:
        """Return a packet of the client, and one of the server."""
        return self.upward(), self.downward()

    @property
    def server_outside(self) -> IPv6Address:
        """Return the server as it is outside (RFC 7599 section 5.1)."""
        return embed_ipv4(self.server, self.edge.domain.default_rule)

    def upward(self, kind: Packets = "udp", port: int = CLIENT_PORT) -> Sending:
        """Return a packet of the client, and what arrives at the server: from any port of the set."""
        sent = Flow(
            kind=kind,
            source=self.client,
            destination=self.server,
            source_port=port,
            destination_port=self.server_port,
        )
        arrives = replace(sent, source=self.edge.address, destination=self.server_outside)
        delivery = Delivery(side=self.outside, flow=arrives, source_fault=self._source_fault)
        return Sending(side=self.inside, flow=sent, delivery=delivery)

    def _source_fault(self, source: Endpoint) -> str | None:
        if source.address != self.edge.address:
            return f"source {source.address} instead of {self.edge.address}"
        return None if source.port in self.edge.ports else f"port {source.port} is not in the port set"

    def downward(self) -> Sending:
        """Return the server's answer, and what arrives at the client."""
        sent = Flow(
            kind="udp",
            source=self.server_outside,
            destination=self.edge.address,
            source_port=self.server_port,
            destination_port=self.public_port,
        )
        arrives = replace(sent, source=self.server, destination=self.client, destination_port=CLIENT_PORT)
        return Sending(side=self.outside, flow=sent, delivery=Delivery(side=self.inside, flow=arrives))


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host of either family, as it is known in both, with the port that it uses."""

    ipv6: IPv6Address
    ipv4: IPv4Address
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatorScene:
    """A stateless translator with two IPv6 hosts on one side and an IPv4 server on the other."""

    ipv6_side: SideName
    ipv4_side: SideName
    prefix: IPv6Network | None
    host: Host
    other: Host
    """Another port of the same host, if there is only one."""
    server: Host
    decrement: int
    """What a crossing takes off the hop limit."""

    def clients(self) -> tuple[Sending, ...]:
        """Return nothing: what becomes of an address follows from prefix and mappings."""
        return ()

    def controls(self) -> tuple[Sending, ...]:
        """Return packets of both hosts to the server and back."""
        return tuple(way(host=host) for host in (self.host, self.other) for way in (self.upward, self.downward))

    def upward(self, kind: Packets = "udp", host: Host | None = None) -> Sending:
        """Return a packet of a host to the server, and what arrives there."""
        by = host or self.host
        ports = (by.port, self.server.port)
        sent = _flow(kind, by.ipv6, self.server.ipv6, ports)
        arrives = _flow(kind, by.ipv4, self.server.ipv4, ports)
        return Sending(side=self.ipv6_side, flow=sent, delivery=Delivery(side=self.ipv4_side, flow=arrives))

    def downward(self, kind: Packets = "udp", host: Host | None = None) -> Sending:
        """Return a packet of the server to a host, and what arrives there."""
        to = host or self.host
        ports = (self.server.port, to.port)
        sent = _flow(kind, self.server.ipv4, to.ipv4, ports)
        arrives = _flow(kind, self.server.ipv6, to.ipv6, ports)
        return Sending(side=self.ipv4_side, flow=sent, delivery=Delivery(side=self.ipv6_side, flow=arrives))

    def hairpin(self) -> Sending | None:
        """Return a packet to what the other host is called under the prefix; its answer must go the same way.

        So the sender's address has to be one under the prefix as well, whatever mapping it has (RFC 7757 section 4).
        """
        if self.prefix is None or embed_ipv4(self.other.ipv4, self.prefix) == self.other.ipv6:
            return None
        ports = (self.host.port, self.other.port)
        sent = _flow("udp", self.host.ipv6, embed_ipv4(self.other.ipv4, self.prefix), ports)
        arrives = _flow("udp", embed_ipv4(self.host.ipv4, self.prefix), self.other.ipv6, ports)
        delivery = Delivery(side=self.ipv6_side, flow=arrives, crossings=2)
        return Sending(side=self.ipv6_side, flow=sent, delivery=delivery)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A port of a host inside, and the public endpoint that the gateway gave it."""

    inside: Endpoint
    public: Endpoint
    tunnel: Tunnel | None = None
    """From its B4 to the AFTR, if it is behind one."""

    def to(self, flow: Flow) -> Flow:
        """Return a packet to the client in the tunnel to its B4."""
        return replace(flow, tunnel=None if self.tunnel is None else self.tunnel.back)


@dataclass(frozen=True, slots=True, kw_only=True)
class NatScene:
    """A stateful gateway with two clients inside and a server outside."""

    inside: SideName
    outside: SideName
    client: Client
    other: Client
    """Another port of the same host, if there is only one."""
    twin: Client | None
    """Address and port of the first client behind another B4, if there is any."""
    b4s: HostSet | None
    """All B4s; None without tunnels."""
    uplink: Tunnel | None
    """The way to its relay, if it is a customer edge with a tunnel."""
    room: TunnelRoom | None
    """None without tunnels."""
    edge: Edge | None
    """Whose address and ports are its public ones, if it is a customer edge."""
    hosts: tuple[IPv6Address, ...]
    """Other addresses that are in use on the link with the tunnels."""
    server: Endpoint
    server_inside: IpAddress
    """The server's address as it is known inside."""
    prefix: IPv6Network | None
    """Under which any address outside is known inside; None without a translation between families."""
    is_translation: bool
    pool: tuple[IPv4Network | IPv6Network, ...]
    pool_ports: range | PortSet
    keeps_mapping: bool
    """Whether a client has the same public endpoint for all destinations (RFC 4787 section 4.1)."""
    decrement: int
    """What a crossing takes off the hop limit."""

    def clients(self) -> tuple[Sending, ...]:
        """Return a packet of each client."""
        clients = (self.client, self.other) if self.twin is None else (self.client, self.other, self.twin)
        return tuple(self.upward(client=client) for client in clients)

    def controls(self) -> tuple[Sending, ...]:
        """Return packets of both clients to the server and back."""
        return tuple(way(client=client) for client in (self.client, self.other) for way in (self.upward, self.downward))

    def upward(self, kind: Packets = "udp", client: Client | None = None) -> Sending:
        """Return a packet of a client, and what arrives at the server: from any public endpoint."""
        by = client or self.client
        sent = _flow(kind, by.inside.address, self.server_inside, (by.inside.port, self.server.port))
        arrives = _flow(kind, by.public.address, self.server.address, (by.public.port, self.server.port))
        fault = self._source_fault if kind == "udp" or self.edge is not None else self._address_fault
        flow = replace(arrives, tunnel=self.uplink)
        delivery = Delivery(side=self.outside, flow=flow, source_fault=fault)
        return Sending(side=self.inside, flow=replace(sent, tunnel=by.tunnel), delivery=delivery)

    def from_port(self, port: int) -> Sending:
        """Return a packet of the first client's host from another port, and what arrives at the server."""
        return self.upward(client=replace(self.client, inside=replace(self.client.inside, port=port)))

    def downward(self, client: Client | None = None) -> Sending:
        """Return the server's answer, and what arrives at the client."""
        to = client or self.client
        sent = _flow("udp", self.server.address, to.public.address, (self.server.port, to.public.port))
        arrives = _flow("udp", self.server_inside, to.inside.address, (self.server.port, to.inside.port))
        delivery = Delivery(side=self.inside, flow=to.to(arrives), is_subscriber=self.is_subscriber)
        return Sending(side=self.outside, flow=self.from_relay(sent), delivery=delivery)

    def from_relay(self, flow: Flow) -> Flow:
        """Return a packet from outside in the tunnel of the relay, if there is one."""
        return replace(flow, tunnel=None if self.uplink is None else self.uplink.back)

    def to_twin(self) -> Sending | None:
        """Return the server's answer to the twin, whose packets come from the public endpoint that it has."""
        if self.twin is None:
            return None
        upward = self.upward(client=self.twin)
        assert upward.delivery is not None, "it is due at the server"
        opening = replace(upward, delivery=replace(upward.delivery, source_fault=None))
        return replace(self.downward(self.twin), opening=opening)

    def hairpin(self) -> Sending | None:
        """Return a packet to the public endpoint of the other client, which gets it from a public endpoint as well."""
        to, by = self._known_inside(self.other.public.address), self._known_inside(self.client.public.address)
        if to is None or by is None:
            return None
        sent = _flow("udp", self.client.inside.address, to, (self.client.inside.port, self.other.public.port))
        arrives = _flow("udp", by, self.other.inside.address, (self.client.public.port, self.other.inside.port))
        opening = _flow("udp", self.other.inside.address, by, (self.other.inside.port, self.client.public.port))
        delivery = Delivery(
            side=self.inside,
            flow=self.other.to(arrives),
            crossings=2,
            source_fault=None if self.keeps_mapping else self._hairpin_fault,
            is_subscriber=self.is_subscriber,
        )
        return Sending(
            side=self.inside,
            flow=replace(sent, tunnel=self.client.tunnel),
            delivery=delivery,
            opening=Sending(side=self.inside, flow=replace(opening, tunnel=self.other.tunnel)),
        )

    def is_subscriber(self, address: IpAddress) -> bool:
        """Whether an address is that of a B4."""
        return self.b4s is not None and isinstance(address, IPv6Address) and address in self.b4s

    def is_taken(self, address: IpAddress) -> bool:
        """Whether an address is in use on the link with the B4s."""
        return address in self.hosts or self.is_subscriber(address)

    def _known_inside(self, address: IpAddress) -> IpAddress | None:
        """Return what an address outside is called inside; None where it has no name there."""
        if not self.is_translation:
            return address
        return represented(address, self.prefix, ()) if isinstance(address, IPv4Address) else None

    def _source_fault(self, source: Endpoint) -> str | None:
        wrong = self._address_fault(source)
        if wrong is None and source.port not in self.pool_ports:
            return f"source port {source.port} is none of the gateway's public ports"
        return wrong

    def _address_fault(self, source: Endpoint) -> str | None:
        if any(source.address in network for network in self.pool):
            return None
        return f"source {source.address} is not a public address of the gateway"

    def _hairpin_fault(self, source: Endpoint) -> str | None:
        if not self.is_translation:
            return self._source_fault(source)
        public = represented(source.address, self.prefix, ())
        if public is None:
            return f"source {source.address} is not a public address of the gateway"
        return self._source_fault(Endpoint(address=public, port=source.port))


@dataclass(frozen=True, slots=True, kw_only=True)
class B4Scene:
    """A B4 with a host on one side, and the AFTR and a server behind it on the other."""

    inside: SideName
    outside: SideName
    host: Endpoint
    server: Endpoint
    uplink: Tunnel
    """From the B4 to the AFTR."""
    room: TunnelRoom
    hosts: tuple[IPv6Address, ...]
    """Addresses that are in use on the link with the tunnel."""
    decrement: int
    """What a crossing takes off the hop limit of the packet in the tunnel."""

    def clients(self) -> tuple[Sending, ...]:
        """Return nothing: addresses and ports stay as they are."""
        return ()

    def controls(self) -> tuple[Sending, ...]:
        """Return a packet of the host, and one of the server."""
        return self.upward(), self.downward()

    def upward(self, kind: Packets = "udp") -> Sending:
        """Return a packet of the host to the server, and what arrives there."""
        sent = _flow(kind, self.host.address, self.server.address, (self.host.port, self.server.port))
        arrives = replace(sent, tunnel=self.uplink)
        return Sending(side=self.inside, flow=sent, delivery=Delivery(side=self.outside, flow=arrives))

    def downward(self, kind: Packets = "udp") -> Sending:
        """Return a packet of the server, and what arrives at the host."""
        arrives = _flow(kind, self.server.address, self.host.address, (self.server.port, self.host.port))
        sent = replace(arrives, tunnel=self.uplink.back)
        return Sending(side=self.outside, flow=sent, delivery=Delivery(side=self.inside, flow=arrives))

    def is_taken(self, address: IpAddress) -> bool:
        """Whether an address is in use on the link with the tunnel."""
        return address in self.hosts


def _flow(kind: Packets, source: IpAddress, destination: IpAddress, ports: tuple[int, int]) -> Flow:
    return Flow(kind=kind, source=source, destination=destination, source_port=ports[0], destination_port=ports[1])


def has_hosts(campaign: Campaign) -> bool:
    """Whether it is known between whom packets go."""
    return any(scenes(campaign))


def scenes(campaign: Campaign, public: Sequence[Endpoint | None] = ()) -> Iterator[tuple[int, Scene]]:
    """Yield each domain that has customer edges, with its number from 0; the only scene of any other gateway.

    `public` are the public endpoints of the clients, as far as they are known. Nothing if a host is not known.
    """
    if campaign.technology.has_edges:
        yield from _relay_scenes(campaign)
    elif (scene := _lone_scene(campaign, public)) is not None:
        yield 0, scene


def _lone_scene(campaign: Campaign, public: Sequence[Endpoint | None]) -> Scene | None:
    """Return the scene of a gateway that has only one; None if a host of it is not known."""
    if campaign.technology.is_subscriber or campaign.technology.in_a_row is not None:
        return _nat_scene(campaign, public) if campaign.technology.is_stateful else _b4_scene(campaign)
    if campaign.technology.is_edge:
        return _edge_scene(campaign, public)
    if campaign.technology.delegates_prefixes:
        return _sixrd_scene(campaign)
    return _nat_scene(campaign, public) if campaign.technology.is_stateful else _translator_scene(campaign)


def _edge_scene(campaign: Campaign, public: Sequence[Endpoint | None]) -> EdgeScene | None:
    """Return the scene of a gateway that is a customer edge itself; its port is any of the set before it is known."""
    edge, inside = campaign.edges.gateway, campaign.roles.inside
    client, server = _hosts(campaign, inside), _hosts(campaign, OPPOSITE[inside])
    if edge is None or not client or not server:
        return None
    outside = embedded_ipv4(IPv6Address(str(server[0])), edge.domain.default_rule)
    if outside is None:
        return None
    known = public[0] if public else None
    return EdgeScene(
        inside=inside,
        outside=OPPOSITE[inside],
        edge=edge,
        client=IPv4Address(str(client[0])),
        server=outside,
        server_port=_server_port(campaign),
        public_port=edge.ports.port(edge.ports.count // 2) if known is None else known.port,
    )


def _server_port(campaign: Campaign) -> int:
    return campaign.directions.traffic_of("forward").destination_ports.range.maximum


def _hosts(campaign: Campaign, side: SideName) -> tuple[IpAddress, ...]:
    """Return the Tester's own host of a side in the family of its hosts, and another one or the same again."""
    family = campaign.roles.host_family(side)
    model = campaign.side(side).family(family)
    if model is None:
        return ()
    address, hosts = ip_address(str(model.address)), HostSet.of(family, model)
    others = (ip_address(end.to_bytes(hosts.octets, "big")) for end in (hosts.highest, hosts.lowest))
    return address, next((other for other in others if other != address), address)


def _sixrd_scene(campaign: Campaign) -> SixrdScene | None:
    relay, server = campaign.sixrd, campaign.right.ipv6
    if relay is None or server is None or any(sixrd_problems(campaign)):
        return None
    edges = relay.edges
    hosts = HostSet.of("ipv4", edges)
    lowest, highest = IPv4Address(hosts.lowest), IPv4Address(hosts.highest)
    used = (edges.address, edges.gateway, edges.router)
    return SixrdScene(
        relay=relay,
        edges=hosts,
        edge=lowest,
        other=None if highest == lowest else highest,
        server=Endpoint(address=server.address, port=_server_port(campaign)),
        hosts=tuple(address for address in used if address is not None),
        decrement=campaign.forwarding.hop_limit_decrement,
        room=_room(campaign),
    )


def _translator_scene(campaign: Campaign) -> TranslatorScene | None:
    side: SideName = "left" if campaign.roles.family("left") == "ipv6" else "right"
    hosts = [_host(campaign, address, CLIENT_PORT + i) for i, address in enumerate(_hosts(campaign, side))]
    servers = [_host(campaign, address, _server_port(campaign)) for address in _hosts(campaign, OPPOSITE[side])]
    if not hosts or not servers or None in (*hosts, *servers):
        return None
    host, other, server = hosts[0], hosts[1], servers[0]
    assert host is not None and other is not None and server is not None
    return TranslatorScene(
        ipv6_side=side,
        ipv4_side=OPPOSITE[side],
        prefix=campaign.forwarding.prefix,
        host=host,
        other=other,
        server=server,
        decrement=campaign.forwarding.hop_limit_decrement,
    )


def _host(campaign: Campaign, address: IpAddress, port: int) -> Host | None:
    both = (address, represented(address, campaign.forwarding.prefix, campaign.gateway.eam))
    ipv6 = next((each for each in both if isinstance(each, IPv6Address)), None)
    ipv4 = next((each for each in both if isinstance(each, IPv4Address)), None)
    return None if ipv6 is None or ipv4 is None else Host(ipv6=ipv6, ipv4=ipv4, port=port)


def _nat_scene(campaign: Campaign, public: Sequence[Endpoint | None]) -> NatScene | None:
    """Return the scene of a stateful gateway; before they are known, public endpoints are any of the pool."""
    gateway, forwarding, inside = campaign.gateway, campaign.forwarding, campaign.roles.inside
    clients, servers = _clients(campaign), _hosts(campaign, OPPOSITE[inside])
    if not clients or not servers or not forwarding.pool:
        return None
    is_translation = campaign.technology.is_translation
    known = represented(servers[0], forwarding.prefix, gateway.eam) if is_translation else servers[0]
    if known is None:
        return None
    edge, uplink = campaign.edges.gateway, _uplink(campaign)
    if (uplink is None) == campaign.technology.is_subscriber:
        return None
    span = gateway.public_ports
    ports = range(span.minimum, span.maximum + 1) if edge is None else edge.ports
    known_clients = [
        Client(
            inside=endpoint,
            public=(public[i] if public else None)
            or Endpoint(address=forwarding.pool[0].network_address, port=_nth(ports, i)),
            tunnel=tunnel,
        )
        for i, (endpoint, tunnel) in enumerate(clients)
    ]
    b4s = campaign.side(inside).ipv6 if campaign.technology.has_b4s else None
    return NatScene(
        inside=inside,
        outside=OPPOSITE[inside],
        client=known_clients[0],
        other=known_clients[1],
        twin=known_clients[2] if len(known_clients) > 2 else None,
        b4s=None if b4s is None else HostSet.of("ipv6", b4s),
        uplink=uplink,
        room=_room(campaign) if campaign.technology.has_tunnels else None,
        edge=edge,
        hosts=_on_link(campaign),
        server=Endpoint(address=servers[0], port=_server_port(campaign)),
        server_inside=known,
        prefix=forwarding.prefix,
        is_translation=is_translation,
        pool=forwarding.pool,
        pool_ports=ports,
        keeps_mapping=gateway.mapping == "endpoint_independent",
        decrement=forwarding.hop_limit_decrement,
    )


def _nth(ports: range | PortSet, i: int) -> int:
    """Return the port of a number from 0; from the first again where there are fewer."""
    return ports.port(i % ports.count) if isinstance(ports, PortSet) else ports[i]


def _uplink(campaign: Campaign) -> Tunnel | None:
    """Return the tunnel to the relay; None if there is none, or an end of it is not known."""
    end, relay = campaign.forwarding.tunnel_end, campaign.side(campaign.technology.tunnel_side).ipv6
    if not campaign.technology.is_subscriber or not isinstance(end, IPv6Address) or relay is None:
        return None
    return Tunnel(source=end, destination=relay.address)


def _room(campaign: Campaign) -> TunnelRoom:
    """Return how large packets in the tunnels of a gateway with tunnels may be."""
    side = campaign.technology.tunnel_side
    return TunnelRoom(
        link_mtu=mtu_of(campaign, side),
        host_mtu=mtu_of(campaign, OPPOSITE[side]),
        outer_family=campaign.technology.outer_family,
    )


def _on_link(campaign: Campaign) -> tuple[IPv6Address, ...]:
    """Return addresses that are in use on the link with tunnels in IPv6, a router first; none without."""
    technology = campaign.technology
    model = campaign.side(technology.tunnel_side).ipv6 if technology.has_tunnels else None
    if model is None:
        return ()
    return tuple(address for address in (model.router, model.address, model.gateway) if address is not None)


def _b4_scene(campaign: Campaign) -> B4Scene | None:
    uplink = _uplink(campaign)
    inside, outside = campaign.roles.inside, campaign.roles.outside
    hosts, servers = _hosts(campaign, inside), _hosts(campaign, outside)
    if uplink is None or not hosts or not servers:
        return None
    return B4Scene(
        inside=inside,
        outside=outside,
        host=Endpoint(address=hosts[0], port=CLIENT_PORT),
        server=Endpoint(address=servers[0], port=_server_port(campaign)),
        uplink=uplink,
        room=_room(campaign),
        hosts=_on_link(campaign),
        decrement=campaign.forwarding.hop_limit_decrement,
    )


def _clients(campaign: Campaign) -> tuple[tuple[Endpoint, Tunnel | None], ...]:
    """Return two ports of hosts inside, of an AFTR with their tunnels; behind the other of two B4s the first again."""
    inside = campaign.roles.inside
    if not campaign.technology.has_b4s:
        hosts = _hosts(campaign, inside)
        return tuple((Endpoint(address=address, port=CLIENT_PORT + i), None) for i, address in enumerate(hosts))
    end, model = campaign.forwarding.ipv6_end, campaign.side(inside).ipv6
    if end is None or model is None:
        return ()
    b4s, behind = HostSet.of("ipv6", model), HostSet.of("ipv4", campaign.b4_model)
    tunnels = [Tunnel(source=IPv6Address(b4), destination=end.address) for b4 in (b4s.lowest, b4s.highest)]
    first, other = (
        Endpoint(address=IPv4Address(address), port=CLIENT_PORT + i)
        for i, address in enumerate((behind.lowest, behind.highest))
    )
    pairs = ((first, tunnels[0]), (other, tunnels[1]))
    return pairs if tunnels[0] == tunnels[1] else (*pairs, (first, tunnels[1]))


def _relay_scenes(campaign: Campaign) -> Iterator[tuple[int, Scene]]:
    table, end, server = campaign.map, campaign.forwarding.ipv6_end, campaign.right.ipv4
    if table is None or campaign.left.ipv6 is None or server is None:
        return
    if (end is None) == campaign.technology.has_tunnels or not (
        table.translates if end is None else table.is_consistent
    ):
        return
    domains = table.rules
    used = [
        used_numbers(domain, count, table.order)
        for domain, count in zip(domains, table.spread.counts(table.edge_count), strict=True)
    ]
    ends = [
        tuple(domain.edge(number) for number in sorted({numbers[0], numbers[-1]})) if numbers else ()
        for domain, numbers in zip(domains, used, strict=True)
    ]
    for index, (domain, of_domain) in enumerate(zip(domains, ends, strict=True)):
        if not of_domain:
            continue
        edge = of_domain[0]
        others = (other for of_any in (of_domain, *ends) for other in of_any if other != edge)
        scene = RelayScene(
            domains=table.whole_rules,
            domain=domain,
            edge=edge,
            other=next(others, None),
            server=server.address,
            server_port=_server_port(campaign),
        )
        yield index, scene if end is None else _with_tunnels(campaign, scene, end.address)


def _with_tunnels(campaign: Campaign, scene: RelayScene, relay: IPv6Address) -> TunnelRelayScene:
    return TunnelRelayScene(
        domains=scene.domains,
        domain=scene.domain,
        edge=scene.edge,
        other=scene.other,
        server=scene.server,
        server_port=scene.server_port,
        relay=relay,
        hosts=_on_link(campaign),
        decrement=campaign.forwarding.hop_limit_decrement,
        room=_room(campaign),
    )
