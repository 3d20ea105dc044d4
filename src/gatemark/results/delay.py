"""Builds the parts of `result.json` for latency and delay variation. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from gatemark.config.model import Campaign
from gatemark.procedures.delay_result import DELAYS, DelayPoint, DelaySeries
from gatemark.results.delay_parts import (
    DelayPointPart,
    DelaySeriesPart,
    DelayVariationPart,
    LatencyPart,
    PacketPairsPart,
    PercentilesPart,
)
from gatemark.results.parts import FigurePart

BUCKETS_PER_OCTAVE = 8
"""Of the published histogram of delay variation."""


def delay_point_part(campaign: Campaign, point: DelayPoint) -> DelayPointPart:
    """The published form of the delays at one load."""
    return DelayPointPart(
        frames_per_second=point.frames_per_second,
        share=None if point.share is None else str(point.share),
        throughput=point.throughput,
        throughput_limited_by=point.throughput_limited_by,
        repetitions=point.measured,
        tester_limited=point.tester_limited,
        series=tuple(_series(campaign, one) for one in point.series),
    )


def coarse(histogram: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Gather buckets into wider ones whose width grows with the distance from 0; sums and signs stay."""
    gathered: Counter[int] = Counter()
    for ns, count in histogram:
        gathered[_middle(ns)] += count
    return tuple(sorted(gathered.items()))


def _middle(ns: int) -> int:
    """Return the middle of the wide bucket that holds a value."""
    if not ns:
        return 0
    place = round(BUCKETS_PER_OCTAVE * math.log2(abs(ns)))
    return int(math.copysign(round(2 ** (place / BUCKETS_PER_OCTAVE)), ns))


def _series(campaign: Campaign, one: DelaySeries) -> DelaySeriesPart:
    return DelaySeriesPart.model_validate(
        {
            "direction": one.direction,
            "class": one.kind,
            "offered": sum(one.offered),
            "lost": sum(one.lost),
            "samples": sum(one.samples),
            "negative": sum(one.negative),
            "impossible": sum(one.impossible),
            "lateness_max_ns": max(one.lateness_max_ns, default=0),
            "delay": PercentilesPart(**{name: FigurePart.of(getattr(one, name)) for name in DELAYS}),
            "latency": _latency(campaign, one),
            "pdv": _pdv(one),
            "ipdv": _ipdv(one),
            "hdr": one.hdr,
        }
    )


def _latency(campaign: Campaign, one: DelaySeries) -> LatencyPart | None:
    if not one.tags or campaign.delay is None:
        return None
    return LatencyPart(
        first_tag_ns=campaign.delay.first_tag_ns,
        tags=one.tags,
        tags_lost=one.tags_lost,
        typical_ns=FigurePart.of(one.typical_latency_ns),
        worst_case_ns=FigurePart.of(one.worst_case_latency_ns),
    )


def _pdv(one: DelaySeries) -> DelayVariationPart | None:
    if not one.pdv_ns:
        return None
    return DelayVariationPart(
        pdv_ns=FigurePart.of(one.pdv_ns), p999_offered_ns=FigurePart.of(_sums(one.minimum_ns, one.pdv_ns))
    )


def _sums(first: Sequence[int | None], second: Sequence[int | None]) -> list[int | None]:
    pairs = zip(first, second, strict=True)
    return [None if one is None or other is None else one + other for one, other in pairs]


def _ipdv(one: DelaySeries) -> PacketPairsPart | None:
    if not one.ipdv_pairs:
        return None
    return PacketPairsPart(
        minimum_ns=FigurePart.of(one.ipdv_minimum_ns),
        median_ns=FigurePart.of(one.ipdv_median_ns),
        maximum_ns=FigurePart.of(one.ipdv_maximum_ns),
        pairs=sum(one.ipdv_pairs),
        skipped=sum(one.ipdv_skipped),
        histogram=coarse(one.ipdv_histogram),
    )
