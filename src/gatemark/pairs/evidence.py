"""What the pairs so far show: estimate and interval at each look, whether that is enough, what else to tell. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import fmean, median

from gatemark.compare.condition import Limit, judged_shares
from gatemark.compare.document import Judgement, Outcome
from gatemark.pairs.pair import LEFT_OUT, SIDES, Pair, Side
from gatemark.results.quantity import Better
from gatemark.stats.looks import error_at, pairs_at
from gatemark.stats.signed_ranks import centre, centre_interval

BED_DIFFERENCE = Fraction(3, 200)
"""Two test beds of one gateway differ by so much: what the kernel draws for each, such as places in memory, stays while
pairs are made. All intervals are this much wider at either end."""
UNEQUAL_CHANCE = Fraction(1, 100)
"""A difference in how often trials of a side are left out is told if chance makes one as large less often than this."""
DRIFT_TOLD = 0.05
"""A side whose rate moved by this share from the first third of the pairs to the last is told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the first pairs that count show of B's figure / A's. An end that is not known is 0 or infinite."""

    better: Better
    """Whether more or less of the figure is better."""
    pairs: int
    ratio_low: float
    """Estimate; it lies between both where trials are bounds."""
    ratio_high: float
    low: float
    high: float

    @property
    def precision(self) -> float:
        """Half the width of the interval, as a share: 0.01 is plus or minus 1 %."""
        return math.sqrt(self.high / self.low) - 1 if self.low and math.isfinite(self.high) else math.inf

    @property
    def judgement(self) -> Judgement:
        """What it shows of B."""
        if self.low <= 1 <= self.high:
            return "no_difference" if self.low or math.isfinite(self.high) else "not_judged"
        return "worse" if (self.high < 1) == (self.better == "higher") else "better"

    @property
    def shares_lost(self) -> tuple[float, float]:
        """By what share of A's figure B's is worse, at least and at most; below 0 it is better."""
        return (1 - self.high, 1 - self.low) if self.better == "higher" else (self.low - 1, self.high - 1)

    def judged(self, limit: Limit) -> tuple[Outcome, str]:
        """Return the outcome of a condition and its reason."""
        return judged_shares(limit, *self.shares_lost)

    def decides(self, limit: Limit) -> bool:
        """Whether all of the interval lies on one side of a limit."""
        best, worst = self.shares_lost
        return best > limit.limit or worst <= limit.limit


def look_at(pairs: Sequence[Pair], number: int, error: Fraction, better: Better) -> Look | None:
    """Return what look `number`, counted from 1, shows of pairs that count; None if it is due later.

    `error` is allowed to all looks together. The logarithms of the ratios are estimated, and the interval allows for
    `BED_DIFFERENCE`.
    """
    if len(pairs) < pairs_at(number):
        return None
    lows, highs = zip(*(pair.logarithms for pair in pairs[: pairs_at(number)]), strict=True)
    interval = centre_interval(lows, highs, error_at(number, error))
    if interval is None:
        return None
    margin = math.log1p(BED_DIFFERENCE)
    return Look(
        better=better,
        pairs=len(lows),
        ratio_low=math.exp(centre(lows)),
        ratio_high=math.exp(centre(highs)),
        low=math.exp(interval.low - margin),
        high=math.exp(interval.high + margin),
    )


def is_decided(look: Look, precision: Fraction, limits: Sequence[Limit]) -> bool:
    """Whether every condition is decided; without any, whether the interval is as narrow as asked."""
    return all(look.decides(limit) for limit in limits) if limits else look.precision <= precision


def drift(pairs: Sequence[Pair], side: Side) -> float | None:
    """Return a side's figure in the last third of the pairs / that in the first third, less 1; None for few pairs."""
    values = [pair.trials[side].value for pair in pairs]
    third = len(values) // 3
    if third < 3 or not median(values[:third]):
        return None
    return median(values[-third:]) / median(values[:third]) - 1


def autocorrelation(pairs: Sequence[Pair]) -> float | None:
    """Return by how much the logarithm of a ratio tells the next one, in [-1, 1]; None for few pairs, or equal ones."""
    values = [low for low, high in (pair.logarithms for pair in pairs) if low == high and math.isfinite(low)]
    if len(values) < 10:
        return None
    mean = fmean(values)
    around = [value - mean for value in values]
    whole = sum(value * value for value in around)
    return sum(first * second for first, second in pairwise(around)) / whole if whole else None


def is_autocorrelated(value: float | None, pairs: int) -> bool:
    """Whether chance makes a correlation of neighbours so far from 0 in 1 of 100 cases at most."""
    return value is not None and abs(value) > 2.58 / math.sqrt(pairs)


def left_out(pairs: Sequence[Pair], side: Side) -> int:
    """Return how many trials of a side took their partner with them."""
    return sum(pair.trials[side].outcome in LEFT_OUT for pair in pairs)


def chance_of_left_out(pairs: Sequence[Pair]) -> Fraction:
    """Return the chance that sides which are left out equally often differ as much as they do (McNemar, exact)."""
    halves = [pair for pair in pairs if sum(trial.outcome in LEFT_OUT for trial in pair.trials.values()) == 1]
    both = len(halves)
    fewer = min(left_out(halves, side) for side in SIDES)
    return min(Fraction(1), Fraction(2 * sum(math.comb(both, number) for number in range(fewer + 1)), 2**both))
