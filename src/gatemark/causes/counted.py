"""The gateway's host counted what was lost: connections refused, packets without a route, neighbours not there.

Rule: a counter of the host that speaks of no queue grew over the trial by as much as frames were lost, within a
twentieth or three frames, and at least ten were lost. Counters name no frames, so this is said only where nothing sets
lost frames apart, and never against a hold-up. Error: another program may have moved a counter of the whole machine,
and of few losses some counter grows by about as much by chance.
"""

from __future__ import annotations

from gatemark.causes.losses import Losses
from gatemark.trial.cause import Cause
from gatemark.trial.host_counters import QUEUES, grown_by_about

LOST_MIN = 10


def explain(losses: Losses) -> Cause | None:
    """Return what the host counted as often as frames were lost; None if there is no such counter."""
    if losses.lost_in_trial < LOST_MIN:
        return None
    counted = [
        grown
        for grown in grown_by_about(losses.host_counters, losses.lost_in_trial)
        if grown.counter.speaks_of not in QUEUES
    ]
    if not counted:
        return None
    return losses.cause(
        "counted",
        f"the gateway's host counted meanwhile: {'; '.join(grown.words for grown in counted)}, as many as the"
        f" {losses.lost_in_trial:,} frames that were lost",
        what=f"what the gateway's host counts as {counted[0].name}",
        explained=losses.lost,
        chance=None,
    )
