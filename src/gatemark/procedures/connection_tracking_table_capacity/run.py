"""Connection tracking table capacity: how many connections a gateway holds (RFC 9693 section 4.9).

An elementary measurement is the validated connection establishment rate for one number of connections, in trials that
begin with an empty table. A trial fails because the table is full or because the rate is too high; so a size counts as
stored if any rate between the safe rate and a share of it passes, and as too large if none does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from gatemark.config.model import Campaign
from gatemark.config.stateful import searched_max, storable_max
from gatemark.config.types import FRAMES_PER_SECOND_MAX
from gatemark.procedures.assumed import AssumedGateway, extremes_of_goal
from gatemark.procedures.connection_tracking_table_capacity.result import (
    NO_CAPACITY,
    CapacityResult,
    CapacitySearch,
    CapacityStep,
    LostConnections,
    Overflow,
)
from gatemark.procedures.connection_tracking_table_capacity.table import ConnectionTrackingTableCapacityTable
from gatemark.procedures.loads import first_load, maximum_of, resolution_of
from gatemark.procedures.measured import Measured, MeasureStep
from gatemark.procedures.phase_one import foreground_of, slowest_rate
from gatemark.procedures.procedure import RunTrials
from gatemark.results.document import Deviation
from gatemark.results.search import limited_by
from gatemark.search import binary
from gatemark.search.goal import Goal, Kind, Measure, Observation, SearchResult
from gatemark.trial.cause import FEW_LOST
from gatemark.trial.cell import Cell, Run
from gatemark.trial.host_counters import ABOUT_DIVISOR, growths
from gatemark.trial.record import ConnectionFacts
from gatemark.trial.report import Counts, TrialReport
from gatemark.trial.verdict import judge
from gatemark.units import format_ratio

MISSED_FOR_EACH_EVICTED = 3
"""For each connection that was evicted in test phase 1 so many may be missed in the validation: a frame of one may make
an entry of its own, for which another is evicted."""
EVICTED = "conntrack.early_drop"
"""What Linux counts when it evicts a connection to make room for another."""


def measure(trials: RunTrials) -> CapacityResult:
    """Search once in each repetition; each finds its own safe rate."""
    campaign = trials.campaign
    table = campaign.table(ConnectionTrackingTableCapacityTable)
    goal = capacity_goal(campaign, trials.run.cell, trials.line_maximum)
    searches: list[CapacitySearch] = []
    for repetition in trials.repetitions():
        known = [search.start for search in searches if search.start is not None]
        again = replace(goal, rates=goal.rates.after(known))
        searches.append(search_capacity(again, trials.steps(repetition)))
    resolutions = [search.start.resolution for search in searches if search.start is not None]
    limit = limited_by([search.kind for search in searches])
    return CapacityResult(
        **trials.facts(),
        limited_by=limit,
        refused=no_capacity(searches) if limit == "gateway" else None,
        alpha=table.alpha,
        beta=table.beta,
        gamma=table.gamma,
        resolution=table.resolution,
        rate_resolution=max(resolutions, default=None),
        maximum=goal.maximum,
        repetitions=tuple(searches),
    )


def no_capacity(searches: Sequence[CapacitySearch]) -> str | None:
    """Return why the sizes that were stored are not the capacity; None if they are."""
    overflows = {search.overflow for search in searches}
    reason = next((reason for overflow, reason in NO_CAPACITY.items() if overflow in overflows), None)
    held = [search.lower_bound or 0 for search in searches]
    return None if reason is None else f"{reason}; {min(held):,} connections were stored in every search"


def capacity_goal(campaign: Campaign, cell: Cell, line_maximum: int | None) -> CapacityGoal:
    """Return what a search looks for.

    Without a maximum it ends when four-tuples or public endpoints run out. Raises ConfigError if the rates contradict
    each other, or if none is high enough for connections to last through a trial.
    """
    table = campaign.table(ConnectionTrackingTableCapacityTable)
    line = foreground_of(cell, line_maximum)
    highest = maximum_of(campaign, f"{table.key}.maximum_rate", table.maximum_rate, line)
    slowest = slowest_rate(campaign, table.start, table.alpha, maximum=highest)
    resolution = resolution_of(
        campaign, f"{table.key}.rate_resolution", table.rate_resolution, highest, "connections/s"
    )
    return CapacityGoal(
        rates=Goal(
            maximum=first_load(slowest, resolution) if highest is None else highest,
            minimum=slowest,
            resolution=resolution,
            ceiling=foreground_of(cell, FRAMES_PER_SECOND_MAX) if highest is None else None,
            connections=table.start,
            alpha=table.alpha,
        ),
        maximum=table.maximum or searched_max(campaign),
        resolution=table.resolution,
        beta=table.beta,
        gamma=table.gamma,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityGoal:
    """What a search for the capacity looks for. Symbols are those of RFC 9693 section 4.9."""

    rates: Goal
    """Search for R0 with C0 connections; its resolution is e, its alpha that of every validation."""
    maximum: int
    """Connections at which the search ends."""
    resolution: int
    """E: distance between the sizes at which the search ends."""
    beta: Fraction
    """Share of the safe rate below which the exponential search considers the table full."""
    gamma: Fraction
    """The same in the final binary search."""

    def __post_init__(self) -> None:
        if self.rates.alpha is None:
            raise ValueError("without validation a gateway that evicts connections would have no capacity")
        if self.start > self.maximum:
            raise ValueError(f"the search starts with {self.start} connections, above its maximum of {self.maximum}")

    @property
    def start(self) -> int:
        """C0: a number of connections that the gateway certainly holds."""
        assert self.rates.connections is not None, "a goal with alpha was given without connections"
        return self.rates.connections


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeToTest:
    """The next number of connections, and the rates at which it is tried."""

    search: Literal["start", "exponential", "binary"]
    rates: Goal


def next_size(goal: CapacityGoal, steps: Sequence[CapacityStep]) -> SizeToTest | None:
    """Choose the next number of connections after `steps`; None when done. Pure: same steps, same answer.

    C0 comes first, then twice the safe size CS, up to the maximum, until a size is not stored, then the middle of the
    interval. The safe rate RS is the ceiling for all later sizes, because a larger table is not faster, and it is tried
    first: a size that passes there costs one trial.
    """
    if not steps:
        return SizeToTest(search="start", rates=goal.rates)
    stored = [step for step in steps if step.stored]
    if not stored:
        return None
    safe, full = stored[-1], [step for step in steps if not step.stored]
    if not full:
        if safe.connections == goal.maximum:
            return None
        return _size_to_test(goal, "exponential", min(2 * safe.connections, goal.maximum), safe, goal.beta)
    end = full[-1].connections
    if end - safe.connections <= goal.resolution:
        return None
    return _size_to_test(goal, "binary", (safe.connections + end) // 2, safe, goal.gamma)


def _size_to_test(
    goal: CapacityGoal,
    search: Literal["exponential", "binary"],
    connections: int,
    safe: CapacityStep,
    share: Fraction,
) -> SizeToTest:
    assert safe.rate is not None, "a size that is stored has a rate"
    stop_rate = -(-safe.rate * share.numerator // share.denominator)
    rates = replace(goal.rates, connections=connections, maximum=safe.rate, minimum=stop_rate)
    return SizeToTest(search=search, rates=rates)


def search_capacity(goal: CapacityGoal, measure_step: MeasureStep) -> CapacitySearch:
    """Search once. The only effects are those of `measure_step`; after a collapse the gateway must work again."""
    steps: list[CapacityStep] = []
    start: SearchResult | None = None
    failed: list[Measured] = []
    while (size := next_size(goal, steps)) is not None:
        result, last = _search_rate(size.rates, measure_step)
        if result is not None and result.lower_bound is None and result.kind == "tester_limited":
            return _conclude(goal, steps, start or result, failed, tester_limited=True)
        if start is None and result is not None:
            start = result
            goal = replace(goal, rates=goal.rates.ending_at(start.highest_load))
        step = _step(size, None if result is None else result.lower_bound)
        steps.append(step)
        failed += [] if step.stored else [last]
    return _conclude(goal, steps, start, failed, tester_limited=False)


def _search_rate(rates: Goal, measure_step: MeasureStep) -> tuple[SearchResult | None, Measured]:
    """Return the validated rate of one size and the trial at the lowest rate; the rate is None after a collapse."""
    trials: list[Measured] = []
    history: list[Observation] = []
    while isinstance(step := binary.next_step(rates, history), Measure):
        trials.append(measure_step(replace(step, may_collapse=True)))
        history.append(trials[-1].observation)
        if _collapsed(trials[-1]):
            return None, trials[-1]
    return step, min(trials, key=lambda trial: trial.observation.frames_per_second)


def _step(size: SizeToTest, rate: int | None) -> CapacityStep:
    assert size.rates.connections is not None, "every size has its number"
    return CapacityStep(search=size.search, connections=size.rates.connections, rate=rate, stop_rate=size.rates.minimum)


def _conclude(
    goal: CapacityGoal,
    steps: Sequence[CapacityStep],
    start: SearchResult | None,
    failed: Sequence[Measured],
    *,
    tester_limited: bool,
) -> CapacitySearch:
    kind: Kind
    if tester_limited:
        kind = "tester_limited"
    elif not any(step.stored for step in steps):
        kind = "nothing_passes"
    else:
        kind = "maximum_passed" if all(step.stored for step in steps) else "found"
    return CapacitySearch(
        kind=kind,
        c0=goal.start,
        start=start,
        steps=tuple(steps),
        overflow=overflow_of_all(failed),
        lost_connections=lost_connections(failed[-1]) if failed else None,
        counted=counted_beyond(max(failed, key=_lost)) if failed else None,
    )


def overflow_of_all(failed: Sequence[Measured]) -> Overflow | None:
    """Return what the last failed trial shows; an earlier one may show that connections expired, not only were gone."""
    if not failed:
        return None
    last = overflow_of(failed[-1])
    if last in ("refused", "filtered"):
        # Of the size nearest to the capacity few connections are refused, and nothing may set so few apart.
        many = {overflow_of(trial) for trial in failed if _lost(trial) >= FEW_LOST}
        return "filtered" if many == {"filtered"} else "refused"
    if last in ("vanished", "unusable") and any(overflow_of(earlier) == "expired" for earlier in failed[:-1]):
        return "expired"
    return last


def overflow_of(failed: Measured) -> Overflow:
    """Return what the gateway did with connections beyond its capacity, as a failed trial shows it.

    A connection that is lost in test phase 1 was refused, and if all with some address or port are, that is a filter;
    one that arrives with the Initiator's own address was
    forwarded untranslated. If every connection was established and some cannot be validated, they were evicted; the
    gateway's host may have counted it. Where it did not, they were not evicted if their age sets the lost ones apart,
    if none can be validated, or if the gateway counted them after test phase 1: no connection is added to the table
    any more.
    """
    if _collapsed(failed):
        return "collapsed"
    first = _phase_one(failed)
    if first is None:
        return "other"
    counts = _foreground(first)
    if counts is None:
        return "other"
    untranslated = counts.faults.get("untranslated_source", 0)
    if untranslated or counts.lost > 0:
        if untranslated >= counts.lost:
            return "untranslated"
        return "filtered" if _is_filtered(failed) else "refused"
    if not judge(first, Fraction(0)).passed:
        return "other"
    validation = _validation(failed)
    if validation is None:
        return "evicted"
    validated = _foreground(validation)
    if validated is None or not validated.undelivered:
        return "other"
    return _not_validated(failed, validated)


def _is_filtered(failed: Measured) -> bool:
    """Whether every lost frame of test phase 1 has values of fields of which no frame arrived."""
    causes = () if failed.valid is None else failed.valid.causes
    return bool(causes) and all(cause.is_fixed and cause.explained == cause.lost for cause in causes)


def _not_validated(failed: Measured, validated: Counts) -> Overflow:
    """Return what became of established connections of which some could not be validated."""
    facts, record, lost = _facts(failed), failed.valid, validated.lost
    if facts is None or record is None or 2 * lost < validated.undelivered:
        return "evicted"
    if 2 * (_counted_by_host(failed) or {}).get(EVICTED, 0) >= lost:
        return "evicted"
    if any(cause.cause == "age" for cause in record.causes):
        return "expired"
    before, after = facts.counted_after_phase_one, facts.counted_after_phase_two
    is_any_left = lost < validated.offered
    if before is None:
        return "evicted" if is_any_left else "vanished"
    missing = validated.offered - before
    if missing > 0 and MISSED_FOR_EACH_EVICTED * missing >= lost:
        return "evicted"
    if missing > 0 or (after is not None and 2 * (before - after) >= lost):
        return "expired"
    return "unusable" if is_any_left else "vanished"


def _lost(failed: Measured) -> int:
    """Return how many frames a failed trial lost in its last phase: of the size nearest to the capacity, few."""
    return 0 if failed.report is None else failed.report.lost_count


def counted_beyond(failed: Measured) -> Mapping[str, int] | None:
    """Return what the gateway's host counted of connections in a failed trial; None where it was not read.

    An evicted connection is missed in the validation, but the host counted it in test phase 1.
    """
    counted, first = _counted_by_host(failed), _phase_one(failed)
    if counted is None:
        return None
    lost = max(_lost(failed), 0 if first is None else first.lost_count)
    return {
        grown.name: grown.count
        for grown in growths(counted)
        if grown.counter.speaks_of == "connections" and ABOUT_DIVISOR * grown.count >= lost
    }


def _counted_by_host(failed: Measured) -> Mapping[str, int] | None:
    """Return what the gateway's host counted in test phase 1 and the validation together; None if it was not read."""
    phases = () if failed.valid is None else failed.valid.phases()
    read = [phase.host.counters for phase in phases if phase.host is not None]
    return sum(map(Counter, read), Counter[str]()) if read else None


def lost_connections(failed: Measured) -> LostConnections | None:
    """Return which established connections the validation found gone; None if none was gone or none was validated.

    The validation goes through them in order of establishment. Nine tenths of the lost ones must be where all of them
    would be if only the oldest or the newest had been evicted.
    """
    validation = _validation(failed)
    counts = None if validation is None else _foreground(validation)
    if counts is None:
        return None
    slices, lost = counts.loss.by_slice, sum(counts.loss.by_slice)
    if not lost:
        return None
    width = -(-lost * len(slices) // counts.offered) + 1
    oldest, newest = (10 * sum(part) >= 9 * lost for part in (slices[:width], slices[-width:]))
    if oldest == newest:
        return "spread"
    return "oldest" if oldest else "newest"


def _validation(trial: Measured) -> TrialReport | None:
    """Return the report of the validation; None if test phase 1 failed, so that there was none."""
    return None if trial.valid is None else trial.valid.measured


def _phase_one(trial: Measured) -> TrialReport | None:
    """Return the report of test phase 1; None if the trial says nothing about the gateway."""
    return None if trial.valid is None else trial.valid.filling


def _collapsed(trial: Measured) -> bool:
    """Whether the gateway stopped working during the trial."""
    facts = _facts(trial)
    return facts is not None and facts.collapse is not None


def _facts(trial: Measured) -> ConnectionFacts | None:
    return None if trial.valid is None else trial.valid.connections


def _foreground(report: TrialReport) -> Counts | None:
    """Return the counts of the connections of a trial in one direction; None if nothing was sent."""
    return report.directions[0].foreground if report.directions else None


def gateways(campaign: Campaign, run: Run, line_maximum: int | None) -> Iterator[AssumedGateway]:
    """Yield a fast gateway and a slow one whose table holds the configured size, if there is one, else the maximum."""
    goal = capacity_goal(campaign, run.cell, line_maximum)
    size = campaign.gateway.table.size or goal.maximum
    if campaign.technology.is_edge:
        size = min(size, storable_max(campaign, 1))
    for gateway in extremes_of_goal(campaign, run, line_maximum, goal.rates):
        yield replace(gateway, table_size=size)


def deviations(campaign: Campaign) -> Iterator[Deviation]:
    """Yield what is special about the validation (RFC 9693 section 4.9)."""
    table = campaign.table(ConnectionTrackingTableCapacityTable)
    if table.alpha < 1:
        yield Deviation(
            sentence=f"For the capacity, connections are validated at {format_ratio(table.alpha)} of the rate under"
            " test (RFC 9693 section 4.9)."
        )
