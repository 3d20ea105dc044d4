"""One MAP domain: its rule, what follows from it, and its customer edges (RFC 7597 sections 5 and 6). Pure.

The letters that RFC 7597 has for lengths are given beside the names. A domain may hold values that contradict each
other, so that `gatemark.map_domains.problems` can name all of them; what follows from a rule is true only without any.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Literal

from gatemark.map_domains.edge_numbers import EdgeNumbers
from gatemark.map_domains.port_set import PORT_BITS, SYSTEM_PORTS, PortSet

DEFAULT_PSID_OFFSET = 6
"""RFC 7597 section 5.1."""

AddressKind = Literal["shared address", "full address", "IPv4 prefix"]


@dataclass(frozen=True, kw_only=True)
class MapDomain:
    """A mapping rule with its default mapping rule, and which of its customer edges are emulated."""

    rule_ipv6: IPv6Network
    """What the end-user IPv6 prefixes of all customer edges begin with; its length is n."""
    rule_ipv4: IPv4Network
    """What the IPv4 addresses of all customer edges begin with; its length is r."""
    ea_bits: int
    """Bits behind the rule's IPv6 prefix that tell the customer edges apart: IPv4 suffix and PSID (o)."""
    dmr: IPv6Network | None = None
    """Default mapping rule: the prefix that stands for all IPv4 addresses outside (RFC 7599 section 5.1). None: MAP-E,
    which has tunnels to the border relay instead (RFC 7597 section 5.4)."""
    psid_offset: int = DEFAULT_PSID_OFFSET
    """Bits of a port before the PSID (a)."""
    psid_bits: int | None = None
    """Length of the PSID where there are no EA bits (k); None: the address is not shared, or the EA bits hold it."""
    psid: int = 0
    """The PSID where there are no EA bits."""
    weight: int = 1
    """Share of the customer edges that are in this domain."""
    except_suffixes: bool = False
    """Leave out the IPv4 suffixes whose bits are all zero or all one."""
    except_system_ports: bool = False
    """Leave out the PSIDs whose ports are below 1024 where the offset is 0 (RFC 7596 section 5.1)."""
    in_identifier: bool = False
    """The customer edges are lwB4s: the rule's IPv6 prefix has 64 bits and is that of all of them, and the EA value,
    the number of a softwire, is in the interface identifier only (RFC 7596 section 5.1)."""
    taken: tuple[range, ...] = ()
    """EA values whose addresses a longer rule holds, which are left out (`gatemark.map_domains.nesting`)."""

    @property
    def default_rule(self) -> IPv6Network:
        """Return the default mapping rule; only of MAP-T."""
        assert self.dmr is not None, "a MAP-T gateway's rules have one"
        return self.dmr

    @property
    def prefixes(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Return all prefixes of the rule."""
        return (self.rule_ipv6, self.rule_ipv4, *(() if self.dmr is None else (self.dmr,)))

    @property
    def suffix_bits(self) -> int:
        """Return how many EA bits are the end of the IPv4 address (p)."""
        return min(self.ea_bits, 32 - self.rule_ipv4.prefixlen)

    @property
    def ea_psid_bits(self) -> int:
        """Return how many EA bits are the PSID (q)."""
        return self.ea_bits - self.suffix_bits

    @property
    def psid_length(self) -> int:
        """Return the length of the PSID (k), from wherever it is taken."""
        return self.ea_psid_bits if self.ea_bits else self.psid_bits or 0

    @property
    def contiguous_bits(self) -> int:
        """Return the bits of a port behind the PSID (m)."""
        return self.ports_of(0).contiguous_bits

    @property
    def sharing_ratio(self) -> int:
        """Return how many customer edges share an IPv4 address."""
        return 1 << self.psid_length

    @property
    def ports_per_edge(self) -> int:
        """Return how many ports of its IPv4 address a customer edge may use."""
        return self.ports_of(0).count

    @property
    def kind(self) -> AddressKind:
        """Return what a customer edge has of IPv4."""
        if self.rule_ipv4.prefixlen + self.ea_bits < 32:
            return "IPv4 prefix"
        return "shared address" if self.psid_length else "full address"

    @property
    def end_user_prefix_length(self) -> int:
        """Return the length of the IPv6 prefix of one customer edge (n + o)."""
        return self.rule_ipv6.prefixlen + (0 if self.in_identifier else self.ea_bits)

    @property
    def delegated_length(self) -> int:
        """Return the length of the prefix that names one customer edge: of an lwB4 it is a whole address."""
        return 128 if self.in_identifier else self.end_user_prefix_length

    @property
    def excluded_psids(self) -> int:
        """Return how many PSIDs are left out: the lowest, whose ports are system ports."""
        if not self.except_system_ports or self.psid_offset or not self.ea_psid_bits:
            return 0
        return -(-SYSTEM_PORTS // (1 << (PORT_BITS - self.ea_psid_bits)))

    @cached_property
    def numbers(self) -> EdgeNumbers:
        """Return the EA values of the customer edges that are not left out."""
        left_out = self.taken
        if self.except_suffixes and self.suffix_bits:
            of_suffix, whole = 1 << self.ea_psid_bits, 1 << self.ea_bits
            left_out += (range(of_suffix), range(whole - of_suffix, whole))
        return EdgeNumbers(
            ea_bits=self.ea_bits, psid_bits=self.ea_psid_bits, lowest_psid=self.excluded_psids, left_out=left_out
        )

    @cached_property
    def edge_count(self) -> int:
        """Return how many customer edges the rule has without those that are left out."""
        return self.numbers.count

    def ports_of(self, psid: int) -> PortSet:
        """Return the port set of a PSID."""
        return PortSet(self.psid_offset, self.psid_length, psid)

    def edge(self, number: int) -> Edge:
        """Return a customer edge by its number: from 0 on in increasing order of the EA values."""
        if not 0 <= number < self.edge_count:
            raise IndexError(f"the domain has {self.edge_count} customer edges")
        return Edge(self, self.numbers.ea_of(number))

    def ea_in(self, address: IPv6Address) -> int | None:
        """Return the EA value that an address would have; None if it lies outside the rule's IPv6 prefix."""
        if address not in self.rule_ipv6:
            return None
        if self.in_identifier:
            suffix = (int(address) >> 16 & int(self.rule_ipv4.hostmask)) << self.ea_psid_bits
            return suffix | int(address) & ((1 << self.ea_psid_bits) - 1)
        return int(address) >> (128 - self.end_user_prefix_length) & ((1 << self.ea_bits) - 1)


@dataclass(frozen=True, slots=True)
class Edge:
    """A customer edge of a domain."""

    domain: MapDomain
    ea: int

    @property
    def psid(self) -> int:
        """Return its PSID; 0 if it shares its address with nobody."""
        domain = self.domain
        return self.ea & ((1 << domain.ea_psid_bits) - 1) if domain.ea_bits else domain.psid

    @property
    def ipv4(self) -> IPv4Address:
        """Return its IPv4 address, or the first one of its prefix."""
        domain = self.domain
        suffix = self.ea >> domain.ea_psid_bits
        host_bits = 32 - domain.rule_ipv4.prefixlen - domain.suffix_bits
        return IPv4Address(int(domain.rule_ipv4.network_address) | suffix << host_bits)

    @property
    def ipv4_network(self) -> IPv4Network:
        """Return its IPv4 prefix; that of a single address where it has no more."""
        domain = self.domain
        return IPv4Network((self.ipv4, domain.rule_ipv4.prefixlen + domain.suffix_bits))

    @property
    def ports(self) -> PortSet:
        """Return the ports that it may use."""
        return self.domain.ports_of(self.psid)

    @property
    def end_user_prefix(self) -> IPv6Network:
        """Return the rule's IPv6 prefix followed by the EA bits (RFC 7597 section 5.2)."""
        domain = self.domain
        if domain.in_identifier:
            return domain.rule_ipv6
        bits = int(domain.rule_ipv6.network_address) | self.ea << (128 - domain.end_user_prefix_length)
        return IPv6Network((bits, domain.end_user_prefix_length))

    @property
    def delegated(self) -> IPv6Network:
        """Return the prefix that names it: its end-user prefix, or of an lwB4 its whole address."""
        return IPv6Network(self.address) if self.domain.in_identifier else self.end_user_prefix

    @property
    def address(self) -> IPv6Address:
        """Return its MAP address (RFC 7597 section 6).

        The interface identifier is 16 zero bits, the IPv4 address and the PSID. An end-user prefix of more than 64 bits
        overwrites the beginning of it. A prefix's interface identifier holds the first of its addresses.
        """
        prefix = self.end_user_prefix
        identifier = int(self.ipv4) << 16 | self.psid
        return IPv6Address(int(prefix.network_address) | identifier & int(prefix.hostmask))
