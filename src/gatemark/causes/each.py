"""Each value of a field has a limit of its own, such as a rate or a quota of each host: as many frames of each arrive.

Rule: of the eight values that lost most nearly as many frames arrived, although they differ by three times as much in
the frames that were sent with them, and not many more arrived than were lost. Nothing is said where the gateway's
queues have counted the losses. Error: if frames arrive whatever their value, as many of each as by chance (a binomial
number, whose most probable values have 1/sqrt(2 pi) of its standard deviation); chance shows this once in 15,000 times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from gatemark.causes import fields
from gatemark.causes.losses import Losses
from gatemark.trial.cause import Cause
from gatemark.trial.loss import RARE, LossField, LossFieldName

WORDS: Mapping[LossFieldName, str] = {
    **fields.WORDS,
    "host_pair": "pair of hosts",
    "connection": "connection",
    "flow": "flow",
}
"""What is looked at."""
VALUES_MIN = 8
APART = 3
"""So many times as far as the numbers of frames that arrived are those of the frames that were sent apart, at least."""
ARRIVED_MAX = 1.5
"""So many frames arrived for each that was lost, at most: else those that lost most are those of which few arrived."""


def explain(losses: Losses) -> Cause | None:
    """Return the field of which each value has a limit; None if there is none."""
    if losses.queues_counted_them or losses.arrived_share < 1:
        return None
    looked_at = [field for name in WORDS if (field := losses.field(name)) is not None and _may_be_limited(field)]
    limited = [field for field in looked_at if _chance(field) + math.log(len(looked_at)) <= -RARE]
    if not limited:
        return None
    field = max(limited, key=lambda field: field.values)  # where each flow has a limit, so has each port of as many
    name = WORDS[field.field]
    arrived, sent = [value.arrived for value in field.heaviest], [value.offered for value in field.heaviest]
    each = f"{arrived[0]:,}" if min(arrived) == max(arrived) else f"{min(arrived):,} to {max(arrived):,}"
    return losses.cause(
        "each",
        f"each {name} has a limit of its own: of the {len(arrived)} that lost most {each} frames each arrived, although"
        f" {min(sent):,} to {max(sent):,} were sent",
        what=f"frames beyond a limit of each {name}",
        explained=losses.lost,
        chance=None,
        field=field.field,
    )


def _may_be_limited(field: LossField) -> bool:
    """Whether nearly as many frames of each value arrived, and not because as many were sent."""
    arrived, sent = [value.arrived for value in field.heaviest], [value.offered for value in field.heaviest]
    if len(arrived) < VALUES_MIN or not min(arrived) or field.arrived > ARRIVED_MAX * field.lost:
        return False
    return max(sent) - min(sent) >= APART * (1 + max(arrived) - min(arrived))


def _chance(field: LossField) -> float:
    """Return the natural logarithm of the chance that the numbers of frames that arrived differ so little."""
    arrived = [value.arrived for value in field.heaviest]
    least, most, count = min(arrived), max(arrived), len(arrived)
    width = most - least + 1
    ways: float = 3 * width * width ** (count - 1)  # where the numbers begin, and where each but the first one is
    if width <= 2:
        ways = 2 * math.comb(count, min(arrived.count(least), count - arrived.count(least)))
    share = field.arrived / field.offered
    deviation = math.sqrt(min(value.offered for value in field.heaviest) * share * (1 - share))
    return math.log(ways) - (count - 1) * math.log(max(1.0, deviation * math.sqrt(2 * math.pi)))
