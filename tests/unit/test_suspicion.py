"""A gateway whose host is held up: which failures are suspect, that they are made again, and what is concluded."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.journals import read_journal
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.simulated.equipment import SimulatedTestBed, simulated_equipment
from tests.trial_facts import changed
from tests.unit.test_campaign_runner import THROUGHPUT
from tests.unit.test_judgement import report

from gatemark import session
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.campaign.trials import Patience
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.results.run import RunResult
from gatemark.trial.form import PLAIN, Bursts, RateStep, TrialForm
from gatemark.trial.host import CpuFacts, HoldUp, HostFacts, ThreadFacts
from gatemark.trial.loss import LossFacts, LossRun
from gatemark.trial.report import LateBurst, TrialReport
from gatemark.trial.suspicion import SuspicionPolicy, suspect

MS = 1_000_000
POLICY = SuspicionPolicy(held_up_max_ns=MS, asks_for_pattern=True)
CAPACITY = 432_100


def host(*, waited_ns: int = 0, stolen_ns: int = 0) -> HostFacts:
    thread = ThreadFacts(name="ksoftirqd/0", cpu=0, waited_ns=waited_ns)
    return HostFacts(
        read_ns=1000 * MS,
        step_ns=10 * MS,
        queue_frames=7,
        cpus=(CpuFacts(cpu=0, stolen_ns=stolen_ns),),
        threads=(thread,),
    )


def lossy(lost: int, **given: Any) -> TrialReport:
    """1000 frames each way in a second; a number of the first direction is lost."""
    whole = report()
    foreground = whole.directions[0].foreground
    counts = changed(foreground, **{"received": foreground.received - lost, "lost": lost, **given})
    return changed(whole, directions=(changed(whole.directions[0], foreground=counts), *whole.directions[1:]))


class TestTheHost:
    def test_the_thread_that_waited_longest_decides(self) -> None:
        threads = (
            ThreadFacts(name="ksoftirqd/0", cpu=0, waited_ns=3),
            ThreadFacts(name="ksoftirqd/1", cpu=1, waited_ns=5),
        )
        assert HostFacts(read_ns=1, step_ns=1, queue_frames=0, cpus=(), threads=threads).waited_ns == 5

    def test_threads_of_the_gateway_that_wait_for_each_other_are_its_own_affair(self) -> None:
        softirq = ThreadFacts(name="ksoftirqd/0", cpu=0, ran_ns=300, waited_ns=500)
        daemon = ThreadFacts(name="tayga", ran_ns=600, waited_ns=290)
        assert HostFacts(read_ns=1, step_ns=1, queue_frames=0, cpus=(), threads=(softirq, daemon)).held_up_ns == 0
        late = changed(daemon, waited_ns=310)
        assert HostFacts(read_ns=1, step_ns=1, queue_frames=0, cpus=(), threads=(softirq, late)).held_up_ns == 10

    def test_others_held_it_up_for_no_longer_than_they_ran(self) -> None:
        """A daemon waits for soft interrupts on top of the idle thread as well, which are in no thread's time."""
        assert changed(host(waited_ns=50), others_ran_ns=None).waited_ns == 50
        assert changed(host(waited_ns=50), others_ran_ns=7).waited_ns == 7
        assert changed(host(waited_ns=50), others_ran_ns=90).waited_ns == 50

    @pytest.mark.parametrize(("others_ran_ns", "waited_ns"), [(None, 11), (12, 12), (20, 15)])
    def test_threads_of_a_cpu_wait_one_after_another_or_at_once(
        self, others_ran_ns: int | None, waited_ns: int
    ) -> None:
        softirq, daemon = host(waited_ns=4).threads[0], ThreadFacts(name="tayga", waited_ns=11)
        assert changed(host(), threads=(softirq, daemon), others_ran_ns=others_ran_ns).waited_ns == waited_ns

    def test_threads_bound_to_other_cpus_do_not_compete(self) -> None:
        elsewhere = ThreadFacts(name="ksoftirqd/1", cpu=1, ran_ns=1000)
        here = ThreadFacts(name="ksoftirqd/0", cpu=0, waited_ns=7)
        assert HostFacts(read_ns=1, step_ns=1, queue_frames=0, cpus=(), threads=(here, elsewhere)).waited_ns == 7

    def test_stolen_time_may_be_one_step_longer_than_it_reads(self) -> None:
        assert host(stolen_ns=20 * MS).stolen_ns == 30 * MS
        assert host(stolen_ns=0).stolen_ns == 0


class TestWhatIsSuspect:
    @pytest.mark.parametrize(("lost", "is_suspect"), [(1, True), (3, True), (6, True), (7, False), (100, False)])
    def test_a_hold_up_excuses_the_frames_that_were_due_meanwhile(self, lost: int, is_suspect: bool) -> None:
        suspicion = suspect(lossy(lost), host(waited_ns=5 * MS), Fraction(0), POLICY)
        assert (suspicion is not None) == is_suspect

    def test_the_reason_says_how_long_and_by_whom(self) -> None:
        suspicion = suspect(lossy(1), host(waited_ns=5 * MS, stolen_ns=20 * MS), Fraction(0), POLICY)
        assert suspicion is not None
        assert "5ms by other programs, 30ms by the hypervisor" in suspicion.reason

    @pytest.mark.parametrize("held_up_ns", [0, MS])
    def test_within_the_bound_the_gateway_answers_for_itself(self, held_up_ns: int) -> None:
        assert suspect(lossy(1), host(waited_ns=held_up_ns), Fraction(0), POLICY) is None

    @pytest.mark.parametrize(("held_up_ns", "is_suspect"), [(7 * MS // 2, False), (7 * MS // 2 + 1, True)])
    def test_by_default_the_bound_is_what_the_queue_covers(self, held_up_ns: int, is_suspect: bool) -> None:
        """7 frames at 1000 frames/s each way."""
        policy = SuspicionPolicy(held_up_max_ns=None, asks_for_pattern=True)
        assert (suspect(lossy(1), host(waited_ns=held_up_ns), Fraction(0), policy) is not None) == is_suspect

    def test_late_frames_are_excused_as_lost_ones_are(self) -> None:
        late = lossy(2)
        counts = changed(late.directions[0].foreground, lost=0, late=2)
        late = changed(late, directions=(changed(late.directions[0], foreground=counts), late.directions[1]))
        assert suspect(late, host(waited_ns=5 * MS), Fraction(0), POLICY) is not None

    @pytest.mark.parametrize(("lost", "is_suspect"), [(3, True), (4, False)])
    def test_both_classes_share_the_frames_that_were_due(self, lost: int, is_suspect: bool) -> None:
        """5 frames of a direction at 1000 frames/s, and one that was under way."""
        whole = lossy(lost)
        way, other = whole.directions
        mixed = changed(way, background=changed(way.foreground, intended=10, offered=10, received=10 - lost, lost=lost))
        suspicion = suspect(changed(whole, directions=(mixed, other)), host(waited_ns=5 * MS), Fraction(0), POLICY)
        assert (suspicion is not None) == is_suspect

    @pytest.mark.parametrize("given", [{"faulty": 1, "received": 998}, {"duplicate": 1}])
    def test_no_hold_up_excuses_faulty_frames_or_duplicates(self, given: Mapping[str, int]) -> None:
        assert suspect(lossy(1, **given), host(waited_ns=5 * MS), Fraction(0), POLICY) is None

    def test_what_a_host_does_is_not_asked_where_it_cannot_be_read(self) -> None:
        assert suspect(lossy(1), None, Fraction(0), POLICY) is None

    def test_a_failure_that_is_no_loss_is_the_gateways(self) -> None:
        assert suspect(report(), host(waited_ns=5 * MS), Fraction(0), POLICY) is None

    def test_where_frames_have_to_be_lost_nothing_is_suspect(self) -> None:
        form = TrialForm(step=RateStep(after_ns=500 * MS, frames_per_second=500))
        assert suspect(lossy(1), host(waited_ns=5 * MS), Fraction(0), POLICY, form) is None

    def test_in_bursts_more_frames_are_due_in_a_time(self) -> None:
        form = TrialForm(bursts=Bursts(frames=100, frames_per_second=20_000))
        assert suspect(lossy(100), host(waited_ns=5 * MS), Fraction(0), POLICY, form) is not None
        assert suspect(lossy(102), host(waited_ns=5 * MS), Fraction(0), POLICY, form) is None


RATE = 20_000
WATCHED = SuspicionPolicy(held_up_max_ns=None, asks_for_pattern=False)
QUEUE = 500
"""Full in 12.5 ms where 20,000 frames/s come each way."""
LASTS_S = 6


def gaps(*begins_ms: float, stands_ms: int = 30, listed: int = 64, **given: Any) -> TrialReport:
    """A trial of 6 s in which the gateway stands still now and then: what its queue does not hold is lost."""
    lost = (stands_ms * MS - QUEUE * 10**9 // (2 * RATE)) * RATE // 10**9
    frames, ways, whole = RATE * LASTS_S, [], report()
    first = [int(begin_ms * RATE / 1000) + QUEUE // 2 for begin_ms in begins_ms]
    by_slice = [0] * 100
    for index in (begin + number for begin in first for number in range(lost)):
        by_slice[index * 100 // frames] += 1
    runs = tuple(LossRun(index=index, length=lost) for index in first)
    loss = changed(whole.directions[0].foreground.loss, runs=len(runs), longest_run=lost, by_slice=tuple(by_slice))
    for way in whole.directions:
        count = {
            "intended": frames,
            "offered": frames,
            "received": frames - lost * len(first),
            "lost": lost * len(first),
        }
        counts = changed(way.foreground, **count, loss=loss)
        ways.append(changed(way, frames_per_second=RATE, foreground=counts, longest_loss_runs=runs[:listed], **given))
    return changed(whole, directions=tuple(ways))


def watched(*hold_ups: tuple[float, float], waited_ms: float = 0, others_ms: float = 0) -> HostFacts:
    """A host that others held up at times for so long, both in milliseconds."""
    times = tuple(
        HoldUp(begin_ns=int(at * MS), end_ns=int((at + long) * MS) + 10 * MS, held_up_ns=int(long * MS))
        for at, long in hold_ups
    )
    total_ns = int((waited_ms or sum(long for _, long in hold_ups)) * MS)
    return changed(host(waited_ns=total_ns), queue_frames=QUEUE, hold_ups=times, other_hold_ups_ns=int(others_ms * MS))


def reason(trial: TrialReport, of_host: HostFacts, form: TrialForm = PLAIN) -> str | None:
    suspicion = suspect(trial, of_host, Fraction(0), WATCHED, form)
    return None if suspicion is None else suspicion.reason


class TestAWatchedHost:
    @pytest.mark.parametrize("seed", range(30))
    def test_slices_too_short_to_fill_a_queue_excuse_no_gateway_that_stands_still_by_itself(self, seed: int) -> None:
        """Every two seconds, while others have 1 or 2 % of its CPU: together they had it long enough for all of it."""
        drawn = Random(seed)
        stands = gaps(*(first + drawn.random() for first in (500, 2500, 4500)))
        slices = [(drawn.uniform(0, 6000), drawn.uniform(0.2, 2)) for _ in range(64)]
        of_host = watched(*sorted(slices), waited_ms=drawn.uniform(60, 140))
        assert reason(stands, of_host) is None
        assert reason(stands, changed(of_host, hold_ups=None)) is not None, "where it is not known when it was"

    def test_a_hold_up_excuses_the_losses_of_its_moment(self) -> None:
        said = reason(gaps(2000), watched((100, 1), (2000, 30)))
        assert said == (
            "others had the gateway's CPUs once, at 2s for 30ms, and no more frames were lost than were due meanwhile"
        )

    @pytest.mark.parametrize("at_ms", [0, 1000, 1800, 2100, 4000])
    def test_and_no_others(self, at_ms: float) -> None:
        assert reason(gaps(2000), watched((at_ms, 30))) is None

    def test_each_gap_needs_a_hold_up(self) -> None:
        stands = gaps(500, 2500, 4500)
        said = reason(stands, watched((500, 30), (2500, 31), (4500, 30)))
        assert said is not None and "3 times, for up to 31ms each" in said
        assert reason(stands, watched((500, 30), (2500, 90))) is None

    def test_a_hold_up_excuses_no_more_than_was_due_meanwhile(self) -> None:
        """13 ms are longer than the queue, and shorter than what was lost."""
        assert reason(gaps(2000), watched((2000, 13))) is None

    def test_two_at_one_time_count_once_for_what_both_may_have_lost(self) -> None:
        assert reason(gaps(2000), watched((1980, 13), (2000, 13))) is not None
        assert reason(gaps(2000, 4000), watched((1980, 30), (2000, 30))) is None

    def test_a_short_one_beside_a_long_one_does_not_end_its_moment(self) -> None:
        """Two threads of the gateway waited, one for less time than the other."""
        long = HoldUp(begin_ns=1500 * MS, end_ns=2000 * MS, held_up_ns=300 * MS)
        short = HoldUp(begin_ns=1600 * MS, end_ns=1650 * MS, held_up_ns=20 * MS)
        assert reason(gaps(1950), changed(watched(), hold_ups=(long, short))) is not None

    def test_frames_are_lost_until_the_queue_is_emptied(self) -> None:
        """In ten times the time in which it fills, for a gateway that carries a tenth more."""
        assert reason(gaps(2000), watched((1890, 20))) is not None

    def test_a_frame_that_was_sent_late_was_due_before_the_hold_up(self) -> None:
        assert reason(gaps(2000), watched((2050, 30))) is None
        late = tuple(burst(90 * number, 60, 1) for number in range(32))
        assert reason(gaps(2000, late_bursts=late[:31]), watched((2050, 30))) is None
        assert reason(gaps(2000, late_bursts=late), watched((2050, 30))) is not None, (
            "it may be in no burst that is listed"
        )

    def test_of_more_gaps_than_are_listed_the_hundredth_of_the_trial_is_known(self) -> None:
        assert reason(gaps(500, 2500, listed=1), watched((500, 30), (2500, 30))) is not None
        assert reason(gaps(500, 2500, listed=1), watched((500, 30), (3500, 30))) is None

    def test_late_frames_are_excused_as_far_as_they_were_due_meanwhile(self) -> None:
        late = gaps(2000)
        ways = [
            changed(way, foreground=changed(way.foreground, lost=0, late=way.foreground.lost))
            for way in late.directions
        ]
        late = changed(late, directions=tuple(ways))
        assert reason(late, watched((4000, 30))) is not None, "when they were due is not known"
        assert reason(late, watched((4000, 13))) is None

    def test_a_list_that_is_full_of_long_ones_may_lack_some(self) -> None:
        others = tuple((90 * number, 13) for number in range(64))
        assert reason(gaps(5950), watched(*others, others_ms=40)) is not None
        assert reason(gaps(5950), watched(*others[:-1], (5600, 1), others_ms=40)) is None

    def test_a_list_without_hold_ups_lacks_none(self) -> None:
        """A damaged journal may say so."""
        for form in (PLAIN, TrialForm(bursts=Bursts(frames=100, frames_per_second=RATE))):
            assert reason(gaps(2000), watched(others_ms=40), form) is None

    def test_where_an_index_is_no_time_a_long_hold_up_may_be_at_any(self) -> None:
        form = TrialForm(bursts=Bursts(frames=100, frames_per_second=RATE))
        assert reason(gaps(2000), watched((4000, 30)), form) is not None
        assert reason(gaps(2000), watched(*((number, 1) for number in range(60))), form) is None


def burst(at_ms: float, lateness_ms: float, frames: int | None = None) -> LateBurst:
    """Frames that the Tester sent at once, which had become due in so many milliseconds."""
    due = int(lateness_ms * RATE / 1000) if frames is None else frames
    return LateBurst(index=int(at_ms * RATE / 1000), frames=due, lateness_ns=int(lateness_ms * MS))


class TestAHeldUpHostAndALateTester:
    """The gateway's queue holds 12.5 ms of frames, 11.25 if a tenth is in use: 20 ms of them overflow it, 10 ms do not.

    Both happen so often that chance may put a loss behind either, and together once.
    """

    LATE_MS = tuple(at_ms for at_ms in range(100, 6000, 300) if abs(at_ms - 2000) > 300)
    HELD_UP = tuple((at_ms + 150, 10.0) for at_ms in LATE_MS)

    def reason(
        self, trial: TrialReport, late: LateBurst, *hold_up: tuple[float, float], is_watched: bool = True
    ) -> str | None:
        trial = changed(
            trial, directions=tuple(changed(way, late_bursts=self.all_late(late)) for way in trial.directions)
        )
        of_host = watched(*sorted((*self.HELD_UP, *hold_up)))
        return reason(trial, of_host if is_watched else changed(watched(*hold_up), hold_ups=None))

    def all_late(self, late: LateBurst) -> tuple[LateBurst, ...]:
        return tuple(sorted((*(burst(at_ms, 10) for at_ms in self.LATE_MS), late), key=lambda each: each.index))

    @pytest.mark.parametrize(("held_up_ms", "late_ms"), [(1990, 2000), (2010, 2000), (1995, 1990)])
    def test_together_they_overflow_a_queue_that_holds_either(self, held_up_ms: float, late_ms: float) -> None:
        said = self.reason(gaps(min(late_ms, held_up_ms), stands_ms=20), burst(late_ms, 10), (held_up_ms, 10))
        assert said == (
            f"others had the gateway's CPUs once, at {held_up_ms / 1000:g}s for 10ms, the Tester sent up to 10ms late,"
            " and no more frames were lost than were due meanwhile"
        )

    def test_that_is_the_testers(self) -> None:
        trial = gaps(1990, stands_ms=20, late_bursts=self.all_late(burst(2000, 10)))
        suspicion = suspect(trial, watched(*self.HELD_UP, (1990, 10)), Fraction(0), WATCHED)
        assert suspicion is not None and suspicion.whose == "Tester"

    def test_they_excuse_no_more_than_was_due_in_both(self) -> None:
        assert self.reason(gaps(1990), burst(1990, 8), (1998, 8)) is None

    def test_what_waited_for_both_waited_once(self) -> None:
        """The machine stood still, not only one of its CPUs: 10 ms of frames fill no queue."""
        trial, late = gaps(2000, stands_ms=20), burst(2000, 10)
        assert self.reason(trial, late, (2000, 10)) is not None, "10 of the 20 ms in which the watch looked once"
        both = HoldUp(begin_ns=2000 * MS, end_ns=2010 * MS, held_up_ns=10 * MS)
        ways = tuple(changed(way, late_bursts=self.all_late(late)) for way in trial.directions)
        of_host = watched(*self.HELD_UP)
        assert of_host.hold_ups is not None
        of_host = changed(of_host, hold_ups=(*of_host.hold_ups, both))
        assert reason(changed(trial, directions=ways), of_host) is None

    @pytest.mark.parametrize(("apart_ms", "is_suspect"), [(60, True), (95, False)])
    def test_in_between_a_tenth_is_worked_off(self, apart_ms: float, is_suspect: bool) -> None:
        """Of 10 ms of frames 5 or 1.5 are left when the gateway is held up for 9.5 ms."""
        at_ms = 1980 + apart_ms
        said = self.reason(gaps(at_ms, stands_ms=20), burst(1980, 10), (at_ms, 9.5))
        assert (said is not None) == is_suspect

    def test_losses_elsewhere_are_the_gateways(self) -> None:
        assert self.reason(gaps(1990, 4000, stands_ms=20), burst(1990, 10), (2000, 10)) is None

    def test_what_was_lost_before_the_queue_overflowed_is_the_gateways(self) -> None:
        """The Tester was late, and the gateway held up for long before all of it was worked off."""
        assert self.reason(gaps(1980, 2040, stands_ms=20), burst(1980, 10), (2040, 30)) is None
        assert self.reason(gaps(2040, stands_ms=20), burst(1980, 10), (2040, 30)) is not None

    def test_many_that_are_worked_off_do_not_add_up(self) -> None:
        late = tuple(burst(60 * number + 30, 1) for number in range(31))
        slices = ((60 * number, 1) for number in range(60))
        assert reason(gaps(500, 1200, stands_ms=20, late_bursts=late), watched(*slices)) is None

    def test_where_it_is_not_known_when_the_gateway_was_held_up(self) -> None:
        def said(held_up_ms: float, at_ms: float = 2000) -> str | None:
            return self.reason(gaps(at_ms, stands_ms=20), burst(2000, 10), (0, held_up_ms), is_watched=False)

        assert said(10) is not None
        assert said(2) is None, "12 ms of frames fill no queue"
        assert said(10, at_ms=4200) is not None, "the gateway may have been held up there"
        assert said(4, at_ms=4200) is None, "but not for long enough"

    def test_a_gateway_that_was_not_held_up_is_not_excused_by_late_bursts_alone(self) -> None:
        policy = SuspicionPolicy(held_up_max_ns=None, asks_for_pattern=True)
        late = self.all_late(burst(2000, 10))
        trial = changed(gaps(2000, stands_ms=20, late_bursts=late), ports=report().ports)
        assert suspect(trial, changed(watched(), hold_ups=None), Fraction(0), policy) is None
        assert suspect(trial, changed(watched((0, 1)), hold_ups=None), Fraction(0), policy) is not None, "once more"
        assert suspect(trial, watched(), Fraction(0), policy) is None

    def test_a_queue_that_cannot_be_read(self) -> None:
        """It loses what piled up in hold-ups and behind late bursts, each too short for the queues that can be read."""
        indexes = [time_ms * RATE // 1000 for time_ms in (800, 1900, 2900, 5100)]
        trial = TestHoldUpsShorterThanTheQueue.bucket(*indexes)
        way = changed(trial.directions[0], late_bursts=(burst(799, 5), burst(2899, 5)))
        trial = changed(trial, directions=(way, trial.directions[1]))
        said = reason(trial, watched((1899, 5), (5099, 5)))
        assert said is not None and said.endswith("that was when frames were lost, no more of them than were due")
        assert reason(trial, watched((1899, 5), (4000, 5))) is None


class TestHoldUpsShorterThanTheQueue:
    """The gateway may have a queue that is shorter than those that can be read, such as the bucket of a policer."""

    @staticmethod
    def bucket(*indexes: int, frames: int = 20) -> TrialReport:
        """A trial of 6 s whose forward direction loses runs of so many frames."""
        whole = gaps()
        way = whole.directions[0]
        offered, lost = way.foreground.offered, frames * len(indexes)
        loss = changed(way.foreground.loss, runs=len(indexes), longest_run=frames)
        counts = changed(way.foreground, received=offered - lost, lost=lost, loss=loss)
        runs = tuple(LossRun(index=index, length=frames) for index in indexes)
        return changed(
            whole, directions=(changed(way, foreground=counts, longest_loss_runs=runs), *whole.directions[1:])
        )

    def test_in_a_trial_that_is_watched_they_excuse_what_chance_does_not_put_there(self) -> None:
        indexes = [time_ms * RATE // 1000 for time_ms in (800, 2900, 5100)]
        said = reason(self.bucket(*indexes), watched((799, 5), (1500, 5), (2899, 5), (5099, 5)))
        assert said == (
            "others had the gateway's CPUs 4 times, for up to 5ms each, and that was when frames were lost, no more of"
            " them than were due"
        )
        assert reason(self.bucket(*indexes), watched((799, 5), (1500, 5), (2899, 5))) is None, "one was at another time"
        assert reason(self.bucket(*indexes), watched(*((number * 90, 5) for number in range(64)))) is None, "chance"
        many = self.bucket(*indexes, frames=6 * RATE // 1000)
        assert reason(many, watched((799, 5), (2899, 5), (5099, 5))) is None, "more than were due"

    def test_a_longer_one_elsewhere_changes_nothing(self) -> None:
        indexes = [time_ms * RATE // 1000 for time_ms in (800, 2900, 5100)]
        short = ((799, 5), (2899, 5), (5099, 5))
        assert reason(self.bucket(*indexes), watched(*short, (4000, 30))) is not None
        assert reason(self.bucket(*indexes), watched(*short[:2], (4000, 30))) is None

    def test_without_a_watch_they_only_ask_for_another_attempt(self) -> None:
        policy = SuspicionPolicy(held_up_max_ns=None, asks_for_pattern=True)
        of_host = changed(watched(waited_ms=3), hold_ups=None)

        def is_suspect(trial: TrialReport, policy: SuspicionPolicy = policy) -> bool:
            return suspect(trial, of_host, Fraction(0), policy) is not None

        assert is_suspect(self.bucket(4000, frames=20))
        assert not is_suspect(self.bucket(4000, frames=20), replace(policy, asks_for_pattern=False))
        assert not is_suspect(self.bucket(4000, frames=20), replace(policy, held_up_max_ns=4 * MS))
        assert not is_suspect(self.bucket(4000, frames=3 * RATE // 1000 + 2)), "more than were due"
        assert not is_suspect(self.bucket(4000, 5000, frames=1)), "one at a time"


class TestThePattern:
    def stalled(self, *, apart: int = 0, drops: tuple[int, int] = (40, 40), runs: int = 1) -> TrialReport:
        """Both directions lose 40 frames in a row, the second of them `apart` frames later."""
        whole = report()
        ways = []
        for begin, way in zip((500, 500 + apart), whole.directions, strict=True):
            loss = LossFacts(
                runs=runs, longest_run=40, first_index=begin, last_index=begin + 39, first_runs=(), by_slice=()
            )
            counts = changed(way.foreground, received=way.foreground.received - 40, lost=40, loss=loss)
            ways.append(changed(way, foreground=counts))
        ports = {
            side: changed(port, peer_queue_drops=dropped)
            for (side, port), dropped in zip(whole.ports.items(), drops, strict=True)
        }
        return changed(whole, directions=tuple(ways), ports=ports)

    def test_one_run_in_both_directions_at_once(self) -> None:
        suspicion = suspect(self.stalled(), host(), Fraction(0), POLICY)
        assert suspicion is not None and "one run of 40ms" in suspicion.reason

    def test_a_hold_up_at_another_time_does_not_rule_it_out(self) -> None:
        held_up = (HoldUp(begin_ns=0, end_ns=20 * MS, held_up_ns=10 * MS),)
        suspicion = suspect(self.stalled(), changed(host(), hold_ups=held_up), Fraction(0), POLICY)
        assert suspicion is not None and "one run of 40ms" in suspicion.reason

    def test_in_the_last_attempt_a_pattern_blames_nobody(self) -> None:
        policy = SuspicionPolicy(held_up_max_ns=MS, asks_for_pattern=False)
        assert suspect(self.stalled(), host(), Fraction(0), policy) is None

    def test_where_the_tester_works_on_the_gateways_cpus_a_pattern_blames_nobody(self) -> None:
        shared = changed(host(), cpus=(), threads=())
        assert suspect(self.stalled(), shared, Fraction(0), POLICY) is None

    @pytest.mark.parametrize("given", [{"apart": 41}, {"drops": (40, 0)}, {"runs": 2}])
    def test_anything_else_is_the_gateways(self, given: Any) -> None:
        assert suspect(self.stalled(**given), host(), Fraction(0), POLICY) is None


def seen(recipe: str = "linux-router4", **tables: Any) -> Campaign:
    """A campaign on a test bed that reads the gateway's host."""
    wanted = {"throughput": THROUGHPUT, "testbed": {"kind": "netns", "recipe": recipe}, **tables}
    wanted = {name: table for name, table in wanted.items() if table}
    sizes = {"frame_sizes": {"family": "ipv4", "octets": [64]}}
    return complete_campaign(campaign_from_dict({"repetitions": 2, "traffic": sizes, **wanted}))


def measure(path: Path, device: SimulatedDevice, wanted: Campaign) -> tuple[RunResult, ...]:
    engine = SimulatedEngine(device)
    with Journal(path) as journal:
        bed = SimulatedTestBed(wanted, engine.gateway)
        return run_campaign(wanted, plan_of(wanted), engine, journal, can=bed.can)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trials.jsonl"


class TestACampaign:
    @pytest.mark.parametrize("search", ["binary", "mlrsearch"])
    @pytest.mark.parametrize("every", [2, 3, 5])
    def test_a_host_that_is_held_up_now_and_then_changes_no_result(self, path: Path, search: str, every: int) -> None:
        device = SimulatedDevice(capacity_forward=CAPACITY, held_up_every=every)
        (result,) = measure(path, device, seen(throughput={**THROUGHPUT, "search": search}))
        assert result.limited_by == "gateway"
        assert all(CAPACITY - 1000 < bound <= CAPACITY for bound in result.lower_bounds)  # type: ignore[attr-defined]
        records = read_journal(path)
        suspects = [record for record in records if record.suspicion is not None]
        assert result.suspect_trials == len(suspects) > 0
        for record in suspects:
            assert record.validity.valid and record.verdict is not None and not record.verdict.passed
            following = records[record.order.trial_number].order
            assert (following.attempt, following.step) == (record.order.attempt + 1, record.order.step)

    def test_connections_lost_to_a_hold_up_are_no_limit_of_the_gateway(self, path: Path) -> None:
        rates = {"maximum": "200k", "minimum": 1000, "resolution": 1000}
        wanted = seen(
            "nft-nat44",
            connections={"count": 20_000, "timeout": "50ms"},
            connection_establishment_rate=rates,
            throughput={},
        )
        device = SimulatedDevice(capacity_forward=10**6, establishment_rate=80_000, held_up_every=3)
        (result, *_) = measure(path, device, wanted)
        assert result.limited_by == "gateway" and result.suspect_trials > 0
        assert all(79_000 < bound <= 80_000 for bound in result.lower_bounds)  # type: ignore[attr-defined]

    def test_a_table_that_hold_ups_keep_from_being_filled_is_no_limit_of_the_gateway(self, path: Path) -> None:
        wanted = seen("nft-nat44", connections={"count": 20_000, "rate": "10k", "timeout": "50ms"}, repetitions=1)
        (result,) = measure(path, SimulatedDevice(capacity_forward=10**6, held_up_every=1), wanted)
        first = read_journal(path)[0]
        assert first.connections is not None
        attempts = first.connections.phase_one
        assert {attempt.connections_per_second for attempt in attempts} == {10_000}, "the rate is not to blame"
        assert all(attempt.suspicion is not None for attempt in attempts)
        assert result.rate is None and result.limited_by == "host"  # type: ignore[attr-defined]

    def test_a_load_far_above_the_capacity_fails_at_once(self, path: Path) -> None:
        measure(path, SimulatedDevice(capacity_forward=CAPACITY, held_up_every=1), seen())
        first = read_journal(path)[0]
        assert first.order.step.frames_per_second > 2 * CAPACITY
        assert first.is_decisive and first.host is not None and first.host.held_up_ns == 5 * MS

    def test_a_host_that_is_never_quiet_gives_no_figure_of_the_gateway(self, path: Path) -> None:
        wanted = seen(validity={"suspect_retries": 2}, repetitions=1)
        (result,) = measure(path, SimulatedDevice(capacity_forward=CAPACITY, held_up_every=1), wanted)
        assert result.limited_by == "host"
        assert result.rate is None  # type: ignore[attr-defined]
        attempts = [record.order.attempt for record in read_journal(path) if record.suspicion is not None]
        assert attempts[:3] == [0, 1, 2] and max(attempts) == 2

    def test_retries_of_both_kinds_are_counted_apart(self) -> None:
        wanted = seen(validity={"retries": 0, "suspect_retries": 2})
        patience = Patience(wanted.validity, wanted.trial, duration_ns=10**9)
        assert patience.ends and not patience.ends_if_suspect

    def test_what_may_hold_it_up_is_refused_where_the_host_is_not_read(self) -> None:
        with pytest.raises(ConfigError, match=r"validity\.held_up_max"):
            campaign_from_dict({"testbed": {"kind": "loopback"}, "validity": {"held_up_max": "2ms"}})

    def test_a_late_burst_makes_a_trial_suspect_on_any_bed(self) -> None:
        """So it can be said everywhere how often it is made again."""
        document = {
            "testbed": {"kind": "loopback"},
            "gateway": {"technology": "router44"},
            "frame_loss": {"rates": [1]},
        }
        loopback = campaign_from_dict({**document, "validity": {"suspect_retries": 1}})
        assert loopback.validity.suspect_retries == 1

    def test_a_trial_that_is_made_again_is_watched_and_slices_excuse_it_no_more(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=CAPACITY, held_up_every=1, held_up_in_slices=True)
        (result,) = measure(path, device, seen(repetitions=1))
        assert result.limited_by == "gateway"
        records = read_journal(path)
        suspects = [record for record in records if record.suspicion is not None]
        assert suspects and all(record.host is not None and record.host.hold_ups is None for record in suspects)
        for record in suspects:
            following = records[record.order.trial_number]
            assert following.is_decisive and following.host is not None and following.host.hold_ups == ()

    def test_the_report_tells_how_many_of_which_runs_and_why(self, tmp_path: Path) -> None:
        document = {"repetitions": 1, "throughput": THROUGHPUT, "testbed": {"kind": "netns", "recipe": "linux-router4"}}
        device = SimulatedDevice(capacity_forward=CAPACITY, held_up_every=3)
        measured = session.measure(
            campaign_from_dict(document), output=tmp_path / "result", equipment=simulated_equipment(device)
        )
        host, (run, *_) = measured.document.host, measured.document.runs
        assert host is not None and host.suspect == sum(run.suspect_trials for run in measured.document.runs) > 0
        assert host.waited_ns_max == 5 * MS and sum(reason.trials for reason in host.reasons) == host.suspect
        page = measured.report_file.read_text()
        assert "Was the gateway&#39;s host quiet?" in page or "Was the gateway's host quiet?" in page
        assert f"run {run.number}: {run.suspect_trials}" in page and "▽\N{NO-BREAK SPACE}suspect" in page

    def test_a_host_that_is_never_quiet_is_named_in_place_of_every_figure(self, tmp_path: Path) -> None:
        document = {
            "repetitions": 1,
            "testbed": {"kind": "netns", "recipe": "linux-router4"},
            "throughput": THROUGHPUT,
            "delay": {"load": ["100%"], "duration": "2s", "first_tag": "1s", "tags": 50},
        }
        device = SimulatedDevice(capacity_forward=CAPACITY, held_up_every=1)
        measured = session.measure(
            campaign_from_dict(document), output=tmp_path / "result", equipment=simulated_equipment(device)
        )
        assert {run.limited_by for run in measured.document.runs} == {"host"}
        assert not any(row.quantity.is_measured for row in measured.document.rows())
        page = measured.report_file.read_text()
        assert "host not quiet" in page and "Tester-limited" not in page
        assert any("host was not quiet" in sentence for sentence in measured.document.claim.unmet)

    def test_it_resumes_to_the_same_result(self, path: Path) -> None:
        device = SimulatedDevice(capacity_forward=CAPACITY, held_up_every=3)
        whole = measure(path, device, seen())
        content, suspicions = path.read_bytes(), [record.suspicion for record in read_journal(path)]
        path.write_bytes(content[: len(content) // 2])
        assert measure(path, device, seen()) == whole
        assert [record.suspicion for record in read_journal(path)] == suspicions
