"""`result.csv`: one row a run that searches a rate or a size; one a load, direction and class of a frame loss run.

A tear-down run has three: the rate, and the times of the full and the empty table. Pure.
"""

from __future__ import annotations

import csv
import io
from typing import Any

from gatemark.results.schema import LossPart, LossPointPart, ResultDocument, RunPart, SummaryPart

COLUMNS = (
    "campaign",
    "gateway",
    "run",
    "procedure",
    "direction",
    "class",
    "frame_size_ipv4",
    "frame_size_ipv6",
    "foreground_m",
    "foreground_n",
    "connections",
    "alpha",
    "load_frames_per_second",
    "median",
    "p1",
    "p99",
    "unit",
    "lower_bound",
    "upper_bound",
    "repetitions",
    "loss_tolerance",
    "limited_by",
    "tester_limited_at",
)
"""A cell is empty where nothing was measured or the column says nothing about the row."""


def to_csv(document: ResultDocument) -> str:
    """The text of the file, with a heading line."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for run in document.runs:
        common = _common(document, run)
        if run.procedure in _SEARCHES:
            writer.writerow(common | _search(run))
        for row in _tear_down(run):
            writer.writerow(common | row)
        for point in run.points:
            for part in point.directions:
                writer.writerow(common | _loss(point, part))
            if not point.directions:
                load = point.frames_per_second
                unknown = {"load_frames_per_second": load, "limited_by": "tester", "tester_limited_at": load}
                writer.writerow(common | unknown)
    return out.getvalue()


def _common(document: ResultDocument, run: RunPart) -> dict[str, Any]:
    return {
        "campaign": document.name,
        "gateway": document.gateway.name,
        "run": run.number,
        "procedure": run.procedure,
        "direction": run.direction,
        "frame_size_ipv4": run.frame_sizes.ipv4,
        "frame_size_ipv6": run.frame_sizes.ipv6,
        "foreground_m": run.mix.m,
        "foreground_n": run.mix.n,
        "connections": None if run.connections is None else run.connections.count,
        "alpha": run.alpha,
    }


_SEARCHES = {
    "throughput": "frames/s per direction",
    "connection_establishment_rate": "connections/s established",
    "validated_connection_establishment_rate": "connections/s established and validated",
    "connection_tracking_table_capacity": "connections held",
}
"""Procedure: unit of its result."""


def _search(run: RunPart) -> dict[str, Any]:
    found = run.capacity.capacity if run.capacity is not None else run.rate_per_direction or run.connections_per_second
    return _summary(found) | {
        "unit": _SEARCHES[run.procedure],
        "lower_bound": run.lower_bound,
        "upper_bound": run.upper_bound,
        "repetitions": len(run.repetitions) if run.capacity is None else len(run.capacity.repetitions),
        "loss_tolerance": run.goal.loss_tolerance,
        "limited_by": run.limited_by,
        "tester_limited_at": run.tester_limited_at,
    }


def _tear_down(run: RunPart) -> list[dict[str, Any]]:
    found = run.tear_down
    if found is None:
        return []
    common = {"repetitions": found.full_ns.count, "limited_by": run.limited_by}
    return [
        common | {"median": found.connections_per_second, "unit": "connections/s deleted"},
        common | _summary(found.full_ns) | {"unit": "ns to delete all connections"},
        common | _summary(found.empty_ns) | {"unit": "ns to delete none"},
    ]


def _summary(found: SummaryPart | None) -> dict[str, Any]:
    return {} if found is None else {"median": found.median, "p1": found.p1, "p99": found.p99}


def _loss(point: LossPointPart, part: LossPart) -> dict[str, Any]:
    return {
        "direction": part.direction,
        "class": part.class_,
        "load_frames_per_second": point.frames_per_second,
        "median": part.loss_percent.median,
        "p1": part.loss_percent.p1,
        "p99": part.loss_percent.p99,
        "unit": "% of offered frames lost",
        "repetitions": point.repetitions,
    }
