"""Rows of `result.csv` for back-to-back frames, system recovery and reset. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gatemark.results.schema import RunPart


def event_rows(run: RunPart) -> Iterator[dict[str, Any]]:
    """Yield one row for each figure: `median` is empty, because the RFCs ask for averages here.

    A run that could not be made has one row, with the reason.
    """
    if run.refused is not None:
        yield {"limited_by": run.limited_by, "refused": run.refused}
    yield from _bursts(run)
    yield from _recovery(run)
    yield from _reset(run)


def _bursts(run: RunPart) -> Iterator[dict[str, Any]]:
    found = run.back_to_back
    if found is None:
        return
    common = {
        "load_frames_per_second": found.line_rate,
        "repetitions": len(found.bursts),
        "limited_by": run.limited_by,
    }
    yield common | {"average": found.average_frames, "unit": "frames back to back"}
    yield common | {"average": found.implied_ns, "unit": "ns implied buffer time"}
    yield common | {"average": found.corrected_ns, "unit": "ns corrected buffer time"}


def _recovery(run: RunPart) -> Iterator[dict[str, Any]]:
    found = run.recovery
    if found is None:
        return
    common = {
        "load_frames_per_second": found.overload,
        "unit": "ns to recover from overload",
        "repetitions": found.repetitions,
        "limited_by": run.limited_by,
    }
    for one in found.series:
        yield common | {"direction": one.direction, "class": one.class_, "average": one.average_ns}


def _reset(run: RunPart) -> Iterator[dict[str, Any]]:
    found = run.reset
    if found is None:
        return
    common = {
        "load_frames_per_second": found.frames_per_second,
        "unit": f"ns of {found.kind} reset, by frames lost",
        "repetitions": found.repetitions,
        "limited_by": run.limited_by,
    }
    for one in found.series:
        yield common | {"direction": one.direction, "class": one.class_, "average": one.average_ns}
