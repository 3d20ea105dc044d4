"""Where a campaign leaves the RFCs: one sentence each, with the section. Pure; the plan and the report print them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from gatemark.campaign.plan import procedures_of
from gatemark.config import defaults
from gatemark.config.complete import host_set
from gatemark.config.hosts import represented
from gatemark.config.model import Campaign
from gatemark.config.reserved import Network
from gatemark.config.sizes import measured_octets, standard_octets
from gatemark.config.stateful import count_max, tuple_space
from gatemark.config.tables import ENDS
from gatemark.config.types import Mix, Span
from gatemark.embedded_ipv4 import WELL_KNOWN_PREFIX
from gatemark.results.document import Deviation
from gatemark.technology import SIDES, Family, SideName
from gatemark.units import format_duration_ns

STANDARD_MIXES = (Mix(1, 1), Mix(9, 10), Mix(1, 2), Mix(1, 10))
Address = IPv4Address | IPv6Address
BENCHMARKING_NETWORKS = (IPv4Network("198.18.0.0/15"), IPv6Network("2001:2::/48"))

FEW_SOURCES = 10_000
"""RFC 9693 section 4.1 wants a few times as many source ports."""


ROUTES_ARE_STATIC = Deviation(
    sentence="No routing update is sent before a trial; routes are static (RFC 2544 sections 13 and 23 a).",
    rules_out_claim=True,
)
"""RFC 2544 section 13 says MUST, so this alone rules out the claim of section 5."""


def deviations(campaign: Campaign) -> tuple[Deviation, ...]:
    """Return where this campaign deviates from RFC 2544, 4814, 5180, 6201, 8219, 9004 and 9693.

    What it leaves out is a deviation too. The technology and the sides of the campaign must be known.
    """
    collected = [
        *_of_the_gateway(campaign),
        *(Deviation(sentence=sentence) for sentence in _of_the_traffic(campaign)),
        *_of_the_trial(campaign),
    ]
    for procedure in dict.fromkeys(procedure.run for procedure in procedures_of(campaign)):
        collected += procedure.deviations(campaign)
    if campaign.technology.is_stateful:
        collected += (Deviation(sentence=sentence) for sentence in _of_the_connections(campaign))
    return tuple(collected)


def _of_the_gateway(campaign: Campaign) -> Iterator[Deviation]:
    if not campaign.bed.has_gateway:
        yield Deviation(sentence="No gateway is measured: the ports are looped back.", rules_out_claim=True)
        return
    yield ROUTES_ARE_STATIC
    yield from (Deviation(sentence=sentence) for sentence in _of_a_gateway(campaign))


def _of_a_gateway(campaign: Campaign) -> Iterator[str]:
    static = [name for name in SIDES if campaign.side(name).gateway_mac]
    if static:
        yield (
            f"The gateway's link-layer address is static on the {' and '.join(static)} side, not resolved"
            " (RFC 5180 section 4 prefers dynamic neighbours)."
        )
    if campaign.gateway.lowest_ipv6_mtu is not None:
        yield (
            f"The translator is configured with a lowest IPv6 MTU of {campaign.gateway.lowest_ipv6_mtu} octets,"
            f" the default is {defaults.LOWEST_IPV6_MTU} (RFC 7915 section 4)."
        )
    if "rfc6145" in (campaign.gateway.dont_fragment_rule, campaign.gateway.reverse_dont_fragment_rule):
        yield (
            "The translator sets DF in every IPv4 packet that it makes, by RFC 6145; RFC 7915 section 5.1 clears it"
            " up to 1260 octets. The Tester expects what this translator does."
        )
    if campaign.gateway.zero_udp_checksum:
        yield (
            "The translator writes UDP checksum 0x0000 where 0xffff is due, against RFC 768; such frames are accepted"
            " and counted apart."
        )
    policy, section = campaign.forwarding.tunnel, campaign.technology.copied_class_section
    if section is not None and policy is not None and policy.traffic_class != "copied":
        yield (
            f"The gateway writes traffic class {policy.traffic_class} into the outer headers of tunnels; {section}"
            " wants that of the packet inside copied. The Tester expects what this gateway does."
        )
    if campaign.gateway.mapping == "endpoint_dependent":
        yield (
            "The gateway's mapping is endpoint-dependent; RFC 4787 section 4.1 and RFC 6146 section 3.5.1.1 want it"
            " endpoint-independent."
        )
    if campaign.forwarding.prefix == WELL_KNOWN_PREFIX and campaign.gateway.well_known_prefix_allowed:
        yield f"{WELL_KNOWN_PREFIX} represents non-global IPv4 addresses (against RFC 6052 section 3.1)."
    emulated = campaign.edges.emulated
    prefixes = [rule for rule in emulated.whole_rules if rule.kind == "IPv4 prefix"] if emulated is not None else []
    if any(rule.dmr is not None for rule in prefixes):
        yield (
            "Of a customer edge's IPv4 prefix only the first address is used; all of its addresses are the edge's (RFC"
            " 7597 section 5.2)."
        )
    elif any(rule.rule_ipv4.prefixlen + rule.suffix_bits < 16 for rule in prefixes):
        yield (
            "Of a customer edge's IPv4 prefix only 65,536 addresses are used; all of its addresses are the edge's (RFC"
            " 7597 section 5.2)."
        )
    yield from _of_the_addresses(campaign)


def _of_the_addresses(campaign: Campaign) -> Iterator[str]:
    addresses = {str(address) for address in _addresses(campaign) if _is_foreign(ip_network(address))}
    prefixes = {str(prefix) for prefix in _prefixes(campaign) if _is_foreign(prefix)}
    if addresses or prefixes:
        yield (
            "Addresses outside 198.18.0.0/15 and 2001:2::/48 are used:"
            f" {', '.join([*sorted(addresses), *sorted(prefixes)])} (RFC 2544 appendix C.2.2, RFC 8219 section 14)."
        )


def _is_foreign(prefix: Network) -> bool:
    return not any(prefix[0] in network and prefix[-1] in network for network in BENCHMARKING_NETWORKS)


def _addresses(campaign: Campaign) -> Iterator[Address]:
    """Yield addresses of hosts, in tunnels as well, what a translator makes of them, and the gateway's end of tunnels.

    Hosts behind the B4s of an AFTR are left out: their addresses must be private (RFC 6333 section 5.7).
    """
    roles, gateway = campaign.roles, campaign.gateway
    for name in SIDES:
        for family in campaign.directions.families(name):
            yield from _hosts(campaign, name, family)
    if not campaign.traffic.has_foreground:
        return
    for name in SIDES:
        yield from _hosts(campaign, name, roles.host_family(name))
    if campaign.technology.translates_by_prefix:
        for name in (roles.outside,) if campaign.technology.is_stateful else SIDES:
            for host in _hosts(campaign, name, roles.family(name)):
                translated = represented(host, gateway.prefix, gateway.eam)
                if translated is not None:
                    yield translated
    if gateway.tunnel is not None and gateway.tunnel.address is not None:
        yield gateway.tunnel.address


def _hosts(campaign: Campaign, side: SideName, family: Family) -> Iterator[Address]:
    """Yield the Tester's own address of one side and family, and those of the first and the last host."""
    model, hosts = campaign.side(side).family(family), host_set(campaign, side, family)
    if model is not None and hosts is not None:
        yield model.address
        yield from (ip_address(hosts.text(end)) for end in (hosts.lowest, hosts.highest))


def _prefixes(campaign: Campaign) -> Iterator[Network]:
    """Yield the prefixes that hosts of customer edges are in, and the public addresses of a stateful gateway."""
    gateway = campaign.gateway
    for rule in () if campaign.map is None else campaign.map.rules:
        yield from rule.prefixes
    if gateway.tunnel is not None and gateway.tunnel.prefix is not None:
        yield gateway.tunnel.prefix
    yield from gateway.pool


def _of_the_traffic(campaign: Campaign) -> Iterator[str]:
    traffic = campaign.traffic
    if "bidirectional" not in traffic.direction:
        yield (
            "Traffic is unidirectional only (RFC 2544 section 14 and RFC 8219 section 5.3 ask for bidirectional"
            " traffic)."
        )
    measured, standard = measured_octets(campaign), standard_octets(campaign)
    required = tuple(octets for octets in standard if octets <= 1518)
    missing = [str(octets) for octets in required if octets not in measured]
    if missing:
        yield f"Frame sizes not measured: {', '.join(missing)} octets (RFC 8219 section 5.1.1)."
    added = [str(octets) for octets in measured if octets not in standard]
    if added:
        yield f"Frame sizes beyond the list: {', '.join(added)} octets (RFC 8219 section 5.1.1)."
    if set(traffic.mix) <= set(STANDARD_MIXES):
        left_out = [str(mix) for mix in STANDARD_MIXES if mix not in traffic.mix]
        if left_out and campaign.technology.is_translation:
            yield f"Shares of foreground not measured: {', '.join(left_out)} (RFC 8219 section 5.3)."
    else:
        other = [str(mix) for mix in traffic.mix if mix not in STANDARD_MIXES]
        yield f"Shares of foreground that are not in the list: {', '.join(other)} (RFC 8219 section 5.3)."
    if traffic.trailer_octets:
        yield (
            f"Frames have {traffic.trailer_octets} octets behind the IP packet, which is so much shorter (RFC 2544"
            " appendix C.2.6.4 has none)."
        )
    yield from _of_the_extension_headers(campaign)
    yield from _of_the_networks(campaign)
    for way in campaign.directions.in_use:
        settings = campaign.directions.traffic_of(way)
        for name, ports, standard_ports in (
            ("source", settings.source_ports, defaults.SOURCE_PORTS),
            ("destination", settings.destination_ports, defaults.DESTINATION_PORTS),
        ):
            if campaign.technology.is_stateful and not campaign.traffic.has_background:
                continue  # all frames belong to connections, which have ports of their own
            edges = campaign.edges.emulated
            if edges is not None and (way, name) in (("forward", "source"), ("reverse", "destination")):
                mode = edges.forward_ports if way == "forward" else edges.reverse_ports
                if mode != "pseudorandom":
                    yield (
                        f"UDP {name} ports are {mode} within the port sets of customer edges in {way} direction, not"
                        " pseudorandom (RFC 4814 section 4.5)."
                    )
                continue
            if ports.mode != "pseudorandom":
                yield f"UDP {name} ports are {ports.mode} in {way} direction, not pseudorandom (RFC 4814 section 4.5)."
            elif (ports.range.minimum, ports.range.maximum) != standard_ports:
                yield (
                    f"UDP {name} ports are {ports.range} in {way} direction, not"
                    f" {standard_ports[0]}-{standard_ports[1]} (RFC 4814 section 4.5)."
                )
        if settings.hop_limit != defaults.HOP_LIMIT:
            yield f"Hop limit {settings.hop_limit} in {way} direction, not 10 (RFC 2544 appendix C.2.6.4)."
        sender, _ = ENDS[way]
        if settings.dont_fragment and campaign.roles.packet_family(sender) == "ipv4":
            yield f"DF is set in {way} direction (RFC 2544 appendix C.2.6.4 has it clear)."
        if settings.udp_checksum == "zero":
            yield (
                f"UDP frames are sent without checksum over IPv4 in {way} direction: RFC 1242 section 3.17 asks for"
                " full checksum processing where a frame has a checksum, and these have none."
            )


def _of_the_trial(campaign: Campaign) -> Iterator[Deviation]:
    """Trials and waits shorter than the RFC's rule out a claim, although it does not write MUST in capitals."""
    trial = campaign.trial
    if campaign.repetitions < defaults.REPETITIONS:
        sentence = f"{campaign.repetitions} repetitions, fewer than {defaults.REPETITIONS} (RFC 8219 section 12)."
        yield Deviation(sentence=sentence)
    if trial.duration_ns < defaults.TRIAL_DURATION_NS:
        sentence = f"Trials last {format_duration_ns(trial.duration_ns)}, less than 60s (RFC 2544 section 24)."
        yield Deviation(sentence=sentence, rules_out_claim=True)
    lateness_max_ns = campaign.validity.lateness_max_ns
    if lateness_max_ns > defaults.LATENESS_MAX_NS:
        yield Deviation(
            sentence=f"A burst may leave {format_duration_ns(lateness_max_ns)} late, more than"
            f" {format_duration_ns(defaults.LATENESS_MAX_NS)}: frames that catch up reach the gateway faster than the"
            " load says (RFC 1242 section 3.4)."
        )
    for name, value, standard in (
        ("settle", trial.settle_ns, defaults.SETTLE_NS),
        ("learn", trial.learn_ns, defaults.LEARN_NS),
        ("drain", trial.drain_ns, defaults.DRAIN_NS),
        ("rest", trial.rest_ns, defaults.REST_NS),
    ):
        if value < standard:
            sentence = (
                f"The {name} wait is {format_duration_ns(value)}, shorter than {format_duration_ns(standard)}"
                " (RFC 2544 section 23)."
            )
            yield Deviation(sentence=sentence, rules_out_claim=True)


def _of_the_extension_headers(campaign: Campaign) -> Iterator[str]:
    """RFC 5180 sections 5.3 and 7: every test without, with one and with a chain, which has no hop-by-hop options."""
    headers = campaign.traffic.extension_headers
    technology = campaign.technology
    if technology.is_plain_forwarding and technology.families == ("ipv6", "ipv6"):
        if not headers:
            yield (
                "No frame has an IPv6 extension header; RFC 5180 section 7 wants each test repeated with one, and with"
                " a chain of them."
            )
        else:
            words = "the IPv6 extension header" if len(headers) == 1 else "a chain of IPv6 extension headers"
            listed = ", ".join(headers)
            yield f"All frames have {words}, {listed}; RFC 5180 section 7 wants each test without any as well."
    if "hop_by_hop" not in headers:
        return
    if len(headers) > 1:
        yield "The chain of extension headers holds hop_by_hop, which RFC 5180 section 5.3 keeps out of chains."
    if campaign.finds_frame_rate:
        yield (
            "A throughput is measured with hop-by-hop options; RFC 5180 section 5.3 wants their effect on the router at"
            " 1, 10 and 50 % of the line rate."
        )


def _of_the_networks(campaign: Campaign) -> Iterator[str]:
    """RFC 2544 section 12 has one network, then 256."""
    networks = {way: campaign.directions.traffic_of(way).destination_networks for way in campaign.directions.in_use}
    if set(networks.values()) == {1}:
        yield "One destination network, not 256 (RFC 2544 section 12 asks for both)."
        return
    for way, number in networks.items():
        if number != 256:
            noun = "network" if number == 1 else "networks"
            yield f"{number} destination {noun} in the direction {way}, not 256 (RFC 2544 section 12)."


def _of_the_connections(campaign: Campaign) -> Iterator[str]:
    """RFC 9693: what is left out of it, and where its restricted ranges of ports differ from RFC 4814."""
    connections = campaign.connections_model
    space = tuple_space(campaign, _most_connections(campaign))
    yield (
        f"Connections use the restricted UDP source ports {space.source_ports} and destination ports"
        f" {space.destination_ports}, as RFC 9693 section 4.1 wants; RFC 4814 section 4.5 has"
        f" {Span(*defaults.SOURCE_PORTS)} and {Span(*defaults.DESTINATION_PORTS)}."
    )
    if space.sources < FEW_SOURCES:
        yield (
            f"The Initiator combines {space.sources} addresses and ports;"
            " RFC 9693 section 4.1 wants a few times 10,000."
        )
    if connections.order != "pseudorandom":
        yield f"Connections are enumerated in {connections.order} order, not pseudorandom (RFC 9693 section 4.2)."
    if any(table.phase_two_ns(campaign) is not None for table in campaign.tables):
        yield from _of_the_orders_of_use(campaign)
    if campaign.bed.has_gateway and "count_connections" not in campaign.control.actions:
        yield (
            "The gateway's connections are not counted, so only frames show that its table is empty before a"
            " trial and full after test phase 1 (RFC 9693 section 4.4)."
        )
    if campaign.bed.has_gateway and campaign.gateway.table.udp_timeout_ns is None:
        yield (
            "The gateway's UDP timeout is not stated, so nothing shows that connections outlive the trials"
            " (RFC 9693 section 4.4)."
        )
    yield from _of_test_phase_one(campaign)
    yield "Only UDP is measured; connections of TCP have other states and timeouts (RFC 9693 section 8)."


def _of_the_orders_of_use(campaign: Campaign) -> Iterator[str]:
    connections = campaign.connections_model
    if connections.send_order != "pseudorandom":
        yield (
            f"In test phase 2 the Initiator uses connections in {connections.send_order} order, not pseudorandom"
            " (RFC 4814 section 4.5)."
        )
    if connections.read_order != "pseudorandom":
        yield (
            f"The Responder reads its state table in {connections.read_order} order, not pseudorandom"
            " (RFC 9693 section 4.10)."
        )


def _of_test_phase_one(campaign: Campaign) -> Iterator[str]:
    rate = campaign.connections_model.rate
    if not any(table.begins_with_full_table for table in campaign.tables):
        return
    if isinstance(rate, int) and not campaign.finds_connection_rate:
        yield (
            f"Test phase 1 runs at {rate} connections/s; the maximum connection establishment rate is not measured, so"
            " nothing shows how far below it that is (RFC 9693 section 4.4)."
        )
    if rate == 1 and isinstance(rate, Fraction):
        yield "Test phase 1 runs at the measured maximum itself, not below it (RFC 9693 section 4.4)."


def _most_connections(campaign: Campaign) -> int:
    largest = [table.largest_count or count_max(campaign) for table in campaign.tables if table.finds_connection_count]
    return max((*campaign.connections_model.count, *largest), default=1)
