"""A search that begins near an expected result finds what a search from its maximum finds, whatever was expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from gatemark.config.model import Campaign
from gatemark.procedures.loads import interval
from gatemark.search import binary
from gatemark.search.goal import Goal, Measure, Observation, Outcome, SearchResult
from gatemark.units import LineShare


@dataclass(frozen=True)
class Table:
    maximum: int | LineShare | None
    minimum: int | LineShare
    resolution: int | LineShare
    expected: int | LineShare | None


class Named:
    source = "property"


def searched(table: Table, capacity: int, tester: int, connections: int | None) -> tuple[SearchResult, int]:
    """What a search finds, and in how many trials."""
    loads = interval(cast(Campaign, Named()), "throughput", table, None, unit="frames/s", slowest=1)
    durations: dict[str, Any] = {} if connections else {"search_duration_ns": 10**9, "trial_duration_ns": 6 * 10**10}
    goal = Goal(
        maximum=loads.maximum,
        minimum=min(loads.minimum, loads.maximum),
        resolution=loads.resolution,
        ceiling=loads.ceiling,
        connections=connections,
        **durations,
    )
    count: list[int] = []

    def measure(step: Measure) -> Observation:
        load = step.frames_per_second
        count.append(load)
        failed = Outcome.FAILED if load > capacity else Outcome.PASSED
        outcome = Outcome.TESTER_LIMITED if load > tester else failed
        return Observation(frames_per_second=load, duration_ns=step.duration_ns, outcome=outcome)

    return binary.search(goal, measure), len(count)


@given(
    maximum=st.one_of(st.none(), st.integers(1000, 10**8)),
    capacity=st.integers(0, 2 * 10**8),
    tester=st.one_of(st.just(10**9), st.integers(1, 2 * 10**8)),
    expected=st.integers(1, 2 * 10**8),
    minimum=st.integers(1, 900),
    resolution=st.integers(1, 900),
    connections=st.sampled_from([None, 4_000_000]),
)
def test_what_is_found_does_not_depend_on_what_was_expected(
    maximum: int | None,
    capacity: int,
    tester: int,
    expected: int,
    minimum: int,
    resolution: int,
    connections: int | None,
) -> None:
    plain, _ = searched(Table(maximum, minimum, resolution, None), capacity, tester, connections)
    near, _ = searched(Table(maximum, minimum, resolution, expected), capacity, tester, connections)
    assert near.resolution == plain.resolution
    assert abs((near.lower_bound or 0) - (plain.lower_bound or 0)) <= resolution
    below = not connections and min(capacity, tester) < resolution
    beside = capacity <= tester < capacity + resolution
    if not below and not beside:  # within the resolution of nothing, or of the Tester's limit, either is right
        assert near.kind == plain.kind
        assert (near.lower_bound is None) == (plain.lower_bound is None)
    if near.kind == "found":
        assert near.lower_bound is not None
        assert near.upper_bound is not None
        assert near.lower_bound <= capacity < near.upper_bound <= near.lower_bound + resolution


@given(capacity=st.integers(10_000, 10**6), percent=st.integers(70, 140))
def test_a_good_expectation_saves_trials_and_a_miss_costs_few(capacity: int, percent: int) -> None:
    plain = searched(Table(100_000_000, 1, 100, None), capacity, 10**9, 4_000_000)[1]
    near = searched(Table(100_000_000, 1, 100, capacity * percent // 100), capacity, 10**9, 4_000_000)[1]
    assert near < plain
    missed = searched(Table(100_000_000, 1, 100, capacity // 100), capacity, 10**9, 4_000_000)[1]
    assert missed <= plain + 8
