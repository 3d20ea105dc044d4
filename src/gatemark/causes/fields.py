"""Lost frames have values of a field that others have not: a filter, a helper, an address that is not a host's.

Rule: up to eight values, or ranges of values, or all values of which no frame arrived, or those in which one bit is set
or not, hold at least 95 % of the lost frames, and frames with other values are lost a tenth as often at most. Error:
`losses.chance_of`, for any choice of as many values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gatemark.causes.losses import EXPLAINED_MIN, Losses, choices_among, claimed_chance
from gatemark.trial.cause import Cause
from gatemark.trial.loss import LossCount, LossField, LossFieldName

WORDS: Mapping[LossFieldName, str] = {
    "source_port": "source port",
    "destination_port": "destination port",
    "source_host": "source address",
    "destination_host": "destination address",
    "destination_network": "destination network",
    "traffic_class": "traffic class",
    "customer_edge": "customer edge",
}
"""The fields that are looked at here."""
PRICE = 10.0
"""What naming a value costs, as a logarithm: one more is named only if it explains that much."""

EXAMPLES = 3
"""So many of the values are named where there are more than can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some values of a field."""

    words: str
    what: str
    """The same, without the counts of the trial."""
    names: int
    """Values or ranges that are named."""
    values: int
    """How many values it has, as far as they are counted."""
    count: LossCount
    choices: float
    """Natural logarithm of the number of ways to choose as many values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """That the lost frames are those of some values of a field."""

    field: LossField
    part: Part
    chance: float
    """Its natural logarithm."""

    @property
    def cost(self) -> float:
        """What chance would show least costs least, with a price for each word."""
        return self.chance + PRICE * self.part.names

    @property
    def is_part_of_more(self) -> bool:
        """Whether all lost frames have one value or kind of value, with which others arrived: more may be needed."""
        return self.part.names == 1 and self.part.count.arrived > 0 and self.part.count.lost == self.field.lost


def explain(losses: Losses) -> Cause | None:
    """Return the field that sets lost frames apart, and others that only do so with it; None if there is none."""
    claims = [claim for name in WORDS if (field := losses.field(name)) for claim in _claims(field)]
    if not claims:
        return None
    best = min(claims, key=lambda claim: claim.cost)
    together = [claim for claim in claims if claim.is_part_of_more] if best.is_part_of_more else []
    others = {claim.field.field: claim for claim in sorted(together, key=lambda claim: -claim.cost)}
    others.pop(best.field.field, None)
    return _cause(losses, best, list(others.values()))


def _claims(field: LossField) -> Iterator[Claim]:
    """Yield what may be claimed of a field."""
    for part in _parts(field):
        chance = claimed_chance(part.count, field, part.choices)
        if chance is not None:
            yield Claim(field=field, part=part, chance=chance)


def _parts(field: LossField) -> Iterator[Part]:
    """Yield the parts of a field that may hold the lost frames."""
    name, names = WORDS[field.field], plural(WORDS[field.field])
    for number, count in enumerate(field.heaviest_together(), start=1):
        if count.lost >= EXPLAINED_MIN * field.lost:
            words = f"{name if number == 1 else names} {listed([value.name for value in field.heaviest[:number]])}"
            choices = choices_among(field.values, number)
            yield Part(words=words, what=words, names=number, values=number, count=count, choices=choices)
    if field.bits and field.dead > len(field.heaviest):
        yield _of_the_dead(field)
    if field.ranges:
        runs = [run.first if run.first == run.last else f"{run.first} to {run.last}" for run in field.ranges]
        held = sum(run.lost for run in field.ranges)
        choices = 2 * len(runs) * math.log(max(2, field.values))
        if held == field.lost_in_dead:
            choices = min(choices, choices_among(field.values, field.dead))
        words = f"{names} {listed(runs)}"
        yield Part(
            words=words,
            what=words,
            names=len(runs),
            values=sum(run.values for run in field.ranges),
            count=LossCount(lost=held, arrived=0),
            choices=choices,
        )
    for number, parts in enumerate(field.with_and_without_bits()):
        states = ("odd", "even") if number == 0 else (f"bit {number} set in", f"bit {number} clear in")
        choices = math.log(2 * len(field.bits))
        for state, part in zip(states, parts, strict=True):
            words = _of_bit(state, names, name)
            yield Part(words=words, what=words, names=1, values=field.dead, count=part, choices=choices)


def _of_the_dead(field: LossField) -> Part:
    """Return all values of which no frame arrived: too many to name them."""
    names = plural(WORDS[field.field])
    examples = [value.name for value in field.heaviest if not value.arrived][:EXAMPLES]
    such = f", such as {listed(examples)}" if examples else ""
    return Part(
        words=f"{field.dead:,} of {field.values:,} {names}{such}",
        what=f"some {names}",
        names=EXAMPLES,
        values=field.dead,
        count=LossCount(lost=field.lost_in_dead, arrived=0),
        choices=choices_among(field.values, field.dead),
    )


def _of_bit(state: str, names: str, name: str) -> str:
    return f"{state} their {name}" if state.startswith("bit") else f"{state} {names}"


def _cause(losses: Losses, claim: Claim, others: Sequence[Claim]) -> Cause:
    field, part = claim.field, claim.part
    one_value = part.words.startswith(f"{WORDS[field.field]} ")
    them = "it" if one_value else "them"
    lost = part.count.lost
    if part.count.arrived:
        also = f"; {losses.count_words(part.count, them)}"
    else:
        also = f", and no frame with {them}{'' if losses.arrived_share >= 1 else ' that was looked at'} arrived"
    names = [other.part.words for other in others]
    if names:
        known = min(each.field.lost for each in (claim, *others))
        also += f"; all lost frames{'' if known >= losses.lost else ' looked at'} have {listed(names)} as well"
    return losses.cause(
        "fields",
        f"{losses.share_words(lost, field.lost)} {part.words}{also}",
        what=f"frames with {listed([part.what, *names])}",
        explained=losses.scaled(lost, field.lost),
        chance=claim.chance,
        field=field.field,
        is_fixed=part.count.arrived == 0 and losses.is_fixed(lost, part.values, field.losing),
    )


def plural(name: str) -> str:
    """Return the plural of what frames differ by."""
    return name + ("es" if name.endswith("s") else "s")


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
