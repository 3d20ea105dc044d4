"""The bundled campaigns are whole, named for what they measure, and short."""

from __future__ import annotations

import pytest

from gatemark.campaign.estimate import estimate
from gatemark.campaign.plan import make_plan
from gatemark.config.load import load_campaign
from gatemark.demo import DEMOS, demo_file
from gatemark.dut.recipe import load_recipe

SECONDS_MAX = 150
"""All of them together, half-way between the fewest and the most trials, without repeated invalid ones."""


@pytest.mark.parametrize("name", DEMOS)
def test_a_demo_measures_two_frame_sizes_in_both_directions(name: str) -> None:
    with demo_file(name) as path:
        campaign = load_campaign(path).with_recipe(load_recipe(name).facts)
    campaign.check_complete()
    runs = make_plan(campaign).runs
    assert campaign.name == name
    assert len(runs) == 2
    assert all(run.cell.direction == "bidirectional" for run in runs)


def test_all_demos_together_are_short() -> None:
    fewest = most = 0
    for name in DEMOS:
        with demo_file(name) as path:
            expected = estimate(load_campaign(path).with_recipe(load_recipe(name).facts))
        fewest, most = fewest + expected.seconds_min, most + expected.seconds_max
    assert (fewest + most) / 2 <= SECONDS_MAX
