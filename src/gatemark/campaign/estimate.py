"""How many trials a campaign has and how long they take, before anything is sent. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

from gatemark.campaign.loads import frame_loss_scan, line_maximum, throughput_goal
from gatemark.campaign.plan import make_plan
from gatemark.campaign.stateful_estimate import (
    LeastAndMost,
    Work,
    add_phase_one,
    capacity_work,
    establishment_work,
    tear_down_work,
)
from gatemark.config.model import Campaign
from gatemark.config.stateful import sending_times_ns
from gatemark.search.burst import LOSS_VERIFICATIONS
from gatemark.search.effort import steps_of_mlrsearch
from gatemark.search.goal import Goal
from gatemark.trial.cell import Run
from gatemark.units import NANOSECONDS_PER_SECOND, LineShare

ASSUMED_LINE_BITS_PER_SECOND = 10_000_000_000
"""What an estimate takes where the line rate is not known yet; a measurement never does."""

CONFIRMATIONS_MAX = 4
"""Full-length trials after a search with short ones: mostly the first passes; each that fails steps down further."""

ASSUMED_CAPACITIES_PERCENT = (90, 50, 8)
ASSUMED_BUFFER_NS = 1_000_000
"""MLRsearch is estimated for gateways that forward all, or so much of the maximum, and keep no frames or those of 1 ms
at the maximum. One that keeps more, or that forwards more in one trial than in the next, takes longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEstimate:
    """How much there is to do, without repeated invalid trials."""

    trials_min: int
    trials_max: int
    """More only if short trials of a search pass and long ones fail far below, or if the gateway is not steady."""
    seconds_min: int
    """Sending time and waits of the fewest trials."""
    seconds_max: int
    """Sending time and waits of the most trials."""
    line_assumed: bool
    """Whether the line rate was not known, so that loads in % were taken of 10 Gbit/s."""
    establishment_assumed: bool
    """Whether connections are established: then the least is for a gateway that is never too slow, and the most for one
    that establishes `stateful_estimate.ASSUMED_CONNECTIONS_PER_SECOND`; a slower one takes longer."""


def estimate(campaign: Campaign, line_bits_per_second: int | None = None) -> PlanEstimate:
    """Estimate trials and time; `line.rate` of the file wins over what the port reports."""
    line = campaign.line.rate or line_bits_per_second
    least, most = Work(), Work()
    for run in make_plan(campaign).runs:
        maximum = line_maximum(campaign, run.cell, line or ASSUMED_LINE_BITS_PER_SECOND)
        low, high = _of_run(campaign, run, maximum)
        least, most = least + low, most + high
    return PlanEstimate(
        trials_min=least.trials,
        trials_max=most.trials,
        seconds_min=_seconds(least.ns),
        seconds_max=_seconds(most.ns),
        line_assumed=line is None and _uses_line_rate(campaign),
        establishment_assumed=campaign.is_stateful,
    )


def _of_run(campaign: Campaign, run: Run, maximum: int | None) -> LeastAndMost:
    """Return the least and the most work of all repetitions of a run."""
    match run.procedure:
        case "throughput":
            least, most = add_phase_one(campaign, run.cell, maximum, _throughput(campaign, maximum))
        case "frame_loss":
            least, most = add_phase_one(campaign, run.cell, maximum, _frame_loss(campaign, maximum))
        case "delay":
            least, most = add_phase_one(campaign, run.cell, maximum, _delay(campaign))
        case "back_to_back":
            assert campaign.back_to_back is not None, "the plan holds no such run without the table"
            least, most = add_phase_one(campaign, run.cell, maximum, _back_to_back(campaign, maximum))
            return least, most * campaign.back_to_back.bursts
        case "system_recovery" | "reset":
            length_ns = sending_times_ns(campaign)[run.procedure] + campaign.trial.waits_ns
            work = Work(1, length_ns), Work(1, length_ns)
            least, most = add_phase_one(campaign, run.cell, maximum, work)
        case "connection_establishment_rate" | "validated_connection_establishment_rate":
            return establishment_work(campaign, run, maximum)
        case "connection_tear_down_rate":
            least, most = tear_down_work(campaign, run.cell, maximum)
        case "connection_tracking_table_capacity":
            least, most = capacity_work(campaign, run.cell, maximum)
    return least * campaign.repetitions, most * campaign.repetitions


def _frame_loss(campaign: Campaign, maximum: int | None) -> LeastAndMost:
    full = campaign.trial.duration_ns + campaign.trial.waits_ns
    scan = frame_loss_scan(campaign, maximum)
    most = len(scan.rates)
    fewest = min(2, most) if scan.ends_when_lossless else most
    return Work(fewest, fewest * full), Work(most, most * full)


def _delay(campaign: Campaign) -> LeastAndMost:
    assert campaign.delay is not None, "the plan holds no delay run without the table"
    trials = len(campaign.delay.load)
    work = Work(trials, trials * (campaign.delay.sending_ns + campaign.trial.waits_ns))
    return work, work


def _back_to_back(campaign: Campaign, maximum: int | None) -> LeastAndMost:
    """Return no work, where the throughput is the line rate, and the most of one search for the longest burst."""
    model = campaign.back_to_back
    assert model is not None, "the plan holds no such run without the table"
    if isinstance(model.resolution, Fraction):
        steps = -(-1 // model.resolution)
    else:
        ceiling = (maximum or 1) * model.ceiling_ns // NANOSECONDS_PER_SECOND
        steps = -(-ceiling // model.resolution)
    bursts = 1 + max(0, steps - 1).bit_length()
    if model.search == "loss_verification":
        bursts *= 1 + LOSS_VERIFICATIONS
    waits_ns = campaign.trial.waits_ns - campaign.trial.drain_ns + model.wait_ns
    return Work(), Work(bursts, bursts * (model.ceiling_ns + waits_ns))


def _throughput(campaign: Campaign, maximum: int | None) -> LeastAndMost:
    assert campaign.throughput is not None, "the plan holds no throughput run without the table"
    goal, waits_ns = throughput_goal(campaign, maximum), campaign.trial.waits_ns
    search_ns, trial_ns = goal.durations_ns
    short, full = search_ns + waits_ns, trial_ns + waits_ns
    if campaign.throughput.search == "mlrsearch":
        return _mlrsearch(goal, waits_ns)
    halvings = (-(-goal.maximum // goal.resolution) - 1).bit_length()
    if search_ns == trial_ns:
        return Work(1, full), Work(1 + halvings, (1 + halvings) * full)
    most_ns = (1 + halvings) * short + CONFIRMATIONS_MAX * full
    return Work(2, short + full), Work(1 + halvings + CONFIRMATIONS_MAX, most_ns)


@lru_cache
def _mlrsearch(goal: Goal, waits_ns: int) -> LeastAndMost:
    """Return the least and the most work of one search, tried on gateways that forward the same in each trial."""
    capacities = [goal.maximum, *(goal.maximum * percent // 100 for percent in ASSUMED_CAPACITIES_PERCENT)]
    buffers = (0, goal.maximum * ASSUMED_BUFFER_NS // NANOSECONDS_PER_SECOND)
    works = []
    for capacity, buffer_frames in product(capacities, buffers):
        steps = steps_of_mlrsearch(goal, capacity=capacity, buffer_frames=buffer_frames)
        works.append(Work(len(steps), sum(step.duration_ns + waits_ns for step in steps)))
    return Work(min(work.trials for work in works), min(work.ns for work in works)), Work(
        max(work.trials for work in works), max(work.ns for work in works)
    )


def _uses_line_rate(campaign: Campaign) -> bool:
    loads: list[int | LineShare] = []
    if campaign.throughput is not None:
        loads += [campaign.throughput.maximum, campaign.throughput.minimum]
    if campaign.frame_loss is not None:
        loads += campaign.frame_loss.rates or [campaign.frame_loss.maximum]
    if campaign.connection_establishment_rate is not None:
        loads += [campaign.connection_establishment_rate.maximum, campaign.connection_establishment_rate.minimum]
    if campaign.connection_tracking_table_capacity is not None:
        loads.append(campaign.connection_tracking_table_capacity.maximum_rate)
    if campaign.back_to_back is not None:
        return True
    return any(isinstance(load, LineShare) for load in loads)


def _seconds(nanoseconds: int) -> int:
    return -(-nanoseconds // 10**9)
