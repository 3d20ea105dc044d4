"""Frames that are none of the trial: the gateway's own, and those of the Tester's other port. Needs root."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.beds import ATTEMPTS, OpenBed, lost_nothing_itself, netns_campaign, netns_document, open_bed
from tests.system.machine import missing

from gatemark.campaign.file import campaign_from_dict
from gatemark.dut.recipe import recipe_text
from gatemark.preflight import check_gateway_path
from gatemark.trial.record import TrialRecord

MISSING = missing("ip", "ethtool", "taskset", "setpriv", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

FORWARD = {"direction": "forward", "frame_sizes": {"family": "ipv4", "octets": [64]}}
CHATTER = """
import select, socket, sys
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port.bind((sys.argv[1], 0))
source = bytes.fromhex(sys.argv[2]) or port.getsockname()[4]
while not select.select([sys.stdin], [], [], 0.01)[0]:
    for _ in range(20):
        port.send(bytes.fromhex("0180c200000e") + source + bytes.fromhex("88cc") + bytes(50))
"""
"""Sends frames of LLDP (IEEE 802.1AB), some 2000 a second, until its standard input is closed."""
ENOUGH_FRAMES = 1000
"""So many foreign frames make a trial invalid that they are more than 1 % of as well."""


@contextlib.contextmanager
def chatter(bed: OpenBed, source: str) -> Iterator[None]:
    """Let the gateway send such frames to the right; `source`: "" for its own address."""
    command = bed.bed.kernel.places[0].command(sys.executable, "-c", CHATTER, bed.interface("right"), source)
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        try:
            yield
        finally:
            process.stdin.close()


def with_chatter(bed: OpenBed, source: str) -> TrialRecord:
    """Make trials while the gateway sends such frames, until one has heard enough and the Tester was in time."""
    with chatter(bed, source):
        for _ in range(ATTEMPTS):
            record = bed.trial(frames_per_second=1000, duration_ns=2_000_000_000)
            foreign = record.report.ports["right"].foreign
            was_in_time = all("foreign frames" in reason for reason in record.validity.reasons)
            if was_in_time and lost_nothing_itself(record) and foreign.of_gateway + foreign.foreign > ENOUGH_FRAMES:
                return record
    raise AssertionError(f"no trial of {ATTEMPTS} counts: {foreign} {record.validity.reasons}")


def test_frames_of_the_gateways_own_are_told_and_make_no_trial_invalid() -> None:
    with open_bed(netns_campaign("linux-router4", traffic=FORWARD)) as bed:
        spoken = with_chatter(bed, "")
        foreign = spoken.report.ports["right"].foreign
        assert foreign.of_gateway > ENOUGH_FRAMES
        assert (foreign.foreign, foreign.of_other_port) == (0, 0)
        assert spoken.validity.valid
        spoiled = with_chatter(bed, "020000000077")
        foreign = spoiled.report.ports["right"].foreign
        assert foreign.of_gateway == 0
        assert foreign.foreign > ENOUGH_FRAMES
        assert "foreign frames arrived" in " ".join(spoiled.validity.reasons)


BRIDGED = """
[commands]
setup = [
    "ip link add domain type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
    "ip address flush dev {left}",
    "ip address flush dev {right}",
    "ip link set {left} master domain",
    "ip link set {right} master domain",
    "ip address add 198.18.0.1/16 dev domain",
    "ip address add 198.19.0.1/16 dev domain",
    "echo 0 > /proc/sys/net/ipv4/conf/all/send_redirects",
    "echo 0 > /proc/sys/net/ipv4/conf/domain/send_redirects",
    "ip link set domain up",
]
"""
"""A router with one interface, in a broadcast domain with both ports."""


@pytest.mark.parametrize("bridged", [True, False])
def test_doctor_says_that_both_ports_are_in_one_broadcast_domain(tmp_path: Path, bridged: bool) -> None:
    recipe = tmp_path / "bridged.toml"
    recipe.write_text(recipe_text("linux-router4").replace("[commands]\n", BRIDGED if bridged else "[commands]\n", 1))
    document = netns_document(recipe, traffic=FORWARD, frame_loss={"rates": ["10k"]})
    findings = check_gateway_path(campaign_from_dict(document))
    domain = [finding for finding in findings if finding.check == "broadcast domain"]
    assert [finding.status for finding in domain] == ["warning", "warning"] * bridged
    assert [finding.observed.partition(",")[0] for finding in domain] == [
        "the left port hears what the right port sends",
        "the right port hears what the left port sends",
    ][: len(domain)]
    (path,) = [finding for finding in findings if finding.check == "gateway path, forward"]
    assert path.status == "ok"
