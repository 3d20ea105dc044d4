"""Builds the parts of `result.json` that only stateful gateways have (RFC 9693). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from gatemark.config.model import Campaign
from gatemark.config.stateful import tuple_space
from gatemark.config.types import Span
from gatemark.procedures.result import AlphaTried, Capacity, CapacityStep, RunResult, TearDown, are_alike
from gatemark.results.parts import SummaryPart
from gatemark.results.reasons import count_reasons
from gatemark.results.stateful_parts import (
    AlphaTriedPart,
    BehaviourPart,
    CapacityPart,
    CapacityRepetitionPart,
    CapacityStepPart,
    ConnectionsPart,
    GatewayCountsPart,
    PhaseOnePart,
    PortRangePart,
    TearDownPart,
)
from gatemark.stats.summary import summarise

if TYPE_CHECKING:
    from gatemark.trial.record import PhaseOne, TrialRecord
    from gatemark.trial.report import TrialReport

FILLED_FIRST = (
    "throughput",
    "frame_loss",
    "delay",
    "back_to_back",
    "system_recovery",
    "reset",
    "connection_tear_down_rate",
)
"""Procedures for which test phase 1 is only the preparation."""


def ratio_text(ratio: Fraction | None) -> str | None:
    """A ratio as an exact fraction, for example "4/5"."""
    return None if ratio is None else str(ratio)


def connections_part(campaign: Campaign, result: RunResult, trials: Sequence[TrialRecord]) -> ConnectionsPart | None:
    """Return the connections of a run with `trials` as its own; None if the gateway is stateless."""
    if not campaign.is_stateful:
        return None
    connections, run = campaign.connections_model, result.run
    space = tuple_space(campaign, run.cell.connections or _largest_size(result))
    return ConnectionsPart(
        initiator=campaign.inside,
        count=run.cell.connections,
        source_hosts=space.source_hosts,
        destination_hosts=space.destination_hosts,
        source_ports=port_range(space.source_ports),
        destination_ports=port_range(space.destination_ports),
        order=connections.order,
        read_order=connections.read_order,
        timeout_ns=connections.timeout_ns,
        gap_ns=connections.gap_ns,
        phase_one=_phase_one(trials) if run.procedure in FILLED_FIRST else None,
        gateway_counts=_gateway_counts(trials),
        behaviour=_behaviour(trials),
    )


def port_range(ports: Span) -> PortRangePart:
    """The published form of a range of ports."""
    return PortRangePart(minimum=ports.minimum, maximum=ports.maximum)


def alphas_part(tried: Sequence[AlphaTried]) -> tuple[AlphaTriedPart, ...]:
    """The published form of what a search for alpha tried."""
    return tuple(AlphaTriedPart(alpha=str(one.alpha), lower_bound=one.lower_bound) for one in tried)


def tear_down_part(tear_down: TearDown | None) -> TearDownPart | None:
    """Return the tear-down times and the rate that follows from the unrounded medians."""
    if tear_down is None:
        return None
    net, rate = tear_down.net_ns, tear_down.rate
    return TearDownPart(
        connections=tear_down.connections,
        full_ns=SummaryPart.of(summarise(tear_down.full_ns)),
        empty_ns=SummaryPart.of(summarise(tear_down.empty_ns)),
        net_ns=net.numerator if net.denominator == 1 else float(net),
        connections_per_second=None if rate is None else float(rate),
        reliable=tear_down.is_reliable,
    )


def capacity_part(campaign: Campaign, result: RunResult) -> CapacityPart | None:
    """Return the searches of a capacity run; None for any other run."""
    model = campaign.connection_tracking_table_capacity
    if result.run.procedure != "connection_tracking_table_capacity" or model is None:
        return None
    repetitions = tuple(
        _capacity_repetition(number, found, model.start) for number, found in enumerate(result.capacities, start=1)
    )
    found = [one.lower_bound or 0 for one in repetitions if one.kind != "nothing_passes"]
    measured = are_alike(result.capacities) and bool(found) and len(found) == len(repetitions)
    return CapacityPart(
        beta=str(model.beta),
        gamma=str(model.gamma),
        resolution=model.resolution,
        rate_resolution=result.resolution,
        repetitions=repetitions,
        r0=_summary_of(one.r0 for one in repetitions),
        rs=_summary_of(one.rs for one in repetitions),
        capacity=SummaryPart.of(summarise(found)) if measured else None,
    )


def zero_checksum_frames(campaign: Campaign, trials: Iterable[TrialRecord]) -> int | None:
    """Return how many frames were accepted with UDP checksum 0; None if none would be."""
    if not campaign.gateway.zero_udp_checksum:
        return None
    reports = (report for trial in trials for report in reports_of(trial))
    return sum(counts.zero_checksum for report in reports for _, _, counts in report.counts())


def reports_of(record: TrialRecord) -> Iterator[TrialReport]:
    """Yield every report of the engine in one trial: those of test phase 1, then the phase that follows."""
    attempts = () if record.connections is None else record.connections.phase_one
    yield from (attempt.report for attempt in attempts)
    if not attempts or record.report != attempts[-1].report:
        yield record.report


def _largest_size(result: RunResult) -> int:
    """Return the most connections that a search for the capacity tried."""
    sizes = [step.connections for capacity in result.capacities for step in capacity.steps]
    start = None if result.goal is None else result.goal.connections
    return max([*sizes, start or 1])


def _phase_one(trials: Sequence[TrialRecord]) -> PhaseOnePart | None:
    attempts = [attempt for trial in trials if trial.connections for attempt in trial.connections.phase_one]
    if not attempts:
        return None
    failed = [attempt for attempt in attempts if attempt.verdict is None or not attempt.verdict.passed]
    rates = [attempt.connections_per_second for attempt in attempts]
    return PhaseOnePart(
        connections_per_second_minimum=min(rates),
        connections_per_second_maximum=max(rates),
        attempts=len(attempts),
        failed=len(failed),
        reasons=count_reasons(_reasons(attempt) for attempt in failed),
    )


def _reasons(attempt: PhaseOne) -> tuple[str, ...]:
    return attempt.validity.reasons if attempt.verdict is None else attempt.verdict.reasons


def _gateway_counts(trials: Sequence[TrialRecord]) -> GatewayCountsPart | None:
    """Compare the gateway's counts with ours, in trials in which we saw every connection established."""
    pairs: list[tuple[int, int]] = []
    later: list[tuple[int, int]] = []
    for trial in trials:
        facts, count = trial.connections, trial.order.connections
        if facts is None or not count or facts.counted_after_phase_one is None:
            continue
        first = facts.phase_one[-1].report if facts.phase_one else trial.report
        if first.connections is not None and first.connections.established == count:
            pairs.append((facts.counted_after_phase_one, count))
        if facts.counted_after_phase_two is not None:
            later.append((facts.counted_after_phase_one, facts.counted_after_phase_two))
    if not pairs and not later:
        return None
    return GatewayCountsPart(
        phase_one=len(pairs),
        phase_one_equal=sum(counted == count for counted, count in pairs),
        phase_one_minimum=min((counted for counted, _ in pairs), default=None),
        phase_one_maximum=max((counted for counted, _ in pairs), default=None),
        phase_two=len(later),
        phase_two_changed=sum(before != after for before, after in later),
    )


def _behaviour(trials: Sequence[TrialRecord]) -> BehaviourPart | None:
    known = [trial.connections.behaviour for trial in trials if trial.connections and trial.connections.behaviour]
    return BehaviourPart(**{name: known[-1][name] for name in BehaviourPart.model_fields}) if known else None


def _capacity_repetition(number: int, found: Capacity, start: int) -> CapacityRepetitionPart:
    exponential = [step for step in found.steps if step.search != "binary"]
    stored = [step for step in exponential if step.stored]
    full = next((step for step in exponential if not step.stored), None)
    safe: CapacityStep | None = stored[-1] if stored else None
    return CapacityRepetitionPart(
        number=number,
        kind=found.kind,
        c0=start,
        r0=exponential[0].rate if exponential else None,
        cs=None if safe is None else safe.connections,
        rs=None if safe is None else safe.rate,
        ct=None if full is None else full.connections,
        rt=None if full is None else full.rate,
        lower_bound=found.capacity,
        upper_bound=found.upper_bound,
        overflow=found.overflow,
        lost_connections=found.lost_connections,
        steps=tuple(
            CapacityStepPart(
                search=step.search,
                connections=step.connections,
                rate=step.rate,
                stop_rate=step.stop_rate,
                stored=step.stored,
            )
            for step in found.steps
        ),
    )


def _summary_of(values: Iterable[int | None]) -> SummaryPart | None:
    """Return the summary of values of which none is missing."""
    gathered = list(values)
    known = [value for value in gathered if value is not None]
    return SummaryPart.of(summarise(known)) if known and len(known) == len(gathered) else None
