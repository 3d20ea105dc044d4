"""Customer edges that a gateway takes for those of a longer rule: it chooses the longest match. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from gatemark.map_domains.domain import Edge, MapDomain


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
    edge = Edge(domain, ea << below)
    if (edge.address in other.rule_ipv6) if family == "ipv6" else (edge.ipv4 in other.rule_ipv4):
        yield range(ea << below, (ea + 1) << below)


def taken_count(domain: MapDomain, others: Sequence[MapDomain], used: range) -> int:
    """Return how many of the customer edges `used`, by their numbers, belong to a longer rule of `others`.

    One that two rules take counts twice.
    """
    count = 0
    for other in others:
        for taken in taken_ranges(domain, other):
            first = max(used.start, domain.numbers_below(taken.start))
            count += max(0, min(used.stop, domain.numbers_below(taken.stop)) - first)
    return count
