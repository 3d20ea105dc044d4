"""Which ports of a shared IPv4 address belong to one customer edge (RFC 7597 section 5.1 and appendix B). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

PORT_BITS = 16
SYSTEM_PORTS = 1024
"""Ports 0 to 1023 are the system ports, which no customer edge need have."""


@dataclass(frozen=True, slots=True)
class PortSet:
    """The ports of one PSID: a number A of `psid_offset` bits, the PSID, and the rest of the 16 bits, which is free.

    With an offset, A is 1 or more, so the lowest ports belong to nobody; without one the set is a single range. Where
    the PSID has no bits the address is not shared, and the set is all 65,536 ports whatever the offset.
    """

    psid_offset: int
    psid_bits: int
    psid: int = 0

    @property
    def offset_bits(self) -> int:
        """Return the bits before the PSID (a); 0 where there is no PSID."""
        return self.psid_offset if self.psid_bits else 0

    @property
    def contiguous_bits(self) -> int:
        """Return the bits behind the PSID (m)."""
        return PORT_BITS - self.offset_bits - self.psid_bits

    @property
    def first_offset(self) -> int:
        """Return the lowest value of A."""
        return 1 if self.offset_bits else 0

    @property
    def range_count(self) -> int:
        return (1 << self.offset_bits) - self.first_offset

    @property
    def count(self) -> int:
        return self.range_count << self.contiguous_bits

    def port(self, index: int) -> int:
        """Return the port at a place of the set, counted from 0 in increasing order."""
        if not 0 <= index < self.count:
            raise IndexError(f"the set has {self.count} ports")
        offset = self.first_offset + (index >> self.contiguous_bits)
        below = index & ((1 << self.contiguous_bits) - 1)
        return (offset << self.psid_bits | self.psid) << self.contiguous_bits | below

    def index_of(self, port: int) -> int | None:
        """Return the place of a port; None if it belongs to another PSID or to nobody."""
        if psid_of_port(port, psid_offset=self.psid_offset, psid_bits=self.psid_bits) != self.psid:
            return None
        offset = port >> (PORT_BITS - self.offset_bits)
        below = port & ((1 << self.contiguous_bits) - 1)
        return (offset - self.first_offset) << self.contiguous_bits | below

    def __contains__(self, port: int) -> bool:
        return self.index_of(port) is not None

    def count_within(self, first: int, last: int) -> int:
        """Return how many of the ports lie from `first` to `last`."""
        return sum(max(0, min(high, last) - max(low, first) + 1) for low, high in self.ranges())

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the first and last port of each contiguous range, in increasing order."""
        size = 1 << self.contiguous_bits
        for number in range(self.range_count):
            first = self.port(number * size)
            yield first, first + size - 1


def psid_of_port(port: int, *, psid_offset: int, psid_bits: int) -> int | None:
    """Return the PSID that a port belongs to; None for a port below 2^(16 - offset), which belongs to nobody."""
    if psid_bits == 0:
        return 0
    if psid_offset and port >> (PORT_BITS - psid_offset) == 0:
        return None
    return port >> (PORT_BITS - psid_offset - psid_bits) & ((1 << psid_bits) - 1)
