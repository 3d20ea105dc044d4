"""Frames of other forms through real gateways: without UDP checksum, and with a MAC address for each emulated host."""

from __future__ import annotations

import os
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.journals import read_journal
from tests.system.beds import FRAMES, PATIENT, QUICK, OpenBed, faults, netns_campaign, open_bed, report_of, valid_of
from tests.system.stateful_beds import CONNECTIONS, ONE_SIZE, stateful_campaign

from gatemark.campaign.file import campaign_from_dict
from gatemark.cli.main import main
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.results.store import ResultFolder
from gatemark.results.toml_text import to_toml
from gatemark.session import measure
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import Counts, TrialReport
from gatemark.trial.verdict import judge

MISSING = [tool for tool in ("ip", "nft", "conntrack", "tayga", "ethtool") if shutil.which(tool) is None]
if os.geteuid() != 0:
    MISSING.insert(0, "root")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"gateways in namespaces need {', '.join(MISSING)}")

HOSTS = 100
"""On each side: fewer than a kernel's neighbour table holds."""
ZERO = {"udp_checksum": "zero"}


def counts_of(report: TrialReport) -> dict[str, Counts]:
    """Return the foreground of each direction."""
    return {direction: counts for direction, kind, counts in report.counts() if kind == "foreground"}


@pytest.mark.parametrize(("checksum", "passes"), [("zero", "0"), ("computed", "!= 0")])
def test_a_router_forwards_frames_without_checksum_as_they_are(checksum: str, passes: str) -> None:
    """The gateway's own filter lets only frames with, or only frames without a checksum pass."""
    drop_others = f"meta l4proto udp udp checksum {'!= 0' if passes == '0' else '0'} drop"
    with open_bed(netns_campaign("linux-router4", traffic={"udp_checksum": checksum})) as bed:
        assert {way: counts.received for way, counts in counts_of(report_of(bed)).items()} == dict.fromkeys(
            ("forward", "reverse"), FRAMES
        )
        with bed.rules(drop_others):
            report = report_of(bed)
    assert [(counts.received, counts.lost) for counts in counts_of(report).values()] == [(FRAMES, 0)] * 2


def test_a_checksum_that_a_router_adds_is_named() -> None:
    with (
        open_bed(netns_campaign("linux-router4", traffic={"direction": "forward", **ZERO})) as bed,
        bed.rules("meta l4proto udp udp checksum set 0x1234"),
    ):
        report = report_of(bed)
    counts = counts_of(report)["forward"]
    assert (counts.received, counts.faulty, faults(counts)) == (0, FRAMES, {"udp_checksum": FRAMES})


def test_frame_says_where_no_checksum_is_due(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only IPv4 frames of the direction that asks for it have none: the translator must compute it for IPv6."""
    file = tmp_path / "campaign.toml"
    file.write_text(to_toml(netns_campaign("tayga-siit64", traffic={**ONE_SIZE, "reverse": ZERO}).to_document()))
    assert main(["frame", str(file), "--count", "1"]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert [line.split()[:2] for line in shown] == [
        ["sent", "IPv6"], ["expected", "IPv4"], ["sent", "IPv4"], ["expected", "IPv6"],
    ]  # fmt: skip
    assert ["UDP checksum none (0), header checksum correct" in line for line in shown] == [False, False, True, False]
    assert not any("wrong" in line for line in shown)


def measured(campaign: Campaign, folder: Path) -> list[TrialRecord]:
    """Measure a campaign; return its valid trials."""
    result = measure(campaign, output=folder, report=False)
    return valid_of(list(read_journal(ResultFolder.open(result.folder).journal_file)))


@pytest.mark.parametrize("inside", ["left", "right"])
@pytest.mark.parametrize("host_macs", ["fixed", "random"])
def test_a_nat44_keeps_frames_without_checksum_and_connections_of_many_macs(
    inside: str, host_macs: str, tmp_path: Path
) -> None:
    hosts = {"offset": 2, "mode": "pseudorandom", "range": "2-21"}
    left, right = (
        {"ipv4": {"address": address, "hosts": hosts}, "host_macs": host_macs}
        for address in (("198.18.0.2", "198.19.0.2") if inside == "left" else ("198.19.0.2", "198.18.0.2"))
    )
    campaign = stateful_campaign(
        "nft-nat44",
        gateway={"inside": inside},
        repetitions=1,
        traffic={**ONE_SIZE, **ZERO},
        left=left,
        right=right,
    )
    for record in measured(campaign, tmp_path / "result"):
        facts = record.connections
        assert facts is not None
        established = facts.phase_one[-1].report.connections
        assert established is not None
        assert established.established == facts.counted_after_phase_one == CONNECTIONS["count"]
        assert not [faults(counts) for report in record.reports() for _, _, counts in report.counts() if counts.faulty]
        assert all(counts.received for _, _, counts in record.report.counts() if counts.intended)


def test_tayga_drops_what_has_no_checksum() -> None:
    """To IPv6 a translator must compute a checksum, or drop the packet (RFC 7915 section 4.5): tayga 0.9.2 drops."""
    traffic = {"frame_sizes": {"family": "ipv4", "octets": 128}, "reverse": ZERO}
    with open_bed(netns_campaign("tayga-siit64", traffic=traffic)) as bed:
        counts = counts_of(report_of(bed))
    assert counts["forward"].received == FRAMES
    assert (counts["reverse"].received, counts["reverse"].lost) == (0, FRAMES)
    assert faults(counts["reverse"]) == {}


def test_a_wire_carries_them_as_they_are(tmp_path: Path) -> None:
    """The loop-back of the self-test: the Tester itself sends to the MAC address of each host."""
    span = {"offset": 2, "mode": "pseudorandom", "range": "2-60001"}
    campaign = complete_campaign(
        campaign_from_dict(
            {
                "testbed": {"kind": "loopback", "huge_pages": "never"},
                "gateway": {"technology": "router44"},
                "left": {"host_macs": "random", "ipv4": {"address": "198.18.0.2", "hosts": span}},
                "right": {"host_macs": "random", "ipv4": {"address": "198.19.0.2", "hosts": span}},
                "traffic": {"frame_sizes": {"family": "ipv4", "octets": 64}, **ZERO},
                "trial": QUICK,
                "validity": PATIENT,
                "frame_loss": {"rates": ["10k"]},
                "repetitions": 1,
            }
        )
    )
    for record in measured(campaign, tmp_path / "result"):
        assert [(counts.received, faults(counts)) for counts in counts_of(record.report).values()] == [(FRAMES, {})] * 2


def sides(family: str = "ipv4", **right: Any) -> dict[str, Any]:
    """Return both sides with many hosts, each with its own MAC address."""
    span = {"mode": "pseudorandom", "range": f"2-{HOSTS + 1}"}
    addresses = ("198.18.0.2", "198.19.0.2") if family == "ipv4" else ("2001:2::2", "2001:2:0:8000::2")
    offset = 2 if family == "ipv4" else 14
    left_side, right_side = (
        {"host_macs": "random", family: {"address": address, "hosts": {"offset": offset, **span}}}
        for address in addresses
    )
    return {"left": left_side, "right": {**right_side, **right}}


def neighbours(bed: OpenBed, side: str, family: str) -> dict[str, str]:
    """Return the MAC addresses that the gateway has learnt on a side, by address."""
    lines = bed.in_gateway(
        "ip", "-4" if family == "ipv4" else "-6", "neighbour", "show", "dev", bed.interface(side)
    ).splitlines()
    words = [line.split() for line in lines if "lladdr" in line]
    return {line[0]: line[line.index("lladdr") + 1] for line in words if not line[0].startswith("fe80")}


@pytest.mark.parametrize(("recipe", "family"), [("linux-router4", "ipv4"), ("linux-router6", "ipv6")])
def test_a_router_learns_a_mac_address_of_each_host(recipe: str, family: str) -> None:
    with open_bed(netns_campaign(recipe, **sides(family))) as bed:
        first = report_of(bed)
        learnt = [neighbours(bed, side, family) for side in ("left", "right")]
        second = report_of(bed)
        again = [neighbours(bed, side, family) for side in ("left", "right")]
    for report in (first, second):
        assert [(counts.received, faults(counts)) for counts in counts_of(report).values()] == [(FRAMES, {})] * 2
    assert learnt == again, "the same in every trial"
    for port, table in enumerate(learnt, start=1):
        assert len(table) >= HOSTS
        assert len(set(table.values())) == len(table), "no two hosts share one"
        for mac in table.values():
            octets = bytes.fromhex(mac.replace(":", ""))
            assert octets[0] & 0x03 == 0
            assert int.from_bytes(octets[1:3]) == port


def test_a_gateway_that_sends_to_the_mac_address_of_another_host_is_named() -> None:
    with open_bed(netns_campaign("linux-router4", traffic={"direction": "forward"}, **sides())) as bed:
        report_of(bed)
        table = neighbours(bed, "right", "ipv4")
        device = ("dev", bed.interface("right"), "nud", "permanent")
        bed.in_gateway("ip", "neighbour", "replace", "198.19.0.3", "lladdr", table["198.19.0.4"], *device)
        report = report_of(bed)
    counts = counts_of(report)["forward"]
    wrong = counts.faults["destination_mac"]
    assert FRAMES / HOSTS / 3 < wrong < FRAMES / HOSTS * 3, "the frames of one host"
    assert (counts.received, counts.faulty, faults(counts)) == (FRAMES - wrong, wrong, {"destination_mac": wrong})
    assert not judge(report, Fraction(0)).passed
    assert {(kept.side, kept.reason) for kept in report.kept_frames} == {("right", "destination_mac")}


def test_the_receiver_expects_the_mac_address_of_the_port_where_hosts_share_it() -> None:
    """Fixed on one side and random on the other: each side by itself."""
    with open_bed(netns_campaign("linux-router4", **sides(host_macs="fixed"))) as bed:
        report = report_of(bed)
        shared, single = set(neighbours(bed, "right", "ipv4").values()), neighbours(bed, "left", "ipv4")
    assert [(counts.received, faults(counts)) for counts in counts_of(report).values()] == [(FRAMES, {})] * 2
    assert (len(shared), len(set(single.values()))) == (1, len(single))
