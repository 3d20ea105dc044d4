"""Two recipes in a row: what both together are, and what each sees of the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.complete import complete
from gatemark.config.model import CampaignFile
from gatemark.config.recipe import Standing
from gatemark.dut.gateway_kernel import Links
from gatemark.dut.naming import BedName
from gatemark.dut.plumbing import gateway_end
from gatemark.dut.recipe import complete_campaign, load_recipe, recipe_sha256
from gatemark.dut.steering import CorePlan
from gatemark.errors import ConfigError
from gatemark.technology import TECHNOLOGIES, TechnologyName

GOOD = 'name = "mine"\ndescription = "both"\nrow = ["linux-b4", "linux-aftr"]\n'

SERVICES: dict[str, tuple[TechnologyName, int, int]] = {
    "linux-dslite": ("ds_lite", 2, 9196),
    "linux-lw4o6": ("lw4o6", 2, 9196),
    "linux-mape": ("map_e", 2, 9196),
    "tayga-mapt": ("map_t", 6, 9216),
}
"""Technology, hop limit decrement and MTU outside of recipes whose links carry 9236 octets."""


def standings_of(name: str) -> tuple[Standing, ...]:
    recipe = load_recipe(name)
    return recipe.standings({"left": recipe.side("left"), "right": recipe.side("right")})


@pytest.mark.parametrize("name", SERVICES)
def test_a_row_is_what_both_of_its_gateways_make(name: str) -> None:
    recipe = load_recipe(name)
    gateway = recipe.gateway
    assert (gateway.technology, gateway.hop_limit_decrement, recipe.mtu) == SERVICES[name]
    assert (gateway.middle_mtu, gateway.inside, gateway.background_hop_limit_decrement) == (9236, "left", 2)
    assert TECHNOLOGIES[gateway.technology].in_a_row == tuple(part.technology.name for part in recipe.parts)
    assert gateway.dont_fragment_rule == ("rfc6145" if name.startswith("tayga") else None)
    assert gateway.zero_udp_checksum == (True if name.startswith("tayga") else None)
    assert bool(gateway.pool) == (name == "linux-dslite")
    assert {"clear_state", "count_connections", "tear_down"} <= recipe.actions
    assert "reset" not in recipe.actions
    assert not recipe.commands.setup and not recipe.files


@pytest.mark.parametrize("name", SERVICES)
def test_each_gateway_has_the_other_one_on_the_link_in_the_middle(name: str) -> None:
    first, second = standings_of(name)
    near = gateway_end(first.recipe, "right", first.sides["right"], "middle0", first.edges)
    far = gateway_end(second.recipe, "left", second.sides["left"], "middle1", second.edges)
    assert near.addresses == ("2001:2:0:f000::1/64",)
    assert far.addresses == ("2001:2:0:f000::2/64",)
    assert ("::/0", "2001:2:0:f000::2") in near.routes
    assert {through for _, through in near.routes} == {"2001:2:0:f000::2"}
    assert {through for _, through in far.routes} == {"2001:2:0:f000::1"}
    assert first.edges == second.edges
    if second.recipe.gateway.tunnel is not None:
        relay, subscriber = map(str, first.recipe.end_variables(first.sides["right"], first.edges).values())
        assert relay == str(second.recipe.gateway.tunnel.address) != subscriber
        assert (f"{relay}/128" if "/" in near.routes[-1][0] else relay) in {network for network, _ in near.routes}


def test_an_aftr_knows_the_hosts_behind_the_b4() -> None:
    _, aftr = standings_of("linux-dslite")
    assert str(aftr.b4.address) == "10.0.0.2"
    side = aftr.sides["left"]
    assert side.ipv6 is not None and str(side.ipv6.address) == "2001:2:0:f001::1"
    assert 'iifname "dslite"' in aftr.recipe.b4_variables(side, aftr.b4)["b4_nftables"]


def test_a_single_gateway_stands_between_the_testers_sides() -> None:
    recipe = load_recipe("tayga-mapt-ce")
    sides = {"left": recipe.side("left"), "right": recipe.side("right")}
    (alone,) = recipe.standings(sides)
    assert (alone.recipe, alone.sides, alone.edges) == (recipe, sides, recipe.map)
    assert recipe.parts == (recipe,)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"linux-aftr"', '"linux-lwaftr"', "b4 and lwaftr do not form a service in a row"),
        ('"linux-aftr"', '"linux-aft"', "no built-in recipe `linux-aft`"),
        ('["linux-b4", "linux-aftr"]', '["linux-b4"]', "row"),
        ('description = "both"', "", "description: this key is required"),
        ("row =", "mtu = 1500\nrow =", "mtu: unknown key"),
        ("row =", "left = {networks = []}\nrow =", "left.networks"),
    ],
)
def test_a_row_that_cannot_be_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "recipe.toml").write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError, match=said) as caught:
        load_recipe(tmp_path)
    assert all(problem.fix for problem in caught.value.problems)


def test_the_customer_is_on_the_left() -> None:
    document = {"testbed": {"kind": "netns", "recipe": "linux-dslite"}, "gateway": {"inside": "right"}}
    file = CampaignFile.model_validate(document | {"connections": {"count": 10}})
    with pytest.raises(ConfigError, match="a row has its customer's gateway on the left"):
        complete(file, load_recipe("linux-dslite"))


def test_what_a_row_has_no_command_for_is_measured_at_one_of_both() -> None:
    document = {
        "testbed": {"kind": "netns", "recipe": "linux-dslite"},
        "reset": {"load": "1k"},
        "connections": {"count": 10, "rate": "10k"},
    }
    with pytest.raises(ConfigError, match="has no command reset") as caught:
        complete(campaign_from_dict(document), load_recipe("linux-dslite"))
    assert [problem.fix for problem in caught.value.problems] == ["measure one of both gateways alone"]


def test_hosts_behind_a_b4_are_private() -> None:
    document = {"testbed": {"kind": "netns", "recipe": "linux-dslite"}, "left": {"ipv4": {"address": "198.18.0.2"}}}
    file = CampaignFile.model_validate(document | {"connections": {"count": 10}})
    with pytest.raises(ConfigError, match=r"left\.ipv4\.address: 198\.18\.0\.2 lies in neither"):
        complete(file, load_recipe("linux-dslite"))


def test_the_digest_of_a_row_covers_both_recipes(tmp_path: Path) -> None:
    for number, names in enumerate((("linux-b4", "linux-aftr"), ("linux-lwb4", "linux-lwaftr"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        text = 'name = "a"\ndescription = "a"\nrow = ["{}", "{}"]\n'.format(*names)
        (folder / "recipe.toml").write_text(text)
    assert recipe_sha256(tmp_path / "0") != recipe_sha256(tmp_path / "1")


def test_links_of_a_row_have_a_namespace_for_each_gateway() -> None:
    name = BedName(pid=4000000, start_ticks=1, number=35)
    row = Links(name=name, mtus={}, cores=CorePlan(tester=(1,), gateway=(0,)), middle_mtu=9236)
    first, second = row.stages()
    assert [stage.namespace for stage in row.stages()] == list(row.gateway_namespaces)
    assert first.ends == {"left": row.gateway_end("left"), "right": row.middle_end("left")}
    assert second.ends == {"right": row.gateway_end("right"), "left": row.middle_end("right")}
    assert len({*first.ends.values(), *second.ends.values()}) == 4
    assert all(len(end) <= 15 for stage in row.stages() for end in stage.ends.values())
    assert first.folder != second.folder
    (alone,) = Links(name=name, mtus={}, cores=CorePlan(tester=(1,), gateway=(0,))).stages()
    assert alone.folder == name.folder
    assert alone.ends == {side: row.gateway_end(side) for side in ("left", "right")}


def test_between_two_translators_udp_has_a_checksum() -> None:
    with pytest.raises(ConfigError) as caught:
        complete_campaign(
            campaign_from_dict(
                {
                    "testbed": {"kind": "netns", "recipe": "tayga-mapt"},
                    "traffic": {"udp_checksum": "zero"},
                    "connections": {"count": 200, "rate": "1k"},
                    "frame_loss": {"rates": ["1k"]},
                }
            )
        )
    whats = [problem.what for problem in caught.value.problems]
    assert [what.split(",")[1] for what in whats] == [
        " but forward frames are IPv6 between both translators",
        " but reverse frames are IPv6 between both translators",
    ]
