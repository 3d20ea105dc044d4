"""Throughput: the highest rate at which no frame is lost (RFC 2544 section 26.1, RFC 8219 section 7.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Literal

from gatemark.config import defaults
from gatemark.config.model import Campaign
from gatemark.procedures.loads import Interval, expected_words, interval
from gatemark.procedures.measured import MeasureStep
from gatemark.procedures.phase_one import add_phase_one, rate_before
from gatemark.procedures.procedure import RunTrials
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.procedures.throughput.table import ThroughputTable
from gatemark.procedures.work import (
    ASSUMED_BUFFER_NS,
    ASSUMED_RATE_MAX,
    CONFIRMATIONS_MAX,
    LeastAndMost,
    Work,
    binary_search_work,
    least_and_most,
)
from gatemark.results.document import Deviation
from gatemark.results.search import SearchGoal, limited_by
from gatemark.search import binary
from gatemark.search.effort import steps_of
from gatemark.search.goal import Goal, Measure, SearchResult
from gatemark.trial.cell import Run
from gatemark.trial.form import TrialForm
from gatemark.units import NANOSECONDS_PER_SECOND, LineShare, format_duration_ns, format_ratio

ASSUMED_CAPACITIES_PERCENT = (90, 50, 8)
"""MLRsearch is estimated for gateways that forward everything, or these shares of the maximum."""


def measure(trials: RunTrials) -> ThroughputResult:
    """Search once in each repetition; an open-ended search begins where earlier ones found their maximum."""
    campaign, cell = trials.campaign, trials.run.cell
    table = campaign.table(ThroughputTable)
    goal = throughput_goal(campaign, trials.line_maximum)
    rate = rate_before(campaign, cell, trials.earlier, phase_two_ns=campaign.trial.duration_ns)
    searches: list[SearchResult] = []
    for repetition in trials.repetitions():
        steps = trials.steps(
            repetition,
            loss_tolerance=goal.loss_tolerance,
            connections_per_second=rate,
            form=TrialForm(timeout_ns=table.frame_timeout_ns),
        )
        searches.append(search_once(goal.after(searches), steps, search=table.search))
    return ThroughputResult(
        **trials.facts(),
        limited_by=limited_by([search.kind for search in searches]),
        goal=SearchGoal(
            search=table.search,
            maximum=throughput_loads(campaign, trials.line_maximum).highest,
            minimum=goal.minimum,
            loss_tolerance=goal.loss_tolerance,
            search_duration_ns=goal.search_duration_ns,
            duration_ns=goal.trial_duration_ns,
            frame_timeout_ns=table.frame_timeout_ns,
        ),
        repetitions=tuple(searches),
    )


def throughput_goal(campaign: Campaign, line_maximum: int | None) -> Goal:
    """Return what a search looks for.

    Raises ConfigError if a share of an unknown line rate is asked for, or if the loads contradict each other at this
    frame size.
    """
    table, loads = campaign.table(ThroughputTable), throughput_loads(campaign, line_maximum)
    return Goal(
        maximum=loads.maximum,
        minimum=min(loads.minimum, loads.maximum),
        resolution=loads.resolution,
        ceiling=loads.ceiling,
        search_duration_ns=_search_ns(campaign, table),
        trial_duration_ns=campaign.trial.duration_ns,
        loss_tolerance=table.loss_tolerance,
    )


def throughput_loads(campaign: Campaign, line_maximum: int | None) -> Interval:
    """Return the loads of a search. Raises ConfigError as `throughput_goal` does."""
    table = campaign.table(ThroughputTable)
    one_frame = -(-NANOSECONDS_PER_SECOND // _search_ns(campaign, table))  # a trial below this load would have no frame
    return interval(campaign, table.key, table, line_maximum, unit="frames/s", slowest=one_frame)


def _search_ns(campaign: Campaign, table: ThroughputTable) -> int:
    return min(table.search_duration_ns, campaign.trial.duration_ns)


def search_once(goal: Goal, measure_step: MeasureStep, *, search: Literal["binary", "mlrsearch"]) -> SearchResult:
    """Search once. The only effects are those of `measure_step`, which must judge with `goal.loss_tolerance`."""
    if search == "mlrsearch":
        from gatemark.search import multiple_loss_ratio  # slow to load: only a search that uses it pays for that

        return multiple_loss_ratio.search(goal, lambda step: measure_step(step).observation)
    return binary.search(goal, lambda step: measure_step(step).observation)


def work(campaign: Campaign, run: Run, line_maximum: int | None) -> LeastAndMost:
    """Return the least and the most work of all repetitions."""
    table = campaign.table(ThroughputTable)
    goal, waits_ns = throughput_goal(campaign, line_maximum), campaign.trial.waits_ns
    if goal.ceiling is not None:
        both = _open_ended(goal, table.search, waits_ns, campaign.repetitions)
    else:
        least, most = _mlrsearch(goal, waits_ns) if table.search == "mlrsearch" else binary_search_work(goal, waits_ns)
        both = least * campaign.repetitions, most * campaign.repetitions
    return add_phase_one(campaign, run.cell, line_maximum, both)


@lru_cache
def _mlrsearch(goal: Goal, waits_ns: int) -> LeastAndMost:
    """Return the least and the most work of one search, tried on gateways that always forward the same rate."""
    capacities = [goal.maximum, *(goal.maximum * percent // 100 for percent in ASSUMED_CAPACITIES_PERCENT)]
    buffers = (0, goal.maximum * ASSUMED_BUFFER_NS // NANOSECONDS_PER_SECOND)
    return least_and_most(
        [
            _work_of(steps_of(goal, "mlrsearch", capacity=capacity, buffer_frames=buffer_frames), waits_ns)
            for capacity, buffer_frames in product(capacities, buffers)
        ]
    )


@lru_cache
def _open_ended(goal: Goal, search: Literal["binary", "mlrsearch"], waits_ns: int, repetitions: int) -> LeastAndMost:
    """Return the least and the most work of searches that find their maximum; later repetitions begin where it was.

    They are tried on gateways that fail at the first load, or that forward just less than one of two of the following
    loads, up to the assumed end.
    """
    confirmations = Work()
    if search == "binary" and goal.search_duration_ns != goal.trial_duration_ns:
        again = CONFIRMATIONS_MAX - 1
        confirmations = Work(again, again * (goal.durations_ns[1] + waits_ns))
    end = min(ASSUMED_RATE_MAX, goal.ceiling or ASSUMED_RATE_MAX)
    doublings = max(0, -(-end // goal.maximum) - 1).bit_length()
    works = []
    buffers_ns = (0, ASSUMED_BUFFER_NS) if search == "mlrsearch" else (0,)
    for doubling, buffer_ns in product(sorted({0, 1, doublings // 2, doublings}), buffers_ns):
        capacity = (goal.maximum << doubling) - 1
        buffer_frames = capacity * buffer_ns // NANOSECONDS_PER_SECOND
        first = steps_of(goal, search, capacity=capacity, buffer_frames=buffer_frames)
        known = replace(goal, maximum=max(step.frames_per_second for step in first))
        later = steps_of(known, search, capacity=capacity, buffer_frames=buffer_frames)
        works.append(_work_of(first, waits_ns) + _work_of(later, waits_ns) * (repetitions - 1))
    least, most = least_and_most(works)
    return least, most + confirmations * repetitions


def _work_of(steps: Sequence[Measure], waits_ns: int) -> Work:
    return Work(len(steps), sum(step.duration_ns + waits_ns for step in steps))


def deviations(campaign: Campaign) -> Iterator[Deviation]:
    """Yield deviations from RFC 2544 sections 20 and 26.1."""
    table = campaign.table(ThroughputTable)
    if table.loss_tolerance > 0:
        yield Deviation(
            sentence=f"A loss of {format_ratio(table.loss_tolerance)} per direction passes: the result is no throughput"
            " (RFC 1242 section 3.17, RFC 2544 section 26.1).",
            rules_out_claim=True,
        )
    if table.frame_timeout_ns is not None:
        yield Deviation(
            sentence=f"A frame that takes longer than {format_duration_ns(table.frame_timeout_ns)} counts as lost in"
            " the throughput search (RFC 2544 section 26.1 has no such limit)."
        )
    if table.expected is not None:
        yield Deviation(
            sentence="The search begins at 1.5 times an expected result,"
            f" {expected_words(table.expected, 'frames/s')}, and not at the maximum of the line (RFC 2544 section 20)."
            " On a steady gateway it finds the same."
        )
    elif table.maximum not in (None, LineShare(1)):
        yield Deviation(sentence="The search does not begin at the maximum of the line (RFC 2544 section 20).")
    elif table.maximum is None and campaign.line.rate is None:
        yield Deviation(
            sentence="A medium without a line rate has no maximum to begin at (RFC 2544 section 20): there the load of"
            f" the search doubles from {defaults.SEARCH_START} frames/s on until a trial fails."
        )
