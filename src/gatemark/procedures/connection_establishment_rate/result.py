"""The published result of the maximum connection establishment rate (RFC 9693 sections 4.5 and 4.6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import computed_field

from gatemark.results.part import Part, Ratio
from gatemark.results.quantity import Quantity, QuantityKind
from gatemark.results.search import RateResult
from gatemark.stats.summary import Summary

VALIDATED = "validated_connection_establishment_rate"
RATE = QuantityKind("connection establishment rate", "connections/s", "higher", "RFC 9693 section 4.5")
VALIDATED_RATE = QuantityKind(
    "validated connection establishment rate", "connections/s", "higher", "RFC 9693 section 4.6"
)
TOLERANT = {
    rate: replace(
        rate, name=f"{rate.name} with loss tolerated", source="none: RFC 9693 section 4.5 asks for all connections"
    )
    for rate in (RATE, VALIDATED_RATE)
}


class AlphaTried(Part):
    """One share of the rate at which a validation was tried (RFC 9693 section 4.6)."""

    alpha: Ratio
    """A share that was tried."""
    lower_bound: int | None
    """Highest validated rate that passed with it, connections/s. Null if none passed."""


class EstablishmentResult(RateResult):
    """Highest rate at which every new connection is established, and if validated also answered afterwards.

    RFC 9693 sections 4.5 and 4.6.
    """

    kinds: ClassVar = (RATE, VALIDATED_RATE, *TOLERANT.values())
    unit = "connections/s"
    procedure: Literal["connection_establishment_rate", "validated_connection_establishment_rate"]
    alpha: Ratio | None = None
    """Rate of the validation as a share of the rate under test (RFC 9693 section 4.6). Null if nothing is validated."""
    alphas_tried: tuple[AlphaTried, ...] = ()
    """The shares that a search for alpha tried, largest first; else empty."""

    @computed_field
    @property
    def connections_per_second(self) -> Summary | None:
        """The establishment rate: summary of the lower bounds. Null if a repetition was limited by the Tester, if
        nothing passed in any, or if the maximum passed in some repetitions and not in others."""
        return self.rate

    @property
    def is_validated(self) -> bool:
        """Whether the Responder checks every connection afterwards."""
        return self.procedure == VALIDATED

    @property
    def is_searched_alpha(self) -> bool:
        return bool(self.alphas_tried)

    def own_quantities(self) -> Iterator[Quantity]:
        """Return the rate."""
        if self.repetitions:
            rate = VALIDATED_RATE if self.is_validated else RATE
            where = {} if self.alpha is None else {"alpha": str(self.alpha)}
            yield self.rate_quantity(TOLERANT[rate] if self.is_tolerant else rate, where)
