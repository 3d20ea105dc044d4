"""What follows from several tables of a complete campaign, a small value for each question. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import get_args

from gatemark.bed_kinds import BedKind
from gatemark.config import defaults
from gatemark.config.map_tables import MapModel
from gatemark.config.tables import (
    ENDS,
    DirectionTrafficModel,
    GatewayAction,
    GatewayControlModel,
    GatewayModel,
    HostsModel,
    Ipv4Model,
    Ipv6Model,
    TelemetryModel,
    TestbedModel,
    TrafficModel,
    TunnelModel,
)
from gatemark.facts import ONE_WAYS, OneWay
from gatemark.map_domains.domain import Edge
from gatemark.map_domains.peers import PeerEdges
from gatemark.technology import OPPOSITE, Family, FrameKind, SideName, Technology


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Which side is which: of a stateful gateway its inside and outside, of every gateway the families."""

    technology: Technology
    inside: SideName
    """Side of the Initiator (RFC 9693 section 4.1); of a stateless gateway left."""
    mesh: bool = False
    """Whether the hosts outside are other customer edges, whose frames have addresses that follow from theirs."""

    @property
    def outside(self) -> SideName:
        """Return the side of the Responder (RFC 9693 section 4.1)."""
        return OPPOSITE[self.inside]

    @property
    def upload(self) -> OneWay:
        """Return the direction of the Initiator's frames."""
        return "forward" if self.inside == "left" else "reverse"

    @property
    def download(self) -> OneWay:
        """Return the direction of the Responder's frames."""
        return "reverse" if self.inside == "left" else "forward"

    def family(self, side: SideName) -> Family:
        """Return the family of the foreground's frames on one side: of packets in tunnels that of the outer header."""
        return self.technology.families[0 if self._is_first(side) else 1]

    def has_tunnels(self, side: SideName) -> bool:
        """Whether the packets of the foreground are inside others on one side."""
        return self.technology.has_tunnels and self._is_first(side) == (self.technology.tunnel_side == "left")

    def packet_family(self, side: SideName) -> Family:
        """Return the family of the foreground's packets on one side, which are in tunnels or not."""
        return self.technology.packet_families[0 if self._is_first(side) else 1]

    def host_family(self, side: SideName) -> Family:
        """Return the family of the hosts on one side: of those before a relay that of the outer header."""
        if self.mesh and side == self.outside:
            return "ipv4"
        return self.packet_family(side) if self.technology.is_subscriber else self.family(side)

    def is_behind_relay(self, side: SideName, family: Family) -> bool:
        """Whether the hosts of a family on one side are reached through a tunnel or translation, not on the link."""
        if self.mesh:
            return side == self.outside and family == "ipv4"
        is_inner = family == self.technology.inside_tunnels
        return self.technology.is_subscriber and is_inner and self.has_tunnels(side)

    def frame_kind(self, side: SideName) -> FrameKind:
        """Return the size by which the foreground's frames go on one side."""
        return "tunnel" if self.has_tunnels(side) else self.family(side)

    def _is_first(self, side: SideName) -> bool:
        return side == (self.inside if self.technology.is_stateful else "left")


@dataclass(frozen=True, kw_only=True)
class Directions:
    """What is sent in which direction."""

    traffic: TrafficModel
    roles: Roles
    validates: bool
    """Whether the Responder checks every connection in any measurement (RFC 9693 section 4.6)."""

    @property
    def in_use(self) -> tuple[OneWay, ...]:
        """Return the single directions in which any frame is sent, including phases before the one that is measured."""
        needed = {self.roles.upload} if self.roles.technology.is_stateful else set()
        if self.validates:
            needed.add(self.roles.download)
        both = "bidirectional" in self.traffic.direction
        return tuple(way for way in ONE_WAYS if both or way in self.traffic.direction or way in needed)

    def traffic_of(self, way: OneWay) -> TrafficModel:
        """Return the traffic with the settings of one direction applied."""
        return self._forward if way == "forward" else self._reverse

    @cached_property
    def _forward(self) -> TrafficModel:
        return _of_way(self.traffic, self.traffic.forward)

    @cached_property
    def _reverse(self) -> TrafficModel:
        return _of_way(self.traffic, self.traffic.reverse)

    @property
    def traffic_classes(self) -> tuple[int, ...]:
        """Return every IPv4 TOS or IPv6 traffic class octet that is sent, ascending."""
        return tuple(sorted({octet for way in self.in_use for octet in self.traffic_of(way).traffic_class}))

    @property
    def classes_into_tunnels(self) -> tuple[int, ...]:
        """Return the traffic class octets of the packets that the gateway puts into tunnels, ascending."""
        ways = self.in_use if self.traffic.has_foreground else ()
        into = (way for way in ways if self.roles.has_tunnels(ENDS[way][1]))
        return tuple(sorted({octet for way in into for octet in self.traffic_of(way).traffic_class}))

    @property
    def lack_checksums(self) -> bool:
        """Whether UDP frames of any direction are sent without checksum."""
        return any(self.traffic_of(way).udp_checksum == "zero" for way in ONE_WAYS)

    def networks(self, side: SideName) -> int:
        """Return how many networks the hosts of a side are in: those that frames go to which are sent to it."""
        return self.traffic_of("forward" if side == "right" else "reverse").destination_networks

    def families(self, side: SideName) -> tuple[Family, ...]:
        """Return the families of the frames of one side, foreground first; of tunnels that of the outer header."""
        foreground = self.roles.family(side) if self.traffic.has_foreground else None
        background: Family | None = "ipv6" if self.traffic.has_background else None
        return tuple(dict.fromkeys(family for family in (foreground, background) if family is not None))


def _of_way(traffic: TrafficModel, of_way: DirectionTrafficModel | None) -> TrafficModel:
    stated = {} if of_way is None else {name: value for name, value in of_way if value is not None}
    return traffic.model_copy(update=stated)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """The customer edges of MAP-T: those that the Tester emulates, or the one that the gateway is."""

    technology: Technology
    map: MapModel | None

    @property
    def emulated(self) -> MapModel | None:
        """Return the table of the customer edges that the Tester emulates; None without any."""
        return None if self.technology.is_edge else self.map

    @property
    def domain_count(self) -> int:
        """Return the number of domains of emulated customer edges; 0 without any."""
        return 0 if self.emulated is None else len(self.emulated.parts)

    @property
    def peers(self) -> PeerEdges | None:
        """Return the other customer edges that are the hosts outside; None without any."""
        peers = None if self.map is None else self.map.peers
        return None if peers is None or self.gateway is None else peers

    @property
    def gateway(self) -> Edge | None:
        """Return the customer edge that the gateway is; None for other gateways, and where its rule has a problem."""
        table = self.map
        if table is None or not self.technology.is_edge:
            return None
        return table.gateway_edge if table.translates or not self.technology.has_default_rules else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelEnd:
    """A gateway's end of tunnels in IPv6."""

    address: IPv6Address
    tunnel: TunnelModel
    """Their outer headers."""

    @classmethod
    def of(cls, gateway: GatewayModel) -> TunnelEnd | None:
        """Return the end that a gateway states; None of one that states none, or one of IPv4."""
        tunnel = gateway.tunnel
        if tunnel is None or not isinstance(tunnel.address, IPv6Address):
            return None
        return cls(address=tunnel.address, tunnel=tunnel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sixrd:
    """A 6rd relay, and its customer edges, whose prefixes follow from their addresses (RFC 5969 section 4)."""

    end: IPv4Address
    """Where its tunnels end."""
    prefix: IPv6Network
    """What the prefixes of all edges begin with."""
    tunnel: TunnelModel
    """Outer headers, and which bits of an edge's address are not in its prefix."""
    edges: Ipv4Model

    @classmethod
    def of(cls, gateway: GatewayModel, edges: Ipv4Model | None) -> Sixrd | None:
        """Return the relay that a gateway is; None of others, and where anything of it is not known."""
        tunnel = gateway.tunnel
        if tunnel is None or tunnel.prefix is None or edges is None or not isinstance(tunnel.address, IPv4Address):
            return None
        return cls(end=tunnel.address, prefix=tunnel.prefix, tunnel=tunnel, edges=edges)

    def host_of(self, edge: IPv4Address) -> IPv6Address:
        """Return the first host behind an edge."""
        below = 32 - self.tunnel.masked_bits
        suffix = int(edge) & ((1 << below) - 1)
        return IPv6Address(int(self.prefix.network_address) | suffix << 128 - self.prefix.prefixlen - below | 1)

    @property
    def hosts(self) -> Ipv6Model:
        """Return the first host behind each edge; only without problems."""
        hosts, moved = self.edges.hosts, (self.prefix.prefixlen - self.tunnel.masked_bits) // 8
        offset = None if hosts.offset is None else hosts.offset + moved
        of_hosts = HostsModel(offset=offset, mode=hosts.mode, range=hosts.range)
        return Ipv6Model(address=self.host_of(self.edges.address), hosts=of_hosts)


def default_decrement(technology: Technology) -> int:
    """Return how much a gateway takes off hop limits if nobody says otherwise: two in a row twice as much."""
    return technology.gateways * defaults.HOP_LIMIT_DECREMENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """What the gateway does to a frame, whether gateway, test bed or MAP rule says it."""

    model: GatewayModel
    technology: Technology
    bed: BedKind
    edge: Edge | None
    """The customer edge that the gateway is."""

    @property
    def hop_limit_decrement(self) -> int:
        """Return how much the gateway takes off hop limits; 0 in a loop-back."""
        if self.bed.forwards_unchanged:
            return 0
        decrement = self.model.hop_limit_decrement
        return default_decrement(self.technology) if decrement is None else decrement

    @property
    def background_hop_limit_decrement(self) -> int:
        """Return the same for native background, which a translator merely forwards."""
        if self.bed.forwards_unchanged:
            return 0
        decrement = self.model.background_hop_limit_decrement
        if decrement is not None:
            return decrement
        if self.technology.is_translation or self.technology.has_tunnels or self.technology.in_a_row:
            return default_decrement(self.technology)
        return self.hop_limit_decrement

    @property
    def pool(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Return the public addresses of a stateful gateway: those of the file, or of a customer edge its own in the
        family of the packets outside."""
        if self.edge is None:
            return self.model.pool
        is_ipv4 = self.technology.packet_families[1] == "ipv4"
        return (IPv4Network(self.edge.ipv4) if is_ipv4 else IPv6Network(self.edge.address),)

    @property
    def tunnel(self) -> TunnelModel | None:
        """Return its tunnels, with the default policies where a customer edge states none; None without any."""
        return self.model.tunnel or (TunnelModel() if self.technology.has_tunnels else None)

    @property
    def tunnel_end(self) -> IPv4Address | IPv6Address | None:
        """Return the gateway's end of its tunnels: of a customer edge its MAP address; None where it is not known."""
        if self.edge is not None:
            return self.edge.address
        return None if self.model.tunnel is None else self.model.tunnel.address

    @property
    def ipv6_end(self) -> TunnelEnd | None:
        """Return its end of tunnels in IPv6; None without such tunnels, and where it follows from a MAP rule."""
        return TunnelEnd.of(self.model) if self.technology.has_tunnels else None

    @property
    def prefix(self) -> IPv6Network | None:
        """Return the prefix under which hosts of the other family are known, of a border relay too many to say."""
        return self.model.prefix if self.edge is None else self.edge.domain.dmr


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """What gatemark can do with the gateway and its host, and what it sees of them."""

    gateway: GatewayModel
    testbed: TestbedModel
    bed: BedKind
    recipe_actions: frozenset[GatewayAction]
    """What the recipe has commands for."""
    recipe_settings: frozenset[str]
    """Settings of the user's own that the recipe has commands for."""

    @property
    def model(self) -> GatewayControlModel:
        """Return the commands of the file; none where it has no table of them."""
        return self.gateway.control or GatewayControlModel()

    @property
    def actions(self) -> frozenset[GatewayAction]:
        """Return what gatemark can have the gateway do, by its recipe or by `gateway.control`."""
        if self.gateway.control is None:
            return self.recipe_actions
        actions: tuple[GatewayAction, ...] = get_args(GatewayAction)
        return frozenset(action for action in actions if getattr(self.model, action))

    @property
    def setting_names(self) -> frozenset[str]:
        """Return the settings of the user's own for which recipe or `gateway.control` has commands."""
        return self.recipe_settings | frozenset(self.model.settings)

    @property
    def boot_wait_s(self) -> float:
        """Return how long a boot may take, seconds; 0 where there are none."""
        return 0.0 if self.model.boot == "never" else self.model.limits.seconds("boot")

    @property
    def telemetry(self) -> TelemetryModel | None:
        """Return what is sampled at the gateway's host beside each trial; None if nothing is."""
        asked = self.gateway.telemetry
        if asked is None:
            return TelemetryModel() if self.bed.sees_host else None
        return asked if asked.enabled else None

    @property
    def core_count(self) -> int | None:
        """Return the number of the gateway's cores; None if the file does not say it."""
        return len(self.testbed.gateway_cores) or self.gateway.cores
