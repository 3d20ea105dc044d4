"""The runs of the tables [back_to_back], [system_recovery] and [reset], each with all its repetitions.

A run that cannot be made is refused with the reason: it has no numbers, or only those that the Tester offered validly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gatemark.campaign.events import RepetitionFinished, RunStarted
from gatemark.campaign.loads import burst_goal, line_maximum, proven_throughput, throughput_form, throughput_of
from gatemark.campaign.stateful_loads import rate_before
from gatemark.campaign.trials import Repetition, Trials
from gatemark.procedures.back_to_back import lateness_max_ns, measure_burst
from gatemark.procedures.delay_result import LimitedBy
from gatemark.procedures.event_result import BackToBack, Recovery
from gatemark.procedures.measured import Measured
from gatemark.procedures.reset import ResetPlan, reset_of
from gatemark.procedures.result import RunResult
from gatemark.procedures.system_recovery import RecoveryPlan, recovery_of
from gatemark.search.burst import BurstResult
from gatemark.trial.cell import Run

SELF_TEST = "`gatemark selftest` says what the Tester reaches"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """Why a run cannot be made, and who is the reason."""

    limited_by: LimitedBy
    reason: str


def measure_back_to_back_run(trials: Trials, run: Run, earlier: Sequence[RunResult]) -> RunResult:
    """Measure back-to-back frames (RFC 2544 section 26.4, RFC 9004): the search for the longest burst, many times.

    It is refused where the throughput is not known or is the line rate, and where the Tester cannot send a burst that a
    search needs.
    """
    campaign, model = trials.campaign, trials.campaign.back_to_back
    assert model is not None, "the plan holds no such run without the table"
    line = line_maximum(campaign, run.cell, campaign.line.rate)
    throughput = _median_throughput(throughput_of(run.cell, earlier), line)
    trials.tell(RunStarted(run=run, repetitions=model.bursts, goal=None, rates=() if line is None else (line,)))
    if line is None:
        return _refused(run, line, _NO_LINE_RATE)
    if isinstance(throughput, _Refusal):
        return _refused(run, line, throughput)
    if throughput >= line:
        return _refused(run, line, _forwards_line_rate(line, "no burst is the longest (RFC 9004 section 6.1)"))
    goal = burst_goal(model, line)
    rate = rate_before(campaign, run.cell, earlier, phase_two_ns=model.ceiling_ns)
    form = replace(throughput_form(campaign), drain_ns=model.wait_ns, lateness_max_ns=lateness_max_ns(goal, line))
    found: list[BurstResult] = []
    for repetition in range(model.bursts):
        steps = Repetition(trials, run, repetition, connections_per_second=rate, form=form)
        burst, last = measure_burst(goal, line, steps.measure)
        found.append(burst)
        bursts = BackToBack(
            searches=tuple(found),
            ceiling_frames=goal.ceiling,
            resolution_frames=goal.resolution,
            line_rate=line,
            throughput=throughput,
            search=model.search,
            verifications=goal.verifications,
            wait_ns=model.wait_ns,
        )
        result = _bursts_result(run, bursts, last)
        trials.tell(RepetitionFinished(repetition=repetition, result=result))
        if burst.kind == "tester_limited":
            break
    return result


def _bursts_result(run: Run, bursts: BackToBack, last: Measured) -> RunResult:
    burst = bursts.searches[-1]
    if burst.kind == "tester_limited":
        reason = (
            f"the Tester cannot send a burst of {burst.tester_limited_at} frames at the line rate of {bursts.line_rate}"
            f" frames/s: {_problems(last)}; {SELF_TEST}"
        )
        refused = _refused(run, bursts.line_rate, _Refusal(limited_by="tester", reason=reason))
        return replace(refused, back_to_back=bursts)
    limited_by: LimitedBy = "maximum" if bursts.near_ceiling else "gateway"
    return RunResult(run=run, limited_by=limited_by, theoretical_maximum=bursts.line_rate, back_to_back=bursts)


def measure_system_recovery_run(trials: Trials, run: Run, earlier: Sequence[RunResult]) -> RunResult:
    """Measure system recovery (RFC 2544 section 26.5).

    It is refused where no overload is possible or known, where the Tester cannot offer it, and where no frame was lost
    at it: then it was no overload.
    """
    campaign = trials.campaign
    line = line_maximum(campaign, run.cell, campaign.line.rate)
    plan = _recovery_plan(trials, run, earlier, line)
    rates = () if isinstance(plan, _Refusal) else (plan.overload,)
    trials.tell(RunStarted(run=run, repetitions=campaign.repetitions, goal=None, rates=rates))
    if isinstance(plan, _Refusal):
        return _refused(run, line, plan)
    rate = rate_before(campaign, run.cell, earlier, phase_two_ns=plan.measure.duration_ns)
    made: list[Measured] = []
    for repetition in range(campaign.repetitions):
        steps = Repetition(trials, run, repetition, connections_per_second=rate, form=plan.form)
        made.append(steps.measure(plan.measure))
        recovery = recovery_of(plan, made)
        result = RunResult(
            run=run,
            limited_by="tester" if recovery.tester_limited else "gateway",
            theoretical_maximum=line,
            recovery=recovery,
            refused=_no_recovery(recovery, made[-1]),
        )
        trials.tell(RepetitionFinished(repetition=repetition, result=result))
    return result


def _recovery_plan(trials: Trials, run: Run, earlier: Sequence[RunResult], line: int | None) -> RecoveryPlan | _Refusal:
    """Return the trial: 110 % of the throughput or the line rate, whichever is lower (RFC 2544 section 26.5)."""
    model = trials.campaign.system_recovery
    assert model is not None, "the plan holds no such run without the table"
    throughput = model.load
    if throughput is None:
        found = _median_throughput(throughput_of(run.cell, earlier), line)
        if isinstance(found, _Refusal):
            return found
        throughput = found
    overload = int(model.overload * throughput)
    if line is not None:
        overload = min(overload, line)
    if overload <= throughput:
        if line is not None and throughput >= line:
            return _forwards_line_rate(line, "no load is above what it forwards")
        reason = f"{throughput} frames/s are so few that {overload} frames/s are no overload"
        return _Refusal(limited_by="gateway", reason=reason)
    return RecoveryPlan(
        overload=overload,
        throughput=throughput,
        is_measured_throughput=model.load is None,
        duration_ns=model.duration_ns,
        observe_ns=model.observe_ns,
        period=run.cell.mix.n,
    )


def _no_recovery(recovery: Recovery, last: Measured) -> str | None:
    """Say why there is no recovery time in any repetition so far; None if there is one, or one was looked for."""
    load = f"the overload of {recovery.overload_fps} frames/s"
    if not recovery.measured:
        return f"the Tester cannot offer {load}: {_problems(last)}; {SELF_TEST}"
    outcomes = {outcome for series in recovery.series for outcome in series.outcomes}
    if outcomes == {"no_loss"}:
        return f"no frame was lost at {load}, so it was no overload"
    return None


def measure_reset_run(trials: Trials, run: Run, earlier: Sequence[RunResult]) -> RunResult:
    """Measure the reset time (RFC 6201 section 4) at the load of the file, else at the lowest throughput found.

    It is refused where no load is known that passes, and where the Tester cannot offer it.
    """
    campaign, model = trials.campaign, trials.campaign.reset
    assert model is not None, "the plan holds no such run without the table"
    line = line_maximum(campaign, run.cell, campaign.line.rate)
    load = model.load or proven_throughput(throughput_of(run.cell, earlier))
    trials.tell(RunStarted(run=run, repetitions=campaign.repetitions, goal=None, rates=(load,) if load else ()))
    if not load:
        return _refused(run, line, _none_passes(throughput_of(run.cell, earlier)))
    plan = ResetPlan(
        kind=model.kind,
        load=load,
        is_measured_throughput=model.load is None,
        before_ns=model.before_ns,
        observe_ns=model.observe_ns,
        period=run.cell.mix.n,
    )
    rate = rate_before(campaign, run.cell, earlier, phase_two_ns=plan.measure.duration_ns)
    made: list[Measured] = []
    for repetition in range(campaign.repetitions):
        steps = Repetition(trials, run, repetition, connections_per_second=rate, form=plan.form)
        made.append(steps.measure(plan.measure))
        resets = reset_of(plan, made)
        refused = None
        if not resets.measured:
            refused = f"the Tester cannot offer {load} frames/s: {_problems(made[-1])}; {SELF_TEST}"
        result = RunResult(
            run=run,
            limited_by="tester" if resets.tester_limited else "gateway",
            theoretical_maximum=line,
            resets=resets,
            refused=refused,
        )
        trials.tell(RepetitionFinished(repetition=repetition, result=result))
    return result


def _median_throughput(found: RunResult | None, line: int | None) -> int | _Refusal:
    """Return the throughput as it is reported, the median, rounded down; a refusal where it is not known.

    It is not known where the Tester was the limit of the search, where no load failed although the medium carries more
    than the search tried, or where that was so in some repetitions and not in others.
    """
    if found is None or not proven_throughput(found):
        return _none_passes(found)
    if found.limited_by == "tester":
        known = f"at least {proven_throughput(found)} frames/s"
        reason = f"the Tester was the limit of the throughput search, so of the throughput only {known} are known"
        return _Refusal(limited_by="tester", reason=f"{reason}; {SELF_TEST}")
    highest = max(search.highest_load for search in found.repetitions)
    if line is not None and highest >= line and found.summary is None:
        reason = f"the line rate of {line} frames/s passed in some repetitions of the throughput search, not in others"
        return _Refusal(limited_by="maximum", reason=reason)
    if found.limited_by == "maximum" and (line is None or highest < line):
        reason = (
            f"no load of the throughput search failed in a repetition, up to its maximum of {highest} frames/s, so the"
            " throughput is not known: raise throughput.maximum, or leave it out"
        )
        return _Refusal(limited_by="maximum", reason=reason)
    assert found.summary is not None, "only a Tester at its limit or a maximum that passed leaves none"
    return int(found.summary.median)


def _none_passes(found: RunResult | None) -> _Refusal:
    searches = () if found is None else found.repetitions
    without = {search.kind for search in searches if not search.lower_bound}
    if without == {"tester_limited"}:
        reason = "in the throughput search of a repetition the Tester could offer no load, so no throughput is known"
        return _Refusal(limited_by="tester", reason=f"{reason}; {SELF_TEST}")
    reason = "in the throughput search of a repetition no load passed, so there is none to begin with"
    return _Refusal(limited_by="gateway", reason=reason)


_NO_LINE_RATE = _Refusal(
    limited_by="tester",
    reason="bursts are sent at line rate, which is not known: the port does not report it, and line.rate is not set",
)


def _forwards_line_rate(line: int, so: str) -> _Refusal:
    return _Refusal(limited_by="gateway", reason=f"the throughput is the line rate of {line} frames/s, so {so}")


def _refused(run: Run, line: int | None, refusal: _Refusal) -> RunResult:
    return RunResult(run=run, limited_by=refusal.limited_by, theoretical_maximum=line, refused=refusal.reason)


def _problems(made: Measured) -> str:
    """What the Tester did wrong, in the last attempt."""
    return "; ".join(() if made.record is None else made.record.validity.reasons) or "no trial was valid"
