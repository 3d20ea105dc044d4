"""MAP-T domains in a campaign file: what it reads, writes and refuses."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.map_check import check_map, complete_map
from gatemark.config.map_tables import MapDomainModel, MapModel
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError

DOMAIN: dict[str, Any] = {
    "ipv6": "2001:db8:ce::/51",
    "ipv4": "192.0.2.0/24",
    "ea_bits": 13,
    "psid_offset": 0,
    "dmr": "2001:db8:ffff::/64",
}

ELSEWHERE = {**DOMAIN, "ipv6": "2001:db9::/51", "ipv4": "203.0.113.0/24", "dmr": "2001:db9:ffff::/64"}


def table(*domains: dict[str, Any], **keys: Any) -> MapModel:
    return MapModel.model_validate({"domains": list(domains) or [DOMAIN], **keys})


def campaign(left: dict[str, Any] | None = None, right: dict[str, Any] | None = None, **gateway: Any) -> Campaign:
    """A campaign of a border relay, for the addresses of its sides."""
    return complete_campaign(campaign_from_dict(document(left, right, **gateway)))


def document(left: dict[str, Any] | None = None, right: dict[str, Any] | None = None, **gateway: Any) -> dict[str, Any]:
    return {
        "gateway": {"technology": "map_t_br", **gateway},
        "testbed": {"kind": "ports"},
        "left": {
            "port": "af_packet:a",
            "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"},
            **(left or {}),
        },
        "right": {
            "port": "af_packet:b",
            "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"} | (right or {}),
            "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
        },
        "map": {"domains": [ELSEWHERE]},
        "frame_loss": {"rates": [1000]},
    }


def with_map(domains: MapModel, **sides: Any) -> Campaign:
    return campaign(**sides).model_copy(update={"map": domains})


def test_defaults() -> None:
    rule = MapDomainModel.model_validate({key: DOMAIN[key] for key in DOMAIN if key != "psid_offset"}).rule
    assert (rule.psid_offset, rule.weight, rule.psid_bits, rule.psid) == (6, 1, None, 0)
    assert not rule.except_suffixes
    assert not rule.except_system_ports
    model = table()
    assert (model.order, model.choice, model.forward_ports, model.edge_count) == (
        "pseudorandom", "cycle", "pseudorandom", 8192,
    )  # fmt: skip


def test_every_key_is_read_and_written_back() -> None:
    single = {
        "ipv6": "2001:db8:12:3400::/56", "ipv4": "203.0.113.18/32", "ea_bits": 0, "psid_offset": 6, "psid_bits": 8,
        "psid": 52, "dmr": "2001:db8:ffff::/64", "weight": 1, "exclude": [],
    }  # fmt: skip
    many = {**DOMAIN, "weight": 3, "exclude": ["first_and_last_suffix", "system_ports"]}
    keys = {
        "edges": 4, "order": "increasing", "choice": "pseudorandom", "onlink": True, "forward_ports": "fixed",
        "reverse_ports": "decreasing",
    }  # fmt: skip
    model = table(many, single, **keys)
    written = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert written == {"domains": [{"psid": 0, **many}, single], "softwires": [], **keys}
    assert MapModel.model_validate(written) == model
    assert model.rules[0].except_system_ports
    assert model.rules[0].except_suffixes
    assert (model.rules[1].psid, model.rules[1].psid_length) == (52, 8)
    assert model.spread.weights == (3, 1)
    assert table(edges="1M").edge_count == 1_000_000
    assert table({**DOMAIN, "exclude": "system_ports"}).domains[0].exclude == ("system_ports",)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ipv6": "2001:db8:ce::1/51"},
        {"ipv4": "192.0.2.1/24"},
        {"ipv4": "2001:db8::/32"},
        {"dmr": "64:ff9b::1/96"},
        {"ea_bits": "13"},
        {"exclude": ["first"]},
        {"mode": "shared"},
    ],
)
def test_what_is_no_value_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as error:
        table({**DOMAIN, **wrong})
    assert [detail["loc"][:3] for detail in error.value.errors()] == [("domains", 0, *wrong)]


def test_contradictions_have_the_place_in_the_file() -> None:
    second = {**DOMAIN, "ipv6": "2001:db8:cf::/51", "ea_bits": 49, "psid_offset": 99, "dmr": "2001:db8:ce::/80"}
    places = {problem.where for problem in check_map(with_map(table(DOMAIN, second, edges=9000)))}
    assert places == {
        "campaign: map.domains[1].ea_bits",
        "campaign: map.domains[1].psid_offset",
        "campaign: map.domains[1].ipv4",
        "campaign: map.domains[1].dmr",
    }
    (problem,) = check_map(with_map(table(edges=9000)))
    assert problem.where == "campaign: map.edges"
    assert list(check_map(with_map(table(edges=8192)))) == []


@pytest.mark.parametrize("key", ["forward_ports", "reverse_ports"])
def test_customer_edges_that_are_drawn_have_no_turn_to_take_ports_by(key: str) -> None:
    for variation in ("increasing", "decreasing"):
        (problem,) = check_map(with_map(table(choice="pseudorandom", **{key: variation})))
        assert problem.where == f"campaign: map.{key}"
        assert list(check_map(with_map(table(**{key: variation})))) == []
    assert list(check_map(with_map(table(choice="pseudorandom", **{key: "fixed"})))) == []


@pytest.mark.parametrize("psid_bits", [17, 10**12])
def test_a_huge_number_is_refused_like_any_other(psid_bits: int) -> None:
    rule = {**DOMAIN, "ipv4": "192.0.2.1/32", "ea_bits": 0, "psid_bits": psid_bits, "psid": 10**12}
    (problem,) = check_map(with_map(table(rule)))
    assert problem.where == "campaign: map.domains[0].psid_bits"


def places(domains: MapModel, **sides: Any) -> list[str]:
    return [problem.where for problem in complete_map(with_map(domains, **sides))]


def test_no_address_of_a_side_is_in_a_domain() -> None:
    assert places(table()) == []
    hosts = {"offset": 2, "mode": "pseudorandom", "range": "2-1023"}
    assert places(table({**DOMAIN, "ipv4": "198.19.3.0/24"}), right={"hosts": hosts}) == ["campaign: right.ipv4"]
    assert places(table({**DOMAIN, "ipv4": "198.19.0.1/32"})) == ["campaign: right.ipv4.gateway"]
    assert places(table({**DOMAIN, "ipv6": "2001:2:0:8000::/51"})) == [
        "campaign: right.ipv6",
        "campaign: right.ipv6.gateway",
    ]
    assert places(table({**DOMAIN, "dmr": "2001:2::/64"})) == ["campaign: left.ipv6", "campaign: left.ipv6.gateway"]


def test_the_well_known_prefix_represents_global_addresses_only() -> None:
    well_known = table({**DOMAIN, "dmr": "64:ff9b::/96"})
    (problem,) = complete_map(with_map(well_known))
    assert problem.where == "campaign: map.domains[0].dmr"
    assert "198.19.0.2" in problem.what
    assert places(well_known, well_known_prefix_allowed=True) == []
    assert places(well_known, right={"address": "192.88.0.1", "gateway": "192.88.0.2"}) == []


def test_the_schema_has_the_limits() -> None:
    properties = MapDomainModel.model_json_schema()["properties"]
    assert (properties["ea_bits"]["minimum"], properties["ea_bits"]["maximum"]) == (0, 48)
    assert (properties["psid_offset"]["minimum"], properties["psid_offset"]["maximum"]) == (0, 15)


MEANINGLESS: dict[str, tuple[dict[str, Any], str]] = {
    "a border relay without rules": ({"map": None}, "map"),
    "rules for a router": ({"gateway": {"technology": "router66"}}, "map"),
    "a translation prefix": ({"gateway": {"technology": "map_t_br", "prefix": "2001:2:0:6400::/96"}}, "gateway.prefix"),
    "an address mapping": (
        {"gateway": {"technology": "map_t_br", "eam": [{"ipv4": "198.18.0.0/24", "ipv6": "2001:2::/120"}]}},
        "gateway.eam",
    ),
    "networks of destinations that are customer edges": (
        {"traffic": {"destination_networks": 2}},
        "traffic.destination_networks",
    ),
    "MAC addresses of hosts": ({"left": {"host_macs": "random"}}, "left.host_macs"),
}


@pytest.mark.parametrize("mistake", MEANINGLESS)
def test_what_makes_no_sense_for_customer_edges_is_refused(mistake: str) -> None:
    changes, place = MEANINGLESS[mistake]
    whole = document()
    for key, value in changes.items():
        whole[key] = {**whole[key], **value} if key == "left" else value
    if changes.get("map", whole) is None:
        del whole["map"]
    with pytest.raises(ConfigError) as error:
        campaign_from_dict(whole)
    assert f"campaign: {place}" in [problem.where for problem in error.value.problems]


def test_networks_of_servers_are_allowed() -> None:
    whole = document() | {"traffic": {"forward": {"destination_networks": 2}}}
    whole["right"]["ipv4"]["address"] = "198.19.0.2"
    assert complete_campaign(campaign_from_dict(whole)).directions.networks("right") == 2
