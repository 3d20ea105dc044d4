"""What several commands need: a complete campaign, one cell of it, and how results are printed."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gatemark.campaign.file import CampaignText
from gatemark.campaign.plan import cells_of
from gatemark.cli.output import print_json
from gatemark.config.model import Campaign, CampaignFile
from gatemark.config.sizes import size_family
from gatemark.config.tables import FrameSizesModel
from gatemark.config.types import BadValueError, read_mix
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.facts import Direction
from gatemark.laboratory.beds import Bed, on_bed, read_bed
from gatemark.report.summary import print_result
from gatemark.stored import CampaignResult, sections_of
from gatemark.technology import Family
from gatemark.trial.cell import Cell
from gatemark.units import format_ratio


def named_bed(laboratory: Path | None, name: str | None) -> Bed | None:
    """Return the test bed that two options name; None if neither is given. Raises ConfigError."""
    if laboratory is None and name is None:
        return None
    if laboratory is None or name is None:
        raise ConfigError(
            what="each of the two options needs the other",
            where="--laboratory, --bed",
            fix="write --laboratory lab.toml --bed NAME",
        )
    return read_bed(laboratory, name)


def one_campaign(file: Path, bed: Bed | None = None) -> CampaignFile:
    """Read the campaign of a file; of one that varies keys the first column, which is told on standard error.

    Raises ConfigError with all problems.
    """
    source = on_bed(file, bed)
    if isinstance(source, CampaignText):
        return source.campaign
    columns = source.columns
    print(f"{file} varies keys; this shows column 1 of {len(columns)}, {columns[0].title}", file=sys.stderr)
    return columns[0].campaign


def narrowed(
    file: CampaignFile, *, size: int | None, direction: Direction | None, mix: str | None
) -> tuple[Campaign, Cell]:
    """Return the complete campaign with traffic narrowed to one cell, and that cell.

    What is not asked for is the first value of the file. Raises ConfigError if the cell cannot be measured.
    """
    update: dict[str, Any] = {}
    if direction is not None:
        update["direction"] = (direction,)
    if mix is not None:
        try:
            update["mix"] = (read_mix(mix),)
        except BadValueError as error:
            raise ConfigError(what=error.what, where="--mix", fix=error.fix) from None
    if size is not None:
        update["frame_sizes"] = _frame_sizes(size_family(complete_campaign(file)), size)
    narrow = complete_campaign(file.model_copy(update={"traffic": file.traffic.model_copy(update=update)}))
    return narrow, cells_of(narrow)[0]


def _frame_sizes(family: Family, octets: int) -> FrameSizesModel:
    try:
        return FrameSizesModel(family=family, octets=(octets,))
    except ValidationError as error:
        problem = error.errors()[0]["ctx"]["error"]
        raise ConfigError(what=problem.what, where="--size", fix=problem.fix) from None


def print_campaigns(results: Sequence[CampaignResult], page: Path, *, as_json: bool, listed: bool) -> None:
    """Print the results of campaigns as tables, or as JSON: as a list if they are to be `listed`, else the only one."""
    documents = [result.document for result in results]
    if as_json:
        shown = [document.model_dump(mode="json", by_alias=True) for document in documents]
        print_json({"results": shown} if listed else shown[0])
    else:
        print_result([(document, sections_of(document)) for document in documents], report=str(page))


def cell_json(cell: Cell) -> dict[str, Any]:
    """Return a cell as JSON output has it."""
    return {
        "direction": cell.direction,
        "frame_octets_ipv4": cell.frame_sizes.ipv4,
        "frame_octets_ipv6": cell.frame_sizes.ipv6,
        **({} if cell.frame_sizes.tunnel is None else {"frame_octets_tunnel": cell.frame_sizes.tunnel}),
        "mix": str(cell.mix),
        "connections": cell.connections,
        "alpha": None if cell.alpha is None else str(cell.alpha),
    }


def cell_text(campaign: Campaign, cell: Cell) -> str:
    """Return a cell in words."""
    words = f"{cell.direction}, {cell.frame_sizes.label()} octets, {cell.mix} foreground"
    if cell.connections is not None:
        words += f", {cell.connections} connections"
    return words if cell.alpha is None else f"{words}, alpha {format_ratio(cell.alpha)}"


def sorted_counts(counts: Mapping[str, int]) -> str:
    """Return counters in words, the largest first."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))
