"""Whether a search for the longest burst ended on a loss that no buffer has to do with: a filter, a dead path. Pure.

Rule: of the shortest failed burst whose losses can be explained, that is with a cause or with 20 lost frames or more,
every cause is a field or flows of which no frame arrived, and the first of the lost frames arrived in no shorter burst
that passed. Chance chose the length of such a burst: the first frame of the filtered ones ends it. Losses in turn or
drawn at random say nothing here: a gateway with a small buffer and half of the line rate loses every second frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gatemark.trial.cause import FEW_LOST, Cause
from gatemark.trial.record import TrialRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class _FailedBurst:
    frames: int
    """Length of the burst in each direction."""
    lost: int
    first_lost: int
    """The first frame that was lost in any direction."""
    causes: tuple[Cause, ...]


@dataclass(slots=True)
class CausesOfBursts:
    """Bursts of a run, by repetition: a gateway may have changed since another one."""

    any_sent: bool = False
    """Whether the run has bursts."""
    _failed: dict[int, list[_FailedBurst]] = field(default_factory=dict)
    _passed: dict[int, int] = field(default_factory=dict)
    """Longest burst that passed."""

    def add(self, trial: TrialRecord) -> None:
        """Count a burst that has a verdict."""
        assert trial.verdict is not None
        self.any_sent = True
        ways = trial.report.directions
        frames, repetition = max(way.offered for way in ways), trial.order.repetition
        if trial.verdict.passed:
            self._passed[repetition] = max(frames, self._passed.get(repetition, 0))
            return
        firsts = [counts.loss.first_index for way in ways for _, counts in way.classes if counts.lost]
        self._failed.setdefault(repetition, []).append(
            _FailedBurst(
                frames=frames,
                lost=trial.report.lost_count,
                first_lost=min(firsts, default=0),
                causes=trial.causes,
            )
        )

    def no_limit(self) -> str | None:
        """Return why the searches end on a loss that is not a full buffer, as a sentence; None if they do not."""
        told = (self._words(bursts, self._passed.get(repetition, 0)) for repetition, bursts in self._failed.items())
        return next(filter(None, told), None)

    @staticmethod
    def _words(bursts: Sequence[_FailedBurst], passed: int) -> str | None:
        ascending = sorted(bursts, key=lambda burst: burst.frames)
        shortest = next((burst for burst in ascending if burst.causes or burst.lost >= FEW_LOST), None)
        if shortest is None or not shortest.causes or not all(cause.is_fixed for cause in shortest.causes):
            return None
        if shortest.first_lost < passed < shortest.frames:
            return None
        cause = shortest.causes[0]
        alike = [burst.frames for burst in ascending if any(each.what == cause.what for each in burst.causes)]
        of = f"{alike[0]:,}" if alike[0] == alike[-1] else f"{alike[0]:,} to {alike[-1]:,}"
        failed = "a failed burst" if len(alike) == 1 else f"{len(alike)} failed bursts"
        return (
            f"the bursts end on lost frames that no buffer has to do with, so no length is the longest: in {failed} of"
            f" {of} frames {cause.direction} {cause.traffic_class} lost {cause.what}; mend that, or leave it out of the"
            " traffic"
        )
