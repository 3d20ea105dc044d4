"""Causes of loss planted on a kernel router: the first sentence names what was planted. Needs root.

The long version makes each plant at three loads, and prints the table of docs/explanation/why-lost.md.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.system.beds import (
    ATTEMPTS,
    LASTING_NS,
    KeptBed,
    OpenBed,
    lost_nothing_itself,
    netns_campaign,
    netns_document,
)
from tests.system.beds import QUICK as QUICK_TRIAL
from tests.system.machine import missing, nothing_compared

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.recipe import recipe_text
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.session import measure
from gatemark.trial.cause import Cause
from gatemark.trial.record import TrialRecord

MISSING = missing("ip", "tc", "taskset", "setpriv", "nft", root=True)
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"planting causes needs {', '.join(MISSING)}")

LOADS = (8_000, 16_000, 32_000)
PORTS: dict[str, Any] = {"source_ports": {"range": "1024-1535"}, "destination_ports": {"range": "1-400"}}
TRAFFIC: dict[str, dict[str, Any]] = {
    "ports": PORTS,
    "flows": {"source_ports": {"range": "1024-1031"}, "destination_ports": {"range": "1-8"}},
    "hosts": PORTS,
    "classes": {**PORTS, "traffic_class": {"by_flow": [0, 40, 184]}},
}
"""Beds by what their frames differ by."""
HOSTS = {"mode": "pseudorandom", "offset": 2, "range": "2-33"}


def campaign_of(name: str) -> Campaign:
    hosts: dict[str, Any] = {}
    if name == "hosts":
        hosts = {
            "left": {"ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1", "hosts": HOSTS}},
            "right": {"ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1", "hosts": HOSTS}},
        }
    return netns_campaign("linux-router4", traffic={"direction": "forward", **TRAFFIC[name]}, **hosts)


@pytest.fixture(scope="module")
def beds() -> Iterator[KeptBed]:
    with contextlib.closing(KeptBed(campaign_of)) as result:
        yield result


Plant = Callable[[OpenBed, int], AbstractContextManager[object]]
"""Plants a cause for a trial at a load, frames/s."""


def drops(*rules: str) -> Plant:
    return lambda bed, _load: bed.rules(*(f"meta l4proto udp {rule} drop" for rule in rules), hook="forward")


def drops_in_table(text: str) -> Plant:
    return lambda bed, _load: bed.table(f"table ip planted {{\n{text}\n}}\n")


def polices(rule: str, share: float) -> Plant:
    """Drop what is beyond a share of the load."""
    return lambda bed, load: bed.rules(
        f"{rule} limit rate over {int(load * share)}/second burst 20 packets drop", hook="forward"
    )


def shapes(arguments: str) -> Plant:
    @contextlib.contextmanager
    def plant(bed: OpenBed, load: int) -> Iterator[None]:
        rate = f"{load * 64 * 8 // 2000}kbit"  # of half of the frames, as tc counts them
        device = bed.interface("right")
        bed.in_gateway("tc", "qdisc", "replace", "dev", device, "root", *arguments.format(rate=rate).split())
        try:
            yield
        finally:
            bed.in_gateway("tc", "qdisc", "del", "dev", device, "root")

    return plant


def stops(*times_s: tuple[float, float]) -> Plant:
    """Drop everything from one time to another, each from the beginning of sending on or so."""

    @contextlib.contextmanager
    def plant(bed: OpenBed, _load: int) -> Iterator[None]:
        def work() -> None:
            begun = time.monotonic() + 0.3
            for begin, lasts in times_s:
                time.sleep(max(0.0, begun + begin - time.monotonic()))
                with bed.rules("meta l4proto udp drop", hook="forward"):
                    time.sleep(lasts)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            thread.join()

    return plant


def blackhole(*what: str) -> Plant:
    @contextlib.contextmanager
    def plant(bed: OpenBed, _load: int) -> Iterator[None]:
        bed.in_gateway("ip", *what[:1], "add", "blackhole", *what[1:])
        try:
            yield
        finally:
            bed.in_gateway("ip", *what[:1], "del", "blackhole", *what[1:])

    return plant


SEEN = """
  set seen { type inet_service . inet_service; size 65535; flags dynamic, timeout; timeout 5s; }
  chain forward {
    type filter hook forward priority 0;
    udp sport . udp dport @seen accept
    meta l4proto udp add @seen { udp sport . udp dport } drop
  }
"""
"""The first frame of each flow makes a state and does not pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A plant, and how its sentence is recognised."""

    name: str
    bed: str
    plant: Plant
    cause: str
    words: str = ""
    """What the sentence has to contain."""
    quick: bool = False
    """Whether the short version makes it, too."""


CASES = (
    Case(name="one destination port", bed="ports", plant=drops("udp dport 161"), cause="fields",
         words="destination port 161,", quick=True),
    Case(name="two destination ports", bed="ports", plant=drops("udp dport { 69, 161 }"), cause="fields",
         words="destination ports "),
    Case(name="one source port", bed="ports", plant=drops("udp sport 1500"), cause="fields", words="source port 1500,"),
    Case(name="privileged ports", bed="ports", plant=drops("udp dport 1-99"), cause="fields",
         words="destination ports 1 to 99,"),
    Case(name="two ranges of ports", bed="ports", plant=drops("udp dport 100-149", "udp dport 300-349"),
         cause="fields", words="destination ports 100 to 149 and 300 to 349,"),
    Case(name="odd ports", bed="ports", plant=drops("@th,15,1 1"), cause="fields", words="odd source ports,"),
    Case(name="a bit of a port", bed="ports", plant=drops("@th,28,1 1"), cause="fields",
         words="bit 3 set in their destination port,"),
    Case(name="two of three frames of a port", bed="ports",
         plant=drops("udp dport 161 numgen random mod 3 < 2"), cause="fields", words="destination port 161"),
    Case(name="one destination host", bed="hosts", plant=drops("ip daddr 198.19.0.17"), cause="fields",
         words="destination address 198.19.0.17,", quick=True),
    Case(name="one source host", bed="hosts", plant=drops("ip saddr 198.18.0.9"), cause="fields",
         words="source address 198.18.0.9,"),
    Case(name="one traffic class", bed="classes", plant=drops("ip dscp ef"), cause="fields",
         words="traffic class 184,", quick=True),
    Case(name="a route to nowhere", bed="hosts", plant=blackhole("route", "198.19.0.16/29"), cause="fields",
         words="destination addresses 198.19.0.16 to 198.19.0.23,"),
    Case(name="a rule for some sources", bed="hosts", plant=blackhole("rule", "from", "198.18.0.24/29"),
         cause="fields", words="source addresses 198.18.0.24 to 198.18.0.31,"),
    Case(name="pairs of hosts, by their hash", bed="hosts", plant=drops("jhash ip saddr . ip daddr mod 7 3"),
         cause="flows", words="pairs of hosts lost everything"),
    Case(name="flows, by their hash", bed="flows",
         plant=drops("jhash ip saddr . ip daddr . udp sport . udp dport mod 4 1"), cause="flows",
         words="of 64 flows lost everything, the others nothing", quick=True),
    Case(name="the first frame of each flow", bed="flows", plant=drops_in_table(SEEN), cause="first_frames",
         words="the first of the 64 flows"),
    Case(name="every tenth frame", bed="ports", plant=drops("numgen inc mod 10 3"), cause="residue",
         words="of every 10 frames number "),
    Case(name="two of every sixteen frames", bed="ports", plant=drops("numgen inc mod 16 { 3, 9 }"),
         cause="residue", words="of every 16 frames numbers "),
    Case(name="two of a hundred, at random", bed="ports", plant=drops("numgen random mod 50 7"), cause="uniform",
         words="independently of field and time"),
    Case(
        name="one of three, at random",
        bed="ports",
        plant=drops("numgen random mod 3 1"),
        cause="uniform",
        words="independently of field and time",
    ),
    Case(name="the first frames", bed="ports", plant=drops("quota until 12000 bytes"), cause="start",
         words="lost frames were sent in the first "),
    Case(name="nothing after so many frames", bed="ports", plant=drops("quota over 120000 bytes"), cause="end",
         words="on nothing arrived"),
    Case(name="a stop", bed="ports", plant=stops((0.2, 0.05)), cause="gap", words="one gap of "),
    Case(name="several stops", bed="ports", plant=stops((0.05, 0.01), (0.13, 0.01), (0.21, 0.01), (0.29, 0.01)),
         cause="gap", words="gaps of "),
    Case(name="a policer", bed="ports", plant=polices("meta l4proto udp", 0.6), cause="queue",
         words="a queue overflowed", quick=True),
    Case(name="a shaper with a short queue", bed="ports", plant=shapes("tbf rate {rate} burst 3000 limit 6000"),
         cause="queue", words="a queue overflowed"),
    Case(name="a shaper with a long queue", bed="ports", plant=shapes("tbf rate {rate} burst 3000 limit 60000"),
         cause="queue", words="a queue overflowed"),
)  # fmt: skip
QUICK = [case for case in CASES if case.quick]


def why_lost(bed: OpenBed, case: Case, load: int) -> tuple[Cause, ...]:
    """Make a trial that counts, and return why it lost frames."""
    record: TrialRecord | None = None
    for _ in range(ATTEMPTS):
        with case.plant(bed, load):
            record = bed.trial(frames_per_second=load, duration_ns=LASTING_NS)
        if lost_nothing_itself(record) and record.suspicion is None and record.verdict is not None:
            assert not record.verdict.passed, f"{case.name} loses nothing at {load} frames/s"
            return record.causes
    raise AssertionError(f"no trial of {ATTEMPTS} counts: {record}")


def is_right(case: Case, causes: tuple[Cause, ...]) -> bool:
    return bool(causes) and causes[0].cause == case.cause and case.words in causes[0].sentence


@pytest.mark.parametrize("case", QUICK, ids=[case.name for case in QUICK])
def test_a_planted_cause_is_named(case: Case, beds: KeptBed) -> None:
    causes = why_lost(beds.get(case.bed), case, LOADS[1])
    assert is_right(case, causes), causes


@pytest.mark.nightly("all plants at three loads each")
@pytest.mark.endure
def test_ninety_five_of_a_hundred_are_named(beds: KeptBed, capsys: pytest.CaptureFixture[str]) -> None:
    right = 0
    for case in sorted(CASES, key=lambda case: case.bed):
        for load in LOADS:
            causes = why_lost(beds.get(case.bed), case, load)
            right += is_right(case, causes)
            said = causes[0].sentence if causes else "nothing"
            with capsys.disabled():
                print(f"| {case.name} | {load:,} | {'' if is_right(case, causes) else '**'}{said} |")
    assert right >= 0.95 * len(CASES) * len(LOADS)


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
    (run,) = measure(campaign_from_dict(document), output=tmp_path / "result").runs
    assert isinstance(run, ThroughputResult)
    if run.limited_by == "tester":
        nothing_compared("the Tester could not offer a load")
        return
    assert run.rate is None
    assert run.refused is not None
    assert run.refused.startswith("the loss does not depend on the load")
    assert "1719" in run.refused or "69" in run.refused


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
    (run,) = measure(campaign_from_dict(document), output=tmp_path / "result").runs
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
    [
        (4, "meta l4proto udp quota over 200000 bytes drop"),
        (1, "meta l4proto udp limit rate over 6000/second drop; meta l4proto udp quota over 160000 bytes drop"),
    ],
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
    (run,) = measure(campaign_from_dict(document), output=tmp_path / "result").runs
    assert isinstance(run, ThroughputResult)
    if run.limited_by == "tester" or not any(search.lower_bound for search in run.repetitions):
        nothing_compared("the Tester could not offer a load, or invalid trials used up what the gateway forwards")
        return
    assert run.rate is None
    assert run.refused is not None and run.refused.startswith("the gateway stopped forwarding")
