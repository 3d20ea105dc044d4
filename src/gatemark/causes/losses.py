"""The losses of one class in one direction, and how likely chance is to make them look as they do."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gatemark.causes.places import Places, places_of
from gatemark.facts import TRAFFIC_CLASSES, CauseName, TrafficClass
from gatemark.trial.cause import Cause
from gatemark.trial.form import TrialForm
from gatemark.trial.host import HostFacts
from gatemark.trial.host_counters import queue_counts
from gatemark.trial.loss import LossCount, LossField, LossFieldName, LossTable, chance_inside
from gatemark.trial.report import Counts, DirectionResult, TrialReport
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns

EXPLAINED_MIN = 0.95
"""Nothing is claimed that explains less of the losses than this."""
RATIO_MIN = 10
"""Where a cause holds, the share of frames lost is at least this many times what it is elsewhere."""
CHANCE_MAX = 1e-6
"""Nothing is claimed that chance would show more often than this, in all that is tried of a trial together."""
QUEUE_SHARE = 0.8
"""Queues have counted the losses if they have counted this share of them."""
TRIED = 1000
"""More hypotheses than are tried of one trial: directions, classes, fields and what may be claimed of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """The lost frames of one class in one direction of a valid trial that failed; there is at least one."""

    direction: DirectionResult
    traffic_class: TrafficClass
    counts: Counts
    table: LossTable
    form: TrialForm
    lost_in_trial: int
    """In all directions and classes."""
    lost_together: tuple[Counts, ...]
    """Counts of all directions and classes that lost frames."""
    host_counters: Mapping[str, int]
    """What counters of the gateway's host grew by over the trial; empty where it cannot be read."""
    queue_drops: int
    """Frames that queues of the gateway dropped in the trial, as far as they are counted."""
    places: Places
    """In which of two gateways in a row all frames of the direction were lost; empty where that is not known."""
    told_too_large: int
    """ICMP errors that told the sender of the direction so of packets."""
    stated_mtus: tuple[int, ...]
    """MTUs that the gateway states of links, octets; empty where it was not asked."""
    has_connections: bool
    """Whether frames belong to connections: a table that refuses them loses frames in much the same way as a queue."""

    @property
    def lost(self) -> int:
        return self.counts.lost

    @property
    def whole(self) -> LossCount:
        """All frames of the class."""
        return LossCount(lost=self.lost, arrived=self.counts.offered - self.lost)

    @property
    def frames(self) -> int:
        """How many frames of both classes the direction has: its indexes end there."""
        return self.direction.intended

    @property
    def untouched(self) -> tuple[int, int]:
        """How many frames of the direction were sent before the first lost frame, and after the last one."""
        return self.counts.loss.first_index, self.frames - 1 - self.counts.loss.last_index

    @property
    def between(self) -> int:
        """How many frames of the class were sent from the first lost frame to the last one."""
        return max(self.lost, self.counts.offered * (self.frames - sum(self.untouched)) // self.frames)

    @property
    def slices_between(self) -> Sequence[int]:
        """Losses in the hundredths of the trial between those of the first lost frame and of the last one."""
        loss = self.counts.loss
        first, last = (index * len(loss.by_slice) // self.frames for index in (loss.first_index, loss.last_index))
        return loss.by_slice[first + 1 : last]

    @property
    def queues_counted_them(self) -> bool:
        """Whether the gateway's queues counted the losses of the trial, or nearly all of them."""
        return self.queue_drops >= QUEUE_SHARE * self.lost_in_trial

    def field(self, name: LossFieldName) -> LossField | None:
        """Return what is known of one field; None where frames do not differ by it, or none was lost in the sample."""
        return next((field for field in self.table.fields if field.field == name and field.lost), None)

    @property
    def is_even(self) -> bool:
        """Whether frames are due at one rate, so that an index is a time."""
        return self.form.is_even

    def time_ns(self, frames: int) -> int:
        """Return how long this many frames take at the load."""
        return frames * NANOSECONDS_PER_SECOND // max(1, self.direction.frames_per_second)

    def time_words(self, frames: int) -> str:
        """Return the same for people."""
        return format_duration_ns(self.time_ns(frames))

    def share_words(self, part: int, counted: int) -> str:
        """Return how a sentence about `part` of the `counted` lost frames begins: "all 33 lost frames have"."""
        of_all = counted >= self.lost
        if part == counted:
            return f"all {counted:,} lost frames have" if of_all else f"all of {counted:,} lost frames looked at have"
        return f"{part:,} of {counted:,} lost frames{'' if of_all else ' looked at'} have"

    @property
    def arrived_share(self) -> float:
        """Of the frames of the class that arrived the share that was looked at."""
        arrived = self.counts.offered - self.lost
        return min(1.0, self.table.arrived / arrived) if arrived else 1.0

    def percent_words(self, part: LossCount) -> str:
        """Return about what percentage of some frames was lost, whatever share of the trial was looked at."""
        lost, arrived = self.lost * part.lost / self.table.lost, part.arrived / self.arrived_share
        percent = 100 * lost / (lost + arrived)
        return f"{percent:.2g} %" if percent < 10 else f"{percent:.0f} %"

    def count_words(self, part: LossCount, them: str) -> str:
        """Return how many of the frames with `them` were lost, for a sentence: a share where not all were looked at."""
        if self.table.offered >= self.counts.offered:
            return f"of {part.offered:,} frames with {them} {part.lost:,} were lost"
        return f"about {self.percent_words(part)} of the frames with {them} were lost"

    def is_fixed(self, lost: int, values: int, losing: int) -> bool:
        """Whether it is certain that fewer frames arrived than were lost of some values of which none was seen to.

        They are `values` of the `losing` ones of a field, and `lost` of their lost frames were looked at. If as many of
        each value had arrived as were lost, none would be among those looked at with a chance that is known.
        """
        if self.arrived_share >= 1 or not values:
            return values > 0
        missed = self.lost * lost / self.table.lost / values * math.log1p(-self.arrived_share)
        return chance_inside(losing, min(values, losing), share_of(missed)) <= math.log(CHANCE_MAX)

    def scaled(self, part: int, counted: int) -> int:
        """Return how many of all lost frames `part` of the `counted` ones stand for."""
        return self.lost * part // counted

    def cause(
        self,
        cause: CauseName,
        sentence: str,
        *,
        what: str,
        explained: int,
        chance: float | None,
        field: LossFieldName | None = None,
        is_fixed: bool = False,
    ) -> Cause:
        """Return a cause of these losses; `chance` is a natural logarithm."""
        return Cause(
            cause=cause,
            direction=self.direction.direction,
            traffic_class=self.traffic_class,
            field=field,
            sentence=sentence,
            what=what,
            lost=self.lost,
            explained=explained,
            chance_log10=None if chance is None else round(chance / math.log(10), 1),
            is_fixed=is_fixed,
        )


def losses_of(
    report: TrialReport, form: TrialForm, host: HostFacts | None, stated_mtus: tuple[int, ...]
) -> Iterator[Losses]:
    """Yield the losses of each direction and class of which it is known which frames they are."""
    counters = {} if host is None else host.counters
    at_ports = sum(port.peer_queue_drops for port in report.ports.values())
    together = tuple(counts for _, _, counts in report.counts() if counts.lost)
    for direction in report.directions:
        for traffic_class in TRAFFIC_CLASSES:
            counts: Counts = getattr(direction, traffic_class)
            if counts.lost > 0 and counts.loss_table is not None:
                yield Losses(
                    direction=direction,
                    traffic_class=traffic_class,
                    counts=counts,
                    table=counts.loss_table,
                    form=form,
                    lost_in_trial=report.lost_count,
                    lost_together=together,
                    host_counters=counters,
                    queue_drops=max(at_ports, *queue_counts(counters).values()),
                    places=places_of(direction, report, host),
                    told_too_large=report.told_too_large(direction.direction),
                    stated_mtus=stated_mtus,
                    has_connections=report.connections is not None,
                )


def chance_of(part: LossCount, whole: LossCount, choices: float) -> float:
    """Return the natural logarithm of an upper bound of a chance, at most 0.

    It is the chance that, of the frames of `whole`, as many as were lost are drawn without regard to anything, and at
    least as many of them are in `part` as were lost of it, where the part may be chosen afterwards in exp(`choices`)
    ways: `chance_inside` times the number of ways, and times what else is tried of a trial.
    """
    chance = chance_inside(whole.lost, part.lost, part.offered / whole.offered)
    return min(0.0, choices + math.log(TRIED) + chance)


def chance_either_way(part: LossCount, whole: LossCount, choices: float) -> float:
    """Return the lesser of `chance_of` and the same of the frames that arrived: where nearly all are lost, few tell.

    Drawing those that are lost is drawing those that arrive, so that both are upper bounds of the same chance.
    """
    outside = LossCount(lost=whole.arrived - part.arrived, arrived=whole.lost - part.lost)
    turned = LossCount(lost=whole.arrived, arrived=whole.lost)
    return min(chance_of(part, whole, choices), chance_of(outside, turned, choices))


def is_claimed(lost: int, explained: int, chance: float) -> bool:
    """Whether enough losses are explained, and chance explains them no longer."""
    return explained >= EXPLAINED_MIN * lost and chance <= math.log(CHANCE_MAX)


def claimed_chance(part: LossCount, whole: LossCount, choices: float) -> float | None:
    """Return the chance of the losses of a part of some frames; None if it may not be claimed that it sets them apart.

    In the part frames are lost at least `RATIO_MIN` times as often as outside, and it holds enough of the losses.
    """
    outside, lost_outside = whole.offered - part.offered, whole.lost - part.lost
    if part.offered <= 0 or outside <= 0 or part.lost * outside < RATIO_MIN * lost_outside * part.offered:
        return None
    chance = chance_either_way(part, whole, choices)
    return chance if is_claimed(whole.lost, part.lost, chance) else None


def share_of(logarithm: float) -> float:
    """Return a share by its natural logarithm: never 0, however little it is."""
    return max(math.exp(logarithm), sys.float_info.min)


def choices_among(values: int, chosen: int) -> float:
    """Return the natural logarithm of the number of ways to choose some of the values."""
    if not 0 < chosen < values:
        return 0.0
    return math.lgamma(values + 1) - math.lgamma(chosen + 1) - math.lgamma(values - chosen + 1)
