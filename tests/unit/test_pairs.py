"""Two gateways in pairs: what a trial says, which load is chosen, what pairs show, and that resuming is replay."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.device import SimulatedDevice
from tests.simulated.engine import SimulatedEngine
from tests.simulated.equipment import SimulatedTestBed
from tests.simulated.state import SimulatedGateway

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.cli.main import main
from gatemark.compare.document import SetupDifference
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.engine.client import Engine
from gatemark.errors import ConfigError, EngineError, ResultError, TestBedError
from gatemark.pairs.conclude import Setting, SideFacts, Wanted, conclude, end_of
from gatemark.pairs.document import PairDocument
from gatemark.pairs.evidence import chance_of_left_out, look_at
from gatemark.pairs.figure import CONNECTIONS_PER_SECOND, FORWARDING_RATE, MEDIAN_DELAY, Figure
from gatemark.pairs.load import FIRST_LOAD, LOWEST_LOAD, LoadChoice
from gatemark.pairs.options import PairOptions, wanted_of
from gatemark.pairs.pair import BOUND_BELOW, SIDES, Outcome, Pair, Side, SideTrial
from gatemark.pairs.report import end_lines, ratio_words, render_pairs
from gatemark.pairs.run import (
    Measured,
    PairResult,
    check_measured,
    check_unchanged,
    create_folder,
    measure_pairs,
    open_folder,
    traffic_of,
)
from gatemark.stats.looks import pairs_at
from gatemark.tester import Equipment

ERROR = Fraction(1, 20)
OPTIONS = PairOptions(
    files=("a.toml", "b.toml"), recipes=(None, None), size=None, direction=None, mix=None, duration="100ms",
    precision="3%", time="5min", fail_if=(), confidence="95%", seed=1, quantity="forwarding rate",
)  # fmt: skip


def wanted(**options: Any) -> Wanted:
    """Return what these options ask for."""
    return wanted_of(OPTIONS.model_copy(update=options))


def side(rate: float, load: int, outcome: Outcome | None = None) -> SideTrial:
    """Return a trial of a gateway that forwards `rate` frames/s at most."""
    forwarded = min(rate, load)
    loss = 1 - Fraction(forwarded) / load
    return SideTrial(
        trial_number=1, outcome=outcome or ("bound" if loss < BOUND_BELOW else "measured"), value=forwarded,
        highest_rate=forwarded, loss_ratio=loss, reasons=(), seconds=0.2,
    )  # fmt: skip


def pair(a: SideTrial, b: SideTrial, *, load: int = 1_000_000, is_search: bool = False, number: int = 1) -> Pair:
    """Return a pair."""
    trials: dict[Side, SideTrial] = {"A": a, "B": b}
    return Pair(number=number, load=load, is_search=is_search, first="A", trials=trials, at_s=0.4 * number)


def pairs_of(ratios: list[float], a: Outcome = "measured", b: Outcome = "measured") -> list[Pair]:
    """Return pairs with these ratios."""
    return [
        pair(side(1000, 2000, a), side(1000 * ratio, 2000, b), load=2000, number=number)
        for number, ratio in enumerate(ratios, start=1)
    ]


def concluded(pairs: list[Pair], **options: Any) -> PairDocument:
    """Return the document of some pairs."""
    facts = SideFacts(file="a.toml", recipe="router", gateway="router 1", idle_cpu_share=0.001)
    difference = SetupDifference(topic="gateway", key="version", where=(), values=("1", "2"))
    setting = Setting(
        version="1", traffic="64-octet IPv4", sides=dict.fromkeys(SIDES, facts), differences=(difference,)
    )
    return conclude(pairs, 0.4 * len(pairs), wanted(**options), setting, "time")


def test_a_trial_that_is_a_bound_leaves_one_end_open() -> None:
    assert pair(side(900, 1000), side(800, 1000), load=1000).logarithms == pytest.approx((math.log(8 / 9),) * 2)
    low, high = pair(side(2000, 1000), side(800, 1000), load=1000).logarithms
    assert (low, high) == pytest.approx((-math.inf, math.log(0.8))), "A may be faster than what was offered"
    low, high = pair(side(800, 1000), side(2000, 1000), load=1000).logarithms
    assert (low, high) == pytest.approx((math.log(1000 / 800), math.inf)), "B may be faster than what was offered"
    assert pair(side(2000, 1000), side(2000, 1000), load=1000).logarithms == (-math.inf, math.inf)
    assert pair(side(0, 1000), side(500, 1000), load=1000).logarithms == (math.inf, math.inf)
    assert pair(side(0, 1000), side(0, 1000), load=1000).logarithms == (-math.inf, math.inf)


def test_bounds_never_pull_the_ratio_towards_1() -> None:
    """B forwards half of what A does, but only 1.1 times B's rate is offered."""
    bounds = [pair(side(1000, 550), side(500 + number, 600), load=550, number=number) for number in range(40)]
    look = look_at(bounds, 7, ERROR, "higher")
    assert look is not None
    assert look.low == 0, "how much faster A is, nobody knows"
    assert look.high < 0.98
    assert look.judgement == "worse"
    document = concluded(bounds, fail_if=("forwarding rate worse than 1%", "forwarding rate may be worse than 60%"))
    assert [condition.outcome for condition in document.conditions] == ["met", "met"]
    assert document.look is not None and document.look.low is None
    assert ratio_words(document.look).startswith("at most 0.9")
    assert "may be faster" in document.findings[0]
    both = [pair(side(1000, 500), side(900, 500), load=500, number=number) for number in range(40)]
    assert concluded(both).judgement == "not_judged"


@pytest.mark.parametrize("outcome", ["invalid", "suspect", "lossy"])
def test_a_trial_that_says_nothing_takes_its_partner_with_it(outcome: Outcome) -> None:
    good = pairs_of([0.9] * 20)
    spoiled = pairs_of([2.0] * 15, b=outcome)
    document = concluded([*good, *spoiled])
    assert (document.pairs, document.pairs_left_out) == (20, 15)
    assert document.look is not None and document.look.high == pytest.approx(0.9 * 1.015)
    assert (document.sides[0].invalid, document.sides[0].suspect) == (0, 0)
    assert getattr(document.sides[1], outcome) == 15
    assert "chance makes such a difference" in document.findings[0]
    assert chance_of_left_out(pairs_of([1.0] * 3, b="invalid")) == Fraction(1, 4)
    assert chance_of_left_out(pairs_of([1.0] * 9, a="invalid", b="invalid")) == 1


@pytest.mark.parametrize(("ratio", "shown"), [(0.986, "no_difference"), (1.014, "no_difference"), (0.98, "worse")])
def test_what_two_beds_of_one_gateway_differ_by_is_no_difference(ratio: float, shown: str) -> None:
    document = concluded(pairs_of([ratio] * 40), fail_if=("forwarding rate worse than 0%",))
    assert document.judgement == shown
    assert document.passes == (shown == "no_difference")


def test_searches_do_not_count() -> None:
    searches = [pair(side(1000, 2000), side(100, 2000), load=2000, is_search=True, number=1) for _ in range(30)]
    assert concluded(searches).look is None
    assert end_of(searches, 12.0, wanted()) is None


def test_it_ends_when_enough_is_known() -> None:
    some = pairs_of([0.90 + 0.001 * (number % 7) for number in range(20)])
    assert end_of(some, 8.0, wanted(precision="10%")) == "precision"
    assert end_of(some, 8.0, wanted(precision="1.51%")) is None
    assert end_of(some, 8.0, wanted(precision="1.51%", fail_if=("forwarding rate worse than 5%",))) == "decided"
    assert end_of(some, 8.0, wanted(precision="1.51%", fail_if=("forwarding rate worse than 9.6%",))) is None
    assert end_of(some, 8.0, wanted(precision="1.51%", time="8s")) == "time"
    assert end_of(some[:19], 7.6, wanted(precision="10%")) is None, "between two looks nothing is decided"


def test_what_is_not_decided_is_said() -> None:
    some = pairs_of([0.90 + 0.01 * (number % 11) for number in range(20)])
    document = concluded(some, fail_if=("forwarding rate worse than 5%", "any may be worse than 5%"))
    assert [condition.outcome for condition in document.conditions] == ["not_met", "met"]
    assert not document.decided
    assert list(end_lines(document))[-1].endswith("the time is over; not decided")
    assert list(end_lines(concluded(some)))[-1].endswith("the time is over; the interval is still wider than asked")
    none = concluded(some[:3], fail_if=("forwarding rate worse than 5%",))
    assert none.conditions[0].outcome == "cannot_be_judged" and not none.passes


def test_drift_and_autocorrelation_are_told() -> None:
    rates = [1000 - 4 * number for number in range(60)]
    slower = [
        pair(side(rate, 4000), side(rate * (0.9 + 0.1 * (number // 10 % 2)), 4000), load=4000, number=number)
        for number, rate in enumerate(rates)
    ]
    document = concluded(slower)
    assert document.sides[0].drift == pytest.approx(-0.166, abs=0.01)
    assert document.autocorrelation is not None and document.autocorrelation > 0.5
    assert any("fell by 17 %" in finding for finding in document.findings)
    assert any("are correlated" in finding for finding in document.findings)
    page = render_pairs(document, {})
    assert page.count("<svg") == 2 and "gateway: version" in page


def searched(a: float, b: float, tester: int, *, pairs: int = 40) -> list[LoadChoice]:
    """Return the choices of gateways that forward `a` and `b` frames/s; above `tester` trials are invalid."""
    choices, choice = [], LoadChoice()
    for _ in range(pairs):
        choices.append(choice)
        outcome: Outcome | None = "invalid" if choice.load > tester else None
        latest = pair(
            side(a, choice.load, outcome), side(b, choice.load, outcome), load=choice.load, is_search=choice.is_search
        )
        choice = choice.after(latest)
    return choices


@pytest.mark.parametrize(("a", "b"), [(300_000, 290_000), (9_000, 8_000), (5_000_000, 100_000), (70, 60)])
def test_a_short_search_finds_a_load_above_both(a: int, b: int) -> None:
    choices = searched(a, b, 10**9)
    begins = next(place for place, choice in enumerate(choices) if not choice.is_search)
    assert begins <= 10
    load = choices[begins].load
    assert load == max(LOWEST_LOAD, min(choices[begins - 1].load, math.ceil(Fraction(4, 3) * max(a, b))))
    assert load > max(a, b) / 0.9 and all(choice.load == load for choice in choices[begins:])


def test_a_load_near_the_limit_of_the_tester_is_found_below_it() -> None:
    choices = searched(300_000, 250_000, 350_000)
    assert not choices[-1].is_search and not choices[-1].is_tester_limited
    assert 300_000 / 0.9 <= choices[-1].load <= 350_000


def test_where_the_tester_is_the_limit_its_highest_load_is_offered() -> None:
    choices = searched(1_000_000, 900_000, 350_000)
    measuring = [choice for choice in choices if not choice.is_search]
    assert all(choice.is_tester_limited for choice in measuring)
    assert all(350_000 / 1.1 <= choice.load <= 350_000 for choice in measuring)
    begun_too_high = searched(1_000_000, 900_000, FIRST_LOAD // 3)
    assert all(choice.load <= FIRST_LOAD // 3 for choice in begun_too_high if not choice.is_search)
    assert searched(1_000_000, 900_000, 0, pairs=100)[-1].load == LOWEST_LOAD


def test_delays_are_measured_at_half_of_what_the_slower_one_forwards() -> None:
    choice = LoadChoice(figure=MEDIAN_DELAY)
    for _ in range(20):
        a, b = (side(rate, choice.load, "measured") for rate in (100_000, 80_000))
        choice = choice.after(pair(a, b, load=choice.load, is_search=choice.is_search))
    assert not choice.is_search and choice.load == 40_000
    for _ in range(6):
        latest = pair(side(1, choice.load, "lossy"), side(1, choice.load), load=choice.load)
        choice = choice.after(latest)
    assert choice == LoadChoice(figure=MEDIAN_DELAY), "a gateway that became slower is searched again"


def test_a_gateway_that_becomes_faster_has_another_load() -> None:
    choice = LoadChoice(load=100_000, is_search=False)
    for _ in range(30):
        rate = 150_000
        choice = choice.after(
            pair(side(rate, choice.load), side(rate, choice.load), load=choice.load, is_search=choice.is_search)
        )
    assert not choice.is_search and choice.load == 200_000
    slow = LoadChoice(load=100_000, is_search=False)
    for _ in range(30):
        outcome: Outcome | None = "invalid" if slow.load > 70_000 else None
        latest = pair(
            side(40_000, slow.load, outcome), side(40_000, slow.load), load=slow.load, is_search=slow.is_search
        )
        slow = slow.after(latest)
    assert not slow.is_search and slow.load < 70_000


def campaign(**tables: Any) -> Campaign:
    """Return a campaign of a router."""
    document = {
        "testbed": {"kind": "netns", "recipe": "linux-router4"},
        "traffic": {"direction": ["forward"], "frame_sizes": {"family": "ipv4", "octets": [64]}},
        "throughput": {"resolution": "2%"},
    }
    return complete_campaign(campaign_from_dict({**document, **tables}))


def measured_of(first: Campaign, second: Campaign, figure: Figure = FORWARDING_RATE) -> Measured:
    """Return two campaigns with their first cells, as they are measured for this figure."""
    sides: Iterator[tuple[Side, Campaign]] = zip(SIDES, (first, second), strict=True)
    return {side: (file, traffic_of(file, cells_of(file)[0], figure)) for side, file in sides}


def simulated_pair(*devices: SimulatedDevice) -> Equipment:
    """Return equipment in which the test beds that are opened have these gateways, in turn."""
    gateways = [SimulatedGateway(device) for device in devices]
    opened, started = iter(gateways), iter(gateways)

    @contextlib.contextmanager
    def start(_netns: str | None, _log: Path | None) -> Iterator[Engine]:
        gateway = next(started)
        yield SimulatedEngine(gateway.device, gateway=gateway)

    return Equipment(
        open_testbed=lambda wanted: SimulatedTestBed(wanted, next(opened)),
        start_engine=start,
        engine_sha256=lambda: "simulated",
    )


def measured_pairs(
    folder: Path,
    *devices: SimulatedDevice,
    resumed: bool = False,
    each: Callable[[int], None] | None = None,
    of: Campaign | None = None,
    **options: Any,
) -> PairResult:
    """Measure two simulated gateways."""
    file = of or campaign()
    asked = OPTIONS.model_copy(update={"precision": "3%", **options})
    equipment, measured = simulated_pair(*devices), measured_of(file, file, wanted_of(asked).figure)
    if resumed:
        results, asked = open_folder(folder, trust_commands=False)
        check_unchanged(results, measured, equipment)
    else:
        results = create_folder(folder, asked, measured, equipment)
    return measure_pairs(
        results, measured, wanted_of(asked), equipment=equipment,
        on_pair=None if each is None else lambda pairs, _s, _wanted: each(len(pairs)),
    )  # fmt: skip


def without_times(document: PairDocument) -> dict[str, Any]:
    """Return what does not depend on how long trials took."""
    content = document.model_dump(mode="json", exclude={"measured_s", "sides"})
    for row in content["rows"]:
        row.pop("at_s")
    return content


def noisy(capacity: int) -> SimulatedDevice:
    """Return a gateway whose capacity is another one in each trial."""
    return SimulatedDevice(capacity_forward=capacity, noise=0.05)


def test_a_slower_gateway_is_shown_and_an_equal_one_is_not(tmp_path: Path) -> None:
    slow, fast = noisy(90_000), noisy(100_000)
    document = measured_pairs(tmp_path / "slower", fast, slow, fail_if=("forwarding rate worse than 5%",)).document
    assert document.judgement == "worse" and not document.passes and document.ended == "decided"
    assert document.look is not None and document.look.low is not None and document.look.high is not None
    assert document.look.low < 0.9 < document.look.high < 0.95
    assert document.traffic == "64-octet IPv4, forward"
    assert document.differences == ()
    same = measured_pairs(tmp_path / "same", fast, fast).document
    assert same.judgement == "no_difference" and same.ended == "precision"
    assert {row.first for row in same.rows} == {"A", "B"}, "chance decides which is first"
    kept = json.loads((tmp_path / "same/pair.json").read_text("utf-8"))
    assert kept == same.model_dump(mode="json", by_alias=True)
    page = (tmp_path / "same/report.html").read_text("utf-8")
    assert page.count("<dt>kernel</dt>") == 2 and "interrupted" not in page, "what measured either side"


def test_a_longer_delay_is_worse(tmp_path: Path) -> None:
    devices = [
        SimulatedDevice(capacity_forward=100_000, delays_ns=(delay_ns,), delay_spread_ns=5_000)
        for delay_ns in (50_000, 60_000)
    ]
    condition = "median delay worse than 5%"
    document = measured_pairs(tmp_path / "ab", *devices, quantity="median delay", fail_if=(condition,)).document
    assert (document.judgement, document.passes, document.ended) == ("worse", False, "decided")
    assert document.look is not None and document.look.low is not None and document.look.low > 1.05
    assert document.sides[0].value == pytest.approx(52_500, abs=2_500)
    assert document.rows[-1].load == 50_000
    back = measured_pairs(tmp_path / "ba", *reversed(devices), quantity="median delay", fail_if=(condition,)).document
    assert (back.judgement, back.passes) == ("better", True)
    assert "Median delay at a load below both, ns" in render_pairs(back, {})


def test_a_trial_that_lost_frames_has_no_delay(tmp_path: Path) -> None:
    lossy = SimulatedDevice(capacity_forward=100_000, loss_ratio=0.05)
    clean = SimulatedDevice(capacity_forward=100_000)

    def stop(number: int) -> None:
        if number == 40:
            raise KeyboardInterrupt

    document = measured_pairs(tmp_path, clean, lossy, quantity="median delay", each=stop).document
    assert (document.pairs, document.sides[0].lossy) == (0, 0)
    assert document.sides[1].lossy > 10
    assert any("left out" in finding for finding in document.findings)


def nat44(connections: int = 20_000) -> Campaign:
    """Return a campaign of a stateful gateway."""
    return complete_campaign(
        campaign_from_dict(
            {
                "testbed": {"kind": "netns", "recipe": "nft-nat44"},
                "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
                "connections": {"count": connections},
                "connection_establishment_rate": {},
            }
        )
    )


def measured_connections(folder: Path, *devices: SimulatedDevice) -> PairDocument:
    condition = "connections per second worse than 5%"
    return measured_pairs(
        folder, *devices, of=nat44(), quantity="connections per second", fail_if=(condition,)
    ).document


def test_a_gateway_that_establishes_fewer_connections_per_second_is_worse(tmp_path: Path) -> None:
    devices = [
        SimulatedDevice(capacity_forward=10_000_000, establishment_rate=rate, noise=0.02) for rate in (100_000, 80_000)
    ]
    document = measured_connections(tmp_path / "ab", *devices)
    assert (document.judgement, document.passes, document.ended) == ("worse", False, "decided")
    assert document.look is not None and document.look.low is not None and document.look.high is not None
    assert document.look.low < 0.8 < document.look.high
    assert document.sides[0].value == pytest.approx(100_000, rel=0.02)
    assert (document.unit, document.trial_ns, document.traffic) == (
        "connections/s", None, "64-octet IPv4, forward, 20,000 connections",
    )  # fmt: skip
    trials = [json.loads(line)["order"] for line in (tmp_path / "ab/trials.jsonl").read_text("utf-8").splitlines()[1:]]
    assert {(order["step"]["connections"], "connections_per_second" in order) for order in trials} == {(20_000, False)}
    assert "Connections per second at a rate above both, connections/s" in render_pairs(document, {})
    assert measured_connections(tmp_path / "ba", *reversed(devices)).judgement == "better"


def test_what_the_gateway_forgot_is_not_established(tmp_path: Path) -> None:
    """A table that evicts lets every frame pass: only the gateway's own count tells."""
    small = SimulatedDevice(
        capacity_forward=10_000_000, establishment_rate=100_000, table_size=15_000, overflow="evict"
    )
    whole = SimulatedDevice(capacity_forward=10_000_000, establishment_rate=100_000)
    with pytest.raises(TestBedError, match=r"of 20,000 connections B establishes 75\.0% at 10,000 connections/s"):
        measured_connections(tmp_path, whole, small)
    assert (tmp_path / "trials.jsonl").exists(), "what was measured is kept"


def test_a_slow_gateway_is_no_small_table(tmp_path: Path) -> None:
    slow, slower = (SimulatedDevice(capacity_forward=10_000_000, establishment_rate=rate) for rate in (4_000, 2_000))
    assert measured_connections(tmp_path, slow, slower).judgement == "worse"


@pytest.mark.parametrize(("count", "words"), [(5_000, "too few"), (None, "needs a stateful gateway")])
def test_connections_per_second_need_enough_connections(count: int | None, words: str) -> None:
    file = campaign() if count is None else nat44(count)
    with pytest.raises(ConfigError, match=words):
        check_measured(measured_of(file, file), CONNECTIONS_PER_SECOND)
    with pytest.raises(ConfigError, match="leave it out, and write another"):
        wanted(quantity="connections per second", duration="50ms")


def test_searches_of_both_sides_alternate(tmp_path: Path) -> None:
    condition = "throughput worse than 5%"
    devices = [noisy(100_000), noisy(90_000)]
    document = measured_pairs(tmp_path, *devices, quantity="throughput", fail_if=(condition,)).document
    assert (document.judgement, document.passes, document.ended) == ("worse", False, "decided")
    assert document.look is not None and document.look.low is not None and document.look.high is not None
    assert document.look.low < 0.9 < document.look.high
    assert document.sides[0].value == pytest.approx(100_000, rel=0.05)
    orders = [json.loads(line)["order"] for line in (tmp_path / "trials.jsonl").read_text("utf-8").splitlines()[1:]]
    runs = [order["run"]["number"] for order in orders if order["repetition"] == document.rows[-1].number - 1]
    assert runs[:8] in ([1, 2] * 4, [2, 1] * 4), "neither search is made while the other waits"
    assert "Throughput of alternating searches, frames/s" in render_pairs(document, {})


def test_a_gateway_that_collapses_has_another_throughput_than_forwarding_rate(tmp_path: Path) -> None:
    steady = SimulatedDevice(capacity_forward=100_000)
    collapsing = SimulatedDevice(capacity_forward=50_000, lossless_windows=((1, 100_000),))
    kinds = ("forwarding rate", "throughput")
    judged = [measured_pairs(tmp_path / kind, steady, collapsing, quantity=kind).document.judgement for kind in kinds]
    assert judged == ["worse", "no_difference"]


def test_a_search_that_the_tester_cannot_finish_takes_its_partner_with_it(tmp_path: Path) -> None:
    limited = SimulatedDevice(capacity_forward=100_000, held_up_every=2)

    def stop(number: int) -> None:
        if number == 20:
            raise KeyboardInterrupt

    steady = SimulatedDevice(capacity_forward=100_000)
    document = measured_pairs(tmp_path, steady, limited, quantity="throughput", each=stop).document
    assert document.sides[0].invalid == document.sides[0].suspect == 0
    searches = [row for row in document.rows if not row.search]
    assert {row.b.outcome for row in searches} <= {"measured", "suspect", "invalid"}
    assert all(row.b.value == pytest.approx(100_000, rel=0.02) for row in searches if row.b.outcome == "measured")


def test_who_stops_has_the_estimate_so_far_and_goes_on_by_replay(tmp_path: Path) -> None:
    devices = (noisy(100_000), noisy(97_000))
    whole = measured_pairs(tmp_path / "whole", *devices)

    def stop(number: int) -> None:
        if number == 30:
            raise KeyboardInterrupt

    part = measured_pairs(tmp_path / "part", *devices, each=stop)
    for side in "ab":
        (session,) = json.loads((tmp_path / f"part/provenance-{side}.json").read_text("utf-8"))["sessions"]
        assert session["finished_at"] and not session["resumed"] and session["machine"]["cpus"]
    assert part.was_interrupted and part.document.ended == "stopped"
    assert part.document.look is not None and part.document.look.pairs in map(pairs_at, range(1, 9))
    lines = (tmp_path / "part/trials.jsonl").read_bytes()
    assert lines.count(b"\n") == 60
    (tmp_path / "part/trials.jsonl").write_bytes(lines[:-40])  # killed while it wrote the last trial
    resumed = measured_pairs(tmp_path / "part", *devices, resumed=True)
    assert without_times(resumed.document) == without_times(whole.document)
    record = json.loads((tmp_path / "part/provenance-b.json").read_text("utf-8"))
    assert [session["trials_before"] for session in record["sessions"]] == [0, 59]
    assert (tmp_path / "part/trials.jsonl").read_bytes().startswith(lines[: len(lines) // 2])


def test_an_error_keeps_what_was_measured(tmp_path: Path) -> None:
    dying = SimulatedDevice(capacity_forward=100_000, dies_at_trial=15)
    with pytest.raises(EngineError):
        measured_pairs(tmp_path, dying, dying)
    assert json.loads((tmp_path / "pair.json").read_text("utf-8"))["ended"] == "stopped"


def test_a_damaged_journal_and_a_full_disk_name_the_command_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = SimulatedDevice(capacity_forward=100_000)
    measured_pairs(tmp_path, device, device)
    journal = tmp_path / "trials.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join((*lines[:10], lines[11], lines[10], *lines[12:])))
    with pytest.raises(ResultError, match=r"line 11: .*") as damaged:
        measured_pairs(tmp_path, device, device, resumed=True)
    assert "gatemark pair --resume" in str(damaged.value)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    folder, _ = open_folder(tmp_path, trust_commands=False)
    with pytest.raises(ResultError, match="disk is full") as no_room:
        folder.write_text("pair.json", "{}")
    assert f"gatemark pair --resume {tmp_path}" in str(no_room.value)


@pytest.mark.parametrize("side", ["a", "b"])
def test_pairs_of_another_machine_are_not_gone_on_with(tmp_path: Path, side: str) -> None:
    device = SimulatedDevice(capacity_forward=100_000)
    measured_pairs(tmp_path, device, device)
    file = tmp_path / f"provenance-{side}.json"
    record = json.loads(file.read_text("utf-8"))
    record["sessions"][0]["machine"]["kernel"] = "Linux 1.0"
    file.write_text(json.dumps(record), "utf-8")
    before = {path.name: path.read_bytes() for path in tmp_path.glob("provenance-*")}
    with pytest.raises(ResultError, match="kernel"):
        measured_pairs(tmp_path, device, device, resumed=True)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("provenance-*")} == before


def test_what_has_changed_is_not_gone_on_with(tmp_path: Path) -> None:
    device = SimulatedDevice(capacity_forward=100_000)
    measured_pairs(tmp_path, device, device)
    folder, _ = open_folder(tmp_path, trust_commands=False)
    with pytest.raises(ResultError, match="campaign of B"):
        check_unchanged(folder, measured_of(campaign(), campaign(seed=2)), simulated_pair(device, device))
    with pytest.raises(ResultError, match="already holds results"):
        create_folder(tmp_path, OPTIONS, measured_of(campaign(), campaign()), simulated_pair(device, device))


def test_campaigns_must_have_the_same_traffic_and_tester() -> None:
    other = campaign(traffic={"frame_sizes": {"family": "ipv4", "octets": [128]}}, seed=2)
    with pytest.raises(ConfigError) as refused:
        check_measured(measured_of(campaign(), other), FORWARDING_RATE)
    places = {problem.where.rpartition(": ")[2] for problem in refused.value.problems}
    assert places == {"traffic.direction", "traffic.frame_sizes.octets", "seed"}
    check_measured(measured_of(campaign(), campaign(throughput={"resolution": "5%"}, name="other")), FORWARDING_RATE)


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text('[testbed]\nkind = "netns"\nrecipe = "linux-router4"\n[throughput]\n', "utf-8")
    bad.write_text("nothing = 1\n", "utf-8")
    command = ["pair", str(good), str(bad), "--fail-if", "throughput worse than 5%", "--precision", "2", "--time", "5m"]
    command += ["--quantity", "jitter"]
    assert main(command) == 2
    told = capsys.readouterr().err
    for part in ("not throughput", "--precision 2", "--time 5m", "bad.toml", "'jitter'"):
        assert part in told
    assert main(["pair", str(good)]) == 2
    assert "two campaign files, or one and two recipes" in capsys.readouterr().err
    assert main(["pair", "--resume", str(tmp_path), "--precision", "4%"]) == 2
    assert main(["pair", "--resume", str(tmp_path)]) == 3
