"""The cases: which packets are sent, and what a conforming MAP-T border relay or customer edge makes of them. Pure.

RFC 7599 says what is due. Beside each case go control frames that must come through. So a gateway that forwards nothing
at all does not pass for one that drops what it has to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Generic, Literal, Protocol, TypeVar

from gatemark.config.model import Campaign
from gatemark.embedded_ipv4 import embed_ipv4, embedded_ipv4
from gatemark.map_domains.domain import Edge, MapDomain
from gatemark.map_domains.edges import used_numbers
from gatemark.map_domains.port_set import PortSet
from gatemark.packets import Flow
from gatemark.procedures.conformity.result import CaseName, Due, Level
from gatemark.technology import SideName

S = TypeVar("S")

CLIENT_PORT = 40_000
"""Source port of the client behind a gateway that is a customer edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Where a packet is due, and as what."""

    side: SideName
    flow: Flow
    keeps_hop_count: bool = True
    """Whether its way through the gateway is as long as that of other packets, so that its hop limit is compared."""
    ports: PortSet | None = None
    """Any of these may be its source port; None: that of the flow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A packet that is sent from one side, and what becomes of it in a conforming gateway."""

    side: SideName
    flow: Flow
    delivery: Delivery | None = None
    """None: it is due nowhere."""
    in_fragments: bool = False


Packets = Literal["udp", "echo request"]


class Scene(Protocol):
    """Who sends to whom: what any gateway has to deliver both ways."""

    def upward(self, kind: Packets = "udp") -> Sending:
        """Return a packet towards the server, and what arrives there."""

    def downward(self) -> Sending:
        """Return a packet of the server, and what arrives."""


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
        return embed_ipv4(address, self.domain.dmr)

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

    @property
    def server_outside(self) -> IPv6Address:
        """Return the server as it is outside (RFC 7599 section 5.1)."""
        return embed_ipv4(self.server, self.edge.domain.dmr)

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
        delivery = Delivery(side=self.outside, flow=arrives, ports=self.edge.ports)
        return Sending(side=self.inside, flow=sent, delivery=delivery)

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
class Case(Generic[S]):
    """A row of a table of cases."""

    words: str
    """What is sent, in a sentence's middle."""
    section: str
    """Where the RFC says what is due."""
    due: Due
    level: Level
    needs: str
    """What a rule must have for it, for a message."""
    sending: Callable[[S], Sending | None]
    """Return the packet; None if the rule has no such case."""
    answer: str | None = None
    """ICMP error with which the gateway should answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A case with a domain."""

    name: CaseName
    case: Case[Any]
    domain: int
    """From 0, in the order of the file."""
    scene: Scene
    sending: Sending


def _foreign_source_port(scene: RelayScene) -> Sending | None:
    domain, edge = scene.domain, scene.edge
    if not domain.psid_length:
        return None
    neighbour = domain.ports_of((edge.psid + 1) % domain.sharing_ratio)
    upward = scene.upward()
    return Sending(side="left", flow=replace(upward.flow, source_port=neighbour.port(neighbour.count // 2)))


def _foreign_source_address(scene: RelayScene) -> Sending | None:
    for bit in range(128 - scene.domain.rule_ipv6.prefixlen, 128):
        address = IPv6Address(int(scene.edge.address) ^ 1 << bit)
        known = (network for domain in scene.domains for network in (domain.rule_ipv6, domain.dmr))
        if not address.is_multicast and not any(address in network for network in known):
            return Sending(side="left", flow=replace(scene.upward().flow, source=address))
    return None


def _nobodys_port(scene: RelayScene) -> Sending | None:
    lowest = scene.domain.ports_of(0).port(0)
    if not scene.domain.psid_length or not lowest:
        return None
    return Sending(side="right", flow=replace(scene.downward().flow, destination_port=lowest // 2))


def _nobodys_address(scene: RelayScene) -> Sending | None:
    for bit in range(32 - scene.domain.rule_ipv4.prefixlen, 32):
        address = IPv4Address(int(scene.edge.ipv4) ^ 1 << bit)
        is_unicast = not (address.is_multicast or address.is_reserved or address.is_loopback or address.is_unspecified)
        if is_unicast and address != scene.server and not any(address in domain.rule_ipv4 for domain in scene.domains):
            return Sending(side="right", flow=replace(scene.downward().flow, destination=address))
    return None


def _hairpin(scene: RelayScene) -> Sending | None:
    if scene.other is None:
        return None
    sent = replace(
        scene.upward().flow,
        destination=scene.inside(scene.other.ipv4),
        destination_port=scene.port_of(scene.other),
    )
    arrives = replace(sent, source=embed_ipv4(scene.edge.ipv4, scene.other.domain.dmr), destination=scene.other.address)
    return Sending(side="left", flow=sent, delivery=Delivery(side="left", flow=arrives, keeps_hop_count=False))


RELAY_CASES: Mapping[CaseName, Case[RelayScene]] = {
    "foreign_source_port": Case(
        words="a customer edge sends from a port of its neighbour",
        section="RFC 7599 section 8.3",
        due="dropped",
        level="must",
        answer="icmpv6 1/5",
        needs="no address is shared",
        sending=_foreign_source_port,
    ),
    "foreign_source_address": Case(
        words="a host sends from an address of no rule",
        section="RFC 7599 section 8.3",
        due="dropped",
        level="must",
        needs="the rules hold every address",
        sending=_foreign_source_address,
    ),
    "nobodys_port": Case(
        words="a server sends to a port that no customer edge has",
        section="RFC 7599 section 8.4",
        due="reported",
        level="none",
        needs="every port of an address belongs to a customer edge",
        sending=_nobodys_port,
    ),
    "nobodys_address": Case(
        words="a server sends to an address of no rule",
        section="RFC 7599 section 8.4",
        due="reported",
        level="none",
        needs="the rules hold every address",
        sending=_nobodys_address,
    ),
    "echo_from_outside": Case(
        words="a server sends echo requests whose identifier is a port of the customer edge",
        section="RFC 7599 section 9",
        due="delivered",
        level="should",
        needs="",
        sending=lambda scene: scene.downward("echo request"),
    ),
    "echo_from_inside": Case(
        words="a customer edge sends echo requests whose identifier is one of its ports",
        section="RFC 7599 section 9",
        due="delivered",
        level="should",
        needs="",
        sending=lambda scene: scene.upward("echo request"),
    ),
    "hairpin": Case(
        words="a customer edge sends to the public address and port of another one",
        section="RFC 7599 section 12.2",
        due="delivered",
        level="should",
        needs="there is only one customer edge",
        sending=_hairpin,
    ),
    "fragments": Case(
        words="a server sends packets in two fragments",
        section="RFC 7599 section 10.2",
        due="delivered",
        level="should",
        needs="",
        sending=lambda scene: replace(scene.downward(), in_fragments=True),
    ),
}


def _foreign_destination_port(scene: EdgeScene) -> Sending | None:
    domain = scene.edge.domain
    if not domain.psid_length:
        return None
    neighbour = domain.ports_of((scene.edge.psid + 1) % domain.sharing_ratio)
    flow = replace(scene.downward().flow, destination_port=neighbour.port(neighbour.count // 2))
    return Sending(side=scene.outside, flow=flow)


def _outside_dmr(scene: EdgeScene) -> Sending | None:
    domain = scene.edge.domain
    for bit in range(128 - domain.dmr.prefixlen, 128):
        address = IPv6Address(int(scene.server_outside) ^ 1 << bit)
        if not address.is_multicast and not any(address in network for network in (domain.dmr, domain.rule_ipv6)):
            return Sending(side=scene.outside, flow=replace(scene.downward().flow, source=address))
    return None


def _unused_port(scene: EdgeScene) -> Sending | None:
    ports = scene.edge.ports
    if ports.count == 1:
        return None
    used = ports.index_of(scene.public_port) or 0
    unused = ports.port((used + ports.count // 2) % ports.count)
    return Sending(side=scene.outside, flow=replace(scene.downward().flow, destination_port=unused))


def _wrong_interface_identifier(scene: EdgeScene) -> Sending | None:
    if scene.edge.end_user_prefix.prefixlen == 128:
        return None
    address = IPv6Address(int(scene.edge.address) ^ 1)
    return Sending(side=scene.outside, flow=replace(scene.downward().flow, destination=address))


EDGE_CASES: Mapping[CaseName, Case[EdgeScene]] = {
    "port_of_the_set": Case(
        words="a client sends from another port",
        section="RFC 7599 section 8.1",
        due="delivered",
        level="must",
        needs="",
        sending=lambda scene: scene.upward(port=CLIENT_PORT + 1),
    ),
    "echo_from_inside": Case(
        words="a client sends echo requests, whose identifier becomes a port of the set",
        section="RFC 7599 section 9",
        due="delivered",
        level="should",
        needs="",
        sending=lambda scene: scene.upward("echo request"),
    ),
    "foreign_destination_port": Case(
        words="a server sends to a port of another customer edge",
        section="RFC 7599 section 8.2",
        due="dropped",
        level="must",
        needs="the gateway shares its address with nobody",
        sending=_foreign_destination_port,
    ),
    "outside_dmr": Case(
        words="a host that stands for no IPv4 address sends to a port that is in use",
        section="RFC 7599 section 8.2",
        due="dropped",
        level="must",
        needs="the default mapping rule holds every address",
        sending=_outside_dmr,
    ),
    "unused_port": Case(
        words="a server sends to a port of the set that no client uses",
        section="RFC 7599 section 8.2",
        due="reported",
        level="none",
        needs="the set has a single port",
        sending=_unused_port,
    ),
    "wrong_interface_identifier": Case(
        words="a server sends to another address of the end-user prefix",
        section="RFC 7599 section 8.2",
        due="reported",
        level="none",
        needs="the end-user prefix is a single address",
        sending=_wrong_interface_identifier,
    ),
}


def cases_of(campaign: Campaign) -> Mapping[CaseName, Case[Any]]:
    """Return the cases of the campaign's gateway, in the order in which they are tried; none for other gateways."""
    if campaign.technology.has_edges:
        return RELAY_CASES
    return EDGE_CASES if campaign.technology.is_edge else {}


def has_hosts(campaign: Campaign) -> bool:
    """Whether it is known between whom packets go."""
    if campaign.technology.is_edge:
        return campaign.edges.gateway is not None and None not in _edge_hosts(campaign)
    return campaign.side("right").family("ipv4") is not None


def _edge_hosts(campaign: Campaign) -> tuple[IPv4Address | None, IPv4Address | None]:
    """Return the client inside and the server outside of a gateway that is a customer edge."""
    edge, inside = campaign.edges.gateway, campaign.roles.inside
    client, server = campaign.side(inside).family("ipv4"), campaign.side(_other(inside)).family("ipv6")
    if edge is None or client is None or server is None:
        return None, None
    return IPv4Address(str(client.address)), embedded_ipv4(IPv6Address(str(server.address)), edge.domain.dmr)


def _other(side: SideName) -> SideName:
    return "right" if side == "left" else "left"


def scenes(campaign: Campaign, public_port: int | None = None) -> Iterator[tuple[int, Scene]]:
    """Yield each domain that has customer edges, with its number from 0; the only one of a gateway that is one itself.

    `public_port` is the port that this gateway gave to a client; None before it is known.
    """
    if campaign.technology.is_edge:
        yield 0, edge_scene(campaign, public_port)
    else:
        yield from _relay_scenes(campaign)


def edge_scene(campaign: Campaign, public_port: int | None = None) -> EdgeScene:
    """Return the scene of a gateway that is a customer edge itself; its port is any of the set before it is known."""
    edge, (client, server) = campaign.edges.gateway, _edge_hosts(campaign)
    assert edge is not None and client is not None and server is not None, "the campaign is complete"
    return EdgeScene(
        inside=campaign.roles.inside,
        outside=_other(campaign.roles.inside),
        edge=edge,
        client=client,
        server=server,
        server_port=campaign.directions.traffic_of("forward").destination_ports.range.maximum,
        public_port=edge.ports.port(edge.ports.count // 2) if public_port is None else public_port,
    )


def _relay_scenes(campaign: Campaign) -> Iterator[tuple[int, Scene]]:
    table = campaign.map
    assert table is not None, "the campaign has MAP rules"
    server = campaign.side("right").family("ipv4")
    assert server is not None, "the campaign is complete"
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
        yield (
            index,
            RelayScene(
                domains=table.whole_rules,
                domain=domain,
                edge=edge,
                other=next(others, None),
                server=IPv4Address(str(server.address)),
                server_port=campaign.directions.traffic_of("forward").destination_ports.range.maximum,
            ),
        )


def probes(campaign: Campaign, public_port: int | None = None) -> Iterator[Probe]:
    """Yield every case of every domain, case by case; `public_port` as in `scenes`."""
    known = list(scenes(campaign, public_port))
    for name, case in cases_of(campaign).items():
        for index, scene in known:
            sending = case.sending(scene)
            if sending is not None:
                yield Probe(name=name, case=case, domain=index, scene=scene, sending=sending)
