"""Back-to-back frames (RFC 2544 section 26.4, RFC 9004)."""

from __future__ import annotations

from gatemark.procedures.back_to_back import report, run
from gatemark.procedures.back_to_back.result import BackToBackResult
from gatemark.procedures.back_to_back.table import BackToBackTable
from gatemark.procedures.procedure import Procedure

PROCEDURE = Procedure(
    name="back_to_back",
    standard="RFC 2544",
    table=BackToBackTable,
    run=run,
    gateways=run.gateways,
    result=BackToBackResult,
    report=report,
)
