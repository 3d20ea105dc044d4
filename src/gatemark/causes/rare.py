"""Losses so rare that no trial alone tells their share: the same share of all frames fits trials at loads far apart.

Rule: in all trials of a run together, passed ones as well, frames are lost one at a time, most of them. The trials from
the lowest load up to some load lost frames as often as one rate of such events for each frame has it, and some of those
that failed lie far apart. Error: two rates, one below some load and one from it on, fit better by no more than a
likelihood ratio that the chi-squared distribution with one degree of freedom exceeds once in 70 times; the best of all
loads is taken. With fewer events a limit that is seldom met would look the same: a search always finds what passed
below what failed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

EVENTS_MIN = 30
LENGTH_MAX = 2
"""An event is short if fewer frames than this are lost in it: a queue that is full loses more, the more are offered."""
RATIO_MAX = 6.0
"""Twice the logarithm of the likelihood ratio up to which one rate is enough."""


@dataclass(slots=True)
class Offered:
    """What the trials at one load offered and lost, of one class in one direction."""

    load: int
    frames: int = 0
    lost: int = 0
    events: int = 0
    """Runs of losses."""
    failed: int = 0
    """Trials that failed."""


def lost_alike(at_loads: Iterable[Offered], apart: Fraction) -> Sequence[Offered]:
    """Return the lowest loads, as many as possible, whose trials lost frames equally often; none if chance may do it.

    Of those at which trials failed the highest is `apart` times the lowest, and more was forwarded at it than was
    offered at the lowest, so no limit of a rate made both of them fail.
    """
    ascending = sorted(at_loads, key=lambda offered: offered.load)
    for count in range(len(ascending), 1, -1):
        lowest = ascending[:count]
        failed = [offered for offered in lowest if offered.failed]
        events = _sum(lowest)[1]
        if len(failed) < 2 or failed[-1].load < apart * failed[0].load or events < EVENTS_MIN:
            return ()
        high, lost = failed[-1], sum(offered.lost for offered in lowest)
        is_rate_no_limit = high.load * (high.frames - high.lost) > failed[0].load * high.frames
        if is_rate_no_limit and lost < LENGTH_MAX * events and _ratio(lowest) <= RATIO_MAX:
            return lowest
    return ()


def _ratio(ascending: Sequence[Offered]) -> float:
    """Return twice the logarithm of how much better two rates fit, one below the best load and one from it on."""
    parts = ((ascending[:count], ascending[count:]) for count in range(1, len(ascending)))
    return max(2 * (_likelihood(low) + _likelihood(high) - _likelihood(ascending)) for low, high in parts)


def _likelihood(at_loads: Sequence[Offered]) -> float:
    """Return the logarithm of the likelihood of the events at their own rate, less what no rate changes (Poisson)."""
    frames, events = _sum(at_loads)
    return events * math.log(events / frames) if events else 0.0


def _sum(at_loads: Sequence[Offered]) -> tuple[int, int]:
    return sum(offered.frames for offered in at_loads), sum(offered.events for offered in at_loads)
