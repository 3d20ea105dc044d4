"""How far losses are from what chance makes of them: their runs, their spread over time, their begin and end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gatemark.causes.losses import Losses

DEVIATIONS_MAX = 4.0
"""Chance lies within so many standard deviations but once in 15,000 times."""
RARE = math.log(15_000)
"""Of a chance, as a logarithm, the same."""


def is_by_chance_from_end_to_end(losses: Losses, events: int) -> bool:
    """Whether the first and the last of so many events are no later or earlier than chance allows."""
    return all(
        -events * math.log1p(-frames / losses.frames) <= RARE for frames in losses.untouched if frames < losses.frames
    )


def deviation_of_runs(losses: Losses) -> float:
    """Return by how many standard deviations there are more runs of losses than chance makes of as many lost frames.

    Between the first lost frame and the last one (Wald and Wolfowitz 1940).
    """
    between, lost = losses.between, losses.lost
    passed = between - lost
    expected = lost * (passed + 1) / between
    variance = lost * passed * (lost - 1) * (passed + 1) / (between**2 * max(1, between - 1))
    apart = losses.counts.loss.runs - expected
    if variance:
        return apart / math.sqrt(variance)
    return math.copysign(math.inf, apart) if apart else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How much more than numbers of a variance the parts of a trial differ in their losses."""

    by: float = 0.0
    """Standard deviations."""
    ratio: float = 1.0
    """Their variance by the expected one."""


def difference(parts: Sequence[int], variance: float, tails: float = 0.0) -> Difference:
    """Return how much more than numbers of a variance parts differ; nothing where there is nothing to compare.

    Chi square has twice as much variance as degrees of freedom, and so much more as `tails` says, the excess kurtosis
    of the numbers.
    """
    degrees = len(parts) - 1
    if degrees < 1 or variance <= 0:
        return Difference()
    mean = sum(parts) / len(parts)
    chi_square = sum((count - mean) ** 2 for count in parts) / variance
    return Difference(by=(chi_square - degrees) / math.sqrt((2 + tails) * degrees), ratio=chi_square / degrees)
