"""What a stateful campaign must satisfy once its technology and sides are known: pool, ports, table, timeouts. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from gatemark.config import defaults
from gatemark.config.check import procedure_keys
from gatemark.config.hosts import HostSet
from gatemark.config.model import Campaign
from gatemark.config.problems import no_macs_of_hosts, problem
from gatemark.config.stateful import (
    b4_hosts,
    distinct,
    foreground_hosts,
    host_count,
    open_ports,
    pool_endpoints,
    pool_port_count,
    source_hosts,
    sources_with_ports,
    time_needed_ns,
    tuple_space,
)
from gatemark.config.tables import DestinationPortsModel, GatewayAction, SourcePortsModel
from gatemark.config.types import CONNECTIONS_MAX
from gatemark.errors import Problem
from gatemark.units import format_duration_ns

FOUR_TUPLES_MAX = 1 << 40
"""An order of them is a permutation of so many numbers at most."""


def stateful_problems(campaign: Campaign, skip: frozenset[str] = frozenset()) -> Iterator[Problem]:
    """Yield every reason why a stateful campaign cannot be run; the sides must have their foreground hosts."""
    yield from _control(campaign)
    if campaign.technology.has_b4s:
        yield from _private_hosts(campaign, b4_hosts(campaign), "b4")
        yield from _b4s(campaign)
    elif campaign.technology.is_behind_b4:
        inside = campaign.roles.inside
        yield from _private_hosts(campaign, foreground_hosts(campaign, inside), f"{inside}.ipv4")
    yield from _pool(campaign)
    yield from _traffic(campaign)
    if skip & {"connections", *procedure_keys(campaign)}:
        return
    yield from _connections(campaign)
    if campaign.bed.has_gateway and not campaign.forwarding.pool:
        return
    space = tuple(_space(campaign))
    yield from space
    if not space and campaign.bed.has_gateway:
        yield from _port_space(campaign)
    for table in campaign.tables:
        yield from table.stateful_problems(campaign)
    yield from _table(campaign)
    yield from _timeout(campaign)


def _control(campaign: Campaign) -> Iterator[Problem]:
    """Before each trial the table is emptied (RFC 9693 section 4.4)."""
    if campaign.bed.has_gateway and campaign.control.model.boot != "trial":
        reason = "every trial begins with an empty connection tracking table (RFC 9693 section 4.4)"
        yield from action_problems(campaign, "clear_state", reason)


def add_to_recipe(campaign: Campaign, action: GatewayAction) -> str:
    """Say what to do where the recipe has no command for an action."""
    if campaign.technology.in_a_row:
        return "measure one of both gateways alone"
    return f"copy the recipe and add {action} under [commands]"


def action_problems(campaign: Campaign, action: GatewayAction, reason: str) -> Iterator[Problem]:
    """The gateway has a command for an action."""
    if action in campaign.control.actions:
        return
    if campaign.bed.has_recipe:
        yield problem(
            campaign,
            "testbed.recipe",
            f"{campaign.testbed.recipe} has no command {action}: {reason}",
            add_to_recipe(campaign, action),
        )
    else:
        yield problem(
            campaign,
            f"gateway.control.{action}",
            f"is missing: {reason}",
            'write for example "conntrack -F", and gateway.control.host = "root@192.0.2.1"',
        )


def _pool(campaign: Campaign) -> Iterator[Problem]:
    """The public addresses: of the outside's family, few enough, no host among them; of a customer edge its own."""
    if not campaign.bed.has_gateway or campaign.technology.is_edge:
        return
    family, key = campaign.roles.family(campaign.roles.outside), "gateway.pool"
    name, example = ("IPv4", "198.19.0.1/32") if family == "ipv4" else ("IPv6", "2001:2:0:8000::1/128")
    if not campaign.gateway.pool:
        yield problem(
            campaign,
            key,
            "is missing: the file does not give the addresses that connections are translated to",
            f'write the public addresses of the gateway, for example pool = ["{example}"]',
        )
        return
    wrong = [prefix for prefix in campaign.gateway.pool if prefix.version != (4 if family == "ipv4" else 6)]
    for prefix in wrong:
        yield problem(
            campaign,
            key,
            f"{prefix} is not {name}, the family on the {campaign.roles.outside} side of {campaign.technology.name}",
            f"write {name} prefixes, for example {example}",
        )
    if sum(prefix.num_addresses for prefix in distinct(campaign.gateway.pool)) > CONNECTIONS_MAX:
        yield problem(campaign, key, "holds more than 2^40 addresses", "write only those that the gateway uses")
    responder = foreground_hosts(campaign, campaign.roles.outside)
    for role, side, hosts in (
        ("Responder", campaign.roles.outside, responder),
        ("Initiator", campaign.roles.inside, source_hosts(campaign)),
    ):
        key_of_hosts = "b4" if hosts is not responder and campaign.technology.has_b4s else f"{side}.{hosts.family}"
        for prefix in campaign.gateway.pool:
            if hosts.meets_prefix(prefix):
                yield problem(
                    campaign,
                    key,
                    f"{prefix} holds hosts of the {role} ({hosts})",
                    f"write only addresses of the gateway, or move the hosts ({key_of_hosts})",
                )


def _private_hosts(campaign: Campaign, hosts: HostSet, at: str) -> Iterator[Problem]:
    """Hosts behind a B4 have private addresses: an AFTR drops packets of all others (RFC 6333 section 11)."""
    if not any(hosts.numbers_in(network) == hosts.numbers for network in defaults.B4_HOST_NETWORKS):
        yield problem(
            campaign,
            f"{at}.address" if hosts.offset is None else f"{at}.hosts.range",
            f"{hosts} lies in neither private address block (RFC 1918) nor in 192.0.0.0/29 (RFC 6333 section 5.7)",
            f'write for example address = "{defaults.B4_HOST}"',
        )


def _b4s(campaign: Campaign) -> Iterator[Problem]:
    """B4s share the addresses of the hosts behind them; both together have a number of 16 bits."""
    inside, hosts = campaign.roles.inside, b4_hosts(campaign)
    b4s, count = foreground_hosts(campaign, inside), len(hosts.numbers)
    if (b4s.maximum + 1) * count > defaults.B4_HOSTS_MAX:
        most = defaults.B4_HOSTS_MAX // count - 1
        yield problem(
            campaign,
            f"{inside}.ipv6.hosts.range",
            f"has {host_count(campaign, inside):,} B4s up to number {b4s.maximum:,}; with {count:,} hosts behind each"
            f" the last one may have number {most:,}",
            "write lower numbers or fewer B4s, or fewer hosts behind each",
        )
    yield from no_macs_of_hosts(campaign, inside, "a B4 has the MAC address of the port")


def _traffic(campaign: Campaign) -> Iterator[Problem]:
    """Foreground is what connections carry; ports of `traffic` are for native background alone."""
    traffic = campaign.traffic
    for mix in traffic.mix:
        if not mix.has_foreground:
            yield problem(
                campaign, "traffic.mix", f"{mix} has no foreground to establish connections with", "leave it out"
            )
    if campaign.traffic.has_background and campaign.technology.translates_background and campaign.bed.has_gateway:
        yield problem(
            campaign,
            "traffic.mix",
            f"has native IPv6 background, but {campaign.technology.name} translates IPv6 from the same hosts",
            'write mix = "1/1"',
        )
    elif not campaign.traffic.has_background:
        for key in _ports_set(campaign):
            yield problem(
                campaign,
                key,
                "has no effect: connections have ports of their own, and there is no background",
                f"write connections.{key.rpartition('.')[2]}, or leave it out",
            )


def _ports_set(campaign: Campaign) -> Iterator[str]:
    traffic = campaign.traffic
    if traffic.source_ports != SourcePortsModel():
        yield "traffic.source_ports"
    if traffic.destination_ports != DestinationPortsModel():
        yield "traffic.destination_ports"
    for name, way in (("forward", traffic.forward), ("reverse", traffic.reverse)):
        for key in ("source_ports", "destination_ports"):
            if way is not None and getattr(way, key) is not None:
                yield f"traffic.{name}.{key}"


def _connections(campaign: Campaign) -> Iterator[Problem]:
    """How many connections, and how fast they are established before something else is measured."""
    with_count = [table for table in campaign.tables if table.first_count is None]
    if not campaign.connections_model.count and (with_count or not campaign.tables):
        yield problem(
            campaign,
            "connections.count",
            f"is missing: {campaign.technology.name} is measured with a given number of connections",
            'write under [connections] for example count = ["10k", "100k", "1M"] (RFC 9693 section 4.1)',
        )
    filled = [table.key for table in campaign.tables if table.begins_with_full_table]
    if filled and isinstance(campaign.connections_model.rate, Fraction) and not campaign.finds_connection_rate:
        yield problem(
            campaign,
            "connections.rate",
            f"is a share of the maximum connection establishment rate; {filled[0]} needs this rate, but the campaign"
            " does not measure it",
            f'add a table [{campaign.connection_rate_key}], or write connections/s, for example rate = "10k"',
        )


def _space(campaign: Campaign) -> Iterator[Problem]:
    """There must be as many four-tuples as connections (RFC 9693 section 4.1)."""
    connections = campaign.connections_model
    fix = "emulate more hosts (hosts.range), widen connections.source_ports, or lower connections.count"
    space = tuple_space(campaign, max(connections.count, default=1))
    if space.product > FOUR_TUPLES_MAX:
        what = f"gives {space.product:,} four-tuples ({space.sources:,} source endpoints to {space.destinations:,}"
        yield problem(
            campaign,
            "connections.source_ports",
            f"{what} destination endpoints), more than the 2^40 that connections are chosen from",
            "narrow the ranges of ports or hosts, or leave connections.destination_ports out",
        )
    for count in sorted(connections.count, reverse=True):
        space = tuple_space(campaign, count)
        if space.product < count:
            yield problem(
                campaign,
                "connections.destination_ports",
                f"{space.destination_ports} gives {space.product} four-tuples ({space.sources} source endpoints to"
                f" {space.destinations} destination endpoints), fewer than the {count} connections",
                f"widen the range or leave it out, or {fix}",
            )
            return
        if connections.destination_ports is None and space.destination_ports.maximum > open_ports(campaign).maximum:
            yield problem(
                campaign,
                "connections.count",
                f"{count} connections need {space.destination_ports.count} destination ports with {space.sources}"
                f" source endpoints and {space.destination_hosts} destination hosts",
                fix,
            )
            return


def _port_space(campaign: Campaign) -> Iterator[Problem]:
    """The gateway needs a public endpoint for each source endpoint, with one destination or with all (RFC 4787)."""
    public, ports = pool_endpoints(campaign), pool_port_count(campaign)
    for count in sorted(campaign.connections_model.count, reverse=True):
        needed = sources_with_ports(campaign, count)
        if needed > public:
            yield _too_few_ports(campaign, public, ports, count, needed)
            return


def _too_few_ports(campaign: Campaign, public: int, ports: int, count: int, needed: int) -> Problem:
    """Say that connections need more public endpoints than the gateway has."""
    fix = "narrow connections.source_ports or the Initiator's hosts, widen connections.destination_ports"
    reason = f"{count} connections give one destination {needed} source endpoints"
    if campaign.gateway.mapping == "endpoint_independent":
        reason = f"{count} connections have up to {needed} source endpoints, each with a port of its own (RFC 4787)"
    if campaign.edges.gateway is not None:
        (address,) = campaign.forwarding.pool
        what = f"{address.network_address} has a set of {public} ports, but {reason}"
        return problem(campaign, "map", what, f"lower connections.count, or {fix}")
    span = campaign.gateway.public_ports
    what = f"has {public} endpoints ({public // ports} addresses with ports {span}), but {reason}"
    return problem(campaign, "gateway.pool", what, f"{fix}, or give the gateway more public addresses")


def _table(campaign: Campaign) -> Iterator[Problem]:
    size, count = campaign.gateway.table.size, max(campaign.connections_model.count, default=0)
    if size is not None and size < count:
        yield problem(
            campaign,
            "gateway.table.size",
            f"is {size}, fewer than the {count} connections",
            f"raise gateway.table.size to {count} or more, or lower connections.count",
        )


def _timeout(campaign: Campaign) -> Iterator[Problem]:
    """No connection may expire before the trial that uses it has ended (RFC 9693 section 4.4)."""
    timeout_ns = campaign.gateway.table.udp_timeout_ns
    if timeout_ns is None or not campaign.connections_model.count:
        return
    count = max(campaign.connections_model.count)
    needed_ns, reason = max(_needed(campaign, count), default=(0, ""))
    if needed_ns > timeout_ns:
        seconds = -(-needed_ns // defaults.SECOND_NS)
        yield problem(
            campaign,
            "gateway.table.udp_timeout",
            f"is {format_duration_ns(timeout_ns)}, but connections must live for {seconds}s: {reason}",
            f'set gateway.table.udp_timeout = "{seconds}s" or more on the gateway, raise the rate, or lower'
            " connections.count or the sending time",
        )


def _needed(campaign: Campaign, count: int) -> Iterator[tuple[int, str]]:
    """Yield for how long connections must live, and for what, as far as the rates are known before the first trial."""
    rate = campaign.connections_model.rate
    for table in campaign.tables:
        yield from table.lifetimes(campaign, count)
        if not isinstance(rate, int) or not table.begins_with_full_table:
            continue
        phase_one = f"phase 1 of {count} connections at {rate} connections/s"
        length_ns = table.phase_two_ns(campaign)
        if length_ns is None:
            yield time_needed_ns(campaign, count, rate, 0), f"{phase_one} before what {table.key} measures"
        else:
            reason = f"{phase_one}, the waits, and phase 2 of {format_duration_ns(length_ns)}"
            yield time_needed_ns(campaign, count, rate, length_ns), reason
