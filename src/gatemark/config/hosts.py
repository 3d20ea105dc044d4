"""Sets of emulated hosts as ternary patterns, and what a translator makes of them (RFC 6052, RFC 7757). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network

from gatemark.config.reserved import Network
from gatemark.config.tables import B4Model, EamEntry, FamilyModel
from gatemark.embedded_ipv4 import EMBEDDED_OCTETS, WELL_KNOWN_PREFIX, embed_ipv4, embedded_ipv4
from gatemark.technology import Family

NETWORK_OCTET: dict[Family, int] = {"ipv4": 2, "ipv6": 7}
"""Octet that numbers the destination network: bits 16-23 of IPv4, bits 56-63 of IPv6 (RFC 2544 section 12)."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """All addresses a for which ``a & mask == value``."""

    value: int
    mask: int

    def meets(self, other: Pattern) -> bool:
        """Whether any address belongs to both patterns."""
        return (self.value ^ other.value) & self.mask & other.mask == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSet:
    """The hosts of one family on one side."""

    family: Family
    address: int
    """Pattern of all hosts, as a number."""
    offset: int | None
    """First of the two octets that vary; None if there is one host only."""
    minimum: int
    maximum: int
    networks: int = 1
    """How many values the network octet takes as well, from 0 on; 1: it stands as it is in the address."""

    @classmethod
    def of(cls, family: Family, model: FamilyModel | B4Model, *, networks: int = 1) -> HostSet:
        """Build the set of a side's hosts, or of those behind each B4."""
        hosts = model.hosts
        varies = hosts.mode != "fixed" and hosts.range is not None and hosts.offset is not None
        return cls(
            family=family,
            address=int(model.address),
            offset=hosts.offset if varies else None,
            minimum=hosts.range.minimum if varies and hosts.range else 0,
            maximum=hosts.range.maximum if varies and hosts.range else 0,
            networks=networks,
        )

    @classmethod
    def single(cls, address: IPv4Address | IPv6Address) -> HostSet:
        """Return the set of one address."""
        family: Family = "ipv4" if address.version == 4 else "ipv6"
        return cls(family=family, address=int(address), offset=None, minimum=0, maximum=0)

    @property
    def numbers(self) -> range:
        """Return what the two varying octets take, in each network."""
        return range(self.minimum, self.maximum + 1)

    @property
    def octets(self) -> int:
        """Octets of an address: 4 or 16."""
        return 4 if self.family == "ipv4" else 16

    @property
    def network_octet_taken(self) -> bool:
        """Whether the hosts need the octet that the destination networks need, so that the two overwrite each other."""
        if self.networks == 1 or self.offset is None:
            return False
        octet = NETWORK_OCTET[self.family]
        return self.offset + 1 == octet or (self.offset == octet and self.maximum > 0xFF)

    def varying_octets(self) -> tuple[int, ...]:
        """Return the octets that are not the same in all addresses."""
        octets = {NETWORK_OCTET[self.family]} if self.networks > 1 else set()
        if self.offset is not None and self.minimum != self.maximum:
            octets.add(self.offset + 1)
            if self.minimum >> 8 != self.maximum >> 8:
                octets.add(self.offset)
        return tuple(sorted(octets))

    def _shift(self, octet: int) -> int:
        return 8 * (self.octets - 1 - octet)

    def address_of(self, number: int, network: int | None = None) -> int:
        """Return the address of one host, `number` in the two varying octets, `network` in the network octet."""
        address = self.address
        if self.offset is not None:
            shift = self._shift(self.offset + 1)
            address = address & ~(0xFFFF << shift) | number << shift
        if self.networks > 1 and network is not None:
            shift = self._shift(NETWORK_OCTET[self.family])
            address = address & ~(0xFF << shift) | network << shift
        return address

    @property
    def lowest(self) -> int:
        """Return the lowest address."""
        return self.address_of(self.minimum, 0)

    @property
    def highest(self) -> int:
        """Return the highest address."""
        return self.address_of(self.maximum, self.networks - 1)

    def patterns(self) -> Iterator[Pattern]:
        """Yield patterns that together are exactly the set."""
        everything = (1 << 8 * self.octets) - 1
        network_shift = self._shift(NETWORK_OCTET[self.family])
        networks = _aligned_blocks(0, self.networks - 1) if self.networks > 1 else ((None, 0),)
        for network, network_size in networks:
            fixed = everything if network is None else everything & ~((network_size - 1) << network_shift)
            if self.offset is None:
                yield Pattern(self.address_of(0, network) & fixed, fixed)
                continue
            shift = self._shift(self.offset + 1)
            for start, size in _aligned_blocks(self.minimum, self.maximum):
                mask = fixed & ~((size - 1) << shift)
                yield Pattern(self.address_of(start, network) & mask, mask)

    def covering(self) -> Iterator[Network]:
        """Yield networks that hold all hosts: each ends at the first bit that varies in it."""
        everything = (1 << 8 * self.octets) - 1
        for pattern in self.patterns():
            length = 8 * self.octets - (~pattern.mask & everything).bit_length()
            address = IPv4Address(pattern.value) if self.family == "ipv4" else IPv6Address(pattern.value)
            yield ip_network((address, length), strict=False)

    def meets(self, other: HostSet) -> bool:
        """Whether any address belongs to both sets."""
        if self.family != other.family:
            return False
        theirs = tuple(other.patterns())
        return any(mine.meets(pattern) for mine in self.patterns() for pattern in theirs)

    def numbers_in(self, prefix: Network) -> range:
        """Return the numbers in the two varying octets whose hosts are in `prefix`, in any of the networks.

        There are no gaps, because a prefix takes an aligned block of an octet's values. Hosts and networks must not
        need the same octet (`network_octet_taken`).
        """
        if prefix.max_prefixlen != 8 * self.octets:
            return range(0)
        value, mask = int(prefix.network_address), int(prefix.netmask)
        numbers, networks = range(1), range(1)
        if self.offset is not None:
            shift = self._shift(self.offset + 1)
            is_shared = self.networks > 1 and self.offset == NETWORK_OCTET[self.family]
            width = 0xFF if is_shared else 0xFFFF  # the network stands in the first octet, which the numbers leave 0
            numbers = _block(value >> shift, mask >> shift, width, self.minimum, self.maximum)
        if self.networks > 1:
            shift = self._shift(NETWORK_OCTET[self.family])
            networks = _block(value >> shift, mask >> shift, 0xFF, 0, self.networks - 1)
        if not numbers or not networks:
            return range(0)
        is_inside = self.address_of(numbers[0], networks[0]) & mask == value
        return numbers if is_inside else range(0)

    def numbers_outside(self, prefixes: Iterable[Network]) -> range:
        """Return the longest run of numbers in the two varying octets whose hosts are in no prefix; it may be empty."""
        runs, start = [], self.minimum
        for inside in sorted((self.numbers_in(prefix) for prefix in prefixes), key=lambda numbers: numbers.start):
            if inside:
                runs.append(range(start, inside.start))
                start = max(start, inside.stop)
        return max(*runs, range(start, self.maximum + 1), range(0), key=len)

    def first_in(self, prefix: Network) -> int | None:
        """Return the first host in `prefix`, None if there is none."""
        numbers, value, mask = self.numbers_in(prefix), int(prefix.network_address), int(prefix.netmask)
        addresses = (self.address_of(number, network) for number in numbers[:1] for network in range(self.networks))
        return next((address for address in addresses if address & mask == value), None)

    def meets_prefix(self, prefix: Network) -> bool:
        """Whether any of the hosts is in `prefix`."""
        return bool(self.numbers_in(prefix))

    def __contains__(self, address: IPv4Address | IPv6Address) -> bool:
        everything = Pattern(int(address), (1 << 8 * self.octets) - 1)
        return any(pattern.meets(everything) for pattern in self.patterns())

    def text(self, address: int) -> str:
        """Write an address of this set's family."""
        return str(IPv4Address(address) if self.family == "ipv4" else IPv6Address(address))

    def __str__(self) -> str:
        if self.lowest == self.highest:
            return self.text(self.lowest)
        return f"{self.text(self.lowest)} to {self.text(self.highest)}"


def _block(value: int, mask: int, width: int, minimum: int, maximum: int) -> range:
    """Return the numbers n of an inclusive range for which ``n & mask == value & mask``, all within `width`."""
    first = value & mask & width
    last = first | ~mask & width
    return range(max(first, minimum), min(last, maximum) + 1)


def _aligned_blocks(minimum: int, maximum: int) -> Iterator[tuple[int, int]]:
    """Split an inclusive range into (start, size) blocks, each a power of two large and aligned to its size."""
    while minimum <= maximum:
        size = minimum & -minimum or 1 << 16
        while size > maximum - minimum + 1:
            size //= 2
        yield minimum, size
        minimum += size


def represented(
    address: IPv4Address | IPv6Address, prefix: IPv6Network | None, eam: Sequence[EamEntry]
) -> IPv4Address | IPv6Address | None:
    """Return an address in the other family; None if neither a mapping nor the prefix covers it.

    The mapping with the longest prefix counts, and the translation prefix without any (RFC 7757 section 3.3).
    """
    family: Family = "ipv4" if address.version == 4 else "ipv6"
    covering = [entry for entry in eam if address in getattr(entry, family)]
    if not covering:
        if prefix is None:
            return None
        return embed_ipv4(address, prefix) if isinstance(address, IPv4Address) else embedded_ipv4(address, prefix)
    entry = max(covering, key=lambda entry: getattr(entry, family).prefixlen)
    below = 32 - entry.ipv4.prefixlen  # bits of the suffix, which follow the prefix of either family
    unused = 128 - entry.ipv6.prefixlen - below
    if isinstance(address, IPv4Address):
        suffix = int(address) & int(entry.ipv4.hostmask)
        return IPv6Address(int(entry.ipv6.network_address) | suffix << unused)
    return IPv4Address(int(entry.ipv4.network_address) | (int(address) & int(entry.ipv6.hostmask)) >> unused)


def unmapped_host(hosts: HostSet, prefix: IPv6Network | None, eam: Sequence[EamEntry]) -> int | None:
    """Return a host that neither an explicit mapping nor the prefix represents in the other family, if there is one."""
    last = hosts.networks - 1
    for network in (0, last, *range(1, last)) if last else (None,):
        unmapped = _unmapped(hosts, prefix, eam, network, hosts.minimum, hosts.maximum)
        if unmapped is not None:
            return unmapped
        if network == 0xFF and _one_mapping(hosts, prefix, eam, hosts.lowest, hosts.highest):
            return None
    return None


def _unmapped(
    hosts: HostSet,
    prefix: IPv6Network | None,
    eam: Sequence[EamEntry],
    network: int | None,
    minimum: int,
    maximum: int,
) -> int | None:
    lowest, highest = hosts.address_of(minimum, network), hosts.address_of(maximum, network)
    if _one_mapping(hosts, prefix, eam, lowest, highest):
        return None
    if minimum == maximum:
        return lowest
    if not eam:
        return highest if _one_mapping(hosts, prefix, eam, lowest, lowest) else lowest
    middle = (minimum + maximum) // 2
    low = _unmapped(hosts, prefix, eam, network, minimum, middle)
    return low if low is not None else _unmapped(hosts, prefix, eam, network, middle + 1, maximum)


def _one_mapping(
    hosts: HostSet, prefix: IPv6Network | None, eam: Sequence[EamEntry], lowest: int, highest: int
) -> bool:
    """Whether one mapping covers every address from `lowest` to `highest` of the set."""
    for entry in eam:
        network = entry.ipv4 if hosts.family == "ipv4" else entry.ipv6
        if int(network.network_address) <= lowest and highest <= int(network.broadcast_address):
            return True
    if prefix is None:
        return False
    if hosts.family == "ipv4":
        return True
    outside = set(hosts.varying_octets()) - set(EMBEDDED_OCTETS[prefix.prefixlen]) if lowest != highest else set()
    return not outside and all(embedded_ipv4(IPv6Address(end), prefix) is not None for end in (lowest, highest))


def non_global_words(bad: IPv4Address, example: str) -> tuple[str, str]:
    """Return why the well-known prefix is no prefix for an address, and what to do; `example` is another prefix."""
    return (
        f"{WELL_KNOWN_PREFIX} must not represent {bad}, which is not global: translators drop such packets"
        " (RFC 6052 section 3.1)",
        f'use a network-specific prefix such as "{example}", or set'
        " gateway.well_known_prefix_allowed = true if the gateway translates them anyway",
    )


def first_non_global(hosts: HostSet, eam: Sequence[EamEntry], prefix: IPv6Network) -> IPv4Address | None:
    """Return a non-global IPv4 address that `prefix` would have to represent, if any (RFC 6052 section 3.1)."""
    uncovered = unmapped_host(hosts, None, eam)  # without the prefix: RFC 6052 represents it
    if uncovered is None:
        return None
    for end in (uncovered, hosts.lowest, hosts.highest):
        address = IPv4Address(end) if hosts.family == "ipv4" else embedded_ipv4(IPv6Address(end), prefix)
        if address is not None and not address.is_global:
            return address
    return None
