"""What a run of the plan found. Counts are integers and primary; ratios and summaries derive from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from gatemark.procedures.delay_result import DelayPoint
from gatemark.procedures.delay_result import LimitedBy as LimitedBy
from gatemark.procedures.event_result import BackToBack, Recovery, Reset
from gatemark.search.goal import Goal, Kind, SearchResult
from gatemark.stats.summary import Summary, summarise
from gatemark.trial.cell import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLoss:
    """Loss of one class of frames in one direction at one load; one number for each valid repetition."""

    direction: str
    """``forward`` or ``reverse``."""
    kind: str
    """``foreground`` or ``background`` (RFC 8219 section 5.3)."""
    offered: tuple[int, ...]
    undelivered: tuple[int, ...]
    """Frames lost or faulty."""
    faulty: tuple[int, ...]
    """Frames among them that came back wrong."""
    duplicate: tuple[int, ...]

    @property
    def loss_ratios(self) -> tuple[Fraction, ...]:
        """Undelivered over offered, in [0, 1], of each repetition (RFC 2544 section 26.3)."""
        return tuple(Fraction(u, o) for u, o in zip(self.undelivered, self.offered, strict=True) if o)

    @property
    def loss_ratio(self) -> Summary | None:
        """Summary of the loss ratios; None where nothing was offered."""
        return summarise(self.loss_ratios) if self.loss_ratios else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LossPoint:
    """Frame loss at one load."""

    frames_per_second: int
    """Intended load of each direction."""
    measured: int
    """Repetitions with a valid trial."""
    tester_limited: int
    """Repetitions in which the Tester could not offer the load validly."""
    losses: tuple[ClassLoss, ...]

    @property
    def measurable(self) -> bool:
        """Whether anything is known of the gateway at this load."""
        return self.measured > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaTried:
    """One share of the rate at which a validation was tried (RFC 9693 section 4.6)."""

    alpha: Fraction
    lower_bound: int | None
    """Highest validated rate that passed with it, connections/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TearDown:
    """Times to delete all connections (RFC 9693 section 4.8), one for each repetition, nanoseconds."""

    connections: int
    full_ns: tuple[int, ...]
    empty_ns: tuple[int, ...]

    @property
    def net_ns(self) -> Fraction:
        """Median of the full table's times less median of the empty table's; may be 0 or negative."""
        return Fraction(summarise(self.full_ns).median) - Fraction(summarise(self.empty_ns).median)

    @property
    def rate(self) -> Fraction | None:
        """Connections deleted per second, N / (t_full - t_empty), unrounded; None if the difference is not above 0."""
        return Fraction(self.connections * 10**9) / self.net_ns if self.net_ns > 0 else None

    @property
    def is_reliable(self) -> bool:
        """Whether both spreads (p99 - p1) together are at most a tenth of the difference."""
        full, empty = summarise(self.full_ns), summarise(self.empty_ns)
        spread = Fraction(full.p99) - Fraction(full.p1) + Fraction(empty.p99) - Fraction(empty.p1)
        return self.net_ns > 0 and spread * 10 <= self.net_ns


Overflow = Literal["refused", "evicted", "untranslated", "collapsed", "other"]
"""What a gateway did with connections beyond its capacity: refused new ones; accepted them and lost established ones;
forwarded them untranslated; stopped working; anything else (RFC 9693 section 4.9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityStep:
    """One elementary measurement of the capacity: the validated rate with so many connections."""

    search: Literal["start", "exponential", "binary"]
    connections: int
    rate: int | None
    """Highest validated rate that passed, connections/s; None if none down to the stop rate did."""
    stop_rate: int
    """Rate below which the table was taken for full."""
    stored: bool
    """Whether the gateway held so many connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """One search for the connection tracking table capacity (RFC 9693 section 4.9)."""

    kind: Kind
    """``found``, ``maximum_passed`` (the gateway may hold more), ``nothing_passes`` or ``tester_limited``."""
    capacity: int | None
    """Most connections that were stored and validated."""
    upper_bound: int | None
    """Fewest connections that were not."""
    steps: tuple[CapacityStep, ...]
    start: SearchResult | None = None
    """The search for R0 with C0 connections; None if the gateway collapsed in it."""
    overflow: Overflow | None = None
    """What happened to the connections beyond the capacity; None if the search saw none."""
    lost_connections: Literal["oldest", "newest", "spread"] | None = None
    """Which established connections were gone, in order of establishment; None if none was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """One run: a procedure on one cell of the matrix, all repetitions.

    Loads are frames/s in one direction; connections/s where connections are established.
    """

    run: Run
    limited_by: LimitedBy
    """``tester`` if the Tester was the limit in any repetition: then all that is known of the gateway is a lower bound.
    ``maximum`` if the highest load passed in any repetition, else ``gateway``. If it passed in some and not in others,
    all that is known is a lower bound as well."""
    goal: Goal | None = None
    """Throughput and establishment rate: what was searched for. Capacity: the rate search with which it begins."""
    repetitions: tuple[SearchResult, ...] = ()
    """Throughput and establishment rate: one search each."""
    points: tuple[LossPoint, ...] = ()
    """Frame loss: highest load first."""
    theoretical_maximum: int | None = None
    """What the medium carries at this frame size (RFC 5180 appendix A.1); None if its rate is not known."""
    alpha: Fraction | None = None
    """Validated establishment rate: share of the rate at which the validation was made."""
    alphas_tried: tuple[AlphaTried, ...] = ()
    """Where alpha was searched for: what was tried, largest first."""
    tear_down: TearDown | None = None
    capacities: tuple[Capacity, ...] = ()
    """Capacity: one search each."""
    delays: tuple[DelayPoint, ...] = ()
    """Latency and delay variation: one point for each load, in the order of the campaign file."""
    back_to_back: BackToBack | None = None
    recovery: Recovery | None = None
    resets: Reset | None = None
    refused: str | None = None
    """Why the procedure could not be made here, as a sentence; None if it was. `limited_by` is then ``gateway`` if the
    gateway is the reason (it forwards nothing, or it forwards the line rate), else ``tester``."""

    @property
    def lower_bounds(self) -> tuple[int, ...]:
        """Highest load that passed in each repetition, 0 where none did."""
        return tuple(result.lower_bound or 0 for result in self.repetitions)

    @property
    def summary(self) -> Summary | None:
        """Rate that the gateway reaches over all repetitions; None where a rate and a lower bound would be mixed.

        That is where the Tester was the limit in any of them, or where the maximum passed in some and not in others.
        """
        return summarise(self.lower_bounds) if self.repetitions and are_alike(self.repetitions) else None

    @property
    def at_least(self) -> Summary | None:
        """What the gateway reaches at least, where there is no summary."""
        return summarise(self.lower_bounds) if self.repetitions and not are_alike(self.repetitions) else None

    @property
    def resolution(self) -> int | None:
        """Resolution of the searches, the widest where it is a share of what they found; of R0 for the capacity."""
        if self.goal is None:
            return None
        if isinstance(self.goal.resolution, int):
            return self.goal.resolution
        starts = (capacity.start for capacity in self.capacities if capacity.start is not None)
        return max((search.resolution for search in (*self.repetitions, *starts)), default=None)

    @property
    def tester_limited_at(self) -> int | None:
        """Lowest load at which the Tester was the limit."""
        limits = [result.tester_limited_at for result in self.repetitions if result.tester_limited_at is not None]
        limits += [point.frames_per_second for point in self.points if point.tester_limited]
        limits += [point.frames_per_second for point in self.delays if point.tester_limited]
        return min(limits, default=None)


def are_alike(repetitions: Sequence[SearchResult] | Sequence[Capacity]) -> bool:
    """Whether what the repetitions found may be summarised: all of them ended at the gateway, or all at the maximum."""
    kinds = {result.kind for result in repetitions}
    return "tester_limited" not in kinds and ("maximum_passed" not in kinds or len(kinds) == 1)


def searches_limited_by(repetitions: Sequence[SearchResult] | Sequence[Capacity]) -> LimitedBy:
    """Return what limited a run of searches: the Tester in any repetition spoils the claim of all."""
    kinds = {result.kind for result in repetitions}
    if "tester_limited" in kinds:
        return "tester"
    return "maximum" if "maximum_passed" in kinds else "gateway"
