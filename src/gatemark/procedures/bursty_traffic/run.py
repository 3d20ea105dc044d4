"""Bursty traffic: the smallest gap between bursts at line rate with which no frame is lost (RFC 2544 section 21).

The search is for the long-term load of a direction: bursts of N frames at line rate L that begin every N / r seconds
are a load of r frames/s, with a gap of N / r - N / L seconds between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gatemark.config.model import Campaign
from gatemark.errors import ConfigError
from gatemark.procedures.assumed import AssumedGateway, extremes
from gatemark.procedures.base_load import NO_LINE_RATE
from gatemark.procedures.bursty_traffic.result import BurstSize, BurstyTrafficResult
from gatemark.procedures.bursty_traffic.table import BURST_FRAMES, BurstyTrafficTable
from gatemark.procedures.loads import resolution_of
from gatemark.procedures.measured import search_rate
from gatemark.procedures.phase_one import rate_before
from gatemark.procedures.procedure import RunTrials
from gatemark.results.document import Deviation
from gatemark.results.search import limited_by
from gatemark.search.goal import Goal, SearchResult, sending_ns
from gatemark.trial.cell import Run
from gatemark.trial.form import Bursts, TrialForm
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns


def measure(trials: RunTrials) -> BurstyTrafficResult:
    """Search once for each size of bursts in each repetition. Refused where the line rate is not known."""
    campaign, line = trials.campaign, trials.line_maximum
    table = campaign.table(BurstyTrafficTable)
    known = {"search_duration_ns": table.search_duration_ns, "duration_ns": campaign.trial.duration_ns}
    if line is None:
        return BurstyTrafficResult(
            **trials.facts(), **known, limited_by=NO_LINE_RATE.limited_by, refused=NO_LINE_RATE.reason
        )
    rate = rate_before(campaign, trials.run.cell, trials.earlier, phase_two_ns=campaign.trial.duration_ns)
    goals = {frames: burst_goal(campaign, frames, line) for frames in table.frames}
    searches: dict[int, list[SearchResult]] = {frames: [] for frames in table.frames}
    for repetition in trials.repetitions():
        for frames, results in searches.items():
            steps = trials.steps(repetition, connections_per_second=rate, form=burst_form(frames, line))
            results.append(search_rate(goals[frames], steps))
    return BurstyTrafficResult(
        **trials.facts(),
        **known,
        limited_by=limited_by([search.kind for results in searches.values() for search in results]),
        line_rate=line,
        sizes=tuple(
            BurstSize(frames=frames, line_rate=line, repetitions=tuple(results)) for frames, results in searches.items()
        ),
    )


def burst_form(frames: int, line_rate: int) -> TrialForm:
    """Return what the trials with bursts of `frames` have in common.

    A burst that is sent late by more than its own length runs into the next one, so the gap is not the one under test:
    such a trial does not count.
    """
    return TrialForm(
        bursts=Bursts(frames=frames, frames_per_second=line_rate), lateness_max_ns=sending_ns(frames, line_rate)
    )


def burst_goal(campaign: Campaign, frames: int, line_rate: int) -> Goal:
    """Return what the search with bursts of `frames` looks for; every trial has at least two of them.

    Raises ConfigError if the trials are too short for that.
    """
    table = campaign.table(BurstyTrafficTable)
    least = frames * NANOSECONDS_PER_SECOND // table.search_duration_ns + 1
    if least >= line_rate:
        raise ConfigError(
            what=f"a trial of {format_duration_ns(table.search_duration_ns)} has no time for two bursts of {frames}"
            f" frames at the line rate of {line_rate} frames/s",
            where=f"{campaign.source}: bursty_traffic.search_duration",
            fix="write a longer time, or fewer frames",
        )
    resolution = resolution_of(campaign, "bursty_traffic.resolution", table.resolution, line_rate, "frames/s")
    assert isinstance(resolution, int), "the maximum of the search is known"
    return Goal(
        maximum=line_rate,
        minimum=least,
        resolution=resolution,
        search_duration_ns=table.search_duration_ns,
        trial_duration_ns=campaign.trial.duration_ns,
    )


def gateways(campaign: Campaign, run: Run, line_maximum: int | None) -> Iterator[AssumedGateway]:
    """Yield a gateway that forwards bursts without gaps, and some with which the searches take longest.

    Those forward just less than the line rate, or no more than the lowest load of a size: the searches differ in their
    minimum alone.
    """
    fast, slow = extremes(campaign, run, line_maximum)
    yield fast
    if line_maximum is None:
        yield slow
        return
    for frames in campaign.table(BurstyTrafficTable).frames:
        goal = burst_goal(campaign, frames, line_maximum)
        yield slow.just_below(goal)
        yield replace(slow, frames_per_second=goal.minimum)


def deviations(campaign: Campaign) -> Iterator[Deviation]:
    """Yield deviations from RFC 2544 section 21."""
    missing = [str(frames) for frames in BURST_FRAMES if frames not in campaign.table(BurstyTrafficTable).frames]
    if missing:
        yield Deviation(
            sentence=f"No bursts of {', '.join(missing)} frames are sent (RFC 2544 section 21).", rules_out_claim=True
        )
