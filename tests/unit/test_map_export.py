"""Rules as gateways are told them: each text as a whole."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatemark.errors import ConfigError
from gatemark.facts import Order
from gatemark.map_domains.domain import MapDomain
from gatemark.map_domains.edges import emulated_edges
from gatemark.map_domains.linux import Rule, tunnel_relay, tunnel_script
from gatemark.map_domains.rule_export import jool_commands, vpp_commands
from gatemark.map_domains.tayga import border_relay, customer_edge

DMR = IPv6Network("2001:db8:ffff::/64")
PAPER = MapDomain(
    rule_ipv6=IPv6Network("2001:db8:ce::/51"),
    rule_ipv4=IPv4Network("192.0.2.0/24"),
    ea_bits=13,
    dmr=IPv6Network("64:ff9b::/96"),
    psid_offset=0,
)
FULL = replace(PAPER, rule_ipv6=IPv6Network("2001:db8:2::/48"), rule_ipv4=IPv4Network("198.51.100.0/24"), ea_bits=8)
SINGLE = replace(
    PAPER,
    rule_ipv6=IPv6Network("2001:db8:12:3400::/56"),
    rule_ipv4=IPv4Network("203.0.113.18/32"),
    ea_bits=0,
    psid_offset=4,
    psid_bits=10,
    psid=0x34,
    dmr=DMR,
)
PRIVATE = IPv4Network("10.0.0.0/24")


def test_jool() -> None:
    assert jool_commands([PAPER, FULL]) == (
        "modprobe jool_mapt\n"
        'jool_mapt instance add "BR" --netfilter --dmr 64:ff9b::/96\n'
        'jool_mapt -i "BR" fmrt add 2001:db8:ce::/51 192.0.2.0/24 13 0\n'
        'jool_mapt -i "BR" fmrt add 2001:db8:2::/48 198.51.100.0/24 8 0\n'
        'jool_mapt -i "BR" global update map-t-type BR\n'
    )


def test_an_instance_of_jool_for_each_default_mapping_rule() -> None:
    assert jool_commands([PAPER, replace(FULL, dmr=DMR, psid_offset=6)]) == (
        "modprobe jool_mapt\n"
        'jool_mapt instance add "BR-1" --netfilter --dmr 64:ff9b::/96\n'
        'jool_mapt -i "BR-1" fmrt add 2001:db8:ce::/51 192.0.2.0/24 13 0\n'
        'jool_mapt -i "BR-1" global update map-t-type BR\n'
        'jool_mapt instance add "BR-2" --netfilter --dmr 2001:db8:ffff::/64\n'
        'jool_mapt -i "BR-2" fmrt add 2001:db8:2::/48 198.51.100.0/24 8 6\n'
        'jool_mapt -i "BR-2" global update map-t-type BR\n'
    )


def test_vpp() -> None:
    assert vpp_commands([PAPER, replace(FULL, psid_offset=6)], interfaces=["left", "right"]) == (
        "map add domain ip4-pfx 192.0.2.0/24 ip6-pfx 2001:db8:ce::/51 ip6-src 64:ff9b::/96"
        " ea-bits-len 13 psid-offset 0 psid-len 5\n"
        "map add domain ip4-pfx 198.51.100.0/24 ip6-pfx 2001:db8:2::/48 ip6-src 64:ff9b::/96"
        " ea-bits-len 8 psid-offset 0 psid-len 0\n"
        "map interface left map-t\n"
        "map interface right map-t\n"
    )


def test_a_rule_of_a_single_psid_is_refused_by_name() -> None:
    for command in (jool_commands, vpp_commands):
        with pytest.raises(ConfigError) as error:
            command([PAPER, SINGLE])
        assert [problem.where for problem in error.value.problems] == ["map.domains[1].psid_bits"]


RELAY_RULES = """\
table ip mapt {
    set port_sets {
        type ipv4_addr . inet_service
        flags interval
        elements = {
            10.0.0.2 . 16592-16595,
            10.0.0.2 . 32976-32979,
            10.0.0.2 . 49360-49363
        }
    }
    map shared_of {
        type ipv4_addr : ipv4_addr
        elements = {
            10.0.0.2 : 203.0.113.18
        }
    }
    map private_of {
        type ipv4_addr . inet_service : ipv4_addr
        flags interval
        elements = {
            203.0.113.18 . 16592-16595 : 10.0.0.2,
            203.0.113.18 . 32976-32979 : 10.0.0.2,
            203.0.113.18 . 49360-49363 : 10.0.0.2
        }
    }
    set echo_ids {
        typeof ip saddr . icmp id
        flags interval
        elements = {
            10.0.0.2 . 16592-16595,
            10.0.0.2 . 32976-32979,
            10.0.0.2 . 49360-49363
        }
    }
    map private_by_id {
        typeof ip daddr . icmp id : ip daddr
        flags interval
        elements = {
            203.0.113.18 . 16592-16595 : 10.0.0.2,
            203.0.113.18 . 32976-32979 : 10.0.0.2,
            203.0.113.18 . 49360-49363 : 10.0.0.2
        }
    }
    set shared {
        type ipv4_addr
        elements = {
            203.0.113.18
        }
    }
    chain prerouting {
        type filter hook prerouting priority raw; policy accept;
        iifname != "mapt" ip daddr 10.0.0.0/24 drop
        iifname "mapt" ip saddr 10.0.0.0/24 meta l4proto { tcp, udp } ip saddr . th sport != @port_sets drop
        iifname "mapt" ip saddr 10.0.0.0/24 icmp type { echo-request, echo-reply } ip saddr . icmp id != @echo_ids drop
        iifname "mapt" ip saddr set ip saddr map @shared_of
        meta l4proto { tcp, udp } ip daddr set ip daddr . th dport map @private_of
        icmp type { echo-request, echo-reply } ip daddr set ip daddr . icmp id map @private_by_id
        ip daddr @shared drop
    }
}
"""


def test_a_relay_that_gets_no_echo_messages_has_its_sets_once() -> None:
    rule = replace(SINGLE, psid_offset=2, psid_bits=12)
    assert "icmp" not in border_relay([rule], 1, private=PRIVATE, echo=False).nftables


def test_a_border_relay_of_tayga_and_nftables() -> None:
    rule = replace(SINGLE, psid_offset=2, psid_bits=12)
    full = replace(FULL, dmr=DMR, weight=2)
    files = border_relay([rule, full], 3, private=PRIVATE)
    assert files.tayga == (
        "tun-device mapt\n"
        "ipv4-addr 10.0.0.1\n"
        "prefix 2001:db8:ffff::/64\n"
        "map 198.51.100.0 2001:db8:2::c633:6400:0\n"
        "map 198.51.100.1 2001:db8:2:100:0:c633:6401:0\n"
        "map 10.0.0.2 2001:db8:12:3400:0:cb00:7112:34\n"
    )
    assert files.nftables == RELAY_RULES
    assert files.routes == (
        "ip route add 10.0.0.0/24 dev mapt",
        "ip route add 198.51.100.0/24 dev mapt",
        "ip -6 route add 2001:db8:ffff::/64 dev mapt",
    )


def test_tayga_alone_where_no_address_is_shared() -> None:
    files = border_relay([FULL], 2, order="decreasing", private=PRIVATE, tunnel="t0", ipv6=IPv6Address("2001:db8:7::1"))
    assert files.tayga == (
        "tun-device t0\n"
        "ipv4-addr 10.0.0.1\n"
        "ipv6-addr 2001:db8:7::1\n"
        "prefix 64:ff9b::/96\n"
        "map 198.51.100.255 2001:db8:2:ff00:0:c633:64ff:0\n"
        "map 198.51.100.254 2001:db8:2:fe00:0:c633:64fe:0\n"
    )
    assert files.nftables == ""
    assert files.routes == ("ip route add 198.51.100.0/24 dev t0", "ip -6 route add 64:ff9b::/96 dev t0")


def test_every_customer_edge_that_shares_has_a_private_address() -> None:
    files = border_relay([PAPER], 253, private=PRIVATE)
    maps = [line.split() for line in files.tayga.splitlines() if line.startswith("map ")]
    assert len({private for _, private, _ in maps}) == len({address for _, _, address in maps}) == 253
    assert maps[-1][1] == "10.0.0.254"
    with pytest.raises(
        ConfigError, match=r"10\.0\.0\.0/24 has addresses for 253 customer edges that share theirs, not"
    ):
        border_relay([PAPER], 254, private=PRIVATE)


def test_what_such_a_gateway_cannot_be() -> None:
    with pytest.raises(ConfigError, match=r"domains\[1\].dmr: 2001:db8:ffff::/64 is not the 64:ff9b::/96"):
        border_relay([PAPER, SINGLE], 2, private=PRIVATE)
    with pytest.raises(ConfigError, match=r"192\.0\.2\.0/28 overlaps 192\.0\.2\.0/24"):
        border_relay([PAPER], 2, private=IPv4Network("192.0.2.0/28"))
    with pytest.raises(ConfigError, match=r"map\.edges: a gateway that has a line for each of 16777216") as caught:
        border_relay([replace(PAPER, ea_bits=24)], 2, order="pseudorandom", private=IPv4Network("192.0.2.0/28"))
    assert len(caught.value.problems) == 2


def test_a_relay_of_the_kernel_has_a_route_for_each_customer_edge() -> None:
    rules = [replace(PAPER, dmr=None, psid_offset=6), replace(FULL, dmr=None)]
    edges = [rules[0].edge(0), rules[0].edge(33), rules[1].edge(3)]
    relay = IPv6Address("2001:2:0:ff::1")
    files = tunnel_relay(rules, edges, relay=relay, private=PRIVATE, hop_limit=33)
    assert files.routes == tuple(
        f"route add {to} encap ip6 id 0 dst {edge.address} src {relay} hoplimit 33 dev softwires"
        for to, edge in zip(("10.0.0.1", "10.0.0.2", f"{edges[2].ipv4}/32"), edges, strict=True)
    )
    inward, outward = files.nftables.split("table ip softwires {")
    for edge in edges[:2]:
        assert f"{edge.address} . {int(edge.ipv4):#x} . {edge.psid << 5:#x}" in inward
        assert f"{edge.ipv4} . {edge.psid << 5} : 10.0.0." in outward
    assert "(@nh,480,16 & 0x3e0) @sources0 accept" in inward and "ip6 saddr . @nh,416,32 @sources1 accept" in inward
    script = tunnel_script(files, relay, mtu=9196)
    assert all(line in script for line in files.routes) and f"address add {relay}/128" in script
    assert "ip link set softwires mtu 9196 up\n" in script


@settings(max_examples=100)
@given(offset=st.integers(0, 8), psid_bits=st.integers(1, 8), psid=st.integers(0, 255), port=st.integers(0, 65_535))
def test_a_masked_port_tells_whose_it_is(offset: int, psid_bits: int, psid: int, port: int) -> None:
    """What nftables compares is true of the ports of the edge and of no other one (RFC 7597 section 5.1)."""
    domain = replace(SINGLE, psid_offset=offset, psid_bits=psid_bits, psid=psid % (1 << psid_bits))
    rule = Rule(number=0, domain=domain, edges=[domain.edge(0)], private=[])
    told = port >= rule.lowest_port and port & int(rule.mask, 16) == rule.masked(rule.edges[0])
    assert told == (port in rule.edges[0].ports)


def test_a_border_relay_knows_whole_domains_in_pseudorandom_order() -> None:
    files = border_relay([FULL, replace(SINGLE, dmr=FULL.dmr)], 1, order="pseudorandom", private=PRIVATE)
    assert files.tayga.count("\nmap ") == 256  # those of the first domain, of which only the engine knows which one
    with pytest.raises(ConfigError, match="not for 8192") as caught:
        border_relay([PAPER], 2, order="pseudorandom", private=PRIVATE)
    assert 'order = "increasing"' in caught.value.fix


@pytest.mark.parametrize(
    ("order", "count", "expected"),
    [
        ("increasing", 3, [(0, "198.51.100.0"), (0, "203.0.113.18"), (1, "198.51.100.1")]),
        ("decreasing", 3, [(255, "198.51.100.255"), (0, "203.0.113.18"), (254, "198.51.100.254")]),
    ],
)
def test_edges_in_order(order: Order, count: int, expected: list[tuple[int, str]]) -> None:
    edges = list(emulated_edges([replace(FULL, weight=2), SINGLE], count, order))
    assert [(edge.ea, str(edge.ipv4)) for edge in edges] == expected


def test_all_edges_are_known_in_any_order() -> None:
    assert [edge.ea for edge in emulated_edges([PAPER], 8192, "pseudorandom")] == list(range(8192))
    with pytest.raises(ConfigError, match=r"map\.order: is pseudorandom, but 2 of 8192 customer edges"):
        list(emulated_edges([PAPER], 2, "pseudorandom"))


def test_a_customer_edge_with_several_ranges() -> None:
    rule = replace(SINGLE, psid_offset=2, psid_bits=12)
    files = customer_edge(rule.edge(0), ipv4=IPv4Address("10.255.0.1"))
    assert files.tayga == (
        "tun-device mapt\n"
        "ipv4-addr 10.255.0.1\n"
        "prefix 2001:db8:ffff::/64\n"
        "map 203.0.113.18 2001:db8:12:3400:0:cb00:7112:34\n"
    )
    assert (
        files.nftables
        == """\
table ip edge {
    chain forward {
        type filter hook forward priority filter; policy accept;
        iifname "mapt" ct state new drop
        oifname "mapt" meta l4proto != { icmp, tcp, udp } drop
    }
    chain postrouting {
        type nat hook postrouting priority srcnat; policy accept;
        oifname "mapt" meta l4proto { icmp, tcp, udp } snat ip addr . port to numgen inc mod 3 map {
            0 : 203.0.113.18 . 16592-16595,
            1 : 203.0.113.18 . 32976-32979,
            2 : 203.0.113.18 . 49360-49363
        }
    }
}
"""
    )
    assert files.routes == (
        "ip route add default dev mapt",
        "ip -6 route add 2001:db8:12:3400:0:cb00:7112:34/128 dev mapt",
    )


def test_a_customer_edge_with_a_single_range_or_a_whole_address() -> None:
    ipv4 = IPv4Address("10.255.0.1")
    long_range = customer_edge(PAPER.edge(21), ipv4=ipv4).nftables  # Linux finds every free port among 128
    assert "numgen inc mod 16 map {\n            0 : 192.0.2.0 . 43008-43135,\n" in long_range
    assert "            15 : 192.0.2.0 . 44928-45055\n" in long_range
    lowest = customer_edge(PAPER.edge(0), ipv4=ipv4).nftables
    assert "            0 : 192.0.2.0 . 1-127,\n" in lowest
    assert 'oifname "mapt" snat to 198.51.100.7\n' in customer_edge(FULL.edge(7), ipv4=ipv4).nftables
