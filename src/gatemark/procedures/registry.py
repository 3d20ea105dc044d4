"""All procedures, one row each, in the order in which they are run. There is no other list of them.

Conformity comes first: the rate of a gateway that does something else says little. Those that find a rate come next,
because the others take their loads from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Union

from pydantic import Field, create_model

from gatemark.config.model import Campaign
from gatemark.procedures.back_to_back import report as back_to_back_report
from gatemark.procedures.back_to_back import run as back_to_back
from gatemark.procedures.back_to_back.result import BackToBackResult
from gatemark.procedures.back_to_back.table import BackToBackTable
from gatemark.procedures.bursty_traffic import report as bursty_traffic_report
from gatemark.procedures.bursty_traffic import run as bursty_traffic
from gatemark.procedures.bursty_traffic.result import BurstyTrafficResult
from gatemark.procedures.bursty_traffic.table import BurstyTrafficTable
from gatemark.procedures.cells import any_count, smallest_upload, upload_cells
from gatemark.procedures.conformity import report as conformity_report
from gatemark.procedures.conformity import run as conformity
from gatemark.procedures.conformity.result import ConformityResult
from gatemark.procedures.conformity.table import ConformityTable
from gatemark.procedures.connection_establishment_rate import report as establishment_report
from gatemark.procedures.connection_establishment_rate import run as establishment
from gatemark.procedures.connection_establishment_rate.result import EstablishmentResult
from gatemark.procedures.connection_establishment_rate.table import ConnectionEstablishmentRateTable
from gatemark.procedures.connection_tear_down_rate import report as tear_down_report
from gatemark.procedures.connection_tear_down_rate import run as tear_down
from gatemark.procedures.connection_tear_down_rate.result import TearDownResult
from gatemark.procedures.connection_tear_down_rate.table import ConnectionTearDownRateTable
from gatemark.procedures.connection_tracking_table_capacity import report as capacity_report
from gatemark.procedures.connection_tracking_table_capacity import run as capacity
from gatemark.procedures.connection_tracking_table_capacity.result import CapacityResult
from gatemark.procedures.connection_tracking_table_capacity.table import ConnectionTrackingTableCapacityTable
from gatemark.procedures.delay import report as delay_report
from gatemark.procedures.delay import run as delay
from gatemark.procedures.delay.result import DelayResult
from gatemark.procedures.delay.table import DelayTable
from gatemark.procedures.frame_loss import report as frame_loss_report
from gatemark.procedures.frame_loss import run as frame_loss
from gatemark.procedures.frame_loss.result import FrameLossResult
from gatemark.procedures.frame_loss.table import FrameLossTable
from gatemark.procedures.overload import report as overload_report
from gatemark.procedures.overload import run as overload
from gatemark.procedures.overload.result import OverloadResult
from gatemark.procedures.overload.table import OverloadTable
from gatemark.procedures.procedure import Procedure, smallest_size
from gatemark.procedures.repeated_four_tuples import report as repeated_report
from gatemark.procedures.repeated_four_tuples import run as repeated
from gatemark.procedures.repeated_four_tuples.result import RepeatedFourTuplesResult
from gatemark.procedures.repeated_four_tuples.table import RepeatedFourTuplesTable
from gatemark.procedures.reset import report as reset_report
from gatemark.procedures.reset import run as reset
from gatemark.procedures.reset.result import ResetResult
from gatemark.procedures.reset.table import ResetTable
from gatemark.procedures.system_recovery import report as system_recovery_report
from gatemark.procedures.system_recovery import run as system_recovery
from gatemark.procedures.system_recovery.result import SystemRecoveryResult
from gatemark.procedures.system_recovery.table import SystemRecoveryTable
from gatemark.procedures.throughput import report as throughput_report
from gatemark.procedures.throughput import run as throughput
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.procedures.throughput.table import ThroughputTable
from gatemark.results.document import ResultDocument

_ROWS = (
    Procedure(
        name="conformity",
        standard="RFC 7599",
        table=ConformityTable,
        cells=conformity.one_cell,
        run=conformity,
        result=ConformityResult,
        report=conformity_report,
    ),
    Procedure(
        name="connection_establishment_rate",
        standard="RFC 9693",
        table=ConnectionEstablishmentRateTable,
        is_wanted=lambda table: table.is_plain,
        cells=upload_cells,
        run=establishment,
        result=EstablishmentResult,
        report=establishment_report,
    ),
    Procedure(
        name="validated_connection_establishment_rate",
        standard="RFC 9693",
        table=ConnectionEstablishmentRateTable,
        is_wanted=lambda table: table.validates,
        cells=establishment.validated_cells,
        run=establishment,
        result=EstablishmentResult,
        report=establishment_report,
    ),
    Procedure(
        name="repeated_four_tuples",
        standard="RFC 9693",
        table=RepeatedFourTuplesTable,
        cells=upload_cells,
        run=repeated,
        result=RepeatedFourTuplesResult,
        report=repeated_report,
    ),
    Procedure(
        name="throughput",
        standard="RFC 2544",
        table=ThroughputTable,
        run=throughput,
        result=ThroughputResult,
        report=throughput_report,
    ),
    Procedure(
        name="frame_loss",
        standard="RFC 2544",
        table=FrameLossTable,
        run=frame_loss,
        result=FrameLossResult,
        report=frame_loss_report,
    ),
    Procedure(
        name="delay",
        standard="RFC 2544",
        table=DelayTable,
        run=delay,
        result=DelayResult,
        report=delay_report,
    ),
    Procedure(
        name="back_to_back",
        standard="RFC 2544",
        table=BackToBackTable,
        run=back_to_back,
        result=BackToBackResult,
        report=back_to_back_report,
    ),
    Procedure(
        name="bursty_traffic",
        standard="RFC 2544",
        table=BurstyTrafficTable,
        run=bursty_traffic,
        result=BurstyTrafficResult,
        report=bursty_traffic_report,
    ),
    Procedure(
        name="overload",
        standard="RFC 8219",
        table=OverloadTable,
        cells=overload.echo_cell,
        run=overload,
        result=OverloadResult,
        report=overload_report,
        frames=overload.shown_frames,
    ),
    Procedure(
        name="system_recovery",
        standard="RFC 2544",
        table=SystemRecoveryTable,
        run=system_recovery,
        result=SystemRecoveryResult,
        report=system_recovery_report,
    ),
    Procedure(
        name="reset",
        standard="RFC 2544",
        table=ResetTable,
        cells=smallest_size,
        run=reset,
        result=ResetResult,
        report=reset_report,
    ),
    Procedure(
        name="connection_tear_down_rate",
        standard="RFC 9693",
        table=ConnectionTearDownRateTable,
        cells=smallest_upload,
        run=tear_down,
        result=TearDownResult,
        report=tear_down_report,
    ),
    Procedure(
        name="connection_tracking_table_capacity",
        standard="RFC 9693",
        table=ConnectionTrackingTableCapacityTable,
        cells=any_count,
        run=capacity,
        result=CapacityResult,
        report=capacity_report,
    ),
)

PROCEDURES: Mapping[str, Procedure] = {row.name: row for row in _ROWS}

_TABLES = tuple(dict.fromkeys(row.table for row in _ROWS))
_RESULTS = tuple(dict.fromkeys(row.result for row in _ROWS))


def _campaign_model() -> type[Campaign]:
    """Build the model of a campaign file: the common part, and a table for each procedure."""
    fields: dict[str, Any] = {table.key: (table | None, Field(None, description=table.purpose)) for table in _TABLES}
    model = create_model("Campaign", __base__=Campaign, __module__=__name__, __doc__=Campaign.__doc__, **fields)
    model.procedure_tables = _TABLES
    return model


def _document_model() -> type[ResultDocument]:
    """Build the model of `result.json`: the results are distinguished by `procedure`."""
    result: Any = Annotated[Union[_RESULTS], Field(discriminator="procedure")]  # noqa: UP007 (of a tuple)
    return create_model(
        "ResultDocument",
        __base__=ResultDocument,
        __module__=__name__,
        __doc__=ResultDocument.__doc__,
        runs=(tuple[result, ...], ...),
    )


CampaignFile = _campaign_model()
"""The campaign file with the tables of all procedures."""

PublishedDocument = _document_model()
"""`result.json` with the results of all procedures."""


def by_procedure(document: ResultDocument) -> Iterator[tuple[Procedure, tuple[Any, ...]]]:
    """Yield each procedure that a campaign ran, with its results."""
    for name, procedure in PROCEDURES.items():
        if runs := tuple(run for run in document.runs if run.procedure == name):
            yield procedure, runs
