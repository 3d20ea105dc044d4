"""From some time on nothing arrives: the gateway, its link or its route is gone, or a limit of frames is reached.

Rule: the last frames of the direction, all of them lost, hold at least 95 % of the lost frames, and last 5 ms and ten
frames at least. Error: `losses.chance_either_way`, for any begin of that part.
"""

from __future__ import annotations

import math

from gatemark.causes.gap import is_long
from gatemark.causes.losses import Losses, chance_either_way, is_claimed
from gatemark.trial.cause import Cause
from gatemark.trial.loss import LossCount


def explain(losses: Losses) -> Cause | None:
    """Return from when on nothing arrived; None if the last frames did."""
    runs = losses.direction.longest_loss_runs
    offered = losses.direction.offered
    if not losses.is_even or not runs or not is_long(losses, runs[-1].length):
        return None
    last = runs[-1]
    explained = min(losses.lost, round(last.length * losses.counts.offered / offered))
    if last.index + last.length < offered or last.length == offered:
        return None
    part = LossCount(lost=explained, arrived=0)
    chance = chance_either_way(part, losses.whole, math.log(offered))
    if not is_claimed(losses.lost, explained, chance):
        return None
    sentence = (
        f"from {losses.time_words(last.index)} on nothing arrived: all of the last {last.length:,} frames were lost"
    )
    return losses.cause("end", sentence, what="the last frames of a trial", explained=explained, chance=chance)
