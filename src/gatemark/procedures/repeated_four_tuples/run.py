"""Repeated four-tuples: test phase 1 with connections drawn at random, each frame's independently of all others.

That is how a generator of random ports without an enumeration establishes connections. With as many frames as
combinations 63 % of them get a connection, and towards the end most frames belong to one that is there already: so the
rate is higher than that at which connections are established, and says something else (RFC 9693 section 4.2 wants each
four-tuple once). A trial passes if every frame arrives.
"""

from __future__ import annotations

from collections.abc import Iterator

from gatemark.config.model import Campaign
from gatemark.procedures.assumed import AssumedGateway, extremes_of_goal
from gatemark.procedures.loads import interval, maximum_of
from gatemark.procedures.measured import Measured, MeasureStep
from gatemark.procedures.phase_one import foreground_of, slowest_rate
from gatemark.procedures.procedure import RunTrials
from gatemark.procedures.repeated_four_tuples.result import RepeatedFourTuplesResult
from gatemark.procedures.repeated_four_tuples.table import RepeatedFourTuplesTable
from gatemark.results.document import Deviation
from gatemark.results.part import Figure
from gatemark.results.search import SearchGoal, limited_by
from gatemark.search import binary
from gatemark.search.goal import Goal, Measure, Observation, Outcome, SearchResult
from gatemark.trial.cell import Cell, Run


def measure(trials: RunTrials) -> RepeatedFourTuplesResult:
    """Search once in each repetition."""
    campaign, table = trials.campaign, trials.campaign.table(RepeatedFourTuplesTable)
    goal = drawn_goal(campaign, trials.run.cell, trials.line_maximum)
    searches: list[SearchResult] = []
    passed: list[Measured | None] = []
    for repetition in trials.repetitions():
        result, best = search_rate(goal.after(searches), trials.steps(repetition))
        searches.append(result)
        passed.append(best)
    return RepeatedFourTuplesResult(
        **trials.facts(),
        limited_by=limited_by([search.kind for search in searches]),
        goal=SearchGoal(
            search="binary",
            maximum=goal.maximum if goal.ceiling is None else None,
            minimum=goal.minimum,
            loss_tolerance=goal.loss_tolerance,
            search_duration_ns=None,
            duration_ns=None,
        ),
        repetitions=tuple(searches),
        drawn_frames=table.frames,
        established=Figure.of([_established(best) for best in passed]),
        counted=Figure.of([_counted(best) for best in passed]),
    )


def drawn_goal(campaign: Campaign, cell: Cell, line_maximum: int | None) -> Goal:
    """Return what a search looks for. Raises ConfigError if the rates contradict each other or no rate is fast enough
    for connections to live until the end of a trial.
    """
    table, connections = campaign.table(RepeatedFourTuplesTable), cell.connections
    assert connections is not None, "the plan holds no such run without a number of connections"
    line = foreground_of(cell, line_maximum)
    maximum = maximum_of(campaign, f"{table.key}.maximum", table.maximum, line)
    slowest = slowest_rate(campaign, table.frames, None, maximum=maximum)
    rates = interval(campaign, table.key, table, line, unit="frames/s", slowest=slowest)
    return Goal(
        maximum=rates.maximum,
        minimum=rates.minimum,
        resolution=rates.resolution,
        ceiling=rates.ceiling,
        connections=connections,
        drawn_frames=table.frames,
    )


def search_rate(goal: Goal, measure_step: MeasureStep) -> tuple[SearchResult, Measured | None]:
    """Search once; also return the trial at the rate that passed, None if there is none.

    The only effects are those of `measure_step`.
    """
    passed: dict[int, Measured] = {}

    def step_once(step: Measure) -> Observation:
        trial = measure_step(step)
        if trial.observation.outcome is Outcome.PASSED:
            passed[step.frames_per_second] = trial
        return trial.observation

    result = binary.search(goal, step_once)
    return result, None if result.lower_bound is None else passed[result.lower_bound]


def _established(trial: Measured | None) -> int | None:
    """Return how many connections had a frame, as the Tester saw it."""
    report = None if trial is None else trial.report
    return None if report is None or report.connections is None else report.connections.established


def _counted(trial: Measured | None) -> int | None:
    facts = None if trial is None or trial.valid is None else trial.valid.connections
    return None if facts is None else facts.counted_after_phase_one


def gateways(campaign: Campaign, run: Run, line_maximum: int | None) -> tuple[AssumedGateway, ...]:
    """Return a fast gateway and a slow one."""
    return extremes_of_goal(campaign, run, line_maximum, drawn_goal(campaign, run.cell, line_maximum))


def deviations(campaign: Campaign) -> Iterator[Deviation]:
    """Yield that no RFC has this procedure."""
    frames = campaign.table(RepeatedFourTuplesTable).frames
    yield Deviation(
        sentence=f"With repeated four-tuples the connection of each of {frames} frames is drawn at random, so some"
        " repeat and some never occur: the rate is not a connection establishment rate, for which each four-tuple is"
        " sent once (RFC 9693 section 4.2)."
    )
