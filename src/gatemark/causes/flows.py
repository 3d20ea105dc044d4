"""Some flows lose everything and the others nothing: a next hop, a queue, a mapping that is gone.

Rule: the flows of which no frame arrived hold at least 95 % of the lost frames, and the others lose a tenth as often
at most. A flow is a four-tuple, a pair of hosts, a connection or a customer edge. Error: `losses.chance_of`, for any
choice of as many flows; where each flow has a frame or two, chance alone makes flows that lose everything, and nothing
is said.
"""

from __future__ import annotations

from collections.abc import Mapping

from gatemark.causes.losses import Losses, choices_among, claimed_chance
from gatemark.trial.cause import Cause
from gatemark.trial.loss import LossCount, LossFieldName

WORDS: Mapping[LossFieldName, str] = {
    "customer_edge": "customer edges",
    "host_pair": "pairs of hosts",
    "connection": "connections",
    "flow": "flows",
}
"""What is looked at, the coarsest first."""


def explain(losses: Losses) -> Cause | None:
    """Return what lost flows have in common; None if no flow lost everything, or too many lost something."""
    for name, words in WORDS.items():
        field = losses.field(name)
        if field is None or field.dead == field.values:
            continue
        dead = LossCount(lost=field.lost_in_dead, arrived=0)
        chance = claimed_chance(dead, field, choices_among(field.values, field.dead))
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
