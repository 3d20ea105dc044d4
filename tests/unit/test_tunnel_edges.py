"""Campaigns of MAP-E customer edges and lwB4s: what follows from their rule, and what a file must not say."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign
from gatemark.config.stateful import pool_port_count
from gatemark.dut.recipe import complete_campaign, load_recipe
from gatemark.errors import ConfigError
from gatemark.trial.connection_request import establish_request

MAP_ADDRESS, SOFTWIRE = "2001:db8:12:3400:0:c000:212:34", "2001:db8:1:2:0:c000:212:34"
RELAY = "2001:2:0:8000::2"
TABLES: dict[str, dict[str, Any]] = {
    "map_e_ce": {
        "domains": [{"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16}],
        "end_user_prefix": "2001:db8:12:3400::/56",
    },
    "lwb4": {
        "softwires": [{"ipv6": "2001:db8:1:2::/64", "ipv4": "192.0.2.0/24", "psid_bits": 8}],
        "end_user_prefix": f"{SOFTWIRE}/128",
    },
}


def document(technology: str, **tables: Any) -> dict[str, Any]:
    """Return the file of a customer edge; each table replaces keys of its own."""
    whole: dict[str, dict[str, Any]] = {
        "gateway": {"technology": technology, "control": {"clear_state": "true"}},
        "testbed": {"kind": "ports"},
        "map": copy.deepcopy(TABLES[technology]),
        "left": {"port": "af_packet:a", "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
        "right": {
            "port": "af_packet:b",
            "ipv6": {"address": RELAY, "gateway": "2001:2:0:8000::1"},
            "ipv4": {"address": "198.19.0.2"},
            "mtu": 1540,
        },
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
        "connections": {"count": 100, "rate": 1000},
        "frame_loss": {"rates": [1000]},
    }
    return {key: {**table, **tables.get(key, {})} for key, table in whole.items()}


def edge(technology: str, **tables: Any) -> Campaign:
    """Return the complete campaign."""
    return complete_campaign(campaign_from_dict(document(technology, **tables)))


@pytest.mark.parametrize(("technology", "address", "ports"), [("map_e_ce", MAP_ADDRESS, 252), ("lwb4", SOFTWIRE, 256)])
def test_its_tunnel_begins_at_the_address_and_its_pool_is_of_the_rule(
    technology: str, address: str, ports: int
) -> None:
    campaign = edge(technology)
    assert str(campaign.forwarding.tunnel_end) == address
    assert [str(prefix) for prefix in campaign.forwarding.pool] == ["192.0.2.18/32"]
    assert pool_port_count(campaign) == ports
    body: Any = establish_request(
        campaign, cells_of(campaign)[0], connections=100, connections_per_second=1000, trial_number=1
    )
    upload = body["directions"][0]["foreground"]
    tunnel = upload["destination_tunnel"]
    assert (tunnel["gateway"], tunnel["subscribers"]["address"], upload["source_tunnel"]) == (address, RELAY, None)
    connections = body["connections"]
    assert connections["pool"] == ["192.0.2.18/32"]
    assert connections["edge"]["dmr"] is None and connections["edge"]["ea"] == 0x1234


@pytest.mark.parametrize("technology", TABLES)
def test_a_loop_back_has_no_port_set(technology: str) -> None:
    whole = document(technology, testbed={"kind": "loopback"})
    whole["gateway"] = {"technology": technology}
    whole["left"], whole["right"] = {"mtu": 1540}, {"mtu": 1540}
    with pytest.raises(ConfigError, match=f"is {technology}, but a loop-back translates nothing") as caught:
        complete_campaign(campaign_from_dict(whole))
    (only,) = caught.value.problems
    assert only.fix == "write nat44, nat66 or aftr"


def domain(**keys: Any) -> dict[str, Any]:
    """Return the table [map] of the MAP-E customer edge with other keys in its rule."""
    return {"domains": [{**TABLES["map_e_ce"]["domains"][0], **keys}]}


@pytest.mark.parametrize(
    ("technology", "tables", "where", "what"),
    [
        ("map_e_ce", {"gateway": {"tunnel": {"address": MAP_ADDRESS}}}, "gateway.tunnel.address", "its MAP address"),
        ("map_e_ce", {"map": domain(dmr="64:ff9b::/96")}, "map.domains[0].dmr", "reach the outside by tunnels"),
        ("map_e_ce", {"map": domain(weight=2)}, "map.domains[0].weight", "the only customer edge"),
        ("map_e_ce", {"map": {"end_user_prefix": "2001:db8:12:3400::/57"}}, "map.end_user_prefix", "have 56 bits"),
        ("map_e_ce", {"right": {"ipv4": {"address": "192.0.2.7"}}}, "right.ipv4", "meets 192.0.2.0/24"),
        ("map_e_ce", {"gateway": {"pool": ["192.0.2.18/32"]}}, "gateway.pool", "has no pool"),
        ("map_e_ce", {"connections": {"count": 253}}, "map", "192.0.2.18 has a set of 252 ports"),
        (
            "lwb4",
            {"map": {"end_user_prefix": "2001:db8:1:2::/64"}},
            "map.end_user_prefix",
            "is not the address of an lwB4",
        ),
        (
            "lwb4",
            {"map": {"end_user_prefix": "2001:db8:1:2:1:c000:212:34/128"}},
            "map.end_user_prefix",
            "not the address of an lwB4",
        ),
        ("lwb4", {"map": {"end_user_prefix": None}}, "map.end_user_prefix", "is missing: the rule has 65536"),
        ("lwb4", {"right": {"ipv6": {"address": SOFTWIRE, "gateway": "2001:db8:1:2::1"}}}, "right.ipv6", "MAP address"),
    ],
)
def test_what_no_such_edge_can_have_is_refused(technology: str, tables: Any, where: str, what: str) -> None:
    ports = {"destination_ports": "80", "source_ports": "10000-10999"}
    whole = document(technology, **{**tables, "connections": {**ports, **tables.get("connections", {})}})
    whole["gateway"] = {"mapping": "endpoint_independent", **whole["gateway"]}
    whole["map"] = {key: value for key, value in whole["map"].items() if value is not None}
    with pytest.raises(ConfigError) as caught:
        complete_campaign(campaign_from_dict(whole))
    assert [problem.where for problem in caught.value.problems] == [f"campaign: {where}"]
    assert what in caught.value.problems[0].what


@pytest.mark.parametrize("name", ["linux-mape-ce", "linux-lwb4"])
def test_a_recipe_is_made_of_the_rule_of_the_campaign(name: str) -> None:
    recipe = load_recipe(name)
    campaign = edge(recipe.technology.name)
    end = str(campaign.forwarding.tunnel_end)
    assert recipe.end_variables(campaign.right, campaign.map) == {"relay": RELAY, "subscriber": end}
    rules = recipe.map_variables(campaign.map)["map_nftables"]
    assert "192.0.2.18 . " in rules and 'oifname "softwires"' in rules
