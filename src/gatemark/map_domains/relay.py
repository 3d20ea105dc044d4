"""What border relays made of stock parts have in common: the customer edges that they know, and their files. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from gatemark.errors import Problem
from gatemark.facts import Order
from gatemark.map_domains.domain import Edge, MapDomain
from gatemark.map_domains.edges import emulated_edges
from gatemark.map_domains.nesting import nested
from gatemark.map_domains.spread import Spread

PRIVATE = IPv4Network("10.0.0.0/16")
"""Addresses behind which a relay sees customer edges that share theirs, where nobody says it."""
EDGES_MAX = 1 << 16
"""tayga reads a file of this many customer edges in about 15 s, and twice as many in four times that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayFiles:
    """What makes such a gateway; the kernel's reverse path filter must be off on its tunnel."""

    tayga: str = ""
    """Text of tayga.conf; empty without tayga."""
    nftables: str
    """Text of the ruleset; empty where tayga alone does it."""
    routes: tuple[str, ...]
    """What leads packets into the tunnel, once its interface is up: commands; for tunnels of the kernel, which may be
    many, lines for `ip -batch`."""


def known_edges(domains: Sequence[MapDomain], edges: int, order: Order) -> Iterator[Edge]:
    """Yield the customer edges that a relay must know.

    In pseudorandom order only the engine knows which of a domain are emulated, so those are all of that domain.
    """
    if order != "pseudorandom":
        yield from emulated_edges(domains, edges, order)
        return
    for domain, count in zip(nested(domains), known_counts(domains, edges, order), strict=True):
        yield from (domain.edge(number) for number in range(count))


def known_counts(domains: Sequence[MapDomain], edges: int, order: Order) -> list[int]:
    """Return how many customer edges of each domain a relay knows."""
    counts = Spread(tuple(domain.weight for domain in domains)).counts(edges)
    if order != "pseudorandom":
        return list(counts)
    return [domain.edge_count if count else 0 for domain, count in zip(nested(domains), counts, strict=True)]


def private_problems(
    domains: Sequence[MapDomain], edges: int, order: Order, private: IPv4Network, *, private_at: str
) -> Iterator[Problem]:
    """Yield why a relay cannot know the customer edges of sound rules; `private_at` names the key of the network."""
    for domain in domains:
        if private.overlaps(domain.rule_ipv4):
            yield Problem(
                what=f"{private} overlaps {domain.rule_ipv4}, the rule IPv4 prefix of a domain",
                where=private_at,
                fix=f"choose a network outside of every domain, such as {PRIVATE}",
            )
    counts = known_counts(domains, edges, order)
    fix = "write fewer" if order != "pseudorandom" else 'write fewer, and order = "increasing": else all are needed'
    if sum(counts) > EDGES_MAX:
        what = f"a gateway that has a line for each of {sum(counts)} customer edges takes very long to read them"
        yield Problem(what=what, where="map.edges", fix=f"{fix}; at most {EDGES_MAX}")
    shared = sum(count for domain, count in zip(domains, counts, strict=True) if domain.kind == "shared address")
    most = max(0, private.num_addresses - 3)  # without the relay's own, and the two that name the network
    if most < shared <= EDGES_MAX:
        yield Problem(
            what=f"{private} has addresses for {most} customer edges that share theirs, not for {shared}",
            where=private_at,
            fix=f"choose a larger network, or fewer customer edges ({fix})",
        )


def elements(lines: Sequence[str]) -> str:
    """Return the elements of a set or map of nftables."""
    return "        elements = {\n" + ",\n".join(f"            {line}" for line in lines) + "\n        }"
