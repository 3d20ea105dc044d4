"""The table [delay] of the campaign file: latency and delay variation (RFC 8219 sections 7.2 and 7.3)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Self

from pydantic import Field, StrictInt

from gatemark.config import defaults
from gatemark.config.load_types import LoadOfThroughput
from gatemark.config.model import CampaignFile, ProcedureTable
from gatemark.config.only import With
from gatemark.config.problems import listed_twice, problem
from gatemark.config.types import AsList, DelayMetric, Duration, PositiveDuration
from gatemark.errors import Problem
from gatemark.units import format_duration_ns, format_ratio, frames_before, frames_in

TAGGED = With(
    key="metrics",
    holds=lambda metrics: "latency" in metrics,
    write='"latency" in metrics',
    lack="nothing else has tagged frames",
)


class DelayTable(ProcedureTable):
    """Latency, packet delay variation and inter packet delay variation (RFC 8219 sections 7.2 and 7.3)."""

    key = "delay"
    purpose = "measure latency and delay variation"
    lets_flows_start_apart = True
    reads_frame_rate = True
    measures_delays = True

    metrics: Annotated[tuple[DelayMetric, ...], AsList] = Field(("latency", "pdv", "ipdv"), min_length=1)
    """What is measured, all of it in the same trials."""
    load: Annotated[tuple[LoadOfThroughput, ...], AsList] = Field(default_factory=lambda: (Fraction(1),), min_length=1)
    """Loads: all rates, or all shares of the throughput. That is the lowest one that any repetition of the same
    campaign found with the same traffic."""
    duration_ns: PositiveDuration | None = Field(None, alias="duration")
    """Sending time. Default: 120 s with latency, else 60 s."""
    first_tag_ns: Annotated[Duration, TAGGED] = Field(defaults.FIRST_TAG_NS, alias="first_tag")
    """When frames begin to be tagged, below `duration`."""
    tags: Annotated[StrictInt, Field(ge=1, le=1_000_000), TAGGED] = defaults.TAGS
    """Tagged frames of each direction, evenly spread over the rest of the trial. With fewer than 1000 a single lost one
    makes the worst case latency unknown."""

    @property
    def has_latency(self) -> bool:
        """Whether frames are tagged."""
        return "latency" in self.metrics

    @property
    def sending_ns(self) -> int:
        """Return the sending time: as the file says, else as RFC 8219 sections 7.2 and 7.3 do."""
        if self.duration_ns is not None:
            return self.duration_ns
        return defaults.LATENCY_DURATION_NS if self.has_latency else defaults.TRIAL_DURATION_NS

    def phase_two_ns(self, campaign: CampaignFile) -> int:
        """Return the sending time of its trials."""
        return self.sending_ns

    def completed(self, campaign: CampaignFile) -> Self:
        """Fill in the sending time."""
        return self.model_copy(update={"duration_ns": self.sending_ns})

    def problems(self, campaign: CampaignFile) -> Iterator[Problem]:
        """Check that loads can be known and tags fit."""
        yield from listed_twice(campaign, "delay.metrics", self.metrics, "value")
        yield from listed_twice(campaign, "delay.load", self.load, "value")
        shares = [load for load in self.load if isinstance(load, Fraction)]
        if shares and len(shares) < len(self.load):
            yield problem(
                campaign,
                "delay.load",
                "mixes shares of the throughput and frames/s",
                "write either: without a throughput there would be no load for the shares",
            )
        elif shares and not campaign.finds_frame_rate:
            yield problem(
                campaign,
                "delay.load",
                f"is {format_ratio(shares[0])} of a throughput that is not measured",
                f"add a table [{campaign.frame_rate_key}], or write loads in frames/s",
            )
        if self.has_latency:
            yield from self._tag_problems(campaign)

    def _tag_problems(self, campaign: CampaignFile) -> Iterator[Problem]:
        """Check that the first tag is within the trial, and that a known load has frames for all tags."""
        if self.first_tag_ns >= self.sending_ns:
            yield problem(
                campaign,
                "delay.first_tag",
                f"is {format_duration_ns(self.first_tag_ns)}, but frames are sent for"
                f" {format_duration_ns(self.sending_ns)} only",
                "write a time below delay.duration",
            )
            return
        for load in self.load:
            if isinstance(load, Fraction):
                continue
            room = frames_in(load, self.sending_ns) - frames_before(load, self.first_tag_ns)
            if room < self.tags:
                yield problem(
                    campaign,
                    "delay.tags",
                    f"is {self.tags}, but {load} frames/s have {max(0, room)} frames after the first tag",
                    f"write at most {room}, a longer delay.duration or a higher load" if room > 0 else "raise the load",
                )
