"""`gatemark doctor`: is this machine, and this campaign's test bed, fit to measure?"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from gatemark.cli.common import named_bed, one_campaign
from gatemark.cli.output import AsJson
from gatemark.doctor import run_checks
from gatemark.errors import ConfigError
from gatemark.findings import Finding
from gatemark.report.table import Column, Table, table_of
from gatemark.report.terminal import print_table

_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}


def doctor(
    file: Path | None = None,
    /,
    *,
    laboratory: Path | None = None,
    bed: str | None = None,
    as_json: AsJson = False,
) -> int:
    """Check machine, clock, memory, rights, tools and engine; with a campaign, also its ports and gateway path.

    Parameters
    ----------
    file
        Campaign file (TOML). doctor makes its test bed, sends a few frames each way, and removes the test bed.
    laboratory
        Laboratory file of test beds (TOML), as for `gatemark submit`.
    bed
        Test bed in that file to check the campaign on. Run this on the machine of that test bed.
    as_json
        Print the findings as JSON instead of a table.
    """
    place = named_bed(laboratory, bed)
    if place is not None and file is None:
        raise ConfigError(
            what="checking a test bed needs a campaign",
            where="gatemark doctor",
            fix="gatemark doctor campaign.toml --laboratory lab.toml --bed NAME",
        )
    findings = run_checks(one_campaign(file, place) if file is not None else None)
    if as_json:
        json.dump([finding.to_json() for finding in findings], sys.stdout, indent=2)
        print()
    else:
        print_table(findings_table(findings))
    return 1 if any(finding.status == "failed" for finding in findings) else 0


def findings_table(findings: Sequence[Finding]) -> Table:
    """Return a row for each finding."""
    columns: tuple[Column[Finding], ...] = (
        Column("check", lambda finding: finding.check, names=True, numeric=False),
        Column("status", lambda finding: finding.status, names=True, numeric=False, styles=_STYLES),
        Column("observed", lambda finding: finding.observed, numeric=False),
        Column("remedy", lambda finding: finding.remedy, numeric=False),
    )
    return table_of("", columns, findings)
