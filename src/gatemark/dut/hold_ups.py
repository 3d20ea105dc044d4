"""When others had the CPUs of a gateway, from moments at which its threads and CPUs were read. Pure.

The kernel adds the time for which a thread waited when the thread gets its CPU. So a wait that shows at a moment ended
since the moment before, and its length is known to what else waited in between.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gatemark.dut.base import HeldUp, HoldUps, ThreadTimes

HOLD_UPS_MAX = 64
"""So many hold-ups are kept, the longest ones."""
MOMENTS_MAX = 1024
"""So many moments are looked back, some seconds."""
DENSE = 4
"""Hold-ups that touch are one only if others had the CPU for one of so many parts of each."""
SLEPT_MAX_NS = 5_000_000
"""And if the thread slept no longer than this since the first of them: a thread that sleeps has emptied its queue. The
time for which a thread has run may be a tick older than the moment at which it is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What a kernel has counted until a moment, nanoseconds."""

    at_ns: int
    """Monotonic clock of the host."""
    threads: Mapping[int, tuple[int, int]]
    """How long each thread of the gateway has run and waited."""
    all_ran_ns: int | None
    """How long all threads have run on the gateway's CPUs; None if the kernel does not tell."""
    stolen_ns: Mapping[int, int]
    """How long each CPU was stolen; empty if none ever was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wait:
    """A hold-up, the thread that waited, if it did, and the first moment after which it may go on."""

    held_up: HeldUp
    thread: int | None
    since: Moment


class HoldUpFinder:
    """Takes moments in their order, and keeps the longest times in which the gateway was held up."""

    def __init__(self, threads: Mapping[int, ThreadTimes], *, step_ns: int) -> None:
        self._threads = threads
        self._step_ns = step_ns
        self._moments: deque[Moment] = deque(maxlen=MOMENTS_MAX)
        self._last: _Wait | None = None
        """May go on in the next moment."""
        self._longest: list[tuple[int, int, HeldUp]] = []
        self._others_ns = 0

    def take(self, moment: Moment) -> None:
        """Look at what happened since the moment before."""
        wait = self._wait(self._moments[-1], moment) if self._moments else None
        self._moments.append(moment)
        if wait is None:
            return
        if self._last is not None and _goes_on(self._last, wait, moment):
            first, rest = self._last.held_up, wait.held_up
            both = replace(first, end_ns=rest.end_ns, lasted_ns=first.lasted_ns + rest.lasted_ns)
            self._last = replace(self._last, held_up=both)
            return
        self._keep()
        self._last = wait

    def found(self) -> HoldUps:
        """Return all that was found until now; nothing may be taken afterwards."""
        self._keep()
        longest = sorted((held_up for *_, held_up in self._longest), key=lambda held_up: held_up.begin_ns)
        return HoldUps(longest=tuple(longest), others_ns=self._others_ns)

    def _keep(self) -> None:
        """Put the last one to the others: the list never grows beyond its bound."""
        last, self._last = self._last, None
        if last is None:
            return
        entry = (last.held_up.lasted_ns, last.held_up.begin_ns, last.held_up)
        if len(self._longest) < HOLD_UPS_MAX:
            heapq.heappush(self._longest, entry)
        else:
            self._others_ns += heapq.heappushpop(self._longest, entry)[0]

    def _wait(self, before: Moment, now: Moment) -> _Wait | None:
        waits: dict[int, tuple[int, int]] = {}
        for thread, (_, waits_ns) in now.threads.items():
            grew_ns = waits_ns - before.threads[thread][1] if thread in before.threads else 0
            if grew_ns > 0 and (by_others_ns := self._by_others_ns(thread, grew_ns, before, now)) > 0:
                waits[thread] = (by_others_ns, grew_ns)
        held_ns = waited_ns = 0
        waiting = None
        for thread in sorted(waits, key=lambda each: waits[each], reverse=True):
            of_line = self._of_line(thread, waits, before, now)
            if of_line[0] > held_ns:
                (held_ns, waited_ns), waiting = of_line, thread
        stolen_ns = max(
            (time_ns - before.stolen_ns.get(cpu, time_ns) for cpu, time_ns in now.stolen_ns.items()), default=0
        )
        if stolen_ns > 0:
            stolen_ns += self._step_ns  # the true time may be that long
        if held_ns + stolen_ns <= 0:
            return None
        began_ns = before.at_ns - max(waited_ns, stolen_ns)
        held_up = HeldUp(begin_ns=began_ns, end_ns=now.at_ns, lasted_ns=held_ns + stolen_ns)
        return _Wait(held_up=held_up, thread=waiting, since=now)

    def _of_line(
        self, thread: int, waits: Mapping[int, tuple[int, int]], before: Moment, now: Moment
    ) -> tuple[int, int]:
        """Return how long others may have held up a thread and those that want its CPU, and the longest of their waits.

        Frames go through several threads, which wait one after another or at the same time: together for no longer than
        others ran. Where that is not known, what the one thread waited is certain alone.
        """
        line = [of_thread for each, of_thread in waits.items() if _meet(self._threads[thread], self._threads[each])]
        longest_ns = max(waited_ns for _, waited_ns in line)
        ran_ns = self._others_ran_ns(self._since(before.at_ns - longest_ns), now)
        if ran_ns is None:
            return waits[thread]
        return min(sum(held_ns for held_ns, _ in line), ran_ns), longest_ns

    def _by_others_ns(self, thread: int, waited_ns: int, before: Moment, now: Moment) -> int:
        """Return how long others than the gateway at least kept a thread waiting.

        It may have got its CPU directly after the moment before, when all that kept it waiting was over.
        """
        since = self._since(before.at_ns - waited_ns)
        waiting = self._threads[thread]
        beside_ns = sum(
            times[0] - since.threads[other][0]
            for other, times in now.threads.items()
            if other in since.threads and other != thread and _meet(waiting, self._threads[other])
        )
        ran_ns = self._others_ran_ns(since, now)
        return waited_ns - beside_ns if ran_ns is None else min(waited_ns - beside_ns, ran_ns)

    def _others_ran_ns(self, since: Moment, now: Moment) -> int | None:
        """Return how long others ran on the gateway's CPUs; None if the kernel does not tell."""
        if now.all_ran_ns is None or since.all_ran_ns is None:
            return None
        gateway_ns = sum(
            times[0] - since.threads[thread][0]
            for thread, times in now.threads.items()
            if thread in since.threads and self._threads[thread].stays
        )
        return now.all_ran_ns - since.all_ran_ns - gateway_ns

    def _since(self, at_ns: int) -> Moment:
        """Return the latest moment that was not after a time, or the first one that is known."""
        return next((moment for moment in reversed(self._moments) if moment.at_ns <= at_ns), self._moments[0])


def _meet(thread: ThreadTimes, other: ThreadTimes) -> bool:
    """Whether two threads may want the same CPU."""
    return thread.cpu is None or other.cpu is None or thread.cpu == other.cpu


def _goes_on(last: _Wait, following: _Wait, now: Moment) -> bool:
    """Whether a hold-up is the rest of the last one."""
    if following.held_up.begin_ns > last.held_up.end_ns or following.thread != last.thread:
        return False
    waits = (last.held_up, following.held_up)
    if any(held_up.lasted_ns * DENSE < held_up.end_ns - held_up.begin_ns for held_up in waits):
        return False
    if last.thread is None:
        return True
    times, before = now.threads[last.thread], last.since.threads[last.thread]
    return now.at_ns - last.since.at_ns - (sum(times) - sum(before)) <= SLEPT_MAX_NS
