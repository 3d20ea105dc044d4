"""System recovery: due times, what a report tells of a recovery, and campaigns on simulated gateways."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import trial_facts
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.trial_facts import blank
from tests.unit import simulated_campaigns
from tests.unit.given_trials import GivenTrials

from gatemark.campaign.events import Event, TrialStarted
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.progress import ProgressState
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.procedures.event_times import due_ns, is_at_end
from gatemark.procedures.measured import Measured
from gatemark.procedures.system_recovery import run as procedure
from gatemark.procedures.system_recovery.result import SystemRecoveryResult
from gatemark.procedures.system_recovery.run import RecoveryPlan
from gatemark.search.goal import Observation, Outcome
from gatemark.trial.form import RateStep
from gatemark.trial.loss import LossFacts
from gatemark.trial.report import Counts, DirectionResult, TrialReport

SECOND = 1_000_000_000
MS = 1_000_000
OBSERVED = Observation(frames_per_second=1100, duration_ns=4 * SECOND, outcome=Outcome.FAILED)
PLAN = RecoveryPlan(
    overload=1100,
    throughput=1000,
    load_share="110% of the throughput",
    duration_ns=2 * SECOND,
    observe_ns=2 * SECOND,
    period=1,
)
BEFORE, FRAMES = 2200, 2200 + 1100


class TestDue:
    @given(st.integers(0, 10**12), st.integers(1, 10**9))
    def test_a_frame_is_due_at_its_number_over_the_rate(self, index: int, rate: int) -> None:
        exact = Fraction(index * SECOND, rate)
        assert exact - 1 < due_ns(index, rate) <= exact

    @given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(1, 100 * SECOND), st.integers(0, 1000))
    def test_the_first_frame_after_a_step_is_due_with_it(self, rate: int, later: int, after: int, more: int) -> None:
        step, before = RateStep(after_ns=after, frames_per_second=later), rate * after // SECOND
        assert due_ns(before, rate, step) == after
        assert due_ns(before + more, rate, step) == after + more * SECOND // later
        if before:
            assert due_ns(before - 1, rate, step) == (before - 1) * SECOND // rate < after

    def test_the_last_frames_are_the_end(self) -> None:
        assert is_at_end(990, 1000, 1000, 1)
        assert not is_at_end(989, 1000, 1000, 1)
        assert is_at_end(9, 10, 5, 1), "of a few frames it is the last one"
        assert is_at_end(90, 100, 100, 10), "a whole period, so that each class has a frame there"


def measured(*, lost: int = 0, first: int = 0, last: int = 0, faulty: int = 0, late: int = 0) -> Measured:
    counts = blank(
        Counts,
        intended=FRAMES,
        offered=FRAMES,
        received=FRAMES - lost - faulty - late,
        lost=lost,
        faulty=faulty,
        late=late,
        loss=blank(LossFacts, first_index=first, last_index=last),
    )
    direction = blank(
        DirectionResult,
        direction="forward",
        frames_per_second=1100,
        intended_duration_ns=4 * SECOND,
        sending_ns=4 * SECOND,
        lateness_max_ns=0,
        gave_up=False,
        foreground=counts,
    )
    report = blank(TrialReport, directions=(direction,))
    return trial_facts.measured(OBSERVED, report)


def recovery_of(*trials: Measured) -> SystemRecoveryResult:
    wanted = campaign(throughput=None, system_recovery={"load": 1000, "duration": "2s", "observe": "2s"})
    (run,) = plan_of(wanted).runs
    return procedure.measure(GivenTrials(wanted, run, trials))


class TestFigures:
    def found(self, trial: Measured) -> tuple[str, int | None, int | None]:
        (series,) = recovery_of(trial).series
        return series.outcomes[0], series.recovery_ns[0], series.last_loss_before_ns[0]

    def test_b_less_a(self) -> None:
        trial = measured(lost=30, first=2000, last=BEFORE + 55)
        assert self.found(trial) == ("recovered", 55 * SECOND // 550, None)

    def test_a_frame_lost_at_the_step_itself_is_no_time(self) -> None:
        assert self.found(measured(lost=1, first=3, last=BEFORE)) == ("recovered", 0, None)

    def test_nothing_lost_after_the_step_is_zero_and_says_when_the_last_loss_was(self) -> None:
        assert self.found(measured(lost=9, first=7, last=BEFORE - 11)) == ("recovered", 0, 10 * MS)

    def test_no_loss_is_no_overload(self) -> None:
        assert self.found(measured()) == ("no_loss", None, None)
        assert self.found(measured(lost=2, first=BEFORE, last=BEFORE + 9)) == ("no_loss", None, None)

    @pytest.mark.parametrize(("last", "outcome"), [(FRAMES - 12, "recovered"), (FRAMES - 11, "not_recovered")])
    def test_a_loss_within_the_last_hundredth_is_no_recovery(self, last: int, outcome: str) -> None:
        assert self.found(measured(lost=30, first=2000, last=last))[0] == outcome

    def test_frames_whose_place_is_not_known_make_the_time_unknown(self) -> None:
        for faulty, late in ((1, 0), (0, 1)):
            trial = measured(lost=30, first=2000, last=BEFORE + 5, faulty=faulty, late=late)
            assert self.found(trial) == ("unknown", None, None)
            assert self.found(measured(faulty=faulty, late=late)) == ("unknown", None, None)

    def test_the_mean_needs_every_repetition(self) -> None:
        good = [measured(lost=30, first=2000, last=BEFORE + number) for number in (55, 110)]
        assert recovery_of(*good).series[0].average_ns == 150 * MS
        assert recovery_of(*good, measured(lost=3, first=5, last=FRAMES - 1)).series[0].average_ns is None

    def test_a_trial_of_the_tester_is_counted_and_has_no_time(self) -> None:
        nothing = Measured(observation=OBSERVED)
        result = recovery_of(measured(lost=30, first=2000, last=BEFORE + 55), nothing)
        assert (result.repetitions, result.tester_limited, len(result.series[0].outcomes)) == (1, 1, 1)

    def test_half_of_the_overload_follows(self) -> None:
        assert PLAN.step == RateStep(after_ns=2 * SECOND, frames_per_second=550)


def campaign(*, mix: str = "1/1", direction: str = "forward", **tables: Any) -> Campaign:
    document: dict[str, Any] = {
        "repetitions": 2,
        "gateway": {"technology": "router44"},
        "testbed": {"kind": "loopback"},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [84]}, "mix": mix, "direction": direction},
        "trial": {"duration": "1s"},
        "validity": {"retries": 1},
        "system_recovery": {"duration": "2s", "observe": "2s"},
        "throughput": {"maximum": 100_000, "minimum": 100, "resolution": 100, "search_duration": "1s"},
        **tables,
    }
    loaded = complete_campaign(campaign_from_dict({key: value for key, value in document.items() if value is not None}))
    return loaded


def measure(
    path: Path, device: SimulatedDevice, wanted: Campaign, *, events: list[Event] | None = None
) -> SystemRecoveryResult:
    result = simulated_campaigns.measure(path, device, wanted, events=events)[-1]
    assert isinstance(result, SystemRecoveryResult)
    return result


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trials.jsonl"


class TestCampaign:
    @pytest.mark.parametrize("recovery_ns", [0, 50 * MS, 400 * MS])
    def test_the_time_is_that_of_the_gateway(self, path: Path, recovery_ns: int) -> None:
        device = SimulatedDevice(capacity_forward=20_000, recovery_ns=recovery_ns)
        result = measure(path, device, campaign())
        assert result.refused is None
        assert (result.limited_by, result.throughput_measured) == ("gateway", True)
        assert result.throughput is not None and result.overload is not None and result.recovery_load is not None
        assert result.overload == result.throughput * 11 // 10
        assert {quantity.load_share for quantity in result.quantities()} == {"110% of the throughput"}
        assert result.recovery_load == result.overload // 2
        frame_ns = -(-SECOND // result.recovery_load)
        for time_ns in result.series[0].recovery_ns:
            assert time_ns is not None
            assert max(0, recovery_ns - 2 * frame_ns) <= time_ns <= recovery_ns

    def test_the_line_rate_is_the_most(self, path: Path) -> None:
        line = {"rate": 21_000 * 8 * (84 + 20)}
        throughput = {"maximum": "100%", "minimum": 100, "resolution": 100, "search_duration": "1s"}
        device = SimulatedDevice(capacity_forward=20_000)
        result = measure(path, device, campaign(line=line, throughput=throughput))
        assert (result.overload, result.recovery_load) == (21_000, 10_500)

    def test_a_load_of_the_file_takes_the_place_of_the_throughput(self, path: Path) -> None:
        events: list[Event] = []
        table = {"load": 20_000, "overload": "150%", "duration": "2s", "observe": "1s"}
        wanted = campaign(system_recovery=table, throughput=None)
        result = measure(path, SimulatedDevice(capacity_forward=20_000), wanted, events=events)
        assert (result.overload, result.throughput, result.throughput_measured) == (30_000, 20_000, False)
        started = [event.order.step for event in events if isinstance(event, TrialStarted)]
        assert [(step.frames_per_second, step.duration_ns, step.purpose) for step in started] == [
            (30_000, 3 * SECOND, "event")
        ] * 2

    def test_directions_and_classes_are_apart(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=20_000, capacity_reverse=10**6, recovery_ns=100 * MS)
        table = {"load": 20_000, "duration": "2s", "observe": "1s"}
        wanted = campaign(mix="1/2", direction="bidirectional", system_recovery=table, throughput=None)
        result = measure(path, device, wanted)
        assert result.refused is None
        outcomes = {(series.direction, series.class_): set(series.outcomes) for series in result.series}
        assert outcomes == {
            ("forward", "foreground"): {"recovered"},
            ("forward", "background"): {"recovered"},
            ("reverse", "foreground"): {"no_loss"},
            ("reverse", "background"): {"no_loss"},
        }

    def test_a_gateway_that_is_too_slow_for_half_the_load_does_not_recover(self, path: Path) -> None:
        table = {"load": 20_000, "duration": "2s", "observe": "1s"}
        result = measure(path, SimulatedDevice(capacity_forward=5000), campaign(system_recovery=table))
        assert result.series[0].outcomes == ("not_recovered", "not_recovered")
        assert result.series[0].recovery_ns == (None, None)

    def test_an_interrupted_campaign_goes_on_where_it_stopped(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=20_000, recovery_ns=100 * MS)
        whole = measure(path, device, campaign())
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
        assert measure(path, device, campaign()) == whole

    def test_progress_tells_frames_not_delivered(self, path: Path) -> None:
        state, engine = ProgressState(), SimulatedEngine(SimulatedDevice(capacity_forward=20_000))
        wanted = campaign(system_recovery={"load": 20_000, "duration": "2s", "observe": "1s"}, throughput=None)
        with Journal(path) as journal:
            run_campaign(wanted, plan_of(wanted), engine, journal, on_event=state.update, can=engine.gateway.can)
        assert state.lines[1].endswith("(event): done (4,000 frames not delivered)")


class TestRefused:
    def reason(self, path: Path, device: SimulatedDevice, **tables: Any) -> tuple[str, str]:
        result = measure(path, device, campaign(**tables))
        assert result.refused is not None
        assert all(ns is None for series in result.series for ns in series.recovery_ns)
        return result.limited_by, result.refused

    def test_no_loss_at_the_overload(self, path: Path) -> None:
        table = {"load": 10_000, "duration": "2s", "observe": "1s"}
        limited_by, reason = self.reason(path, SimulatedDevice(capacity_forward=20_000), system_recovery=table)
        assert (limited_by, reason) == (
            "gateway",
            "no frame was lost at the overload of 11000 frames/s, so it was not an overload",
        )

    def test_a_gateway_that_forwards_the_line_rate(self, path: Path) -> None:
        line = {"rate": 20_000 * 8 * (84 + 20)}
        throughput = {"maximum": "100%", "minimum": 100, "resolution": 100, "search_duration": "1s"}
        limited_by, reason = self.reason(
            path, SimulatedDevice(capacity_forward=20_000), line=line, throughput=throughput
        )
        assert limited_by == "gateway"
        assert "the throughput is the line rate of 20000 frames/s" in reason

    def test_a_tester_that_cannot_offer_the_overload(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=20_000, tester_limit=21_000)
        table = {"load": 20_000, "duration": "2s", "observe": "1s"}
        limited_by, reason = self.reason(path, device, system_recovery=table, throughput=None)
        assert limited_by == "tester"
        assert "the Tester cannot offer the overload of 22000 frames/s: forward: sending took" in reason

    def test_a_throughput_that_is_not_known(self, path: Path) -> None:
        assert self.reason(path, SimulatedDevice(capacity_forward=200_000))[0] == "maximum"
        path.unlink()
        assert self.reason(path, SimulatedDevice(capacity_forward=20_000, tester_limit=15_000))[0] == "tester"
        path.unlink()
        assert self.reason(path, SimulatedDevice(capacity_forward=0))[0] == "gateway"

    def test_a_share_of_almost_nothing(self, path: Path) -> None:
        table = {"load": 5, "duration": "2s", "observe": "1s"}
        _, reason = self.reason(path, SimulatedDevice(capacity_forward=5), system_recovery=table, throughput=None)
        assert "not an overload" in reason
