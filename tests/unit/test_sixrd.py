"""Campaigns of 6rd border relays: addresses that follow from others, and what a file must not say (RFC 5969)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.config.hosts import HostSet
from gatemark.config.model import Campaign
from gatemark.config.tables import GatewayModel, HostsModel, Ipv4Model
from gatemark.config.types import Span
from gatemark.config.views import Sixrd
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.trial.request import trial_request

EDGES = {"offset": 2, "mode": "pseudorandom", "range": "2-101"}
TUNNEL: dict[str, Any] = {"address": "198.18.0.1", "prefix": "2001:db8::/32", "hop_limit": 64}


def document(**tables: Any) -> dict[str, Any]:
    """Return the file of a relay with 100 customer edges; each table replaces keys of its own."""
    whole: dict[str, dict[str, Any]] = {
        "gateway": {"technology": "sixrd_br", "tunnel": TUNNEL},
        "testbed": {"kind": "ports"},
        "left": {
            "port": "af_packet:a",
            "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1", "hosts": EDGES},
            "mtu": 1520,
        },
        "right": {"port": "af_packet:b", "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"}},
        "traffic": {"frame_sizes": {"family": "ipv6", "octets": [84]}},
        "frame_loss": {"rates": [1000]},
    }
    return {key: {**table, **tables.get(key, {})} for key, table in whole.items()}


def relay(**tables: Any) -> Campaign:
    """Return the complete campaign."""
    return complete_campaign(campaign_from_dict(document(**tables)))


def test_hosts_inside_are_in_the_prefixes_of_their_edges() -> None:
    campaign = relay()
    body: Any = trial_request(
        campaign, cells_of(campaign)[0], frames_per_second=1000, duration_ns=10**9, trial_number=1
    )
    forward, reverse = (one_way["foreground"] for one_way in body["directions"])
    varied = {"mode": "pseudorandom", "minimum": 2, "maximum": 101, "networks": 1}
    assert (forward["frame_octets"], reverse["frame_octets"]) == (104, 84)
    assert forward["source"] == reverse["destination"] == {"address": "2001:db8:c612:2::1", "offset": 6, **varied}
    tunnel = forward["source_tunnel"]
    assert tunnel["subscribers"] == {"address": "198.18.0.2", "offset": 2, **varied}
    assert reverse["destination_tunnel"] == tunnel
    assert (tunnel["gateway"], forward["destination_tunnel"], reverse["source_tunnel"]) == ("198.18.0.1", None, None)


def relay_of(prefix: IPv6Network, mask: int, edges: Ipv4Model) -> Sixrd:
    tunnel = {"address": "198.18.0.1", "prefix": str(prefix), "ipv4_mask_length": mask}
    relay = Sixrd.of(GatewayModel.model_validate({"tunnel": tunnel}), edges)
    assert relay is not None
    return relay


@given(
    edge=st.integers(0xC612_0000, 0xC613_FFFF).map(IPv4Address),
    length=st.integers(16, 64),
    mask=st.sampled_from([0, 8, 12, 16, 24]),
)
def test_a_prefix_holds_the_address_behind_the_mask(edge: IPv4Address, length: int, mask: int) -> None:
    if length + 32 - mask > 64:
        return
    prefix = IPv6Network((0x2001_0DB8_5A5A_5A5A << 64, length), strict=False)
    bits = format(int(relay_of(prefix, mask, Ipv4Model(address=edge)).hosts.address), "0128b")
    assert bits[:length] == format(int(prefix.network_address), "0128b")[:length]
    assert bits[length : length + 32 - mask] == format(int(edge), "032b")[mask:]
    assert int(bits[length + 32 - mask :], 2) == 1


def test_edges_that_vary_have_the_prefixes_of_their_addresses() -> None:
    hosts = HostsModel(offset=2, mode="increasing", range=Span(minimum=5, maximum=300))
    edges = Ipv4Model(address=IPv4Address("198.18.0.5"), hosts=hosts)
    relay = relay_of(IPv6Network("2001:db8:6464::/48"), 16, edges)
    inside, outside = HostSet.of("ipv6", relay.hosts), HostSet.of("ipv4", edges)
    for number in outside.numbers:
        assert IPv6Address(inside.address_of(number)) == relay.host_of(IPv4Address(outside.address_of(number)))


@pytest.mark.parametrize(
    ("tunnel", "where", "what"),
    [
        ({"address": "2001:2:0:ffff::1"}, "gateway.tunnel.address", "the tunnels of 6rd are in IPv4"),
        ({"prefix": None}, "gateway.tunnel.prefix", "is missing: the prefixes of all customer edges begin with it"),
        ({"prefix": "2001:db8::/33"}, "gateway.tunnel.prefix", "are a prefix of 65 bits"),
        ({"prefix": "2001:db8::/30"}, "gateway.tunnel.prefix", "vary move by whole octets"),
        ({"prefix": "2001:db8::/40", "ipv4_mask_length": 24}, "gateway.tunnel.ipv4_mask_length", "begin at bit 16"),
        ({"prefix": "2001:2::/32"}, "gateway.tunnel.prefix", "holds hosts of the right side"),
        ({"address": "198.18.0.2"}, "gateway.tunnel.address", "is one of the hosts"),
    ],
)
def test_what_no_relay_can_have_is_refused(tunnel: dict[str, Any], where: str, what: str) -> None:
    keys = {key: value for key, value in {**TUNNEL, **tunnel}.items() if value is not None}
    with pytest.raises(ConfigError) as caught:
        relay(gateway={"tunnel": keys})
    assert [problem.where for problem in caught.value.problems] == [f"campaign: {where}"]
    assert what in caught.value.problems[0].what


@pytest.mark.parametrize("hosts", [EDGES, {"mode": "fixed"}])
def test_networks_of_customer_edges_are_refused_and_those_of_hosts_outside_are_not(hosts: dict[str, Any]) -> None:
    left = {"ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1", "hosts": hosts}}
    with pytest.raises(ConfigError) as caught:
        relay(left=left, traffic={"destination_networks": 16})
    (refused,) = caught.value.problems
    assert (refused.where, refused.fix) == (
        "campaign: traffic.destination_networks",
        "write destination_networks under [traffic.forward] only",
    )
    assert relay(left=left, traffic={"forward": {"destination_networks": 16}}).directions.networks("right") == 16


def test_tunnels_of_ipv4_have_no_prefix_and_end_in_ipv6() -> None:
    with pytest.raises(ConfigError) as caught:
        complete_campaign(campaign_from_dict({
            **document(gateway={"technology": "aftr", "pool": ["198.19.0.1/32"], "control": {"clear_state": "true"}}),
            "left": {"port": "af_packet:a", "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"}, "mtu": 1540},
            "right": {"port": "af_packet:b", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.3"}},
            "traffic": {"frame_sizes": {"family": "ipv4", "octets": [84]}},
            "connections": {"count": 10, "rate": 10},
        }))  # fmt: skip
    assert [problem.where for problem in caught.value.problems] == [
        "campaign: gateway.tunnel.prefix",
        "campaign: gateway.tunnel.address",
    ]
