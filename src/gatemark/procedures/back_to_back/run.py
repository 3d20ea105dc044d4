"""Back-to-back frames: the longest burst at line rate that passes whole (RFC 2544 section 26.4, RFC 9004).

Each trial is one burst at line rate on every direction of the traffic, and it passes if no frame of any direction and
class is lost, faulty or too late. A burst shorter than the 2 s of RFC 2544 is still a valid trial of RFC 9004.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from gatemark.config import defaults
from gatemark.config.model import Campaign
from gatemark.procedures.assumed import AssumedGateway, extremes
from gatemark.procedures.back_to_back.result import BackToBackResult
from gatemark.procedures.back_to_back.table import BackToBackTable
from gatemark.procedures.base_load import (
    NO_LINE_RATE,
    QUIET_HOST,
    SELF_TEST,
    Refusal,
    forwards_line_rate,
    median_throughput,
    problems_of,
)
from gatemark.procedures.measured import Measured, MeasureStep
from gatemark.procedures.phase_one import rate_before
from gatemark.procedures.procedure import RunTrials
from gatemark.results.document import Deviation
from gatemark.search.burst import LOSS_VERIFICATIONS, Burst, BurstGoal, BurstResult, BurstTrial, next_burst
from gatemark.search.goal import Measure, sending_ns
from gatemark.trial.cell import Run
from gatemark.trial.form import TrialForm
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns, frames_in

ASSUMED_LONGEST = (Fraction(1, 2), Fraction(7, 8))
"""Longest bursts that pass, as shares of the ceiling, with which the most work is estimated."""


def measure(trials: RunTrials) -> BackToBackResult:
    """Search for the longest burst repeatedly.

    Refused where the throughput is not known or is the line rate, and where the Tester cannot send a burst that a
    search needs.
    """
    campaign, cell, line = trials.campaign, trials.run.cell, trials.line_maximum
    table = campaign.table(BackToBackTable)
    search = trials.earlier.frame_rate(cell)
    throughput = median_throughput(search, line)
    known: dict[str, Any] = {"search": table.search, "verifications": _verifications(table), "wait_ns": table.wait_ns}
    refusal = _refusal(line, throughput)
    if refusal is not None or line is None or isinstance(throughput, Refusal):
        assert refusal is not None, "without line rate or throughput there is a reason"
        return BackToBackResult(
            **trials.facts(), **known, limited_by=refusal.limited_by, refused=refusal.reason, line_rate=line
        )
    goal = burst_goal(table, line)
    form = TrialForm(
        timeout_ns=None if search is None else search.goal.frame_timeout_ns,
        drain_ns=table.wait_ns,
    )
    rate = rate_before(campaign, cell, trials.earlier, phase_two_ns=table.ceiling_ns)
    bursts: list[BurstResult] = []
    limit = None
    for repetition in trials.repetitions():
        steps_of = _steps_of(trials, repetition, form, line_rate=line, connections_per_second=rate)
        burst, last = search_burst(goal, line, steps_of)
        bursts.append(burst)
        if burst.kind == "tester_limited":
            limit = _tester_limit(burst, line, last)
            break
    result = BackToBackResult(
        **trials.facts(),
        **known,
        limited_by="tester" if limit is not None else "gateway",
        refused=limit,
        bursts=tuple(bursts),
        ceiling_frames=goal.ceiling,
        resolution_frames=max(
            (goal.gap(burst.frames) for burst in bursts if burst.kind != "tester_limited"), default=None
        ),
        line_rate=line,
        throughput=throughput,
    )
    return result.model_copy(update={"limited_by": "maximum"}) if limit is None and result.near_ceiling else result


def _refusal(line: int | None, throughput: int | Refusal) -> Refusal | None:
    if line is None:
        return NO_LINE_RATE
    if isinstance(throughput, Refusal):
        return throughput
    if throughput >= line:
        return forwards_line_rate(line, "no burst is the longest (RFC 9004 section 6.1)")
    return None


def _tester_limit(burst: BurstResult, line: int, last: Measured) -> str:
    if last.record is not None and last.record.suspicion is not None:
        return (
            f"the gateway's host was not quiet while bursts of {burst.tester_limited_at} frames were sent:"
            f" {problems_of(last)}; {QUIET_HOST}"
        )
    return (
        f"the Tester cannot send a burst of {burst.tester_limited_at} frames at the line rate of {line} frames/s:"
        f" {problems_of(last)}; {SELF_TEST}"
    )


def _verifications(table: BackToBackTable) -> int:
    return LOSS_VERIFICATIONS if table.search == "loss_verification" else 0


def burst_goal(table: BackToBackTable, line_rate: int) -> BurstGoal:
    """Return what a search for the longest burst looks for at a line rate in frames/s (RFC 9004 section 6.2)."""
    ceiling = max(1, frames_in(line_rate, table.ceiling_ns))
    return BurstGoal(ceiling=ceiling, resolution=table.resolution, verifications=_verifications(table))


def _steps_of(
    trials: RunTrials, repetition: int, form: TrialForm, *, line_rate: int, connections_per_second: int | None
) -> Callable[[Burst], MeasureStep]:
    """Return what gives for a burst what makes its trials: in them no part of it may be later than it says."""

    def steps_of(burst: Burst) -> MeasureStep:
        frames = burst.late_frames_max
        late_ns = None if frames is None else frames * NANOSECONDS_PER_SECOND // line_rate
        return trials.steps(
            repetition,
            connections_per_second=connections_per_second,
            form=replace(form, lateness_max_ns=late_ns),
        )

    return steps_of


def search_burst(
    goal: BurstGoal, line_rate: int, steps_of: Callable[[Burst], MeasureStep]
) -> tuple[BurstResult, Measured]:
    """Search once for the longest burst; also return the last trial. The only effects are those of `steps_of`.

    What it returns must judge without tolerance, and treat a trial in which a part of the burst was sent too late as
    invalid.
    """
    history: list[BurstTrial] = []
    while not isinstance(burst := next_burst(goal, history), BurstResult):
        measured = steps_of(burst)(
            Measure(
                frames_per_second=line_rate,
                duration_ns=sending_ns(burst.frames, line_rate),
                purpose="search",
                is_burst=True,
            )
        )
        history.append(
            BurstTrial(burst=burst, outcome=measured.observation.outcome, late_frames=_late_frames(measured, line_rate))
        )
    return burst, measured


def _late_frames(measured: Measured, line_rate: int) -> int:
    """Return how many frames the line carries in the time by which the Tester was late, rounded up."""
    ways = () if measured.report is None else measured.report.directions
    late_ns = max((way.lateness_max_ns for way in ways), default=0)
    return -(-late_ns * line_rate // NANOSECONDS_PER_SECOND)


def gateways(campaign: Campaign, run: Run, line_maximum: int | None) -> Iterator[AssumedGateway]:
    """Yield a gateway that forwards the line rate, so that there is no longest burst, and some that keep few of one.

    Most bursts are sent if none passes, or one of a single frame. It takes longest if the first few pass and no longer
    ones: then most bursts are long, and with loss verification most of them are sent twice.
    """
    fast, slow = extremes(campaign, run, line_maximum)
    yield from (fast, slow, replace(slow, kept_frames=1))
    if line_maximum is not None:
        ceiling = burst_goal(campaign.table(BackToBackTable), line_maximum).ceiling
        for share in ASSUMED_LONGEST:
            longest = int(share * ceiling) + 1
            kept = longest - frames_in(line_maximum // 2, sending_ns(longest, line_maximum))
            yield replace(slow, frames_per_second=line_maximum // 2, kept_frames=kept)


def deviations(campaign: Campaign) -> Iterator[Deviation]:
    """Yield deviations from RFC 2544 section 26.4 and RFC 9004."""
    table = campaign.table(BackToBackTable)
    yield from (Deviation(sentence=sentence, rules_out_claim=True) for sentence in _departures(table))


def _departures(table: BackToBackTable) -> Sequence[str]:
    sentences = []
    if table.bursts < defaults.BURSTS:
        sentences.append(
            f"The longest burst is searched for {table.bursts} times, fewer than {defaults.BURSTS}"
            " (RFC 2544 section 26.4)."
        )
    if table.ceiling_ns < defaults.BURST_CEILING_NS:
        length = format_duration_ns(table.ceiling_ns)
        sentences.append(f"Bursts are at most {length} long, less than 30s (RFC 9004 section 6.2).")
    if table.wait_ns < defaults.BURST_WAIT_NS:
        wait = format_duration_ns(table.wait_ns)
        sentences.append(f"After a burst {wait} pass, less than 2s (RFC 9004 section 6.2).")
    return sentences
