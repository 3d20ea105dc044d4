"""Trials through a stateful gateway: phases, what is refused, what is named, and what is never measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice, SimulatedEngine, SimulatedGateway

from gatemark.campaign.engine_trial import Demands, EngineTrials
from gatemark.campaign.events import Event, PhaseStarted
from gatemark.campaign.maker import TrialMaker
from gatemark.campaign.phases import StatefulTrials
from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign
from gatemark.engine.answers import Resolved
from gatemark.engine.client import JsonObject, ProgressCallback
from gatemark.errors import ConfigError, HostConnectionError, ImpossibleTimeError, TestBedError
from gatemark.search.goal import Measure, Purpose, bounds_of, sending_ns
from gatemark.trial.cell import Run
from gatemark.trial.judgement import Rules
from gatemark.trial.kinds import judged, kind_of
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import TrialRecord

NatCampaign = Callable[..., Campaign]
FAST = SimulatedDevice(capacity_forward=1_000_000)
TABLES: dict[str, dict[str, Any]] = {
    "throughput": {"throughput": {"maximum": "1M"}},
    "connection_establishment_rate": {"connection_establishment_rate": {"maximum": "1M"}},
    "validated_connection_establishment_rate": {"connection_establishment_rate": {"maximum": "1M"}},
    "connection_tear_down_rate": {"connection_tear_down_rate": {}},
    "connection_tracking_table_capacity": {"connection_tracking_table_capacity": {"maximum_rate": "1M"}},
}


class Asked(SimulatedEngine):
    """Keeps what it was asked, in order."""

    def __init__(self, device: SimulatedDevice, gateway: SimulatedGateway | None = None) -> None:
        super().__init__(device, gateway=gateway)
        self.asked: list[Mapping[str, Any]] = []

    def trial(self, body: Mapping[str, Any], on_progress: ProgressCallback | None = None) -> JsonObject:
        self.asked.append(body)
        return super().trial(body, on_progress)

    def resolve(self, body: Mapping[str, Any]) -> Resolved:
        self.asked.append(body)
        return super().resolve(body)

    @property
    def requests(self) -> list[str]:
        return [body["request"] for body in self.asked]

    @property
    def phases(self) -> list[str]:
        return [body["connections"]["phase"] for body in self.asked if body["request"] == "trial"]


class Bench:
    """One campaign, one engine, one gateway; every trial is of one procedure."""

    def __init__(
        self,
        campaign: Campaign,
        device: SimulatedDevice,
        procedure: str,
        *,
        instead: SimulatedGateway | None = None,
        **more: Any,
    ) -> None:
        self.engine = Asked(device, instead)
        self.gateway = self.engine.gateway
        self.events: list[Event] = []
        self.run = Run(number=1, procedure=procedure, cell=cells_of(campaign)[0])
        self.trials = EngineTrials(
            campaign=campaign, engine=self.engine, can=self.gateway.can, on_event=self.events.append
        )
        self.stateful = StatefulTrials(self.trials, empty_wait_s=0.0, **more)

    def make(self, step: Measure, *, rate: int | None = None, number: int = 1) -> TrialRecord:
        order = TrialOrder(
            run=self.run, trial_number=number, repetition=0, attempt=0, step=step, connections_per_second=rate
        )
        rules = Rules.of(self.trials.campaign.validity, Fraction(0))
        trial = self.stateful.make(order, rules, Demands(needs_link=False))
        validity, verdict = judged(trial, rules)
        facts = {field.name: getattr(trial, field.name) for field in fields(trial)}
        return TrialRecord(validity=validity, verdict=verdict, started_at="", seconds=0.0, **facts)

    def frames(self, *, rate: int = 10_000, load: int = 1000, number: int = 1) -> TrialRecord:
        return self.make(measure(load, purpose="load"), rate=rate, number=number)

    def establish(self, rate: int, *, count: int = 1000, alpha: Fraction | None = None, number: int = 1) -> TrialRecord:
        step = measure(rate, count=count, alpha=alpha)
        measures_capacity = self.run.procedure == "connection_tracking_table_capacity"
        return self.make(replace(step, may_collapse=measures_capacity), number=number)

    def started(self) -> list[tuple[str, int | None]]:
        return [(event.phase, event.per_second) for event in self.events if isinstance(event, PhaseStarted)]


def measure(
    load: int,
    *,
    purpose: Purpose = "search",
    count: int | None = None,
    alpha: Fraction | None = None,
    tears_down: bool = False,
) -> Measure:
    duration_ns = 10**9 if count is None else sending_ns(count, load)
    return Measure(
        frames_per_second=load,
        duration_ns=duration_ns,
        purpose=purpose,
        connections=count,
        alpha=alpha,
        tears_down=tears_down,
    )


def reasons(record: TrialRecord) -> str:
    return "; ".join((*record.validity.reasons, *(record.verdict.reasons if record.verdict else ())))


@pytest.fixture
def bench(nat_campaign: NatCampaign) -> Callable[..., Bench]:
    def make(device: SimulatedDevice = FAST, procedure: str = "frame_loss", **more: Any) -> Bench:
        tables = {key: more.pop(key) for key in ("gateway", "connections") if key in more}
        return Bench(nat_campaign(**tables, **TABLES.get(procedure, {})), device, procedure, **more)

    return make


MakeBench = Callable[..., Bench]


class TestFrames:
    def test_the_table_is_filled_then_used(self, bench: MakeBench) -> None:
        lab = bench()
        record = lab.frames()
        assert lab.engine.phases == ["establish", "use"]
        assert lab.started() == [("phase 1", 10_000), ("phase 2", 1000)]
        assert record.validity.valid
        assert record.verdict is not None
        assert record.verdict.passed
        facts = record.connections
        assert facts is not None
        assert facts.counted_before == 0
        assert (facts.counted_after_phase_one, facts.counted_after_phase_two) == (1000, 1000)
        (attempt,) = facts.phase_one
        assert attempt.connections_per_second == 10_000
        assert attempt.report.connections is not None
        assert attempt.report.connections.established == 1000
        assert record.report.directions[0].intended == 1000
        assert lab.gateway.cleared == 1

    def test_every_trial_of_the_engine_has_its_own_number(self, bench: MakeBench) -> None:
        lab = bench()
        lab.frames(number=3)
        lab.frames(number=4)
        assert [body["trial_number"] for body in lab.engine.asked] == [48, 49, 64, 65]

    def test_phase_1_is_repeated_at_half_the_rate(self, bench: MakeBench) -> None:
        lab = bench(SimulatedDevice(capacity_forward=10**6, establishment_rate=3000))
        record = lab.frames(rate=10_000)
        assert lab.started() == [("phase 1", 10_000), ("phase 1", 5000), ("phase 1", 2500), ("phase 2", 1000)]
        assert record.verdict is not None
        assert record.verdict.passed
        assert record.connections is not None
        assert [attempt.verdict.passed for attempt in record.connections.phase_one if attempt.verdict] == [
            False,
            False,
            True,
        ]
        assert lab.gateway.cleared == 3

    def test_phase_2_is_never_started_over_a_table_that_is_not_full(self, bench: MakeBench) -> None:
        lab = bench(SimulatedDevice(capacity_forward=10**6, drops_every_nth_connection=2), connections={"retries": 2})
        record = lab.frames()
        assert lab.engine.phases == ["establish"] * 3
        assert record.verdict is None
        assert not record.validity.valid
        assert "phase 1: forward foreground: 500 of 1000 frames were lost" in reasons(record)
        assert "phase 1: 500 of 1000 connections were not established" in reasons(record)
        assert "phase 1: the gateway holds 500 of 1000 connections" in reasons(record)
        assert record.connections is not None
        assert record.report == record.connections.phase_one[-1].report
        assert record.connections.behaviour is None

    def test_a_gateway_that_forwards_untranslated_is_named(self, bench: MakeBench) -> None:
        device = SimulatedDevice(capacity_forward=10**6, table_size=0, overflow="untranslated")
        record = bench(device, connections={"retries": 0}).frames()
        assert "1000 of 1000 frames were faulty (untranslated_source 1000)" in reasons(record)
        assert record.verdict is None

    def test_connections_that_the_gateway_does_not_count_are_not_there(self, bench: MakeBench) -> None:
        device = SimulatedDevice(capacity_forward=10**6, table_size=600, overflow="evict")
        record = bench(device, connections={"retries": 0}).frames()
        assert reasons(record) == "phase 1: the gateway holds 600 of 1000 connections"

    def test_a_gateway_that_cannot_count_is_believed_as_far_as_frames_go(self, bench: MakeBench) -> None:
        lab = bench(SimulatedDevice(capacity_forward=10**6, counts_connections=False))
        record = lab.frames()
        assert record.verdict is not None
        assert record.verdict.passed
        facts = record.connections
        assert facts is not None
        assert (facts.counted_before, facts.counted_after_phase_one, facts.counted_after_phase_two) == (None,) * 3

    def test_the_tester_at_its_limit_in_phase_1_is_no_fault_of_the_gateway(self, bench: MakeBench) -> None:
        record = bench(SimulatedDevice(capacity_forward=10**6, tester_limit=1)).frames()
        assert record.verdict is None
        assert record.connections is not None
        assert all(attempt.verdict is None for attempt in record.connections.phase_one)
        assert "phase 1: forward: sending took" in reasons(record)

    def test_the_behaviour_of_the_gateway_is_asked_for_once_a_run(self, bench: MakeBench) -> None:
        lab = bench()
        facts = [lab.frames(number=number).connections for number in (1, 2)]
        assert facts[0] is not None
        assert facts[1] is not None
        assert facts[0].behaviour is not None
        assert facts[0].behaviour["port_preserved"] == 1000
        assert not {"answer", "id"} & facts[0].behaviour.keys()
        assert facts[1].behaviour is None

    def test_phase_2_is_judged_with_the_campaigns_tolerance_and_phase_1_with_none(
        self, nat_campaign: NatCampaign
    ) -> None:
        campaign = nat_campaign()
        engine = Asked(SimulatedDevice(capacity_forward=900))
        maker = TrialMaker(campaign=campaign, engine=engine, can=engine.gateway.can, on_event=lambda _: None)
        order = TrialOrder(
            run=Run(number=1, procedure="throughput", cell=cells_of(campaign)[0]),
            trial_number=1,
            repetition=0,
            attempt=0,
            step=measure(1000, purpose="load"),
            connections_per_second=500,
        )
        record = maker.make(
            order, loss_tolerance=Fraction(1, 5), bounds=bounds_of(()), demands=Demands(needs_link=False)
        )
        assert record.verdict is not None
        assert record.verdict.passed
        worst = record.report.worst()
        assert worst is not None and worst.lost == 100
        assert TrialRecord.model_validate_json(record.model_dump_json()) == record


class TestRefused:
    def test_a_table_that_is_not_empty_after_it_was_cleared(self, bench: MakeBench) -> None:
        lab = bench(SimulatedDevice(capacity_forward=10**6, leftover_connections=7))
        with pytest.raises(TestBedError, match="still holds 7 connections"):
            lab.frames()
        assert lab.engine.phases == []

    def test_connections_that_would_expire(self, bench: MakeBench) -> None:
        lab = bench(gateway={"table": {"udp_timeout": "30s"}})
        with pytest.raises(ConfigError, match="udp_timeout") as caught:
            lab.frames(rate=10)
        assert "after 30s without frames, but 1000 of them at 10 connections/s" in str(caught.value)
        assert lab.engine.phases == []

    def test_an_attempt_that_would_take_too_long_is_not_made(self, bench: MakeBench) -> None:
        device = SimulatedDevice(capacity_forward=10**6, drops_every_nth_connection=2)
        lab = bench(device, gateway={"table": {"udp_timeout": "30s"}})
        lab.frames(rate=100)  # 10 s, then 20 s, then 40 s
        assert lab.started() == [("phase 1", 100), ("phase 1", 50)]

    def test_more_connections_than_the_tester_has_memory_for(self, bench: MakeBench) -> None:
        lab = bench(procedure="connection_establishment_rate", available_bytes=lambda: 10 << 20)
        lab.establish(10_000, count=1_000_000)
        lab.establish(10_000, count=2_000_000)  # memory for a million is there already
        with pytest.raises(ConfigError, match="33 MiB of memory for 4194304 connections, 26 MiB are available"):
            lab.establish(10_000, count=1 << 22)
        assert lab.engine.phases == ["establish"] * 2


class TestEstablishment:
    def test_all_connections_must_arrive(self, bench: MakeBench) -> None:
        lab = bench(SimulatedDevice(capacity_forward=10**6, establishment_rate=5000), "connection_establishment_rate")
        good, bad = lab.establish(5000), lab.establish(5001)
        assert good.verdict is not None
        assert bad.verdict is not None
        assert (good.verdict.passed, bad.verdict.passed) == (True, False)
        assert lab.engine.phases == ["establish"] * 2
        assert good.connections is not None
        assert good.connections.phase_one == ()
        assert good.report.directions[0].intended == 1000

    def test_the_gateways_own_count_decides_as_well(self, bench: MakeBench) -> None:
        device = SimulatedDevice(capacity_forward=10**6, table_size=999, overflow="evict")
        record = bench(device, "connection_establishment_rate").establish(5000)
        assert record.verdict is not None
        assert record.verdict.reasons == ("the gateway holds 999 of 1000 connections",)

    def test_validation_asks_for_every_connection_at_its_share_of_the_rate(self, bench: MakeBench) -> None:
        lab = bench(procedure="validated_connection_establishment_rate")
        record = lab.establish(5000, alpha=Fraction(1, 2))
        assert lab.started() == [("phase 1", 5000), ("validation", 2500)]
        _, validation = lab.engine.asked
        assert validation["connections"]["read_order"] == "increasing"
        assert [direction["direction"] for direction in validation["directions"]] == ["reverse"]
        assert record.verdict is not None
        assert record.verdict.passed
        assert record.connections is not None
        assert len(record.connections.phase_one) == 1
        assert record.report.directions[0].direction == "reverse"
        assert record.report.directions[0].intended == 1000
        assert record.report != record.connections.phase_one[0].report

    def test_evicted_connections_are_found_by_the_validation(self, bench: MakeBench) -> None:
        device = SimulatedDevice(capacity_forward=10**6, table_size=900, overflow="evict", counts_connections=False)
        record = bench(device, "validated_connection_establishment_rate").establish(5000, alpha=Fraction(1))
        assert record.verdict is not None
        assert record.verdict.reasons == ("validation: reverse foreground: 100 of 1000 frames were lost",)
        assert sum(record.report.directions[0].foreground.loss.by_slice[:10]) == 100  # the oldest

    def test_nothing_is_validated_that_was_not_established(self, bench: MakeBench) -> None:
        device = SimulatedDevice(capacity_forward=10**6, establishment_rate=4000)
        lab = bench(device, "validated_connection_establishment_rate")
        record = lab.establish(5000, alpha=Fraction(1))
        assert lab.engine.phases == ["establish"]
        assert record.verdict is not None
        assert not record.verdict.passed
        assert record.connections is not None
        assert record.report == record.connections.phase_one[0].report

    def test_replies_that_are_too_fast_fail_the_validation(self, bench: MakeBench) -> None:
        device = SimulatedDevice(capacity_forward=10**6, capacity_reverse=3000)
        lab = bench(device, "validated_connection_establishment_rate")
        outcomes = [lab.establish(5000, alpha=alpha).verdict for alpha in (Fraction(1), Fraction(1, 2))]
        assert [verdict.passed for verdict in outcomes if verdict is not None] == [False, True]

    def test_a_validation_that_the_tester_spoils_is_invalid(self, bench: MakeBench) -> None:
        device = SimulatedDevice(capacity_forward=10**6, tester_limit=5000)
        lab = bench(device, "validated_connection_establishment_rate")
        record = lab.establish(6000, alpha=Fraction(1))
        assert record.verdict is None
        assert lab.engine.phases == ["establish"]


class TestTearDown:
    def test_full_and_empty_tables_are_timed(self, bench: MakeBench) -> None:
        device = SimulatedDevice(capacity_forward=10**6, tear_down_empty_ns=5000, tear_down_connection_ns=3)
        lab = bench(device, "connection_tear_down_rate")
        full = lab.make(measure(10_000, purpose="event", tears_down=True, count=1000), rate=10_000)
        empty = lab.make(
            Measure(frames_per_second=10_000, duration_ns=0, purpose="event", tears_down=True, connections=0),
            rate=10_000,
        )
        assert lab.started() == [("phase 1", 10_000), ("tear-down", None), ("tear-down", None)]
        for record, took_ns in ((full, 8000), (empty, 5000)):
            assert record.validity.valid
            assert record.verdict is not None
            assert record.verdict.passed
            assert record.connections is not None
            assert record.connections.tear_down_ns == took_ns
        assert empty.report.directions == ()
        assert full.connections is not None
        assert full.report == full.connections.phase_one[-1].report

    def test_a_table_that_is_not_empty_afterwards_fails(self, bench: MakeBench) -> None:
        class Stubborn(SimulatedGateway):
            def tear_down(self) -> int:
                return 1

        lab = bench(procedure="connection_tear_down_rate", instead=Stubborn(FAST))
        record = lab.make(measure(10_000, purpose="event", tears_down=True, count=1000), rate=10_000)
        assert record.verdict is not None
        assert record.verdict.reasons == ("the gateway still holds 1000 connections after the tear-down",)

    @pytest.mark.parametrize("count", [1000, 0])
    def test_a_time_that_cannot_be_is_no_time(self, bench: MakeBench, count: int) -> None:
        class Set(SimulatedGateway):
            def tear_down(self) -> int:
                super().tear_down()
                raise ImpossibleTimeError(what="the clock was set", where="gateway", fix="")

        lab = bench(procedure="connection_tear_down_rate", instead=Set(FAST))
        duration_ns = 0 if count == 0 else measure(10_000, purpose="event", tears_down=True, count=count).duration_ns
        step = Measure(
            frames_per_second=10_000, duration_ns=duration_ns, purpose="event", tears_down=True, connections=count
        )
        record = lab.make(step, rate=10_000)
        assert record.verdict is None
        assert any("the clock was set" in reason for reason in record.validity.reasons)
        assert record.connections is not None and record.connections.tear_down_ns is None

    def test_an_unfilled_table_is_not_timed(self, bench: MakeBench) -> None:
        device = SimulatedDevice(capacity_forward=10**6, drops_every_nth_connection=2)
        lab = bench(device, "connection_tear_down_rate", connections={"retries": 1})
        record = lab.make(measure(10_000, purpose="event", tears_down=True, count=1000), rate=10_000)
        assert record.verdict is None
        assert record.connections is not None
        assert record.connections.tear_down_ns is None
        assert len(record.connections.phase_one) == 2


class TestCollapse:
    DEVICE = SimulatedDevice(capacity_forward=10**6, collapses_beyond=1500)

    def test_a_gateway_that_collapses_is_started_anew_while_the_capacity_is_measured(self, bench: MakeBench) -> None:
        lab = bench(self.DEVICE, "connection_tracking_table_capacity")
        record = lab.establish(5000, count=2000, alpha=Fraction(1))
        assert lab.gateway.restarts == 1
        assert record.validity.valid
        assert record.verdict is not None
        assert record.verdict.reasons == ("the gateway collapsed with 2000 connections: the gateway does not answer",)
        assert record.connections is not None
        assert record.connections.collapse == "the gateway does not answer"
        assert lab.engine.requests == ["trial", "resolve", "resolve"]  # its addresses may be new
        again = lab.establish(5000, count=1000, alpha=Fraction(1), number=2)
        assert again.verdict is not None
        assert again.verdict.passed

    @pytest.mark.parametrize("count", [1, 2])
    def test_one_that_collapses_while_it_counts_is_read_again(self, bench: MakeBench, count: int) -> None:
        class Fragile(SimulatedGateway):
            """Stops working when it is to count its connections for the n-th time after a phase."""

            asked = 0

            def count_connections(self) -> int | None:
                if self.held:
                    self.asked += 1
                    self.check()
                return super().count_connections()

            def check(self) -> None:
                if self.asked == count:
                    raise TestBedError(what="the gateway does not answer", where="", fix="")

        device = SimulatedDevice(capacity_forward=10**6)
        lab = bench(device, "connection_tracking_table_capacity", instead=Fragile(device))
        record = lab.establish(5000, alpha=Fraction(1))
        assert lab.engine.phases == ["establish", "use"][:count]
        assert record.connections is not None
        assert record.connections.collapse == "the gateway does not answer"
        assert not list(kind_of(record.order).mismatches(lab.trials.campaign, record))

    def test_elsewhere_it_is_an_error(self, bench: MakeBench) -> None:
        lab = bench(self.DEVICE, "connection_establishment_rate")
        with pytest.raises(TestBedError, match="does not answer"):
            lab.establish(5000, count=2000)
        assert lab.gateway.restarts == 0

    @pytest.mark.parametrize("comes_back", [False, True])
    def test_a_connection_to_its_host_that_is_lost_is_no_collapse(self, bench: MakeBench, comes_back: bool) -> None:
        class Unreachable(SimulatedGateway):
            """Nobody can be asked how many connections it holds; perhaps somebody can be asked for its health."""

            def lost(self) -> HostConnectionError:
                return HostConnectionError(what="lost", where="gateway.control: count_connections", fix="", began=True)

            def count_connections(self) -> int | None:
                if self.held:
                    raise self.lost()
                return super().count_connections()

            def check(self) -> None:
                if self.held and not comes_back:
                    raise self.lost()

        device = SimulatedDevice(capacity_forward=10**6)
        lab = bench(device, "connection_tracking_table_capacity", instead=Unreachable(device))
        with pytest.raises(HostConnectionError, match="lost"):
            lab.establish(5000, alpha=Fraction(1))
        assert lab.gateway.restarts == 0

    def test_a_gateway_that_is_alive_did_not_collapse(self, bench: MakeBench) -> None:
        device = SimulatedDevice(capacity_forward=10**6, leftover_connections=3)
        lab = bench(device, "connection_tracking_table_capacity")
        with pytest.raises(TestBedError, match="still holds 3"):
            lab.establish(5000, alpha=Fraction(1))
        assert lab.gateway.restarts == 0
