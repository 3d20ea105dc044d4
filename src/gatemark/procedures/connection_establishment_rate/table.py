"""The table [connection_establishment_rate] of the campaign file (RFC 9693 sections 4.5 and 4.6)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated

from pydantic import Field, StrictBool

from gatemark.config.check import interval_problems
from gatemark.config.model import Campaign, CampaignFile, ProcedureTable
from gatemark.config.only import STATEFUL
from gatemark.config.problems import listed_twice, problem
from gatemark.config.stateful import time_needed_ns
from gatemark.config.types import AsList, FrameRate, LossRatio, SharesOrSearch
from gatemark.errors import Problem
from gatemark.search.goal import sending_ns
from gatemark.units import LineShare


class ConnectionEstablishmentRateTable(ProcedureTable):
    """Maximum connection establishment rate (RFC 9693 sections 4.5 and 4.6)."""

    key = "connection_establishment_rate"
    purpose = "measure the maximum connection establishment rate"
    reads = frozenset({"connections"})
    only = (STATEFUL,)
    finds_connection_rate = True
    begins_with_full_table = False

    maximum: FrameRate | None = None
    """Highest rate; it is tried first. Default: `"100%"`; without a line rate it is found as for the throughput."""
    expected: FrameRate | None = None
    """Result that is expected, as in `throughput`."""
    minimum: FrameRate = 1
    """Lowest rate tried; none is so low that connections expire during the trial."""
    resolution: FrameRate = Field(default_factory=lambda: LineShare(1, 1000))
    """Distance of the bounds at which the search ends; a share is one of the maximum, given or found."""
    loss_tolerance: LossRatio = Field(default_factory=lambda: Fraction(0))
    """Share of the connections that may fail to be established. Above 0 the result is not a maximum connection
    establishment rate, `connections.rate` may not be a share of it, and nothing can be validated."""
    validated: Annotated[tuple[StrictBool, ...], AsList] = Field((False,), min_length=1)
    """Whether the Responder then checks every connection (RFC 9693 section 4.6). `[false, true]` measures both."""
    alpha: SharesOrSearch = (Fraction(1),)
    """Rate of the validation, as a share of the rate under test. Each of several is measured, and the report puts them
    side by side with the rate without validation. `"search"` lowers it (100 %, 80 %, 50 %, 25 %) until the validated
    rate is that without validation, and needs `validated = [false, true]`."""

    @property
    def is_open_ended(self) -> bool:
        return self.maximum is None

    @property
    def is_plain(self) -> bool:
        """Whether it asks for the rate without validation."""
        return False in self.validated

    @property
    def validates(self) -> bool:
        """Whether it asks for the validated rate."""
        return True in self.validated

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The alphas that are measured, as listed; none where one is searched for."""
        return self.alpha if isinstance(self.alpha, tuple) else ()

    @property
    def highest_rate(self) -> int | LineShare | None:
        return self.maximum

    def lifetimes(self, campaign: Campaign, count: int) -> Iterator[tuple[int, str]]:
        """Yield how long connections must live at the highest rate, if it is known."""
        if not isinstance(self.maximum, int):
            return
        reason = f"{count} connections at the highest rate, {self.maximum} connections/s"
        validation_ns = 0
        if self.validates:
            alpha = min(self.shares, default=Fraction(1))
            validation_ns = sending_ns(count, max(1, int(alpha * self.maximum)))
            reason += ", and their validation"
        yield time_needed_ns(campaign, count, self.maximum, validation_ns), reason

    def problems(self, campaign: CampaignFile) -> Iterator[Problem]:
        """Check that bounds are in order, nothing is listed twice and nothing is without effect."""
        yield from interval_problems(
            campaign, self.key, minimum=self.minimum, maximum=self.maximum, resolution=self.resolution
        )
        yield from listed_twice(campaign, f"{self.key}.validated", self.validated, "value")
        yield from listed_twice(campaign, f"{self.key}.alpha", self.shares, "share")
        if not self.validates and self.alpha != (Fraction(1),):
            yield problem(
                campaign,
                f"{self.key}.alpha",
                "has no effect: nothing is validated",
                "set validated = true, or leave it out",
            )
        if self.loss_tolerance:
            yield from self._tolerance_problems(campaign)

    def _tolerance_problems(self, campaign: CampaignFile) -> Iterator[Problem]:
        """Check that nothing relies on connections of which some may be lost."""
        if self.validates:
            yield problem(
                campaign,
                f"{self.key}.loss_tolerance",
                "leaves connections out, but a validation asks for each of them",
                "leave it out, or validated",
            )
        fills_tables = any(table.begins_with_full_table for table in campaign.tables)
        if fills_tables and isinstance(campaign.connections_model.rate, Fraction):
            yield problem(
                campaign,
                "connections.rate",
                f"is a share of a rate at which connections are lost, as {self.key}.loss_tolerance allows; test phase 1"
                " has to establish all of them",
                "write connections/s at which all of them are established, or leave the loss tolerance out",
            )
