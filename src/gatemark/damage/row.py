"""What each of two gateways in a row does to a frame, from their recipes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network

from gatemark.bed_kinds import RECIPE_BED
from gatemark.config.hosts import represented
from gatemark.config.recipe import Standing, keeper_of
from gatemark.config.tables import EamEntry
from gatemark.config.views import Forwarding
from gatemark.packets import IpAddress
from gatemark.technology import DontFragmentRule

Form = tuple[int, ...]
"""IP versions of the headers of a packet from the outside, as of `Sighting`."""
IPV4, IPV6, IPV4_IN_IPV6 = (4,), (6,), (6, 4)
LoweredBy = tuple[int | None, int | None]
"""By how much the customer's and the provider's gateway lower hop limits; None where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """Which IPv6 address stands for an IPv4 address at a translator."""

    prefix: IPv6Network | None
    """Of all that no entry has (RFC 6052)."""
    entries: tuple[EamEntry, ...] = ()
    """Explicit address mappings (RFC 7757)."""
    edge: tuple[IPv4Address, IPv6Address] | None = None
    """The shared address and the MAP address of the only customer edge (RFC 7597 section 6)."""

    def stands_for(self, ipv6: IPv6Address, ipv4: IPv4Address) -> bool | None:
        """Whether this is the IPv6 address of an IPv4 address; None if nothing is said of that."""
        if self.edge is not None and ipv4 == self.edge[0]:
            return ipv6 == self.edge[1]
        due = represented(ipv4, self.prefix, self.entries)
        return None if due is None else ipv6 == due

    def is_same(self, entering: IpAddress, leaving: IpAddress) -> bool | None:
        """Whether both are the same host, in one family or in both; None if nothing is said of that."""
        if isinstance(entering, IPv6Address) and isinstance(leaving, IPv4Address):
            return self.stands_for(entering, leaving)
        if isinstance(entering, IPv4Address) and isinstance(leaving, IPv6Address):
            return self.stands_for(leaving, entering)
        return entering == leaving


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGateway:
    """One of both gateways."""

    hop_limit_decrement: int | None
    """None where it is not known, as of the next."""
    background_hop_limit_decrement: int | None
    dont_fragment_rule: DontFragmentRule
    """Of IPv4 packets that it makes of IPv6 ones."""
    zero_udp_checksum: bool
    """Whether it may write UDP checksum 0x0000 where 0xffff is due."""
    keeps_connections: bool
    """Whether it chooses the customer's address and port as others see them."""
    mapping: Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Two gateways in a row, and what is between them."""

    customer: RowGateway
    provider: RowGateway
    middle: Form
    """Of the foreground on the link between both."""


def row_of(standings: Sequence[Standing]) -> Row:
    """Return the facts of both gateways, the customer's first."""
    keeper = keeper_of([standing.recipe for standing in standings])
    customer, provider = (
        _gateway(standing, keeps_connections=number == keeper) for number, standing in enumerate(standings)
    )
    has_tunnel = standings[0].recipe.technology.has_tunnels
    return Row(customer=customer, provider=provider, middle=IPV4_IN_IPV6 if has_tunnel else IPV6)


def stated_row(forwarding: Forwarding, foreground: LoweredBy, background: LoweredBy) -> Row:
    """Return what a campaign states of two gateways that somebody else set up, of which it knows what both do together.

    `foreground`, `background`: by how much each was seen to lower hop limits, which counts if both together do as is
    stated. Nothing is known of mappings that are not seen from outside.
    """
    model, technology, edge = forwarding.model, forwarding.technology, forwarding.edge
    mapping = Mapping(
        prefix=forwarding.prefix, entries=model.eam, edge=None if edge is None else (edge.ipv4, edge.address)
    )
    lowered = _as_stated(forwarding.hop_limit_decrement, foreground)
    of_background = _as_stated(forwarding.background_hop_limit_decrement, background)
    customer, provider = (
        RowGateway(
            hop_limit_decrement=lowered[number],
            background_hop_limit_decrement=of_background[number],
            dont_fragment_rule=rule or model.made_dont_fragment,
            zero_udp_checksum=bool(model.zero_udp_checksum),
            keeps_connections=number == technology.keeper,
            mapping=mapping,
        )
        for number, rule in enumerate((model.reverse_dont_fragment_rule, model.dont_fragment_rule))
    )
    return Row(customer=customer, provider=provider, middle=IPV4_IN_IPV6 if technology.tunnel_within else IPV6)


def _as_stated(of_both: int, lowered: LoweredBy) -> LoweredBy:
    return lowered if None not in lowered and sum(each or 0 for each in lowered) == of_both else (None, None)


def _gateway(standing: Standing, *, keeps_connections: bool) -> RowGateway:
    recipe = standing.recipe
    model = recipe.gateway
    forwarding = Forwarding(model=model, technology=recipe.technology, bed=RECIPE_BED, edge=None)
    edge = None if standing.edges is None else standing.edges.gateway_edge
    if edge is None or not recipe.technology.has_rules:
        mapping = Mapping(prefix=model.prefix, entries=model.eam)
    else:
        mapping = Mapping(prefix=edge.domain.dmr, edge=(edge.ipv4, edge.address))
    return RowGateway(
        hop_limit_decrement=forwarding.hop_limit_decrement,
        background_hop_limit_decrement=forwarding.background_hop_limit_decrement,
        dont_fragment_rule=model.made_dont_fragment,
        zero_udp_checksum=bool(model.zero_udp_checksum),
        keeps_connections=keeps_connections,
        mapping=mapping,
    )
