"""Histograms as HdrHistogram strings, the format in which other tools exchange delays."""

from __future__ import annotations

from collections.abc import Iterable

from hdrh.histogram import HdrHistogram

SIGNIFICANT_FIGURES = 3
"""Values are kept within 0.1 %."""


def hdr_string(histogram: Iterable[tuple[int, int]]) -> str:
    """Return (nanoseconds, count) pairs as an HdrHistogram V2 string, compressed and in base64; empty without samples.

    Its unit is the nanosecond.
    """
    buckets = [(ns, count) for ns, count in histogram if count]
    if not buckets:
        return ""
    whole = HdrHistogram(1, max(2, *(ns for ns, _ in buckets)), SIGNIFICANT_FIGURES)
    for ns, count in buckets:
        whole.record_value(ns, count)
    return str(whole.encode().decode("ascii"))
