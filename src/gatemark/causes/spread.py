"""Losses that no field sets apart: of a queue that overflows, or as chance would draw them.

Frames that are lost independently of each other have a known number of runs of losses (Wald and Wolfowitz 1940), and
spread evenly over the trial. A full queue loses otherwise: in rows where it is emptied in batches, at even distances
where it is emptied at a rate, and from the time on when it is full.
"""

from __future__ import annotations

import math

from gatemark.causes.losses import Losses
from gatemark.trial.cause import Cause
from gatemark.trial.loss import LossFacts

UNIFORM_LOST_MIN = 50
"""With fewer lost frames a queue may look like chance."""
DEVIATIONS_MAX = 4.0
"""Chance lies within so many standard deviations but once in 15,000 times."""
QUEUE_LOST_MIN = 20
QUEUE_SHARE = 0.8
"""Where frames belong to connections, queues have to have counted this share of the losses."""
SLICES_SHARE = 0.5
"""A queue that overflows loses frames in this share of all hundredths of the trial at least, once it is full."""
SLICES_MIN = 20
"""So many hundredths of the trial at least follow."""


def uniform(losses: Losses) -> Cause | None:
    """Return that frames were lost independently of fields and time; None if they were not."""
    enough = min(losses.lost, losses.counts.offered - losses.lost) >= UNIFORM_LOST_MIN
    if not losses.is_even or not enough or not _is_like_chance(losses):
        return None
    share = 100 * losses.lost / losses.counts.offered
    sentence = (
        f"{losses.lost:,} of {losses.counts.offered:,} frames ({share:.3g} %) were lost independently of field and time"
    )
    return losses.cause(
        "uniform",
        f"{sentence}: {losses.counts.loss.runs:,} runs of losses, as many as chance makes",
        what="frames drawn at random",
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
    if losses.queue_drops is not None and losses.queue_drops < QUEUE_SHARE * losses.lost_in_trial:
        return None
    first = next((number for number, lost in enumerate(loss.by_slice) if lost), len(loss.by_slice))
    slices = loss.by_slice[first:]
    if sum(1 for lost in slices if lost) < SLICES_SHARE * len(slices) or len(slices) < SLICES_MIN:
        return None
    rate = losses.direction.frames_per_second
    passed = rate * (losses.counts.offered - losses.lost) // losses.counts.offered
    return losses.cause(
        "queue",
        f"a queue overflowed: of {rate:,} frames/s {passed:,} passed, whatever their fields, and from"
        f" {losses.time_words(loss.first_index)} on frames were lost in {loss.runs:,} runs throughout the trial",
        what="frames beyond a rate",
        explained=losses.lost,
        chance=None,
    )


def _is_like_chance(losses: Losses) -> bool:
    loss, lost, offered = losses.counts.loss, losses.lost, losses.counts.offered
    passed = offered - lost
    if lost < 2 or not passed:
        return False
    expected = lost * (passed + 1) / offered
    variance = lost * passed * (lost - 1) * (passed + 1) / (offered**2 * (offered - 1))
    return abs(loss.runs - expected) <= DEVIATIONS_MAX * math.sqrt(variance) and _is_even_over_time(loss, lost, offered)


def _is_even_over_time(loss: LossFacts, lost: int, offered: int) -> bool:
    """Whether the hundredths of the trial differ in their losses as chance makes them, no more and no less (chi square
    has twice as much variance as degrees of freedom)."""
    slices = len(loss.by_slice)
    expected = lost / slices
    variance = expected * (offered - lost) / offered
    statistic = sum((count - expected) ** 2 / variance for count in loss.by_slice)
    degrees = slices - 1
    return abs(statistic - degrees) <= DEVIATIONS_MAX * math.sqrt(2 * degrees)
