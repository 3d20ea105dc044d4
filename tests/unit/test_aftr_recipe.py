"""The AFTR that a recipe makes of a campaign's B4s: its maps and routes, and B4s of which it cannot be made."""

from __future__ import annotations

import tomllib
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from typing import Any

import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.config.recipe import B4_VARIABLES, Recipe
from gatemark.dut.recipe import complete_campaign, load_recipe, recipe_from_dict, recipe_text
from gatemark.errors import ConfigError
from gatemark.linux_aftr import aftr_files

NAME = "linux-aftr"
TEXT = recipe_text(NAME)
AFTR = IPv6Address("2001:2:0:ff::1")


def campaign(**tables: Any) -> Campaign:
    """Return the campaign of the recipe as it is, but for the tables given."""
    document = {"testbed": {"kind": "netns", "recipe": NAME}, "frame_loss": {"rates": [1000]}}
    connections = {"count": 1000, "rate": 1000, "source_ports": "10000-10009"}
    return complete_campaign(campaign_from_dict({**document, "connections": connections, **tables}))


def variables(complete: Campaign) -> dict[str, str]:
    """Return what the recipe's variables stand for."""
    return load_recipe(NAME).b4_variables(complete.left, complete.b4_model)


def recipe(**keys: Any) -> Recipe:
    """Return the recipe with other keys."""
    return recipe_from_dict({**tomllib.loads(TEXT), **keys})


def test_each_host_behind_each_b4_has_an_address_of_its_own_before_the_nat() -> None:
    b4s = [IPv6Address("2001:2::2"), IPv6Address("2001:2::3")]
    hosts = [IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")]
    files = aftr_files(b4s, hosts, end=AFTR, private=IPv4Network("100.64.0.0/24"), hop_limit=64)
    assert files.routes == (
        "route add 100.64.0.1 encap ip6 id 0 dst 2001:2::2 src 2001:2:0:ff::1 hoplimit 64 dev dslite",
        "route add 100.64.0.2 encap ip6 id 0 dst 2001:2::2 src 2001:2:0:ff::1 hoplimit 64 dev dslite",
        "route add 100.64.0.3 encap ip6 id 0 dst 2001:2::3 src 2001:2:0:ff::1 hoplimit 64 dev dslite",
        "route add 100.64.0.4 encap ip6 id 0 dst 2001:2::3 src 2001:2:0:ff::1 hoplimit 64 dev dslite",
    )
    lines = [line.strip().rstrip(",") for line in files.nftables.splitlines()]
    assert "2001:2::3 . 0xa000001 : 3" in lines
    assert "3 : 100.64.0.3" in lines
    assert "100.64.0.3 : 10.0.0.1" in lines


def test_the_recipe_alone_serves_a_hundred_b4s() -> None:
    complete = campaign()
    assert tuple(variables(complete)) == B4_VARIABLES
    assert len(variables(complete)["b4_routes"].splitlines()) == 100
    assert "2001:2::65 . 0xa000001 : 100" in variables(complete)["b4_nftables"]


def test_a_campaign_says_which_b4s_there_are_and_what_is_behind_them() -> None:
    hosts = {"offset": 2, "mode": "increasing", "range": "5-7"}
    left = {"ipv6": {"address": "2001:2::2"}}
    complete = campaign(left=left, b4={"address": "192.168.1.5", "hosts": hosts}, connections={"count": 3, "rate": 10})
    assert "2001:2::2 . 0xc0a80007 : 3" in variables(complete)["b4_nftables"]


@pytest.mark.parametrize(
    ("keys", "where", "what"),
    [
        ({"b4_gateway": None}, "files.aftr.nft", "{b4_nftables} is undefined without b4_gateway"),
        ({"files": {}}, "b4_gateway", "{b4_nftables} is in no file and no command"),
        ({"b4_gateway": {"private": "198.19.0.0/20"}}, "b4_gateway.private", "198.19.0.0/20 overlaps 198.19.0.0/16"),
        ({"b4_gateway": {"private": "10.0.0.0/26"}}, "b4_gateway.private", "has addresses for 62 hosts, not for 100"),
        ({"b4_gateway": {"privat": "10.0.0.0/24"}}, "b4_gateway.privat", "unknown key"),
    ],
)
def test_wrong_keys_of_a_recipe_are_named(keys: dict[str, Any], where: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        recipe(**keys)
    problem, *_ = [problem for problem in caught.value.problems if problem.where == f"recipe: {where}"]
    assert what in problem.what
    assert problem.fix


def test_only_an_aftr_has_b4s() -> None:
    with pytest.raises(ConfigError) as caught:
        recipe_from_dict({**tomllib.loads(TEXT), "technology": "nat44", "tunnel": None, "left": {
            "networks": ["198.18.0.0/16"], "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"},
        }})  # fmt: skip
    assert [problem.where for problem in caught.value.problems] == ["recipe: b4_gateway"]


def test_hosts_outside_have_none_of_its_private_addresses() -> None:
    with pytest.raises(ConfigError, match=r"100\.64\.0\.0/10 holds hosts outside"):
        campaign(right={"address_mode": "nexthop", "ipv4": {"address": "100.64.0.5", "router": "198.19.0.2"}})
