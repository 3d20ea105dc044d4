"""Parts of `result.json` for latency and delay variation (RFC 8219 sections 7.2 and 7.3). Times are nanoseconds.

A figure has one value for each valid repetition. Its summary is null if the value is missing in any of them: then the
figure is not measurable, and `values` shows in how many repetitions.
"""

from __future__ import annotations

from typing import Literal

from gatemark.results.parts import FigurePart, Part


class PercentilesPart(Part):
    """Delays of all frames that came back correct and in time (RFC 2330 section 11.3), within 0.1 %."""

    minimum_ns: FigurePart
    """Exact."""
    p50_ns: FigurePart
    p90_ns: FigurePart
    p99_ns: FigurePart
    p999_ns: FigurePart
    """99.9 %."""
    p9999_ns: FigurePart
    """99.99 %."""
    p99999_ns: FigurePart
    """99.999 %."""
    maximum_ns: FigurePart
    """Exact."""


class LatencyPart(Part):
    """Typical and worst case latency of the tagged frames (RFC 8219 section 7.2)."""

    first_tag_ns: int
    """Frames are tagged from here on, counted from the start of sending."""
    tags: tuple[int, ...]
    """Tagged frames, one number for each repetition."""
    tags_lost: tuple[int, ...]
    """Tagged frames without a delay: lost, faulty, late or negative. They rank above every delay."""
    typical_ns: FigurePart
    """Median over all tags; null where it falls on a lost one."""
    worst_case_ns: FigurePart
    """99.9th percentile over all tags; null where it falls on a lost one."""


class DelayVariationPart(Part):
    """Packet delay variation (RFC 8219 section 7.3.1) over all frames offered; one without a delay ranks last."""

    pdv_ns: FigurePart
    """D(99.9 %) - D(minimum)."""
    p999_offered_ns: FigurePart
    """D(99.9 %) of all frames offered; null where it falls on a frame without a delay."""


class PacketPairsPart(Part):
    """Inter packet delay variation (RFC 8219 section 7.3.2): delay of a frame less that of the frame sent before it."""

    minimum_ns: FigurePart
    median_ns: FigurePart
    maximum_ns: FigurePart
    pairs: int
    """Successive frames that both have a delay, sum of the repetitions."""
    skipped: int
    """Successive frames of which one has none, sum of the repetitions."""
    histogram: tuple[tuple[int, int], ...]
    """First valid repetition: (ns, pairs), ascending; a bucket is about an eighth of an octave wide."""


class DelaySeriesPart(Part):
    """Delays of one direction and class at one load."""

    direction: Literal["forward", "reverse"]
    class_: Literal["foreground", "background"]
    offered: int
    """Frames offered, sum of the repetitions, as all counts here."""
    lost: int
    """Frames lost, faulty or late: they have no delay."""
    samples: int
    """Frames with a delay of 0 or more."""
    negative: int
    """Frames that seem to have arrived before they were sent: an error of the clock, in no figure."""
    impossible: int
    """Frames with a delay longer than the trial had lasted: a damaged time stamp, in no figure."""
    lateness_max_ns: int
    """How late the Tester sent a burst of this direction at most: its own error."""
    delay: PercentilesPart
    latency: LatencyPart | None
    pdv: DelayVariationPart | None
    ipdv: PacketPairsPart | None
    hdr: str
    """Delays of the first valid repetition as an HdrHistogram string (V2, compressed, base64), in nanoseconds."""


class DelayPointPart(Part):
    """Delays at one load. `series` is empty where the Tester could not offer the load."""

    frames_per_second: int
    share: str | None
    """Share of `throughput` that this load is, exact ratio; null where the campaign names frames per second."""
    throughput: int | None
    """Lowest throughput that a repetition with the same traffic found, frames/s."""
    throughput_limited_by: Literal["gateway", "tester", "maximum"] | None
    """Unless it is the gateway, the gateway may do more than that."""
    repetitions: int
    """Valid repetitions."""
    tester_limited: int
    """Repetitions in which the Tester could not offer the load."""
    series: tuple[DelaySeriesPart, ...]
