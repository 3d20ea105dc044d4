"""What `describe_domains` says of the rules of RFC 7597 and of a paper."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network

from gatemark.map_domains.describe import describe_domains, ports_text
from gatemark.map_domains.domain import MapDomain
from gatemark.map_domains.port_set import PortSet

RFC_7597 = MapDomain(
    rule_ipv6=IPv6Network("2001:db8::/40"),
    rule_ipv4=IPv4Network("192.0.2.0/24"),
    ea_bits=16,
    dmr=IPv6Network("2001:db8:ffff::/64"),
)
PREFIX = replace(
    RFC_7597, rule_ipv6=IPv6Network("2001:db8:100::/40"), rule_ipv4=IPv4Network("198.51.100.0/24"), ea_bits=6
)


def test_a_domain_of_shared_addresses() -> None:
    (description,) = describe_domains([RFC_7597], 1000, "increasing")
    assert list(description.lines()) == [
        "2001:db8::/40, 192.0.2.0/24, default mapping rule 2001:db8:ffff::/64: each customer edge has a shared address",
        "EA bits 16 (o): IPv4 suffix 8 (p), PSID 8 (q); bits of a port: offset 6 (a), PSID 8 (k), 2 behind it (m)",
        "1000 of 65536 customer edges, 256 to an address, 252 ports each",
        "lowest EA 0: 2001:db8::c000:200:0, 192.0.2.0 PSID 0, ports 1024-1027 .. 64512-64515 (63 ranges of 4)",
        "highest EA 999: 2001:db8:3:e700:0:c000:203:e7, 192.0.2.3 PSID 231, ports 1948-1951 .. 65436-65439"
        " (63 ranges of 4)",
    ]
    assert json.loads(json.dumps(description.model_dump()))["highest"]["psid"] == 231


def test_a_domain_of_prefixes() -> None:
    _, description = describe_domains([RFC_7597, PREFIX], 100, "pseudorandom")
    assert list(description.lines()) == [
        "2001:db8:100::/40, 198.51.100.0/24, default mapping rule 2001:db8:ffff::/64: each customer edge has an IPv4"
        " prefix",
        "EA bits 6 (o): IPv4 suffix 6 (p), PSID 0 (q); bits of a port: no PSID",
        "50 of 64 customer edges, no address shared, 65536 ports each",
        "only the first address of each prefix is measured: the others have no MAP address of their own (RFC 7599"
        " section 6)",
        "lowest EA 0: 2001:db8:100::c633:6400:0, 198.51.100.0/30, ports 0-65535",
        "highest EA 63: 2001:db8:1fc::c633:64fc:0, 198.51.100.252/30, ports 0-65535",
    ]


def test_prefixes_behind_tunnels_have_one_tunnel_each() -> None:
    (description,) = describe_domains([replace(PREFIX, dmr=None)], 64, "increasing")
    assert (
        "only the first address of each prefix is measured: the MAP address of a customer edge embeds its prefix, so"
        " the others are in the same tunnel (RFC 7597 section 6)"
    ) in list(description.lines())


def test_a_domain_without_customer_edges() -> None:
    first, second = describe_domains([RFC_7597, PREFIX], 1, "decreasing")
    assert first.lowest is not None
    assert first.lowest == first.highest
    assert (first.lowest.ea, first.lowest.ipv4, first.lowest.psid) == (65535, "192.0.2.255", 255)
    assert (second.edges, second.lowest, second.highest) == (0, None, None)


def test_customer_edges_of_longer_rules_are_told() -> None:
    inner = replace(RFC_7597, rule_ipv6=IPv6Network("2001:db8:ff00::/40"), rule_ipv4=IPv4Network("192.0.2.64/26"))
    outer, _ = describe_domains([RFC_7597, replace(inner, ea_bits=12)], 100, "increasing")
    assert (outer.edges_of_rule, outer.edges_of_longer_rules) == (192 * 256, 64 * 256)
    assert "16384 more are left out: longer rules of other domains hold their addresses" in list(outer.lines())


def test_port_sets_in_words() -> None:
    assert ports_text(PortSet(0, 5, 21)) == "43008-45055"
    assert ports_text(PortSet(4, 12, 0xABC)) == "6844 .. 64188 (15 single ports)"
    assert ports_text(PortSet(0, 16, 7)) == "7"
