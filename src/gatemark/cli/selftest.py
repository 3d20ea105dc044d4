"""`gatemark selftest [CAMPAIGN]`: what the Tester alone can do, its two ports joined to each other."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from gatemark.cli.common import AsJson, one_campaign, print_json
from gatemark.dut.recipe import complete_campaign
from gatemark.report.table import Column, Table
from gatemark.report.terminal import print_table
from gatemark.selftest.document import SelfTest, self_test_file, store_self_test
from gatemark.selftest.run import QUICK, Effort, Step, Subject, Tell, planned_cases, run_self_test, subject_of
from gatemark.tester import stop_signals
from gatemark.units import format_duration_ns, format_rate


def selftest(
    file: Path | None = None,
    /,
    *,
    quick: bool = False,
    as_json: AsJson = False,
) -> int:
    """Measure the limits of the Tester alone: join its ports and send each mode of traffic as fast as possible.

    gatemark keeps the result on this machine, by kind of port, and later reports show it beside their figures. A
    self-test takes a quarter of an hour; with --quick, a few minutes. The exit status is 1 if no rate passed in some
    mode.

    Example: gatemark selftest campaign.toml

    Parameters
    ----------
    file
        Campaign file (TOML) whose kind of port to test. Default: interfaces of a netns test bed (needs root).
    quick
        Use short trials and two frame sizes.
    as_json
        Print the self-test as JSON instead of tables.
    """
    campaign = None if file is None else complete_campaign(one_campaign(file))
    effort = QUICK if quick else Effort()
    subject = subject_of(campaign)
    _announce(subject, len(planned_cases(subject, effort)))
    with stop_signals(resume_hint=None), _progress() as tell:
        document = run_self_test(subject, effort=effort, quick=quick, tell=tell)
    path = store_self_test(document)
    if as_json:
        print_json(document.model_dump(mode="json"))
    else:
        _print(document, path)
    return 0 if all(entry.frames_per_second for entry in document.entries) else 1


def _announce(subject: Subject, cases: int) -> None:
    left, right = subject.ports["left"], subject.ports["right"]
    words = f"self-test of ports of kind {subject.port_kind}: {cases} searches; kept in"
    print(f"{words} {self_test_file(subject.port_kind)}", file=sys.stderr)
    if subject.cable:
        print(f"join {left} and {right} with a cable, with nothing in between", file=sys.stderr)


@contextlib.contextmanager
def _progress() -> Iterator[Tell]:
    """Show steps while the block runs: live on a terminal, a line each elsewhere."""
    out = Console(stderr=True, highlight=False, markup=False)
    if not out.is_terminal:

        def print_line(step: Step) -> None:
            out.print(f"{step.number} of {step.count}: {step.words}{_left(step)}", soft_wrap=True)

        yield print_line
        return
    with Progress(
        TextColumn("{task.completed:.0f} of {task.total:.0f}"),
        BarColumn(),
        TextColumn("{task.description}"),
        console=out,
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None)

        def show(step: Step) -> None:
            bar.update(task, total=step.count, completed=step.number - 1, description=f"{step.words}{_left(step)}")

        yield show


def _left(step: Step) -> str:
    left = step.left_s
    return "" if left is None else f"; about {format_duration_ns(int(left) * 10**9)} left"


def _print(document: SelfTest, path: Path) -> None:
    for table in tables_of(document):
        print_table(table)
    clock = document.clock
    print(f"{document.machine}; ports {document.port_kind}")
    print(f"clock: resolution {clock.resolution_ps / 1000:.3f} ns, {clock.read_ps / 1000:.1f} ns a reading\n{path}")


def tables_of(document: SelfTest) -> Iterator[Table]:
    """Yield the tables of a self-test; that of echo requests only if there are any."""
    yield _rates(document)
    yield _delays(document)
    if document.echo_loops:
        yield _echo_loops(document)


def _columns(*headings: str) -> tuple[Column, ...]:
    words = ("family", "direction", "mode", "limited by")
    return tuple(Column(heading=heading, numeric=heading not in words) for heading in headings)


def _rates(document: SelfTest) -> Table:
    rows = tuple(
        (
            entry.family,
            str(entry.frame_octets),
            entry.direction,
            entry.mode.replace("_", " ")
            + ("" if entry.connections is None else f", {entry.connections:,} connections"),
            format_rate(entry.frames_per_second),
            entry.limited or "nothing up to the highest rate",
        )
        for entry in document.entries
    )
    columns = _columns("family", "octets", "direction", "mode", "rate/s", "limited by")
    return Table(title="Rates of the Tester alone", columns=columns, rows=rows, names=4)


def _delays(document: SelfTest) -> Table:
    rows = tuple(
        (
            *(delay.family, str(delay.frame_octets), format_rate(delay.frames_per_second), delay.direction),
            *map(_microseconds, (delay.minimum_ns, delay.p50_ns, delay.p99_ns, delay.p999_ns, delay.maximum_ns)),
        )
        for delay in document.self_latency
    )
    figures = ("shortest,\nµs", "median,\nµs", "99 %,\nµs", "99.9 %,\nµs", "longest,\nµs")
    columns = _columns("family", "octets", "frames/s", "direction", *figures)
    return Table(
        title="Delays of the Tester's own path, sending in both directions", columns=columns, rows=rows, names=4
    )


def _echo_loops(document: SelfTest) -> Table:
    rows = tuple(
        (
            *(loop.family, str(loop.frame_octets), str(loop.clients), str(loop.clients * loop.window)),
            "on reply" if loop.frames_per_second is None else format_rate(loop.frames_per_second),
            format_rate(loop.replies_per_second),
            *map(_microseconds, (loop.mean_ns, loop.p999_ns, loop.maximum_ns)),
        )
        for loop in document.echo_loops
    )
    figures = ("mean,\nµs", "99.9 %,\nµs", "longest,\nµs")
    columns = _columns("family", "octets", "clients", "slots", "requests/s", "replies/s", *figures)
    title = "Echo requests of the Tester's clients to its own host"
    return Table(title=title, columns=columns, rows=rows, names=5)


def _microseconds(value_ns: float | None) -> str:
    return "-" if value_ns is None else f"{value_ns / 1000:,.2f}"
