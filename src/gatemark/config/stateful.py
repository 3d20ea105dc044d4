"""Arithmetic of a stateful test: four-tuples, port space, and how long connections must live (RFC 9693). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from gatemark.config import defaults
from gatemark.config.hosts import HostSet
from gatemark.config.model import Campaign
from gatemark.config.reserved import Network
from gatemark.config.types import CONNECTIONS_MAX, Span
from gatemark.technology import SideName

PORT_MAX = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class TupleSpace:
    """The four-tuples that the connections of one test are taken from: all combinations (RFC 9693 section 4.1)."""

    source_hosts: int
    """Hosts of the Initiator; those behind every B4 of an AFTR."""
    destination_hosts: int
    """Hosts of the Responder."""
    source_ports: Span
    destination_ports: Span
    """Ends above the last of `open_ports` where the file leaves it open and no number of ports is enough."""

    @property
    def sources(self) -> int:
        """How many endpoints (address and port) the Initiator has."""
        return self.source_hosts * self.source_ports.count

    @property
    def destinations(self) -> int:
        """How many endpoints (address and port) the Responder has."""
        return self.destination_hosts * self.destination_ports.count

    @property
    def product(self) -> int:
        """How many four-tuples there are."""
        return self.sources * self.destinations


def tuple_space(campaign: Campaign, count: int) -> TupleSpace:
    """Return the four-tuples for `count` connections: as the file says, else as many destination ports as they need."""
    source_hosts = host_count(campaign, campaign.roles.inside) * len(b4_hosts(campaign).numbers)
    destination_hosts = host_count(campaign, campaign.roles.outside)
    source_ports = campaign.connections_model.source_ports
    destination_ports = campaign.connections_model.destination_ports
    if destination_ports is None:
        first = open_ports(campaign).minimum
        needed = -(-count // (source_hosts * source_ports.count * destination_hosts))
        destination_ports = Span(first, first + needed - 1)
    return TupleSpace(
        source_hosts=source_hosts,
        destination_hosts=destination_hosts,
        source_ports=source_ports,
        destination_ports=destination_ports,
    )


def open_ports(campaign: Campaign) -> Span:
    """Return the destination ports that connections may have if the file does not say it: any, but of other customer
    edges those of one range of their set."""
    peers = campaign.edges.peers
    return Span(1, PORT_MAX) if peers is None else Span(*peers.first_range)


def host_count(campaign: Campaign, side: SideName) -> int:
    """Return how many foreground hosts one side emulates."""
    return len(foreground_hosts(campaign, side).numbers)


def b4_hosts(campaign: Campaign) -> HostSet:
    """Return the hosts behind each B4 of an AFTR; of another gateway it is one."""
    return HostSet.of("ipv4", campaign.b4_model)


def source_hosts(campaign: Campaign) -> HostSet:
    """Return the hosts whose addresses the Initiator's packets have; those behind B4s have the same behind each."""
    return b4_hosts(campaign) if campaign.technology.has_b4s else foreground_hosts(campaign, campaign.roles.inside)


def foreground_hosts(campaign: Campaign, side: SideName) -> HostSet:
    """Return the foreground hosts of one side; only once they are known."""
    return HostSet.of(campaign.roles.host_family(side), campaign.hosts(side))


def initiator_prefixes(campaign: Campaign) -> tuple[Network, ...]:
    """Return the smallest prefix that holds every host of the Initiator."""
    hosts = source_hosts(campaign)
    length = 8 * hosts.octets - (hosts.lowest ^ hosts.highest).bit_length()
    network = IPv4Network if hosts.family == "ipv4" else IPv6Network
    return (network((hosts.lowest, length), strict=False),)


def pool_endpoints(campaign: Campaign) -> int:
    """Return how many public endpoints (address and port) the gateway has."""
    addresses = sum(prefix.num_addresses for prefix in distinct(campaign.forwarding.pool))
    return addresses * pool_port_count(campaign)


def pool_port_count(campaign: Campaign) -> int:
    """Return how many ports of each public address the gateway uses: a customer edge those of its set, but never 0."""
    edge, span = campaign.edges.gateway, campaign.gateway.pool_ports
    if edge is None or not edge.ports.psid_bits:
        return campaign.gateway.public_ports.count
    return edge.ports.count_within(*(1, PORT_MAX) if span is None else (span.minimum, span.maximum))


def distinct(prefixes: tuple[Network, ...]) -> tuple[Network, ...]:
    """Leave out prefixes that lie within others, so that no address counts twice."""
    kept: list[Network] = []
    for prefix in sorted(prefixes, key=lambda network: (network.version, network.prefixlen)):
        if not any(prefix.version == wide.version and prefix.overlaps(wide) for wide in kept):
            kept.append(prefix)
    return tuple(kept)


def sources_with_ports(campaign: Campaign, count: int) -> int:
    """Return how many public endpoints the first `count` connections need (RFC 4787 section 4.1).

    With endpoint-dependent mapping those of one destination, with endpoint-independent mapping one for each endpoint of
    the Initiator that may be among them.
    """
    space = tuple_space(campaign, count)
    if campaign.gateway.mapping == "endpoint_independent" and campaign.connections_model.order == "pseudorandom":
        return min(space.sources, count)
    return sources_of_one_destination(campaign, count)


def sources_of_one_destination(campaign: Campaign, count: int) -> int:
    """Return how many endpoints of the Initiator some destination certainly sees among the first `count` connections.

    A gateway with endpoint-dependent mapping needs as many public endpoints for that destination alone; one with
    endpoint-independent mapping needs as many for the Initiator's endpoints, of which that destination sees a part
    (RFC 4787 section 4.1). In sequential order the first destination sees most; in pseudorandom order no destination
    can see fewer than the average, rounded up, in the best case.
    """
    space = tuple_space(campaign, count)
    if campaign.connections_model.order == "pseudorandom":
        return -(-count // space.destinations)
    ports = space.source_ports.count
    hosts, rest = divmod(count, ports * space.destination_ports.count)  # source host above destination port
    return space.sources if hosts >= space.source_hosts else hosts * ports + min(rest, ports)


def count_max(campaign: Campaign) -> int:
    """Return the most connections that the four-tuples and the public endpoints of the gateway allow."""
    sources, destinations = _endpoints(campaign)
    if not campaign.bed.forwards_unchanged:
        sources = min(sources, pool_endpoints(campaign))
    return min(sources * destinations, CONNECTIONS_MAX)


def storable_max(campaign: Campaign, count: int) -> int:
    """Return how many of `count` connections may be stored: a customer edge has its ports once for each destination."""
    if not campaign.technology.is_edge or campaign.bed.forwards_unchanged:
        return count_max(campaign)
    return min(count_max(campaign), pool_endpoints(campaign) * tuple_space(campaign, count).destinations)


def searched_max(campaign: Campaign) -> int:
    """Return the most connections at which a search for the gateway's capacity makes sense.

    A customer edge has so few public endpoints that they may well be its capacity, so the search goes beyond them.
    """
    if not campaign.technology.is_edge:
        return count_max(campaign)
    sources, destinations = _endpoints(campaign)
    return min(sources * destinations, CONNECTIONS_MAX)


def _endpoints(campaign: Campaign) -> tuple[int, int]:
    """Return how many endpoints Initiator and Responder have; of ports that are left open, all."""
    ports = campaign.connections_model.destination_ports or open_ports(campaign)
    space = tuple_space(campaign, 1)
    return space.sources, space.destination_hosts * ports.count


def time_needed_ns(campaign: Campaign, count: int, connections_per_second: int, phase_two_ns: int) -> int:
    """Return for how long the gateway must keep a connection without frames, in nanoseconds (RFC 9693 section 4.4).

    From the first frame of test phase 1 to the last one of what follows: a connection may be the first that is
    established and the last that is used.
    """
    connections = campaign.connections_model
    phase_one_ns = -(-count * defaults.SECOND_NS // connections_per_second)
    waits_ns = connections.timeout_ns + connections.gap_ns + campaign.trial.drain_ns
    ramp_ns = (count - 1) * (campaign.traffic.flow_interval_ns or 0) if phase_two_ns else 0
    return phase_one_ns + waits_ns + ramp_ns + phase_two_ns + defaults.TIMEOUT_MARGIN_NS
