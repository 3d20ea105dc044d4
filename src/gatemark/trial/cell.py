"""What a trial is made for: a run of the plan, and the traffic of that run. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from gatemark.config.sizes import FrameSizes
from gatemark.config.types import Mix
from gatemark.facts import Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the matrix of a campaign: the traffic of one run."""

    direction: Direction
    """Direction of the traffic."""
    frame_sizes: FrameSizes
    """Frame size on the side of each family."""
    mix: Mix
    """Share of foreground."""
    connections: int | None = None
    """Stateful: number of connections N (RFC 9693 section 4.1). Null for stateless gateways and for the capacity."""
    alpha: Fraction | None = None
    """Stateful: rate of the validation as a share of the rate under test (RFC 9693 section 4.6). Null where nothing is
    validated, and where that share is searched for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One procedure on one cell, with all its repetitions."""

    number: int
    """Number of the run, from 1, in the order in which runs are measured."""
    procedure: str
    """Name of the procedure."""
    cell: Cell
    """The traffic of the run."""
