"""Latency, packet delay variation and inter packet delay variation (RFC 8219 sections 7.2 and 7.3), load by load.

All of them come from the same trials. The percentiles are those of each repetition; they are never merged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gatemark.config.types import DelayMetric
from gatemark.procedures.delay_result import DelayPoint, DelaySeries, LimitedBy
from gatemark.procedures.measured import Measured
from gatemark.stats.hdr import hdr_string
from gatemark.trial.delay import TagFacts, VariationFacts, percentile_ns
from gatemark.trial.report import Counts, TrialReport

PDV_PER_100000 = 99_900
"""RFC 8219 section 7.3.1: the 99.9th percentile."""

PERCENTILES: Mapping[str, int] = {
    "p50_ns": 50_000,
    "p90_ns": 90_000,
    "p99_ns": 99_000,
    "p999_ns": 99_900,
    "p9999_ns": 99_990,
    "p99999_ns": 99_999,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayLoad:
    """A load at which delays are measured, and where it comes from."""

    frames_per_second: int
    """Of each direction."""
    share: Fraction | None = None
    """Share of `throughput`; None where the campaign names frames per second."""
    throughput: int | None = None
    """Frames/s."""
    throughput_limited_by: LimitedBy | None = None


def delay_point(load: DelayLoad, trials: Sequence[Measured], metrics: Collection[DelayMetric]) -> DelayPoint:
    """Gather the repetitions of one load.

    A repetition in which the Tester could not offer the load is counted, and has no delays.
    """
    reports = [trial.report for trial in trials if trial.report is not None]
    classes = dict.fromkeys((way, kind) for report in reports for way, kind, _ in report.counts())
    return DelayPoint(
        frames_per_second=load.frames_per_second,
        share=load.share,
        throughput=load.throughput,
        throughput_limited_by=load.throughput_limited_by,
        measured=len(reports),
        tester_limited=len(trials) - len(reports),
        series=tuple(_series(way, kind, reports, metrics) for way, kind in classes),
    )


def _series(direction: str, kind: str, reports: Sequence[TrialReport], metrics: Collection[DelayMetric]) -> DelaySeries:
    found = [
        (result.lateness_max_ns, counts)
        for report in reports
        for result in report.directions
        if result.direction == direction
        for name, counts in result.classes
        if name == kind
    ]
    counts = [own for _, own in found]
    first = counts[0].delay
    measured: dict[str, Any] = {
        **_delays(counts),
        **(_latency(counts) if "latency" in metrics else {}),
        **({"pdv_ns": tuple(_pdv_ns(own) for own in counts)} if "pdv" in metrics else {}),
        **(_ipdv(counts) if "ipdv" in metrics else {}),
    }
    return DelaySeries(
        direction=direction,
        kind=kind,
        offered=tuple(own.offered for own in counts),
        lost=tuple(own.undelivered for own in counts),
        lateness_max_ns=tuple(lateness_ns for lateness_ns, _ in found),
        **measured,
        histogram=first.histogram,
        ipdv_histogram=first.variation.histogram if first.variation is not None and "ipdv" in metrics else (),
        hdr=hdr_string(first.histogram),
    )


def _delays(counts: Sequence[Counts]) -> dict[str, Any]:
    plain = ("samples", "negative", "impossible", "minimum_ns", "maximum_ns")
    return {
        **{name: tuple(getattr(own.delay, name) for own in counts) for name in plain},
        **{name: tuple(own.delay.percentile_ns(rank) for own in counts) for name, rank in PERCENTILES.items()},
    }


def _latency(counts: Sequence[Counts]) -> dict[str, Any]:
    """Typical and worst case latency (RFC 8219 section 7.2); without a tag neither is known."""
    tags = [own.delay.tags or TagFacts(count=0, received=0, negative=0, median_ns=None, p999_ns=None) for own in counts]
    return {
        "tags": tuple(own.count for own in tags),
        "tags_lost": tuple(own.lost for own in tags),
        "typical_latency_ns": tuple(own.median_ns for own in tags),
        "worst_case_latency_ns": tuple(own.p999_ns for own in tags),
    }


def _pdv_ns(counts: Counts) -> int | None:
    """Return D(99.9 %) - D(minimum) of all frames offered (RFC 8219 section 7.3.1)."""
    delay = counts.delay
    high_ns = percentile_ns(delay.histogram, counts.offered, PDV_PER_100000)
    if high_ns is None or delay.minimum_ns is None or delay.maximum_ns is None:
        return None
    return min(max(high_ns, delay.minimum_ns), delay.maximum_ns) - delay.minimum_ns  # a bucket's middle may be outside


def _ipdv(counts: Sequence[Counts]) -> dict[str, Any]:
    nothing = VariationFacts(pairs=0, skipped=0, minimum_ns=None, median_ns=None, maximum_ns=None, histogram=())
    variations = [own.delay.variation or nothing for own in counts]
    return {
        "ipdv_minimum_ns": tuple(own.minimum_ns for own in variations),
        "ipdv_median_ns": tuple(own.median_ns for own in variations),
        "ipdv_maximum_ns": tuple(own.maximum_ns for own in variations),
        "ipdv_pairs": tuple(own.pairs for own in variations),
        "ipdv_skipped": tuple(own.skipped for own in variations),
    }
