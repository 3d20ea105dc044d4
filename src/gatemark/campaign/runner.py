"""The only loop with effects: runs the plan, and writes every trial into the journal before the next choice.

What a run measures is decided by its procedure; its trials are made, repeated and replayed in `campaign.trials`.
"""

from __future__ import annotations

from gatemark.campaign.engine_trial import Demands
from gatemark.campaign.events import EventCallback, RunFinished, RunStarted, TornLineDropped, TrialFinished
from gatemark.campaign.facts import blamed
from gatemark.campaign.journal import KeptTrials
from gatemark.campaign.maker import TrialMaker
from gatemark.campaign.plan import Plan, flow_start_of
from gatemark.campaign.trials import Trials, TrialsOfRun
from gatemark.config.model import Campaign, PassRule
from gatemark.dut.base import NO_ABILITIES, Abilities
from gatemark.engine.client import Engine
from gatemark.errors import Interrupted
from gatemark.procedures.earlier import Earlier
from gatemark.procedures.phase_one import rate_before
from gatemark.procedures.registry import PROCEDURES
from gatemark.results.run import RunResult
from gatemark.search.goal import Measure, bounds_of
from gatemark.trial.cell import Cell, Run
from gatemark.trial.echo import EchoForm
from gatemark.trial.form import TrialForm
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import TrialRecord


def ignore(_: object) -> None:
    """Watch nothing."""


def run_campaign(
    campaign: Campaign,
    plan: Plan,
    engine: Engine,
    journal: KeptTrials,
    *,
    on_event: EventCallback = ignore,
    can: Abilities = NO_ABILITIES,
) -> tuple[RunResult, ...]:
    """Measure every run of the plan; the engine's ports must be open and resolved.

    Loads in % are shares of `campaign.line.rate`. Raises Interrupted on Ctrl-C, EngineError, TestBedError
    or ResultError when something fails; the journal then holds every trial made so far, and calling again with a
    journal opened on the same file continues.
    """
    try:
        maker = TrialMaker(campaign=campaign, engine=engine, can=can, on_event=on_event)
        trials = Trials(maker, journal)
        earlier = Earlier()
        if journal.torn_octets:
            trials.tell(TornLineDropped(octets=journal.torn_octets))
        for run in plan.runs:
            procedure = PROCEDURES[run.procedure]
            repetitions = campaign.table(procedure.table).repetitions(campaign)
            trials.tell(RunStarted(run=run, repetitions=repetitions))
            trials_of_run = TrialsOfRun(trials, run, repetitions, earlier)
            result = blamed(procedure.run.measure(trials_of_run), trials_of_run.tally)
            earlier.add(run.cell, result)
            trials.tell(RunFinished(run=run, result=result))
        trials.check_all_replayed()
        return tuple(result for _, result in earlier.results)
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
    can: Abilities = NO_ABILITIES,
    on_event: EventCallback | None = None,
    echo: EchoForm | None = None,
) -> TrialRecord:
    """Make one trial without a journal; it passes by the rule of the campaign, if a table has one.

    A stateful one begins with test phase 1, at `connections_per_second` or as `connections.rate` says; one of `echo`
    requests needs none.
    """
    if connections_per_second is None:
        connections_per_second = rate_before(campaign, cell, Earlier(), phase_two_ns=duration_ns)
    maker = TrialMaker(campaign=campaign, engine=engine, can=can, on_event=on_event or ignore)
    rule = next((table.pass_rule for table in campaign.tables if table.pass_rule is not None), PassRule())
    order = TrialOrder(
        run=Run(number=1, procedure="single trial", cell=cell),
        trial_number=1,
        repetition=0,
        attempt=0,
        step=Measure(frames_per_second=frames_per_second, duration_ns=duration_ns, purpose="single"),
        connections_per_second=connections_per_second,
        form=TrialForm(timeout_ns=rule.frame_timeout_ns, flow_start=flow_start_of(campaign, cell))
        if echo is None
        else TrialForm(echo=echo, drain_ns=echo.timeout_ns),
    )
    record = maker.make(
        order, loss_tolerance=rule.loss_tolerance, bounds=bounds_of(()), demands=Demands(needs_link=True)
    )
    maker.on_event(TrialFinished(record=record, bounds=bounds_of(()), replayed=False))
    return record
