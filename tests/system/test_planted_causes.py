"""Causes of loss planted on kernel gateways: the first sentence names what was planted. Needs root.

The long version makes each plant at three loads, and prints the table of docs/explanation/why-lost.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.beds import (
    ATTEMPTS,
    KeptBed,
    OpenBed,
    lost_nothing_itself,
    netns_document,
)
from tests.system.beds import QUICK as QUICK_TRIAL
from tests.system.machine import missing, missing_for_guest, nightly_but, nothing_compared
from tests.system.planted_causes import CASES, GATEWAYS, Case, Gateway, lasting_ns

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.recipe import recipe_text
from gatemark.procedures.back_to_back.result import BackToBackResult
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.session import measure
from gatemark.trial.cause import Cause

MISSING = missing("ip", "tc", "taskset", "setpriv", "nft", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"planting causes needs {', '.join(MISSING)}")

QUICK = [(name, case) for case in CASES for name in case.quick]


@pytest.fixture(scope="module")
def beds() -> Iterator[KeptBed]:
    def campaign_of(name: str) -> Campaign:
        gateway, differing = name.split(" by ")
        return GATEWAYS[gateway].campaign(differing)

    with contextlib.closing(KeptBed(campaign_of)) as result:
        yield result


def bed_of(beds: KeptBed, gateway: str, case: Case) -> OpenBed:
    return beds.get(f"{gateway} by {case.bed}")


def why_lost(bed: OpenBed, gateway: Gateway, case: Case, load: int) -> tuple[Cause, ...] | None:
    """Make a trial that counts, and return why it lost frames, or why connections were not established.

    None if no trial counts, because others want the CPUs: a kernel of its own is a process among others.
    """
    passed = 0
    for _ in range(ATTEMPTS):
        with case.plant(bed, load, gateway):
            record = bed.trial(frames_per_second=load, duration_ns=lasting_ns(load))
        if not lost_nothing_itself(record) or record.suspicion is not None:
            continue
        if record.connections is not None and record.verdict is None and record.connections.phase_one[-1].causes:
            return record.connections.phase_one[-1].causes
        if record.verdict is not None and not record.verdict.passed:
            return record.causes
        passed += record.verdict is not None
    assert not passed, f"{case.name} loses nothing at {load} frames/s"
    nothing_compared(f"of {case.name} no trial counts")
    return None


def is_right(gateway: Gateway, case: Case, causes: tuple[Cause, ...]) -> bool:
    return bool(causes) and causes[0].cause == case.cause and gateway.words(case.words) in causes[0].sentence


@pytest.mark.parametrize(("name", "case"), QUICK, ids=[f"{name}: {case.name}" for name, case in QUICK])
def test_a_planted_cause_is_named(name: str, case: Case, beds: KeptBed) -> None:
    causes = why_lost(bed_of(beds, name, case), GATEWAYS[name], case, GATEWAYS[name].loads[1])
    assert causes is None or is_right(GATEWAYS[name], case, causes), causes


@pytest.mark.nightly("all plants at three loads each")
@pytest.mark.endure
@pytest.mark.parametrize("name", GATEWAYS)
def test_ninety_five_of_a_hundred_are_named(name: str, beds: KeptBed, capsys: pytest.CaptureFixture[str]) -> None:
    gateway = GATEWAYS[name]
    if gateway.is_in_guest and (lacking := missing_for_guest("conntrack")):
        pytest.skip(f"a gateway in a kernel of its own needs {', '.join(lacking)}")
    planted = [case for case in CASES if name not in case.lacks]
    right = counted = 0
    for case in sorted(planted, key=lambda case: case.bed):
        for load in gateway.loads:
            causes = why_lost(bed_of(beds, name, case), gateway, case, load)
            if causes is None:
                continue
            counted += 1
            right += is_right(gateway, case, causes)
            said = causes[0].sentence if causes else "nothing"
            with capsys.disabled():
                mark = "" if is_right(gateway, case, causes) else "**"
                print(f"| {name} | {case.name} | {load:,} | {mark}{said} |", flush=True)
    assert right >= 0.95 * counted


FILTER = """
[programs]
nft = "nftables"

[files]
"rules.nft" = '''
table inet filtered {
  chain forward {
    type filter hook forward priority 0;
    iifname "{left}" udp dport { 69, 1719 } drop
  }
}
'''

[commands]
setup = ["nft -f {dir}/rules.nft"]
"""


@pytest.mark.nightly(
    "ten seconds; filtered ports are tried at each burst in every run, and losses of them in unit tests"
)
def test_a_filtered_port_is_no_throughput(beds: KeptBed, tmp_path: Path) -> None:
    """A router drops two of 49,151 ports, so that a trial of a second loses a frame or two, or none.

    Of this seed frame 33,710 is the first of them, so that several loads lose it.
    """
    beds.close()
    recipe = tmp_path / "filter.toml"
    recipe.write_text(recipe_text("linux-router4").replace("[commands]\n", FILTER, 1))
    search = {"maximum": "100k", "resolution": "2k", "search_duration": "1s"}
    traffic = {
        "direction": "forward",
        "frame_sizes": {"family": "ipv4", "octets": [64]},
        "source_ports": {"range": "1024-65535"},
        "destination_ports": {"range": "1-49151"},
    }
    document = netns_document(
        recipe, seed=12, traffic=traffic, throughput=search, repetitions=1, trial={**QUICK_TRIAL, "duration": "1s"}
    )
    (run,) = measure(campaign_from_dict(document), output=tmp_path / "result", report=False).runs
    assert isinstance(run, ThroughputResult)
    if run.limited_by == "tester":
        nothing_compared("the Tester could not offer a load")
        return
    assert run.rate is None
    assert run.refused is not None
    assert run.refused.startswith("the loss does not depend on the load")
    assert "1719" in run.refused or "69" in run.refused


def test_a_filtered_port_is_no_longest_burst(beds: KeptBed, tmp_path: Path) -> None:
    """Behind it is a queue of 1,000 frames. Of this seed frame 177 is the first to port 4, of 50 ports.

    A trial has fewer frames. Above 5,000 frames/s the queue grows, and the last frames of a trial come too late.
    """
    beds.close()
    queue = '"tc qdisc add dev {right} root tbf rate 1840kbit burst 1000 limit 92000"'
    filtered = FILTER.replace("{ 69, 1719 }", "4").replace('rules.nft"]', f'rules.nft", {queue}]')
    recipe = tmp_path / "filter.toml"
    recipe.write_text(recipe_text("linux-router4").replace("[commands]\n", filtered, 1))
    document = netns_document(
        recipe,
        seed=12,
        traffic={
            "direction": "forward",
            "frame_sizes": {"family": "ipv4", "octets": [64]},
            "destination_ports": {"range": "1-50"},
        },
        line={"rate": 50_000 * 84 * 8},
        throughput={"minimum": "2k", "maximum": "10k", "resolution": "2k"},
        back_to_back={"ceiling": "20ms", "resolution": 20, "bursts": 1, "wait": "400ms"},
        repetitions=1,
        trial={**QUICK_TRIAL, "duration": "15ms", "drain": "1ms"},
    )
    rates, bursts = measure(campaign_from_dict(document), output=tmp_path / "result", report=False).runs
    if rates.limited_by != "gateway" or bursts.limited_by in NOT_THE_GATEWAY:
        nothing_compared("the Tester could not offer a load, or the host was held up at one")
        return
    assert isinstance(bursts, BackToBackResult)
    assert bursts.average_frames is None and bursts.implied_ns is None
    assert bursts.refused is not None and bursts.refused.startswith("the bursts end on lost frames that no buffer")
    assert "destination port 4;" in bursts.refused


def test_rare_losses_are_never_a_throughput_without_a_word(beds: KeptBed, tmp_path: Path) -> None:
    """A router loses one frame of 300, whichever it is: a search ends where chance lost none.

    By chance such losses may look like those of a gateway that seldom loses a frame above some load. Then the rate is
    published, together with how much was forwarded.
    """
    beds.close()
    rare = FILTER.replace(
        'iifname "{left}" udp dport { 69, 1719 } drop', "meta l4proto udp numgen random mod 300 0 drop"
    )
    recipe = tmp_path / "rare.toml"
    recipe.write_text(recipe_text("linux-router4").replace("[commands]\n", rare, 1))
    document = netns_document(
        recipe,
        traffic={"direction": "forward", "frame_sizes": {"family": "ipv4", "octets": [64]}},
        throughput={"maximum": "20k", "resolution": "400", "search_duration": "300ms"},
        repetitions=3,
        trial={**QUICK_TRIAL, "duration": "300ms"},
    )
    (run,) = measure(campaign_from_dict(document), output=tmp_path / "result", report=False).runs
    assert isinstance(run, ThroughputResult)
    if run.limited_by in NOT_THE_GATEWAY:
        nothing_compared("the Tester could not offer a load, or the host was held up at one")
        return
    if run.refused is not None:
        assert run.refused.startswith("the loss does not depend on the load")
    else:
        most = run.maximum_forwarding_rate
        assert most is not None and 200 * most.undelivered < most.offered


@pytest.mark.alone  # invalid trials use up what the gateway forwards
@pytest.mark.parametrize(
    ("repetitions", "rules"),
    nightly_but(
        {1},
        "the same decision from four searches",
        [
            (4, "meta l4proto udp quota over 200000 bytes drop"),
            (1, "meta l4proto udp limit rate over 6000/second drop; meta l4proto udp quota over 160000 bytes drop"),
        ],
    ),
)
def test_a_gateway_that_stops_for_good_is_no_throughput(
    beds: KeptBed, tmp_path: Path, repetitions: int, rules: str
) -> None:
    """A router forwards about 4,300 frames: all of the first search, and few of the second one.

    Or 3,500, of a single search: a trial that fails, one that passes, and part of the next one.
    """
    beds.close()
    stops = FILTER.replace('iifname "{left}" udp dport { 69, 1719 } drop', rules)
    recipe = tmp_path / "stops.toml"
    recipe.write_text(recipe_text("linux-router4").replace("[commands]\n", stops, 1))
    search = {"maximum": "10k", "minimum": "1k", "resolution": "1k", "search_duration": "300ms"}
    document = netns_document(
        recipe,
        traffic={"direction": "forward", "frame_sizes": {"family": "ipv4", "octets": [64]}},
        throughput=search,
        repetitions=repetitions,
        trial={**QUICK_TRIAL, "duration": "300ms"},
    )
    (run,) = measure(campaign_from_dict(document), output=tmp_path / "result", report=False).runs
    assert isinstance(run, ThroughputResult)
    if run.limited_by == "tester" or not any(search.lower_bound for search in run.repetitions):
        nothing_compared("the Tester could not offer a load, or invalid trials used up what the gateway forwards")
        return
    assert run.rate is None
    assert run.refused is not None and run.refused.startswith("the gateway stopped forwarding")
