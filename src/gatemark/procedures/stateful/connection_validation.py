"""Validated connection establishment rate: the share of the rate at which the validation itself does not matter.

RFC 9693 section 4.6: after test phase 1 the Responder sends one frame for each connection at alpha times the rate under
test. If the gateway forwards replies more slowly than it establishes connections, the validation fails at a rate at
which every connection was established; then alpha is lowered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from gatemark.procedures.measured import MeasureStep
from gatemark.procedures.result import AlphaTried
from gatemark.procedures.stateful.connection_establishment import measure_establishment_rate
from gatemark.search.goal import Goal, SearchResult

ALPHAS: Final = (Fraction(1), Fraction(4, 5), Fraction(1, 2), Fraction(1, 4))
"""Shares of the rate under test at which a validation is tried, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenAlpha:
    """What the search for an alpha that does not matter ended with."""

    alpha: Fraction
    result: SearchResult
    """The search made with it: the first repetition of the run."""
    tried: tuple[AlphaTried, ...]
    """All shares that were tried, largest first."""


def choose_alpha(goal: Goal, reference: Sequence[SearchResult], measure: MeasureStep) -> ChosenAlpha:
    """Lower alpha until the validated rate is not below the rate without validation, beyond its noise.

    `reference` holds the repetitions without validation at the same number of connections. The noise ends one
    resolution below the lowest of them. If no alpha reaches it, the one with the highest validated rate is chosen: then
    it is not the validation's rate that costs connections. Open-ended searches begin where those of `reference` ended.
    """
    floor = min((result.lower_bound or 0) - result.resolution for result in reference)
    searches: list[tuple[Fraction, SearchResult]] = []
    for alpha in ALPHAS:
        found = measure_establishment_rate(replace(goal.after(reference), alpha=alpha), measure)
        searches.append((alpha, found))
        if (found.lower_bound or 0) >= floor:
            break
    alpha, result = max(searches, key=lambda search: search[1].lower_bound or 0)
    return ChosenAlpha(
        alpha=alpha,
        result=result,
        tried=tuple(AlphaTried(alpha=share, lower_bound=found.lower_bound) for share, found in searches),
    )
