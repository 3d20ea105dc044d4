"""Connection tear-down rate: how many connections a gateway deletes per second when all of them are deleted at once.

RFC 9693 section 4.8. The time to delete an empty table is measured as well and subtracted, because it depends on the
size of the table and not on the connections in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gatemark.procedures.measured import Measured, MeasureStep
from gatemark.procedures.result import TearDown
from gatemark.search.goal import Measure, Outcome, sending_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class TearDownPair:
    """One repetition: the time to delete a full table, then an empty one; None where no trial was good."""

    full_ns: int | None
    empty_ns: int | None
    tester_limited: bool
    """Whether a trial could not be made because of the Tester."""


def measure_tear_down(connections: int, connections_per_second: int, measure: MeasureStep) -> TearDownPair:
    """Measure once with `connections` established at the given rate, and once with none.

    The only effects are those of `measure`. A table that was not empty afterwards has no time.
    """
    fill_ns = sending_ns(connections, connections_per_second)
    trials = [
        measure(
            Measure(
                frames_per_second=connections_per_second,
                duration_ns=duration_ns,
                purpose="tear_down",
                connections=count,
            )
        )
        for count, duration_ns in ((connections, fill_ns), (0, 0))
    ]
    full, empty = (_tear_down_ns(trial) for trial in trials)
    limited = any(trial.observation.outcome is Outcome.TESTER_LIMITED for trial in trials)
    return TearDownPair(full_ns=full, empty_ns=empty, tester_limited=limited)


def _tear_down_ns(trial: Measured) -> int | None:
    facts = None if trial.valid is None else trial.valid.connections
    return facts.tear_down_ns if facts is not None and trial.observation.outcome is Outcome.PASSED else None


def tear_down_of(connections: int, pairs: Sequence[TearDownPair]) -> TearDown | None:
    """Gather the repetitions that have both times; None where there is none."""
    whole = [(pair.full_ns, pair.empty_ns) for pair in pairs if pair.full_ns is not None and pair.empty_ns is not None]
    if not whole:
        return None
    return TearDown(
        connections=connections,
        full_ns=tuple(full for full, _ in whole),
        empty_ns=tuple(empty for _, empty in whole),
    )
