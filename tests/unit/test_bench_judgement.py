"""How often comparisons are right: the campaigns that are made for it, and what is counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import judgement as script

from gatemark.campaign.file import load_campaign
from gatemark.dut.recipe import load_recipe


def compared(side: str, *, ratio: float | None, judgement: str, is_condition_met: bool = False) -> script.Compared:
    return script.Compared(
        side=side,
        first=(),
        values=(),
        ratio=ratio,
        low=None,
        high=None,
        judgement=judgement,
        is_condition_met=is_condition_met,
        reason=None,
    )


@pytest.mark.parametrize("rules", [1, 1000])
def test_sides_differ_in_their_rules_alone(rules: int, tmp_path: Path) -> None:
    campaign = load_campaign(script.write_campaign(tmp_path, rules))
    assert campaign.name == "router", "campaigns of one name are one side"
    recipe = load_recipe(str(campaign.testbed.recipe))
    assert recipe.files["rules.nft"].count(" drop\n") == rules
    assert recipe.commands.setup == ("nft -f rules.nft",)
    assert recipe.programs == {"nft": "nftables"}
    assert recipe.left == load_recipe("linux-router4").left


def test_each_side_has_a_row_of_counts() -> None:
    results = [
        compared("the same", ratio=1.02, judgement="no_difference"),
        compared("100 rules", ratio=0.8, judgement="worse", is_condition_met=True),
        compared("the same", ratio=0.96, judgement="better"),
        compared("100 rules", ratio=None, judgement="not_judged"),
    ]
    head, _, same, more = script.table(results, "1 rules").splitlines()
    assert head.startswith("against 1 rules")
    assert same.split("  ")[0] == "the same"
    assert same.split()[2:] == ["0.99", "0.96", "to", "1.02", "0", "1", "0", "0", "2"]
    assert more.split()[2:] == ["0.80", "0.80", "to", "0.80", "1", "0", "1", "1", "2"]
