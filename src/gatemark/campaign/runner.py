"""The only loop with effects: runs the plan, and writes every trial into the journal before the next choice.

Resuming is replay: trials that the journal holds are taken from it in order, so the same decisions are made, and
measuring goes on where it stopped. Whether a trial counts is decided in `trial.validity`, whether it passes in
`trial.verdict`.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction

from gatemark.campaign.events import EventCallback, RepetitionFinished, RunFinished, RunStarted, TrialFinished
from gatemark.campaign.journal import Journal, TrialRecord
from gatemark.campaign.loads import frame_loss_scan, line_maximum, throughput_goal
from gatemark.campaign.maker import GatewayWatch, TrialMaker, TrialOrder
from gatemark.campaign.plan import Cell, Plan, Run
from gatemark.config.model import Campaign
from gatemark.engine.client import Engine
from gatemark.errors import Interrupted, ResultError
from gatemark.procedures.frame_loss import loss_points, measure_frame_loss
from gatemark.procedures.measured import Measured
from gatemark.procedures.result import RunResult, throughput_limited_by
from gatemark.procedures.throughput import measure_throughput
from gatemark.search.goal import Measure, Observation, Outcome, SearchResult, bounds_of


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
        runner = _Runner(TrialMaker(campaign=campaign, engine=engine, testbed=testbed, on_event=on_event), journal)
        results = tuple(runner.measure_run(run) for run in plan.runs)
        runner.check_all_replayed()
        return results
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
    testbed: GatewayWatch | None = None,
    on_event: EventCallback | None = None,
) -> TrialRecord:
    """Make one trial without a journal; it is judged with the loss tolerance of the campaign's throughput."""
    maker = TrialMaker(campaign=campaign, engine=engine, testbed=testbed, on_event=on_event or ignore)
    order = TrialOrder(
        run=Run(number=1, procedure="throughput", cell=cell),
        trial_number=1,
        repetition=0,
        attempt=0,
        step=Measure(frames_per_second=frames_per_second, duration_ns=duration_ns, purpose="single"),
    )
    tolerance = Fraction(0) if campaign.throughput is None else campaign.throughput.loss_tolerance
    record = maker.make(order, loss_tolerance=tolerance, bounds=bounds_of(()), needs_link=True)
    maker.on_event(TrialFinished(run=order.run, record=record, bounds=bounds_of(()), replayed=False))
    return record


class _Runner:
    """The state of a campaign under way: what is left to replay, and the number of the next trial."""

    def __init__(self, maker: TrialMaker, journal: Journal) -> None:
        self.maker = maker
        self.campaign = maker.campaign
        self.journal = journal
        self._replay = deque(journal.records)
        self._trial_number = 0

    def measure_run(self, run: Run) -> RunResult:
        """Measure all repetitions of one run."""
        theoretical_maximum = line_maximum(self.campaign, run.cell, self.campaign.line.rate)
        if run.procedure == "throughput":
            result = self._measure_throughput(run, theoretical_maximum)
        else:
            result = self._measure_frame_loss(run, theoretical_maximum)
        self.maker.on_event(RunFinished(result=result))
        return result

    def _measure_throughput(self, run: Run, theoretical_maximum: int | None) -> RunResult:
        assert self.campaign.throughput is not None
        goal = throughput_goal(self.campaign, theoretical_maximum)
        self.maker.on_event(RunStarted(run=run, repetitions=self.campaign.repetitions, goal=goal, rates=()))
        found: list[SearchResult] = []
        for repetition in range(self.campaign.repetitions):
            steps = _Repetition(self, run, repetition, goal.loss_tolerance)
            found.append(measure_throughput(goal, steps.measure, search=self.campaign.throughput.search))
            result = RunResult(
                run=run,
                limited_by=throughput_limited_by(found),
                goal=goal,
                repetitions=tuple(found),
                theoretical_maximum=theoretical_maximum,
            )
            self.maker.on_event(RepetitionFinished(repetition=repetition, result=result))
        return result

    def _measure_frame_loss(self, run: Run, theoretical_maximum: int | None) -> RunResult:
        scan = frame_loss_scan(self.campaign, theoretical_maximum)
        self.maker.on_event(RunStarted(run=run, repetitions=self.campaign.repetitions, goal=None, rates=scan.rates))
        scans: list[tuple[Measured, ...]] = []
        for repetition in range(self.campaign.repetitions):
            steps = _Repetition(self, run, repetition, Fraction(0))
            scans.append(measure_frame_loss(scan, steps.measure))
            points = loss_points(scans)
            result = RunResult(
                run=run,
                limited_by="tester" if any(point.tester_limited for point in points) else "gateway",
                points=points,
                theoretical_maximum=theoretical_maximum,
            )
            self.maker.on_event(RepetitionFinished(repetition=repetition, result=result))
        return result

    def next_number(self) -> int:
        """Return the number of the next trial."""
        self._trial_number += 1
        return self._trial_number

    def replayed(self, order: TrialOrder) -> TrialRecord | None:
        """Return the journal's record of a trial, None if it must be made; raise ResultError if it does not fit."""
        if not self._replay:
            return None
        record, step = self._replay.popleft(), order.step
        asked = (
            order.trial_number,
            order.run.number,
            order.repetition,
            order.attempt,
            step.purpose,
            step.frames_per_second,
            step.duration_ns,
        )
        held = (
            record.trial_number,
            record.run,
            record.repetition,
            record.attempt,
            record.purpose,
            record.frames_per_second,
            record.duration_ns,
        )
        if asked != held:
            raise ResultError(
                what=f"trial {record.trial_number} was made for run {record.run} at {record.frames_per_second} fps, "
                f"the campaign asks for run {order.run.number} at {step.frames_per_second} fps",
                where=str(self.journal.path),
                fix="the journal belongs to another campaign; resume with the campaign file of its folder",
            )
        return record

    def check_all_replayed(self) -> None:
        """Raise ResultError if the journal holds more trials than the campaign has."""
        if self._replay:
            raise ResultError(
                what=f"trial {self._replay[0].trial_number} is none of this campaign",
                where=str(self.journal.path),
                fix="the journal belongs to another campaign; resume with the campaign file of its folder",
            )


class _Repetition:
    """One repetition of one run: makes the trials of a step, and keeps what they leave for those who watch."""

    def __init__(self, runner: _Runner, run: Run, repetition: int, loss_tolerance: Fraction) -> None:
        self.runner = runner
        self.run = run
        self.repetition = repetition
        self.loss_tolerance = loss_tolerance
        self._history: list[Observation] = []

    def measure(self, step: Measure) -> Measured:
        """Try one load until a trial is valid or the retries are used up."""
        attempts = 1 + self.runner.campaign.validity.retries
        for attempt in range(attempts):
            record = self._trial(step, attempt, is_last=attempt == attempts - 1)
            if record.verdict is not None:
                return Measured(observation=self._history[-1], report=record.report)
        return Measured(observation=self._history[-1], report=None)

    def _trial(self, step: Measure, attempt: int, *, is_last: bool) -> TrialRecord:
        runner = self.runner
        order = TrialOrder(
            run=self.run,
            trial_number=runner.next_number(),
            repetition=self.repetition,
            attempt=attempt,
            step=step,
        )
        record = runner.replayed(order)
        is_replayed = record is not None
        if record is None:
            record = runner.maker.make(
                order, loss_tolerance=self.loss_tolerance, bounds=bounds_of(self._history), needs_link=is_last
            )
            runner.journal.append(record)
        if record.verdict is not None or is_last:
            self._history.append(_observation(record))
        bounds = bounds_of(self._history)
        runner.maker.on_event(TrialFinished(run=self.run, record=record, bounds=bounds, replayed=is_replayed))
        return record


def _observation(record: TrialRecord) -> Observation:
    """Return what a search may know of a load after its last attempt."""
    if record.verdict is None:
        outcome = Outcome.TESTER_LIMITED
    else:
        outcome = Outcome.PASSED if record.verdict.passed else Outcome.FAILED
    worst = record.report.worst()
    return Observation(
        frames_per_second=record.frames_per_second,
        duration_ns=record.duration_ns,
        outcome=outcome,
        offered=worst.offered,
        undelivered=max(0, worst.undelivered),
    )
