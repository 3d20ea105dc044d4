"""The public names are pinned: a change here is a change for users."""

from __future__ import annotations

from pathlib import Path

import gatemark

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_public_names_are_these() -> None:
    assert sorted(gatemark.__all__) == [
        "CampaignResult",
        "GatemarkError",
        "SeriesResult",
        "load_campaign",
        "make_plan",
        "measure",
        "measure_series",
        "open_result",
        "open_series",
    ]


def test_every_public_name_has_a_docstring() -> None:
    assert all(getattr(gatemark, name).__doc__ for name in gatemark.__all__)


def test_a_campaign_that_was_read_can_be_planned_whether_a_recipe_makes_its_gateway_or_not() -> None:
    for name in ("1-loopback-router4.toml", "8-tayga-nat64.toml"):
        campaign = gatemark.load_campaign(EXAMPLES / name)
        assert gatemark.make_plan(campaign).runs
