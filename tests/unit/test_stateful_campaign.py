"""Whole campaigns through simulated stateful gateways: what is measured, in which order, refused and resumed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.journals import read_journal
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.simulated.state import Establishment, Gaps, SimulatedGateway
from tests.unit import simulated_campaigns

from gatemark.campaign import runner
from gatemark.campaign.deviations import deviations
from gatemark.campaign.events import Event, RunStarted, TrialFinished
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal, line_of
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign, run_single_trial
from gatemark.campaign.trials import LOST_CONNECTIONS_RETRIES
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError, ResultError, TestBedError
from gatemark.procedures.connection_tracking_table_capacity.result import CapacityResult

RATES: dict[str, Any] = {"maximum": "200k", "minimum": "1k", "resolution": "1k"}


def campaign(*, udp_timeout: str = "300s", **tables: Any) -> Campaign:
    document: dict[str, Any] = {
        **simulated_campaigns.nat44(table={"udp_timeout": udp_timeout}),
        "repetitions": 2,
        "trial": {"duration": "2s"},
        "validity": {"retries": 1},
        "connections": {"count": 20_000},
        **tables,
    }
    loaded = complete_campaign(campaign_from_dict(document))
    return loaded


def run(
    path: Path, wanted: Campaign, device: SimulatedDevice, *, events: list[Event] | None = None
) -> tuple[tuple[Any, ...], SimulatedEngine]:
    engine = SimulatedEngine(device)
    with Journal(path) as journal:
        results = run_campaign(
            wanted,
            plan_of(wanted),
            engine,
            journal,
            on_event=runner.ignore if events is None else events.append,
            can=engine.gateway.can,
        )
    return results, engine


class Forgetful(SimulatedGateway):
    """A gateway whose table has no end, and whose connections last 10 seconds, which it tells nobody."""

    _lasted = 0.0

    def establish(
        self, count: int, arriving: int, connections_per_second: int, spread: float, *, drawn_from: int | None = None
    ) -> Establishment:
        self._lasted = count / connections_per_second
        return super().establish(count, arriving, connections_per_second, spread, drawn_from=drawn_from)

    def reply(self, offered: int, forwarded: int, *, in_order: bool) -> Gaps:
        if self._lasted > 10:
            return Gaps(total=offered, tail=offered)
        return super().reply(offered, forwarded, in_order=in_order)


def gateway(**facts: Any) -> SimulatedDevice:
    return SimulatedDevice(**{"capacity_forward": 10**6, "establishment_rate": 80_000, **facts})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trials.jsonl"


class TestEstablishment:
    def test_the_rate_is_found_within_the_resolution(self, path: Path) -> None:
        (result,), _ = run(path, campaign(connection_establishment_rate=RATES), gateway())
        assert result.limited_by == "gateway"
        assert result.connections_per_second is not None
        assert 79_000 < result.connections_per_second.median <= 80_000
        assert result.direction == "forward"
        assert result.alpha is None
        for record in read_journal(path):
            step = record.order.step
            assert step.duration_ns == -(-20_000 * 10**9 // step.frames_per_second)
            assert record.connections is not None
            assert record.order.connections == 20_000

    def test_a_tester_at_its_limit_is_never_the_gateways_result(self, path: Path) -> None:
        (result,), _ = run(path, campaign(connection_establishment_rate=RATES), gateway(tester_limit=50_000))
        assert result.limited_by == "tester"
        assert result.connections_per_second is None
        assert result.lower_bound is not None
        assert all(49_000 < bound <= 50_000 for bound in (result.lower_bound, *result.lower_bounds))

    def test_a_gateway_that_drops_every_second_connection_has_no_rate(self, path: Path) -> None:
        wanted = campaign(connection_establishment_rate=RATES)
        (result,), _ = run(path, wanted, gateway(drops_every_nth_connection=2))
        assert [repetition.kind for repetition in result.repetitions] == ["nothing_passes"] * 2

    def test_a_tolerance_lets_connections_be_lost_and_the_result_says_so(self, path: Path) -> None:
        wanted = campaign(connection_establishment_rate={**RATES, "loss_tolerance": "20%"})
        (result,), _ = run(path, wanted, gateway())
        truth = 100_000  # of which 80 % are established
        assert all(truth - 1000 < bound <= truth for bound in result.lower_bounds)
        (rate,) = result.quantities()
        assert rate.name == "connection establishment rate with loss tolerated"
        assert rate.coordinates["loss_tolerance"] == "1/5"
        assert any(
            "not a maximum" in deviation.sentence for deviation in deviations(wanted) if deviation.rules_out_claim
        )

    def test_a_tolerance_holds_for_what_the_gateway_counts_as_well(self, path: Path) -> None:
        wanted = campaign(connection_establishment_rate={**RATES, "loss_tolerance": "10%"})
        (result,), _ = run(path, wanted, gateway(drops_every_nth_connection=5))
        assert [repetition.kind for repetition in result.repetitions] == ["nothing_passes"] * 2

    def test_each_alpha_of_a_list_is_measured(self, path: Path) -> None:
        table = {**RATES, "validated": [False, True], "alpha": ["100%", "50%"]}
        results, _ = run(path, campaign(connection_establishment_rate=table), gateway(capacity_reverse=30_000))
        assert [(result.is_validated, result.alpha) for result in results] == [
            (False, None),
            (True, Fraction(1)),
            (True, Fraction(1, 2)),
        ]
        for result, truth in zip(results, (80_000, 30_000, 60_000), strict=True):
            assert truth - 1000 <= result.lower_bound <= truth
        alphas = {record.order.run.number: record.order.step.alpha for record in read_journal(path)}
        assert alphas == {1: None, 2: Fraction(1), 3: Fraction(1, 2)}

    def test_phase_1_takes_its_rate_from_the_lowest_of_several_validated_rates(self, path: Path) -> None:
        tables: dict[str, Any] = {
            "connection_establishment_rate": {**RATES, "validated": True, "alpha": ["50%", "100%"]},
            "frame_loss": {"rates": ["1k"]},
        }
        results, _ = run(path, campaign(**tables), gateway(capacity_reverse=30_000))
        lowest = min(result.lower_bound for result in results[:2])
        assert lowest < 30_001
        assert results[2].connections.phase_one.connections_per_second_maximum == lowest // 2

    def test_the_validated_rate_with_a_share_that_does_not_matter(self, path: Path) -> None:
        table = {**RATES, "validated": [True, False], "alpha": "search"}
        results, _ = run(path, campaign(connection_establishment_rate=table), gateway(capacity_reverse=50_000))
        plain, validated = results
        assert plain.procedure == "connection_establishment_rate"
        assert [tried.alpha for tried in validated.alphas_tried] == [Fraction(1), Fraction(4, 5), Fraction(1, 2)]
        for tried, truth in zip(validated.alphas_tried, (50_000, 62_500, 80_000), strict=True):
            assert tried.lower_bound is not None
            assert truth - 1000 <= tried.lower_bound <= truth
        assert validated.alpha == Fraction(1, 2)
        assert min(validated.lower_bounds) >= min(plain.lower_bounds) - 1000
        records = [record for record in read_journal(path) if record.order.run.number == 2]
        assert {record.order.step.alpha for record in records if record.order.repetition == 1} == {Fraction(1, 2)}

    def test_each_share_has_bounds_of_its_own(self, path: Path) -> None:
        table = {**RATES, "validated": [False, True], "alpha": "search"}
        events: list[Event] = []
        run(path, campaign(connection_establishment_rate=table), gateway(capacity_reverse=50_000), events=events)
        finished = [
            event for event in events if isinstance(event, TrialFinished) and event.record.order.run.number == 2
        ]
        first_of_second_alpha = next(event for event in finished if event.record.order.step.alpha == Fraction(4, 5))
        assert (first_of_second_alpha.bounds.lower, first_of_second_alpha.bounds.upper) == (None, 200_000)


class TestPhaseTwo:
    TABLES: dict[str, Any] = {  # noqa: RUF012
        "connection_establishment_rate": RATES,
        "throughput": {"maximum": "1M", "resolution": "10k", "search_duration": "1s"},
        "frame_loss": {"rates": ["100k", "400k"]},
    }

    def test_every_trial_runs_over_a_table_filled_below_the_measured_rate(self, path: Path) -> None:
        events: list[Event] = []
        device = gateway(capacity_forward=300_000)
        (establishment, throughput, loss), _ = run(path, campaign(**self.TABLES), device, events=events)
        assert throughput.rate_per_direction is not None
        assert 290_000 < throughput.rate_per_direction.median <= 300_000
        assert [point.frames_per_second for point in loss.points] == [400_000, 100_000]
        share = min(establishment.lower_bounds) // 2
        for record in read_journal(path):
            if record.order.run.number == establishment.number:
                continue
            assert record.connections is not None
            assert [attempt.connections_per_second for attempt in record.connections.phase_one] == [share]
        started = [event.run.procedure for event in events if isinstance(event, RunStarted)]
        assert started == ["connection_establishment_rate", "throughput", "frame_loss"]

    def test_a_gateway_that_loses_connections_is_an_error_of_the_test_bed(self, path: Path) -> None:
        wanted = campaign(connections={"count": 20_000, "rate": "40k", "retries": 2}, throughput={"maximum": "1M"})
        with pytest.raises(TestBedError, match="test phase 1 failed in every attempt") as caught:
            run(path, wanted, gateway(drops_every_nth_connection=100))
        message = str(caught.value)
        assert "connections.rate" in message
        assert "10000 connections/s" in message
        records = read_journal(path)
        assert [record.validity.valid for record in records] == [False, False]
        with pytest.raises(TestBedError, match="test phase 1 failed"):  # the same again, from the journal
            run(path, wanted, gateway())

    @pytest.mark.parametrize(("retries", "trials"), [(0, 1), (2, 3), (20, 1 + LOST_CONNECTIONS_RETRIES)])
    def test_a_gateway_that_loses_connections_is_not_tried_again_and_again(
        self, path: Path, retries: int, trials: int
    ) -> None:
        connections = {"count": 2_000, "rate": "40k", "retries": 0}
        wanted = campaign(connections=connections, throughput={"maximum": "1M"}, validity={"retries": retries})
        with pytest.raises(TestBedError, match="test phase 1 failed in every attempt"):
            run(path, wanted, gateway(drops_every_nth_connection=100))
        assert len(read_journal(path)) == trials

    def test_a_tester_that_cannot_fill_the_table_is_its_own_limit(self, path: Path) -> None:
        wanted = campaign(connections={"count": 20_000, "rate": "40k"}, throughput={"maximum": "1M", "minimum": "500k"})
        (result,), _ = run(path, wanted, gateway(tester_limit=1000))
        assert result.limited_by == "tester"

    def test_a_rate_above_the_measured_one_is_refused_before_the_run(self, path: Path) -> None:
        wanted = campaign(**{**self.TABLES, "connections": {"count": 20_000, "rate": "100k"}})
        with pytest.raises(ConfigError, match="above the measured maximum"):
            run(path, wanted, gateway())
        assert {record.order.run.number for record in read_journal(path)} == {1}

    def test_a_single_trial_takes_its_rate_from_the_file_or_from_its_caller(self) -> None:
        given = campaign(connections={"count": 20_000, "rate": "40k"}, throughput={})
        shared = campaign(**self.TABLES)
        for wanted, rate, expected in ((given, None, 40_000), (given, 5000, 5000), (shared, 6000, 6000)):
            engine = SimulatedEngine(gateway())
            record = run_single_trial(
                wanted,
                plan_of(given).runs[0].cell,
                engine,
                frames_per_second=1000,
                duration_ns=10**9,
                connections_per_second=rate,
                can=engine.gateway.can,
            )
            assert record.connections is not None
            assert record.connections.phase_one[0].connections_per_second == expected
        with pytest.raises(ConfigError, match=r"connections\.rate"):
            run_single_trial(
                shared,
                plan_of(given).runs[0].cell,
                SimulatedEngine(gateway()),
                frames_per_second=1000,
                duration_ns=10**9,
            )


class TestTearDown:
    def test_the_empty_tables_time_is_subtracted(self, path: Path) -> None:
        wanted = campaign(connection_establishment_rate=RATES, connection_tear_down_rate={}, repetitions=3)
        (_, result), engine = run(path, wanted, gateway(tear_down_empty_ns=10**8, tear_down_connection_ns=500))
        assert result.limited_by == "gateway"
        assert result.empty_ns.values == (10**8,) * 3
        assert len(result.full_ns.values) == 3
        assert result.connections_per_second == 2_000_000
        assert engine.gateway.held == 0
        records = [record for record in read_journal(path) if record.order.run.number == 2]
        counts = [record.order.connections for record in records if record.connections is not None]
        assert counts == [20_000, 0] * 3

    def test_a_table_that_is_never_filled_by_the_tester_has_no_rate(self, path: Path) -> None:
        wanted = campaign(connections={"count": 20_000, "rate": "40k"}, connection_tear_down_rate={})
        (result,), _ = run(path, wanted, gateway(tester_limit=1000))
        assert result.limited_by == "tester"
        assert (result.full_ns.values, result.empty_ns.values) == ((), ())
        assert (result.net_ns, result.connections_per_second, result.reliable) == (None, None, False)


class TestCapacity:
    def table(self, **facts: Any) -> dict[str, Any]:
        return {"start": 1000, "maximum": "100k", "maximum_rate": "100k", **facts}

    @pytest.mark.parametrize("truth", [1000, 1001, 4096, 31_999])
    @pytest.mark.parametrize("counts", [True, False], ids=["counted", "not counted"])
    @pytest.mark.parametrize(
        ("overflow", "expected"), [("refuse", "refused"), ("evict", "evicted"), ("untranslated", "untranslated")]
    )
    def test_it_is_found_however_the_table_overflows(
        self, path: Path, truth: int, counts: bool, overflow: Any, expected: str
    ) -> None:
        wanted = campaign(connections={}, connection_tracking_table_capacity=self.table())
        device = gateway(table_size=truth, overflow=overflow, noise=0.1, counts_connections=counts)
        (result,), _ = run(path, wanted, device)
        assert result.limited_by == "gateway"
        assert len(result.repetitions) == 2
        for repetition in result.repetitions:
            assert (repetition.kind, repetition.lower_bound, repetition.upper_bound) == ("found", truth, truth + 1)
            assert repetition.overflow == expected

    def test_the_oldest_connections_are_gone(self, path: Path) -> None:
        wanted = campaign(connections={}, connection_tracking_table_capacity=self.table(resolution=100))
        device = gateway(table_size=5000, overflow="evict", counts_connections=False)
        (result,), _ = run(path, wanted, device)
        assert [repetition.lost_connections for repetition in result.repetitions] == ["oldest"] * 2

    def test_a_gateway_that_collapses_is_started_anew(self, path: Path) -> None:
        wanted = campaign(connections={}, connection_tracking_table_capacity=self.table(resolution=10))
        (result,), engine = run(path, wanted, gateway(collapses_beyond=7777))
        for repetition in result.repetitions:
            assert repetition.lower_bound is not None
            assert 7767 < repetition.lower_bound <= 7777
            assert repetition.overflow == "collapsed"
        assert engine.gateway.restarts > 0

    def test_a_table_larger_than_the_maximum(self, path: Path) -> None:
        wanted = campaign(connections={}, connection_tracking_table_capacity=self.table(maximum=5000))
        (result,), _ = run(path, wanted, gateway())
        assert result.limited_by == "maximum"
        assert {repetition.lower_bound for repetition in result.repetitions} == {5000}
        assert {repetition.overflow for repetition in result.repetitions} == {None}

    @pytest.mark.parametrize("counts", [True, False], ids=["counted", "not counted"])
    def test_a_timeout_that_is_shorter_than_stated_gives_no_capacity(self, path: Path, counts: bool) -> None:
        device = gateway(establishment_rate=5000, counts_connections=counts)
        wanted = campaign(connections={}, connection_tracking_table_capacity=self.table(maximum="1M", resolution=100))
        engine = SimulatedEngine(device, gateway=Forgetful(device))
        with Journal(path) as journal:
            (result,) = run_campaign(wanted, plan_of(wanted), engine, journal, can=engine.gateway.can)
        assert isinstance(result, CapacityResult)
        assert {search.overflow for search in result.repetitions} == {"vanished"}
        (quantity,) = (quantity for quantity in result.quantities() if quantity.is_headline)
        assert (result.capacity, quantity.median, result.limited_by) == (None, None, "gateway")
        assert quantity.refused is not None and "state gateway.table.udp_timeout" in quantity.refused
        assert f"{result.lower_bound:,} connections were stored in every search" in quantity.refused

    def test_connections_that_would_expire_are_no_full_table(self, path: Path) -> None:
        table = self.table(maximum_rate="10k")
        wanted = campaign(udp_timeout="20s", connections={}, connection_tracking_table_capacity=table)
        with pytest.raises(ConfigError, match=r"gateway\.table\.udp_timeout"):
            run(path, wanted, gateway())


class TestReplay:
    TABLES: dict[str, Any] = {  # noqa: RUF012
        "connections": {"count": [10_000, 20_000]},
        "connection_establishment_rate": {**RATES, "validated": [False, True], "alpha": "search"},
        "throughput": {"maximum": "1M", "resolution": "100k"},
        "connection_tear_down_rate": {},
        "connection_tracking_table_capacity": {"maximum": 50_000, "maximum_rate": "100k", "resolution": 100},
        "repetitions": 1,
    }

    def test_nothing_is_measured_twice(self, path: Path) -> None:
        device = gateway(table_size=30_000, noise=0.02, capacity_reverse=60_000, capacity_forward=400_000)
        results, _ = run(path, campaign(**self.TABLES), device)
        again, engine = run(path, campaign(**self.TABLES), device)
        assert again == results
        assert engine.trials_made == 0
        assert path.read_bytes() == b"".join(line_of(record) for record in read_journal(path))

    @pytest.mark.parametrize("changed", [{"count": 30_000}, {"alpha": "50%"}])
    def test_another_number_or_share_is_another_campaign(self, path: Path, changed: dict[str, Any]) -> None:
        def wanted(*, count: int = 20_000, alpha: str = "100%") -> Campaign:
            table = {**RATES, "maximum": "1k", "resolution": 1, "validated": True, "alpha": alpha}
            return campaign(connections={"count": count}, connection_establishment_rate=table)

        run(path, wanted(), gateway())
        records = []
        for record in read_journal(path):
            step = record.order.step
            duration_ns = -(-changed.get("count", 20_000) * 10**9 // step.frames_per_second)
            order = replace(record.order, step=replace(step, duration_ns=duration_ns))
            records.append(record.model_copy(update={"order": order}))
        path.write_bytes(b"".join(line_of(record) for record in records))
        with pytest.raises(ResultError, match="another campaign"):
            run(path, wanted(**changed), gateway())
