"""What the trials of a run report besides its result: counts, connections, the gateway's own numbers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gatemark.config.model import Campaign
from gatemark.config.stateful import tuple_space
from gatemark.config.types import Span
from gatemark.procedures.loads import tagged_octets
from gatemark.results.connections import Behaviour, Connections, GatewayCounts, PortRange
from gatemark.results.connections import PhaseOne as PublishedPhaseOne
from gatemark.results.reasons import count_reasons
from gatemark.results.run import FrameSizes, Mix, TheoreticalMaximum
from gatemark.trial.cell import Run
from gatemark.trial.record import PhaseOne, TrialRecord


def run_facts(campaign: Campaign, run: Run, trials: Sequence[TrialRecord]) -> dict[str, Any]:
    """Return the fields that the results of all procedures have; `trials` are those of the run so far."""
    sizes, mix, line = run.cell.frame_sizes, run.cell.mix, campaign.line.rate
    limit = None
    if line is not None:
        limit = TheoreticalMaximum(line_bits_per_second=line, frame_octets_largest=tagged_octets(campaign, run.cell))
    return {
        "number": run.number,
        "procedure": run.procedure,
        "direction": run.cell.direction,
        "frame_sizes": FrameSizes(ipv4=sizes.ipv4, ipv6=sizes.ipv6),
        "mix": Mix(m=mix.m, n=mix.n),
        "theoretical_maximum": limit,
        "connections": connections_of(campaign, run, trials),
        "zero_checksum": zero_checksum_frames(campaign, trials),
        "trials": len(trials),
        "invalid_trials": sum(not trial.validity.valid for trial in trials),
    }


def connections_of(campaign: Campaign, run: Run, trials: Sequence[TrialRecord]) -> Connections | None:
    """Return the connections of a run with these trials; None if the gateway is stateless."""
    if not campaign.is_stateful:
        return None
    connections = campaign.connections_model
    sizes = [trial.order.connections or 0 for trial in trials]
    space = tuple_space(campaign, run.cell.connections or max([*sizes, 1]))
    return Connections(
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
        phase_one=_phase_one([trial for trial in trials if trial.order.connections_per_second is not None]),
        gateway_counts=_gateway_counts(trials),
        behaviour=_behaviour(trials),
    )


def port_range(ports: Span) -> PortRange:
    """Return a range of ports as results publish it."""
    return PortRange(minimum=ports.minimum, maximum=ports.maximum)


def zero_checksum_frames(campaign: Campaign, trials: Iterable[TrialRecord]) -> int | None:
    """Return how many frames were accepted with UDP checksum 0; None if none would be accepted."""
    if not campaign.gateway.zero_udp_checksum:
        return None
    reports = (report for trial in trials for report in trial.reports())
    return sum(counts.zero_checksum for report in reports for _, _, counts in report.counts())


def _phase_one(trials: Sequence[TrialRecord]) -> PublishedPhaseOne | None:
    attempts = [attempt for trial in trials if trial.connections for attempt in trial.connections.phase_one]
    if not attempts:
        return None
    failed = [attempt for attempt in attempts if attempt.verdict is None or not attempt.verdict.passed]
    rates = [attempt.connections_per_second for attempt in attempts]
    return PublishedPhaseOne(
        connections_per_second_minimum=min(rates),
        connections_per_second_maximum=max(rates),
        attempts=len(attempts),
        failed=len(failed),
        reasons=count_reasons(_reasons(attempt) for attempt in failed),
    )


def _reasons(attempt: PhaseOne) -> tuple[str, ...]:
    return attempt.validity.reasons if attempt.verdict is None else attempt.verdict.reasons


def _gateway_counts(trials: Sequence[TrialRecord]) -> GatewayCounts | None:
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
    return GatewayCounts(
        phase_one=len(pairs),
        phase_one_equal=sum(counted == count for counted, count in pairs),
        phase_one_minimum=min((counted for counted, _ in pairs), default=None),
        phase_one_maximum=max((counted for counted, _ in pairs), default=None),
        phase_two=len(later),
        phase_two_changed=sum(before != after for before, after in later),
    )


def _behaviour(trials: Sequence[TrialRecord]) -> Behaviour | None:
    """Return what the first trial that asked was told: a campaign that was resumed asked once more."""
    known = [trial.connections.behaviour for trial in trials if trial.connections and trial.connections.behaviour]
    return Behaviour(**{name: known[0][name] for name in Behaviour.model_fields}) if known else None
