"""A B4 of the Linux kernel, in a kernel of its own: every frame through its tunnel, and planted faults (RFC 6333)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.recipes import changed_recipe
from tests.system.beds import (
    RELAYED_FRAMES,
    KeptBed,
    check_relayed_whole,
    faults,
    netns_campaign,
    open_bed,
    relayed,
    relayed_with,
)
from tests.system.machine import missing_for_guest

from gatemark.config.model import Campaign

MISSING = missing_for_guest()
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"a B4 in a kernel of its own needs {', '.join(MISSING)}"),
]

RECIPE = "linux-b4"
SIZE = {"frame_sizes": {"family": "ipv4", "octets": 128}}
HOSTS = {"offset": 2, "mode": "pseudorandom", "range": "2-101"}
OWN, AFTR = "2001:2:0:ff::1", "2001:2:0:8000::2"


def test_every_frame_of_every_host_comes_out_whole() -> None:
    left = {"ipv4": {"address": "198.18.0.2", "hosts": HOSTS}}
    right = {"ipv4": {"address": "198.19.0.2", "hosts": HOSTS}}
    traffic = {**SIZE, "mix": "1/2", "traffic_class": {"by_flow": [0, 0xB8, 0x28]}}
    check_relayed_whole(netns_campaign(RECIPE, left=left, right=right, traffic=traffic))


def test_the_tunnel_leads_to_the_aftr_of_the_campaign() -> None:
    right = {"ipv6": {"address": "2001:2:0:8000::77"}}
    check_relayed_whole(netns_campaign(RECIPE, right=right, traffic={**SIZE, "mix": "1/2"}))


INSIDE, OUTSIDE = 'oifname "dslite"', f"meta l4proto 4 ip6 saddr {OWN}"
PLANTED: dict[str, tuple[str, str, str, set[str]]] = {
    "another AFTR": ("forward", OUTSIDE, "ip6 daddr set 2001:2:0:8010::3", {"tunnel_destination"}),
    "another end of the tunnel": ("forward", OUTSIDE, "ip6 saddr set 2001:2:0:ff::2", {"tunnel_source"}),
    "outer hop limit": ("forward", OUTSIDE, "ip6 hoplimit set 3", {"tunnel_header"}),
    "outer traffic class": ("forward", OUTSIDE, "ip6 dscp set 1", {"tunnel_traffic_class"}),
    "kept TTL": ("forward", INSIDE, "ip ttl set 10", {"hop_limit"}),
    "another source inside": ("forward", INSIDE, "ip saddr set 198.18.0.9", {"source_address"}),
    "another destination inside": ("forward", INSIDE, "ip daddr set 198.19.0.9", {"destination_address"}),
    "another port inside": ("forward", INSIDE, "udp sport set 7", {"source_port"}),
    "a new identification": ("forward", INSIDE, "ip id set 7", {"identification"}),
    "kept TTL downwards": ("reverse", "meta l4proto udp", "ip ttl set 10", {"hop_limit"}),
    "another source downwards": ("reverse", "meta l4proto udp", "ip saddr set 198.19.0.9", {"source_address"}),
}  # fmt: skip
"""Direction, which frames nftables changes, what it does, and the reasons that must be counted."""


@pytest.fixture(scope="module")
def edges() -> Iterator[KeptBed]:
    def edge(way: str) -> Campaign:
        """A B4 whose AFTR is behind a router: the kernel asks for no neighbour before it sends to another one."""
        ipv6 = {"address": "2001:2:0:8010::2", "router": "2001:2:0:8000::2"}
        return netns_campaign(
            RECIPE, right={"address_mode": "nexthop", "ipv6": ipv6}, traffic={**SIZE, "direction": way}
        )

    with contextlib.closing(KeptBed(edge)) as result:
        yield result


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_named_and_counted(name: str, edges: KeptBed) -> None:
    way, which, change, expected = PLANTED[name]
    counts, changed = relayed_with(edges.get(way), which, change)
    assert (counts.received, faults(counts)) == (RELAYED_FRAMES - changed, dict.fromkeys(expected, changed))


def with_ecn(folder: Path) -> str:
    """Return the recipe with what its kernel does to congestion fields."""
    return str(changed_recipe(folder, RECIPE, ("hop_limit = 64}", 'hop_limit = 64, ecn = "full_functionality"}')))


def test_congestion_fields_of_the_kernel_are_those_of_rfc_3168(edges: KeptBed, tmp_path: Path) -> None:
    """A packet that has experienced congestion is in a tunnel that is capable; behind the tunnel it keeps its field."""
    edges.close()
    traffic = {**SIZE, "mix": "1/2", "traffic_class": {"by_flow": [0, 1, 2, 3, 0xB8, 0xBB]}}
    hosts = {"ipv4": {"address": "198.18.0.2", "hosts": HOSTS}}
    check_relayed_whole(netns_campaign(with_ecn(tmp_path), left=hosts, traffic=traffic))


MARKS = [
    (OUTSIDE, "@nh,0,16 set 0x6030", 0),  # class 3; Linux 7.2 does nothing for `ip6 ecn set ce`
    (INSIDE, "ip ecn set ce", 1),
]
"""Which frames nftables marks as congestion experienced, how, and whether the packet comes out with the mark, too."""


@pytest.mark.parametrize(("which", "mark", "inside"), MARKS)
def test_a_router_that_marks_congestion_is_at_no_fault(
    which: str, mark: str, inside: int, edges: KeptBed, tmp_path: Path
) -> None:
    """In the tunnel; and before it, where the kernel then writes a capable header."""
    edges.close()
    traffic = {**SIZE, "direction": "forward", "traffic_class": 1}
    ipv6 = {"address": "2001:2:0:8010::2", "router": "2001:2:0:8000::2"}
    right = {"address_mode": "nexthop", "ipv6": ipv6}
    with open_bed(netns_campaign(with_ecn(tmp_path), right=right, traffic=traffic)) as bed:
        counts, changed = relayed_with(bed, which, mark)
    assert (counts.received, faults(counts), changed) == (RELAYED_FRAMES, {}, RELAYED_FRAMES)
    marked = (counts.congestion_experienced, counts.congestion_outside)
    assert marked == (changed * inside, changed * (1 - inside))


def test_an_encapsulation_limit_is_a_fault_of_its_own(edges: KeptBed) -> None:
    """Linux writes it by default (RFC 2473 section 4.1.1)."""
    edges.close()
    with open_bed(netns_campaign(RECIPE, traffic={**SIZE, "direction": "forward"})) as bed:
        bed.in_gateway("ip", "-6", "tunnel", "change", "dslite", "mode", "ipip6", "encaplimit", "4")
        ((_, _, counts),) = relayed(bed).counts()
    assert (counts.received, faults(counts)) == (0, {"tunnel_option": RELAYED_FRAMES})
