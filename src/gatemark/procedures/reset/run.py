"""Reset: how long the gateway forwards nothing after a reset (RFC 2544 section 26.6, RFC 6201 section 4).

Frames are offered at the throughput, and the gateway is reset while they are sent. Each direction has its own result:
with a gateway that keeps state, the reverse direction cannot recover before there are new outbound frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gatemark.config import defaults
from gatemark.config.model import Campaign
from gatemark.procedures.base_load import SELF_TEST, none_passes, problems_of
from gatemark.procedures.event_times import due_ns, is_at_end
from gatemark.procedures.phase_one import rate_before
from gatemark.procedures.procedure import RunTrials
from gatemark.procedures.reset.result import BEGAN_ERROR_NS, ResetResult, ResetSeries
from gatemark.procedures.reset.table import ResetTable
from gatemark.results.document import Deviation
from gatemark.results.run import Outcome
from gatemark.search.goal import Measure
from gatemark.trial.form import TrialForm
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import Counts, TrialReport
from gatemark.units import format_duration_ns, frames_in


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetPlan:
    """The trial of a reset."""

    load: int
    """Frames/s in one direction."""
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
        duration_ns = self.before_ns + self.observe_ns
        return Measure(frames_per_second=self.load, duration_ns=duration_ns, purpose="event")


def measure(trials: RunTrials) -> ResetResult:
    """Measure the reset time at the load of the file, otherwise at the lowest throughput found.

    Refused if no load is known that passes, or if the Tester cannot offer it.
    """
    campaign, cell = trials.campaign, trials.run.cell
    table = campaign.table(ResetTable)
    search = trials.earlier.frame_rate(cell)
    load = table.load or (0 if search is None else search.proven)
    known: dict[str, Any] = {
        "kind": table.kind,
        "throughput_measured": table.load is None,
        "before_ns": table.before_ns,
        "observe_ns": table.observe_ns,
    }
    if not load:
        refusal = none_passes(search)
        return ResetResult(**trials.facts(), **known, limited_by=refusal.limited_by, refused=refusal.reason)
    plan = ResetPlan(load=load, before_ns=table.before_ns, observe_ns=table.observe_ns, period=cell.mix.n)
    rate = rate_before(campaign, cell, trials.earlier, phase_two_ns=plan.measure.duration_ns)
    measured = [
        trials.steps(repetition, connections_per_second=rate, form=plan.form)(plan.measure)
        for repetition in trials.repetitions()
    ]
    valid = [trial.valid for trial in measured if trial.valid is not None and trial.valid.reset is not None]
    refused = None
    if not valid:
        refused = f"the Tester cannot offer {load} frames/s: {problems_of(measured[-1])}; {SELF_TEST}"
    return ResetResult(
        **trials.facts(),
        **known,
        limited_by="tester" if len(valid) < len(measured) else "gateway",
        refused=refused,
        frames_per_second=load,
        repetitions=len(valid),
        tester_limited=len(measured) - len(valid),
        began_ns=tuple(trial.reset.began_ns for trial in valid if trial.reset is not None),
        took_ns=tuple(trial.reset.took_ns for trial in valid if trial.reset is not None),
        series=reset_series(plan, valid),
    )


def reset_series(plan: ResetPlan, valid: Sequence[TrialRecord]) -> tuple[ResetSeries, ...]:
    """Gather the valid repetitions by direction and class."""
    reports = [trial.report for trial in valid]
    began_ns = [trial.reset.began_ns for trial in valid if trial.reset is not None]
    classes = dict.fromkeys((direction, name) for report in reports for direction, name, _ in report.counts())
    return tuple(_series(plan, direction, name, reports, began_ns) for direction, name in classes)


def _series(
    plan: ResetPlan, direction: str, class_: str, reports: Sequence[TrialReport], began_ns: Sequence[int]
) -> ResetSeries:
    counts = [c for report in reports for way, name, c in report.counts() if (way, name) == (direction, class_)]
    frames = [result.intended for report in reports for result in report.directions if result.direction == direction]
    first_ns = [due_ns(c.loss.first_index, plan.load) if c.lost else None for c in counts]
    return ResetSeries.model_validate(
        {
            "direction": direction,
            "class": class_,
            "sending_ns": plan.measure.duration_ns,
            "offered": [c.offered for c in counts],
            "undelivered": [c.undelivered for c in counts],
            "faulty": [c.faulty + c.late for c in counts],
            "longest_run": [c.loss.longest_run for c in counts],
            "first_loss_ns": first_ns,
            "last_loss_ns": [due_ns(c.loss.last_index, plan.load) if c.lost else None for c in counts],
            "outcomes": [outcome_of(plan, c, total) for c, total in zip(counts, frames, strict=True)],
            "lost_before": any(
                first is not None and first < began - BEGAN_ERROR_NS
                for first, began in zip(first_ns, began_ns, strict=True)
            ),
        }
    )


def outcome_of(plan: ResetPlan, counts: Counts, frames: int) -> Outcome:
    """Return how a reset ended for one class of frames; `frames` are those of its direction."""
    observed = frames - frames_in(plan.load, plan.before_ns)
    if counts.lost and is_at_end(counts.loss.last_index, frames, observed, plan.period):
        return "not_recovered"
    if counts.faulty + counts.late:
        return "unknown"
    return "recovered" if counts.lost else "no_loss"


def deviations(campaign: Campaign) -> Iterator[Deviation]:
    """Yield deviations from RFC 6201 section 4; a software reset is not all of it."""
    table = campaign.table(ResetTable)
    yield Deviation(
        sentence="Only a software reset is measured, no reset of hardware and no power interruption"
        " (RFC 6201 section 4).",
        rules_out_claim=True,
    )
    if table.before_ns < defaults.BEFORE_RESET_NS:
        before = format_duration_ns(table.before_ns)
        yield Deviation(sentence=f"Frames are sent for {before} before the reset, less than 15s (RFC 6201 section 4).")
    if table.load is not None:
        yield Deviation(
            sentence=f"The reset is measured at {table.load} frames/s, not at the measured throughput"
            " (RFC 6201 section 4)."
        )
