"""The published result of the frame loss rate (RFC 2544 section 26.3): one point per load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, computed_field

from gatemark.results.part import Part, PerClass
from gatemark.results.quantity import Quantity, QuantityKind
from gatemark.results.run import RunResult
from gatemark.stats.summary import Summary

LOSS_RATE = QuantityKind("frame loss rate", "%", "lower", "RFC 2544 section 26.3, RFC 8219 section 7.4")


class ClassLoss(PerClass):
    """Loss of one class of frames in one direction at one load; one count for each valid repetition."""

    offered: tuple[int, ...]
    """Frames offered."""
    undelivered: tuple[int, ...]
    """Frames that did not come back correct and in time: lost, faulty or late."""
    lost: tuple[int, ...]
    """Frames among them that never arrived."""
    faulty: tuple[int, ...]
    """Frames among them that came back wrong."""
    duplicate: tuple[int, ...]
    """Arrivals of a frame that had already arrived."""
    reordered: tuple[int, ...]
    """Arrivals after a frame that was sent later."""
    longest_run: tuple[int, ...]
    """Most frames of the class lost one after the other."""
    not_tried: int = Field(default=0, exclude_if=lambda repetitions: repetitions == 0)
    """Repetitions that had ended at higher loads, after two trials without loss. Left out where there are none."""

    @property
    def forwarded(self) -> int:
        """Frames that came back correct, sum of the repetitions."""
        return sum(self.offered) - sum(self.undelivered)

    @property
    def loss_ratios(self) -> tuple[Fraction, ...]:
        """Undelivered over offered, in [0, 1], of each repetition (RFC 2544 section 26.3)."""
        return tuple(Fraction(u, o) for u, o in zip(self.undelivered, self.offered, strict=True) if o)

    @computed_field
    @property
    def loss_percent(self) -> Summary | None:
        """Frames undelivered in percent of those offered. Null if nothing was offered, and where repetitions had ended
        before: the others alone, which lose most, have no median of all (RFC 8219 section 12)."""
        ratios = [100 * ratio for ratio in self.loss_ratios]
        return Summary.of(ratios) if ratios and not self.not_tried else None


class LossPoint(Part):
    """One load. `losses` is empty if the Tester could not offer it."""

    frames_per_second: int
    """Intended load of each direction."""
    load_share: str | None = Field(default=None, exclude_if=lambda share: share is None)
    """This load as a share of the line, or of what the campaign measured before, in words. Left out where the campaign
    names frames per second."""
    repetitions: int
    """Number of valid repetitions."""
    tester_limited: int
    """Repetitions in which the Tester could not offer the load validly."""
    losses: tuple[ClassLoss, ...]
    """One entry for each direction and class; empty where the Tester could not offer the load."""

    @property
    def is_lossless(self) -> bool:
        """Whether the load was offered and every frame came back, in each repetition that tried it."""
        return bool(self.losses) and not any(any(loss.undelivered) for loss in self.losses)


class FrameLossResult(RunResult):
    """Frame loss against load (RFC 2544 section 26.3, RFC 8219 section 7.4).

    A list has one entry for each valid repetition.
    """

    kinds: ClassVar = (LOSS_RATE,)
    procedure: Literal["frame_loss"] = "frame_loss"
    duration_ns: int
    """Sending time of the trials."""
    maximum: int | None
    """Highest load, frames/s, of which shares are taken. Null if no load was tried."""
    points: tuple[LossPoint, ...]
    """The loads, highest first."""

    def own_quantities(self) -> Iterator[Quantity]:
        """Return the loss of each direction and class at each load; the highest one offered is the headline."""
        highest = next((number for number, point in enumerate(self.points) if point.losses), 0)
        for number, point in enumerate(self.points):
            share = point.load_share
            if not point.losses:
                yield self.quantity(
                    LOSS_RATE,
                    where={"load_frames_per_second": point.frames_per_second},
                    load_share=share,
                    limited_by="host" if self.limited_by == "host" else "tester",
                    tester_limited_at=point.frames_per_second,
                    is_headline=number == highest,
                )
            for loss in point.losses:
                yield self.quantity(
                    LOSS_RATE,
                    values=[float(100 * ratio) for ratio in loss.loss_ratios],
                    summary=loss.loss_percent,
                    where=loss.at(point.frames_per_second),
                    load_share=share,
                    limited_by="gateway",
                    is_headline=number == highest,
                )


def worst_loss(losses: Sequence[ClassLoss]) -> float:
    """Largest median loss of the directions and classes, per cent."""
    return max((float(loss.loss_percent.median) for loss in losses if loss.loss_percent is not None), default=0.0)
