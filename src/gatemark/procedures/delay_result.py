"""Delays of a run: one value for each repetition; summaries derive from them. All times are nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from gatemark.stats.summary import Summary, summarise
from gatemark.trial.delay import Histogram

LimitedBy = Literal["gateway", "tester", "maximum"]

DELAYS = ("minimum_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "p9999_ns", "p99999_ns", "maximum_ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class DelaySeries:
    """Delays of one class of frames in one direction at one load; one value for each valid repetition.

    A value that could not be measured in a repetition is None. The values of a metric that was not asked for are
    missing altogether: the tuple is empty.
    """

    direction: str
    """``forward`` or ``reverse``."""
    kind: str
    """``foreground`` or ``background`` (RFC 8219 section 5.3)."""
    offered: tuple[int, ...]
    lost: tuple[int, ...]
    """Frames lost, faulty or late: they have no delay."""
    samples: tuple[int, ...]
    """Frames with a delay of 0 or more."""
    negative: tuple[int, ...]
    """Frames that seem to have arrived before they were sent: an error of the clock, in no figure."""
    impossible: tuple[int, ...]
    """Frames with a delay longer than the trial has lasted, by a damaged time stamp: in no figure."""
    lateness_max_ns: tuple[int, ...]
    """How late the Tester sent a burst of this direction at most: its own error."""
    minimum_ns: tuple[int | None, ...]
    """Exact."""
    p50_ns: tuple[int | None, ...]
    """This and the following percentiles are those of the samples (RFC 2330 section 11.3)."""
    p90_ns: tuple[int | None, ...]
    p99_ns: tuple[int | None, ...]
    p999_ns: tuple[int | None, ...]
    """99.9 %."""
    p9999_ns: tuple[int | None, ...]
    """99.99 %."""
    p99999_ns: tuple[int | None, ...]
    """99.999 %."""
    maximum_ns: tuple[int | None, ...]
    """Exact."""
    tags: tuple[int, ...] = ()
    """Tagged frames (RFC 8219 section 7.2)."""
    tags_lost: tuple[int, ...] = ()
    """Tagged frames without a delay: lost, faulty, late or negative."""
    typical_latency_ns: tuple[int | None, ...] = ()
    """Median over all tags (RFC 8219 section 7.2); None where it falls on a lost one."""
    worst_case_latency_ns: tuple[int | None, ...] = ()
    """99.9th percentile over all tags (RFC 8219 section 7.2); None where it falls on a lost one."""
    pdv_ns: tuple[int | None, ...] = ()
    """D(99.9 %) - D(minimum) (RFC 8219 section 7.3.1) over all frames offered; a frame without a delay ranks above all
    others. None where the percentile falls on such a frame."""
    ipdv_minimum_ns: tuple[int | None, ...] = ()
    """Of the delay of each frame less that of the frame before it (RFC 8219 section 7.3.2)."""
    ipdv_median_ns: tuple[int | None, ...] = ()
    ipdv_maximum_ns: tuple[int | None, ...] = ()
    ipdv_pairs: tuple[int, ...] = ()
    """Successive frames that both have a delay."""
    ipdv_skipped: tuple[int, ...] = ()
    """Successive frames of which one has none."""
    histogram: Histogram = ()
    """Delays of the first valid repetition."""
    ipdv_histogram: Histogram = ()
    """Delay variation of the first valid repetition."""
    hdr: str = ""
    """`histogram` as an HdrHistogram string (V2, compressed, base64), in nanoseconds with three digits."""

    def summary(self, name: str) -> Summary | None:
        """Summarise a value over the repetitions; None if it is not known of every one of them."""
        values: tuple[int | None, ...] = getattr(self, name)
        known = [value for value in values if value is not None]
        return summarise(known) if known and len(known) == len(values) else None

    @property
    def typical_latency(self) -> Summary | None:
        """Typical latency TL over the repetitions."""
        return self.summary("typical_latency_ns")

    @property
    def worst_case_latency(self) -> Summary | None:
        """Worst case latency WCL over the repetitions."""
        return self.summary("worst_case_latency_ns")

    @property
    def pdv(self) -> Summary | None:
        """Packet delay variation over the repetitions."""
        return self.summary("pdv_ns")

    @property
    def ipdv_minimum(self) -> Summary | None:
        """Smallest inter packet delay variation over the repetitions."""
        return self.summary("ipdv_minimum_ns")

    @property
    def ipdv_median(self) -> Summary | None:
        """Median of the inter packet delay variation over the repetitions."""
        return self.summary("ipdv_median_ns")

    @property
    def ipdv_maximum(self) -> Summary | None:
        """Largest inter packet delay variation over the repetitions."""
        return self.summary("ipdv_maximum_ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayPoint:
    """Delays at one load."""

    frames_per_second: int
    """Intended load of each direction."""
    share: Fraction | None
    """Share of the throughput that this load is; None where the campaign names frames per second."""
    throughput: int | None = None
    """Throughput of which the share was taken: the lowest that any repetition with the same traffic found, frames/s."""
    throughput_limited_by: LimitedBy | None = None
    """What limited that throughput; unless it is the gateway, the gateway may do more than that."""
    measured: int
    """Repetitions with a valid trial."""
    tester_limited: int
    """Repetitions in which the Tester could not offer the load validly: nothing is known of their delays."""
    series: tuple[DelaySeries, ...]

    @property
    def measurable(self) -> bool:
        """Whether anything is known of the gateway at this load."""
        return self.measured > 0
