"""What checks of a calibration may have seen: results of runs, without a gateway."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from gatemark.calibrate.checks import all_checks
from gatemark.calibrate.model import Check, SelfError
from gatemark.procedures.delay.result import (
    DelayPoint,
    DelayResult,
    DelaySeries,
    DelayVariation,
    Latency,
    PacketPairs,
)
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.results.part import Figure, LimitedBy
from gatemark.results.run import FrameSizes, Mix
from gatemark.results.search import SearchGoal
from gatemark.search.goal import SearchResult

SECOND = 1_000_000_000
SELF = SelfError(
    minimum_ns=3_000, median_ns=5_000, p90_ns=6_000, p999_ns=9_000, maximum_ns=20_000,
    variation_minimum_ns=-2_000, variation_maximum_ns=2_500,
)  # fmt: skip
RUN: dict[str, Any] = {
    "number": 1, "direction": "forward", "frame_sizes": FrameSizes(ipv4=64, ipv6=None), "mix": Mix(m=1, n=1),
    "theoretical_maximum": None, "connections": None, "zero_checksum": None, "trials": 1, "invalid_trials": 0,
}  # fmt: skip
GOAL = SearchGoal(
    search="binary", maximum=10**6, minimum=1, loss_tolerance=Fraction(0), search_duration_ns=SECOND, duration_ns=SECOND
)
PATH = {
    "minimum": 3_000, "p50": 5_000, "p90": 6_000, "p99": 7_000, "p99.9": 9_000, "p99.99": 7_000, "p99.999": 7_000,
    "maximum": 20_000,
}  # fmt: skip
"""Delays of the Tester's own path."""


def throughput(lower: int, limited_by: LimitedBy = "gateway") -> ThroughputResult:
    search = SearchResult(
        kind="found", lower_bound=lower, upper_bound=lower + 100, resolution=100, highest_load=lower + 100
    )
    return ThroughputResult(**RUN, limited_by=limited_by, goal=GOAL, repetitions=(search,))


def throughput_check() -> Check:
    return next(check for check in all_checks() if check.procedure == "throughput")


def delays(
    delays_ns: Mapping[str, int] = PATH,
    *,
    typical_ns: int | None = None,
    worst_case_ns: int | None = None,
    pdv_ns: int | None = None,
) -> DelayResult:
    """Delays of one repetition; the latency and its variation are not measured unless they are given."""
    latency, pdv = None, None
    if typical_ns is not None and worst_case_ns is not None:
        latency = Latency(
            first_tag_ns=0, tags=(100,), tags_lost=(0,), typical_ns=figure(typical_ns),
            worst_case_ns=figure(worst_case_ns),
        )  # fmt: skip
    if pdv_ns is not None:
        pdv = DelayVariation(pdv_ns=figure(pdv_ns), p999_offered_ns=figure(pdv_ns + delays_ns["minimum"]))
    pairs = PacketPairs(
        minimum_ns=figure(-2_000), median_ns=figure(0), maximum_ns=figure(2_500), pairs=(99,), skipped=(0,),
        histogram=(),
    )  # fmt: skip
    series = DelaySeries(
        direction="forward", class_="foreground", offered=(100,), undelivered=(0,), samples=(100,), negative=(0,),
        lateness_max_ns=(0,), delay_ns={key: figure(ns) for key, ns in delays_ns.items()},
        latency=latency, pdv=pdv, ipdv=pairs, hdr="",
    )  # fmt: skip
    point = DelayPoint(
        frames_per_second=5_000, share=None, throughput=None, throughput_limited_by=None, repetitions=1,
        tester_limited=0, series=(series,),
    )  # fmt: skip
    return DelayResult(**RUN, limited_by="gateway", duration_ns=SECOND, points=(point,))


def figure(ns: int) -> Figure:
    return Figure.of([ns])
