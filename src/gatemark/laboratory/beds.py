"""The test beds of a laboratory, described once in a file: where each is, and what a campaign on it need not say.

::

    [beds.nat-bench]
    node = "bench1"                      # the machine with the ports
    licence = "nat-bench"                # what the scheduler counts; default: the name of the test bed

    [beds.nat-bench.campaign]            # tables of the campaign file
    left = {port = "pci:0000:01:00.0"}
    right = {port = "pci:0000:01:00.1"}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gatemark.campaign.columns import SeriesFile, series_of_text
from gatemark.campaign.file import CampaignText, campaign_from_text
from gatemark.config.control_files import is_path, with_absolute_paths
from gatemark.config.load import document_of_text, text_of
from gatemark.config.vary import VARY
from gatemark.errors import ConfigError, Problem
from gatemark.harmless import toml_of
from gatemark.results.toml_text import to_toml

TABLES = ("testbed", "left", "right", "gateway", "line", "validity")
"""Tables of the campaign file that a test bed may have."""


class BedModel(BaseModel):
    """One test bed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    node: str | None = Field(None, min_length=1, description="the scheduler's name of the machine with its ports")
    licence: str | None = Field(None, min_length=1, description="the scheduler's name of the licence that it is")
    campaign: dict[str, dict[str, Any]] = Field(default_factory=dict, description="tables of the campaign file")


class LaboratoryModel(BaseModel):
    """A file of test beds."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    beds: dict[str, BedModel] = Field(min_length=1, description="test beds by name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bed:
    """A test bed of a laboratory."""

    name: str
    node: str | None
    """Where its ports are, as the scheduler names it; None: any machine can make it."""
    licence: str
    campaign: Mapping[str, Any]
    """Tables that a campaign on it has; paths of files are absolute."""


def read_bed(file: Path, name: str) -> Bed:
    """Read one test bed of a laboratory's file. Raises ConfigError with all problems of the file."""
    try:
        document = toml_of(text_of(file, "file of test beds"))
    except ValueError as error:
        raise ConfigError(what=f"is not TOML: {error}", where=str(file), fix="correct the file") from None
    try:
        laboratory = LaboratoryModel.model_validate(document)
    except ValidationError as error:
        raise ConfigError(problems=tuple(_problems(error, file))) from None
    wrong = [
        Problem(
            what=f"{table} is not the table of a test bed",
            where=f"{file}: beds.{bed}.campaign",
            fix=f"write it into the campaign file; a test bed may have {', '.join(TABLES)}",
        )
        for bed, model in laboratory.beds.items()
        for table in model.campaign
        if table not in TABLES
    ]
    if name not in laboratory.beds:
        what = f"there is no test bed {name!r}"
        wrong.append(Problem(what=what, where=str(file), fix=f"write one of {', '.join(laboratory.beds)}"))
    if wrong:
        raise ConfigError(problems=tuple(wrong))
    model = laboratory.beds[name]
    folder = file.resolve().parent
    return Bed(
        name=name,
        node=model.node,
        licence=model.licence or name,
        campaign=with_absolute_paths(_with_absolute_recipe(model.campaign, folder), folder),
    )


def _with_absolute_recipe(tables: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    testbed = dict(tables.get("testbed", {}))
    if isinstance(recipe := testbed.get("recipe"), str) and is_path(recipe):
        testbed["recipe"] = str(folder / recipe)
    return {**tables, "testbed": testbed} if testbed else dict(tables)


def _problems(error: ValidationError, file: Path) -> Iterator[Problem]:
    for detail in error.errors():
        where = ".".join(map(str, detail["loc"]))
        unknown = detail["type"] == "extra_forbidden"
        yield Problem(
            what="unknown key" if unknown else detail["msg"],
            where=f"{file}: {where}",
            fix="leave it out; a test bed has node, licence, campaign" if unknown else "correct the file",
        )


def on_bed(file: Path, bed: Bed | None) -> CampaignText | SeriesFile:
    """Read a campaign file as it is on a test bed. Raises ConfigError with all problems.

    What both say must be alike: a campaign that overrides its test bed would measure something else than it names.
    """
    text = text_of(file)
    document = document_of_text(text, path=file)
    if bed is not None and bed.campaign:
        wrong = list(_contradictions(document, bed.campaign, f"{file}", bed.name))
        if wrong:
            raise ConfigError(problems=tuple(wrong))
        document = _joined(document, bed.campaign)
        text = to_toml(document)
    if VARY in document:
        return series_of_text(text, file)
    return CampaignText(campaign=campaign_from_text(text, file), text=text, file=file.resolve())


def _contradictions(document: Mapping[str, Any], bed: Mapping[str, Any], where: str, name: str) -> Iterator[Problem]:
    for key, value in bed.items():
        place = f"{where}: {key}" if ": " not in where else f"{where}.{key}"
        if key not in document:
            continue
        if isinstance(value, Mapping) and isinstance(document[key], Mapping):
            yield from _contradictions(document[key], value, place, name)
        elif document[key] != value:
            yield Problem(
                what=f"is {document[key]!r}, the test bed {name} says {value!r}",
                where=place,
                fix="leave the key out of the campaign file, or take another test bed",
            )


def _joined(document: Mapping[str, Any], bed: Mapping[str, Any]) -> dict[str, Any]:
    joined = dict(document)
    for key, value in bed.items():
        inner = joined.get(key)
        joined[key] = _joined(inner, value) if isinstance(value, Mapping) and isinstance(inner, Mapping) else value
    return joined
