"""Reset (RFC 2544 section 26.6, RFC 6201)."""

from __future__ import annotations

from gatemark.procedures.procedure import Procedure, smallest_size
from gatemark.procedures.reset import report, run
from gatemark.procedures.reset.result import ResetResult
from gatemark.procedures.reset.table import ResetTable

PROCEDURE = Procedure(
    name="reset",
    standard="RFC 2544",
    table=ResetTable,
    cells=smallest_size,
    run=run,
    result=ResetResult,
    report=report,
)
