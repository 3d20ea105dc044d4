"""What a trial is made for: a run of the plan, and the traffic of that run. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from gatemark.config.sizes import FrameSizes
from gatemark.config.tables import Direction
from gatemark.config.types import Mix


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the matrix of a campaign: the traffic of one run."""

    direction: Direction
    frame_sizes: FrameSizes
    mix: Mix
    connections: int | None = None
    """Stateful: number of connections N (RFC 9693 section 4.1); None for stateless gateways and for the capacity."""
    alpha: Fraction | None = None
    """Stateful: rate of the validation as a share of the rate under test (RFC 9693 section 4.6); None where nothing is
    validated, and where that share is searched for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One procedure on one cell, with all its repetitions."""

    number: int
    """From 1, in the order in which the runs are measured."""
    procedure: str
    """Its name in the registry."""
    cell: Cell
