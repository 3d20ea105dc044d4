"""Frames through a queue, one by one: the Tester stalls now and then, and others take the gateway's CPU from it.

All times in seconds from the start of sending; spans are begin and end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.trial_facts import changed, with_losses
from tests.unit.test_judgement import report

from gatemark.dut.base import ThreadTimes
from gatemark.dut.hold_ups import HoldUpFinder, Moment
from gatemark.trial.host import CpuFacts, HoldUp, HostFacts, ThreadFacts
from gatemark.trial.report import LateBurst, TrialReport

Spans = Sequence[tuple[float, float]]
RATE = 20_000
"""Frames per second each way; those of both ways go through one queue."""
QUEUE = 500
LOOK_S = 0.0103
STEP_NS = 10**7
UNSURE_S = 0.005
"""So exactly at most is it known when sending began, by the clock of the host."""
NEVER_S = 1e9


@dataclass(frozen=True, kw_only=True)
class Stalls:
    """When the Tester was kept from sending, and the gateway from working: by others, and by itself."""

    lasts_s: float
    tester: Spans
    by_others: Spans
    by_itself: Spans = ()


def drawn_stalls(seed: int, *, lasts_s: float, every_s: tuple[float, float], by_itself: Spans = ()) -> Stalls:
    """A machine that is short of CPU time: both are kept from their work for 3 to 20 ms, at about the same time."""
    drawn = Random(seed)
    tester: list[tuple[float, float]] = []
    gateway: list[tuple[float, float]] = []
    at = drawn.uniform(0, every_s[0])
    while at < lasts_s:
        for spans in (tester, gateway):
            begin = at + drawn.uniform(0, 0.01)
            spans.append((begin, begin + drawn.uniform(0.003, 0.02)))
        at += drawn.uniform(*every_s)
    return Stalls(lasts_s=lasts_s, tester=tester, by_others=gateway, by_itself=by_itself)


def simulated_trial(stalls: Stalls, *, frame_s: float, seed: int = 0) -> tuple[TrialReport, HostFacts]:
    """Return what the engine reports and what a watch reads of a gateway that needs so long for a frame."""
    frames = int(RATE * stalls.lasts_s)
    pauses = sorted([*stalls.by_others, *stalls.by_itself])
    sent = sorted((_after(stalls.tester, index / RATE), index, way) for way in (0, 1) for index in range(frames))
    lost: tuple[list[int], list[int]] = ([], [])
    queue: deque[float] = deque()
    works: list[tuple[float, float]] = []
    free = 0.0
    for at, index, way in sent:
        while queue and queue[0] <= at:
            queue.popleft()
        if len(queue) == QUEUE:
            lost[way].append(index)
            continue
        begin = max(at, free)
        free = _end_of_work(begin, frame_s, pauses)
        queue.append(free)
        if works and begin <= works[-1][1]:
            works[-1] = (works[-1][0], free)
        else:
            works.append((begin, free))
    bursts = _late_bursts(stalls.tester, frames)
    whole = report()
    directions = tuple(
        with_losses(way, indexes, frames=frames, frames_per_second=RATE, late_bursts=bursts)
        for way, indexes in zip(whole.directions, lost, strict=True)
    )
    host = HostFacts(
        read_ns=int(stalls.lasts_s * 1e9),
        step_ns=STEP_NS,
        queue_frames=QUEUE,
        cpus=(CpuFacts(cpu=0),),
        threads=(ThreadFacts(name="tayga"),),
        hold_ups=_watched(stalls, works, Random(seed)),
    )
    return changed(whole, directions=directions), host


def _after(spans: Spans, at: float) -> float:
    return next((end for begin, end in spans if begin <= at < end), at)


def _end_of_work(begin: float, takes_s: float, pauses: Spans) -> float:
    at = begin
    while True:
        at = _after(pauses, at)
        pause = next((first for first, _ in pauses if first > at), NEVER_S)
        if at + takes_s <= pause:
            return at + takes_s
        takes_s -= pause - at
        at = pause


def _late_bursts(tester: Spans, frames: int) -> tuple[LateBurst, ...]:
    due = [index / RATE for index in range(frames)]
    spans = [(bisect_left(due, begin), bisect_left(due, end), end) for begin, end in tester]
    return tuple(
        LateBurst(index=first, frames=behind - first, lateness_ns=int((end - due[first]) * 1e9))
        for first, behind, end in spans
        if first < behind
    )


def _watched(stalls: Stalls, works: Spans, drawn: Random) -> tuple[HoldUp, ...]:
    """Return what a watch reads that is kept from looking when the Tester is kept from sending."""
    waits = sorted(
        (max(begin, first), min(end, last))
        for begin, end in works
        for first, last in stalls.by_others
        if max(begin, first) < min(end, last)
    )
    finder = HoldUpFinder({1: ThreadTimes(name="tayga", cpu=0, stays=True, ran_ns=0, waited_ns=0)}, step_ns=STEP_NS)
    at = -0.03 + drawn.uniform(0, LOOK_S)
    while at < stalls.lasts_s + 0.1:
        at = _after(stalls.tester, at)
        ran = _until(at, works) - _until(at, waits)
        all_ran = ran + _until(at, stalls.by_others)
        waited = sum(end - begin for begin, end in waits if end <= at)
        moment = Moment(
            at_ns=int(at * 1e9),
            threads={1: (int(ran * 1e9), int(waited * 1e9))},
            all_ran_ns=int(all_ran * 1e9),
            stolen_ns={},
        )
        finder.take(moment)
        at += LOOK_S
    before_ns, after_ns = (int(drawn.uniform(0, UNSURE_S) * 1e9) for _ in range(2))
    return tuple(
        HoldUp(begin_ns=each.begin_ns - before_ns, end_ns=each.end_ns + after_ns, held_up_ns=each.lasted_ns)
        for each in finder.found().longest
    )


def _until(at: float, spans: Spans) -> float:
    return sum(min(at, end) - begin for begin, end in spans if begin < at)
