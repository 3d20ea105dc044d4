"""For all gateways, Testers and goals: a search brackets the truth, or says that the Tester was the limit."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.property.examples import examples

from gatemark.search import binary, multiple_loss_ratio
from gatemark.search.goal import Goal, Measure, Observation, Outcome, SearchResult

SECOND = 1_000_000_000
STEPS_MAX = 400

Search = Callable[[Goal, Callable[[Measure], Observation]], SearchResult]


@dataclass(frozen=True)
class Device:
    """A gateway and a Tester; like `SimulatedDevice`, but without the cost of reports."""

    capacity: int
    full_length_capacity: int
    """Longer trials may show less."""
    noise: float = 0.0
    tester_limit: int | None = None
    inverted: tuple[int, int] = (0, -1)
    """Loads whose outcome is turned round."""
    seed: int = 0

    def observe(self, step: Measure, number: int, full_ns: int | None) -> Observation:
        load = step.frames_per_second
        nominal = self.full_length_capacity if step.duration_ns == full_ns else self.capacity
        capacity = nominal * (1 + self.noise * random.Random(f"{self.seed}/{number}").uniform(-1, 1))
        offered = max(1, load * step.duration_ns // SECOND)
        lost = max(1, offered - int(offered * capacity) // load) if load > capacity else 0
        if self.inverted[0] <= load <= self.inverted[1]:
            lost = 0 if lost else 1
        outcome = Outcome.FAILED if lost else Outcome.PASSED
        if self.tester_limit is not None and load > self.tester_limit:
            outcome = Outcome.TESTER_LIMITED
        return Observation(
            frames_per_second=load, duration_ns=step.duration_ns, outcome=outcome, offered=offered, undelivered=lost
        )


def run(search: Search, goal: Goal, device: Device) -> tuple[SearchResult, list[Observation]]:
    history: list[Observation] = []

    def measure(step: Measure) -> Observation:
        assert goal.minimum <= step.frames_per_second <= (goal.ceiling or goal.maximum)
        assert len(history) < STEPS_MAX, "the search does not end"
        history.append(device.observe(step, len(history), goal.trial_duration_ns))
        return history[-1]

    return search(goal, measure), history


@st.composite
def goals(draw: st.DrawFn) -> Goal:
    maximum = draw(st.integers(2, 150_000_000))
    full_ns = draw(st.sampled_from([1, 5, 60])) * SECOND
    return Goal(
        maximum=maximum,
        minimum=draw(st.integers(1, max(1, maximum // 100))),
        resolution=draw(st.integers(max(1, maximum // 2000), max(1, maximum // 4))),
        search_duration_ns=draw(st.sampled_from([SECOND, full_ns])),
        trial_duration_ns=full_ns,
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Goal, Device]:
    """A goal and a monotone, steady gateway; longer trials may show less, the Tester may have a limit."""
    goal = draw(goals())
    full = draw(st.integers(0, goal.maximum * 5 // 4))
    same = goal.search_duration_ns == goal.trial_duration_ns
    capacity = full if same else draw(st.one_of(st.just(full), st.integers(full, goal.maximum * 5 // 4)))
    limit = draw(st.one_of(st.none(), st.integers(0, goal.maximum)))
    return goal, Device(capacity=capacity, full_length_capacity=full, tester_limit=limit)


@st.composite
def wild_cases(draw: st.DrawFn) -> tuple[Goal, Device]:
    """A goal and a gateway that contradicts itself: noise and loss inversion."""
    goal = draw(goals())
    capacity = draw(st.integers(0, goal.maximum * 5 // 4))
    low = draw(st.integers(0, goal.maximum))
    device = Device(
        capacity=capacity,
        full_length_capacity=draw(st.integers(0, capacity)),
        noise=draw(st.sampled_from([0.0, 0.001, 0.05, 0.5])),
        tester_limit=draw(st.one_of(st.none(), st.integers(0, goal.maximum))),
        inverted=(low, low + draw(st.integers(0, goal.maximum // 4))),
        seed=draw(st.integers(0, 1000)),
    )
    return goal, device


def check_claims(goal: Goal, result: SearchResult, history: list[Observation]) -> None:
    """Whatever the gateway does: every bound was measured, and no claim goes beyond what was measured."""
    passed = {
        trial.frames_per_second
        for trial in history
        if trial.outcome is Outcome.PASSED and trial.duration_ns == goal.trial_duration_ns
    }
    failed = {trial.frames_per_second for trial in history if trial.outcome is Outcome.FAILED}
    limited = {trial.frames_per_second for trial in history if trial.outcome is Outcome.TESTER_LIMITED}
    assert result.lower_bound is None or result.lower_bound in passed
    assert result.upper_bound == min(failed, default=None)
    assert result.tester_limited_at is None or result.tester_limited_at in limited
    assert (result.tester_limited_at is not None) == (result.kind == "tester_limited")
    match result.kind:
        case "found":
            assert result.lower_bound is not None
            assert result.upper_bound is not None
            assert 0 < result.upper_bound - result.lower_bound <= goal.resolution
        case "maximum_passed":
            assert result.lower_bound == goal.maximum
            assert not failed
            assert not limited
        case "nothing_passes":
            assert result.lower_bound is None
            assert result.upper_bound == goal.minimum
        case "tester_limited":
            assert result.lower_bound is None or result.lower_bound < (result.upper_bound or goal.maximum + 1)


@st.composite
def open_ended_goals(draw: st.DrawFn) -> Goal:
    start = draw(st.integers(2, 1_000_000))
    ceiling = draw(st.one_of(st.integers(start, 150_000_000), st.just(150_000_000)))
    full_ns = draw(st.sampled_from([1, 5, 60])) * SECOND
    shares, loads = (
        st.fractions(Fraction(1, 2000), Fraction(1, 4)),
        st.integers(max(1, ceiling // 2000), max(1, ceiling // 4)),
    )
    resolution = draw(st.one_of(shares, loads))
    start = max(start, min(ceiling, 2 * resolution)) if isinstance(resolution, int) else start
    return Goal(
        maximum=start,
        minimum=draw(st.integers(1, start)),
        resolution=resolution,
        ceiling=ceiling,
        search_duration_ns=draw(st.sampled_from([SECOND, full_ns])),
        trial_duration_ns=full_ns,
    )


@st.composite
def open_ended_cases(draw: st.DrawFn, noises: tuple[float, ...] = (0.0, 0.001, 0.05, 0.5)) -> tuple[Goal, Device]:
    """A goal without a maximum and a gateway of any speed, noisy or not; the Tester may have a limit."""
    goal = draw(open_ended_goals())
    assert goal.ceiling is not None
    capacity = draw(st.one_of(st.integers(0, 4 * goal.maximum), st.integers(0, goal.ceiling * 5 // 4)))
    device = Device(
        capacity=capacity,
        full_length_capacity=capacity,
        noise=draw(st.sampled_from(noises)),
        tester_limit=draw(st.one_of(st.none(), st.integers(0, goal.ceiling))),
        seed=draw(st.integers(0, 1000)),
    )
    return goal, device


def climb(goal: Goal, history: list[Observation]) -> list[int]:
    """The loads up to the first that did not pass, the slow and obvious way."""
    loads = []
    for trial in history:
        loads.append(trial.frames_per_second)
        if trial.outcome is not Outcome.PASSED or trial.frames_per_second == goal.ceiling:
            break
    return loads


SEARCHES = pytest.mark.parametrize("search", [binary.search, multiple_loss_ratio.search], ids=["binary", "mlrsearch"])


@SEARCHES
@examples(37, many=150)
@given(case=cases())
def test_the_truth_is_bracketed_or_the_tester_is_named(search: Search, case: tuple[Goal, Device]) -> None:
    goal, device = case
    result, history = run(search, goal, device)
    check_claims(goal, result, history)
    truth, limit = device.full_length_capacity, device.tester_limit
    reach = truth if limit is None else min(truth, limit)
    if result.lower_bound is not None:
        assert result.lower_bound <= reach
        if result.kind != "maximum_passed":
            ends = [end for end in (result.upper_bound, result.tester_limited_at) if end is not None]
            assert min(ends) - result.lower_bound <= goal.resolution
    if limit is None:
        assert result.kind != "tester_limited"
    elif truth > limit + goal.resolution and goal.maximum > limit:
        assert result.kind == "tester_limited"
    if result.kind == "maximum_passed":
        assert reach >= goal.maximum
    if result.kind == "found":
        assert result.upper_bound is not None
        assert result.upper_bound > truth


@examples(37, many=150)
@given(case=wild_cases())
def test_no_gateway_makes_the_binary_search_claim_what_was_not_measured(case: tuple[Goal, Device]) -> None:
    goal, device = case
    result, history = run(binary.search, goal, device)
    check_claims(goal, result, history)


@examples(37, many=150)
@given(case=wild_cases())
@example(  # the package's loads between 2 and 3 are one load of ours, which fails short and passes long
    case=(
        Goal(maximum=18, minimum=1, resolution=1, search_duration_ns=SECOND, trial_duration_ns=5 * SECOND),
        Device(capacity=2, full_length_capacity=2, noise=0.001),
    )
)
def test_no_gateway_makes_mlrsearch_claim_what_was_not_measured(case: tuple[Goal, Device]) -> None:
    goal, device = case
    result, history = run(multiple_loss_ratio.search, goal, device)
    check_claims(goal, result, history)


@SEARCHES
@examples(15, many=60)
@given(case=wild_cases(), share=st.fractions(0, 1))
def test_every_prefix_of_a_history_replays(search: Search, case: tuple[Goal, Device], share: Fraction) -> None:
    """A search that is fed what was measured asks for the same again and comes to the same result."""
    goal, device = case
    result, history = run(search, goal, device)
    cut = int(share * len(history))
    count = 0

    def measure(step: Measure) -> Observation:
        nonlocal count
        observed = history[count] if count < cut else device.observe(step, count, goal.trial_duration_ns)
        assert (step.frames_per_second, step.duration_ns) == (observed.frames_per_second, observed.duration_ns)
        count += 1
        return observed

    assert search(goal, measure) == result
    assert count == len(history)


@examples(25, many=100)
@given(goal=goals(), data=st.data())
def test_binary_search_asks_for_no_load_twice_at_one_duration(goal: Goal, data: st.DataObject) -> None:
    capacity = data.draw(st.integers(0, goal.maximum))
    _, history = run(binary.search, goal, Device(capacity=capacity, full_length_capacity=capacity // 2))
    asked = [(trial.frames_per_second, trial.duration_ns) for trial in history]
    assert len(asked) == len(set(asked))


@SEARCHES
@examples(37, many=150)
@given(case=open_ended_cases())
def test_an_open_ended_search_climbs_and_then_claims_only_what_it_measured(
    search: Search, case: tuple[Goal, Device]
) -> None:
    goal, device = case
    result, history = run(search, goal, device)
    loads = climb(goal, history)
    assert loads == [min(goal.maximum << step, goal.ceiling or 0) for step in range(len(loads))]
    assert all(trial.duration_ns == goal.search_duration_ns for trial in history[: len(loads)])
    assert result.highest_load == loads[-1] == max(trial.frames_per_second for trial in history)
    closed = goal.ending_at(result.highest_load)
    assert result.resolution == closed.gap
    check_claims(closed, result, history)
    if result.kind == "maximum_passed":
        assert result.lower_bound == goal.ceiling


@SEARCHES
@examples(37, many=150)
@given(case=open_ended_cases(noises=(0.0,)))
def test_an_open_ended_search_brackets_the_truth_or_names_the_tester(search: Search, case: tuple[Goal, Device]) -> None:
    goal, device = case
    result, _ = run(search, goal, device)
    truth, limit = device.capacity, device.tester_limit
    ends = [end for end in (result.upper_bound, result.tester_limited_at) if end is not None]
    match result.kind:
        case "found":
            assert result.lower_bound is not None and result.upper_bound is not None
            assert result.lower_bound <= truth < result.upper_bound <= result.lower_bound + result.resolution
        case "maximum_passed":
            assert truth >= (goal.ceiling or 0)
        case "nothing_passes":
            assert truth < goal.minimum == result.upper_bound
        case "tester_limited":
            assert limit is not None and limit < (result.tester_limited_at or 0)
            assert result.lower_bound is None or min(ends) - result.lower_bound <= result.resolution
    if isinstance(goal.resolution, Fraction) and truth >= goal.maximum:  # it ends at most one doubling above the truth
        assert result.resolution <= max(Fraction(1), 2 * truth * goal.resolution)


@SEARCHES
@examples(15, many=60)
@given(case=open_ended_cases(), share=st.fractions(0, 1))
def test_every_prefix_of_an_open_ended_history_replays(
    search: Search, case: tuple[Goal, Device], share: Fraction
) -> None:
    goal, device = case
    result, history = run(search, goal, device)
    cut, count = int(share * len(history)), 0

    def measure(step: Measure) -> Observation:
        nonlocal count
        observed = history[count] if count < cut else device.observe(step, count, goal.trial_duration_ns)
        assert (step.frames_per_second, step.duration_ns) == (observed.frames_per_second, observed.duration_ns)
        count += 1
        return observed

    assert search(goal, measure) == result
    assert count == len(history)


@SEARCHES
@examples(25, many=100)
@given(case=open_ended_cases(noises=(0.0,)))
def test_a_later_repetition_does_not_climb_again(search: Search, case: tuple[Goal, Device]) -> None:
    goal, device = case
    first, history = run(search, goal, device)
    apart = device.tester_limit is None or abs(device.tester_limit - device.capacity) > first.resolution
    assume(apart)  # else it depends on the loads that are tried which of both limits is met
    again, later = run(search, goal.after([first]), device)
    assert (again.kind, again.highest_load, again.resolution) == (first.kind, first.highest_load, first.resolution)
    assert later[0].frames_per_second == first.highest_load
    climbed = len(climb(goal, history))
    assert len(climb(goal, later)) == 1
    # half of the end was a step of the climb and has to be tried again, unless the ceiling cut the last step short
    if search is binary.search and first.highest_load == goal.maximum << (climbed - 1):
        assert len(later) <= len(history) - climbed + 2


@examples(25, many=100)
@given(case=open_ended_cases())
def test_a_later_repetition_goes_on_where_its_first_load_passes(case: tuple[Goal, Device]) -> None:
    """Each repetition brackets on its own, on a gateway that has become twice as fast too."""
    goal, device = case
    first, _ = run(binary.search, goal, device)
    faster = replace(device, capacity=4 * device.capacity, full_length_capacity=4 * device.capacity, noise=0.0)
    known = goal.after([first])
    again, later = run(binary.search, known, faster)
    assert climb(known, later)[0] == first.highest_load
    check_claims(known.ending_at(again.highest_load), again, later)
