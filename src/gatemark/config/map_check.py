"""What MAP domains of a campaign file must satisfy, alone and together with the addresses of both sides. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Network

from gatemark.config.hosts import HostSet, first_non_global, non_global_words
from gatemark.config.map_tables import MapModel
from gatemark.config.model import Campaign, CampaignFile
from gatemark.config.only import MAP_EDGES
from gatemark.config.problems import in_file, no_macs_of_hosts, problem
from gatemark.config.tables import FamilyModel
from gatemark.embedded_ipv4 import EMBEDDED_OCTETS, WELL_KNOWN_PREFIX, embed_ipv4
from gatemark.errors import Problem
from gatemark.map_domains.domain import Edge, MapDomain
from gatemark.map_domains.problems import domain_problems
from gatemark.technology import SIDES, SideName, Technology


def check_map(campaign: CampaignFile) -> Iterator[Problem]:
    """What the rules must satisfy, before anything is known of the sides."""
    table = campaign.map
    if table is None:
        return
    for key in ("forward_ports", "reverse_ports"):
        if getattr(table, key) in ("increasing", "decreasing") and table.choice != "cycle":
            what = f"is {getattr(table, key)}, but ports cannot be taken in turn from customer edges that are drawn"
            yield problem(campaign, f"map.{key}", what, 'choose "pseudorandom" or "fixed", or set map.choice = "cycle"')
    if table.domains and table.softwires:
        what = "are set together with map.domains, but a gateway has either MAP rules or a binding table"
        yield problem(campaign, "map.softwires", what, "leave one of them out")
        return
    yield from (in_file(campaign, of_rule) for of_rule in domain_problems(table.whole_rules, edges=table.edges))


def complete_map(campaign: Campaign) -> Iterator[Problem]:
    """What rules and addresses must satisfy once gateway and sides are known: no address is in two places."""
    table, technology = campaign.map, campaign.technology
    if table is None:
        if technology.has_rules:
            yield problem(campaign, "map", f"is missing: {technology.name} needs its rules", _example(technology))
        return
    if not technology.has_rules:
        return  # the table does not apply, which is a problem of its own
    missing = tuple(_missing_default_rules(campaign, table))
    yield from missing
    if missing:
        return
    if technology.is_edge:
        yield from _gateway_edge(campaign, table)
        return
    yield from no_macs_of_hosts(campaign, "left", "customer edges have the MAC address of the port")
    tunnel = campaign.gateway.tunnel
    if tunnel is not None and tunnel.address is not None:
        yield from _held_addresses(campaign, table, "gateway.tunnel.address", HostSet.single(tunnel.address))
    for side, model, hosts in _host_sets(campaign):
        family = hosts.family
        yield from _held_addresses(campaign, table, f"{side}.{family}", hosts)
        for role in ("gateway", "router"):
            address = getattr(model, role)
            if address is not None:
                yield from _held_addresses(campaign, table, f"{side}.{family}.{role}", HostSet.single(address))
        if family == "ipv4":
            yield from _not_represented(campaign, table, hosts)


def _example(technology: Technology) -> str:
    if technology.has_bindings:
        return "add [[map.softwires]] with ipv6, ipv4 and psid_bits"
    return f"add [[map.domains]] with ipv6, ipv4, ea_bits{' and dmr' if technology.has_default_rules else ''}"


def _missing_default_rules(campaign: Campaign, table: MapModel) -> Iterator[Problem]:
    for index, domain in enumerate(table.domains):
        if domain.dmr is None and campaign.technology.has_default_rules:
            what = f"is missing: {campaign.technology.name} represents all IPv4 addresses outside by it"
            fix = 'write a prefix outside of all rules, such as dmr = "2001:2:0:6400::/96" (RFC 7599 section 5.1)'
            yield problem(campaign, f"map.domains[{index}].dmr", what, fix)


def _gateway_edge(campaign: Campaign, table: MapModel) -> Iterator[Problem]:
    """The customer edge that the gateway is: which one, and that no host has its addresses."""
    rules = table.whole_rules
    if len(rules) != 1:
        what = f"has {len(rules)} rules, but the gateway has one, that of its own domain"
        yield problem(
            campaign, table.key if rules else "map", what, "write its basic mapping rule only (RFC 7597 section 5)"
        )
        return
    if any(domain_problems(rules)):
        return
    yield from _end_user_prefix(campaign, table)
    if campaign.edges.gateway is None:
        return
    if rules[0].kind == "IPv4 prefix":
        what = f"gives the gateway {campaign.edges.gateway.ipv4_network}, but gatemark measures gateways of one address"
        yield problem(campaign, f"{table.key}[0]", what, "write a rule for a whole or a shared address")
    yield from _addresses_of_gateway(campaign, table)


def _end_user_prefix(campaign: Campaign, table: MapModel) -> Iterator[Problem]:
    rule, prefix, key = table.whole_rules[0], table.end_user_prefix, "map.end_user_prefix"
    length = rule.delegated_length
    if prefix is None:
        if rule.ea_bits or rule.in_identifier:
            example = (
                IPv6Network((rule.edge(0).address, length)) if rule.in_identifier else rule.edge(0).end_user_prefix
            )
            what = f"is missing: the rule has {rule.edge_count} customer edges, and the gateway is one of them"
            yield problem(campaign, key, what, f"write its IPv6 prefix, for example {example}")
    elif rule.in_identifier and campaign.edges.gateway is None:
        what = f"{prefix} is not the address of an lwB4"
        fix = (
            f"{rule.rule_ipv6}, 16 zero bits, the IPv4 address and the PSID make one (RFC 7596 section 5.1), with /128"
        )
        yield problem(campaign, key, what, fix)
    elif prefix.prefixlen != length:
        what = f"{prefix} has length {prefix.prefixlen}, but rule and EA bits have {length} bits"
        yield problem(campaign, key, what, "write the prefix that was delegated to the gateway (RFC 7597 section 5.2)")
    elif not prefix.subnet_of(rule.rule_ipv6):
        what = f"{prefix} is not within {rule.rule_ipv6}, the rule IPv6 prefix"
        yield problem(campaign, key, what, "write the prefix of a customer edge of this rule, or its rule")


def _addresses_of_gateway(campaign: Campaign, table: MapModel) -> Iterator[Problem]:
    """Neither a host nor a link has the gateway's addresses, and no server is a customer edge of the rule."""
    edge, rule = campaign.edges.gateway, table.whole_rules[0]
    assert edge is not None, "the rule has a problem"
    subnet = ("MAP address", IPv6Network(edge.address)) if rule.in_identifier else _map_subnet(edge)
    held = (("rule IPv4 prefix", rule.rule_ipv4), subnet)
    for side, _, hosts in _host_sets(campaign):
        if campaign.roles.mesh and campaign.roles.is_behind_relay(side, hosts.family):
            yield from _mesh(campaign, table, edge, f"{side}.{hosts.family}", hosts)
            continue
        is_embedded = rule.dmr is not None and side == campaign.roles.outside and not campaign.roles.mesh
        for name, prefix in (*held, *(_embedded(rule) if is_embedded else ())):
            if hosts.meets_prefix(prefix):
                what = f"{hosts} meets {prefix}, the {name} of {table.key}[0]"
                fix = "choose an address outside it: addresses inside belong to customer edges"
                if (
                    prefix == rule.rule_ipv4
                    and side == campaign.roles.outside
                    and not MAP_EDGES.refusal(campaign.technology, campaign.bed)
                ):
                    fix += "; to measure what goes to them directly, write map.mesh = {}"
                yield problem(campaign, f"{side}.{hosts.family}", what, fix)


def _mesh(campaign: Campaign, table: MapModel, edge: Edge, at: str, hosts: HostSet) -> Iterator[Problem]:
    """The hosts outside are other customer edges of the rule, and connections go to ports that all of them have."""
    rule, peers = edge.domain, table.peers
    if peers is None:
        if not rule.suffix_bits:
            what = f"does not apply: {rule.rule_ipv4} is the gateway's address, and no other customer edge has one"
            yield problem(campaign, "map.mesh", what, "leave it out, or write a rule of several IPv4 addresses")
        else:
            what = f"is not a PSID of {table.key}[0], which has {rule.psid_length} bits for it"
            yield problem(campaign, "map.mesh.psid", what, f"write 0 to {rule.sharing_ratio - 1}")
        return
    lowest, highest = IPv4Address(hosts.lowest), IPv4Address(hosts.highest)
    if lowest not in rule.rule_ipv4 or highest not in rule.rule_ipv4:
        what = f"{hosts} are not all within {rule.rule_ipv4}, the rule IPv4 prefix of {table.key}[0]"
        yield problem(campaign, at, what, f"write addresses of other customer edges, such as {next(iter(peers)).ipv4}")
    elif edge.ipv4 in hosts:
        what = f"{hosts} has {edge.ipv4}, the gateway's own IPv4 address"
        yield problem(campaign, at, what, "leave it out: a gateway treats packets to it as its own")
    span = campaign.connections_model.destination_ports
    if span is not None and not peers.has_ports(span.minimum, span.maximum):
        what = f"{span} has ports outside of the set of PSID {peers.psid}"
        first, last = peers.first_range
        yield problem(campaign, "connections.destination_ports", what, f'leave it out, or write "{first}-{last}"')


def _map_subnet(edge: Edge) -> tuple[str, IPv6Network]:
    """Return the subnet of a MAP address, the first of the end-user prefix (RFC 7597 section 6), with its name."""
    length = max(64, edge.domain.end_user_prefix_length)
    return "subnet of the MAP address", IPv6Network((edge.address, length), strict=False)


def _embedded(domain: MapDomain) -> Iterator[tuple[str, IPv6Network]]:
    """Yield the prefix under which the domain's own IPv4 addresses would stand outside of it."""
    bits, dmr = domain.rule_ipv4.prefixlen, domain.default_rule
    octets = EMBEDDED_OCTETS[dmr.prefixlen]
    length = dmr.prefixlen if bits == 0 else 8 * octets[(bits - 1) // 8] + (bits - 1) % 8 + 1
    first = embed_ipv4(domain.rule_ipv4.network_address, dmr)
    yield "rule IPv4 prefix under the dmr", IPv6Network((first, length), strict=False)


def _held_addresses(campaign: Campaign, table: MapModel, key: str, hosts: HostSet) -> Iterator[Problem]:
    """Servers, hosts of the background, and what is on the links: none of them is a customer edge."""
    for index, rule in enumerate(table.whole_rules):
        prefixes = (("IPv4 prefix", rule.rule_ipv4), ("IPv6 prefix", rule.rule_ipv6), ("dmr", rule.dmr))
        for name, prefix in prefixes:
            if prefix is not None and hosts.meets_prefix(prefix):
                yield problem(
                    campaign,
                    key,
                    f"{hosts} meets {prefix}, the {name} of {table.key}[{index}]",
                    "choose an address outside all of them: addresses inside belong to customer edges"
                    if name != "dmr"
                    else "choose an address outside it: addresses inside represent IPv4 addresses",
                )


def _not_represented(campaign: Campaign, table: MapModel, hosts: HostSet) -> Iterator[Problem]:
    """The well-known prefix represents global addresses only (RFC 6052 section 3.1)."""
    if campaign.gateway.well_known_prefix_allowed or not campaign.bed.has_gateway:
        return
    users = [index for index, domain in enumerate(table.domains) if domain.dmr == WELL_KNOWN_PREFIX]
    bad = first_non_global(hosts, (), WELL_KNOWN_PREFIX)
    if users and bad is not None:
        yield problem(campaign, f"map.domains[{users[0]}].dmr", *non_global_words(bad, "2001:2:0:6400::/64"))


def _host_sets(campaign: Campaign) -> Iterator[tuple[SideName, FamilyModel, HostSet]]:
    """Yield the hosts of each side and family that the campaign has."""
    for side in SIDES:
        for family, model in campaign.side(side).families.items():
            yield side, model, HostSet.of(family, model, networks=campaign.directions.networks(side))
