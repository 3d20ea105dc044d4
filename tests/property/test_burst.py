"""The search for the longest burst finds the truth for every truth, ceiling and resolution, and replays."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gatemark.search.burst import Burst, BurstGoal, BurstResult, BurstTrial, next_burst
from gatemark.search.goal import Outcome

FRAMES_MAX = 1_000_000


@st.composite
def goals(draw: st.DrawFn, *, verifications: int = 0) -> BurstGoal:
    ceiling = draw(st.integers(1, FRAMES_MAX))
    resolution = draw(st.one_of(st.integers(1, ceiling), st.fractions(Fraction(1, 1000), 1)))
    return BurstGoal(ceiling=ceiling, resolution=resolution, verifications=verifications)


def search(
    goal: BurstGoal, send: Callable[[int], Outcome], late: Callable[[Burst], int] = lambda _: 0
) -> tuple[BurstResult, list[BurstTrial]]:
    history: list[BurstTrial] = []
    while not isinstance(step := next_burst(goal, history), BurstResult):
        assert 1 <= step.frames <= goal.ceiling
        assert len(history) < 200
        history.append(BurstTrial(burst=step, outcome=send(step.frames), late_frames=late(step)))
    return step, history


def outcome(passed: bool) -> Outcome:
    return Outcome.PASSED if passed else Outcome.FAILED


def holds(goal: BurstGoal, burst_result: BurstResult, truth: int) -> None:
    """The bounds hold the longest burst, no further apart than the resolution; nothing passes if one frame fails."""
    if truth >= goal.ceiling:
        assert (burst_result.kind, burst_result.frames, burst_result.upper_frames) == (
            "ceiling_passed",
            goal.ceiling,
            None,
        )
        return
    assert burst_result.upper_frames is not None
    assert burst_result.frames <= truth < burst_result.upper_frames
    assert (burst_result.kind == "nothing_passes") == (burst_result.frames == 0) == (truth == 0)
    gap = goal.resolution * burst_result.frames if isinstance(goal.resolution, Fraction) else goal.resolution
    assert burst_result.upper_frames - burst_result.frames <= max(1, gap)


@given(goals(), st.integers(0, FRAMES_MAX))
def test_the_truth_lies_between_the_bounds(goal: BurstGoal, truth: int) -> None:
    result, history = search(goal, lambda frames: outcome(frames <= truth))
    holds(goal, result, truth)
    assert result.trials == len(history)
    assert history[0].burst.frames == goal.ceiling
    assert len(history) <= 1 + (goal.ceiling - 1).bit_length()


@given(goals(verifications=1), st.integers(0, FRAMES_MAX), st.randoms(use_true_random=False))
def test_a_verified_loss_is_no_accident(goal: BurstGoal, truth: int, chance: object) -> None:
    """A gateway that now and then loses a frame of any burst, but never twice in a row, is measured as it is."""
    is_accident = False

    def send(frames: int) -> Outcome:
        nonlocal is_accident
        is_accident = not is_accident and chance.random() < 0.5  # type: ignore[attr-defined]
        return outcome(frames <= truth and not is_accident)

    result, _ = search(goal, send)
    holds(goal, result, truth)


@given(goals(), st.integers(0, FRAMES_MAX), st.randoms(use_true_random=False))
def test_accidents_never_make_a_burst_longer(goal: BurstGoal, truth: int, chance: object) -> None:
    result, _ = search(goal, lambda frames: outcome(frames <= truth and chance.random() < 0.5))  # type: ignore[attr-defined]
    assert result.frames <= truth


@given(goals(verifications=1), st.integers(0, FRAMES_MAX), st.integers(0, FRAMES_MAX))
def test_a_burst_that_the_tester_cannot_send_ends_the_search(goal: BurstGoal, truth: int, reach: int) -> None:
    def send(frames: int) -> Outcome:
        return Outcome.TESTER_LIMITED if frames > reach else outcome(frames <= truth)

    result, history = search(goal, send)
    if reach < goal.ceiling:
        assert (result.kind, result.tester_limited_at, result.frames) == ("tester_limited", goal.ceiling, 0)
        assert len(history) == 1
    else:
        holds(goal, result, truth)


@given(goals(verifications=1), st.integers(0, FRAMES_MAX))
def test_every_prefix_of_a_history_leads_to_the_same_next_burst(goal: BurstGoal, truth: int) -> None:
    _, history = search(goal, lambda frames: outcome(frames <= truth))
    for number, trial in enumerate(history):
        assert next_burst(goal, history[:number]) == trial.burst


@given(goals(), st.integers(1, FRAMES_MAX), st.integers(0, 1000), st.randoms(use_true_random=False))
def test_no_bound_is_one_at_which_the_tester_was_late(goal: BurstGoal, truth: int, most: int, chance: object) -> None:
    """A burst that is late passes though it is too long, or fails though it is not, by as many frames as it is late."""
    delay = 0

    def late(_: Burst) -> int:
        return delay

    history: list[BurstTrial] = []
    while not isinstance(step := next_burst(goal, history), BurstResult):
        assert len(history) < 400
        most_now = most if step.late_frames_max is None else min(most, step.late_frames_max)
        delay = chance.randint(0, most_now)  # type: ignore[attr-defined]
        shifted = truth + chance.choice((-delay, delay))  # type: ignore[attr-defined]
        history.append(BurstTrial(burst=step, outcome=outcome(step.frames <= shifted), late_frames=delay))
    if step.kind == "found":
        assert step.upper_frames is not None
        gap = goal.gap(step.frames)
        assert step.frames - gap <= truth < step.upper_frames + gap
