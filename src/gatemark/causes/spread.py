"""Losses that no field sets apart: of a queue that overflows, or as chance would draw them.

Frames that are lost independently of each other have a known number of runs of losses (Wald and Wolfowitz 1940), spread
evenly over the trial, and lie at distances of all lengths. A full queue loses otherwise: in rows where it is emptied in
batches, at even distances where it is emptied at a rate, and from the time on when it is full. At even distances
frames are also lost by what takes every so many, and one load does not tell one from the other. A limit that all
directions share may look like chance in each of them, but lets the same number pass in all of them together.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise

from gatemark.causes import flows, rows
from gatemark.causes.evenness import spread_words, unevenness
from gatemark.causes.losses import Losses
from gatemark.causes.randomness import (
    DEVIATIONS_MAX,
    chance_of_so_few_runs,
    chance_of_so_many_runs,
    difference,
    is_by_chance_from_end_to_end,
)
from gatemark.trial.cause import Cause
from gatemark.trial.loss import RARE
from gatemark.trial.report import Counts

UNIFORM_LOST_MIN = 50
"""With fewer lost frames a queue may look like chance."""
DISTANCES_MIN = 15
SPARSE = 5
"""Distances of so many frames on average and more can be told apart."""
SPELL_PART = 10
"""A spell spares one of so many parts of the trial at least, before it or after it."""
QUEUE_LOST_MIN = 20
SLICES_SHARE = 0.5
"""A queue that overflows loses frames in this share of all hundredths of the trial at least, once it is full.

Fewer hundredths can have a loss where a few are lost one by one at even distances."""
STEADY_MAX = 0.5
"""Losses beyond a rate vary less than this between parts of a trial, by what rows at random make of it."""
END_PART, PASSED_MIN = 3, 20
"""In the last third of a trial a rate lets frames pass, if it lets so many times three pass in all.

The last frames may be in a queue when the Tester stops to wait for them, but not so many."""
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
        over += _unless_of_flows(losses)
    else:
        over = f"time, but {uneven.words}: {uneven.numbers}"
    return losses.cause(
        "uniform",
        f"{losses.lost:,} of {losses.counts.offered:,} frames ({share:.3g} %) were lost independently of {over}",
        what="frames drawn at random" if uneven is None else f"frames drawn at random, {uneven.words}",
        explained=losses.lost,
        chance=None,
    )


def _unless_of_flows(losses: Losses) -> str:
    """Return that frames may also be all of their flow, where too few flows have several to show it."""
    flow = losses.field("flow")
    if flow is None or not flows.may_be_whole(flow):
        return ""
    return "; too few flows have several frames to show whether some of them lose everything"


def spell(losses: Losses) -> Cause | None:
    """Return from when until when frames were lost as chance would draw them; None if chance draws otherwise."""
    enough = min(losses.lost, losses.between - losses.lost) >= UNIFORM_LOST_MIN
    if not losses.is_even or not enough or losses.queues_counted_them or len(losses.lost_together) > 1:
        return None
    if SPELL_PART * max(losses.untouched) < losses.frames or not _is_like_chance_between(losses):
        return None
    loss, share = losses.counts.loss, 100 * losses.lost / losses.between
    begin, end = losses.time_words(loss.first_index), losses.time_words(loss.last_index + 1)
    before, after = (SPELL_PART * frames >= losses.frames for frames in losses.untouched)
    when = " ".join([f"from {begin} on" if not after else "", f"until {end}" if not before else ""]).strip()
    return losses.cause(
        "spell",
        f"all {losses.lost:,} lost frames were sent {when or f'from {begin} to {end}'}, and {share:.3g} % of those that"
        f" were sent then were lost, as chance draws them, {spread_words(losses)}",
        what="frames drawn at random for a while",
        explained=losses.lost,
        chance=None,
    )


def queue(losses: Losses) -> Cause | None:
    """Return that more frames arrived than were forwarded; None if losses are not spread over the rest of the trial."""
    loss = losses.counts.loss
    if (
        not losses.is_even
        or not loss.by_slice
        or losses.lost < QUEUE_LOST_MIN
        or _is_like_chance(losses)
        or losses.lost == losses.counts.offered
    ):
        return None
    if (losses.has_connections and not losses.queues_counted_them) or _is_silent_at_the_end(losses):
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
        f"{_unless_otherwise(losses)}",
        what="frames beyond a rate",
        explained=losses.lost,
        chance=None,
    )


def _is_silent_at_the_end(losses: Losses) -> bool:
    """Whether no queue counted a loss, and nothing arrived in the last part, where a rate lets many frames pass."""
    by_slice, passed = losses.counts.loss.by_slice, losses.counts.offered - losses.lost
    last = len(by_slice) // END_PART
    all_lost = sum(by_slice[-last:]) >= losses.counts.offered * last // len(by_slice)
    return not losses.queue_drops and all_lost and passed >= END_PART * PASSED_MIN


def _unless_otherwise(losses: Losses) -> str:
    """Return what else may have lost the frames, unless queues have counted them.

    That is what takes frames at even distances, or what takes them at some times rather than beyond a rate: a queue
    that is emptied at a rate loses as many in all parts of a trial, give or take a row.
    """
    if losses.queues_counted_them:
        return ""
    if distances := _regular_distances(losses):
        which = _taken_words(losses, distances)
    elif rows.difference_of_parts(losses, of_equal_rows=True).ratio > STEADY_MAX:
        which = "frames are lost at some times and not at others,"
    else:
        return ""
    return f"; or {which} at any load: a trial at another load shows which"


def _taken_words(losses: Losses, distances: Sequence[int]) -> str:
    """Return what takes frames at even distances: "one of every 100 frames is lost"."""
    mean, lengths = statistics.fmean(distances), {run.length for run in losses.counts.loss.first_runs}
    every = f"every {mean:,.0f} frames" if mean >= 1000 else f"every {mean:.3g} frames"
    if losses.lost == losses.counts.loss.runs:
        return f"one of {every} is lost"
    about = "about " if len(lengths) > 1 else ""
    return f"{about}{losses.lost / losses.counts.loss.runs:,.0f} in a row of {every} are lost"


def _is_like_chance(losses: Losses) -> bool:
    """Whether all of it is as chance makes it: begin and end, number of runs, spread over time, distances."""
    return is_by_chance_from_end_to_end(losses, losses.lost) and _is_like_chance_between(losses)


def _is_like_chance_between(losses: Losses) -> bool:
    """Whether it is so between the first lost frame and the last one.

    Number of runs and spread are judged there, so that a queue which takes a while to fill does not look uneven enough
    to hide how even it is then.
    """
    if losses.lost < 2 or losses.lost == losses.counts.offered:
        return False
    are_as_many = min(chance_of_so_few_runs(losses), chance_of_so_many_runs(losses)) > -RARE
    if not are_as_many or _regular_distances(losses):
        return False
    inside = losses.slices_between
    passed = 1 - losses.lost / losses.between
    return abs(difference(inside, sum(inside) / max(1, len(inside)) * passed).by) <= DEVIATIONS_MAX


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
    return difference(together, variance).by < -DEVIATIONS_MAX
