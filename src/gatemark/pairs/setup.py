"""What two campaigns must have in common to be measured in pairs, and in what they and their gateways differ. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gatemark.compare.document import SetupDifference
from gatemark.compare.setup import differences, flat
from gatemark.errors import Problem
from gatemark.pairs.pair import SIDES, Side

NOT_COMPARED = frozenset(("name", "repetitions"))
"""Keys of a campaign that say nothing about a pair; procedures are other ones."""

SAME = (
    "seed",
    "gateway",
    "testbed",
    "left",
    "right",
    "traffic",
    "trial",
    "validity",
    "line",
    "connections",
    "map",
    "b4",
)
"""Keys, or tables of keys, that make traffic, technology and Tester: both campaigns have the same values there."""

MAY_DIFFER = (
    "gateway.name", "gateway.version", "gateway.configuration", "gateway.settings", "gateway.table", "gateway.control",
    "testbed.recipe", "testbed.kernel",
)  # fmt: skip
"""Those among them that make another gateway."""

Document = Mapping[str, Any]
"""A complete campaign, as `campaign.json` holds it."""


def setup_problems(campaigns: Mapping[Side, Document], sources: Mapping[Side, str]) -> Iterator[Problem]:
    """Yield in what two campaigns differ although their pairs must have it in common; `sources` are their files."""
    first, second = (dict(_keys(campaigns[side])) for side in SIDES)
    for key in dict.fromkeys((*first, *second)):
        if first.get(key) == second.get(key) or not _below(key, SAME) or _below(key, MAY_DIFFER):
            continue
        yield Problem(
            what=f"{_words(second.get(key))} in B, but {_words(first.get(key))} in A ({sources['A']})",
            where=f"{sources['B']}: {key}",
            fix="pairs need the same traffic, technology and Tester: write the same value in both files",
        )


def setup_differences(
    campaigns: Mapping[Side, Document], gateways: Mapping[Side, Mapping[str, Any]]
) -> tuple[SetupDifference, ...]:
    """Return the facts in which campaigns and gateways differ; `gateways` has what is known of each, by key."""
    facts: list[Mapping[tuple[str, ...], Mapping[tuple[str, str], Any]]] = []
    for side in SIDES:
        of_campaign = {("campaign", key): value for key, value in _keys(campaigns[side])}
        facts.append({(): {**of_campaign, **{("gateway", key): value for key, value in gateways[side].items()}}})
    return differences(facts)


def _keys(campaign: Document) -> Iterator[tuple[str, Any]]:
    yield from flat({key: value for key, value in campaign.items() if key not in NOT_COMPARED})


def _below(key: str, tables: tuple[str, ...]) -> bool:
    return any(key == table or key.startswith(f"{table}.") for table in tables)


def _words(value: object) -> str:
    return "nothing" if value is None else repr(value)
