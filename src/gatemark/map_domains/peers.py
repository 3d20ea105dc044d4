"""Other customer edges that one reaches by its rule as forwarding mapping rule (RFC 7597 section 5). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address

from gatemark.map_domains.domain import Edge
from gatemark.map_domains.port_set import PortSet


@dataclass(frozen=True, slots=True)
class PeerEdges:
    """The customer edges of the gateway's rule that have one PSID, but for those with the gateway's IPv4 address."""

    gateway: Edge
    psid: int

    @property
    def ports(self) -> PortSet:
        """Return the ports that each of them may use."""
        return self.gateway.domain.ports_of(self.psid)

    @property
    def first_range(self) -> tuple[int, int]:
        """Return the first and last port of the lowest contiguous range; there is no port 0."""
        first, last = next(self.ports.ranges())
        return max(first, 1), last

    def has_ports(self, first: int, last: int) -> bool:
        """Whether all ports from `first` to `last` are in the set of each."""
        return self.ports.count_within(first, last) == last - first + 1

    def at(self, ipv4: IPv4Address) -> Edge:
        """Return the customer edge with an IPv4 address of the rule."""
        domain = self.gateway.domain
        suffix = int(ipv4) & int(domain.rule_ipv4.hostmask)
        return Edge(domain, suffix << domain.ea_psid_bits | self.psid)

    def __iter__(self) -> Iterator[Edge]:
        """Yield all of them, by their addresses in increasing order."""
        return (self.at(address) for address in self.gateway.domain.rule_ipv4 if address != self.gateway.ipv4)

    def __len__(self) -> int:
        return self.gateway.domain.rule_ipv4.num_addresses - 1
