"""Throughput: the highest rate at which no frame is lost (RFC 2544 section 26.1, RFC 8219 section 7.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from gatemark.config import defaults
from gatemark.config.model import Campaign
from gatemark.procedures.assumed import AssumedGateway, below_maximum, buffered, ends_of, extremes
from gatemark.procedures.loads import Interval, expected_words, interval
from gatemark.procedures.measured import MeasureStep
from gatemark.procedures.phase_one import rate_before
from gatemark.procedures.procedure import RunTrials
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.procedures.throughput.table import ThroughputTable
from gatemark.results.document import Deviation
from gatemark.results.search import SearchGoal, limited_by
from gatemark.search import binary
from gatemark.search.goal import Goal, Measure, Observation, SearchResult
from gatemark.trial.cell import Run
from gatemark.trial.form import TrialForm
from gatemark.units import NANOSECONDS_PER_SECOND, LineShare, format_duration_ns, format_ratio

ASSUMED_CAPACITIES_PERCENT = (100, 90, 50, 8)
"""MLRsearch is estimated for gateways that forward these shares of the maximum."""


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
    """Search once. The only effects are those of `measure_step`, which must judge with `goal.loss_tolerance`.

    Where the last trial lost everything, the load that was found is tried again: a gateway that has stopped loses
    everything there too. Then that load has failed, and the search goes on below it.
    """
    history: list[Observation] = []
    is_silent = False

    def observe(step: Measure) -> Observation:
        nonlocal is_silent
        trial = measure_step(step)
        is_silent = trial.report is not None and any(way.is_lost for way in trial.report.directions)
        history.append(trial.observation)
        return trial.observation

    if search == "mlrsearch":
        from gatemark.search import multiple_loss_ratio  # slow to load: only a search that uses it pays for that

        result = multiple_loss_ratio.search(goal, observe)
    else:
        result = binary.search(goal, observe)
    ended, (_, trial_ns) = goal.ending_at(result.highest_load), goal.durations_ns
    while result.lower_bound is not None and is_silent:
        observe(Measure(frames_per_second=result.lower_bound, duration_ns=trial_ns, purpose="confirmation"))
        while isinstance(step := binary.narrow(ended, history), Measure):
            observe(step)
        result = step
    return result


def gateways(campaign: Campaign, run: Run, line_maximum: int | None) -> Iterator[AssumedGateway]:
    """Yield gateways with which the searches take the fewest trials and the most.

    A binary search takes the fewest if its maximum passes, and goes furthest down if nothing passes but its minimum.
    One that finds its maximum does not end before a load fails: the gateways forward just less than one of the loads at
    which it may end, and so they do for MLRsearch. The number of trials of MLRsearch with a known maximum has no
    formula, so that is tried on several shares of it.
    """
    goal, search = throughput_goal(campaign, line_maximum), campaign.table(ThroughputTable).search
    if goal.ceiling is not None:
        ends = [goal.ending_at(end) for end in ends_of(goal)]
        steady = [(below_maximum(end), end) for end in ends]
    elif search == "mlrsearch":
        steady = [(goal.maximum * percent // 100, goal) for percent in ASSUMED_CAPACITIES_PERCENT]
    else:
        steady = [(goal.maximum, goal)]
    fast, slow = extremes(campaign, run, line_maximum)
    for gateway in (fast, slow) if run.cell.connections else (slow,):  # they differ in test phase 1 alone
        yield replace(gateway, frames_per_second=goal.minimum)
        for rate, end in steady:
            yield replace(gateway, frames_per_second=rate)
            if search == "mlrsearch":
                yield replace(gateway, frames_per_second=rate, kept_frames=buffered(end.maximum))
            else:
                yield gateway.just_below(end)


def deviations(campaign: Campaign) -> Iterator[Deviation]:
    """Yield deviations from RFC 2544 sections 20 and 26.1."""
    table = campaign.table(ThroughputTable)
    if table.loss_tolerance > 0:
        yield Deviation(
            sentence=f"A loss of {format_ratio(table.loss_tolerance)} per direction passes: the result is not a"
            " throughput (RFC 1242 section 3.17, RFC 2544 section 26.1).",
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
