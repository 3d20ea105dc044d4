"""How many trials a campaign has and how long they take, before anything is sent. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Literal

from gatemark.campaign.loads import frame_loss_scan, line_maximum, throughput_goal
from gatemark.campaign.plan import make_plan
from gatemark.campaign.stateful_estimate import (
    ASSUMED_RATE_MAX,
    LeastAndMost,
    Work,
    add_phase_one,
    capacity_work,
    establishment_work,
    least_and_most,
    tear_down_work,
)
from gatemark.config.check import PORTS_WITHOUT_NAME
from gatemark.config.model import Campaign
from gatemark.config.stateful import sending_times_ns
from gatemark.search.burst import LOSS_VERIFICATIONS
from gatemark.search.effort import steps_of
from gatemark.search.goal import Goal, Measure
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
    maximum_assumed: bool
    """Whether a search finds its maximum itself: then it was taken to be up to `stateful_estimate.ASSUMED_RATE_MAX`."""
    establishment_assumed: bool
    """Whether connections are established: then the least is for a gateway that is never too slow, and the most for one
    that establishes `stateful_estimate.ASSUMED_CONNECTIONS_PER_SECOND`; a slower one takes longer."""


def estimate(campaign: Campaign, line_bits_per_second: int | None = None) -> PlanEstimate:
    """Estimate trials and time; `line.rate` of the file wins over what the port reports."""
    line = campaign.line.rate or line_bits_per_second
    assumed = line or (ASSUMED_LINE_BITS_PER_SECOND if _may_have_a_line_rate(campaign) else None)
    least, most = Work(), Work()
    for run in make_plan(campaign).runs:
        maximum = line_maximum(campaign, run.cell, assumed)
        low, high = _of_run(campaign, run, maximum)
        least, most = least + low, most + high
    return PlanEstimate(
        trials_min=least.trials,
        trials_max=most.trials,
        seconds_min=_seconds(least.ns),
        seconds_max=_seconds(most.ns),
        line_assumed=assumed is not None and line is None and _uses_line_rate(campaign),
        maximum_assumed=assumed is None and None in _first_loads(campaign),
        establishment_assumed=campaign.is_stateful,
    )


def _of_run(campaign: Campaign, run: Run, maximum: int | None) -> LeastAndMost:
    """Return the least and the most work of all repetitions of a run."""
    match run.procedure:
        case "throughput":
            return add_phase_one(campaign, run.cell, maximum, _throughput(campaign, maximum))
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
            return capacity_work(campaign, run.cell, maximum)
    return least * campaign.repetitions, most * campaign.repetitions


def _frame_loss(campaign: Campaign, maximum: int | None) -> LeastAndMost:
    full = campaign.trial.duration_ns + campaign.trial.waits_ns
    scan = frame_loss_scan(campaign, maximum, None if campaign.throughput is None else ASSUMED_RATE_MAX)
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
    """Return the least and the most work of all repetitions."""
    assert campaign.throughput is not None, "the plan holds no throughput run without the table"
    goal, waits_ns = throughput_goal(campaign, maximum), campaign.trial.waits_ns
    if goal.ceiling is not None:
        return _open_ended(goal, campaign.throughput.search, waits_ns, campaign.repetitions)
    least, most = _mlrsearch(goal, waits_ns) if campaign.throughput.search == "mlrsearch" else _binary(goal, waits_ns)
    return least * campaign.repetitions, most * campaign.repetitions


def _binary(goal: Goal, waits_ns: int) -> LeastAndMost:
    """Return the least and the most work of one search."""
    search_ns, trial_ns = goal.durations_ns
    short, full = search_ns + waits_ns, trial_ns + waits_ns
    halvings = (-(-goal.maximum // goal.gap) - 1).bit_length()
    if search_ns == trial_ns:
        return Work(1, full), Work(1 + halvings, (1 + halvings) * full)
    most_ns = (1 + halvings) * short + CONFIRMATIONS_MAX * full
    return Work(2, short + full), Work(1 + halvings + CONFIRMATIONS_MAX, most_ns)


@lru_cache
def _mlrsearch(goal: Goal, waits_ns: int) -> LeastAndMost:
    """Return the least and the most work of one search, tried on gateways that forward the same in each trial."""
    capacities = [goal.maximum, *(goal.maximum * percent // 100 for percent in ASSUMED_CAPACITIES_PERCENT)]
    buffers = (0, goal.maximum * ASSUMED_BUFFER_NS // NANOSECONDS_PER_SECOND)
    return least_and_most(
        [
            _work_of(steps_of(goal, "mlrsearch", capacity=capacity, buffer_frames=buffer_frames), waits_ns)
            for capacity, buffer_frames in product(capacities, buffers)
        ]
    )


@lru_cache
def _open_ended(goal: Goal, search: Literal["binary", "mlrsearch"], waits_ns: int, repetitions: int) -> LeastAndMost:
    """Return the least and the most work of searches that find their maximum; later repetitions begin where it was.

    They are tried on gateways that fail at the first load, or forward just less than two of those that follow, up to
    the assumed end.
    """
    confirmations = Work()
    if search == "binary" and goal.search_duration_ns != goal.trial_duration_ns:
        again = CONFIRMATIONS_MAX - 1
        confirmations = Work(again, again * (goal.durations_ns[1] + waits_ns))
    doublings = (-(-ASSUMED_RATE_MAX // goal.maximum) - 1).bit_length()
    works = []
    buffers_ns = (0, ASSUMED_BUFFER_NS) if search == "mlrsearch" else (0,)
    for doubling, buffer_ns in product(sorted({0, 1, doublings // 2, doublings}), buffers_ns):
        capacity = (goal.maximum << doubling) - 1
        buffer_frames = capacity * buffer_ns // NANOSECONDS_PER_SECOND
        first = steps_of(goal, search, capacity=capacity, buffer_frames=buffer_frames)
        known = replace(goal, maximum=max(step.frames_per_second for step in first))
        later = steps_of(known, search, capacity=capacity, buffer_frames=buffer_frames)
        works.append(_work_of(first, waits_ns) + _work_of(later, waits_ns) * (repetitions - 1))
    least, most = least_and_most(works)
    return least, most + confirmations * repetitions


def _work_of(steps: Sequence[Measure], waits_ns: int) -> Work:
    return Work(len(steps), sum(step.duration_ns + waits_ns for step in steps))


def _may_have_a_line_rate(campaign: Campaign) -> bool:
    """Whether a port may report the rate of its medium; a veth pair does not, nor the rings of a loop-back."""
    port = None if campaign.left is None else campaign.left.port
    return port is not None and port not in PORTS_WITHOUT_NAME


def _first_loads(campaign: Campaign) -> list[int | LineShare | None]:
    """Return the highest loads that the file gives or leaves to the line."""
    loads: list[int | LineShare | None] = []
    if campaign.throughput is not None:
        loads.append(campaign.throughput.maximum)
    if campaign.connection_establishment_rate is not None:
        loads.append(campaign.connection_establishment_rate.maximum)
    if campaign.connection_tracking_table_capacity is not None:
        loads.append(campaign.connection_tracking_table_capacity.maximum_rate)
    return loads


def _uses_line_rate(campaign: Campaign) -> bool:
    if campaign.back_to_back is not None:
        return True
    loads = _first_loads(campaign)
    if campaign.throughput is not None:
        loads.append(campaign.throughput.minimum)
    if campaign.frame_loss is not None:
        loads += campaign.frame_loss.rates or [campaign.frame_loss.maximum]
    if campaign.connection_establishment_rate is not None:
        loads.append(campaign.connection_establishment_rate.minimum)
    return any(load is None or isinstance(load, LineShare) for load in loads)


def _seconds(nanoseconds: int) -> int:
    return -(-nanoseconds // 10**9)
