"""The border relay of the recipe tayga-mapt-br, for rules of every kind: what crosses it and what does not."""

from __future__ import annotations

from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from tests.system.machine import missing
from tests.system.test_netns import exchange

from gatemark.campaign.file import campaign_from_dict
from gatemark.dut.gateway_kernel import MAC_ADDRESSES
from gatemark.dut.netns import NetnsTestBed
from gatemark.dut.open import open_testbed
from gatemark.dut.recipe import complete_campaign

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "unshare", "nsenter", "tayga", "nft", root=True, engine=False)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

SERVER = "198.19.0.2"
DMR_96 = {"dmr": "2001:2:0:6400::/96"}
SERVER_96 = "2001:2:0:6400::c613:2"
DMR_64 = {"dmr": "2001:db8:ffff::/64"}
SERVER_64 = "2001:db8:ffff:0:c6:1300:200:0"
"""RFC 6052 section 2.2: octet 8 is zero."""

SHARED = {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16, **DMR_64}
NO_OFFSET = {"ipv6": "2001:db8:ce::/51", "ipv4": "192.0.2.0/24", "ea_bits": 13, "psid_offset": 0, **DMR_96}
SINGLE = {"ipv6": "2001:db8:12:3400::/56", "ipv4": "192.0.2.18/32", "ea_bits": 0, **DMR_64}
ONE_PSID = {**SINGLE, "psid_bits": 8, "psid": 0x34}
PREFIX = {"ipv6": "2001:db8::/32", "ipv4": "198.51.100.0/24", "ea_bits": 6, **DMR_96}

CASES: dict[str, tuple[dict[str, Any], list[tuple[str, str, list[int], list[int], list[int]]]]] = {
    # rules and order; per customer edge: MAP address, IPv4 address, ports of its set, ports of others, of nobody
    "shared, a = 6": (
        {"domains": [SHARED], "edges": 256, "order": "increasing"},
        [("2001:db8::c000:200:0", "192.0.2.0", [1024, 64515], [1023, 1028], [1023])],
    ),
    "shared, the last": (
        {"domains": [SHARED], "edges": 256, "order": "decreasing"},
        [("2001:db8:ff:ff00:0:c000:2ff:ff", "192.0.2.255", [2044, 65535], [2043, 65531], [1023])],
    ),
    "shared, a = 0": (
        {"domains": [NO_OFFSET], "edges": 100},  # a pseudorandom choice, so the relay knows all
        [("2001:db8:ce:1815:0:c000:2c0:15", "192.0.2.192", [43008, 45055], [43007, 45056], [])],
    ),
    "full address": ({"domains": [SINGLE]}, [("2001:db8:12:3400:0:c000:212:0", "192.0.2.18", [1024, 65535], [], [])]),
    "IPv4 prefix": ({"domains": [PREFIX]}, [("2001:db8:1400::c633:6414:0", "198.51.100.20", [1024, 65535], [], [])]),
}


def relay(table: dict[str, Any], **left: Any) -> NetnsTestBed:
    document: dict[str, Any] = {
        "testbed": {"kind": "netns", "recipe": "tayga-mapt-br"},
        "map": table,
        "frame_loss": {"rates": [1000]},
    }
    bed = open_testbed(complete_campaign(campaign_from_dict(document | ({"left": left} if left else {}))))
    assert isinstance(bed, NetnsTestBed)
    return bed


def from_edge(address: str, server: str, port: int) -> tuple[str, Packet]:
    return framed("left", IPv6(src=address, dst=server, hlim=10), port, 6000)


def to_edge(address: str, port: int) -> tuple[str, Packet]:
    return framed("right", IP(src=SERVER, dst=address, ttl=10, tos=4), 5000, port)


def framed(side: str, header: Packet, source_port: int, destination_port: int) -> tuple[str, Packet]:
    link = Ether(src=MAC_ADDRESSES["gm", side], dst=MAC_ADDRESSES["gw", side])
    return side, link / header / UDP(sport=source_port, dport=destination_port) / Raw(b"g" * 18)


def fields(side: str, packet: Packet) -> tuple[str, str, str, int, int, int]:
    """Return what the gateway must translate, once the rest of the packet is checked."""
    assert bytes(packet[Raw].load).rstrip(b"\0") == b"g" * 18
    rebuilt = packet.copy()
    del rebuilt[UDP].chksum
    assert Ether(bytes(rebuilt))[UDP].chksum == packet[UDP].chksum
    header, ports = packet[IPv6] if IPv6 in packet else packet[IP], packet[UDP]
    assert IPv6 in packet or packet[IP].flags == "DF"
    hop_limit = header.hlim if IPv6 in packet else header.ttl
    return side, header.src, header.dst, ports.sport, ports.dport, hop_limit


@pytest.mark.parametrize("case", CASES)
def test_frames_cross_and_foreign_ports_do_not(case: str) -> None:
    table, edges = CASES[case]
    server = SERVER_64 if table["domains"][0]["dmr"] == DMR_64["dmr"] else SERVER_96
    with relay(table) as bed:
        for address, ipv4, allowed, foreign, unused in edges:
            sent = [from_edge(address, server, port) for port in foreign] + [to_edge(ipv4, port) for port in unused]
            sent += [frame for port in allowed for frame in (from_edge(address, server, port), to_edge(ipv4, port))]
            received, asked = exchange(bed, sent, wanted=2 * len(allowed))
            expected = [("right", ipv4, SERVER, port, 6000, 7) for port in allowed]
            expected += [("left", server, address, 5000, port, 7) for port in allowed]
            assert sorted(fields(*frame) for frame in received) == sorted(expected)
            assert {name for _, name in asked} <= {"2001:2::2", SERVER}  # not the customer edge


def test_customer_edges_behind_a_router_and_on_the_link() -> None:
    address = "2001:db8:12:3400:0:c000:212:0"
    hosts = {"address": "2001:2:0:7::2", "router": "2001:2::2"}
    with relay({"domains": [SINGLE]}, address_mode="nexthop", ipv6=hosts) as bed:
        _, asked = exchange(bed, [to_edge("192.0.2.18", 1024)])
        assert asked == [["left", "2001:2::2"]]
    with relay({"domains": [SINGLE], "onlink": True}) as bed:
        _, asked = exchange(bed, [to_edge("192.0.2.18", 1024)])
        assert asked == [["left", address]]


def test_the_description_names_the_configuration() -> None:
    with relay({"domains": [ONE_PSID]}) as bed:
        text = bed.describe().configuration
        assert "map 10.0.0.2 2001:db8:12:3400:0:c000:212:34" in text
        assert "prefix 2001:db8:ffff::/64" in text
        assert 'iifname "mapt"' in text
        assert "2001:db8:12:3400::/56 via 2001:2::2" in text


def test_a_reset_leaves_the_relay_as_it_was() -> None:
    with relay({"domains": [ONE_PSID]}) as bed:
        before = bed.describe().configuration
        bed.gateway.reset()
        assert bed.describe().configuration == before
        received, _ = exchange(bed, [from_edge("2001:db8:12:3400:0:c000:212:34", SERVER_64, 1232)])
        assert [fields(*frame)[:2] for frame in received] == [("right", "192.0.2.18")]
