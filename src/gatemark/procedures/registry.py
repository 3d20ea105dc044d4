"""All procedures, one row each, in the order in which they are run. There is no other list of them.

Conformity comes first: the rate of a gateway that does something else says little. Those that find a rate come next,
because the others take their loads from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar, Union

from pydantic import Field, create_model

from gatemark.config import model
from gatemark.procedures import (
    back_to_back,
    bursty_traffic,
    conformity,
    connection_establishment_rate,
    connection_tear_down_rate,
    connection_tracking_table_capacity,
    delay,
    frame_loss,
    overload,
    repeated_four_tuples,
    reset,
    system_recovery,
    throughput,
)
from gatemark.procedures.procedure import Procedure
from gatemark.results.document import ResultDocument

F = TypeVar("F", bound=model.CampaignFile)

_ROWS = (
    conformity.PROCEDURE,
    *connection_establishment_rate.PROCEDURES,
    repeated_four_tuples.PROCEDURE,
    throughput.PROCEDURE,
    frame_loss.PROCEDURE,
    delay.PROCEDURE,
    back_to_back.PROCEDURE,
    bursty_traffic.PROCEDURE,
    overload.PROCEDURE,
    system_recovery.PROCEDURE,
    reset.PROCEDURE,
    connection_tear_down_rate.PROCEDURE,
    connection_tracking_table_capacity.PROCEDURE,
)

PROCEDURES: Mapping[str, Procedure] = {row.name: row for row in _ROWS}

_TABLES = tuple(dict.fromkeys(row.table for row in _ROWS))
_RESULTS = tuple(dict.fromkeys(row.result for row in _ROWS))


def _with_tables(common: type[F]) -> type[F]:
    """Build the model of a campaign: the common part, and a table for each procedure."""
    fields: dict[str, Any] = {}
    for table in _TABLES:
        annotation: Any = table | None
        for rule in table.only:
            annotation = Annotated[annotation, rule]
        fields[table.key] = (annotation, None)
    with_tables = create_model(common.__name__, __base__=common, __module__=__name__, __doc__=common.__doc__, **fields)
    with_tables.procedure_tables = _TABLES
    return with_tables


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


CampaignFile = _with_tables(model.CampaignFile)
"""The campaign file with the tables of all procedures."""

Campaign = _with_tables(model.Campaign)
"""The same once it is complete."""

CampaignFile.complete_model = Campaign.complete_model = Campaign

PublishedDocument = _document_model()
"""`result.json` with the results of all procedures."""


def by_procedure(document: ResultDocument) -> Iterator[tuple[Procedure, tuple[Any, ...]]]:
    """Yield each procedure that a campaign ran, with its results."""
    for name, procedure in PROCEDURES.items():
        if runs := tuple(run for run in document.runs if run.procedure == name):
            yield procedure, runs
