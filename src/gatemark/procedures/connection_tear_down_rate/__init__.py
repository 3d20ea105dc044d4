"""Connection tear-down rate (RFC 9693 section 4.8)."""

from __future__ import annotations

from gatemark.procedures.cells import smallest_upload
from gatemark.procedures.connection_tear_down_rate import report, run
from gatemark.procedures.connection_tear_down_rate.result import TearDownResult
from gatemark.procedures.connection_tear_down_rate.table import ConnectionTearDownRateTable
from gatemark.procedures.procedure import Procedure

PROCEDURE = Procedure(
    name="connection_tear_down_rate",
    standard="RFC 9693",
    table=ConnectionTearDownRateTable,
    cells=smallest_upload,
    run=run,
    result=TearDownResult,
    report=report,
)
