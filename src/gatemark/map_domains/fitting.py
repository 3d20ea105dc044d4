"""Which rule a border relay follows, by what it makes of single packets. Pure.

A rule differs from that of the campaign in as few values as possible. Where several fit, all of them are named: none is
chosen among what cannot be told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from itertools import combinations, product

from gatemark.embedded_ipv4 import EMBEDDED_OCTETS, embed_ipv4, embedded_ipv4
from gatemark.map_domains.domain import Edge, MapDomain
from gatemark.map_domains.port_set import PORT_BITS
from gatemark.map_domains.problems import EA_BITS_MAX, PSID_OFFSET_MAX, rule_problems

CHANGES_MAX = 2
"""Most values that may be wrong at once."""
IPV6_LENGTHS = range(16, 97)
"""Lengths of a rule IPv6 prefix that are tried."""
OTHER_PORTS = (1, 512, 1232, 4095, 4096, 10240, 20480, 32767, 32768, 43008, 49152, 57344, 61440, 65535)
"""Ports besides those of the edges that tell rules apart: each shows the PSID that the relay sees in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upward:
    """A packet of a customer edge to a server, and what arrived there."""

    source: IPv6Address
    """The customer edge; in a tunnel the source of the outer header."""
    port: int
    destination: IPv6Address | IPv4Address
    """The server, as seen from inside."""
    relay: IPv6Address | None = None
    """The relay's end of the tunnel; None: the packet is in none."""
    ipv4: IPv4Address | None = None
    """Source of the packet in the tunnel."""
    arrived: tuple[IPv4Address, IPv4Address] | None = None
    """Source and destination of what arrived; None if nothing did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Downward:
    """A packet of a server to a customer edge, and what arrived there."""

    source: IPv4Address
    destination: IPv4Address
    port: int
    relay: IPv6Address | None = None
    """The relay's end of the tunnel that is due; None: none is."""
    arrived: tuple[IPv6Address, IPv6Address] | None = None
    """Source and destination of what arrived, of the outer header in a tunnel; None if nothing did."""


Question = Upward | Downward


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A rule that explains all that was seen."""

    rule: MapDomain
    changed: tuple[str, ...]
    """Keys of the campaign file in which it differs, each with its value."""


def questions_of(
    rule: MapDomain, edges: Sequence[Edge], server: IPv4Address, relay: IPv6Address | None
) -> Iterator[Question]:
    """Yield packets with which rules are told apart: of these edges, with ports of their sets and with others.

    `relay`: its end of all tunnels; None: it translates.
    """
    inside = embed_ipv4(server, rule.default_rule) if relay is None else server
    for edge in edges:
        ipv4 = None if relay is None else edge.ipv4
        ports = edge.ports
        within = dict.fromkeys(max(1, ports.port(index)) for index in (0, ports.count // 2, ports.count - 1))
        for port in within:
            yield Upward(source=edge.address, port=port, destination=inside, relay=relay, ipv4=ipv4)
        for port in dict.fromkeys((*within, *OTHER_PORTS)):
            yield Downward(source=server, destination=edge.ipv4, port=port, relay=relay)


def is_due(rule: MapDomain, question: Question) -> bool:
    """Whether what was seen is what a relay with this rule makes of a packet."""
    return question.arrived in _answers(rule, question, knows_all=True)


def fits(rule: MapDomain, questions: Sequence[Question], *, knows_all: bool) -> tuple[Fit, ...]:
    """Return the rules that explain everything seen, with as few changes as it takes; none if two do not suffice.

    `knows_all`: whether the relay has all customer edges of its rule; else one may be missing for that reason, and
    rules come first that need the fewest such reasons.
    """
    for count in range(1, CHANGES_MAX + 1):
        fitting = [fit for fit in _changed(rule, count) if _explains(fit.rule, questions, knows_all=knows_all)]
        if fitting:
            return tuple(sorted(fitting, key=lambda fit: sum(not is_due(fit.rule, question) for question in questions)))
    return ()


def _explains(rule: MapDomain, questions: Sequence[Question], *, knows_all: bool) -> bool:
    return all(question.arrived in _answers(rule, question, knows_all=knows_all) for question in questions)


def _answers(
    rule: MapDomain, question: Question, *, knows_all: bool
) -> tuple[tuple[IPv4Address, IPv4Address] | tuple[IPv6Address, IPv6Address] | None, ...]:
    """Return what a relay may make of a packet; None is nothing."""
    if isinstance(question, Downward):
        edge = _edge_at(rule, question.destination, question.port)
        if edge is None:
            return (None,)
        source = embed_ipv4(question.source, rule.default_rule) if question.relay is None else question.relay
        due = (source, edge.address)
        return (due,) if knows_all else (due, None)
    if question.ipv4 is not None:
        return _answers_in_tunnel(rule, question, question.ipv4, knows_all=knows_all)
    assert isinstance(question.destination, IPv6Address), "a relay that translates is asked in IPv6"
    ea, destination = rule.ea_in(question.source), embedded_ipv4(question.destination, rule.default_rule)
    if ea is None or destination is None:
        return (None,)
    sender = Edge(rule, ea)
    if sender.ports.index_of(question.port) is None:
        return (None,)
    passed = (sender.ipv4, destination)
    is_whole = sender.address == question.source  # a relay need not look at the interface identifier
    return (passed,) if is_whole and knows_all else (passed, None)


def _answers_in_tunnel(
    rule: MapDomain, question: Upward, ipv4: IPv4Address, *, knows_all: bool
) -> tuple[tuple[IPv4Address, IPv4Address] | None, ...]:
    """Return what a relay may make of a packet in a tunnel: it must be that of the packet's address and port."""
    edge = _edge_at(rule, ipv4, question.port)
    if edge is None or edge.address != question.source:
        return (None,)
    assert isinstance(question.destination, IPv4Address), "the packet in a tunnel is IPv4"
    passed = (ipv4, question.destination)
    return (passed,) if knows_all else (passed, None)


def _edge_at(rule: MapDomain, address: IPv4Address, port: int) -> Edge | None:
    """Return the customer edge that has this port of this address."""
    if address not in rule.rule_ipv4:
        return None
    ports = rule.ports_of(0)
    if ports.offset_bits and not port >> (PORT_BITS - ports.offset_bits):
        return None
    psid = port >> ports.contiguous_bits & (rule.sharing_ratio - 1)
    if not rule.ea_bits:
        return Edge(rule, 0) if psid == Edge(rule, 0).psid else None
    host = int(address) & int(rule.rule_ipv4.hostmask)
    suffix = host >> (32 - rule.rule_ipv4.prefixlen - rule.suffix_bits)
    return Edge(rule, suffix << rule.ea_psid_bits | (psid if rule.ea_psid_bits else 0))


def _changed(rule: MapDomain, count: int) -> Iterator[Fit]:
    """Yield every sound rule that differs in so many values."""
    rule = replace(rule, except_suffixes=False, except_system_ports=False)  # by which no relay translates
    values = _values(rule)
    for keys in combinations(values, count):
        for chosen in product(*(values[key] for key in keys)):
            changed = rule
            for key, value in zip(keys, chosen, strict=True):
                changed = _with(changed, key, value)
            if not any(rule_problems(changed, "")):
                yield Fit(rule=changed, changed=tuple(_words(changed, key) for key in keys))


def _values(rule: MapDomain) -> dict[str, list[int]]:
    """Return the values of each key that are tried, without its own."""
    offsets = {"psid_offset": range(PSID_OFFSET_MAX + 1)}
    if rule.in_identifier:
        return _others(rule, {**offsets, "psid_bits": range(PORT_BITS + 1)})
    of_psid = {} if rule.ea_bits else {"psid_bits": range(PORT_BITS + 1), "psid": range(0)}
    ranges: dict[str, Sequence[int]] = {
        **offsets,
        "ea_bits": range(EA_BITS_MAX + 1) if rule.ea_bits else range(0),
        "ipv6": IPV6_LENGTHS,
        "ipv4": range(33),
        "dmr": [] if rule.dmr is None else sorted(EMBEDDED_OCTETS),
        **of_psid,
    }
    return _others(rule, ranges)


def _others(rule: MapDomain, ranges: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    return {key: [value for value in values if value != _value(rule, key)] for key, values in ranges.items() if values}


def _value(rule: MapDomain, key: str) -> int:
    dmr = 0 if rule.dmr is None else rule.dmr.prefixlen
    lengths = {"ipv6": rule.rule_ipv6.prefixlen, "ipv4": rule.rule_ipv4.prefixlen, "dmr": dmr}
    others = {"psid_offset": rule.psid_offset, "ea_bits": rule.ea_bits, "psid_bits": rule.psid_length}
    return (lengths | others | {"psid": rule.psid})[key]


def _with(rule: MapDomain, key: str, value: int) -> MapDomain:
    """Return the rule with another value, or another length of a prefix."""
    match key:
        case "ipv6":
            return replace(rule, rule_ipv6=IPv6Network((rule.rule_ipv6.network_address, value), strict=False))
        case "ipv4":
            return replace(rule, rule_ipv4=IPv4Network((rule.rule_ipv4.network_address, value), strict=False))
        case "dmr":
            return replace(rule, dmr=IPv6Network((rule.default_rule.network_address, value), strict=False))
        case "psid_bits" if rule.in_identifier:
            return replace(rule, ea_bits=32 - rule.rule_ipv4.prefixlen + value)
    return replace(rule, **{key: value})  # type: ignore[arg-type]


def _words(rule: MapDomain, key: str) -> str:
    prefixes = {"ipv6": rule.rule_ipv6, "ipv4": rule.rule_ipv4, "dmr": rule.dmr}
    return f'{key} = "{prefixes[key]}"' if key in prefixes else f"{key} = {_value(rule, key)}"
