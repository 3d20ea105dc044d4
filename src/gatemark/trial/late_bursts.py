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
    bursts: tuple[LateBurst, ...]


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
    places, spans = LossPlaces(way), list(_spans(way, width))
    others = [other for other in ways if other is not way]
    lost, fits = 0, False
    losing: list[LateBurst] = []
    for span in spans:
        if there := min(places.take(span.first, span.end), sum(burst.frames for burst in span.bursts)):
            lost += there
            losing += span.bursts
            fits |= not queue_frames or max(_at_once(burst, way, others) for burst in span.bursts) <= queue_frames
    return _Behind(
        lost=lost,
        bursts=len(losing),
        lateness_ns=max((burst.lateness_ns for burst in losing), default=0),
        chance=chance_of_places(way, ((span.first, span.end) for span in spans)),
        fits=fits,
    )


def _spans(way: DirectionResult, width: int) -> Iterator[_Span]:
    """Yield what belongs to the late bursts of a direction; those that share frames are one."""
    last: _Span | None = None
    for burst in way.late_bursts:
        end = burst.index + burst.frames + width * frames_in(way.frames_per_second, burst.lateness_ns)
        span = _Span(first=burst.index, end=end, bursts=(burst,))
        if last is not None and burst.index < last.end:
            span = _Span(first=last.first, end=max(end, last.end), bursts=(*last.bursts, burst))
        elif last is not None:
            yield last
        last = span
    if last is not None:
        yield last


def _at_once(burst: LateBurst, way: DirectionResult, others: Sequence[DirectionResult]) -> int:
    """Return how many frames a catch-up has, with those of other directions that were due at its time."""
    frames = burst.frames
    for other in others:
        begin, end = (index * other.frames_per_second for index in (burst.index, burst.index + burst.frames))
        frames += sum(
            each.frames
            for each in other.late_bursts
            if each.index * way.frames_per_second < end and begin < (each.index + each.frames) * way.frames_per_second
        )
    return frames


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
