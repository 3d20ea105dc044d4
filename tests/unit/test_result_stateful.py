"""From the journal of a stateful campaign to result.json (RFC 9693), and to the rows of its trials in the report."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import jsonschema
import pytest
from tests.trial_facts import ORDER, blank, changed, record_of

from gatemark.campaign.facts import TrialTally, run_facts
from gatemark.campaign.plan import plan_of
from gatemark.campaign.result_document import build_document
from gatemark.config.model import Campaign
from gatemark.dut.base import GatewayDescription
from gatemark.facts import SettingFact
from gatemark.procedures.connection_establishment_rate.result import AlphaTried
from gatemark.procedures.connection_tracking_table_capacity.result import CapacitySearch, CapacityStep
from gatemark.procedures.registry import PROCEDURES, PublishedDocument
from gatemark.results.document import ResultDocument
from gatemark.results.part import Figure, ReasonCounter
from gatemark.results.run import RunResult
from gatemark.results.search import SearchGoal
from gatemark.search.goal import SearchResult
from gatemark.stored import trial_row
from gatemark.trial.cell import Run
from gatemark.trial.record import ConnectionFacts, PhaseOne, TrialRecord
from gatemark.trial.report import Counts, DirectionResult, EstablishedConnections, LatenessBucket, TrialReport
from gatemark.trial.validity import Validity
from gatemark.trial.verdict import Verdict

NatCampaign = Callable[..., Campaign]

N = 1000
GATEWAY = GatewayDescription(name="nft", version="1.0", configuration="table ip nat {}", commands=("nft -f nat",))
BEHAVIOUR = {
    "count": N, "established": N, "examined": N, "port_preserved": 900, "parity_preserved": 950,
    "port_class_preserved": N, "public_addresses": 1, "public_ports": N, "public_port_minimum": 1024,
    "public_port_maximum": 65535, "sources_compared": 0, "sources_endpoint_independent": 0,
}  # fmt: skip
PASSED, FAILED = Verdict(passed=True), Verdict(passed=False, reasons=("the gateway holds 990 of 1000 connections",))
TESTER = Validity(valid=False, reasons=("forward: a burst was sent 7ms late, 2ms is allowed",))


def report(number: int, *, established: int | None = N, received: int = N, zero_checksum: int = 0) -> TrialReport:
    counts = blank(Counts, intended=N, offered=N, received=received, lost=N - received, zero_checksum=zero_checksum)
    direction = blank(
        DirectionResult,
        direction="forward", frames_per_second=10_000, intended_duration_ns=10**8, sending_ns=10**8, lateness_max_ns=5,
        gave_up=False, lateness_histogram=(LatenessBucket(below_ns=10, bursts=number),), foreground=counts,
    )  # fmt: skip
    connections = (
        None if established is None else EstablishedConnections(phase="establish", count=N, established=established)
    )
    return blank(TrialReport, trial_number=number, cancelled=False, directions=(direction,), connections=connections)


def attempt(number: int, rate: int, verdict: Verdict | None = PASSED, **of_report: Any) -> PhaseOne:
    validity = TESTER if verdict is None else Validity(valid=True)
    return PhaseOne(connections_per_second=rate, validity=validity, verdict=verdict, report=report(number, **of_report))


def record(
    run: int, trial_report: TrialReport, facts: ConnectionFacts | None, *, verdict: Verdict | None = PASSED, **step: Any
) -> TrialRecord:
    validity = Validity(valid=True) if verdict is not None else Validity(valid=False, reasons=("phase 1: lost",))
    cell = replace(ORDER.run.cell, connections=N)
    wanted = replace(ORDER.step, **{"connections": N, **step})
    order = replace(ORDER, run=replace(ORDER.run, number=run, cell=cell), step=wanted)
    if facts is not None and facts.phase_one:
        order = replace(order, connections_per_second=facts.phase_one[0].connections_per_second)
    return record_of(trial_report, order=order, validity=validity, verdict=verdict, connections=facts)


def planned(campaign: Campaign, procedure: str) -> Run:
    return next(run for run in plan_of(campaign).runs if run.procedure == procedure)


def searched(*rates: int) -> tuple[SearchResult, ...]:
    return tuple(
        SearchResult(kind="found", lower_bound=rate, upper_bound=rate + 100, resolution=100, highest_load=rate + 100)
        for rate in rates
    )


def document_of(campaign: Campaign, results: Sequence[RunResult], trials: Sequence[TrialRecord] = ()) -> ResultDocument:
    validities = [trial.validity for trial in trials]
    built = build_document(campaign, GATEWAY, results, validities, runs_planned=len(results))
    written = json.loads(built.to_text())
    jsonschema.validate(written, PublishedDocument.model_json_schema(mode="serialization"))
    read = PublishedDocument.model_validate(written)
    assert read.to_text() == built.to_text()
    assert read.runs == built.runs
    return read


def result_of(
    campaign: Campaign, procedure: str, trials: Sequence[TrialRecord] = (), *, limited_by: str = "gateway", **more: Any
) -> RunResult:
    facts = run_facts(campaign, planned(campaign, procedure), TrialTally(trials))
    return PROCEDURES[procedure].result(**{**facts, "limited_by": limited_by, **more})


def run_of(campaign: Campaign, procedure: str, trials: Sequence[TrialRecord] = (), **more: Any) -> Any:
    """The result of a run with these trials, as it is read back from `result.json`."""
    run = planned(campaign, procedure)
    of_run = [changed(trial, order=replace(trial.order, run=run)) for trial in trials]
    return document_of(campaign, [result_of(campaign, procedure, of_run, **more)], of_run).runs[0]


GOAL = SearchGoal(
    search="binary", maximum=100_000, minimum=1, loss_tolerance=Fraction(0), search_duration_ns=None, duration_ns=None
)
ESTABLISHMENT = {"maximum": "100k"}


def test_an_establishment_rate_has_connections_per_second_and_no_frame_rate(nat_campaign: NatCampaign) -> None:
    campaign = nat_campaign(connection_establishment_rate=ESTABLISHMENT)
    result = run_of(campaign, "connection_establishment_rate", goal=GOAL, repetitions=searched(5000, 5200))
    assert not hasattr(result, "rate_per_direction")
    assert result.connections_per_second is not None
    assert (result.connections_per_second.median, result.lower_bound, result.upper_bound) == (5100, 5000, 5300)
    assert (result.goal.duration_ns, result.goal.search) == (None, "binary")
    assert {search.resolution for search in result.repetitions} == {100}
    assert result.connections is not None
    assert (result.connections.initiator, result.connections.count) == ("left", N)
    assert (result.connections.source_ports.ports, result.connections.destination_ports.ports) == (40_000, 1)
    assert (result.connections.timeout_ns, result.connections.gap_ns) == (20_000_000, 30_000_000)
    assert result.connections.phase_one is None


def test_alpha_and_what_was_tried_for_it(nat_campaign: NatCampaign) -> None:
    rates = {**ESTABLISHMENT, "validated": [False, True], "alpha": "search"}
    result = run_of(
        nat_campaign(connection_establishment_rate=rates),
        "validated_connection_establishment_rate",
        goal=GOAL,
        repetitions=searched(5000),
        alpha=Fraction(4, 5),
        alphas_tried=(AlphaTried(alpha=Fraction(1), lower_bound=None), AlphaTried(alpha=Fraction(4, 5), lower_bound=5)),
    )
    assert result.alpha == Fraction(4, 5)
    assert [(tried.alpha, tried.lower_bound) for tried in result.alphas_tried] == [(1, None), (Fraction(4, 5), 5)]
    published = json.loads(result.model_dump_json())
    assert (published["alpha"], published["alphas_tried"][0]["alpha"]) == ("4/5", "1")


def test_phase_one_before_throughput_is_told_apart(nat_campaign: NatCampaign) -> None:
    campaign = nat_campaign(throughput={"maximum": "10k"})
    filled = ConnectionFacts(
        phase_one=(attempt(1, 10_000, FAILED, established=990), attempt(2, 5_000)),
        counted_after_phase_one=N, counted_after_phase_two=N + 1, behaviour=BEHAVIOUR,
    )  # fmt: skip
    failed = ConnectionFacts(
        phase_one=(attempt(3, 10_000, FAILED, established=980), attempt(4, 5_000, None, established=990)),
        counted_after_phase_one=980,
    )  # fmt: skip
    result = run_of(
        campaign,
        "throughput",
        [
            record(0, report(5), filled),
            record(0, failed.phase_one[-1].report, failed, verdict=None),
        ],
        goal=GOAL,
        repetitions=searched(8000),
    )
    assert result.rate_per_direction is not None
    assert not hasattr(result, "connections_per_second")
    assert result.connections is not None
    first, counts, behaviour_ = (
        getattr(result.connections, name) for name in ("phase_one", "gateway_counts", "behaviour")
    )
    assert (first.attempts, first.failed) == (4, 3)
    assert (first.connections_per_second_minimum, first.connections_per_second_maximum) == (5_000, 10_000)
    assert [(reason.reason, reason.trials) for reason in first.reasons] == [
        ("the gateway holds … of … connections", 2),
        ("forward: a burst was sent … late, … is allowed", 1),
    ]
    assert (counts.phase_one, counts.phase_one_equal, counts.phase_one_minimum) == (1, 1, N)
    assert (counts.phase_two, counts.phase_two_changed) == (1, 1)
    assert (behaviour_.port_preserved, behaviour_.public_port_minimum) == (900, 1024)


def test_reasons_that_differ_in_figures_alone_are_counted_together() -> None:
    counter = ReasonCounter()
    counter.add(["right: a gap (12.5ms of 100ms), then 3; from 198.18.0.1."])
    counter.add(["right: a gap (7ms of 1s), then 40; from 2001:db8::1.", "IPv6 port: link down"])
    assert [(part.reason, part.trials) for part in counter.counted()] == [
        ("right: a gap (… of …), then …; from ….", 2),
        ("IPv6 port: link down", 1),
    ]


@pytest.mark.parametrize(
    "word", ["1" + "." * 1_000_000 + "x", "(" * 1_000_000 + "x", "1" + ".:" * 500_000 + "x", "1." * 500_000]
)
def test_a_reason_of_a_million_characters_takes_as_long_as_a_million(word: str) -> None:
    counter = ReasonCounter()
    counter.add([f"left port: {word}"])
    (part,) = counter.counted()
    assert part.reason in ("left port: …", "left port: ….", f"left port: {word}")


def test_counts_are_compared_only_where_the_tester_saw_all_connections(nat_campaign: NatCampaign) -> None:
    campaign = nat_campaign(connection_establishment_rate=ESTABLISHMENT)
    trials = [
        record(0, report(1), ConnectionFacts(counted_after_phase_one=N)),
        record(0, report(2), ConnectionFacts(counted_after_phase_one=N + 3)),
        record(0, report(3, established=900), ConnectionFacts(counted_after_phase_one=901), verdict=FAILED),
    ]
    result = run_of(
        campaign, "connection_establishment_rate", trials, goal=GOAL, repetitions=searched(5000)
    ).connections
    assert result is not None
    assert result.gateway_counts is not None
    assert (result.gateway_counts.phase_one, result.gateway_counts.phase_one_equal) == (2, 1)
    assert (result.gateway_counts.phase_one_minimum, result.gateway_counts.phase_one_maximum) == (N, N + 3)
    assert result.gateway_counts.phase_two == 0
    uncounted = run_of(
        campaign,
        "connection_establishment_rate",
        [record(0, report(1), ConnectionFacts())],
        goal=GOAL,
        repetitions=searched(5000),
    )
    assert uncounted.connections is not None
    assert uncounted.connections.gateway_counts is None


def test_tear_down_comes_from_unrounded_medians(nat_campaign: NatCampaign) -> None:
    times: dict[str, Any] = {"full_ns": Figure.of((30, 10, 21)), "empty_ns": Figure.of((4, 4, 6))}
    result = run_of(nat_campaign(connection_tear_down_rate={}), "connection_tear_down_rate", **times)
    full = result.full_ns.summary
    assert (full.median, full.p1, full.p99, result.net_ns) == (21, 10, 30, 17)
    assert result.connections_per_second == pytest.approx(N * 10**9 / 17)
    assert not result.reliable


@pytest.mark.parametrize(
    ("left", "deleted", "reliable"),
    [((400, 400, 400), N - 400, True), ((0, 300, 400), N - 300, False), ((N, N, N), 0, True)],
)
def test_connections_that_a_deletion_left_are_not_in_the_rate(
    nat_campaign: NatCampaign, left: tuple[int, ...], deleted: int, reliable: bool
) -> None:
    figures: dict[str, Any] = {
        "full_ns": Figure.of((1000, 1001, 1002)), "empty_ns": Figure.of((1, 1, 1)), "left": Figure.of(left),
    }  # fmt: skip
    result = run_of(nat_campaign(connection_tear_down_rate={}), "connection_tear_down_rate", **figures)
    assert result.connections_per_second == (pytest.approx(deleted * 10**9 / 1000) if deleted else None)
    assert result.reliable == reliable
    (row,) = (row for row in result.quantities() if row.name == "connections left by the deletion")
    assert row.values == left
    assert "left" not in result.model_copy(update={"left": None}).model_dump()


def steps(*sizes: tuple[str, int, int | None]) -> tuple[CapacityStep, ...]:
    return tuple(CapacityStep(search=search, connections=size, rate=rate, stop_rate=1) for search, size, rate in sizes)


CAPACITY: dict[str, Any] = {
    "alpha": 1, "beta": "1/5", "gamma": "2/5", "resolution": 1, "rate_resolution": 1000, "maximum": 10**6,
}  # fmt: skip


def test_a_capacity_has_the_symbols_of_the_rfc(nat_campaign: NatCampaign) -> None:
    campaign = nat_campaign(
        connection_tracking_table_capacity={"start": 1000, "maximum_rate": "10k", "rate_resolution": "1k"}
    )
    tried: list[tuple[str, int, int | None]] = [
        ("start", 1000, 9000),
        ("exponential", 2000, 8000),
        ("exponential", 4000, None),
        ("binary", 3000, None),
    ]
    capacities = tuple(
        CapacitySearch(
            kind="found",
            c0=1000,
            start=SearchResult(
                kind="found", lower_bound=9000, upper_bound=10_000, resolution=1000, highest_load=10_000
            ),
            steps=steps(*tried, ("binary", held, 7000), ("binary", held + 1, None)),
            overflow=overflow,
            lost_connections=lost,
        )
        for held, overflow, lost in ((2500, "evicted", "oldest"), (2501, "refused", None))
    )
    result = run_of(campaign, "connection_tracking_table_capacity", **CAPACITY, repetitions=capacities)
    assert (result.alpha, result.beta, result.gamma) == (1, Fraction(1, 5), Fraction(2, 5))
    assert (result.resolution, result.rate_resolution) == (1, 1000)
    published = json.loads(result.model_dump_json())
    assert [published[name] for name in ("alpha", "beta", "gamma")] == ["1", "1/5", "2/5"]
    first = result.repetitions[0]
    assert (first.c0, first.r0, first.cs, first.rs, first.ct, first.rt) == (1000, 9000, 2000, 8000, 4000, None)
    assert (first.lower_bound, first.upper_bound) == (2500, 2501)
    assert (first.overflow, first.lost_connections) == ("evicted", "oldest")
    assert (result.lower_bound, result.upper_bound) == (2500, 2502)
    assert result.capacity.median == 2500.5
    assert (result.r0.median, result.rs.median) == (9000, 8000)
    assert (result.connections.count, result.connections.source_ports.ports) == (None, 40_000)


def test_a_capacity_that_the_tester_limited_has_no_figure(nat_campaign: NatCampaign) -> None:
    campaign = nat_campaign(connection_tracking_table_capacity={"start": 1000, "maximum_rate": "10k"})
    limit = SearchResult(
        kind="tester_limited",
        lower_bound=None,
        upper_bound=None,
        resolution=1,
        highest_load=10_000,
        tester_limited_at=10_000,
    )
    spoilt = CapacitySearch(kind="tester_limited", c0=1000, start=limit, steps=())
    result = run_of(
        campaign, "connection_tracking_table_capacity", limited_by="tester", **CAPACITY, repetitions=(spoilt,)
    )
    assert (result.capacity, result.r0, result.rs) == (None, None, None)
    assert (result.repetitions[0].c0, result.repetitions[0].r0, result.lower_bound) == (1000, None, None)


def test_zero_checksums_are_counted_once_for_each_phase(nat_campaign: NatCampaign) -> None:
    campaign = nat_campaign("nat64", gateway={"zero_udp_checksum": True}, throughput={"maximum": "10k"})
    only_first = attempt(2, 5_000, None, zero_checksum=4)
    trials = [
        record(0, report(5, zero_checksum=1), ConnectionFacts(phase_one=(attempt(1, 9, zero_checksum=2),))),
        record(0, only_first.report, ConnectionFacts(phase_one=(only_first,)), verdict=None),
    ]
    assert run_of(campaign, "throughput", trials, goal=GOAL, repetitions=searched(8000)).zero_checksum == 7
    strict = nat_campaign("nat64", throughput={"maximum": "10k"})
    assert run_of(strict, "throughput", trials, goal=GOAL, repetitions=searched(8000)).zero_checksum is None


def test_the_gateway_is_described_with_its_table(nat_campaign: NatCampaign) -> None:
    table = {"size": "1M", "hash_size": 262_144, "udp_timeout": "200s"}
    campaign = nat_campaign("nat44", gateway={"inside": "right", "table": table, "mapping": "endpoint_dependent"})
    gateway = document_of(campaign, []).gateway
    assert (gateway.technology, gateway.inside, gateway.mapping) == ("nat44", "right", "endpoint_dependent")
    assert gateway.table is not None
    assert (gateway.table.size, gateway.table.hash_size, gateway.table.udp_timeout_ns) == (10**6, 262_144, 200 * 10**9)
    assert gateway.pool == ("198.18.0.1/32",)
    assert gateway.pool_ports is not None
    assert (gateway.pool_ports.minimum, gateway.pool_ports.maximum) == (1024, 65535)
    assert gateway.cores is None


def test_settings_are_told_with_what_was_read(nat_campaign: NatCampaign) -> None:
    count = (SettingFact(name="hash", value="8", read="8"), SettingFact(name="rss", value="sd", read=None))
    described = GatewayDescription(name="", version="", configuration="", settings=count)
    document = build_document(nat_campaign(), described, [], (), runs_planned=0)
    assert [(setting.name, setting.value, setting.read) for setting in document.gateway.settings] == [
        ("hash", "8", "8"),
        ("rss", "sd", None),
    ]


def test_no_compliance_with_an_informational_rfc_is_claimed(nat_campaign: NatCampaign) -> None:
    standard = {"duration": "60s", "settle": "2s", "learn": "2s", "drain": "2s", "rest": "5s"}
    campaign = nat_campaign(throughput={"maximum": "10k"}, frame_loss=None, trial=standard)
    throughput = result_of(campaign, "throughput", goal=GOAL, repetitions=searched(8000))
    claim = document_of(campaign, [throughput]).claim
    assert claim.level == "all_but_routing_updates"
    assert "no routing update is sent before a trial (section 13)" in claim.sentence
    assert "RFC 9693" not in claim.sentence
    assert claim.informational is not None
    assert claim.informational.startswith("RFC 9693 is informational, so no compliance with it is claimed")
    rates_only = nat_campaign(connection_establishment_rate=ESTABLISHMENT, frame_loss=None, trial=standard)
    rate = result_of(rates_only, "connection_establishment_rate", goal=GOAL, repetitions=searched(8000))
    assert document_of(rates_only, [rate]).claim.level == "none"


FIRST, SECOND = attempt(1, 10_000), report(7)
FILLED = ConnectionFacts(phase_one=(FIRST,))


@pytest.mark.parametrize(
    ("facts", "trial_report", "step", "phase", "attempts"),
    [
        (None, SECOND, {}, "", 0),
        (ConnectionFacts(), SECOND, {}, "phase 1 only", 0),
        (FILLED, SECOND, {"connections": None}, "phase 2", 1),
        (FILLED, FIRST.report, {}, "phase 1 only", 1),
        (FILLED, SECOND, {"alpha": Fraction(1)}, "validation", 1),
        (FILLED, SECOND, {"tears_down": True}, "tear-down", 1),
        (ConnectionFacts(), SECOND, {"tears_down": True, "connections": 0}, "tear-down, empty table", 0),
    ],
)
def test_rows_of_trials_name_the_phase(
    facts: ConnectionFacts | None, trial_report: TrialReport, step: dict[str, Any], phase: str, attempts: int
) -> None:
    row = trial_row(record(1, trial_report, facts, **step))
    assert (row.phase, row.phase_one_attempts) == (phase, attempts)
    assert row.connections == (None if facts is None else N if step.get("connections") is None else step["connections"])
    bursts = 7 if facts is None or not facts.phase_one else 1 if trial_report is FIRST.report else 8
    assert sum(count for _, count in row.lateness_histogram) == bursts
