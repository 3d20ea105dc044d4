"""What MAP-T domains of a campaign file must satisfy, alone and together with the addresses of both sides. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network

from gatemark.config.hosts import HostSet, Pattern, first_non_global
from gatemark.config.map_tables import MapModel
from gatemark.config.model import Campaign
from gatemark.config.problems import problem
from gatemark.embedded_ipv4 import WELL_KNOWN_PREFIX
from gatemark.errors import Problem
from gatemark.map_domains.problems import domain_problems
from gatemark.technology import Family, SideName, technologies_where

SIDES: tuple[SideName, ...] = ("left", "right")
FAMILIES: tuple[Family, ...] = ("ipv4", "ipv6")


def check_map(campaign: Campaign) -> Iterator[Problem]:
    """What the rules must satisfy, before anything is known of the sides."""
    table = campaign.map
    if table is None:
        return
    for key in ("forward_ports", "reverse_ports"):
        if getattr(table, key) in ("increasing", "decreasing") and table.choice != "cycle":
            what = f"is {getattr(table, key)}, but customer edges that are drawn have no turn to take ports by"
            yield problem(campaign, f"map.{key}", what, 'choose "pseudorandom" or "fixed", or set map.choice = "cycle"')
    for rule_problem in domain_problems(table.whole_rules, edges=table.edges):
        yield problem(campaign, rule_problem.where, rule_problem.what, rule_problem.fix)


def complete_map(campaign: Campaign) -> Iterator[Problem]:
    """What rules and addresses must satisfy once gateway and sides are known: no address is in two places."""
    table, technology = campaign.map, campaign.technology
    if table is None:
        if technology.has_edges:
            fix = "add [[map.domains]] with ipv6, ipv4, ea_bits and dmr"
            yield problem(campaign, "map", f"is missing: {technology.name} needs the rules of its domains", fix)
        return
    if not technology.has_edges:
        fix = f"leave it out, or set technology to {technologies_where(lambda row: row.has_edges)}"
        yield problem(campaign, "map", f"makes no sense for {technology.name}, which has no customer edges", fix)
        return
    yield from _meaningless(campaign)
    for side in SIDES:
        for family in FAMILIES:
            model = campaign.side(side).family(family)
            if model is None:
                continue
            hosts = HostSet.of(family, model, networks=campaign.networks(side))
            yield from _held_addresses(campaign, table, f"{side}.{family}", hosts)
            for role in ("gateway", "router"):
                address = getattr(model, role)
                if address is not None:
                    single = HostSet(family=family, address=int(address), offset=None, minimum=0, maximum=0)
                    yield from _held_addresses(campaign, table, f"{side}.{family}.{role}", single)
            if family == "ipv4":
                yield from _not_represented(campaign, table, hosts)


def _meaningless(campaign: Campaign) -> Iterator[Problem]:
    """Keys that other translators need, and what customer edges cannot have."""
    for key in ("prefix", "eam"):
        if getattr(campaign.gateway, key):
            what = f"makes no sense for {campaign.technology.name}, which translates by the rules of [map]"
            yield problem(campaign, f"gateway.{key}", what, "leave the key out, and write map.domains[].dmr")
    if campaign.networks("left") > 1:
        what = "is above 1 for the reverse direction, whose destinations are customer edges"
        fix = "write destination_networks under [traffic.forward] only, or use several domains"
        yield problem(campaign, "traffic.destination_networks", what, fix)
    if campaign.side("left").host_macs == "random":
        what = "is random, but customer edges have the MAC address of the port"
        yield problem(campaign, "left.host_macs", what, "leave the key out")


def _held_addresses(campaign: Campaign, table: MapModel, key: str, hosts: HostSet) -> Iterator[Problem]:
    """Servers, hosts of the background, and what is on the links: none of them is a customer edge."""
    for index, domain in enumerate(table.domains):
        prefixes = (("rule IPv4 prefix", domain.ipv4), ("rule IPv6 prefix", domain.ipv6), ("dmr", domain.dmr))
        for name, prefix in prefixes:
            if prefix.max_prefixlen == 8 * hosts.octets and _meets(hosts, prefix):
                yield problem(
                    campaign,
                    key,
                    f"{hosts} meets {prefix}, the {name} of map.domains[{index}]",
                    "choose an address outside of every domain: those inside are of customer edges"
                    if name != "dmr"
                    else "choose an address outside of it: those inside stand for IPv4 addresses",
                )


def _not_represented(campaign: Campaign, table: MapModel, hosts: HostSet) -> Iterator[Problem]:
    """The well-known prefix represents global addresses only (RFC 6052 section 3.1)."""
    if campaign.gateway.well_known_prefix_allowed or not campaign.bed.has_gateway:
        return
    users = [index for index, domain in enumerate(table.domains) if domain.dmr == WELL_KNOWN_PREFIX]
    bad = first_non_global(hosts, (), WELL_KNOWN_PREFIX)
    if users and bad is not None:
        yield problem(
            campaign,
            f"map.domains[{users[0]}].dmr",
            f"{WELL_KNOWN_PREFIX} must not represent {bad}, which is not global: translators drop such packets"
            " (RFC 6052 section 3.1)",
            'use a network-specific prefix such as "2001:2:0:6400::/64", or set'
            " gateway.well_known_prefix_allowed = true if the gateway translates them all the same",
        )


def _meets(hosts: HostSet, prefix: IPv4Network | IPv6Network) -> bool:
    addresses = Pattern(int(prefix.network_address), int(prefix.netmask))
    return any(pattern.meets(addresses) for pattern in hosts.patterns())
