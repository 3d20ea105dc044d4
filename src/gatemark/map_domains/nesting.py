"""Customer edges that a gateway takes for those of a longer rule: it chooses the longest match. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from gatemark.map_domains.domain import Edge, MapDomain


def nested(domains: Sequence[MapDomain]) -> tuple[MapDomain, ...]:
    """Return the domains without the customer edges that a longer rule takes: no rule may contradict itself."""
    inner = _inner_rules(domains)
    return tuple(
        replace(domain, taken=tuple(taken for other in inner[index] for taken in taken_ranges(domain, domains[other])))
        if index in inner
        else domain
        for index, domain in enumerate(domains)
    )


def taken_ranges(domain: MapDomain, other: MapDomain) -> Iterator[range]:
    """Yield the EA values of `domain` whose MAP address or IPv4 address a longer prefix of `other` holds."""
    outer6, inner6 = domain.rule_ipv6, other.rule_ipv6
    if inner6.prefixlen > outer6.prefixlen and inner6.subnet_of(outer6):
        inside = inner6.prefixlen - outer6.prefixlen
        yield from _ranges(domain, int(inner6.network_address) >> (128 - inner6.prefixlen), inside, other, "ipv6")
    outer4, inner4 = domain.rule_ipv4, other.rule_ipv4
    if inner4.prefixlen > outer4.prefixlen and inner4.subnet_of(outer4):
        inside = inner4.prefixlen - outer4.prefixlen
        yield from _ranges(domain, int(inner4.network_address) >> (32 - inner4.prefixlen), inside, other, "ipv4")


def _ranges(
    domain: MapDomain, prefix: int, inside: int, other: MapDomain, family: Literal["ipv4", "ipv6"]
) -> Iterator[range]:
    """Yield the EA values whose highest bits are the `inside` lowest bits of the inner prefix."""
    held = domain.ea_bits if family == "ipv6" else domain.suffix_bits
    below = domain.ea_bits - held  # the PSID, where it is not part of what the prefix tells
    bits = prefix & ((1 << inside) - 1)
    if inside <= held:
        free = held - inside + below
        yield range(bits << free, (bits + 1) << free)
        return
    ea = bits >> (inside - held)  # longer than all that tells customer edges apart: it holds one of them or none
    edge, uses_all = Edge(domain, ea << below), domain.dmr is None  # by translation only the first one of its addresses
    if (edge.address in other.rule_ipv6) if family == "ipv6" else (uses_all or edge.ipv4 in other.rule_ipv4):
        yield range(ea << below, (ea + 1) << below)


def _inner_rules(domains: Sequence[MapDomain]) -> dict[int, list[int]]:
    """Return which rules have a prefix inside that of another one, by the number of the outer one."""
    inner: dict[int, list[int]] = {}
    prefixes_ipv6 = [(domain.rule_ipv6.prefixlen, int(domain.rule_ipv6.network_address)) for domain in domains]
    prefixes_ipv4 = [(domain.rule_ipv4.prefixlen, int(domain.rule_ipv4.network_address)) for domain in domains]
    for width, prefixes in ((128, prefixes_ipv6), (32, prefixes_ipv4)):
        rules_of: dict[tuple[int, int], list[int]] = {}  # several rules may share an address
        for index, prefix in enumerate(prefixes):
            rules_of.setdefault(prefix, []).append(index)
        lengths = sorted({length for length, _ in rules_of})
        for index, (own_length, first) in enumerate(prefixes):
            for length in (length for length in lengths if length < own_length):
                for outer in rules_of.get((length, first >> (width - length) << (width - length)), ()):
                    if index not in inner.setdefault(outer, []):
                        inner[outer].append(index)
    return inner
