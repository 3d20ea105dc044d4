"""EA values that customer edges may have, numbered without gaps. Pure; the engine numbers them in the same way."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, kw_only=True)
class EdgeNumbers:
    """The EA values below 2^`ea_bits` in increasing order, but for the lowest PSIDs of each address and some ranges.

    The rank of a value counts the values below it as if only PSIDs were left out. No value is listed: what is kept are
    the gaps between ranks that the ranges leave.
    """

    ea_bits: int
    psid_bits: int
    """Lowest bits of the EA value, which are the PSID."""
    lowest_psid: int = 0
    """PSIDs below it are left out."""
    left_out: tuple[range, ...] = ()
    """EA values that are left out; ranges may overlap."""

    @cached_property
    def gaps(self) -> tuple[range, ...]:
        """Return the ranks that are left out as ranges that do not touch each other, in increasing order."""
        return tuple(_joined(range(self._rank(out.start), self._rank(out.stop)) for out in self.left_out))

    @cached_property
    def _after_gaps(self) -> tuple[int, ...]:
        """Return the number of the first value behind each gap."""
        gone = 0
        numbers = []
        for gap in self.gaps:
            numbers.append(gap.start - gone)
            gone += len(gap)
        return tuple(numbers)

    @property
    def count(self) -> int:
        return self.below(1 << self.ea_bits)

    def below(self, ea: int) -> int:
        """Return how many of the values are below this one."""
        rank = self._rank(ea)
        return rank - sum(min(gap.stop, rank) - gap.start for gap in self.gaps if gap.start < rank)

    def ea_of(self, number: int) -> int:
        """Return the value that has a number."""
        after = bisect_right(self._after_gaps, number) - 1
        rank = number if after < 0 else self.gaps[after].stop + number - self._after_gaps[after]
        suffix, psid = divmod(rank, (1 << self.psid_bits) - self.lowest_psid)
        return suffix << self.psid_bits | psid + self.lowest_psid

    def _rank(self, ea: int) -> int:
        suffix, psid = ea >> self.psid_bits, ea & ((1 << self.psid_bits) - 1)
        return suffix * ((1 << self.psid_bits) - self.lowest_psid) + max(0, psid - self.lowest_psid)


def _joined(ranges: Iterable[range]) -> Iterator[range]:
    """Join ranges that overlap or touch each other, and leave out those that are empty."""
    whole: range | None = None
    for part in sorted((part for part in ranges if part), key=lambda part: part.start):
        if whole is not None and part.start <= whole.stop:
            whole = range(whole.start, max(whole.stop, part.stop))
            continue
        if whole is not None:
            yield whole
        whole = part
    if whole is not None:
        yield whole
