"""Checks and defaults that the tables of several procedures share. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from gatemark.config import defaults
from gatemark.config.model import CampaignFile, ProcedureTable
from gatemark.config.problems import problem
from gatemark.config.types import DURATION_MAX_NS
from gatemark.errors import Problem

T = TypeVar("T", bound=ProcedureTable)


def base_load_problems(campaign: CampaignFile, key: str, load: int | None) -> Iterator[Problem]:
    """Check that a load not given in the file is a throughput that the campaign measures."""
    if load is None and not campaign.finds_frame_rate:
        yield problem(
            campaign,
            f"{key}.load",
            "is missing, and no throughput is measured to take its place",
            f'add a table [{campaign.frame_rate_key}], or write frames/s, for example {key}.load = "100k"',
        )


def length_problems(campaign: CampaignFile, key: str, length_ns: int) -> Iterator[Problem]:
    """Check that a trial is no longer than the engine accepts."""
    if length_ns > DURATION_MAX_NS:
        yield problem(campaign, f"{key}.observe", "makes the trial longer than a week", "write shorter times")


def with_search_duration(table: T, campaign: CampaignFile) -> T:
    """Return a table whose search has trials no longer than those that confirm it, unless it says how long."""
    if "search_duration_ns" in table.model_fields_set:
        return table
    shorter = min(defaults.SEARCH_DURATION_NS, campaign.trial.duration_ns)
    return table.model_copy(update={"search_duration_ns": shorter})


def search_duration_problems(campaign: CampaignFile, key: str, search_duration_ns: int) -> Iterator[Problem]:
    """Check that trials of a search are no longer than those that confirm its result."""
    if search_duration_ns > campaign.trial.duration_ns:
        yield problem(
            campaign,
            f"{key}.search_duration",
            "is longer than trial.duration, which confirms the result",
            "write a time of at most trial.duration",
        )
