"""The self-test without ports: its search, its campaigns, its document, and a whole one on a simulated engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice
from tests.simulated.equipment import simulated_equipment

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.cli.main import main
from gatemark.config.model import Campaign, EchoAsked
from gatemark.config.stateful import host_count, tuple_space
from gatemark.dut.recipe import complete_campaign
from gatemark.dut.wire import WireTestBed
from gatemark.errors import ConfigError
from gatemark.facts import ClockFacts, Mode
from gatemark.results.tester_parts import SelfTestPart, self_test_part
from gatemark.selftest import document as stored
from gatemark.selftest.document import (
    Entry,
    SelfTest,
    TimedLatency,
    conditions_of,
    load_self_test,
    port_kind_of,
    self_test_kind,
    store_self_test,
)
from gatemark.selftest.modes import STATEFUL_MODES, STATELESS_MODES, Case, campaign_of, cases
from gatemark.selftest.own_delay import _missing_echo
from gatemark.selftest.run import (
    QUICK,
    Effort,
    Step,
    Subject,
    loop_back_campaign,
    open_self_tester,
    run_self_test,
    subject_of,
)
from gatemark.selftest.search import RATE_MIN, Tried, find_rate
from gatemark.trial.request import trial_request

PORTS = {"left": "ring", "right": "ring"}
CONDITIONS = {"cores": "1", "queues": "chosen chosen", "cards": "", "kernel": "6.1", "engine": "0" * 64}
CASE = Case(family="ipv4", frame_octets=64, direction="bidirectional", mode="fixed")
EFFORT = Effort(
    search_ns=10_000_000, trial_ns=20_000_000, confirmations=2, sizes={"ipv4": (64, 1518), "ipv6": (84, 1518)}
)


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Self-tests of these tests are kept for themselves."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "gatemark" / "selftest"


@pytest.mark.parametrize("limit", [150, 1_000, 99_999, 100_000, 1_234_567, 50_000_000])
@pytest.mark.parametrize("start", [100, 100_000, 3_000_000])
def test_the_search_finds_the_limit_within_two_percent(limit: int, start: int) -> None:
    tried: list[tuple[int, bool]] = []

    def attempt(rate: int, is_long: bool) -> Tried:
        tried.append((rate, is_long))
        return Tried(passed=rate <= limit, reason=f"{rate} is too much")

    result = find_rate(attempt, start=start, ceiling=200_000_000, confirmations=3)
    assert result.rate <= limit
    assert limit - result.rate <= max(1, limit // 45)
    assert tried[-3:] == [(result.rate, True)] * 3
    assert result.limited.endswith("is too much")


def test_the_search_ends_at_the_ceiling() -> None:
    result = find_rate(lambda *_: Tried(passed=True), start=100_000, ceiling=1_488_095, confirmations=1)
    assert (result.rate, result.limited) == (1_488_095, "")


def test_a_tester_that_can_nothing_reaches_nothing() -> None:
    tried: list[int] = []

    def attempt(rate: int, _: bool) -> Tried:
        tried.append(rate)
        return Tried(passed=False, reason="no")

    assert find_rate(attempt, start=100_000, ceiling=200_000, confirmations=3).rate == 0
    assert min(tried) >= RATE_MIN


def test_a_rate_that_is_not_confirmed_is_left() -> None:
    result = find_rate(
        lambda rate, is_long: Tried(passed=rate <= (800 if is_long else 1000), reason="long" if is_long else "short"),
        start=100,
        ceiling=10_000,
        confirmations=3,
    )
    assert 700 <= result.rate <= 800
    assert result.limited == "long"


def test_a_rate_that_no_long_trial_reaches_is_given_up_soon() -> None:
    tried: list[int] = []

    def attempt(rate: int, is_long: bool) -> Tried:
        tried.append(rate)
        return Tried(passed=not is_long or rate < 10_000, reason="stalled")

    result = find_rate(attempt, start=1_000_000, ceiling=1_000_000, confirmations=3)
    assert 4_000 < result.rate < 10_000
    assert len(tried) < 20


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
@pytest.mark.parametrize("mode", [*STATELESS_MODES, *STATEFUL_MODES])
def test_every_mode_is_a_campaign_that_can_be_run(mode: str, family: str) -> None:
    count = 100_000 if mode in STATEFUL_MODES else None
    octets = 84 if family == "ipv6" else 64
    case = Case(family=family, frame_octets=octets, direction="forward", mode=mode, connections=count)  # type: ignore[arg-type]
    campaign = complete_campaign(campaign_of(case, ports=PORTS, trial_ns=1_000_000))
    (cell,) = cells_of(campaign)
    assert cell.connections == count
    ports = campaign.directions.traffic_of("forward").source_ports
    assert (ports.mode == "fixed") == (mode in ("fixed", "random_hosts"))
    if count is not None:
        space = tuple_space(campaign, count)
        assert space.product >= count
        assert (space.source_hosts > 1) == (mode != "stateful_ports")
        assert (space.source_ports.count > 1) == (mode != "stateful_hosts")


@pytest.mark.parametrize("mode", ["mixed", "translated", "edges"])
@pytest.mark.parametrize("octets", [84, 1518])
def test_frames_of_both_families_are_sent_as_to_a_gateway(mode: Mode, octets: int) -> None:
    case = Case(family="ipv6", frame_octets=octets, direction="bidirectional", mode=mode)
    campaign = complete_campaign(campaign_of(case, ports=PORTS, trial_ns=1_000_000))
    (cell,) = cells_of(campaign)
    assert (cell.frame_sizes.ipv4, cell.frame_sizes.ipv6) == (octets - 20, octets)
    assert (cell.mix.m, cell.mix.n) == ((1, 2) if mode == "mixed" else (1, 1))
    body: Any = trial_request(campaign, cell, frames_per_second=1000, duration_ns=10**9, trial_number=1)
    sent = [
        {kind: direction[kind] and direction[kind]["source"].get("address") for kind in ("foreground", "background")}
        for direction in body["directions"]
    ]
    if mode == "edges":
        (forward, reverse) = (direction["foreground"] for direction in body["directions"])
        edges = forward["source"]["edges"]
        assert (edges["count"], [domain["ea_bits"] for domain in edges["domains"]]) == (1_000_000, [20])
        assert (reverse["destination"]["edges"], reverse["source"]["address"]) == (edges, "198.19.0.2")
    elif mode == "mixed":
        assert sent == [
            {"foreground": "198.18.0.2", "background": "2001:2::2"},
            {"foreground": "198.19.0.2", "background": "2001:2:0:8000::2"},
        ]
    else:
        assert sent == [
            {"foreground": "2001:2::2", "background": None},
            {"foreground": "198.19.0.2", "background": None},
        ]


@pytest.mark.parametrize("octets", [104, 1518])
def test_frames_in_tunnels_are_sent_from_customer_edges(octets: int) -> None:
    case = Case(family="ipv6", frame_octets=octets, direction="bidirectional", mode="tunnels")
    campaign = complete_campaign(campaign_of(case, ports=PORTS, trial_ns=1_000_000))
    (cell,) = cells_of(campaign)
    assert cell.frame_sizes.known == (octets - 40, octets)
    body: Any = trial_request(campaign, cell, frames_per_second=1000, duration_ns=10**9, trial_number=1)
    forward, reverse = (direction["foreground"] for direction in body["directions"])
    assert (forward["frame_octets"], reverse["frame_octets"]) == (octets, octets - 40)
    assert forward["source_tunnel"] == reverse["destination_tunnel"]
    assert reverse["destination"]["edges"] == forward["source"]["edges"]


@pytest.mark.parametrize("octets", [104, 1518])
def test_frames_of_6rd_are_sent_from_customer_edges(octets: int) -> None:
    case = Case(family="ipv4", frame_octets=octets, direction="bidirectional", mode="tunnels_6in4")
    campaign = complete_campaign(campaign_of(case, ports=PORTS, trial_ns=1_000_000))
    (cell,) = cells_of(campaign)
    assert (cell.frame_sizes.ipv6, cell.frame_sizes.tunnel) == (octets - 20, octets)
    assert host_count(campaign, "left") == 60_000
    body: Any = trial_request(campaign, cell, frames_per_second=1000, duration_ns=10**9, trial_number=1)
    forward, reverse = (direction["foreground"] for direction in body["directions"])
    assert (forward["frame_octets"], reverse["frame_octets"]) == (octets, octets - 20)
    assert forward["source_tunnel"] == reverse["destination_tunnel"]
    assert forward["source"]["address"] == "2001:db8:c612:2::1"


@pytest.mark.parametrize("domains", [1, 2, 3, 64, 1000, 1024])
def test_customer_edges_are_spread_over_as_many_domains_as_in_the_campaign(domains: int) -> None:
    case = Case(family="ipv6", frame_octets=84, direction="bidirectional", mode="edges")
    campaign = complete_campaign(campaign_of(case, ports=PORTS, trial_ns=1_000_000, domains=domains))
    assert campaign.map is not None
    assert campaign.edges.domain_count == domains
    assert 780_000 < campaign.map.edge_count <= 1_000_000
    assert self_test_kind(campaign) == ("ring" if domains == 1 else f"ring+{domains}_domains")


@pytest.mark.parametrize("count", [1, 7, 1_000, 40_001, 1_000_000, 4_000_000])
@pytest.mark.parametrize("mode", STATEFUL_MODES)
def test_there_are_enough_four_tuples_for_every_number_of_connections(mode: Mode, count: int) -> None:
    case = Case(family="ipv4", frame_octets=64, direction="forward", mode=mode, connections=count)
    campaign = complete_campaign(campaign_of(case, ports=PORTS, trial_ns=1_000_000))
    assert tuple_space(campaign, count).product >= count


@pytest.mark.parametrize("count", [1, 7, 1_000, 100_000, 4_000_000, 1_000_000_000])
def test_connections_of_b4s_are_in_tunnels_of_ten_thousand(count: int) -> None:
    case = Case(family="ipv6", frame_octets=104, direction="forward", mode="stateful_tunnels", connections=count)
    campaign = complete_campaign(campaign_of(case, ports=PORTS, trial_ns=1_000_000, host_macs="random"))
    assert tuple_space(campaign, count).product >= count
    (cell,) = cells_of(campaign)
    assert (cell.frame_sizes.ipv4, cell.frame_sizes.tunnel) == (64, 104)
    assert host_count(campaign, "left") == min(10_000, max(1, count // 10))


def test_all_combinations_are_planned() -> None:
    modes = cases(
        families=("ipv4", "ipv6"), sizes=EFFORT.sizes, directions=("forward", "bidirectional"), connections=(5, 9)
    )
    assert len(modes) == 2 * 2 * 4 * 2 + 2 * 5 * 2 + 2 * 2 * 3 + 2
    assert len(set(modes)) == len(modes)


def test_echo_requests_to_itself_are_as_fast_as_the_slots_or_the_tester() -> None:
    device = SimulatedDevice(capacity_forward=400_000, capacity_reverse=400_000, delays_ns=(20_000, 20_000))
    asked = EchoAsked(family="ipv6", frame_octets=122, shapes=((1, 4), (8, 4)))
    subject = Subject(port_kind="ring", conditions=CONDITIONS, ports=PORTS, echo=asked)
    case = Case(family="ipv6", frame_octets=122, direction="forward", mode="fixed")
    with open_self_tester(subject, case, EFFORT, lambda _: None, simulated_equipment(device)) as tester:
        loops = list(tester.echo_loops(asked))
    assert [(loop.clients, loop.window, loop.frames_per_second) for loop in loops] == [
        (1, 4, None),
        (8, 4, None),
        (8, 4, 4_000),
        (8, 4, 20_000),
        (8, 4, 100_000),
    ]
    assert [loop.replies_per_second for loop in loops] == [200_000, 400_000, 4_000, 20_000, 100_000]
    assert [loop.mean_ns for loop in loops] == [20_000, 80_000, 20_000, 20_000, 20_000]
    assert {loop.family for loop in loops} == {"ipv6"}


def test_a_campaign_of_echo_requests_asks_for_its_own_columns(state_folder: Path) -> None:
    side: dict[str, Any] = {
        "port": "ring",
        "ipv4": {"address": "198.18.0.2", "hosts": {"offset": 2, "mode": "increasing", "range": "2-99"}},
    }
    campaign = complete_campaign(campaign_from_dict(
        {"testbed": {"kind": "loopback"}, "gateway": {"technology": "router44"}, "left": side,
         "right": {"port": "ring", "ipv4": {**side["ipv4"], "address": "198.19.0.2"}},
         "overload": {"clients": [1, 2]}}
    ))  # fmt: skip
    subject = subject_of(campaign)
    assert subject.echo == EchoAsked(family="ipv4", frame_octets=102, shapes=((1, 4), (2, 4)))
    assert _missing_echo(campaign, None) == subject.echo


def test_a_whole_self_test_is_kept_and_found_again(state_folder: Path) -> None:
    steps: list[Step] = []
    device = SimulatedDevice(capacity_forward=400_000, capacity_reverse=300_000, establishment_rate=50_000)
    asked = EchoAsked(family="ipv4", frame_octets=102, shapes=((2, 4),))
    subject = Subject(port_kind="ring", conditions=CONDITIONS, ports=PORTS, connections=(1_000,), echo=asked)
    count = run_self_test(subject, effort=EFFORT, quick=True, tell=steps.append, equipment=simulated_equipment(device))
    assert len(count.entries) == 2 * 2 * 4 * 2 + 2 * 5 * 2 + 2 * 3 + 1
    for entry in count.entries:
        truth = {"forward": 400_000, "bidirectional": 300_000}[entry.direction]
        if entry.kind == "connections":
            truth = 50_000
        assert truth * 0.97 <= entry.frames_per_second <= truth, entry
        assert entry.limited
    assert {entry.frame_octets for entry in count.self_latency} == {64, 84, 1518}
    assert [loop.clients for loop in count.echo_loops] == [2] * 4
    assert {entry.direction for entry in count.self_latency} == {"forward", "reverse"}
    assert [step.number for step in steps] == list(range(1, steps[-1].count + 1))
    assert steps[0].left_s is None
    assert steps[-1].left_s is not None
    assert load_self_test("ring", CONDITIONS) is None
    path = store_self_test(count)
    assert load_self_test("ring", CONDITIONS) == count
    assert load_self_test("memif", CONDITIONS) is None
    assert [path] == list(state_folder.iterdir())


@pytest.mark.parametrize("changed", ["cores", "queues", "cards", "kernel", "engine"])
def test_a_self_test_under_other_conditions_is_not_used(changed: str, state_folder: Path) -> None:
    first, second = document(), document(conditions=CONDITIONS | {changed: "other"})
    assert store_self_test(first) != store_self_test(second)
    assert load_self_test("memif", first.conditions) == first
    assert load_self_test("memif", second.conditions) == second
    assert load_self_test("memif", CONDITIONS | {changed: "a third"}) is None


def between_ports(left: str, **testbed: Any) -> Campaign:
    sides = {
        side: {"port": port, "queues": 2, "ipv4": {"address": f"{net}.0.2", "gateway": f"{net}.0.1"}}
        for side, port, net in (("left", left, "198.18"), ("right", "pci:0000:99:00.0", "198.19"))
    }
    return complete_campaign(
        campaign_from_dict(
            {
                "gateway": {"technology": "router44"},
                "testbed": {"kind": "ports", **testbed},
                **sides,
                "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
                "throughput": {"maximum": "1M"},
            }
        )
    )


def test_cores_queues_cards_and_engine_are_conditions() -> None:
    first = conditions_of(between_ports("pci:0000:01:00.0", cores=[1]), "engine-1")
    assert first["cores"] == "1" and first["queues"] == "2 2" and "0000:01:00.0" in first["cards"]
    others = [
        conditions_of(between_ports("pci:0000:81:00.0", cores=[1]), "engine-1"),
        conditions_of(between_ports("pci:0000:01:00.0", cores=[1, 2]), "engine-1"),
        conditions_of(between_ports("pci:0000:01:00.0", cores=[1]), "engine-2"),
    ]
    assert first not in others
    subject = subject_of(between_ports("pci:0000:01:00.0", cores=[1]))
    campaign = loop_back_campaign(CASE, subject, QUICK)
    assert (campaign.testbed.cores, campaign.left.queues) == ((1,), 2), "those of the campaign"


def document(
    *,
    machine: str | None = None,
    conditions: Mapping[str, str] = CONDITIONS,
    entries: tuple[Entry, ...] = (),
    latency: tuple[TimedLatency, ...] = (),
) -> SelfTest:
    return SelfTest(
        selftest=2, machine=machine or stored.this_machine(), port_kind="memif", conditions=conditions,
        measured_at="2025-01-01", gatemark="1", engine="1", quick=False, trial_ns=1, confirmations=1,
        lateness_max_ns=10**6, entries=entries, self_latency=latency,
        clock=ClockFacts(resolution_ps=10_000, read_ps=20_000),
    )  # fmt: skip


def test_a_self_test_of_another_machine_or_a_damaged_one_is_none(state_folder: Path) -> None:
    store_self_test(document(machine="another"))
    assert load_self_test("memif", CONDITIONS) is None
    path = store_self_test(document())
    assert load_self_test("memif", CONDITIONS) is not None
    path.write_text("{", encoding="utf-8")
    assert load_self_test("memif", CONDITIONS) is None


def entry(octets: int, rate: int, *, direction: str = "forward", mode: str = "fixed") -> Entry:
    return Entry(
        family="ipv4", frame_octets=octets, direction=direction, mode=mode, frames_per_second=rate, kind="frames",
        connections=None, limited="",
    )  # fmt: skip


def reported(self_test: SelfTest, mode: str | None = None) -> SelfTestPart:
    """Return a self-test as reports read it, of all modes of traffic or of one."""
    data = self_test.model_dump(mode="json")
    return self_test_part({**data, "entries": [entry for entry in data["entries"] if mode in (None, entry["mode"])]})


def test_the_ceiling_is_never_that_of_a_smaller_frame() -> None:
    published = document(entries=(entry(64, 900), entry(512, 700), entry(1518, 300), entry(64, 5, mode="random_both")))

    def ceiling(octets: int, direction: str = "forward", mode: str = "fixed") -> int | None:
        result = reported(published, mode).ceiling({"ipv4": octets}, direction)
        return None if result is None else result.frames_per_second

    assert [ceiling(octets) for octets in (64, 65, 512, 1518)] == [900, 700, 700, 300]
    assert ceiling(9000) == 300
    assert ceiling(64, direction="reverse") == 900
    assert ceiling(64, mode="random_both") == 5
    assert ceiling(64, direction="bidirectional") is None


def latency(octets: int, rate: int) -> TimedLatency:
    return TimedLatency(
        frame_octets=octets, family="ipv4", frames_per_second=rate, direction="forward", samples=1, negative=0,
        minimum_ns=1, p50_ns=1, p99_ns=1, p999_ns=1, maximum_ns=1, lateness_max_ns=1,
    )  # fmt: skip


def test_the_self_latency_is_that_of_the_nearest_load_not_below() -> None:
    published = document(
        latency=tuple(latency(octets, rate) for octets in (64, 1518) for rate in (1_000, 10_000, 90_000))
    )

    def found(octets: int, rate: int) -> tuple[int, int]:
        entry = reported(published).latency_at({"ipv4": octets}, "forward", rate)
        assert entry is not None
        return entry.frame_octets, entry.frames_per_second

    assert found(64, 1) == (64, 1_000)
    assert found(128, 1_001) == (64, 10_000)
    assert found(1400, 90_001) == (1518, 90_000)
    assert reported(published).latency_at({"ipv6": 64}, "forward", 1) is None


def campaign(kind: str, **tables: object) -> object:
    document_ = {"testbed": {"kind": kind}, "frame_loss": {"rates": [1000]}, **tables}
    return campaign_from_dict(document_)


def test_the_same_kind_of_port_is_joined() -> None:
    ring = complete_campaign(
        campaign_from_dict(
            {"testbed": {"kind": "loopback"}, "gateway": {"technology": "router44"}, "frame_loss": {"rates": [1000]}}
        )
    )
    assert port_kind_of(ring) == "ring"
    assert subject_of(ring).ports == PORTS
    pci = {
        side: ring.side(side).model_copy(update={"port": f"pci:0000:01:00.{side == 'right':d}"})
        for side in ("left", "right")
    }
    cards = subject_of(ring.model_copy(update=pci))
    patient = ring.model_copy(update={"validity": ring.validity.model_copy(update={"lateness_max_ns": 5 * 10**6})})
    assert subject_of(patient).lateness_max_ns == 5 * 10**6
    assert cards.cable
    assert cards.ports == {"left": "pci:0000:01:00.0", "right": "pci:0000:01:00.1"}
    for port in ("null", "memif:/run/x.sock,role=server"):
        other = ring.model_copy(update={"left": ring.side("left").model_copy(update={"port": port})})
        with pytest.raises(ConfigError, match="cannot be joined"):
            subject_of(other)


def test_virtual_interfaces_are_kept_apart_from_cards() -> None:
    netns = complete_campaign(
        campaign_from_dict({"testbed": {"kind": "netns", "recipe": "linux-router4"}, "frame_loss": {"rates": [1000]}})
    )
    assert port_kind_of(netns) == "netns-af_packet"
    subject = subject_of(netns)
    assert subject.open_testbed is not None
    bed = subject.open_testbed(netns)
    assert isinstance(bed, WireTestBed)
    assert all(port.startswith("af_packet:gm") for port in bed.ports.values())
    assert len(set(bed.ports.values())) == 2
    assert subject_of(None).port_kind == "netns-af_packet"


def test_a_self_test_of_other_frames_says_nothing_about_a_campaign() -> None:
    base = {"testbed": {"kind": "loopback"}, "gateway": {"technology": "router44"}, "frame_loss": {"rates": [1000]}}
    usual = complete_campaign(campaign_from_dict(base))
    zero = complete_campaign(campaign_from_dict({**base, "traffic": {"reverse": {"udp_checksum": "zero"}}}))
    macs = complete_campaign(campaign_from_dict({**base, "left": {"host_macs": "random"}}))
    both = complete_campaign(
        campaign_from_dict({**base, "traffic": {"udp_checksum": "zero"}, "right": {"host_macs": "random"}})
    )
    kinds = [self_test_kind(each) for each in (usual, zero, macs, both)]
    assert kinds == ["ring", "ring+zero_checksum", "ring+host_macs", "ring+zero_checksum+host_macs"]
    subjects = [subject_of(each) for each in (usual, zero, macs, both)]
    assert [subject.port_kind for subject in subjects] == kinds
    assert [(subject.udp_checksum, subject.host_macs) for subject in subjects] == [
        ("computed", "fixed"),
        ("zero", "fixed"),
        ("computed", "random"),
        ("zero", "random"),
    ]


def test_every_case_is_tested_with_the_frames_of_the_campaign() -> None:
    planned = cases(
        families=("ipv4", "ipv6"),
        sizes={"ipv4": (64,), "ipv6": (84,)},
        directions=("forward", "bidirectional"),
        connections=(1000,),
    )
    without = set()
    for case in planned:
        campaign = complete_campaign(
            campaign_of(case, ports=PORTS, trial_ns=10**8, udp_checksum="zero", host_macs="random")
        )
        macs = (
            "fixed" if case.mode in ("edges", "tunnels", "tunnels_6in4", "stateful_tunnels") else "random"
        )  # behind a router
        assert [campaign.side(side).host_macs for side in ("left", "right")] == [macs, macs]
        if campaign.directions.lack_checksums:
            without.add((case.family, case.mode, case.direction))
    expected: set[tuple[str, str, str]] = {
        (case.family, case.mode, case.direction)
        for case in planned
        if case.family == "ipv4" and case.mode != "tunnels_6in4"
    }
    expected |= {
        ("ipv6", "mixed", "forward"),
        ("ipv6", "mixed", "bidirectional"),
        ("ipv6", "translated", "bidirectional"),
        ("ipv6", "edges", "bidirectional"),
        ("ipv6", "tunnels", "bidirectional"),
        ("ipv6", "stateful_tunnels", "forward"),
    }
    assert without == expected


def test_the_command_refuses_what_cannot_be_joined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "null.toml"
    file.write_text(
        '[gateway]\ntechnology = "router44"\n[testbed]\nkind = "loopback"\n'
        '[left]\nport = "null"\n[right]\nport = "null"\n'
        "[frame_loss]\nrates = [1000]\n",
        encoding="utf-8",
    )
    assert main(["selftest", str(file)]) == 2
    assert "cannot be joined" in capsys.readouterr().err
