"""The gateway path before the first trial: a short trial at a low rate, and what its outcome says in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Network
from types import MappingProxyType

from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_single_trial
from gatemark.campaign.stated_mtu import stated_mtus
from gatemark.config.model import Campaign, CampaignFile
from gatemark.config.sizes import FrameSizes
from gatemark.config.stateful import host_count
from gatemark.config.tables import TrafficModel
from gatemark.dut.recipe import complete_campaign
from gatemark.embedded_ipv4 import WELL_KNOWN_PREFIX
from gatemark.errors import GatemarkError
from gatemark.facts import Direction
from gatemark.findings import Finding, failed
from gatemark.map_preflight import map_findings
from gatemark.packets import TOO_LARGE
from gatemark.procedures.registry import PROCEDURES
from gatemark.technology import OPPOSITE
from gatemark.tester import Equipment, Tester, open_tester, prepare, stop_signals
from gatemark.trial.cell import Cell, Run
from gatemark.trial.echo import EchoForm
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import DirectionResult, TrialReport
from gatemark.trial.verdict import kept_hop_limits
from gatemark.tunnel_preflight import tunnel_faults

FRAMES_PER_SECOND = 20
DURATION_NS = 500_000_000
DRAIN_NS = 500_000_000
CONNECTIONS = 10
"""Most connections that are established through a stateful gateway, at the low rate of the frames."""
BENCHMARKING_NETWORK = IPv4Network("198.18.0.0/15")
"""RFC 2544 appendix C.2.2; not global (RFC 6890), so the well-known prefix must not represent it."""

PROBED_CLASSES = (0xB8, 0)
"""Expedited forwarding (RFC 3246), or the default class where all frames have that one already."""

DESTINATIONS = 10
"""Most hosts that are asked by echo requests."""
FRAME_CHECKS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {way: (f"gateway path, {way}", "frames") for way in ("forward", "reverse")}
)
ECHO_CHECKS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"forward": ("gateway path, echo requests", "echo requests"), "reverse": ("gateway path, echo replies", "replies")}
)
"""What is checked in each direction."""

ICMP_MEANINGS = {
    "icmpv4 3/0": "no route to the network",
    "icmpv4 3/1": "the gateway could not find the destination host, or has no route to it",
    "icmpv4 3/3": "the gateway treated the frame as its own: the destination is the gateway's address",
    "icmpv4 3/4": "the frame is too large for the next link and DF is set: raise the MTU",
    "icmpv4 3/13": "the gateway's policy forbids it",
    "icmpv4 11/0": "the time to live ran out: raise traffic.hop_limit, or look for a routing loop",
    "icmpv6 1/0": "no route to the destination",
    "icmpv6 1/1": "the gateway's policy forbids it",
    "icmpv6 1/3": "the gateway could not find the destination host: its neighbour discovery got no answer",
    "icmpv6 1/4": "the gateway treated the frame as its own: the destination is the gateway's address",
    "icmpv6 1/5": "the gateway's source address check failed",
    "icmpv6 2/0": "the frame is too large for the next link: raise the MTU",
    "icmpv6 3/0": "the hop limit ran out: raise traffic.hop_limit, or look for a routing loop",
}
"""What an ICMP error says about the path, by family, type and code."""


MTU_REMEDY = "raise the MTU of the gateway's interfaces, or leave frames of this size out of traffic.frame_sizes"


def check_gateway_path(file: CampaignFile) -> list[Finding]:
    """Send a few frames each way of each cell's first size through the gateway and say what became of them.

    Echo requests where the campaign measures with them. Of a border relay also whether it follows its rules.
    """
    try:
        campaign = complete_campaign(file)
        quick = file.model_copy(
            update={"trial": file.trial.model_copy(update={"drain_ns": DRAIN_NS, "rest_ns": 0, "settle_ns": 0})}
        )
        framed, echoed = first_cells(campaign, plan_of(campaign).runs)
        if framed is None and echoed is None:
            return [Finding(check="gateway path", status="warning", observed="the campaign measures nothing")]
        if framed is not None and campaign.technology.is_stateful:
            quick, framed = with_few_connections(quick, framed)
        equipment, findings = Equipment(), []
        with stop_signals(resume_hint=None):
            bed, ready = prepare(quick, equipment)
            with open_tester(ready, bed, equipment) as tester:
                if framed is not None:
                    record = _trial(tester, framed)
                    findings += [*(() if record.connections is None else judge_connections(record))]
                    path = list(judge_path(campaign, record.report))
                    findings += [*path, *judge_damages(record), *judge_domain(record.report)]
                    if all(finding.status == "ok" for finding in path):
                        findings += _probe_class(tester, framed)
                        findings += _probe_largest(tester, framed, largest_sizes(plan_of(campaign).runs))
                if echoed is not None:
                    record = _trial(tester, echoed, few_requests(tester.campaign))
                    findings += judge_path(campaign, record.report, ECHO_CHECKS)
                rules = list(map_findings(tester.campaign, tester.engine.exchange))
    except GatemarkError as error:
        return failed("gateway path", error)
    return [*findings, *rules]


def first_cells(campaign: Campaign, runs: Sequence[Run]) -> tuple[Cell | None, Cell | None]:
    """Return the first cell that is measured with frames, and the first with echo requests; None without any."""
    echo = {table.key for table in campaign.tables if table.asked_echo(campaign) is not None}
    framed = (run.cell for run in runs if PROCEDURES[run.procedure].table.key not in echo)
    echoed = (run.cell for run in runs if PROCEDURES[run.procedure].table.key in echo)
    return next(framed, None), next(echoed, None)


def few_requests(campaign: Campaign) -> EchoForm:
    """Return echo requests of one client, one to each of a few hosts."""
    destinations = min(DESTINATIONS, host_count(campaign, "right"))
    return EchoForm(
        clients=1, window=1, count=1, destinations=destinations, pace_without_reply_ns=None, timeout_ns=DRAIN_NS
    )


def largest_sizes(runs: Sequence[Run]) -> FrameSizes:
    """Return the largest frames that are measured."""
    return max((run.cell.frame_sizes for run in runs), key=lambda sizes: sizes.largest)


def _probe_largest(tester: Tester, cell: Cell, sizes: FrameSizes) -> Iterator[Finding]:
    """Send a few of the largest frames, if those before were smaller: the gateway may have a smaller MTU."""
    if sizes.largest <= cell.frame_sizes.largest:
        return
    cell, what = replace(cell, frame_sizes=sizes), f"frames of up to {sizes.largest} octets"
    checks = {way: (f"largest frames, {way}", what) for way in ("forward", "reverse")}
    report = _trial(tester, cell).report
    is_too_large = any(TOO_LARGE & port.foreign.icmp.keys() for port in report.ports.values())
    mtus = stated_mtus(tester.campaign, cell, tester.engine) if is_too_large else ()
    stated = f"; the gateway states an MTU of {' and '.join(map(str, mtus))} octets" if mtus else ""
    for finding in judge_path(tester.campaign, report, checks):
        if finding.status != "ok" and is_too_large:
            finding = replace(finding, observed=finding.observed + stated, remedy=MTU_REMEDY)
        yield finding


def _probe_class(tester: Tester, cell: Cell) -> Iterator[Finding]:
    """Send a few frames with a traffic class that the campaign does not send, where it sends one alone."""
    traffic = tester.campaign.traffic
    sent = tester.campaign.directions.traffic_classes
    if len(sent) > 1 or not tester.campaign.bed.has_gateway:
        return
    probed = next(octet for octet in PROBED_CLASSES if octet not in sent)
    marked = tester.campaign.model_copy(update={"traffic": with_class(traffic, probed)})
    yield from judge_class(_trial(replace(tester, campaign=marked), cell).report, probed)


def with_class(traffic: TrafficModel, octet: int) -> TrafficModel:
    """Return traffic with one class in all frames, also where a direction has its own; pure."""
    cleared = {
        way: None if overrides is None else overrides.model_copy(update={"traffic_class": None})
        for way, overrides in (("forward", traffic.forward), ("reverse", traffic.reverse))
    }
    return traffic.model_copy(update={"traffic_class": (octet,), **cleared})


def judge_class(report: TrialReport, probed: int) -> Iterator[Finding]:
    """Say for each direction what became of frames with a traffic class that the campaign does not send. Pure."""
    for direction in report.directions:
        check = f"traffic class {probed}, {direction.direction}"
        observed = f"{direction.received} of {direction.offered} frames correct"
        if direction.received == direction.offered:
            yield Finding(check=check, status="ok", observed=f"{observed}, and their class kept")
            continue
        changed = sum(counts.faults.get("traffic_class", 0) for _, counts in direction.classes)
        lost = sum(counts.lost for _, counts in direction.classes)
        said = [f"{changed} with another class"] * bool(changed) + [f"{lost} lost"] * bool(lost)
        yield Finding(
            check=check,
            status="warning",
            observed=f"{observed}; {', '.join(said or ['the others wrong'])}",
            remedy="the campaign sends one class alone, so its figures say nothing about others: see whether the"
            " gateway is meant to do this, or write traffic.traffic_class = {by_flow = [0, 184]}",
        )


def _trial(tester: Tester, cell: Cell, echo: EchoForm | None = None) -> TrialRecord:
    return run_single_trial(
        tester.campaign,
        cell,
        tester.engine,
        frames_per_second=FRAMES_PER_SECOND,
        duration_ns=DURATION_NS,
        connections_per_second=FRAMES_PER_SECOND,
        can=tester.testbed.can,
        echo=echo,
    )


def with_few_connections(file: CampaignFile, cell: Cell) -> tuple[CampaignFile, Cell]:
    """Return campaign file and cell for a trial each way with a few connections, tried once."""
    count = min(CONNECTIONS, cell.connections or CONNECTIONS)
    few = file.connections_model.model_copy(update={"count": (count,), "retries": 0})
    direction: Direction = "bidirectional"
    return file.model_copy(update={"connections": few}), replace(cell, direction=direction, connections=count)


def judge_connections(record: TrialRecord) -> Iterator[Finding]:
    """Say whether connections were established, and whether the gateway counts as many; pure."""
    facts, count = record.connections, record.order.connections
    assert facts is not None and count is not None, "the trial of a stateful gateway"
    phase_one = record.attempts[-1]
    number = phase_one.report.established
    counted = facts.counted_after_phase_one
    observed = f"{number} of {count} established"
    if counted is not None:
        observed += f", the gateway counts {counted}"
    if phase_one.verdict is not None and phase_one.verdict.passed:
        yield Finding(check="connections", status="ok", observed=observed)
        return
    missed = number == count and counted is not None and counted < count
    yield Finding(
        check="connections",
        status="failed",
        observed=observed,
        remedy="the gateway does not count what it forwards: check gateway control count_connections"
        if missed
        else "check the frames below; the gateway must translate and keep state for each connection",
    )


def judge_path(
    campaign: Campaign, report: TrialReport, checks: Mapping[str, tuple[str, str]] = FRAME_CHECKS
) -> Iterator[Finding]:
    """Say for each direction whether what was sent arrived as expected; `checks`: its name and what it is. Pure."""
    icmp = {
        message: f"{count} x {message}: {ICMP_MEANINGS.get(message, 'an error of the gateway')}"
        for port in report.ports.values()
        for message, count in port.foreign.icmp.items()
    }
    for direction in report.directions:
        check, what = checks[direction.direction]
        observed = f"{direction.received} of {direction.offered} {what} correct"
        if direction.received == direction.offered > 0:
            yield Finding(check=check, status="ok", observed=observed)
            continue
        faults = {reason: n for _, counts in direction.classes for reason, n in counts.faults.items() if n}
        said = [f"{count} x wrong {reason.replace('_', ' ')}" for reason, count in faults.items()]
        if limits := kept_hop_limits(report, direction.direction):
            said.append(f"hop limit {limits} where {_hop_limit_due(campaign, direction)} is due")
        tunnels = tuple(tunnel_faults(campaign, report, direction))
        said += [told.observed for told in tunnels if told.observed]
        if said:
            observed += f"; {', '.join(said)}"
        if icmp:
            observed += f"; ICMP seen: {'; '.join(icmp.values())}"
        yield Finding(
            check=check,
            status="failed",
            observed=observed,
            remedy=_remedy_here(report)
            or "; ".join(told.remedy for told in tunnels)
            or _remedy(campaign, direction, faults, what),
        )


def judge_damages(record: TrialRecord) -> Iterator[Finding]:
    """Say which of two gateways in a row damaged frames, for each kind of fault; pure."""
    for damage in record.damages:
        yield Finding(
            check="which gateway",
            status="failed",
            observed=damage.told,
            remedy="`gatemark trial --json` has the frames on each link, under `damages`",
        )


def _hop_limit_due(campaign: Campaign, direction: DirectionResult) -> int:
    """Return the hop limit with which frames arrive, of the foreground if any of it have another one."""
    foreground = direction.foreground
    forwarding = campaign.forwarding
    is_wrong = foreground is not None and foreground.faults.get("hop_limit", 0)
    decrement = forwarding.hop_limit_decrement if is_wrong else forwarding.background_hop_limit_decrement
    return campaign.directions.traffic_of(direction.direction).hop_limit - decrement


def judge_domain(report: TrialReport) -> Iterator[Finding]:
    """Say whether a port hears the other one without the gateway; pure."""
    for side, other in OPPOSITE.items():
        if count := report.ports[side].foreign.of_other_port:
            frames = "a frame" if count == 1 else f"{count} frames"
            yield Finding(
                check="broadcast domain",
                status="warning",
                observed=f"the {side} port hears what the {other} port sends, without the gateway: {frames}",
                remedy="both ports are in one broadcast domain: join each to an interface of the gateway of its own, or"
                " give each a VLAN",
            )


def _remedy_here(report: TrialReport) -> str:
    """Return what went wrong on the Tester's side of the wire; empty if nothing did."""
    for side, port in report.ports.items():
        if port.link_losses or not port.link_up:
            return f"the link of the {side} port went down: check the cable and the other end"
        if drops := {place: count for place, count in port.own_drops.items() if count}:
            kinds = ", ".join(f"{place} {count}" for place, count in drops.items())
            return f"frames were lost on the Tester's side of the {side} port ({kinds}), not by the gateway"
    return ""


def _remedy(campaign: Campaign, direction: DirectionResult, faults: dict[str, int], what: str) -> str:
    """Choose the likeliest reason."""
    if direction.offered == 0 and what == ECHO_CHECKS["reverse"][1]:
        return "a reply needs a request: check the requests"
    if direction.offered == 0:
        return "the Tester could not send: check the link and the port"
    if not campaign.bed.has_gateway:
        return "check that a cable joins these two ports, with nothing else in between"
    if "untranslated_source" in faults:
        return "the gateway forwards without translation: check its NAT rule and the interface that it is bound to"
    if "outside_port_set" in faults:
        return "the gateway uses ports outside its set: compare psid_offset, EA bits and PSID (`gatemark plan`)"
    if campaign.edges.peers is not None and {"destination_address", "tunnel_destination"} & faults.keys():
        if {"other_edge_address", "other_subscriber"} & faults.keys():
            return "the gateway sends to another customer edge: compare its rule with [map] (`gatemark plan`)"
        return "the gateway does not reach other customer edges directly: give it its rule as forwarding mapping rule"
    if campaign.edges.gateway is not None and "source_address" in faults:
        (public,) = campaign.forwarding.pool
        return f"the gateway's public address is not {public.network_address}: compare its rule with [map]"
    if campaign.gateway.pool and "source_address" in faults:
        return "the gateway translates to addresses that gateway.pool does not name: correct one of the two"
    if "hop_limit" in faults:
        return "set gateway.hop_limit_decrement to what the gateway takes off (a chain of hops takes several)"
    if "fragment" in faults:
        return MTU_REMEDY
    if faults:
        return (
            "the gateway does not do what the campaign expects: check gateway.technology, prefix and"
            " eam; `gatemark frame`"
        )
    if campaign.forwarding.prefix == WELL_KNOWN_PREFIX:
        return (
            f"a gateway must drop {BENCHMARKING_NETWORK} inside {WELL_KNOWN_PREFIX}, because it is not global (RFC 6052"
            " section 3.1): use a network-specific prefix such as 2001:2:0:6400::/96"
        )
    return "check routes, forwarding and firewall of the gateway; `tcpdump` on its interfaces shows how far frames get"
