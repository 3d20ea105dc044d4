"""Addresses of packets outside the networks that are kept for benchmarks are deviations (RFC 2544 appendix C.2.2)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit import test_aftr, test_b4, test_plan, test_sixrd, test_stateful_plan, test_tunnels

from gatemark.campaign.deviations import deviations
from gatemark.config.model import Campaign


def listed(campaign: Campaign) -> str:
    """Return the addresses that the deviation lists; nothing without one."""
    sentences = (deviation.sentence for deviation in deviations(campaign))
    lists = [sentence.partition(" are used: ")[2] for sentence in sentences if "Addresses outside" in sentence]
    return lists[0].partition(" (RFC")[0] if lists else ""


@pytest.mark.parametrize(
    ("tunnel", "expected"),
    [
        ({}, "2001:db8::/32"),
        ({"address": "192.0.2.1"}, "192.0.2.1, 2001:db8::/32"),
        ({"prefix": "2001:2:0:4000::/50", "ipv4_mask_length": 18}, ""),
    ],
)
def test_hosts_inside_and_the_relay_of_6rd(tunnel: dict[str, Any], expected: str) -> None:
    edge = {"address": "198.18.0.2", "gateway": "198.18.0.1"}
    assert (
        listed(test_sixrd.relay(gateway={"tunnel": {**test_sixrd.TUNNEL, **tunnel}}, left={"ipv4": edge})) == expected
    )


def test_servers_behind_an_aftr() -> None:
    assert listed(test_b4.edge()) == ""
    assert listed(test_b4.edge(right={"ipv4": {"address": "9.9.9.9"}})) == "9.9.9.9"
    assert listed(test_b4.edge(gateway={"tunnel": {"address": "2001:db8::1"}})) == "2001:db8::1"


def test_hosts_behind_b4s_must_have_other_addresses_and_a_pool_need_not() -> None:
    tunnel = {"address": "2001:2:0:ffff::1"}
    assert listed(test_aftr.aftr(gateway={"tunnel": tunnel}, b4={"address": "10.0.0.1"})) == ""
    assert listed(test_aftr.aftr(gateway={"tunnel": tunnel, "pool": ["192.0.2.0/29"]})) == "192.0.2.0/29"


def test_rules_of_map_and_the_relay() -> None:
    rule = {"ipv6": "2001:2:0:4000::/56", "ipv4": "198.18.128.0/24", "ea_bits": 8}
    relay = {"map": {"domains": [rule]}, "gateway": {"tunnel": {"address": "2001:2:0:ffff::1"}}}
    assert listed(test_tunnels.relay(**relay)) == ""
    assert listed(test_tunnels.relay()) == "2001:db8:ffff::1, 192.0.2.0/24, 2001:db8::/40"
    wide = {**rule, "ipv6": "2001:2::/40", "ipv4": "198.0.0.0/24"}
    left = {"ipv6": {"address": "2001:2:100::2", "gateway": "2001:2:100::1"}}
    gateway = {"tunnel": {"address": "2001:2:100::3"}}
    assert listed(test_tunnels.relay(map={"domains": [wide]}, left=left, gateway=gateway)) == (
        "2001:2:100::2, 2001:2:100::3, 198.0.0.0/24, 2001:2::/40"
    ), "a prefix that is wider than the network is not in it"


def test_what_translators_make_of_hosts() -> None:
    gateway = {"technology": "siit64", "prefix": "2001:db8::/96"}
    sides = {
        "left": {"port": "pci:1", "ipv6": {"address": "2001:db8::c612:2", "gateway": "2001:2::1"}},
        "right": {"port": "pci:2", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
    }
    assert listed(test_plan.rfc_campaign(gateway=gateway, **sides)) == "2001:db8::c612:2, 2001:db8::c613:2"
    eam = {**gateway, "eam": [{"ipv4": "192.0.2.0/24", "ipv6": "2001:2:0:1::/120"}]}
    sides["left"]["ipv6"] = {"address": "2001:2:0:1::2", "gateway": "2001:2::1"}
    assert listed(test_plan.rfc_campaign(gateway=eam, **sides)) == "192.0.2.2, 2001:db8::c613:2"


def test_the_last_of_many_hosts() -> None:
    hosts = {"mode": "increasing", "offset": 1, "range": "4866-5200"}
    right = {"port": "pci:2", "ipv4": {"address": "198.19.2.2", "gateway": "198.19.0.1", "hosts": hosts}}
    assert listed(test_plan.rfc_campaign(right=right)) == "198.20.80.2"
    assert listed(test_stateful_plan.campaign(throughput={}, connections={"count": 1000, "rate": 1000})) == ""
