"""What the rest of gatemark needs from a procedure, and what a procedure needs from a running campaign."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

from gatemark.config.model import Campaign, ProcedureTable
from gatemark.procedures.assumed import AssumedGateway, extremes
from gatemark.procedures.earlier import Earlier
from gatemark.procedures.measured import MeasureStep
from gatemark.report.model import ReportPart
from gatemark.report.table import Plot, Section
from gatemark.results.document import Deviation, ResultDocument
from gatemark.results.run import RunResult
from gatemark.trial.cell import Cell, Run
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.trial.messages import FramesRequest


class RunTrials(Protocol):
    """The trials of a run in progress: how its procedure measures."""

    @property
    def campaign(self) -> Campaign:
        """The campaign; complete, with the line rate of the medium if it has one."""

    @property
    def run(self) -> Run:
        """What is measured."""

    @property
    def earlier(self) -> Earlier:
        """Results of the runs before this one."""

    @property
    def line_maximum(self) -> int | None:
        """Frames/s that the medium carries in one direction at this frame size; None if its rate is not known."""

    def repetitions(self) -> Iterator[int]:
        """Yield the number of each repetition, from 0, and notify observers when one is finished."""

    def steps(
        self,
        repetition: int,
        *,
        loss_tolerance: Fraction = Fraction(0),
        connections_per_second: int | None = None,
        form: TrialForm = PLAIN,
    ) -> MeasureStep:
        """Return what makes the trials of one repetition.

        `connections_per_second`: rate of test phase 1 before the phase that is measured; None if there is none.
        """

    def facts(self) -> dict[str, Any]:
        """Return the fields that the results of all procedures have, as far as they are known now."""


class ProcedureRun(Protocol):
    """The module `run` of a procedure."""

    def measure(self, trials: RunTrials) -> RunResult:
        """Make the trials of one run and return the result."""

    def deviations(self, campaign: Campaign) -> Iterable[Deviation]:
        """Return where the table deviates from the RFCs."""


class ProcedureReport(Protocol):
    """The module `report` of a procedure; `runs` are results of its own model, at least one."""

    def section(self, document: ResultDocument, runs: Any) -> Section:
        """Return the section of the report about all runs of the procedure."""

    def sentence(self, part: ReportPart, run: Any) -> str:
        """Describe one run that was not refused in a sentence that can stand alone (RFC 2544 section 26.1)."""

    def plots(self, part: ReportPart, runs: Any) -> Iterable[Plot]:
        """Return the plots of all runs."""


def all_cells(_campaign: Campaign, cells: Sequence[Cell]) -> Sequence[Cell]:
    """Measure every traffic combination of the campaign."""
    return cells


def smallest_size(_campaign: Campaign, cells: Sequence[Cell]) -> Sequence[Cell]:
    """Measure only with the smallest frame size (RFC 6201 section 4)."""
    lowest = min(cell.frame_sizes.largest for cell in cells)
    return tuple(cell for cell in cells if cell.frame_sizes.largest == lowest)


def is_in_file(_table: ProcedureTable) -> bool:
    """Run the procedure if its table is in the file."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A row of the registry."""

    name: str
    """In results, journal and messages."""
    standard: Literal["RFC 2544", "RFC 9693", "RFC 7599", "RFC 8219"]
    """RFC that it follows. Compliance may be claimed with RFC 2544 alone: RFC 9693 and RFC 8219 are informational, and
    RFC 7599 is about gateways, not about measuring them."""
    table: type[ProcedureTable]
    is_wanted: Callable[[Any], bool] = is_in_file
    """Whether a table asks for it: two procedures may have one table."""
    cells: Callable[[Campaign, Sequence[Cell]], Sequence[Cell]] = all_cells
    """Which traffic combinations it measures."""
    run: ProcedureRun
    gateways: Callable[[Campaign, Run, int | None], Iterable[AssumedGateway]] = extremes
    """Returns gateways for which a run is estimated, given what the line carries: among them are those with which it
    has the fewest and the most trials, and takes shortest and longest."""
    result: type[RunResult]
    report: ProcedureReport
    frames: Callable[[Campaign, Cell, int], FramesRequest] | None = None
    """Returns the request that shows its first frames, so many of them; None: they are UDP frames of its cells."""

    @property
    def words(self) -> str:
        """Its name in a sentence."""
        return self.name.replace("_", " ")
