"""Reset: how long the gateway forwards nothing after it was reset (RFC 2544 section 26.6, RFC 6201 section 4).

Frames are offered at the throughput, and the gateway is reset while they are sent. Each direction has its own result:
behind a gateway that keeps state, the reverse direction cannot recover before there are new outbound frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gatemark.procedures.event_result import EventOutcome, Reset, ResetSeries
from gatemark.procedures.event_times import due_ns, is_at_end
from gatemark.procedures.measured import Measured
from gatemark.search.goal import Measure
from gatemark.trial.form import TrialForm
from gatemark.trial.report import Counts, TrialReport
from gatemark.units import frames_in


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetPlan:
    """The trial of a reset."""

    kind: str
    load: int
    """Frames/s in one direction."""
    is_measured_throughput: bool
    """Whether the load is a throughput that the campaign measured; else the file names it."""
    before_ns: int
    """Sending time before the reset."""
    observe_ns: int
    """Sending time after that."""
    period: int
    """Frames of one period of foreground and background."""

    @property
    def form(self) -> TrialForm:
        """What the trials do beyond their load."""
        return TrialForm(reset_after_ns=self.before_ns)

    @property
    def measure(self) -> Measure:
        """The trial."""
        duration_ns = self.before_ns + self.observe_ns
        return Measure(frames_per_second=self.load, duration_ns=duration_ns, purpose="reset")


def reset_of(plan: ResetPlan, trials: Sequence[Measured]) -> Reset:
    """Gather the repetitions. One in which the Tester could not offer the load is counted, and has no time."""
    records = [trial.valid for trial in trials if trial.valid is not None]
    made = [(record.report, record.reset) for record in records if record.reset is not None]
    reports, facts = [report for report, _ in made], [reset for _, reset in made]
    classes = dict.fromkeys((way, kind) for report in reports for way, kind, _ in report.counts())
    return Reset(
        kind=plan.kind,
        load=plan.load,
        is_measured_throughput=plan.is_measured_throughput,
        before_ns=plan.before_ns,
        observe_ns=plan.observe_ns,
        measured=len(reports),
        tester_limited=len(trials) - len(reports),
        began_ns=tuple(reset.began_ns for reset in facts),
        took_ns=tuple(reset.took_ns for reset in facts),
        series=tuple(_series(plan, way, kind, reports) for way, kind in classes),
    )


def _series(plan: ResetPlan, direction: str, kind: str, reports: Sequence[TrialReport]) -> ResetSeries:
    counts = [own for report in reports for way, name, own in report.counts() if (way, name) == (direction, kind)]
    frames = [result.intended for report in reports for result in report.directions if result.direction == direction]

    def due(own: Counts, index: int) -> int | None:
        return due_ns(index, plan.load) if own.lost else None

    return ResetSeries(
        direction=direction,
        kind=kind,
        sending_ns=plan.measure.duration_ns,
        offered=tuple(own.offered for own in counts),
        lost=tuple(own.undelivered for own in counts),
        faulty=tuple(own.faulty + own.late for own in counts),
        longest_run=tuple(own.loss.longest_run for own in counts),
        first_loss_ns=tuple(due(own, own.loss.first_index) for own in counts),
        last_loss_ns=tuple(due(own, own.loss.last_index) for own in counts),
        outcomes=tuple(_outcome(plan, own, total) for own, total in zip(counts, frames, strict=True)),
    )


def _outcome(plan: ResetPlan, counts: Counts, frames: int) -> EventOutcome:
    """Return how a reset ended for one class of frames; `frames` are those of its direction."""
    observed = frames - frames_in(plan.load, plan.before_ns)
    if counts.lost and is_at_end(counts.loss.last_index, frames, observed, plan.period):
        return "not_recovered"
    if counts.faulty + counts.late:
        return "unknown"
    return "recovered" if counts.lost else "no_loss"
