"""Between whom the packets of the cases go, and as what a conforming gateway delivers them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from typing import Literal, Protocol

from gatemark.config.model import Campaign
from gatemark.embedded_ipv4 import embed_ipv4, embedded_ipv4
from gatemark.map_domains.domain import Edge, MapDomain
from gatemark.map_domains.edges import used_numbers
from gatemark.map_domains.port_set import PortSet
from gatemark.packets import Flow
from gatemark.technology import SideName

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
