"""What a search looks for, what it has observed, and what it concludes. Values and pure functions only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Literal

Purpose = Literal["search", "confirmation", "load", "event", "exchange", "single"]
"""Why a trial is made: to narrow the bounds of a search, to confirm its result, to measure at a given load, to measure
how the gateway reacts to an event, to see what it does with given packets, or because a user asked for a single trial.
"""
Kind = Literal["found", "maximum_passed", "nothing_passes", "tester_limited"]

NANOSECONDS_PER_SECOND = 1_000_000_000


class Outcome(StrEnum):
    """How one load turned out, after the repetitions that invalid trials get."""

    PASSED = "passed"
    FAILED = "failed"
    TESTER_LIMITED = "tester_limited"
    """No trial at this load says anything about the gateway: the Tester fell short, or other work held up the gateway's
    host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a search looks for: with trials of two lengths, or with trials that establish a number of connections.

    Loads are frames per second in one direction, or connections per second.
    """

    maximum: int
    """Highest load, tried first; in an open-ended search only the first load."""
    minimum: int
    """Lowest load tried."""
    resolution: int | Fraction
    """Distance between the bounds at which the search ends. A fraction, in an open-ended search only, is a share of the
    load at which the search found its upper end."""
    ceiling: int | None = None
    """Makes the search open-ended: the load doubles from `maximum` until one does not pass, up to this load."""
    search_duration_ns: int | None = None
    """Length of the trials that look for the result; None with `connections`."""
    trial_duration_ns: int | None = None
    """Length of the trials that confirm it (RFC 2544 section 24); None with `connections`."""
    loss_tolerance: Fraction = Fraction(0)
    """Highest ratio of frames not delivered, in [0, 1); above 0 the result is not an RFC 2544 throughput."""
    connections: int | None = None
    """Connections that every trial establishes; the length of a trial follows from its rate (RFC 9693 section 4.5)."""
    drawn_frames: int | None = None
    """With `connections`: frames of every trial, the connection of each drawn at random; None: one for each."""
    alpha: Fraction | None = None
    """With `connections`: validation rate as a share of the rate (RFC 9693 section 4.6); None: no validation."""

    def __post_init__(self) -> None:
        if not 1 <= self.minimum <= self.maximum:
            raise ValueError(f"a search needs 1 <= minimum <= maximum, not {self.minimum} and {self.maximum}")
        if self.ceiling is not None and self.ceiling < self.maximum:
            raise ValueError(f"an open-ended search cannot begin at {self.maximum}, above its end {self.ceiling}")
        if isinstance(self.resolution, Fraction):
            if self.ceiling is None or not 0 < self.resolution < 1:
                raise ValueError(f"only an open-ended search has a share as resolution, not {self.resolution}")
        elif self.ceiling is not None and self.resolution >= self.maximum:
            raise ValueError(
                f"an open-ended search begins above its resolution of {self.resolution}, not at {self.maximum}"
            )
        elif self.resolution < 1:
            raise ValueError(f"the resolution of a search is at least 1 frame/s, not {self.resolution}")
        if self.connections is None:
            search_ns, trial_ns = self.durations_ns
            if not 0 < search_ns <= trial_ns:
                raise ValueError("trials of a search last longer than 0 and no longer than the trial that confirms")
        elif self.connections < 1:
            raise ValueError(f"a trial establishes at least 1 connection, not {self.connections}")

    @property
    def durations_ns(self) -> tuple[int, int]:
        """Return the lengths of the trials that look for the result and of those that confirm it."""
        if self.search_duration_ns is None or self.trial_duration_ns is None:
            raise ValueError("the trials of this search have no length of their own")
        return self.search_duration_ns, self.trial_duration_ns

    @property
    def gap(self) -> int:
        """Return the resolution as a load, once the maximum of the search is known."""
        if isinstance(self.resolution, Fraction):
            raise ValueError("the resolution is a share of a maximum that the search has still to find")
        return self.resolution

    def ending_at(self, maximum: int) -> Goal:
        """Return the goal of an open-ended search that has found its upper end, which is that of an ordinary search."""
        resolution = self.resolution
        if isinstance(resolution, Fraction):
            resolution = max(1, int(resolution * maximum))
        return replace(self, maximum=maximum, resolution=resolution, ceiling=None)

    def after(self, earlier: Iterable[SearchResult]) -> Goal:
        """Return the goal of a later repetition: an open-ended search begins at the highest load of any earlier one.

        It need not climb again; if that load passes this time, the search goes on from there.
        """
        if self.ceiling is None:
            return self
        return replace(self, maximum=max([self.maximum, *(result.highest_load for result in earlier)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One load that was tried."""

    frames_per_second: int
    duration_ns: int
    outcome: Outcome
    offered: int = 0
    """Frames of the direction and class with the highest loss ratio; with `undelivered` a hint for MLRsearch."""
    undelivered: int = 0
    """How many of them were lost or faulty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Try this load next."""

    frames_per_second: int
    """Intended load of each direction; connections/s where connections are what is measured (RFC 9693 section 4.5)."""
    duration_ns: int
    """Sending time."""
    purpose: Purpose
    """What it is for: `load` measures at a given load, `event` is an overload, reset or tear-down."""
    connections: int | None = None
    """Stateful: number of connections N; 0 where an empty table is deleted. Null: that of the cell."""
    drawn_frames: int | None = None
    """Stateful, establishment: frames of test phase 1, the connection of each drawn at random, so that some come again
    and some never. Null: each connection once."""
    tears_down: bool = False
    """Stateful: whether the connections are deleted and the time of that is measured (RFC 9693 section 4.8)."""
    is_burst: bool = False
    """Whether what is tried is a number of frames, from which the duration follows."""
    alpha: Fraction | None = None
    """Stateful, establishment: `report` is that of the validation, at this share of `frames_per_second` (RFC 9693
    section 4.6). Null: no validation."""
    may_collapse: bool = False
    """Whether a gateway that stops working during the trial is a result, not an error (RFC 9693 section 4.9)."""

    @property
    def establishes(self) -> bool:
        """Whether establishing connections is itself what is measured."""
        return self.connections is not None and not self.tears_down

    @property
    def validation_rate(self) -> int | None:
        """Rate of the validation, connections/s; None where nothing is validated."""
        return None if self.alpha is None else max(1, int(self.alpha * self.frames_per_second))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Conclusion of one search. Every bound is a load that was measured.

    ``found``: both bounds hold, from valid trials; the gateway limits. ``maximum_passed``: no load failed, the
    highest one passed at full length; in an open-ended search that is its ceiling. ``nothing_passes``: every load
    failed, down to the lowest, which is the upper bound.
    ``tester_limited``: the Tester could not offer `tester_limited_at` validly, so all that is known of the gateway is
    that it reaches `lower_bound` (None: not even the lowest load could be offered validly).
    """

    kind: Kind
    """How the search ended."""
    lower_bound: int | None
    """Highest load that passed at full length, below every load that failed. Null if none passed."""
    upper_bound: int | None
    """Lowest load that failed. Null if none failed."""
    resolution: int
    """Distance of the bounds at which the search ended."""
    highest_load: int
    """`goal.maximum`; where that is null, the load at which the search found its upper end."""
    tester_limited_at: int | None = None
    """Lowest load below the upper bound at which no valid trial could be made. Null if there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds that a history of trials leaves."""

    lower: int | None
    """Highest load that passed below `upper`. A pass above a fail is loss inversion and does not count."""
    upper: int | None
    """Lowest load that failed a valid trial."""
    tester_limit: int | None
    """Lowest load below `upper` where the Tester was the limit."""

    @property
    def end(self) -> int | None:
        """Where a search stops looking upwards: the gateway's limit or the Tester's, whichever is lower."""
        if self.tester_limit is None:
            return self.upper
        return self.tester_limit  # by definition below `upper`


def sending_ns(frames: int, frames_per_second: int) -> int:
    """Return how long a number of frames takes at a rate, in nanoseconds, rounded up so that none is cut off."""
    return -(-frames * NANOSECONDS_PER_SECOND // frames_per_second)


def bounds_of(history: Iterable[Observation], *, pass_duration_ns: int = 0) -> Bounds:
    """Return the bounds that `history` leaves, with the gateway's and the Tester's kept apart.

    Only trials of at least `pass_duration_ns` can pass: a short trial that passes does not prove a long one, but a
    short trial that loses frames does lose them.
    """
    trials = list(history)
    upper = min((t.frames_per_second for t in trials if t.outcome is Outcome.FAILED), default=None)
    below = [t for t in trials if upper is None or t.frames_per_second < upper]
    passes = [t for t in below if t.outcome is Outcome.PASSED and t.duration_ns >= pass_duration_ns]
    limits = [t for t in below if t.outcome is Outcome.TESTER_LIMITED]
    return Bounds(
        lower=max((t.frames_per_second for t in passes), default=None),
        upper=upper,
        tester_limit=min((t.frames_per_second for t in limits), default=None),
    )


def conclude(goal: Goal, history: Sequence[Observation]) -> SearchResult:
    """Return what a finished search with a known maximum may claim. The rule is the same for every search.

    A result is the gateway's only if a valid trial failed within the resolution of the highest load that passed.
    """
    bounds = bounds_of(history, pass_duration_ns=goal.trial_duration_ns or 0)
    narrow = bounds.lower is not None and bounds.upper is not None and bounds.upper - bounds.lower <= goal.gap
    kind: Kind
    if narrow:
        kind = "found"
    elif bounds.tester_limit is not None:
        kind = "tester_limited"
    elif bounds.upper is None:
        kind = "maximum_passed"
    elif bounds.lower is None:
        kind = "nothing_passes"
    else:
        kind = "found"
    return SearchResult(
        kind=kind,
        lower_bound=bounds.lower,
        upper_bound=bounds.upper,
        resolution=goal.gap,
        highest_load=goal.maximum,
        tester_limited_at=bounds.tester_limit if kind == "tester_limited" else None,
    )
