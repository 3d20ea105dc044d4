"""A search for the throughput of a gateway that may stop for good."""

from __future__ import annotations

from typing import Literal

import pytest
from tests.trial_facts import changed, measured
from tests.unit.test_judgement import report

from gatemark.procedures.measured import Measured
from gatemark.procedures.throughput.run import search_once
from gatemark.search.goal import Goal, Measure, Observation, Outcome
from gatemark.trial.report import TrialReport

GOAL = Goal(maximum=16_000, minimum=1_000, resolution=1_000, search_duration_ns=10**9, trial_duration_ns=10**9)


def without_frames() -> TrialReport:
    whole = report()
    ways = [
        changed(way, foreground=changed(way.foreground, received=0, lost=way.foreground.offered))
        for way in whole.directions
    ]
    return changed(whole, directions=tuple(ways))


@pytest.mark.parametrize("stops", [True, False])
@pytest.mark.parametrize("search", ["binary", "mlrsearch"])
def test_the_load_that_was_found_is_tried_again_where_everything_was_lost(
    search: Literal["binary", "mlrsearch"], stops: bool
) -> None:
    asked: list[Measure] = []

    def step(measure: Measure) -> Measured:
        asked.append(measure)
        is_lost = measure.frames_per_second > 8_500
        observation = Observation(
            frames_per_second=measure.frames_per_second,
            duration_ns=measure.duration_ns,
            outcome=Outcome.FAILED if is_lost else Outcome.PASSED,
            offered=1000,
            undelivered=1000 if is_lost else 0,
        )
        return measured(observation, without_frames() if is_lost and stops else report())

    result = search_once(GOAL, step, search=search)
    assert result.lower_bound is not None
    loads = [measure.frames_per_second for measure in asked]
    if not stops:
        assert len(set(loads)) == len(loads)
    elif loads[-2] > 8_500:
        assert (loads[-1], asked[-1].purpose) == (result.lower_bound, "confirmation")


@pytest.mark.parametrize("dies_after", [3, 4])
@pytest.mark.parametrize("search", ["binary", "mlrsearch"])
def test_no_load_that_failed_at_last_is_a_lower_bound(search: Literal["binary", "mlrsearch"], dies_after: int) -> None:
    """The gateway forwards 8,500 frames/s, then nothing: what passed before is below no load that failed."""
    asked: list[Measure] = []

    def step(measure: Measure) -> Measured:
        asked.append(measure)
        is_dead = len(asked) > dies_after
        is_lost = is_dead or measure.frames_per_second > 8_500
        observation = Observation(
            frames_per_second=measure.frames_per_second,
            duration_ns=measure.duration_ns,
            outcome=Outcome.FAILED if is_lost else Outcome.PASSED,
            offered=1000,
            undelivered=1000 if is_dead else 10 if is_lost else 0,
        )
        return measured(observation, without_frames() if is_dead else report())

    result = search_once(GOAL, step, search=search)
    assert len(asked) > dies_after
    assert (result.kind, result.lower_bound, result.upper_bound) == ("nothing_passes", None, GOAL.minimum)
