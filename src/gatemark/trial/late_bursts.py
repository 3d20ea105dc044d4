"""Losses directly behind bursts that the Tester sent late. Pure.

What became due while the Tester was kept from sending leaves at once. A short queue of the gateway holds the load, and
may not hold that.

Rule: the trial had passed without the frames that were lost among those of catch-ups, or else before the queue that
these filled is empty again; of each catch-up as many at most as it has. Error: runs of losses that lie anywhere in the
trial lie so by chance in at most one of twenty trials (`loss_places.chance_of_places`, in the direction that says
most). Such a trial is made again, so a gateway is excused by chance only if that befalls each attempt. Chance is not
asked where each of these catch-ups is longer than the gateway's queue.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gatemark.trial.form import TrialForm
from gatemark.trial.loss_places import DRAINS, LossPlaces, Missing, chance_of_places, with_delivered
from gatemark.trial.report import DirectionResult, LateBurst, TrialReport
from gatemark.trial.verdict import judge
from gatemark.units import format_duration_ns, frames_in

CHANCE_MAX = 0.05
WIDTHS = (0, DRAINS)
"""How long after a catch-up losses are looked for, in multiples of its lateness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """The frames of one or several catch-ups, and of the time in which their queue is emptied."""

    first: int
    end: int
    frames: int
    at_once: int
    """Frames that left at once in the longest of them, those of the other direction too."""
    bursts: int
    lateness_ns: int
    """Of the latest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Behind:
    """What a direction lost behind late bursts."""

    lost: int
    bursts: int
    lateness_ns: int
    chance: float
    """Natural logarithm, that runs of losses lie there whatever the Tester did."""
    fits: bool
    """Whether the gateway's queue may have held a burst behind which frames were lost."""


def behind_late_bursts(
    report: TrialReport, loss_tolerance: Fraction, form: TrialForm, *, queue_frames: int = 0
) -> str | None:
    """Return that what made a trial fail was lost behind late bursts, as a sentence; None if it was not.

    `queue_frames`: what the gateway's smallest queue holds, 0 where that is not known. A longer burst overflows it, so
    chance is not asked.
    """
    widths = WIDTHS if form.is_even else WIDTHS[:1]
    for width in widths:
        behind: dict[str, _Behind] = {
            way.direction: _behind(way, width, queue_frames, report.directions if form.is_even else (way,))
            for way in report.directions
            if way.late_bursts
        }
        losing = {direction: part for direction, part in behind.items() if part.lost}
        excused = {direction: Missing(lost=part.lost, lost_or_late=part.lost) for direction, part in losing.items()}
        if not losing or not judge(with_delivered(report, excused), loss_tolerance).passed:
            continue
        chance = min(part.chance for part in losing.values()) + math.log(len(widths))
        if chance <= math.log(CHANCE_MAX) or not any(part.fits for part in losing.values()):
            return _sentence(report.lost_count, list(losing.values()))
    return None


def _behind(way: DirectionResult, width: int, queue_frames: int, ways: Sequence[DirectionResult]) -> _Behind:
    places, spans = LossPlaces(way), list(_spans(way, width, ways))
    lost = bursts = lateness_ns = 0
    fits = False
    for span in spans:
        if there := min(places.take(span.first, span.end), span.frames):
            lost += there
            bursts += span.bursts
            lateness_ns = max(lateness_ns, span.lateness_ns)
            fits |= not queue_frames or span.at_once <= queue_frames
    chance = chance_of_places(way, ((span.first, span.end) for span in spans))
    return _Behind(lost=lost, bursts=bursts, lateness_ns=lateness_ns, chance=chance, fits=fits)


def _spans(way: DirectionResult, width: int, ways: Sequence[DirectionResult]) -> Iterator[_Span]:
    """Yield what belongs to the late bursts of a direction; those that share frames are one."""
    last: _Span | None = None
    for burst in way.late_bursts:
        end = burst.index + burst.frames + width * frames_in(way.frames_per_second, burst.lateness_ns)
        at_once = sum(each.frames for other in ways for each in other.late_bursts if _meet(way, burst, other, each))
        frames, late_ns = burst.frames, burst.lateness_ns
        span = _Span(first=burst.index, end=end, frames=frames, at_once=at_once, bursts=1, lateness_ns=late_ns)
        if last is not None and burst.index < last.end:
            span = _Span(
                first=last.first,
                end=max(end, last.end),
                frames=last.frames + frames,
                at_once=max(last.at_once, at_once),
                bursts=last.bursts + 1,
                lateness_ns=max(last.lateness_ns, late_ns),
            )
        elif last is not None:
            yield last
        last = span
    if last is not None:
        yield last


def _meet(way: DirectionResult, burst: LateBurst, other_way: DirectionResult, other: LateBurst) -> bool:
    """Whether frames of two late bursts were due at one time; a burst meets itself, and no other of its direction."""
    if way is other_way:
        return burst is other
    begins = burst.index * other_way.frames_per_second, other.index * way.frames_per_second
    ends = (
        (burst.index + burst.frames) * other_way.frames_per_second,
        (other.index + other.frames) * way.frames_per_second,
    )
    return max(begins) < min(ends)


def _sentence(of_all: int, losing: Sequence[_Behind]) -> str:
    lost = sum(part.lost for part in losing)
    bursts, late = sum(part.bursts for part in losing), format_duration_ns(max(part.lateness_ns for part in losing))
    frames = f"all {of_all:,} lost frames" if lost == of_all else f"{lost:,} of {of_all:,} lost frames"
    if of_all == 1:
        frames = "the only lost frame"
    follow = "follows" if of_all == 1 else "follow"
    if bursts == 1:
        return f"{frames} {follow} a burst that the Tester sent {late} late"
    return f"{frames} {follow} {bursts} bursts that the Tester sent up to {late} late"
