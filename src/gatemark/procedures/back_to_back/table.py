"""The table [back_to_back] of the campaign file (RFC 2544 section 26.4, RFC 9004)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, StrictInt

from gatemark.config import defaults
from gatemark.config.load_types import BurstResolution
from gatemark.config.model import CampaignFile, ProcedureTable
from gatemark.config.problems import problem
from gatemark.config.types import PositiveDuration
from gatemark.errors import Problem


class BackToBackTable(ProcedureTable):
    """Back-to-back frames (RFC 2544 section 26.4, RFC 9004)."""

    key = "back_to_back"
    purpose = "measure back-to-back frames"
    reads_frame_rate = True
    needs_line_rate = True

    ceiling_ns: PositiveDuration = Field(defaults.BURST_CEILING_NS, alias="ceiling")
    """Longest burst, as its time at line rate (RFC 9004 section 6.2)."""
    resolution: BurstResolution = Field(default_factory=lambda: Fraction(1, 100))
    """Distance of the bounds at which a search ends; a share is one of the burst that passed."""
    bursts: Annotated[StrictInt, Field(ge=1, le=10_000)] = defaults.BURSTS
    """How often the search is repeated (RFC 2544 section 26.4), instead of `repetitions`."""
    wait_ns: PositiveDuration = Field(defaults.BURST_WAIT_NS, alias="wait")
    """Wait for the frames of a burst after its end, instead of `trial.drain`."""
    search: Literal["binary", "loss_verification"] = "binary"
    """Halving; or halving in which a burst fails only if it loses frames twice (RFC 9004 section 6.2)."""

    def repetitions(self, campaign: CampaignFile) -> int:
        """Return how often the search is repeated."""
        return self.bursts

    def phase_two_ns(self, campaign: CampaignFile) -> int:
        """Return the sending time of the longest burst."""
        return self.ceiling_ns

    def problems(self, campaign: CampaignFile) -> Iterator[Problem]:
        """Check that the throughput is measured: a longest burst exists only if the line carries more than passes."""
        if not campaign.finds_frame_rate:
            yield problem(
                campaign,
                "back_to_back",
                "needs the throughput: it is measured where that is below the line rate (RFC 9004 section 6.1)",
                f"add a table [{campaign.frame_rate_key}]",
            )
