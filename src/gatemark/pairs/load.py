"""At which load the next pair is made: one above what both gateways forward, and below the limit of the Tester. Pure.

A short search doubles the load until both gateways lose a tenth. Pairs are then made at a load a third above what the
faster one forwarded; where delays are measured, at half of what the slower one forwarded. If a gateway changes later,
so that trials become bounds, lossy or invalid, the load is searched for again. What decides is never which of both
gateways was faster, so the choice favours neither.

Where connections are established, the search first looks for a rate at which each gateway holds all of them. One whose
table is too small would lose the rest of them at any rate, and its figure would follow the rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from gatemark.pairs.figure import FORWARDING_RATE, Figure
from gatemark.pairs.pair import LOSSY_ABOVE, SIDES, Pair, Side

FIRST_LOAD = 20_000
"""Frames/s, or connections/s."""
LOWEST_LOAD = 500
OVERLOAD = Fraction(1, 10)
"""Both gateways lose this share at least where a search ends."""
RAISED = Fraction(6, 5)
"""Load at which the search for a higher one begins / the load before."""
NARROW = Fraction(11, 10)
"""A search between a load that is too low and one that the Tester cannot offer ends when they are this close."""
TRIES = 3
"""Pairs that are left out, one after the other, before the Tester is taken not to be able to offer their load."""
WINDOW = 10
"""Latest pairs at a load that say whether it still does."""
BOUNDS_MAX = 2
LEFT_OUT_MAX = 6
"""So many of the window, and the load is searched for again."""
RETRY_PAIRS = 20
"""After so many pairs at the Tester's limit, a higher load is tried again: the machine may have been disturbed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadChoice:
    """What is known of the load after the pairs so far."""

    figure: Figure = FORWARDING_RATE
    load: int = FIRST_LOAD
    """Load of the next pair."""
    lowest: int = LOWEST_LOAD
    """Below it no load is tried."""
    is_search: bool = True
    too_low: int | None = None
    """Highest load in this search at which a gateway lost less than a tenth."""
    too_high: int | None = None
    """Lowest load in this search that the Tester could not offer."""
    tries: int = 0
    """Pairs left out at this load, one after the other."""
    latest: tuple[Pair, ...] = ()
    """Latest pairs at this load that were no search."""
    pairs: int = 0
    """How many there were."""
    is_tester_limited: bool = False
    """Whether the Tester cannot offer more, although a gateway may forward more."""
    holds: frozenset[Side] = frozenset()
    """Sides that held all connections at some rate, where these are established."""
    faster: Pair | None = None
    """The pair before in this search, at a higher rate, in which a side did not hold all connections."""
    never_held: tuple[Side, ...] = ()
    """Sides that cannot, at any rate: nothing can be measured."""

    @property
    def searches(self) -> bool:
        """Whether the next pair is one of searches that begin at the load."""
        return self.figure.is_searched and not self.is_search

    def after(self, pair: Pair) -> LoadChoice:
        """Return what is known after one pair more, which was made at `load`."""
        return self._after_search(pair) if self.is_search else self._after_pair(pair)

    def _after_search(self, pair: Pair) -> LoadChoice:
        if not pair.is_kept:
            if self.tries + 1 < TRIES:
                return replace(self, tries=self.tries + 1)
            return replace(self, too_high=self.load)._next()
        if self.figure.establishes:
            held = (side for side in SIDES if pair.trials[side].loss_ratio <= LOSSY_ABOVE)
            return replace(self, holds=self.holds.union(held))._after_filling(pair)
        return self._after_forwarding(pair)

    def _after_filling(self, pair: Pair) -> LoadChoice:
        lacking = tuple(side for side in SIDES if side not in self.holds)
        if not lacking:
            return self._after_forwarding(pair)
        if never := tuple(side for side in lacking if self.load == self.lowest or self._depends_on_number(pair, side)):
            return replace(self, never_held=never)
        return replace(self, load=max(self.lowest, self.load // 2), tries=0, faster=pair)

    def _depends_on_number(self, pair: Pair, side: Side) -> bool:
        """Whether a side established hardly more connections at this rate than at twice the rate."""
        if self.faster is None:
            return False
        here, before = (1 - each.trials[side].loss_ratio for each in (pair, self.faster))
        return here < before * RAISED

    def _after_forwarding(self, pair: Pair) -> LoadChoice:
        if any(trial.loss_ratio < OVERLOAD for trial in pair.trials.values()):
            return replace(self, too_low=self.load)._next()
        return self._pairs_at(min(self.load, self._load_of(pair)))

    def _load_of(self, pair: Pair) -> int:
        """Return the load that is measured at, from a pair in which both gateways were overloaded."""
        share = self.figure.load_share
        if share is None:
            return self.load
        rates = [trial.highest_rate for trial in pair.trials.values()]
        return math.ceil(share * Fraction(max(rates) if self.figure.is_overload else min(rates)))

    def _pairs_at(self, load: int, *, is_tester_limited: bool = False) -> LoadChoice:
        """Return that the search has ended."""
        load = max(self.lowest, load)
        return replace(self._restarted(), load=load, is_search=False, is_tester_limited=is_tester_limited)

    def _restarted(self) -> LoadChoice:
        """Return what stays known when a search begins or ends."""
        return LoadChoice(figure=self.figure, lowest=self.lowest, holds=self.holds)

    def _next(self) -> LoadChoice:
        """Return the next load of a search."""
        if self.too_high is None:
            return replace(self, load=2 * self.load, tries=0)
        if self.too_low is None:
            lower = max(self.lowest, self.load * 3 // 4)
            if lower < self.load or (self.figure.establishes and len(self.holds) < len(SIDES)):
                return replace(self, load=lower, tries=0)
            return self._pairs_at(lower, is_tester_limited=True)
        if self.too_high < NARROW * self.too_low:
            return self._pairs_at(self._highest(self.too_low), is_tester_limited=True)
        return replace(self, load=math.isqrt(self.too_low * self.too_high), tries=0)

    def _highest(self, too_low: int) -> int:
        """Return the load that is measured at where the Tester can offer no more, and a gateway may forward that."""
        share = self.figure.load_share
        return too_low if share is None or self.figure.is_overload else math.ceil(share * too_low)

    def _after_pair(self, pair: Pair) -> LoadChoice:
        latest = (*self.latest[1 - WINDOW :], pair)
        left_out = sum(not each.is_kept for each in latest)
        bounds = sum(any(trial.outcome == "bound" for trial in each.trials.values()) for each in latest)
        if left_out >= LEFT_OUT_MAX:
            return self._again(self.load * 4 // 5, too_high=self.load)
        retries = self.is_tester_limited and self.pairs + 1 >= RETRY_PAIRS
        if bounds >= BOUNDS_MAX and (retries or not self.is_tester_limited):
            return self._again(math.ceil(RAISED * self.load), too_low=self.load)
        return replace(self, latest=latest, pairs=self.pairs + 1)

    def _again(self, load: int, *, too_high: int | None = None, too_low: int | None = None) -> LoadChoice:
        """Return the begin of another search; where delays are measured, it says nothing about the load of before."""
        restarted = self._restarted()
        if not self.figure.is_overload:
            return restarted
        return replace(restarted, load=max(self.lowest, load), too_high=too_high, too_low=too_low)
