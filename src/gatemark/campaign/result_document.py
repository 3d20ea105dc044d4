"""Builds the envelope of `result.json` around the results of the runs, and decides what may be claimed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from gatemark.campaign.deviations import ROUTES_ARE_STATIC, deviations
from gatemark.campaign.facts import port_range
from gatemark.config.map_tables import MapModel
from gatemark.config.model import Campaign
from gatemark.config.stateful import b4_hosts, host_count, pool_port_count
from gatemark.dut.base import GatewayDescription
from gatemark.map_domains.describe import rule_facts
from gatemark.procedures.registry import PROCEDURES, PublishedDocument
from gatemark.results.ceiling import bounded
from gatemark.results.connections import GatewayTable
from gatemark.results.document import (
    B4Part,
    Claim,
    Deviation,
    EdgePart,
    Gateway,
    HostPart,
    MapDomainPart,
    MapPart,
    ResultDocument,
    TrialForm,
    TunnelPart,
    Validity,
    Waits,
)
from gatemark.results.part import ReasonCounter
from gatemark.results.run import RunResult
from gatemark.results.telemetry import Spread, TableMemory, TelemetryPart
from gatemark.results.tester_parts import ClockPart, SelfTestPart
from gatemark.results.this_machine import gatemark_version
from gatemark.trial.host import HostFacts
from gatemark.trial.telemetry import TelemetryFacts
from gatemark.trial.validity import Validity as TrialValidity

STATEFUL_CLAIM = (
    "RFC 9693 is informational, so no compliance with it is claimed; repetitions, percentiles and all settings of the"
    " gateway that are known are given, as its section 6 asks."
)


def build_document(
    campaign: Campaign,
    gateway: GatewayDescription,
    runs: Sequence[RunResult],
    trials: Iterable[TrialValidity],
    *,
    runs_planned: int,
    host: HostPart | None = None,
    telemetry: TelemetryPart | None = None,
    clock: ClockPart | None = None,
    self_test: SelfTestPart | None = None,
    removed: int = 0,
    interrupts_moved: tuple[str, ...] = (),
) -> ResultDocument:
    """Gather everything that `result.json` holds.

    The campaign must be complete (recipe and line rate filled in); `trials` says for each trial whether it is valid,
    `removed` how many were removed by hand between sessions, `interrupts_moved` what `Session` says of it.
    """
    departures = deviations(campaign)
    runs = [bounded(run, self_test, campaign.technology.name) for run in runs]
    trial = campaign.trial
    return PublishedDocument(
        schema_=1,
        name=campaign.name,
        gatemark=gatemark_version(),
        status="complete" if len(runs) == runs_planned else "incomplete",
        gateway=_gateway(campaign, gateway),
        testbed=_testbed(campaign),
        seed=campaign.seed,
        repetitions_asked=campaign.repetitions,
        traffic_classes=campaign.directions.traffic_classes,
        trial=TrialForm(
            duration_ns=trial.duration_ns,
            waits=Waits(
                settle_ns=trial.settle_ns, learn_ns=trial.learn_ns, drain_ns=trial.drain_ns, rest_ns=trial.rest_ns
            ),
        ),
        runs_planned=runs_planned,
        runs=tuple(runs),
        validity=validity_of(trials, lateness_max_ns=campaign.validity.lateness_max_ns, removed=removed),
        host=host,
        telemetry=telemetry,
        interrupts_moved=interrupts_moved,
        deviations=departures,
        claim=claim_of(campaign, gateway, runs, departures, complete=len(runs) == runs_planned),
        clock=clock,
        self_test=self_test,
    )


def validity_of(trials: Iterable[TrialValidity], *, lateness_max_ns: int, removed: int = 0) -> Validity:
    """Count valid and invalid trials; reasons lose their figures, so that equal ones are counted together."""
    total, invalid, reasons = 0, 0, ReasonCounter()
    for trial in trials:
        total += 1
        if not trial.valid:
            invalid += 1
            reasons.add(trial.reasons)
    return Validity(
        trials=total,
        valid=total - invalid,
        invalid=invalid,
        lateness_max_ns=lateness_max_ns,
        reasons=reasons.counted(),
        removed=removed,
    )


def host_of(campaign: Campaign, trials: Iterable[tuple[HostFacts | None, Sequence[str]]]) -> HostPart | None:
    """Gather what was read of the gateway's host; None if the test bed never reads it.

    `trials` gives of each trial what was read, and why its failure is suspect: nothing if it is not.
    """
    read, suspicions, reasons = [], 0, ReasonCounter()
    for host, why in trials:
        if host is not None and host.sees_work:
            read.append(host)
        if why:
            suspicions += 1
            reasons.add(why)
    if not campaign.bed.sees_host:
        return None
    return HostPart(
        trials=len(read),
        suspect=suspicions,
        held_up_max_ns=campaign.validity.held_up_max_ns,
        queue_frames=min((host.queue_frames for host in read), default=None),
        waited_ns_max=max((host.waited_ns for host in read), default=0),
        stolen_ns_max=max((host.stolen_ns for host in read), default=0),
        reasons=reasons.counted(),
    )


def telemetry_of(
    campaign: Campaign,
    trials: Iterable[TelemetryFacts],
    memory: Iterable[tuple[int, tuple[float, float]]] = (),
) -> TelemetryPart | None:
    """Gather how many trials of the engine were sampled; None if the gateway's host was not to be sampled, or no trial.

    `memory` has numbers of connections, with the memory that was available before and after all were established.
    """
    total = sampled = sending = damaged = 0
    reasons = ReasonCounter()
    for facts in trials:
        total += 1
        damaged += facts.damaged
        sampled += facts.reason is None
        span = facts.span("sending")
        sending += span is not None and span.intervals > 0
        reasons.add(facts.complaints)
    if campaign.control.telemetry is None or not total:
        return None
    return TelemetryPart(
        trials=total,
        sampled=sampled,
        sending=sending,
        damaged=damaged,
        tables=tuple(_tables(memory)),
        reasons=reasons.counted(),
    )


def _tables(memory: Iterable[tuple[int, tuple[float, float]]]) -> Iterator[TableMemory]:
    by_count: dict[int, list[tuple[float, float]]] = {}
    for connections, around in memory:
        by_count.setdefault(connections, []).append(around)
    for connections, pairs in sorted(by_count.items()):
        empty, full = (_spread([pair[place] for pair in pairs]) for place in (0, 1))
        yield TableMemory(connections=connections, trials=len(pairs), empty=empty, full=full)


def _spread(values: Sequence[float]) -> Spread:
    return Spread(minimum=min(values), median=median(values), maximum=max(values))


def claim_of(
    campaign: Campaign,
    gateway: GatewayDescription,
    runs: Sequence[RunResult],
    departures: Sequence[Deviation],
    *,
    complete: bool,
) -> Claim:
    """What may be claimed (RFC 2544 section 5): no compliance, as no routing update is sent (section 13).

    The strongest statement is that every other MUST of the procedures was met. `unmet` holds only what the campaign's
    deviations cannot know.
    """
    unmet: list[str] = []
    if not complete:
        unmet.append("Not all runs of the campaign are finished.")
    if any(run.refused for run in runs):
        unmet.append("At least one run was not made, for the reason given there.")
    if any(run.limited_by == "tester" for run in runs):
        unmet.append("At least one run was limited by the Tester, so it is no result of the gateway.")
    if any(run.limited_by == "host" for run in runs):
        unmet.append("In at least one run the gateway's host was not quiet, so it is no result of the gateway.")
    if not (gateway.configuration or campaign.gateway.configuration):
        unmet.append("The configuration of the gateway is not part of the report (RFC 2544 section 7).")
    informational = STATEFUL_CLAIM if campaign.technology.is_stateful else None
    is_of_rfc2544 = any(PROCEDURES[run.procedure].standard == "RFC 2544" for run in runs)
    if (
        unmet
        or not is_of_rfc2544
        or any(deviation.rules_out_claim for deviation in departures if deviation != ROUTES_ARE_STATIC)
    ):
        sentence = "No compliance with RFC 2544 is claimed for these figures (RFC 2544 section 5)."
        return Claim(level="none", sentence=sentence, informational=informational, unmet=tuple(unmet))
    sentence = (
        "No compliance with RFC 2544 is claimed (section 5), because no routing update is sent before a trial (section"
        " 13). Every other MUST of the procedures that were run is met."
    )
    return Claim(level="all_but_routing_updates", sentence=sentence, informational=informational, unmet=())


def _gateway(campaign: Campaign, described: GatewayDescription) -> Gateway:
    stated, stateful = campaign.gateway, campaign.technology.is_stateful
    pinned = len(campaign.testbed.gateway_cores)
    table = GatewayTable(
        size=stated.table.size, hash_size=stated.table.hash_size, udp_timeout_ns=stated.table.udp_timeout_ns
    )
    return Gateway(
        name=described.name or stated.name or "unnamed gateway",
        version=described.version or stated.version,
        technology=campaign.technology.name,
        hop_limit_decrement=campaign.forwarding.hop_limit_decrement,
        prefix=None if stated.prefix is None else str(stated.prefix),
        tunnel=_tunnel(campaign),
        b4s=_b4s(campaign),
        map=None if campaign.edges.emulated is None else _map(campaign.edges.emulated),
        edge=_edge(campaign),
        inside=campaign.roles.inside if stateful else None,
        pool=tuple(str(prefix) for prefix in campaign.forwarding.pool),
        pool_ports=port_range(stated.public_ports) if stateful else None,
        mapping=stated.mapping if stateful else None,
        table=table if stateful else None,
        zero_udp_checksum=bool(stated.zero_udp_checksum),
        cores=campaign.control.core_count,
        cores_set_by="pinning" if pinned else stated.cores_set_by,
        settings=described.settings,
        boots_before=campaign.control.model.boot,
        configuration=described.configuration or stated.configuration,
        commands="\n".join(described.commands),
    )


def _edge(campaign: Campaign) -> EdgePart | None:
    edge = campaign.edges.gateway
    if edge is None:
        return None
    return EdgePart(
        **dict(rule_facts(edge.domain)),
        end_user_prefix=str(edge.delegated),
        address=str(edge.address),
        ipv4_address=str(edge.ipv4),
        psid=edge.psid,
        ports=pool_port_count(campaign),
        peers_psid=None if campaign.edges.peers is None else campaign.edges.peers.psid,
    )


def _tunnel(campaign: Campaign) -> TunnelPart | None:
    tunnel = campaign.forwarding.tunnel
    if tunnel is None:
        return None
    return TunnelPart(
        address=str(campaign.forwarding.tunnel_end),
        relay=_relay(campaign),
        hop_limit=None if tunnel.hop_limit == "any" else tunnel.hop_limit,
        traffic_class=None if tunnel.traffic_class == "copied" else tunnel.traffic_class,
        ecn=tunnel.ecn,
        prefix=None if tunnel.prefix is None else str(tunnel.prefix),
        ipv4_mask_length=None if tunnel.prefix is None else tunnel.masked_bits,
    )


def _relay(campaign: Campaign) -> str | None:
    outer = campaign.side(campaign.roles.outside).ipv6
    return str(outer.address) if campaign.technology.is_subscriber and outer is not None else None


def _b4s(campaign: Campaign) -> B4Part | None:
    if not campaign.technology.has_b4s:
        return None
    hosts = b4_hosts(campaign)
    return B4Part(count=host_count(campaign, campaign.roles.inside), hosts=len(hosts.numbers), addresses=str(hosts))


def _map(table: MapModel) -> MapPart:
    counts = table.spread.counts(table.edge_count)
    return MapPart(
        edges=table.edge_count,
        order=table.order,
        choice=table.choice,
        onlink=table.onlink,
        domains=tuple(
            MapDomainPart(**dict(rule_facts(rule)), edges=count)
            for rule, count in zip(table.rules, counts, strict=True)
        ),
    )


def _testbed(campaign: Campaign) -> str:
    words, recipe = campaign.bed.words, campaign.testbed.recipe
    return f"{words}, recipe {recipe}" if recipe else words
