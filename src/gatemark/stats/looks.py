"""When data that come one after the other are looked at, and what error each look may have, so that all hold together.

The allowed error is spent over looks at fixed numbers of pairs (Lan and DeMets, Discrete sequential boundaries for
clinical trials, Biometrika 70, 1983). The errors of all looks, however many there will be, add up to the allowed one at
most: so all intervals hold together with the stated confidence (Bonferroni's inequality), whatever the looks have in
common, and the measurement may be stopped at any look for any reason.
"""

from __future__ import annotations

import math
from fractions import Fraction

FIRST = 10
"""Pairs at the first look."""

GROWTH = Fraction(5, 4)
"""Pairs of a look / those of the look before."""

SPREAD = 5
"""The first look may have one part of `SPREAD + 1` of the allowed error; the more, the less is left for later ones."""


def pairs_at(look: int) -> int:
    """Return with how many pairs a look is made, counted from 1."""
    return math.ceil(FIRST * GROWTH ** (look - 1))


def looks_made(pairs: int) -> int:
    """Return how many looks there were with so many pairs."""
    look = 0
    while pairs_at(look + 1) <= pairs:
        look += 1
    return look


def error_at(look: int, error: Fraction) -> Fraction:
    """Return what part of the allowed error a look may have: `error` is the sum over all looks without an end."""
    return error * SPREAD / ((look + SPREAD - 1) * (look + SPREAD))
