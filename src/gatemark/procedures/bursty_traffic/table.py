"""The table [bursty_traffic] of the campaign file (RFC 2544 section 21)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Self

from pydantic import Field, StrictInt

from gatemark.config import defaults
from gatemark.config.model import CampaignFile, ProcedureTable
from gatemark.config.problems import listed_twice, problem
from gatemark.config.types import FrameRate, PositiveDuration
from gatemark.errors import Problem
from gatemark.procedures.checks import search_duration_problems, with_search_duration
from gatemark.units import LineShare

BURST_FRAMES = (16, 64, 256, 1024)
"""Frames of each burst (RFC 2544 section 21)."""

BURST_FRAMES_MAX = 1_000_000


class BurstyTrafficTable(ProcedureTable):
    """Bursty traffic (RFC 2544 section 21)."""

    key = "bursty_traffic"
    purpose = "measure the smallest gap between bursts without loss"
    reads = frozenset({"trial"})
    needs_line_rate = True

    frames: tuple[Annotated[StrictInt, Field(ge=2, le=BURST_FRAMES_MAX)], ...] = Field(BURST_FRAMES, min_length=1)
    """Frames of each burst; one search for each."""
    resolution: FrameRate = Field(default_factory=lambda: LineShare(1, 1000))
    """Distance of the loads at which a search ends, below the line rate."""
    search_duration_ns: PositiveDuration = Field(defaults.SEARCH_DURATION_NS, alias="search_duration")
    """Sending time while searching; the result is confirmed with `trial.duration`. Default: `"1s"`, or `trial.duration`
    if that is shorter."""

    def phase_two_ns(self, campaign: CampaignFile) -> int:
        """Return the sending time of the trials that confirm the result."""
        return campaign.trial.duration_ns

    def completed(self, campaign: CampaignFile) -> Self:
        """Search with trials no longer than those that confirm the result."""
        return with_search_duration(self, campaign)

    def problems(self, campaign: CampaignFile) -> Iterator[Problem]:
        """Check that no burst is listed twice, the resolution is below the line rate and search trials are short."""
        yield from listed_twice(campaign, "bursty_traffic.frames", self.frames, "number")
        if isinstance(self.resolution, LineShare) and self.resolution >= Fraction(1):
            yield problem(
                campaign,
                "bursty_traffic.resolution",
                "is as large as the line rate, so nothing would be searched",
                'write for example resolution = "0.1%"',
            )
        yield from search_duration_problems(campaign, self.key, self.search_duration_ns)
