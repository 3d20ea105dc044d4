"""System recovery: how long frames are still lost after an overload has ended (RFC 2544 section 26.5).

The load falls at time A. The last lost frame was due at time B; the recovery time is B - A.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gatemark.config import defaults
from gatemark.config.model import Campaign
from gatemark.procedures.base_load import SELF_TEST, Refusal, forwards_line_rate, median_throughput, problems_of
from gatemark.procedures.event_times import due_ns, is_at_end
from gatemark.procedures.measured import Measured
from gatemark.procedures.phase_one import rate_before
from gatemark.procedures.procedure import RunTrials
from gatemark.procedures.system_recovery.result import RecoverySeries, SystemRecoveryResult
from gatemark.procedures.system_recovery.table import SystemRecoveryTable
from gatemark.results.coordinates import share_of
from gatemark.results.document import Deviation
from gatemark.results.run import Outcome
from gatemark.search.goal import Measure
from gatemark.trial.form import RateStep, TrialForm
from gatemark.trial.report import Counts, TrialReport
from gatemark.units import format_duration_ns, format_ratio, frames_in


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPlan:
    """The trial of a system recovery; loads are frames/s in one direction."""

    overload: int
    throughput: int
    """What the overload is a share of."""
    load_share: str | None
    """The overload as that share, or as one of the line; None if the campaign file names the throughput."""
    duration_ns: int
    """Sending time of the overload."""
    observe_ns: int
    """Sending time of half of it."""
    period: int
    """Frames of one period of foreground and background."""

    @property
    def step(self) -> RateStep:
        """Half of the overload, not of the throughput (RFC 2544 section 26.5)."""
        return RateStep(after_ns=self.duration_ns, frames_per_second=max(1, self.overload // 2))

    @property
    def form(self) -> TrialForm:
        """What the trials do beyond their first load."""
        return TrialForm(step=self.step)

    @property
    def measure(self) -> Measure:
        duration_ns = self.duration_ns + self.observe_ns
        return Measure(frames_per_second=self.overload, duration_ns=duration_ns, purpose="event")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Observed:
    """What one class of frames of one repetition shows."""

    outcome: Outcome
    recovery_ns: int | None = None
    last_loss_before_ns: int | None = None


def measure(trials: RunTrials) -> SystemRecoveryResult:
    """Measure the recovery time from an overload.

    Refused if no overload is possible or known, if the Tester cannot offer it, or if no frame was lost at it: then it
    was no overload.
    """
    campaign, cell = trials.campaign, trials.run.cell
    table = campaign.table(SystemRecoveryTable)
    plan = recovery_plan(trials, table)
    known: dict[str, Any] = {
        "throughput_measured": table.load is None,
        "overload_ns": table.duration_ns,
        "observe_ns": table.observe_ns,
    }
    if isinstance(plan, Refusal):
        return SystemRecoveryResult(
            **trials.facts(), **known, limited_by=plan.limited_by, refused=plan.reason, throughput=table.load
        )
    rate = rate_before(campaign, cell, trials.earlier, phase_two_ns=plan.measure.duration_ns)
    measured = [
        trials.steps(repetition, connections_per_second=rate, form=plan.form)(plan.measure)
        for repetition in trials.repetitions()
    ]
    reports = [trial.report for trial in measured if trial.report is not None]
    series = recovery_series(plan, reports)
    return SystemRecoveryResult(
        **trials.facts(),
        **known,
        limited_by="tester" if len(reports) < len(measured) else "gateway",
        refused=_no_recovery(plan, series, measured),
        throughput=plan.throughput,
        overload=plan.overload,
        load_share=plan.load_share,
        recovery_load=plan.step.frames_per_second,
        repetitions=len(reports),
        tester_limited=len(measured) - len(reports),
        series=series,
    )


def recovery_plan(trials: RunTrials, table: SystemRecoveryTable) -> RecoveryPlan | Refusal:
    """Return the trial: 110 % of the throughput or the line rate, whichever is lower (RFC 2544 section 26.5)."""
    cell, line = trials.run.cell, trials.line_maximum
    throughput = table.load
    if throughput is None:
        known = median_throughput(trials.earlier.frame_rate(cell), line)
        if isinstance(known, Refusal):
            return known
        throughput = known
    overload = int(table.overload * throughput)
    share = share_of(table.overload, "the throughput") if table.load is None else None
    if line is not None and line < overload:
        overload, share = line, share_of(Fraction(1), "the line")
    if overload <= throughput:
        if line is not None and throughput >= line:
            return forwards_line_rate(line, "no load is above what it forwards")
        reason = f"{throughput} frames/s are so few that {overload} frames/s are not an overload"
        return Refusal(limited_by="gateway", reason=reason)
    return RecoveryPlan(
        overload=overload,
        throughput=throughput,
        load_share=share,
        duration_ns=table.duration_ns,
        observe_ns=table.observe_ns,
        period=cell.mix.n,
    )


def _no_recovery(plan: RecoveryPlan, series: Sequence[RecoverySeries], measured: Sequence[Measured]) -> str | None:
    """Say why no recovery time was measured; None unless every trial was invalid or without loss."""
    load = f"the overload of {plan.overload} frames/s"
    if not series:
        return f"the Tester cannot offer {load}: {problems_of(measured[-1])}; {SELF_TEST}"
    if {outcome for direction in series for outcome in direction.outcomes} == {"no_loss"}:
        return f"no frame was lost at {load}, so it was not an overload"
    return None


def recovery_series(plan: RecoveryPlan, reports: Sequence[TrialReport]) -> tuple[RecoverySeries, ...]:
    """Gather the valid repetitions by direction and class."""
    classes = dict.fromkeys((direction, name) for report in reports for direction, name, _ in report.counts())
    return tuple(_series(plan, direction, name, reports) for direction, name in classes)


def _series(plan: RecoveryPlan, direction: str, class_: str, reports: Sequence[TrialReport]) -> RecoverySeries:
    counts = [c for report in reports for way, name, c in report.counts() if (way, name) == (direction, class_)]
    frames = [result.intended for report in reports for result in report.directions if result.direction == direction]
    observed = [observe(plan, c, total) for c, total in zip(counts, frames, strict=True)]
    return RecoverySeries.model_validate(
        {
            "direction": direction,
            "class": class_,
            "offered": [c.offered for c in counts],
            "lost": [c.lost for c in counts],
            "faulty": [c.faulty + c.late for c in counts],
            "outcomes": [recovery.outcome for recovery in observed],
            "recovery_ns": [recovery.recovery_ns for recovery in observed],
            "last_loss_before_ns": [recovery.last_loss_before_ns for recovery in observed],
        }
    )


def observe(plan: RecoveryPlan, counts: Counts, frames: int) -> _Observed:
    """Return what one class of frames shows; `frames` are those of its direction.

    The report names the first and the last lost frame, but not the place of a frame that came back faulty or late: such
    a frame may have come after the last lost one.
    """
    step, loss, has_faulty = plan.step, counts.loss, counts.faulty + counts.late > 0
    before = frames_in(plan.overload, step.after_ns)
    if counts.lost == 0 or loss.first_index >= before:
        return _Observed(outcome="unknown" if has_faulty else "no_loss")
    if loss.last_index >= before and is_at_end(loss.last_index, frames, frames - before, plan.period):
        return _Observed(outcome="not_recovered")
    if has_faulty:
        return _Observed(outcome="unknown")
    last_ns = due_ns(loss.last_index, plan.overload, step)
    if loss.last_index >= before:
        return _Observed(outcome="recovered", recovery_ns=last_ns - step.after_ns)
    return _Observed(outcome="recovered", recovery_ns=0, last_loss_before_ns=step.after_ns - last_ns)


def deviations(campaign: Campaign) -> Iterator[Deviation]:
    """Yield deviations from RFC 2544 section 26.5."""
    table = campaign.table(SystemRecoveryTable)
    if table.overload != defaults.OVERLOAD:
        share = format_ratio(table.overload)
        sentence = f"The overload is {share} of the throughput, not 110% (RFC 2544 section 26.5)."
        yield Deviation(sentence=sentence, rules_out_claim=True)
    if table.duration_ns < defaults.TRIAL_DURATION_NS:
        length = format_duration_ns(table.duration_ns)
        yield Deviation(
            sentence=f"The overload lasts {length}, less than 60s (RFC 2544 section 26.5).", rules_out_claim=True
        )
    if table.load is not None:
        sentence = (
            f"The overload is a share of {table.load} frames/s, not of the measured throughput (RFC 2544 section 26.5)."
        )
        yield Deviation(sentence=sentence, rules_out_claim=True)
