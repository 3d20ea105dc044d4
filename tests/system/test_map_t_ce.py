"""A MAP-T customer edge of tayga and nftables: phases, its port set as capacity, planted faults, what it drops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from tests.recipes import changed_recipe
from tests.system.beds import PATIENT
from tests.system.machine import missing, nothing_compared
from tests.system.stateful_beds import stateful_campaign
from tests.system.test_map_bed import framed
from tests.system.test_netns import exchange
from tests.system.test_stateful import (
    assert_counts_agree,
    check_capacity_of_ports,
    check_phase_one_faults,
    measured,
)

from gatemark.dut.netns import NetnsTestBed
from gatemark.dut.open import open_testbed
from gatemark.procedures.connection_establishment_rate.result import EstablishmentResult
from gatemark.procedures.connection_tracking_table_capacity.report import size_words
from gatemark.procedures.connection_tracking_table_capacity.result import CapacityResult
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.report.words import DASH

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "tayga", "nft", "conntrack", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

RECIPE = "tayga-mapt-ce"
DMR = {"dmr": "2001:db8:ffff::/64"}
SERVER = "2001:db8:ffff:0:c6:1300:200:0"
"""198.19.0.2 under that prefix (RFC 6052 section 2.2)."""
SHARED = {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16, **DMR}
SINGLE = {"ipv6": "2001:db8:12:3400::/56", "ipv4": "192.0.2.18/32", "ea_bits": 0, **DMR}
PREFIX = {"end_user_prefix": "2001:db8:12:3400::/56"}
EDGES: dict[str, tuple[dict[str, Any], int, range, int]] = {
    # [map]; connections; its ports, as the PSID's place in a port; lowest port
    "shared, a = 6, k = 8": ({"domains": [SHARED], **PREFIX}, 252, range(0x34 << 2, 0x35 << 2), 1024),
    "shared, a = 0, k = 8": ({"domains": [{**SHARED, "psid_offset": 0}], **PREFIX}, 256, range(0x3400, 0x3500), 0),
    "a PSID without EA bits, a = 4": (
        {"domains": [{**SINGLE, "psid_offset": 4, "psid_bits": 6, "psid": 0x34}]},
        960,
        range(0x34 << 6, 0x35 << 6),
        4096,
    ),
    "full address, k = 0": ({"domains": [SINGLE]}, 2000, range(65536), 1024),
}
"""Customer edges of 192.0.2.18, with so many connections to one destination as their ports allow."""
FULL = {"rate": "2k", "timeout": "200ms", "gap": "100ms", "destination_ports": "80"}
UNHURRIED = {**PATIENT, "retries": 30}
"""A trial of a tenth of a second is invalid if its last frame leaves 0.6 ms late, which a busy machine often does."""
SIDES: dict[str, Any] = {"right": {"ipv6": {"address": SERVER}}}


@pytest.mark.parametrize("kind", EDGES)
def test_every_port_of_the_set_carries_a_connection(kind: str, tmp_path: Path) -> None:
    """Beside native IPv6, in both phases; the learned ports are those of the set."""
    table, count, ports, lowest = EDGES[kind]
    traffic = {"frame_sizes": {"family": "ipv4", "octets": 128}, "mix": "9/10"}
    campaign = stateful_campaign(
        RECIPE, map=table, **SIDES, repetitions=1, traffic=traffic, connections={**FULL, "count": count},
        frame_loss={"rates": ["2k"]},
    )  # fmt: skip
    _, records = measured(campaign, tmp_path / "result")
    assert_counts_agree(records, count)
    behaviour = next(r.connections.behaviour for r in records if r.connections and r.connections.behaviour)
    assert behaviour["public_addresses"] == 1
    assert behaviour["public_ports"] == count
    first, last = behaviour["public_port_minimum"], behaviour["public_port_maximum"]
    assert first >= lowest
    size = 65536 if lowest == 0 else lowest
    assert all(port % size in ports or len(ports) == 65536 for port in (first, last))


@pytest.mark.alone  # on one CPU the search takes three times as long
@pytest.mark.nightly("ten seconds each; connections on every port of a set are a test of every run")
@pytest.mark.parametrize("kind", ["shared, a = 6, k = 8", "shared, a = 0, k = 8"])
def test_the_capacity_is_the_size_of_the_port_set(kind: str, tmp_path: Path) -> None:
    table, count, _, _ = EDGES[kind]
    check_capacity_of_ports(RECIPE, {"map": table, **SIDES}, count, tmp_path / "result")


@pytest.mark.alone  # as above
def test_an_edge_that_uses_one_range_of_its_port_set_only_is_named(tmp_path: Path) -> None:
    first = "snat ip to 198.18.128.18:1232-1235"
    planted = f'    "nft add rule ip edge postrouting oifname mapt meta l4proto udp {first}",\n'
    flushed = '    "nft -f {dir}/edge.nft",\n    "nft flush chain ip edge postrouting",\n' + planted
    tayga = '    "tayga --config {dir}/tayga.conf --mktun",\n'
    campaign = stateful_campaign(
        changed_recipe(tmp_path, RECIPE, ('    "nft -f {dir}/edge.nft",\n' + tayga, flushed + tayga)),
        repetitions=1, frame_loss=None,
        connections={"rate": "2k", "timeout": "100ms", "gap": "50ms"},
        connection_tracking_table_capacity={
            "start": 2, "resolution": 1, "maximum": 8, "maximum_rate": "2k", "rate_resolution": "1900",
        },
    )  # fmt: skip
    result, _ = measured(campaign, tmp_path / "result")
    (run,) = result.runs
    assert isinstance(run, CapacityResult)
    assert (run.repetitions[0].lower_bound, run.repetitions[0].upper_bound) == (4, 5)
    assert size_words(result.document.gateway, run).startswith(
        "The capacity is far below the 252 connections that the ports of the customer edge allow: 4 in one repetition,"
        f" a median of 1.59 %. Of the 63 ranges of its port set 62 had no connection when 4 were established, the first"
        f" of them 2256 {DASH} 2259."
    )


def test_rates_are_measured_as_of_any_stateful_gateway(tmp_path: Path) -> None:
    campaign = stateful_campaign(
        RECIPE,
        repetitions=1,
        frame_loss=None,
        connections={"count": 250, "timeout": "100ms", "gap": "50ms", "rate": "50%"},
        connection_establishment_rate={"maximum": "2k", "minimum": "500", "resolution": "500"},
        throughput={"maximum": "4k", "minimum": "1k", "resolution": "1k"},
        validity=UNHURRIED,
    )
    result, _ = measured(campaign, tmp_path / "result")
    establishment, throughput = result.runs
    assert isinstance(establishment, EstablishmentResult) and isinstance(throughput, ThroughputResult)
    for run, rate in ((establishment, establishment.rate), (throughput, throughput.rate)):
        assert (rate is None) == (run.limited_by == "tester"), run
        if rate is None:
            nothing_compared(f"{run.procedure} was limited by the Tester")
    document = (Path(result.folder) / "result.json").read_text(encoding="utf-8")
    assert '"address": "2001:2:0:4012:3400:c612:8012:34"' in document
    assert '"ports": 252' in document


PLANTED = {
    "udp sport set 1231": {"source_port", "outside_port_set"},
    "udp sport set 1000": {"source_port", "outside_port_set"},
    "ip6 saddr set 2001:2:0:4012:3400:c612:8012:35": {"source_address", "interface_identifier"},
    "ip6 saddr set 2001:2:0:4012:3500:c612:8012:35": {"source_address", "other_edge_address"},
    "ip6 saddr set 2001:2:0:4112:3400:c612:8012:34": {"source_address", "outside_rule"},
    "ip6 daddr set 2001:2:0:6400::c613:3": {"destination_address"},
    "ip6 hoplimit set 3": {"hop_limit"},
}
"""What nftables does to each frame that leaves the edge of the recipe, and the reasons that must be counted for it."""


@pytest.mark.parametrize("rule", PLANTED)
def test_a_planted_fault_is_named_and_counted(rule: str, tmp_path: Path) -> None:
    hook = 'type filter hook postrouting priority 300; oifname "{right}" meta l4proto udp'
    planted = f"\"planted.nft\" = '''table ip6 planted {{\nchain planted {{\n{hook} {rule}\n}}\n}}\n'''"
    text, load = '"edge.nft" = "{map_nftables}"', '"nft -f {dir}/edge.nft",\n    "tayga'
    recipe = changed_recipe(
        tmp_path, RECIPE,
        (text, f"{text}\n{planted}"),
        (load, f'"nft -f {{dir}}/planted.nft",\n    {load}'),
    )  # fmt: skip
    check_phase_one_faults(recipe, UNHURRIED | {"retries": 2}, PLANTED[rule], tmp_path / "result")


@pytest.fixture(scope="module")
def edge() -> Iterator[NetnsTestBed]:
    campaign = stateful_campaign(
        RECIPE, map={"domains": [SHARED], **PREFIX}, **SIDES, connections={**FULL, "count": 10}
    )
    bed = open_testbed(campaign)
    assert isinstance(bed, NetnsTestBed)
    with bed:
        yield bed


def test_it_lets_in_the_answers_of_its_connections_and_nothing_else(edge: NetnsTestBed) -> None:
    """RFC 7599 section 8.1: to its MAP address, from below the default mapping rule, to a port that is in use."""
    address = "2001:db8:12:3400:0:c000:212:34"
    ((side, packet),), _ = exchange(edge, [framed("left", IP(src="198.18.0.2", dst="198.19.0.2", ttl=10), 5000, 80)])
    assert (side, packet[IPv6].src, packet[IPv6].dst) == ("right", address, SERVER)
    port = packet[UDP].sport
    assert port % 1024 in range(0x34 << 2, 0x35 << 2)

    def reply(source: str, destination: str, source_port: int, destination_port: int) -> Any:
        return framed("right", IPv6(src=source, dst=destination, hlim=10), source_port, destination_port)

    wrong = [
        reply(SERVER, address, 80, 1231),  # another customer's
        reply(SERVER, address, 80, 1000),  # nobody's
        reply(SERVER, address, 80, 64720 if port != 64720 else 64721),  # its own, without a connection
        reply(SERVER, address, 81, port),  # another server's port
        reply("2001:2:0:8000::2", address, 80, port),  # not below the default mapping rule
        reply("2001:db8:fffe:0:c6:1300:200:0", address, 80, port),
    ]
    right = reply(SERVER, address, 80, port)
    received, _ = exchange(edge, [*wrong, right], wanted=1)
    assert [(side, p[IP].src, p[IP].dst, p[UDP].dport) for side, p in received if side == "left"] == [
        ("left", "198.19.0.2", "198.18.0.2", 5000)
    ]
