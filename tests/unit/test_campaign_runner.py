"""The runner and its journal on simulated devices: what is measured, kept, repeated, resumed and refused."""

import contextlib
import errno
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.journals import read_journal
from tests.simulated.engine import SimulatedDevice, SimulatedEngine

from gatemark.campaign import runner
from gatemark.campaign.events import (
    Event,
    RepetitionFinished,
    RunFinished,
    RunStarted,
    TornLineDropped,
    TrialFinished,
    TrialProgress,
    TrialStarted,
)
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal, line_of
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign, run_single_trial
from gatemark.campaign.trials import SHORT_ATTEMPTS, Patience
from gatemark.config.model import Campaign
from gatemark.config.tables import GatewayControlModel, GatewayTableModel
from gatemark.dut.base import NO_ABILITIES, RECEIVED_BY_TESTER, Abilities, FrameDrops, HostReading, KernelCounts
from gatemark.dut.control import GatewayControl, GatewaySettings
from gatemark.dut.recipe import complete_campaign
from gatemark.dut.shell import shell_at
from gatemark.engine.client import JsonObject, ProgressCallback
from gatemark.errors import ConfigError, EngineError, Interrupted, ResultError, TestBedError
from gatemark.procedures.frame_loss.result import FrameLossResult
from gatemark.results.search import limited_by
from gatemark.search.goal import Measure, Observation, Outcome
from gatemark.search.scan import Scan, next_step
from gatemark.trial.record import TrialRecord
from gatemark.trial.validity import Validity
from gatemark.trial.verdict import Verdict

THROUGHPUT = {"maximum": "1M", "minimum": 1000, "resolution": 1000, "search_duration": "1s"}

FORWARD = {"frame_sizes": {"family": "ipv4", "octets": [64]}, "direction": ["forward"]}
NO_WAITS = {"settle": "0s", "learn": "0s", "drain": "0s", "rest": "0s"}


def campaign(**tables: Any) -> Campaign:
    document: dict[str, Any] = {
        "repetitions": 2,
        "gateway": {"technology": "router44"},
        "testbed": {"kind": "loopback"},
        "left": {"ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
        "right": {"ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
    }
    loaded = complete_campaign(campaign_from_dict({**document, **(tables or {"throughput": THROUGHPUT})}))
    return loaded


def run(
    path: Path,
    device: SimulatedDevice,
    wanted: Campaign | None = None,
    *,
    events: list[Event] | None = None,
    engine: SimulatedEngine | None = None,
    can: Abilities = NO_ABILITIES,
) -> tuple[Any, ...]:
    loaded = wanted or campaign()
    with Journal(path) as journal:
        return run_campaign(
            loaded,
            plan_of(loaded),
            engine or SimulatedEngine(device),
            journal,
            on_event=runner.ignore if events is None else events.append,
            can=can,
        )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trials.jsonl"


def ended_early(*, sending_ns: int, phase_one_ns: int = 0) -> Any:
    """An invalid record whose Tester fell behind after `sending_ns`; of a stateful trial if it had a test phase 1."""
    before = SimpleNamespace(phases=[SimpleNamespace(duration_ns=phase_one_ns)], directions=[])
    last = SimpleNamespace(phases=[], directions=[SimpleNamespace(gave_up=True, sending_ns=sending_ns)])
    reports = [before, last] if phase_one_ns else [last]
    facts = {"suspicion": None, "boot": None, "verdict": None, "attempts": ()}
    return SimpleNamespace(reports=lambda: iter(reports), **facts)


class TestThroughput:
    def test_the_capacity_is_found_within_the_resolution(self, path: Path) -> None:
        (result,) = run(path, SimulatedDevice(capacity_forward=432_100))
        assert result.limited_by == "gateway"
        assert result.rate is not None
        assert result.rate.count == 2
        assert 431_100 < result.rate.median <= 432_100
        assert result.rate_per_direction == result.rate

    def test_the_slower_direction_decides(self, path: Path) -> None:
        (result,) = run(path, SimulatedDevice(capacity_forward=900_000, capacity_reverse=200_000))
        assert all(199_000 < bound <= 200_000 for bound in result.lower_bounds)

    @pytest.mark.parametrize("search", ["binary", "mlrsearch"])
    @pytest.mark.parametrize("fault", ["late", "drops", "short"])
    def test_a_tester_at_its_limit_is_never_the_gateways_result(self, path: Path, search: str, fault: Any) -> None:
        device = SimulatedDevice(capacity_forward=800_000, tester_limit=300_000, tester_fault=fault)
        (result,) = run(path, device, campaign(throughput={**THROUGHPUT, "search": search}))
        assert result.limited_by == "tester"
        assert result.rate is None
        assert all(299_000 <= bound <= 300_000 for bound in result.lower_bounds)
        assert result.lower_bound == result.proven == min(result.lower_bounds)
        assert result.tester_limited_at is not None
        assert 300_000 < result.tester_limited_at <= 301_001

    @pytest.mark.parametrize(("fault", "retries", "attempts"), [
        ("late", 3, 4), ("drops", 3, 4), ("short", 3, 7), ("short", 1, 3), ("late", 0, 1), ("short", 0, 1),
    ])  # fmt: skip
    def test_a_load_is_tried_again_for_so_many_whole_trials(
        self, path: Path, fault: Any, retries: int, attempts: int
    ) -> None:
        device = SimulatedDevice(capacity_forward=800_000, tester_limit=300_000, tester_fault=fault)
        run(path, device, campaign(throughput=THROUGHPUT, trial=NO_WAITS, validity={"retries": retries}))
        loads = [record.order.step.frames_per_second for record in read_journal(path) if not record.validity.valid]
        assert loads.count(max(loads)) == attempts * 2, "in each of two repetitions"

    def test_a_load_whose_trials_end_at_once_is_not_tried_for_ever(self) -> None:
        wanted = campaign(trial=NO_WAITS, validity={"retries": 2})
        patience = Patience(wanted.validity, wanted.trial, duration_ns=10**9)
        while not patience.ends:
            patience.take(ended_early(sending_ns=1))
        assert patience.attempts + 1 == SHORT_ATTEMPTS * 3

    def test_a_phase_one_that_was_made_in_vain_is_part_of_the_time(self) -> None:
        wanted = campaign(trial=NO_WAITS, validity={"retries": 2})
        patience = Patience(wanted.validity, wanted.trial, duration_ns=10**9)
        while not patience.ends:
            patience.take(ended_early(sending_ns=5 * 10**8, phase_one_ns=10**9))
        assert patience.attempts + 1 == 4, "an attempt takes 1.5 s, a whole trial 2 s"

    @pytest.mark.parametrize("search", ["binary", "mlrsearch"])
    def test_a_gateway_below_the_testers_limit_is_measured(self, path: Path, search: str) -> None:
        device = SimulatedDevice(capacity_forward=123_456, tester_limit=300_000)
        (result,) = run(path, device, campaign(throughput={**THROUGHPUT, "search": search}))
        assert result.limited_by == "gateway"
        assert all(122_456 <= bound <= 123_456 for bound in result.lower_bounds)

    def test_the_maximum_passes(self, path: Path) -> None:
        (result,) = run(path, SimulatedDevice(capacity_forward=2_000_000))
        assert result.limited_by == "maximum"
        assert result.lower_bounds == (1_000_000, 1_000_000)

    def test_a_maximum_that_passes_in_one_repetition_only_leaves_a_lower_bound(self, path: Path) -> None:
        (result,) = run(path, SimulatedDevice(capacity_forward=2_000_000))
        passed = result.repetitions[0]
        failed = replace(passed, kind="found", lower_bound=998_000, upper_bound=999_000)
        mixed = result.model_copy(update={"repetitions": (passed, failed)})
        assert limited_by([passed.kind, failed.kind]) == "maximum"
        assert mixed.rate is None
        assert mixed.lower_bound == mixed.proven == 998_000
        assert result.rate is not None

    def test_nothing_passes(self, path: Path) -> None:
        (result,) = run(path, SimulatedDevice(capacity_forward=0))
        assert [repetition.kind for repetition in result.repetitions] == ["nothing_passes"] * 2
        assert (result.limited_by, result.lower_bounds) == ("gateway", (0, 0))
        assert result.rate is None

    def test_shares_of_the_line(self, path: Path) -> None:
        wanted = campaign(throughput={"maximum": "50%", "resolution": "1%"}, line={"rate": "1G"})
        (result,) = run(path, SimulatedDevice(capacity_forward=10**9), wanted)
        assert (result.theoretical_maximum.frames_per_second, result.lower_bounds[0]) == (1_488_095, 744_047)

    def test_a_share_of_an_unknown_line_is_refused(self, path: Path) -> None:
        with pytest.raises(ConfigError, match=r"line\.rate"):
            run(path, SimulatedDevice(capacity_forward=1), campaign(throughput={"maximum": "50%"}))


class TestFrameLoss:
    def test_a_list_of_rates_is_measured_whole(self, path: Path) -> None:
        wanted = campaign(frame_loss={"rates": ["100k", "400k", "200k"]})
        (result,) = run(path, SimulatedDevice(capacity_forward=100_000, capacity_reverse=300_000), wanted)
        percent = {
            (point.frames_per_second, loss.direction): loss.loss_percent.median
            for point in result.points
            for loss in point.losses
        }
        assert percent == {
            (400_000, "forward"): 75,
            (400_000, "reverse"): 25,
            (200_000, "forward"): 50,
            (200_000, "reverse"): 0,
            (100_000, "forward"): 0,
            (100_000, "reverse"): 0,
        }
        assert [loss.offered for loss in result.points[0].losses] == [(24_000_000, 24_000_000)] * 2

    @pytest.mark.parametrize(
        ("table", "shares"),
        [
            ({"maximum": "1M", "step": "50%"}, [None, None]),
            ({"step": "50%"}, ["100% of the line", "50% of the line"]),
            ({"maximum": "50%", "step": "50%"}, ["50% of the line", "25% of the line"]),
            ({"rates": ["50%", "100k"]}, ["50% of the line", None]),
        ],
    )
    def test_a_load_says_what_it_is_a_share_of(
        self, path: Path, table: dict[str, Any], shares: list[str | None]
    ) -> None:
        (result,) = run(path, SimulatedDevice(capacity_forward=10**9), campaign(frame_loss=table, line={"rate": "1G"}))
        assert [point.load_share for point in result.points] == shares
        assert {quantity.load_share for quantity in result.quantities()} == {*shares}
        assert all(
            ("load_share" in point) == (share is not None)
            for point, share in zip(result.model_dump()["points"], shares, strict=True)
        )

    def test_without_a_line_the_loads_are_shares_of_twice_the_throughput(self, path: Path) -> None:
        wanted = campaign(throughput={}, frame_loss={"step": "50%"}, delay={"load": ["100%", "50%"], "duration": "61s"})
        _, loss, delay = run(path, SimulatedDevice(capacity_forward=100_000), wanted)
        assert [point.load_share for point in loss.points] == [
            "100% of twice the throughput", "50% of twice the throughput",
        ]  # fmt: skip
        assert {quantity.load_share for quantity in delay.quantities()} == {
            "100% of the throughput", "50% of the throughput",
        }  # fmt: skip

    def test_loss_at_loads_that_some_repetitions_did_not_try_has_no_median(self, path: Path) -> None:
        """Three of four repetitions ended after no loss at 900,000 and 800,000 frames/s."""
        capacities = iter((950_000, 950_000, 550_000))
        engine = SimulatedEngine(SimulatedDevice(capacity_forward=950_000))

        def next_device(event: Event) -> None:
            if isinstance(event, RepetitionFinished) and (capacity := next(capacities, None)):
                engine.device = SimulatedDevice(capacity_forward=capacity)

        wanted = campaign(repetitions=4, frame_loss={"maximum": "1M"}, traffic={**FORWARD})
        with Journal(path) as journal:
            (result,) = run_campaign(
                wanted, plan_of(wanted), engine, journal, on_event=next_device, can=engine.gateway.can
            )
        assert isinstance(result, FrameLossResult)
        known = [
            (point.frames_per_second // 1000, loss.not_tried, loss.loss_percent and loss.loss_percent.median)
            for point in result.points
            for loss in point.losses
        ]
        assert known == [(1000, 0, 5), (900, 0, 0), (800, 0, 0), *((load, 3, None) for load in (700, 600, 500, 400))]
        assert [quantity.value for quantity in result.quantities()] == [5, 0, 0, None, None, None, None]
        assert [point.is_lossless for point in result.points] == [False] * 5 + [True] * 2

    def test_the_rule_ends_after_two_trials_without_loss(self, path: Path) -> None:
        wanted = campaign(frame_loss={"maximum": "1M"})
        (result,) = run(path, SimulatedDevice(capacity_forward=650_000), wanted)
        assert [point.frames_per_second for point in result.points] == [10**5 * n for n in (10, 9, 8, 7, 6, 5)]

    def test_the_gateway_limits_only_what_it_lost_frames_of(self, path: Path) -> None:
        wanted = campaign(frame_loss={"rates": ["100k", "400k"]})
        limits = [
            run(folder, SimulatedDevice(capacity_forward=capacity), wanted)[0].limited_by
            for folder, capacity in ((path.with_name("a"), 300_000), (path.with_name("b"), 400_000))
        ]
        assert limits == ["gateway", "maximum"]

    def test_a_load_beyond_the_tester_is_not_measurable(self, path: Path) -> None:
        wanted = campaign(frame_loss={"maximum": "1M"})
        (result,) = run(path, SimulatedDevice(capacity_forward=650_000, tester_limit=800_000), wanted)
        assert [bool(point.losses) for point in result.points] == [False, False, True, True, True, True]
        assert result.limited_by == "tester"
        assert min(point.frames_per_second for point in result.points if point.tester_limited) == 900_000

    def test_a_load_beyond_the_tester_breaks_the_succession(self) -> None:
        scan = Scan(rates=(5, 4, 3, 2, 1), duration_ns=1, ends_when_lossless=True)
        outcomes = [Outcome.FAILED, Outcome.PASSED, Outcome.TESTER_LIMITED, Outcome.PASSED]
        history = [
            Observation(frames_per_second=rate, duration_ns=1, outcome=outcome)
            for rate, outcome in zip(scan.rates, outcomes, strict=False)
        ]
        assert isinstance(next_step(scan, history), Measure)

    def test_a_rule_that_finds_loss_everywhere_ends_at_its_lowest_step(self, path: Path) -> None:
        wanted = campaign(frame_loss={"maximum": 1000, "step": "30%"})
        (result,) = run(path, SimulatedDevice(capacity_forward=0), wanted)
        assert [point.frames_per_second for point in result.points] == [1000, 700, 400, 100]


class TestRetries:
    def test_an_invalid_trial_is_repeated_and_stays_in_the_journal(self, path: Path) -> None:
        (result,) = run(path, SimulatedDevice(capacity_forward=432_100, hiccup_every=3))
        records = read_journal(path)
        invalid = [record for record in records if not record.validity.valid]
        assert result.limited_by == "gateway"
        assert invalid
        for record in invalid:
            assert record.verdict is None
            assert record.validity.reasons
            following = records[record.order.trial_number].order
            assert (following.attempt, following.step) == (record.order.attempt + 1, record.order.step)

    def test_retries_are_counted_by_the_policy(self, path: Path) -> None:
        wanted = campaign(throughput=THROUGHPUT, validity={"retries": 1}, repetitions=1)
        run(path, SimulatedDevice(capacity_forward=1, tester_limit=999_999), wanted)
        assert [record.order.attempt for record in read_journal(path)[:3]] == [0, 1, 0]


class TestEvents:
    def test_their_order_and_content(self, path: Path) -> None:
        events: list[Event] = []
        results = run(path, SimulatedDevice(capacity_forward=432_100), events=events)
        (wanted,) = plan_of(campaign()).runs
        assert events[0] == RunStarted(run=wanted, repetitions=2)
        assert events[-1] == RunFinished(run=wanted, result=results[0])
        repetitions = [event for event in events if isinstance(event, RepetitionFinished)]
        assert [event.repetition for event in repetitions] == [0, 1]
        started = [event for event in events if isinstance(event, TrialStarted)]
        finished = [event for event in events if isinstance(event, TrialFinished)]
        assert [e.order for e in started] == [e.record.order for e in finished]
        assert started[0].order.trial_number == 1
        assert finished[0].bounds.upper == 1_000_000

    def test_replayed_trials_are_told_as_such(self, path: Path) -> None:
        run(path, SimulatedDevice(capacity_forward=432_100))
        events: list[Event] = []
        engine = SimulatedEngine(SimulatedDevice(capacity_forward=432_100))
        run(path, engine.device, events=events, engine=engine)
        assert engine.trials_made == 0
        assert all(event.replayed for event in events if isinstance(event, TrialFinished))
        assert not any(isinstance(event, TrialStarted) for event in events)


class TestFailures:
    @pytest.mark.parametrize(
        ("failing", "error"),
        [({"dies_at_trial": 9}, EngineError), ({"interrupted_at_trial": 9}, Interrupted)],
    )
    def test_results_so_far_are_kept_and_the_campaign_resumes(
        self, tmp_path: Path, failing: dict[str, int], error: type[Exception]
    ) -> None:
        whole = run(tmp_path / "whole.jsonl", SimulatedDevice(capacity_forward=432_100, noise=0.1))
        cut = tmp_path / "cut.jsonl"
        with pytest.raises(error):
            run(cut, SimulatedDevice(capacity_forward=432_100, noise=0.1, **failing))  # type: ignore[arg-type]
        assert len(read_journal(cut)) == 8
        assert run(cut, SimulatedDevice(capacity_forward=432_100, noise=0.1)) == whole

    def test_ctrl_c_between_trials(self, path: Path) -> None:
        def watch(event: Event) -> None:
            if isinstance(event, TrialFinished) and event.record.order.trial_number == 3:
                raise KeyboardInterrupt

        wanted, engine = campaign(), SimulatedEngine(SimulatedDevice(capacity_forward=1))
        with Journal(path) as journal, pytest.raises(Interrupted, match="resume"):
            run_campaign(wanted, plan_of(wanted), engine, journal, on_event=watch)
        assert len(read_journal(path)) == 3

    def test_a_cancelled_trial_is_no_record(self, path: Path) -> None:
        class Cancelling(SimulatedEngine):
            def trial(self, body: Mapping[str, Any], on_progress: ProgressCallback | None = None) -> JsonObject:
                return super().trial(body, lambda _: self.cancel())

        device = SimulatedDevice(capacity_forward=1)
        with pytest.raises(Interrupted, match="cancelled"):
            run(path, device, engine=Cancelling(device))
        assert read_journal(path) == ()

    def test_a_link_that_stays_down_is_an_error_of_the_test_bed(self, path: Path) -> None:
        with pytest.raises(TestBedError, match="link went down"):
            run(path, SimulatedDevice(capacity_forward=10**9, link_down_from_trial=2))
        records = read_journal(path)
        assert [record.validity.valid for record in records] == [True, False, False, False]

    def test_after_the_link_is_back_the_campaign_resumes(self, path: Path) -> None:
        with pytest.raises(TestBedError):
            run(path, SimulatedDevice(capacity_forward=432_100, link_down_from_trial=5))
        (result,) = run(path, SimulatedDevice(capacity_forward=432_100))
        assert result.limited_by == "gateway"

    def test_a_dead_gateway_is_no_trial_that_failed(self, path: Path) -> None:
        trials = itertools.count(1)

        def check() -> None:
            if next(trials) == 5:
                raise TestBedError(what="tayga has ended", where="gateway", fix="look at its log")

        with pytest.raises(TestBedError, match="tayga"):
            run(path, SimulatedDevice(capacity_forward=1), can=Abilities(health=check))
        assert len(read_journal(path)) == 4

    def test_an_engine_that_died_of_a_dead_test_bed_is_told_as_that(self, path: Path) -> None:
        def check() -> None:
            raise TestBedError(what="the interface gm0-left is gone", where="test bed", fix="start again")

        with pytest.raises(TestBedError, match="gm0-left"):
            run(path, SimulatedDevice(capacity_forward=1, dies_at_trial=1), can=Abilities(health=check))

    def test_drops_of_the_test_bed_make_a_trial_invalid(self, path: Path) -> None:
        dropped = itertools.count(100)

        def drops() -> FrameDrops:
            return FrameDrops(tester={"gm-left rx_dropped": next(dropped), "gm-right rx_dropped": 7})

        (result,) = run(path, SimulatedDevice(capacity_forward=10**9), can=Abilities(drops=drops))
        assert result.limited_by == "tester"
        assert read_journal(path)[0].testbed_drops == {"gm-left rx_dropped": 1}

    def test_another_fault_of_the_test_bed_makes_a_trial_invalid(self, path: Path) -> None:
        can = Abilities(own_faults=lambda: ("the gateway says that it slept",))
        (result,) = run(path, SimulatedDevice(capacity_forward=10**9), can=can)
        assert result.limited_by == "tester"
        assert read_journal(path)[0].validity.reasons == ("test bed: the gateway says that it slept",)

    @pytest.mark.parametrize("each", [0, 100, 10**6])
    def test_work_of_the_gateway_on_the_testers_cpus_makes_a_trial_invalid(self, path: Path, each: int) -> None:
        """A few frames are those of other programs."""
        told = itertools.count(10**9, each)

        class Host:
            def read(self) -> HostReading:
                counted = KernelCounts(counters={RECEIVED_BY_TESTER: next(told)}, is_this_machines=True)
                return HostReading(
                    at_ns=0, step_ns=1, queue_frames=0, cpus={}, threads={}, all_ran_ns=None, counted=counted
                )

            def watched(self) -> contextlib.AbstractContextManager[None]:
                return contextlib.nullcontext()

        (result,) = run(path, SimulatedDevice(capacity_forward=10**9), can=Abilities(host=Host()))
        assert (result.limited_by == "tester") is (each == 10**6)
        reasons = read_journal(path)[0].validity.reasons
        said = "test bed: the kernel worked on 1,000,000 frames at the Tester's CPUs"
        assert [reason.startswith(said) for reason in reasons] == [True] * (each == 10**6)

    def test_a_command_while_frames_are_sent_makes_a_trial_invalid(self, path: Path) -> None:
        """A watcher that asks the gateway for something in the middle of a trial spoils that one, and no other."""
        shell = shell_at(None, ["sh", "-s"])

        commands = GatewayControlModel(health=("true",))
        settings = GatewaySettings(table=GatewayTableModel(), named={})
        control = GatewayControl(shell, commands, where="gateway.control", settings=settings)
        can = Abilities(health=control.check_health, control=control)

        class Watcher(list[Event]):
            def append(self, event: Event) -> None:
                if isinstance(event, TrialProgress) and not self:
                    super().append(event)
                    shell("true", where="gateway.control: count_connections")

        watcher = Watcher()
        run(path, SimulatedDevice(capacity_forward=432_100), can=can, events=watcher)
        first, *others = read_journal(path)
        assert watcher
        assert first.validity.reasons == ("test bed: gateway.control: count_connections ran while frames were sent",)
        assert others and all(record.validity.valid for record in others)


class TestJournal:
    def test_records_survive(self, path: Path) -> None:
        run(path, SimulatedDevice(capacity_forward=432_100, faults={"hop_limit": 100_000}))
        for line, record in zip(path.read_text().splitlines(), read_journal(path), strict=True):
            document = json.loads(line)
            assert list(document)[-1] == "crc32c"
            del document["crc32c"]
            assert TrialRecord.model_validate_json(json.dumps(document)) == record
            assert json.loads(record.model_dump_json(exclude_defaults=True)) == document

    def test_a_torn_line_is_left_out_and_cut_off(self, path: Path) -> None:
        run(path, SimulatedDevice(capacity_forward=432_100))
        whole = path.read_bytes()
        path.write_bytes(whole[:-30])
        count = whole.count(b"\n")
        assert len(read_journal(path)) == count - 1
        assert path.read_bytes() == whole[:-30]
        events: list[Event] = []
        run(path, SimulatedDevice(capacity_forward=432_100), events=events)
        torn = len(whole) - 30 - whole[:-30].rindex(b"\n") - 1
        assert [event.octets for event in events if isinstance(event, TornLineDropped)] == [torn]
        path.write_bytes(whole[:-30])
        with Journal(path) as journal:
            assert len(list(journal.records)) == count - 1
        assert path.read_bytes().count(b"\n") == count - 1
        assert path.read_bytes().endswith(b"\n")

    def test_a_broken_line_in_the_middle_is_an_error(self, path: Path) -> None:
        run(path, SimulatedDevice(capacity_forward=432_100))
        lines = path.read_bytes().split(b"\n")
        lines[2] = lines[2][:50]
        path.write_bytes(b"\n".join(lines))
        with pytest.raises(ResultError, match="line 3: its CRC32C"):
            read_journal(path)

    def test_a_changed_figure_is_refused_by_its_line(self, path: Path) -> None:
        """Even where the line is a good record all the same: nothing else would notice it."""
        run(path, SimulatedDevice(capacity_forward=432_100))
        lines = path.read_bytes().splitlines(keepends=True)
        changed = re.sub(rb'("received":)(\d)', rb"\g<1>1\2", lines[1], count=1)
        assert changed != lines[1]
        path.write_bytes(b"".join([lines[0], changed, *lines[2:]]))
        with pytest.raises(ResultError, match=r"line 2: its CRC32C .*changed or damaged") as raised:
            run(path, SimulatedDevice(capacity_forward=432_100))
        assert "head -n 1" in raised.value.fix

    @pytest.mark.parametrize("order", [(1, 0, 2), (0, 0, 1), (0, 2, 1)], ids=["swapped", "doubled", "later"])
    def test_lines_in_another_order_are_refused(self, path: Path, order: tuple[int, ...]) -> None:
        run(path, SimulatedDevice(capacity_forward=432_100))
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*(lines[index] for index in order), *lines[3:]]))
        with pytest.raises(ResultError, match="lines were swapped, doubled or removed"):
            read_journal(path)

    @pytest.mark.parametrize(
        "judged_otherwise",
        [
            {"verdict": Verdict(passed=True)},
            {"validity": Validity(valid=False, reasons=("late",)), "verdict": None},
            {"testbed_faults": ("it was asleep",)},
        ],
        ids=["passed", "invalid", "fault of the bed"],
    )
    def test_what_is_judged_otherwise_today_is_not_resumed(self, path: Path, judged_otherwise: dict[str, Any]) -> None:
        """A good line, but of a version that judged by other rules."""
        run(path, SimulatedDevice(capacity_forward=432_100))
        records = list(read_journal(path))
        assert records[0].verdict is not None
        assert not records[0].verdict.passed
        records[0] = records[0].model_copy(update=judged_otherwise)
        path.write_bytes(b"".join(line_of(record) for record in records))
        with pytest.raises(ResultError, match="line 1: judged by its report"):
            run(path, SimulatedDevice(capacity_forward=432_100))

    def test_another_campaigns_journal_is_refused(self, path: Path) -> None:
        run(path, SimulatedDevice(capacity_forward=432_100))
        with pytest.raises(ResultError, match="another campaign"):
            run(path, SimulatedDevice(capacity_forward=432_100), campaign(throughput={**THROUGHPUT, "maximum": "2M"}))

    def test_the_error_names_the_part_that_differs(self, path: Path) -> None:
        run(path, SimulatedDevice(capacity_forward=432_100))
        said = r"trial 1 was made with step\.frames_per_second 1000000, the campaign asks for 2000000"
        with pytest.raises(ResultError, match=said):
            run(path, SimulatedDevice(capacity_forward=432_100), campaign(throughput={**THROUGHPUT, "maximum": "2M"}))

    def test_other_traffic_is_another_campaign(self, path: Path) -> None:
        run(path, SimulatedDevice(capacity_forward=432_100))
        other = campaign(throughput=THROUGHPUT, traffic={"frame_sizes": {"family": "ipv4", "octets": 512}})
        with pytest.raises(ResultError, match=r"run\.cell\.frame_sizes\.ipv4"):
            run(path, SimulatedDevice(capacity_forward=432_100), other)

    def test_a_journal_with_too_many_trials_is_refused(self, path: Path) -> None:
        run(path, SimulatedDevice(capacity_forward=432_100))
        with pytest.raises(ResultError, match="does not belong to this campaign"):
            run(path, SimulatedDevice(capacity_forward=432_100), campaign(throughput=THROUGHPUT, repetitions=1))

    def test_a_full_disk_is_one_clear_error_and_earlier_trials_are_kept(self, path: Path) -> None:
        class FullAfter:
            """A file that takes a number of bytes and then half of a line."""

            def __init__(self, file: Any, octets: int) -> None:
                self.file, self.left = file, octets

            def __getattr__(self, name: str) -> Any:
                return getattr(self.file, name)

            def write(self, octets: bytes) -> int:
                if self.left <= 0:
                    raise OSError(errno.ENOSPC, "No space left on device")
                written: int = self.file.write(octets[: self.left])
                self.left -= written
                return written

        wanted, engine = campaign(), SimulatedEngine(SimulatedDevice(capacity_forward=432_100))
        with Journal(path) as journal:
            journal._file = FullAfter(journal._file, 20_000)  # type: ignore[assignment]
            with pytest.raises(ResultError, match="No space left"):
                run_campaign(wanted, plan_of(wanted), engine, journal)
        assert read_journal(path)
        assert path.read_bytes().endswith(b"\n")

    def test_a_journal_that_cannot_be_opened(self, tmp_path: Path) -> None:
        with pytest.raises(ResultError):
            Journal(tmp_path / "absent" / "trials.jsonl")
        with pytest.raises(ResultError, match="cannot be read"):
            read_journal(tmp_path / "absent.jsonl")


def test_a_single_trial() -> None:
    wanted = campaign(throughput={**THROUGHPUT, "loss_tolerance": "50%"})
    cell = plan_of(wanted).runs[0].cell
    engine = SimulatedEngine(SimulatedDevice(capacity_forward=600))
    record = run_single_trial(wanted, cell, engine, frames_per_second=1000, duration_ns=10**9)
    assert record.order.step.purpose == "single"
    assert record.verdict is not None
    assert record.verdict.passed
    assert record.report.directions[0].undelivered == 400
