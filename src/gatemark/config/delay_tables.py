"""The tables of a campaign file for delays, bursts, recovery and reset, as frozen models."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, StrictInt

from gatemark.config import defaults
from gatemark.config.load_types import BurstResolution, FrameCount, LoadOfThroughput, ShareOfThroughput
from gatemark.config.table import Table
from gatemark.config.types import AsList, DelayMetric, Duration, PositiveDuration


class DelayModel(Table):
    """Latency, packet delay variation and inter packet delay variation (RFC 8219 sections 7.2 and 7.3)."""

    metrics: Annotated[tuple[DelayMetric, ...], AsList] = Field(
        ("latency", "pdv", "ipdv"), min_length=1, description="what is measured; all of it in the same trials"
    )
    load: Annotated[tuple[LoadOfThroughput, ...], AsList] = Field(
        default_factory=lambda: (Fraction(1),),
        min_length=1,
        description="loads: frames/s per direction, or % of the throughput that the campaign measures",
    )
    duration_ns: PositiveDuration | None = Field(
        None, alias="duration", description="sending time, default 120s with latency and 60s without"
    )
    first_tag_ns: Duration = Field(
        defaults.FIRST_TAG_NS, alias="first_tag", description="latency: when frames begin to be tagged"
    )
    tags: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = Field(
        defaults.TAGS, description="latency: tagged frames of each direction"
    )

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


class BackToBackModel(Table):
    """Back-to-back frames (RFC 2544 section 26.4, RFC 9004)."""

    ceiling_ns: PositiveDuration = Field(
        defaults.BURST_CEILING_NS, alias="ceiling", description="longest burst, as its time at line rate"
    )
    resolution: BurstResolution = Field(
        default_factory=lambda: Fraction(1, 100), description="gap at which to stop, in frames or % of the ceiling"
    )
    bursts: Annotated[StrictInt, Field(ge=1, le=10_000)] = Field(
        defaults.BURSTS, description="how often the search is repeated (RFC 2544 section 26.4)"
    )
    wait_ns: PositiveDuration = Field(
        defaults.BURST_WAIT_NS, alias="wait", description="wait for the frames of a burst after its end"
    )
    search: Literal["binary", "loss_verification"] = Field(
        "binary", description="halving, or halving in which a loss must happen twice (RFC 9004 section 6.2)"
    )


class SystemRecoveryModel(Table):
    """System recovery (RFC 2544 section 26.5)."""

    overload: ShareOfThroughput = Field(
        default_factory=lambda: defaults.OVERLOAD, description="first load as a share of the throughput"
    )
    duration_ns: PositiveDuration = Field(
        defaults.TRIAL_DURATION_NS, alias="duration", description="sending time of the overload"
    )
    observe_ns: PositiveDuration = Field(
        defaults.OBSERVE_NS, alias="observe", description="sending time of half that load after it"
    )
    load: FrameCount | None = Field(
        None, description="frames/s per direction in place of the throughput that the campaign measures"
    )


class ResetModel(Table):
    """Reset (RFC 2544 section 26.6, RFC 6201 section 4)."""

    kind: Literal["software"] = Field("software", description="what is reset: the gateway's software, by its action")
    before_ns: PositiveDuration = Field(
        defaults.BEFORE_RESET_NS, alias="before", description="sending time before the reset"
    )
    observe_ns: PositiveDuration = Field(
        defaults.OBSERVE_NS, alias="observe", description="sending time from the reset on"
    )
    load: FrameCount | None = Field(
        None, description="frames/s per direction in place of the throughput that the campaign measures"
    )
