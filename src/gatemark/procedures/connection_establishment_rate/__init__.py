"""Maximum connection establishment rate, plain and validated (RFC 9693 sections 4.5 and 4.6)."""

from __future__ import annotations

from dataclasses import replace

from gatemark.procedures.cells import upload_cells
from gatemark.procedures.connection_establishment_rate import report, run
from gatemark.procedures.connection_establishment_rate.result import VALIDATED, EstablishmentResult
from gatemark.procedures.connection_establishment_rate.table import ConnectionEstablishmentRateTable
from gatemark.procedures.procedure import Procedure

_PLAIN = Procedure(
    name="connection_establishment_rate",
    standard="RFC 9693",
    table=ConnectionEstablishmentRateTable,
    is_wanted=lambda table: table.is_plain,
    cells=upload_cells,
    run=run,
    gateways=run.gateways,
    result=EstablishmentResult,
    report=report,
)
PROCEDURES = (
    _PLAIN,
    replace(_PLAIN, name=VALIDATED, is_wanted=lambda table: table.validates, cells=run.validated_cells),
)
"""The validated rate is a procedure of its own, with the table of the plain one."""
