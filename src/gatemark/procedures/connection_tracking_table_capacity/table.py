"""The table [connection_tracking_table_capacity] of the campaign file (RFC 9693 section 4.9)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from pydantic import Field

from gatemark.config import defaults
from gatemark.config.check import is_too_coarse
from gatemark.config.model import Campaign, CampaignFile, ProcedureTable
from gatemark.config.only import STATEFUL
from gatemark.config.problems import problem
from gatemark.config.stateful import searched_max, storable_max
from gatemark.config.types import Count, FrameRate, Share
from gatemark.errors import Problem
from gatemark.units import LineShare


class ConnectionTrackingTableCapacityTable(ProcedureTable):
    """Connection tracking table capacity (RFC 9693 section 4.9)."""

    key = "connection_tracking_table_capacity"
    purpose = "measure the connection tracking table capacity"
    only = (STATEFUL,)
    finds_connection_count = True
    begins_with_full_table = False

    start: Count = defaults.CAPACITY_START
    """C0: a number of connections that the gateway certainly holds."""
    maximum: Count | None = None
    """Number of connections at which the search ends. Default: as many as four-tuples and public endpoints allow; of a
    customer edge as many as four-tuples, because its ports may be its capacity."""
    maximum_rate: FrameRate | None = None
    """Highest rate tried with C0, connections/s. Default: `"100%"`; without a line rate it is found as for the
    throughput."""
    rate_resolution: FrameRate = Field(default_factory=lambda: LineShare(1, 100))
    """e: error of the rates; a share is one of the highest rate, given or found."""
    resolution: Count = 1
    """E: error of the capacity, connections."""
    alpha: Share = Field(default_factory=lambda: Fraction(1))
    """Rate of the validation, as a share of the rate under test."""
    beta: Share = Field(default_factory=lambda: Fraction(1, 5))
    """Share of the safe rate below which the exponential search takes the table for full; below 100 %."""
    gamma: Share = Field(default_factory=lambda: Fraction(2, 5))
    """The same in the final binary search."""

    @property
    def is_open_ended(self) -> bool:
        return self.maximum_rate is None

    @property
    def validates(self) -> bool:
        """Check that connections are validated, or a gateway that evicts connections would have no capacity."""
        return True

    @property
    def first_count(self) -> int:
        """Return the number of connections with which the search begins."""
        return self.start

    @property
    def largest_count(self) -> int | None:
        return self.maximum

    def problems(self, campaign: CampaignFile) -> Iterator[Problem]:
        """Check that shares, sizes and rates leave something to search."""
        for key in ("beta", "gamma"):
            if getattr(self, key) == 1:
                yield problem(
                    campaign,
                    f"{self.key}.{key}",
                    "is 100%: any lower rate would count as a full table",
                    "write a share below 100% (RFC 9693 section 4.9)",
                )
        if self.resolution >= self.start:
            yield problem(
                campaign,
                f"{self.key}.resolution",
                "is not below start, so nothing would be searched",
                "write a smaller error",
            )
        if self.maximum is not None and self.maximum <= self.start:
            fix = "write a larger number, or leave it out"
            yield problem(campaign, f"{self.key}.maximum", "is not above start", fix)
        if is_too_coarse(self.rate_resolution, self.maximum_rate):
            yield problem(
                campaign,
                f"{self.key}.rate_resolution",
                "is not below maximum_rate, so no rate would be searched",
                'write for example rate_resolution = "1%" of the maximum',
            )

    def stateful_problems(self, campaign: Campaign) -> Iterator[Problem]:
        """Check that the four-tuples, the public endpoints and the gateway's table allow the sizes."""
        if campaign.bed.has_gateway and not campaign.forwarding.pool:
            return
        size = campaign.gateway.table.size
        limits = (
            ("start", self.start, storable_max(campaign, self.start)),
            ("maximum", self.maximum, searched_max(campaign)),
        )
        for key, value, most in limits:
            if value is not None and value > most:
                yield problem(
                    campaign,
                    f"{self.key}.{key}",
                    f"is {value}, but four-tuples and public endpoints allow {most} connections",
                    "write a smaller number, or widen connections.source_ports, destination_ports, hosts or"
                    " gateway.pool",
                )
        if size is not None and self.start > size:
            yield problem(
                campaign,
                f"{self.key}.start",
                f"is {self.start}, more than the gateway's table of {size} can hold",
                "write a number that it certainly holds (RFC 9693 section 4.9)",
            )
