"""How many trials a campaign has and how long they take, before anything is sent. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gatemark.campaign.loads import frame_loss_scan, line_maximum, throughput_goal
from gatemark.campaign.plan import Run, make_plan
from gatemark.config.model import Campaign
from gatemark.units import LineShare

ASSUMED_LINE_BITS_PER_SECOND = 10_000_000_000
"""What an estimate takes where the line rate is not known yet; a measurement never does."""

CONFIRMATIONS_MAX = 4
"""Full-length trials after a search with short ones: mostly the first passes; each that fails steps down further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEstimate:
    """How much there is to do, without repeated invalid trials."""

    trials_min: int
    trials_max: int
    """More only if short trials of a search pass and long ones fail far below."""
    seconds_min: int
    """Sending time and waits of the fewest trials."""
    seconds_max: int
    """Sending time and waits of the most trials."""
    line_assumed: bool
    """Whether the line rate was not known, so that loads in % were taken of 10 Gbit/s."""


def estimate(campaign: Campaign, line_bits_per_second: int | None = None) -> PlanEstimate:
    """Estimate trials and time; `line.rate` of the file wins over what the port reports."""
    line = campaign.line.rate or line_bits_per_second
    totals = [0, 0, 0, 0]
    for run in make_plan(campaign).runs:
        counted = _of_one_repetition(campaign, run, line or ASSUMED_LINE_BITS_PER_SECOND)
        totals = [total + campaign.repetitions * part for total, part in zip(totals, counted, strict=True)]
    return PlanEstimate(
        trials_min=totals[0],
        trials_max=totals[1],
        seconds_min=_seconds(totals[2]),
        seconds_max=_seconds(totals[3]),
        line_assumed=line is None and _uses_line_rate(campaign),
    )


def _of_one_repetition(campaign: Campaign, run: Run, line: int) -> tuple[int, int, int, int]:
    """Return fewest and most trials of one repetition, and the nanoseconds of each."""
    trial = campaign.trial
    full = trial.duration_ns + trial.waits_ns
    maximum = line_maximum(campaign, run.cell, line)
    if run.procedure == "frame_loss":
        scan = frame_loss_scan(campaign, maximum)
        most = len(scan.rates)
        fewest = min(2, most) if scan.ends_when_lossless else most
        return fewest, most, fewest * full, most * full
    assert campaign.throughput is not None
    goal = throughput_goal(campaign, maximum)
    halvings = (-(-goal.maximum // goal.resolution) - 1).bit_length()
    if campaign.throughput.search == "mlrsearch":
        halvings *= 2  # it measures both bounds of each interval
    if goal.search_duration_ns == goal.trial_duration_ns:
        return 1, 1 + halvings, full, (1 + halvings) * full
    short = goal.search_duration_ns + trial.waits_ns
    most = 1 + halvings + CONFIRMATIONS_MAX
    return 2, most, short + full, (1 + halvings) * short + CONFIRMATIONS_MAX * full


def _uses_line_rate(campaign: Campaign) -> bool:
    loads: list[int | LineShare] = []
    if campaign.throughput is not None:
        loads += [campaign.throughput.maximum, campaign.throughput.minimum]
    if campaign.frame_loss is not None:
        loads += campaign.frame_loss.rates or [campaign.frame_loss.maximum]
    return any(isinstance(load, LineShare) for load in loads)


def _seconds(nanoseconds: int) -> int:
    return -(-nanoseconds // 10**9)
