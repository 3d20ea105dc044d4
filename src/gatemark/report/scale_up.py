"""How rates grow with the number of processors of a gateway, over several campaigns. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from gatemark.report.words import (
    DASH,
    PROCEDURES,
    connections_of,
    direction_label,
    format_count,
    format_mix,
    format_sizes,
    found_summary,
    unit_of,
)
from gatemark.results.schema import ResultDocument, RunPart
from gatemark.stats.series import ratios_to_previous, relative_scale_ups

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpRow:
    """One measurement at each number of processors."""

    what: str
    unit: str
    cells: tuple[tuple[str, str], ...]
    """Median and relative scale-up of each number of processors; dashes where it was not measured."""
    steps: tuple[str, ...]
    """Median over the median of the number of processors before; a dash where either was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpTable:
    """One gateway at several numbers of processors."""

    gateway: str
    processors: tuple[int, ...]
    rows: tuple[ScaleUpRow, ...]


def scale_up_tables(documents: Sequence[ResultDocument]) -> tuple[ScaleUpTable, ...]:
    """Return a table for each gateway that was measured with one processor and with more.

    A gateway with two campaigns at the same number of processors is left out: nothing says which of them counts.
    """
    groups: dict[tuple[str, str], list[ResultDocument]] = {}
    for document in documents:
        if document.gateway.processors is not None:
            groups.setdefault((document.gateway.name, document.gateway.technology), []).append(document)
    tables = []
    for (gateway, _), members in groups.items():
        by_processors = {member.gateway.processors or 0: member for member in members}
        if 1 in by_processors and len(by_processors) == len(members) > 1:
            processors = tuple(sorted(by_processors))
            rows = _rows([by_processors[number] for number in processors], processors)
            if rows:
                tables.append(ScaleUpTable(gateway=gateway, processors=processors, rows=rows))
    return tuple(tables)


def _rows(documents: Sequence[ResultDocument], processors: Sequence[int]) -> tuple[ScaleUpRow, ...]:
    medians: dict[Key, dict[int, Fraction]] = {}
    units: dict[Key, str] = {}
    for document, number in zip(documents, processors, strict=True):
        for run in document.runs:
            found = found_summary(run)
            if found is not None and found.median and run.limited_by == "gateway" and run.capacity is None:
                medians.setdefault(_key(run), {})[number] = Fraction(found.median)
                units[_key(run)] = unit_of(run)
    return tuple(
        ScaleUpRow(
            what=", ".join(key), unit=units[key], cells=_cells(found, processors), steps=_steps(found, processors)
        )
        for key, found in medians.items()
        if 1 in found and len(found) > 1
    )


def _cells(found: dict[int, Fraction], processors: Sequence[int]) -> tuple[tuple[str, str], ...]:
    ratios = relative_scale_ups(found)
    return tuple(
        (format_count(float(found[number])), f"{float(ratios[number]):.3f}") if number in found else (DASH, DASH)
        for number in processors
    )


def _steps(found: dict[int, Fraction], processors: Sequence[int]) -> tuple[str, ...]:
    ratios = ratios_to_previous([found.get(number, Fraction(0)) for number in processors])
    return tuple(f"{float(ratio):.2f}" if ratio else DASH for ratio in ratios)


def _key(run: RunPart) -> Key:
    """What must be equal for two runs to be the same measurement."""
    words = [PROCEDURES[run.procedure], f"{format_sizes(run)} octets"]
    if run.procedure == "throughput":
        words.append(direction_label(run))
    if run.mix.m != run.mix.n:
        words.append(f"foreground:background {format_mix(run)}")
    if connections_of(run) is not None:
        words.append(f"{format_count(connections_of(run))} connections")
    return tuple(words)
