"""Two gateways in a row: services end to end; the right one is blamed for losses and damage (RFC 8219 section 4.2)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.beds import ATTEMPTS, OpenBed, open_bed
from tests.system.machine import missing, missing_for_guest, nightly_but, nothing_compared
from tests.system.stateful_beds import stateful_campaign
from tests.system.test_stateful import assert_counts_agree, measured

from gatemark.campaign.inquiry import MISSED
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.dut.recipe import load_recipe
from gatemark.procedures.delay.result import DelayResult
from gatemark.trial.damage import CUSTOMER, PROVIDER
from gatemark.trial.record import TrialRecord
from gatemark.units import NANOSECONDS_PER_SECOND

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "unshare", "nft", "conntrack", "tayga", root=True)
NO_GUEST = missing_for_guest("conntrack")
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"two gateways in a row need {', '.join(MISSING)}"),
]

MAP_T = "tayga-mapt"
in_a_guest = pytest.mark.skipif(bool(NO_GUEST), reason=f"two gateways in a kernel of their own need {NO_GUEST}")
OTHERS = "the same decision of other fields, ways and tunnels; unit tests have all of them"
others = pytest.mark.nightly(OTHERS)
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


IN_TUNNELS = [
    ("forward", True, "ip ttl set 99", "hop_limit"),
    ("forward", False, "ip dscp set 1", "traffic_class"),
    ("reverse", True, "@th,224,16 set 0x1617 @th,240,16 set 0x1415", "payload"),
    ("reverse", False, "ip ttl set 99", "hop_limit"),
]
"""Direction, whether the first gateway on the way changes packets, how, and the fault that this is."""


TRANSLATED = [
    ("forward", True, "ip6 hoplimit set 99", "hop_limit"),
    ("forward", False, "ip ttl set 99", "hop_limit"),
    ("reverse", True, "ip6 hoplimit set 99", "hop_limit"),
    ("reverse", False, "ip ttl set 99", "hop_limit"),
]
"""The same of two translators; the first changes packets of IPv6."""
TUNNELS = {"linux-dslite": "dslite", "linux-lw4o6": "softwires", "linux-mape": "softwires"}
"""Interface of the tunnel, in both gateways of a pair."""
EACH = 5
"""Faults of either gateway in either direction, so that there are 20 of each kind in every pair."""


def opened(recipe: str) -> contextlib.AbstractContextManager[OpenBed]:
    """Open a pair of gateways without native IPv6 beside."""
    traffic = {**TRAFFIC, "mix": "1/1"}
    return open_bed(stateful_campaign(recipe, traffic=traffic, connections=FEW, frame_loss={"rates": ["2k"]}))


HELD_MS = (20, 30)
"""How long netem holds each frame that leaves the customer's gateway towards the provider, and the provider's towards
servers."""
UNEQUAL_NS = 3_000_000
DELAY = {"load": 1000, "duration": "500ms", "first_tag": "100ms", "tags": 100}


@pytest.mark.alone
@in_a_guest
@pytest.mark.nightly("a quarter of a minute; delays of one gateway are measured in every run")
def test_delays_of_both_gateways_add_up(tmp_path: Path) -> None:
    """The least delay of a row grows by what is planted in either gateway, and by both together, in that direction."""
    campaign = stateful_campaign(
        "linux-dslite", traffic={**TRAFFIC, "mix": "1/1"}, connections=FEW, repetitions=1, frame_loss=None, delay=DELAY
    )
    least: dict[tuple[int, ...], dict[str, float]] = {}
    with open_bed(campaign) as pair:
        every: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (0, 1))
        for held in every:
            for number in held:
                tc(pair, number, "add", "netem", "limit", "10000", "delay", f"{HELD_MS[number]}ms")
            least[held] = least_delays(pair, tmp_path / f"{len(least)}.jsonl")
            for number in held:
                tc(pair, number, "del")
    if not all(least.values()):
        nothing_compared("no valid trial")
        return
    more = {held: {way: ns - least[()][way] for way, ns in delays.items()} for held, delays in least.items()}
    for held, delays in more.items():
        planted_ns = sum(HELD_MS[number] for number in held) * 1_000_000
        assert delays["forward"] == pytest.approx(planted_ns, abs=UNEQUAL_NS), more
        assert delays["reverse"] == pytest.approx(0, abs=UNEQUAL_NS), more
    assert more[0, 1]["forward"] == pytest.approx(more[0,]["forward"] + more[1,]["forward"], abs=UNEQUAL_NS)
    print({held: {way: round(ns / 1000) for way, ns in delays.items()} for held, delays in least.items()})


def tc(pair: OpenBed, number: int, action: str, *discipline: str) -> None:
    """Change how frames leave one of both gateways on its right."""
    gateway = pair.bed.gateway.gateways[number]
    gateway.shell(f"tc qdisc {action} dev {gateway.interfaces['right']} root {' '.join(discipline)}", where="test")


def least_delays(pair: OpenBed, journal: Path) -> dict[str, float]:
    """Return the least delay of each direction, ns; nothing if no trial counts."""
    campaign = pair.tester.campaign
    with Journal(journal) as kept:
        (run,) = run_campaign(campaign, plan_of(campaign), pair.tester.engine, kept, can=pair.bed.can)
    assert isinstance(run, DelayResult)
    (point,) = run.points
    delays = {series.direction: series.delay_ns["minimum"].values[0] for series in point.series}
    return {way: ns for way, ns in delays.items() if ns is not None}


@others
@pytest.mark.parametrize("recipe", [pytest.param(name, marks=marks) for name, marks in IN_A_GUEST.items()])
def test_in_a_guest_the_gateway_that_damaged_frames_is_blamed(recipe: str) -> None:
    """Each packet is changed before the first gateway puts it into a tunnel, or where it leaves either of them."""
    with opened(recipe) as pair:
        for way, is_first, change, reason in (IN_TUNNELS if recipe in TUNNELS else TRANSLATED) * EACH:
            number = int(is_first == (way == "reverse"))
            leaves = pair.bed.gateway.gateways[number].interfaces["right" if way == "forward" else "left"]
            interface = TUNNELS.get(recipe, leaves) if is_first else leaves
            assert_blamed(pair, number, way, f'oifname "{interface}"', change, {reason})


@others
@pytest.mark.parametrize("recipe", [MAP_T, *(pytest.param(name, marks=marks) for name, marks in IN_A_GUEST.items())])
def test_in_every_pair_the_gateway_that_lost_frames_is_blamed(recipe: str) -> None:
    with opened(recipe) as pair:
        for number in (0, 1):
            for direction in ("forward", "reverse"):
                assert_loss_is_blamed(pair, number, direction, times=EACH)


@pytest.fixture(scope="module")
def bed() -> Iterator[OpenBed]:
    with opened(MAP_T) as pair:
        yield pair


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("number", [0, 1], ids=["customer", "provider"])
def test_the_gateway_that_lost_frames_is_blamed(bed: OpenBed, number: int, direction: str) -> None:
    assert_loss_is_blamed(bed, number, direction, times=TIMES)


def assert_loss_is_blamed(bed: OpenBed, number: int, direction: str, *, times: int) -> None:
    """Drop each tenth frame where it enters one of both, after test phase 1: exactly these are told, each time."""
    side = "left" if direction == "forward" else "right"
    interface = bed.bed.gateway.gateways[number].interfaces[side]
    after_phase_one = "quota over 100 kbytes"
    frames = "meta l4proto { udp, 4 }"  # in a tunnel IPv4 comes in IPv6
    rule = f'iifname "{interface}" {frames} {after_phase_one} numgen inc mod 10 == 3 counter drop'
    for _ in range(times):
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


ON_IPV6, ON_IPV4 = "link in the middle", "link to the Tester"
CHANGES: list[tuple[str, str, set[str]]] = [
    (ON_IPV6, "ip6 dscp set 1", {"traffic_class"}),
    (ON_IPV4, "ip dscp set 1", {"traffic_class"}),
    (ON_IPV6, "ip6 ecn set ce", {"traffic_class"}),
    (ON_IPV4, "ip ecn set ce", {"traffic_class"}),
    (ON_IPV6, "ip6 hoplimit set 99", {"hop_limit"}),
    (ON_IPV4, "ip ttl set 99", {"hop_limit"}),
    (ON_IPV6, "@th,224,16 set 0x1617 @th,240,16 set 0x1415", {"payload"}),
    (ON_IPV4, "@th,224,16 set 0x1617 @th,240,16 set 0x1415", {"payload"}),
    (ON_IPV4, "@th,224,16 set 0xbeef", {"payload", "udp_checksum"}),
    (ON_IPV4, "@th,48,16 set 0x1234", {"udp_checksum"}),
    (ON_IPV4, "ip frag-off set 0", {"dont_fragment"}),
]
"""Link before which nft changes a frame, how, and the faults that this is. DF is no field of IPv6.

Data are 0x12, 0x13 and so on, and two of their words that change places change no checksum.
"""
DAMAGED: list[Any] = [(way, *change) for way in ("forward", "reverse") for change in CHANGES]
DAMAGED += [
    ("forward", ON_IPV6, "@th,224,16 set 0xbeef", {"payload", "udp_checksum"}),
    ("forward", ON_IPV6, "@th,48,16 set 0x1234", {"udp_checksum"}),
    ("forward", ON_IPV6, "udp dport set 9", {"destination_port"}),
    ("forward", ON_IPV4, "udp dport set 9", {"destination_port"}),
    ("reverse", ON_IPV4, "udp sport set 9", {"source_port"}),
    ("reverse", ON_IPV4, "ip saddr set 198.19.0.99", {"source_address"}),
]
"""What the customer's gateway does not take for a reply is lost in it: wrong checksums, addresses and ports."""
EACH_TIME = (0, 5, 15, 18)
"""Those of every run: each gateway in each direction."""


@pytest.mark.parametrize(("way", "link", "change", "reasons"), nightly_but(EACH_TIME, OTHERS, DAMAGED))
def test_the_gateway_that_damaged_frames_is_blamed(
    bed: OpenBed, way: str, link: str, change: str, reasons: set[str]
) -> None:
    """Each tenth frame is changed where it leaves one of both, after test phase 1: exactly these, in both trials."""
    number = int((link == ON_IPV6) == (way == "reverse"))
    interface = bed.bed.gateway.gateways[number].interfaces["right" if way == "forward" else "left"]
    assert_blamed(bed, number, way, f'oifname "{interface}"', change, reasons)


def assert_blamed(bed: OpenBed, number: int, way: str, where: str, change: str, reasons: set[str]) -> None:
    """Let nft change each tenth frame in one gateway; check that it is blamed for these, exactly, in both trials.

    Beside what is planted, tayga writes no checksum in one of 65,536 packets of IPv6: a trial with such a one is made
    again, and so is one whose short trial missed connections.
    """
    rule = f"{where} meta l4proto udp quota over 100 kbytes numgen inc mod 10 == 3 counter {change}"
    culprit, planted = ("customer", "provider")[number], {(way, reason) for reason in reasons}
    for _ in range(ATTEMPTS):
        with bed.rules(rule, gateway=number):
            record = bed.trial(frames_per_second=LOAD, duration_ns=FRAMES * NANOSECONDS_PER_SECOND // LOAD)
            listed = bed.bed.gateway.gateways[number].shell("nft list table inet planted", where="test")
        (changed,) = map(int, re.findall(r"counter packets (\d+)", listed))
        damages = [damage for damage in record.damages if (damage.direction, damage.reason) in planted]
        is_whole = record.verdict is not None and not record.report.lost_count
        if any(damage.why == MISSED for damage in damages):
            continue
        is_exact = is_whole and all(damage.faulty + damage.again == changed for damage in damages)
        for damage in damages:
            if damage.reason == "udp_checksum" and not is_exact:
                continue
            blamed = {"customer": damage.customer, "provider": damage.provider, "both": damage.both}
            assert (blamed.pop(culprit), damage.undecided, set(blamed.values())) == (damage.again, 0, {0}), damage.told
            assert f"damaged in {(CUSTOMER, PROVIDER)[number]}: " in damage.sentence
            assert {frame.by for frame in damage.frames} == {culprit}
            assert all(frame.entered and frame.middle for frame in damage.frames)
        if is_exact:
            break
    assert {(damage.direction, damage.reason) for damage in damages} == planted
    assert all(damage.faulty + damage.again == changed and damage.again for damage in damages), changed
    assert faults_of(record, way).items() >= {(damage.reason, damage.faulty) for damage in damages}
    assert faults_of(record, way).keys() - {"udp_checksum"} <= reasons


def faults_of(record: TrialRecord, way: str) -> dict[str, int]:
    """Return the faults of one direction in the measured phase."""
    (faults,) = (counts.faults for direction, _, counts in record.report.counts() if direction == way)
    return dict(faults)
