"""Back-to-back frames: figures, refusals, and campaigns on simulated gateways whose buffer is known."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.unit import simulated_campaigns
from tests.unit.conftest import NatCampaign

from gatemark.campaign.events import Event, TrialFinished
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.progress import ProgressState
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.procedures.back_to_back.result import BackToBackResult
from gatemark.procedures.back_to_back.run import burst_goal
from gatemark.procedures.back_to_back.table import BackToBackTable
from gatemark.procedures.base_load import SELF_TEST
from gatemark.results.run import FrameSizes, Mix
from gatemark.search.burst import BurstGoal, BurstKind, BurstResult
from gatemark.search.goal import sending_ns
from gatemark.units import frames_in

LINE = 10_000
"""Frames/s of 84 octets at 8.32 Mbit/s: a frame has 104 octets on the line."""
LINE_RATE = LINE * 8 * (84 + 20)
MS = 1_000_000


def campaign(*, mix: str = "1/1", direction: str = "forward", **tables: Any) -> Campaign:
    document: dict[str, Any] = {
        "repetitions": 2,
        "gateway": {"technology": "router44"},
        "testbed": {"kind": "loopback"},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [84]}, "mix": mix, "direction": direction},
        "trial": {"duration": "10s"},
        "line": {"rate": LINE_RATE},
        "validity": {"retries": 1},
        "throughput": {"maximum": "100%", "minimum": 100, "resolution": 10, "search_duration": "10s"},
        "back_to_back": {"ceiling": "2s", "resolution": 10, "bursts": 3, "wait": "3s"},
        **tables,
    }
    loaded = complete_campaign(campaign_from_dict(document))
    return loaded


def measure(
    path: Path, device: SimulatedDevice, wanted: Campaign, *, events: list[Event] | None = None
) -> BackToBackResult:
    results = simulated_campaigns.measure(path, device, wanted, events=events)
    return next(result for result in results if isinstance(result, BackToBackResult))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trials.jsonl"


def bursts(*frames: int, kind: BurstKind = "found", ceiling: int = 100_000) -> BackToBackResult:
    return BackToBackResult(
        number=1,
        direction="forward",
        frame_sizes=FrameSizes(ipv4=84, ipv6=None),
        mix=Mix(m=1, n=1),
        theoretical_maximum=None,
        limited_by="gateway",
        connections=None,
        zero_checksum=None,
        trials=5 * len(frames),
        invalid_trials=0,
        bursts=tuple(BurstResult(kind=kind, frames=frame, upper_frames=frame + 10, trials=5) for frame in frames),
        ceiling_frames=ceiling,
        resolution_frames=10,
        line_rate=10_000,
        throughput=6000,
        search="binary",
        verifications=0,
        wait_ns=2_000 * MS,
    )


class TestFigures:
    def test_times_of_the_buffer(self) -> None:
        result = bursts(1000, 1001)
        assert result.average == Fraction(2001, 2)
        assert result.average_frames == 1000.5
        assert (result.minimum_frames, result.maximum_frames) == (1000, 1001)
        assert result.implied_ns == 100_050_000
        assert result.corrected_ns == 40_020_000
        assert result.standard_deviation_frames == pytest.approx(0.5**0.5)

    def test_one_search_has_no_deviation(self) -> None:
        assert bursts(1000).standard_deviation_frames is None
        assert bursts(1000).average == 1000

    @pytest.mark.parametrize(
        "back_to_back_result",
        [
            bursts(500, 990, ceiling=1000),
            bursts(1000, kind="ceiling_passed", ceiling=1000),
            bursts(500, kind="tester_limited"),
            bursts(),
        ],
    )
    def test_what_is_no_result_has_no_figures(self, back_to_back_result: BackToBackResult) -> None:
        assert back_to_back_result.average is None
        for name in (
            "average_frames", "minimum_frames", "maximum_frames", "standard_deviation_frames", "implied_ns",
            "corrected_ns",
        ):  # fmt: skip
            assert getattr(back_to_back_result, name) is None

    def test_a_burst_that_ends_before_the_ceiling_is_one(self) -> None:
        assert bursts(989, ceiling=1000).average == 989
        assert bursts(0, kind="nothing_passes").average == 0


class TestGoal:
    def table(self, **keys: Any) -> BackToBackTable:
        return BackToBackTable.model_validate(keys)

    def test_lengths_are_frames_at_line_rate(self) -> None:
        goal = burst_goal(self.table(), 1_488_095)
        assert goal == BurstGoal(ceiling=44_642_850, resolution=Fraction(1, 100), verifications=0)
        assert burst_goal(self.table(search="loss_verification", resolution=7), 1000) == BurstGoal(
            ceiling=30_000, resolution=7, verifications=1
        )
        assert burst_goal(self.table(ceiling="1us"), 1000).ceiling == 1

    def test_a_share_is_one_of_the_burst_that_passed(self) -> None:
        goal = BurstGoal(ceiling=20_000, resolution=Fraction(1, 100))
        assert [goal.gap(frames) for frames in (0, 50, 199, 200, 4567, 20_000)] == [1, 1, 1, 2, 45, 200]
        assert BurstGoal(ceiling=20_000, resolution=30).gap(50) == 30

    @pytest.mark.parametrize("line", [1, 7, 1_488_095, 14_880_952, 148_809_523, 999_999_999])
    @pytest.mark.parametrize("frames", [1, 2, 999, 1_000_003])
    def test_a_trial_has_as_many_frames_as_the_burst(self, line: int, frames: int) -> None:
        assert frames_in(line, sending_ns(frames, line)) == frames


class TestCampaign:
    def truth(self, capacity: int, buffer: int) -> int:
        """Longest burst of which the simulated gateway loses nothing."""
        return max(n for n in range(1, 30_000) if n - n * capacity // LINE <= buffer)

    def test_the_longest_burst_is_found_in_every_search(self, path: Path) -> None:
        result = measure(path, SimulatedDevice(capacity_forward=6000, buffer_frames=800), campaign())
        assert result.refused is None
        assert result.limited_by == "gateway"
        assert len(result.bursts) == 3
        for search in result.bursts:
            assert search.kind == "found"
            assert search.frames <= self.truth(6000, 800) < (search.upper_frames or 0) <= search.frames + 10
        assert (result.line_rate, result.ceiling_frames, result.resolution_frames) == (LINE, 20_000, 10)
        assert result.throughput is not None
        assert 6000 <= result.throughput <= 6000 + 800 // 10
        assert result.corrected_ns == pytest.approx(800 / LINE * 1e9, rel=0.05)

    @pytest.mark.parametrize("buffer", [1, 7, 60, 500])
    def test_a_buffer_far_below_the_ceiling_is_measured(self, path: Path, buffer: int) -> None:
        """The default resolution is one of the burst that is found, not of the ceiling."""
        wanted = campaign(back_to_back={"ceiling": "2s", "bursts": 1})
        result = measure(path, SimulatedDevice(capacity_forward=6000, buffer_frames=buffer), wanted)
        (search,) = result.bursts
        assert (search.kind, result.limited_by) == ("found", "gateway")
        assert search.frames <= self.truth(6000, buffer) < (search.upper_frames or 0)
        assert (search.upper_frames or 0) - search.frames <= max(1, search.frames // 100) == result.resolution_frames

    def test_no_burst_passes_only_if_a_single_frame_is_lost(self, path: Path) -> None:
        result = measure(path, SimulatedDevice(capacity_forward=6000), campaign())
        assert {(search.kind, search.frames, search.upper_frames) for search in result.bursts} == {
            ("nothing_passes", 0, 1)
        }
        assert result.average == 0

    def test_a_burst_is_sent_at_line_rate_and_waited_for(self, path: Path) -> None:
        asked: list[dict[str, Any]] = []

        class Engine(SimulatedEngine):
            def trial(self, body: Any, on_progress: Any = None) -> Any:
                asked.append(body)
                return super().trial(body, on_progress)

        engine, wanted = Engine(SimulatedDevice(capacity_forward=6000, buffer_frames=800)), campaign()
        with Journal(path) as journal:
            run_campaign(wanted, plan_of(wanted), engine, journal, can=engine.gateway.can)
        burst = next(body for body in asked if body["duration_ns"] == 2000 * MS)
        assert burst["directions"][0]["frames_per_second"] == LINE
        assert burst["waits"]["drain_ns"] == 3000 * MS
        assert asked[0]["waits"]["drain_ns"] == wanted.trial.drain_ns == 2000 * MS

    def test_a_loss_is_verified_where_that_is_wanted(self, path: Path) -> None:
        table = {"ceiling": "2s", "resolution": 10, "bursts": 1, "search": "loss_verification"}
        events: list[Event] = []
        device = SimulatedDevice(capacity_forward=6000, buffer_frames=800)
        result = measure(path, device, campaign(back_to_back=table), events=events)
        assert result.verifications == 1
        failed = [
            event.record.order.step.duration_ns
            for event in events
            if isinstance(event, TrialFinished) and event.record.order.step.is_burst
            if event.record.verdict is not None and not event.record.verdict.passed
        ]
        assert failed and failed[::2] == failed[1::2]

    def test_a_buffer_beyond_the_ceiling_is_no_result(self, path: Path) -> None:
        result = measure(path, SimulatedDevice(capacity_forward=6000, buffer_frames=9000), campaign())
        assert result.limited_by == "maximum"
        assert result.near_ceiling and result.average is None
        assert result.burst_frames == (20_000, 20_000, 20_000)

    def test_one_lossy_direction_fails_a_burst(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, capacity_reverse=6000, buffer_frames=800)
        result = measure(path, device, campaign(direction="bidirectional"))
        assert result.bursts[0].frames <= self.truth(6000, 800) < (result.bursts[0].upper_frames or 0)

    def test_frames_of_a_stateful_gateway_are_those_of_phase_two(self, path: Path, nat_campaign: NatCampaign) -> None:
        wanted = nat_campaign(
            repetitions=1,
            line={"rate": LINE_RATE},
            trial={"duration": "10s"},
            throughput={"maximum": "100%", "minimum": 100, "resolution": 10, "search_duration": "10s"},
            back_to_back={"ceiling": "2s", "resolution": 10, "bursts": 1},
        )
        result = measure(path, SimulatedDevice(capacity_forward=5000, buffer_frames=100), wanted)
        assert result.is_valid

    def test_an_interrupted_campaign_goes_on_where_it_stopped(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=6000, buffer_frames=800)
        whole = measure(path, device, campaign())
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:-7]))
        assert measure(path, device, campaign()) == whole
        assert len(path.read_bytes().splitlines()) == len(lines)


class TestRefused:
    def refused(self, path: Path, device: SimulatedDevice, **tables: Any) -> BackToBackResult:
        result = measure(path, device, campaign(**tables))
        assert result.refused is not None
        assert result.average is None
        return result

    def test_a_gateway_that_forwards_the_line_rate(self, path: Path) -> None:
        result = self.refused(path, SimulatedDevice(capacity_forward=LINE))
        assert (result.limited_by, result.bursts) == ("gateway", ())
        assert "the throughput is the line rate of 10000 frames/s" in (result.refused or "")

    def test_a_throughput_that_is_not_known(self, path: Path) -> None:
        table = {"maximum": 5000, "minimum": 100, "resolution": 10, "search_duration": "10s"}
        result = self.refused(path, SimulatedDevice(capacity_forward=6000), throughput=table)
        assert result.limited_by == "maximum"
        assert "raise throughput.maximum" in (result.refused or "")

    def test_a_tester_that_limits_the_throughput(self, path: Path) -> None:
        result = self.refused(path, SimulatedDevice(capacity_forward=6000, tester_limit=4000))
        assert result.limited_by == "tester"
        assert SELF_TEST in (result.refused or "")

    def test_no_throughput(self, path: Path) -> None:
        result = self.refused(path, SimulatedDevice(capacity_forward=0))
        assert result.limited_by == "gateway"

    def test_a_line_rate_that_is_not_known(self, path: Path) -> None:
        table = {"maximum": LINE, "minimum": 100, "resolution": 10, "search_duration": "10s"}
        result = self.refused(path, SimulatedDevice(capacity_forward=6000), throughput=table, line={})
        assert result.limited_by == "tester"
        assert "line.rate is not set" in (result.refused or "")

    def test_a_tester_that_cannot_offer_the_line_rate(self, path: Path) -> None:
        """The throughput is below what the Tester can do, so it is known; the line rate is above it."""
        events: list[Event] = []
        device = SimulatedDevice(capacity_forward=6000, tester_limit=9000, buffer_frames=800)
        result = measure(path, device, campaign(), events=events)
        assert result.limited_by == "tester"
        assert result.refused is not None
        assert "cannot send a burst of 20000 frames at the line rate of 10000 frames/s" in result.refused
        assert "sending took" in result.refused
        assert SELF_TEST in result.refused
        bursts = [
            event.record
            for event in events
            if isinstance(event, TrialFinished)
            if event.record.order.run.procedure == "back_to_back"
        ]
        assert [record.verdict for record in bursts] == [None, None]  # two attempts at the ceiling, and no more

    @pytest.mark.parametrize(
        ("resolution", "buffer", "refused"),
        [
            (8, 800, "900us late, 800us is allowed"),
            (10, 800, None),
            ("1%", 800, None),
            ("1%", 60, "900us late, 100us is allowed"),
            ("1%", 0, None),
        ],
    )
    def test_a_burst_that_is_late_by_more_than_the_resolution(
        self, path: Path, resolution: int | str, buffer: int, refused: str | None
    ) -> None:
        """Lateness that the campaign allows is too much where the resolution is finer at the bounds of the search."""

        class Late(SimulatedEngine):
            def trial(self, body: Any, on_progress: Any = None) -> Any:
                answer = super().trial(body, on_progress)
                for direction in answer["directions"]:
                    direction["lateness_max_ns"] = 900_000
                return answer

        wanted = campaign(back_to_back={"ceiling": "2s", "resolution": resolution, "bursts": 1})
        engine = Late(SimulatedDevice(capacity_forward=6000, buffer_frames=buffer))
        with Journal(path) as journal:
            *_, result = run_campaign(wanted, plan_of(wanted), engine, journal, can=engine.gateway.can)
        assert isinstance(result, BackToBackResult)
        assert result.bursts[0].trials > 5
        if refused is None:
            assert result.refused is None
        else:
            assert result.refused is not None and refused in result.refused


def test_progress_tells_bursts_in_frames(path: Path) -> None:
    state, wanted = ProgressState(), campaign()
    engine = SimulatedEngine(SimulatedDevice(capacity_forward=6000, buffer_frames=800))
    with Journal(path) as journal:
        run_campaign(wanted, plan_of(wanted), engine, journal, on_event=state.update, can=engine.gateway.can)
    lines = [line for line in state.lines if "burst of" in line]
    assert lines[0].endswith(
        "burst of 20,000 frames at 10.00k frames/s (search):"
        " failed (forward foreground: 7200 of 20000 frames were lost)"
    )
