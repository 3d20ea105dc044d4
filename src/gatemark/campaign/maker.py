"""Makes one trial and judges it: request, engine, test bed, validity, verdict. Knows no search and no journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from fractions import Fraction

from gatemark.campaign.echo_trials import EchoTrials
from gatemark.campaign.engine_trial import Demands, EngineTrials
from gatemark.campaign.events import AddressesAsked, EventCallback, TrialStarted
from gatemark.campaign.inquiry import Inquiries
from gatemark.campaign.phases import StatefulTrials
from gatemark.campaign.stated_mtu import StatedMtus
from gatemark.causes.judgement import why_it_failed
from gatemark.config.model import Campaign
from gatemark.dut.base import Abilities
from gatemark.engine.client import Engine
from gatemark.errors import HostBootError, TestBedError
from gatemark.search.goal import Bounds
from gatemark.trial.judgement import Evidence, Rules
from gatemark.trial.kinds import ECHO, ESTABLISHMENT, EXCHANGE, RATE, STATEFUL, TEAR_DOWN, RateTrial, judged, kind_of
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import TrialReport


class TrialMaker:
    """Makes trials with one engine on one test bed; those of a stateful gateway in two phases."""

    def __init__(self, *, campaign: Campaign, engine: Engine, can: Abilities, on_event: EventCallback) -> None:
        self.campaign = campaign
        self.on_event = on_event
        self._trials = EngineTrials(campaign=campaign, engine=engine, can=can, on_event=on_event)
        self._stateful = StatefulTrials(self._trials)
        self._echoes = EchoTrials(self._trials, self._stateful)
        self.inquiries = Inquiries(self._trials, self._stateful)
        """Asks which of two gateways in a row damaged frames."""
        self._mtus = StatedMtus(campaign, engine)
        self._makers: Mapping[RateTrial, Callable[[TrialOrder, Rules, Demands], Evidence]] = {
            RATE: self._make_one_phase,
            STATEFUL: self._stateful.make,
            ESTABLISHMENT: self._stateful.make,
            TEAR_DOWN: self._stateful.make,
            ECHO: self._echoes.make,
            EXCHANGE: self._make_exchange,
        }
        self._booted_for: tuple[int, int] | None = None
        """Run and repetition before which the gateway's host was booted the last time."""
        self._asked_for: int | None = None
        """Run before which the gateway was asked for its link-layer addresses the last time."""

    def make(
        self,
        order: TrialOrder,
        *,
        loss_tolerance: Fraction,
        bounds: Bounds,
        demands: Demands,
        asks_for_pattern: bool = True,
        may_boot: bool = False,
    ) -> TrialRecord:
        """Make one trial and judge it; `asks_for_pattern` as in `SuspicionPolicy`.

        With `may_boot`, and if the campaign wants that, the gateway's host is booted when the gateway stopped working,
        and the trial is invalid. The capacity is another case: see `StatefulTrials`.

        Raises an error as `EngineTrials.make`, for what must not be replayed as a result of the gateway.
        """
        self.on_event(TrialStarted(order=order, bounds=bounds))
        started_at, begin = datetime.now(UTC).isoformat(timespec="milliseconds"), time.monotonic()
        kind = kind_of(order)
        self._boot_if_due(order, empties_table=kind.empties_table and self.campaign.technology.is_stateful)
        self._ask_if_due(order)
        rules = Rules.of(self.campaign.validity, loss_tolerance)
        try:
            trial = self._makers[kind](order, rules, demands)
        except HostBootError:
            raise
        except TestBedError as error:
            why = self._trials.reason_to_boot(error) if may_boot and order.form.reset_after_ns is None else None
            if why is None:
                raise
            trial = self._boot_after(order, why)
        validity, verdict = judged(trial, rules)
        record = TrialRecord(
            validity=validity,
            verdict=verdict,
            started_at=started_at,
            seconds=round(time.monotonic() - begin, 3),
            **{field.name: getattr(trial, field.name) for field in fields(trial)},
        )
        record = record.model_copy(update={"stated_mtus": self._mtus.of(record)})
        suspicion, causes = why_it_failed(record, rules, asks_for_pattern=asks_for_pattern)
        record = record.model_copy(update={"suspicion": suspicion, "causes": causes})
        damages = self.inquiries.ask(record)
        return record.model_copy(update={"damages": damages}) if damages else record

    def _boot_if_due(self, order: TrialOrder, *, empties_table: bool) -> None:
        """Boot the gateway's host if the campaign wants that before this trial.

        The test bed has booted it before the first one. Where each trial begins with a boot and with an empty table,
        emptying the table is the boot.
        """
        occasion, repetition = self.campaign.control.model.boot, (order.run.number, order.repetition)
        is_first, is_new = self._booted_for is None, self._booted_for != repetition
        self._booted_for = repetition
        is_due = (occasion == "repetition" and is_new) or (occasion == "trial" and not empties_table)
        if is_due and not is_first:
            self._trials.boot(order.trial_number)

    def _ask_if_due(self, order: TrialOrder) -> None:
        """Ask for the gateway's link-layer addresses before the first trial that a run makes.

        Silence is no error yet: whether frames pass is seen in the trial.
        """
        if self._asked_for == order.run.number:
            return
        self._asked_for = order.run.number
        if news := self._trials.addresses.ask_again().sentences:
            self.on_event(AddressesAsked(run=order.run, news=news))

    def _boot_after(self, order: TrialOrder, why: str) -> Evidence:
        """Boot the gateway's host; return a trial that says nothing about the load, for the gateway was not there."""
        boot = self._trials.boot_after(order.trial_number, why)
        return Evidence(order=order, report=TrialReport.none(order.trial_number), boot=boot)

    def _make_exchange(self, order: TrialOrder, _rules: Rules, demands: Demands) -> Evidence:
        return self._trials.exchange(order, demands)

    def _make_one_phase(self, order: TrialOrder, _rules: Rules, demands: Demands) -> Evidence:
        (body,) = kind_of(order).requests(self.campaign, order)
        return self._trials.make(body, order, demands, form=order.form)
