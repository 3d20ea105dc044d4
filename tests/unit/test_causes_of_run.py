"""What the failed trials of a run have in common: a search does not end on a loss that no load has to do with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from tests.loss_tables import Frame, frames, lossy
from tests.trial_facts import ORDER, changed, record_of
from tests.unit.calibration_evidence import throughput

from gatemark.campaign.facts import TrialTally, blamed
from gatemark.causes.campaign import CausesOfRun
from gatemark.causes.judgement import is_judged_alike, why_it_failed
from gatemark.procedures.base_load import Refusal, median_throughput
from gatemark.results.search import MaximumForwardingRate, RateResult
from gatemark.trial.host import HoldUp, HostFacts, ThreadFacts
from gatemark.trial.judgement import Rules
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import LateBurst
from gatemark.trial.validity import Validity
from gatemark.trial.verdict import Verdict, judge

RUN = throughput(25_000)
RULES = Rules(lateness_max_ns=10**9, held_up_max_ns=None, loss_tolerance=Fraction(0))
SENT = frames(40_000, destination_ports=range(1, 1000))
IN_TURN = [Frame(index=index, source_port=1024 + index) for index in range(40_000)]
"""Frames whose ports increase (`mode = "increasing"`)."""
HELD_UP = HostFacts(
    read_ns=10**9,
    step_ns=10**7,
    queue_frames=10,
    cpus=(),
    threads=(ThreadFacts(name="ksoftirqd/0", cpu=0, waited_ns=500_000_000),),
)


def made(load: int, loses: Any = lambda _: False, *, repetition: int = 0, sent: Sequence[Frame] = SENT) -> TrialRecord:
    """A trial of a second; it sends the first frames of those that any trial sends."""
    report = lossy(sent[:load], loses, frames_per_second=load)
    order = replace(ORDER, repetition=repetition, step=replace(ORDER.step, frames_per_second=load, duration_ns=10**9))
    record = record_of(report, order=order, verdict=judge(report, Fraction(0)))
    suspicion, causes = why_it_failed(record, RULES, asks_for_pattern=False)
    return changed(record, suspicion=suspicion, causes=causes)


def no_limit(*trials: TrialRecord) -> str | None:
    causes = CausesOfRun()
    for trial in trials:
        causes.add(trial)
    return causes.no_limit()


def filtered(frame: Frame) -> bool:
    return frame.destination_port == 161


def random_loss(share: float, seed: int = 1) -> Any:
    drawn = Random(seed)
    return lambda _: drawn.random() < share


def every(number: int) -> Any:
    return lambda frame: frame.index % number == number - 1


def token_bucket(load: int, capacity: int) -> Any:
    """Passes `capacity` frames/s of `load`, after a queue of 100 frames is full."""
    return lambda frame: frame.index > 100 and (frame.index + 1) * capacity // load == frame.index * capacity // load


class TestNoLimit:
    def test_a_filter(self) -> None:
        assert not any(map(filtered, SENT[:60]))
        said = no_limit(made(40_000, filtered), made(20_000, filtered), made(60))
        assert said is not None
        assert (
            "in 2 failed trials from 20.00k to 40.00k frames/s forward foreground lost frames with destination port 161"
            in said
        )

    def test_other_ports_are_another_filter(self) -> None:
        said = no_limit(
            made(40_000, lambda frame: frame.destination_port == 500),
            made(30_000, lambda frame: frame.destination_port == 161 and frame.index % 2 == 0),
            made(20_000, filtered),
        )
        assert said is not None
        assert "in a failed trial at 20.00k frames/s forward foreground lost frames with destination port 161" in said

    def test_frames_that_arrived_at_a_lower_load_are_no_filters(self) -> None:
        """One of the gateway's workers stops above some load."""
        sent = frames(40_000, source_ports=range(1024, 1032), destination_ports=range(1, 9))

        def loses(frame: Frame) -> bool:
            return frame.source_port < 1026

        failed = [made(load, loses, sent=sent) for load in (40_000, 26_000)]
        assert {cause.is_fixed for trial in failed for cause in trial.causes} == {True}
        assert no_limit(*failed) is not None
        assert no_limit(*failed, made(25_000, sent=sent)) is None

    def test_a_filter_that_comes_between_two_repetitions_is_one(self) -> None:
        failed = [made(load, filtered, repetition=1) for load in (40_000, 20_000)]
        assert no_limit(made(10_000), *failed) is not None

    def test_random_loss_above_a_load(self) -> None:
        failed = [made(load, random_loss(0.02, load)) for load in (40_000, 20_000)]
        assert no_limit(*failed, made(100)) is not None
        assert no_limit(*failed, made(17_500)) is None

    def test_a_filter_below_an_overload(self) -> None:
        high = made(40_000, lambda frame: filtered(frame) or token_bucket(40_000, 25_000)(frame))
        assert high.causes[0].cause == "queue"
        assert no_limit(high, made(20_000, filtered)) is not None

    def test_an_overload_is_one(self) -> None:
        assert no_limit(made(40_000, token_bucket(40_000, 25_000)), made(30_000, token_bucket(30_000, 25_000))) is None

    def test_an_overload_below_a_filter_is_one(self) -> None:
        assert no_limit(made(40_000, filtered), made(30_000, token_bucket(30_000, 25_000))) is None

    def test_a_limiter_of_one_port_is_one(self) -> None:
        limited = made(40_000, lambda frame: filtered(frame) and frame.index % 2 == 0)
        assert limited.causes[0].cause == "fields"
        assert no_limit(limited) is None

    def test_a_random_loss_at_loads_far_apart(self) -> None:
        high, low = made(40_000, random_loss(0.02)), made(20_000, random_loss(0.02, 2))
        assert no_limit(high, low) is not None
        assert no_limit(high) is None
        assert no_limit(high, made(35_000, random_loss(0.02, 2))) is None
        assert no_limit(made(40_000, random_loss(0.2)), low) is None

    def test_frames_in_turn_at_loads_far_apart(self) -> None:
        """A limiter with no queue loses every n-th frame too, but of another n at another load."""
        high, low = made(40_000, every(5)), made(20_000, every(5))
        assert {cause.cause for trial in (high, low) for cause in trial.causes} == {"residue"}
        assert no_limit(high, low) is not None
        assert no_limit(low) is None
        limited = made(40_000, lambda frame: frame.index % 5 > 1)
        assert {cause.cause for cause in limited.causes} == {"residue"}
        assert no_limit(limited, low) is None

    def test_trials_that_do_not_count(self) -> None:
        invalid = changed(made(40_000, filtered), validity=Validity(valid=False), verdict=None, causes=())
        assert no_limit(invalid) is None


def everything(_: Frame) -> bool:
    return True


class TestStopped:
    """A gateway that forwards nothing any more."""

    def test_at_a_load_that_passed_before(self) -> None:
        first = (made(40_000, token_bucket(40_000, 25_000)), made(20_000), made(30_000, everything))
        said = no_limit(*first, made(40_000, everything, repetition=1), made(20_000, everything, repetition=1))
        assert said is not None
        assert "stopped forwarding" in said
        assert "to the end of the run, from 20.00k to 40.00k frames/s, and before that 20.00k frames/s passed" in said

    def test_a_gateway_that_drops_everything_above_a_load_is_at_its_limit(self) -> None:
        above = [made(load, everything) for load in (30_000, 25_000, 22_000)]
        assert no_limit(made(40_000, everything), made(20_000), *above) is None

    def test_one_that_comes_back_is_another_matter(self) -> None:
        said = no_limit(made(20_000), made(20_000, everything, repetition=1), made(10_000, repetition=1))
        assert said is None or "stopped" not in said

    def test_one_that_never_forwarded_is_another_matter(self) -> None:
        said = no_limit(made(20_000, everything), made(10_000, everything))
        assert said is None or "stopped" not in said


class TestSameFrames:
    """A few frames, lost at every load."""

    LOST = (18_000, 19_500)

    def loses(self, frame: Frame) -> bool:
        return frame.index in self.LOST

    def test_are_named(self) -> None:
        said = no_limit(made(40_000, self.loses), made(25_000, self.loses), made(20_000, self.loses), made(17_000))
        assert said is not None
        assert "in 3 failed trials from 20.00k to 40.00k frames/s forward lost the same 2 frames (" in said

    @pytest.mark.parametrize("index", range(18_000, 18_004))
    def test_a_single_frame_is_named_by_its_fields(self, index: int) -> None:
        """Flows are drawn where there are many: that of one lost frame may be none of them."""
        loads = (40_000, 30_000, 25_000, 20_000)
        said = no_limit(*(made(load, lambda frame: frame.index == index, sent=IN_TURN) for load in loads))
        assert said is not None
        assert str(IN_TURN[index].source_port) in said

    def test_two_trials_may_be_chance(self) -> None:
        def loses(frame: Frame) -> bool:
            return frame.index == 18_000

        assert no_limit(made(40_000, loses), made(20_000, loses)) is None

    def test_at_one_load_a_gateway_may_do_the_same_again(self) -> None:
        assert no_limit(*(made(20_000, self.loses, repetition=number) for number in range(4))) is None

    def test_arrived_in_another_trial_that_failed(self) -> None:
        """However many others lost them: they may be among what an overload loses."""
        failed = [made(load, self.loses) for load in (40_000, 30_000, 25_000, 20_000)]
        assert no_limit(*failed) is not None
        assert no_limit(*failed, made(35_000, lambda frame: frame.index == 18_000)) is None

    def test_arrived_in_a_trial_that_passed(self) -> None:
        failed = [made(load, self.loses) for load in (40_000, 25_000, 20_000)]
        assert no_limit(*failed, made(19_000)) is None

    def test_what_a_goal_with_losses_lets_pass_has_not_arrived(self) -> None:
        failed = [made(load, self.loses) for load in (40_000, 25_000, 20_000)]
        tolerated = changed(made(19_000, self.loses), verdict=Verdict(passed=True), causes=())
        assert no_limit(*failed, tolerated) is not None

    def test_frames_in_a_row_are_one_event(self) -> None:
        """The gateway stalls, later the lower the load."""
        stalls = {40_000: 20_000, 32_500: 22_000, 28_750: 24_000, 26_875: 25_500, 25_900: 25_870}
        failed = [made(load, lambda frame, begin=begin: frame.index >= begin) for load, begin in stalls.items()]
        assert no_limit(*failed, made(20_000), made(25_000)) is None

    def test_a_row_that_begins_at_the_same_frame_is_the_same(self) -> None:
        failed = [made(load, lambda frame: 12_000 <= frame.index < 12_400) for load in (40_000, 20_000, 15_000, 12_200)]
        said = no_limit(*failed, made(11_000))
        assert said is not None
        assert "in 4 failed trials from 12.20k to 40.00k frames/s forward lost the same 200 frames" in said

    def test_a_filtered_range_of_ports_in_turn_shows_over_a_run(self) -> None:
        """A single trial cannot tell it from a stop."""

        def loses(frame: Frame) -> bool:
            return 13_024 <= frame.source_port < 13_424

        failed = [made(load, loses, sent=IN_TURN) for load in (40_000, 20_000, 15_000, 12_500)]
        assert {cause.cause for trial in failed for cause in trial.causes} <= {"gap", "end"}
        assert no_limit(*failed, made(11_000, sent=IN_TURN)) is not None

    def test_trials_at_the_lowest_load_say_nothing_of_others(self) -> None:
        """The queue is full at the same frame in each; far above it, half of all frames are lost."""
        low = [made(20_000, self.loses, repetition=number) for number in range(3)]
        assert no_limit(*low, made(40_000, lambda frame: frame.index >= 15_000)) is None

    def test_other_frames_are_lost_elsewhere(self) -> None:
        def loses(frame: Frame) -> bool:
            return frame.index in (3000, 3001)

        assert no_limit(made(40_000, loses), made(25_000, loses), made(20_000, self.loses)) is None


class TestSameShare:
    """The same share of all frames, in a pattern that is neither chance's nor a turn's."""

    LOADS = (40_000, 20_000, 10_000, 5000, 2500, 1250, 625)

    def test_every_hundredth_frame_by_a_counter_that_goes_on(self) -> None:
        failed = [made(load, lambda frame, load=load: (frame.index + load // 7) % 100 == 0) for load in self.LOADS]
        assert {cause.cause for trial in failed for cause in trial.causes} == {"queue"}
        said = no_limit(*failed, made(78))
        assert said is not None
        assert (
            "in 5 failed trials from 2.500k to 40.00k frames/s forward foreground lost about the same share of its"
            " frames (1 %)" in said
        )

    def test_a_line_that_loses_in_bursts(self) -> None:
        failed = [made(load, bursty(0.01, 4, seed=load)) for load in self.LOADS]
        assert no_limit(*failed, made(78)) is not None

    def test_a_gateway_that_is_seldom_emptied_has_a_limit(self) -> None:
        """It stands still for 4 ms of every 20, and holds 40 frames meanwhile."""

        def made_at(load: int) -> TrialRecord:
            return made(load, lambda frame: frame.index % (load // 50) >= load // 50 * 4 // 5 + 40)

        failed = [made_at(load) for load in (40_000, 20_000, 15_000)]
        shares = [trial.report.lost_count / trial.order.step.frames_per_second for trial in failed]
        assert shares[0] < 2 * shares[1]
        assert no_limit(*failed) is not None
        assert no_limit(*failed, made_at(10_000)) is None

    @pytest.mark.parametrize("high", [40_000, 30_000])
    def test_an_overload_at_loads_far_apart_is_one(self, high: int) -> None:
        """A limiter that forwards less than is offered at the lower load, however alike the shares are."""
        failed = [made(load, token_bucket(load, 15_000)) for load in (high, 20_000)]
        assert no_limit(*failed) is None


class TestRare:
    """So few frames that no trial tells their share."""

    def test_the_run_as_a_whole_does(self) -> None:
        trials = []
        for repetition in range(3):
            passed, failed, load = 0, 8000, 8000
            while failed - passed > 160:
                trials.append(made(load, random_loss(0.0008, 100 * repetition + load), repetition=repetition))
                verdict = trials[-1].verdict
                assert verdict is not None
                passed, failed = (load, failed) if verdict.passed else (passed, load)
                load = (passed + failed) // 2
        said = no_limit(*trials)
        assert said is not None
        assert "forward foreground lost frames about as often as in all trials up to there, once in " in said
        assert no_limit(*trials[:6]) is None


def bursty(share: float, length: int, *, seed: int) -> Any:
    """Loses a share of all frames, so many in a row on average (Gilbert)."""
    drawn, lost = Random(seed), [False]

    def loses(_: Frame) -> bool:
        lost[0] = drawn.random() < (1 - 1 / length if lost[0] else share / length / (1 - share))
        return lost[0]

    return loses


class TestResult:
    def test_has_no_rate_and_says_why(self) -> None:
        tally = TrialTally([made(40_000, filtered), made(20_000, filtered)])
        result = blamed(RUN, tally)
        assert isinstance(result, RateResult)
        assert result.refused == tally.no_limit
        assert (result.rate, result.lower_bound, result.upper_bound, result.limited_by) == (None, None, None, "gateway")
        (quantity,) = result.quantities()
        assert quantity.refused == tally.no_limit
        assert (quantity.value, quantity.values, quantity.unit) == (None, (), "frames/s")
        refusal = median_throughput(result, None)
        assert isinstance(refusal, Refusal)
        assert refusal.reason == tally.no_limit

    def test_tells_causes(self) -> None:
        tally = TrialTally([made(40_000, filtered), made(20_000, filtered)])
        (cause,) = tally.losses
        assert (cause.cause, cause.what, cause.trials) == ("fields", "frames with destination port 161", 2)
        assert (cause.load_minimum, cause.load_maximum) == (20_000, 40_000)
        assert cause.explained == cause.lost == sum(map(filtered, SENT)) + sum(map(filtered, SENT[:20_000]))

    def test_tells_how_much_was_forwarded_with_few_losses(self) -> None:
        """A rate found far below it says how few frames were lost, and not how much the gateway forwards."""
        tally = TrialTally([made(40_000, lambda frame: frame.index in (7, 20_000))])
        result = blamed(RUN, tally)
        assert isinstance(result, RateResult)
        most = result.maximum_forwarding_rate
        assert most is not None
        assert (most.load, most.frames_per_second, most.offered, most.undelivered) == (40_000, 39_998, 40_000, 2)
        assert blamed(RUN, TrialTally([made(37_000, lambda frame: frame.index == 7)])) == RUN

    def test_faulty_and_late_frames_are_not_forwarded(self) -> None:
        record = made(40_000, lambda frame: frame.index == 7)
        (way,) = (way for way in record.report.directions if way.offered)
        counts = changed(way.foreground, received=way.foreground.received - 30_000, faulty=20_000, late=10_000)
        spoiled = changed(record, report=changed(record.report, directions=(changed(way, foreground=counts),)))
        assert TrialTally([spoiled]).forwarded_most == MaximumForwardingRate(
            load=40_000, frames_per_second=9_999, offered=40_000, undelivered=30_001
        )

    def test_without_causes_is_written_as_ever(self) -> None:
        assert "losses" not in RUN.model_dump()
        assert blamed(RUN, TrialTally([made(1000)])) == RUN


def behind_a_late_burst(record: TrialRecord) -> TrialRecord:
    """The same, where the Tester sent 60 frames at once around frame 12,000."""
    burst = LateBurst(index=11_990, frames=60, lateness_ns=1_500_000)
    way = changed(record.report.directions[0], late_bursts=(burst,), lateness_max_ns=burst.lateness_ns)
    return changed(record, report=changed(record.report, directions=(way,)))


class TestSuspicion:
    @pytest.mark.parametrize(("loses", "excused"), [(filtered, False), (lambda frame: 2000 < frame.index < 2400, True)])
    def test_a_hold_up_does_not_pick_out_a_port(self, loses: Any, excused: bool) -> None:
        record = changed(made(40_000, loses), host=HELD_UP)
        suspicion, causes = why_it_failed(record, RULES, asks_for_pattern=False)
        assert (suspicion is not None) == excused
        assert bool(causes) != excused

    @pytest.mark.parametrize("length", [40, 400])
    @pytest.mark.parametrize("sent", [SENT, IN_TURN], ids=["drawn", "in turn"])
    def test_ports_in_turn_are_no_other_cause_than_time(self, sent: Sequence[Frame], length: int) -> None:
        """Whatever is lost at one time has a range of ports then: the stop is the hold-up's, or the gateway's own."""
        record = made(40_000, lambda frame: 12_000 <= frame.index < 12_000 + length, sent=sent)
        assert not {cause.cause for cause in record.causes} - {"gap"}
        assert no_limit(record, made(10_000, sent=sent)) is None
        assert self.why(changed(record, host=HELD_UP))[0] == "host"
        watched = changed(HELD_UP, hold_ups=(HoldUp(begin_ns=299_000_000, end_ns=311_000_000, held_up_ns=10**7),))
        assert self.why(changed(record, host=watched))[0] == "host"
        elsewhere = changed(HELD_UP, hold_ups=(HoldUp(begin_ns=10**8, end_ns=11 * 10**7, held_up_ns=10**7),))
        assert self.why(changed(record, host=elsewhere))[0] is None

    @pytest.mark.parametrize("sent", [SENT, IN_TURN], ids=["drawn", "in turn"])
    def test_nor_does_the_testers_own_burst_become_a_filter(self, sent: Sequence[Frame]) -> None:
        record = made(40_000, lambda frame: 12_000 <= frame.index < 12_012, sent=sent)
        assert self.why(behind_a_late_burst(record)) == ("Tester", set())

    @pytest.mark.parametrize("counter", ["conntrack.search_restart", "conntrack.invalid", "udp6.NoPorts"])
    def test_what_the_host_counted_sets_no_frames_apart(self, counter: str) -> None:
        """A counter names no frames, and among dozens one may grow by as much as a dozen frames were lost."""
        record = made(40_000, lambda frame: 12_000 <= frame.index < 12_012)
        counted = changed(HELD_UP, counters={counter: 11}, queue_frames=1000)
        assert self.why(changed(behind_a_late_burst(record), host=counted)) == ("Tester", set())
        assert self.why(changed(record, host=counted))[0] == "host"

    def test_a_range_of_ports_that_comes_again_is_a_filter(self) -> None:
        """A hold-up does not meet the same ports each time their turn comes."""
        sent = [Frame(index=index, source_port=1024 + index % 8000) for index in range(40_000)]
        record = made(40_000, lambda frame: 3000 <= frame.source_port < 3080, sent=sent)
        assert self.why(changed(record, host=HELD_UP)) == (None, {"fields"})

    @staticmethod
    def why(record: TrialRecord) -> tuple[str | None, set[str]]:
        """Return whose fault the failure may be instead, and the kinds of its causes."""
        suspicion, causes = why_it_failed(record, RULES, asks_for_pattern=False)
        return None if suspicion is None else suspicion.whose, {cause.cause for cause in causes}

    def test_other_causes_than_its_own_are_no_record_of_it(self) -> None:
        record = made(40_000, filtered)
        assert is_judged_alike(
            changed(record, verdict=judge(record.report, Fraction(0))), RULES, asks_for_pattern=False
        )
        assert not is_judged_alike(changed(record, causes=()), RULES, asks_for_pattern=False)
        passed = changed(record, verdict=Verdict(passed=True))
        assert not is_judged_alike(passed, RULES, asks_for_pattern=False)
