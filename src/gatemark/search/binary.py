"""Binary search as siitperf does it, except that the maximum is tried first, and that it goes on while nothing passes.

An open-ended search finds its maximum.

For the throughput (RFC 2544 section 26.1) and the maximum connection establishment rate (RFC 9693 section 4.5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gatemark.search.goal import (
    Bounds,
    Goal,
    Measure,
    Observation,
    Outcome,
    Purpose,
    SearchResult,
    bounds_of,
    conclude,
    sending_ns,
)


def next_step(goal: Goal, history: Sequence[Observation]) -> Measure | SearchResult:
    """Choose what to do after `history`, which holds one observation for every step taken so far.

    Pure: same history, same answer; so an interrupted search resumes by replaying its journal.

    0. Open-ended: the first load, then twice the load before, until one does not pass. That load is the maximum.
    1. Trials of `goal.search_duration_ns`: the maximum; then l = 0, h = maximum and, while h - l > resolution or
       nothing has passed, (l + h) // 2, never below the minimum.
    2. Trials of `goal.trial_duration_ns` (RFC 2544 section 24), if that is longer: the load found; if it fails, lower
       loads, first by one resolution, then by twice the step before each time, then by halving again.

    With `goal.connections` every trial has its full length, so there is only the first stage. That no load passes is
    only known once the minimum has failed.

    A load that the Tester could not offer validly ends the interval like one that failed, but it is recorded separately
    and never becomes the gateway's upper bound. The result is the highest load that passed, never the last one tried.
    """
    if goal.ceiling is not None:
        end = upper_end(goal, history)
        return end if isinstance(end, Measure) else next_step(goal.ending_at(end), history)
    if goal.connections is not None:
        return _next_rate(goal, history)
    search_ns, trial_ns = goal.durations_ns
    searching = [trial for trial in history if trial.duration_ns == search_ns]
    if not searching:
        return _search_at(goal, goal.maximum)
    bounds = bounds_of(searching)
    if not _is_finished(goal, bounds):
        return _search_at(goal, _halve(goal, bounds))
    if search_ns == trial_ns or bounds.lower is None:
        return conclude(goal, history)
    confirming = [trial for trial in history if trial.duration_ns == trial_ns]
    if not confirming:
        return _measure(bounds.lower, trial_ns, "confirmation")
    confirmed = bounds_of(history, pass_duration_ns=trial_ns)
    if confirmed.lower is None and not _is_finished(goal, confirmed):
        return _measure(_step_down(goal, confirmed, len(confirming)), trial_ns, "confirmation")
    return narrow(goal, history)


def search(goal: Goal, measure: Callable[[Measure], Observation]) -> SearchResult:
    """Search with trials made by `measure`; its exceptions pass through."""
    history: list[Observation] = []
    while isinstance(step := next_step(goal, history), Measure):
        history.append(measure(step))
    return step


def upper_end(goal: Goal, history: Sequence[Observation]) -> Measure | int:
    """Return the load at which an open-ended search found its upper end, or the next step if it has not found it yet.

    That is the first load that did not pass, because the gateway failed or the Tester was the limit, or the ceiling.
    """
    if goal.ceiling is None:
        return goal.maximum
    load = goal.maximum
    for trial in history:
        if trial.outcome is not Outcome.PASSED or load == goal.ceiling:
            return load
        load = min(2 * load, goal.ceiling)
    return _search_at(goal, load)


def _next_rate(goal: Goal, history: Sequence[Observation]) -> Measure | SearchResult:
    """Choose the next rate at which connections are established, or conclude."""
    bounds = bounds_of(history)
    if history and _is_finished(goal, bounds):
        return conclude(goal, history)
    return _search_at(goal, _halve(goal, bounds) if history else goal.maximum)


def narrow(goal: Goal, history: Sequence[Observation]) -> Measure | SearchResult:
    """Choose the next full-length load that halves what `history` leaves open; conclude if it leaves nothing open."""
    _, trial_ns = goal.durations_ns
    bounds = bounds_of(history, pass_duration_ns=trial_ns)
    if _is_finished(goal, bounds):
        return conclude(goal, history)
    return _measure(_halve(goal, bounds), trial_ns, "confirmation")


def _is_finished(goal: Goal, bounds: Bounds) -> bool:
    if bounds.end is None:
        return bounds.lower == goal.maximum
    if bounds.lower is None:
        return bounds.end <= goal.minimum
    return bounds.end - bounds.lower <= goal.gap


def _halve(goal: Goal, bounds: Bounds) -> int:
    """Return the middle of the interval; a lower bound that is not yet known counts as 0."""
    end = goal.maximum if bounds.end is None else bounds.end
    return max(goal.minimum, ((bounds.lower or 0) + end) // 2)


def _step_down(goal: Goal, bounds: Bounds, tried: int) -> int:
    """Return the next full-length load after `tried` of them did not pass.

    The result of the short trials is usually close, so the search moves away from it in steps that double: halving from
    0 would spend a dozen full-length trials on a gateway that misses it only narrowly.
    """
    end = goal.maximum if bounds.end is None else bounds.end
    step = goal.gap << (tried - 1)
    return max(goal.minimum, end // 2, end - step)


def _search_at(goal: Goal, load: int) -> Measure:
    """Return the trial that searches at a load: a short one, or one that establishes all connections."""
    if goal.connections is None:
        return _measure(load, goal.durations_ns[0], "search")
    return Measure(
        frames_per_second=load,
        duration_ns=sending_ns(goal.drawn_frames or goal.connections, load),
        purpose="search",
        connections=goal.connections,
        drawn_frames=goal.drawn_frames,
        alpha=goal.alpha,
    )


def _measure(load: int, duration_ns: int, purpose: Purpose) -> Measure:
    return Measure(frames_per_second=load, duration_ns=duration_ns, purpose=purpose)
