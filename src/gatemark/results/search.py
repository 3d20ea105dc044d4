"""Results of searches for a rate: the highest load that passes, repetition by repetition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field, computed_field

from gatemark.results.coordinates import Coordinate
from gatemark.results.part import LimitedBy, Part, Ratio
from gatemark.results.quantity import Quantity, QuantityKind
from gatemark.results.run import RunResult
from gatemark.search.goal import Kind, SearchResult
from gatemark.stats.summary import Summary


class SearchGoal(Part):
    """What a trial had to meet, and how the load was chosen."""

    search: Literal["binary", "mlrsearch"]
    """How the load was chosen."""
    maximum: int | None
    """Highest load, tried first. Null where the search found it by doubling the load until a trial failed."""
    minimum: int
    """Lowest load."""
    loss_tolerance: Ratio
    """Highest ratio of frames undelivered that still passes; `"0"` is RFC 2544 throughput."""
    search_duration_ns: int | None
    """Sending time of the trials that search. Null where it follows from rate and connections."""
    duration_ns: int | None
    """Sending time of the trials that confirm the result. Null where it follows from rate and connections."""
    frame_timeout_ns: int | None = None
    """A correct frame that arrived later than this after it was sent did not count as delivered. Null without such a
    limit."""


class MaximumForwardingRate(Part):
    """The highest forwarding rate of the trials that failed, with its load (RFC 2285 section 3.6.3)."""

    load: int
    """Load of that trial, frames/s in one direction."""
    frames_per_second: int
    """Frames that arrived as they should per second, for each direction that sent."""
    offered: int
    """Frames offered in that trial."""
    undelivered: int
    """Frames of these that were lost, late or faulty."""


class RateResult(RunResult):
    """A run that searches for the highest rate that passes."""

    unit: ClassVar[Literal["frames/s", "connections/s"]]
    ends_on_a_loss: ClassVar[bool] = True
    is_load_of_others: ClassVar[bool] = True
    """Whether other procedures take shares of it as their load; if not, only its own section shows it."""
    goal: SearchGoal
    """What a trial had to meet, and how the load was chosen."""
    repetitions: tuple[SearchResult, ...]
    """The searches, one for each repetition."""
    self_test_ceiling: int | None = None
    """What the Tester reaches alone, if the rate is within 5 % of it: then the rate is a lower bound of the gateway,
    and `limited_by` is `tester`. Null if it is not, or if no self-test tells."""
    maximum_forwarding_rate: MaximumForwardingRate | None = Field(default=None, exclude_if=lambda rate: rate is None)
    """The highest forwarding rate of a trial that failed (RFC 2285 section 3.6.3). Absent unless it is 1.5 times the
    rate found, or more: then losses so low that few frames were lost limit that rate, and not how much the gateway can
    forward."""

    @property
    def is_validated(self) -> bool:
        """Whether what passed was checked again afterwards."""
        return False

    @property
    def is_searched_alpha(self) -> bool:
        """Whether the rate of that check was searched for, so that it may be another one in each run."""
        return False

    @property
    def is_tolerant(self) -> bool:
        """Whether losses are tolerated: then it is not the rate that an RFC defines."""
        return self.goal.loss_tolerance > 0

    @property
    def lower_bounds(self) -> tuple[int, ...]:
        """Highest load that passed in each repetition, 0 where none did."""
        return tuple(search.lower_bound or 0 for search in self.repetitions)

    @property
    def published_bounds(self) -> tuple[int, ...]:
        """The same as the values of a figure; none if `refused` says why they are no limit."""
        return () if self.refused is not None else self.lower_bounds

    @property
    def resolution(self) -> int | None:
        """Distance of the bounds at which the searches ended, the largest one; None without repetitions."""
        return max((search.resolution for search in self.repetitions), default=None)

    @property
    def proven(self) -> int:
        """Rate that every repetition proved; 0 if there is none. If the Tester was the limit, more may pass."""
        return min(self.lower_bounds, default=0)

    @property
    def rate(self) -> Summary | None:
        """The rate over the repetitions; None unless all of them measured it in the same way.

        A repetition that ended at the maximum and one that did not are never summarised together. Near the Tester's
        own ceiling there is none.
        """
        if self.self_test_ceiling is not None or self.refused is not None:
            return None
        kinds = {search.kind for search in self.repetitions}
        if not kinds or "tester_limited" in kinds or kinds == {"nothing_passes"}:
            return None
        if "maximum_passed" in kinds and len(kinds) > 1:
            return None
        return Summary.of(self.lower_bounds)

    @computed_field
    @property
    def lower_bound(self) -> int | None:
        """Smallest lower bound of the repetitions. Null unless a load passed in each of them, and if `refused` says
        why that is no limit."""
        return None if self.refused is not None else lowest_pass([search.lower_bound for search in self.repetitions])

    @computed_field
    @property
    def upper_bound(self) -> int | None:
        """Largest upper bound of the repetitions. Null if no load failed in any, near the ceiling of the self-test,
        and if `refused` says why that is no limit."""
        if self.self_test_ceiling is not None or self.refused is not None:
            return None
        return largest_failure(search.upper_bound for search in self.repetitions)

    @computed_field
    @property
    def tester_limited_at(self) -> int | None:
        """Lowest load at which the Tester was the limit, or the ceiling of the self-test if the rate is near it. Null
        if it never was."""
        return lowest_limit([*(search.tester_limited_at for search in self.repetitions), self.self_test_ceiling])

    def rate_quantity(self, kind: QuantityKind, where: Mapping[str, Coordinate]) -> Quantity:
        """Return the rate as the headline; `where` has coordinates in addition to the loss that is tolerated."""
        tolerance = {"loss_tolerance": str(self.goal.loss_tolerance)} if self.is_tolerant else {}
        return self.quantity(
            kind,
            values=self.published_bounds,
            summary=self.rate,
            where={**tolerance, **where},
            lower_bound=self.lower_bound,
            upper_bound=self.upper_bound,
            resolution=self.resolution,
            tester_limited_at=self.tester_limited_at,
            is_headline=True,
        )


def lowest_pass(bounds: Sequence[int | None]) -> int | None:
    """Return the smallest of the values that passed, one for each repetition; None unless one passed in each."""
    passed = [bound for bound in bounds if bound is not None]
    return min(passed) if passed and len(passed) == len(bounds) else None


def largest_failure(bounds: Iterable[int | None]) -> int | None:
    """Return the largest of the lowest values that failed, one for each repetition; None if none failed."""
    return max((bound for bound in bounds if bound is not None), default=None)


def lowest_limit(limits: Iterable[int | None]) -> int | None:
    """Return the smallest value at which the Tester was the limit in any repetition; None if it never was."""
    return min((limit for limit in limits if limit is not None), default=None)


def measured_alike(kinds: Iterable[Kind]) -> bool:
    """Whether every search ended at a value that passed, and all in the same way: at a limit or at the maximum."""
    return set(kinds) in ({"found"}, {"maximum_passed"})


def limited_by(kinds: Sequence[Kind]) -> LimitedBy:
    """Return what limited a run of searches: the Tester in any repetition invalidates the claim of all of them."""
    if "tester_limited" in kinds:
        return "tester"
    return "maximum" if "maximum_passed" in kinds else "gateway"
