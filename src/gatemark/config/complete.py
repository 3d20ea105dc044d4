"""From the campaign file to the campaign: what the recipe knows is filled in, and all of it is checked. Pure.

What several keys must satisfy before anything is known from a recipe is in `gatemark.config.check`; here is what they
must satisfy once technology and sides are known: addresses, translation, sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from gatemark.config.check import file_problems, misplaced
from gatemark.config.complete_stateful import stateful_problems
from gatemark.config.control import control_problems
from gatemark.config.flows import flow_problems
from gatemark.config.hosts import (
    NETWORK_OCTET,
    HostSet,
    first_non_global,
    non_global_words,
    unmapped_host,
)
from gatemark.config.map_check import complete_map
from gatemark.config.merge import merge_recipe
from gatemark.config.model import Campaign, CampaignFile
from gatemark.config.problems import no_macs_of_hosts, problem, raise_if_any
from gatemark.config.recipe import Recipe
from gatemark.config.reserved import EVERYWHERE, Network, host_addresses, reserved_on
from gatemark.config.sixrd import sixrd_problems
from gatemark.config.sizes import frame_size_problems
from gatemark.config.tables import ENDS, FamilyModel
from gatemark.config.types import Span
from gatemark.embedded_ipv4 import WELL_KNOWN_PREFIX
from gatemark.errors import Problem
from gatemark.technology import FAMILY_WORDS, SIDES, Family, SideName


def complete(file: CampaignFile, recipe: Recipe | None = None) -> Campaign:
    """Fill in what the recipe knows, and check all of it.

    Recipes have the Initiator on the left; a file that has it on the right gets the gateway mirrored.
    Raises ConfigError with every reason why the campaign cannot be run.
    """
    if recipe is not None:
        recipe = recipe.facing(file.gateway.inside)
    merged = file if recipe is None else merge_recipe(file, recipe)
    campaign = Campaign.of(merged, recipe)
    problems = () if campaign is None else _problems(campaign)
    raise_if_any([*misplaced(merged), *file_problems(merged), *_unknown(merged), *problems])
    assert campaign is not None, "what is not known is a problem"
    return campaign


def complete_problems(file: CampaignFile, skip: frozenset[str]) -> Iterator[Problem]:
    """Yield why a file without a recipe cannot be run; checks that read a table of `skip` are left out."""
    yield from _unknown(file, skip)
    campaign = Campaign.of(file, None)
    if campaign is not None:
        yield from _problems(campaign, skip)


def _unknown(file: CampaignFile, skip: frozenset[str] = frozenset()) -> Iterator[Problem]:
    """What the file must say where its recipe does not."""
    for key in SIDES:
        if getattr(file, key) is None and key not in skip:
            yield problem(file, key, "is missing", f"add a [{key}] table with the addresses of this side")
    if file.technology is None and "gateway" not in skip and file.bed.has_recipe:
        yield problem(file, "gateway.technology", "is not known", "the recipe must give it")


def _problems(campaign: Campaign, skip: frozenset[str] = frozenset()) -> Iterator[Problem]:
    """What the tables must satisfy together, now that technology and sides are known."""
    if skip & {"gateway", "testbed", "left", "right", "b4"}:
        return
    if "traffic" in skip:
        yield from _overlaps(campaign)
        return
    yield from _families(campaign)
    yield from _overlaps(campaign)
    yield from _reserved(campaign)
    yield from _networks(campaign)
    if campaign.technology.is_translation and (
        campaign.technology.translates_by_prefix or campaign.edges.gateway is not None
    ):
        yield from _mappings(campaign)
    yield from _tunnel(campaign)
    if "map" not in skip:
        yield from complete_map(campaign)
    yield from frame_size_problems(campaign)
    yield from _headers(campaign)
    for table in campaign.tables:
        if table.key not in skip:
            yield from table.complete_problems(campaign)
    yield from control_problems(campaign)
    if campaign.traffic.flow_interval_ns is not None and _has_hosts(campaign):
        yield from flow_problems(campaign)
    if campaign.technology.is_stateful and _has_hosts(campaign):
        yield from stateful_problems(campaign, skip)


def _has_hosts(campaign: Campaign) -> bool:
    families = ((name, kind(name)) for name in SIDES for kind in (campaign.roles.family, campaign.roles.host_family))
    return all(campaign.side(name).family(family) is not None for name, family in families)


def host_set(campaign: Campaign, side: SideName, family: Family) -> HostSet | None:
    """Return the emulated hosts of one side and family, None where there are none."""
    model = campaign.side(side).family(family)
    if model is None:
        return None
    return HostSet.of(family, model, networks=campaign.directions.networks(side))


def _families(campaign: Campaign) -> Iterator[Problem]:
    """Each family in use needs hosts on its side, and a gateway to send to."""
    for name in SIDES:
        side = campaign.side(name)
        for family in campaign.directions.families(name):
            model = side.family(family)
            if model is None:
                reason = (
                    f"{campaign.technology.name} sends {FAMILY_WORDS[family]} there"
                    if family == campaign.roles.family(name)
                    else "background traffic is native IPv6 from end to end (RFC 8219 section 5.3)"
                )
                yield problem(
                    campaign,
                    f"{name}.{family}",
                    f"is missing: {reason}",
                    f"write {family} = {{address = ..., gateway = ...}} under [{name}]",
                )
            elif model.gateway is None and campaign.bed.has_gateway and side.gateway_mac is None:
                yield problem(
                    campaign,
                    f"{name}.{family}.gateway",
                    "is missing",
                    f"write the gateway's {FAMILY_WORDS[family]} address on the {name} side, or {name}.gateway_mac",
                )
        yield from _behind_relay(campaign, name)
        yield from _routers(campaign, name)


def _routers(campaign: Campaign, name: SideName) -> Iterator[Problem]:
    """All hosts behind a router need one, but for those that are behind a relay."""
    side = campaign.side(name)
    for family, model in side.families.items() if side.address_mode == "nexthop" else ():
        if model.router is None and not campaign.roles.is_behind_relay(name, family):
            what = "is missing"
            fix = "address_mode nexthop puts all hosts behind one router: write its address (RFC 2544 appendix C.2.2.2)"
            yield problem(campaign, f"{name}.{family}.router", what, fix)


def _behind_relay(campaign: Campaign, name: SideName) -> Iterator[Problem]:
    """Hosts behind a relay have no neighbour on the link."""
    family = campaign.roles.host_family(name)
    if not campaign.roles.is_behind_relay(name, family) or not campaign.traffic.has_foreground:
        return
    model, words = campaign.side(name).family(family), FAMILY_WORDS[family]
    reached = "by the forwarding mapping rule" if campaign.roles.mesh else "through the tunnel"
    if model is None:
        what = f"is missing: the {words} hosts that the gateway reaches {reached}, behind {name}.ipv6.address"
        yield problem(campaign, f"{name}.{family}", what, f"write {family} = {{address = ...}} under [{name}]")
        return
    yield from no_macs_of_hosts(
        campaign, name, f"all of these hosts have one link-layer address, that of {name}.ipv6.address"
    )
    for key in ("gateway", "router"):
        if getattr(model, key) is not None:
            what = f"does not apply: the gateway reaches these hosts {reached}, behind {name}.ipv6.address"
            yield problem(campaign, f"{name}.{family}.{key}", what, "leave the key out")


def _overlaps(campaign: Campaign) -> Iterator[Problem]:
    """No address belongs to two of: the left hosts, the right hosts, the gateway, the routers."""
    for family in FAMILY_WORDS:
        models = {name: model for name in SIDES if (model := campaign.side(name).family(family)) is not None}
        for name, model in models.items():
            for role in ("gateway", "router"):
                yield from _collisions(campaign, family, name, role, models)
            if model.router is not None and model.router == model.gateway:
                yield problem(
                    campaign, f"{name}.{family}.router", f"{model.router} is the gateway as well", "write two addresses"
                )
        if len(models) < 2:
            continue
        left, right = models["left"], models["right"]
        left_hosts, right_hosts = host_set(campaign, "left", family), host_set(campaign, "right", family)
        assert left_hosts is not None and right_hosts is not None
        ours, theirs = (left_hosts, HostSet.single(left.address)), (right_hosts, HostSet.single(right.address))
        if any(mine.meets(other) for mine in ours for other in theirs):
            yield problem(
                campaign,
                f"right.{family}",
                f"the hosts {right_hosts} overlap the left hosts {left_hosts}",
                "give each side a network of its own, such as "
                + ("198.18.0.0/16 and 198.19.0.0/16" if family == "ipv4" else "2001:2::/49 and 2001:2:0:8000::/49"),
            )
        if left.gateway is not None and left.gateway == right.gateway:
            yield problem(
                campaign,
                f"right.{family}.gateway",
                f"{right.gateway} is the left gateway address as well",
                "write the gateway's address on the right side",
            )


def _collisions(
    campaign: Campaign, family: Family, name: SideName, role: str, models: dict[SideName, FamilyModel]
) -> Iterator[Problem]:
    address = getattr(models[name], role)
    if address is None:
        return
    for other, model in models.items():
        if address == model.address:
            yield problem(
                campaign,
                f"{name}.{family}.{role}",
                f"{address} is {other}.{family}.address, the Tester's own, as well",
                "write two different addresses",
            )
            continue
        hosts = host_set(campaign, other, family)
        if hosts is not None and address in hosts:
            yield problem(
                campaign,
                f"{other}.{family}.hosts.range" if hosts.offset is not None else f"{other}.{family}.address",
                f"the emulated hosts {hosts} contain {address}, the address of the {name} {role}",
                f"leave {address} out of the range, for example 2-254 where the {role} is host 1",
            )


def _reserved(campaign: Campaign) -> Iterator[Problem]:
    """No host, gateway or router has a reserved address: of every network, or of a link that the recipe makes."""
    for name in SIDES:
        side = campaign.side(name)
        for family, model in side.families.items():
            hosts = HostSet.of(family, model, networks=campaign.directions.networks(name))
            if hosts.network_octet_taken:  # a problem of its own
                continue
            link = None if campaign.recipe is None else campaign.recipe.link(name, side, family)
            yield from _reserved_hosts(campaign, f"{name}.{family}", model, hosts, link)


def _reserved_hosts(
    campaign: Campaign, at: str, model: FamilyModel, hosts: HostSet, link: Network | None
) -> Iterator[Problem]:
    reserved = (*EVERYWHERE, *(() if link is None else reserved_on(link)))
    fix = (
        "choose a unicast address outside it" if link is None else "choose from {} to {}".format(*host_addresses(link))
    )
    neighbours = {role: address for role in ("gateway", "router") if (address := getattr(model, role)) is not None}
    free = hosts.numbers_outside([*(entry.prefix for entry in reserved), *map(ip_network, neighbours.values())])
    singles = {role: HostSet.single(address) for role, address in {"address": model.address, **neighbours}.items()}
    for key, held in (("address" if hosts.offset is None else "hosts.range", hosts), *singles.items()):
        for entry in reserved:
            address = held.first_in(entry.prefix)
            if address is None:
                continue
            what = f"{held.text(address)} is {entry.name}"
            if held.lowest != held.highest:
                what = f"the emulated hosts {held} contain {held.text(address)}, {entry.name}"
            is_range = key == "hosts.range" and free
            yield problem(
                campaign, f"{at}.{key}", what, f'write range = "{Span(free[0], free[-1])}"' if is_range else fix
            )


def _networks(campaign: Campaign) -> Iterator[Problem]:
    """Several destination networks need an octet that the hosts leave alone (RFC 2544 section 12).

    Addresses of customer edges have none: what is inside follows from what is outside.
    """
    technology = campaign.technology
    if (technology.has_edges or technology.delegates_prefixes) and campaign.directions.networks("left") > 1:
        what = "is above 1 for the reverse direction, whose destinations are customer edges"
        fix = "write destination_networks under [traffic.forward] only"
        yield problem(campaign, "traffic.destination_networks", what, fix)
    for name in SIDES:
        for family in dict.fromkeys((*campaign.directions.families(name), campaign.roles.host_family(name))):
            hosts = host_set(campaign, name, family)
            if hosts is not None and hosts.network_octet_taken:
                octet = NETWORK_OCTET[family]
                yield problem(
                    campaign,
                    f"{name}.{family}.hosts",
                    f"the range {hosts.minimum}-{hosts.maximum} at offset {hosts.offset} varies octet {octet}, which"
                    f" traffic.destination_networks = {hosts.networks} varies as well",
                    f"end the range at 255 or less with offset {octet}, choose another offset,"
                    " or set destination_networks = 1",
                )


def _mappings(campaign: Campaign) -> Iterator[Problem]:
    """Every host has a representation in the other family, and one that the gateway may translate.

    A stateful gateway represents the Initiator's hosts by its pool, so only the Responder's need one.
    """
    gateway, prefix = campaign.gateway, campaign.forwarding.prefix
    key = "gateway.prefix" if campaign.edges.gateway is None else "map.domains[0].dmr"
    if prefix is None and not gateway.eam:
        yield problem(
            campaign,
            "gateway.prefix",
            f"is missing: {campaign.technology.name} represents hosts by a prefix or by explicit mappings",
            'write for example prefix = "2001:2:0:6400::/96", or gateway.eam',
        )
        return
    if not campaign.traffic.has_foreground:
        return
    for name in (campaign.roles.outside,) if campaign.technology.is_stateful else SIDES:
        family = campaign.roles.family(name)
        hosts = host_set(campaign, name, family)
        if hosts is None or (campaign.roles.mesh and name == campaign.roles.outside):
            continue
        unmapped = unmapped_host(hosts, prefix, gateway.eam)
        if unmapped is not None:
            yield problem(
                campaign,
                f"{name}.{family}",
                f"host {hosts.text(unmapped)} has no representation in the other family:"
                f" neither gateway.eam nor {key} covers it",
                "add a mapping that covers all hosts to gateway.eam (RFC 7757), or choose addresses under"
                f" {key} (RFC 6052)",
            )
        elif prefix == WELL_KNOWN_PREFIX and not gateway.well_known_prefix_allowed and campaign.bed.has_gateway:
            bad = first_non_global(hosts, gateway.eam, prefix)
            if bad is not None:
                yield problem(campaign, key, *non_global_words(bad, "2001:2:0:6400::/96"))


def _tunnel(campaign: Campaign) -> Iterator[Problem]:
    """A gateway with tunnels has an end of them, which is no host's address."""
    if not campaign.technology.has_tunnels or campaign.technology.is_edge:
        return
    tunnel, key = campaign.gateway.tunnel, "gateway.tunnel.address"
    if tunnel is None or tunnel.address is None:
        what = f"is missing: the tunnels of {campaign.technology.name} end at an address of the gateway"
        yield problem(campaign, key, what, 'write for example tunnel = {address = "2001:2:0:ffff::1"} under [gateway]')
        return
    if campaign.technology.delegates_prefixes:
        yield from sixrd_problems(campaign)
    elif tunnel.address.version != 6:
        what = f"is {tunnel.address}, but the tunnels of {campaign.technology.name} are in IPv6"
        yield problem(campaign, key, what, "write the IPv6 address of the gateway's end")
    for name in SIDES:
        hosts = host_set(campaign, name, "ipv4" if tunnel.address.version == 4 else "ipv6")
        if hosts is not None and tunnel.address in hosts:
            what = f"{tunnel.address} is one of the hosts {hosts} on the {name} side"
            yield problem(campaign, key, what, "write the gateway's own address")


def _headers(campaign: Campaign) -> Iterator[Problem]:
    """Frames must survive the gateway, and no setting may be without effect."""
    for way in campaign.directions.in_use:
        traffic = campaign.directions.traffic_of(way)
        decrement = max(campaign.forwarding.hop_limit_decrement, campaign.forwarding.background_hop_limit_decrement)
        if traffic.hop_limit <= decrement:
            yield problem(
                campaign,
                "traffic.hop_limit",
                f"{traffic.hop_limit} does not survive a gateway that takes {decrement} off",
                "write a hop limit above gateway.hop_limit_decrement, for example 10 (RFC 2544 appendix C.2.6.4)",
            )
    yield from _checksums(campaign)
    yield from _marks(campaign)


def _marks(campaign: Campaign) -> Iterator[Problem]:
    """Only IPv6 has flow labels, and only the first extension header may be hop-by-hop."""
    traffic, technology = campaign.traffic, campaign.technology
    if traffic.flow_label and "ipv6" not in technology.packet_families and not traffic.has_background:
        what = f"has no effect: {technology.name} forwards no IPv6"
        yield problem(campaign, "traffic.flow_label", what, "leave it out")
    if "hop_by_hop" in traffic.extension_headers[1:]:
        what = "lists hop_by_hop behind another header, or twice"
        yield problem(campaign, "traffic.extension_headers", what, "write it first, and once (RFC 8200 section 4.1)")


def _checksums(campaign: Campaign) -> Iterator[Problem]:
    """UDP may do without a checksum over IPv4 only."""
    is_ipv6_between = campaign.technology.in_a_row is not None and campaign.technology.translates_within
    for way in campaign.directions.in_use:
        sender, receiver = ENDS[way]
        is_ipv6 = campaign.roles.packet_family(sender) == "ipv6"
        if campaign.directions.traffic_of(way).udp_checksum != "zero" or not (is_ipv6 or is_ipv6_between):
            continue
        settings = campaign.traffic.forward if way == "forward" else campaign.traffic.reverse
        named = settings is not None and settings.udp_checksum is not None
        other = "reverse" if way == "forward" else "forward"
        fix = 'write udp_checksum = "computed", or leave the key out'
        if is_ipv6 and not named and campaign.roles.packet_family(receiver) == "ipv4":
            fix = f'write udp_checksum = "zero" under [traffic.{other}] only, whose frames are IPv4'
        yield problem(
            campaign,
            f"traffic.{way}.udp_checksum" if named else "traffic.udp_checksum",
            f"is zero, but {way} frames are IPv6{'' if is_ipv6 else ' between both translators'}, where UDP must have a"
            " checksum (RFC 8200 section 8.1)",
            fix,
        )
