"""Suspicion and causes of a failure together: a host that was held up loses what was due, whatever it is. Pure.

Where something else than time sets the lost frames apart, a hold-up has not lost them, however long it was.
"""

from __future__ import annotations

from gatemark.causes.registry import causes_of
from gatemark.trial.cause import Cause
from gatemark.trial.form import PLAIN
from gatemark.trial.judgement import Evidence, Rules, judged_phase_one, suspicion_of_phase_one
from gatemark.trial.kinds import judged, suspicion_of
from gatemark.trial.record import PhaseOne, TrialRecord
from gatemark.trial.report import TrialReport
from gatemark.trial.suspicion import Suspicion

APART_FROM_TIME = frozenset(("fields", "flows", "residue", "first_frames", "age", "uniform", "too_large"))
"""Causes that no time without the gateway's work explains. What the host counted is none: counters name no frames."""

Why = tuple[Suspicion | None, tuple[Cause, ...]]
"""Why a failure may not be the gateway's, or, if it is, why frames were lost."""


def why_it_failed(record: TrialRecord, rules: Rules, *, asks_for_pattern: bool) -> Why:
    """Return why a trial failed, from its order, reports and verdict; `asks_for_pattern` as in `SuspicionPolicy`."""
    causes = causes_of(record.report, record.verdict, record.order.form, record.host, record.stated_mtus)
    if _are_apart_from_time(record.report, causes):
        return None, causes
    suspicion = suspicion_of(Evidence.of(record), record.verdict, rules, asks_for_pattern=asks_for_pattern)
    return suspicion, causes if suspicion is None else ()


def why_phase_one_failed(attempt: PhaseOne, rules: Rules) -> Why:
    """Return why an attempt at test phase 1 failed."""
    causes = causes_of(attempt.report, attempt.verdict, PLAIN, attempt.host)
    if _are_apart_from_time(attempt.report, causes):
        return None, causes
    suspicion = suspicion_of_phase_one(attempt, rules)
    return suspicion, causes if suspicion is None else ()


def _are_apart_from_time(report: TrialReport, causes: tuple[Cause, ...]) -> bool:
    """Whether causes explain the losses of every direction and class, none of them by time."""
    explained = {(cause.direction, cause.traffic_class) for cause in causes if cause.cause in APART_FROM_TIME}
    lossy = {(direction, name) for direction, name, counts in report.counts() if counts.lost or counts.late}
    return bool(lossy) and lossy <= explained


def is_judged_alike(record: TrialRecord, rules: Rules, *, asks_for_pattern: bool) -> bool:
    """Whether a record, each attempt at test phase 1 included, would be judged today as it was when it was made."""
    return (
        judged(Evidence.of(record), rules) == (record.validity, record.verdict)
        and why_it_failed(record, rules, asks_for_pattern=asks_for_pattern) == (record.suspicion, record.causes)
        and all(
            judged_phase_one(record.order, attempt, attempt.counted, rules) == (attempt.validity, attempt.verdict)
            and why_phase_one_failed(attempt, rules) == (attempt.suspicion, attempt.causes)
            for attempt in record.attempts
        )
    )
