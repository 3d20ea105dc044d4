"""The recipe of a MAP-T border relay: made of the rules of the campaign, or of its own where the campaign has none."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.cli.main import main
from gatemark.config.complete import complete
from gatemark.config.model import Campaign
from gatemark.config.recipe import MAP_VARIABLES, Recipe
from gatemark.config.tables import SideModel
from gatemark.dut.plumbing import gateway_end
from gatemark.dut.recipe import complete_campaign, load_recipe, recipe_from_dict, recipe_text, substitute
from gatemark.errors import ConfigError
from gatemark.results.toml_text import to_toml

NAME = "tayga-mapt-br"
RULE = {"ipv6": "2001:db8:ce::/51", "ipv4": "192.0.2.0/24", "ea_bits": 13, "psid_offset": 0, "dmr": "2001:db8:ff::/96"}


def document(**tables: Any) -> dict[str, Any]:
    return {"testbed": {"kind": "netns", "recipe": NAME}, "throughput": {}, **tables}


def campaign(**tables: Any) -> Campaign:
    return complete_campaign(campaign_from_dict(document(**tables)))


def recipe(**keys: Any) -> Recipe:
    """The built-in recipe with other keys; None leaves one out."""
    text = recipe_text(NAME)
    changed = tomllib.loads(text) | keys
    return recipe_from_dict({key: value for key, value in changed.items() if value is not None})


def test_a_campaign_without_rules_gets_those_of_the_recipe() -> None:
    complete = campaign()
    assert complete.map is not None
    assert complete.map.edge_count == 256
    assert [str(domain.ipv6) for domain in complete.map.domains] == ["2001:2:0:4000::/56"]
    assert complete_campaign(campaign_from_dict(complete.to_document())) == complete


def test_rules_of_the_campaign_replace_those_of_the_recipe() -> None:
    complete = campaign(map={"domains": [RULE], "edges": 7})
    assert complete.map is not None
    assert [str(domain.ipv6) for domain in complete.map.domains] == ["2001:db8:ce::/51"]
    assert complete.map.edge_count == 7
    variables = load_recipe(NAME).map_variables(complete.map)
    assert tuple(variables) == MAP_VARIABLES
    assert variables["map_tayga"].startswith(
        "tun-device mapt\nipv4-addr 10.0.0.1\nprefix 2001:db8:ff::/96\nmap 10.0.0.2 "
    )
    assert variables["map_tayga"].count("\nmap ") == 8192  # the order is pseudorandom
    assert substitute("{map_routes}", variables).splitlines() == [
        "ip route add 10.0.0.0/15 dev mapt",
        "ip -6 route add 2001:db8:ff::/96 dev mapt",
    ]


@pytest.mark.parametrize(
    ("table", "problems"),
    [
        (
            {"domains": [{**RULE, "ea_bits": 24}], "edges": 2},
            [("campaign: map.edges", 'write fewer, and order = "increasing": else all are needed; at most 65536')],
        ),
        (
            {"domains": [RULE, {**RULE, "ipv6": "2001:db8::/48", "ipv4": "10.0.1.0/24", "dmr": "2001:db8:1::/96"}]},
            [
                ("campaign: map.domains[1].dmr", "write the same default mapping rule for all domains"),
                (
                    f"recipe {NAME}: map_gateway.private",
                    "choose a network outside of every domain, such as 10.0.0.0/16; for another network copy the"
                    " recipe and change it there",
                ),
            ],
        ),
    ],
)  # fmt: skip
def test_rules_that_no_such_relay_can_have(
    table: dict[str, Any], problems: list[tuple[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        campaign(map=table)
    assert [(problem.where, problem.fix) for problem in caught.value.problems] == problems
    file = tmp_path / "campaign.toml"
    file.write_text(to_toml(document(map=table)), encoding="utf-8")
    assert main(["plan", str(file)]) == 2
    assert caught.value.problems[0].what in capsys.readouterr().err


def test_a_few_of_many_customer_edges_can_be_measured_in_increasing_order() -> None:
    complete = campaign(map={"domains": [{**RULE, "ea_bits": 24}], "edges": 2, "order": "increasing"})
    assert load_recipe(NAME).map_variables(complete.map)["map_tayga"].count("\nmap ") == 2


@pytest.mark.parametrize(
    ("keys", "where", "what"),
    [
        ({"map_gateway": None}, "files.tayga.conf", "{map_tayga} is undefined without map_gateway"),
        ({"commands": {}}, "map_gateway", "{map_routes} is in no file and no command"),
        ({"map_gateway": {"private": "198.19.0.0/20"}}, "map_gateway.private", "198.19.0.0/20 overlaps 198.19.0.0/16"),
        ({"map_gateway": {"private": "10.0.0.0/24"}}, "map_gateway.private", "10.0.0.0/24 has addresses for 253"),
        ({"map_gateway": {"privat": "10.0.0.0/24"}}, "map_gateway.privat", "unknown key"),
        ({"map": {"domains": [{**RULE, "ea_bits": 25}]}}, "map.domains[0].ea_bits", "leaves 17 bits for the PSID"),
        ({"map": {"domains": [{**RULE, "ea": 25}]}}, "map.domains.0.ea", "unknown key"),
        ({"map": {"domains": [RULE], "edges": 8193}}, "map.edges", "8193 are too many"),
    ],
)
def test_wrong_rules_of_a_recipe_are_named(keys: dict[str, Any], where: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        recipe(**keys)
    (problem, *_) = [problem for problem in caught.value.problems if problem.where == f"recipe: {where}"]
    assert what in problem.what
    assert problem.fix


def test_only_a_border_relay_has_rules() -> None:
    siit = {"technology": "siit64", "prefix": "2001:2:0:6400::/96"}
    with pytest.raises(ConfigError) as caught:
        recipe(**siit)
    assert [problem.where for problem in caught.value.problems] == ["recipe: map", "recipe: map_gateway"]
    assert "map_t_br" in caught.value.fix


def test_a_relay_may_be_made_otherwise() -> None:
    plain = recipe(map_gateway=None, map=None, files={}, commands={"setup": ["true"]})
    assert plain.map_variables(campaign().map) == {}
    with pytest.raises(ConfigError, match="map: is missing: map_t_br needs its rules"):
        complete(campaign_from_dict(document()), plain)


def test_customer_edges_are_reached_through_the_left_side() -> None:
    relay = load_recipe(NAME)
    end = gateway_end(relay, "left", relay.left, "eth7", relay.map)
    assert end.routes == (("2001:2:0:4000::/56", "2001:2::2"),)
    assert gateway_end(relay, "right", relay.right, "eth7", relay.map).routes == ()
    nexthop = {"address": "2001:2:0:7::2", "gateway": "2001:2::1", "router": "2001:2::9"}
    side = SideModel.model_validate({"address_mode": "nexthop", "ipv6": nexthop})
    end = gateway_end(relay, "left", side, "eth7", relay.map)
    assert end.routes == (("2001:2::/56", "2001:2::9"), ("2001:2:0:4000::/56", "2001:2::9"))
    onlink = campaign(map={"domains": [RULE], "onlink": True}).map
    end = gateway_end(relay, "left", relay.left, "eth7", onlink)
    assert list(end.commands())[-1] == ["ip", "route", "add", "2001:db8:ce::/51", "dev", "eth7"]
