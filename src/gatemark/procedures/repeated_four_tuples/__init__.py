"""Rate of frames whose four-tuples are drawn at random and repeat: a procedure of no RFC."""

from __future__ import annotations

from gatemark.procedures.cells import upload_cells
from gatemark.procedures.procedure import Procedure
from gatemark.procedures.repeated_four_tuples import report, run
from gatemark.procedures.repeated_four_tuples.result import RepeatedFourTuplesResult
from gatemark.procedures.repeated_four_tuples.table import RepeatedFourTuplesTable

PROCEDURE = Procedure(
    name="repeated_four_tuples",
    standard="RFC 9693",
    table=RepeatedFourTuplesTable,
    cells=upload_cells,
    run=run,
    gateways=run.gateways,
    result=RepeatedFourTuplesResult,
    report=report,
)
