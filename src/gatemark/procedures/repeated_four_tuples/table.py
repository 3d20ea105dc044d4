"""The table [repeated_four_tuples] of the campaign file."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from gatemark.config.check import interval_problems
from gatemark.config.model import Campaign, CampaignFile, ProcedureTable
from gatemark.config.only import STATEFUL
from gatemark.config.stateful import time_needed_ns
from gatemark.config.types import Count, FrameRate
from gatemark.errors import Problem
from gatemark.units import LineShare


class RepeatedFourTuplesTable(ProcedureTable):
    """Frame rate of test phase 1 with four-tuples drawn at random, so that some come again and some never."""

    key = "repeated_four_tuples"
    purpose = "measure the rate of frames whose four-tuples are drawn at random and repeat"
    only = (STATEFUL,)
    begins_with_full_table = False

    frames: Count
    """F: frames of each trial."""
    maximum: FrameRate | None = None
    """Highest rate, frames/s; it is tried first. Default: `"100%"`; without a line rate it is found as for the
    throughput."""
    minimum: FrameRate = 1
    """Lowest rate tried; none is so low that connections expire during the trial."""
    resolution: FrameRate = Field(default_factory=lambda: LineShare(1, 1000))
    """Distance of the bounds at which the search ends; a share is one of the maximum, given or found."""

    @property
    def is_open_ended(self) -> bool:
        return self.maximum is None

    @property
    def expected(self) -> None:
        """No result is expected near which the search could begin."""

    def lifetimes(self, campaign: Campaign, count: int) -> Iterator[tuple[int, str]]:
        """Yield how long connections must live at the highest rate: the first frame's until the last one is sent."""
        del count
        if isinstance(self.maximum, int):
            reason = f"{self.frames} frames at the highest rate, {self.maximum} frames/s"
            yield time_needed_ns(campaign, self.frames, self.maximum, 0), reason

    def problems(self, campaign: CampaignFile) -> Iterator[Problem]:
        """Check that bounds are in order."""
        yield from interval_problems(
            campaign, self.key, minimum=self.minimum, maximum=self.maximum, resolution=self.resolution
        )
