"""The published result of system recovery (RFC 2544 section 26.5). Times are nanoseconds, loads frames/s."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, computed_field

from gatemark.results.part import PerClass
from gatemark.results.quantity import Quantity, QuantityKind
from gatemark.results.run import Outcome, RunResult
from gatemark.stats.summary import Number, number

RECOVERY_TIME = QuantityKind("system recovery time", "ns", "lower", "RFC 2544 section 26.5, RFC 8219 section 7.6")


class RecoverySeries(PerClass):
    """Recovery of one direction and class; a tuple has one value for each valid repetition."""

    offered: tuple[int, ...]
    """Frames offered."""
    lost: tuple[int, ...]
    """Frames that never arrived, in the whole trial."""
    faulty: tuple[int, ...]
    """Frames that came back wrong or late; their place in the trial is not known."""
    outcomes: tuple[Outcome, ...]
    """How each trial ended. `not_recovered`: frames were lost to the end. `no_loss`: nothing was lost where frames had
    to be. `unknown`: frames came back wrong or late."""
    recovery_ns: tuple[int | None, ...]
    """From the fall of the load to the time when the last frame that was lost was due; 0 if none was lost after the
    fall, null unless recovered."""
    last_loss_before_ns: tuple[int | None, ...]
    """How long before the fall of the load the last lost frame was due; null if a frame was lost after it."""

    @computed_field
    @property
    def average_ns(self) -> Number | None:
        """Mean recovery time (RFC 2544 section 26.5). Null unless every repetition recovered."""
        known = [ns for ns in self.recovery_ns if ns is not None]
        if not known or len(known) < len(self.recovery_ns):
            return None
        return number(Fraction(sum(known), len(known)))


class SystemRecoveryResult(RunResult):
    """How long frames are still lost after an overload has ended (RFC 2544 section 26.5, RFC 8219 section 7.6).

    A list has one entry for each valid repetition.
    """

    kinds: ClassVar = (RECOVERY_TIME,)
    procedure: Literal["system_recovery"] = "system_recovery"
    throughput: int | None = None
    """Load of which the overload is a share, frames/s: the median that the campaign found, or the load that the file
    names. Null if no trial was made and the file names none."""
    throughput_measured: bool
    """Whether the campaign measured it; else the campaign file names it."""
    overload: int | None = None
    """First load, frames/s. Null if no trial was made."""
    load_share: str | None = Field(default=None, exclude_if=lambda share: share is None)
    """That load as a share of the throughput that the campaign found, or of the line, in words. Left out where the
    campaign names frames per second."""
    overload_ns: int
    """Sending time of the overload."""
    recovery_load: int | None = None
    """Half of the overload, frames/s. Null if no trial was made."""
    observe_ns: int
    """Sending time of that load."""
    repetitions: int = 0
    """Number of valid repetitions."""
    tester_limited: int = 0
    """Repetitions in which the Tester could not offer the load."""
    series: tuple[RecoverySeries, ...] = ()
    """One entry for each direction and class; empty where nothing could be measured."""

    def own_quantities(self) -> Iterator[Quantity]:
        """Return the recovery time of each direction and class."""
        for series in self.series:
            yield self.quantity(
                RECOVERY_TIME,
                values=series.recovery_ns,
                where=series.at(self.overload),
                load_share=self.load_share,
                average=series.average_ns,
                is_headline=True,
            )
