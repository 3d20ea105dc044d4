"""Search for the longest burst that passes whole (RFC 9004 section 6.2). Pure: same history, same answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from gatemark.search.goal import Outcome

BurstKind = Literal["found", "nothing_passes", "ceiling_passed", "tester_limited"]


LOSS_VERIFICATIONS = 1
"""With loss verification, a burst that lost frames is sent once more before the loss counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstGoal:
    """What is searched for. Lengths are frames of one direction."""

    ceiling: int
    """Longest burst, tried first."""
    resolution: int | Fraction
    """Distance between the bounds at which the search ends; a fraction is a share of the burst that passed."""
    verifications: int = 0
    """How often a burst that lost frames is sent again before the loss counts: 0 is a plain binary search, more is the
    binary search with loss verification (ETSI GS NFV-TST 009 section 12.3.3). One burst that passes is a pass."""

    def __post_init__(self) -> None:
        if self.ceiling < 1 or self.resolution <= 0 or self.verifications < 0:
            raise ValueError(f"a search for a burst needs a ceiling and a resolution of at least 1 frame: {self}")

    def gap(self, frames: int) -> int:
        """Return the resolution at a burst of `frames`, in frames."""
        return max(1, int(self.resolution * frames)) if isinstance(self.resolution, Fraction) else self.resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """A burst to send."""

    frames: int
    late_frames_max: int | None = None
    """How many frames the line may carry while a part of the burst is late. None: as the campaign allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstTrial:
    """One burst that was sent."""

    burst: Burst
    outcome: Outcome
    late_frames: int = 0
    """How many frames the line carries in the time by which a part of the burst was late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstResult:
    """Conclusion of one search. Every bound but 0 is the length of a burst that was sent validly.

    ``found``: a burst passed and one longer by at most the resolution failed. ``nothing_passes``: even a burst of a
    single frame failed, so `frames` is 0. ``ceiling_passed``: the longest burst passed: nothing failed.
    ``tester_limited``: the Tester could not send a burst that the search needed.
    """

    kind: BurstKind
    """How the search ended."""
    frames: int
    """Longest burst that passed below every burst that failed; 0 if none passed."""
    upper_frames: int | None
    """Shortest burst that failed. Null if none failed."""
    trials: int
    """Valid trials of the search."""
    tester_limited_at: int | None = None
    """Burst that the Tester could not send, frames. Null if it could send all."""


def next_burst(goal: BurstGoal, history: Sequence[BurstTrial]) -> Burst | BurstResult:
    """Choose the next burst after `history`, or conclude.

    The ceiling comes first; then l = 0, h = ceiling and, while h - l > resolution or nothing has passed, (l + h) // 2,
    down to a single frame. While the Tester is late, the gateway empties its buffer: a bound at which it was late by
    more than the resolution is sent again, on time, unless it is a single frame; the last trial of a burst counts. A
    burst that the Tester could not send ends the search: nothing is known of the gateway there.
    """
    known: dict[int, BurstTrial] = {}
    losses = 0  # in a row, of the burst that was tried last
    for number, trial in enumerate(history, start=1):
        if trial.outcome is Outcome.TESTER_LIMITED:
            lower, upper = _bounds(known)
            return BurstResult(
                kind="tester_limited",
                frames=lower,
                upper_frames=upper,
                trials=number - 1,
                tester_limited_at=trial.burst.frames,
            )
        if trial.outcome is Outcome.FAILED and losses < goal.verifications:
            losses += 1
        else:
            known[trial.burst.frames], losses = trial, 0
    if losses:
        return history[-1].burst
    lower, upper = _bounds(known)
    if upper is None:
        if lower < goal.ceiling:
            return Burst(frames=goal.ceiling)
        return BurstResult(kind="ceiling_passed", frames=lower, upper_frames=None, trials=len(history))
    gap = goal.gap(lower) if lower else 1
    if upper - lower > gap:
        return Burst(frames=(lower + upper) // 2)
    late = [frames for frames in (lower, upper) if frames > 1 and known[frames].late_frames > gap]
    if late:
        return Burst(frames=late[0], late_frames_max=gap)
    kind: BurstKind = "found" if lower else "nothing_passes"
    return BurstResult(kind=kind, frames=lower, upper_frames=upper, trials=len(history))


def _bounds(known: Mapping[int, BurstTrial]) -> tuple[int, int | None]:
    """Return the longest burst that passed below all that failed, 0 if none did, and the shortest one that failed."""
    upper = min((frames for frames, trial in known.items() if trial.outcome is Outcome.FAILED), default=None)
    passed = (frames for frames, trial in known.items() if trial.outcome is Outcome.PASSED)
    return max((frames for frames in passed if upper is None or frames < upper), default=0), upper
