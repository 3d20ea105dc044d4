"""A MAP-T border relay of tayga and nftables: customer edges of every kind of rule, and what may become of them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.system.beds import (
    QUICK,
    RELAYED_FRAMES,
    RELAYED_LOAD,
    KeptBed,
    check_relayed_whole,
    faults,
    netns_campaign,
    netns_document,
    relayed,
)
from tests.system.machine import gatemark, missing, nothing_compared

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import records_of
from gatemark.config.model import Campaign
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.results.toml_text import to_toml
from gatemark.session import measure
from gatemark.trial.verdict import judge

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "tayga", "nft", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

RECIPE = "tayga-mapt-br"
FRAMES = RELAYED_FRAMES
SIZE = {"frame_sizes": {"family": "ipv6", "octets": 128}}
DMR_64 = {"dmr": "2001:db8:ffff::/64"}
SHARED = {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16, **DMR_64}
SINGLE = {"ipv6": "2001:db8:12:3400::/56", "ipv4": "203.0.113.18/32", "ea_bits": 0, **DMR_64}
ONE_PSID = {**SINGLE, "psid_bits": 8, "psid": 0x34}
RULES: dict[str, dict[str, Any]] = {
    "shared, a = 6, k = 8": {"domains": [SHARED], "edges": 256, "order": "increasing"},
    "shared, a = 0": {"domains": [{**SHARED, "psid_offset": 0}], "edges": 256, "order": "decreasing"},
    "full address, k = 0": {"domains": [{**SHARED, "ea_bits": 8}]},
    "EA bits are a PSID, r = 32": {
        "domains": [{"ipv6": "2001:db8::/40", "ipv4": "203.0.113.77/32", "ea_bits": 8, "psid_offset": 4, **DMR_64}]
    },
    "IPv4 prefix": {"domains": [{**SHARED, "ipv4": "192.0.2.0/24", "ea_bits": 6}]},
    "two domains": {"domains": [{**SHARED, "weight": 3}, ONE_PSID], "edges": 4, "order": "increasing"},
}


@pytest.mark.parametrize("kind", RULES)
def test_every_frame_of_every_edge_comes_out_as_the_rule_says(kind: str) -> None:
    check_relayed_whole(netns_campaign(RECIPE, map=RULES[kind], traffic={**SIZE, "mix": "1/2"}))


FORWARD = {
    "ip saddr set 192.0.2.1": {"source_address", "other_edge_address"},
    "ip saddr set 198.51.100.1": {"source_address", "outside_rule"},
    "udp sport set 1028": {"source_port", "other_edge_port"},
    "udp sport set 1025": {"source_port"},
    "udp sport set 1000": {"source_port"},
    "ip ttl set 3": {"hop_limit"},
    "ip dscp set 1": {"traffic_class"},
}
REVERSE = {
    "ip6 daddr set 2001:db8:0:100:0:c000:200:1": {"destination_address", "other_edge_address"},
    "ip6 daddr set 2001:db8::c000:200:7": {"destination_address", "interface_identifier"},
    "ip6 daddr set 2001:dbf::1": {"destination_address", "outside_rule"},
    "udp dport set 1028": {"destination_port", "other_edge_port"},
    "ip6 saddr set 2001:db8:ffff:0:c6:1300:200:1": {"source_address"},
    "ip6 flowlabel set 5": {"flow_label"},
    "ip6 hoplimit set 3": {"hop_limit"},
    "udp checksum set 0": {"udp_checksum"},
}
"""What nftables does to each frame that leaves the relay, and the reasons that must be counted for it. They are of the
first customer edge of SHARED: 2001:db8::c000:200:0, 192.0.2.0, PSID 0, first port 1024."""


def relay(way: str) -> Campaign:
    """A relay with one customer edge, and traffic in one direction."""
    ports = {"forward_ports": "fixed", "reverse_ports": "fixed"}
    table = {"domains": [SHARED], "edges": 1, "order": "increasing", **ports}
    return netns_campaign(RECIPE, map=table, traffic={**SIZE, "direction": way})


@pytest.fixture(scope="module")
def relays() -> Iterator[KeptBed]:
    with contextlib.closing(KeptBed(relay)) as result:
        yield result


PLANTED = [*(("forward", rule) for rule in FORWARD), *(("reverse", rule) for rule in REVERSE)]


@pytest.mark.parametrize(("way", "rule"), PLANTED)
def test_a_planted_fault_is_named_and_counted(way: str, rule: str, relays: KeptBed) -> None:
    bed = relays.get(way)
    side, expected = ("right", FORWARD) if way == "forward" else ("left", REVERSE)
    with bed.rules(f'oifname "{bed.interface(side)}" meta l4proto udp {rule}'):
        report = relayed(bed)
    ((_, _, counts),) = report.counts()
    named = faults(counts)
    if "udp_checksum" not in expected[rule]:  # tayga wrote 0x0000 for 0xffff, which nftables does not adjust
        assert named.pop("udp_checksum", 0) <= FRAMES // 100
    correct = counts.zero_checksum  # one of 65,536: 0xffff is due, for which this relay is known to write 0
    wrong = FRAMES - correct
    assert correct <= FRAMES // 100
    assert (counts.received, counts.faulty, named) == (correct, wrong, dict.fromkeys(expected[rule], wrong))


def test_a_checksum_of_zero_is_counted_apart_where_the_relay_is_known_for_it(relays: KeptBed) -> None:
    bed = relays.get("forward")
    with bed.rules(f'oifname "{bed.interface("right")}" meta l4proto udp udp checksum set 0'):
        report = relayed(bed)
    ((_, _, counts),) = report.counts()
    assert (counts.received, counts.zero_checksum, faults(counts)) == (FRAMES, FRAMES, {})


def test_more_checksums_of_zero_than_are_due_are_a_fault(relays: KeptBed) -> None:
    """One of 50 frames leaves without a checksum: each may be one in which 0xffff is due, but not all of them."""
    bed = relays.get("forward")
    with bed.rules(f'oifname "{bed.interface("right")}" meta l4proto udp numgen inc mod 50 0 udp checksum set 0'):
        report = relayed(bed)
    ((_, _, counts),) = report.counts()
    assert (counts.received, faults(counts)) == (FRAMES, {})
    assert FRAMES // 50 <= counts.zero_checksum <= FRAMES // 50 + FRAMES // 100
    (reason,) = judge(report, Fraction(0)).reasons
    assert "frames have UDP checksum 0" in reason
    assert reason.endswith("where 0xffff is due in 1 of 65,536 (udp_checksum)")


@pytest.mark.alone  # on one CPU the Tester offers no load in time
def test_a_throughput_is_found(relays: KeptBed, tmp_path: Path) -> None:
    relays.close()
    search = {"resolution": "40%", "search_duration": QUICK["duration"]}
    table = {"domains": [SHARED], "edges": 256, "order": "increasing"}
    document = netns_document(RECIPE, map=table, traffic=SIZE, throughput=search, repetitions=1)
    (run,) = measure(campaign_from_dict(document), output=tmp_path / "result", report=False).runs
    assert isinstance(run, ThroughputResult)
    (repetition,) = run.repetitions
    if repetition.kind == "tester_limited":
        at_limit = (
            record
            for record in records_of(tmp_path / "result" / "trials.jsonl")
            if record.order.step.frames_per_second == repetition.tester_limited_at
        )
        assert all(record.validity.reasons or record.suspicion for record in at_limit)
        nothing_compared("the Tester could not offer a load")
        return
    assert repetition.lower_bound is not None and repetition.lower_bound >= 1000
    assert repetition.upper_bound is None or repetition.upper_bound > repetition.lower_bound


def test_a_series_over_customer_edges_and_background(relays: KeptBed, tmp_path: Path) -> None:
    relays.close()
    table = {"domains": [SHARED], "order": "increasing"}
    document = netns_document(RECIPE, map=table, traffic=SIZE, frame_loss={"rates": [RELAYED_LOAD]}, repetitions=1)
    vary = '\n[[vary]]\n"map.edges" = [1, 16, 256]\n"traffic.mix" = ["1/1", "1/2", "1/10"]\n'
    file, output = tmp_path / "series.toml", tmp_path / "series"
    file.write_text(to_toml(document) + vary)
    ended = gatemark("run", file, "--output", output)
    assert ended.status in (0, 1), ended
    series = json.loads((output / "series.json").read_text())
    assert [column["outcome"] for column in series["columns"]] == ["measured"] * 3
    assert [column["parameters"]["edges"] for column in series["columns"]] == [1, 16, 256]
    assert "Customer edges" in ended.output
