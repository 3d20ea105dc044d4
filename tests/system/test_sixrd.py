"""A 6rd border relay of the Linux kernel, in a kernel of its own: all customer edges, and planted faults (RFC 5969)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from tests.system.beds import (
    QUICK,
    RELAYED_FRAMES,
    KeptBed,
    check_relayed_whole,
    check_series,
    faults,
    netns_campaign,
    netns_document,
    relayed_with,
)
from tests.system.machine import missing_for_guest
from tests.system.test_guest_kernel import new_bed
from tests.system.test_netns import exchange

from gatemark.config.model import Campaign
from gatemark.dut.gateway_kernel import MAC_ADDRESSES

MISSING = missing_for_guest()
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"a relay in a kernel of its own needs {', '.join(MISSING)}"),
]

RECIPE = "linux-sixrd-br"
SIZE = {"frame_sizes": {"family": "ipv6", "octets": 128}}


def edges(count: int) -> dict[str, Any]:
    """Return the left side with so many customer edges, from 198.18.0.4 on."""
    hosts = {"offset": 2, "mode": "pseudorandom", "range": f"4-{count + 3}"}
    return {"ipv4": {"address": "198.18.0.4", "hosts": hosts}}


@pytest.mark.parametrize("count", [1, 100])
def test_every_frame_of_every_edge_comes_out_whole(count: int) -> None:
    check_relayed_whole(netns_campaign(RECIPE, left=edges(count), traffic={**SIZE, "mix": "1/2"}))


INSIDE, OUTSIDE = 'oifname "sixrd"', "meta l4proto 41 ip daddr 198.18.1.4"
FIRST = f"{INSIDE} ip6 daddr 2001:db8:6464:104::1"
PLANTED: dict[str, tuple[str, str, str, set[str]]] = {
    "another edge's tunnel": (
        "reverse", OUTSIDE, "ip daddr set 198.18.1.5", {"tunnel_destination", "other_subscriber"},
    ),
    "nobody's tunnel": ("reverse", OUTSIDE, "ip daddr set 198.18.1.99", {"tunnel_destination"}),
    "another end of the tunnel": ("reverse", OUTSIDE, "ip saddr set 198.18.0.99", {"tunnel_source"}),
    "outer time to live": ("reverse", OUTSIDE, "ip ttl set 3", {"tunnel_header"}),
    "outer type of service": ("reverse", OUTSIDE, "ip dscp set 1", {"tunnel_traffic_class"}),
    "kept hop limit": ("reverse", INSIDE, "ip6 hoplimit set 10", {"hop_limit"}),
    "another address inside": (
        "reverse", FIRST, "ip6 daddr set 2001:db8:6464:104::9", {"destination_address"},
    ),
    "another edge's address inside": (
        "reverse", FIRST, "ip6 daddr set 2001:db8:6464:105::1",
        {"destination_address", "tunnel_destination", "other_subscriber"},
    ),
    "kept hop limit upwards": ("forward", "meta l4proto udp", "ip6 hoplimit set 10", {"hop_limit"}),
}  # fmt: skip
"""Direction, which frames nftables changes, what it does, and the reasons that must be counted. There are two edges."""


@pytest.fixture(scope="module")
def relays() -> Iterator[KeptBed]:
    def relay(way: str) -> Campaign:
        hosts = {"offset": 2, "mode": "pseudorandom", "range": "260-261"}
        ipv4 = {"address": "198.18.1.4", "router": "198.18.0.2", "hosts": hosts}
        ipv6 = {"address": "2001:2:0:10::2", "router": "2001:2::2"}
        left = {"address_mode": "nexthop", "ipv4": ipv4, "ipv6": ipv6}
        return netns_campaign(RECIPE, left=left, traffic={**SIZE, "direction": way})

    with contextlib.closing(KeptBed(relay)) as result:
        yield result


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_named_and_counted(name: str, relays: KeptBed) -> None:
    way, which, change, expected = PLANTED[name]
    counts, changed = relayed_with(relays.get(way), which, change)
    assert (counts.received, faults(counts)) == (RELAYED_FRAMES - changed, dict.fromkeys(expected, changed))


EDGE, INNER, OTHER = "198.18.0.2", "2001:db8:6464:2::1", "2001:db8:6464:3::1"
"""A customer edge, its host, and one that is not its own."""


def up(inner: str, relay: str = "198.18.0.1") -> tuple[str, Packet]:
    link = Ether(src=MAC_ADDRESSES["gm", "left"], dst=MAC_ADDRESSES["gw", "left"])
    inside = IPv6(src=inner, dst="2001:2:0:8000::2") / UDP(sport=1024, dport=7) / Raw(b"x" * 20)
    return "left", link / IP(src=EDGE, dst=relay, proto=41) / inside


def test_what_is_in_another_edge_s_prefix_is_dropped(relays: KeptBed) -> None:
    """RFC 5969 section 9.2."""
    relays.close()
    with new_bed(RECIPE, "host") as bed:
        arrived, _ = exchange(bed, [up(OTHER), up(INNER)], wanted=1)
        ((side, packet),) = arrived
        assert (side, packet[IPv6].src) == ("right", INNER)


@pytest.mark.nightly("its search and its series start three kernels")
def test_a_throughput_is_found_and_a_series_made(relays: KeptBed, tmp_path: Path) -> None:
    relays.close()
    search = {"resolution": "40%", "search_duration": QUICK["duration"]}
    document = netns_document(RECIPE, left=edges(1), traffic=SIZE, throughput=search, repetitions=1)
    document["left"]["ipv4"]["hosts"].pop("range")
    check_series(document, '"left.ipv4.hosts.range" = ["4-4", "4-103"]', tmp_path)
