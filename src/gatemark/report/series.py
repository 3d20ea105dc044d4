"""Rates over numbers of connections, in the layout of RFC 9693 section 6: one column for each number. Pure.

The settings of the test come first, then one block for each rate that was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from gatemark.report.table import Column, Section, Table
from gatemark.report.words import (
    DASH,
    capital,
    direction_label,
    format_count,
    format_mix,
    format_percent,
    format_ratio,
    limit_text,
    name_sizes,
    rate_cell,
)
from gatemark.results.connections import GatewayTable
from gatemark.results.coordinates import Coordinate
from gatemark.results.document import ResultDocument
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.quantity import Quantity
from gatemark.results.search import RateResult
from gatemark.stats.series import ratios_to_previous
from gatemark.units import format_duration_ns

COLUMNS_MAX = 8
"""Numbers of connections side by side in one table."""

MEANING = (
    "UDP only: TCP has states and timeouts of its own (RFC 9693 section 8). Test phase 1 establishes every connection"
    " once, in an empty table; test phase 2 uses them. Establishment rates are connections/s: every connection arrived"
    " translated; validated ones also answered afterwards, at alpha times the rate. p1 and p99 are the smallest and the"
    " largest value with fewer than 100 repetitions."
)

RunRate = tuple[RateResult, Quantity]


def series_section(document: ResultDocument) -> Section | None:
    """Return the rates of a stateful gateway over its numbers of connections; None if it has none."""
    tables = tuple(series_tables(document))
    return Section(title="Connections", lead=(MEANING,), tables=tables) if tables else None


def series_tables(document: ResultDocument) -> Iterator[Table]:
    """Yield a table for each frame size and mix; many numbers of connections are split over several tables."""
    groups: dict[tuple[str, str], list[RunRate]] = {}
    for run in document.runs:
        if isinstance(run, RateResult) and run.is_load_of_others and run.connection_count is not None:
            for quantity in run.quantities():
                groups.setdefault((name_sizes(run), format_mix(run)), []).append((run, quantity))
    mixed = len({mix for _, mix in groups}) > 1
    for (sizes, mix), rows in groups.items():
        title = f"{sizes} frames{f', foreground:background {mix}' if mixed else ''} (RFC 9693 section 6)"
        counts = sorted({run.connection_count or 0 for run, _ in rows})
        for start in range(0, len(counts), COLUMNS_MAX):
            yield _table(title, document.gateway.table, rows, counts, slice(start, start + COLUMNS_MAX))


def _table(
    title: str, table: GatewayTable | None, rates: Sequence[RunRate], counts: Sequence[int], shown: slice
) -> Table:
    blocks: dict[tuple[str, str, Coordinate], dict[int, RunRate]] = {}
    for run, quantity in rates:
        block_key = (quantity.name, run.direction, _listed_alpha(run, quantity))
        blocks.setdefault(block_key, {})[run.connection_count or 0] = (run, quantity)
    first = {run.connection_count or 0: run for run, _ in reversed(rates)}
    rows: list[tuple[str, ...]] = list(_made_with([first[count] for count in counts], table))
    strong = set()
    for members in blocks.values():
        block = list(_rate_block([members.get(count) for count in counts]))
        strong |= {len(rows) + place for place, row in enumerate(block) if row[0] == "Median"}
        rows += block
    cut = tuple(row if len(row) == 1 else (row[0], *row[1:][shown]) for row in rows)
    headings = (Column(heading=format_count(count)) for count in counts[shown])
    columns = (Column(heading="number of sessions", numeric=False), *headings)
    return Table(title=title, columns=columns, rows=cut, strong_rows=frozenset(strong))


def _listed_alpha(run: RateResult, quantity: Quantity) -> Coordinate:
    """Alpha, where each number of connections has the same ones; one that was searched for may be another each time."""
    return None if run.is_searched_alpha else quantity.coordinates.get("alpha")


def _made_with(runs: Sequence[RateResult], table: GatewayTable | None) -> Iterator[tuple[str, ...]]:
    """Settings of each number of connections; those that depend on the gateway only if they are stated."""
    used = [run.connections for run in runs if run.connections is not None]
    yield ports_row("Source ports", [(c.source_ports.minimum, c.source_ports.ports) for c in used])
    yield ports_row("Destination ports", [(c.destination_ports.minimum, c.destination_ports.ports) for c in used])
    for label, hosts in (
        ("Initiator's hosts", [connections.source_hosts for connections in used]),
        ("Responder's hosts", [connections.destination_hosts for connections in used]),
    ):
        if max(hosts) > 1:
            yield (label, *(format_count(count) for count in hosts))
    if table is None:
        return
    if table.size is not None:
        yield ("Table size", *(format_count(table.size) for _ in used))
    if table.hash_size is not None:
        yield ("Hash size", *(format_count(table.hash_size) for _ in used))
        yield ("Sessions per hash size", *(f"{(c.count or 0) / table.hash_size:.4f}" for c in used))
    if table.udp_timeout_ns is not None:
        yield ("UDP timeout", *(format_duration_ns(table.udp_timeout_ns) for _ in used))


def ports_row(label: str, ranges: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Numbers of ports; the first port is in the label if it is the same everywhere."""
    starts = {start for start, _ in ranges}
    named = f"{label} from {starts.pop()}" if len(starts) == 1 else label
    return (named, *(format_count(ports) for _, ports in ranges))


def _rate_block(rates: Sequence[RunRate | None]) -> Iterator[tuple[str, ...]]:
    """One rate over the numbers of connections: its heading, then its figures."""
    run, quantity = next(entry for entry in rates if entry is not None)
    yield (_block_title(run, quantity),)

    def row(label: str, cell: Callable[[RateResult, Quantity], str]) -> tuple[str, ...]:
        return (label, *(DASH if entry is None else cell(*entry) for entry in rates))

    if quantity.unit == "frames/s":
        yield row("Phase 1, connections/s", lambda run, _: _phase_one_rate(run))
    if "alpha" in quantity.coordinates:
        yield row("Alpha", lambda _, rate: format_ratio(Fraction(str(rate.coordinates["alpha"]))))
    yield row("Number of experiments", lambda run, _: str(len(run.repetitions)))
    yield row("Error", lambda _, rate: format_count(rate.resolution))
    yield row("Median", lambda _, rate: "not measured" if rate.limited_by in NOT_THE_GATEWAY else rate_cell(rate))
    yield row("Minimum (p1)", lambda _, rate: _known(rate, rate.p1))
    yield row("Maximum (p99)", lambda _, rate: _known(rate, rate.p99))
    yield row("Dispersion", lambda _, rate: DASH if rate.median is None else format_percent(rate.dispersion_percent))
    if sum(entry is not None for entry in rates) > 1:
        yield ("Median / previous median", *ratio_cells([None if entry is None else entry[1] for entry in rates]))
    yield row("Limited by", lambda _, rate: limit_text(rate))


def _block_title(run: RateResult, quantity: Quantity) -> str:
    """What is measured, and its unit."""
    name = capital(quantity.name)
    if quantity.unit != "frames/s":
        return f"{name}, {quantity.unit}"
    comma = "" if run.direction == "bidirectional" else ","
    return f"{name} in phase 2, {quantity.unit}{comma} {direction_label(run)}"


def ratio_cells(quantities: Sequence[Quantity | None]) -> tuple[str, ...]:
    """Ratio of the median to that of the column before, two decimals; a dash if either was not measured."""
    medians = [None if q is None or q.median is None else Fraction(q.median) for q in quantities]
    ratios = ratios_to_previous([median or Fraction(0) for median in medians])
    return tuple(
        DASH if ratio is None or not median else f"{float(ratio):.2f}"
        for ratio, median in zip(ratios, medians, strict=True)
    )


def _phase_one_rate(run: RateResult) -> str:
    first = None if run.connections is None else run.connections.phase_one
    if first is None:
        return DASH
    lowest, highest = first.connections_per_second_minimum, first.connections_per_second_maximum
    return format_count(lowest) if lowest == highest else f"{format_count(lowest)} {DASH} {format_count(highest)}"


def _known(rate: Quantity, value: int | float | None) -> str:
    return DASH if rate.limited_by in NOT_THE_GATEWAY else format_count(value)
