"""Latency, packet delay variation and inter packet delay variation (RFC 8219 sections 7.2 and 7.3), load by load.

All of them come from the same trials. The percentiles are those of each repetition; they are never merged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gatemark.config import defaults
from gatemark.config.model import Campaign
from gatemark.procedures.base_load import none_passes
from gatemark.procedures.delay.result import (
    DelayPoint,
    DelayResult,
    DelaySeries,
    DelayVariation,
    Latency,
    PacketPairs,
)
from gatemark.procedures.delay.table import DelayTable
from gatemark.procedures.measured import Measured
from gatemark.procedures.phase_one import rate_before
from gatemark.procedures.procedure import RunTrials
from gatemark.results.document import Deviation
from gatemark.results.part import Figure
from gatemark.results.search import RateResult
from gatemark.search.goal import Measure
from gatemark.stats.hdr import hdr_string
from gatemark.stats.percentiles import DELAY_PERCENTILES
from gatemark.trial.delay import TagFacts, VariationFacts, percentile_ns
from gatemark.trial.form import Tags, TrialForm
from gatemark.trial.report import Counts
from gatemark.units import format_duration_ns, format_ratio, frames_before, frames_in

PDV_PER_100000 = 99_900
"""RFC 8219 section 7.3.1: the 99.9th percentile."""

BUCKETS_PER_OCTAVE = 8
"""Buckets of the published histogram of delay variation."""


def measure(trials: RunTrials) -> DelayResult:
    """Measure delays: in each repetition one trial at each load.

    Shares refer to the lowest throughput that any repetition of the same campaign found with the same traffic; if there
    is none, the run is refused.
    """
    campaign, cell = trials.campaign, trials.run.cell
    table = campaign.table(DelayTable)
    throughput = trials.earlier.frame_rate(cell)
    loads = delay_loads(table, throughput)
    if not loads:
        refusal = none_passes(throughput)
        return DelayResult(
            **trials.facts(),
            limited_by=refusal.limited_by,
            refused=refusal.reason,
            duration_ns=table.sending_ns,
            points=(),
        )
    rate = rate_before(campaign, cell, trials.earlier, phase_two_ns=table.sending_ns)
    measured = [DelaysAtLoad(table, load) for load in loads]
    tolerance = Fraction(0) if throughput is None else throughput.goal.loss_tolerance
    for repetition in trials.repetitions():
        for load, at_load in zip(loads, measured, strict=True):
            measure_step = trials.steps(
                repetition, loss_tolerance=tolerance, connections_per_second=rate, form=delay_form(table, load)
            )
            step = Measure(frames_per_second=load.frames_per_second, duration_ns=table.sending_ns, purpose="load")
            at_load.add(measure_step(step))
    points = tuple(at_load.point() for at_load in measured)
    return DelayResult(
        **trials.facts(),
        limited_by="tester" if any(point.tester_limited for point in points) else "gateway",
        duration_ns=table.sending_ns,
        points=points,
    )


def delay_loads(table: DelayTable, throughput: RateResult | None) -> tuple[DelayPoint, ...]:
    """Return the loads of a run in the order of the file; empty if they are shares of a throughput of 0."""
    proven = 0 if throughput is None else throughput.proven
    limited_by = None if throughput is None else throughput.limited_by
    loads = []
    for load in table.load:
        nothing = {"repetitions": 0, "tester_limited": 0, "series": ()}
        if not isinstance(load, Fraction):
            loads.append(
                DelayPoint(frames_per_second=load, share=None, throughput=None, throughput_limited_by=None, **nothing)
            )
        elif proven:
            loads.append(
                DelayPoint(
                    frames_per_second=max(1, int(load * proven)),
                    share=load,
                    throughput=proven,
                    throughput_limited_by=limited_by,
                    **nothing,
                )
            )
    return tuple(loads)


def delay_form(table: DelayTable, load: DelayPoint) -> TrialForm:
    """Return what the trials of a load record.

    There are never more tags than frames: at a very low load every frame after `first_tag` has one.
    """
    tags = None
    if table.has_latency:
        frames = frames_in(load.frames_per_second, table.sending_ns)
        taggable = frames - frames_before(load.frames_per_second, table.first_tag_ns)
        if taggable > 0:
            tags = Tags(first_ns=table.first_tag_ns, count=min(table.tags, taggable))
    return TrialForm(tags=tags, variation="ipdv" in table.metrics, histogram=True)


class DelaysAtLoad:
    """The repetitions of one load; of the histograms, each of which may take megabytes, those of the first trial alone.

    A repetition in which the Tester could not offer the load is counted, and has no delays.
    """

    def __init__(self, table: DelayTable, load: DelayPoint) -> None:
        self._table = table
        self._load = load
        self._repetitions = self._tester_limited = 0
        self._classes: dict[tuple[str, str], list[_ClassDelays]] = {}

    def add(self, trial: Measured) -> None:
        """Take the delays of the next repetition."""
        if trial.report is None:
            self._tester_limited += 1
            return
        self._repetitions += 1
        for direction in trial.report.directions:
            for name, counts in direction.classes:
                delays = self._classes.setdefault((direction.direction, name), [])
                delays.append(
                    _ClassDelays(
                        counts=_without_histograms(counts) if delays else counts,
                        high_ns=_high_ns(counts),
                        lateness_max_ns=direction.lateness_max_ns,
                    )
                )

    def point(self) -> DelayPoint:
        """Return what the repetitions found."""
        return self._load.model_copy(
            update={
                "repetitions": self._repetitions,
                "tester_limited": self._tester_limited,
                "series": tuple(
                    _series(self._table, direction, name, delays) for (direction, name), delays in self._classes.items()
                ),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClassDelays:
    """One class of frames in one direction of one trial."""

    counts: Counts
    high_ns: int | None
    """D(99.9 %) of all frames offered."""
    lateness_max_ns: int


def _without_histograms(counts: Counts) -> Counts:
    variation = counts.delay.variation
    if variation is not None:
        variation = variation.model_copy(update={"histogram": ()})
    return counts.model_copy(
        update={"delay": counts.delay.model_copy(update={"histogram": (), "variation": variation})}
    )


def coarse(histogram: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Gather buckets into wider ones whose width grows with the distance from 0; sums and signs are kept."""
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


def _series(table: DelayTable, direction: str, class_: str, delays: Sequence[_ClassDelays]) -> DelaySeries:
    counts = [trial.counts for trial in delays]
    first = counts[0].delay
    return DelaySeries.model_validate(
        {
            "direction": direction,
            "class": class_,
            "offered": [c.offered for c in counts],
            "undelivered": [c.undelivered for c in counts],
            "samples": [c.delay.samples for c in counts],
            "negative": [c.delay.negative for c in counts],
            "lateness_max_ns": [trial.lateness_max_ns for trial in delays],
            "delay_ns": _delays(counts),
            "latency": _latency(table, counts) if table.has_latency else None,
            "pdv": _pdv(delays) if "pdv" in table.metrics else None,
            "ipdv": _ipdv(counts) if "ipdv" in table.metrics else None,
            "hdr": hdr_string(first.histogram),
        }
    )


def _delays(counts: Sequence[Counts]) -> dict[str, Figure]:
    ranks = {key: Figure.of([c.delay.percentile_ns(rank) for c in counts]) for key, rank in DELAY_PERCENTILES.items()}
    return {
        "minimum": Figure.of([c.delay.minimum_ns for c in counts]),
        **ranks,
        "maximum": Figure.of([c.delay.maximum_ns for c in counts]),
    }


def _latency(table: DelayTable, counts: Sequence[Counts]) -> Latency:
    """Typical and worst case latency (RFC 8219 section 7.2); without a tag neither is known."""
    none = TagFacts(count=0, received=0, negative=0, median_ns=None, p999_ns=None)
    tags = [c.delay.tags or none for c in counts]
    return Latency(
        first_tag_ns=table.first_tag_ns,
        tags=tuple(facts.count for facts in tags),
        tags_lost=tuple(facts.lost for facts in tags),
        typical_ns=Figure.of([facts.median_ns for facts in tags]),
        worst_case_ns=Figure.of([facts.p999_ns for facts in tags]),
    )


def _pdv(delays: Sequence[_ClassDelays]) -> DelayVariation:
    """D(99.9 %) - D(minimum) of all frames offered (RFC 8219 section 7.3.1)."""
    highs = [trial.high_ns for trial in delays]
    lows = [trial.counts.delay.minimum_ns for trial in delays]
    pdv = [None if high is None or low is None else high - low for high, low in zip(highs, lows, strict=True)]
    return DelayVariation(pdv_ns=Figure.of(pdv), p999_offered_ns=Figure.of(highs))


def _high_ns(counts: Counts) -> int | None:
    """Return D(99.9 %) of all frames offered; None where it falls on a frame without a delay."""
    delay = counts.delay
    high_ns = percentile_ns(delay.histogram, counts.offered, PDV_PER_100000)
    if high_ns is None or delay.minimum_ns is None or delay.maximum_ns is None:
        return None
    return min(max(high_ns, delay.minimum_ns), delay.maximum_ns)  # a bucket's middle may be outside


def _ipdv(counts: Sequence[Counts]) -> PacketPairs | None:
    none = VariationFacts(pairs=0, skipped=0, minimum_ns=None, median_ns=None, maximum_ns=None, histogram=())
    variations = [c.delay.variation or none for c in counts]
    return PacketPairs(
        minimum_ns=Figure.of([facts.minimum_ns for facts in variations]),
        median_ns=Figure.of([facts.median_ns for facts in variations]),
        maximum_ns=Figure.of([facts.maximum_ns for facts in variations]),
        pairs=tuple(facts.pairs for facts in variations),
        skipped=tuple(facts.skipped for facts in variations),
        histogram=coarse(variations[0].histogram),
    )


def deviations(campaign: Campaign) -> Iterator[Deviation]:
    """Yield deviations from RFC 8219 sections 7.2 and 7.3."""
    table = campaign.table(DelayTable)
    yield from _of_the_loads(table)
    yield from _of_the_trials(table)
    if campaign.repetitions < defaults.REPETITIONS:
        yield Deviation(
            sentence=f"Delays are measured {campaign.repetitions} times, fewer than {defaults.REPETITIONS}"
            " (RFC 8219 sections 7.2 and 7.3).",
            rules_out_claim=True,
        )


def _of_the_loads(table: DelayTable) -> Iterator[Deviation]:
    other = [load for load in table.load if load != Fraction(1) or isinstance(load, int)]
    if other:
        named = ", ".join(f"{load} frames/s" if isinstance(load, int) else format_ratio(load) for load in other)
        also = "also " if len(other) < len(table.load) else ""
        yield Deviation(
            sentence=f"Delays are {also}measured at other loads than the throughput: {named}"
            " (RFC 8219 sections 7.2 and 7.3).",
            rules_out_claim=not also,
        )
    if "pdv" not in table.metrics and "ipdv" not in table.metrics:
        yield Deviation(sentence="No delay variation is measured (RFC 8219 section 7.3 recommends it).")


def _of_the_trials(table: DelayTable) -> Iterator[Deviation]:
    length = format_duration_ns(table.sending_ns)
    if table.has_latency and table.sending_ns < defaults.LATENCY_DURATION_NS:
        sentence = f"Latency trials last {length}, less than 120s (RFC 8219 section 7.2)."
        yield Deviation(sentence=sentence, rules_out_claim=True)
    if not table.has_latency and table.sending_ns < defaults.TRIAL_DURATION_NS:
        sentence = f"Delay variation trials last {length}, less than 60s (RFC 8219 section 7.3)."
        yield Deviation(sentence=sentence, rules_out_claim=True)
    if not table.has_latency:
        return
    if table.first_tag_ns < defaults.FIRST_TAG_NS:
        sentence = (
            f"Frames are tagged from {format_duration_ns(table.first_tag_ns)} on, not from 60s on"
            " (RFC 8219 section 7.2)."
        )
        yield Deviation(sentence=sentence, rules_out_claim=True)
    if table.tags < defaults.TAGS_MIN:
        sentence = f"{table.tags} frames are tagged, fewer than {defaults.TAGS_MIN} (RFC 8219 section 7.2)."
        yield Deviation(sentence=sentence, rules_out_claim=True)
