"""A MAP-T customer edge as gateway: what a campaign file says of it, what is refused, asked and planned."""

from __future__ import annotations

import copy
from ipaddress import IPv4Network, IPv6Address, IPv6Network
from pathlib import Path
from typing import Any

import pytest

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.cli.export import GatewayName, export
from gatemark.config.model import Campaign
from gatemark.config.stateful import count_max, pool_endpoints, searched_max, sources_with_ports, storable_max
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.map_domains.describe import describe_gateway
from gatemark.map_domains.domain import MapDomain
from gatemark.map_domains.port_set import PortSet
from gatemark.results.toml_text import to_toml
from gatemark.trial.connection_request import establish_request, use_request, validation_request

BASE: dict[str, Any] = {
    "gateway": {
        "technology": "map_t_ce",
        "control": {"clear_state": "conntrack -F", "tear_down": "conntrack -F", "count_connections": "conntrack -C"},
    },
    "testbed": {"kind": "ports"},
    "left": {"port": "af_packet:a", "ipv4": {"address": "10.0.0.2", "gateway": "10.0.0.1"}},
    "right": {
        "port": "af_packet:b",
        "address_mode": "nexthop",
        "ipv6": {"address": "2001:db8:ffff::c633:6402", "router": "2001:2::2", "gateway": "2001:2::1"},
    },
    "map": {
        "end_user_prefix": "2001:db8:12:3400::/56",
        "domains": [{"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16, "dmr": "2001:db8:ffff::/96"}],
    },
    "connections": {"count": [200]},
    "connection_establishment_rate": {},
}
"""The customer edge of RFC 7597 appendix A, example 1: 252 ports."""


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the base with values set at key paths; None removes a key."""
    document = copy.deepcopy(BASE)
    for path, value in changes.items():
        *tables, key = path.split(".")
        place: Any = document
        for table in tables:
            place = place[int(table)] if table.isdigit() else place.setdefault(table, {})
        if value is None:
            del place[key]
        else:
            place[int(key) if key.isdigit() else key] = value
    return document


def campaign(changes: dict[str, Any] | None = None) -> Campaign:
    return complete_campaign(campaign_from_dict(changed(changes or {})))


def problems(changes: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as error:
        campaign(changes)
    return [f"{problem.where.removeprefix('campaign: ')}: {problem.what}" for problem in error.value.problems]


def test_the_file_that_a_result_folder_keeps_is_the_same_campaign() -> None:
    complete = campaign()
    assert campaign_from_dict(complete.to_document()).to_document() == complete.to_document()
    assert "order" in complete.to_document()["map"], "a completed campaign has its defaults"


def test_its_address_and_its_ports_follow_from_rule_and_prefix() -> None:
    edge = campaign().edges.gateway
    assert edge is not None
    assert edge.address == IPv6Address("2001:db8:12:3400:0:c000:212:34")
    assert campaign().forwarding.pool == (IPv6Network("2001:db8:12:3400:0:c000:212:34/128"),)
    assert campaign().forwarding.prefix == IPv6Network("2001:db8:ffff::/96")
    assert pool_endpoints(campaign()) == 252
    assert campaign().edges.emulated is None
    assert campaign().edges.domain_count == 0


ALONE: dict[str, Any] = {
    "map.end_user_prefix": None,
    "map.domains.0": {
        "ipv6": "2001:db8:12:3400::/56", "ipv4": "192.0.2.18/32", "ea_bits": 0, "dmr": "2001:db8:ffff::/96",
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "address", "ports"),
    [
        (ALONE, "2001:db8:12:3400:0:c000:212:0", 64512),
        (ALONE | {"gateway.pool_ports": "1-65535"}, "2001:db8:12:3400:0:c000:212:0", 65535),
        (ALONE | {"map.domains.0.psid_bits": 8, "map.domains.0.psid": 0x34}, "2001:db8:12:3400:0:c000:212:34", 252),
        ({"map.domains.0.psid_offset": 0}, "2001:db8:12:3400:0:c000:212:34", 256),
        ({"map.domains.0.psid_offset": 0, "map.end_user_prefix": "2001:db8:12::/56"}, "2001:db8:12::c000:212:0", 255),
        ({"gateway.pool_ports": "1024-32767", "connections.count": [124]}, "2001:db8:12:3400:0:c000:212:34", 124),
    ],
)
def test_other_rules(changes: dict[str, Any], address: str, ports: int) -> None:
    edge = campaign(changes).edges.gateway
    assert edge is not None
    assert edge.address == IPv6Address(address)
    assert pool_endpoints(campaign(changes)) == ports


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"map": None}, "map: is missing: map_t_ce needs its rules"),
        ({"map.end_user_prefix": None}, "map.end_user_prefix: is missing: the rule has 65536 customer edges"),
        ({"map.end_user_prefix": "2001:db8:12:3400::/57"}, "map.end_user_prefix: 2001:db8:12:3400::/57 has length 57"),
        ({"map.end_user_prefix": "2001:db9:12:3400::/56"}, "map.end_user_prefix: 2001:db9:12:3400::/56 is not within"),
        ({"map.edges": 10}, "map.edges: does not apply to map_t_ce, which is the only customer edge"),
        ({"map.order": "increasing"}, "map.order: does not apply to map_t_ce"),
        ({"map.domains.0.weight": 2}, "map.domains[0].weight: does not apply to map_t_ce"),
        ({"gateway.pool": ["2001:2::1/128"]}, "gateway.pool: does not apply to map_t_ce, which has no pool"),
        ({"gateway.prefix": "2001:db8:ffff::/96"}, "gateway.prefix: does not apply to map_t_ce"),
        (
            {"map.domains.0.ea_bits": 4, "map.end_user_prefix": "2001:db8:10::/44"},
            "map.domains[0]: gives the gateway 192.0.2.16/28",
        ),
        ({"left.ipv4": {"address": "192.0.2.7", "gateway": "10.0.0.1"}}, "left.ipv4: 192.0.2.7 meets 192.0.2.0/24"),
        (
            {"right.ipv6.address": "2001:db8:ffff::c000:207"},
            "right.ipv6: 2001:db8:ffff::c000:207 meets 2001:db8:ffff::c000:200/120, the rule IPv4 prefix under the dmr",
        ),
        (
            {"right.ipv6.address": "2001:2::9"},
            "right.ipv6: host 2001:2::9 has no representation in the other family: neither gateway.eam nor"
            " map.domains[0].dmr covers it",
        ),
        ({"connections.count": [253]}, "map: 2001:db8:12:3400:0:c000:212:34 has a set of 252 ports, but 253"),
        (
            {
                "connections.count": [600],
                "connections.source_ports": "1024-1323",
                "gateway.mapping": "endpoint_independent",
            },
            "map: 2001:db8:12:3400:0:c000:212:34 has a set of 252 ports, but 600 connections have up to 300 source",
        ),
        ({"conformity": {"cases": ["hairpin"]}}, "conformity.cases: hairpin does not apply here: map_t_ce has no"),
        ({"conformity": {}, "right.ipv6.address": "2001:2::9"}, "right.ipv6: host 2001:2::9 has no representation"),
        (
            {"connection_tracking_table_capacity": {"start": 253, "maximum": 254}},
            "connection_tracking_table_capacity.start: is 253, but four-tuples and public endpoints allow",
        ),
    ],
)  # fmt: skip
def test_one_mistake_is_told_once(changes: dict[str, Any], expected: str) -> None:
    (only,) = problems(changes)
    assert only.startswith(expected)


@pytest.mark.parametrize("gateway", ["jool", "tayga", "vpp"])
def test_its_rule_is_not_exported_as_a_relay(gateway: GatewayName, tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(to_toml(BASE), encoding="utf-8")
    with pytest.raises(ConfigError, match="export knows no"):
        export(gateway, file)


def test_two_rules_are_one_too_many() -> None:
    other = {"ipv6": "2001:db9::/40", "ipv4": "203.0.113.0/24", "ea_bits": 16, "dmr": "2001:db8:ffff::/96"}
    told = problems({"map.domains": [*BASE["map"]["domains"], other]})
    assert told[0] == "map.domains: has 2 rules, but the gateway has one, that of its own domain"


def test_what_is_of_the_gateway_alone_is_refused_elsewhere() -> None:
    relay = {
        "gateway": {"technology": "map_t_br"},
        "testbed": {"kind": "ports"},
        "left": {"port": "af_packet:a", "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"}},
        "right": {"port": "af_packet:b", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
        "map": BASE["map"],
        "frame_loss": {"rates": [1000]},
    }
    with pytest.raises(ConfigError, match=r"map\.end_user_prefix: does not apply to map_t_br"):
        campaign_from_dict(relay)


def test_all_mistakes_are_told_at_once() -> None:
    told = problems({"map.edges": 10, "map.end_user_prefix": None, "gateway.pool": ["2001:2::1/128"]})
    assert sorted(problem.partition(":")[0] for problem in told) == ["gateway.pool", "map.edges", "map.end_user_prefix"]


def test_connections_are_as_many_as_ports_for_each_destination_or_in_all() -> None:
    """RFC 4787 section 4.1: an endpoint-independent mapping is that of a source endpoint, whatever the destination."""
    several = {
        "connections.count": [500],
        "connections.source_ports": "1024-1275",
        "connections.destination_ports": "1-2",
    }
    for mapping in ("endpoint_dependent", "endpoint_independent"):
        assert sources_with_ports(campaign(several | {"gateway.mapping": mapping}), 500) in (250, 252)
    dependent = several | {"connections.source_ports": "1024-1523", "gateway.mapping": "endpoint_dependent"}
    assert sources_with_ports(campaign(dependent), 500) == 250
    (only,) = problems(dependent | {"gateway.mapping": "endpoint_independent"})
    assert "500 connections have up to 500 source endpoints, each with a port of its own" in only


def test_the_capacity_is_searched_beyond_the_ports() -> None:
    one_destination = campaign({"connections.destination_ports": "1"})
    assert count_max(one_destination) == 252
    assert searched_max(one_destination) == 40000
    assert [storable_max(campaign(), count) for count in (1, 40_000, 40_001)] == [252, 252, 504]


def test_the_engine_is_told_the_rule_in_every_phase() -> None:
    edge = {
        "ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16, "psid_offset": 6, "psid_bits": None,
        "psid": None, "dmr": "2001:db8:ffff::/96", "ea": 0x1234,
    }  # fmt: skip
    cell = cells_of(campaign())[0]
    same: dict[str, Any] = {"connections": 200, "trial_number": 1}
    bodies: tuple[Any, ...] = (
        establish_request(campaign(), cell, connections_per_second=100, **same),
        use_request(campaign(), cell, frames_per_second=100, duration_ns=10**9, **same),
        validation_request(campaign(), cell, connections_per_second=100, **same),
    )
    for body in bodies:
        assert body["connections"]["edge"] == edge
        assert body["connections"]["pool"] == ["2001:db8:12:3400:0:c000:212:34/128"]
        (prefix,) = {direction["foreground"]["translation"]["prefix"] for direction in body["directions"]}
        assert prefix == "2001:db8:ffff::/96"


def test_the_plan_says_what_follows_from_the_rule() -> None:
    edge = campaign().edges.gateway
    assert edge is not None
    described = describe_gateway(edge, 252)
    assert list(described.lines()) == [
        "2001:db8::/40, 192.0.2.0/24, default mapping rule 2001:db8:ffff::/96: the gateway has a shared address",
        "EA bits 16 (o): IPv4 suffix 8 (p), PSID 8 (q); bits of a port: offset 6 (a), PSID 8 (k), 2 behind it (m)",
        "2001:db8:12:3400::/56, EA 4660: 2001:db8:12:3400:0:c000:212:34, 192.0.2.18 PSID 52",
        "252 ports: 1232-1235 .. 64720-64723 (63 ranges of 4)",
        "252 source endpoints at most with endpoint-independent mapping,"
        " 252 connections to each destination with endpoint-dependent mapping",
    ]
    assert described.model_dump()["edge"]["psid"] == 0x34


@pytest.mark.parametrize(("first", "last"), [(0, 65535), (1, 65535), (1024, 32767), (1233, 1234), (1236, 2000), (5, 4)])
def test_ports_within_limits_are_counted_as_they_are(first: int, last: int) -> None:
    for ports in (PortSet(6, 8, 0x34), PortSet(0, 4, 0), PortSet(0, 0), PortSet(4, 12, 0xABC)):
        assert ports.count_within(first, last) == sum(1 for port in range(first, last + 1) if port in ports)


@pytest.mark.parametrize("length", [32, 40, 48, 56, 64, 96])
def test_servers_are_no_customers_whatever_the_prefix(length: int) -> None:
    """Both end in the same octet of the rule's prefix: one inside, one outside."""
    from gatemark.config.map_check import _embedded
    from gatemark.config.map_tables import MapDomainModel
    from gatemark.embedded_ipv4 import embed_ipv4

    dmr = IPv6Network((int(IPv6Address("2001:db8::")), length))
    domain = MapDomainModel.model_validate(
        {"ipv6": "2001:db9::/40", "ipv4": "192.0.2.0/23", "ea_bits": 16, "dmr": str(dmr)}
    )
    ((_, prefix),) = _embedded(domain.rule)
    rule = IPv4Network("192.0.2.0/23")
    for address, inside in ((rule[0], True), (rule[-1], True), (rule[0] - 1, False), (rule[-1] + 1, False)):
        assert (embed_ipv4(address, dmr) in prefix) == inside


def test_a_rule_is_what_the_model_says() -> None:
    edge = campaign().edges.gateway
    assert edge is not None
    assert edge.domain == MapDomain(
        rule_ipv6=IPv6Network("2001:db8::/40"),
        rule_ipv4=IPv4Network("192.0.2.0/24"),
        ea_bits=16,
        dmr=IPv6Network("2001:db8:ffff::/96"),
    )
