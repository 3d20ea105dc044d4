"""A search of one side of a pair: what ends it, and what a frame lost by chance may not do to it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.trial_facts import ORDER, record_of

from gatemark.pairs.searched import RESOLUTION, TRIES, SideSearch, search_from
from gatemark.search.goal import Measure
from gatemark.trial.verdict import Verdict

FIRST = 102_400
"""Load at which each search begins, frames/s."""
GAP = int(RESOLUTION * FIRST)
CAPACITY = 70_000


def ended(*, capacity: int = CAPACITY, lost_by_chance: frozenset[int] = frozenset()) -> tuple[SideSearch, list[int]]:
    """Search a gateway that loses frames above its capacity, and in trials of these numbers; return the loads too."""
    search, loads = search_from(FIRST, 10**8), list[int]()
    while not search.is_over:
        step = search.step
        assert isinstance(step, Measure)
        loads.append(step.frames_per_second)
        passed = step.frames_per_second <= capacity and len(loads) not in lost_by_chance
        search = search.after(record_of(order=replace(ORDER, step=step), verdict=Verdict(passed=passed)))
    return search, loads


@pytest.mark.parametrize("number", range(1, 12))
def test_a_frame_lost_by_chance_does_not_end_a_search_below_the_throughput(number: int) -> None:
    result = ended(lost_by_chance=frozenset({number}))[0].result()
    assert result.outcome == "measured"
    assert CAPACITY - 2 * GAP < result.value <= CAPACITY


def test_a_load_that_loses_frames_twice_has_failed() -> None:
    _, loads = ended()
    below = next(number for number, load in enumerate(loads, 1) if load < CAPACITY)
    _, tried = ended(lost_by_chance=frozenset({below}))
    again = max(number for number, load in enumerate(tried, 1) if load == loads[below - 1])
    search, _ = ended(lost_by_chance=frozenset({below, again}))
    assert loads[below - 1] - GAP <= search.result().value < loads[below - 1]


def test_only_a_bound_that_later_trials_passed_below_is_tried_again() -> None:
    _, loads = ended()
    upper = min(load for load in loads if load > CAPACITY)
    assert [load for load in set(loads) if loads.count(load) > 1] == [loads[-1]] == [upper]
    _, ends_with_loss = ended(capacity=loads[-2] - 1)
    assert len(set(ends_with_loss)) == len(ends_with_loss)
    assert ended(capacity=FIRST)[1] == [FIRST]


def test_a_trial_that_says_nothing_of_the_gateway_is_no_loss() -> None:
    search = search_from(FIRST, 10**8)
    for _ in range(TRIES):
        assert not search.is_over
        step = search.step
        assert isinstance(step, Measure) and step.frames_per_second == FIRST
        search = search.after(record_of(order=replace(ORDER, step=step), verdict=None))
    assert search.is_over and replace(search, tries=0).history == ()
