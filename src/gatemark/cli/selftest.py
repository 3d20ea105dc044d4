"""`gatemark selftest [CAMPAIGN]`: what the Tester alone can do, its two ports joined to each other."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn

from gatemark.cli.common import one_campaign
from gatemark.cli.output import AsJson, print_json
from gatemark.consoles import stderr_console
from gatemark.dut.recipe import complete_campaign
from gatemark.facts import EchoLoop, SelfLatency
from gatemark.report.table import Column, Table, table_of
from gatemark.report.terminal import print_table
from gatemark.selftest.document import Entry, SelfTest, self_test_file, store_self_test
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

    gatemark keeps the result on this machine. Later reports show it beside their figures if kind of port, cores,
    queues, cards, kernel and engine are the same. A self-test takes a quarter of an hour; with --quick, a few minutes.
    The exit status is 1 if no rate passed in some mode.

    Example: gatemark selftest campaign.toml

    Parameters
    ----------
    file
        Campaign file (TOML) whose kind of port and numbers of connections to test. Default: interfaces of a netns test
        bed (needs root), and 100,000 connections.
    quick
        Use short trials and two frame sizes, the smallest and the largest.
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
    print(f"{words} {self_test_file(subject.port_kind, subject.conditions)}", file=sys.stderr)
    if subject.cable:
        print(f"join {left} and {right} with a cable, with nothing in between", file=sys.stderr)


@contextlib.contextmanager
def _progress() -> Iterator[Tell]:
    """Show steps while the block runs: live on a terminal, a line each elsewhere."""
    out = stderr_console()
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
    yield table_of("Rates of the Tester alone", RATES, document.entries)
    yield table_of("Delays of the Tester's own path, sending in both directions", DELAYS, document.self_latency)
    if document.echo_loops:
        yield table_of("Echo requests of the Tester's clients to its own host", ECHO_LOOPS, document.echo_loops)


def _mode(entry: Entry) -> str:
    connections = "" if entry.connections is None else f", {entry.connections:,} connections"
    return f"{entry.mode.replace('_', ' ')}{connections}"


def _microseconds(value_ns: float | None) -> str:
    return "-" if value_ns is None else f"{value_ns / 1000:,.2f}"


FRAMES: tuple[Column[Entry | SelfLatency | EchoLoop], ...] = (
    Column("family", lambda entry: entry.family, names=True, numeric=False),
    Column("octets", lambda entry: str(entry.frame_octets), names=True),
)
RATES: tuple[Column[Entry], ...] = (
    *FRAMES,
    Column("direction", lambda entry: entry.direction, names=True, numeric=False),
    Column("mode", _mode, names=True, numeric=False),
    Column("rate/s", lambda entry: format_rate(entry.frames_per_second)),
    Column("limited by", lambda entry: entry.limited or "nothing up to the highest rate", numeric=False),
)
DELAYS: tuple[Column[SelfLatency], ...] = (
    *FRAMES,
    Column("frames/s", lambda delay: format_rate(delay.frames_per_second), names=True),
    Column("direction", lambda delay: delay.direction, names=True, numeric=False),
    Column("shortest,\nµs", lambda delay: _microseconds(delay.minimum_ns)),
    Column("median,\nµs", lambda delay: _microseconds(delay.p50_ns)),
    Column("99 %,\nµs", lambda delay: _microseconds(delay.p99_ns)),
    Column("99.9 %,\nµs", lambda delay: _microseconds(delay.p999_ns)),
    Column("longest,\nµs", lambda delay: _microseconds(delay.maximum_ns)),
)
ECHO_LOOPS: tuple[Column[EchoLoop], ...] = (
    *FRAMES,
    Column("clients", lambda loop: str(loop.clients), names=True),
    Column("slots", lambda loop: str(loop.clients * loop.window), names=True),
    Column(
        "requests/s",
        lambda loop: "on reply" if loop.frames_per_second is None else format_rate(loop.frames_per_second),
        names=True,
    ),
    Column("replies/s", lambda loop: format_rate(loop.replies_per_second)),
    Column("mean,\nµs", lambda loop: _microseconds(loop.mean_ns)),
    Column("99.9 %,\nµs", lambda loop: _microseconds(loop.p999_ns)),
    Column("longest,\nµs", lambda loop: _microseconds(loop.maximum_ns)),
)
