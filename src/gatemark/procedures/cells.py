"""Which combinations of traffic procedures of stateful gateways measure. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gatemark.config.model import Campaign
from gatemark.trial.cell import Cell


def upload_cells(campaign: Campaign, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return the cells in the Initiator's direction: only the Initiator establishes connections."""
    return tuple(dict.fromkeys(replace(cell, direction=campaign.roles.upload) for cell in cells))


def smallest_upload(campaign: Campaign, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return those with the first mix and the smallest size: what happens to connections does not depend on either."""
    upload = upload_cells(campaign, cells)
    first_mix = [cell for cell in upload if cell.mix == upload[0].mix]
    smallest = min(cell.frame_sizes.largest for cell in first_mix)
    return tuple(cell for cell in first_mix if cell.frame_sizes.largest == smallest)


def any_count(campaign: Campaign, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return the first of these, without a number of connections: the procedure searches for it."""
    return (replace(smallest_upload(campaign, cells)[0], connections=None),)
