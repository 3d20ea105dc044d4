"""`result.csv`: one row a throughput run, one row a load, direction and class of a frame loss run. Pure."""

from __future__ import annotations

import csv
import io
from typing import Any

from gatemark.results.schema import LossPart, LossPointPart, ResultDocument, RunPart

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
        if run.procedure == "throughput":
            writer.writerow(common | _throughput(run))
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
    }


def _throughput(run: RunPart) -> dict[str, Any]:
    rate = run.rate_per_direction
    figures = {"median": rate.median, "p1": rate.p1, "p99": rate.p99} if rate is not None else {}
    return figures | {
        "unit": "frames/s per direction",
        "lower_bound": run.lower_bound,
        "upper_bound": run.upper_bound,
        "repetitions": len(run.repetitions),
        "loss_tolerance": run.goal.loss_tolerance,
        "limited_by": run.limited_by,
        "tester_limited_at": run.tester_limited_at,
    }


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
