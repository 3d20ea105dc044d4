"""The kinds of trial: what each is judged by, what may excuse its failure, and how it is told. Pure.

How each is made is in `campaign.maker`; nobody else asks of which kind a trial is.
"""

from __future__ import annotations

from fractions import Fraction

from gatemark.search.goal import Measure
from gatemark.trial.judgement import (
    Evidence,
    Judgement,
    Rules,
    judged_phase_one,
    misses_connections,
    suspicion_of_failure,
    validity_of_trial,
    verdict_of_collapse,
    verdict_of_phase_one,
    verdict_of_values,
)
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import ConnectionFacts, TrialRecord
from gatemark.trial.suspicion import Suspicion, SuspicionPolicy, suspect_echo
from gatemark.trial.validity import Validity, judge_exchange
from gatemark.trial.verdict import Verdict, judge
from gatemark.units import format_duration_ns, format_rate, frames_in

Told = tuple[str, tuple[str, ...]]
"""How a valid trial ended in a word, and why."""


class RateTrial:
    """Frames at a load, in one phase."""

    empties_table = False
    """Whether it begins with an empty table where the gateway is stateful."""

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
    """Connections are established first, or are what is measured (RFC 9693 section 4)."""

    empties_table = True

    def judge(self, trial: Evidence, rules: Rules) -> Judgement:
        """Judge the phase that was measured; a gateway that collapsed has failed (RFC 9693 section 4.9)."""
        facts, step = trial.connections, trial.order.step
        assert facts is not None, "a stateful trial has connections"
        if facts.collapse is not None:
            reason = f"the gateway collapsed with {trial.order.connections} connections: {facts.collapse}"
            return Validity(valid=True), Verdict(passed=False, reasons=(reason,))
        if step.connections is None:
            return _unfilled(trial, facts, rules) or super().judge(trial, rules)
        judge_connections = _judged_establishment if step.establishes else _judged_tear_down
        return judge_connections(trial, facts, rules)

    def suspect(
        self, trial: Evidence, verdict: Verdict | None, rules: Rules, policy: SuspicionPolicy
    ) -> Suspicion | None:
        """Excuse lost frames alone: connections that the gateway forgot, and a collapse, are its own."""
        facts = trial.connections
        if facts is not None and (
            facts.collapse is not None or misses_connections(trial.report, facts.counted_after_phase_one)
        ):
            return None
        return super().suspect(trial, verdict, rules, policy)

    def subject(self, record: TrialRecord) -> str:
        """Return what a finished trial was about, with its connections."""
        facts, count = record.connections, record.order.connections
        if facts is not None and facts.tear_down_ns is not None:
            return f"tear-down of {count:,} connections in {format_duration_ns(facts.tear_down_ns)}"
        counted = "" if facts is None else f", {count:,} connections"
        return f"{self.load_words(record.order)}{counted} ({record.order.step.purpose})"

    def phase(self, record: TrialRecord) -> str:
        """Return the phase (RFC 9693 sections 4.2 to 4.8)."""
        facts, step = record.connections, record.order.step
        if facts is None:
            return ""
        if step.tears_down:
            return "tear-down" if record.order.connections else "tear-down, empty table"
        if not facts.phase_one or record.report == facts.phase_one[-1].report:
            return "phase 1 only"
        return "phase 2" if step.alpha is None else "validation"

    def _unit(self, step: Measure) -> str:
        return "frames/s" if step.connections is None or step.drawn_frames else "connections/s"


class EchoTrial(RateTrial):
    """Echo requests of clients to hosts; what is lost is no failure, but a gateway that stops working is one."""

    empties_table = True

    def judge(self, trial: Evidence, rules: Rules) -> Judgement:
        """Judge the Tester: what the gateway did with requests is a question of the procedure."""
        validity = validity_of_trial(trial, rules, trial.order.form)
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


RATE, STATEFUL, ECHO, EXCHANGE = RateTrial(), StatefulTrial(), EchoTrial(), ExchangeTrial()


def kind_of(order: TrialOrder) -> RateTrial:
    """Return the kind of a trial."""
    if order.form.exchange is not None:
        return EXCHANGE
    if order.form.echo is not None:
        return ECHO
    return STATEFUL if order.connections is not None and order.run.cell.mix.has_foreground else RATE


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


def _judged_establishment(trial: Evidence, facts: ConnectionFacts, rules: Rules) -> Judgement:
    """Judge connections that were established at the rate under test (RFC 9693 sections 4.5 and 4.6)."""
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


def _judged_tear_down(trial: Evidence, facts: ConnectionFacts, rules: Rules) -> Judgement:
    """Judge the deletion of all connections, or of none (RFC 9693 section 4.8)."""
    if trial.order.connections and (unfilled := _unfilled(trial, facts, rules)) is not None:
        return unfilled
    if facts.tear_down_fault is not None:
        return Validity(valid=False, reasons=(facts.tear_down_fault,)), None
    left = facts.counted_after_tear_down
    reasons = (f"the gateway still holds {left} connections after the tear-down",) if left else ()
    return Validity(valid=True), Verdict(passed=not reasons, reasons=reasons)


def _in(phase: str, reasons: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{phase}: {reason}" for reason in reasons)
