"""Conformity: what a gateway drops and delivers (RFC 7599)."""

from __future__ import annotations

from gatemark.procedures.conformity import report, run
from gatemark.procedures.conformity.result import ConformityResult
from gatemark.procedures.conformity.table import ConformityTable
from gatemark.procedures.procedure import Procedure

PROCEDURE = Procedure(
    name="conformity",
    standard="RFC 7599",
    table=ConformityTable,
    cells=run.one_cell,
    run=run,
    result=ConformityResult,
    report=report,
)
