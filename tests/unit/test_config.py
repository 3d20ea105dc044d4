from __future__ import annotations

import copy
import json
import os
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from gatemark.campaign.columns import load_series, varies
from gatemark.campaign.deviations import deviations
from gatemark.campaign.file import campaign_from_dict, load_campaign, schema_text
from gatemark.campaign.plan import cells_of
from gatemark.config.complete import complete
from gatemark.config.model import Campaign, CampaignFile
from gatemark.config.sizes import measured_octets
from gatemark.dut.recipe import complete_campaign, recipe_from_dict
from gatemark.errors import ConfigError
from gatemark.procedures.loads import line_maximum, tightest_link
from gatemark.procedures.throughput.table import ThroughputTable
from gatemark.trial.request import foreground_frames
from gatemark.units import LineShare, theoretical_maximum

ROOT = Path(__file__).parents[2]

BASE: dict[str, Any] = {
    "gateway": {
        "technology": "siit64",
        "prefix": "2001:2:0:6400::/96",
        "eam": [{"ipv4": "198.18.0.0/24", "ipv6": "2001:2::/120"}],
    },
    "testbed": {"kind": "ports"},
    "left": {"port": "pci:0000:01:00.0", "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"}},
    "right": {
        "port": "pci:0000:01:00.1",
        "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"},
        "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
    },
    "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
    "line": {"rate": "10G"},
    "throughput": {},
}

Change = Callable[[dict[str, Any]], object]


def hosts(range_: str, offset: int = 2, mode: str = "pseudorandom") -> dict[str, Any]:
    return {"offset": offset, "mode": mode, "range": range_}


def router44(document: dict[str, Any]) -> None:
    document["gateway"] = {"technology": "router44"}
    document["left"]["ipv4"] = {"address": "198.18.0.2", "gateway": "198.18.0.1"}


def problems_of(change: Change) -> list[str]:
    document = copy.deepcopy(BASE)
    change(document)
    with pytest.raises(ConfigError) as caught:
        campaign_from_dict(document, where="x.toml")
    assert all(problem.fix for problem in caught.value.problems), "every problem has a remedy"
    return [f"{problem.where.removeprefix('x.toml: ')}: {problem.what}" for problem in caught.value.problems]


def set_at(path: str, value: Any) -> Change:
    def change(document: dict[str, Any]) -> None:
        *tables, key = path.split(".")
        for table in tables:
            document = document.setdefault(table, {})
        document[key] = value

    return change


def test_the_base_is_accepted() -> None:
    campaign = complete_campaign(campaign_from_dict(BASE))
    assert campaign.technology.name == "siit64"
    assert campaign.forwarding.hop_limit_decrement == 1
    throughput = campaign.table(ThroughputTable)
    assert throughput.maximum is None
    assert throughput.resolution == LineShare(1, 1000)
    assert campaign.repetitions == 20
    assert campaign.trial.duration_ns == 60 * 10**9


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("gateway.prefix", "2001:db8::/33", "gateway.prefix: 2001:db8::/33 has length 33"),
        ("gateway.prefix", "2001:2:0:0:ff00::/96", "gateway.prefix: 2001:2:0:0:ff00::/96 has bits 64 to 71 set"),
        ("gateway.prefix", "2001:2::1/96", "gateway.prefix: '2001:2::1/96': 2001:2::1/96 has host bits set"),
        ("gateway.technology", "siit65", "gateway.technology: 'siit65' is not one of"),
        ("gateway.prefxi", "::/96", "gateway.prefxi: unknown key"),
        ("left.ipv6.address", "198.18.0.2", "left.ipv6.address: 198.18.0.2 is an IPv4 address where IPv6 is wanted"),
        ("right.ipv4.address", "2001:2::2", "right.ipv4.address: 2001:2::2 is an IPv6 address where IPv4 is wanted"),
        ("right.ipv4.address", "224.0.0.1", "right.ipv4.address: 224.0.0.1 is not a unicast address"),
        ("right.ipv4.hosts", hosts("254-2"), 'right.ipv4.hosts.range: the range "254-2" is empty'),
        ("right.ipv4.hosts", hosts("2-65536"), "right.ipv4.hosts.range: 65536 is above 65535"),
        (
            "right.ipv4.hosts",
            hosts("1-254"),
            "right.ipv4.hosts.range: the emulated hosts 198.19.0.1 to 198.19.0.254 contain",
        ),
        ("right.ipv4.hosts", hosts("2-254", 3), "right.ipv4.hosts.offset: 3 is beyond the address"),
        ("right.ipv4.hosts", {"range": "2-254"}, "right.ipv4.hosts.range: applies only with mode = "),
        ("right.ipv4.hosts", {"mode": "increasing", "range": "2-9"}, "right.ipv4.hosts.offset: is missing"),
        ("left.ipv6.hosts", hosts("2-300", 14), "left.ipv6: host 2001:2::"),
        ("traffic.source_ports", {"range": "1024-65536"}, "traffic.source_ports.range: 65536 is above 65535"),
        ("traffic.source_ports", {"range": "2000-1000"}, 'traffic.source_ports.range: the range "2000-1000" is empty'),
        ("traffic.source_ports", {"mode": "fixed"}, "traffic.source_ports.range: 1024-65535 is more than one port"),
        ("traffic.mix", ["3/2"], "traffic.mix[0]: '3/2' has m > n"),
        ("traffic.mix", "1/0", "traffic.mix[0]: '1/0' has n = 0"),
        ("traffic.mix", ["1/2", "1/2"], "traffic.mix: lists a value twice"),
        ("traffic.mix", "9/10", "left.ipv4: no problem"),
        ("traffic.frame_sizes.octets", [63], "traffic.frame_sizes.octets[0]: 63 is not between 64 and 9216"),
        (
            "traffic.frame_sizes",
            {"family": "ipv6", "octets": [64]},
            "traffic.frame_sizes.octets[0]: 64 is not between 84 and 9236",
        ),
        (
            "traffic.frame_sizes.octets",
            [1518],
            "traffic.frame_sizes.octets: an IPv6 frame of 1538 octets holds a packet of 1520",
        ),
        (
            "traffic.frame_sizes.octets",
            [1280],
            "traffic.frame_sizes.octets: an IPv4 frame of 1280 octets holds a packet of 1262",
        ),
        ("traffic.forward", {"hop_limit": 5}, "no problem"),
        ("traffic.hop_limit", 1, "traffic.hop_limit: 1 does not survive"),
        ("traffic.traffic_class", 256, "traffic.traffic_class: 256 is not a traffic class"),
        ("traffic.traffic_class", [0, 184], "traffic.traffic_class: [0, 184] is not a traffic class"),
        ("traffic.traffic_class", {"by_flow": [3]}, "traffic.traffic_class: by_flow lists fewer than two"),
        ("traffic.traffic_class", {"by_flow": [3, 3]}, "traffic.traffic_class: by_flow lists fewer than two, or one"),
        ("traffic.traffic_class", {"by_flow": [3, 4], "x": 1}, "traffic.traffic_class: {'by_flow': [3, 4], 'x': 1} is"),
        ("traffic.forward", {"traffic_class": {"by_flow": [0, 184]}}, "no problem"),
        ("traffic.flow_label", 1 << 20, "traffic.flow_label: 1048576 is not a flow label"),
        ("traffic.flow_label", True, "traffic.flow_label: True is not a flow label"),
        ("traffic.flow_label", "by_flow", "no problem"),
        ("traffic.extension_headers", ["routing"], "traffic.extension_headers: does not apply to siit64"),
        ("traffic.trailer_octets", 65, "traffic.trailer_octets: 65 should be less"),
        ("traffic.trailer_octets", 1, "traffic.frame_sizes.octets: 64 octets leave no room for 1 octet behind"),
        ("traffic.extension_headers", "esp", "traffic.extension_headers[0]: 'esp' is not one of"),
        ("throughput.maximum", 0, "throughput.maximum: 0 is nothing"),
        ("throughput.maximum", "2G", "throughput.maximum: '2G' is above 1G frames/s"),
        ("throughput.maximum", "200%", "throughput.maximum: '200%' is more than the line can carry"),
        ("throughput.resolution", "100%", "throughput.resolution: is not below throughput.maximum"),
        ("throughput", {"maximum": "1k", "resolution": 1000}, "throughput.resolution: is not below throughput.maximum"),
        ("throughput", {"maximum": "1k", "minimum": "2k"}, "throughput.minimum: is above throughput.maximum"),
        ("throughput.loss_tolerance", "100%", "throughput.loss_tolerance: '100%' is not below 100%"),
        ("throughput.search_duration", "2min", "throughput.search_duration: is longer than trial.duration"),
        (
            "frame_loss",
            {"rates": ["1k"], "step": "5%"},
            "frame_loss.step: applies only without rates",
        ),
        ("frame_loss", {"rates": []}, "frame_loss.rates: []"),
        ("trial.duration", 60, "trial.duration: 60 has no unit"),
        ("trial.duration", "0s", "trial.duration: '0s' is nothing"),
        ("repetitions", 0, "repetitions: 0 should be greater than or equal to 1"),
        ("validity.retries", -1, "validity.retries: -1 should be greater than or equal to 0"),
        ("testbed.kind", "netn", "testbed.kind: 'netn' is not one of"),
        ("testbed.recipe", "linux-router4", "testbed.recipe: does not apply to kind = ports"),
        ("testbed.gateway_cores", [1], "testbed.gateway_cores: does not apply to kind = ports"),
        ("testbed.cores", [1, 1], "testbed.cores: names a CPU twice"),
        ("left.port", "af_packt:eth1", "left.port: 'af_packt:eth1' is not a kind of port"),
        ("left.port", "af_packet", "left.port: af_packet needs a name"),
        ("left.port", "pci:0000:01:00.1", "right.port: pci:0000:01:00.1 is the left port as well"),
        (
            "left.gateway_mac",
            "01:00:00:00:00:01",
            "left.gateway_mac: '01:00:00:00:00:01' is not the address of one station",
        ),
        ("left.vlan", 4095, "left.vlan: 4095 should be less than or equal to 4094"),
        ("left.address_mode", "nexthop", "left.ipv6.router: is missing"),
        ("left.ipv6.router", "2001:2::10", 'left.ipv6.router: applies only with left.address_mode = "nexthop"'),
        ("right.ipv4.gateway", "198.19.0.2", "right.ipv4.gateway: 198.19.0.2 is right.ipv4.address"),
        (
            "gateway.eam",
            [{"ipv4": "198.18.0.0/16", "ipv6": "2001:2::/120"}],
            "gateway.eam[0]: 198.18.0.0/16 has more addresses",
        ),
    ],
)
def test_one_mistake_is_told_once(path: str, value: Any, expected: str) -> None:
    change = set_at(path, value)
    if "no problem" in expected:
        document = copy.deepcopy(BASE)
        change(document)
        campaign_from_dict(document)
        return
    problems = problems_of(change)
    assert len(problems) == 1, problems
    assert problems[0].startswith(expected)


def test_all_mistakes_are_told_at_once_with_the_nearest_key() -> None:
    def change(document: dict[str, Any]) -> None:
        document["repetition"] = 3
        document["traffic"]["mix"] = ["3/2"]
        document["throughput"]["maximum"] = "fast"
        document["testbed"]["recipe"] = "x"

    document = copy.deepcopy(BASE)
    change(document)
    with pytest.raises(ConfigError) as caught:
        campaign_from_dict(document, where="x.toml")
    places = {problem.where for problem in caught.value.problems}
    assert places == {
        f"x.toml: {key}" for key in ("repetition", "traffic.mix[0]", "throughput.maximum", "testbed.recipe")
    }
    assert any(problem.fix == "did you mean repetitions?" for problem in caught.value.problems)


def test_background_needs_ipv6_on_both_sides() -> None:
    def change(document: dict[str, Any]) -> None:
        del document["right"]["ipv6"]
        document["traffic"]["mix"] = "9/10"

    assert problems_of(change) == [
        "right.ipv6: is missing: background traffic is native IPv6 from end to end (RFC 8219 section 5.3)"
    ]


def test_translation_needs_a_representation_of_each_host() -> None:
    def without_mapping(document: dict[str, Any]) -> None:
        del document["gateway"]["eam"], document["gateway"]["prefix"]

    def foreign_host(document: dict[str, Any]) -> None:
        document["left"]["ipv6"] = {"address": "2001:2:0:1::2", "gateway": "2001:2:0:1::1"}

    assert problems_of(without_mapping)[0].startswith("gateway.prefix: is missing")
    assert problems_of(foreign_host)[0].startswith("left.ipv6: host 2001:2:0:1::2 has no representation")


def test_a_wrong_size_is_told_beside_other_mistakes() -> None:
    document = copy.deepcopy(BASE)
    document["traffic"] = {"direction": "sideways", "frame_sizes": {"family": "ipv4", "octets": [60, "x"]}}
    with pytest.raises(ConfigError) as raised:
        campaign_from_dict(document)
    assert [problem.where.removeprefix("campaign: ") for problem in raised.value.problems] == [
        "traffic.direction[0]",
        "traffic.frame_sizes.octets[0]",
        "traffic.frame_sizes.octets[1]",
    ]


@pytest.mark.parametrize("octets", [1279, 1280, 1300])
def test_fragmenting_sizes_need_df_or_a_configured_translator(octets: int) -> None:
    document = copy.deepcopy(BASE)
    document["traffic"]["frame_sizes"]["octets"] = octets
    with pytest.raises(ConfigError, match="RFC 7915 section 4"):
        campaign_from_dict(document)
    for change in (
        set_at("traffic.dont_fragment", True),
        set_at("gateway.lowest_ipv6_mtu", octets + 2),
        set_at("traffic.direction", "forward"),
    ):
        changed = copy.deepcopy(document)
        change(changed)
        campaign_from_dict(changed)
    document["traffic"]["frame_sizes"]["octets"] = 1278
    campaign_from_dict(document)


def test_ipv6_frames_must_have_a_udp_checksum() -> None:
    expected = "is zero, but forward frames are IPv6, where UDP must have a checksum (RFC 8200 section 8.1)"
    assert problems_of(set_at("traffic.udp_checksum", "zero")) == [f"traffic.udp_checksum: {expected}"]
    named = set_at("traffic.forward", {"udp_checksum": "zero"})
    assert problems_of(named) == [f"traffic.forward.udp_checksum: {expected}"]
    with pytest.raises(ConfigError, match=r"\[traffic.reverse\] only"):
        campaign_from_dict({**BASE, "traffic": {**BASE["traffic"], "udp_checksum": "zero"}})
    ipv4_only = copy.deepcopy(BASE)
    ipv4_only["traffic"]["reverse"] = {"udp_checksum": "zero"}
    campaign = complete_campaign(campaign_from_dict(ipv4_only))
    assert campaign.directions.traffic_of("reverse").udp_checksum == "zero"
    assert campaign.directions.traffic_of("forward").udp_checksum == "computed"
    router = copy.deepcopy(BASE)
    router44(router)
    router["traffic"]["udp_checksum"] = "zero"
    assert complete_campaign(campaign_from_dict(router)).directions.lack_checksums


def router66(document: dict[str, Any]) -> None:
    document["gateway"] = {"technology": "router66"}
    document["traffic"] = {"frame_sizes": {"family": "ipv6", "octets": [128]}}


@pytest.mark.parametrize(
    ("octets", "headers", "expected"),
    [
        (128, ["hop_by_hop", "routing", "fragment"], []),
        (123, ["routing", "destination_options", "fragment"], ["octets: 123 octets leave no room for 40 octets of"]),
        (128, ["routing", "hop_by_hop"], ["extension_headers: lists hop_by_hop behind another header, or twice"]),
    ],
)
def test_extension_headers_of_a_router(octets: int, headers: list[str], expected: list[str]) -> None:
    """RFC 5180 section 5.3: they make the smallest frame larger."""

    def change(document: dict[str, Any]) -> None:
        router66(document)
        document["traffic"]["frame_sizes"]["octets"] = [octets]
        document["traffic"]["extension_headers"] = headers

    if not expected:
        document = copy.deepcopy(BASE)
        change(document)
        campaign_from_dict(document)
        return
    problems = problems_of(change)
    assert len(problems) == len(expected)
    assert all(text in problem for text, problem in zip(expected, problems, strict=True)), problems


def with_trailer(technology: str, octets: int, direction: str) -> Campaign:
    document = copy.deepcopy(BASE)
    document["traffic"] = {"frame_sizes": {"family": "ipv4", "octets": octets}, "direction": direction}
    document["traffic"]["trailer_octets"] = 6
    if technology == "router44":
        router44(document)
    return complete_campaign(campaign_from_dict(document))


@pytest.mark.parametrize(
    ("technology", "direction", "largest"),
    [
        ("router44", "forward", 70),
        ("siit64", "forward", 90),  # IPv6 of 84 octets and what is behind it; 64 octets leave
        ("siit64", "reverse", 84),  # IPv4 of 70 octets; the packet leaves without what was behind it
        ("siit64", "bidirectional", 90),
    ],
)
def test_a_line_carries_a_trailer_only_where_it_is_sent(technology: str, direction: str, largest: int) -> None:
    campaign = with_trailer(technology, 70, direction)
    (cell,) = cells_of(campaign)
    assert tightest_link(campaign, cell) == {largest: 1}
    assert line_maximum(campaign, cell, 10**10) == theoretical_maximum(10**10, {largest: 1})
    for way in campaign.directions.in_use:
        frames = foreground_frames(campaign, cell, way)
        assert frames["trailer_octets"] == 6
        sender = campaign.roles.family("left" if way == "forward" else "right")
        assert frames["frame_octets"] == (70 if sender == "ipv4" else 90)


def test_a_frame_needs_room_for_packet_and_trailer() -> None:
    def small(document: dict[str, Any]) -> None:
        document["traffic"] = {"trailer_octets": 6, "frame_sizes": {"family": "ipv4", "octets": [69, 70]}}

    assert problems_of(small) == ["traffic.frame_sizes.octets: 69 octets leave no room for 6 octets behind the packet"]
    document = copy.deepcopy(BASE)
    document["traffic"] = {"trailer_octets": 6}
    campaign = complete_campaign(campaign_from_dict(document))
    assert measured_octets(campaign)[:2] == (128, 256), "of the standard sizes those that have room"
    sentences = [deviation.sentence for deviation in deviations(campaign)]
    assert sum("6 octets behind the IP packet" in sentence for sentence in sentences) == 1


def test_a_flow_label_needs_ipv6() -> None:
    def change(document: dict[str, Any]) -> None:
        router44(document)
        document["traffic"]["flow_label"] = 5

    assert problems_of(change) == ["traffic.flow_label: has no effect: router44 forwards no IPv6"]


def test_hosts_behind_a_router_have_no_mac_addresses_of_their_own() -> None:
    def behind(document: dict[str, Any]) -> None:
        document["right"] |= {"host_macs": "random", "address_mode": "nexthop"}
        document["right"]["ipv4"]["router"] = "198.18.128.1"
        document["right"]["ipv6"]["router"] = "2001:2:0:4000::1"

    assert problems_of(behind) == [
        'right.host_macs: applies only with address_mode = "onlink": the gateway sees the router\'s MAC address only'
    ]
    campaign = complete_campaign(campaign_from_dict({**BASE, "right": {**BASE["right"], "host_macs": "random"}}))
    assert campaign.has_random_macs
    assert not complete_campaign(campaign_from_dict(BASE)).has_random_macs


def test_the_well_known_prefix_must_not_hold_benchmarking_addresses() -> None:
    problems = problems_of(set_at("gateway.prefix", "64:ff9b::/96"))
    assert problems[0].startswith("gateway.prefix: 64:ff9b::/96 must not represent 198.19.0.2")
    assert len(problems) == 1
    document = copy.deepcopy(BASE)
    document["gateway"] |= {"prefix": "64:ff9b::/96", "well_known_prefix_allowed": True}
    campaign_from_dict(document)
    document["gateway"] = {"technology": "siit64", "prefix": "64:ff9b::/96"}
    document["gateway"]["eam"] = [*BASE["gateway"]["eam"], {"ipv4": "198.19.0.0/24", "ipv6": "2001:2:0:1000::/120"}]
    complete_campaign(campaign_from_dict(document))  # every host has an explicit mapping, so the prefix represents none


def test_256_networks_and_hosts_share_no_octet() -> None:
    def change(document: dict[str, Any]) -> None:
        document["traffic"]["destination_networks"] = 256
        document["gateway"]["eam"] = [{"ipv4": "198.18.0.0/16", "ipv6": "2001:2::/32"}]
        document["right"]["ipv4"]["hosts"] = hosts("2-256")

    def small(document: dict[str, Any]) -> None:
        change(document)
        document["right"]["ipv4"]["hosts"] = hosts("2-255")

    assert problems_of(change)[0].startswith("right.ipv4.hosts: the range 2-256 at offset 2 varies octet 2")
    document = copy.deepcopy(BASE)
    small(document)
    campaign_from_dict(document)


def test_left_and_right_hosts_do_not_overlap() -> None:
    def change(document: dict[str, Any]) -> None:
        router44(document)
        document["left"]["ipv4"]["hosts"] = hosts("2-254")
        document["right"]["ipv4"] = {"address": "198.18.0.77", "gateway": "198.18.0.1"}

    problems = problems_of(change)
    assert any(text.startswith("right.ipv4: the hosts 198.18.0.77 overlap the left hosts") for text in problems)
    assert any(text.startswith("right.ipv4.gateway: 198.18.0.1 is the left gateway") for text in problems)


@pytest.mark.parametrize("key", ["prefix", "eam", "lowest_ipv6_mtu", "well_known_prefix_allowed"])
def test_translation_keys_make_no_sense_for_routers(key: str) -> None:
    values = {**BASE["gateway"], "lowest_ipv6_mtu": 1500, "well_known_prefix_allowed": True}

    def change(document: dict[str, Any]) -> None:
        router44(document)
        document["gateway"][key] = values[key]

    assert problems_of(change)[0].startswith(f"gateway.{key}: does not apply to router44")


def test_size_family_of_a_router() -> None:
    def change(document: dict[str, Any]) -> None:
        router44(document)
        document["traffic"]["frame_sizes"] = {"family": "ipv6", "octets": [84]}

    assert problems_of(change) == ["traffic.frame_sizes.family: is ipv6, but router44 forwards IPv4 frames"]


def test_a_missing_side_or_port() -> None:
    def change(document: dict[str, Any]) -> None:
        del document["right"], document["left"]["port"]

    problems = problems_of(change)
    assert "left.port: is missing" in problems
    assert any(text.startswith("right") and "is missing" in text for text in problems)


def test_a_loopback_needs_nothing_but_a_technology() -> None:
    document = {"gateway": {"technology": "router66"}, "testbed": {"kind": "loopback"}}
    campaign = complete_campaign(campaign_from_dict(document))
    assert campaign.side("left").port == campaign.side("right").port == "ring"
    assert campaign.forwarding.hop_limit_decrement == 0


@pytest.mark.parametrize(
    "change",
    [
        set_at("throughput.maximum", "12.5%"),
        set_at("throughput.loss_tolerance", "1/3"),
        set_at("frame_loss", {"rates": ["1k", "50%"]}),
        set_at("trial.drain", "1500us"),
        set_at("right.ipv4.hosts", hosts("2-254")),
        set_at("traffic.reverse", {"hop_limit": 64}),
        set_at("traffic.traffic_class", {"by_flow": [0, 40, 184]}),
        set_at("traffic.flow_label", "by_flow"),
        set_at("left.gateway_mac", "02:00:00:00:00:0A"),
        set_at("seed", 2**63 - 1),
    ],
)
def test_a_written_campaign_reads_back_the_same(change: Change) -> None:
    document = copy.deepcopy(BASE)
    change(document)
    campaign = campaign_from_dict(document)
    written = json.loads(json.dumps(campaign.to_document()))
    assert campaign_from_dict(written) == campaign
    assert campaign_from_dict(written).to_document() == written


RECIPE = recipe_from_dict(
    {
        "name": "tayga-siit64",
        "description": "a translator",
        "technology": "siit64",
        "hop_limit_decrement": 3,
        "prefix": "2001:2:0:6400::/96",
        "eam": [{"ipv4": "198.18.0.0/16", "ipv6": "2001:2::/112"}],
        "left": {"networks": ["2001:2::/64"], "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"}},
        "right": {
            "networks": ["198.19.0.0/24", "2001:2:0:8000::/64"],
            "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"},
            "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
        },
        "mtu": 1540,
    }
)


def netns(**tables: Any) -> CampaignFile:
    return campaign_from_dict({"testbed": {"kind": "netns", "recipe": "tayga-siit64"}, "throughput": {}, **tables})


def test_a_recipe_fills_in_what_the_file_leaves_open() -> None:
    right = {"ring_frames": 64, "ipv4": {"address": "198.19.0.2", "hosts": hosts("2-99")}}
    campaign = complete(netns(right=right), RECIPE)
    forwarding = campaign.forwarding
    assert campaign.technology.name == "siit64"
    assert (forwarding.hop_limit_decrement, forwarding.background_hop_limit_decrement) == (3, 1)
    assert str(campaign.gateway.prefix) == "2001:2:0:6400::/96"
    side = campaign.side("right")
    assert (side.ring_frames, side.mtu) == (64, 1540)
    assert side.ipv4 is not None
    assert str(side.ipv4.gateway) == "198.19.0.1"
    assert str(side.ipv4.hosts.range) == "2-99"
    assert complete(campaign_from_dict(campaign.to_document()), RECIPE) == campaign


@pytest.mark.parametrize(
    ("tables", "where"),
    [
        ({"gateway": {"hop_limit_decrement": 1}}, "gateway.hop_limit_decrement"),
        ({"gateway": {"technology": "siit46"}}, "gateway.technology"),
        ({"gateway": {"prefix": "2001:2:0:1::/96"}}, "gateway.prefix"),
        ({"left": {"ipv6": {"address": "2001:2::2", "gateway": "2001:2::9"}}}, "left.ipv6.gateway"),
        ({"left": {"mtu": 9000}}, "left.mtu"),
    ],
)
def test_a_file_that_contradicts_its_recipe(tables: dict[str, Any], where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        complete(netns(**tables), RECIPE)
    assert [problem.where for problem in caught.value.problems] == [f"campaign: {where}"]


def test_netns_wants_a_recipe_and_makes_its_ports() -> None:
    with pytest.raises(ConfigError, match=r"testbed\.recipe: is missing"):
        campaign_from_dict({"testbed": {"kind": "netns"}})
    with pytest.raises(ConfigError, match=r"left\.port: 'pci:1' is not allowed"):
        netns(left={"port": "pci:1"})
    assert netns(left={"port": "af_xdp"}, right={"port": "af_xdp"}).left is not None


def test_files_that_are_no_campaign(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_campaign(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_text("a = [")
    with pytest.raises(ConfigError, match="is not TOML"):
        load_campaign(tmp_path / "bad.toml")
    for text in (f"a{'.a' * 2000} = 1", f"seed = 0x{'f' * 5000}", "#" * 1_000_000):
        (tmp_path / "bad.toml").write_text(text)
        with pytest.raises(ConfigError, match=r"is not TOML: it (is nested|has a number|has more than)"):
            load_campaign(tmp_path / "bad.toml")
    (tmp_path / "bytes.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        load_campaign(tmp_path / "bytes.toml")
    strange = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.toml"))
    strange.write_text("")
    with pytest.raises(ConfigError, match=r"caf\\udce9\.toml: its path is not UTF-8"):
        load_campaign(strange)
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(ConfigError, match=r"testbed: is missing"):
        load_campaign(tmp_path / "empty.toml")


def test_the_file_name_is_the_default_name_and_recipes_are_found_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[testbed]\nkind = "netns"\nrecipe = "./box.toml"\n')
    campaign = load_campaign(file)
    assert campaign.name == "mine"
    assert campaign.testbed.recipe == str(tmp_path / "box.toml")


def test_search_trials_are_never_longer_than_trials() -> None:
    document = copy.deepcopy(BASE)
    document["trial"] = {"duration": "200ms"}
    throughput = campaign_from_dict(document).table(ThroughputTable)
    assert throughput.search_duration_ns == 200_000_000
    assert throughput.loss_tolerance == Fraction(0)


@pytest.mark.parametrize("file", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.name)
def test_the_examples_follow_the_schema(file: Path) -> None:
    import jsonschema

    document = tomllib.loads(file.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(document)
    assert load_series(file).columns if varies(file) else load_campaign(file)


@pytest.mark.parametrize("name", ["1-loopback-router4", "8-tayga-nat64", "16-tayga-mapt-br"])
def test_a_campaign_that_is_completed_again_stays_what_it_is(name: str) -> None:
    campaign = complete_campaign(load_campaign(ROOT / "examples" / f"{name}.toml"))
    assert complete_campaign(campaign) == campaign
    assert campaign.tables


def test_what_follows_from_a_campaign_follows_anew_from_its_copy() -> None:
    campaign, untouched = (complete_campaign(campaign_from_dict(BASE)) for _ in range(2))
    assert campaign.directions.in_use == ("forward", "reverse")
    assert campaign.directions.traffic_of("forward").hop_limit == campaign.traffic.hop_limit
    assert [table.key for table in campaign.tables] == ["throughput"]
    assert (campaign, campaign.to_document()) == (untouched, untouched.to_document())
    traffic = campaign.traffic.model_copy(update={"direction": ("reverse",), "hop_limit": 9})
    turned = campaign.model_copy(update={"traffic": traffic, "throughput": None})
    assert turned.directions.in_use == ("reverse",)
    assert turned.directions.traffic_of("forward").hop_limit == 9
    assert turned.tables == ()
    assert campaign.directions.in_use == ("forward", "reverse")
