"""Facts of trials for tests: all of it is 0, empty or absent but what a test gives."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from itertools import pairwise
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin

from gatemark.config.sizes import FrameSizes
from gatemark.config.types import Mix
from gatemark.procedures.measured import Measured
from gatemark.search.goal import Measure, Observation
from gatemark.trial.cell import Cell, Run
from gatemark.trial.facts import Facts
from gatemark.trial.loss import LOSS_SLICES, LossRun
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import DirectionResult, LateBurst, TrialReport
from gatemark.trial.validity import Validity
from gatemark.trial.verdict import Verdict

Kind = TypeVar("Kind", bound=Facts)

LOSS_RUNS_LISTED = 64
"""The engine names so many runs of losses of a direction."""
CELL = Cell(direction="forward", frame_sizes=FrameSizes(ipv4=84, ipv6=None), mix=Mix(1, 1))
ORDER = TrialOrder(
    run=Run(number=1, procedure="throughput", cell=CELL),
    trial_number=1,
    repetition=0,
    attempt=0,
    step=Measure(frames_per_second=10_000, duration_ns=10**8, purpose="search"),
)


def blank(kind: type[Kind], **given: Any) -> Kind:
    """Facts of a kind with nothing in them but what is given."""
    fields = kind.model_fields.items()
    empty = {name: _nothing(field.annotation) for name, field in fields if field.is_required() and name not in given}
    return kind(**empty, **given)


def _nothing(annotation: Any) -> Any:
    if NoneType in get_args(annotation):
        return None
    if get_origin(annotation) in (tuple, Mapping):
        return {} if get_origin(annotation) is Mapping else ()
    return blank(annotation) if issubclass(annotation, Facts) else annotation()


def changed(facts: Kind, **given: Any) -> Kind:
    """The same facts but for what is given."""
    return facts.model_copy(update=given)


def with_losses(
    way: DirectionResult,
    lost: Collection[int],
    *,
    frames: int,
    frames_per_second: int,
    late_bursts: Collection[LateBurst],
    late: int = 0,
) -> DirectionResult:
    """The same direction with so many frames of the foreground, of which those with these indexes were lost."""
    ascending = sorted(lost)
    begins = [index for before, index in pairwise([-2, *ascending]) if index != before + 1]
    runs = [
        LossRun(index=begin, length=bisect_left(ascending, end) - bisect_left(ascending, begin))
        for begin, end in pairwise([*begins, frames])
    ]
    by_slice = [0] * LOSS_SLICES
    for index in ascending:
        by_slice[index * LOSS_SLICES // frames] += 1
    loss = changed(way.foreground.loss, runs=len(runs), by_slice=tuple(by_slice))
    count = {
        "intended": frames,
        "offered": frames,
        "received": frames - len(ascending) - late,
        "lost": len(ascending),
        "late": late,
    }
    longest = sorted(sorted(runs, key=lambda run: -run.length)[:LOSS_RUNS_LISTED], key=lambda run: run.index)
    return changed(
        way,
        frames_per_second=frames_per_second,
        foreground=changed(way.foreground, **count, loss=loss),
        longest_loss_runs=tuple(longest),
        late_bursts=tuple(sorted(late_bursts, key=lambda burst: burst.index)),
        lateness_max_ns=max((burst.lateness_ns for burst in late_bursts), default=0),
    )


def record_of(report: TrialReport | None = None, **given: Any) -> TrialRecord:
    """A valid trial that passed, but for what is given."""
    count: dict[str, Any] = {
        "order": ORDER,
        "validity": Validity(valid=True),
        "verdict": Verdict(passed=True),
        "report": blank(TrialReport) if report is None else report,
        "started_at": "2026-01-01T00:00:00+00:00",
        "seconds": 1.0,
    }
    return TrialRecord(**{**count, **given})


def measured(observation: Observation, report: TrialReport, **given: Any) -> Measured:
    """A valid trial as a procedure sees it."""
    return Measured(observation=observation, record=record_of(report, **given))
