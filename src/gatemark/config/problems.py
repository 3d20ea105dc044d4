"""How problems of a campaign file are reported."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from gatemark.config.model import Campaign, CampaignFile
from gatemark.errors import ConfigError, Problem
from gatemark.technology import SideName


def raise_if_any(problems: Iterable[Problem]) -> None:
    """Raise ConfigError with all problems, each once; return if there is none."""
    unique = tuple(dict.fromkeys(problems))
    if unique:
        raise ConfigError(problems=unique)


def problem(campaign: CampaignFile, key: str, what: str, fix: str) -> Problem:
    """Build a problem at a key of the campaign's file."""
    return Problem(what=what, where=f"{campaign.source}: {key}", fix=fix)


def listed_twice(campaign: CampaignFile, key: str, values: Collection[object], what: str) -> Iterator[Problem]:
    """Check that no value of a list is there twice; `what` is the word for one of them."""
    if len(set(values)) < len(values):
        yield problem(campaign, key, f"lists a {what} twice", f"list each {what} once")


def no_macs_of_hosts(campaign: Campaign, name: SideName, why: str) -> Iterator[Problem]:
    """Check that hosts of a side have no MAC addresses of their own where one is that of all."""
    if campaign.side(name).host_macs == "random":
        yield problem(campaign, f"{name}.host_macs", f"is random, but {why}", "leave the key out")


def in_file(campaign: CampaignFile, of_key: Problem) -> Problem:
    """Return a problem whose place is a key, with the name of the campaign's file."""
    return replace(of_key, where=f"{campaign.source}: {of_key.where}")
