"""Some flows lose everything and the others nothing: a next hop, a queue, a mapping that is gone.

Rule: the flows of which no frame arrived hold at least 95 % of the lost frames, and the others lose a tenth as often
at most. A flow is a four-tuple, a pair of hosts, a connection or a customer edge. Error: `losses.chance_of`, for any
choice of as many flows. Where each flow has a frame or two, chance alone makes flows that lose everything; there those
decide that have two or more. Of these chance leaves a known share with lost frames and others, and a hash none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from gatemark.causes.losses import (
    CHANCE_MAX,
    EXPLAINED_MIN,
    RATIO_MIN,
    TRIED,
    Losses,
    choices_among,
    claimed_chance,
)
from gatemark.trial.cause import Cause
from gatemark.trial.loss import LossCount, LossField, LossFieldName, chance_inside

WORDS: Mapping[LossFieldName, str] = {
    "customer_edge": "customer edges",
    "host_pair": "pairs of hosts",
    "connection": "connections",
    "flow": "flows",
}
"""What is looked at, the coarsest first."""
FRAMES_MAX = 50
"""Of a flow where flows have few frames: where some have many, it is not known how many have several."""
STEPS = 60
"""Of a bisection, to the last bit."""


def explain(losses: Losses) -> Cause | None:
    """Return what lost flows have in common; None if no flow lost everything, or too many lost something."""
    for name, words in WORDS.items():
        field = losses.field(name)
        if field is None or field.dead == field.values:
            continue
        dead = LossCount(lost=field.lost_in_dead, arrived=0)
        chance = claimed_chance(dead, field, choices_among(field.values, field.dead))
        if chance is None:
            chance = _chance_of_none_in_part(field)
        if chance is None:
            continue
        numbered = "connection " if name == "connection" else ""
        examples = "; ".join(f"{numbered}{value.name}" for value in field.heaviest[:3] if not value.arrived)
        others = "nothing" if field.losing == field.dead else f"{field.lost - field.lost_in_dead:,} frames together"
        named = f" ({examples})" if field.dead <= 3 else f", such as {examples}"
        counted = f"{words} looked at" if field.offered < losses.table.offered else words
        everything = "everything" if losses.arrived_share >= 1 else "every frame that was looked at"
        sentence = f"{field.dead:,} of {field.values:,} {counted} lost {everything}, the others {others}{named}"
        return losses.cause(
            "flows",
            sentence,
            what=f"all frames of some {words}",
            explained=losses.scaled(field.lost_in_dead, field.lost),
            chance=chance,
            field=field.field,
            is_fixed=losses.is_fixed(field.lost_in_dead, field.dead, field.losing),
        )
    return None


def may_be_whole(field: LossField) -> bool:
    """Whether all lost frames may be those of flows that lost everything: none lost a part, whatever chance does."""
    return field.losing == field.dead


def _chance_of_none_in_part(field: LossField) -> float | None:
    """Return the natural logarithm of the chance that so few flows lose a part of their frames; None if they are many.

    Some flow may have much more frames than others, and then it is not known how many have several.
    """
    parted = field.losing - field.dead
    if field.heaviest[0].offered > FRAMES_MAX or field.lost_in_dead < EXPLAINED_MIN * field.lost:
        return None
    if parted * RATIO_MIN > _values_with_several(field) * _parting_chance(field):
        return None
    chance = _chance_of_parted(field, parted)
    return chance if chance <= math.log(CHANCE_MAX) else None


def _chance_of_parted(field: LossField, parted: int) -> float:
    """Return the natural logarithm of the chance that at most so many flows lose a part of their frames."""
    several = _values_with_several(field)
    return math.log(TRIED) + chance_inside(several, several - parted, 1 - _parting_chance(field))


def _parting_chance(field: LossField) -> float:
    """Return how probably chance loses one of two frames; of more frames it loses some more probably."""
    share = field.lost / field.offered
    return 2 * share * (1 - share)


def _values_with_several(field: LossField) -> int:
    """Return how many flows have two frames or more, if all are drawn alike.

    The number of frames of a flow is then at least as even as a Poisson number that is not 0.
    """
    of_each, low, high = field.offered / field.values, 0.0, field.offered / field.values
    for _ in range(STEPS):  # mean of a Poisson number of which those that are 0 are not counted
        mean = (low + high) / 2
        low, high = (mean, high) if mean < -math.expm1(-mean) * of_each else (low, mean)
    once = low * math.exp(-low) / -math.expm1(-low) if low > 0 else 1.0
    return int(field.values * (1 - once))
