"""The table [frame_loss] of the campaign file (RFC 2544 section 26.3)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated

from pydantic import Field

from gatemark.config.model import CampaignFile, ProcedureTable
from gatemark.config.only import With
from gatemark.config.problems import listed_twice
from gatemark.config.types import FrameRate, Step
from gatemark.errors import Problem

STEPPED = With(key="rates", holds=lambda rates: rates is None, lack="these are all loads")


class FrameLossTable(ProcedureTable):
    """Frame loss rate (RFC 2544 section 26.3)."""

    key = "frame_loss"
    purpose = "measure the frame loss rate"
    lets_flows_start_apart = True

    rates: tuple[FrameRate, ...] | None = Field(None, min_length=1)
    """Loads to be measured, all of them."""
    maximum: Annotated[FrameRate | None, STEPPED] = None
    """First load. Default: `"100%"`; without a line rate twice the throughput of the campaign."""
    step: Annotated[Step, STEPPED] = Field(default_factory=lambda: Fraction(1, 10))
    """Step from each load to the next lower one, as a share of `maximum`, until two successive trials without loss (RFC
    2544 section 26.3)."""

    def phase_two_ns(self, campaign: CampaignFile) -> int:
        """Return the sending time of its trials."""
        return campaign.trial.duration_ns

    def problems(self, campaign: CampaignFile) -> Iterator[Problem]:
        """Check that no load is listed twice."""
        yield from listed_twice(campaign, "frame_loss.rates", self.rates or (), "rate")
