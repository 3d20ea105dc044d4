"""Losses behind bursts that the Tester sent late: when they are the Tester's, and how seldom chance makes them so."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from random import Random

import pytest
from tests.trial_facts import changed, record_of, with_losses
from tests.unit.test_judgement import report

from gatemark.campaign.facts import TrialTally
from gatemark.stored import trial_row
from gatemark.trial.form import PLAIN, Bursts, RateStep, TrialForm
from gatemark.trial.host import HostFacts
from gatemark.trial.report import LateBurst, TrialReport
from gatemark.trial.suspicion import CHANCE_MAX, SuspicionPolicy, suspect
from gatemark.trial.verdict import judge

RATE = 15_000
FRAMES = 15_000
CAPACITY = 16_000
QUEUE_S = 0.0014
POLICY = SuspicionPolicy(held_up_max_ns=None, asks_for_pattern=False)


def burst(index: int, frames: int, lateness_ms: float = 2) -> LateBurst:
    return LateBurst(index=index, frames=frames, lateness_ns=int(lateness_ms * 10**6))


def trial(lost: Collection[int], *bursts: LateBurst, late: int = 0) -> TrialReport:
    """A second forward in which these frames were lost, behind these bursts or not."""
    whole = report()
    direction = with_losses(
        whole.directions[0], lost, frames=FRAMES, frames_per_second=RATE, late_bursts=bursts, late=late
    )
    return changed(whole, directions=(direction,))


def host_of(*, queue_frames: int) -> HostFacts:
    return HostFacts(read_ns=10**9, step_ns=10**7, queue_frames=queue_frames, cpus=(), threads=())


def said(
    failed: TrialReport, tolerance: Fraction = Fraction(0), form: TrialForm = PLAIN, *, queue_frames: int = 0
) -> str | None:
    suspicion = suspect(failed, host_of(queue_frames=queue_frames), tolerance, POLICY, form)
    return None if suspicion is None else suspicion.reason


def policed(stalls: Sequence[tuple[float, float]], *, load: int = RATE) -> TrialReport:
    """What a token bucket that passes `CAPACITY` and holds `QUEUE_S` loses where the Tester stalls now and then."""
    sent: list[float] = []
    bursts: list[list[float]] = []
    due = [index / load for index in range(FRAMES)]
    for index, at in enumerate(due):
        until = next((begin + long for begin, long in stalls if begin <= at < begin + long), at)
        sent.append(until)
        if until > at:
            if bursts and bursts[-1][2] == until:
                bursts[-1][1] += 1
            else:
                bursts.append([index, 1, until, until - at])
    lost, tokens, before = set(), QUEUE_S * CAPACITY, 0.0
    for index, at in enumerate(sent):
        tokens, before = min(QUEUE_S * CAPACITY, tokens + (at - before) * CAPACITY), at
        if tokens < 1:
            lost.add(index)
        else:
            tokens -= 1
    late = [
        LateBurst(index=int(first), frames=int(count), lateness_ns=int(by * 10**9)) for first, count, _, by in bursts
    ]
    return trial(lost, *sorted(late, key=lambda each: -each.lateness_ns)[:32])


class TestATokenBucket:
    @pytest.mark.parametrize("seed", range(20))
    def test_what_it_loses_behind_stalls_of_the_tester_is_the_testers(self, seed: int) -> None:
        drawn = Random(seed)
        stalls = [(drawn.uniform(0.05 * k, 0.05 * k + 0.04), drawn.uniform(0.0005, 0.005)) for k in range(19)]
        failed = policed(stalls)
        assert not judge(failed, Fraction(0)).passed
        words = said(failed)
        assert words is not None and words.startswith("all ") and "that the Tester sent up to" in words

    def test_without_stalls_it_loses_nothing(self) -> None:
        assert judge(policed([]), Fraction(0)).passed

    @pytest.mark.parametrize("seed", range(20))
    def test_beyond_its_rate_stalls_excuse_nothing(self, seed: int) -> None:
        drawn = Random(seed)
        stalls = [(drawn.uniform(0.05 * k, 0.05 * k + 0.04), drawn.uniform(0.0005, 0.005)) for k in range(19)]
        assert said(policed(stalls, load=17_000)) is None


class TestTheRule:
    def test_the_sentence(self) -> None:
        assert said(trial(range(5020, 5030), burst(5000, 30, 2.1))) == (
            "all 10 lost frames follow a burst that the Tester sent 2.1ms late"
        )
        assert said(trial([5029], burst(5000, 30))) == (
            "the only lost frame follows a burst that the Tester sent 2ms late"
        )
        two = trial([*range(5020, 5030), *range(9020, 9030)], burst(5000, 30), burst(9000, 40, 2.6), burst(12_000, 9))
        assert said(two) == "all 20 lost frames follow 2 bursts that the Tester sent up to 2.6ms late"

    def test_one_loss_elsewhere_is_the_gateways(self) -> None:
        lost = [*range(5020, 5030), 8000]
        assert said(trial(lost, burst(5000, 30))) is None
        assert said(trial(lost, burst(5000, 30)), Fraction(1, 15_000)) == (
            "10 of 11 lost frames follow a burst that the Tester sent 2ms late"
        )

    def test_more_than_was_sent_at_once_is_the_gateways(self) -> None:
        """It stood still for 30 ms, in which the Tester was late as well."""
        assert said(trial(range(5020, 5470), burst(5000, 30))) is None

    def test_frames_are_lost_until_the_queue_is_emptied(self) -> None:
        """In ten times the time for which the Tester was late, for a gateway that carries a tenth more."""
        assert said(trial([5100, 5250], burst(5000, 30))) is not None
        assert said(trial([5100, 5400], burst(5000, 30))) is None
        bursty = TrialForm(bursts=Bursts(frames=100, frames_per_second=20_000))
        assert said(trial([5100, 5250], burst(5000, 30)), form=bursty) is None, "an index is no time"
        assert said(trial([5010], burst(5000, 30)), form=bursty) is not None

    def test_a_burst_longer_than_the_gateways_queue_needs_no_chance(self) -> None:
        """A Tester that was kept from sending for a tenth of the trial: chance may put a run of losses there."""
        lost, long = range(5500, 6501), burst(5000, 1500, 100)
        assert said(trial(lost, long)) is None

        def of_queue(frames: int, *more: int) -> str | None:
            return said(trial([*lost, *more], long), queue_frames=frames)

        assert of_queue(1665) == "all 1,001 lost frames follow a burst that the Tester sent 100ms late"
        assert of_queue(1666) is None, "nine of ten of its places hold it"
        assert of_queue(500, 4000) is None, "lost before"
        bursts = (burst(990, 20), long, burst(9000, 1600, 110))
        beside = trial([1000, *lost], *bursts)
        assert said(beside, queue_frames=500) is None, "a queue holds the short one"
        assert said(trial(lost, *bursts), queue_frames=500) is not None

    @pytest.mark.parametrize(("index", "is_said"), [(2600, False), (2610, True), (6499, True), (6500, False)])
    def test_what_both_directions_send_at_once_fills_one_queue(self, index: int, is_said: bool) -> None:
        """In the time of 900 frames 90 are worked off: 1410 and 1500 wait. What came later overflowed nothing."""
        lossy, clean = trial(range(5500, 6001), burst(5000, 1500, 100)), trial([], burst(index, 1500, 100))
        both = changed(lossy, directions=(*lossy.directions, changed(clean.directions[0], direction="reverse")))
        assert (said(both, queue_frames=3233) is not None) == is_said

    def test_the_queue_of_a_host_that_is_not_asked_is_not_known(self) -> None:
        lost, long = range(5500, 6501), burst(5000, 1500, 100)
        assert suspect(trial(lost, long), host_of(queue_frames=0), Fraction(0), POLICY) is None
        suspicion = suspect(trial(lost, long), host_of(queue_frames=500), Fraction(0), POLICY)
        assert suspicion is not None and suspicion.whose == "Tester"

    def test_late_frames_and_faults_are_not_excused(self) -> None:
        assert said(trial([5020], burst(5000, 30), late=1)) is None

    def test_where_the_tester_was_never_late_nothing_is_said(self) -> None:
        assert said(trial([5020])) is None

    def test_a_direction_without_late_bursts_needs_none_if_it_lost_nothing(self) -> None:
        lossy, clean = trial([5020], burst(5000, 30)), trial([])
        both = changed(lossy, directions=(*lossy.directions, changed(clean.directions[0], direction="reverse")))
        assert said(both) is not None
        other = changed(trial([5020]).directions[0], direction="reverse")
        assert said(changed(both, directions=(lossy.directions[0], other))) is None

    def test_where_frames_have_to_be_lost_nothing_is_suspect(self) -> None:
        step = TrialForm(step=RateStep(after_ns=5 * 10**8, frames_per_second=500))
        failed = trial([5020], burst(5000, 30))
        assert suspect(failed, None, Fraction(0), POLICY, step) is None
        assert suspect(failed, None, Fraction(0), POLICY) is not None, "no host has to be read for it"

    @pytest.mark.parametrize("runs", [1, 2, 5])
    def test_losses_anywhere_are_seldom_taken_for_the_testers(self, runs: int) -> None:
        drawn, wrong, trials = Random(runs), 0, 300
        for _ in range(trials):
            begins = sorted(drawn.sample(range(0, FRAMES, 100), 32))
            bursts = [burst(begin, drawn.randint(1, 60), drawn.uniform(0.1, 4)) for begin in begins]
            lost = {index + more for index in drawn.sample(range(FRAMES - 9), runs) for more in range(3)}
            wrong += said(trial(lost, *bursts)) is not None
        assert wrong <= CHANCE_MAX * trials


class TestWhatBecomesOfIt:
    def test_it_counts_among_the_trials_that_say_nothing_by_the_testers_fault(self) -> None:
        failed = trial([5020], burst(5000, 30))
        suspicion = suspect(failed, None, Fraction(0), POLICY)
        assert suspicion is not None and suspicion.whose == "Tester"
        record = record_of(failed, verdict=judge(failed, Fraction(0)), suspicion=suspicion)
        assert not record.is_decisive
        tally = TrialTally([record])
        assert (tally.invalid, tally.suspect) == (1, 0)
        assert not tally.is_open_for_host_alone
        row = trial_row(record)
        assert (row.outcome, row.validity.reasons) == ("invalid", (suspicion.reason,))
