"""Connection tracking table capacity (RFC 9693 section 4.9)."""

from __future__ import annotations

from gatemark.procedures.cells import any_count
from gatemark.procedures.connection_tracking_table_capacity import report, run
from gatemark.procedures.connection_tracking_table_capacity.result import CapacityResult
from gatemark.procedures.connection_tracking_table_capacity.table import ConnectionTrackingTableCapacityTable
from gatemark.procedures.procedure import Procedure

PROCEDURE = Procedure(
    name="connection_tracking_table_capacity",
    standard="RFC 9693",
    table=ConnectionTrackingTableCapacityTable,
    cells=any_count,
    run=run,
    gateways=run.gateways,
    result=CapacityResult,
    report=report,
)
