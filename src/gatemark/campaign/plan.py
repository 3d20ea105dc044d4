"""From a campaign to the ordered list of its runs. Pure.

`campaign.loads` has the loads of the runs, `campaign.estimate` the time they take.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from gatemark.config.model import Campaign
from gatemark.config.sizes import measured_octets, sizes_for
from gatemark.errors import ConfigError
from gatemark.trial.cell import Cell, Procedure, Run

MEASURES_FRAMES: Final[frozenset[Procedure]] = frozenset(
    ("throughput", "frame_loss", "delay", "back_to_back", "system_recovery", "reset")
)
"""Procedures whose loads are frames per second; through a stateful gateway they are test phase 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All runs of a campaign."""

    runs: tuple[Run, ...]


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

    Where only the capacity is measured, it is the number with which that begins.
    """
    if campaign.connections is not None and campaign.connections.count:
        return campaign.connections.count
    capacity = campaign.connection_tracking_table_capacity
    return (None if capacity is None else capacity.start,)


def make_plan(campaign: Campaign) -> Plan:
    """Return the runs of a campaign whose technology is known. Raises ConfigError if it names no procedure.

    Establishment rates come first: the others take the rate of test phase 1 from them.
    """
    matrix = [(procedure, cell) for procedure in _procedures(campaign) for cell in _cells_for(campaign, procedure)]
    if not matrix:
        raise ConfigError(
            what="names nothing to measure",
            where=campaign.source,
            fix="add a table [connection_establishment_rate] or [throughput]"
            if campaign.is_stateful
            else "add a table [throughput] or [frame_loss]",
        )
    return Plan(
        runs=tuple(
            Run(number=number, procedure=procedure, cell=cell) for number, (procedure, cell) in enumerate(matrix, 1)
        )
    )


def _procedures(campaign: Campaign) -> Iterator[Procedure]:
    """Yield the procedures of a campaign in the order in which they are run."""
    establishment = campaign.connection_establishment_rate
    if establishment is not None and False in establishment.validated:
        yield "connection_establishment_rate"
    if establishment is not None and True in establishment.validated:
        yield "validated_connection_establishment_rate"
    if campaign.throughput is not None:
        yield "throughput"
    if campaign.frame_loss is not None:
        yield "frame_loss"
    if campaign.delay is not None:
        yield "delay"
    if campaign.back_to_back is not None:
        yield "back_to_back"
    if campaign.system_recovery is not None:
        yield "system_recovery"
    if campaign.reset is not None:
        yield "reset"
    if campaign.connection_tear_down_rate is not None:
        yield "connection_tear_down_rate"
    if campaign.connection_tracking_table_capacity is not None:
        yield "connection_tracking_table_capacity"


def _cells_for(campaign: Campaign, procedure: Procedure) -> tuple[Cell, ...]:
    """Return the cells of one procedure.

    Connections are established by the Initiator alone, so the directions of the file are none of them. What happens to
    connections that are there does not depend on frames: tear-down and capacity take the first mix and smallest size.
    A reset is measured with the smallest size alone (RFC 6201 section 4).
    """
    cells = cells_of(campaign)
    if procedure in MEASURES_FRAMES:
        if procedure != "reset":
            return cells
        lowest = min(cell.frame_sizes.largest for cell in cells)
        return tuple(cell for cell in cells if cell.frame_sizes.largest == lowest)
    upload = tuple(dict.fromkeys(replace(cell, direction=campaign.upload) for cell in cells))
    if procedure in ("connection_establishment_rate", "validated_connection_establishment_rate"):
        return upload
    first_mix = [cell for cell in upload if cell.mix == upload[0].mix]
    smallest = min(cell.frame_sizes.largest for cell in first_mix)
    small = tuple(cell for cell in first_mix if cell.frame_sizes.largest == smallest)
    return small if procedure == "connection_tear_down_rate" else (replace(small[0], connections=None),)
