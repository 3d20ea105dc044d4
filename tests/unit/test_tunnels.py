"""Campaigns of gateways with tunnels: what is asked of the engine, sizes, and what a file must not say (RFC 2473)."""

from __future__ import annotations

from typing import Any

import pytest

from gatemark.campaign.deviations import deviations
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.cli.frame import decode, in_words
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.procedures.loads import line_maximum, tightest_link
from gatemark.results.coordinates import dimension
from gatemark.technology import EcnMode
from gatemark.trial.request import trial_request

RULE = {"ipv6": "2001:db8::/40", "ipv4": "192.0.2.0/24", "ea_bits": 16}
TUNNEL = {"address": "2001:db8:ffff::1", "hop_limit": 64}
UP = (
    "60000000002e0440" "20010db8001234000000c00002120034" "20010db8ffff00000000000000000001"
    "4500002e000000000a11eaa7c00002120102030404d00050001aec30"
)  # fmt: skip
"""IPv4 in IPv6 of a MAP-E customer edge, up to its data."""


def document(**tables: Any) -> dict[str, Any]:
    """Return the file of a border relay; each table replaces keys of its own."""
    whole: dict[str, dict[str, Any]] = {
        "gateway": {"technology": "map_e_br", "tunnel": TUNNEL},
        "testbed": {"kind": "ports"},
        "left": {"port": "af_packet:a", "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"}, "mtu": 1540},
        "right": {"port": "af_packet:b", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"}},
        "map": {"domains": [RULE]},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
    }
    procedure = {"frame_loss": {"rates": [1000]}} if "overload" not in tables else {}
    return {**{key: {**table, **tables.pop(key, {})} for key, table in whole.items()}, **procedure, **tables}


def relay(**tables: Any) -> Campaign:
    """Return the complete campaign."""
    return complete_campaign(campaign_from_dict(document(**tables)))


def foregrounds(campaign: Campaign) -> list[dict[str, Any]]:
    """Return the foreground of both directions."""
    body: Any = trial_request(
        campaign, cells_of(campaign)[0], frames_per_second=1000, duration_ns=10**9, trial_number=1
    )
    return [one_way["foreground"] for one_way in body["directions"]]


FIELDS: dict[EcnMode, tuple[int, int, int, int]] = {
    "normal": (0, 1, 2, 3),
    "compatibility": (0, 0, 0, 0),
    "full_functionality": (0, 1, 2, 2),
}
"""The congestion field of an outer header, by that of the packet inside (RFC 6040 section 4.1, RFC 3168 section 9.1.1).
"""


@pytest.mark.parametrize("mode", FIELDS)
@pytest.mark.parametrize("stated", ["copied", 0, 0xB8, 0xBB])
def test_the_congestion_field_of_an_outer_header_follows_from_that_of_the_packet(mode: EcnMode, stated: Any) -> None:
    tunnel = {**TUNNEL, "traffic_class": stated, "ecn": mode}
    campaign = relay(gateway={"technology": "map_e_br", "tunnel": tunnel})
    model = campaign.forwarding.tunnel
    assert model is not None
    for octet in range(256):
        rest = octet if stated == "copied" else stated
        assert model.outer_class(octet) == rest // 4 * 4 + FIELDS[mode][octet % 4]
    forward, reverse = foregrounds(campaign)
    assert forward["source_tunnel"]["ecn"] == reverse["destination_tunnel"]["ecn"] == mode


def test_without_a_mode_the_field_is_that_of_the_traffic_class() -> None:
    for stated in ("copied", 0x20, 0x23):
        model = relay(
            gateway={"technology": "map_e_br", "tunnel": {**TUNNEL, "traffic_class": stated}}
        ).forwarding.tunnel
        assert model is not None
        assert [model.outer_class(octet) for octet in range(256)] == [
            octet if stated == "copied" else stated for octet in range(256)
        ]


def test_customer_edges_send_in_tunnels_and_servers_do_not() -> None:
    forward, reverse = foregrounds(relay())
    assert (forward["frame_octets"], reverse["frame_octets"]) == (104, 64)
    assert forward["source_tunnel"] == reverse["destination_tunnel"] == {
        "gateway": "2001:db8:ffff::1", "subscribers": None, "hop_limit": 64, "expected_hop_limit": 64,
        "traffic_class": None, "ecn": None,
    }  # fmt: skip
    assert forward["destination_tunnel"] is reverse["source_tunnel"] is None
    for stream in (forward, reverse):
        assert (stream["translation"], stream["dont_fragment_rule"], stream["flow_label"]) == (None, "kept", 0)
    assert forward["source"]["edges"]["domains"][0]["dmr"] is None


@pytest.mark.parametrize(
    ("ipv4", "ea_bits", "told"), [("192.0.2.0/24", 4, 0), ("10.0.0.0/8", 8, 0), ("10.0.0.0/8", 4, 1)]
)
def test_all_addresses_of_an_edges_prefix_are_used_or_it_is_said(ipv4: str, ea_bits: int, told: int) -> None:
    campaign = relay(map={"domains": [{**RULE, "ipv4": ipv4, "ea_bits": ea_bits}]})
    sentences = [deviation.sentence for deviation in deviations(campaign) if "IPv4 prefix" in deviation.sentence]
    assert len(sentences) == told and all("only 65,536 addresses are used" in sentence for sentence in sentences)


def test_a_policy_for_outer_headers_is_passed_on() -> None:
    _, reverse = foregrounds(relay(gateway={"tunnel": {"address": "2001:db8:ffff::1", "traffic_class": 184}}))
    assert reverse["destination_tunnel"]["expected_hop_limit"] is None
    assert reverse["destination_tunnel"]["traffic_class"] == 184


@pytest.mark.parametrize(("inner", "rate"), [(64, 10_080_645), (128, 6_648_936), (512, 2_185_314), (1518, 792_141)])
def test_the_tunnelled_frame_decides_what_the_line_carries(inner: int, rate: int) -> None:
    campaign = relay(traffic={"frame_sizes": {"family": "ipv4", "octets": [inner]}})
    (cell,) = cells_of(campaign)
    assert (cell.frame_sizes.ipv4, cell.frame_sizes.ipv6, cell.frame_sizes.tunnel) == (inner, None, inner + 40)
    assert tightest_link(campaign, cell) == {inner + 40: 1}
    assert line_maximum(campaign, cell, 10**10) == rate


def test_inner_outer_and_background_are_three_sizes() -> None:
    right = {"ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"}}
    campaign = relay(right=right, traffic={"mix": "9/10"})
    (cell,) = cells_of(campaign)
    assert cell.frame_sizes.label() == "64 / 84 (104 in tunnels)"


@pytest.mark.parametrize(
    ("tables", "place", "words"),
    [
        ({"gateway": {"tunnel": None}}, "gateway.tunnel.address", "end at an address of the gateway"),
        ({"gateway": {"tunnel": {"address": "2001:db8:12::1"}}}, "gateway.tunnel.address", "prefix of map.domains"),
        ({"gateway": {"tunnel": {"address": "2001:2::2"}}}, "gateway.tunnel.address", "one of the hosts"),
        ({"map": {"domains": [RULE | {"dmr": "2001:db8:ffff::/64"}]}}, "map.domains[0].dmr", "by tunnels"),
        ({"left": {"mtu": 1500}, "traffic": {"frame_sizes": {"family": "ipv4", "octets": [1518]}}},
         "traffic.frame_sizes.octets", "packet of 1540, more than the MTU of 1500"),
        ({"traffic": {"frame_sizes": {"family": "ipv6", "octets": [104]}}}, "traffic.frame_sizes.family", "IPv4"),
        ({"left": {"mtu": 1500}, "overload": {"clients": [1], "data": 1472}}, "overload.data",
         "packets of 1540 octets on the left side, more than its MTU of 1500"),
        ({"gateway": {"technology": "map_t_br"}}, "gateway.tunnel", "which has no tunnels"),
    ],
)  # fmt: skip
def test_what_contradicts_tunnels_is_said(tables: dict[str, Any], place: str, words: str) -> None:
    content = document(**tables)
    if content["gateway"]["tunnel"] is None:
        del content["gateway"]["tunnel"]
    with pytest.raises(ConfigError) as refused:
        complete_campaign(campaign_from_dict(content))
    told = [problem for problem in refused.value.problems if problem.where.endswith(place)]
    assert told and any(words in problem.what for problem in told), refused.value


def test_a_rule_of_map_t_needs_its_default_mapping_rule() -> None:
    content = document(gateway={"technology": "map_t_br"})
    del content["gateway"]["tunnel"]
    with pytest.raises(ConfigError, match=r"map.domains\[0\].dmr.*is missing"):
        complete_campaign(campaign_from_dict(content))


def test_a_frame_is_shown_with_the_packet_inside() -> None:
    ethernet, data = "02000000000202000000000186dd", "00" * 18
    words = in_words(decode(ethernet + UP + data))
    assert "IPv6 2001:db8:12:3400:0:c000:212:34 > 2001:db8:ffff::1, hop limit 64, traffic class 0, inside it" in words
    assert "inside it IPv4 192.0.2.18 > 1.2.3.4, TTL 10, TOS 0, UDP 1232 > 80" in words and "104 octets" in words


def test_sizes_of_packets_in_tunnels_are_said_in_one_line() -> None:
    sizes = dimension("frame_size_ipv4")
    assert sizes.said({"frame_size_ipv4": 64, "frame_size_ipv6": 84}) == "64 / 84 octets"
    place = {"frame_size_ipv4": 64, "frame_size_tunnel": 104}
    assert sizes.said(place) == "64-octet IPv4 / 104-octet with outer header"
