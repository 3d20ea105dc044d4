"""`gatemark calibrate`: measure a gateway whose true values are known, and compare."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from gatemark.calibrate.checks import chosen_checks
from gatemark.calibrate.links import LinkKind
from gatemark.calibrate.model import Check, CheckResult, SelfError
from gatemark.calibrate.run import Calibration
from gatemark.calibrate.store import PAGE_FILE, StoredCalibration
from gatemark.calibrate.table import FIGURES, FigureRow, rows_of, self_error_lines, summary_of
from gatemark.cli.output import AsJson, print_json
from gatemark.consoles import stderr_console
from gatemark.errors import ConfigError, Interrupted
from gatemark.report.table import Table, table_of
from gatemark.report.terminal import print_table
from gatemark.tester import stop_signals


def calibrate(
    *,
    ports: LinkKind | None = None,
    only: tuple[str, ...] = (),
    quick: bool = False,
    output: Path | None = None,
    resume: Path | None = None,
    list: bool = False,
    as_json: AsJson = False,
) -> int:
    """Measure the reference gateway, whose true values are known, with every procedure and compare the results.

    The exit status is 1 if any check does not pass. A check is skipped if this machine lacks something that it needs.
    A calibration takes 25 minutes; with --quick, a few.

    Example: gatemark calibrate --only throughput

    Parameters
    ----------
    ports
        Kind of the ports: shared memory, or interfaces, which need root. Default: memif.
    only
        Make only the checks of this procedure or with this name. Can be repeated.
    quick
        Check one true value of each kind, with shorter trials.
    output
        Folder for the results; by default a new folder in results/. One that holds a calibration is refused.
    resume
        Resume the calibration in this folder: make the checks that are missing or have no result. It cannot be combined
        with other options except --json.
    list
        List the checks without making them: name, and the truth given to the reference gateway.
    as_json
        Print the calibration as JSON instead of a table.
    """
    checks = chosen_checks(only, quick=quick)
    if resume is not None and (ports or only or quick or output):
        raise ConfigError(
            what="--resume cannot be combined with --ports, --only, --quick or --output",
            where="gatemark calibrate",
            fix="leave those out: the folder records ports and checks",
        )
    if list:
        _print_list(checks, as_json=as_json)
        return 0
    stored = (
        StoredCalibration.create(output, checks, ports=ports or "memif", quick=quick)
        if resume is None
        else StoredCalibration.open(resume)
    )
    console = stderr_console()
    with _stopping(stored):
        calibration = Calibration(
            ports=stored.where.ports,
            output=stored.folder,
            on_event=lambda _: None,  # a check is reported as a whole
            tell=lambda line: console.print(line, soft_wrap=True),
            keep=stored.write,
            self_error=stored.self_error,
        )
        results = calibration.run(stored.checks, stored.results)
    document = stored.write(results, calibration.self_error)
    if as_json:
        print_json(document.model_dump(mode="json"))
    else:
        _print_results(results, calibration.self_error, stored.folder)
    return 0 if document.passed else 1


@contextlib.contextmanager
def _stopping(stored: StoredCalibration) -> Iterator[None]:
    """Say how to go on if the user stops."""
    try:
        with stop_signals(resume_hint=None):
            yield
    except Interrupted as error:
        raise Interrupted(
            what="stopped; completed checks are kept",
            where=str(stored.folder),
            fix=f"resume with: gatemark calibrate --resume {stored.folder}",
        ) from error


def _print_list(checks: list[Check], *, as_json: bool) -> None:
    if as_json:
        print_json([{"procedure": check.procedure, "name": check.name, "truth": check.truth} for check in checks])
        return
    width = max(len(check.name) for check in checks)
    print("\n".join(f"{check.name:<{width}}  {check.truth}" for check in checks))


def results_table(results: Sequence[CheckResult]) -> Table:
    """Return a row for each figure, and one for each check without any, below what the check is about."""
    rows: list[FigureRow | str] = []
    for check, members in groupby(rows_of(results), key=lambda row: f"{row.check.procedure}: {row.check.truth}"):
        rows += [check, *members]
    return table_of("", FIGURES, rows)


def _print_results(results: list[CheckResult], self_error: SelfError | None, folder: Path) -> None:
    print_table(results_table(results))
    print("\n".join([*self_error_lines(self_error), f"{summary_of(results, len(results))}; {folder / PAGE_FILE}"]))
    for result in results:
        if result.problem or result.skipped:
            print(f"{result.name}: {result.problem or result.skipped}", file=sys.stderr)
