"""Losses that no field sets apart: of a queue that overflows, or as chance would draw them.

Frames that are lost independently of each other have a known number of runs of losses (Wald and Wolfowitz 1940), spread
evenly over the trial, and lie at distances of all lengths. A full queue loses otherwise: in rows where it is emptied in
batches, at even distances where it is emptied at a rate, and from the time on when it is full. At even distances
frames are also lost by what takes every so many, and one load does not tell one from the other. A limit that all
directions share may look like chance in each of them, but lets the same number pass in all of them together.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise

from gatemark.causes.evenness import unevenness
from gatemark.causes.losses import Losses
from gatemark.trial.cause import Cause
from gatemark.trial.report import Counts

UNIFORM_LOST_MIN = 50
"""With fewer lost frames a queue may look like chance."""
DEVIATIONS_MAX = 4.0
"""Chance lies within so many standard deviations but once in 15,000 times."""
RARE = math.log(15_000)
"""The same as a logarithm."""
DISTANCES_MIN = 15
SPARSE = 10
"""Distances of so many frames on average and more can be told apart."""
QUEUE_LOST_MIN = 20
SLICES_SHARE = 0.5
"""A queue that overflows loses frames in this share of all hundredths of the trial at least, once it is full.

Fewer hundredths can have a loss where a few are lost one by one at even distances."""
SLICES_MIN = 20
"""So many hundredths of the trial at least follow."""


def uniform(losses: Losses) -> Cause | None:
    """Return that frames were lost independently of time, and whether of fields as well; None if they were not."""
    enough = min(losses.lost, losses.counts.offered - losses.lost) >= UNIFORM_LOST_MIN
    if not losses.is_even or not enough or not _is_like_chance(losses) or _is_shared_limit(losses.lost_together):
        return None
    share = 100 * losses.lost / losses.counts.offered
    uneven = unevenness(losses)
    if uneven is None:
        over = f"field and time: {losses.counts.loss.runs:,} runs of losses, as many as chance makes"
    else:
        over = f"time, but {uneven.words}: {uneven.numbers}"
    return losses.cause(
        "uniform",
        f"{losses.lost:,} of {losses.counts.offered:,} frames ({share:.3g} %) were lost independently of {over}",
        what="frames drawn at random" if uneven is None else f"frames drawn at random, {uneven.words}",
        explained=losses.lost,
        chance=None,
    )


def queue(losses: Losses) -> Cause | None:
    """Return that more frames arrived than were forwarded; None if losses are not spread over the rest of the trial."""
    loss = losses.counts.loss
    if (
        not losses.is_even
        or losses.lost < QUEUE_LOST_MIN
        or _is_like_chance(losses)
        or losses.lost == losses.counts.offered
    ):
        return None
    if losses.has_connections and not losses.queues_counted_them:
        return None
    first = next((number for number, lost in enumerate(loss.by_slice) if lost), len(loss.by_slice))
    slices = loss.by_slice[first:]
    expected = min(len(slices), loss.runs) if _regular_distances(losses) else len(slices)
    if sum(1 for lost in slices if lost) < SLICES_SHARE * expected or len(slices) < SLICES_MIN:
        return None
    rate = losses.direction.frames_per_second * losses.counts.offered // losses.direction.offered
    uneven = unevenness(losses)
    whatever = ", whatever their fields" if uneven is None else ""
    over = "" if uneven is None else f", {uneven.words}: {uneven.numbers}"
    passed = rate * (losses.counts.offered - losses.lost) // losses.counts.offered
    return losses.cause(
        "queue",
        f"a queue overflowed: of {rate:,} frames/s {passed:,} passed{whatever}, and from"
        f" {losses.time_words(loss.first_index)} on frames were lost in {loss.runs:,} runs throughout the trial{over}"
        f"{_unless_in_turn(losses)}",
        what="frames beyond a rate",
        explained=losses.lost,
        chance=None,
    )


def _unless_in_turn(losses: Losses) -> str:
    """Return what else may have lost frames at even distances, unless queues have counted them."""
    distances = _regular_distances(losses)
    if not distances or losses.queues_counted_them:
        return ""
    of_frames = f"{statistics.fmean(distances):.3g} frames"
    return f"; or one of every {of_frames} is lost at any load: a trial at another load shows which"


def _is_like_chance(losses: Losses) -> bool:
    """Whether all of it is as chance makes it: begin and end, number of runs, spread over time, distances.

    Number of runs and spread are judged between the first lost frame and the last one, so that a queue which takes a
    while to fill does not look uneven enough to hide how even it is then.
    """
    loss, lost, offered = losses.counts.loss, losses.lost, losses.counts.offered
    if lost < 2 or lost == offered:
        return False
    untouched = loss.first_index, losses.frames - 1 - loss.last_index
    if any(-lost * math.log1p(-frames / losses.frames) > RARE for frames in untouched):
        return False
    between = max(lost, offered * (losses.frames - sum(untouched)) // losses.frames)
    passed = between - lost
    expected = lost * (passed + 1) / between
    variance = lost * passed * (lost - 1) * (passed + 1) / (between**2 * max(1, between - 1))
    if abs(loss.runs - expected) > DEVIATIONS_MAX * math.sqrt(variance) or _regular_distances(losses):
        return False
    count = len(loss.by_slice)
    first, last = (index * count // losses.frames for index in (loss.first_index, loss.last_index))
    inside = loss.by_slice[first + 1 : last]
    return abs(_dispersion(inside, sum(inside) / max(1, len(inside)) * passed / between)) <= DEVIATIONS_MAX


def _regular_distances(losses: Losses) -> Sequence[int]:
    """Return from how many frames to how many the first runs of losses lie, each within half of their mean; else none.

    Distances that chance makes are exponential, if there are few losses; then each is so with a chance of 0.38.
    """
    distances = [after.index - before.index for before, after in pairwise(losses.counts.loss.first_runs)]
    if len(distances) < DISTANCES_MIN:
        return ()
    mean = statistics.fmean(distances)
    is_sparse = mean * losses.counts.offered / losses.frames >= SPARSE
    is_even = all(abs(distance - mean) <= mean / 2 for distance in distances)
    return distances if is_sparse and is_even else ()


def _is_shared_limit(lost: Iterable[Counts]) -> bool:
    """Whether the losses of all directions and classes together are more even over time than chance makes them."""
    classes = list(lost)
    if len(classes) < 2:
        return False
    together = [sum(counts) for counts in zip(*(each.loss.by_slice for each in classes), strict=True)]
    variance = sum(each.lost * (each.offered - each.lost) / each.offered for each in classes) / max(1, len(together))
    return _dispersion(together, variance) < -DEVIATIONS_MAX


def _dispersion(slices: Sequence[int], variance: float) -> float:
    """Return by how many standard deviations parts of a trial differ more in their losses than chance makes them.

    Chi square has twice as much variance as degrees of freedom. 0 where there is nothing to compare.
    """
    degrees = len(slices) - 1
    if degrees < 1 or variance <= 0:
        return 0.0
    mean = sum(slices) / len(slices)
    return (sum((count - mean) ** 2 for count in slices) / variance - degrees) / math.sqrt(2 * degrees)
