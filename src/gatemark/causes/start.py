"""Only the first frames of a trial are lost: an address that is not resolved yet, a path that is not set up.

Rule: every lost frame is within the first tenth of the trial. Error: `losses.chance_of`, for any end of that part.
"""

from __future__ import annotations

import math

from gatemark.causes.losses import Losses, chance_of, is_claimed
from gatemark.trial.cause import Cause
from gatemark.trial.loss import LossCount

PART_MAX = 10
"""The part of the trial is one of so many at most."""


def explain(losses: Losses) -> Cause | None:
    """Return until when frames were lost; None if later ones were lost too."""
    end = losses.counts.loss.last_index + 1
    if not losses.is_even or end * PART_MAX > losses.frames:
        return None
    sent = max(losses.lost, losses.counts.offered * end // losses.frames)
    part = LossCount(lost=losses.lost, arrived=sent - losses.lost)
    chance = chance_of(part, losses.whole, math.log(losses.frames))
    if not is_claimed(losses.lost, losses.lost, chance):
        return None
    until = losses.time_words(end)
    sentence = (
        f"all {losses.lost:,} lost frames were sent in the first {until} of the trial, and all later ones arrived"
    )
    return losses.cause("start", sentence, what="the first frames of a trial", explained=losses.lost, chance=chance)
