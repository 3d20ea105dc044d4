"""The table at the end of `gatemark run` and `gatemark demo`. Pure: document in, table out."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gatemark.report.observed import observations, phase_one_failures
from gatemark.report.plain_text import section_text
from gatemark.report.scale_up import scale_up_tables
from gatemark.report.sections import sections_of
from gatemark.report.self_error import ceiling_cell, ceiling_notes, ceiling_of, no_self_test, reaches_ceiling
from gatemark.report.shares import share_section
from gatemark.report.stateful_text import capacity_text, scale_up_text, series_text, tear_down_text
from gatemark.report.table_style import PLAIN_WIDTH, make_table
from gatemark.report.words import (
    DASH,
    bounds_cell,
    connections_of,
    direction_label,
    format_count,
    format_mix,
    format_percent,
    format_sizes,
    format_tolerance,
    limit_text,
    rate_cell,
    spread_cell,
    worst_loss,
)
from gatemark.results.schema import LossPointPart, ResultDocument, RunPart
from gatemark.units import format_duration_ns

WIDE = 140
"""Columns from which on every figure has a column of its own."""

Column = tuple[str, tuple[str, ...], Literal["left", "right"]]
"""Heading, names of the figures in it from top to bottom, and where they stand."""

_WIDE: tuple[Column, ...] = (
    ("gateway", ("gateway",), "left"),
    ("frame size\nIPv4 / IPv6", ("sizes",), "right"),
    ("direction", ("direction",), "left"),
    ("median", ("median",), "right"),
    (f"p1 {DASH} p99", ("spread",), "right"),
    ("passed / failed", ("bounds",), "right"),
    ("repe-\ntitions", ("repetitions",), "right"),
    ("goal", ("goal",), "left"),
    ("limited by", ("limit",), "left"),
)

_NARROW: tuple[Column, ...] = (
    ("gateway\ndirection", ("gateway", "direction"), "left"),
    ("frame size\nIPv4 / IPv6", ("sizes",), "right"),
    (f"median\np1 {DASH} p99\npassed / failed", ("median", "spread", "bounds"), "right"),
    ("limited by\ngoal, repetitions", ("limit", "goal", "times"), "left"),
)


def throughput_table(documents: Sequence[ResultDocument], *, width: int = PLAIN_WIDTH) -> Table | None:
    """Throughput of all stateless gateways, one row a run; None if the campaign has no such run.

    The figures are the same at every width: on a narrow terminal two of them share a cell, one above the other.
    """
    stateless = [document for document in documents if document.gateway.inside is None]
    runs = [(document, run) for document in stateless for run in document.runs if run.procedure == "throughput"]
    if not runs:
        return None
    table = make_table("Throughput, frames/s in one direction")
    columns = _WIDE if width >= WIDE else _NARROW
    mixed = any(run.mix.m != run.mix.n for _, run in runs)
    for heading, _, justify in columns:
        table.add_column(heading, justify=justify, no_wrap=justify == "right", overflow="fold")
    before = ""
    for document, run in runs:
        if before and before != document.name:
            table.add_section()
        before = document.name
        figures = _figures(document, run, mixed=mixed)
        table.add_row(*("\n".join(figures[name] for name in names) for _, names, _ in columns))
    return table


def frame_loss_table(documents: Sequence[ResultDocument]) -> Table | None:
    """Frame loss of all gateways, one row a load; None if the campaign has no such run."""
    rows = [(document, run) for document in documents for run in document.runs if run.procedure == "frame_loss"]
    if not rows:
        return None
    table = make_table("Frame loss")
    counted = any(connections_of(run) is not None for _, run in rows)
    size = "connections\n" if counted else ""
    heads = ("gateway", f"{size}frame size\nIPv4 / IPv6", "direction", "load, frames/s", "forward", "reverse", "worst")
    for heading in heads:
        table.add_column(heading, justify="left" if heading in ("gateway", "direction") else "right")
    for document, run in rows:
        for point in run.points:
            words = format_percent(worst_loss(point.directions)) if point.directions else "Tester-limited"
            table.add_row(
                document.gateway.name,
                f"{format_count(connections_of(run))}\n{format_sizes(run)}" if counted else format_sizes(run),
                direction_label(run),
                format_count(point.frames_per_second),
                _loss_of(point, "forward"),
                _loss_of(point, "reverse"),
                words,
            )
    return table


def print_result(documents: Sequence[ResultDocument], *, report: str | None, console: Console | None = None) -> None:
    """Print the tables, what stands against a claim, and where the report lies."""
    console = console or stdout_console()
    for document in documents:
        print_stateful(document, console)
    for table in (
        throughput_table(documents, width=console.width),
        frame_loss_table(documents),
    ):
        if table is not None:
            console.print(table)
    for document in documents:
        for section in sections_of(document):
            for printed in section_text(section, name=document.gateway.name, width=console.width):
                console.print(printed)
    for scale_up in scale_up_tables(documents):
        console.print(scale_up_text(scale_up))
    if (shares := share_section(documents)) is not None:
        for printed in section_text(shares, name="", width=console.width):
            console.print(printed)
    for document in documents:
        for sentence in (*observations(document), *phase_one_failures(document), *ceiling_notes(document)):
            console.print(Text(f"{document.name}: {sentence}"))
        if document.validity.invalid:
            console.print(
                Text(f"{document.name}: {document.validity.invalid} of {document.validity.trials} trials were invalid")
            )
        if document.status != "complete":
            console.print(Text(f"{document.name}: incomplete, {len(document.runs)} of {document.runs_planned} runs"))
    for note in dict.fromkeys(note for document in documents for note in no_self_test(document)):
        console.print(Text(note))
    claims = (document.claim for document in documents)
    for sentence in dict.fromkeys(said for claim in claims for said in (claim.sentence, claim.informational) if said):
        console.print(Text(sentence))
    if report is not None:
        console.print(Text(f"report: {report}"), soft_wrap=True)


def print_stateful(document: ResultDocument, console: Console) -> None:
    """Print the tables that only a stateful gateway has; nothing for others."""
    for table in (*series_text(document, width=console.width), tear_down_text(document), *capacity_text(document)):
        if table is not None:
            console.print(table)


def stdout_console() -> Console:
    """A console on standard output; wide where nobody watches, so that tables are not broken."""
    console = Console(highlight=False)
    if not console.is_terminal:
        return Console(highlight=False, width=max(PLAIN_WIDTH, shutil.get_terminal_size((0, 0)).columns))
    return console


def _loss_of(point: LossPointPart, direction: str) -> str:
    """Median loss of one direction, the worse class of the two."""
    parts = [part for part in point.directions if part.direction == direction]
    return format_percent(worst_loss(parts)) if parts else DASH


def _limit(document: ResultDocument, run: RunPart) -> str:
    """What limited the run, with the Tester's own ceiling where it is known."""
    if ceiling_of(document, run) is None:
        return limit_text(run)
    found = run.rate_per_direction
    mark = "not below the self-test" if found and reaches_ceiling(document, run, found.median) else "self-test"
    return f"{limit_text(run)}\n{mark} {ceiling_cell(document, run)}".replace("\nof", " of")


def _figures(document: ResultDocument, run: RunPart, *, mixed: bool) -> dict[str, str]:
    """Every figure of a row by its name."""
    measured = run.limited_by != "tester"
    direction = direction_label(run)
    return {
        "gateway": document.gateway.name,
        "sizes": format_sizes(run),
        "direction": f"{direction}, foreground:background {format_mix(run)}" if mixed else direction,
        "median": rate_cell(run) if measured else "not measured",
        "spread": spread_cell(run.rate_per_direction) if measured else DASH,
        "bounds": bounds_cell(run),
        "repetitions": str(len(run.repetitions)),
        "times": f"{len(run.repetitions)} times",
        "goal": f"{format_tolerance(run.goal.loss_tolerance)} loss, {format_duration_ns(run.goal.duration_ns or 0)}",
        "limit": _limit(document, run),
    }
