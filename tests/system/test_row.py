"""Two gateways in a row: services end to end, and of both the right one is blamed for losses (RFC 8219 section 4.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.beds import ATTEMPTS, OpenBed, open_bed
from tests.system.machine import missing, missing_for_guest
from tests.system.stateful_beds import stateful_campaign
from tests.system.test_stateful import assert_counts_agree, measured

from gatemark.causes.places import CUSTOMER, PROVIDER
from gatemark.dut.recipe import load_recipe
from gatemark.trial.record import TrialRecord
from gatemark.units import NANOSECONDS_PER_SECOND

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "unshare", "nft", "conntrack", "tayga", root=True)
NO_GUEST = missing_for_guest("conntrack")
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"two gateways in a row need {', '.join(MISSING)}"),
    pytest.mark.alone,
]

MAP_T = "tayga-mapt"
in_a_guest = pytest.mark.skipif(bool(NO_GUEST), reason=f"two gateways in a kernel of their own need {NO_GUEST}")
again = pytest.mark.nightly("it starts one more kernel, for two gateways that other tests measure alone")
IN_A_GUEST = {
    "linux-dslite": (in_a_guest,),
    "tayga-jool-464xlat": (in_a_guest,),
    "linux-lw4o6": (in_a_guest, again),
    "linux-mape": (in_a_guest, again),
}
COUNT = 200
FEW = {"count": COUNT, "rate": "2k", "timeout": "200ms", "gap": "100ms"}
LOAD, FRAMES = 2000, 2000
"""Frames/s and frames in each direction: far less than what two translators in a row carry on one CPU."""
TIMES = 2
TRAFFIC = {"frame_sizes": {"family": "ipv4", "octets": 128}, "mix": "9/10"}


@pytest.mark.parametrize("recipe", [MAP_T, *(pytest.param(name, marks=marks) for name, marks in IN_A_GUEST.items())])
def test_connections_of_a_service_pass_both_gateways(recipe: str, tmp_path: Path) -> None:
    """Beside native IPv6, in both directions; the link between both has counted every frame that was offered."""
    campaign = stateful_campaign(recipe, repetitions=1, traffic=TRAFFIC, connections=FEW, frame_loss={"rates": ["2k"]})
    result, records = measured(campaign, tmp_path / "result")
    assert_counts_agree(records, COUNT)
    for record in records:
        assert record.host is not None and record.host.middle is not None
        forward, reverse = record.report.directions
        if not record.report.lost_count and not record.validity.reasons:
            assert (record.host.middle.forward, record.host.middle.reverse) == (forward.offered, reverse.offered)
    gateway = result.document.gateway
    assert gateway.technology == campaign.gateway.technology
    assert len(gateway.pool) == 1
    assert all(f"# {part.name}: addresses" in gateway.configuration for part in load_recipe(recipe).parts)


@pytest.fixture(scope="module")
def bed() -> Iterator[OpenBed]:
    traffic = {**TRAFFIC, "mix": "1/1"}
    with open_bed(stateful_campaign(MAP_T, traffic=traffic, connections=FEW, frame_loss={"rates": ["2k"]})) as opened:
        yield opened


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("number", [0, 1], ids=["customer", "provider"])
def test_the_gateway_that_lost_frames_is_blamed(bed: OpenBed, number: int, direction: str) -> None:
    """Each tenth frame is dropped where it enters one of both, after test phase 1: exactly these, each time."""
    side = "left" if direction == "forward" else "right"
    interface = bed.bed.gateway.gateways[number].interfaces[side]
    after_phase_one = "quota over 100 kbytes"
    rule = f'iifname "{interface}" meta l4proto udp {after_phase_one} numgen inc mod 10 == 3 counter drop'
    for _ in range(TIMES):
        lost, record = lost_by(bed, rule, number)
        (way,) = (each for each in record.report.directions if each.direction == direction)
        assert (way.foreground.lost, record.report.lost_count) == (lost, lost)
        if record.suspicion is None:  # else others had the gateway's CPU, and nothing is claimed
            (cause,) = record.causes
            assert cause.sentence.endswith(f"lost in {(CUSTOMER, PROVIDER)[number]}")
        assert record.host is not None and record.host.middle is not None
        handed = record.host.middle.forward if direction == "forward" else record.host.middle.reverse
        is_first = (number == 0) == (direction == "forward")
        assert way.offered - handed == (lost if is_first else 0)


def lost_by(bed: OpenBed, rule: str, number: int) -> tuple[int, TrialRecord]:
    """Make trials with a rule in one gateway until one has lost nothing else; return how many frames it dropped."""
    for _ in range(ATTEMPTS):
        with bed.rules(rule, hook="prerouting", gateway=number):
            record = bed.trial(frames_per_second=LOAD, duration_ns=FRAMES * NANOSECONDS_PER_SECOND // LOAD)
            listed = bed.bed.gateway.gateways[number].shell("nft list table inet planted", where="test")
        (dropped,) = re.findall(r"counter packets (\d+)", listed)
        if record.verdict is not None and record.report.lost_count == int(dropped) > 0:
            return int(dropped), record
    raise AssertionError(f"no trial of {ATTEMPTS} counts: {record.verdict} {record.validity.reasons}")
