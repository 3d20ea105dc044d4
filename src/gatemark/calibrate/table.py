"""A calibration in words: Markdown for the folder and the documentation, JSON for programs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import computed_field

from gatemark.calibrate.links import PortKind
from gatemark.calibrate.model import CalibrationPart, CheckResult, Comparison, Number, SelfError
from gatemark.units import format_duration_ns

HEADINGS = ("check", "truth given", "quantity", "true", "measured", "error", "allowed error", "result")


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
    ports: PortKind
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


def rows_of(results: Sequence[CheckResult]) -> list[tuple[str, ...]]:
    """Return the table's rows as texts: one for each figure, and one for each check without any."""
    rows: list[tuple[str, ...]] = []
    for result in results:
        if result.status in ("reference not kept", "no result", "skipped") or not result.comparisons:
            outcome = "measured" if result.status == "passed" else result.status
            rows.append((result.procedure, result.truth, "", "", "", "", "", outcome))
            continue
        rows += [
            (
                result.procedure,
                result.truth,
                comparison.quantity,
                *_figures(comparison),
                "passed" if comparison.passed else "failed",
            )
            for comparison in result.comparisons
        ]
    return rows


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
    lines = [
        "# Calibration",
        "",
        f"{_times(results, where)}, {where.machine}, gatemark {where.gatemark}, ports {where.ports}"
        + (", short trials" if where.quick else ""),
        "",
        f"{summary_of(results, chosen)}.",
        "",
        *self_error_lines(self_error),
        f"| {' | '.join(HEADINGS)} |",
        f"|{'---|' * len(HEADINGS)}",
        *(f"| {' | '.join(row)} |" for row in rows_of(results)),
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
        f"The Tester's own path through the ports: median {format_duration_ns(error.median_ns)}, shortest"
        f" {format_duration_ns(error.minimum_ns)}, 99.9th percentile {format_duration_ns(error.p999_ns)}, longest"
        f" {format_duration_ns(error.maximum_ns)}. The truth of TL and WCL holds its median.",
        "",
    ]


def _times(results: Sequence[CheckResult], where: Circumstances) -> str:
    last = max((result.made_at for result in results), default="")
    return f"{where.measured_at} to {last}" if last else where.measured_at


def _figures(comparison: Comparison) -> tuple[str, str, str, str]:
    """Return true, measured, error and allowed error with their unit."""
    unit = "us" if comparison.unit == "ns" else comparison.unit
    true, measured = _number(comparison.true, comparison.unit), _number(comparison.measured, comparison.unit)
    if comparison.error is None:
        return true, measured, "", ""
    below, above = (
        _number(comparison.allowed_below, comparison.unit),
        _number(comparison.allowed_above, comparison.unit),
    )
    allowed = "0" if not comparison.allowed_below and not comparison.allowed_above else f"-{below} to +{above}"
    return f"{true} {unit}", f"{measured} {unit}", _signed(comparison.error, comparison.unit), allowed


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
