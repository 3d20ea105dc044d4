"""Maximum connection establishment rate: the highest rate at which every new connection is established.

RFC 9693 section 4.5. Only the Initiator sends, each frame opens a connection of its own, and a trial passes if all of
them arrive translated at the Responder. With `goal.alpha` the Responder then checks each connection (section 4.6).
"""

from __future__ import annotations

from gatemark.procedures.measured import MeasureStep
from gatemark.search import binary
from gatemark.search.goal import Goal, SearchResult


def measure_establishment_rate(goal: Goal, measure: MeasureStep) -> SearchResult:
    """Search once; rates are connections per second. The only effects are those of `measure`.

    `goal` says how many connections each trial establishes, so a trial lasts as long as its rate makes it, and every
    trial is whole: nothing is to be confirmed. The result is a rate that was measured.
    """
    return binary.search(goal, lambda step: measure(step).observation)
