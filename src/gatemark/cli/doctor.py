"""`gatemark doctor`: is this machine, and this campaign's test bed, fit to measure?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from gatemark.cli.common import named_bed, one_campaign
from gatemark.doctor import run_checks
from gatemark.errors import ConfigError
from gatemark.findings import Finding

WIDTH_WITHOUT_TERMINAL = 160
_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}


def doctor(
    file: Path | None = None,
    /,
    *,
    laboratory: Path | None = None,
    bed: str | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Check machine, clock, memory, rights, tools and engine; with a campaign also its ports and its gateway path.

    Parameters
    ----------
    file
        Campaign file (TOML); its test bed is made, a few frames are sent each way, and it is removed again.
    laboratory
        File of test beds (TOML), as for `gatemark submit`.
    bed
        Test bed of that file that the campaign is checked on; run it on the machine of that test bed.
    as_json
        Print the findings as JSON in place of a table.
    """
    place = named_bed(laboratory, bed)
    if place is not None and file is None:
        raise ConfigError(
            what="a test bed is checked with a campaign",
            where="gatemark doctor",
            fix="gatemark doctor campaign.toml --laboratory lab.toml --bed NAME",
        )
    findings = run_checks(one_campaign(file, place) if file is not None else None)
    if as_json:
        json.dump([finding.to_json() for finding in findings], sys.stdout, indent=2)
        print()
    else:
        _print_table(findings)
    return 1 if any(finding.status == "failed" for finding in findings) else 0


def _print_table(findings: list[Finding]) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("check", "status", "observed", "remedy"):
        table.add_column(title, overflow="fold")
    for finding in findings:
        style = _STYLES[finding.status]
        table.add_row(finding.check, f"[{style}]{finding.status}[/]", _plain(finding.observed), _plain(finding.remedy))
    # Into a file or pipe there is no width to keep to.
    Console(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL).print(table)


def _plain(text: str) -> str:
    """Keep rich from reading square brackets as markup."""
    return text.replace("[", r"\[")
