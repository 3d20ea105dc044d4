"""Mesh mode: the hosts outside of a customer edge are other customers of its rule (RFC 7597 section 5)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any

import pytest
from tests.trial_facts import blank
from tests.unit.test_dut_doctor import report

from gatemark import preflight
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign
from gatemark.config.stateful import count_max, tuple_space
from gatemark.dut.recipe import complete_campaign, load_recipe
from gatemark.errors import ConfigError
from gatemark.map_domains.describe import describe_gateway
from gatemark.map_domains.domain import MapDomain
from gatemark.map_domains.peers import PeerEdges
from gatemark.trial.connection_request import establish_request, use_request
from gatemark.trial.report import Counts
from gatemark.trial.request import open_request

RULE: dict[str, Any] = {"ipv6": "2001:2:0:4000::/56", "ipv4": "198.18.128.0/24", "ea_bits": 12}
HOSTS = {"mode": "pseudorandom", "offset": 2, "range": "32868-32967"}
"""198.18.128.100 to .199; the gateway is .18, with PSID 3."""
MAP_T, MAP_E = "tayga-mapt-ce", "linux-mape-ce"


def document(recipe: str, **tables: Any) -> dict[str, Any]:
    """Return a campaign of a recipe in mesh mode; each table replaces keys of its own, None leaves one out."""
    rule = RULE if recipe == MAP_E else {**RULE, "dmr": "2001:2:0:6400::/96"}
    whole: dict[str, dict[str, Any]] = {
        "testbed": {"kind": "netns", "recipe": recipe},
        "map": {"end_user_prefix": "2001:2:0:4012:3000::/68", "domains": [rule], "mesh": {}},
        "right": {"ipv4": {"address": "198.18.128.100", "hosts": HOSTS}},
        "connections": {"count": 4000, "rate": 1000},
        "frame_loss": {"rates": [1000]},
    }
    merged = {key: {**whole.get(key, {}), **tables.get(key, {})} for key in (*whole, *tables)}
    return {key: {name: value for name, value in table.items() if value is not None} for key, table in merged.items()}


def mesh(recipe: str, **tables: Any) -> Campaign:
    return complete_campaign(campaign_from_dict(document(recipe, **tables)))


def problems(recipe: str, **tables: Any) -> list[str]:
    with pytest.raises(ConfigError) as error:
        mesh(recipe, **tables)
    return [f"{problem.where.removeprefix('campaign: ')}: {problem.what}" for problem in error.value.problems]


def test_peers_are_the_customers_with_one_psid_but_for_the_gateways_address() -> None:
    peers = mesh(MAP_T).edges.peers
    assert peers is not None and (peers.psid, len(peers)) == (4, 255)
    edges = list(peers)
    assert len(edges) == 255 and {edge.psid for edge in edges} == {4}
    assert IPv4Address("198.18.128.18") not in {edge.ipv4 for edge in edges}
    edge = peers.at(IPv4Address("198.18.128.119"))
    assert (edge.address, edge.ipv4) == (
        IPv6Address("2001:2:0:4077:4000:c612:8077:4"),
        IPv4Address("198.18.128.119"),
    )
    assert peers.first_range == (1280, 1343)
    assert peers.has_ports(1280, 1343) and peers.has_ports(2304, 2305) and not peers.has_ports(1280, 1344)


@pytest.mark.parametrize(("psid", "expected"), [(None, 0), (14, 14), (15, 15)])
def test_the_psid_after_the_gateways_is_the_default_and_the_last_is_followed_by_the_first(
    psid: int | None, expected: int
) -> None:
    last = {"end_user_prefix": "2001:2:0:4012:f000::/68", "mesh": {} if psid is None else {"psid": psid}}
    peers = mesh(MAP_T, map=last).edges.peers
    assert peers is not None and peers.psid == expected


def test_the_lowest_range_of_a_psid_of_zero_without_offset_begins_at_port_1() -> None:
    domain = MapDomain(
        rule_ipv6=IPv6Network(RULE["ipv6"]), rule_ipv4=IPv4Network(RULE["ipv4"]), ea_bits=12, psid_offset=0
    )
    assert PeerEdges(domain.edge(1), 0).first_range == (1, 4095)


@pytest.mark.parametrize("recipe", [MAP_T, MAP_E])
def test_connections_go_to_ports_that_all_peers_have(recipe: str) -> None:
    campaign = mesh(recipe)
    space = tuple_space(campaign, 10_000_000)
    assert (space.destination_ports.minimum, space.destination_hosts) == (1280, 100)
    assert count_max(campaign) == min(space.sources, 4032) * 100 * 64
    assert str(mesh(recipe, connections={"destination_ports": "2304-2310"}).connections_model.destination_ports) == (
        "2304-2310"
    )


@pytest.mark.parametrize("recipe", [MAP_T, MAP_E])
def test_the_engine_is_told_rule_and_psid_at_the_responders_end(recipe: str) -> None:
    campaign = mesh(recipe)
    cell = cells_of(campaign)[0]
    trial: Any = use_request(
        campaign, cell, connections=4000, frames_per_second=1000, duration_ns=10**9, trial_number=1
    )
    upload, download = (direction["foreground"] for direction in trial["directions"])
    assert upload["destination_peers"] == download["source_peers"]
    assert (upload["destination_peers"]["psid"], upload["destination_peers"]["rule"]["ea_bits"]) == (4, 12)
    assert "source_peers" not in upload and "destination_peers" not in download
    assert upload["destination"]["address"] == download["source"]["address"] == "198.18.128.100"
    assert upload["destination_ports"]["minimum"] == 1280
    if recipe == MAP_E:
        assert (upload["destination_tunnel"]["subscribers"], download["source_tunnel"]["subscribers"]) == (None, None)
    first: Any = establish_request(campaign, cell, connections=4000, connections_per_second=1000, trial_number=1)
    assert first["directions"][0]["foreground"]["destination_peers"]["psid"] == 4
    answered = open_request(campaign, [1], {"left": "a", "right": "b"})["right"]["answer_for"]
    assert not [hosts for hosts in answered if "198.18.128" in str(hosts)], "they are behind the Tester as router"


def test_a_recipe_knows_each_peer() -> None:
    campaign = mesh(MAP_T, map={"mesh": {"psid": 5}})
    lines = load_recipe(MAP_T).map_variables(campaign.map)["map_tayga"].splitlines()
    assert "map 198.18.128.18 2001:2:0:4012:3000:c612:8012:3" in lines
    assert "map 198.18.128.119 2001:2:0:4077:5000:c612:8077:5" in lines
    assert len([line for line in lines if line.startswith("map ")]) == 256
    campaign = mesh(MAP_E, map={"mesh": {"psid": 5}})
    variables = load_recipe(MAP_E).map_variables(campaign.map)
    assert (
        "route add 198.18.128.119/32 encap ip6 id 0 dst 2001:2:0:4077:5000:c612:8077:5"
        " src 2001:2:0:4012:3000:c612:8012:3 hoplimit 64 dev mesh"
    ) in variables["map_routes"].splitlines()
    assert variables["map_routes"].startswith(
        "link add mesh mtu 9196 type ip6tnl external\nlink set mesh up\nroute add"
    )
    assert 'oifname { "softwires", "mesh" }' in variables["map_nftables"]
    assert "ip6 daddr 2001:2:0:4012:3000:c612:8012:3 ip6 saddr != $relay jump inward" in variables["map_nftables"], (
        "what comes from the relay has its own device"
    )
    assert "2001:2:0:4077:5000:c612:8077:5 . 0xc6128077 . 0x140," in variables["map_nftables"]
    plain = load_recipe(MAP_E).map_variables(mesh(MAP_E, map={"mesh": None}, right={"ipv4": None}).map)
    assert plain["map_routes"] == "" and "mesh" not in plain["map_nftables"]


def test_who_checks_the_campaign_sees_a_peer() -> None:
    campaign = mesh(MAP_T)
    assert campaign.edges.gateway is not None
    lines = list(describe_gateway(campaign.edges.gateway, 4032, campaign.edges.peers).lines())
    assert lines[-1] == (
        "hosts outside are other customer edges of PSID 4, such as 198.18.128.0: 2001:2:0:4000:4000:c612:8000:4"
    )


def test_a_completed_campaign_stays_itself() -> None:
    campaign = mesh(MAP_T)
    assert complete_campaign(campaign_from_dict(campaign.to_document())) == campaign


@pytest.mark.parametrize(("recipe", "has_mesh"), [(MAP_E, True), ("linux-lwb4", False)])
def test_who_writes_customers_without_mesh_learns_of_it_where_there_is_one(recipe: str, has_mesh: bool) -> None:
    tables = {"map": {"mesh": None}, "right": {"ipv4": {"address": "198.18.128.100"}}}
    whole = document(recipe, **tables)
    if not has_mesh:
        del whole["map"]
    with pytest.raises(ConfigError) as error:
        complete_campaign(campaign_from_dict(whole))
    fix = next(problem.fix for problem in error.value.problems if "the rule IPv4 prefix" in problem.what)
    assert fix.endswith("write map.mesh = {}") == has_mesh


@pytest.mark.parametrize(
    ("recipe", "tables", "said"),
    [
        (
            MAP_T,
            {"right": {"ipv4": None}},
            "right.ipv4: is missing: the IPv4 hosts that the gateway reaches by the forw",
        ),
        (
            MAP_E,
            {"right": {"ipv4": {"address": "198.19.0.2"}}},
            "right.ipv4: 198.19.0.2 are not all within 198.18.128.0",
        ),
        (
            MAP_E,
            {"right": {"ipv4": {"address": "198.18.128.18"}}},
            "right.ipv4: 198.18.128.18 has 198.18.128.18, the g",
        ),
        (
            MAP_T,
            {"right": {"ipv4": {"address": "198.18.128.100", "hosts": {**HOSTS, "range": "32868-33100"}}}},
            "are not all within 198.18.128.0/24, the rule IPv4 prefix of map.domains[0]",
        ),
        (MAP_T, {"right": {"ipv4": {"address": "198.18.128.9", "gateway": "198.18.128.8"}}}, "ipv4.gateway: does not"),
        (
            MAP_T,
            {"map": {"mesh": {"psid": 16}}},
            "map.mesh.psid: is not a PSID of map.domains[0], which has 4 bits for it",
        ),
        (MAP_T, {"map": {"mesh": {"psid": -1}}}, "map.mesh.psid: is not a PSID of map.domains[0]"),
        (
            MAP_T,
            {"connections": {"destination_ports": "1280-1344"}},
            "connections.destination_ports: 1280-1344 has ports outside of the set of PSID 4",
        ),
        (MAP_T, {"connections": {"count": "300M"}, "left": {}}, "connections need"),
        (MAP_T, {"conformity": {}}, "map.mesh: does not apply to [conformity], whose packets"),
        (
            MAP_E,
            {"traffic": {"traffic_class": {"by_flow": [0, 8]}}},
            "map.mesh: works with traffic class 0 only: outer headers to other customers have it, and packets have 8",
        ),
        (
            MAP_E,
            {
                "map": {
                    "domains": [{"ipv6": "2001:2:0:4012:3000::/68", "ipv4": "198.18.128.18/32", "ea_bits": 0}],
                    "end_user_prefix": None,
                }
            },
            "map.mesh: does not apply: 198.18.128.18/32 is the gateway's address, and no other customer edge has one",
        ),
        (
            MAP_T,
            {
                "map": {
                    "domains": [{**RULE, "ipv4": "198.18.128.18/32", "ea_bits": 8, "dmr": "2001:2:0:6400::/96"}],
                    "end_user_prefix": "2001:2:0:4034::/64",
                }
            },
            "map.mesh: does not apply: 198.18.128.18/32 is the gateway's address",
        ),
        (
            "linux-lwb4",
            {
                "map": {
                    "domains": None,
                    "softwires": [{"ipv6": "2001:2:0:4000::/64", "ipv4": "198.18.128.0/24", "psid_bits": 8}],
                    "end_user_prefix": "2001:2:0:4000:0:c612:8012:34/128",
                }
            },
            "map.mesh: does not apply to lwb4, which is not a customer edge of MAP",
        ),
        ("linux-mape", {"map": {"end_user_prefix": "2001:2:0:4012:3000::/68"}}, "map.mesh: does not apply to map_e,"),
        (
            "tayga-mapt-br",
            {"map": {"end_user_prefix": None}},
            "map.mesh: does not apply to map_t_br, which is not a cust",
        ),
    ],
)
def test_what_makes_no_mesh_is_refused(recipe: str, tables: dict[str, Any], said: str) -> None:
    assert [line for line in problems(recipe, **tables) if said in line], problems(recipe, **tables)


def test_a_recipe_makes_no_gateway_with_too_many_lines() -> None:
    rule = {"ipv6": "2001:2:0:4000::/52", "ipv4": "198.18.0.0/16", "ea_bits": 16}
    wide = {"domains": [rule], "end_user_prefix": "2001:2:0:4801::/68"}
    hosts = {"ipv4": {"address": "198.18.9.9"}}
    assert [line for line in problems(MAP_E, map=wide, right=hosts) if "a line for each of 65535 other" in line]


def test_a_traffic_class_that_no_tunnel_to_other_customers_loses_is_allowed() -> None:
    mesh(MAP_T, traffic={"traffic_class": 8})
    mesh(MAP_E, traffic={"reverse": {"traffic_class": 8}})
    mesh(MAP_E, map={"mesh": None}, right={"ipv4": {"address": "198.19.0.2"}}, traffic={"traffic_class": 8})


@pytest.mark.parametrize(
    ("recipe", "faults", "said"),
    [
        (MAP_T, {"destination_address", "outside_rule"}, "does not reach other customer edges directly"),
        (MAP_E, {"tunnel_destination"}, "does not reach other customer edges directly"),
        (MAP_T, {"destination_address", "other_edge_address"}, "sends to another customer edge"),
        (MAP_E, {"tunnel_destination", "other_subscriber"}, "sends to another customer edge"),
        (
            MAP_T,
            {"source_address", "outside_rule"},
            "the gateway's public address is not 2001:2:0:4012:3000:c612:8012:3",
        ),
        (MAP_E, {"source_address", "other_edge_address"}, "the gateway's public address is not 198.18.128.18"),
    ],
)
def test_preflight_says_where_frames_went(recipe: str, faults: set[str], said: str) -> None:
    counts = blank(Counts, intended=10, offered=10, faulty=10, faults=dict.fromkeys(faults, 10))
    (finding,) = preflight.judge_path(mesh(recipe), report(counts))
    assert said in finding.remedy
