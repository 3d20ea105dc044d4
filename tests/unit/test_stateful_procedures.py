"""What the stateful procedures make of single trials: overflow, lost connections, tear-down times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pytest
from tests.trial_facts import blank, measured

from gatemark.campaign.facts import TrialTally, run_facts
from gatemark.campaign.plan import plan_of
from gatemark.config.model import Campaign
from gatemark.facts import CauseName
from gatemark.procedures.connection_tear_down_rate import run as tear_down
from gatemark.procedures.connection_tear_down_rate.run import measure_pair
from gatemark.procedures.connection_tracking_table_capacity.result import CapacityStep, Overflow
from gatemark.procedures.connection_tracking_table_capacity.run import (
    CapacityGoal,
    counted_beyond,
    lost_connections,
    next_size,
    overflow_of,
    overflow_of_all,
    search_capacity,
)
from gatemark.procedures.earlier import Earlier
from gatemark.procedures.measured import Measured, MeasureStep, search_rate
from gatemark.results.search import limited_by
from gatemark.search.goal import Goal, Measure, Observation, Outcome
from gatemark.trial.cause import Cause
from gatemark.trial.cell import Run
from gatemark.trial.host import HostFacts
from gatemark.trial.loss import LossFacts
from gatemark.trial.record import ConnectionFacts, PhaseOne
from gatemark.trial.report import Counts, DirectionResult, TrialReport
from gatemark.trial.verdict import Verdict


def report(
    *,
    lost: int = 0,
    faults: Mapping[str, int] | None = None,
    duplicate: int = 0,
    slices: Mapping[int, int] | None = None,
) -> TrialReport:
    faulty, offered = max((faults or {}).values(), default=0), 1000
    by_slice = tuple((slices or {}).get(number, 0) for number in range(100))
    counts = blank(
        Counts,
        intended=offered,
        offered=offered,
        received=offered - lost - faulty,
        faulty=faulty,
        duplicate=duplicate,
        lost=lost,
        faults=dict(faults or {}),
        loss=blank(LossFacts, by_slice=by_slice),
    )
    direction = blank(
        DirectionResult,
        direction="forward",
        frames_per_second=1,
        intended_duration_ns=1,
        sending_ns=1,
        lateness_max_ns=0,
        gave_up=False,
        foreground=counts,
    )
    return blank(TrialReport, directions=(direction,))


def failed(first: TrialReport | None, validation: TrialReport | None = None, *, collapsed: bool = False) -> Measured:
    observation = Observation(frames_per_second=1, duration_ns=1, outcome=Outcome.FAILED)
    if first is None and not collapsed:
        return Measured(observation=observation)
    attempts = () if first is None else (blank(PhaseOne, verdict=Verdict(passed=False), report=first),)
    facts = ConnectionFacts(phase_one=attempts, collapse="gone" if collapsed else None)
    return measured(observation, validation or first or blank(TrialReport), connections=facts)


@pytest.mark.parametrize(
    ("trial", "expected"),
    [
        (failed(report(lost=5)), "refused"),
        (failed(report(faults={"untranslated_source": 5})), "untranslated"),
        (failed(report(lost=2, faults={"untranslated_source": 5})), "untranslated"),
        (failed(report(lost=5, faults={"untranslated_source": 2})), "refused"),
        (failed(report(faults={"payload": 5})), "other"),
        (failed(report(duplicate=5)), "other"),
        (failed(report(), report(lost=5)), "evicted"),
        (failed(report(), report(faults={"wrong_owner": 5})), "evicted"),
        (failed(report()), "evicted"),  # every frame arrived, the gateway counts too few connections
        (failed(report(), report(duplicate=5)), "other"),
        (failed(report(lost=5), collapsed=True), "collapsed"),
        (failed(None, collapsed=True), "collapsed"),
        (failed(None), "other"),
    ],
)
def test_what_happened_to_connections_beyond_the_capacity(trial: Measured, expected: Overflow) -> None:
    assert overflow_of(trial) == expected


def cause_named(name: CauseName, *, explained: int = 90, is_fixed: bool = False) -> Cause:
    return Cause(
        cause=name, direction="forward", traffic_class="foreground", field=None, sentence="", what="", lost=90,
        explained=explained, chance_log10=-9.0, is_fixed=is_fixed,
    )  # fmt: skip


def refused_with(*causes: Cause, lost: int = 90) -> Measured:
    trial = failed(report(lost=lost))
    assert trial.record is not None
    return replace(trial, record=trial.record.model_copy(update={"causes": causes}))


PORT = cause_named("fields", is_fixed=True)


@pytest.mark.parametrize(
    ("trials", "expected"),
    [
        ([refused_with(PORT)], "filtered"),
        ([refused_with(PORT), refused_with(lost=3)], "filtered"),  # three lost frames have no cause
        ([refused_with(PORT), refused_with(), refused_with(PORT)], "refused"),  # a table is full below that size
        ([refused_with(lost=3)], "refused"),
        ([refused_with(cause_named("fields"))], "refused"),  # others with the same port were let in
        ([refused_with(cause_named("fields", is_fixed=True, explained=86))], "refused"),
        ([refused_with(cause_named("end"))], "refused"),
    ],
)
def test_all_connections_with_a_port_are_filtered(trials: Sequence[Measured], expected: Overflow) -> None:
    assert overflow_of_all(trials) == expected


@pytest.mark.parametrize(
    ("before", "after", "causes", "expected"),
    [
        (1000, 1000, (), "unusable"),
        (1000, 960, (), "unusable"),
        (1000, 955, (), "expired"),
        (1000, None, (), "unusable"),
        (1000, 1090, (), "unusable"),  # strangers were let in
        (990, 1000, (), "expired"),
        (971, 1000, (), "expired"),
        (970, 1000, (), "evicted"),
        (910, 910, (), "evicted"),
        (None, None, (), "evicted"),
        (None, None, ("end", "age"), "expired"),
        (1000, 1000, ("age",), "expired"),
    ],
)
def test_what_was_held_after_phase_one_was_not_evicted(
    before: int | None, after: int | None, causes: Sequence[CauseName], expected: Overflow
) -> None:
    """No connection is added after test phase 1, so none has to make room: 90 of 1000 could not be validated."""
    trial = failed(report(), report(lost=90))
    assert trial.record is not None and trial.record.connections is not None
    counts = {"counted_after_phase_one": before, "counted_after_phase_two": after}
    update = {
        "connections": trial.record.connections.model_copy(update=counts),
        "causes": tuple(cause_named(name) for name in causes),
    }
    assert overflow_of(replace(trial, record=trial.record.model_copy(update=update))) == expected


@pytest.mark.parametrize(
    ("before", "after", "lost", "expected"),
    [
        (None, None, 1000, "vanished"),
        (None, None, 999, "evicted"),
        (1000, 1000, 1000, "vanished"),
        (1000, 0, 1000, "expired"),
        (600, 600, 1000, "evicted"),
    ],
)
def test_a_table_that_makes_room_keeps_some(
    before: int | None, after: int | None, lost: int, expected: Overflow
) -> None:
    trial = failed(report(), report(lost=lost))
    assert trial.record is not None and trial.record.connections is not None
    counts = {"counted_after_phase_one": before, "counted_after_phase_two": after}
    update = {"connections": trial.record.connections.model_copy(update=counts)}
    assert overflow_of(replace(trial, record=trial.record.model_copy(update=update))) == expected


@pytest.mark.parametrize(("in_phase_one", "in_validation", "expected"), [(1, 44, "evicted"), (1, 43, "expired")])
def test_what_the_host_says_it_evicted_was_evicted(in_phase_one: int, in_validation: int, expected: Overflow) -> None:
    """One was missed after test phase 1; each frame of an evicted one made an entry again, which evicted another."""
    trial = failed(report(), report(lost=90))
    assert trial.record is not None and trial.record.connections is not None
    (attempt,) = trial.record.connections.phase_one
    first, validation = (
        blank(HostFacts, counters={"conntrack.early_drop": count}) for count in (in_phase_one, in_validation)
    )
    facts = {"phase_one": (attempt.model_copy(update={"host": first}),), "counted_after_phase_one": 999}
    connections = trial.record.connections.model_copy(update=facts)
    update = {"connections": connections, "host": validation}
    assert overflow_of(replace(trial, record=trial.record.model_copy(update=update))) == expected


CHAIN = "conntrack.chaintoolong"


@pytest.mark.parametrize(
    ("lost", "phase_one", "later", "expected"),
    [
        (40, {CHAIN: 40, "conntrack.drop": 1, "ip.InDiscards": 40}, None, {CHAIN: 40}),
        (40, {CHAIN: 2}, None, {CHAIN: 2}),
        (0, {"conntrack.early_drop": 900}, {"conntrack.early_drop": 30}, {"conntrack.early_drop": 930}),
        (40, {"softnet.dropped": 40}, None, {}),
        (40, None, None, None),
    ],
)
def test_what_the_host_counted_beyond_the_capacity(
    lost: int,
    phase_one: Mapping[str, int] | None,
    later: Mapping[str, int] | None,
    expected: Mapping[str, int] | None,
) -> None:
    first = report(lost=lost)
    host, after = (None if told is None else blank(HostFacts, counters=told) for told in (phase_one, later))
    attempt = blank(PhaseOne, verdict=Verdict(passed=False), report=first, host=host)
    observation = Observation(frames_per_second=1, duration_ns=1, outcome=Outcome.FAILED)
    facts = ConnectionFacts(phase_one=(attempt,))
    trial = measured(observation, first if later is None else report(lost=900), connections=facts, host=after or host)
    assert counted_beyond(trial) == expected
    assert counted_beyond(Measured(observation=observation)) is None


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        ({0: 1}, "oldest"),
        ({0: 10, 1: 10}, "oldest"),
        ({99: 1}, "newest"),
        ({98: 10, 99: 10}, "newest"),
        ({50: 1}, "spread"),
        ({0: 10, 99: 10}, "spread"),
        (dict.fromkeys(range(50), 10), "oldest"),
        (dict.fromkeys(range(50), 5), "spread"),
        (dict.fromkeys(range(100), 10), "spread"),
        ({0: 18, 60: 2}, "oldest"),
        ({0: 17, 60: 3}, "spread"),
        ({}, None),
    ],
)
def test_which_connections_are_gone(slices: Mapping[int, int], expected: str | None) -> None:
    validation = report(lost=sum(slices.values()), slices=slices)
    assert lost_connections(failed(report(), validation)) == (expected if slices else None)
    assert lost_connections(failed(validation)) is None  # phase 1 lost them: they never were


def capacity_goal(start: int, maximum: int) -> CapacityGoal:
    rates = Goal(maximum=1000, minimum=1, resolution=100, connections=start, alpha=Fraction(1))
    return CapacityGoal(rates=rates, maximum=maximum, resolution=1, beta=Fraction(1, 5), gamma=Fraction(2, 5))


def step(connections: int, rate: int | None) -> CapacityStep:
    return CapacityStep(search="start", connections=connections, rate=rate, stop_rate=1)


class TestSizes:
    def test_the_last_doubling_ends_at_the_maximum(self) -> None:
        size = next_size(capacity_goal(100, 350), [step(100, 999), step(200, 900)])
        assert size is not None
        assert (size.search, size.rates.connections) == ("exponential", 350)
        assert (size.rates.maximum, size.rates.minimum) == (900, 180)

    def test_the_interval_is_halved_below_the_smallest_that_was_not_stored(self) -> None:
        size = next_size(capacity_goal(100, 1000), [step(100, 999), step(200, 903), step(400, None), step(300, None)])
        assert size is not None
        assert (size.search, size.rates.connections, size.rates.minimum) == ("binary", 250, 362)

    def test_it_ends(self) -> None:
        goal = capacity_goal(100, 400)
        assert next_size(goal, [step(100, None)]) is None
        assert next_size(goal, [step(100, 9), step(200, 9), step(400, 9)]) is None
        assert next_size(goal, [step(100, 9), step(101, None)]) is None

    def test_a_gateway_that_collapses_is_not_asked_again_at_that_size(self) -> None:
        asked: list[Measure] = []

        def measure(wanted: Measure) -> Measured:
            asked.append(wanted)
            full = (wanted.connections or 0) > 150
            outcome = Outcome.FAILED if full else Outcome.PASSED
            observation = Observation(frames_per_second=wanted.frames_per_second, duration_ns=1, outcome=outcome)
            return measured(observation, report(), connections=ConnectionFacts(collapse="gone" if full else None))

        result = search_capacity(capacity_goal(100, 1000), measure)
        assert (result.kind, result.lower_bound, result.upper_bound, result.overflow) == (
            "found",
            150,
            151,
            "collapsed",
        )
        sizes = [wanted.connections for wanted in asked]
        assert len(sizes) == len(set(sizes))

    def test_what_the_host_counted_is_that_of_the_trial_that_lost_most(self) -> None:
        """Near the capacity a frame or two are lost, and any counter may grow by as many."""

        def measure(wanted: Measure) -> Measured:
            lost = max(0, (wanted.connections or 0) - 150)
            outcome = Outcome.FAILED if lost else Outcome.PASSED
            observation = Observation(frames_per_second=wanted.frames_per_second, duration_ns=1, outcome=outcome)
            host = blank(HostFacts, counters={CHAIN: lost})
            return measured(observation, report(lost=lost), connections=ConnectionFacts(), host=host)

        result = search_capacity(capacity_goal(100, 1000), measure)
        assert (result.upper_bound, result.counted) == (151, {CHAIN: 50})

    def test_a_size_that_the_tester_cannot_try_ends_the_search(self) -> None:
        def measure(wanted: Measure) -> Measured:
            outcome = Outcome.TESTER_LIMITED if wanted.connections == 400 else Outcome.PASSED
            observation = Observation(frames_per_second=wanted.frames_per_second, duration_ns=1, outcome=outcome)
            return Measured(observation=observation)

        result = search_capacity(capacity_goal(100, 1000), measure)
        assert (result.kind, result.lower_bound, result.upper_bound) == ("tester_limited", 200, None)
        assert [tried.connections for tried in result.steps] == [100, 200]
        assert limited_by([result.kind]) == "tester"

    def test_a_goal_that_makes_no_sense_is_refused(self) -> None:
        goal = capacity_goal(100, 1000)
        with pytest.raises(ValueError, match="above its maximum"):
            replace(goal, maximum=99)
        with pytest.raises(ValueError, match="validation"):
            replace(goal, rates=replace(goal.rates, alpha=None))


class TestEstablishment:
    def test_the_length_of_a_trial_follows_from_its_rate(self) -> None:
        asked: list[Measure] = []

        def measure(wanted: Measure) -> Measured:
            asked.append(wanted)
            outcome = Outcome.PASSED if wanted.frames_per_second <= 300 else Outcome.FAILED
            observation = Observation(frames_per_second=wanted.frames_per_second, duration_ns=1, outcome=outcome)
            return Measured(observation=observation)

        goal = Goal(maximum=1000, minimum=1, resolution=10, connections=700, alpha=Fraction(4, 5))
        result = search_rate(goal, measure)
        assert result.kind == "found"
        assert [wanted.frames_per_second for wanted in asked] == [1000, 500, 250, 375, 312, 281, 296, 304]
        assert [wanted.duration_ns for wanted in asked[:4]] == [
            700_000_000,
            1_400_000_000,
            2_800_000_000,
            1_866_666_667,
        ]
        assert {(wanted.connections, wanted.alpha) for wanted in asked} == {(700, Fraction(4, 5))}

    def test_while_nothing_passes_it_goes_down_to_the_minimum(self) -> None:
        rates: list[int] = []

        def measure(wanted: Measure) -> Measured:
            rates.append(wanted.frames_per_second)
            observation = Observation(frames_per_second=wanted.frames_per_second, duration_ns=1, outcome=Outcome.FAILED)
            return Measured(observation=observation)

        result = search_rate(Goal(maximum=1000, minimum=3, resolution=400, connections=7), measure)
        assert result.kind == "nothing_passes"
        assert rates == [1000, 500, 250, 125, 62, 31, 15, 7, 3]

    def test_its_trials_have_no_length_of_their_own(self) -> None:
        with pytest.raises(ValueError, match="no length"):
            _ = Goal(maximum=1, minimum=1, resolution=1, connections=1).durations_ns
        with pytest.raises(ValueError, match="no length"):
            Goal(maximum=1, minimum=1, resolution=1)
        with pytest.raises(ValueError, match="at least 1 connection"):
            Goal(maximum=1, minimum=1, resolution=1, connections=0)


class TestTearDown:
    def test_a_full_table_then_an_empty_one(self) -> None:
        asked: list[Measure] = []

        def measure(wanted: Measure) -> Measured:
            asked.append(wanted)
            observation = Observation(frames_per_second=1, duration_ns=1, outcome=Outcome.PASSED)
            facts = ConnectionFacts(tear_down_ns=50 + (wanted.connections or 0))
            return measured(observation, report(), connections=facts)

        pair = measure_pair(1000, 300, measure)
        assert (pair.full_ns, pair.empty_ns, pair.tester_limited) == (1050, 50, False)
        assert [(wanted.connections, wanted.purpose) for wanted in asked] == [(1000, "event"), (0, "event")]
        assert all(wanted.tears_down and not wanted.establishes for wanted in asked)
        assert [wanted.duration_ns for wanted in asked] == [3_333_333_334, 0]

    @pytest.mark.parametrize(("outcome", "limited"), [(Outcome.FAILED, False), (Outcome.TESTER_LIMITED, True)])
    def test_a_trial_that_is_no_good_has_no_time(self, outcome: Outcome, limited: bool) -> None:
        observation = Observation(frames_per_second=1, duration_ns=1, outcome=outcome)
        trial = measured(observation, report(), connections=ConnectionFacts(tear_down_ns=5))
        pair = measure_pair(1, 1, lambda _: trial)
        assert (pair.full_ns, pair.empty_ns, pair.tester_limited) == (None, None, limited)

    @pytest.mark.parametrize(("left", "others", "empty_ns"), [(400, 0, 50), (0, 3, None)])
    def test_what_a_deletion_leaves_is_told_and_has_a_time(self, left: int, others: int, empty_ns: int | None) -> None:
        """Connections after the deletion of none are of others, so that nothing is known of the time."""

        def measure(wanted: Measure) -> Measured:
            count = left if wanted.connections else others
            outcome = Outcome.FAILED if count else Outcome.PASSED
            observation = Observation(frames_per_second=1, duration_ns=1, outcome=outcome)
            facts = ConnectionFacts(tear_down_ns=50 + (wanted.connections or 0), counted_after_tear_down=count)
            return measured(observation, report(), connections=facts)

        pair = measure_pair(1000, 300, measure)
        assert (pair.full_ns, pair.empty_ns, pair.left) == (1050, empty_ns, left)

    @pytest.mark.parametrize(
        ("times", "full_ns", "empty_ns", "limited_by"),
        [
            ([(9, 1), (None, 2), (11, 3)], (9, 11), (1, 3), "tester"),
            ([(9, 1), (11, 3)], (9, 11), (1, 3), "gateway"),
            ([(None, 2)], (), (), "tester"),
        ],
    )
    def test_repetitions_with_both_times_are_gathered(
        self,
        nat_campaign: Callable[..., Campaign],
        times: list[tuple[int | None, int | None]],
        full_ns: tuple[int, ...],
        empty_ns: tuple[int, ...],
        limited_by: str,
    ) -> None:
        wanted = nat_campaign(connection_tear_down_rate={}, repetitions=len(times))
        result = tear_down.measure(TimedTrials(campaign=wanted, times=times))
        assert (result.full_ns.values, result.empty_ns.values) == (full_ns, empty_ns)
        assert result.limited_by == limited_by
        assert (result.connections_per_second is None) == (not full_ns)


@dataclass(frozen=True, kw_only=True)
class TimedTrials:
    """Trials that delete a full and an empty table in these times; None where the Tester fell short."""

    campaign: Campaign
    times: Sequence[tuple[int | None, int | None]]
    line_maximum: None = None
    earlier: Earlier = field(default_factory=Earlier)

    @property
    def run(self) -> Run:
        return plan_of(self.campaign).runs[-1]

    def repetitions(self) -> Iterator[int]:
        yield from range(len(self.times))

    def steps(self, repetition: int, **_: Any) -> MeasureStep:
        def measure(wanted: Measure) -> Measured:
            full_ns, empty_ns = self.times[repetition]
            time_ns = full_ns if wanted.connections else empty_ns
            outcome = Outcome.TESTER_LIMITED if time_ns is None else Outcome.PASSED
            observation = Observation(frames_per_second=1, duration_ns=1, outcome=outcome)
            return measured(observation, report(), connections=ConnectionFacts(tear_down_ns=time_ns))

        return measure

    def facts(self) -> dict[str, Any]:
        return run_facts(self.campaign, self.run, TrialTally())
