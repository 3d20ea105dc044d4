"""Connections drawn at random: vectors, what a trial passes by, and a rate that is never one of connections."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.journals import read_journal
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.unit import simulated_campaigns
from tests.unit.simulated_campaigns import measure

from gatemark.calibrate.truth import drawn_connections
from gatemark.campaign.deviations import deviations
from gatemark.campaign.estimate import estimate
from gatemark.campaign.events import Event, PhaseStarted
from gatemark.campaign.facts import TrialTally, run_facts
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.progress import phase_words
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.procedures.assumed import ASSUMED_CONNECTIONS_PER_SECOND
from gatemark.procedures.repeated_four_tuples.result import RepeatedFourTuplesResult
from gatemark.results.part import Figure
from gatemark.results.search import SearchGoal
from gatemark.trial.judgement import verdict_of_phase_one
from gatemark.trial.report import EstablishedConnections

COUNT, FRAMES = 20_000, 60_000


def campaign(**tables: Any) -> Campaign:
    document: dict[str, Any] = {
        **simulated_campaigns.nat44(table={"udp_timeout": "300s"}),
        "repetitions": 2,
        "trial": {"duration": "2s"},
        "connections": {"count": COUNT},
        "repeated_four_tuples": {"frames": FRAMES, "maximum": "200k", "resolution": "1k"},
        **tables,
    }
    loaded = complete_campaign(campaign_from_dict(document))
    return loaded


def run(path: Path, wanted: Campaign, device: SimulatedDevice) -> tuple[Any, ...]:
    engine = SimulatedEngine(device)
    with Journal(path) as journal:
        return run_campaign(wanted, plan_of(wanted), engine, journal, can=engine.gateway.can)


def result(count: int, frames: int) -> RepeatedFourTuplesResult:
    wanted = campaign(connections={"count": count}, repeated_four_tuples={"frames": frames})
    goal = SearchGoal(
        search="binary", maximum=1, minimum=1, loss_tolerance=Fraction(0), search_duration_ns=None, duration_ns=None
    )
    empty = Figure.of([])
    return RepeatedFourTuplesResult(
        **run_facts(wanted, plan_of(wanted).runs[0], TrialTally()),
        limited_by="gateway",
        goal=goal,
        repetitions=(),
        drawn_frames=frames,
        established=empty,
        counted=empty,
    )


@pytest.mark.parametrize(
    ("count", "frames", "expected", "percent"),
    [(4_000_000, 4_000_000, 2_528_482, 36.79), (4_000_000, 40_000_000, 3_999_818, 0.0045), (1, 1, 1, 0), (2, 2, 2, 25)],
)
def test_expected_connections_and_the_ratio_at_the_end(count: int, frames: int, expected: int, percent: float) -> None:
    answer = result(count, frames)
    assert answer.expected_established is not None
    assert answer.final_new_ratio is not None
    assert round(answer.expected_established) == expected
    assert round(100 * answer.final_new_ratio, 2 if percent > 0.01 else 4) == percent


def test_the_truth_of_the_calibration_agrees() -> None:
    mean, deviation = drawn_connections(4_000_000, 4_000_000)
    assert round(mean) == 2_528_482
    assert 620 < deviation < 628  # sqrt(K e^-1 (1 - 2 e^-1))
    # Every outcome of two draws from three: one connection in 3 of 9, two in the others.
    mean, deviation = drawn_connections(3, 2)
    assert (round(mean, 9), round(deviation**2, 9)) == (round(5 / 3, 9), round(2 / 9, 9))


class TestCampaign:
    def test_frames_are_drawn_and_connections_counted(self, tmp_path: Path) -> None:
        path = tmp_path / "trials.jsonl"
        device = SimulatedDevice(capacity_forward=10**6, establishment_rate=80_000)
        (result,) = run(path, campaign(), device)
        assert isinstance(result, RepeatedFourTuplesResult)
        assert result.limited_by == "gateway"
        assert result.rate is not None
        assert 79_000 < result.rate.median <= 80_000
        drawn = round(COUNT * (1 - (1 - 1 / COUNT) ** FRAMES))
        assert result.established.values == result.counted.values == (drawn, drawn)
        assert result.connections is not None
        counts = result.connections.gateway_counts
        assert counts is not None
        assert counts.phase_one_equal == counts.phase_one > 0
        assert counts.phase_one_minimum == counts.phase_one_maximum == drawn
        for record in read_journal(path):
            step = record.order.step
            assert (step.connections, step.drawn_frames) == (COUNT, FRAMES)
            assert step.duration_ns == -(-FRAMES * 10**9 // step.frames_per_second)
            assert record.report.directions[0].foreground.intended == FRAMES

    def test_the_estimate_is_of_the_frames_that_are_sent(self, tmp_path: Path) -> None:
        """All trials of a gateway as fast as the estimate assumes take as long as it says."""
        wanted = campaign(repeated_four_tuples={"frames": 50 * FRAMES, "maximum": "200k", "resolution": "1k"})
        path = tmp_path / "trials.jsonl"
        device = SimulatedDevice(capacity_forward=10**6, establishment_rate=ASSUMED_CONNECTIONS_PER_SECOND)
        events: list[Event] = []
        measure(path, device, wanted, events=events)
        orders = [record.order for record in read_journal(path)]
        sent_s = sum(order.step.duration_ns for order in orders) / 10**9
        assert sent_s > 50 * FRAMES / 200_000
        needed = estimate(wanted)
        trial = wanted.trial
        waits_s = len(orders) * (trial.settle_ns + trial.learn_ns + wanted.connections_model.timeout_ns) / 10**9
        assert needed.trials_max == len(orders)
        assert needed.seconds_max == math.ceil(sent_s + waits_s)
        words = [phase_words(event) for event in events if isinstance(event, PhaseStarted)]
        assert words[0] == f"phase 1, {50 * FRAMES:,} frames drawn from {COUNT:,} connections at 200.0k frames/s"

    def test_it_is_called_no_rate_of_connections(self, tmp_path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, establishment_rate=80_000)
        (result,) = run(tmp_path / "trials.jsonl", campaign(), device)
        names = {(quantity.name, quantity.unit) for quantity in result.quantities()}
        assert ("frame rate with repeated four-tuples", "frames/s") in names
        assert not any("establishment" in name or unit == "connections/s" for name, unit in names)

    def test_others_take_no_share_of_it(self, tmp_path: Path) -> None:
        wanted = campaign(
            traffic={"direction": "forward", "frame_sizes": {"family": "ipv4", "octets": [64]}},
            connections={"count": COUNT, "rate": "10k"},
            frame_loss={"step": "50%"},
        )
        device = SimulatedDevice(capacity_forward=10**6, establishment_rate=80_000)
        with pytest.raises(ConfigError, match=r"frame_loss\.maximum"):
            run(tmp_path / "trials.jsonl", wanted, device)


def order_of(path: Path) -> Any:
    return next(iter(read_journal(path)))


def test_a_gateway_that_forgets_a_connection_fails(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    run(path, campaign(), SimulatedDevice(capacity_forward=10**6, establishment_rate=10**6))
    record = order_of(path)
    held = record.report.connections.established
    assert verdict_of_phase_one(record.order, record.report, held).passed
    assert verdict_of_phase_one(record.order, record.report, None).passed
    assert not verdict_of_phase_one(record.order, record.report, held - 1).passed
    once = replace(record.order, step=replace(record.order.step, drawn_frames=None))
    assert not verdict_of_phase_one(once, record.report, None).passed  # each once: 995 of 20,000 are missing
    assert record.report.connections == EstablishedConnections(phase="establish", count=COUNT, established=held)


def test_it_is_told_as_a_deviation() -> None:
    told = [deviation.sentence for deviation in deviations(campaign())]
    assert any("not a connection establishment rate" in sentence for sentence in told)


def test_connections_must_live_until_the_last_frame() -> None:
    with pytest.raises(ConfigError, match="60000000 frames at the highest rate"):
        campaign(repeated_four_tuples={"frames": "60M", "maximum": "100k"})
