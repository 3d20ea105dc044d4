"""The search for the highest rate that the Tester reaches alone. Pure but for the trials that it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

RESOLUTION_DIVISOR = 50
"""The search ends when both bounds are within 2 % of each other."""
RATE_MIN = 100
STEP_DOWN_PERCENT, STEP_DOWN_PERCENT_MAX = 4, 50
"""How far a rate that fails a confirmation is lowered. The step doubles each time: otherwise trials disturbed by the
Tester's machine could drag the search down for hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """How one rate turned out."""

    passed: bool
    reason: str = ""
    """Why it did not pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The highest rate that passed every confirmation."""

    rate: int
    """0 if none did."""
    limited: str
    """What happened at the lowest rate that did not pass; empty if the highest one passed."""


def find_rate(attempt: Callable[[int, bool], Tried], *, start: int, ceiling: int, confirmations: int) -> Reached:
    """Search upwards from `start` by doubling, halve the interval, then confirm.

    `attempt(rate, is_long)` makes a short or a long trial. The result is the minimum, not the median: a rate counts
    only if `confirmations` long trials in succession pass.
    """
    lower, upper, reason = _bracket(attempt, min(max(start, RATE_MIN), ceiling), ceiling)
    while upper is not None and lower and upper - lower > max(1, upper // RESOLUTION_DIVISOR):
        middle = (lower + upper) // 2
        tried = attempt(middle, False)
        if tried.passed:
            lower = middle
        else:
            upper, reason = middle, tried.reason
    step = STEP_DOWN_PERCENT
    while lower >= RATE_MIN:
        failed = next((trial for _ in range(confirmations) if not (trial := attempt(lower, True)).passed), None)
        if failed is None:
            return Reached(rate=lower, limited=reason)
        lower, reason = lower * (100 - step) // 100, failed.reason
        step = min(2 * step, STEP_DOWN_PERCENT_MAX)
    return Reached(rate=0, limited=reason)


def _bracket(attempt: Callable[[int, bool], Tried], rate: int, ceiling: int) -> tuple[int, int | None, str]:
    """Return a rate that passes (0: none), the lowest rate tried that does not, and why it does not."""
    upper, reason = None, ""
    tried = attempt(rate, False)
    while not tried.passed:
        upper, reason = rate, tried.reason
        if rate == RATE_MIN:
            return 0, upper, reason
        rate = max(RATE_MIN, rate // 2)
        tried = attempt(rate, False)
    while upper is None and rate < ceiling:
        above = min(2 * rate, ceiling)
        tried = attempt(above, False)
        if not tried.passed:
            return rate, above, tried.reason
        rate = above
    return rate, upper, reason
