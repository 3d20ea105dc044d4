"""The run of the table [delay]: latency and delay variation at each of its loads, with all repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gatemark.campaign.events import RepetitionFinished, RunStarted
from gatemark.campaign.loads import delay_loads, line_maximum, throughput_of
from gatemark.campaign.stateful_loads import rate_before
from gatemark.campaign.trials import Repetition, Trials
from gatemark.config.delay_tables import DelayModel
from gatemark.procedures.delay import DelayLoad, delay_point
from gatemark.procedures.measured import Measured
from gatemark.procedures.result import RunResult
from gatemark.search.goal import Measure
from gatemark.trial.cell import Run
from gatemark.trial.form import Tags, TrialForm
from gatemark.units import frames_before, frames_in


def measure_delay_run(trials: Trials, run: Run, earlier: Sequence[RunResult]) -> RunResult:
    """Measure delays (RFC 8219 sections 7.2 and 7.3): in each repetition one trial at each load.

    Shares are taken of the lowest throughput that any repetition of the same campaign found with the same traffic;
    where there is none, the run is refused.
    """
    campaign, model = trials.campaign, trials.campaign.delay
    assert model is not None, "the plan holds no delay run without the table"
    throughput = throughput_of(run.cell, earlier)
    line = line_maximum(campaign, run.cell, campaign.line.rate)
    loads = delay_loads(model, throughput)
    rate = rate_before(campaign, run.cell, earlier, phase_two_ns=model.sending_ns)
    rates = tuple(load.frames_per_second for load in loads)
    trials.tell(RunStarted(run=run, repetitions=campaign.repetitions, goal=None, rates=rates))
    if not loads:
        return _refused(run, throughput, line)
    measured: list[list[Measured]] = [[] for _ in loads]
    tolerance = campaign.throughput.loss_tolerance if campaign.throughput is not None else Fraction(0)
    for repetition in range(campaign.repetitions):
        for load, found in zip(loads, measured, strict=True):
            step = Measure(frames_per_second=load.frames_per_second, duration_ns=model.sending_ns, purpose="delay")
            steps = Repetition(
                trials,
                run,
                repetition,
                loss_tolerance=tolerance,
                connections_per_second=rate,
                form=delay_form(model, load),
            )
            found.append(steps.measure(step))
        points = tuple(delay_point(load, found, model.metrics) for load, found in zip(loads, measured, strict=True))
        result = RunResult(
            run=run,
            limited_by="tester" if any(point.tester_limited for point in points) else "gateway",
            theoretical_maximum=line,
            delays=points,
        )
        trials.tell(RepetitionFinished(repetition=repetition, result=result))
    return result


def delay_form(model: DelayModel, load: DelayLoad) -> TrialForm:
    """Return what the trials of a load record.

    There are no more tags than frames for them: at so low a load every frame after `first_tag` has one.
    """
    tags = None
    if model.has_latency:
        frames = frames_in(load.frames_per_second, model.sending_ns)
        taggable = frames - frames_before(load.frames_per_second, model.first_tag_ns)
        if taggable > 0:
            tags = Tags(first_ns=model.first_tag_ns, count=min(model.tags, taggable))
    return TrialForm(tags=tags, variation="ipdv" in model.metrics, histogram=True)


def _refused(run: Run, throughput: RunResult | None, line: int | None) -> RunResult:
    """Return the result of a run that has no load: the throughput of which shares are wanted is none."""
    searches = () if throughput is None else throughput.repetitions
    without = [found.kind for found in searches if not found.lower_bound]
    is_tester = "tester_limited" in without and "nothing_passes" not in without
    reason = "in the throughput search of a repetition no load passed, so there is none to measure delays at"
    if is_tester:
        reason += "; the Tester was the limit of that search"
    return RunResult(run=run, limited_by="tester" if is_tester else "gateway", theoretical_maximum=line, refused=reason)
