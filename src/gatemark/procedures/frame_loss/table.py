"""The table [frame_loss] of the campaign file (RFC 2544 section 26.3)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from pydantic import Field

from gatemark.config.model import CampaignFile, ProcedureTable
from gatemark.config.problems import listed_twice, problem
from gatemark.config.types import FrameRate, Step
from gatemark.errors import Problem


class FrameLossTable(ProcedureTable):
    """Frame loss rate (RFC 2544 section 26.3)."""

    key = "frame_loss"
    purpose = "measure the frame loss rate"
    lets_flows_start_apart = True

    rates: tuple[FrameRate, ...] | None = Field(None, min_length=1)
    """Loads to be measured, all of them; in place of `maximum` and `step`."""
    maximum: FrameRate | None = None
    """First load. Default: `"100%"`; without a line rate twice the throughput of the campaign."""
    step: Step = Field(default_factory=lambda: Fraction(1, 10))
    """Step from each load to the next lower one, as a share of `maximum`, until two successive trials without loss (RFC
    2544 section 26.3)."""

    def phase_two_ns(self, campaign: CampaignFile) -> int:
        """Return the sending time of its trials."""
        return campaign.trial.duration_ns

    def left_out_of_documents(self) -> tuple[str, ...]:
        """Leave out what has no effect, and is refused, with a list of rates."""
        return () if self.rates is None else ("maximum", "step")

    def problems(self, campaign: CampaignFile) -> Iterator[Problem]:
        """Check that no key overrides another and no load is listed twice."""
        if self.rates is None:
            return
        for key in ("maximum", "step"):
            if key in self.model_fields_set:
                yield problem(
                    campaign,
                    f"frame_loss.{key}",
                    "has no effect together with frame_loss.rates",
                    "leave one of them out",
                )
        yield from listed_twice(campaign, "frame_loss.rates", self.rates, "rate")
