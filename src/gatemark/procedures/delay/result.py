"""The published result of latency and delay variation (RFC 8219 sections 7.2 and 7.3). Times are nanoseconds.

A figure has one value for each valid repetition. Its summary is null if the value is missing in any of them: then the
figure is not measurable, and `values` shows in how many repetitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from gatemark.results.coordinates import share_of
from gatemark.results.part import Figure, LimitedBy, Part, PerClass, PerRepetition, Ratio
from gatemark.results.quantity import Quantity, QuantityKind
from gatemark.results.run import RunResult
from gatemark.stats.percentiles import DELAY_FIGURES, percent_words

LATENCY = tuple(
    QuantityKind(name, "ns", "lower", "RFC 8219 section 7.2") for name in ("typical latency", "worst case latency")
)
PDV = QuantityKind("PDV", "ns", "lower", "RFC 8219 section 7.3.1")
IPDV = (
    QuantityKind("IPDV minimum", "ns", "higher", "RFC 8219 section 7.3.2"),
    QuantityKind("IPDV median", "ns", None, "RFC 8219 section 7.3.2"),
    QuantityKind("IPDV maximum", "ns", "lower", "RFC 8219 section 7.3.2"),
)
"""Differences of either sign: delays vary the less the closer the smallest and the largest are to 0."""
DELAYS = {
    key: QuantityKind(f"delay {percent_words(key)}", "ns", "lower", "RFC 2330 section 11.3") for key in DELAY_FIGURES
}
NOT_OFFERED = QuantityKind("delay", "ns", "lower", "none: the one row of a load that the Tester could not offer")


class Latency(PerRepetition):
    """Typical and worst case latency of the tagged frames (RFC 8219 section 7.2)."""

    first_tag_ns: int
    """Frames are tagged from here on, counted from the start of sending."""
    tags: tuple[int, ...]
    """Tagged frames."""
    tags_lost: tuple[int, ...]
    """Tagged frames without a delay: lost, faulty, late or negative. They rank above every delay."""
    typical_ns: Figure
    """Median over all tags; null where it falls on a lost one."""
    worst_case_ns: Figure
    """99.9th percentile over all tags; null where it falls on a lost one."""


class DelayVariation(Part):
    """Packet delay variation (RFC 8219 section 7.3.1) over all frames offered; one without a delay ranks last."""

    pdv_ns: Figure
    """D(99.9 %) - D(minimum)."""
    p999_offered_ns: Figure
    """D(99.9 %) of all frames offered; null where it falls on a frame without a delay."""


class PacketPairs(PerRepetition):
    """Inter packet delay variation (RFC 8219 section 7.3.2): delay of a frame less that of the frame sent before it."""

    of_one_repetition: ClassVar = ("histogram",)
    minimum_ns: Figure
    """Smallest difference."""
    median_ns: Figure
    """Median of the differences."""
    maximum_ns: Figure
    """Largest difference."""
    pairs: tuple[int, ...]
    """Successive frames that both have a delay."""
    skipped: tuple[int, ...]
    """Successive frames of which one has none."""
    histogram: tuple[tuple[int, int], ...]
    """First valid repetition: pairs of ns and number, ascending; a bucket is about an eighth of an octave wide."""


class DelaySeries(PerClass):
    """Delays of one direction and class at one load; a tuple has one number for each valid repetition."""

    offered: tuple[int, ...]
    """Frames offered."""
    undelivered: tuple[int, ...]
    """Frames lost, faulty or late: they have no delay."""
    samples: tuple[int, ...]
    """Frames with a delay of 0 or more."""
    negative: tuple[int, ...]
    """Frames that seem to have arrived before they were sent: an error of the clock, in no figure."""
    lateness_max_ns: tuple[int, ...]
    """How late the Tester sent a burst of this direction at most: its own error."""
    delay_ns: dict[str, Figure]
    """Delays of all frames that came back correct and in time, by name: `minimum` and `maximum` exact, the percentiles
    `p50`, `p90`, `p99`, `p99.9`, `p99.99` and `p99.999` of the `samples` within 0.1 % (RFC 2330 section 11.3)."""
    latency: Latency | None
    """Latency of the tagged frames (RFC 8219 section 7.2). Null if it was not asked for."""
    pdv: DelayVariation | None
    """Packet delay variation over all frames offered (RFC 8219 section 7.3.1); a frame without a delay ranks above all
    others. Null if it was not asked for."""
    ipdv: PacketPairs | None
    """Inter packet delay variation (RFC 8219 section 7.3.2): delay of a frame less that of the frame sent before it.
    Null if it was not asked for."""
    hdr: str
    """Delays of the first valid repetition as an HdrHistogram: version 2, compressed, base64, in nanoseconds with three
    digits."""

    def figures(self) -> Iterator[tuple[QuantityKind, Figure]]:
        """Yield every figure."""
        if self.latency is not None:
            yield from zip(LATENCY, (self.latency.typical_ns, self.latency.worst_case_ns), strict=True)
        if self.pdv is not None:
            yield PDV, self.pdv.pdv_ns
        if self.ipdv is not None:
            yield from zip(IPDV, (self.ipdv.minimum_ns, self.ipdv.median_ns, self.ipdv.maximum_ns), strict=True)
        for key, figure in self.delay_ns.items():
            yield DELAYS[key], figure


class DelayPoint(Part):
    """Delays at one load. `series` is empty if the Tester could not offer it."""

    frames_per_second: int
    """Intended load of each direction."""
    share: Ratio | None
    """This load as a share of `throughput`. Null where the campaign names frames per second."""
    throughput: int | None
    """Lowest throughput that a repetition with the same traffic found, frames/s. Null where the campaign names frames
    per second."""
    throughput_limited_by: LimitedBy | None
    """What limited that; unless it is `gateway`, the gateway may do more. Null where the campaign names frames per
    second."""
    repetitions: int
    """Number of valid repetitions."""
    tester_limited: int
    """Repetitions in which the Tester could not offer the load."""
    series: tuple[DelaySeries, ...]
    """One entry for each direction and class; empty where the Tester could not offer the load."""


class DelayResult(RunResult):
    """Delays at one or more loads (RFC 8219 sections 7.2 and 7.3).

    What a time stamp means is explained in [what a delay means](../explanation/delay.md). A list has one entry for each
    valid repetition.
    """

    kinds: ClassVar = (*LATENCY, PDV, *IPDV, *DELAYS.values(), NOT_OFFERED)
    procedure: Literal["delay"] = "delay"
    duration_ns: int
    """Sending time of the trials."""
    points: tuple[DelayPoint, ...]
    """The loads, in the order of the campaign file; shares of a throughput of 0 are left out."""

    def own_quantities(self) -> Iterator[Quantity]:
        """Return the figures of every load, direction and class; the headline is the first of the first load."""
        first = next((number for number, point in enumerate(self.points) if point.series), 0)
        for number, point in enumerate(self.points):
            share = None if point.share is None else share_of(point.share, "the throughput")
            if not point.series:
                yield self.quantity(
                    NOT_OFFERED,
                    where={"load_frames_per_second": point.frames_per_second},
                    load_share=share,
                    limited_by="host" if self.limited_by == "host" else "tester",
                    tester_limited_at=point.frames_per_second,
                    is_headline=number == first,
                )
            for series in point.series:
                for place, (kind, figure) in enumerate(series.figures()):
                    yield self.quantity(
                        kind,
                        values=figure.values,
                        summary=figure.summary,
                        where=series.at(point.frames_per_second),
                        load_share=share,
                        limited_by="gateway",
                        is_headline=number == first and place == 0,
                    )
