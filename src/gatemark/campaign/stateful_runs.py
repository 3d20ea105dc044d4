"""The runs that only stateful gateways have (RFC 9693): each with all its repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gatemark.campaign.events import RepetitionFinished, RunStarted
from gatemark.campaign.loads import line_maximum
from gatemark.campaign.stateful_loads import capacity_goal, establishment_goal, phase_one_rate
from gatemark.campaign.trials import Repetition, Trials
from gatemark.procedures.result import AlphaTried, Capacity, RunResult, searches_limited_by
from gatemark.procedures.stateful.connection_establishment import measure_establishment_rate
from gatemark.procedures.stateful.connection_tear_down import TearDownPair, measure_tear_down, tear_down_of
from gatemark.procedures.stateful.connection_tracking_table_capacity import measure_capacity
from gatemark.procedures.stateful.connection_validation import choose_alpha
from gatemark.search.goal import Goal, SearchResult
from gatemark.trial.cell import Run


def measure_establishment_run(trials: Trials, run: Run, earlier: Sequence[RunResult]) -> RunResult:
    """Measure the maximum connection establishment rate, with or without validation (sections 4.5 and 4.6)."""
    campaign = trials.campaign
    validated = run.procedure == "validated_connection_establishment_rate"
    line = line_maximum(campaign, run.cell, campaign.line.rate)
    goal = establishment_goal(campaign, run.cell, line, validated=validated)
    model = campaign.connection_establishment_rate
    searches_alpha = validated and model is not None and model.alpha == "search"
    trials.tell(RunStarted(run=run, repetitions=campaign.repetitions, goal=goal, rates=()))
    found: list[SearchResult] = []
    tried: tuple[AlphaTried, ...] = ()
    for repetition in range(campaign.repetitions):
        steps = Repetition(trials, run, repetition)
        if searches_alpha and repetition == 0:
            chosen = choose_alpha(goal, _without_validation(run, earlier), steps.measure)
            goal, tried = replace(goal, alpha=chosen.alpha), chosen.tried
            found.append(chosen.result)
        else:
            found.append(measure_establishment_rate(goal.after(found), steps.measure))
        result = _establishment_result(run, goal, found, tried, line)
        trials.tell(RepetitionFinished(repetition=repetition, result=result))
    return result


def _establishment_result(
    run: Run, goal: Goal, found: Sequence[SearchResult], tried: tuple[AlphaTried, ...], line: int | None
) -> RunResult:
    return RunResult(
        run=run,
        limited_by=searches_limited_by(found),
        goal=goal,
        repetitions=tuple(found),
        theoretical_maximum=line,
        alpha=goal.alpha,
        alphas_tried=tried,
    )


def _without_validation(run: Run, earlier: Sequence[RunResult]) -> tuple[SearchResult, ...]:
    """Return what the same cell gave without validation."""
    without = (result for result in earlier if result.run.procedure == "connection_establishment_rate")
    return next(result.repetitions for result in without if result.run.cell == run.cell)


def measure_tear_down_run(trials: Trials, run: Run, earlier: Sequence[RunResult]) -> RunResult:
    """Measure the connection tear-down rate; full and empty tables alternate (section 4.8)."""
    campaign, connections = trials.campaign, run.cell.connections
    assert connections is not None, "a run of this procedure has a number of connections"
    rate = phase_one_rate(campaign, run.cell, earlier, phase_two_ns=0)
    trials.tell(RunStarted(run=run, repetitions=campaign.repetitions, goal=None, rates=()))
    pairs: list[TearDownPair] = []
    for repetition in range(campaign.repetitions):
        steps = Repetition(trials, run, repetition, connections_per_second=rate)
        pairs.append(measure_tear_down(connections, rate, steps.measure))
        result = RunResult(
            run=run,
            limited_by="tester" if any(pair.tester_limited for pair in pairs) else "gateway",
            tear_down=tear_down_of(connections, pairs),
        )
        trials.tell(RepetitionFinished(repetition=repetition, result=result))
    return result


def measure_capacity_run(trials: Trials, run: Run, earlier: Sequence[RunResult]) -> RunResult:
    """Measure the connection tracking table capacity (section 4.9); it brings its own safe rate."""
    del earlier
    campaign = trials.campaign
    line = line_maximum(campaign, run.cell, campaign.line.rate)
    goal = capacity_goal(campaign, run.cell, line)
    trials.tell(RunStarted(run=run, repetitions=campaign.repetitions, goal=goal.rates, rates=()))
    found: list[Capacity] = []
    for repetition in range(campaign.repetitions):
        steps = Repetition(trials, run, repetition)
        known = [capacity.start for capacity in found if capacity.start is not None]
        found.append(measure_capacity(replace(goal, rates=goal.rates.after(known)), steps.measure))
        result = RunResult(
            run=run,
            limited_by=searches_limited_by(found),
            goal=goal.rates,
            theoretical_maximum=line,
            alpha=goal.rates.alpha,
            capacities=tuple(found),
        )
        trials.tell(RepetitionFinished(repetition=repetition, result=result))
    return result
