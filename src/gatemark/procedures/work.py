"""How much work a run is: trials and time, at least and at most, without invalid trials. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from gatemark.search.goal import Goal

ASSUMED_CONNECTIONS_PER_SECOND = 100_000
"""The connection establishment rate of a slow gateway on one core, with which the most work is estimated."""

ASSUMED_RATE_MAX = 10_000_000
"""Frames/s or connections/s up to which an open-ended search is estimated."""

ASSUMED_BUFFER_NS = 1_000_000
"""Frames that a gateway buffers, as the time in which they arrive, in estimates of MLRsearch. A gateway that buffers
more, or whose rate changes from trial to trial, takes longer."""


CONFIRMATIONS_MAX = 4
"""Full-length trials after a search with short ones: usually the first passes; each failure steps further down."""


@dataclass(frozen=True, slots=True)
class Work:
    """A number of trials and the nanoseconds that they take."""

    trials: int = 0
    ns: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.trials + other.trials, self.ns + other.ns)

    def __mul__(self, times: int) -> Work:
        return Work(self.trials * times, self.ns * times)


LeastAndMost = tuple[Work, Work]


def least_and_most(works: Collection[Work]) -> LeastAndMost:
    """Return the fewest trials and the shortest time of any of these, and the most trials and the longest time."""
    trials, times = [work.trials for work in works], [work.ns for work in works]
    return Work(min(trials), min(times)), Work(max(trials), max(times))


def binary_search_work(goal: Goal, waits_ns: int) -> LeastAndMost:
    """Return the least and the most work of one binary search."""
    search_ns, trial_ns = goal.durations_ns
    short, full = search_ns + waits_ns, trial_ns + waits_ns
    halvings = (-(-goal.maximum // goal.gap) - 1).bit_length()
    if search_ns == trial_ns:
        return Work(1, full), Work(1 + halvings, (1 + halvings) * full)
    most_ns = (1 + halvings) * short + CONFIRMATIONS_MAX * full
    return Work(2, short + full), Work(1 + halvings + CONFIRMATIONS_MAX, most_ns)
