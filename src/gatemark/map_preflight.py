"""Whether a border relay follows the rules of the campaign: packets of the lowest and highest customer edge of each
domain, with the lowest and highest port of its set, and what else tells rules apart (RFC 7597 section 5).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from gatemark.config.model import Campaign
from gatemark.findings import Finding
from gatemark.map_domains.domain import Edge, MapDomain
from gatemark.map_domains.edges import used_numbers
from gatemark.map_domains.fitting import Downward, Fit, Question, Upward, fits, is_due, questions_of
from gatemark.packets import Flow, IpAddress, Packet, Tunnel, build, encapsulated, read_frame
from gatemark.trial.exchange import Exchange, read_exchange

DOMAINS_MAX = 8
"""Domains that are looked at, the first of the file: one that is wrong is seldom alone."""
INTERVAL_NS = 5_000_000
WAIT_NS = 500_000_000
MARK = b"gatemark rules"
SERVER_PORT = 40_000
FITS_SHOWN = 4

Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Makes the request `exchange`."""


def map_findings(campaign: Campaign, ask: Ask) -> Iterator[Finding]:
    """Yield for each domain whether the gateway follows its rule, or which rule fits instead; only of relays.

    `campaign` is complete.
    """
    table = campaign.edges.emulated
    if table is None or not campaign.bed.has_gateway:
        return
    end = campaign.forwarding.ipv6_end
    relay = None if end is None else end.address
    address = IPv4Address(str(campaign.hosts("right", "ipv4").address))
    counts = table.spread.counts(table.edge_count)
    for index, (rule, count) in list(enumerate(zip(table.rules, counts, strict=True)))[:DOMAINS_MAX]:
        used = used_numbers(rule, count, table.order)
        if not used:
            continue
        edges = [rule.edge(number) for number in dict.fromkeys((used[0], used[-1]))]
        questions = _answered(campaign, ask, tuple(questions_of(rule, edges, address, relay)))
        plain = [question for question in questions if _is_of(question, edges)]
        knows_all = count == rule.edge_count
        right = [question for question in plain if is_due(rule, question)]
        check = f"{'softwires' if rule.in_identifier else 'MAP rule, domain'} {index + 1}"
        observed = f"{len(right)} of {len(plain)} packets correct"
        if len(right) == len(plain):
            yield Finding(check=check, status="ok", observed=f"{observed}: lowest and highest customer edge and port")
            continue
        told, remedy = _other_end(questions, relay) or _diagnosis(
            f"{table.key}[{index}]", rule, questions, fits(rule, questions, knows_all=knows_all)
        )
        yield Finding(check=check, status="failed", observed=f"{observed}; {told}", remedy=remedy)


def _is_of(question: Question, edges: Sequence[Edge]) -> bool:
    """Whether a packet is of one of these customer edges, or for one of them."""
    return isinstance(question, Upward) or any(
        edge.ipv4 == question.destination and edge.ports.index_of(question.port) is not None for edge in edges
    )


def _other_end(questions: Sequence[Question], relay: IPv6Address | None) -> tuple[str, str] | None:
    """Return what there is to say if the gateway's tunnels begin elsewhere; None if not."""
    ends = {
        str(question.arrived[0])
        for question in questions
        if isinstance(question, Downward) and question.arrived is not None
    }
    if relay is None or not ends or str(relay) in ends:
        return None
    told = f"the gateway's tunnels begin at {' and '.join(sorted(ends))}, not at {relay}"
    return told, "correct the address in the gateway, or set gateway.tunnel.address"


def _astray(rule: MapDomain, questions: Sequence[Question]) -> str:
    """Return where a packet arrived that was due elsewhere, if any did: the address tells of a prefix."""
    for question in questions:
        if isinstance(question, Downward) and question.arrived is not None and not is_due(rule, question):
            return f"; one to {question.destination} port {question.port} arrived at {question.arrived[1]}"
    return ""


def _diagnosis(key: str, rule: MapDomain, questions: Sequence[Question], fitting: Sequence[Fit]) -> tuple[str, str]:
    """Return what the answers say about the gateway's rule, and what to do."""
    export = "compare with the rules that `gatemark export` prints"
    came = sum(question.arrived is not None for question in questions)
    if not came:
        remedy = f"check routes and forwarding first, then {export}"
        return f"none of {len(questions)} packets came back", remedy
    if not fitting:
        several = f"no rule that differs in one or two values explains the outcome of {len(questions)} packets"
        several += _astray(rule, questions)
        return several, f"{export}; `gatemark frame` shows the expected packets"
    words = ["with " + " and ".join(fit.changed) for fit in fitting[:FITS_SHOWN]]
    if len(fitting) == 1:
        told = f"the gateway behaves as it would {words[0]}: that explains all {len(questions)} packets"
        return told, f"correct the gateway's rule, or set {' and '.join(fitting[0].changed)} in {key}"
    more = f", and {len(fitting) - FITS_SHOWN} other rules" if len(fitting) > FITS_SHOWN else ""
    told = f"the gateway behaves as it would {' or '.join(words)}{more}: from outside these look the same"
    return told, export


def _answered(campaign: Campaign, ask: Ask, questions: Sequence[Question]) -> tuple[Question, ...]:
    """Return the questions with what came of each."""
    packets: dict[str, list[str]] = {"left": [], "right": []}
    for number, question in enumerate(questions):
        is_up = isinstance(question, Upward)
        hop_limit = campaign.directions.traffic_of("forward" if is_up else "reverse").hop_limit
        flow = _flow(question)
        packet = build(flow, MARK + struct.pack("!H", number), hop_limit=hop_limit)
        if flow.tunnel is not None:
            packet = encapsulated(packet, flow.tunnel, hop_limit=hop_limit, traffic_class=0)
        packets["left" if is_up else "right"].append(packet.hex())
    exchange = Exchange(
        left=tuple(packets["left"]), right=tuple(packets["right"]), interval_ns=INTERVAL_NS, wait_ns=WAIT_NS
    )
    answered = list(questions)
    for arrived in read_exchange(ask(exchange.body)).arrived:
        read = read_frame(bytes.fromhex(arrived.octets))
        if not isinstance(read, Packet) or not read.data.startswith(MARK) or len(read.data) < len(MARK) + 2:
            continue
        (number,) = struct.unpack("!H", read.data[len(MARK) : len(MARK) + 2])
        if number < len(answered):
            answered[number] = _with_answer(answered[number], arrived.side, read)
    return tuple(answered)


def _flow(question: Question) -> Flow:
    is_up = isinstance(question, Upward)
    source: IpAddress = question.source
    tunnel = None
    if isinstance(question, Upward) and question.ipv4 is not None and question.relay is not None:
        source, tunnel = question.ipv4, Tunnel(source=question.source, destination=question.relay)
    return Flow(
        kind="udp",
        source=source,
        destination=question.destination,
        source_port=question.port if is_up else SERVER_PORT,
        destination_port=SERVER_PORT if is_up else question.port,
        tunnel=tunnel,
    )


def _with_answer(question: Question, side: str, packet: Packet) -> Question:
    """Return a question with the packet that arrived, if it did so on the other side."""
    ends = packet.flow if packet.flow.tunnel is None else packet.flow.tunnel
    source, destination = ends.source, ends.destination
    if isinstance(question, Upward):
        if side == "right" and isinstance(source, IPv4Address) and isinstance(destination, IPv4Address):
            return replace(question, arrived=(source, destination))
        return question
    if side == "left" and not isinstance(source, IPv4Address) and not isinstance(destination, IPv4Address):
        return replace(question, arrived=(source, destination))
    return question
