"""The published result of a reset (RFC 2544 section 26.6, RFC 6201 section 4). Times are nanoseconds."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import computed_field

from gatemark.results.coordinates import share_of
from gatemark.results.part import Figure, PerClass
from gatemark.results.quantity import Quantity, QuantityKind
from gatemark.results.run import Outcome, RunResult
from gatemark.stats.summary import Number, number

BY_LOSS = QuantityKind("software reset time by loss", "ns", "lower", "RFC 2544 section 26.6, RFC 6201 section 4")
BY_GAP = QuantityKind("software reset time by gap", "ns", "lower", "RFC 6201 section 4")


BEGAN_ERROR_NS = 10_000_000
"""How exactly the start of a reset is known: the engine's message about its time takes some milliseconds to arrive, and
the first frame is due some milliseconds after that time begins."""


class ResetSeries(PerClass):
    """Effect of a reset on one direction and class; a tuple has one value for each valid repetition."""

    sending_ns: int
    """Sending time of each trial; with `offered` it gives the rate of this class."""
    offered: tuple[int, ...]
    """Frames offered."""
    undelivered: tuple[int, ...]
    """Frames that did not come back correct and in time: lost, faulty or late."""
    faulty: tuple[int, ...]
    """Frames among them that came back wrong or late."""
    longest_run: tuple[int, ...]
    """Most frames of the class lost one after the other."""
    first_loss_ns: tuple[int | None, ...]
    """When the first frame that never arrived was due; null if all arrived, correct or not."""
    last_loss_ns: tuple[int | None, ...]
    """When the last one was due; null if all arrived."""
    outcomes: tuple[Outcome, ...]
    """How each trial ended. `not_recovered`: frames were lost to the end. `no_loss`: nothing was lost where frames had
    to be. `unknown`: frames came back wrong or late."""
    lost_before: bool
    """Whether a frame was lost before the reset began: then not every loss is of the reset."""

    @computed_field
    @property
    def reset_by_loss_ns(self) -> Figure:
        """Frames undelivered / rate offered (RFC 6201 section 4, frame loss method), rounded down. If the gateway did
        not recover, the reset lasts at least that long."""
        return Figure.of(
            [
                undelivered * self.sending_ns // offered if offered else 0
                for undelivered, offered in zip(self.undelivered, self.offered, strict=True)
            ]
        )

    @computed_field
    @property
    def reset_by_gap_ns(self) -> Figure:
        """Longest time between two frames that came back: (longest run + 1) / rate, rounded down; 0 if none was lost.
        It is the time stamp method of RFC 6201 section 4, by the times when frames were due."""
        return Figure.of(
            [
                (run + 1) * self.sending_ns // offered if run and offered else 0
                for run, offered in zip(self.longest_run, self.offered, strict=True)
            ]
        )

    @computed_field
    @property
    def average_ns(self) -> Number | None:
        """Mean of the times by loss. Null unless every repetition lost frames and recovered."""
        values = [int(value) for value in self.reset_by_loss_ns.values if value is not None]
        if not values or any(outcome != "recovered" for outcome in self.outcomes):
            return None
        return number(Fraction(sum(values), len(values)))


class ResetResult(RunResult):
    """How long the gateway forwards nothing after a reset (RFC 2544 section 26.6, RFC 6201 section 4).

    A list has one entry for each valid repetition.
    """

    kinds: ClassVar = (BY_LOSS, BY_GAP)
    procedure: Literal["reset"] = "reset"
    kind: Literal["software"]
    """What was reset."""
    frames_per_second: int | None = None
    """The load. Null if none is known that passes."""
    throughput_measured: bool
    """Whether the load is the lowest throughput that any repetition of the campaign found; else the file names it."""
    before_ns: int
    """Sending time before the reset was due."""
    observe_ns: int
    """Sending time after that."""
    repetitions: int = 0
    """Number of valid repetitions."""
    tester_limited: int = 0
    """Repetitions in which the Tester could not offer the load."""
    began_ns: tuple[int, ...] = ()
    """When the command of the reset was started, one number for each valid repetition, within some milliseconds."""
    took_ns: tuple[int, ...] = ()
    """How long that command took, one number for each valid repetition; the gateway may have needed longer, or less."""
    series: tuple[ResetSeries, ...] = ()
    """One entry for each direction and class; empty where nothing could be measured."""

    def own_quantities(self) -> Iterator[Quantity]:
        """Return the time of each direction and class, by frames lost and by the longest gap."""
        share = share_of(Fraction(1), "the throughput") if self.throughput_measured else None
        for series in self.series:
            where = series.at(self.frames_per_second)
            yield self.quantity(
                BY_LOSS,
                values=series.reset_by_loss_ns.values,
                where=where,
                load_share=share,
                average=series.average_ns,
                is_headline=True,
            )
            known = None if series.average_ns is None else series.reset_by_gap_ns.summary
            yield self.quantity(
                BY_GAP,
                values=series.reset_by_gap_ns.values,
                summary=known,
                where=where,
                load_share=share,
            )
