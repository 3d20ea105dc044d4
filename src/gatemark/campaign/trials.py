"""The trials of a campaign under way: made or taken from the journal, repeated until one counts, written down.

Resuming is replay: trials that the journal holds are taken from it in order, so the same decisions are made, and
measuring goes on where it stopped. Whether a trial counts is decided in `trial.validity` and `trial.suspicion`, whether
it passes in `trial.verdict`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn

from gatemark.campaign.engine_trial import Demands
from gatemark.campaign.events import Event, RepetitionFinished, TrialFinished
from gatemark.campaign.facts import TrialTally, run_facts
from gatemark.campaign.journal import KeptTrials
from gatemark.campaign.maker import TrialMaker
from gatemark.campaign.plan import flow_start_of
from gatemark.campaign.telemetry import samples_text
from gatemark.causes.judgement import is_judged_alike
from gatemark.config.tables import TrialModel, ValidityModel
from gatemark.errors import ResultError, TestBedError
from gatemark.procedures.earlier import Earlier
from gatemark.procedures.loads import line_maximum
from gatemark.procedures.measured import Measured, MeasureStep
from gatemark.search.goal import Measure, Observation, bounds_of
from gatemark.trial.cell import Run
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.trial.judgement import Rules
from gatemark.trial.kinds import kind_of
from gatemark.trial.order import TrialOrder, difference
from gatemark.trial.record import TrialRecord

BOOTS_MAX = 3
"""How often a load is tried again after the gateway stopped working and its host was booted."""

SHORT_ATTEMPTS = 10
"""A load is tried at most this many times as often as `validity.retries` says, where trials end early."""

LOST_CONNECTIONS_RETRIES = 4
"""A load is tried so often again, or as `validity.retries` says if that is less, while the gateway loses connections in
every attempt at a test phase 1 in which the Tester is blameless."""


class Trials:
    """All trials of a campaign: what is left to replay, and the number of the next one."""

    def __init__(self, maker: TrialMaker, journal: KeptTrials) -> None:
        self.maker = maker
        self.campaign = maker.campaign
        self.journal = journal
        self._replay = journal.records
        self._trial_number = 0

    def tell(self, event: Event) -> None:
        """Tell the watchers of an event."""
        self.maker.on_event(event)

    def next_number(self) -> int:
        """Return the number of the next trial."""
        self._trial_number += 1
        return self._trial_number

    def replayed(self, order: TrialOrder, loss_tolerance: Fraction, *, asks_for_pattern: bool) -> TrialRecord | None:
        """Return the journal's record of a trial, None if it must be made; `asks_for_pattern` as in `SuspicionPolicy`.

        Raises ResultError if it is of another trial, or if it is judged otherwise today.
        """
        record = next(self._replay, None)
        if record is None:
            return None
        if (mismatch := difference(record.order, order)) is not None:
            raise ResultError(
                what=f"trial {record.order.trial_number} was made with {mismatch.part} {mismatch.first},"
                f" the campaign asks for {mismatch.second}",
                where=str(self.journal.path),
                fix="the journal belongs to another campaign; resume with the campaign file of its folder",
            )
        if wrong := list(kind_of(record.order).mismatches(self.campaign, record)):
            raise ResultError(
                what=f"line {record.order.trial_number}: its report is not the answer to what was asked:"
                f" {'; '.join(wrong)}",
                where=str(self.journal.path),
                fix="restore the file, or measure into a new folder",
            )
        rules = Rules.of(self.campaign.validity, loss_tolerance)
        if not is_judged_alike(record, rules, asks_for_pattern=asks_for_pattern):
            raise ResultError(
                what=f"line {record.order.trial_number}: judged by its report and the campaign, its validity,"
                " verdict, suspicion or causes are others than the line says",
                where=str(self.journal.path),
                fix="another version of gatemark judged it: use that one, or measure into a new folder",
            )
        return record

    def check_all_replayed(self) -> None:
        """Raise ResultError if the journal holds more trials than the campaign has."""
        record = next(self._replay, None)
        if record is not None:
            raise ResultError(
                what=f"trial {record.order.trial_number} does not belong to this campaign",
                where=str(self.journal.path),
                fix="the journal belongs to another campaign; resume with the campaign file of its folder",
            )


class TrialsOfRun:
    """The trials of one run under way, as its procedure sees them (`procedures.procedure.RunTrials`)."""

    def __init__(self, trials: Trials, run: Run, repetitions: int, earlier: Earlier) -> None:
        self.campaign = trials.campaign
        self.run = run
        self.earlier = earlier
        self._trials = trials
        self._repetitions = repetitions
        self.tally = TrialTally()
        """What is told of the trials of the run so far."""

    @property
    def line_maximum(self) -> int | None:
        """Frames/s that the medium carries in one direction at this frame size; None if its rate is not known."""
        return line_maximum(self.campaign, self.run.cell, self.campaign.line.rate)

    def repetitions(self) -> Iterator[int]:
        """Yield the number of each repetition, and tell the watchers when one is finished."""
        for repetition in range(self._repetitions):
            yield repetition
            self._trials.tell(RepetitionFinished(repetition=repetition))

    def steps(
        self,
        repetition: int,
        *,
        loss_tolerance: Fraction = Fraction(0),
        connections_per_second: int | None = None,
        form: TrialForm = PLAIN,
    ) -> MeasureStep:
        """Return what makes the trials of one repetition."""
        return Repetition(
            self._trials,
            self.run,
            repetition,
            loss_tolerance=loss_tolerance,
            connections_per_second=connections_per_second,
            form=replace(form, flow_start=flow_start_of(self.campaign, self.run.cell)),
            on_record=self.tally.add,
        ).measure

    def facts(self) -> dict[str, Any]:
        """Return the fields that the results of all procedures have, as far as they are known now."""
        return run_facts(self.campaign, self.run, self.tally)


class Repetition:
    """One repetition of one run: makes the trials of a step, and keeps the bounds that they leave for the watchers."""

    def __init__(
        self,
        trials: Trials,
        run: Run,
        repetition: int,
        *,
        loss_tolerance: Fraction = Fraction(0),
        connections_per_second: int | None = None,
        form: TrialForm = PLAIN,
        on_record: Callable[[TrialRecord], None] = lambda _: None,
    ) -> None:
        self.trials = trials
        self.run = run
        self.repetition = repetition
        self.loss_tolerance = loss_tolerance
        self.connections_per_second = connections_per_second
        """Rate of test phase 1 before the phase that is measured; None where there is no such phase."""
        self.form = form
        self._on_record = on_record
        self._search: tuple[int | None, Fraction | None] = (None, None)
        self._history: list[Observation] = []

    def measure(self, step: Measure) -> Measured:
        """Try one load until a trial says something about the gateway or the retries are used up.

        Raises TestBedError if the gateway lost connections in every attempt at test phase 1: then nothing can be
        measured. The same holds for a gateway that stopped working, and did so again after `BOOTS_MAX` boots.
        """
        if self._search != (step.connections, step.alpha):  # another search: its loads do not bound this one's
            self._search, self._history = (step.connections, step.alpha), []
        campaign = self.trials.campaign
        patience = Patience(campaign.validity, campaign.trial, step.duration_ns)
        while not patience.settled_by(record := self._trial(step, patience)):
            patience.take(record)
        if _gateway_lost_connections(record):
            _refuse(record, self.trials.maker.inquiries.told(record))
        return Measured(observation=record.observation, record=record)

    def _trial(self, step: Measure, patience: Patience) -> TrialRecord:
        trials = self.trials
        order = TrialOrder(
            run=self.run,
            trial_number=trials.next_number(),
            repetition=self.repetition,
            attempt=patience.attempts,
            step=step,
            connections_per_second=self.connections_per_second,
            form=self.form,
        )
        asks_for_pattern = not patience.ends_if_suspect
        record = trials.replayed(order, self.loss_tolerance, asks_for_pattern=asks_for_pattern)
        is_replayed = record is not None
        if record is None:
            record = trials.maker.make(
                order,
                loss_tolerance=self.loss_tolerance,
                bounds=bounds_of(self._history),
                demands=Demands(needs_link=patience.ends, watches_host=patience.was_suspect),
                asks_for_pattern=asks_for_pattern,
                may_boot=patience.may_boot,
            )
            if text := samples_text(record):
                digest = hashlib.sha256(text.encode()).hexdigest()
                record = record.model_copy(update={"samples_sha256": digest})
            trials.journal.append(record)
        else:
            trials.maker.inquiries.note(record)
        self._on_record(record)
        if patience.settled_by(record):
            self._history.append(record.observation)
        bounds = bounds_of(self._history)
        trials.tell(TrialFinished(record=record, bounds=bounds, replayed=is_replayed))
        return record


class Patience:
    """How often a load is tried: once more for each of `validity.retries`, and of `validity.suspect_retries`.

    A trial in which the Tester falls behind ends at once. Where it does so for a moment now and then, a load is tried
    as often as fits into the time of that many whole trials: a long trial needs a long time without such a moment. What
    comes before the phase that ended, test phase 1 of a stateful trial, is part of that time. A gateway that loses
    connections in every attempt at test phase 1 is tried again `LOST_CONNECTIONS_RETRIES` times.
    """

    def __init__(self, validity: ValidityModel, trial: TrialModel, duration_ns: int) -> None:
        self._retries, self._waits_ns = validity.retries, trial.waits_ns
        self._duration_ns = duration_ns
        self._whole_ns = 0
        self._suspect_retries = validity.suspect_retries
        self._spent_ns = 0
        self._invalid = self._suspect = self._boots = self._lost = 0

    @property
    def attempts(self) -> int:
        """How often the load was tried without learning anything about the gateway."""
        return self._invalid + self._suspect + self._boots

    @property
    def may_boot(self) -> bool:
        """Whether the gateway's host may be booted if the gateway stops working in the next attempt."""
        return self._boots < BOOTS_MAX

    @property
    def was_suspect(self) -> bool:
        """Whether the load was tried, and the failure was suspect."""
        return self._suspect > 0

    @property
    def ends(self) -> bool:
        """Whether the next attempt is the last one if it is invalid."""
        spent = self._spent_ns >= self._retries * self._whole_ns
        return self._invalid >= self._retries and (spent or self._invalid >= SHORT_ATTEMPTS * (1 + self._retries) - 1)

    @property
    def ends_if_suspect(self) -> bool:
        """Whether the next attempt is the last one if its failure is suspect."""
        return self._suspect >= self._suspect_retries

    def settled_by(self, record: TrialRecord) -> bool:
        """Whether no attempt follows this one: it says something about the gateway, or it was the last one."""
        if record.is_decisive:
            return True
        if record.boot is not None:  # a load at which the gateway stops working is not one that the Tester cannot offer
            return False
        if record.suspicion is not None:
            return self.ends_if_suspect
        return self.ends or (_gateway_lost_connections(record) and self._lost >= LOST_CONNECTIONS_RETRIES)

    def take(self, record: TrialRecord) -> None:
        """Count a trial that says nothing about the gateway; an invalid one with the time that it took."""
        if record.boot is not None:
            self._boots += 1
            return
        if record.suspicion is not None:
            self._suspect += 1
            return
        *before, last = record.reports()
        fixed_ns = self._waits_ns + sum(phase.duration_ns for report in before for phase in report.phases)
        ended_ns = [way.sending_ns for way in last.directions if way.gave_up]
        self._spent_ns += fixed_ns + max(ended_ns, default=self._duration_ns)
        self._whole_ns = fixed_ns + self._duration_ns
        self._invalid += 1
        self._lost += _gateway_lost_connections(record)


def _gateway_lost_connections(record: TrialRecord) -> bool:
    """Whether an invalid trial got no further than a test phase 1 that was valid and lost connections."""
    if record.verdict is not None or not record.attempts:
        return False
    last = record.attempts[-1]
    return last.verdict is not None and not last.verdict.passed and last.suspicion is None


def _refuse(record: TrialRecord, damages: Iterable[str]) -> NoReturn:
    last = record.attempts[-1]
    reasons = "; ".join((*(last.verdict.reasons if last.verdict is not None else ()), *damages))
    is_loss = any(counts.lost or counts.late for _, _, counts in last.report.counts())
    raise TestBedError(
        what=f"test phase 1 failed in every attempt, the last one at {last.connections_per_second} connections/s:"
        f" {reasons}",
        where="connections.rate",
        fix="lower connections.rate, or see that the gateway holds that many connections and has ports for them"
        if is_loss
        else "no frame was lost, so a lower connections.rate would not help: correct how the gateway changes frames",
    )
