"""From a campaign to the ordered list of its runs. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gatemark.config.flows import flow_count
from gatemark.config.model import Campaign
from gatemark.config.sizes import measured_octets, sizes_for
from gatemark.errors import ConfigError
from gatemark.procedures.procedure import Procedure
from gatemark.procedures.registry import PROCEDURES
from gatemark.trial.cell import Cell, Run
from gatemark.trial.form import FlowStart


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All runs of a campaign."""

    runs: tuple[Run, ...]


def flow_start_of(campaign: Campaign, cell: Cell) -> FlowStart | None:
    """Return how the flows of a trial start one after another; None if all start together (RFC 8219 section 10.2.2)."""
    interval_ns = campaign.traffic.flow_interval_ns
    flows = None if interval_ns is None else cell.connections or flow_count(campaign)
    return (
        None if interval_ns is None or flows is None or flows == 1 else FlowStart(flows=flows, interval_ns=interval_ns)
    )


def cells_of(campaign: Campaign) -> tuple[Cell, ...]:
    """Return every combination of direction, mix, frame size and number of connections, in the order of the file."""
    return tuple(
        Cell(direction=direction, frame_sizes=sizes_for(campaign, octets, mix), mix=mix, connections=connections)
        for direction in campaign.traffic.direction
        for mix in campaign.traffic.mix
        for octets in measured_octets(campaign)
        for connections in connection_counts(campaign)
    )


def connection_counts(campaign: Campaign) -> tuple[int | None, ...]:
    """Return the numbers of connections that are measured; only None where there are none.

    For a procedure that searches for the number itself, it is the number with which the search begins.
    """
    if campaign.connections is not None and campaign.connections.count:
        return campaign.connections.count
    starts = (table.first_count for table in campaign.tables if campaign.technology.is_stateful)
    return (next((start for start in starts if start is not None), None),)


def procedures_of(campaign: Campaign) -> tuple[Procedure, ...]:
    """Return the procedures of a campaign in the order in which they are run."""
    tables = {table.key: table for table in campaign.tables}
    return tuple(
        procedure
        for procedure in PROCEDURES.values()
        if procedure.table.key in tables and procedure.is_wanted(tables[procedure.table.key])
    )


def plan_of(campaign: Campaign) -> Plan:
    """Return the runs of a campaign whose technology is known. Raises ConfigError if it names no procedure.

    They are in the order of the registry: procedures that find a rate come before those that take it as their load.
    """
    cells = cells_of(campaign)
    matrix = [
        (procedure.name, cell)
        for procedure in procedures_of(campaign)
        for cell in dict.fromkeys(procedure.cells(campaign, cells))
    ]
    if not matrix:
        tables = dict.fromkeys(
            f"[{procedure.table.key}]"
            for procedure in PROCEDURES.values()
            if procedure.table.is_for(campaign.technology)
        )
        raise ConfigError(
            what="names nothing to measure",
            where=campaign.source,
            fix=f"add a table of what is to be measured: {', '.join(tables)}",
        )
    return Plan(
        runs=tuple(
            Run(number=number, procedure=procedure, cell=cell) for number, (procedure, cell) in enumerate(matrix, 1)
        )
    )
