"""One of two gateways in a row lost the frames, and nothing else sets them apart.

Rule and error: those of `places`. It is told where no other cause can be claimed; all others name the gateway as well.
"""

from __future__ import annotations

from gatemark.causes.losses import Losses
from gatemark.causes.places import place_words
from gatemark.trial.cause import Cause


def explain(losses: Losses) -> Cause | None:
    """Return in which gateway frames were lost; None if that is not known."""
    if not losses.places:
        return None
    return losses.cause(
        "gateway",
        f"{sum(place.lost for place in losses.places):,} frames were {place_words(losses.places)}",
        what=place_words([place for place in losses.places if place.lost], counted=False),
        explained=losses.lost,
        chance=None,
    )
