"""Tables of stateful gateways in the form of RFC 9693 section 6, as rows of words. Pure; page and terminal print them.

One column for each number of connections: what the test was made with, then one block for each rate that was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gatemark.report.statements import LOST, OVERFLOWS
from gatemark.report.words import (
    DASH,
    connections_of,
    direction_label,
    format_count,
    format_long_time,
    format_mix,
    format_percent,
    format_ratio_text,
    format_tolerance,
    found_summary,
    limit_text,
    name_sizes,
    rate_cell,
)
from gatemark.results.schema import CapacityPart, GatewayTablePart, ResultDocument, RunPart, SummaryPart
from gatemark.stats.series import ratios_to_previous
from gatemark.units import format_duration_ns

SERIES_PROCEDURES = ("connection_establishment_rate", "validated_connection_establishment_rate", "throughput")
"""Procedures with a rate for each number of connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure for each number of connections."""

    label: str
    cells: tuple[str, ...]
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Rows that belong together."""

    title: str
    """Empty for the first block: what the test was made with."""
    unit: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesTable:
    """Rates by number of connections, of one frame size and share of foreground."""

    title: str
    counts: tuple[str, ...]
    """Heading of each column: number of connections."""
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TearDownRow:
    """Tear-down of one number of connections (RFC 9693 section 4.8)."""

    connections: str
    full: tuple[str, str, str]
    """Median, minimum, maximum of the time to delete all connections."""
    empty: tuple[str, str, str]
    net: str
    rate: str
    """Connections/s; in parentheses where it is uncertain."""
    reliable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityTable:
    """All searches for the capacity of one run (RFC 9693 section 4.9)."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    """One a search: its number, C0, R0, CS, RS, CT, RT, C, and what happened beyond; then median, minimum, maximum."""


CAPACITY_COLUMNS = ("Search", "C0", "R0", "CS", "RS", "CT", "RT", "C", "Beyond the capacity")


def series_tables(document: ResultDocument) -> tuple[SeriesTable, ...]:
    """Return the tables of a document: one for each frame size and mix; none for a stateless gateway."""
    groups: dict[tuple[str, str], list[RunPart]] = {}
    for run in document.runs:
        if run.procedure in SERIES_PROCEDURES and connections_of(run) is not None:
            groups.setdefault((name_sizes(run), format_mix(run)), []).append(run)
    mixed = len({mix for _, mix in groups}) > 1
    return tuple(
        _series_table(
            f"{document.gateway.name}, {sizes} frames{f', foreground:background {mix}' if mixed else ''}",
            document.gateway.table,
            runs,
        )
        for (sizes, mix), runs in groups.items()
    )


def tear_down_rows(document: ResultDocument) -> tuple[TearDownRow, ...]:
    """Return the tear-down of each number of connections that has times."""
    found = [run.tear_down for run in document.runs if run.tear_down is not None]
    return tuple(
        TearDownRow(
            connections=format_count(one.connections),
            full=_times(one.full_ns),
            empty=_times(one.empty_ns),
            net=format_long_time(one.net_ns),
            rate=_tear_down_rate(one.connections_per_second, reliable=one.reliable),
            reliable=one.reliable,
        )
        for one in found
    )


def capacity_tables(document: ResultDocument) -> tuple[CapacityTable, ...]:
    """Return one table for each capacity run, which is at most one a document."""
    return tuple(_capacity_table(run, run.capacity) for run in document.runs if run.capacity is not None)


def ratio_cells(runs: Sequence[RunPart | None]) -> tuple[str, ...]:
    """Median over the median of the column before, two decimals; a dash where either was not measured."""
    medians = [_median(run) for run in runs]
    ratios = ratios_to_previous([median or Fraction(0) for median in medians])
    return tuple(
        DASH if ratio is None or not median else f"{float(ratio):.2f}"
        for ratio, median in zip(ratios, medians, strict=True)
    )


def _median(run: RunPart | None) -> Fraction | None:
    found = None if run is None else found_summary(run)
    return None if found is None else Fraction(found.median)


def _series_table(title: str, table: GatewayTablePart | None, runs: Sequence[RunPart]) -> SeriesTable:
    counts = sorted({count for run in runs if (count := connections_of(run)) is not None})
    blocks: dict[tuple[str, str], dict[int, RunPart]] = {}
    for run in runs:
        blocks.setdefault((run.procedure, run.direction), {})[connections_of(run) or 0] = run
    first = {connections_of(run): run for run in reversed(runs)}
    made = _made_with([first[count] for count in counts], table)
    return SeriesTable(
        title=title,
        counts=tuple(format_count(count) for count in counts),
        blocks=(
            Block(title="", unit="", rows=made),
            *(_rate_block([members.get(count) for count in counts]) for members in blocks.values()),
        ),
    )


def _made_with(runs: Sequence[RunPart], table: GatewayTablePart | None) -> tuple[Row, ...]:
    """Settings of each number of connections; those that depend on the gateway only where they are stated."""
    made = [run.connections for run in runs if run.connections is not None]
    rows = [
        _ports("Source ports", [(one.source_ports.minimum, one.source_ports.ports) for one in made]),
        _ports("Destination ports", [(one.destination_ports.minimum, one.destination_ports.ports) for one in made]),
    ]
    for label, hosts in (
        ("Initiator's hosts", [one.source_hosts for one in made]),
        ("Responder's hosts", [one.destination_hosts for one in made]),
    ):
        if max(hosts) > 1:
            rows.append(Row(label=label, cells=tuple(format_count(number) for number in hosts)))
    if table is None:
        return tuple(rows)
    if table.size is not None:
        rows.append(Row(label="Table size", cells=tuple(format_count(table.size) for _ in made)))
    if table.hash_size is not None:
        rows.append(Row(label="Hash size", cells=tuple(format_count(table.hash_size) for _ in made)))
        per_bucket = tuple(f"{(one.count or 0) / table.hash_size:.4f}" for one in made)
        rows.append(Row(label="Sessions per hash size", cells=per_bucket))
    if table.udp_timeout_ns is not None:
        rows.append(Row(label="UDP timeout", cells=tuple(format_duration_ns(table.udp_timeout_ns) for _ in made)))
    return tuple(rows)


def _ports(label: str, ranges: Sequence[tuple[int, int]]) -> Row:
    """Numbers of ports; the first port is in the label if it is the same everywhere."""
    starts = {start for start, _ in ranges}
    named = f"{label} from {starts.pop()}" if len(starts) == 1 else label
    return Row(label=named, cells=tuple(format_count(number) for _, number in ranges))


def _rate_block(runs: Sequence[RunPart | None]) -> Block:
    """One rate over the numbers of connections."""
    known = next(run for run in runs if run is not None)

    def row(label: str, word: Callable[[RunPart], str], *, strong: bool = False) -> Row:
        return Row(label=label, cells=tuple(DASH if run is None else word(run) for run in runs), strong=strong)

    rows = []
    if known.procedure == "throughput":
        rows.append(row("Phase 1, connections/s", _phase_one_rate))
    if known.procedure == "validated_connection_establishment_rate":
        rows.append(row("Alpha", lambda run: format_ratio_text(run.alpha)))
    rows += [
        row("Number of experiments", lambda run: str(len(run.repetitions))),
        row("Error", lambda run: format_count(run.goal.resolution)),
        row("Median", lambda run: "not measured" if run.limited_by == "tester" else rate_cell(run), strong=True),
        row("Minimum (p1)", lambda run: _percentile(run, lambda found: found.p1)),
        row("Maximum (p99)", lambda run: _percentile(run, lambda found: found.p99)),
        row("Dispersion", _dispersion),
    ]
    if sum(run is not None for run in runs) > 1:
        rows.append(Row(label="Median / previous median", cells=ratio_cells(runs)))
    rows.append(row("Limited by", limit_text))
    title, unit = _block_title(known)
    return Block(title=title, unit=unit, rows=tuple(rows))


def _block_title(run: RunPart) -> tuple[str, str]:
    """What is measured, and its unit."""
    if run.procedure == "connection_establishment_rate":
        return "Connection establishment rate", "connections/s"
    if run.procedure == "validated_connection_establishment_rate":
        return "Validated connection establishment rate", "connections/s"
    tolerance = Fraction(run.goal.loss_tolerance)
    what = f"Rate with {format_tolerance(run.goal.loss_tolerance)} loss tolerated" if tolerance else "Throughput"
    comma = "" if run.direction == "bidirectional" else ","
    return f"{what} in phase 2", f"frames/s{comma} {direction_label(run)}"


def _phase_one_rate(run: RunPart) -> str:
    first = None if run.connections is None else run.connections.phase_one
    if first is None:
        return DASH
    lowest, highest = first.connections_per_second_minimum, first.connections_per_second_maximum
    return format_count(lowest) if lowest == highest else f"{format_count(lowest)} {DASH} {format_count(highest)}"


def _percentile(run: RunPart, value: Callable[[SummaryPart], int | float]) -> str:
    found = None if run.limited_by == "tester" else found_summary(run)
    return DASH if found is None else format_count(value(found))


def _dispersion(run: RunPart) -> str:
    found = None if run.limited_by == "tester" else found_summary(run)
    return DASH if found is None else format_percent(found.dispersion_percent)


def _times(summary: SummaryPart) -> tuple[str, str, str]:
    return format_long_time(summary.median), format_long_time(summary.p1), format_long_time(summary.p99)


def _tear_down_rate(rate: int | float | None, *, reliable: bool) -> str:
    if rate is None:
        return "no difference"
    return format_count(round(rate)) if reliable else f"({format_count(round(rate))})"


def _capacity_table(run: RunPart, capacity: CapacityPart) -> CapacityTable:
    error = capacity.rate_resolution
    title = (
        f"alpha {format_ratio_text(run.alpha)}, beta {format_ratio_text(capacity.beta)}, gamma"
        f" {format_ratio_text(capacity.gamma)}, E {format_count(capacity.resolution)} connections, e"
        f" {format_count(error)} connections/s"
    )
    rows = []
    for one in capacity.repetitions:
        figures = (one.c0, one.r0, one.cs, one.rs, one.ct, one.rt, one.lower_bound)
        words = [OVERFLOWS[one.overflow]] if one.overflow is not None else []
        words += [LOST[one.lost_connections]] if one.lost_connections is not None else []
        if one.kind == "maximum_passed":
            words.append("none was reached: the search ended at its maximum")
        if one.kind == "tester_limited":
            words.append("the Tester was the limit")
        rows.append((str(one.number), *(format_count(figure) for figure in figures), "; ".join(words)))
    if capacity.capacity is not None and len(rows) > 1:
        rows += [_capacity_summary(capacity, name) for name in ("median", "p1", "p99")]
    return CapacityTable(title=title, rows=tuple(rows))


def _capacity_summary(capacity: CapacityPart, name: str) -> tuple[str, ...]:
    """One row over all searches; a size that was not the same in all of them has none."""

    def figure(summary: SummaryPart | None) -> str:
        return DASH if summary is None else format_count(getattr(summary, name))

    def same(values: set[int | None]) -> str:
        return format_count(values.pop()) if len(values) == 1 else DASH

    searches = capacity.repetitions
    label = {"median": "median", "p1": "minimum (p1)", "p99": "maximum (p99)"}[name]
    return (
        label,
        same({one.c0 for one in searches}),
        figure(capacity.r0),
        same({one.cs for one in searches}),
        figure(capacity.rs),
        same({one.ct for one in searches}),
        same({one.rt for one in searches}),
        figure(capacity.capacity),
        "",
    )
