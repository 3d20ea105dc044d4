"""Measures the campaign of an archive again, into a folder that needs the archive no more."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gatemark.archive.inputs import as_packed, is_here, kept_inputs, renamed
from gatemark.archive.read import Unpacked, unpacked
from gatemark.archive.recompute import campaign_folders, check_inputs
from gatemark.campaign.columns import series_of_text
from gatemark.campaign.events import EventCallback
from gatemark.campaign.file import CampaignText, campaign_from_text
from gatemark.config.load import document_of_text
from gatemark.config.model import CampaignFile
from gatemark.config.vary import VARY
from gatemark.errors import ConfigError
from gatemark.harmless import toml_of
from gatemark.port_kinds import parse_port
from gatemark.results.store import default_folder, writing
from gatemark.results.toml_text import to_toml
from gatemark.series.run import SeriesResult, measure_series
from gatemark.series.store import SERIES_FILE, SeriesFolder, is_series
from gatemark.session import PlanCallback, measure
from gatemark.stored import CampaignResult
from gatemark.tester import RESUMED_FROM, Equipment

FOLDER = "inputs"
"""In a result folder: files of the archive that the campaign names and this gatemark has not."""


def measure_again(
    archive: Path,
    *,
    output: str | Path | None = None,
    trust_commands: bool = False,
    on_event: EventCallback | None = None,
    on_plan: PlanCallback | None = None,
    equipment: Equipment | None = None,
) -> CampaignResult | SeriesResult:
    """Measure what an archive measured, on this machine, into a new folder (default: below results/).

    Recipes and commands are those of the archive, whatever this gatemark calls by their names. They run here, so
    `trust_commands` is asked for. Raises ConfigError if the archive is damaged or would be measured otherwise.
    """
    with unpacked(archive) as content:
        series = is_series(content.path)
        text, document, here = _checked(content)
        _check_trust(here, archive, trust_commands=trust_commands)
        absent = [given for given in kept_inputs(content.folder, content.description.inputs) if not is_here(given)]
    moved = {(given.facts.kind, given.facts.name): f"{FOLDER}/{given.facts.file}" for given in absent}
    if moved or "name" not in toml_of(text):
        text = to_toml(renamed(document, lambda kind, name: moved.get((kind, name), name)))
    folder = Path(output) if output is not None else default_folder(str(document["name"]))
    with _with_files(folder, {given.facts.file: given.text for given in absent}):
        if series:
            varied = series_of_text(text, folder / SERIES_FILE)
            return measure_series(varied, output=folder, on_event=on_event, on_plan=on_plan, equipment=equipment)
        campaign = campaign_from_text(text, folder / "campaign.toml")
        given = CampaignText(campaign=campaign, text=text, file=None)
        return measure(given, output=folder, on_event=on_event, on_plan=on_plan, equipment=equipment)


@contextlib.contextmanager
def campaign_in(archive: Path) -> Iterator[Path]:
    """Yield the campaign file of an archive, which names the files in the archive, as long as it is unpacked.

    Raises ConfigError if the archive is damaged or would be measured otherwise.
    """
    with unpacked(archive) as content, tempfile.TemporaryDirectory(prefix="gatemark-") as place:
        _, _, here = _checked(content)
        file = Path(place) / "campaign-unpacked.toml"
        with writing(file.parent):
            file.write_text(to_toml(here), encoding="utf-8")
        yield file


def _checked(content: Unpacked) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return a campaign file as text and document, and the document that names the files where they are unpacked."""
    _check_one(content)
    check_inputs(content)
    text, source = _campaign_file(content)
    document = document_of_text(text, path=Path(source or content.path))  # it has a name in any case
    return text, document, as_packed(document, content.inputs, str(content.archive))


def _check_one(content: Unpacked) -> None:
    """Raise ConfigError if an archive holds several campaigns that are no series."""
    if content.description.kind == "folder":
        below = ", ".join(sorted(folder.path.name for folder in campaign_folders(content.folder)))
        raise ConfigError(
            what=f"it holds several campaigns: {below}",
            where=str(content.archive),
            fix="unpack it with tar, and measure the campaign.toml of each that you want",
        )


def _campaign_file(content: Unpacked) -> tuple[str, str | None]:
    """Return the text of the campaign file, and the path that it had."""
    result = content.folder
    if is_series(content.path):
        return result.read_text(SERIES_FILE), SeriesFolder(files=result).read().file
    return result.read_text("campaign.toml"), result.read_campaign()[1]


def _check_trust(document: Mapping[str, Any], archive: Path, *, trust_commands: bool) -> None:
    """Raise ConfigError if it cannot be read, or would act on this machine and nobody said that it may."""
    text = to_toml(document)
    if VARY in document:
        campaigns = [column.campaign for column in series_of_text(text, archive).columns]
    else:
        campaigns = [campaign_from_text(text, archive)]
    acts = next((words for campaign in campaigns if (words := _acts(campaign))), None)
    if acts is not None and not trust_commands:
        raise ConfigError(
            what=acts,
            where=str(archive),
            fix=f"read all of it: gatemark plan {archive}; if you trust it, add --trust-commands",
        )


def _acts(campaign: CampaignFile) -> str | None:
    """Say what a campaign does on this machine beside its own processes; None if that is nothing."""
    if campaign.bed.commands_run is not None:
        return f"its campaign and recipe say which commands run: {campaign.bed.commands_run}"
    sides = (side.port for side in (campaign.left, campaign.right) if side is not None and side.port is not None)
    ports = [port for port in sides if parse_port(port).kind.takes_name]
    return f"its campaign says which ports are opened: {', '.join(ports)}" if ports else None


@contextlib.contextmanager
def _with_files(folder: Path, texts: Mapping[str, str]) -> Iterator[None]:
    """Write the files that the campaign names into its folder; they go if nothing is measured there."""
    place = folder / FOLDER
    if any((folder / name).exists() for name in (*RESUMED_FROM, FOLDER)):
        fix = "name another folder with --output"
        raise ConfigError(what="the folder already holds a campaign", where=str(folder), fix=fix)
    if not texts:
        yield
        return
    try:
        with writing(folder):
            place.mkdir(parents=True)
            for name, text in texts.items():
                (place / name).write_text(text, encoding="utf-8")
        yield
    finally:
        if not any((folder / name).exists() for name in RESUMED_FROM):
            shutil.rmtree(place, ignore_errors=True)
            with contextlib.suppress(OSError):
                folder.rmdir()
