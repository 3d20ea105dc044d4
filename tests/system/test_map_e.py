"""A MAP-E border relay of the Linux kernel, in a kernel of its own: every kind of rule, and what becomes of a frame."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP, IPOption
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from tests.system.beds import (
    QUICK,
    RELAYED_FRAMES,
    RELAYED_LOAD,
    KeptBed,
    check_relayed_whole,
    check_series,
    faults,
    netns_campaign,
    netns_document,
    open_bed,
    relayed,
)
from tests.system.machine import missing_for_guest, nothing_compared
from tests.system.test_guest_kernel import in_guest, new_bed
from tests.system.test_netns import exchange

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.gateway_kernel import MAC_ADDRESSES
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.session import measure

MISSING = missing_for_guest()
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"a relay in a kernel of its own needs {', '.join(MISSING)}"),
]

RECIPE = "linux-mape-br"
RELAY = "2001:2:0:ff::1"
FRAMES = RELAYED_FRAMES
SIZE = {"frame_sizes": {"family": "ipv4", "octets": 128}}
SHARED = {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16}
SINGLE = {"ipv6": "2001:db8:12:3400::/56", "ipv4": "203.0.113.18/32", "ea_bits": 0}
ONE_PSID = {**SINGLE, "psid_bits": 8, "psid": 0x34}
RULES: dict[str, dict[str, Any]] = {
    "shared, a = 6, k = 8": {"domains": [SHARED], "edges": 256, "order": "increasing"},
    "shared, a = 0": {"domains": [{**SHARED, "psid_offset": 0}], "edges": 256, "order": "decreasing"},
    "full address, k = 0": {"domains": [{**SHARED, "ea_bits": 8}]},
    "IPv4 prefix": {"domains": [{**SHARED, "ea_bits": 6}]},
    "three domains": {
        "domains": [
            {**SHARED, "weight": 3},
            ONE_PSID,
            {"ipv6": "2001:dba::/40", "ipv4": "198.51.100.0/28", "ea_bits": 6, "psid_offset": 2},
        ],
        "edges": 5,
        "order": "increasing",
    },
}


@pytest.mark.parametrize("kind", RULES)
def test_every_frame_of_every_edge_comes_out_as_the_rule_says(kind: str) -> None:
    check_relayed_whole(netns_campaign(RECIPE, map=RULES[kind], traffic={**SIZE, "mix": "1/2"}))


INSIDE = 'oifname "softwires"'
OUTSIDE = "meta l4proto 4"
PLANTED: dict[str, tuple[str, str, set[str]]] = {
    "another subscriber's tunnel": (
        "reverse",
        f"{OUTSIDE} ip6 daddr set 2001:db8:0:100:0:c000:200:1",
        {"tunnel_destination", "other_subscriber"},
    ),
    "nobody's tunnel": ("reverse", f"{OUTSIDE} ip6 daddr set 2001:db8::c000:200:7", {"tunnel_destination"}),
    "another end of the tunnel": ("reverse", f"{OUTSIDE} ip6 saddr set 2001:2:0:ff::2", {"tunnel_source"}),
    "outer hop limit": ("reverse", f"{OUTSIDE} ip6 hoplimit set 3", {"tunnel_header"}),
    "outer traffic class": ("reverse", f"{OUTSIDE} ip6 dscp set 1", {"tunnel_traffic_class"}),
    "kept TTL": ("reverse", f"{INSIDE} ip ttl set 10", {"hop_limit"}),
    "changed traffic class inside": ("reverse", f"{INSIDE} ip dscp set 1", {"traffic_class"}),
    "another port inside": ("reverse", f"{INSIDE} udp dport set 1028", {"destination_port", "other_edge_port"}),
    "another address": ("forward", "udp sport != 0 ip saddr set 192.0.2.1", {"source_address", "other_edge_address"}),
    "kept TTL upwards": ("forward", "meta l4proto udp ip ttl set 10", {"hop_limit"}),
    "changed traffic class upwards": ("forward", "meta l4proto udp ip dscp set 1", {"traffic_class"}),
}
"""Direction, what nftables does to each frame, and the reasons that must be counted for it. They are of the first
customer edge of SHARED: 2001:db8::c000:200:0, 192.0.2.0, PSID 0, first port 1024."""


def relay(way: str) -> Campaign:
    """A relay with one customer edge, and traffic in one direction."""
    ports = {"forward_ports": "fixed", "reverse_ports": "fixed"}
    table = {"domains": [SHARED], "edges": 1, "order": "increasing", **ports}
    return netns_campaign(RECIPE, map=table, traffic={**SIZE, "direction": way})


@pytest.fixture(scope="module")
def relays() -> Iterator[KeptBed]:
    with contextlib.closing(KeptBed(relay)) as result:
        yield result


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_named_and_counted(name: str, relays: KeptBed) -> None:
    way, rule, expected = PLANTED[name]
    bed = relays.get(way)
    with bed.rules(rule):
        report = relayed(bed)
    ((_, _, counts),) = report.counts()
    assert (counts.received, counts.faulty, faults(counts)) == (0, FRAMES, dict.fromkeys(expected, FRAMES))


def test_an_encapsulation_limit_is_a_fault_of_its_own(relays: KeptBed) -> None:
    """Linux writes it by default into tunnels that have one remote end (RFC 2473 section 4.1.1)."""
    relays.close()
    campaign = netns_campaign(RECIPE, map={"domains": [SINGLE]}, traffic={**SIZE, "direction": "reverse"})
    with open_bed(campaign) as bed:
        ends = ("remote", "2001:db8:12:3400:0:cb00:7112:0", "local", RELAY)
        bed.in_gateway("ip", "link", "add", "limited", "type", "ip6tnl", "mode", "ipip6", *ends, "hoplimit", "64")
        bed.in_gateway("ip", "link", "set", "limited", "up")
        bed.in_gateway("ip", "route", "replace", "203.0.113.18/32", "dev", "limited")
        report = relayed(bed)
    ((_, _, counts),) = report.counts()
    assert (counts.received, faults(counts)) == (0, {"tunnel_option": FRAMES})


ELSEWHERE = "2001:2:0:ff::2"
FIRST, FIRST_IPV4, FIRST_PORT = "2001:2:0:4000:0:c612::", "198.18.0.0", 1024
"""The first customer edge of the recipe's own rule, which has ports 1024 to 1039."""


def up(
    outer: str, inner: str, port: int, relay: str = RELAY, before: Packet | None = None, **header: Any
) -> tuple[str, Packet]:
    """Return a packet from a customer edge, in a tunnel; `before` stands between both headers, `header` is of IPv4."""
    link = Ether(src=MAC_ADDRESSES["gm", "left"], dst=MAC_ADDRESSES["gw", "left"])
    inside = IP(src=inner, dst="198.19.0.2", **header) / UDP(sport=port, dport=7) / Raw(b"x" * 20)
    tunnel = IPv6(src=outer, dst=relay)
    return "left", link / (tunnel if before is None else tunnel / before) / inside


def down(port: int) -> tuple[str, Packet]:
    link = Ether(src=MAC_ADDRESSES["gm", "right"], dst=MAC_ADDRESSES["gw", "right"])
    return "right", link / IP(src="198.19.0.2", dst=FIRST_IPV4) / UDP(sport=7, dport=port) / Raw(b"x" * 20)


DROPPED = (
    up("2001:2:0:4001:0:c612:0:1", FIRST_IPV4, FIRST_PORT),  # foreign tunnel
    up(FIRST, "198.18.0.1", FIRST_PORT),  # foreign inner address
    up(FIRST, FIRST_IPV4, FIRST_PORT + 16),  # foreign port
    up(FIRST, FIRST_IPV4, 16),  # nobody's port
    up(FIRST, FIRST_IPV4, FIRST_PORT, frag=1),  # a later fragment, whose payload looks like a port
    up(FIRST, FIRST_IPV4, FIRST_PORT, options=[IPOption(b"\x01\x01\x01\x00")]),
    up(FIRST, FIRST_IPV4, FIRST_PORT, before=IPv6ExtHdrDestOpt()),
    up(FIRST, FIRST_IPV4, FIRST_PORT, ELSEWHERE),  # not the relay's address
    down(16),  # to nobody's port
)
"""What a relay must not forward (RFC 7597 section 8.1)."""


def test_what_is_no_customer_edge_s_is_dropped(relays: KeptBed) -> None:
    relays.close()
    with new_bed(RECIPE, "host") as bed:
        in_guest(bed, "ip", "-6", "route", "add", "2001:2:0:4000::/56", "via", "2001:2::2")
        arrived, _ = exchange(bed, [*DROPPED, up(FIRST, FIRST_IPV4, FIRST_PORT)], wanted=2)
        ((side, packet),) = [each for each in arrived if each[0] == "right"]
        assert (packet[IP].src, packet[UDP].sport) == (FIRST_IPV4, FIRST_PORT)
        ((side, packet),) = [each for each in arrived if each[0] == "left"]
        assert packet[IPv6].dst == ELSEWHERE, "a packet to another address is one of IPv6, and forwarded as it is"
        ((side, packet),), _ = exchange(bed, [*DROPPED[:-2], DROPPED[-1], down(FIRST_PORT)], wanted=1)
        assert (side, packet[IPv6].dst, packet[IP].dst) == ("left", FIRST, FIRST_IPV4)


@pytest.mark.nightly("its search and its series start three kernels")
def test_a_throughput_is_found_and_a_series_made(relays: KeptBed, tmp_path: Path) -> None:
    relays.close()
    search = {"resolution": "40%", "search_duration": QUICK["duration"]}
    table = {"domains": [SHARED], "edges": 256, "order": "increasing"}
    document = netns_document(RECIPE, map=table, traffic=SIZE, throughput=search, repetitions=1)
    (run,) = measure(campaign_from_dict(document), output=tmp_path / "result", report=False).runs
    assert isinstance(run, ThroughputResult)
    (repetition,) = run.repetitions
    if repetition.kind == "tester_limited":
        nothing_compared("the Tester could not offer a load")
    else:
        assert repetition.lower_bound is not None and repetition.lower_bound >= 1000
    document = netns_document(RECIPE, map=table, traffic=SIZE, frame_loss={"rates": [RELAYED_LOAD]}, repetitions=1)
    document["map"].pop("edges")
    check_series(document, '"map.edges" = [1, 256]\n"traffic.mix" = ["1/1", "1/2"]', tmp_path)
