"""A calibration in words: Markdown for the folder and the documentation, JSON for programs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, Literal, NamedTuple

from pydantic import computed_field

from gatemark.calibrate.links import LinkKind
from gatemark.calibrate.model import CalibrationPart, CheckResult, Comparison, Number, SelfError
from gatemark.report.table import Column, table_of
from gatemark.report.text_tables import markdown_table
from gatemark.report.words import format_time


class Circumstances(CalibrationPart):
    """Where and when a calibration was made, and of what."""

    calibration: Literal[1] = 1
    """Format number."""
    measured_at: str
    """When it was begun."""
    machine: str
    gatemark: str
    programs: str
    """Digest of the engine and of the reference gateway."""
    ports: LinkKind
    quick: bool


class CalibrationDocument(Circumstances):
    """All of calibration.json."""

    behind: ClassVar[Mapping[str, str]] = {"passed": "quick"}

    chosen: tuple[str, ...]
    """Names of all checks that are to be made."""
    self_error: SelfError | None
    checks: tuple[CheckResult, ...]

    @computed_field
    @property
    def passed(self) -> bool:
        """Whether all chosen checks passed or were skipped; False if none passed."""
        return passed(self.checks, len(self.chosen))


def passed(results: Sequence[CheckResult], chosen: int) -> bool:
    """Whether all chosen checks passed or were skipped; False if none passed."""
    endings = {result.status for result in results}
    return len(results) == chosen and "passed" in endings and endings <= {"passed", "skipped"}


class FigureRow(NamedTuple):
    """A figure of a check, or a check without any."""

    check: CheckResult
    comparison: Comparison | None

    @property
    def outcome(self) -> str:
        """How the figure, or else the check, ended."""
        if self.comparison is not None:
            return "passed" if self.comparison.passed else "failed"
        return "measured" if self.check.status == "passed" else self.check.status


def rows_of(results: Sequence[CheckResult]) -> Iterator[FigureRow]:
    """Yield a row for each figure, and one for each check without any."""
    for result in results:
        if result.status in ("passed", "failed") and result.comparisons:
            yield from (FigureRow(result, comparison) for comparison in result.comparisons)
        else:
            yield FigureRow(result, None)


def _figure(heading: str, cell: Callable[[Comparison], str], *, numeric: bool = True) -> Column[FigureRow]:
    return Column(heading, cell, numeric=numeric).of(lambda row: row.comparison)


CHECK: tuple[Column[FigureRow], ...] = (
    Column("check", lambda row: row.check.procedure, numeric=False),
    Column("truth given", lambda row: row.check.truth, numeric=False),
)
"""What a row is about."""
STYLES = {
    **{"passed": "green", "failed": "bold red", "measured": "dim"},
    **dict.fromkeys(("skipped", "no result", "reference not kept"), "yellow"),
}
FIGURES: tuple[Column[FigureRow], ...] = (
    _figure("quantity", lambda figure: figure.quantity, numeric=False),
    _figure("true", lambda figure: _with_unit(figure.true, figure)),
    _figure("measured", lambda figure: _with_unit(figure.measured, figure)),
    _figure("error", lambda figure: "" if figure.error is None else _signed(figure.error, figure.unit)),
    _figure("allowed error", lambda figure: "" if figure.error is None else _allowed(figure)),
    Column("result", lambda row: row.outcome, numeric=False, styles=STYLES),
)


def summary_of(results: Sequence[CheckResult], chosen: int) -> str:
    """Return in one sentence how the chosen checks ended."""
    endings = [result.status for result in results]
    counts = ", ".join(f"{endings.count(status)} {status}" for status in dict.fromkeys(endings))
    figures = sum(len(result.comparisons) for result in results if result.status in ("passed", "failed"))
    extent = f"{chosen} checks" if len(results) == chosen else f"{len(results)} of {chosen} checks"
    return f"{extent} with {figures} figures: {counts or 'none made'}"


def to_markdown(
    results: Sequence[CheckResult], where: Circumstances, self_error: SelfError | None, *, chosen: int
) -> str:
    """Return the page that is written beside the results."""
    table = table_of("", (*CHECK, *FIGURES), rows_of(results))
    lines = [
        "# Calibration",
        "",
        f"{_times(results, where)}, {where.machine}, gatemark {where.gatemark}, ports {where.ports}"
        + (", short trials" if where.quick else ""),
        "",
        f"{summary_of(results, chosen)}.",
        "",
        *self_error_lines(self_error),
        markdown_table(table).rstrip("\n"),
    ]
    problems = [f"- {result.name}: {_one_line(result.problem)}" for result in results if result.problem]
    skipped = [f"- {result.name}: {_one_line(result.skipped)}" for result in results if result.skipped]
    lines += ["", "Without result:", "", *problems] if problems else []
    lines += ["", "Skipped:", "", *skipped] if skipped else []
    return "\n".join(lines) + "\n"


def self_error_lines(error: SelfError | None) -> list[str]:
    """Return what is known of the Tester's own delays."""
    if error is None:
        return []
    return [
        f"The Tester's own path through the ports: median {format_time(error.median_ns)}, shortest"
        f" {format_time(error.minimum_ns)}, 99.9th percentile {format_time(error.p999_ns)}, longest"
        f" {format_time(error.maximum_ns)}. The truth of TL and WCL includes its median.",
        "",
    ]


def _times(results: Sequence[CheckResult], where: Circumstances) -> str:
    last = max((result.made_at for result in results), default="")
    return f"{where.measured_at} to {last}" if last else where.measured_at


def _with_unit(value: Number | str | None, figure: Comparison) -> str:
    """Return a value of a figure in words; one that is no number has no unit."""
    words = _number(value, figure.unit)
    return words if figure.error is None else f"{words} {'µs' if figure.unit == 'ns' else figure.unit}"


def _allowed(figure: Comparison) -> str:
    if not figure.allowed_below and not figure.allowed_above:
        return "0"
    return f"-{_number(figure.allowed_below, figure.unit)} to +{_number(figure.allowed_above, figure.unit)}"


def _number(value: Number | str | None, unit: str) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if unit == "ns":
        return f"{float(Fraction(value) / 1000):,.2f}"
    if unit == "%":
        return f"{float(value):.4f}"
    return f"{int(value):,}" if value == int(value) else f"{float(value):,.1f}"


def _signed(value: Number, unit: str) -> str:
    text = _number(-value if value < 0 else value, unit)
    return text if value == 0 else f"{'-' if value < 0 else '+'}{text}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
