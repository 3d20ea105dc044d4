"""What a run may know about the runs before it: rates found with the same traffic. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gatemark.results.run import RunResult
from gatemark.results.search import RateResult
from gatemark.trial.cell import Cell


@dataclass(slots=True)
class Earlier:
    """Results of the runs before this one, in the order in which they were measured."""

    results: list[tuple[Cell, RunResult]] = field(default_factory=list)

    def add(self, cell: Cell, result: RunResult) -> None:
        """Add the result of a run."""
        self.results.append((cell, result))

    def frame_rate(self, cell: Cell) -> RateResult | None:
        """Return the search for the highest rate of frames with the same traffic; None if there was none."""
        return next((entry for entry in self._rates("frames/s") if entry[0] == cell), (None, None))[1]

    def connection_rates(self, cell: Cell) -> Sequence[RateResult]:
        """Return the searches for the highest rate of connections with the same connections, frames and mix.

        Those without validation come first, because test phase 1 is not validated either; else the lowest.
        """
        same = [
            result
            for other, result in self._rates("connections/s")
            if (other.connections, other.frame_sizes, other.mix) == (cell.connections, cell.frame_sizes, cell.mix)
            and result.repetitions
        ]
        return sorted(same, key=lambda result: (result.is_validated, result.proven))

    def _rates(self, unit: str) -> list[tuple[Cell, RateResult]]:
        return [
            (cell, result)
            for cell, result in self.results
            if isinstance(result, RateResult) and result.unit == unit and result.is_load_of_others
        ]
