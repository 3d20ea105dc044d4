"""Throughput: the highest rate at which no frame is lost (RFC 2544 section 26.1, RFC 8219 section 7.1)."""

from __future__ import annotations

from typing import Literal

from gatemark.procedures.measured import MeasureStep
from gatemark.search import binary
from gatemark.search.goal import Goal, SearchResult


def measure_throughput(goal: Goal, measure: MeasureStep, *, search: Literal["binary", "mlrsearch"]) -> SearchResult:
    """Search once. The only effects are those of `measure`, which must judge with `goal.loss_tolerance`."""
    if search == "mlrsearch":
        from gatemark.search import (
            multiple_loss_ratio,
        )  # its package takes 0.2 s to load: only who searches pays for it

        return multiple_loss_ratio.search(goal, lambda step: measure(step).observation)
    return binary.search(goal, lambda step: measure(step).observation)
