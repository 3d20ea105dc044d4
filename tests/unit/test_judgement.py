"""Report, validity, verdict: what each sees and what it must not see."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.trial_facts import blank, changed

from gatemark.errors import EngineError
from gatemark.trial.report import (
    Counts,
    DirectionResult,
    EstablishedConnections,
    Foreign,
    PortFacts,
    SendingClocks,
    TrialReport,
    read_report,
)
from gatemark.trial.validity import Validity, ValidityPolicy, judge_validity, sending_ns_max
from gatemark.trial.verdict import Verdict, judge

SECOND = 1_000_000_000
POLICY = ValidityPolicy(lateness_max_ns=1_000_000)


def body(*, load: int = 1000, m: int = 1, n: int = 1, directions: tuple[str, ...] = ("forward", "reverse")) -> Any:
    stream = {"frames_per_second": load, "foreground_m": m, "foreground_n": n}
    return {
        "request": "trial",
        "trial_number": 1,
        "seed": 1,
        "duration_ns": SECOND,
        "waits": {},
        "directions": [{"direction": direction, **stream} for direction in directions],
    }


def report(device: SimulatedDevice | None = None, **wanted: Any) -> TrialReport:
    engine = SimulatedEngine(device or SimulatedDevice(capacity_forward=10_000))
    return read_report(engine.trial(body(**wanted)))


def with_direction(change: Callable[[DirectionResult], DirectionResult]) -> TrialReport:
    whole = report()
    return changed(whole, directions=(change(whole.directions[0]), *whole.directions[1:]))


def with_foreground(**given: Any) -> TrialReport:
    return with_direction(lambda d: changed(d, foreground=changed(d.foreground, **given)))


def with_right_port(**given: Any) -> TrialReport:
    whole = report()
    return changed(whole, ports={**whole.ports, "right": changed(whole.ports["right"], **given)})


def with_clocks(cycle_counter_ns: int, monotonic_raw_ns: int) -> TrialReport:
    return changed(report(), clocks=SendingClocks(cycle_counter_ns=cycle_counter_ns, monotonic_raw_ns=monotonic_raw_ns))


def with_negative_delays(*, below_ns: int, clock_error_ns: int = 0) -> TrialReport:
    def change(direction: DirectionResult) -> DirectionResult:
        delay = changed(direction.foreground.delay, negative=3, negative_maximum_ns=below_ns)
        return changed(direction, foreground=changed(direction.foreground, delay=delay))

    right = changed(report().ports["right"], clock_error_ns=clock_error_ns)
    return changed(with_direction(change), ports={**report().ports, "right": right})


class TestReport:
    def test_is_written_again_exactly(self) -> None:
        device = SimulatedDevice(capacity_forward=900, faults={"hop_limit": 100}, duplicate_every=7)
        answer = SimulatedEngine(device).trial(body(m=9, n=10))
        answer_without_envelope = {key: value for key, value in answer.items() if key not in ("answer", "id")}
        assert read_report(answer).model_dump(mode="json") == answer_without_envelope

    def test_what_cannot_be_read_is_an_error_with_a_remedy(self) -> None:
        answer = SimulatedEngine(SimulatedDevice(capacity_forward=1)).trial(body())
        del answer["directions"][0]["foreground"]["offered"]
        with pytest.raises(EngineError, match="offered"):
            read_report(answer)

    def test_worst_is_the_class_with_the_highest_ratio(self) -> None:
        whole = report(SimulatedDevice(capacity_forward=10_000, capacity_reverse=990))
        worst = whole.worst()
        assert worst is not None and worst.loss_ratio == Fraction(1, 100)

    def test_nothing_is_worst_where_nothing_was_sent(self) -> None:
        assert blank(TrialReport).worst() is None

    def test_ratios_derive_from_counts(self) -> None:
        assert blank(Counts, offered=200, received=150, faulty=30, lost=20).loss_ratio == Fraction(1, 4)
        assert blank(Counts).loss_ratio is None


class TestValidity:
    def test_a_good_trial(self) -> None:
        assert judge_validity(report(), POLICY) == Validity(valid=True)

    @pytest.mark.parametrize(("counter", "raw"), [(2 * SECOND, 2 * SECOND + 200_000), (100, 100_100), (0, 0)])
    def test_two_clocks_may_differ_a_little(self, counter: int, raw: int) -> None:
        assert judge_validity(with_clocks(counter, raw), POLICY).valid

    def test_a_clock_may_be_as_far_off_as_it_says(self) -> None:
        assert judge_validity(with_negative_delays(below_ns=900, clock_error_ns=900), POLICY).valid
        assert not judge_validity(with_negative_delays(below_ns=901, clock_error_ns=900), POLICY).valid

    def test_loss_at_the_gateway_is_none_of_its_business(self) -> None:
        lossy = report(SimulatedDevice(capacity_forward=1, faults={"udp_checksum": 1}, duplicate_every=1))
        assert judge_validity(lossy, POLICY).valid

    @pytest.mark.parametrize(
        ("faulty", "words"),
        [
            (
                lambda: with_foreground(offered=999, received=999),
                "forward: 999 of 1000 intended foreground frames were offered",
            ),
            (
                lambda: with_direction(
                    lambda d: changed(d, gave_up=True, sending_ns=7_000_000, lateness_max_ns=2_000_000)
                ),
                "forward: a burst was sent 2ms late, 1ms is allowed; the trial was ended 7ms after its start",
            ),
            (lambda: with_direction(lambda d: changed(d, gave_up=True)), "the port took no frame for 1ms"),
            (lambda: with_direction(lambda d: changed(d, sending_ns=SECOND + 600_001)), "longer than intended"),
            (lambda: with_direction(lambda d: changed(d, lateness_max_ns=1_000_001)), "late"),
            (
                lambda: with_clocks(52 * SECOND, 62 * SECOND),
                "clocks: after 62s of CLOCK_MONOTONIC_RAW the processor's counter is 10s away from it, 6.2ms is",
            ),
            (lambda: with_clocks(2 * SECOND, 2 * SECOND + 201_000), "201us away from it, 200"),
            (lambda: with_clocks(2 * SECOND + 200_001, 2 * SECOND), "200us is allowed"),
            (lambda: with_clocks(SECOND // 10, SECOND // 10 + 100_001), "100us is allowed"),
            (
                lambda: with_negative_delays(below_ns=12_000),
                "forward: 3 foreground frames arrived, by the clock, up to 12us before they were sent, 0s is allowed",
            ),
            (
                lambda: changed(report(), worker_pause_max_ns=1_000_001),
                "a worker was held up for 1ms while frames waited for it, 1ms is allowed",
            ),
            (lambda: with_right_port(link_up=False), "right port: the link was down"),
            (lambda: with_right_port(link_losses=1), "right port: the link went down once during the trial"),
            (lambda: with_right_port(link_losses=2), "right port: the link went down 2 times during the trial"),
            (lambda: with_right_port(own_drops={"rx_missed": 3}), "right port: 3 frames were lost"),
            (lambda: with_right_port(own_drops={"neighbour_overflow": 7}), "right port: 7 frames were lost"),
            (lambda: with_right_port(own_drops={"neighbour_unanswered": 1}), "(neighbour_unanswered)"),
            (lambda: with_right_port(foreign=blank(Foreign, foreign=1001)), "1001 foreign frames"),
            (
                lambda: with_foreground(intended=998, offered=998, received=998),
                "998 frames were intended, load times duration is 1000",
            ),
            (lambda: with_foreground(intended=0, offered=0, received=0), "0 frames were intended"),
            (lambda: changed(report(), directions=()), "no direction"),
            (lambda: changed(report(), cancelled=True), "cancelled"),
        ],
    )
    def test_every_fault_of_the_tester_is_named(self, faulty: Callable[[], TrialReport], words: str) -> None:
        validity = judge_validity(faulty(), POLICY)
        assert not validity.valid
        assert len(validity.reasons) == 1
        assert words in validity.reasons[0]

    def test_drops_of_the_test_bed_are_the_testers(self) -> None:
        validity = judge_validity(report(), POLICY, testbed_drops={"gm0-left rx_dropped": 5, "gm0-right rx_dropped": 0})
        assert not validity.valid
        assert "5 frames" in validity.reasons[0]

    def test_other_faults_of_the_test_bed_are_told_in_its_words(self) -> None:
        validity = judge_validity(report(), POLICY, testbed_faults=("the gateway says that it slept for 9 ms",))
        assert validity == Validity(valid=False, reasons=("test bed: the gateway says that it slept for 9 ms",))

    def test_all_faults_at_once(self) -> None:
        bad = with_direction(lambda d: changed(d, frames_per_second=7, sending_ns=2 * SECOND, lateness_max_ns=SECOND))
        assert len(judge_validity(bad, POLICY).reasons) == 3

    def test_at_the_limits_a_trial_is_valid(self) -> None:
        assert judge_validity(
            with_direction(lambda d: changed(d, sending_ns=SECOND + 600_000, lateness_max_ns=1_000_000)), POLICY
        ).valid

    @pytest.mark.parametrize(("seconds", "excess_us"), [(1, 600), (60, 600), (600, 6000)])
    def test_sending_time_may_exceed_by_a_hundred_thousandth_of_at_least_a_minute(
        self, seconds: int, excess_us: int
    ) -> None:
        assert sending_ns_max(seconds * SECOND) == seconds * SECOND + excess_us * 1000

    @pytest.mark.parametrize(
        "port",
        [
            blank(PortFacts, link_up=True, foreign=blank(Foreign, icmp={"icmpv6 1/3": 1_000_000})),
            blank(
                PortFacts,
                link_up=True,
                foreign=blank(Foreign, neighbour=1_000_000, fragment=1_000_000, other_trial=1_000_000),
            ),
            blank(PortFacts, link_up=True, foreign=blank(Foreign, foreign=1000)),
            blank(PortFacts, link_up=True, peer_queue_drops=1_000_000),
        ],
    )
    def test_what_the_gateway_does_never_excuses_it(self, port: PortFacts) -> None:
        whole = report()
        assert judge_validity(changed(whole, ports={"left": port, "right": port}), POLICY).valid

    def test_a_few_foreign_frames_in_a_fast_trial_are_no_flood(self) -> None:
        fast = report(SimulatedDevice(capacity_forward=10**6), load=10**6)
        port = blank(PortFacts, link_up=True, foreign=blank(Foreign, foreign=9_000))
        assert judge_validity(changed(fast, ports={"left": port, "right": port}), POLICY).valid

    def test_survives_json(self) -> None:
        validity = Validity(valid=False, reasons=("late",))
        assert Validity.model_validate_json(validity.model_dump_json()) == validity


class TestVerdict:
    ZERO = Fraction(0)

    def test_everything_back_passes(self) -> None:
        assert judge(report(m=9, n=10), self.ZERO) == Verdict(passed=True)

    @pytest.mark.parametrize(
        ("device", "words"),
        [
            (SimulatedDevice(capacity_forward=999), "forward foreground: 1 of 1000 frames were lost"),
            (SimulatedDevice(capacity_forward=1000, capacity_reverse=0), "reverse foreground: 1000 of 1000"),
            (SimulatedDevice(capacity_forward=1000, faults={"hop_limit": 1000}), "1 of 1000 frames were faulty"),
            (SimulatedDevice(capacity_forward=1000, duplicate_every=1000), "1 frames arrived more than once"),
        ],
    )
    def test_every_fault_of_the_gateway_fails_and_is_named(self, device: SimulatedDevice, words: str) -> None:
        verdict = judge(report(device), self.ZERO)
        assert not verdict.passed
        assert any(words in reason for reason in verdict.reasons), verdict.reasons

    def test_faults_are_named_by_reason(self) -> None:
        verdict = judge(report(SimulatedDevice(capacity_forward=1000, faults={"hop_limit": 10})), self.ZERO)
        assert "(hop_limit 100)" in verdict.reasons[0]

    def test_duplicates_do_not_replace_lost_frames(self) -> None:
        assert not judge(with_foreground(received=999, lost=1, duplicate=1), self.ZERO).passed

    def test_more_back_than_offered_is_a_fault(self) -> None:
        assert "1001 distinct frames" in judge(with_foreground(received=1001, lost=-1), Fraction(1, 2)).reasons[0]

    def test_faults_count_even_where_more_came_back_than_was_offered(self) -> None:
        assert not judge(with_foreground(received=1000, faulty=5, lost=-5), self.ZERO).passed

    def test_tolerance_holds_for_each_direction_and_class(self) -> None:
        """A tenth of one direction is a twentieth of both; a direction is judged alone."""
        one_way = report(SimulatedDevice(capacity_forward=900, capacity_reverse=1000))
        assert not judge(one_way, Fraction(99, 1000)).passed
        assert judge(one_way, Fraction(1, 10)).passed

    def test_a_dead_class_cannot_hide_behind_the_other(self) -> None:
        whole = report(m=99, n=100)
        forward = whole.directions[0]
        dead = changed(forward, background=changed(forward.background, received=0, lost=10))
        assert not judge(changed(whole, directions=(dead, whole.directions[1])), Fraction(1, 2)).passed

    def test_faulty_frames_count_as_lost_within_a_tolerance(self) -> None:
        device = SimulatedDevice(capacity_forward=1000, faults={"hop_limit": 100})
        assert judge(report(device), Fraction(1, 100)).passed
        assert not judge(report(device), Fraction(9, 1000)).passed

    def test_a_gateway_that_doubles_every_frame_does_not_pass_with_a_tolerance(self) -> None:
        assert not judge(report(SimulatedDevice(capacity_forward=1000, duplicate_every=1)), Fraction(1, 10)).passed

    @pytest.mark.parametrize("tolerance", [Fraction(0), Fraction(1, 2), Fraction(1)])
    def test_nothing_offered_never_passes(self, tolerance: Fraction) -> None:
        assert not judge(with_foreground(intended=0, offered=0, received=0), tolerance).passed
        assert not judge(with_foreground(offered=0, received=0), tolerance).passed
        assert not judge(changed(report(), directions=()), tolerance).passed

    def test_an_absent_direction_is_not_judged(self) -> None:
        assert judge(report(directions=("reverse",)), self.ZERO).passed

    def test_a_cancelled_trial_has_no_verdict(self) -> None:
        with pytest.raises(ValueError, match="cancelled"):
            judge(changed(report(), cancelled=True), self.ZERO)

    def test_survives_json(self) -> None:
        verdict = Verdict(passed=False, reasons=("lost",))
        assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict


def test_the_golden_report_is_read_whole() -> None:
    golden = Path(__file__).parents[2] / "protocol" / "examples" / "trial_answer.json"
    answer = json.loads(golden.read_text())
    del answer["answer"], answer["id"]
    assert read_report(answer).model_dump(mode="json") == answer


class TestConnections:
    """RFC 9693 section 4.2: test phase 1 passes if every connection was established."""

    def test_one_that_is_missing_fails_whatever_the_tolerance(self) -> None:
        established = EstablishedConnections(phase="establish", count=1000, established=999)
        verdict = judge(changed(report(), connections=established), Fraction(1, 2))
        assert verdict == Verdict(passed=False, reasons=("1 of 1000 connections were not established",))

    def test_all_pass(self) -> None:
        established = EstablishedConnections(phase="establish", count=1000, established=1000)
        assert judge(changed(report(), connections=established), Fraction(0)).passed

    def test_known_zero_checksums_are_correct_frames(self) -> None:
        device = SimulatedDevice(capacity_forward=10_000, zero_checksum_every=1000)
        observed = report(device)
        assert observed.directions[0].foreground.zero_checksum == 1
        assert judge(observed, Fraction(0)).passed

    @pytest.mark.parametrize(("zeros", "excess"), [(15, 0), (30, 0), (46, 0), (47, 32), (20_000, 19_985)])
    def test_more_zero_checksums_than_chance_makes_due_are_a_fault(self, zeros: int, excess: int) -> None:
        """Of a million frames 15 are due."""
        whole = report()
        counts = changed(
            whole.directions[0].foreground, offered=10**6, received=10**6, intended=10**6, zero_checksum=zeros
        )
        observed = changed(whole, directions=(changed(whole.directions[0], foreground=counts),))
        assert counts.excess_zero_checksums == excess
        assert counts.undelivered == observed.directions[0].undelivered == excess
        verdict = judge(observed, Fraction(0))
        assert verdict.passed == (excess == 0)
        if zeros == 20_000:
            assert verdict.reasons == (
                "forward foreground: 20000 of 1000000 frames have UDP checksum 0, 1 of 50, where 0xffff is due in 1 of"
                " 65,536 (udp_checksum)",
            )
