"""Gateways made of numbers, on which estimates run the procedures. Pure.

They are steady: what they do with a trial follows from the trial alone. Each procedure is run on some with which it has
the least and the most to do (`Procedure.gateways`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from gatemark.config.model import Campaign
from gatemark.config.types import FRAMES_PER_SECOND_MAX
from gatemark.procedures.loads import maximum_of
from gatemark.procedures.measured import Measured
from gatemark.procedures.phase_one import foreground_of, lasting_rate
from gatemark.search.goal import Goal, Measure, Observation, Outcome, SearchResult
from gatemark.trial.cell import Cell, Run
from gatemark.units import NANOSECONDS_PER_SECOND, frames_in

ASSUMED_CONNECTIONS_PER_SECOND = 100_000
"""The connection establishment rate of a slow gateway on one core, with which the most work is estimated."""

ASSUMED_RATE_MAX = 10_000_000
"""Frames/s or connections/s up to which an open-ended search is estimated."""

ASSUMED_BUFFER_NS = 1_000_000
"""Frames that a gateway buffers, as the time in which they arrive, in estimates of MLRsearch. A gateway that buffers
more, or whose rate changes from trial to trial, takes longer."""

MISSED_RESOLUTIONS = Fraction(5, 2)
"""By how many resolutions long trials miss the result of short ones, in estimates of a search with both: between the
second and the third step down, so that four long trials are needed. Usually the first one passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedGateway:
    """What a gateway can do, and what runs before find of it: they need not have the same traffic."""

    frames_per_second: int
    """Of each direction."""
    kept_frames: int = 0
    """Frames of a trial above that rate which are buffered and forwarded later: a short trial passes at loads at which
    a long one loses frames."""
    connections_per_second: int
    replies_per_second: int | None = None
    """Frames of a validation after that (RFC 9693 section 4.6); None: no limit."""
    table_size: int | None = None
    """Connections; None: no limit."""
    throughput: int
    """What a search before the run found, frames/s."""
    establishment: SearchResult | None = None
    """What a search before the run found for connections; None: exactly their rate."""

    @property
    def found_frames(self) -> SearchResult:
        """What a search for the highest rate of frames found in the run before."""
        return _exactly(self.throughput)

    @property
    def found_connections(self) -> SearchResult:
        """What a search for the highest rate of connections found in the run before."""
        return self.establishment or _exactly(self.connections_per_second)

    def measured(self, step: Measure) -> Measured:
        """Return what a trial finds."""
        if step.establishes:
            offered, lost = 1, int(not self._establishes(step))
        else:
            offered = max(1, frames_in(step.frames_per_second, step.duration_ns))
            lost = max(0, offered - frames_in(self.frames_per_second, step.duration_ns) - self.kept_frames)
        return Measured(
            observation=Observation(
                frames_per_second=step.frames_per_second,
                duration_ns=step.duration_ns,
                outcome=Outcome.FAILED if lost else Outcome.PASSED,
                offered=offered,
                undelivered=lost,
            )
        )

    def _establishes(self, step: Measure) -> bool:
        is_stored = self.table_size is None or (step.connections or 0) <= self.table_size
        replies = 0 if step.alpha is None else int(step.alpha * step.frames_per_second)
        is_answered = self.replies_per_second is None or replies <= self.replies_per_second
        return is_stored and is_answered and step.frames_per_second <= self.connections_per_second

    def just_below(self, goal: Goal) -> AssumedGateway:
        """Return one on which a binary search with a known maximum takes most trials.

        The maximum fails in short trials, and every load below it passes. Long trials miss the result of the search by
        `MISSED_RESOLUTIONS`, because the gateway buffers that many frames.
        """
        highest, missed, (search_ns, trial_ns) = below_maximum(goal), 0, goal.durations_ns
        if search_ns < trial_ns:
            missed = min(highest, int(MISSED_RESOLUTIONS * goal.gap / (1 - Fraction(search_ns, trial_ns))))
        return replace(self, frames_per_second=highest - missed, kept_frames=frames_in(missed, search_ns))

    def establishing(self, rate: int) -> AssumedGateway:
        """Return one with another connection establishment rate."""
        return replace(self, connections_per_second=rate)


def _exactly(rate: int) -> SearchResult:
    return SearchResult(kind="found", lower_bound=rate, upper_bound=rate + 1, resolution=1, highest_load=rate + 1)


def extremes(campaign: Campaign, run: Run, line_maximum: int | None) -> tuple[AssumedGateway, AssumedGateway]:
    """Return a gateway with which nothing fails, and one that forwards nothing although runs before found a rate.

    The first one was found to forward the line rate, the other half of it: a procedure may have nothing to do at line
    rate. The second one establishes connections slowly, but fast enough for test phase 1.
    """
    line = line_maximum or ASSUMED_RATE_MAX
    fast = _fastest_establishment(campaign, run.cell, line_maximum)
    slow = min(fast, max(ASSUMED_CONNECTIONS_PER_SECOND, _needed_establishment(campaign, run.cell)))
    return (
        AssumedGateway(frames_per_second=FRAMES_PER_SECOND_MAX, connections_per_second=fast, throughput=line),
        AssumedGateway(frames_per_second=0, connections_per_second=slow, throughput=max(1, line // 2)),
    )


def extremes_of_goal(
    campaign: Campaign, run: Run, line_maximum: int | None, goal: Goal
) -> tuple[AssumedGateway, AssumedGateway]:
    """Return the extremes for a search for a rate of connections: that of the first is the highest that is tried."""
    fast = goal.maximum if goal.ceiling is None else max(goal.maximum, min(goal.ceiling, ASSUMED_RATE_MAX))
    slow = max(goal.minimum, min(fast, ASSUMED_CONNECTIONS_PER_SECOND))
    first, second = extremes(campaign, run, line_maximum)
    return first.establishing(fast), second.establishing(slow)


def below_maximum(goal: Goal) -> int:
    """Return the highest rate of a gateway that loses a frame of the maximum even in a short trial."""
    search_ns, _ = goal.durations_ns
    return max(0, goal.maximum - -(-NANOSECONDS_PER_SECOND // search_ns))


def ends_of(goal: Goal) -> Sequence[int]:
    """Return loads at which an open-ended search may find its upper end: the first ones, and up to the assumed end."""
    assert goal.ceiling is not None, "the upper end of any other search is its maximum"
    doublings = max(0, -(-min(ASSUMED_RATE_MAX, goal.ceiling) // goal.maximum) - 1).bit_length()
    return [min(goal.maximum << doubling, goal.ceiling) for doubling in sorted({0, 1, doublings // 2, doublings})]


def buffered(frames_per_second: int) -> int:
    """Return how many frames arrive in `ASSUMED_BUFFER_NS`."""
    return frames_per_second * ASSUMED_BUFFER_NS // NANOSECONDS_PER_SECOND


def _fastest_establishment(campaign: Campaign, cell: Cell, line_maximum: int | None) -> int:
    """Return the highest rate of connections that a run before may find."""
    table = next((table for table in campaign.tables if table.finds_connection_rate), None)
    if table is None:
        return ASSUMED_RATE_MAX
    foreground = foreground_of(cell, line_maximum)
    return maximum_of(campaign, f"{table.key}.maximum", table.highest_rate, foreground) or ASSUMED_RATE_MAX


def _needed_establishment(campaign: Campaign, cell: Cell) -> int:
    """Return the lowest rate of connections with which test phase 1 is possible at all."""
    asked = campaign.connections_model.rate
    if cell.connections is None:
        return 1
    return -(-lasting_rate(campaign, cell.connections) // asked) if isinstance(asked, Fraction) else asked
