"""Campaigns that measure delays on simulated gateways: every figure is known beforehand."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.unit.conftest import NatCampaign
from tests.unit.simulated_campaigns import measure

from gatemark.campaign.events import Event, RunStarted, TrialFinished
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.progress import ProgressState
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.procedures.delay.plots import decoded
from gatemark.procedures.delay.result import DelayPoint, DelayResult, DelaySeries
from gatemark.procedures.delay.run import delay_form
from gatemark.procedures.delay.table import DelayTable
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.results.run import RunResult
from gatemark.trial.form import Tags

MICROSECOND = 1000
PATTERN = (10 * MICROSECOND, 30 * MICROSECOND, 20 * MICROSECOND, 40 * MICROSECOND)
THROUGHPUT = {"maximum": "100k", "minimum": 1000, "resolution": 1000, "search_duration": "1s"}
SHORT = {"duration": "2s", "first_tag": "1s", "tags": 1000}


def campaign(*, mix: str = "1/1", **tables: Any) -> Campaign:
    document: dict[str, Any] = {
        "repetitions": 2,
        "gateway": {"technology": "router44"},
        "testbed": {"kind": "loopback"},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [84]}, "mix": mix},
        "trial": {"duration": "1s"},
        "validity": {"retries": 1},
        **tables,
    }
    loaded = complete_campaign(campaign_from_dict(document))
    return loaded


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trials.jsonl"


def only_series(result: RunResult, direction: str = "forward", class_: str = "foreground") -> DelaySeries:
    assert isinstance(result, DelayResult)
    (point,) = result.points
    return next(
        one_series for one_series in point.series if (one_series.direction, one_series.class_) == (direction, class_)
    )


def delay_values(series: DelaySeries) -> dict[str, tuple[int | float | None, ...]]:
    return {key: figure.values for key, figure in series.delay_ns.items()}


def load(frames_per_second: int) -> DelayPoint:
    return DelayPoint(
        frames_per_second=frames_per_second, share=None, throughput=None, throughput_limited_by=None, repetitions=0,
        tester_limited=0, series=(),
    )  # fmt: skip


class TestFigures:
    def test_every_figure_is_that_of_the_pattern(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, delays_ns=PATTERN)
        (result,) = measure(path, device, campaign(delay={"load": 10_000, **SHORT}))
        assert result.limited_by == "gateway"
        for direction in ("forward", "reverse"):
            series = only_series(result, direction)
            assert series.offered == series.samples == (20_000, 20_000)
            assert series.undelivered == series.negative == (0, 0)
            delays = delay_values(series)
            assert delays["minimum"] == (10_000, 10_000)
            assert delays["p50"] == (20_000, 20_000)
            assert delays["p90"] == delays["p99.999"] == delays["maximum"] == (40_000, 40_000)
            assert series.pdv is not None
            assert series.pdv.pdv_ns.values == (30_000, 30_000)
            assert series.pdv.p999_offered_ns.values == (40_000, 40_000)
            steps = series.ipdv
            assert steps is not None
            assert steps.minimum_ns.values == (-30_000, -30_000)
            assert steps.median_ns.values == (20_000, 20_000)  # the first step is missing, so half of all are this one
            assert steps.maximum_ns.values == (20_000, 20_000)
            assert steps.pairs == (19_999, 19_999)
            assert steps.skipped == (0, 0)
            latency = series.latency
            assert latency is not None
            assert latency.tags == (1000, 1000)
            assert latency.tags_lost == (0, 0)
            assert latency.worst_case_ns.values == (20_000, 20_000)
            assert latency.typical_ns.values == (15_000, 15_000)  # every tenth frame: the first and third delay in turn
            histogram = decoded(series.hdr)
            assert [count for _, count in histogram] == [5000] * 4
            assert [ns for ns, _ in histogram] == pytest.approx([10_000, 20_000, 30_000, 40_000], rel=1e-3)

    def test_the_string_holds_the_histogram(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, delays_ns=PATTERN)
        (result,) = measure(path, device, campaign(delay={"load": 10_000, **SHORT}))
        whole = HdrHistogram.decode(only_series(result).hdr)
        assert whole.get_total_count() == 20_000
        assert whole.get_value_at_percentile(50) == pytest.approx(20_000, rel=1e-3)

    def test_background_has_figures_of_its_own(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, delays_ns=(7000, 9000))
        (result,) = measure(path, device, campaign(mix="1/2", delay={"load": 10_000, **SHORT}))
        assert isinstance(result, DelayResult)
        (point,) = result.points
        assert [(one_series.direction, one_series.class_) for one_series in point.series] == [
            ("forward", "foreground"),
            ("forward", "background"),
            ("reverse", "foreground"),
            ("reverse", "background"),
        ]
        for one_series in point.series:
            assert one_series.offered == (10_000, 10_000)
            assert one_series.pdv is not None
            assert one_series.pdv.pdv_ns.values == (2000, 2000)
        tags = [one_series.latency.tags for one_series in point.series[:2] if one_series.latency is not None]
        assert [sum(counts) for counts in zip(*tags, strict=True)] == [1000, 1000]

    def test_what_is_not_asked_for_is_not_there(self, path: Path) -> None:
        wanted = campaign(delay={"metrics": "pdv", "load": 1000, "duration": "1s"})
        (result,) = measure(path, SimulatedDevice(capacity_forward=10**6), wanted)
        series = only_series(result)
        assert series.latency is None
        assert series.ipdv is None
        assert series.pdv is not None
        assert series.pdv.pdv_ns.summary is not None

    def test_repetitions_are_summed_up_never_merged(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, delays_ns=(10_000,), delay_spread_ns=5000)
        (result,) = measure(path, device, campaign(delay={"load": 1000, **SHORT}))
        series = only_series(result)
        first, second = delay_values(series)["p50"]
        assert first != second
        assert series.latency is not None
        typical = series.latency.typical_ns.summary
        assert typical is not None
        assert first is not None and second is not None
        assert typical.median * 2 == first + second
        assert (typical.p1, typical.p99) == (min(first, second), max(first, second))
        ((delay_ns, count),) = decoded(series.hdr)
        assert delay_ns == pytest.approx(first, rel=1e-3) and count == 2000


class TestHonesty:
    def test_a_lost_frame_ranks_above_every_delay(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, delays_ns=PATTERN, faults={"hop_limit": 500})
        (result,) = measure(path, device, campaign(delay={"load": 10_000, **SHORT}))
        series = only_series(result)
        assert series.undelivered == (40, 40)
        assert series.samples == (19_960, 19_960)
        assert series.pdv is not None and series.latency is not None
        assert series.pdv.pdv_ns.values == (None, None)  # the 19,980th of 20,000 frames is one without a delay
        assert series.pdv.p999_offered_ns.values == (None, None)
        assert series.pdv.pdv_ns.summary is None
        assert delay_values(series)["p99.9"] == (40_000, 40_000)
        assert series.latency.tags_lost[0] > 0
        assert series.latency.worst_case_ns.values == (None, None)
        assert series.latency.typical_ns.values == (20_000, 20_000)

    def test_delays_below_zero_are_counted_and_in_no_figure(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, delays_ns=(-500, 10_000, 20_000), clock_error_ns=500)
        (result,) = measure(path, device, campaign(delay={"load": 3000, **SHORT, "tags": 900}))
        series = only_series(result)
        assert series.negative == (2000, 2000)
        assert series.samples == (4000, 4000)
        assert series.undelivered == (0, 0)
        assert delay_values(series)["minimum"] == (10_000, 10_000)
        assert series.latency is not None and series.pdv is not None and series.ipdv is not None
        assert series.latency.tags_lost == (300, 300)
        assert series.latency.worst_case_ns.summary is None
        assert series.pdv.pdv_ns.summary is None
        assert series.ipdv.pairs[0] + series.ipdv.skipped[0] == 5999

    @pytest.mark.parametrize("fault", ["late", "drops", "short"])
    def test_a_load_that_the_tester_cannot_offer_has_no_delays(self, path: Path, fault: Any) -> None:
        device = SimulatedDevice(capacity_forward=10**6, tester_limit=5000, tester_fault=fault)
        (result,) = measure(path, device, campaign(delay={"load": [10_000, 1000], **SHORT, "tags": 500}))
        assert isinstance(result, DelayResult)
        high, low = result.points
        assert result.limited_by == "tester"
        assert (high.frames_per_second, high.repetitions, high.tester_limited, high.series) == (10_000, 0, 2, ())
        assert (low.frames_per_second, low.repetitions, low.tester_limited) == (1000, 2, 0)

    def test_repetitions_of_the_tester_are_left_out(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, hiccup_every=1)
        (result,) = measure(path, device, campaign(delay={"load": 1000, **SHORT}, validity={"retries": 0}))
        assert isinstance(result, DelayResult)
        (point,) = result.points
        assert (point.repetitions, point.tester_limited) == (0, 2)


class TestLoads:
    def test_shares_are_of_the_lowest_throughput(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=55_555, noise=0.1)
        events: list[Event] = []
        wanted = campaign(throughput=THROUGHPUT, delay={"load": ["100%", "50%", "110%"], **SHORT})
        throughput, delays = measure(path, device, wanted, events=events)
        assert isinstance(throughput, ThroughputResult) and isinstance(delays, DelayResult)
        lowest = min(throughput.lower_bounds)
        loads = [point.frames_per_second for point in delays.points]
        assert loads == [lowest, lowest // 2, lowest * 11 // 10]
        assert [point.share for point in delays.points] == [1, Fraction(1, 2), Fraction(11, 10)]
        assert {point.throughput for point in delays.points} == {lowest}
        assert {point.throughput_limited_by for point in delays.points} == {"gateway"}
        assert [event.run.procedure for event in events if isinstance(event, RunStarted)] == ["throughput", "delay"]
        steps = [event.record.order.step for event in events if isinstance(event, TrialFinished)]
        assert [step.frames_per_second for step in steps if step.purpose == "load"] == loads * 2
        purposes = [event.record.order.step.purpose for event in events if isinstance(event, TrialFinished)]
        assert purposes.count("load") == 6

    def test_a_throughput_that_the_tester_limits_is_named(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, tester_limit=50_000)
        _, delays = measure(path, device, campaign(throughput=THROUGHPUT, delay=SHORT))
        assert isinstance(delays, DelayResult)
        (point,) = delays.points
        assert 49_000 <= point.frames_per_second <= 50_000
        assert point.throughput_limited_by == "tester"
        assert delays.limited_by == "gateway"  # the load itself was offered validly

    def test_without_a_throughput_there_is_no_load(self, path: Path) -> None:
        _, delays = measure(path, SimulatedDevice(capacity_forward=0), campaign(throughput=THROUGHPUT, delay=SHORT))
        assert isinstance(delays, DelayResult)
        assert delays.points == ()
        assert delays.limited_by == "gateway"
        assert delays.refused is not None and "no load passed" in delays.refused

    def test_a_tester_that_can_offer_nothing_is_named(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, tester_limit=0)
        _, delays = measure(path, device, campaign(throughput=THROUGHPUT, delay=SHORT))
        assert delays.limited_by == "tester"
        assert delays.refused is not None and "Tester" in delays.refused

    def test_no_more_tags_than_frames(self) -> None:
        table = DelayTable.model_validate({"duration": "2s", "first_tag": "1s", "tags": 1000})
        assert delay_form(table, load(300)).tags == Tags(first_ns=10**9, count=300)
        assert delay_form(table, load(2000)).tags == Tags(first_ns=10**9, count=1000)
        only_pdv = DelayTable.model_validate({"metrics": ["pdv"]})
        form = delay_form(only_pdv, load(300))
        assert (form.tags, form.variation, form.histogram) == (None, False, True)


class TestFrameTimeout:
    def test_frames_beyond_it_are_late_and_fail_the_trial(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, delays_ns=(*[10_000] * 99, 200_000_000))
        events: list[Event] = []
        (result,) = measure(path, device, campaign(throughput={**THROUGHPUT, "frame_timeout": "100ms"}), events=events)
        assert isinstance(result, ThroughputResult)
        assert result.lower_bounds == (0, 0)
        record = next(event.record for event in events if isinstance(event, TrialFinished))
        counts = record.report.directions[0].foreground
        assert (counts.offered, counts.late, counts.lost) == (100_000, 1000, 0)
        assert counts.received == 99_000
        assert record.verdict is not None
        assert "came back after the frame timeout" in record.verdict.reasons[0]

    def test_without_it_a_frame_may_take_its_time(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, delays_ns=(10_000, 200_000_000))
        (result,) = measure(path, device, campaign(throughput=THROUGHPUT))
        assert isinstance(result, ThroughputResult)
        assert result.lower_bounds == (100_000, 100_000)


class TestStateful:
    def test_delays_are_those_of_test_phase_two(self, path: Path, nat_campaign: NatCampaign) -> None:
        device = SimulatedDevice(capacity_forward=10**6, delays_ns=PATTERN)
        wanted = nat_campaign(repetitions=2, delay={"load": 10_000, **SHORT})
        events: list[Event] = []
        *_, result = measure(path, device, wanted, events=events)
        series = only_series(result, "reverse")
        assert series.latency is not None and series.pdv is not None and series.ipdv is not None
        assert series.pdv.pdv_ns.values == (30_000, 30_000)
        assert series.latency.tags == (1000, 1000)
        assert series.ipdv.maximum_ns.values == (20_000, 20_000)
        record = next(event.record for event in reversed(events) if isinstance(event, TrialFinished))
        assert record.connections is not None
        assert record.connections.phase_one[-1].report.directions[0].foreground.delay.tags is None


class TestProgress:
    def lines(self, path: Path, device: SimulatedDevice, wanted: Campaign) -> list[str]:
        state = ProgressState()
        engine = SimulatedEngine(device)
        with Journal(path) as journal:
            run_campaign(wanted, plan_of(wanted), engine, journal, on_event=state.update, can=engine.gateway.can)
        return state.lines

    def test_a_trial_is_told_with_its_delays(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, delays_ns=(10_000, 20_000))
        lines = self.lines(path, device, campaign(delay={"load": 10_000, **SHORT}))
        assert lines[1] == "  trial 1: 10.00k frames/s for 2s (load): passed; delay median 10us, 99.9 % 20us"

    def test_what_has_no_delay_is_told_as_well(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=9000, delays_ns=(10_000, -3), clock_error_ns=3)
        lines = self.lines(path, device, campaign(delay={"load": 10_000, **SHORT}))
        assert lines[1].endswith(
            "delay median 10us, 99.9 % 10us, 4,000 frames not delivered, 400 tags lost, 18,000 delays below 0"
        )

    def test_a_trial_of_the_tester_has_none(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=10**6, tester_limit=1)
        lines = self.lines(path, device, campaign(delay={"load": 10_000, **SHORT}))
        assert "delay median" not in "".join(lines)
        assert lines[-1] == "run 1: done, limited by tester"

    def test_a_refused_run_says_why(self, path: Path) -> None:
        lines = self.lines(path, SimulatedDevice(capacity_forward=0), campaign(throughput=THROUGHPUT, delay=SHORT))
        assert lines[-1].startswith("run 2: not measured: in the throughput search")
