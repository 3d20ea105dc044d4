"""The table [reset] of the campaign file (RFC 2544 section 26.6, RFC 6201 section 4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from gatemark.config import defaults
from gatemark.config.complete_stateful import add_to_recipe
from gatemark.config.load_types import FrameCount
from gatemark.config.model import Campaign, CampaignFile, ProcedureTable
from gatemark.config.only import WITH_GATEWAY
from gatemark.config.problems import problem
from gatemark.config.types import PositiveDuration
from gatemark.errors import Problem
from gatemark.procedures.checks import base_load_problems, length_problems


class ResetTable(ProcedureTable):
    """Reset (RFC 2544 section 26.6, RFC 6201 section 4)."""

    key = "reset"
    purpose = "measure the reset time"
    only = (WITH_GATEWAY,)
    reads = frozenset({"gateway", "testbed"})
    reads_frame_rate = True

    kind: Literal["software"] = "software"
    """What is reset: the gateway's software, by its command."""
    before_ns: PositiveDuration = Field(defaults.BEFORE_RESET_NS, alias="before")
    """Sending time before the reset."""
    observe_ns: PositiveDuration = Field(defaults.OBSERVE_NS, alias="observe")
    """Sending time from the reset on."""
    load: FrameCount | None = None
    """Load. Default: the throughput that the campaign found with the same traffic."""

    def phase_two_ns(self, campaign: CampaignFile) -> int:
        """Return the sending time of its trials."""
        return self.before_ns + self.observe_ns

    def problems(self, campaign: CampaignFile) -> Iterator[Problem]:
        """Check that the load is known, and that something resets the gateway."""
        yield from base_load_problems(campaign, self.key, self.load)
        yield from length_problems(campaign, self.key, self.phase_two_ns(campaign))
        control = campaign.gateway.control
        if campaign.bed.takes_control and (control is None or not control.reset):
            yield problem(
                campaign,
                "gateway.control.reset",
                "is missing: nothing resets the gateway",
                'write the commands that do, for example reset = "systemctl restart gateway"',
            )

    def complete_problems(self, campaign: Campaign) -> Iterator[Problem]:
        """Check that the recipe has the command."""
        if campaign.bed.has_recipe and "reset" not in campaign.control.actions:
            yield problem(
                campaign,
                "testbed.recipe",
                f"{campaign.testbed.recipe} has no command reset, which the table [reset] measures",
                add_to_recipe(campaign, "reset"),
            )
