"""Which domain each customer edge is in, where there are several. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

PATTERN_LENGTH_MAX = 65536


@dataclass(frozen=True)
class Spread:
    """Customer edges 0, 1, 2, ... spread over domains by weights. The engine computes exactly the same.

    Let W be the sum of all weights. Customer edge c is in domain pattern[c mod W]. There its local number is
    (c div W) * weight[domain] + rank, where rank is how often that domain occurs in the pattern before place c mod W.
    So local numbers of a domain are 0, 1, 2, ... without a gap, in the order of c.

    The pattern has W places. Place t, from 0 on, is given to the domain d with the largest
    (t + 1) * weight[d] - W * assigned[d], where assigned[d] counts the places before t that d has; of equal ones to the
    lowest d. Each domain has weight[d] of the W places, as evenly as whole places allow.
    """

    weights: tuple[int, ...]

    @property
    def period(self) -> int:
        """Return the length of the pattern (W)."""
        return sum(self.weights)

    @cached_property
    def pattern(self) -> tuple[int, ...]:
        """Return the domain of each place."""
        import numpy as np  # its import is a tenth of what `gatemark plan` takes

        weights = np.array(self.weights, dtype=np.int64)
        claims = np.zeros_like(weights)  # (t + 1) * weight - W * assigned, carried along
        places = []
        for _ in range(self.period):
            claims += weights
            domain = int(claims.argmax())  # the first of equal ones
            claims[domain] -= self.period
            places.append(domain)
        return tuple(places)

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """Return how often the domain of each place occurs before it."""
        return self._ranks_and_places[0]

    @cached_property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """Return the places of each domain, in increasing order."""
        return self._ranks_and_places[1]

    @cached_property
    def _ranks_and_places(self) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        places: list[list[int]] = [[] for _ in self.weights]
        ranks = []
        for place, domain in enumerate(self.pattern):
            ranks.append(len(places[domain]))
            places[domain].append(place)
        return tuple(ranks), tuple(map(tuple, places))

    def of(self, edge: int) -> tuple[int, int]:
        """Return the domain of a customer edge, and its local number there."""
        whole, place = divmod(edge, self.period)
        domain = self.pattern[place]
        return domain, whole * self.weights[domain] + self.ranks[place]

    def edge_of(self, domain: int, local: int) -> int:
        """Return the customer edge that has a local number in a domain."""
        whole, rank = divmod(local, self.weights[domain])
        return whole * self.period + self.places[domain][rank]

    def counts(self, edges: int) -> tuple[int, ...]:
        """Return how many of the first `edges` customer edges are in each domain."""
        whole, rest = divmod(edges, self.period)
        begun = [0] * len(self.weights)
        for domain in self.pattern[:rest]:
            begun[domain] += 1
        return tuple(whole * weight + more for weight, more in zip(self.weights, begun, strict=True))

    def edges_max(self, capacities: Sequence[int]) -> int:
        """Return how many customer edges can be spread before a domain would need more than it has."""
        return min(self.edge_of(domain, capacity) for domain, capacity in enumerate(capacities))
