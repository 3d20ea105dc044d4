"""The only loop with effects: runs the plan, and writes every trial into the journal before the next choice.

The trials of a run are made, repeated and replayed in `campaign.trials`; the runs that only stateful gateways have are
in `campaign.stateful_runs`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from gatemark.campaign.delay_runs import measure_delay_run
from gatemark.campaign.engine_trial import GatewayWatch
from gatemark.campaign.event_runs import measure_back_to_back_run, measure_reset_run, measure_system_recovery_run
from gatemark.campaign.events import EventCallback, RepetitionFinished, RunFinished, RunStarted, TrialFinished
from gatemark.campaign.journal import Journal
from gatemark.campaign.loads import (
    frame_loss_scan,
    line_maximum,
    load_with_loss,
    throughput_form,
    throughput_goal,
    throughput_of,
)
from gatemark.campaign.maker import TrialMaker
from gatemark.campaign.plan import Plan
from gatemark.campaign.stateful_loads import phase_one_rate, rate_before
from gatemark.campaign.stateful_runs import measure_capacity_run, measure_establishment_run, measure_tear_down_run
from gatemark.campaign.trials import Repetition, Trials
from gatemark.config.model import Campaign
from gatemark.engine.client import Engine
from gatemark.errors import Interrupted
from gatemark.procedures.frame_loss import loss_points, measure_frame_loss
from gatemark.procedures.measured import Measured
from gatemark.procedures.result import RunResult, searches_limited_by
from gatemark.procedures.throughput import measure_throughput
from gatemark.search.goal import Measure, SearchResult, bounds_of
from gatemark.trial.cell import Cell, Procedure, Run
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import TrialRecord


def ignore(_: object) -> None:
    """Watch nothing."""


def run_campaign(
    campaign: Campaign,
    plan: Plan,
    engine: Engine,
    journal: Journal,
    *,
    on_event: EventCallback = ignore,
    testbed: GatewayWatch | None = None,
) -> tuple[RunResult, ...]:
    """Measure every run of the plan; the engine's ports must be open and resolved.

    Shares of the line rate are taken of `campaign.line.rate`. Raises Interrupted on Ctrl-C, EngineError, TestBedError
    or ResultError when something fails; the journal then holds every trial made so far, and calling again with a
    journal opened on the same file continues.
    """
    try:
        maker = TrialMaker(campaign=campaign, engine=engine, testbed=testbed, on_event=on_event)
        trials = Trials(maker, journal)
        results: list[RunResult] = []
        for run in plan.runs:
            results.append(_PROCEDURES[run.procedure](trials, run, results))
            trials.tell(RunFinished(result=results[-1]))
        trials.check_all_replayed()
        return tuple(results)
    except KeyboardInterrupt:
        raise Interrupted(
            what="stopped by the user",
            where=str(journal.path),
            fix="every finished trial is kept; continue with `gatemark run --resume DIR`",
        ) from None


def run_single_trial(
    campaign: Campaign,
    cell: Cell,
    engine: Engine,
    *,
    frames_per_second: int,
    duration_ns: int,
    connections_per_second: int | None = None,
    testbed: GatewayWatch | None = None,
    on_event: EventCallback | None = None,
) -> TrialRecord:
    """Make one trial without a journal; it is judged as one of the campaign's throughput.

    A stateful one begins with test phase 1, at `connections_per_second` or as `connections.rate` says.
    """
    if cell.connections is not None and connections_per_second is None:
        connections_per_second = phase_one_rate(campaign, cell, (), phase_two_ns=duration_ns)
    maker = TrialMaker(campaign=campaign, engine=engine, testbed=testbed, on_event=on_event or ignore)
    order = TrialOrder(
        run=Run(number=1, procedure="throughput", cell=cell),
        trial_number=1,
        repetition=0,
        attempt=0,
        step=Measure(frames_per_second=frames_per_second, duration_ns=duration_ns, purpose="single"),
        connections_per_second=connections_per_second,
        form=throughput_form(campaign),
    )
    tolerance = Fraction(0) if campaign.throughput is None else campaign.throughput.loss_tolerance
    record = maker.make(order, loss_tolerance=tolerance, bounds=bounds_of(()), needs_link=True)
    maker.on_event(TrialFinished(record=record, bounds=bounds_of(()), replayed=False))
    return record


def _measure_throughput_run(trials: Trials, run: Run, earlier: Sequence[RunResult]) -> RunResult:
    campaign = trials.campaign
    assert campaign.throughput is not None
    theoretical_maximum = line_maximum(campaign, run.cell, campaign.line.rate)
    goal = throughput_goal(campaign, theoretical_maximum)
    rate = rate_before(campaign, run.cell, earlier, phase_two_ns=campaign.trial.duration_ns)
    trials.tell(RunStarted(run=run, repetitions=campaign.repetitions, goal=goal, rates=()))
    found: list[SearchResult] = []
    for repetition in range(campaign.repetitions):
        steps = Repetition(
            trials,
            run,
            repetition,
            loss_tolerance=goal.loss_tolerance,
            connections_per_second=rate,
            form=throughput_form(campaign),
        )
        found.append(measure_throughput(goal.after(found), steps.measure, search=campaign.throughput.search))
        result = RunResult(
            run=run,
            limited_by=searches_limited_by(found),
            goal=goal,
            repetitions=tuple(found),
            theoretical_maximum=theoretical_maximum,
        )
        trials.tell(RepetitionFinished(repetition=repetition, result=result))
    return result


def _measure_frame_loss_run(trials: Trials, run: Run, earlier: Sequence[RunResult]) -> RunResult:
    campaign = trials.campaign
    theoretical_maximum = line_maximum(campaign, run.cell, campaign.line.rate)
    scan = frame_loss_scan(campaign, theoretical_maximum, load_with_loss(throughput_of(run.cell, earlier)))
    rate = rate_before(campaign, run.cell, earlier, phase_two_ns=campaign.trial.duration_ns)
    trials.tell(RunStarted(run=run, repetitions=campaign.repetitions, goal=None, rates=scan.rates))
    scans: list[tuple[Measured, ...]] = []
    for repetition in range(campaign.repetitions):
        steps = Repetition(trials, run, repetition, connections_per_second=rate)
        scans.append(measure_frame_loss(scan, steps.measure))
        points = loss_points(scans)
        result = RunResult(
            run=run,
            limited_by="tester" if any(point.tester_limited for point in points) else "gateway",
            points=points,
            theoretical_maximum=theoretical_maximum,
        )
        trials.tell(RepetitionFinished(repetition=repetition, result=result))
    return result


_PROCEDURES: dict[Procedure, Callable[[Trials, Run, Sequence[RunResult]], RunResult]] = {
    "connection_establishment_rate": measure_establishment_run,
    "validated_connection_establishment_rate": measure_establishment_run,
    "throughput": _measure_throughput_run,
    "frame_loss": _measure_frame_loss_run,
    "delay": measure_delay_run,
    "back_to_back": measure_back_to_back_run,
    "system_recovery": measure_system_recovery_run,
    "reset": measure_reset_run,
    "connection_tear_down_rate": measure_tear_down_run,
    "connection_tracking_table_capacity": measure_capacity_run,
}
"""What measures a run, given the results of the runs before it."""
