"""An lwAFTR of the Linux kernel, in a kernel of its own: kinds of bindings, and what becomes of a frame (RFC 7596)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from tests.system.beds import (
    QUICK,
    RELAYED_FRAMES,
    KeptBed,
    check_relayed_whole,
    check_series,
    faults,
    netns_campaign,
    netns_document,
    relayed,
)
from tests.system.machine import missing_for_guest, nothing_compared
from tests.system.test_guest_kernel import in_guest, new_bed
from tests.system.test_map_e import down, up
from tests.system.test_netns import exchange

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.procedures.delay.result import DelayResult
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.session import measure

MISSING = missing_for_guest()
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"an lwAFTR in a kernel of its own needs {', '.join(MISSING)}"),
]

RECIPE = "linux-lwaftr"
SIZE = {"frame_sizes": {"family": "ipv4", "octets": 128}}
SHARED = {"ipv6": "2001:db8:1:2::/64", "ipv4": "192.0.2.0/24", "psid_bits": 6, "exclude": "system_ports"}
BINDINGS = (
    {**SHARED, "weight": 3},
    {"ipv6": "2001:db8:1:3::/64", "ipv4": "203.0.113.0/24", "psid_bits": 0},
    {"ipv6": "2001:db8:1:4::/64", "ipv4": "198.51.100.16/28", "psid_bits": 8, "psid_offset": 6},
)


def test_every_frame_of_every_softwire_comes_out_as_its_binding_says() -> None:
    table = {"softwires": BINDINGS, "edges": 250, "order": "increasing"}
    check_relayed_whole(netns_campaign(RECIPE, map=table, traffic={**SIZE, "mix": "1/2"}))


OUTSIDE = "meta l4proto 4"
PLANTED: dict[str, tuple[str, str, set[str]]] = {
    "another subscriber's tunnel": (
        "reverse",
        f"{OUTSIDE} ip6 daddr set 2001:db8:1:2:0:c000:200:2",
        {"tunnel_destination", "other_subscriber"},
    ),
    "nobody's tunnel": ("reverse", f"{OUTSIDE} ip6 daddr set 2001:db8:1:2:0:c000:300:1", {"tunnel_destination"}),
    "another end of the tunnel": ("reverse", f"{OUTSIDE} ip6 saddr set 2001:2:0:ff::2", {"tunnel_source"}),
    "outer traffic class": ("reverse", f"{OUTSIDE} ip6 dscp set 1", {"tunnel_traffic_class"}),
    "kept TTL": ("reverse", 'oifname "softwires" ip ttl set 10', {"hop_limit"}),
    "another port": ("forward", "udp sport set 2048", {"source_port", "other_edge_port"}),
}
"""Direction, what nftables does to each frame, and the reasons that must be counted for it. They are of the first
softwire of SHARED: 2001:db8:1:2:0:c000:200:1, 192.0.2.0, PSID 1, ports 1024 to 2047."""


def lwaftr(way: str) -> Campaign:
    """An lwAFTR with one softwire, and traffic in one direction."""
    ports = {"forward_ports": "fixed", "reverse_ports": "fixed"}
    table = {"softwires": [SHARED], "edges": 1, "order": "increasing", **ports}
    return netns_campaign(RECIPE, map=table, traffic={**SIZE, "direction": way})


@pytest.fixture(scope="module")
def lwaftrs() -> Iterator[KeptBed]:
    with contextlib.closing(KeptBed(lwaftr)) as result:
        yield result


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_named_and_counted(name: str, lwaftrs: KeptBed) -> None:
    way, rule, expected = PLANTED[name]
    bed = lwaftrs.get(way)
    with bed.rules(rule):
        report = relayed(bed)
    ((_, _, counts),) = report.counts()
    assert (counts.received, counts.faulty) == (0, RELAYED_FRAMES)
    assert faults(counts) == dict.fromkeys(expected, RELAYED_FRAMES)


@pytest.mark.nightly("its search and its series start three kernels")
def test_rates_and_delays_are_measured_and_a_series_is_made(lwaftrs: KeptBed, tmp_path: Path) -> None:
    lwaftrs.close()
    tables = {
        "throughput": {"resolution": "40%", "search_duration": QUICK["duration"]},
        "delay": {"load": 1000, "duration": "1s", "first_tag": "200ms", "tags": 100},
    }
    of_softwires = {"softwires": BINDINGS, "edges": 250, "order": "increasing"}
    document = netns_document(RECIPE, map=of_softwires, traffic=SIZE, repetitions=1, **tables)
    throughput, delay = measure(campaign_from_dict(document), output=tmp_path / "result", report=False).runs
    assert isinstance(throughput, ThroughputResult) and isinstance(delay, DelayResult)
    (repetition,) = throughput.repetitions
    if repetition.kind == "tester_limited":
        nothing_compared("the Tester could not offer a load")
    else:
        assert repetition.lower_bound is not None and repetition.lower_bound >= 1000
    (point,) = delay.points
    for way in point.series:
        assert way.latency is not None and way.latency.tags == (100,)
        assert way.undelivered > (0,) or way.latency.typical_ns.values[0] is not None
    document["map"].pop("edges")
    series = {key: value for key, value in document.items() if key not in tables}
    check_series({**series, "frame_loss": {"rates": [1000]}}, '"map.edges" = [1, 250]', tmp_path)


FIRST, FIRST_IPV4, FIRST_PORT = "2001:2:0:4000:0:c612:0:1", "198.18.0.0", 1024
"""The first softwire of the recipe's own table, which has ports 1024 to 2047."""
DROPPED = (
    up("2001:2:0:4000:0:c612:0:2", FIRST_IPV4, FIRST_PORT),  # the tunnel of another lwB4
    up("2001:2:0:4000:1:c612:0:1", FIRST_IPV4, FIRST_PORT),  # nobody's tunnel
    up("2001:2:0:4000:0:c612:0:41", FIRST_IPV4, FIRST_PORT),  # a PSID of more bits
    up(FIRST, "198.18.0.1", FIRST_PORT),  # another IPv4 address
    up(FIRST, FIRST_IPV4, 2048),  # a port of another lwB4
    up(FIRST, FIRST_IPV4, 1023),  # a system port, which nobody has
    up(FIRST, FIRST_IPV4, FIRST_PORT, "2001:2:0:ff::2"),  # not the lwAFTR's address
    down(1023),  # to nobody's port
)
"""What has no entry in the binding table, or is not for the lwAFTR (RFC 7596 section 6.2)."""


def test_what_has_no_binding_is_dropped(lwaftrs: KeptBed) -> None:
    lwaftrs.close()
    with new_bed(RECIPE, "host") as bed:
        in_guest(bed, "ip", "-6", "route", "add", "2001:2:0:4000::/64", "via", "2001:2::2")
        arrived, _ = exchange(bed, [*DROPPED, up(FIRST, FIRST_IPV4, FIRST_PORT), down(FIRST_PORT)], wanted=3)
        ((_, packet),) = [each for each in arrived if each[0] == "right"]
        assert (packet[IP].src, packet[UDP].sport) == (FIRST_IPV4, FIRST_PORT)
        left = sorted(packet[IPv6].dst for side, packet in arrived if side == "left")
        assert left == ["2001:2:0:4000:0:c612:0:1", "2001:2:0:ff::2"], "what is for another address stays in its tunnel"
