"""Addresses that no host has, everywhere or on a link that a recipe makes; on both sides, in both families."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.complete import complete
from gatemark.config.recipe import Recipe
from gatemark.config.reserved import EVERYWHERE, reserved_on
from gatemark.dut.recipe import recipe_from_dict
from gatemark.errors import ConfigError, Problem

SIDES = {
    "left": {
        "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"},
        "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"},
    },
    "right": {
        "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"},
        "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
    },
}
NETWORKS = {
    "left": ["198.18.0.0/16", "2001:2::/56"],
    "right": ["198.19.0.0/16", "2001:2:0:8000::/56"],
}


def hosts(range_: str, offset: int) -> dict[str, Any]:
    return {"offset": offset, "mode": "increasing", "range": range_}


def recipe(networks: dict[str, list[str]] = NETWORKS) -> Recipe:
    sides = {side: {"networks": networks[side], **SIDES[side]} for side in SIDES}
    return recipe_from_dict({"name": "router", "description": "a router", "technology": "router44", **sides})


def problems(tables: dict[str, Any], router: Recipe | None = None) -> list[Problem]:
    """Return what is wrong with a campaign on a test bed that a recipe makes."""
    document = {"testbed": {"kind": "netns", "recipe": "router"}, "throughput": {}, **tables}
    file = campaign_from_dict(document, where="x.toml")
    try:
        complete(file, router or recipe())
    except ConfigError as error:
        return list(error.problems)
    return []


def with_hosts(side: str, family: str, **keys: Any) -> dict[str, Any]:
    return {side: {family: {"address": SIDES[side][family]["address"], **keys}}}


@pytest.mark.parametrize(
    ("side", "family", "asked", "address", "link", "range_"),
    [
        ("right", "ipv4", hosts("65400-65535", 2), "198.19.255.255", "198.19.0.0/16", "65400-65534"),
        ("left", "ipv4", hosts("65400-65535", 2), "198.18.255.255", "198.18.0.0/16", "65400-65534"),
        ("right", "ipv4", hosts("0-0", 2), "198.19.0.0", "198.19.0.0/16", None),
        ("right", "ipv6", hosts("0-0", 14), "2001:2:0:8000::", "2001:2:0:8000::/56", None),
    ],
)
def test_a_host_must_not_have_an_address_of_its_link(
    side: str, family: str, asked: dict[str, Any], address: str, link: str, range_: str | None
) -> None:
    (refusal,) = problems(with_hosts(side, family, hosts=asked))
    assert refusal.where == f"x.toml: {side}.{family}.hosts.range"
    assert address in refusal.what
    assert link in refusal.what
    assert refusal.fix == f'write range = "{range_}"' if range_ else "choose from" in refusal.fix


def test_the_range_that_would_do_leaves_out_the_gateway() -> None:
    for family, offset in (("ipv4", 2), ("ipv6", 14)):
        told = problems(with_hosts("right", family, hosts=hosts("0-65000", offset)))
        assert 'write range = "2-65000"' in {problem.fix for problem in told}
        assert problems(with_hosts("right", family, hosts=hosts("2-65000", offset))) == []


def test_every_problem_is_told_at_once() -> None:
    tables = {
        side: {
            family: {"address": addresses["address"], "hosts": hosts("0-65535", 2 if family == "ipv4" else 14)}
            for family, addresses in families.items()
        }
        for side, families in SIDES.items()
    }
    told = [problem for problem in problems(tables) if "of the link" in problem.what]
    assert sorted(problem.where.removeprefix("x.toml: ") for problem in told) == [
        *["left.ipv4.hosts.range"] * 2,
        "left.ipv6.hosts.range",
        *["right.ipv4.hosts.range"] * 2,
        "right.ipv6.hosts.range",
    ]
    assert {problem.fix for problem in told} == {'write range = "2-65534"', 'write range = "2-65535"'}


@pytest.mark.parametrize(
    ("address", "said"), [("198.19.255.255", "198.19.0.1 to 198.19.255.254"), ("198.19.0.0", "198.19.0.1 to")]
)
def test_the_testers_address_is_no_other(address: str, said: str) -> None:
    for keys in ({}, {"hosts": hosts("2-254", 2)}):
        (refusal,) = problems({"right": {"ipv4": {"address": address, **keys}}})
        assert refusal.where == "x.toml: right.ipv4.address"
        assert address in refusal.what
        assert said in refusal.fix


def test_the_longest_prefixes_have_no_such_addresses() -> None:
    """RFC 3021 and RFC 6164."""
    for link in ("198.19.0.0/31", "198.19.0.1/32", "2001:2::/127", "2001:2::1/128"):
        assert list(reserved_on(ip_network(link))) == []
    short = recipe({**NETWORKS, "right": ["198.19.0.0/31", "2001:2:0:8000::/127"]})
    ends = {"ipv4": {"address": "198.19.0.0"}, "ipv6": {"address": "2001:2:0:8000::"}}
    assert problems({"right": ends}, short) == []
    for link, addresses in (("192.0.2.4/30", ["192.0.2.4", "192.0.2.7"]), ("2001:db8::4/126", ["2001:db8::4"])):
        reserved = [str(entry.prefix.network_address) for entry in reserved_on(ip_network(link))]
        assert reserved == addresses


@pytest.mark.parametrize("role", ["gateway", "router"])
def test_gateway_and_router_are_hosts_of_the_link_as_well(role: str) -> None:
    ends = {"address": "198.19.65.2", "gateway": "198.19.1.1", "router": "198.19.1.10", role: "198.19.1.255"}
    right = {"networks": NETWORKS["right"], "address_mode": "nexthop", "ipv4": ends}
    left = {"networks": NETWORKS["left"], "ipv4": SIDES["left"]["ipv4"]}
    facts = {"name": "router", "description": "a router", "technology": "router44"}
    router = recipe_from_dict({**facts, "left": left, "right": right})
    (refusal,) = problems({}, router)
    assert refusal.where == f"x.toml: right.ipv4.{role}"
    assert "198.19.1.255 is the broadcast address of the link 198.19.1.0/24" in refusal.what


def test_behind_a_router_only_the_link_to_it_is_known() -> None:
    """A gateway forwards what may be a broadcast elsewhere (RFC 1812 section 5.3.5.2)."""

    def behind(range_: str, networks: int = 1) -> list[Problem]:
        ipv4 = {"address": "198.19.0.2", "router": "198.19.0.10", "hosts": hosts(range_, 2)}
        ipv6 = {"address": "2001:2:0:8001::2", "router": "2001:2:0:8000::10"}
        return problems(
            {
                "right": {"address_mode": "nexthop", "ipv4": ipv4, "ipv6": ipv6},
                "traffic": {"forward": {"destination_networks": networks}},
            }
        )

    assert behind("256-65535") == []
    (refusal,) = behind("200-300")
    assert "198.19.0.255" in refusal.what
    assert refusal.fix == 'write range = "200-254"'
    (refusal,) = behind("20-255", networks=256)
    assert "198.19.0.255" in refusal.what
    assert refusal.fix == 'write range = "20-254"'
    assert behind("20-254", networks=256) == []


def test_networks_of_one_link_share_its_broadcast_address() -> None:
    told = problems({**with_hosts("right", "ipv4", hosts=hosts("2-255", 2)), "traffic": {"destination_networks": 256}})
    assert [problem.where for problem in told] == ["x.toml: right.ipv4.hosts.range"]
    assert "198.19.255.255" in told[0].what
    fewer = {**with_hosts("right", "ipv4", hosts=hosts("2-255", 2)), "traffic": {"destination_networks": 255}}
    assert problems(fewer) == []


def test_a_mirrored_recipe_has_its_links_on_the_other_side() -> None:
    sides = {side: {"networks": NETWORKS[side], "ipv4": SIDES[side]["ipv4"]} for side in SIDES}
    facts = {"name": "nat", "description": "a NAT", "technology": "nat44", "pool": ["198.19.0.1"]}
    nat = recipe_from_dict({**facts, "commands": {"clear_state": "true"}, **sides})
    tables = {
        "gateway": {"inside": "right"},
        "connections": {"count": 10, "rate": 10},
        "left": {"ipv4": {"address": "198.19.0.2", "hosts": hosts("65000-65535", 2)}},
        "right": {"ipv4": {"address": "198.18.0.2", "hosts": hosts("65000-65535", 2)}},
    }
    told = {problem.where: problem.what for problem in problems(tables, nat)}
    assert set(told) == {"x.toml: left.ipv4.hosts.range", "x.toml: right.ipv4.hosts.range"}
    assert "198.19.255.255" in told["x.toml: left.ipv4.hosts.range"]
    assert "198.18.255.255" in told["x.toml: right.ipv4.hosts.range"]


PORTS: dict[str, Any] = {
    "gateway": {"technology": "router44"},
    "testbed": {"kind": "ports"},
    "left": {"port": "pci:1", "ipv4": SIDES["left"]["ipv4"]},
    "right": {"port": "pci:2", "ipv4": SIDES["right"]["ipv4"]},
    "throughput": {},
}


@pytest.mark.parametrize(
    ("address", "range_", "offset", "said", "fix"),
    [
        ("198.19.0.2", "57000-57400", 0, "224.0.0.0/4", 'write range = "57000-57343"'),
        ("198.19.0.2", "32500-32600", 0, "127.0.0.0/8", 'write range = "32500-32511"'),
        ("198.19.0.2", "43516-43518", 0, "169.254.0.0/16", 'write range = "43516-43517"'),
        ("198.255.255.255", "65535-65535", 0, "255.255.255.255", "choose a unicast address"),
        ("198.0.0.0", "0-9", 0, "0.0.0.0", 'write range = "1-9"'),
    ],
)
def test_no_host_anywhere(address: str, range_: str, offset: int, said: str, fix: str) -> None:
    right = {**PORTS["right"], "ipv4": {"address": address, "gateway": "198.19.0.1", "hosts": hosts(range_, offset)}}
    with pytest.raises(ConfigError) as caught:
        campaign_from_dict({**PORTS, "right": right}, where="x.toml")
    (refusal,) = caught.value.problems
    assert refusal.where == "x.toml: right.ipv4.hosts.range"
    assert said in refusal.what
    assert refusal.fix.startswith(fix)


def test_without_a_recipe_no_link_is_known() -> None:
    right = {**PORTS["right"], "ipv4": {**SIDES["right"]["ipv4"], "hosts": hosts("2-65535", 2)}}
    campaign_from_dict({**PORTS, "right": right}, where="x.toml")


def test_the_limited_broadcast_address_is_no_value() -> None:
    right = {**PORTS["right"], "ipv4": {"address": "255.255.255.255", "gateway": "198.19.0.1"}}
    with pytest.raises(ConfigError, match=r"right\.ipv4\.address: 255\.255\.255\.255 is not a unicast address"):
        campaign_from_dict({**PORTS, "right": right})


@pytest.mark.parametrize(
    "text",
    ["0.0.0.0", "127.9.9.9", "169.254.1.1", "239.1.2.3", "255.255.255.255", "::", "::1", "fe80::1", "ff02::1"],
)
def test_addresses_reserved_everywhere(text: str) -> None:
    address = ip_address(text)
    assert any(address in entry.prefix for entry in EVERYWHERE)


@pytest.mark.parametrize("text", ["0.0.0.1", "223.255.255.255", "240.0.0.1", "198.18.0.0", "2001:2::", "fec0::1"])
def test_addresses_that_a_network_decides_about(text: str) -> None:
    assert not any(ip_address(text) in entry.prefix for entry in EVERYWHERE)
