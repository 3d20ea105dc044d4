"""Bursty traffic: gaps, refusals, and campaigns on simulated gateways whose buffer is known."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice
from tests.unit import simulated_campaigns

from gatemark.calibrate.truth import smallest_gap
from gatemark.campaign.deviations import deviations
from gatemark.campaign.events import Event, TrialFinished
from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.procedures.bursty_traffic.result import BurstyTrafficResult, gap_ns
from gatemark.procedures.bursty_traffic.run import burst_form, burst_goal

LINE = 10_000
"""Frames/s of 84 octets at 8.32 Mbit/s: a frame has 104 octets on the line."""
LINE_RATE = LINE * 8 * (84 + 20)
SECOND = 10**9


def campaign(*, line: int | None = LINE_RATE, **table: Any) -> Campaign:
    document: dict[str, Any] = {
        "repetitions": 2,
        "gateway": {"technology": "router44"},
        "testbed": {"kind": "loopback"},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [84]}, "direction": "forward"},
        "trial": {"duration": "10s"},
        "bursty_traffic": {"frames": [16, 1024], "resolution": 10, **table},
    }
    loaded = complete_campaign(campaign_from_dict(document if line is None else {**document, "line": {"rate": line}}))
    return loaded


def measure(
    path: Path, device: SimulatedDevice, wanted: Campaign, *, events: list[Event] | None = None
) -> BurstyTrafficResult:
    results = simulated_campaigns.measure(path, device, wanted, events=events)
    return next(result for result in results if isinstance(result, BurstyTrafficResult))


@pytest.mark.parametrize(
    ("frames", "load", "gap"),
    [
        (16, 10_000, Fraction(0)),
        (16, 5000, Fraction(16 * SECOND, 10_000)),  # half the load: the gap is as long as the burst
        (1024, 2500, Fraction(3 * 1024 * SECOND, 10_000)),
        (3, 7000, Fraction(3 * SECOND, 7000) - Fraction(3 * SECOND, 10_000)),
    ],
)
def test_the_gap_that_a_load_leaves(frames: int, load: int, gap: Fraction) -> None:
    assert gap_ns(frames, load, LINE) == gap


def test_a_burst_may_not_leave_later_than_it_lasts() -> None:
    form = burst_form(64, LINE)
    assert form.lateness_max_ns == 64 * SECOND // LINE
    assert form.load_json(1000) == {
        "step": None,
        "bursts": {"frames": 64, "frames_per_second": LINE},
        "flow_start": None,
    }


def test_every_trial_has_two_bursts() -> None:
    goal = burst_goal(campaign(search_duration="2s"), 1024, LINE)
    assert (goal.minimum, goal.maximum) == (513, LINE)
    with pytest.raises(ConfigError, match="no time for two bursts of 1024 frames"):
        burst_goal(campaign(search_duration="100ms"), 1024, LINE)


class TestCampaign:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "trials.jsonl"

    def test_the_gap_is_that_of_the_capacity_where_the_buffer_holds_a_burst(self, path: Path) -> None:
        result = measure(path, SimulatedDevice(capacity_forward=5000, buffer_frames=20), campaign())
        small, large = result.sizes
        # The buffer fills over the whole trial of 10 s: 20 frames are 2 frames/s.
        assert small.gap_ns is not None
        loads = [search.lower_bound for search in small.repetitions]
        assert all(load is not None and 4990 <= load <= 5002 for load in loads)
        assert small.gaps_ns == tuple(pytest.approx(float(gap_ns(16, load or 1, LINE))) for load in loads)
        assert result.limited_by == "gateway"
        # Half of 1024 frames do not fit in a buffer of 20, whatever the gap.
        assert {search.kind for search in large.repetitions} == {"nothing_passes"}
        assert large.gap_ns is None

    def test_no_gap_is_needed_by_a_gateway_that_forwards_the_line_rate(self, path: Path) -> None:
        result = measure(path, SimulatedDevice(capacity_forward=LINE), campaign())
        assert [size.gaps_ns for size in result.sizes] == [(0, 0), (0, 0)]
        assert result.limited_by == "maximum"

    def test_the_trials_are_sent_in_bursts(self, path: Path) -> None:
        events: list[Event] = []
        measure(path, SimulatedDevice(capacity_forward=5000, buffer_frames=20), campaign(), events=events)
        forms = [event.record.order.form for event in events if isinstance(event, TrialFinished)]
        sizes = [form.bursts.frames for form in forms if form.bursts is not None]
        assert len(sizes) == len(forms)
        assert set(sizes) == {16, 1024}

    def test_a_tester_that_cannot_send_the_line_rate_is_the_limit(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=9000, buffer_frames=900, tester_limit=4000)
        result = measure(path, device, campaign())
        assert result.limited_by == "tester"
        assert all(size.gap_ns is None for size in result.sizes)
        assert any(size.tester_limited_at for size in result.sizes)

    def test_quantities_tell_the_bursts_apart(self, path: Path) -> None:
        result = measure(path, SimulatedDevice(capacity_forward=5000, buffer_frames=20), campaign())
        small, large = result.quantities()
        assert (small.coordinates["burst_frames"], large.coordinates["burst_frames"]) == (16, 1024)
        assert (small.unit, small.better, small.is_headline, large.is_headline) == ("ns", "lower", False, True)
        assert small.median is not None
        assert large.median is None


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"frames": [16, 16]}, "bursty_traffic.frames: lists a number twice"),
        ({"frames": [1]}, "bursty_traffic.frames"),
        ({"resolution": "100%"}, "bursty_traffic.resolution: is as large as the line rate"),
        ({"search_duration": "11s"}, "bursty_traffic.search_duration: is longer than trial.duration"),
    ],
)
def test_bad_input_is_named(table: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        campaign(**table)


def test_sizes_that_are_left_out_rule_a_claim_out() -> None:
    left = [line for line in deviations(campaign()) if "section 21" in line.sentence]
    assert [(line.sentence, line.rules_out_claim) for line in left] == [
        ("No bursts of 64, 256 frames are sent (RFC 2544 section 21).", True)
    ]


def test_the_true_gap_of_the_reference_gateway() -> None:
    # Capacity half the line: after a burst the gap is as long as the burst, less what the queue takes over the trial.
    assert smallest_gap(LINE, LINE // 2, 50, 100, SECOND) == 100 * SECOND * Fraction(1, LINE)
    assert smallest_gap(LINE, LINE // 2, 150, 100, SECOND) < 100 * SECOND * Fraction(1, LINE)
