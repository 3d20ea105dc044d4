"""Latency and packet delay variation (RFC 8219 sections 7.2 and 7.3)."""

from __future__ import annotations

from gatemark.procedures.delay import report, run
from gatemark.procedures.delay.result import DelayResult
from gatemark.procedures.delay.table import DelayTable
from gatemark.procedures.procedure import Procedure

PROCEDURE = Procedure(
    name="delay",
    standard="RFC 2544",
    table=DelayTable,
    run=run,
    result=DelayResult,
    report=report,
)
