"""Connection tear-down rate: how many connections a gateway deletes per second when all of them are deleted at once.

RFC 9693 section 4.8. The time to delete an empty table is measured as well and subtracted, because it depends on the
size of the table and not on the connections in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gatemark.config.model import Campaign
from gatemark.procedures.connection_tear_down_rate.result import TearDownResult
from gatemark.procedures.measured import Measured, MeasureStep
from gatemark.procedures.phase_one import phase_one_rate
from gatemark.procedures.procedure import RunTrials
from gatemark.results.document import Deviation
from gatemark.results.part import Figure
from gatemark.search.goal import Measure, Outcome, sending_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class TearDownPair:
    """One repetition: the times to delete a full and then an empty table; None if no trial was good."""

    full_ns: int | None
    empty_ns: int | None
    left: int
    """Connections that the deletion of the full table left."""
    tester_limited: bool
    """Whether the Tester prevented a trial."""


def measure(trials: RunTrials) -> TearDownResult:
    """Measure full and empty tables in turn."""
    campaign, connections = trials.campaign, trials.run.cell.connections
    assert connections is not None, "a run of this procedure has a number of connections"
    rate = phase_one_rate(campaign, trials.run.cell, trials.earlier, phase_two_ns=0)
    pairs = [
        measure_pair(connections, rate, trials.steps(repetition, connections_per_second=rate))
        for repetition in trials.repetitions()
    ]
    whole = [
        (pair.full_ns, pair.empty_ns, pair.left)
        for pair in pairs
        if pair.full_ns is not None and pair.empty_ns is not None
    ]
    left = [count for _, _, count in whole]
    return TearDownResult(
        **trials.facts(),
        limited_by="tester" if any(pair.tester_limited for pair in pairs) else "gateway",
        full_ns=Figure.of([full for full, _, _ in whole]),
        empty_ns=Figure.of([empty for _, empty, _ in whole]),
        left=Figure.of(left) if any(left) else None,
    )


def measure_pair(connections: int, connections_per_second: int, measure_step: MeasureStep) -> TearDownPair:
    """Measure once with `connections` established at the given rate, and once with none.

    The only effects are those of `measure_step`. What is left of a full table is not deleted: the rate is of the rest.
    An empty table that is not empty afterwards has no time, for other traffic passes the gateway.
    """
    fill_ns = sending_ns(connections, connections_per_second)
    trials = [
        measure_step(
            Measure(
                frames_per_second=connections_per_second,
                duration_ns=duration_ns,
                purpose="event",
                tears_down=True,
                connections=count,
            )
        )
        for count, duration_ns in ((connections, fill_ns), (0, 0))
    ]
    (full_ns, left), (empty_ns, others) = (_time_and_left(trial) for trial in trials)
    limited = any(trial.observation.outcome is Outcome.TESTER_LIMITED for trial in trials)
    return TearDownPair(full_ns=full_ns, empty_ns=None if others else empty_ns, left=left, tester_limited=limited)


def _time_and_left(trial: Measured) -> tuple[int | None, int]:
    """Return the time of a trial that passed, or failed because connections were left, and how many were left."""
    facts = None if trial.valid is None else trial.valid.connections
    left = 0 if facts is None else facts.counted_after_tear_down or 0
    passed = trial.observation.outcome is Outcome.PASSED
    return (None if facts is None or not (passed or left) else facts.tear_down_ns), left


def deviations(_campaign: Campaign) -> Iterator[Deviation]:
    """Yield nothing: the procedure has no options that could deviate."""
    yield from ()
