"""What a trial is asked for beyond its load, and what is made of the answer: form, delays, steps, late frames."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.trial_facts import ORDER, blank, changed
from tests.unit.conftest import NatCampaign

from gatemark.campaign.engine_trial import Demands, EngineTrials
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.dut.base import NO_ABILITIES
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import EngineError, TestBedError
from gatemark.stats.hdr import hdr_string
from gatemark.trial.connection_request import establish_request, use_request, validation_request
from gatemark.trial.delay import DelayFacts, percentile_ns
from gatemark.trial.form import PLAIN, RateStep, Tags, TrialForm, frames_due
from gatemark.trial.report import DirectionResult, TrialReport, read_report
from gatemark.trial.request import trial_request
from gatemark.trial.validity import ValidityPolicy, judge_validity
from gatemark.trial.verdict import judge

SECOND = 10**9
FORM = TrialForm(
    timeout_ns=10**8,
    tags=Tags(first_ns=SECOND, count=500),
    variation=True,
    histogram=True,
    step=RateStep(after_ns=SECOND, frames_per_second=500),
)
DELAYS = {"timeout_ns": 10**8, "tags": {"first_ns": SECOND, "count": 500}, "variation": True, "histogram": True}
STEP = {"after_ns": SECOND, "frames_per_second": 500}
POLICY = ValidityPolicy(lateness_max_ns=10**6)


def request(form: TrialForm, *, technology: str = "router44", mix: str = "1/1", **traffic: Any) -> Any:
    campaign = complete_campaign(
        campaign_from_dict(
            {
                "gateway": {"technology": technology},
                "testbed": {"kind": "loopback"},
                "traffic": {"frame_sizes": {"family": "ipv4", "octets": 84}, "mix": mix, **traffic},
                "delay": {"load": 1000, "tags": 500},
            }
        )
    )
    (cell,) = cells_of(campaign)
    return trial_request(campaign, cell, frames_per_second=1000, duration_ns=2 * SECOND, trial_number=1, form=form)


def trial(device: SimulatedDevice, form: TrialForm, **traffic: Any) -> TrialReport:
    return read_report(SimulatedEngine(device).trial(request(form, **traffic)))


class TestRequest:
    def test_nothing_is_asked_for_without_a_form(self) -> None:
        body = request(PLAIN)
        assert body["delays"] is None
        assert [direction["step"] for direction in body["directions"]] == [None, None]

    @pytest.mark.parametrize("mix", ["1/1", "1/2", "0/1"])
    @pytest.mark.parametrize("ports", ["fixed", "increasing", "pseudorandom"])
    def test_every_traffic_mode_has_the_whole_form(self, mix: str, ports: str) -> None:
        span = "5000" if ports == "fixed" else "1024-2000"
        body = request(FORM, mix=mix, source_ports={"mode": ports, "range": span}, destination_networks=256)
        assert body["delays"] == DELAYS
        assert [direction["step"] for direction in body["directions"]] == [STEP, STEP]

    def test_of_a_stateful_trial_phase_two_has_it(self, nat_campaign: NatCampaign) -> None:
        campaign = nat_campaign()
        (cell,) = cells_of(campaign)
        body = use_request(
            campaign, cell, connections=1000, frames_per_second=1000, duration_ns=SECOND, trial_number=17, form=FORM
        )
        assert body["delays"] == DELAYS
        assert [direction["step"] for direction in body["directions"]] == [STEP, STEP]
        first = establish_request(campaign, cell, connections=1000, connections_per_second=1000, trial_number=16)
        checked = validation_request(campaign, cell, connections=1000, connections_per_second=100, trial_number=18)
        for other in (first, checked):
            assert other["delays"] is None
            assert all(direction["step"] is None for direction in other["directions"])

    @pytest.mark.parametrize(("form", "give_up_ns"), [
        (PLAIN, 1_000_000), (TrialForm(lateness_max_ns=7), 7), (TrialForm(lateness_max_ns=10**9), 1_000_000),
        (TrialForm(reset_after_ns=1), 2 * SECOND), (TrialForm(step=FORM.step, lateness_max_ns=7), 2 * SECOND),
    ])  # fmt: skip
    def test_a_late_trial_ends_unless_the_gateway_must_recover_in_it(self, form: TrialForm, give_up_ns: int) -> None:
        assert request(form)["give_up_lateness_ns"] == give_up_ns

    def test_a_step_or_a_reset_alone_records_nothing_more(self) -> None:
        assert TrialForm(step=FORM.step, reset_after_ns=1).delays_json(1000) is None
        assert TrialForm(timeout_ns=5).delays_json(1000) == {
            "timeout_ns": 5,
            "tags": None,
            "variation": False,
            "histogram": False,
        }


class TestPercentile:
    HISTOGRAM = ((10, 900), (20, 99), (30, 1))

    @pytest.mark.parametrize(
        ("total", "per_100000", "ns"),
        [
            (1000, 50_000, 10),
            (1000, 90_000, 10),
            (1000, 90_001, 20),
            (1000, 99_900, 20),
            (1000, 99_901, 30),
            (1000, 100_000, 30),
            (1001, 99_900, 30),
            (1001, 100_000, None),
            (2000, 50_000, 30),
            (2000, 50_001, None),
            (0, 50_000, None),
        ],
    )
    def test_frames_without_a_delay_rank_last(self, total: int, per_100000: int, ns: int | None) -> None:
        assert percentile_ns(self.HISTOGRAM, total, per_100000) == ns

    def test_the_rank_is_that_of_rfc_2330(self) -> None:
        values = tuple((value, 1) for value in range(1, 50_001))
        assert percentile_ns(values, 50_000, 99_900) == 49_950
        assert percentile_ns(((1, 500),), 500, 99_900) == 1

    def test_no_samples_have_no_string(self) -> None:
        assert hdr_string(()) == ""


class TestReport:
    def test_delays_are_written_again_exactly(self) -> None:
        device = SimulatedDevice(capacity_forward=900, delays_ns=(-5, 10, 10**9), faults={"hop_limit": 100})
        answer = SimulatedEngine(device).trial(request(replace(FORM, step=None), mix="9/10"))
        bare = {key: value for key, value in answer.items() if key not in ("answer", "id")}
        assert read_report(answer).model_dump(mode="json") == bare

    @pytest.mark.parametrize("key", ["late", "delay"])
    def test_an_answer_without_delays_is_refused(self, key: str) -> None:
        answer = SimulatedEngine(SimulatedDevice(capacity_forward=1000)).trial(request(PLAIN))
        del answer["directions"][0]["foreground"][key]
        with pytest.raises(EngineError, match=key):
            read_report(answer)

    def test_nothing_was_measured_before_a_frame_came(self) -> None:
        assert blank(DelayFacts).percentile_ns(50_000) is None


class TestValidity:
    def test_a_step_has_frames_of_both_loads(self) -> None:
        report = trial(SimulatedDevice(capacity_forward=10**6), FORM)
        assert [direction.intended for direction in report.directions] == [1500, 1500]
        assert judge_validity(report, POLICY, form=FORM).valid
        faulty = judge_validity(report, POLICY)
        assert "1500 frames were intended, load times duration is 2000" in faulty.reasons[0]

    def test_each_part_is_rounded_down(self) -> None:
        step = TrialForm(step=RateStep(after_ns=SECOND // 2, frames_per_second=5))
        assert frames_due(3, SECOND, step) == 1 + 2
        assert frames_due(3, SECOND) == 3


class TestVerdict:
    def test_late_frames_are_undelivered(self) -> None:
        device = SimulatedDevice(capacity_forward=10**6, delays_ns=(10, 2 * 10**8), faults={"hop_limit": 500})
        report = trial(device, TrialForm(timeout_ns=10**8))
        counts = report.directions[0].foreground
        assert (counts.offered, counts.faulty, counts.late, counts.lost) == (2000, 4, 998, 0)
        assert counts.undelivered == 1002
        verdict = judge(report, Fraction(0))
        assert verdict.reasons[:2] == (
            "forward foreground: 998 of 2000 frames came back after the frame timeout",
            "forward foreground: 4 of 2000 frames were faulty (hop_limit 4)",
        )

    def test_they_arrived_all_the_same(self) -> None:
        report = trial(SimulatedDevice(capacity_forward=10**6), PLAIN)
        forward: DirectionResult = report.directions[0]
        more = changed(forward.foreground, late=1)
        verdict = judge(changed(report, directions=(changed(forward, foreground=more),)), Fraction(0))
        assert verdict.reasons == ("forward foreground: 2001 distinct frames came back of 2000 offered",)


class TestSimulatedEvents:
    def test_after_an_overload_the_gateway_recovers(self) -> None:
        device = SimulatedDevice(capacity_forward=900, recovery_ns=200_000_000)
        counts = trial(device, TrialForm(step=FORM.step)).directions[0].foreground
        assert counts.offered == 1500
        assert counts.lost == 200
        assert counts.loss.first_index == 900
        assert counts.loss.last_index == 1099  # 200 ms of 500 frames/s after the first 1000 frames
        assert counts.delay.samples == 1300

    def test_a_gateway_that_is_still_too_slow_does_not(self) -> None:
        counts = trial(SimulatedDevice(capacity_forward=400), TrialForm(step=FORM.step)).directions[0].foreground
        assert counts.loss.last_index == 1499

    def trials(self, device: SimulatedDevice, *, testbed: bool = True) -> EngineTrials:
        engine = SimulatedEngine(device)
        campaign = complete_campaign(
            campaign_from_dict(
                {
                    "gateway": {"technology": "router44"},
                    "testbed": {"kind": "loopback"},
                    "delay": {"load": 1000, "tags": 500},
                }
            )
        )
        can = engine.gateway.can if testbed else NO_ABILITIES
        return EngineTrials(campaign=campaign, engine=engine, can=can, on_event=lambda _: None)

    def test_the_gateway_is_reset_while_frames_are_sent(self) -> None:
        trials = self.trials(SimulatedDevice(capacity_forward=10**6, reset_ns=300_000_000))
        form = TrialForm(reset_after_ns=SECOND // 2)
        counts = trials.make(request(form), ORDER, Demands(needs_link=True), form).report.directions[0].foreground
        assert counts.lost == 300
        assert counts.loss.runs == 1
        assert counts.loss.first_index == 1000

    def test_a_reset_that_never_came_is_no_result(self) -> None:
        form = TrialForm(reset_after_ns=5 * SECOND)
        for testbed in (True, False):
            trials = self.trials(SimulatedDevice(capacity_forward=10**6), testbed=testbed)
            with pytest.raises(TestBedError, match="was not reset"):
                trials.make(request(form), ORDER, Demands(needs_link=True), form)

    def test_a_reset_that_fails_is_told_once_the_trial_is_over(self) -> None:
        class Broken:
            def reset(self) -> None:
                raise TestBedError(what="no", where="gateway control: reset", fix="")

        trials = self.trials(SimulatedDevice(capacity_forward=10**6))
        trials.engine.gateway.reset = Broken().reset  # type: ignore[attr-defined]
        form = TrialForm(reset_after_ns=SECOND // 2)
        with pytest.raises(TestBedError, match="gateway control: reset"):
            trials.make(request(form), ORDER, Demands(needs_link=True), form)
        assert trials.engine.trials_made == 1  # type: ignore[attr-defined]
