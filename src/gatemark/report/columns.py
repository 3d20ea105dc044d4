"""Columns that tables of several procedures share. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from gatemark.report.table import Column
from gatemark.report.words import direction_label, limit_text
from gatemark.results.coordinates import CONNECTIONS, MIX, SIZES, Place, dimension, is_mixed
from gatemark.results.quantity import Quantity
from gatemark.results.run import RunResult

Run = TypeVar("Run", bound=RunResult)
Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Line(Generic[Run, Part]):
    """A row of a table about one part of a run: a direction and class, a size, a load."""

    run: Run
    part: Part


def coordinate(name: str) -> Column[Place]:
    """Return the column of what figures were measured with; class and mix only where there is background traffic."""
    known = dimension(name)
    of_mixed = name in ("class", *MIX)

    def cell(place: Place) -> str:
        return "" if of_mixed and not is_mixed(place) else known.words(place)

    return Column(known.heading, cell, names=True, numeric=known.numeric, optional=True)


def _of_run(name: str) -> Column[RunResult]:
    return coordinate(name).of(lambda run: run.coordinates())


SIZE = _of_run(SIZES[0])
TRAFFIC: tuple[Column[RunResult], ...] = (_of_run(CONNECTIONS), SIZE, _of_run(MIX[0]))
"""What a run was measured with."""

DIRECTION: Column[RunResult] = Column("direction", direction_label, names=True, numeric=False)

TRAFFIC_OF_LINE: tuple[Column[Line[Any, Any]], ...] = tuple(column.of(lambda line: line.run) for column in TRAFFIC)


def way(run: RunResult, direction: str, class_: str) -> str:
    """Direction, and class where there are two."""
    word = run.way_word(direction)
    return f"{word},\n{class_}" if run.mix.is_mixed else word


LIMITED_BY: Column[Quantity] = Column("limited by", limit_text, numeric=False)

WAY: Column[Line[Any, Any]] = Column(
    "direction", lambda line: way(line.run, line.part.direction, line.part.class_), names=True, numeric=False
)
"""Direction and class of a part of a run."""
