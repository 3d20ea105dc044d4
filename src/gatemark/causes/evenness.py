"""Whether lost frames are spread over the values of each field as chance spreads them: a fact, which blames nothing.

Rule: no values, and no bit of them, hold more of the lost frames than chance makes them hold, and not more values than
chance leaves out have lost none. Error: `losses.chance_of`, for any choice of as many values. Frames are offered evenly
to all values, save one in which the trial ended; so a value loses none with a chance of exp(-l) at most, where l is how
many frames a value loses on average.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gatemark.causes import fields, flows
from gatemark.causes.losses import CHANCE_MAX, TRIED, Losses, chance_of, choices_among, share_of
from gatemark.trial.loss import LossField, LossFieldName, chance_inside

WORDS: Mapping[LossFieldName, str] = {
    **{name: fields.plural(words) for name, words in fields.WORDS.items()},
    **flows.WORDS,
}
"""What is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unevenness:
    """A field over which losses are spread as chance does not spread them."""

    words: str
    """Over what."""
    numbers: str
    """What shows it."""


def unevenness(losses: Losses) -> Unevenness | None:
    """Return the field over which losses are least even; None if chance may have spread them so over all."""
    looked_at = [field for name in WORDS if (field := losses.field(name)) is not None]
    field = min(looked_at, key=_chance, default=None)
    if field is None or _chance(field) > math.log(CHANCE_MAX):
        return None
    most = field.heaviest[0]
    counted = " looked at" if field.offered < losses.table.offered else ""
    return Unevenness(
        words=f"not evenly over {WORDS[field.field]}",
        numbers=f"{field.losing:,} of {field.values:,}{counted} lost some, most of all {most.name},"
        f" {losses.percent_words(most)} of its own",
    )


def spread_words(losses: Losses) -> str:
    """Return how losses that time does not explain are spread over fields."""
    uneven = unevenness(losses)
    return "whatever their fields" if uneven is None else f"{uneven.words}: {uneven.numbers}"


def _chance(field: LossField) -> float:
    """Return the natural logarithm of the chance of the least likely thing that a field shows."""
    return min(0.0, *_chances(field))


def _chances(field: LossField) -> Iterator[float]:
    for number, part in enumerate(field.heaviest_together(), start=1):
        yield chance_of(part, field, choices_among(field.values, number))
    for parts in field.with_and_without_bits():
        for part in parts:
            yield chance_of(part, field, math.log(2 * len(field.bits)))
    spared = max(0, field.values - field.losing - 1)
    yield math.log(TRIED) + chance_inside(field.values, spared, share_of(-field.lost / field.values))
