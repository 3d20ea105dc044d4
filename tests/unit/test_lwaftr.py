"""Campaigns of an lwAFTR: its binding table, what is asked of the engine, and what a file must not say (RFC 7596)."""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import Any

import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.config.map_tables import MapModel
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.map_domains.describe import describe_domains
from gatemark.map_domains.relay import known_edges
from gatemark.map_domains.rule_export import snabb_bindings, vpp_softwires
from gatemark.trial.request import trial_request

PART = {"ipv6": "2001:db8:1:2::/64", "ipv4": "192.0.2.0/24", "psid_bits": 6}
RELAY = IPv6Address("2001:db8:ffff::1")
RULE = {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16}


def lwaftr(technology: str = "lwaftr", **table: Any) -> Campaign:
    """Return the complete campaign with this table `map`."""
    document = {
        "gateway": {"technology": technology, "tunnel": {"address": str(RELAY), "hop_limit": 64}},
        "testbed": {"kind": "ports"},
        "left": {"port": "af_packet:a", "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"}, "mtu": 1540},
        "right": {"port": "af_packet:b", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
        "map": table,
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
        "frame_loss": {"rates": [1000]},
    }
    return complete_campaign(campaign_from_dict(document))


def problems_of(technology: str = "lwaftr", **table: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        lwaftr(technology, **table)
    assert all(problem.fix for problem in caught.value.problems)
    return {problem.where.removeprefix("campaign: "): problem.what for problem in caught.value.problems}


def test_the_engine_is_asked_for_softwires() -> None:
    campaign = lwaftr(softwires=[{**PART, "weight": 2, "exclude": "system_ports"}], edges=1000)
    body: Any = trial_request(
        campaign, cells_of(campaign)[0], frames_per_second=1000, duration_ns=10**9, trial_number=1
    )
    forward, reverse = (one_way["foreground"] for one_way in body["directions"])
    assert forward["source"] == reverse["destination"]
    assert forward["source"]["edges"]["domains"] == [
        {
            "ipv6": "2001:db8:1:2::/64", "ipv4": "192.0.2.0/24", "ea_bits": 14, "psid_offset": 0, "psid_bits": None,
            "psid": None, "dmr": None, "weight": 2, "in_identifier": True, "except_suffixes": False,
            "except_system_ports": True,
        }
    ]  # fmt: skip
    assert forward["source_tunnel"]["gateway"] == "2001:db8:ffff::1"


def test_the_number_of_softwires_follows_from_addresses_and_psids() -> None:
    table = MapModel.model_validate({"softwires": [PART, {**PART, "ipv6": "2001:db8::/64", "ipv4": "198.51.100.1/32"}]})
    assert [rule.edge_count for rule in table.rules] == [16384, 64]
    assert table.edge_count == 129 and table.key == "map.softwires"
    (rule,) = MapModel.model_validate({"softwires": [{**PART, "exclude": "system_ports"}]}).rules
    assert (rule.edge_count, rule.edge(0).psid, str(rule.edge(0).address)) == (16128, 1, "2001:db8:1:2:0:c000:200:1")
    assert rule.edge(0).end_user_prefix == rule.rule_ipv6


def test_a_plan_names_softwires_by_their_numbers() -> None:
    rules = MapModel.model_validate({"softwires": [PART]}).whole_rules
    (described,) = describe_domains(rules, 100, "increasing")
    lines = list(described.lines())
    assert lines[1].startswith("bits of a softwire's number 14: IPv4 suffix 8 (p), PSID 6 (q)")
    assert lines[-1] == "highest softwire 99: 2001:db8:1:2:0:c000:201:23, 192.0.2.1 PSID 35, ports 35840-36863"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"ipv6": "2001:db8::/56"}, {"map.softwires[0].ipv6": "2001:db8::/56 has length 56"}),
        ({"psid_bits": 17}, {"map.softwires[0].psid_bits": "17 is not between 0 and 16"}),
        ({"psid_bits": -1}, {"map.softwires[0].psid_bits": "-1 is not between 0 and 16"}),
        ({"psid_offset": 11}, {"map.softwires[0].psid_offset": "11 and a PSID of 6 bits are more than"}),
        ({"psid_bits": 0, "exclude": "system_ports"}, {"map.softwires[0].exclude": "does not apply to softwires"}),
        ({"ipv4": "198.19.0.0/24"}, {"right.ipv4": "the IPv4 prefix of map.softwires[0]"}),
        ({"ipv6": "2001:2::/64"}, {"left.ipv6": "the IPv6 prefix of map.softwires[0]"}),
    ],
)
def test_a_part_that_contradicts_itself_or_an_address(part: dict[str, Any], expected: dict[str, str]) -> None:
    problems = problems_of(softwires=[{**PART, **part}])
    for place, words in expected.items():
        assert words in problems[place]


def test_two_parts_need_prefixes_of_their_own() -> None:
    problems = problems_of(softwires=[PART, PART], edges=100_000)
    assert problems["map.softwires[1].ipv6"] == "2001:db8:1:2::/64 is the IPv6 prefix of map.softwires[0] as well"
    assert "the IPv4 prefix of map.softwires[0]" in problems["map.softwires[1].ipv4"]
    assert "to be in map.softwires[1], which has 16384" in problems["map.edges"]


def test_a_gateway_has_rules_or_bindings() -> None:
    assert "together with map.domains" in problems_of(softwires=[PART], domains=[RULE])["map.softwires"]
    assert problems_of(domains=[RULE]) == {"map.domains": "does not apply to lwaftr, which has no MAP rules"}
    assert problems_of("map_e_br", softwires=[PART]) == {
        "map.softwires": "does not apply to map_e_br, which has no softwires"
    }
    assert problems_of(edges=5) == {"map": "has no rules"}


@pytest.mark.parametrize(
    ("part", "lines"),
    [
        (
            {**PART, "ipv4": "192.0.2.0/31", "psid_bits": 1, "psid_offset": 4},
            [
                "map add domain ip4-pfx 192.0.2.0/32 ip6-pfx ::/0 ip6-src 2001:db8:ffff::1"
                " ea-bits-len 0 psid-offset 4 psid-len 1",
                "map add rule index 0 psid 0 ip6-dst 2001:db8:1:2:0:c000:200:0",
                "map add rule index 0 psid 1 ip6-dst 2001:db8:1:2:0:c000:200:1",
                "map add domain ip4-pfx 192.0.2.1/32 ip6-pfx ::/0 ip6-src 2001:db8:ffff::1"
                " ea-bits-len 0 psid-offset 4 psid-len 1",
                "map add rule index 1 psid 0 ip6-dst 2001:db8:1:2:0:c000:201:0",
                "map add rule index 1 psid 1 ip6-dst 2001:db8:1:2:0:c000:201:1",
            ],
        ),
        (
            {**PART, "ipv4": "192.0.2.9/32", "psid_bits": 0},
            [
                "map add domain ip4-pfx 192.0.2.9/32 ip6-pfx 2001:db8:1:2:0:c000:209:0/128 ip6-src 2001:db8:ffff::1"
                " ea-bits-len 0 psid-offset 0 psid-len 0",
            ],
        ),
    ],
)
def test_bindings_for_vpp(part: dict[str, Any], lines: list[str]) -> None:
    """An address is a domain of its own, and each PSID a rule of it."""
    edges = list(known_edges(MapModel.model_validate({"softwires": [part]}).whole_rules, 1, "pseudorandom"))
    commands = vpp_softwires(edges, relay=RELAY, interfaces=("host-left",))
    assert commands.splitlines() == [*lines, "map interface host-left"]


def test_bindings_for_snabb() -> None:
    (rule,) = MapModel.model_validate({"softwires": [{**PART, "psid_offset": 2}]}).whole_rules
    assert " ".join(snabb_bindings([rule.edge(0x52)], relay=RELAY).split()) == (
        "binding-table { softwire { ipv4 192.0.2.1; psid 18; b4-ipv6 2001:db8:1:2:0:c000:201:12;"
        " br-address 2001:db8:ffff::1; port-set { psid-length 6; reserved-ports-bit-count 2; } } }"
    )
