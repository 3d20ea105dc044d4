"""From a campaign to the ordered list of its runs. Pure.

`campaign.loads` has the loads of the runs, `campaign.estimate` the time they take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gatemark.campaign.deviations import deviations
from gatemark.config.model import Campaign, Direction
from gatemark.config.sizes import FrameSizes, measured_octets, sizes_for
from gatemark.config.types import Mix
from gatemark.errors import ConfigError

Procedure = Literal["throughput", "frame_loss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the matrix of a campaign: the traffic of one run."""

    direction: Direction
    frame_sizes: FrameSizes
    mix: Mix


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One procedure on one cell, with all its repetitions."""

    number: int
    """From 1, in the order in which the runs are measured."""
    procedure: Procedure
    cell: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All runs of a campaign."""

    runs: tuple[Run, ...]


def cells_of(campaign: Campaign) -> tuple[Cell, ...]:
    """Return every combination of direction, mix and frame size, in the order of the file."""
    return tuple(
        Cell(direction=direction, frame_sizes=sizes_for(campaign, octets, mix), mix=mix)
        for direction in campaign.traffic.direction
        for mix in campaign.traffic.mix
        for octets in measured_octets(campaign)
    )


def make_plan(campaign: Campaign) -> Plan:
    """Return the runs of a campaign whose mode is known. Raises ConfigError if it names no procedure."""
    procedures: list[Procedure] = []
    if campaign.throughput is not None:
        procedures.append("throughput")
    if campaign.frame_loss is not None:
        procedures.append("frame_loss")
    if not procedures:
        raise ConfigError(
            what="names nothing to measure", where=campaign.source, fix="add a table [throughput] or [frame_loss]"
        )
    matrix = [(procedure, cell) for procedure in procedures for cell in cells_of(campaign)]
    return Plan(
        runs=tuple(
            Run(number=number, procedure=procedure, cell=cell) for number, (procedure, cell) in enumerate(matrix, 1)
        )
    )


__all__ = ["Cell", "Direction", "FrameSizes", "Mix", "Plan", "Procedure", "Run", "cells_of", "deviations", "make_plan"]
