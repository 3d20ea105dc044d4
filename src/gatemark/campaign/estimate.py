"""How many trials a campaign has and how long they take, before anything is sent. Pure.

The procedures themselves say it: each is run with trials that are only counted, on gateways made of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from gatemark.campaign.facts import TrialTally, run_facts
from gatemark.campaign.plan import Plan, plan_of
from gatemark.config.flows import flow_count, flow_ramp_ns
from gatemark.config.model import Campaign
from gatemark.port_kinds import parse_port
from gatemark.procedures.assumed import ASSUMED_RATE_MAX, AssumedGateway
from gatemark.procedures.earlier import Earlier
from gatemark.procedures.loads import line_maximum
from gatemark.procedures.measured import Measured, MeasureStep
from gatemark.procedures.registry import PROCEDURES
from gatemark.results.search import SearchGoal
from gatemark.search.goal import Measure
from gatemark.trial.cell import Run
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.trial.kinds import kind_of
from gatemark.trial.order import TrialOrder

ASSUMED_LINE_BITS_PER_SECOND = 10_000_000_000
"""What an estimate assumes while the line rate is unknown; a measurement never assumes it."""


ANY_GOAL = SearchGoal(
    search="binary", maximum=None, minimum=1, loss_tolerance=Fraction(0), search_duration_ns=None, duration_ns=None
)
"""Of searches that an estimate takes as made: nothing in it changes what comes after them."""


@dataclass(frozen=True, slots=True)
class Work:
    """A number of trials and the nanoseconds that they take."""

    trials: int = 0
    ns: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.trials + other.trials, self.ns + other.ns)

    def __mul__(self, times: int) -> Work:
        return Work(self.trials * times, self.ns * times)


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
    """Whether a search finds its maximum itself: the estimate assumes at most `procedures.assumed.ASSUMED_RATE_MAX`."""
    establishment_assumed: bool
    """Whether connections are established: then the least is for a gateway that is never too slow, and the most for one
    that establishes `procedures.assumed.ASSUMED_CONNECTIONS_PER_SECOND`; a slower one takes longer."""


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


def _works(campaign: Campaign, plan: Plan, line: int | None) -> Iterator[tuple[Work, Work]]:
    """Yield the least and the most work of each run: the fewest trials and the shortest time, the most and the longest.

    Frame sizes and directions change what the line carries, and nothing else in the decisions of a procedure.
    """
    known: dict[Any, tuple[Work, Work]] = {}
    for run in plan.runs:
        cell, carried = run.cell, line_maximum(campaign, run.cell, line)
        alike = run.procedure, carried, cell.connections, cell.mix, cell.alpha
        if alike not in known:
            gateways = PROCEDURES[run.procedure].gateways(campaign, run, carried)
            works = [_work_on(campaign, run, carried, gateway) for gateway in gateways]
            trials, times = [work.trials for work in works], [work.ns for work in works]
            known[alike] = Work(min(trials), min(times)), Work(max(trials), max(times))
        yield known[alike]


def counted_orders(campaign: Campaign, plan: Plan) -> Iterator[TrialOrder]:
    """Yield an order of each kind of trial that the runs of a plan may have, on the slowest and the fastest gateway.

    Loads are those of the first such trial.
    """
    line = _assumed_line(campaign, campaign.line.rate)
    for run in plan.runs:
        carried = line_maximum(campaign, run.cell, line)
        kinds: dict[Any, TrialOrder] = {}
        for gateway in PROCEDURES[run.procedure].gateways(campaign, run, carried):
            trials = _CountedTrials(campaign, run, carried, gateway)
            PROCEDURES[run.procedure].run.measure(trials)
            for order in trials.orders:
                step = order.step
                alike = (
                    kind_of(order),
                    order.form,
                    step.connections,
                    step.drawn_frames,
                    step.is_burst,
                    step.alpha is None,
                )
                kinds.setdefault(alike, order)
        yield from kinds.values()


def _work_on(campaign: Campaign, run: Run, carried: int | None, gateway: AssumedGateway) -> Work:
    trials = _CountedTrials(campaign, run, carried, gateway)
    PROCEDURES[run.procedure].run.measure(trials)
    return trials.work


class _CountedTrials:
    """The trials of a run as its procedure sees them (`procedures.procedure.RunTrials`); they are counted, not made."""

    def __init__(self, campaign: Campaign, run: Run, line_maximum: int | None, gateway: AssumedGateway) -> None:
        self.campaign = campaign
        self.run = run
        self.line_maximum = line_maximum
        self.work = Work()
        self.orders: list[TrialOrder] = []
        """Every trial that was counted."""
        self._gateway = gateway
        self._ramp_ns = flow_ramp_ns(campaign, run.cell.connections or flow_count(campaign))
        self._replies_per_second = max(1, min(gateway.frames_per_second, ASSUMED_RATE_MAX))

    @cached_property
    def earlier(self) -> Earlier:
        """What the runs before found with the traffic of this one."""
        earlier = Earlier()
        for procedure in PROCEDURES.values():
            if procedure.table.finds_frame_rate:
                search = self._gateway.found_frames
            elif procedure.table.finds_connection_rate:
                search = self._gateway.found_connections
            else:
                continue
            if any(isinstance(table, procedure.table) for table in self.campaign.tables):
                facts = {**self.facts(), "procedure": procedure.name, "goal": ANY_GOAL, "repetitions": (search,)}
                earlier.add(self.run.cell, procedure.result(limited_by="gateway", **facts))
        return earlier

    def repetitions(self) -> Iterator[int]:
        """Yield the first two repetitions, and count the second one for all after it: on a steady gateway they only
        repeat it, for then all that they could know of the ones before is known.
        """
        count = self.campaign.table(PROCEDURES[self.run.procedure].table).repetitions(self.campaign)
        yield 0
        if count > 1:
            first = self.work
            yield 1
            again = Work(self.work.trials - first.trials, self.work.ns - first.ns)
            self.work += again * (count - 2)

    def steps(
        self,
        repetition: int,
        *,
        loss_tolerance: Fraction = Fraction(0),
        connections_per_second: int | None = None,
        form: TrialForm = PLAIN,
    ) -> MeasureStep:
        """Return what counts the trials of one repetition; the gateway loses nothing up to its rate."""
        del loss_tolerance

        def count(step: Measure) -> Measured:
            order = TrialOrder(
                run=self.run,
                trial_number=1,
                repetition=repetition,
                attempt=0,
                step=step,
                connections_per_second=connections_per_second,
                form=form,
            )
            self.orders.append(order)
            lasts_ns = kind_of(order).lasts_ns(self.campaign, order, self._replies_per_second)
            self.work += Work(1, lasts_ns + self._ramp_ns)
            return self._gateway.measured(step)

        return count

    def facts(self) -> dict[str, Any]:
        """Return the fields that the results of all procedures have, without any trial."""
        return run_facts(self.campaign, self.run, TrialTally())


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
    return campaign.left.port is not None and parse_port(campaign.left.port).kind.takes_name


def _needs_line_rate(campaign: Campaign) -> bool:
    return any(table.needs_line_rate for table in campaign.tables)


def _seconds(nanoseconds: int) -> int:
    return -(-nanoseconds // 10**9)
