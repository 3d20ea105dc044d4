"""`result.csv`: one row a run that searches a rate or a size; one a load, direction and class of a frame loss run.

A tear-down run has three: the rate, and the times of the full and the empty table. Runs of delays, bursts, recovery and
reset have one for each figure. Pure.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from gatemark.results.event_table import event_rows
from gatemark.results.schema import (
    DelayPointPart,
    DelaySeriesPart,
    FigurePart,
    LossPart,
    LossPointPart,
    ResultDocument,
    RunPart,
    SummaryPart,
)

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
    "average",
    "unit",
    "lower_bound",
    "upper_bound",
    "repetitions",
    "loss_tolerance",
    "limited_by",
    "tester_limited_at",
    "refused",
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
        for row in (*_tear_down(run), *_delays(run), *event_rows(run)):
            writer.writerow(common | row)
        for point in run.points:
            for part in point.directions:
                writer.writerow(common | _loss(point, part))
            if not point.directions:
                writer.writerow(common | _not_offered(point))
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


def _not_offered(point: LossPointPart | DelayPointPart) -> dict[str, Any]:
    load = point.frames_per_second
    return {"load_frames_per_second": load, "limited_by": "tester", "tester_limited_at": load}


def _delays(run: RunPart) -> Iterator[dict[str, Any]]:
    """Yield the figures of every load, direction and class; without a median where one is not measurable."""
    for point in run.delays:
        if not point.series:
            yield _not_offered(point)
        for one in point.series:
            common = {
                "direction": one.direction,
                "class": one.class_,
                "load_frames_per_second": point.frames_per_second,
                "repetitions": point.repetitions,
            }
            for unit, figure in _figures(one):
                yield common | _summary(figure.summary) | {"unit": unit}


def _figures(one: DelaySeriesPart) -> Iterator[tuple[str, FigurePart]]:
    """Yield unit and name of each figure of a series in one text, with the figure."""
    if one.latency is not None:
        yield "ns typical latency", one.latency.typical_ns
        yield "ns worst case latency", one.latency.worst_case_ns
    if one.pdv is not None:
        yield "ns PDV", one.pdv.pdv_ns
    if one.ipdv is not None:
        yield "ns IPDV minimum", one.ipdv.minimum_ns
        yield "ns IPDV median", one.ipdv.median_ns
        yield "ns IPDV maximum", one.ipdv.maximum_ns
    for name, label in DELAY_LABELS.items():
        yield f"ns delay {label}", getattr(one.delay, name)


DELAY_LABELS = {
    "minimum_ns": "minimum",
    "p50_ns": "50 %",
    "p90_ns": "90 %",
    "p99_ns": "99 %",
    "p999_ns": "99.9 %",
    "p9999_ns": "99.99 %",
    "p99999_ns": "99.999 %",
    "maximum_ns": "maximum",
}
"""Delays of all frames: key of the figure and its name."""


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
