"""How far losses are from what chance makes of them: their runs, their spread over time, their begin and end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gatemark.causes.losses import Losses
from gatemark.trial.loss import RARE, chance_inside

DEVIATIONS_MAX = 4.0
"""Chance lies within so many standard deviations but once in 15,000 times."""


def is_by_chance_from_end_to_end(losses: Losses, events: int) -> bool:
    """Whether the first and the last of so many events are no later or earlier than chance allows."""
    return all(
        -events * math.log1p(-frames / losses.frames) <= RARE for frames in losses.untouched if frames < losses.frames
    )


def chance_of_so_few_runs(losses: Losses) -> float:
    """Return the natural logarithm of an upper bound of the chance that lost frames have no more runs than they have.

    Chance draws which frames are lost between the first lost frame and the last one (Wald and Wolfowitz 1940). Those
    that passed there fill some of the gaps between lost frames, and how many they fill is hypergeometric.
    """
    return chance_inside(losses.lost - 1, losses.lost - losses.counts.loss.runs, 1 - _filled(losses))


def chance_of_so_many_runs(losses: Losses) -> float:
    """Return the same of the chance that they have no fewer."""
    return chance_inside(losses.lost - 1, losses.counts.loss.runs - 1, _filled(losses))


def _filled(losses: Losses) -> float:
    """Return the share of the gaps between lost frames in which a frame passes, as chance makes it."""
    return (losses.between - losses.lost) / max(1, losses.between - 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How much more than numbers of a variance the parts of a trial differ in their losses."""

    by: float = 0.0
    """Standard deviations of a normal number that is as rare."""
    ratio: float = 1.0
    """Their variance by the expected one."""


def difference(parts: Sequence[int], variance: float, tails: float | None = None) -> Difference:
    """Return how much more than numbers of a variance parts differ; nothing where there is nothing to compare.

    Chi square has twice as much variance as degrees of freedom, and so much more as `tails` says, the excess kurtosis
    of the numbers; that of binomial ones is at most one by their variance. Its cube root is nearly normal (Wilson and
    Hilferty 1931), where chi square itself exceeds its mean much more often than a normal number does.
    """
    degrees = len(parts) - 1
    if degrees < 1 or variance <= 0:
        return Difference()
    mean = sum(parts) / len(parts)
    ratio = sum((count - mean) ** 2 for count in parts) / variance / degrees
    spread = (2 + (1 / variance if tails is None else tails)) / (9 * degrees)
    return Difference(by=(math.cbrt(ratio) - 1 + spread) / math.sqrt(spread), ratio=ratio)
