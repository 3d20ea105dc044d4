from __future__ import annotations

from typing import Any

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.trial.request import frames_request, open_request, resolve_requests, trial_request


def translator(**tables: Any) -> Campaign:
    hosts = {"mode": "pseudorandom", "range": "2-254"}
    return complete_campaign(
        campaign_from_dict(
            {
                "seed": 7,
                "gateway": {
                    "technology": "siit64",
                    "hop_limit_decrement": 3,
                    "prefix": "2001:2:0:6400::/96",
                    "eam": [{"ipv4": "198.18.0.0/24", "ipv6": "2001:2::/120"}],
                },
                "testbed": {"kind": "ports"},
                "left": {
                    "port": "af_packet:a",
                    "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1", "hosts": {"offset": 14, **hosts}},
                },
                "right": {
                    "port": "af_packet:b",
                    "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1", "hosts": {"offset": 2, **hosts}},
                    "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
                },
                "traffic": {
                    "mix": "9/10",
                    "frame_sizes": {"family": "ipv4", "octets": 64},
                    "forward": {"hop_limit": 64},
                    "destination_networks": 1,
                },
                **tables,
            }
        )
    )


def trial_of(campaign: Campaign) -> Any:
    (cell,) = cells_of(campaign)
    return trial_request(campaign, cell, frames_per_second=1000, duration_ns=10**9, trial_number=3)


def test_each_sender_has_its_own_family_and_size() -> None:
    forward, reverse = trial_of(translator())["directions"]
    assert (forward["direction"], forward["foreground_m"], forward["foreground_n"]) == ("forward", 9, 10)
    assert forward["foreground"]["frame_octets"] == 84
    assert forward["foreground"]["source"]["address"] == "2001:2::2"
    assert forward["foreground"]["destination"]["address"] == "198.19.0.2"
    assert forward["foreground"]["hop_limit"] == 64
    assert reverse["foreground"]["frame_octets"] == 64
    assert reverse["foreground"]["source"]["address"] == "198.19.0.2"
    assert reverse["foreground"]["hop_limit"] == 10
    assert reverse["foreground"]["translation"]["prefix"] == "2001:2:0:6400::/96"


def test_background_is_native_ipv6_that_the_translator_forwards() -> None:
    for direction in trial_of(translator())["directions"]:
        background = direction["background"]
        assert background["frame_octets"] == 84
        assert background["translation"] is None
        assert background["hop_limit_decrement"] == 1
        assert direction["foreground"]["hop_limit_decrement"] == 3
        assert ":" in background["source"]["address"]
        assert ":" in background["destination"]["address"]


def test_a_class_that_is_absent_is_null() -> None:
    sizes = {"frame_sizes": {"family": "ipv4", "octets": 64}}
    only_foreground = trial_of(translator(traffic={**sizes, "mix": "1/1", "direction": "forward"}))["directions"]
    assert [(d["direction"], d["background"]) for d in only_foreground] == [("forward", None)]
    only_background = trial_of(translator(traffic={**sizes, "mix": "0/1"}))["directions"]
    assert {d["foreground"] is None for d in only_background} == {True}


def test_destination_networks_are_those_of_the_destination() -> None:
    eam = [{"ipv4": "198.18.0.0/16", "ipv6": "2001:2::/32"}]
    gateway = {"technology": "siit64", "prefix": "2001:2:0:6400::/96", "eam": eam}
    traffic = {"destination_networks": 256, "frame_sizes": {"family": "ipv4", "octets": 64}}
    campaign = translator(gateway=gateway, traffic=traffic)
    stream = trial_of(campaign)["directions"][0]["foreground"]
    assert (stream["source"]["networks"], stream["destination"]["networks"]) == (1, 256)
    opened: Any = open_request(campaign, [])
    assert opened["right"]["answer_for"][0]["networks"] == 256


def test_each_direction_has_its_own_number_of_networks() -> None:
    eam = [{"ipv4": "198.18.0.0/16", "ipv6": "2001:2::/32"}]
    gateway = {"technology": "siit64", "prefix": "2001:2:0:6400::/96", "eam": eam}
    traffic = {
        "destination_networks": 100,
        "reverse": {"destination_networks": 7},
        "frame_sizes": {"family": "ipv4", "octets": 64},
    }
    campaign = translator(gateway=gateway, traffic=traffic)
    for direction, networks in zip(trial_of(campaign)["directions"], (100, 7), strict=True):
        stream = direction["foreground"]
        assert (stream["source"]["networks"], stream["destination"]["networks"]) == (1, networks)
    opened: Any = open_request(campaign, [])
    assert [opened[side]["answer_for"][0]["networks"] for side in ("left", "right")] == [7, 100]
    assert (campaign.directions.networks("left"), campaign.directions.networks("right")) == (7, 100)


def test_open_answers_for_hosts_and_the_base_address() -> None:
    request = open_request(translator(), [2, 3], {"left": "ring", "right": "ring"})
    assert request["cores"] == [2, 3]
    assert request["left"]["port"] == "ring"
    assert request["left"]["answer_for"] == [
        {"address": "2001:2::2", "offset": 14, "mode": "pseudorandom", "minimum": 2, "maximum": 254, "networks": 1},
        {"address": "2001:2::2", "offset": 0, "mode": "fixed", "minimum": 0, "maximum": 0, "networks": 1},
    ]
    assert len(request["right"]["answer_for"]) == 3  # IPv4 hosts, their base address, one IPv6 host


def test_nexthop_answers_for_router_and_hosts_teaches_none_and_asks_from_the_router() -> None:
    left = {
        "port": "af_packet:a",
        "address_mode": "nexthop",
        "ipv6": {"address": "2001:2::2", "router": "2001:2:0:1::10", "gateway": "2001:2:0:1::1"},
    }
    campaign = translator(left=left)
    opened: Any = open_request(campaign, [])
    answered = opened["left"]["answer_for"]
    assert [hosts["address"] for hosts in answered] == ["2001:2:0:1::10", "2001:2::2"]
    assert [opened[side]["teach_hosts"] for side in ("left", "right")] == [False, True]
    assert resolve_requests(campaign)[0]["source"] == "2001:2:0:1::10"


def test_every_family_in_use_is_resolved_unless_it_is_static() -> None:
    asked = [(body["side"], body["gateway"]) for body in resolve_requests(translator())]
    assert asked == [("left", "2001:2::1"), ("right", "198.19.0.1"), ("right", "2001:2:0:8000::1")]
    static = translator(left={"port": "af_packet:a", **STATIC_LEFT})
    assert {body["side"] for body in resolve_requests(static)} == {"right"}


STATIC_LEFT: dict[str, Any] = {"gateway_mac": "02:00:00:00:00:01", "ipv6": {"address": "2001:2::2"}}


def test_a_loopback_expects_frames_as_they_were_sent_and_asks_nobody() -> None:
    campaign = complete_campaign(
        campaign_from_dict(
            {
                "gateway": {"technology": "router44"},
                "testbed": {"kind": "loopback"},
                "traffic": {"frame_sizes": {"family": "ipv4", "octets": 64}},
            }
        )
    )
    stream = trial_of(campaign)["directions"][0]["foreground"]
    assert (stream["expect"], stream["hop_limit_decrement"]) == ("as_sent", 0)
    assert resolve_requests(campaign) == []


def test_frames_are_asked_for_with_the_body_of_a_trial() -> None:
    campaign = translator()
    request: Any = frames_request(campaign, cells_of(campaign)[0], count=5)
    assert "request" not in request["trial"]
    trial = request["trial"]
    assert trial["duration_ns"] * trial["directions"][0]["frames_per_second"] == 5 * 10**9


def checksums(campaign: Campaign) -> list[str | None]:
    """Of foreground and background of each direction."""
    return [
        direction[kind] and direction[kind]["udp_checksum"]
        for direction in trial_of(campaign)["directions"]
        for kind in ("foreground", "background")
    ]


def test_only_ipv4_frames_are_sent_without_checksum() -> None:
    assert checksums(translator()) == ["computed"] * 4
    sizes = {"frame_sizes": {"family": "ipv4", "octets": 64}, "mix": "9/10"}
    campaign = translator(traffic={**sizes, "reverse": {"udp_checksum": "zero"}})
    assert checksums(campaign) == ["computed", "computed", "zero", "computed"]


def test_each_side_says_whose_mac_addresses_its_hosts_have() -> None:
    right = {
        "port": "af_packet:b",
        "host_macs": "random",
        "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"},
        "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
    }
    campaign = translator(right=right)
    opened: Any = open_request(campaign, [])
    assert (opened["left"]["host_macs"], opened["right"]["host_macs"], opened["seed"]) == ("fixed", "random", 7)
    shown = frames_request(campaign, cells_of(campaign)[0], count=1)
    assert (shown["left_host_macs"], shown["right_host_macs"]) == ("fixed", "random")
