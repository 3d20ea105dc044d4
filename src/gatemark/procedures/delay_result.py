"""Delays of a run: one value for each repetition; summaries derive from them. All times are nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from gatemark.stats.summary import Summary, summarise
from gatemark.trial.delay import Histogram

LimitedBy = Literal["gateway", "tester", "maximum"]

COUNTS = ("offered", "lost", "samples", "negative", "impossible", "lateness_max_ns")
DELAYS = ("minimum_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "p9999_ns", "p99999_ns", "maximum_ns")
LATENCY = ("tags", "tags_lost", "typical_latency_ns", "worst_case_latency_ns")
PDV = ("pdv_ns",)
IPDV = ("ipdv_minimum_ns", "ipdv_median_ns", "ipdv_maximum_ns", "ipdv_pairs", "ipdv_skipped")
SUMMARISED = (*DELAYS, *LATENCY[2:], *PDV, *IPDV[:3])
"""Values that have a summary over the repetitions."""

_PER_REPETITION = (*COUNTS, *DELAYS, *LATENCY, *PDV, *IPDV)


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
        """Summarise one of `SUMMARISED` over the repetitions; None if it is not known of every one of them."""
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

    def to_json(self) -> dict[str, Any]:
        """Return it as result.json holds it; `summaries` are derived and for readers only."""
        summaries = {name: self.summary(name) for name in SUMMARISED}
        return {
            "direction": self.direction,
            "class": self.kind,
            **{name: list(getattr(self, name)) for name in _PER_REPETITION},
            "histogram": [list(bucket) for bucket in self.histogram],
            "ipdv_histogram": [list(bucket) for bucket in self.ipdv_histogram],
            "hdr": self.hdr,
            "summaries": {name: None if found is None else found.to_json() for name, found in summaries.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DelaySeries:
        """Read what `to_json` wrote."""
        return cls(
            direction=data["direction"],
            kind=data["class"],
            **{name: tuple(data[name]) for name in _PER_REPETITION},
            histogram=_pairs(data["histogram"]),
            ipdv_histogram=_pairs(data["ipdv_histogram"]),
            hdr=data["hdr"],
        )


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

    def to_json(self) -> dict[str, Any]:
        """Return it as result.json holds it."""
        share = self.share
        return {
            "frames_per_second": self.frames_per_second,
            "share": None if share is None else {"numerator": share.numerator, "denominator": share.denominator},
            "throughput": self.throughput,
            "throughput_limited_by": self.throughput_limited_by,
            "measured": self.measured,
            "tester_limited": self.tester_limited,
            "series": [one.to_json() for one in self.series],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DelayPoint:
        """Read what `to_json` wrote."""
        share = data["share"]
        plain = ("frames_per_second", "throughput", "throughput_limited_by", "measured", "tester_limited")
        return cls(
            **{name: data[name] for name in plain},
            share=None if share is None else Fraction(share["numerator"], share["denominator"]),
            series=tuple(DelaySeries.from_json(one) for one in data["series"]),
        )


def _pairs(data: Sequence[Sequence[int]]) -> Histogram:
    return tuple((ns, count) for ns, count in data)
