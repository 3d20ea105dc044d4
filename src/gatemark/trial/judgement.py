"""What validity, verdict and suspicion of a trial are made of: functions of what was asked and what was observed. Pure.

The same functions judge a trial when it is made and again when it is replayed from the journal (`trial.kinds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Self

from gatemark.config.tables import ValidityModel
from gatemark.trial.exchange import ExchangeFacts
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.trial.host import HostFacts
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import BootFacts, ConnectionFacts, PhaseOne, ResetFacts, TrialRecord
from gatemark.trial.report import TrialReport
from gatemark.trial.suspicion import Suspicion, SuspicionPolicy, suspect
from gatemark.trial.telemetry import TelemetryFacts
from gatemark.trial.validity import Validity, ValidityPolicy, judge_validity
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
    """All that was observed of a trial, and what it is judged by; its record has all of this by the same names."""

    order: TrialOrder
    report: TrialReport
    testbed_drops: Mapping[str, int] = field(default_factory=dict)
    testbed_faults: tuple[str, ...] = ()
    gateway_drops: Mapping[str, int] = field(default_factory=dict)
    host: HostFacts | None = None
    telemetry: TelemetryFacts | None = None
    connections: ConnectionFacts | None = None
    reset: ResetFacts | None = None
    boot: BootFacts | None = None
    exchange: ExchangeFacts | None = None
    collapse: str | None = None

    @classmethod
    def of(cls, record: TrialRecord) -> Self:
        """Return what a record was judged by."""
        return cls(**{field.name: getattr(record, field.name) for field in fields(cls)})


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


def suspicion_of_phase_one(attempt: PhaseOne, rules: Rules) -> Suspicion | None:
    """Say why an attempt at test phase 1 may not have failed by the gateway; its own suspicion is not looked at."""
    if forgets_connections(attempt.report, attempt.counted):
        return None
    policy = SuspicionPolicy(held_up_max_ns=rules.held_up_max_ns, asks_for_pattern=False)
    return suspicion_of_failure(attempt.report, attempt.host, attempt.verdict, Fraction(0), policy)


def suspicion_of_failure(
    report: TrialReport,
    host: HostFacts | None,
    verdict: Verdict | None,
    loss_tolerance: Fraction,
    policy: SuspicionPolicy,
    form: TrialForm = PLAIN,
) -> Suspicion | None:
    """Say why lost frames may not be the gateway's; None if they are, or if the trial did not fail."""
    if verdict is None or verdict.passed:
        return None
    return suspect(report, host, loss_tolerance, policy, form)


def forgets_connections(report: TrialReport, counted: int | None) -> bool:
    """Whether a trial failed by something else than lost frames: the gateway forgot connections, or none were used."""
    if report.connections is None:
        return True
    return counted is not None and counted < report.connections.established


def verdict_of_values(validity: Validity) -> Verdict | None:
    """Return the verdict of a trial that has no goal: what the gateway did is a question of its procedure."""
    return Verdict(passed=True) if validity.valid else None


def verdict_of_collapse(how: str) -> Verdict:
    """Return the verdict of a trial in which the gateway stopped working, where that is a result."""
    return Verdict(passed=False, reasons=(f"the gateway collapsed: {how}",))


def judged_phase_one(order: TrialOrder, attempt: Evidence | PhaseOne, counted: int | None, rules: Rules) -> Judgement:
    """Judge one attempt at test phase 1, after which the gateway counted so many connections."""
    validity = validity_of_trial(attempt, rules)
    if not validity.valid:
        return validity, None
    return validity, verdict_of_phase_one(order, attempt.report, None if order.step.alpha is not None else counted)


def validity_of_trial(
    trial: Evidence | PhaseOne, rules: Rules, form: TrialForm = PLAIN, of_kind: Iterable[str] = ()
) -> Validity:
    """Judge the report of a trial or an attempt; `form` is that of the phase, `of_kind` as in `judge_validity`."""
    return judge_validity(
        trial.report,
        ValidityPolicy(lateness_max_ns=form.lateness_limit_ns(rules.lateness_max_ns)),
        testbed_drops=trial.testbed_drops,
        testbed_faults=trial.testbed_faults,
        form=form,
        of_kind=of_kind,
    )
