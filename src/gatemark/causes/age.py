"""Connections are lost that were silent for some time: a timeout is in force, whatever the one is that was read.

Rule: frames of connections of which nothing had arrived for some time or longer, in either direction, are at least 95 %
of the lost frames, most of them were lost, and younger ones are lost a tenth as often at most. Of a connection only the
first of its losses in a row counts: where a connection is gone for another reason, the loss is why it is silent. Where
frames of connections that had been used before are told apart better, only these count. Error:
`losses.chance_either_way`, for any time.
"""

from __future__ import annotations

import math

from gatemark.causes.losses import Losses, claimed_chance
from gatemark.trial.cause import Cause
from gatemark.units import format_duration_ns

SHARE_MIN, SHARE_USED_MIN = 0.8, 0.5
"""A timeout loses this share of the older frames at least. The first frame of a connection is old in any case: without
these frames fewer are enough, as the timeout of a connection may depend on its use before.
"""


def explain(losses: Losses) -> Cause | None:
    """Return after what silence connections lost frames; None if it does not set them apart."""
    ages = losses.table.ages
    if ages is None:
        return None
    older = ages.older
    chance = claimed_chance(older, ages, math.log(ages.offered))
    if chance is None or older.lost < (SHARE_USED_MIN if ages.after else SHARE_MIN) * older.offered:
        return None
    silent = format_duration_ns(_rounded(ages.silent_ns))
    counted = "lost frames looked at" if ages.lost < losses.lost else "lost frames"
    others = f"; of {older.offered:,} such frames {older.lost:,} were lost" if older.arrived else ", and none arrived"
    since = f", after {ages.after} or more frames in this trial" if ages.after else ""
    return losses.cause(
        "age",
        f"{older.lost:,} of {ages.lost:,} {counted} are of connections that had been silent for about {silent} or"
        f" longer, in both directions{since}{others}: a timeout is in force",
        what=f"frames of connections that had been silent for about {silent}",
        explained=losses.scaled(older.lost, ages.lost),
        chance=chance,
    )


def _rounded(time_ns: int) -> int:
    """Return a time with two digits that count: the same timeout shows a little later in each trial."""
    unit: int = 10 ** max(0, len(str(time_ns)) - 2)
    return (time_ns + unit // 2) // unit * unit
