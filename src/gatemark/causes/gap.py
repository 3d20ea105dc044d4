"""For some time nothing passes, and before and afterwards everything: a gateway that stops, a path that is switched.

Rule: at most 64 runs of lost frames, each of at least 5 ms and ten frames, hold at least 95 % of the lost frames of the
direction; four or more are a quarter of the trial at most, or last 20 ms each, and the gateway's queues have not
counted their frames: one that is emptied in batches loses all frames meanwhile. If all runs are eight at most, 20 ms or
more apart from each other, and a fifth of the trial together, then those of a millisecond and four frames count, too:
no overload is so seldom. They are periodic if their beginnings are equally far from each other within a tenth. Error:
`losses.chance_of`, for any choice of as many runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from gatemark.causes.losses import Losses, chance_either_way, chance_of, is_claimed
from gatemark.trial.cause import Cause
from gatemark.trial.loss import LossCount, LossRun
from gatemark.units import format_duration_ns

GAP_MIN_NS = 5_000_000
FRAMES_MIN = 10
SELDOM_MAX = 8
"""So many rows at most are those of something that seldom happens, if they are as far apart as this."""
APART_MIN_NS = 20_000_000
SELDOM_PART = 5
"""And together one of so many parts of the trial at most."""
SHORT_MIN_NS = 1_000_000
SHORT_FRAMES_MIN = 4
PERIODIC_MIN = 4
"""So many gaps at least have a period."""
PART_MAX = 4
"""So many gaps are one of so many parts of the trial at most: else it is a queue that is seldom emptied."""
STOP_MIN_NS = 20_000_000
"""Unless each of them is as long as this: no queue is emptied so seldom."""
PERIOD_SPREAD = 10
"""The times between gaps differ from their mean by one of so many parts at most."""


def is_long(losses: Losses, frames: int) -> bool:
    """Whether so many frames in a row are more than a full queue loses while it is emptied."""
    return frames >= FRAMES_MIN and losses.time_ns(frames) >= GAP_MIN_NS


def chance_in_rows(losses: Losses) -> float:
    """Return the natural logarithm of the chance that the lost frames of a class are in as few rows, long or short."""
    part = LossCount(lost=losses.lost, arrived=0)
    return chance_either_way(part, losses.whole, 2 * losses.counts.loss.runs * math.log(losses.counts.offered))


def explain(losses: Losses) -> Cause | None:
    """Return when nothing arrived; None if losses are spread over the trial."""
    direction = losses.direction
    gaps = _gaps(losses)
    lost = sum(counts.lost for _, counts in direction.classes)
    inside = sum(gap.length for gap in gaps)
    if not losses.is_even or not gaps or inside >= direction.offered:
        return None
    if len(gaps) >= PERIODIC_MIN and (losses.queues_counted_them or not _are_stops(losses, gaps)):
        return None
    part, whole = LossCount(lost=inside, arrived=0), LossCount(lost=lost, arrived=direction.offered - lost)
    chance = chance_of(part, whole, 2 * len(gaps) * math.log(direction.offered))
    if not is_claimed(lost, inside, chance):
        return None
    words = _words(losses, gaps)
    return losses.cause(
        "gap", words, what=_what(gaps), explained=min(losses.lost, losses.scaled(inside, lost)), chance=chance
    )


def _gaps(losses: Losses) -> list[LossRun]:
    runs = losses.direction.longest_loss_runs
    if _are_seldom(losses, runs):
        return [run for run in runs if run.length >= SHORT_FRAMES_MIN and losses.time_ns(run.length) >= SHORT_MIN_NS]
    return [run for run in runs if is_long(losses, run.length)]


def _are_seldom(losses: Losses, runs: Sequence[LossRun]) -> bool:
    """Whether rows are too few and too far from each other to be those of an overload."""
    between = (after.index - before.index - before.length for before, after in pairwise(runs))
    return (
        len(runs) <= SELDOM_MAX
        and sum(run.length for run in runs) * SELDOM_PART <= losses.direction.offered
        and all(losses.time_ns(frames) >= APART_MIN_NS for frames in between)
    )


def _are_stops(losses: Losses, gaps: Sequence[LossRun]) -> bool:
    """Whether gaps are rather those of something that stops than of a queue that is seldom emptied."""
    shortest, inside = min(gap.length for gap in gaps), sum(gap.length for gap in gaps)
    return inside * PART_MAX <= losses.direction.offered or losses.time_ns(shortest) >= STOP_MIN_NS


def _what(gaps: Sequence[LossRun]) -> str:
    return "what was sent in gaps" if len(gaps) > 1 else "what was sent in a gap"


def _words(losses: Losses, gaps: Sequence[LossRun]) -> str:
    begins = [losses.time_ns(gap.index) for gap in gaps]
    lengths = sorted(losses.time_ns(gap.length) for gap in gaps)
    if len(gaps) == 1:
        return (
            f"one gap of {format_duration_ns(lengths[0])} at {format_duration_ns(begins[0])}: all {gaps[0].length:,}"
            " frames that were sent in it were lost"
        )
    shortest, longest = format_duration_ns(lengths[0]), format_duration_ns(lengths[-1])
    spread = shortest if shortest == longest else f"{shortest} to {longest}"
    period_ns = _period_ns(begins)
    when = (
        f"one every {format_duration_ns(period_ns)}"
        if period_ns is not None
        else f"the first at {format_duration_ns(begins[0])}, the last at {format_duration_ns(begins[-1])}"
    )
    total = sum(gap.length for gap in gaps)
    return f"{len(gaps)} gaps of {spread}, {when}: all {total:,} frames that were sent in them were lost"


def _period_ns(begins: Sequence[int]) -> int | None:
    """Return the mean time between gaps; None if they come irregularly."""
    between = [later - earlier for earlier, later in pairwise(begins)]
    if len(begins) < PERIODIC_MIN:
        return None
    mean = sum(between) // len(between)
    return mean if all(abs(time - mean) * PERIOD_SPREAD <= mean for time in between) else None
