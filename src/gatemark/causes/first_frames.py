"""The first frame of each flow is lost: state that the first frame makes and does not pass.

Rule: at least 95 % of the lost frames were the first ones of their four-tuple, pair of hosts, connection or customer
edge, and it is a tenth of all frames at most. Error: `losses.chance_of`; said only where every frame was looked at.
"""

from __future__ import annotations

from gatemark.causes.flows import WORDS
from gatemark.causes.losses import Losses, claimed_chance
from gatemark.trial.cause import Cause
from gatemark.trial.loss import LossCount


def explain(losses: Losses) -> Cause | None:
    """Return of what the first frames were lost; None if later ones were lost too."""
    for name, words in WORDS.items():
        field = losses.field(name)
        if field is None or not field.firsts:
            continue
        first = LossCount(lost=field.firsts, arrived=field.values - field.firsts)
        chance = claimed_chance(first, field, 0.0)
        if chance is not None:
            sentence = (
                f"{field.firsts:,} of {field.lost:,} lost frames were the first of the {field.values:,} {words} that"
                " frames were sent in"
            )
            return losses.cause(
                "first_frames",
                sentence,
                what=f"first frames of {words}",
                explained=field.firsts,
                chance=chance,
                field=field.field,
            )
    return None
