"""Reset: what a report tells of a reset, and campaigns that reset simulated gateways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests import trial_facts
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.trial_facts import ORDER, blank
from tests.unit.conftest import NatCampaign
from tests.unit.given_trials import GivenTrials
from tests.unit.simulated_campaigns import measure

from gatemark.campaign.engine_trial import Demands, EngineTrials
from gatemark.campaign.events import Event, TrialFinished
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.gateway_reset import GatewayReset
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.progress import ProgressState
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.config.tables import GatewayControlModel, GatewayTableModel
from gatemark.dut.control import GatewayControl, GatewaySettings
from gatemark.dut.recipe import built_in_recipes, complete_campaign, load_recipe
from gatemark.dut.shell import shell_at
from gatemark.errors import TestBedError
from gatemark.procedures.measured import Measured
from gatemark.procedures.reset import run as procedure
from gatemark.procedures.reset.result import ResetResult
from gatemark.procedures.reset.run import ResetPlan
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.search.goal import Observation, Outcome
from gatemark.trial.loss import LossFacts
from gatemark.trial.record import ResetFacts
from gatemark.trial.report import Counts, DirectionResult, PhaseName, TrialReport

SECOND = 1_000_000_000
MS = 1_000_000
FRAMES = 4000
TABLE = {"load": 1000, "before": "1s", "observe": "3s"}
OBSERVED = Observation(frames_per_second=1000, duration_ns=4 * SECOND, outcome=Outcome.FAILED)


def measured(
    *, lost: int = 0, run: int | None = None, first: int = 0, last: int = 0, faulty: int = 0, began_ns: int = SECOND
) -> Measured:
    counts = blank(
        Counts,
        intended=FRAMES,
        offered=FRAMES,
        received=FRAMES - lost - faulty,
        lost=lost,
        faulty=faulty,
        loss=blank(LossFacts, longest_run=lost if run is None else run, first_index=first, last_index=last),
    )
    direction = blank(
        DirectionResult,
        direction="forward",
        frames_per_second=1000,
        intended_duration_ns=4 * SECOND,
        sending_ns=4 * SECOND,
        lateness_max_ns=0,
        gave_up=False,
        foreground=counts,
    )
    report = blank(TrialReport, directions=(direction,))
    return trial_facts.measured(OBSERVED, report, reset=ResetFacts(began_ns=began_ns, took_ns=5 * MS))


def reset_of(*trials: Measured) -> ResetResult:
    wanted = campaign(reset=TABLE)
    (run,) = plan_of(wanted).runs
    return procedure.measure(GivenTrials(wanted, run, trials))


class TestFigures:
    def test_both_methods(self) -> None:
        result = reset_of(measured(lost=310, run=300, first=1004, last=1330))
        (series,) = result.series
        assert series.outcomes == ("recovered",)
        assert series.reset_by_loss_ns.values == (310 * MS,)
        assert series.reset_by_gap_ns.values == (301 * MS,)
        assert (series.first_loss_ns, series.last_loss_ns) == ((1004 * MS,), (1330 * MS,))
        assert (result.began_ns, result.took_ns) == ((SECOND,), (5 * MS,))
        assert not series.lost_before

    def test_no_loss_is_no_time(self) -> None:
        (series,) = reset_of(measured()).series
        assert series.outcomes == ("no_loss",)
        assert (series.reset_by_loss_ns.values, series.reset_by_gap_ns.values) == ((0,), (0,))
        assert series.first_loss_ns == (None,)
        assert series.average_ns is None

    @pytest.mark.parametrize(("last", "outcome"), [(FRAMES - 31, "recovered"), (FRAMES - 30, "not_recovered")])
    def test_a_loss_within_the_last_hundredth_is_no_recovery(self, last: int, outcome: str) -> None:
        (series,) = reset_of(measured(lost=2000, first=1001, last=last)).series
        assert series.outcomes == (outcome,)

    def test_faulty_frames_count_as_lost_and_make_the_end_unknown(self) -> None:
        (series,) = reset_of(measured(lost=300, first=1004, last=1304, faulty=50)).series
        assert series.outcomes == ("unknown",)
        assert (series.undelivered, series.faulty) == ((350,), (50,))
        assert series.reset_by_loss_ns.values == (350 * MS,)
        assert series.reset_by_gap_ns.values == (301 * MS,)
        assert series.average_ns is None

    def test_a_loss_before_the_reset_is_not_the_resets(self) -> None:
        result = reset_of(measured(lost=310, first=900, last=1330))
        assert result.series[0].lost_before

    def test_the_mean_needs_every_repetition(self) -> None:
        good = [measured(lost=lost, first=1004, last=1400) for lost in (300, 301)]
        assert reset_of(*good).series[0].average_ns == 300 * MS + MS // 2
        assert reset_of(*good, measured()).series[0].average_ns is None

    def test_a_class_has_the_rate_of_its_frames(self) -> None:
        """Of every ten frames nine are foreground: 90 of them lost one after the other took 100 frames of time."""
        trial = measured(lost=90, first=1004, last=1103)
        assert trial.record is not None and trial.report is not None
        (direction,) = trial.report.directions
        kind = blank(Counts, intended=3600, offered=3600, received=3510, lost=90, loss=direction.foreground.loss)
        mixed = blank(
            DirectionResult,
            direction="forward",
            frames_per_second=1000,
            intended_duration_ns=4 * SECOND,
            sending_ns=4 * SECOND,
            lateness_max_ns=0,
            gave_up=False,
            foreground=kind,
        )
        report = blank(TrialReport, directions=(mixed,))
        (series,) = reset_of(trial_facts.measured(OBSERVED, report, reset=trial.record.reset)).series
        assert series.reset_by_loss_ns.values == (100 * MS,)


class Gateway:
    def __init__(self, error: TestBedError | None = None) -> None:
        self.resets = 0
        self.error = error

    def reset(self) -> None:
        self.resets += 1
        if self.error is not None:
            raise self.error


class TestTheReset:
    def test_it_is_made_once_and_when_it_is_time(self) -> None:
        gateway = Gateway()
        reset = GatewayReset(gateway.reset, SECOND)
        progress: tuple[tuple[PhaseName, int], ...] = (
            ("learn", 2 * SECOND),
            ("send", SECOND - 1),
            ("send", SECOND + 7),
            ("send", 2 * SECOND),
        )
        for phase, elapsed_ns in progress:
            reset.take({"phase": phase, "elapsed_ns": elapsed_ns, "directions": []})
        assert gateway.resets == 1
        assert reset.facts().began_ns == SECOND + 7
        assert reset.facts().took_ns >= 0

    def test_an_error_is_told_after_the_trial_and_the_reset_is_not_tried_again(self) -> None:
        gateway = Gateway(TestBedError(what="no", where="gateway control: reset", fix=""))
        reset = GatewayReset(gateway.reset, 0)
        reset.take({"phase": "send", "elapsed_ns": 1, "directions": []})
        reset.take({"phase": "send", "elapsed_ns": 2, "directions": []})
        assert gateway.resets == 1
        with pytest.raises(TestBedError, match="gateway control: reset"):
            reset.facts()

    def test_a_trial_that_was_too_short_for_it_is_an_error(self) -> None:
        with pytest.raises(TestBedError, match="was not reset"):
            GatewayReset(Gateway().reset, SECOND).facts()


def campaign(**tables: Any) -> Campaign:
    document: dict[str, Any] = {
        "repetitions": 2,
        "gateway": {"technology": "router44", "control": {"reset": "true"}},
        "testbed": {"kind": "ports"},
        "left": {"port": "af_packet:a", "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
        "right": {"port": "af_packet:b", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [84, 128]}, "direction": "forward"},
        "trial": {"duration": "1s"},
        "validity": {"retries": 1},
        "reset": {"load": 10_000, "before": "1s", "observe": "3s"},
        **tables,
    }
    loaded = complete_campaign(campaign_from_dict(document))
    return loaded


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trials.jsonl"


class TestCampaign:
    @pytest.mark.parametrize("reset_ns", [100 * MS, 700 * MS])
    def test_the_time_is_that_of_the_gateway(self, path: Path, reset_ns: int) -> None:
        (result,) = measure(path, SimulatedDevice(capacity_forward=10**6, reset_ns=reset_ns), campaign())
        assert result.frame_sizes.ipv4 == 84
        assert result.refused is None
        assert isinstance(result, ResetResult)
        assert (result.frames_per_second, result.throughput_measured, result.repetitions) == (10_000, False, 2)
        (series,) = result.series
        assert series.outcomes == ("recovered", "recovered")
        assert series.reset_by_loss_ns.values == (reset_ns, reset_ns)
        assert series.reset_by_gap_ns.values == (reset_ns + 100_000, reset_ns + 100_000)
        assert not series.lost_before

    def test_the_lowest_throughput_found_is_the_load(self, path: Path) -> None:
        throughput = {"maximum": 100_000, "minimum": 100, "resolution": 100, "search_duration": "1s"}
        wanted = campaign(throughput=throughput, reset={"before": "1s", "observe": "3s"})
        results = measure(path, SimulatedDevice(capacity_forward=20_000, noise=0.1, reset_ns=MS), wanted)
        reset = results[-1]
        searched = next(result for result in results if result.frame_sizes == reset.frame_sizes)
        assert isinstance(reset, ResetResult) and isinstance(searched, ThroughputResult)
        assert reset.frames_per_second == min(searched.lower_bounds)
        assert reset.throughput_measured

    def test_a_gateway_that_stays_away_has_not_recovered(self, path: Path) -> None:
        (result,) = measure(path, SimulatedDevice(capacity_forward=10**6, reset_ns=9 * SECOND), campaign())
        assert isinstance(result, ResetResult)
        assert result.series[0].outcomes == ("not_recovered", "not_recovered")

    def test_each_trial_says_when_the_reset_was(self, path: Path) -> None:
        events: list[Event] = []
        (result,) = measure(path, SimulatedDevice(capacity_forward=10**6, reset_ns=MS), campaign(), events=events)
        records = [event.record for event in events if isinstance(event, TrialFinished)]
        assert isinstance(result, ResetResult)
        assert result.began_ns == (2 * SECOND, 2 * SECOND)  # the simulated engine speaks once, in the middle
        assert [record.reset.took_ns for record in records if record.reset] == list(result.took_ns)

    def test_an_interrupted_campaign_goes_on_where_it_stopped(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, reset_ns=100 * MS)
        (whole,) = measure(path, device, campaign())
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
        (again,) = measure(path, device, campaign())
        assert isinstance(again, ResetResult) and isinstance(whole, ResetResult)
        assert again.series == whole.series
        assert again.took_ns[0] == whole.took_ns[0]

    def test_a_tester_at_its_limit_is_a_refusal(self, path: Path) -> None:
        (result,) = measure(path, SimulatedDevice(capacity_forward=10**6, tester_limit=1), campaign())
        assert result.limited_by == "tester"
        assert result.refused is not None and "cannot offer 10000 frames/s: forward: sending took" in result.refused

    def test_no_throughput_is_a_refusal(self, path: Path) -> None:
        throughput = {"maximum": 100_000, "minimum": 100, "resolution": 100, "search_duration": "1s"}
        wanted = campaign(throughput=throughput, reset={"before": "1s", "observe": "3s"})
        result = measure(path, SimulatedDevice(capacity_forward=0), wanted)[-1]
        assert isinstance(result, ResetResult)
        assert (result.limited_by, result.frames_per_second, result.series) == ("gateway", None, ())
        assert result.refused is not None and "no load passed" in result.refused

    def test_a_stateful_gateway_is_reset_in_phase_two(self, path: Path, nat_campaign: NatCampaign) -> None:
        events: list[Event] = []
        wanted = nat_campaign(
            repetitions=1,
            gateway={"control": {"clear_state": "true", "reset": "true"}},
            reset={"load": 1000, "before": "1s", "observe": "3s"},
        )
        device = SimulatedDevice(capacity_forward=10**6, reset_ns=300 * MS)
        *_, result = measure(path, device, wanted, events=events)
        assert isinstance(result, ResetResult)
        assert {series.direction for series in result.series} == {"forward", "reverse"}
        assert result.series[0].reset_by_loss_ns.values == (300 * MS,)
        record = next(event.record for event in reversed(events) if isinstance(event, TrialFinished))
        assert record.reset is not None and record.connections is not None

    def test_progress_tells_when_the_reset_was(self, path: Path) -> None:
        state, wanted = ProgressState(), campaign()
        engine = SimulatedEngine(SimulatedDevice(capacity_forward=10**6, reset_ns=100 * MS))
        with Journal(path) as journal:
            run_campaign(wanted, plan_of(wanted), engine, journal, on_event=state.update, can=engine.gateway.can)
        assert state.lines[1].endswith("(event): done (reset after 2s, 1,000 frames not delivered)")

    def test_a_gateway_may_take_its_time_until_it_is_well(self) -> None:
        class Booting(SimulatedEngine):
            checks = 0

        engine = SimulatedEngine(SimulatedDevice(capacity_forward=10**6, reset_ns=MS))
        ill = TestBedError(what="boots", where="gateway", fix="")
        checks: list[TestBedError | None] = [ill, ill, None]

        def check() -> None:
            if (problem := checks.pop(0)) is not None:
                raise problem

        engine.gateway.check = check  # type: ignore[method-assign]
        wanted = campaign()
        trials = EngineTrials(campaign=wanted, engine=engine, can=engine.gateway.can, on_event=lambda _: None)
        form = ResetPlan(load=1000, before_ns=0, observe_ns=SECOND, period=1).form
        body: Any = {
            "request": "trial",
            "trial_number": 1,
            "seed": 1,
            "duration_ns": 2 * SECOND,
            "directions": [{"direction": "forward", "frames_per_second": 1000, "foreground_m": 1, "foreground_n": 1}],
        }
        assert trials.make(body, ORDER, Demands(needs_link=True), form).reset is not None
        assert not checks


class TestCommands:
    def control(self, **commands: Any) -> GatewayControl:
        settings = GatewaySettings(table=GatewayTableModel(), named={})
        model = GatewayControlModel.model_validate(commands)
        return GatewayControl(shell_at(None, ["sh", "-s"]), model, where="gateway", settings=settings)

    def test_they_are_run_in_order(self, tmp_path: Path) -> None:
        marker = tmp_path / "seen"
        self.control(reset=[f"echo 1 >> {marker}", f"echo 2 >> {marker}"]).reset()
        assert marker.read_text() == "1\n2\n"

    def test_without_any_there_is_no_reset(self) -> None:
        with pytest.raises(TestBedError, match="gateway: reset: there is no such command"):
            self.control().reset()

    def test_one_that_fails_is_told(self) -> None:
        with pytest.raises(TestBedError, match="gateway: reset"):
            self.control(reset="false").reset()

    @pytest.mark.parametrize("name", built_in_recipes())
    def test_every_recipe_of_one_gateway_has_them(self, name: str) -> None:
        recipe = load_recipe(name)
        if len(recipe.parts) > 1:
            assert "reset" not in recipe.actions  # of which of both would it be?
            return
        assert recipe.commands.reset
        assert "reset" in recipe.actions
