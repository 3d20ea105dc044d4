"""The kinds of trial: what each asks of the engine, what it is judged by, what may excuse its failure, how it is told.

How each is made is in `campaign.maker` and `campaign.phases`; nobody else asks of which kind a trial is. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import ClassVar

from gatemark.config.model import Campaign
from gatemark.search.goal import Measure, sending_ns
from gatemark.trial.answer import mismatches, unless_empty
from gatemark.trial.connection_request import establish_request, use_request, validation_request
from gatemark.trial.echo_request import echo_request
from gatemark.trial.judgement import (
    Evidence,
    Judgement,
    Rules,
    forgets_connections,
    judged_phase_one,
    suspicion_of_failure,
    validity_of_trial,
    verdict_of_collapse,
    verdict_of_phase_one,
    verdict_of_values,
)
from gatemark.trial.messages import TrialRequest
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import ConnectionFacts, TrialRecord
from gatemark.trial.request import planned_ns, trial_request
from gatemark.trial.suspicion import Suspicion, SuspicionPolicy, suspect_echo
from gatemark.trial.telemetry import MEASURED
from gatemark.trial.validity import Validity, echo_problems, judge_exchange
from gatemark.trial.verdict import Verdict, judge
from gatemark.units import format_duration_ns, format_rate, frames_in

Told = tuple[str, tuple[str, ...]]
"""How a valid trial ended in a word, and why."""


class RateTrial:
    """Frames at a load, in one phase."""

    empties_table = False
    """Whether it begins with an empty table where the gateway is stateful."""
    finds_damage = False
    """Whether a short trial of the kind says which of two gateways in a row damaged frames."""
    request_of: ClassVar[Callable[..., TrialRequest]] = staticmethod(trial_request)
    """Makes the request of its one phase."""

    def has_phase_one(self, _order: TrialOrder) -> bool:
        """Whether it establishes connections (RFC 9693 section 4.2)."""
        return False

    def requests(self, campaign: Campaign, order: TrialOrder, attempts: Sequence[int] = ()) -> Iterator[TrialRequest]:
        """Yield a request for each attempt at test phase 1, if it has one, at its rate, and one for what follows.

        Without `attempts`: one at the rate at which it begins.
        """
        if self.has_phase_one(order):
            attempts = attempts or (order.phase_one_rate,)
        for step, rate in enumerate(attempts):
            yield phase_one_request(campaign, order, rate, step)
        last = self.last_request(campaign, order, len(attempts))
        if last is not None:
            yield last

    def last_request(self, campaign: Campaign, order: TrialOrder, _step: int) -> TrialRequest | None:
        """Return the request for all but test phase 1, as the phase of this number; None if nothing is sent in it."""
        return self.request_of(
            campaign,
            order.run.cell,
            frames_per_second=order.step.frames_per_second,
            duration_ns=order.step.duration_ns,
            trial_number=order.trial_number,
            form=order.form,
        )

    def mismatches(self, campaign: Campaign, record: TrialRecord) -> Iterator[str]:
        """Yield where the reports of a record are not the answers to what its order asks for."""
        was_made = record.boot is None and record.collapse is None
        requests = tuple(self.requests(campaign, record.order)) if was_made else ()
        for request in requests:
            yield from mismatches(request, record.report)
        if not requests:
            yield from unless_empty(record.report, record.order.trial_number)

    def lasts_ns(self, campaign: Campaign, order: TrialOrder, _replies_per_second: int) -> int:
        """Return the time of sending and waiting, for an estimate, through a gateway that gives so many replies.

        A gateway deletes its table at once.
        """
        return sum(planned_ns(request) for request in self.requests(campaign, order))

    def judge(self, trial: Evidence, rules: Rules) -> Judgement:
        """Judge a trial that was made to its end."""
        validity = validity_of_trial(trial, rules, trial.order.form)
        return validity, judge(trial.report, rules.loss_tolerance) if validity.valid else None

    def suspect(
        self, trial: Evidence, verdict: Verdict | None, rules: Rules, policy: SuspicionPolicy
    ) -> Suspicion | None:
        """Say why a failure may not be the gateway's; None if it is, or if there is none."""
        return suspicion_of_failure(trial.report, trial.host, verdict, rules.loss_tolerance, policy, trial.order.form)

    def load_words(self, order: TrialOrder) -> str:
        """Return the load and how long it lasts."""
        step = order.step
        unit = self._unit(step)
        if step.is_burst:
            frames = frames_in(step.frames_per_second, step.duration_ns)
            return f"burst of {frames:,} frames at {format_rate(step.frames_per_second)} {unit}"
        return f"{format_rate(step.frames_per_second)} {unit} for {format_duration_ns(step.duration_ns)}"

    def subject(self, record: TrialRecord) -> str:
        """Return what a finished trial was about."""
        return f"{self.load_words(record.order)} ({record.order.step.purpose})"

    def told(self, record: TrialRecord) -> Told:
        """Return how a trial ended that is valid and not suspect."""
        if record.order.form.expects_loss:
            return "done", _event_words(record)
        if record.verdict is not None and record.verdict.passed:
            return "passed", ()
        reasons = record.verdict.reasons if record.verdict is not None else ()
        return "failed", (*(cause.told for cause in record.causes), *reasons)

    def purpose(self, record: TrialRecord) -> str:
        """Return why it was made, for a table."""
        return record.order.step.purpose

    def sending_ns(self, record: TrialRecord) -> int:
        """Return how long frames were to be sent."""
        return record.order.step.duration_ns

    def phase(self, _record: TrialRecord) -> str:
        """Return what the report of a record is about: the last phase that was made; empty where there is but one."""
        return ""

    def _unit(self, _step: Measure) -> str:
        return "frames/s"


class StatefulTrial(RateTrial):
    """Frames of connections that are established first (RFC 9693 section 4)."""

    empties_table = True
    finds_damage = True
    last_phase = "phase 2"
    """What follows test phase 1, in a word."""

    def has_phase_one(self, order: TrialOrder) -> bool:
        """Whether there are connections to establish: an empty table is torn down as it is."""
        return bool(order.connections)

    def last_request(self, campaign: Campaign, order: TrialOrder, step: int) -> TrialRequest | None:
        """Return the request for test phase 2."""
        return use_request(
            campaign,
            order.run.cell,
            connections=_count_of(order),
            frames_per_second=order.step.frames_per_second,
            duration_ns=order.step.duration_ns,
            trial_number=order.step_number(step),
            form=order.form,
        )

    def mismatches(self, campaign: Campaign, record: TrialRecord) -> Iterator[str]:
        """Yield where reports are not answers, those of attempts at test phase 1 first."""
        facts = record.connections
        if facts is None:
            yield from super().mismatches(campaign, record)
            return
        attempts = facts.phase_one
        requests = self.requests(campaign, record.order, [attempt.connections_per_second for attempt in attempts])
        for attempt, request in zip(attempts, requests, strict=False):
            yield from (f"phase 1: {mismatch}" for mismatch in mismatches(request, attempt.report))
        if record.measured is None:
            return
        last = next(requests, None)
        if last is None or facts.collapse is not None:
            yield from unless_empty(record.report, record.order.step_number(0))
        else:
            yield from mismatches(last, record.report)

    def judge(self, trial: Evidence, rules: Rules) -> Judgement:
        """Judge the phase that was measured; a gateway that collapsed has failed (RFC 9693 section 4.9)."""
        facts = trial.connections
        assert facts is not None, "a stateful trial has connections"
        if facts.collapse is not None:
            reason = f"the gateway collapsed with {trial.order.connections} connections: {facts.collapse}"
            return Validity(valid=True), Verdict(passed=False, reasons=(reason,))
        return self.judge_connected(trial, facts, rules)

    def judge_connected(self, trial: Evidence, facts: ConnectionFacts, rules: Rules) -> Judgement:
        """Judge a trial in which the gateway did not collapse."""
        return _unfilled(trial, facts, rules) or super().judge(trial, rules)

    def suspect(
        self, trial: Evidence, verdict: Verdict | None, rules: Rules, policy: SuspicionPolicy
    ) -> Suspicion | None:
        """Excuse lost frames alone: connections that the gateway forgot, and a collapse, are its own."""
        facts = trial.connections
        if facts is not None and (
            facts.collapse is not None or forgets_connections(trial.report, facts.counted_after_phase_one)
        ):
            return None
        return super().suspect(trial, verdict, rules, policy)

    def subject(self, record: TrialRecord) -> str:
        """Return what a finished trial was about, with its connections."""
        counted = "" if record.connections is None else f", {record.order.connections:,} connections"
        return f"{self.load_words(record.order)}{counted} ({record.order.step.purpose})"

    def phase(self, record: TrialRecord) -> str:
        """Return the phase (RFC 9693 sections 4.2 to 4.8)."""
        if record.connections is None:
            return ""
        return self.last_phase if record.phases()[-1].name == MEASURED else "phase 1 only"


class EstablishmentTrial(StatefulTrial):
    """Connections are established at the rate under test, and may be validated (RFC 9693 sections 4.5 and 4.6)."""

    last_phase = "validation"

    def last_request(self, campaign: Campaign, order: TrialOrder, step: int) -> TrialRequest | None:
        """Return the request for the validation."""
        rate = order.step.validation_rate
        if rate is None:
            return None
        return validation_request(
            campaign,
            order.run.cell,
            connections=_count_of(order),
            connections_per_second=rate,
            trial_number=order.step_number(step),
        )

    def judge_connected(self, trial: Evidence, facts: ConnectionFacts, rules: Rules) -> Judgement:
        """Judge the validation, or test phase 1 where there is none or it failed."""
        if trial.order.step.alpha is None:
            validity = validity_of_trial(trial, rules)
            if not validity.valid:
                return validity, None
            counted = facts.counted_after_phase_one
            return validity, verdict_of_phase_one(trial.order, trial.report, counted, rules.loss_tolerance)
        first = facts.phase_one[-1]
        validity, verdict = judged_phase_one(trial.order, first, first.counted, rules)
        if verdict is None or not verdict.passed:
            return validity, verdict
        validity = validity_of_trial(trial, rules)
        named = Validity(valid=validity.valid, reasons=_in("validation", validity.reasons))
        if not validity.valid:
            return named, None
        verdict = judge(trial.report, Fraction(0))
        return named, Verdict(passed=verdict.passed, reasons=_in("validation", verdict.reasons))

    def _unit(self, step: Measure) -> str:
        return "frames/s" if step.drawn_frames else "connections/s"


class TearDownTrial(StatefulTrial):
    """All connections are deleted at once, or none (RFC 9693 section 4.8)."""

    def last_request(self, _campaign: Campaign, _order: TrialOrder, _step: int) -> TrialRequest | None:
        """Return None: nothing is sent after test phase 1."""
        return None

    def judge_connected(self, trial: Evidence, facts: ConnectionFacts, rules: Rules) -> Judgement:
        """Judge what was deleted."""
        if trial.order.connections and (unfilled := _unfilled(trial, facts, rules)) is not None:
            return unfilled
        if facts.tear_down_fault is not None:
            return Validity(valid=False, reasons=(facts.tear_down_fault,)), None
        left = facts.counted_after_tear_down
        reasons = (f"the gateway still holds {left} connections after the tear-down",) if left else ()
        return Validity(valid=True), Verdict(passed=not reasons, reasons=reasons)

    def subject(self, record: TrialRecord) -> str:
        """Return how many connections were deleted, and in what time."""
        facts = record.connections
        if facts is None or facts.tear_down_ns is None:
            return super().subject(record)
        time_ns = format_duration_ns(facts.tear_down_ns)
        return f"tear-down of {record.order.connections:,} connections in {time_ns}"

    def phase(self, record: TrialRecord) -> str:
        """Return whether there was something to delete."""
        if record.connections is None:
            return ""
        return "tear-down" if record.order.connections else "tear-down, empty table"

    def _unit(self, _step: Measure) -> str:
        return "connections/s"


class EchoTrial(RateTrial):
    """Echo requests of clients to hosts; what is lost is no failure, but a gateway that stops working is one."""

    empties_table = True
    request_of = staticmethod(echo_request)

    def lasts_ns(self, campaign: Campaign, order: TrialOrder, replies_per_second: int) -> int:
        """Return the time of sending and waiting; a closed loop may end early."""
        echo, planned_ns = order.form.of_echo, super().lasts_ns(campaign, order, replies_per_second)
        if not echo.is_closed_loop:
            return planned_ns
        return planned_ns - max(0, order.step.duration_ns - sending_ns(echo.requests, replies_per_second))

    def judge(self, trial: Evidence, rules: Rules) -> Judgement:
        """Judge the Tester: what the gateway did with requests is a question of the procedure."""
        form = trial.order.form
        validity = validity_of_trial(trial, rules, form, echo_problems(trial.report, form.of_echo))
        return validity, verdict_of_values(validity)

    def suspect(
        self, trial: Evidence, verdict: Verdict | None, rules: Rules, policy: SuspicionPolicy
    ) -> Suspicion | None:
        """Say why replies that are missing may not be the gateway's."""
        if verdict is None or trial.collapse is not None:
            return None
        return suspect_echo(trial.report, trial.host, policy, trial.order.form.of_echo)

    def load_words(self, order: TrialOrder) -> str:
        """Return clients and requests."""
        echo, step = order.form.of_echo, order.step
        if echo.is_closed_loop:
            return f"{echo.client_words}, {echo.requests:,} echo requests, {echo.outstanding_max} at once"
        rate, lasts = format_rate(step.frames_per_second), format_duration_ns(step.duration_ns)
        return f"{echo.client_words}, {rate} echo requests/s for {lasts}"

    def told(self, record: TrialRecord) -> Told:
        """Return how many replies came, and after what time."""
        facts = record.report.echo
        if facts is None:
            return super().told(record)
        mean_ns = facts.all.mean_ns
        after = "" if mean_ns is None else f" after {format_duration_ns(mean_ns)} in the mean"
        return "done", (f"{facts.total('replies'):,} of {facts.total('requests'):,} replies in time{after}",)

    def purpose(self, record: TrialRecord) -> str:
        """Return how many clients asked."""
        return record.order.form.of_echo.client_words

    def sending_ns(self, record: TrialRecord) -> int:
        """Return how long requests were sent, in a closed loop, which may end early."""
        ways = record.report.directions
        if not record.order.form.of_echo.is_closed_loop or not ways:
            return super().sending_ns(record)
        return max(way.sending_ns for way in ways)


class ExchangeTrial(RateTrial):
    """Single packets that are sent as they are, and what arrives after them."""

    def last_request(self, _campaign: Campaign, _order: TrialOrder, _step: int) -> TrialRequest | None:
        """Return None: an exchange is another request, and its report is empty."""
        return None

    def lasts_ns(self, _campaign: Campaign, order: TrialOrder, _replies_per_second: int) -> int:
        """Return the time of sending and waiting."""
        return order.step.duration_ns + order.form.of_exchange.wait_ns

    def judge(self, trial: Evidence, rules: Rules) -> Judgement:
        """Judge the Tester: what arrived is a question of the procedure."""
        assert trial.exchange is not None, "a trial that asks for an exchange has one"
        drops, faults = trial.testbed_drops, trial.testbed_faults
        validity = judge_exchange(
            trial.order.form.of_exchange, trial.exchange, testbed_drops=drops, testbed_faults=faults
        )
        return validity, verdict_of_values(validity)

    def load_words(self, order: TrialOrder) -> str:
        """Return how many packets are sent."""
        packets = order.form.of_exchange
        return f"{len(packets.left) + len(packets.right)} packets"

    def told(self, record: TrialRecord) -> Told:
        """Return how many frames arrived."""
        assert record.exchange is not None, "a valid trial that asks for an exchange has one"
        return f"{len(record.exchange.arrived)} frames arrived", ()


RATE, ECHO, EXCHANGE = RateTrial(), EchoTrial(), ExchangeTrial()
STATEFUL, ESTABLISHMENT, TEAR_DOWN = StatefulTrial(), EstablishmentTrial(), TearDownTrial()


def kind_of(order: TrialOrder) -> RateTrial:
    """Return the kind of a trial."""
    if order.form.exchange is not None:
        return EXCHANGE
    if order.form.echo is not None:
        return ECHO
    if order.connections is None:
        return RATE
    if order.step.connections is None:
        return STATEFUL
    return ESTABLISHMENT if order.step.establishes else TEAR_DOWN


def phase_one_request(campaign: Campaign, order: TrialOrder, rate: int, step: int) -> TrialRequest:
    """Return the request for an attempt at test phase 1, `rate` in connections/s."""
    return establish_request(
        campaign,
        order.run.cell,
        connections=_count_of(order),
        connections_per_second=rate,
        trial_number=order.step_number(step),
        drawn_frames=order.step.drawn_frames,
    )


def _count_of(order: TrialOrder) -> int:
    assert order.connections is not None, "a stateful trial has a number of connections"
    return order.connections


def judged(trial: Evidence, rules: Rules) -> Judgement:
    """Judge a trial by its order, its reports and what was counted."""
    if trial.collapse is not None:
        return Validity(valid=True), verdict_of_collapse(trial.collapse)
    if trial.boot is not None and (trial.connections is None or trial.connections.collapse is None):
        # The load may not have been offered.
        return Validity(valid=False, reasons=(f"{trial.boot.why}; its host was booted",)), None
    return kind_of(trial.order).judge(trial, rules)


def suspicion_of(trial: Evidence, verdict: Verdict | None, rules: Rules, *, asks_for_pattern: bool) -> Suspicion | None:
    """Say why a failure may not be the gateway's; None if it is, or if there is none (`asks_for_pattern` as there)."""
    policy = SuspicionPolicy(held_up_max_ns=rules.held_up_max_ns, asks_for_pattern=asks_for_pattern)
    return kind_of(trial.order).suspect(trial, verdict, rules, policy)


def _event_words(record: TrialRecord) -> tuple[str, ...]:
    """When the gateway was reset, and how many frames were not delivered."""
    undelivered = sum(counts.undelivered for _, _, counts in record.report.counts())
    lost = f"{undelivered:,} frames not delivered"
    return (lost,) if record.reset is None else (f"reset after {format_duration_ns(record.reset.began_ns)}, {lost}",)


def _unfilled(trial: Evidence, facts: ConnectionFacts, rules: Rules) -> Judgement | None:
    """Judge a trial that got no further than test phase 1; None if an attempt filled the table."""
    last = facts.phase_one[-1]
    validity, verdict = judged_phase_one(trial.order, last, last.counted, rules)
    if verdict is not None and verdict.passed:
        return None
    reasons = (verdict or validity).reasons if last.suspicion is None else (last.suspicion.reason,)
    return Validity(valid=False, reasons=_in("phase 1", reasons)), None


def _in(phase: str, reasons: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{phase}: {reason}" for reason in reasons)
