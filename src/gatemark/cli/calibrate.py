"""`gatemark calibrate`: measure a gateway whose true values are known, and compare."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.table import Table

from gatemark.calibrate.checks import chosen_checks
from gatemark.calibrate.links import PORT_KINDS, PortKind
from gatemark.calibrate.model import Check, CheckResult, SelfError
from gatemark.calibrate.run import Calibration
from gatemark.calibrate.table import (
    HEADINGS,
    Circumstances,
    passed,
    rows_of,
    self_error_lines,
    summary_of,
    to_json,
    to_markdown,
)
from gatemark.campaign.events import Event
from gatemark.cli.common import AsJson, print_json
from gatemark.errors import ConfigError, ResultError
from gatemark.refdut.process import find_refdut
from gatemark.results.provenance import gatemark_version, machine_facts, now_iso
from gatemark.results.store import default_folder, writing
from gatemark.tester import stop_signals

WIDTH_WITHOUT_TERMINAL = 180
_STYLES = {"passed": "green", "failed": "bold red", "measured": "dim"}


def calibrate(
    *,
    ports: str = "memif",
    only: tuple[str, ...] = (),
    quick: bool = False,
    output: Path | None = None,
    list: bool = False,
    as_json: AsJson = False,
) -> int:
    """Measure the reference gateway, whose true values are known, with every procedure, and compare.

    The exit status is 1 if any check did not pass. It takes a quarter of an hour, with --quick some minutes.

    Example: gatemark calibrate --only throughput

    Parameters
    ----------
    ports
        memif (shared memory) or veth (needs root).
    only
        Only the checks of this procedure or name; may be given several times.
    quick
        One truth of each kind, in shorter trials.
    output
        Folder for the results; by default a new one below results/.
    list
        Only list the checks.
    as_json
        Print the calibration as JSON in place of a table.
    """
    checks = chosen_checks(only, quick=quick)
    if ports not in get_args(PortKind):
        raise ConfigError(
            what=f"{ports!r} is no kind of port for a calibration",
            where="--ports",
            fix=f"write one of {', '.join(PORT_KINDS)}",
        )
    if list:
        _print_list(checks, as_json=as_json)
        return 0
    find_refdut()
    folder = _new_folder(output)
    with stop_signals(resume_hint=None), _progress() as tell:
        calibration = Calibration(ports=_kind(ports), output=folder, on_event=_ignore, tell=tell)
        results = calibration.run(checks)
    where = Circumstances(
        measured_at=now_iso(),
        machine=machine_facts().cpu_model or "unknown processor",
        gatemark=gatemark_version(),
        ports=ports,
        quick=quick,
    )
    document = to_json(results, where, calibration.self_error)
    with writing(folder):
        (folder / "calibration.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        page = to_markdown(results, where, calibration.self_error)
        (folder / "calibration.md").write_text(page, encoding="utf-8")
    if as_json:
        print_json(document)
    else:
        _print_table(results, calibration.self_error, folder)
    return 0 if passed(results) else 1


def _kind(ports: str) -> PortKind:
    return "veth" if ports == "veth" else "memif"


def _new_folder(output: Path | None) -> Path:
    folder = output or default_folder("calibration")
    if (folder / "calibration.json").exists():
        raise ResultError(
            what="the folder already holds a calibration", where=str(folder), fix="name another folder with --output"
        )
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def _progress() -> Iterator[_Tell]:
    """Print one line for each thing that is told, on standard error."""
    out = Console(stderr=True, highlight=False, markup=False)
    yield _Tell(out)


class _Tell:
    def __init__(self, out: Console) -> None:
        self._out = out

    def __call__(self, line: str) -> None:
        self._out.print(line, soft_wrap=True)


def _ignore(_: Event) -> None:
    """Watch nothing: a check is told as a whole."""


def _print_list(checks: list[Check], *, as_json: bool) -> None:
    if as_json:
        print_json([{"procedure": check.procedure, "name": check.name, "truth": check.truth} for check in checks])
        return
    width = max(len(check.name) for check in checks)
    print("\n".join(f"{check.name:<{width}}  {check.truth}" for check in checks))


def _print_table(results: list[CheckResult], self_error: SelfError | None, folder: Path) -> None:
    table = Table(box=None, pad_edge=False)
    for title in HEADINGS:
        table.add_column(title, overflow="fold", justify="right" if title in HEADINGS[3:7] else "left")
    for row in rows_of(results):
        *cells, outcome = (cell.replace("[", r"\[") for cell in row)
        table.add_row(*cells, f"[{_STYLES.get(outcome, 'yellow')}]{outcome}[/]")
    Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL).print(table)
    print("\n" + "\n".join([*self_error_lines(self_error), f"{summary_of(results)}; {folder / 'calibration.md'}"]))
    for result in results:
        if result.problem:
            print(f"{result.check.name}: {result.problem}", file=sys.stderr)
