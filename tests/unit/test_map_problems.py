"""Every contradiction of rules is told at once, with its key and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemark.map_domains.domain import MapDomain
from gatemark.map_domains.problems import domain_problems

PAPER = MapDomain(
    rule_ipv6=IPv6Network("2001:db8:ce::/51"),
    rule_ipv4=IPv4Network("192.0.2.0/24"),
    ea_bits=13,
    dmr=IPv6Network("64:ff9b::/96"),
    psid_offset=0,
)
SINGLE = replace(
    PAPER,
    rule_ipv6=IPv6Network("2001:db8:12:3400::/56"),
    rule_ipv4=IPv4Network("192.0.2.18/32"),
    ea_bits=0,
    psid_offset=6,
    psid_bits=8,
    psid=0x34,
)
OTHER6 = IPv6Network("2001:db8:cf::/51")
OTHER4 = IPv4Network("198.51.100.0/24")


def changed(domain: MapDomain, **values: Any) -> MapDomain:
    networks: dict[str, Callable[[Any], Any]] = {"rule_ipv6": IPv6Network, "rule_ipv4": IPv4Network, "dmr": IPv6Network}
    return replace(domain, **{key: networks.get(key, lambda value: value)(value) for key, value in values.items()})


def places(*domains: MapDomain, **options: Any) -> dict[str, str]:
    """What is wrong, by place."""
    problems = list(domain_problems(domains, **options))
    assert all(problem.fix for problem in problems)
    assert len({(problem.where, problem.what) for problem in problems}) == len(problems)
    return {problem.where: problem.what for problem in problems}


@pytest.mark.parametrize(
    ("values", "key", "what"),
    [
        ({"ea_bits": 49}, "ea_bits", "49 is not between 0 and 48"),
        ({"ea_bits": -1}, "ea_bits", "-1 is not between 0 and 48"),
        ({"ea_bits": 25}, "ea_bits", "25 behind 192.0.2.0/24 leaves 17 bits for the PSID, but a port has 16"),
        ({"rule_ipv6": "2001:db8:ce::/116"}, "ea_bits", "13 behind 2001:db8:ce::/116 needs 129 of 128 bits"),
        ({"psid_offset": 16}, "psid_offset", "16 is not between 0 and 15"),
        ({"psid_offset": 12}, "psid_offset", "12 and a PSID of 5 bits are more than the 16 bits of a port"),
        ({"psid_bits": 5}, "psid_bits", "is not allowed with ea_bits = 13, from which the PSID is taken"),
        ({"psid": 5}, "psid", "is not allowed with ea_bits = 13, from which the PSID is taken"),
        ({"dmr": "64:ff9b::/80"}, "dmr", "64:ff9b::/80 has length 80"),
        ({"dmr": "2001:db8:ffff:0:100::/96"}, "dmr", "2001:db8:ffff:0:100::/96 has bits 64 to 71 set"),
        (
            {"dmr": "2001:db8::/32"},
            "dmr",
            "2001:db8::/32 overlaps 2001:db8:ce::/51, the IPv6 prefix of map.domains[0]",
        ),
        (
            {"dmr": "2001:db8:ce::/64"},
            "dmr",
            "2001:db8:ce::/64 overlaps 2001:db8:ce::/51, the IPv6 prefix of map.domains[0]",
        ),
        (
            {"ea_bits": 6, "rule_ipv4": "192.0.2.18/32", "except_suffixes": True},
            "exclude",
            "first_and_last_suffix leaves no customer edge with 0 bits of IPv4 suffix",
        ),
        (
            {"rule_ipv4": "192.0.2.18/31", "except_suffixes": True},
            "exclude",
            "first_and_last_suffix leaves no customer edge with 1 bits of IPv4 suffix",
        ),
        (
            {"ea_bits": 8, "except_system_ports": True},
            "exclude",
            "system_ports does not apply to a rule without a PSID",
        ),
        (
            {"psid_offset": 6, "except_system_ports": True},
            "exclude",
            "system_ports is not allowed with psid_offset = 6, where no PSID alone has them",
        ),
        ({"weight": 0}, "weight", "0 is not a valid weight"),
    ],
)
def test_a_rule_that_contradicts_itself(values: dict[str, Any], key: str, what: str) -> None:
    assert places(changed(PAPER, **values)) == {f"map.domains[0].{key}": what}


@pytest.mark.parametrize(
    ("values", "key", "what"),
    [
        ({"psid": 256}, "psid", "256 does not fit into 8 bits"),
        ({"psid_bits": None}, "psid", "52 does not fit into 0 bits"),
        ({"psid_bits": 17, "psid_offset": 0}, "psid_bits", "17 is more than the 16 bits of a port"),
        ({"psid_bits": 11}, "psid_offset", "6 and a PSID of 11 bits are more than the 16 bits of a port"),
        ({"psid_bits": -1}, "psid_bits", "-1 is below 0"),
        (
            {"rule_ipv4": "192.0.2.16/28"},
            "psid_bits",
            "is set, but 192.0.2.16/28 is not a single address, and only an address is shared",
        ),
    ],
)
def test_a_rule_without_ea_bits_that_contradicts_itself(values: dict[str, Any], key: str, what: str) -> None:
    assert places(changed(SINGLE, **values)) == {f"map.domains[0].{key}": what}


@pytest.mark.parametrize(
    "domain",
    [
        PAPER,
        SINGLE,
        changed(SINGLE, psid_bits=None, psid=0),
        changed(PAPER, ea_bits=24),
        changed(PAPER, ea_bits=8),
        changed(PAPER, ea_bits=6),
        changed(PAPER, psid_offset=11),
        changed(PAPER, rule_ipv6="2001:db8:ce::/115"),
        changed(PAPER, rule_ipv4="0.0.0.0/0", ea_bits=48),
        changed(PAPER, except_system_ports=True, except_suffixes=True),
        *(changed(PAPER, dmr=f"2001:db9::/{length}") for length in (32, 40, 48, 56, 64, 96)),
    ],
)
def test_rules_without_contradiction(domain: MapDomain) -> None:
    assert places(domain, edges=1) == places(domain) == {}


def test_everything_is_told_at_once() -> None:
    bad = changed(PAPER, ea_bits=49, psid_offset=16, psid_bits=5, dmr="64:ff9b::/80", weight=0)
    crowded = changed(SINGLE, rule_ipv6=OTHER6)
    assert set(places(bad, SINGLE, crowded)) == {
        "map.domains[0].ea_bits",
        "map.domains[0].psid_offset",
        "map.domains[0].psid_bits",
        "map.domains[0].dmr",
        "map.domains[0].weight",
        "map.domains[2].psid",
    }


def test_there_must_be_a_domain() -> None:
    assert places() == {"map": "has no rules"}


def test_there_are_not_too_many_domains() -> None:
    rules = [
        changed(PAPER, rule_ipv6=f"2001:db8:{number:x}::/51", rule_ipv4=f"10.{number // 256}.{number % 256}.0/24")
        for number in range(1025)
    ]
    assert places(*rules) == {"map.domains": "has 1025 rules"}
    assert places(*rules[1:], edges=1024 * 8192) == {}


def test_two_rules_of_the_same_prefix() -> None:
    assert places(PAPER, changed(PAPER, rule_ipv4=OTHER4)) == {
        "map.domains[1].ipv6": "2001:db8:ce::/51 is the IPv6 prefix of map.domains[0] as well"
    }
    assert places(PAPER, changed(PAPER, rule_ipv6=OTHER6)) == {
        "map.domains[1].ipv4": (
            "192.0.2.0/24 is the IPv4 prefix of map.domains[0] as well: two customer edges would be the same"
        )
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"psid": 0x35}, {}),
        ({}, {"psid": "52 of 192.0.2.18 is the PSID of map.domains[0] as well"}),
        (
            {"psid_offset": 4, "psid": 0x35},
            {"psid_offset": "4 is not the 6 of map.domains[0], which shares 192.0.2.18: their port sets would overlap"},
        ),
        (
            {"psid_bits": 6, "psid": 0x35},
            {"psid_bits": "6 is not the 8 of map.domains[0], which shares 192.0.2.18: their port sets would overlap"},
        ),
        (
            {"psid_bits": None, "psid": 0},
            {
                "ipv4": "192.0.2.18/32 is the IPv4 prefix of map.domains[0] as well: two customer edges would be the"
                " same"
            },
        ),
    ],
)
def test_rules_that_share_an_address(values: dict[str, Any], expected: dict[str, str]) -> None:
    other = changed(SINGLE, rule_ipv6="2001:db8:12:3500::/56", **values)
    assert places(SINGLE, other) == {f"map.domains[1].{key}": what for key, what in expected.items()}


def test_a_default_mapping_rule_inside_another_domain() -> None:
    other = changed(PAPER, rule_ipv6="2001:db8:cf::/51", rule_ipv4="198.51.100.0/24", dmr="2001:db8:ce:1::/64")
    assert places(PAPER, other) == {
        "map.domains[1].dmr": "2001:db8:ce:1::/64 overlaps 2001:db8:ce::/51, the IPv6 prefix of map.domains[0]"
    }


def test_the_weights_are_limited_in_all() -> None:
    other = changed(PAPER, rule_ipv6=OTHER6, rule_ipv4=OTHER4, weight=65535)
    assert places(PAPER, other, edges=10) == {}
    assert places(changed(PAPER, weight=2), other) == {"map.domains": "the weights add up to 65537"}


def test_more_customer_edges_than_there_are() -> None:
    other = changed(PAPER, rule_ipv6=OTHER6, rule_ipv4=OTHER4, ea_bits=8)
    assert places(PAPER, edges=8192) == {}
    assert places(PAPER, edges=8193) == {
        "map.edges": "8193 are too many: 8193 are to be in map.domains[0], which has 8192"
    }
    assert places(PAPER, other, edges=513) == {}
    (problem,) = domain_problems([PAPER, other], edges=514)
    assert problem.what == "514 are too many: 257 are to be in map.domains[1], which has 256"
    assert problem.fix == "write at most 513, or give it more EA bits or less weight"
    excluded = changed(PAPER, except_suffixes=True)
    assert places(excluded, edges=254 * 32) == {}
    assert list(places(excluded, edges=254 * 32 + 1)) == ["map.edges"]


def test_a_rule_without_ea_bits_has_a_single_customer_edge() -> None:
    assert places(SINGLE, edges=1) == {}
    assert places(SINGLE, edges=2) == {
        "map.domains[0].ea_bits": ("is 0, so the rule has a single customer edge, but 2 of 2 are to be in this domain")
    }


NESTED = changed(PAPER, rule_ipv6="2001:db8:ce:1f00::/56", rule_ipv4="192.0.2.248/29", ea_bits=8)
"""Inside of the paper's rule: its last 8 addresses, its last 256 EA values."""


def test_nested_rules_have_the_customer_edges_that_the_outer_one_lacks() -> None:
    assert places(PAPER, NESTED, edges=512) == {}
    assert places(changed(PAPER, weight=31), NESTED, edges=256 * 32) == {}
    assert places(changed(PAPER, weight=32), NESTED, edges=256 * 32) == {
        "map.edges": "8192 are too many: 7944 are to be in map.domains[0], which has 7936"
    }


def test_a_rule_whose_customer_edges_are_all_of_longer_rules() -> None:
    halves = [changed(PAPER, rule_ipv6=f"2001:db8:{low}::/51", rule_ipv4=f"192.0.2.{low}/25") for low in (0, 128)]
    assert places(PAPER, *halves) == {"map.domains[0]": "has only customer edges whose addresses longer rules hold"}


def test_a_nested_prefix_that_holds_no_map_address_is_allowed() -> None:
    # behind the EA bits a MAP address has zeros up to bit 63
    outer = changed(PAPER, rule_ipv6="2001:db8::/36", ea_bits=16)
    inner = changed(PAPER, rule_ipv6="2001:db8:12:3456::/64", rule_ipv4="203.0.113.0/24", ea_bits=8)
    assert places(outer, inner, edges=100) == {}


@given(
    bits=st.integers(min_value=-5, max_value=200),
    offset=st.integers(min_value=-5, max_value=40),
    length4=st.integers(min_value=0, max_value=32),
    length6=st.integers(min_value=0, max_value=128),
    psid_bits=st.none() | st.integers(min_value=-5, max_value=40),
    psid=st.integers(min_value=-5, max_value=1 << 20),
    suffixes=st.booleans(),
    system_ports=st.booleans(),
    weight=st.integers(min_value=-2, max_value=70000),
    edges=st.none() | st.integers(min_value=1, max_value=1 << 40),
)
def test_no_values_break_the_checks(
    bits: int, offset: int, length4: int, length6: int, psid_bits: int | None, psid: int,
    suffixes: bool, system_ports: bool, weight: int, edges: int | None,
) -> None:  # fmt: skip
    domain = MapDomain(
        rule_ipv6=IPv6Network((0x20010DB8 << 96, length6), strict=False),
        rule_ipv4=IPv4Network((0xC0000200, length4), strict=False),
        ea_bits=bits,
        psid_offset=offset,
        psid_bits=psid_bits,
        psid=psid,
        dmr=IPv6Network("64:ff9b::/96"),
        weight=weight,
        except_suffixes=suffixes,
        except_system_ports=system_ports,
    )
    problems = list(domain_problems([domain, SINGLE], edges=edges))
    if not any(problem.where.startswith("map.domains[0].") for problem in problems):
        edge = domain.edge(domain.edge_count - 1)
        assert domain.ea_in(edge.address) == edge.ea
        assert edge.ports.port(edge.ports.count - 1) < 1 << 16
