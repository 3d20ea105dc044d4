"""Campaigns of stateful gateways: what is refused and why, and what a recipe adds."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from ipaddress import ip_network
from typing import Any

import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.complete import complete
from gatemark.config.model import Campaign, CampaignFile
from gatemark.config.sizes import measured_octets, size_family
from gatemark.config.stateful import count_max, initiator_prefixes
from gatemark.config.tables import GatewayTableModel
from gatemark.dut.recipe import complete_campaign, recipe_from_dict
from gatemark.errors import ConfigError

BASE: dict[str, Any] = {
    "gateway": {
        "technology": "nat44",
        "pool": ["198.19.0.1/32"],
        "control": {"clear_state": "conntrack -F", "tear_down": "conntrack -F", "count_connections": "conntrack -C"},
    },
    "testbed": {"kind": "ports"},
    "left": {
        "port": "pci:0000:01:00.0",
        "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"},
        "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"},
    },
    "right": {
        "port": "pci:0000:01:00.1",
        "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"},
        "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
    },
    "connections": {"count": ["10k", "1M"]},
    "connection_establishment_rate": {},
    "throughput": {},
}

HOSTS = {"offset": 2, "mode": "pseudorandom", "range": "2-1001"}


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the base with values set at key paths; None removes a key."""
    document = copy.deepcopy(BASE)
    for path, value in changes.items():
        *tables, key = path.split(".")
        place = document
        for table in tables:
            place = place.setdefault(table, {})
        if value is None:
            place.pop(key, None)
        else:
            place[key] = value
    return document


def campaign(changes: dict[str, Any] | None = None) -> Campaign:
    return complete_campaign(campaign_from_dict(changed(changes or {})))


def problems_of(changes: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        campaign(changes)
    assert all(problem.fix for problem in caught.value.problems), "every problem has a remedy"
    return [f"{problem.where.removeprefix('campaign: ')}: {problem.what}" for problem in caught.value.problems]


def test_the_base_is_accepted_and_reads_back_the_same() -> None:
    loaded = campaign()
    roles = loaded.roles
    assert (roles.inside, roles.outside, roles.upload, roles.download) == ("left", "right", "forward", "reverse")
    assert loaded.control.actions == {"clear_state", "tear_down", "count_connections"}
    written = json.loads(json.dumps(loaded.to_document()))
    assert complete_campaign(campaign_from_dict(written)) == loaded


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"gateway.pool": None}, "gateway.pool: is missing"),
        ({"gateway.pool": ["2001:2:0:8000::1"]}, "gateway.pool: 2001:2:0:8000::1/128 is not IPv4"),
        ({"gateway.pool": ["198.19.0.0/29"]}, "gateway.pool: 198.19.0.0/29 holds hosts of the Responder"),
        ({"gateway.pool": ["198.18.0.0/24"]}, "gateway.pool: 198.18.0.0/24 holds hosts of the Initiator"),
        ({"gateway.pool": ["198.19.0.1/24"]}, "gateway.pool[0]: '198.19.0.1/24': 198.19.0.1/24 has host bits set"),
        ({"gateway.pool_ports": "1024-40000"}, "gateway.pool: has 38977 endpoints (1 addresses with ports 1024-40000)"),
        ({"left.ipv4.hosts": HOSTS}, "gateway.pool: has 64512 endpoints"),
        ({"gateway.prefix": "2001:2:0:6400::/96"}, "gateway.prefix: does not apply to nat44"),
        ({"gateway.zero_udp_checksum": True}, "gateway.zero_udp_checksum: does not apply to nat44"),
        ({"gateway.control.clear_state": None}, "gateway.control.clear_state: is missing: every trial begins"),
        (
            {"gateway.control.tear_down": None, "connection_tear_down_rate": {}},
            "gateway.control.tear_down: is missing: connection_tear_down_rate times",
        ),
        ({"gateway.control.shell": "ssh 'root"}, "gateway.control.shell: cannot be split"),
        ({"gateway.control.set_hash_size": "true"}, "gateway.control.set_hash_size: does not say where the value goes"),
        ({"gateway.control.clear_stat": "x"}, "gateway.control.clear_stat: unknown key"),
        ({"gateway.table": {"size": "999k"}}, "gateway.table.size: is 999000, fewer than the 1000000 connections"),
        ({"gateway.table": {"udp_timeout": "1500ms"}}, "gateway.table.udp_timeout: is not a whole number of seconds"),
        ({"connections": None}, "connections.count: is missing"),
        ({"connections.count": []}, "connections.count: is missing"),
        ({"connections.count": [1000, "1k"]}, "connections.count: lists a number twice"),
        ({"connections.count": "2T"}, "connections.count[0]: '2T' is above 2^40"),
        ({"connections.count": "3G"}, "connections.count: 3000000000 connections need 75000 destination ports"),
        (
            {"connections.destination_ports": "1-20"},
            "connections.destination_ports: 1-20 gives 800000 four-tuples (40000 source endpoints to 20",
        ),
        ({"connections.rate": "101%"}, "connections.rate: '101%' is more than 100%"),
        (
            {"connection_establishment_rate": None},
            "connections.rate: is a share of the maximum connection establishment rate; throughput needs",
        ),
        (
            {"connection_establishment_rate.minimum": 2000, "connection_establishment_rate.maximum": 1000},
            "connection_establishment_rate.minimum: is above connection_establishment_rate.maximum",
        ),
        (
            {"connection_establishment_rate.resolution": "100%"},
            "connection_establishment_rate.resolution: is not below",
        ),
        ({"connection_establishment_rate.alpha": "50%"}, "connection_establishment_rate.alpha: has no effect"),
        (
            {"connection_establishment_rate.validated": [True, True]},
            "connection_establishment_rate.validated: lists a value twice",
        ),
        (
            {"connection_tracking_table_capacity": {"beta": "100%"}},
            "connection_tracking_table_capacity.beta: is 100%",
        ),
        (
            {"connection_tracking_table_capacity": {"resolution": 1000}},
            "connection_tracking_table_capacity.resolution: is not below start",
        ),
        (
            {"connection_tracking_table_capacity": {"maximum": 1000}},
            "connection_tracking_table_capacity.maximum: is not above start",
        ),
        (
            {"connection_tracking_table_capacity": {"maximum": "3G"}},
            "connection_tracking_table_capacity.maximum: is 3000000000, but four-tuples and public endpoints allow",
        ),
        (
            {"connection_tracking_table_capacity": {"start": "2M"}, "gateway.table": {"size": "1M"}},
            "connection_tracking_table_capacity.start: is 2000000, more than the gateway's table of 1000000",
        ),
        (
            {"connection_tracking_table_capacity": {"maximum_rate": 10, "rate_resolution": 10}},
            "connection_tracking_table_capacity.rate_resolution: is not below maximum_rate",
        ),
        (
            {"connection_establishment_rate": {"validated": True, "loss_tolerance": "1%"}, "connections.rate": "1k"},
            "connection_establishment_rate.loss_tolerance: leaves connections out, but a validation asks for each",
        ),
        (
            {"connection_establishment_rate": {"loss_tolerance": "1%"}},
            "connections.rate: is a share of a rate at which connections are lost",
        ),
        (
            {"connection_establishment_rate": {"validated": True, "alpha": ["50%", "1/2"]}},
            "connection_establishment_rate.alpha: lists a share twice",
        ),
        (
            {"connection_establishment_rate": {"validated": True, "alpha": []}},
            "connection_establishment_rate.alpha: [] lists no share",
        ),
        (
            {"connection_establishment_rate": {"validated": True, "alpha": ["50%", "search"]}},
            "connection_establishment_rate.alpha: 'search'",
        ),
        ({"traffic.destination_networks": 256}, "traffic.destination_networks: does not apply to nat44"),
        (
            {"traffic.forward": {"destination_networks": 2}},
            "traffic.forward.destination_networks: does not apply to nat44",
        ),
        ({"traffic.source_ports": {"range": "1-9"}}, "traffic.source_ports: has no effect"),
        (
            {"traffic.forward": {"destination_ports": {"range": "1-9"}}},
            "traffic.forward.destination_ports: has no effect",
        ),
        ({"traffic.mix": "0/1"}, "traffic.mix: 0/1 has no foreground"),
        (
            {"traffic.frame_sizes": {"family": "ipv6", "octets": [84]}},
            "traffic.frame_sizes.family: is ipv6, but nat44 forwards IPv4 frames",
        ),
    ],
)
def test_one_mistake_is_told_once(changes: dict[str, Any], expected: str) -> None:
    problems = problems_of(changes)
    assert len(problems) == 1, problems
    assert problems[0].startswith(expected)


@pytest.mark.parametrize(
    "changes",
    [
        {"gateway.pool": ["198.19.1.0/24"], "left.ipv4.hosts": HOSTS},
        {"traffic.mix": "1/2", "traffic.source_ports": {"range": "1-9"}},
        {"traffic.direction": "reverse", "traffic.forward": {"hop_limit": 9}},
        {"gateway.inside": "left", "gateway.mapping": "endpoint_independent"},
        {"connections": {"count": 1_000_000, "rate": "10k"}, "connection_establishment_rate": None},
        {"throughput": None, "connection_establishment_rate": None, "connections": None}
        | {"connection_tracking_table_capacity": {}},
        {"gateway.table": {"size": "1M", "hash_size": "64k", "udp_timeout": "200s"}},
        {"connection_establishment_rate": {"validated": [False, True], "alpha": "search"}},
    ],
)
def test_what_is_no_mistake(changes: dict[str, Any]) -> None:
    loaded = campaign(changes)
    assert complete_campaign(campaign_from_dict(loaded.to_document())) == loaded


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gateway.inside", "right"),
        ("gateway.pool_ports", "1-9"),
        ("gateway.mapping", "endpoint_dependent"),
        ("gateway.control.clear_state", "true"),
        ("gateway.table.size", 9),
        ("gateway.table.udp_timeout", "9s"),
        ("connections", {"count": 9}),
        ("connection_establishment_rate", {}),
        ("connection_tear_down_rate", {}),
        ("connection_tracking_table_capacity", {}),
    ],
)
def test_state_makes_no_sense_without_state(key: str, value: Any) -> None:
    stateless: dict[str, Any] = {"gateway": {"technology": "router44"}, "connections": None}
    stateless |= {"connection_establishment_rate": None}
    assert problems_of({**stateless, key: value}) == [f"{key}: does not apply to router44, which keeps no state"]


def test_control_belongs_to_ports() -> None:
    document = {"testbed": {"kind": "netns", "recipe": "x"}, "gateway": {"control": {"clear_state": "true"}}}
    with pytest.raises(ConfigError, match=r"gateway\.control: does not apply to kind = netns"):
        campaign_from_dict(document)


def loopback(technology: str, **tables: Any) -> dict[str, Any]:
    return {
        "gateway": {"technology": technology},
        "testbed": {"kind": "loopback"},
        "connections": {"count": 1000},
        "connection_establishment_rate": {},
        **tables,
    }


@pytest.mark.parametrize("technology", ["nat44", "nat66"])
def test_a_loopback_needs_no_pool(technology: str) -> None:
    loaded = complete_campaign(campaign_from_dict(loopback(technology)))
    assert count_max(loaded) == 40_000 * 65_535


def test_a_loopback_translates_nothing_and_has_no_table() -> None:
    with pytest.raises(ConfigError, match="a loop-back translates nothing"):
        campaign_from_dict(loopback("nat64", gateway={"technology": "nat64", "prefix": "2001:2:0:6400::/96"}))
    with pytest.raises(ConfigError, match=r"gateway\.table\.size: does not apply to kind = loopback"):
        campaign_from_dict(loopback("nat44", gateway={"technology": "nat44", "table": {"size": 5000}}))
    with pytest.raises(ConfigError, match="connection_tear_down_rate: does not apply to kind = loopback"):
        campaign_from_dict(loopback("nat44", connection_tear_down_rate={}))


NAT64 = {
    "gateway": BASE["gateway"] | {"technology": "nat64", "prefix": "2001:2:0:6400::/96"},
    "traffic.frame_sizes": {"family": "ipv4", "octets": [64]},
}
NAT46 = {
    "gateway": BASE["gateway"]
    | {
        "technology": "nat46",
        "pool": ["2001:2:0:8000::1"],
        "eam": [{"ipv4": "198.19.0.0/16", "ipv6": "2001:2:0:8000::/112"}],
    },
    "traffic.frame_sizes": {"family": "ipv4", "octets": [64]},
}


@pytest.mark.parametrize("changes", [NAT64, NAT46])
def test_only_the_responders_hosts_need_a_representation(changes: dict[str, Any]) -> None:
    foreign_host = {"left.ipv6": {"address": "2001:db8::2", "gateway": "2001:db8::1"}}
    campaign(changes | foreign_host)
    gateway = {key: value for key, value in changes["gateway"].items() if key not in ("prefix", "eam")}
    assert problems_of({**changes, "gateway": gateway})[0].startswith("gateway.prefix: is missing")
    foreign = gateway | {"eam": [{"ipv4": "203.0.113.0/24", "ipv6": "2001:db8::/120"}]}
    problems = problems_of({**changes, "gateway": foreign})
    assert len(problems) == 1
    assert " has no representation in the other family" in problems[0]
    assert problems[0].startswith("right.")


def test_the_initiator_may_be_on_the_right() -> None:
    mirrored = copy.deepcopy(NAT64)
    mirrored["gateway"] |= {"inside": "right", "pool": ["198.18.0.1"]}
    loaded = campaign(mirrored)
    assert (loaded.roles.family("left"), loaded.roles.family("right")) == ("ipv4", "ipv6")
    assert loaded.roles.upload == "reverse"
    assert initiator_prefixes(loaded) == (ip_network("2001:2:0:8000::2/128"),)


def test_the_well_known_prefix_must_not_represent_the_responder() -> None:
    problems = problems_of(NAT64 | {"gateway": NAT64["gateway"] | {"prefix": "64:ff9b::/96"}})
    assert len(problems) == 1
    assert problems[0].startswith("gateway.prefix: 64:ff9b::/96 must not represent 198.19.0.2")


@pytest.mark.parametrize(
    ("inside", "direction", "wrong"),
    [("left", "forward", False), ("left", "reverse", True), ("right", "forward", True)],
)
def test_fragmentation_concerns_the_way_to_ipv6(inside: str, direction: str, wrong: bool) -> None:
    """In nat64 the Responder's frames become IPv6; test phase 1 goes the other way in any case."""
    pool = ["198.19.0.1"] if inside == "left" else ["198.18.0.1"]
    changes = NAT64 | {
        "gateway": NAT64["gateway"] | {"inside": inside, "pool": pool},
        "traffic": {"direction": direction, "frame_sizes": {"family": "ipv4", "octets": [1300]}},
    }
    if wrong:
        assert problems_of(changes)[0].startswith("traffic.frame_sizes.octets: an IPv4 frame of 1300 octets")
    else:
        campaign(changes)


def test_phase_one_goes_to_ipv6_in_nat46_whatever_is_measured() -> None:
    sizes = {"direction": "reverse", "frame_sizes": {"family": "ipv4", "octets": [1300]}}
    assert problems_of(NAT46 | {"traffic": sizes})[0].startswith("traffic.frame_sizes.octets")
    assert size_family(campaign({"gateway": BASE["gateway"]})) == "ipv4"
    nat66 = {"gateway": BASE["gateway"] | {"technology": "nat66", "pool": ["2001:2:0:8000::1"]}}
    assert size_family(campaign(nat66)) == "ipv6"
    assert measured_octets(campaign(nat66))[0] == 84


def test_nat66_translates_background_as_well() -> None:
    nat66 = {"gateway": BASE["gateway"] | {"technology": "nat66", "pool": ["2001:2:0:8000::1"]}}
    assert problems_of(nat66 | {"traffic.mix": "1/2"})[0].startswith("traffic.mix: has native IPv6 background")


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [  # 1M connections at 10k/s take 100 s; timeout 0.5 s, gap 0.5 s, drain 2 s, margin 2 s, phase 2 60 s
        ({"connections.rate": "10k"}, 165),
        ({"connections.rate": "10k", "throughput": None, "connection_tear_down_rate": {}}, 105),
        ({"throughput": None, "connection_establishment_rate": {"maximum": "10k", "resolution": 10}}, 105),
        (
            {
                "throughput": None,
                "connection_establishment_rate": {"maximum": "10k", "validated": True, "alpha": "50%"},
            },
            305,
        ),
    ],
)
def test_no_connection_may_expire_before_it_is_used(changes: dict[str, Any], seconds: int) -> None:
    campaign(changes | {"gateway.table": {"udp_timeout": f"{seconds}s"}})
    problems = problems_of(changes | {"gateway.table": {"udp_timeout": f"{seconds - 1}s"}})
    assert len(problems) == 1
    assert problems[0].startswith("gateway.table.udp_timeout: is ")
    assert f"but connections must live for {seconds}s" in problems[0]


DOCUMENT: dict[str, Any] = {
    "name": "mine",
    "description": "a translator",
    "technology": "nat64",
    "hop_limit_decrement": 3,
    "prefix": "2001:2:0:6400::/96",
    "zero_udp_checksum": True,
    "pool": ["198.19.0.1/32"],
    "pool_ports": "1024-65535",
    "mapping": "endpoint_dependent",
    "table": {"size": 1_048_576, "hash_size": 262_144, "udp_timeout": "300s"},
    "left": {"networks": ["2001:2::/64"], "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"}},
    "right": {"networks": ["198.19.0.0/24"], "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
    "commands": {
        "clear_state": ["clear"],
        "tear_down": "clear",
        "set_table_size": ["size {size}"],
        "set_udp_timeout": ["timeout {seconds}"],
    },
}
RECIPE = recipe_from_dict(DOCUMENT)


def netns(gateway: dict[str, Any] | None = None, **tables: Any) -> CampaignFile:
    document = {"testbed": {"kind": "netns", "recipe": "mine"}, "throughput": {}, "gateway": gateway or {}}
    connections = {"connections": {"count": 1000, "rate": "1k"}}
    return campaign_from_dict(document | connections | tables)


def test_a_recipe_tells_about_the_state() -> None:
    merged = complete(netns({"table": {"size": 5000}}), RECIPE)
    assert merged.gateway.table == GatewayTableModel.model_validate(
        {"size": 5000, "hash_size": 262_144, "udp_timeout": "300s"}
    )
    assert (merged.roles.inside, merged.gateway.zero_udp_checksum, merged.control.actions) == (
        "left",
        True,
        RECIPE.actions,
    )
    again = complete(campaign_from_dict(json.loads(json.dumps(merged.to_document()))), RECIPE)
    assert again == merged
    assert again.control.actions == RECIPE.actions


def test_a_file_with_the_initiator_on_the_right_mirrors_its_recipe() -> None:
    merged = complete(netns({"inside": "right"}), RECIPE)
    assert (merged.roles.inside, merged.right.mtu) == ("right", 1500)
    assert (merged.right.ipv6, merged.left.ipv4) == (RECIPE.left.ipv6, RECIPE.right.ipv4)
    assert complete(campaign_from_dict(merged.to_document()), RECIPE) == merged


@pytest.mark.parametrize(
    ("gateway", "where"),
    [
        ({"pool": ["198.19.0.9"]}, "gateway.pool"),
        ({"pool_ports": "1-65535"}, "gateway.pool_ports"),
        ({"mapping": "endpoint_independent"}, "gateway.mapping"),
        ({"zero_udp_checksum": False}, "gateway.zero_udp_checksum"),
        ({"table": {"hash_size": 512}}, "gateway.table.hash_size"),
    ],
)
def test_a_file_that_contradicts_its_recipe(gateway: dict[str, Any], where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        complete(netns(gateway), RECIPE)
    assert [problem.where for problem in caught.value.problems] == [f"campaign: {where}"]
    assert all("recipe" in problem.fix for problem in caught.value.problems)


def test_a_recipe_without_a_needed_command_is_named() -> None:
    silent = recipe_from_dict(DOCUMENT | {"pool": [], "table": {}, "commands": {}})
    with pytest.raises(ConfigError) as caught:
        complete(netns({"pool": ["198.19.0.1"]}, connection_tear_down_rate={}), silent)
    assert [problem.what.partition(":")[0] for problem in caught.value.problems] == [
        "mine has no command clear_state",
        "mine has no command tear_down",
    ]


def test_shares_are_exact() -> None:
    loaded = campaign({"connections.rate": "12.5%"})
    assert loaded.connections_model.rate == Fraction(1, 8)
