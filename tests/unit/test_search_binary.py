"""The binary search, step by step, on gateways that are a line of code."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from gatemark.search.binary import next_step
from gatemark.search.goal import Goal, Measure, Observation, Outcome, SearchResult, bounds_of, conclude

SECOND = 1_000_000_000
Device = Callable[[int, int], Outcome]
PASSED, FAILED, LIMITED = Outcome.PASSED, Outcome.FAILED, Outcome.TESTER_LIMITED


def goal(*, maximum: int = 1000, minimum: int = 1, resolution: int = 10, search_s: int = 60) -> Goal:
    return Goal(
        maximum=maximum,
        minimum=minimum,
        resolution=resolution,
        search_duration_ns=search_s * SECOND,
        trial_duration_ns=60 * SECOND,
    )


def capacity(frames_per_second: int) -> Device:
    return lambda load, _: PASSED if load <= frames_per_second else FAILED


def run(goal: Goal, device: Device) -> tuple[SearchResult, list[Observation]]:
    history: list[Observation] = []
    while isinstance(step := next_step(goal, history), Measure):
        outcome = device(step.frames_per_second, step.duration_ns)
        history.append(
            Observation(frames_per_second=step.frames_per_second, duration_ns=step.duration_ns, outcome=outcome)
        )
        assert len(history) < 200, "the search does not end"
    return step, history


def siitperf(maximum: int, error: int, passes: Callable[[int], bool]) -> tuple[int, list[int]]:
    """Search as siitperf's script does: the oracle for results and for the loads tried."""
    low, high, tried = 0, maximum, []
    while high - low > error:
        rate = (low + high) // 2
        tried.append(rate)
        if passes(rate):
            low = rate
        else:
            high = rate
    return low, tried


def test_the_maximum_is_tried_first_and_may_pass() -> None:
    result, history = run(goal(), capacity(5000))
    assert [trial.frames_per_second for trial in history] == [1000]
    assert (result.kind, result.lower_bound, result.upper_bound) == ("maximum_passed", 1000, None)


@pytest.mark.parametrize("truth", [0, 1, 9, 10, 11, 333, 500, 501, 989, 990, 999])
@pytest.mark.parametrize("resolution", [1, 10, 77])
def test_after_the_maximum_it_is_siitperfs_search(truth: int, resolution: int) -> None:
    result, history = run(goal(resolution=resolution), capacity(truth))
    expected, tried = siitperf(1000, resolution, lambda load: load <= truth)
    loads = [trial.frames_per_second for trial in history]
    assert loads[: 1 + len(tried)] == [1000, *tried]
    if expected:
        assert (result.lower_bound, len(loads)) == (expected, 1 + len(tried))


@pytest.mark.parametrize("search_s", [1, 60])
@pytest.mark.parametrize("truth", [1, 9, 60])
def test_a_throughput_below_the_resolution_is_found(truth: int, search_s: int) -> None:
    """siitperf ends at 0 there; that a load passes or that none does is only known from trials."""
    result, history = run(goal(resolution=77, search_s=search_s), capacity(truth))
    assert result.kind == "found"
    assert result.lower_bound is not None and result.upper_bound is not None
    assert result.lower_bound <= truth < result.upper_bound <= 77
    assert (result.lower_bound, PASSED) in {(trial.frames_per_second, trial.outcome) for trial in history}


@pytest.mark.parametrize(("minimum", "resolution"), [(100, 10), (3, 400), (1, 10)])
def test_nothing_passes_only_if_the_minimum_fails(minimum: int, resolution: int) -> None:
    result, history = run(goal(minimum=minimum, resolution=resolution), capacity(minimum - 1))
    assert (result.kind, result.lower_bound, result.upper_bound) == ("nothing_passes", None, minimum)
    assert min(trial.frames_per_second for trial in history) == minimum


def test_result_is_the_highest_load_that_passed_not_the_last_tried() -> None:
    result, history = run(goal(), capacity(610))
    assert history[-1].outcome is FAILED
    assert result.lower_bound == max(trial.frames_per_second for trial in history if trial.outcome is PASSED)


def test_a_short_search_is_confirmed_at_full_length() -> None:
    result, history = run(goal(search_s=1), capacity(620))
    assert history[-1].duration_ns == 60 * SECOND
    assert sum(trial.duration_ns == 60 * SECOND for trial in history) == 1
    assert (result.kind, result.lower_bound) == ("found", history[-1].frames_per_second)


def test_no_second_confirmation_where_the_search_is_at_full_length() -> None:
    _, history = run(goal(), capacity(620))
    loads = [trial.frames_per_second for trial in history]
    assert len(loads) == len(set(loads))


@pytest.mark.parametrize("long_truth", [615, 600, 400, 90, 0])
def test_a_failed_confirmation_goes_on_downwards_at_full_length(long_truth: int) -> None:
    def device(load: int, duration_ns: int) -> Outcome:
        return PASSED if load <= (620 if duration_ns == SECOND else long_truth) else FAILED

    result, history = run(goal(search_s=1), device)
    full = [trial for trial in history if trial.duration_ns == 60 * SECOND]
    assert full[0].outcome is FAILED
    assert all(trial.frames_per_second <= full[0].frames_per_second for trial in full)
    assert long_truth - 10 < (result.lower_bound or 0) <= long_truth
    assert result.upper_bound is not None
    assert result.upper_bound - (result.lower_bound or 0) <= 10


def test_a_pass_above_a_fail_does_not_count() -> None:
    history = [
        Observation(frames_per_second=load, duration_ns=60 * SECOND, outcome=outcome)
        for load, outcome in [(900, PASSED), (500, FAILED), (495, PASSED), (1000, FAILED)]
    ]
    result = conclude(goal(), history)
    assert (result.kind, result.lower_bound, result.upper_bound) == ("found", 495, 500)


class TestTesterLimited:
    def test_search_goes_on_below_and_never_calls_it_the_gateways_result(self) -> None:
        result, _ = run(goal(), lambda load, _: LIMITED if load > 700 else PASSED)
        assert result.kind == "tester_limited"
        assert result.lower_bound is not None
        assert result.tester_limited_at is not None
        assert result.lower_bound <= 700 < result.tester_limited_at <= result.lower_bound + 10
        assert result.upper_bound is None

    def test_a_gateway_below_the_limit_is_found_all_the_same(self) -> None:
        result, _ = run(goal(), lambda load, _: LIMITED if load > 700 else capacity(300)(load, 0))
        assert result.kind == "found"
        assert result.lower_bound is not None
        assert 290 < result.lower_bound <= 300
        assert result.tester_limited_at is None

    def test_a_gateway_just_above_the_limit_is_not_found(self) -> None:
        def device(load: int, _: int) -> Outcome:
            return LIMITED if 400 < load < 900 else capacity(500)(load, 0)

        result, _ = run(goal(), device)
        assert result.kind == "tester_limited"
        assert (result.upper_bound, result.lower_bound) == (1000, 398)

    def test_a_limit_within_the_resolution_does_not_matter(self) -> None:
        history = [
            Observation(frames_per_second=load, duration_ns=60 * SECOND, outcome=outcome)
            for load, outcome in [(500, FAILED), (497, LIMITED), (495, PASSED)]
        ]
        assert conclude(goal(), history).kind == "found"

    def test_no_load_can_be_offered(self) -> None:
        result, _ = run(goal(minimum=5), lambda _load, _duration: LIMITED)
        assert (result.kind, result.lower_bound, result.upper_bound) == ("tester_limited", None, None)

    def test_confirmation_beyond_the_testers_means_goes_on_downwards(self) -> None:
        def device(load: int, duration_ns: int) -> Outcome:
            return LIMITED if duration_ns == 60 * SECOND and load > 450 else capacity(620)(load, 0)

        result, _ = run(goal(search_s=1), device)
        assert result.kind == "tester_limited"
        assert result.lower_bound is not None
        assert 440 < result.lower_bound <= 450
        assert result.upper_bound is not None
        assert result.upper_bound > 620


def test_bounds_keep_the_gateways_and_the_testers_limit_apart() -> None:
    history = [
        Observation(frames_per_second=load, duration_ns=SECOND, outcome=outcome)
        for load, outcome in [(1000, LIMITED), (800, FAILED), (600, LIMITED), (500, PASSED)]
    ]
    bounds = bounds_of(history)
    assert (bounds.lower, bounds.upper, bounds.tester_limit, bounds.end) == (500, 800, 600, 600)


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"minimum": 0}, "minimum"), ({"minimum": 2000}, "minimum"), ({"resolution": 0}, "resolution")],
)
def test_a_goal_that_makes_no_sense_is_refused(changed: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        goal(**changed)


def test_tolerance_is_a_fraction() -> None:
    assert goal().loss_tolerance == Fraction(0)
