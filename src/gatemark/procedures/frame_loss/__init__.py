"""Frame loss rate (RFC 2544 section 26.3)."""

from __future__ import annotations

from gatemark.procedures.frame_loss import report, run
from gatemark.procedures.frame_loss.result import FrameLossResult
from gatemark.procedures.frame_loss.table import FrameLossTable
from gatemark.procedures.procedure import Procedure

PROCEDURE = Procedure(
    name="frame_loss",
    standard="RFC 2544",
    table=FrameLossTable,
    run=run,
    result=FrameLossResult,
    report=report,
)
