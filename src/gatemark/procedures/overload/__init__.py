"""Overload: echo requests of more and more clients, and how the gateway degrades."""

from __future__ import annotations

from gatemark.procedures.overload import report, run
from gatemark.procedures.overload.result import OverloadResult
from gatemark.procedures.overload.table import OverloadTable
from gatemark.procedures.procedure import Procedure

PROCEDURE = Procedure(
    name="overload",
    standard="RFC 8219",
    table=OverloadTable,
    cells=run.echo_cell,
    run=run,
    result=OverloadResult,
    report=report,
    frames=run.shown_frames,
)
