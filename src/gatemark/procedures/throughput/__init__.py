"""Throughput (RFC 2544 section 26.1, RFC 8219 section 7.1)."""

from __future__ import annotations

from gatemark.procedures.procedure import Procedure
from gatemark.procedures.throughput import report, run
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.procedures.throughput.table import ThroughputTable

PROCEDURE = Procedure(
    name="throughput",
    standard="RFC 2544",
    table=ThroughputTable,
    run=run,
    gateways=run.gateways,
    result=ThroughputResult,
    report=report,
)
