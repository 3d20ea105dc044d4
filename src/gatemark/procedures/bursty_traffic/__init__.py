"""Bursty traffic (RFC 2544 section 21)."""

from __future__ import annotations

from gatemark.procedures.bursty_traffic import report, run
from gatemark.procedures.bursty_traffic.result import BurstyTrafficResult
from gatemark.procedures.bursty_traffic.table import BurstyTrafficTable
from gatemark.procedures.procedure import Procedure

PROCEDURE = Procedure(
    name="bursty_traffic",
    standard="RFC 2544",
    table=BurstyTrafficTable,
    run=run,
    gateways=run.gateways,
    result=BurstyTrafficResult,
    report=report,
)
