"""The campaign file with the tables of all procedures: reads it, and gives its JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatemark.config import model
from gatemark.config.load import campaign_of, campaign_of_text, text_of
from gatemark.config.schema import campaign_schema_text
from gatemark.procedures.registry import CampaignFile


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignText:
    """A campaign as it is written, with the text that its result folder keeps."""

    campaign: model.CampaignFile
    text: str
    file: Path | None
    """Where the text lies, or what it was made from: the path of a recipe is relative to its folder."""


def read_campaign_text(path: Path | str) -> CampaignText:
    """Read a campaign file with its text. Raises ConfigError with all problems."""
    text = text_of(Path(path))
    return CampaignText(campaign=campaign_from_text(text, Path(path)), text=text, file=Path(path).resolve())


def load_campaign(path: Path | str) -> model.CampaignFile:
    """Read a campaign file (TOML). Raises ConfigError with all problems.

    The path of a recipe is relative to the folder of the file.
    """
    return read_campaign_text(path).campaign


def campaign_from_text(text: str, path: Path) -> model.CampaignFile:
    """Build a campaign from the text of the file that lies, or lay, at `path`. Raises ConfigError with all problems."""
    return campaign_of_text(text, CampaignFile, path=path)


def campaign_from_dict(document: Mapping[str, Any], where: str = "campaign") -> model.CampaignFile:
    """Build a campaign from the document that a file holds. Raises ConfigError with all problems.

    A campaign without a recipe is checked completely here, one with a recipe by `complete_campaign`.
    """
    return campaign_of(document, CampaignFile, where=where)


def schema_text() -> str:
    """Return the JSON Schema as the text that `docs/reference/campaign-file.schema.json` holds."""
    return campaign_schema_text(CampaignFile)
