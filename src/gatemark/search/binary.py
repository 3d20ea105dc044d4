"""Binary search, as siitperf does it, but with the maximum tried first.

For the throughput (RFC 2544 section 26.1) and the maximum connection establishment rate (RFC 9693 section 4.5).
"""

from __future__ import annotations

from collections.abc import Sequence

from gatemark.search.goal import (
    Bounds,
    Goal,
    Measure,
    Observation,
    Purpose,
    SearchResult,
    bounds_of,
    conclude,
    sending_ns,
)


def next_step(goal: Goal, history: Sequence[Observation]) -> Measure | SearchResult:
    """Choose what to do after `history`, which holds one observation for every step taken before.

    Pure: same history, same answer; so an interrupted search resumes by replaying its journal.

    1. Trials of `goal.search_duration_ns`: the maximum; then l = 0, h = maximum and, while h - l > resolution,
       (l + h) // 2, never below the minimum.
    2. Trials of `goal.trial_duration_ns` (RFC 2544 section 24), if that is longer: the load found; if it fails, down
       from it, first by one resolution and each time by twice as much, then by halving again.

    With `goal.connections` every trial is whole, so there is only the first stage, and while nothing has passed it goes
    on down to the minimum: a rate is only known to be none once the lowest one failed.

    A load that the Tester could not offer validly ends the interval like one that failed, but it is kept apart and
    never becomes the gateway's upper bound. The result is the highest load that passed, never the last one tried.
    """
    if goal.connections is not None:
        return _next_rate(goal, goal.connections, history)
    search_ns, trial_ns = goal.durations_ns
    searching = [trial for trial in history if trial.duration_ns == search_ns]
    if not searching:
        return Measure(frames_per_second=goal.maximum, duration_ns=search_ns, purpose="search")
    bounds = bounds_of(searching)
    if not _is_finished(goal, bounds):
        return _measure(_halve(goal, bounds), search_ns, "search")
    if search_ns == trial_ns or bounds.lower is None:
        return conclude(goal, history)
    confirming = [trial for trial in history if trial.duration_ns == trial_ns]
    if not confirming:
        return _measure(bounds.lower, trial_ns, "confirmation")
    confirmed = bounds_of(history, pass_duration_ns=trial_ns)
    if confirmed.lower is None and not _is_finished(goal, confirmed):
        return _measure(_step_down(goal, confirmed, len(confirming)), trial_ns, "confirmation")
    return narrow(goal, history)


def _next_rate(goal: Goal, connections: int, history: Sequence[Observation]) -> Measure | SearchResult:
    """Choose the next rate at which `connections` connections are established, or conclude."""
    bounds = bounds_of(history)
    if history and _is_finished(goal, bounds):
        return conclude(goal, history)
    rate = _halve(goal, bounds) if history else goal.maximum
    return Measure(
        frames_per_second=rate,
        duration_ns=sending_ns(connections, rate),
        purpose="search",
        connections=connections,
        alpha=goal.alpha,
    )


def narrow(goal: Goal, history: Sequence[Observation]) -> Measure | SearchResult:
    """Choose the next full-length load that halves what `history` leaves open; the conclusion if it leaves nothing."""
    _, trial_ns = goal.durations_ns
    bounds = bounds_of(history, pass_duration_ns=trial_ns)
    if _is_finished(goal, bounds):
        return conclude(goal, history)
    return _measure(_halve(goal, bounds), trial_ns, "confirmation")


def _is_finished(goal: Goal, bounds: Bounds) -> bool:
    if bounds.end is None:
        return bounds.lower == goal.maximum
    if bounds.lower is None:
        return bounds.end <= (goal.minimum if goal.connections else max(goal.minimum, goal.resolution))
    return bounds.end - bounds.lower <= goal.resolution


def _halve(goal: Goal, bounds: Bounds) -> int:
    """Return the middle of the interval; 0 stands for a lower bound that was not found yet."""
    end = goal.maximum if bounds.end is None else bounds.end
    return max(goal.minimum, ((bounds.lower or 0) + end) // 2)


def _step_down(goal: Goal, bounds: Bounds, tried: int) -> int:
    """Return the next full-length load after `tried` of them did not pass.

    The short trials' result is close in most cases, so it is left in steps that double: halving from 0 would spend a
    dozen full-length trials on a gateway that misses it by little.
    """
    end = goal.maximum if bounds.end is None else bounds.end
    step = goal.resolution << (tried - 1)
    return max(goal.minimum, end // 2, end - step)


def _measure(load: int, duration_ns: int, purpose: Purpose) -> Measure:
    return Measure(frames_per_second=load, duration_ns=duration_ns, purpose=purpose)
