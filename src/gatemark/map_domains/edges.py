"""The customer edges that are emulated: their order within a domain, and their numbers over all domains. Pure.

The order says which customer edge of a domain has local number l: number l, number `edge_count` - 1 - l, or the one
where the engine's keyed bijection of all `edge_count` numbers puts l. Numbers are in the order of the EA values
allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gatemark.errors import ConfigError
from gatemark.facts import Order
from gatemark.map_domains.domain import Edge, MapDomain
from gatemark.map_domains.nesting import nested
from gatemark.map_domains.spread import Spread


def used_numbers(domain: MapDomain, count: int, order: Order) -> range:
    """Return the numbers that the first `count` customer edges of a domain may have."""
    whole = domain.edge_count
    if order == "increasing" or count == 0:
        return range(count)
    return range(whole - count, whole) if order == "decreasing" else range(whole)


def emulated_edges(domains: Sequence[MapDomain], count: int, order: Order, *, key: str = "map") -> Iterator[Edge]:
    """Yield the first `count` customer edges of all domains; in pseudorandom order only all, in increasing order.

    Raises ConfigError where only the engine knows which they are.
    """
    domains = nested(domains)
    spread = Spread(tuple(domain.weight for domain in domains))
    counts = spread.counts(count)
    if order == "pseudorandom":
        partly = [index for index, domain in enumerate(domains) if 0 < counts[index] < domain.edge_count]
        if partly:
            raise ConfigError(
                what=f"is pseudorandom, but {counts[partly[0]]} of {domains[partly[0]].edge_count} customer edges of"
                f" domains[{partly[0]}] are not all that it has",
                where=f"{key}.order",
                fix='write order = "increasing" or "decreasing", or leave edges out, to list them',
            )
    for number in range(count):
        index, local = spread.of(number)
        domain = domains[index]
        yield domain.edge(domain.edge_count - 1 - local if order == "decreasing" else local)
