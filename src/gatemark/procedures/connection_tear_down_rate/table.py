"""The table [connection_tear_down_rate] of the campaign file (RFC 9693 section 4.8)."""

from __future__ import annotations

from collections.abc import Iterator

from gatemark.config.complete_stateful import action_problems
from gatemark.config.model import Campaign, ProcedureTable
from gatemark.config.only import STATEFUL, WITH_GATEWAY
from gatemark.errors import Problem


class ConnectionTearDownRateTable(ProcedureTable):
    """Connection tear-down rate (RFC 9693 section 4.8): net time of deleting all connections."""

    key = "connection_tear_down_rate"
    purpose = "measure the connection tear-down rate"
    only = (STATEFUL, WITH_GATEWAY)

    def stateful_problems(self, campaign: Campaign) -> Iterator[Problem]:
        """Check that the gateway has a command that can be timed."""
        if campaign.bed.has_gateway:
            yield from action_problems(campaign, "tear_down", f"{self.key} times this command (RFC 9693 section 4.8)")
