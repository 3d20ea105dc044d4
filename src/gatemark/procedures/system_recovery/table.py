"""The table [system_recovery] of the campaign file (RFC 2544 section 26.5)."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from gatemark.config import defaults
from gatemark.config.load_types import FrameCount, ShareOfThroughput
from gatemark.config.model import CampaignFile, ProcedureTable
from gatemark.config.problems import problem
from gatemark.config.types import PositiveDuration
from gatemark.errors import Problem
from gatemark.procedures.checks import base_load_problems, length_problems
from gatemark.units import format_ratio


class SystemRecoveryTable(ProcedureTable):
    """System recovery (RFC 2544 section 26.5)."""

    key = "system_recovery"
    purpose = "measure the system recovery time"
    reads_frame_rate = True

    overload: ShareOfThroughput = Field(default_factory=lambda: defaults.OVERLOAD)
    """First load as a share of the throughput, above 100 %; never more than the line rate."""
    duration_ns: PositiveDuration = Field(defaults.TRIAL_DURATION_NS, alias="duration")
    """Sending time of the overload."""
    observe_ns: PositiveDuration = Field(defaults.OBSERVE_NS, alias="observe")
    """Sending time of half that load after it."""
    load: FrameCount | None = None
    """Load of which the overload is a share. Default: the throughput that the campaign found with the same traffic."""

    def phase_two_ns(self, campaign: CampaignFile) -> int:
        """Return the sending time of its trials."""
        return self.duration_ns + self.observe_ns

    def problems(self, campaign: CampaignFile) -> Iterator[Problem]:
        """Check that the overload is more than the throughput, and that the throughput is known."""
        yield from base_load_problems(campaign, self.key, self.load)
        if self.overload <= 1:
            yield problem(
                campaign,
                "system_recovery.overload",
                f"is {format_ratio(self.overload)} of the throughput, which is not an overload",
                "write more than 100% (RFC 2544 section 26.5 asks for 110%)",
            )
        yield from length_problems(campaign, self.key, self.phase_two_ns(campaign))
