"""Time to a result: how much traffic a search sends until the throughput is confirmed at full length."""

import pytest
from bench import search_time as script

from gatemark.procedures.assumed import AssumedGateway
from gatemark.search import multiple_loss_ratio
from gatemark.search.goal import Goal, Measure, Observation, Outcome

SECOND = 1_000_000_000


@pytest.mark.parametrize("gateway", script.GATEWAYS)
def test_mlrsearch_confirms_1_2_million_frames_a_second_within_240_s_of_traffic(gateway: str) -> None:
    taken = script.search_time(gateway, "MLRsearch")
    assert taken.traffic_s <= 240
    assert taken.full_length_trials >= 1
    assert taken.upper_bound is not None and taken.lower_bound is not None
    assert taken.upper_bound - taken.lower_bound <= script.RESOLUTION
    noise = script.GATEWAYS[gateway].noise * script.CAPACITY
    assert taken.lower_bound <= script.CAPACITY + noise + script.RESOLUTION
    assert taken.upper_bound >= script.CAPACITY - noise - script.RESOLUTION


def test_the_binary_search_at_full_length_takes_several_times_as_long() -> None:
    assert script.search_time("sharp", "binary, all trials 60 s").traffic_s >= 720


@pytest.mark.parametrize("capacity", [100_000, 1_200_000, 14_000_000])
def test_the_resolution_is_not_undercut_where_the_maximum_is_far_above(capacity: int) -> None:
    """Bounds ten times narrower than asked for would cost a full-length trial for each halving."""
    goal = Goal(
        maximum=14_880_952,
        minimum=1,
        resolution=1000,
        search_duration_ns=SECOND,
        trial_duration_ns=60 * SECOND,
    )
    gateway = AssumedGateway(frames_per_second=capacity, kept_frames=1000, connections_per_second=1, throughput=1)
    durations_ns: list[int] = []

    def measure(step: Measure) -> Observation:
        durations_ns.append(step.duration_ns)
        return gateway.measured(step).observation

    multiple_loss_ratio.search(goal, measure)
    assert 0 < durations_ns.count(60 * SECOND) <= 4


def test_a_gateway_that_collapses_under_overload_is_searched_to_the_resolution_all_the_same() -> None:
    """What it forwards of the maximum is a tenth of its throughput: a width taken of that alone would be too wide."""
    capacity, collapsed = 1_200_000, 120_000
    goal = Goal(
        maximum=1_488_095,
        minimum=1,
        resolution=1000,
        search_duration_ns=SECOND,
        trial_duration_ns=60 * SECOND,
    )
    count: list[int] = []

    def measure(step: Measure) -> Observation:
        count.append(step.duration_ns)
        offered = step.frames_per_second * step.duration_ns // SECOND
        fails = step.frames_per_second > capacity
        return Observation(
            frames_per_second=step.frames_per_second,
            duration_ns=step.duration_ns,
            outcome=Outcome.FAILED if fails else Outcome.PASSED,
            offered=offered,
            undelivered=offered - collapsed * step.duration_ns // SECOND if fails else 0,
        )

    result = multiple_loss_ratio.search(goal, measure)
    assert result.kind == "found"
    assert result.lower_bound is not None
    assert result.upper_bound is not None
    assert result.lower_bound <= capacity < result.upper_bound <= result.lower_bound + goal.resolution
    assert count.count(60 * SECOND) <= 8
