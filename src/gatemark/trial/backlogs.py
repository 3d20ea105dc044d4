"""When frames piled up in front of a gateway through no fault of its own. Pure.

Others had its CPUs, or the Tester was kept from sending and then sent at once what had become due. Either fills the
gateway's queue, and so do both, at one time or one after the other. Times are those at which frames were due, from the
start of sending: a gateway that keeps up with its load has before it what was due in such a time, and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gatemark.trial.host import HoldUp
from gatemark.trial.report import DirectionResult, LateBurst
from gatemark.units import NANOSECONDS_PER_SECOND, frames_before, frames_in

DRAINS = 10
"""A backlog is worked off in so many times the time in which it piled up, by a gateway that carries a tenth more."""
IN_USE = 10
"""One of so many places of the gateway's queue may be taken when frames begin to pile up."""
LATE_BURSTS_MAX = 32
"""So many late bursts of a direction are known, the latest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """A time in which frames piled up, nanoseconds."""

    begin_ns: int
    end_ns: int
    hold_ups: tuple[HoldUp, ...] = ()
    bursts: tuple[tuple[str, LateBurst], ...] = ()
    """With the direction of each."""

    def piled_ns(self, way: DirectionResult) -> int:
        """Return in how long as many frames of a direction are due as piled up.

        The Tester may have been late while the gateway was held up: then the same frames waited for both.
        """
        held_up_ns = sum(hold_up.held_up_ns for hold_up in self.hold_ups)
        late = sum(burst.frames for direction, burst in self.bursts if direction == way.direction)
        return min(held_up_ns + _due_ns(late, way), self.end_ns - self.begin_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What piled up in a stall, or in several between which it was not worked off. All times in nanoseconds."""

    begin_ns: int
    end_ns: int
    """When it was worked off."""
    stalls: tuple[Stall, ...]
    piled_ns: Mapping[str, int]
    """In how long as many frames of each direction are due as piled up in it."""
    waiting_ns: Mapping[str, int]
    """The same of what was waiting at the end of the last stall, no more than the gateway's queue holds."""
    overflows: bool
    """Whether the gateway's queue did not hold it."""

    @property
    def hold_ups(self) -> tuple[HoldUp, ...]:
        return tuple(hold_up for stall in self.stalls for hold_up in stall.hold_ups)

    @property
    def bursts(self) -> tuple[tuple[str, LateBurst], ...]:
        return tuple(burst for stall in self.stalls for burst in stall.bursts)

    def frames(self, way: DirectionResult) -> int:
        """Return how many frames of a direction piled up, and one more, which was under way."""
        piled_ns = self.piled_ns[way.direction]
        return frames_in(way.frames_per_second, piled_ns) + 1 if piled_ns else 0

    def span(self, way: DirectionResult) -> tuple[int, int]:
        """Return the frames of a direction that were due from its begin to its end: the first, and that behind."""
        first, end = (frames_before(way.frames_per_second, max(0, at_ns)) for at_ns in (self.begin_ns, self.end_ns))
        return first, end


def find_backlogs(
    ways: Sequence[DirectionResult], hold_ups: Sequence[HoldUp], *, queue_frames: int, long_ns: int, drains: int
) -> list[Backlog]:
    """Return what hold-ups and the late bursts of directions piled up, in the order of time; no two share frames.

    `queue_frames`: what the gateway's smallest queue holds, 0 where that is not known. A hold-up longer than `long_ns`
    overflows it in any case. `drains`: as above; 0 where only the frames that piled up themselves are asked for.
    """
    backlogs: list[Backlog] = []
    for stall in _stalls(ways, [hold_up for hold_up in hold_ups if _outlasts(hold_up, long_ns, drains)]):
        last = backlogs[-1] if backlogs and stall.begin_ns < backlogs[-1].end_ns else None
        before_ns = {} if last is None else _waiting_ns(last, stall.begin_ns)
        backlog = _backlog(stall, ways, before_ns, queue_frames=queue_frames, long_ns=long_ns, drains=drains)
        if last is not None and (last.overflows or not backlog.overflows):
            backlogs[-1] = _joined(last, backlog)
            continue
        if last is not None:  # what was lost before this stall did not overflow
            backlogs[-1] = replace(last, end_ns=stall.begin_ns)
        backlogs.append(backlog)
    return backlogs


def _outlasts(hold_up: HoldUp, long_ns: int, drains: int) -> bool:
    """Whether something is left of what a hold-up piled up when the time is over in which it may have been."""
    around_ns = hold_up.end_ns - hold_up.begin_ns
    return not drains or hold_up.held_up_ns > long_ns or hold_up.held_up_ns * drains >= around_ns


def _backlog(
    stall: Stall,
    ways: Sequence[DirectionResult],
    before_ns: Mapping[str, int],
    *,
    queue_frames: int,
    long_ns: int,
    drains: int,
) -> Backlog:
    """Return what piled up in a stall, on top of what was waiting before."""
    piled_ns: dict[str, int] = {way.direction: stall.piled_ns(way) for way in ways}
    waiting_ns = {direction: ns + before_ns.get(direction, 0) for direction, ns in piled_ns.items()}
    waiting = sum(way.frames_per_second * waiting_ns[way.direction] for way in ways)
    holds = (queue_frames - queue_frames // IN_USE) * NANOSECONDS_PER_SECOND
    is_more = 0 < holds < waiting
    if is_more:
        waiting_ns = {direction: ns * holds // waiting for direction, ns in waiting_ns.items()}
    return Backlog(
        begin_ns=stall.begin_ns,
        end_ns=stall.end_ns + drains * max(waiting_ns.values()),
        stalls=(stall,),
        piled_ns=piled_ns,
        waiting_ns=waiting_ns,
        overflows=is_more or any(hold_up.held_up_ns > long_ns for hold_up in stall.hold_ups),
    )


def _waiting_ns(last: Backlog, at_ns: int) -> Mapping[str, int]:
    """Return what of a backlog is not yet worked off at a time."""
    gone_ns = max(0, at_ns - last.stalls[-1].end_ns) // DRAINS
    return {direction: max(0, waiting_ns - gone_ns) for direction, waiting_ns in last.waiting_ns.items()}


def _joined(first: Backlog, rest: Backlog) -> Backlog:
    return replace(
        rest,
        begin_ns=first.begin_ns,
        end_ns=max(first.end_ns, rest.end_ns),
        stalls=first.stalls + rest.stalls,
        piled_ns={direction: first.piled_ns[direction] + ns for direction, ns in rest.piled_ns.items()},
        overflows=first.overflows or rest.overflows,
    )


def _stalls(ways: Sequence[DirectionResult], hold_ups: Sequence[HoldUp]) -> Iterator[Stall]:
    """Yield hold-ups and late bursts by their time; those that may have been at one time are one."""
    unlisted_ns = max((_unlisted_ns(way) for way in ways), default=0)
    every = [
        Stall(begin_ns=hold_up.begin_ns - unlisted_ns, end_ns=hold_up.end_ns, hold_ups=(hold_up,))
        for hold_up in hold_ups
    ]
    for way in ways:
        for burst in way.late_bursts:
            begin_ns, end_ns = _due_ns(burst.index, way), _due_ns(burst.index + burst.frames, way)
            every.append(Stall(begin_ns=begin_ns, end_ns=end_ns, bursts=((way.direction, burst),)))
    last: Stall | None = None
    for stall in sorted(every, key=lambda stall: stall.begin_ns):
        if last is None:
            last = stall
        elif stall.begin_ns < last.end_ns:
            last = Stall(
                begin_ns=last.begin_ns,
                end_ns=max(last.end_ns, stall.end_ns),
                hold_ups=last.hold_ups + stall.hold_ups,
                bursts=last.bursts + stall.bursts,
            )
        else:
            yield last
            last = stall
    if last is not None:
        yield last


def _due_ns(index: int, way: DirectionResult) -> int:
    return index * NANOSECONDS_PER_SECOND // max(1, way.frames_per_second)


def _unlisted_ns(way: DirectionResult) -> int:
    """Return how late a frame may have been sent that is in none of the bursts that are known."""
    return 0 if len(way.late_bursts) < LATE_BURSTS_MAX else min(burst.lateness_ns for burst in way.late_bursts)
