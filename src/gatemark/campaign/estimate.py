"""How many trials a campaign has and how long they take, before anything is sent. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gatemark.campaign.plan import Plan, plan_of
from gatemark.config.check import PORTS_WITHOUT_NAME
from gatemark.config.flows import flow_count, flow_ramp_ns
from gatemark.config.model import Campaign
from gatemark.procedures.loads import line_maximum
from gatemark.procedures.registry import PROCEDURES
from gatemark.procedures.work import LeastAndMost, Work

ASSUMED_LINE_BITS_PER_SECOND = 10_000_000_000
"""What an estimate assumes while the line rate is unknown; a measurement never assumes it."""


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
    """Whether the line rate was not known, so that loads in % are shares of 10 Gbit/s."""
    maximum_assumed: bool
    """Whether a search finds its maximum itself: the estimate assumes at most `procedures.work.ASSUMED_RATE_MAX`."""
    establishment_assumed: bool
    """Whether connections are established: then the least is for a gateway that is never too slow, and the most for one
    that establishes `procedures.work.ASSUMED_CONNECTIONS_PER_SECOND`; a slower one takes longer."""


def estimate(campaign: Campaign, line_bits_per_second: int | None = None) -> PlanEstimate:
    """Estimate trials and time; `line.rate` of the file wins over what the port reports."""
    line = campaign.line.rate or line_bits_per_second
    assumed = _assumed_line(campaign, line)
    least, most = Work(), Work()
    for low, high in _works(campaign, plan_of(campaign), assumed):
        least, most = least + low, most + high
    open_ended = any(table.is_open_ended for table in campaign.tables)
    of_line = any(True for table in campaign.tables for _ in table.shares_of_line())
    return PlanEstimate(
        trials_min=least.trials,
        trials_max=most.trials,
        seconds_min=_seconds(least.ns),
        seconds_max=_seconds(most.ns),
        line_assumed=assumed is not None and line is None and (of_line or open_ended or _needs_line_rate(campaign)),
        maximum_assumed=assumed is None and open_ended,
        establishment_assumed=campaign.technology.is_stateful,
    )


def expected_ns(campaign: Campaign, plan: Plan) -> tuple[int, ...]:
    """Return how long each run is expected to take, nanoseconds: between the least and the most; never 0."""
    works = _works(campaign, plan, _assumed_line(campaign, campaign.line.rate))
    return tuple(max(1, (least.ns + most.ns) // 2) for least, most in works)


def _assumed_line(campaign: Campaign, line: int | None) -> int | None:
    return line or (ASSUMED_LINE_BITS_PER_SECOND if _may_have_a_line_rate(campaign) else None)


def _works(campaign: Campaign, plan: Plan, line: int | None) -> Iterator[LeastAndMost]:
    """Yield the least and the most work of each run."""
    for run in plan.runs:
        least, most = PROCEDURES[run.procedure].run.work(campaign, run, line_maximum(campaign, run.cell, line))
        ramp_ns = flow_ramp_ns(campaign, run.cell.connections or flow_count(campaign))
        yield Work(least.trials, least.ns + least.trials * ramp_ns), Work(most.trials, most.ns + most.trials * ramp_ns)


def total(estimates: Iterable[PlanEstimate]) -> PlanEstimate:
    """Return how much several campaigns are together; what any of them assumes is assumed."""
    each = list(estimates)
    return PlanEstimate(
        trials_min=sum(part.trials_min for part in each),
        trials_max=sum(part.trials_max for part in each),
        seconds_min=sum(part.seconds_min for part in each),
        seconds_max=sum(part.seconds_max for part in each),
        line_assumed=any(part.line_assumed for part in each),
        maximum_assumed=any(part.maximum_assumed for part in each),
        establishment_assumed=any(part.establishment_assumed for part in each),
    )


def _may_have_a_line_rate(campaign: Campaign) -> bool:
    """Whether a port may report the rate of its medium; a veth pair does not, nor the rings of a loop-back."""
    port = None if campaign.left is None else campaign.left.port
    return port is not None and port not in PORTS_WITHOUT_NAME


def _needs_line_rate(campaign: Campaign) -> bool:
    return any(table.needs_line_rate for table in campaign.tables)


def _seconds(nanoseconds: int) -> int:
    return -(-nanoseconds // 10**9)
