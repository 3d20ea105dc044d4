"""The table [conformity] of the campaign file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from gatemark.config import defaults
from gatemark.config.model import Campaign, CampaignFile, ProcedureTable
from gatemark.config.only import HAS_DUTIES, WITH_GATEWAY
from gatemark.config.problems import problem
from gatemark.config.types import AsList, PositiveDuration
from gatemark.errors import Problem
from gatemark.procedures.conformity.cases import cases_of, probes
from gatemark.procedures.conformity.result import CaseName
from gatemark.procedures.conformity.scenes import has_hosts

FRAMES_MAX = 100
FEW_CONNECTIONS = 10


class ConformityTable(ProcedureTable):
    """What a gateway does with packets that it must drop or deliver, or may treat as it likes (RFC 4787, RFC 5508, RFC
    5969, RFC 6146, RFC 6333, RFC 7596, RFC 7597, RFC 7599, RFC 7757, RFC 7915)."""

    key = "conformity"
    purpose = "see whether the gateway drops and delivers what it has to"
    only = (HAS_DUTIES, WITH_GATEWAY)
    begins_with_full_table = False
    sends_echo = True

    cases: Annotated[tuple[CaseName, ...], AsList] = ()
    """Which cases of the technology are tried. Default: all that the gateway has."""
    frames: Annotated[int, Field(strict=True, ge=1, le=FRAMES_MAX)] = 3
    """Frames of each case, and of each control."""
    interval_ns: PositiveDuration = Field(20 * defaults.MILLISECOND_NS, alias="interval")
    """From one frame of a side to the next."""
    timeout_ns: PositiveDuration = Field(defaults.SECOND_NS, alias="timeout")
    """How long to wait for answers after the last frame."""

    @property
    def first_count(self) -> int:
        """Return a few: its own packets need none, but a trial of its campaign does."""
        return FEW_CONNECTIONS

    def repetitions(self, campaign: CampaignFile) -> int:
        """Return 1: a case is decided by several frames, not by several runs."""
        del campaign
        return 1

    def complete_problems(self, campaign: Campaign) -> Iterator[Problem]:
        """Check that each case makes sense with the gateway's hosts or rules."""
        known, table = cases_of(campaign.technology), campaign.map
        if not known or campaign.roles.mesh or not campaign.bed.has_gateway or not has_hosts(campaign):
            return  # it has a problem of its own
        if table is not None and table.onlink and table.order == "pseudorandom" and table.edges is not None:
            yield problem(
                campaign,
                "map.order",
                "is pseudorandom: which customer edges are on the link is not known before the first frame",
                'write order = "increasing", or leave edges out',
            )
        applying = {probe.name for probe in probes(campaign)}
        for name in self.cases:
            if name not in applying:
                why = known[name].needs if name in known else f"{campaign.technology.name} has no such case"
                yield problem(campaign, f"{self.key}.cases", f"{name} does not apply here: {why}", "leave it out")
