"""How problems of a campaign file are reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gatemark.config.model import CampaignFile
from gatemark.errors import ConfigError, Problem


def raise_if_any(problems: Iterable[Problem]) -> None:
    """Raise ConfigError with all problems, each once; return if there is none."""
    unique = tuple(dict.fromkeys(problems))
    if unique:
        raise ConfigError(problems=unique)


def problem(campaign: CampaignFile, key: str, what: str, fix: str) -> Problem:
    """Build a problem at a key of the campaign's file."""
    return Problem(what=what, where=f"{campaign.source}: {key}", fix=fix)


def in_file(campaign: CampaignFile, of_key: Problem) -> Problem:
    """Return a problem whose place is a key, with the name of the campaign's file."""
    return replace(of_key, where=f"{campaign.source}: {of_key.where}")
