"""System recovery (RFC 2544 section 26.5)."""

from __future__ import annotations

from gatemark.procedures.procedure import Procedure
from gatemark.procedures.system_recovery import report, run
from gatemark.procedures.system_recovery.result import SystemRecoveryResult
from gatemark.procedures.system_recovery.table import SystemRecoveryTable

PROCEDURE = Procedure(
    name="system_recovery",
    standard="RFC 2544",
    table=SystemRecoveryTable,
    run=run,
    result=SystemRecoveryResult,
    report=report,
)
