"""Validity, verdict and suspicion of a whole trial: pure functions of what was asked and what was observed.

The same functions judge a trial when it is made and again when it is replayed from the journal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Self

from gatemark.config.tables import ValidityModel
from gatemark.trial.exchange import ExchangeFacts
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.trial.host import HostFacts
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import BootFacts, ConnectionFacts, PhaseOne, TrialRecord
from gatemark.trial.report import TrialReport
from gatemark.trial.suspicion import Suspicion, SuspicionPolicy, suspect, suspect_echo
from gatemark.trial.validity import Validity, ValidityPolicy, judge_exchange, judge_validity
from gatemark.trial.verdict import Verdict, judge

Judgement = tuple[Validity, Verdict | None]
"""The verdict is None if the trial is invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the campaign file allows."""

    lateness_max_ns: int
    """No burst may be sent later than this after its planned time, unless the form of the trial allows less."""
    held_up_max_ns: int | None
    """As in `SuspicionPolicy`."""
    loss_tolerance: Fraction

    @classmethod
    def of(cls, validity: ValidityModel, loss_tolerance: Fraction) -> Self:
        """Return the rules of a campaign for the trials of a search."""
        return cls(
            lateness_max_ns=validity.lateness_max_ns,
            held_up_max_ns=validity.held_up_max_ns,
            loss_tolerance=loss_tolerance,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that a trial is judged by."""

    order: TrialOrder
    report: TrialReport
    testbed_drops: Mapping[str, int]
    testbed_faults: Sequence[str]
    host: HostFacts | None
    connections: ConnectionFacts | None
    boot: BootFacts | None = None
    """As of a record."""
    exchange: ExchangeFacts | None = None
    """As of a record."""
    collapse: str | None = None
    """As of a record."""

    @classmethod
    def of(cls, record: TrialRecord) -> Self:
        """Return what a record was judged by."""
        return cls(**{field.name: getattr(record, field.name) for field in fields(cls)})


def validity_of(
    report: TrialReport,
    *,
    lateness_max_ns: int,
    testbed_drops: Mapping[str, int],
    testbed_faults: Sequence[str],
    form: TrialForm = PLAIN,
) -> Validity:
    """Judge one trial of the engine; `lateness_max_ns` is that of the campaign."""
    return judge_validity(
        report,
        ValidityPolicy(lateness_max_ns=form.lateness_limit_ns(lateness_max_ns)),
        testbed_drops=testbed_drops,
        testbed_faults=testbed_faults,
        form=form,
    )


def verdict_of_phase_one(
    order: TrialOrder, report: TrialReport, counted: int | None, loss_tolerance: Fraction = Fraction(0)
) -> Verdict:
    """Judge a valid test phase 1: every connection was established (RFC 9693 section 4.2).

    Of connections that are drawn, those that had a frame. `counted`: connections that the gateway counts after it; None
    if it cannot, or if a validation looks at each. `loss_tolerance`: share of the connections that may be missing.
    """
    is_drawn, connections = order.step.drawn_frames is not None, order.connections
    assert connections is not None, "a stateful trial has a number of connections"
    if is_drawn and report.connections is not None:
        connections = report.connections.established
    reasons = judge(report, loss_tolerance, establishes_all=not is_drawn and not loss_tolerance).reasons
    if counted is not None and counted < (1 - loss_tolerance) * connections:
        reasons += (f"the gateway holds {counted} of {connections} connections",)
    return Verdict(passed=not reasons, reasons=reasons)


def judged(trial: Evidence, rules: Rules) -> Judgement:
    """Judge a trial by its order, its reports and what was counted."""
    facts = trial.connections
    if facts is not None and facts.collapse is not None:
        reason = f"the gateway collapsed with {trial.order.connections} connections: {facts.collapse}"
        return Validity(valid=True), Verdict(passed=False, reasons=(reason,))
    if trial.collapse is not None:
        return Validity(valid=True), verdict_of_collapse(trial.collapse)
    if trial.boot is not None:  # the load may not have been offered
        return Validity(valid=False, reasons=(f"{trial.boot.why}; its host was booted",)), None
    if trial.exchange is not None:
        return _judged_exchange(trial, trial.exchange)
    if trial.order.form.echo is not None:
        validity = _validity(trial, rules, trial.order.form)
        return validity, verdict_of_values(validity)
    if facts is None:
        return _judged_frames(trial, rules)
    if trial.order.step.connections is None:
        return _unfilled(trial, facts, rules) or _judged_frames(trial, rules)
    judge_connections = _judged_establishment if trial.order.step.establishes else _judged_tear_down
    return judge_connections(trial, facts, rules)


def suspicion_of(trial: Evidence, verdict: Verdict | None, rules: Rules, *, asks_for_pattern: bool) -> Suspicion | None:
    """Say why a failure may not be the gateway's; None if it is, or if there is none (`asks_for_pattern` as there)."""
    facts = trial.connections
    if facts is not None and (facts.collapse is not None or _misses(trial.report, facts.counted_after_phase_one)):
        return None
    policy = SuspicionPolicy(held_up_max_ns=rules.held_up_max_ns, asks_for_pattern=asks_for_pattern)
    if trial.order.form.echo is not None:
        is_measured = verdict is not None and trial.collapse is None
        return suspect_echo(trial.report, trial.host, policy, trial.order.form.echo) if is_measured else None
    return _suspicion(trial.report, trial.host, verdict, rules.loss_tolerance, policy, trial.order.form)


def suspicion_of_phase_one(attempt: PhaseOne, rules: Rules) -> Suspicion | None:
    """Say why an attempt at test phase 1 may not have failed by the gateway; its own suspicion is not looked at."""
    if _misses(attempt.report, attempt.counted):
        return None
    policy = SuspicionPolicy(held_up_max_ns=rules.held_up_max_ns, asks_for_pattern=False)
    return _suspicion(attempt.report, attempt.host, attempt.verdict, Fraction(0), policy)


def _suspicion(
    report: TrialReport,
    host: HostFacts | None,
    verdict: Verdict | None,
    loss_tolerance: Fraction,
    policy: SuspicionPolicy,
    form: TrialForm = PLAIN,
) -> Suspicion | None:
    if verdict is None or verdict.passed:
        return None
    return suspect(report, host, loss_tolerance, policy, form)


def _misses(report: TrialReport, counted: int | None) -> bool:
    """Whether a trial failed by something else than lost frames: the gateway forgot connections, or none were used."""
    if report.connections is None:
        return True
    return counted is not None and counted < report.connections.established


def is_judged_alike(record: TrialRecord, rules: Rules, *, asks_for_pattern: bool) -> bool:
    """Whether a record, each attempt at test phase 1 included, would be judged today as it was when it was made."""
    trial = Evidence.of(record)
    attempts = () if record.connections is None else record.connections.phase_one
    return (
        judged(trial, rules) == (record.validity, record.verdict)
        and suspicion_of(trial, record.verdict, rules, asks_for_pattern=asks_for_pattern) == record.suspicion
        and all(
            judged_phase_one(record.order, attempt, rules) == (attempt.validity, attempt.verdict)
            and suspicion_of_phase_one(attempt, rules) == attempt.suspicion
            for attempt in attempts
        )
    )


def _judged_frames(trial: Evidence, rules: Rules) -> Judgement:
    validity = _validity(trial, rules, trial.order.form)
    return validity, judge(trial.report, rules.loss_tolerance) if validity.valid else None


def _judged_exchange(trial: Evidence, facts: ExchangeFacts) -> Judgement:
    asked = trial.order.form.exchange
    assert asked is not None, "only a trial that asks for an exchange has one"
    validity = judge_exchange(asked, facts, testbed_drops=trial.testbed_drops, testbed_faults=trial.testbed_faults)
    return validity, verdict_of_values(validity)


def verdict_of_values(validity: Validity) -> Verdict | None:
    """Return the verdict of a trial that has no goal: what the gateway did is a question of its procedure."""
    return Verdict(passed=True) if validity.valid else None


def verdict_of_collapse(how: str) -> Verdict:
    """Return the verdict of a trial in which the gateway stopped working, where that is a result."""
    return Verdict(passed=False, reasons=(f"the gateway collapsed: {how}",))


def judged_phase_one(order: TrialOrder, attempt: PhaseOne, rules: Rules) -> Judgement:
    """Judge one attempt at test phase 1; its own validity and verdict are not looked at."""
    validity = validity_of(
        attempt.report,
        lateness_max_ns=rules.lateness_max_ns,
        testbed_drops=attempt.testbed_drops,
        testbed_faults=attempt.testbed_faults,
    )
    if not validity.valid:
        return validity, None
    counted = None if order.step.alpha is not None else attempt.counted
    return validity, verdict_of_phase_one(order, attempt.report, counted)


def _unfilled(trial: Evidence, facts: ConnectionFacts, rules: Rules) -> Judgement | None:
    """Judge a trial that got no further than test phase 1; None if an attempt filled the table."""
    last = facts.phase_one[-1]
    validity, verdict = judged_phase_one(trial.order, last, rules)
    if verdict is not None and verdict.passed:
        return None
    reasons = (verdict or validity).reasons if last.suspicion is None else (last.suspicion.reason,)
    return Validity(valid=False, reasons=_in("phase 1", reasons)), None


def _judged_establishment(trial: Evidence, facts: ConnectionFacts, rules: Rules) -> Judgement:
    """Judge connections that were established at the rate under test (RFC 9693 sections 4.5 and 4.6)."""
    if trial.order.step.alpha is None:
        validity = _validity(trial, rules)
        if not validity.valid:
            return validity, None
        counted = facts.counted_after_phase_one
        return validity, verdict_of_phase_one(trial.order, trial.report, counted, rules.loss_tolerance)
    validity, verdict = judged_phase_one(trial.order, facts.phase_one[-1], rules)
    if verdict is None or not verdict.passed:
        return validity, verdict
    validity = _validity(trial, rules)
    named = Validity(valid=validity.valid, reasons=_in("validation", validity.reasons))
    if not validity.valid:
        return named, None
    verdict = judge(trial.report, Fraction(0))
    return named, Verdict(passed=verdict.passed, reasons=_in("validation", verdict.reasons))


def _judged_tear_down(trial: Evidence, facts: ConnectionFacts, rules: Rules) -> Judgement:
    """Judge the deletion of all connections, or of none (RFC 9693 section 4.8)."""
    if trial.order.connections and (unfilled := _unfilled(trial, facts, rules)) is not None:
        return unfilled
    left = facts.counted_after_tear_down
    reasons = (f"the gateway still holds {left} connections after the tear-down",) if left else ()
    return Validity(valid=True), Verdict(passed=not reasons, reasons=reasons)


def _validity(trial: Evidence, rules: Rules, form: TrialForm = PLAIN) -> Validity:
    return validity_of(
        trial.report,
        lateness_max_ns=rules.lateness_max_ns,
        testbed_drops=trial.testbed_drops,
        testbed_faults=trial.testbed_faults,
        form=form,
    )


def _in(phase: str, reasons: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{phase}: {reason}" for reason in reasons)
