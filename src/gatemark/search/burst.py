"""Search for the longest burst that passes whole (RFC 9004 section 6.2). Pure: same history, same answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    resolution: int
    """Distance between the bounds at which the search ends."""
    verifications: int = 0
    """How often a burst that lost frames is sent again before the loss counts: 0 is a plain binary search, more is the
    binary search with loss verification (ETSI GS NFV-TST 009 section 12.3.3). One burst that passes is a pass."""

    def __post_init__(self) -> None:
        if self.ceiling < 1 or self.resolution < 1 or self.verifications < 0:
            raise ValueError(f"a search for a burst needs a ceiling and a resolution of at least 1 frame: {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstTrial:
    """One burst that was sent."""

    frames: int
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstResult:
    """What one search concluded. Every bound but 0 is the length of a burst that was sent validly.

    ``found``: a burst passed and one longer by at most the resolution failed. ``nothing_passes``: even a burst no
    longer than the resolution failed, so `frames` is 0. ``ceiling_passed``: the longest burst passed: nothing failed.
    ``tester_limited``: the Tester could not send a burst that the search needed.
    """

    kind: BurstKind
    """How the search ended."""
    frames: int
    """Longest burst that passed below every burst that failed; 0 if even one no longer than the resolution failed."""
    upper_frames: int | None
    """Shortest burst that failed. Null if none failed."""
    trials: int
    """Valid trials of the search."""
    tester_limited_at: int | None = None
    """Burst that the Tester could not send, frames. Null if it could send all."""


def next_burst(goal: BurstGoal, history: Sequence[BurstTrial]) -> int | BurstResult:
    """Choose the length of the next burst after `history`, in frames, or conclude.

    The ceiling comes first; then l = 0, h = ceiling and, while h - l > resolution, (l + h) // 2. A burst that the
    Tester could not send ends the search: nothing is known of the gateway there.
    """
    lower, upper = 0, None
    losses = 0  # in a row, of the burst that was tried last
    for number, trial in enumerate(history, start=1):
        if trial.outcome is Outcome.TESTER_LIMITED:
            return BurstResult(
                kind="tester_limited",
                frames=lower,
                upper_frames=upper,
                trials=number - 1,
                tester_limited_at=trial.frames,
            )
        if trial.outcome is Outcome.PASSED:
            lower, losses = trial.frames, 0
        elif losses < goal.verifications:
            losses += 1
        else:
            upper, losses = trial.frames, 0
    if losses:
        return history[-1].frames
    if upper is None:
        if lower < goal.ceiling:
            return goal.ceiling
        return BurstResult(kind="ceiling_passed", frames=lower, upper_frames=None, trials=len(history))
    if upper - lower > goal.resolution:
        return (lower + upper) // 2
    kind: BurstKind = "found" if lower else "nothing_passes"
    return BurstResult(kind=kind, frames=lower, upper_frames=upper, trials=len(history))
