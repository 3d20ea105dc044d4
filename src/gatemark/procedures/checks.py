"""Checks that the tables of several procedures share. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gatemark.config.model import Campaign
from gatemark.config.problems import problem
from gatemark.config.types import DURATION_MAX_NS
from gatemark.errors import Problem


def base_load_problems(campaign: Campaign, key: str, load: int | None) -> Iterator[Problem]:
    """Check that a load not given in the file is a throughput that the campaign measures."""
    if load is None and not campaign.finds_frame_rate:
        yield problem(
            campaign,
            f"{key}.load",
            "is missing, and no throughput is measured to take its place",
            f'add a table [throughput], or write frames/s, for example {key}.load = "100k"',
        )


def length_problems(campaign: Campaign, key: str, length_ns: int) -> Iterator[Problem]:
    """Check that a trial is no longer than the engine accepts."""
    if length_ns > DURATION_MAX_NS:
        yield problem(campaign, f"{key}.observe", "makes the trial longer than a week", "write shorter times")
