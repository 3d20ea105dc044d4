"""The table [throughput] of the campaign file (RFC 2544 section 26.1, RFC 8219 section 7.1)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Literal, Self

from pydantic import Field

from gatemark.config import defaults
from gatemark.config.check import interval_problems
from gatemark.config.model import CampaignFile, PassRule, ProcedureTable
from gatemark.config.types import FrameRate, LossRatio, PositiveDuration
from gatemark.errors import Problem
from gatemark.procedures.assumed import ASSUMED_BUFFER_NS
from gatemark.procedures.checks import search_duration_problems, with_search_duration
from gatemark.units import LineShare, format_duration_ns


class ThroughputTable(ProcedureTable):
    """Throughput (RFC 2544 section 26.1, RFC 8219 section 7.1)."""

    key = "throughput"
    purpose = "measure throughput"
    lets_flows_start_apart = True
    reads = frozenset({"trial"})
    finds_frame_rate = True

    search: Literal["binary", "mlrsearch"] = "binary"
    """Halving, or MLRsearch (RFC 9971)."""
    maximum: FrameRate | None = None
    """Highest load; it is tried first. Default: `"100%"`; without a line rate it is found."""
    expected: FrameRate | None = None
    """Result that is expected: the search begins at 1.5 times it."""
    minimum: FrameRate = 1
    """Lowest load tried."""
    resolution: FrameRate = Field(default_factory=lambda: LineShare(1, 1000))
    """Distance of the bounds at which the search ends; a share is one of the maximum, given or found."""
    loss_tolerance: LossRatio = Field(default_factory=lambda: Fraction(0))
    """Loss ratio of each direction and class that still passes. Above 0 the result is not a throughput (RFC 1242
    section 3.17)."""
    search_duration_ns: PositiveDuration = Field(defaults.SEARCH_DURATION_NS, alias="search_duration")
    """Sending time while searching, at most `trial.duration`. The result is confirmed with `trial.duration` (RFC 2544
    section 24)."""
    frame_timeout_ns: PositiveDuration | None = Field(None, alias="frame_timeout")
    """A correct frame that takes longer counts as lost. Default: a frame may take until the end of the drain wait."""

    @property
    def is_open_ended(self) -> bool:
        return self.maximum is None

    @property
    def pass_rule(self) -> PassRule:
        return PassRule(loss_tolerance=self.loss_tolerance, frame_timeout_ns=self.frame_timeout_ns)

    def phase_two_ns(self, campaign: CampaignFile) -> int:
        """Return the sending time of the trials that confirm the result."""
        return campaign.trial.duration_ns

    def estimate_assumptions(self) -> Iterator[str]:
        """Say which gateways MLRsearch is estimated for."""
        if self.search == "mlrsearch":
            kept = format_duration_ns(ASSUMED_BUFFER_NS)
            yield f"at most, if the gateway keeps no more than {kept} of frames; MLRsearch needs longer for others"

    def completed(self, campaign: CampaignFile) -> Self:
        """Search with trials no longer than those that confirm the result."""
        return with_search_duration(self, campaign)

    def problems(self, campaign: CampaignFile) -> Iterator[Problem]:
        """Check that bounds are in order, the resolution is below the maximum and search trials are not too long."""
        yield from interval_problems(
            campaign, self.key, minimum=self.minimum, maximum=self.maximum, resolution=self.resolution
        )
        yield from search_duration_problems(campaign, self.key, self.search_duration_ns)
