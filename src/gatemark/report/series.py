"""Rates over numbers of connections, in the layout of RFC 9693 section 6: one column for each number. Pure.

The settings of the test come first, then one block for each rate that was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from gatemark.report.lines import (
    COLUMNS_MAX,
    TABLE,
    UDP_TIMEOUT,
    Entry,
    FigureWords,
    Settings,
    coordinate_lines,
    endpoint_lines,
    figure_lines,
)
from gatemark.report.table import Block, Column, Section, Table, turned
from gatemark.report.words import (
    DASH,
    FEW_REPETITIONS,
    capital,
    direction_label,
    format_count,
    format_mix,
    format_range,
    name_sizes,
)
from gatemark.results.connections import Connections, GatewayTable
from gatemark.results.coordinates import Coordinate
from gatemark.results.document import ResultDocument
from gatemark.results.quantity import Quantity
from gatemark.results.search import RateResult
from gatemark.results.unit import unit_named
from gatemark.stats.series import ratios_to_previous

MEANING = (
    "UDP only: TCP has states and timeouts of its own (RFC 9693 section 8). Test phase 1 establishes every connection"
    " once, in an empty table; test phase 2 uses them. Establishment rates are connections/s: every connection arrived"
    " translated; validated ones also answered afterwards, at alpha times the rate."
    f" {FEW_REPETITIONS}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry(Entry):
    """A rate with one number of connections."""

    run: RateResult
    quantity: Quantity


def series_section(document: ResultDocument) -> Section | None:
    """Return the rates of a stateful gateway over its numbers of connections; None if it has none."""
    tables = tuple(series_tables(document))
    return Section(title="Connections", lead=(MEANING,), tables=tables) if tables else None


def series_tables(document: ResultDocument) -> Iterator[Table]:
    """Yield a table for each frame size and mix; many numbers of connections are split over several tables."""
    groups: dict[tuple[str, str], list[RunEntry]] = {}
    for run in document.runs:
        if isinstance(run, RateResult) and run.is_load_of_others and run.connection_count is not None:
            for quantity in run.quantities():
                entry = RunEntry(run=run, quantity=quantity)
                groups.setdefault((name_sizes(run), format_mix(run)), []).append(entry)
    mixed = len({mix for _, mix in groups}) > 1
    for (sizes, mix), entries in groups.items():
        title = f"{sizes} frames{f', foreground:background {mix}' if mixed else ''} (RFC 9693 section 6)"
        settings = {
            entry.run.connection_count or 0: _settings(entry.run.connections, document.gateway.table)
            for entry in reversed(entries)
            if entry.run.connections is not None
        }
        counts = sorted(settings)
        blocks = _blocks(entries, counts)
        for start in range(0, len(counts), COLUMNS_MAX):
            shown = counts[start : start + COLUMNS_MAX]
            made_with = [settings[count] for count in shown]
            yield turned(
                title,
                "number of sessions",
                [format_count(count) for count in shown],
                [
                    Block((*endpoint_lines([*settings.values()]), *TABLE, UDP_TIMEOUT), made_with),
                    *(_block([members.get(count) for count in shown]) for members in blocks),
                ],
            )


def _settings(used: Connections, table: GatewayTable | None) -> Settings:
    return Settings(
        used.source_ports,
        used.destination_ports,
        used.source_hosts,
        used.destination_hosts,
        () if used.count is None else (used.count,),
        *((None, None, None) if table is None else (table.size, table.hash_size, table.udp_timeout_ns)),
    )


def _blocks(entries: Sequence[RunEntry], counts: Sequence[int]) -> list[dict[int, RunEntry]]:
    """Return each rate by the number of connections, with the ratio of its median to that of the number before."""
    blocks: dict[tuple[str, str, Coordinate], dict[int, RunEntry]] = {}
    for entry in entries:
        # one alpha that was searched for may be another with each number of connections
        alpha = None if entry.run.is_searched_alpha else entry.quantity.coordinates.get("alpha")
        block = blocks.setdefault((entry.quantity.name, entry.run.direction, alpha), {})
        block[entry.run.connection_count or 0] = entry
    return [_with_ratios(block, counts) for block in blocks.values()]


def _with_ratios(block: dict[int, RunEntry], counts: Sequence[int]) -> dict[int, RunEntry]:
    medians = [Fraction(block[count].quantity.median or 0) if count in block else Fraction(0) for count in counts]
    ratios = dict(zip(counts, ratios_to_previous(medians), strict=True))
    return {
        count: replace(entry, ratio=float(ratio) if (ratio := ratios[count]) else None)
        for count, entry in block.items()
    }


def _block(entries: Sequence[RunEntry | None]) -> Block[RunEntry]:
    """One rate over the numbers of connections: its heading, then its figures."""
    known = [entry for entry in entries if entry is not None]
    if not known:
        return Block((), entries)
    first = known[0]
    words = FigureWords.of(first.quantity.unit, (entry.quantity for entry in known))
    phase_one = (PHASE_ONE,) if unit_named(first.quantity.unit).is_one_way else ()
    lines = (*phase_one, *coordinate_lines(["alpha"]), *figure_lines(words, entries))
    return Block(lines, entries, _block_title(first.run, first.quantity))


def _block_title(run: RateResult, quantity: Quantity) -> str:
    """What is measured, and its unit."""
    name = capital(quantity.name)
    if not unit_named(quantity.unit).is_one_way:
        return f"{name}, {quantity.unit}"
    comma = "" if run.direction == "bidirectional" else ","
    return f"{name} in phase 2, {quantity.unit}{comma} {direction_label(run)}"


def _phase_one_rate(entry: RunEntry) -> str:
    first = None if entry.run.connections is None else entry.run.connections.phase_one
    if first is None:
        return DASH
    return format_range(first.connections_per_second_minimum, first.connections_per_second_maximum)


PHASE_ONE: Column[RunEntry] = Column("Phase 1, connections/s", _phase_one_rate)
