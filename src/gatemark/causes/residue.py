"""Every n-th frame is lost: something takes frames in turn, such as queues or next hops, and one of them loses its own.

Rule: the index in the direction modulo n, for an n up to 64, holds at least 95 % of the lost frames in residues of
which nothing arrived. A limiter with no queue does the same at some loads, so it takes other loads to say that this one
is no limit. Error: `losses.chance_of`, for any choice of as many residues.
"""

from __future__ import annotations

import math

from gatemark.causes.fields import listed
from gatemark.causes.losses import Losses, choices_among, claimed_chance
from gatemark.trial.cause import Cause
from gatemark.trial.loss import LossCount

MODULUS_MAX = 64


def explain(losses: Losses) -> Cause | None:
    """Return which frames of every n were lost; None if they were not lost in turn."""
    field = losses.field("index_residue")
    if field is None or not field.modulus or len(field.heaviest) < field.dead:
        return None
    inside = field.lost_in_dead
    choices = math.log(MODULUS_MAX) + choices_among(field.modulus, field.dead)
    chance = claimed_chance(LossCount(lost=inside, arrived=0), field, choices)
    if chance is None:
        return None
    named = listed(sorted((value.name for value in field.heaviest if not value.arrived), key=int))
    numbers, are = ("number", "is") if field.dead == 1 else ("numbers", "are")
    what = f"of every {field.modulus} frames {numbers} {named} (from 0)"
    return losses.cause(
        "residue",
        f"frames are lost in turn: {what} {are} missing; {inside:,} of {field.lost:,} lost frames looked at are such",
        what=what,
        explained=losses.scaled(inside, field.lost),
        chance=chance,
        field=field.field,
    )
