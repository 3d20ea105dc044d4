"""The table of a simulated stateful gateway, and what a test bed is asked about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from tests.simulated.device import SimulatedDevice

from gatemark.dut.base import Abilities
from gatemark.errors import TestBedError

SLICES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Which of the frames 0 to total - 1 of one class are lost: the first, every n-th of the next, a block at the end.

    After that block some frames may follow that all arrive.
    """

    total: int
    head: int = 0
    tail: int = 0
    every: int = 0
    """0 is never."""
    after: int = 0
    """Frames that arrive after the block; without a block there are none."""

    @property
    def end(self) -> int:
        """First frame of the block."""
        return self.total - self.after - self.tail if self.tail else self.total

    @property
    def count(self) -> int:
        """Frames lost."""
        return self.below(self.total)

    def below(self, number: int) -> int:
        """Frames lost among those below `number`."""
        end = self.end
        lost = min(number, self.head) + max(0, min(number, end + self.tail) - end)
        if self.every:
            lost += max(0, min(number, end) // self.every - self.head // self.every)
        return lost

    def loses(self, number: int) -> bool:
        """Whether a frame is lost."""
        return self.below(number + 1) > self.below(number)

    def spans(self) -> tuple[tuple[int, int, int], ...]:
        """Return first frame, end and n of the stretches in which all frames but every n-th arrive."""
        return (self.head, self.end, self.every), (min(self.total, self.end + self.tail), self.total, 0)

    def end_of(self, kept: int) -> int:
        """Return after how many frames `kept` of them have arrived, at most `total`."""
        low, high = 0, self.total
        while low < high:
            middle = (low + high) // 2
            if middle - self.below(middle) < kept:
                low = middle + 1
            else:
                high = middle
        return low

    def keeping(self, kept: int) -> Gaps:
        """Return the gaps if only the first `kept` of the frames that are not lost are kept; without a head."""
        if kept >= self.total - self.count:
            return self
        if self.tail and self.after:
            raise ValueError("frames after a block of lost ones cannot be lost as well")
        return replace(self, tail=max(self.tail, self.total - self.end_of(kept)))

    def first(self) -> int:
        """Return the first frame lost; only where there is one."""
        if self.head:
            return 0
        return min(self.every - 1, self.end) if self.every else self.end

    def last(self) -> int:
        """Return the last frame lost; only where there is one."""
        end = self.end
        if self.tail:
            return end + self.tail - 1
        nth = end // self.every * self.every if self.every else 0
        return max(nth, self.head) - 1

    def loss(self, share: int, period: int, offset: int = 0) -> dict[str, object]:
        """Return the `loss` object of a report.

        Indexes are of the direction: from `offset` on, `share` of every `period` frames are of this class.
        """
        if not self.count:
            return {
                "runs": 0, "longest_run": 0, "first_index": 0, "last_index": 0, "first_runs": [],
                "by_slice": [0] * SLICES,
            }  # fmt: skip
        ends = [self.below(self.total * number // SLICES) for number in range(SLICES + 1)]
        longest = max(self.head, self.tail, 1)
        runs = (self.head > 0) + (self.tail > 0) + self.count - self.head - self.tail
        first, last = (number // share * period + offset + number % share for number in (self.first(), self.last()))
        return {
            "runs": runs,
            "longest_run": longest,
            "first_index": first,
            "last_index": last,
            "first_runs": [{"index": first, "length": self.head or (1 if self.every else self.tail)}],
            "by_slice": [after - before for before, after in pairwise(ends)],
        }


def distinct(count: int, frames: int) -> int:
    """Return how many of `count` connections have a frame, on average, if each frame draws one of them."""
    return round(-count * math.expm1(frames * math.log1p(-1 / count))) if count > 1 else min(count, frames)


@dataclass(frozen=True, slots=True, kw_only=True)
class Establishment:
    """What a gateway made of one test phase 1."""

    lost: Gaps
    untranslated: int = 0
    """Frames forwarded with the Initiator's own address, the last ones that arrive."""


class SimulatedGateway:
    """A gateway that keeps connections; also what is asked of its test bed around a trial."""

    def __init__(self, device: SimulatedDevice) -> None:
        self.device = device
        self.held = device.leftover_connections
        """Connections in its table."""
        self.cleared = 0
        """How often its table was cleared."""
        self.restarts = 0
        """How often it was restarted."""
        self.resets = 0
        """How often it was reset."""
        self.boots = 0
        """How often its host was booted."""
        self.held_up_ns = 0
        """How long its CPU was taken away so far."""
        self._alive = True
        self._oldest = 0
        self._count = 0

    @property
    def can(self) -> Abilities:
        """It is controlled and booted; `tests.simulated.equipment` gives it a host."""
        return Abilities(health=self.check, control=self, connections=self, booter=self)

    def establish(
        self, count: int, arriving: int, connections_per_second: int, spread: float, *, drawn_from: int | None = None
    ) -> Establishment:
        """Take the first `arriving` of `count` new connections; `spread` in [-1, 1] is the noise of this trial.

        `drawn_from`: the number of connections that frames draw theirs from, so that some repeat; None: each is new.
        """
        device = self.device
        lost = Gaps(total=count, tail=count - arriving, every=device.drops_every_nth_connection)
        if device.establishment_rate is not None:
            able = int(device.establishment_rate * (1 + device.noise * spread))
            if connections_per_second > able:
                lost = lost.keeping(count * able // connections_per_second)
        accepted = count - lost.count if drawn_from is None else distinct(drawn_from, count - lost.count)
        if device.collapses_beyond is not None and accepted > device.collapses_beyond:
            self._alive = False
            lost, accepted = lost.keeping(device.collapses_beyond), device.collapses_beyond
        over = 0 if device.table_size is None else max(0, self.held + accepted - device.table_size)
        self._count, self._oldest = count, over if device.overflow == "evict" else 0
        self.held += accepted - over
        if device.overflow == "refuse" and over:
            return Establishment(lost=lost.keeping(max(0, count - lost.count - over)))
        return Establishment(lost=lost, untranslated=over if device.overflow == "untranslated" else 0)

    def reply(self, offered: int, forwarded: int, *, in_order: bool) -> Gaps:
        """Say which of a Responder's frames are lost, where the load alone lets the first `forwarded` pass."""
        tail = offered - forwarded
        if not self._oldest:
            return Gaps(total=offered, tail=tail)
        if in_order:
            return Gaps(total=offered, tail=min(tail, offered - self._oldest), head=min(self._oldest, offered))
        return Gaps(total=offered, tail=max(tail, offered * self._oldest // self._count))

    def answer(self, clients: int) -> None:
        """Take echo requests of so many clients, which may be too many."""
        if self.device.collapses_at_clients is not None and clients >= self.device.collapses_at_clients:
            self._alive = False

    def check(self) -> None:
        """Raise TestBedError if the gateway collapsed."""
        if not self._alive:
            raise TestBedError(
                what="the gateway does not answer", where="simulated gateway", fix="start it again: call restart"
            )

    def clear_state(self) -> None:
        """Delete all connections, or as many as the device deletes."""
        self.check()
        self.cleared += 1
        self.held, self._oldest = self.device.leftover_connections, 0

    def count_connections(self) -> int | None:
        """Return the number of connections, None if the device cannot tell."""
        self.check()
        return self.held if self.device.counts_connections else None

    def tear_down(self) -> int:
        """Delete all connections; return the nanoseconds that it takes."""
        self.check()
        device = self.device
        took_ns = device.tear_down_empty_ns + int(self.held * device.tear_down_connection_ns)
        self.held = device.leftover_connections
        return took_ns

    def restart(self) -> None:
        """Restart the gateway with an empty table."""
        self._alive, self._oldest, self.held = True, 0, 0
        self.restarts += 1

    def boot(self) -> None:
        """Boot the gateway's host: its table is empty then."""
        self._alive, self._oldest, self.held = True, 0, 0
        self.boots += 1

    def reset(self) -> None:
        """Reset the gateway: it forwards nothing for a while, and its table is empty."""
        self._alive, self._oldest, self.held = True, 0, 0
        self.resets += 1

    def commands_since(self, at_ns: int) -> tuple[str, ...]:
        """None."""
        return ()
