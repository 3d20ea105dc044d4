"""System recovery: how long frames are still lost after an overload has ended (RFC 2544 section 26.5).

The load falls at time A. B is when the last of the frames that were lost was due; the recovery time is B - A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gatemark.procedures.event_result import EventOutcome, Recovery, RecoverySeries
from gatemark.procedures.event_times import due_ns, is_at_end
from gatemark.procedures.measured import Measured
from gatemark.search.goal import Measure
from gatemark.trial.form import RateStep, TrialForm
from gatemark.trial.report import Counts, TrialReport
from gatemark.units import frames_in


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPlan:
    """The trial of a system recovery; loads are frames/s in one direction."""

    overload: int
    throughput: int
    """What the overload is a share of."""
    is_measured_throughput: bool
    """Whether the campaign measured that throughput; else the file names it."""
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
        """The trial."""
        duration_ns = self.duration_ns + self.observe_ns
        return Measure(frames_per_second=self.overload, duration_ns=duration_ns, purpose="recovery")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    outcome: EventOutcome
    recovery_ns: int | None = None
    last_loss_before_ns: int | None = None


def recovery_of(plan: RecoveryPlan, trials: Sequence[Measured]) -> Recovery:
    """Gather the repetitions. One in which the Tester could not offer the load is counted, and has no time."""
    reports = [trial.report for trial in trials if trial.report is not None]
    classes = dict.fromkeys((way, kind) for report in reports for way, kind, _ in report.counts())
    return Recovery(
        overload_fps=plan.overload,
        recovery_fps=plan.step.frames_per_second,
        throughput_fps=plan.throughput,
        is_measured_throughput=plan.is_measured_throughput,
        duration_ns=plan.duration_ns,
        observe_ns=plan.observe_ns,
        measured=len(reports),
        tester_limited=len(trials) - len(reports),
        series=tuple(_series(plan, way, kind, reports) for way, kind in classes),
    )


def _series(plan: RecoveryPlan, direction: str, kind: str, reports: Sequence[TrialReport]) -> RecoverySeries:
    counts = [own for report in reports for way, name, own in report.counts() if (way, name) == (direction, kind)]
    frames = [result.intended for report in reports for result in report.directions if result.direction == direction]
    found = [_found(plan, own, total) for own, total in zip(counts, frames, strict=True)]
    return RecoverySeries(
        direction=direction,
        kind=kind,
        offered=tuple(own.offered for own in counts),
        lost=tuple(own.lost for own in counts),
        faulty=tuple(own.faulty + own.late for own in counts),
        outcomes=tuple(one.outcome for one in found),
        recovery_ns=tuple(one.recovery_ns for one in found),
        last_loss_before_ns=tuple(one.last_loss_before_ns for one in found),
    )


def _found(plan: RecoveryPlan, counts: Counts, frames: int) -> _Found:
    """Return what one class of frames tells; `frames` are those of its direction.

    The report names the first and the last frame that was lost, but no place of a frame that came back faulty or late:
    such a frame may have come after the last one lost.
    """
    step, loss, has_faulty = plan.step, counts.loss, counts.faulty + counts.late > 0
    before = frames_in(plan.overload, step.after_ns)
    if counts.lost == 0 or loss.first_index >= before:
        return _Found(outcome="unknown" if has_faulty else "no_loss")
    if loss.last_index >= before and is_at_end(loss.last_index, frames, frames - before, plan.period):
        return _Found(outcome="not_recovered")
    if has_faulty:
        return _Found(outcome="unknown")
    last_ns = due_ns(loss.last_index, plan.overload, step)
    if loss.last_index >= before:
        return _Found(outcome="recovered", recovery_ns=last_ns - step.after_ns)
    return _Found(outcome="recovered", recovery_ns=0, last_loss_before_ns=step.after_ns - last_ns)
