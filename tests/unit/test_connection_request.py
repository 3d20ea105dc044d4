"""What is asked of the engine for test phase 1, test phase 2 and the validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gatemark.campaign.plan import cells_of
from gatemark.config.model import Campaign
from gatemark.config.types import FRAMES_PER_SECOND_MAX, Mix
from gatemark.errors import ConfigError
from gatemark.trial.connection_request import (
    establish_request,
    establishing_ns,
    frame_rate,
    frames_requests,
    frames_with,
    use_request,
    validation_request,
)
from gatemark.trial.request import open_request

NatCampaign = Callable[..., Campaign]
SECOND = 10**9
HALF = {"mix": "1/2", "frame_sizes": {"family": "ipv4", "octets": 84}}


def phases(campaign: Campaign, connections: int = 1000) -> list[Any]:
    cell = cells_of(campaign)[0]
    same: dict[str, Any] = {"connections": connections, "trial_number": 3}
    return [
        establish_request(campaign, cell, connections_per_second=500, **same),
        use_request(campaign, cell, frames_per_second=2000, duration_ns=SECOND, **same),
        validation_request(campaign, cell, connections_per_second=250, **same),
    ]


def identity(body: dict[str, Any]) -> Any:
    """What the engine knows connections by: it must not change between the phases."""
    of_phase = ("phase", "send_order", "read_order")
    connections = {key: value for key, value in body["connections"].items() if key not in of_phase}
    tuples = set()
    for direction in body["directions"]:
        stream = direction["foreground"]
        ends = [(str(stream["source"]), str(stream["source_ports"]))]
        ends.append((str(stream["destination"]), str(stream["destination_ports"])))
        tuples.add(tuple(ends if direction["direction"] == "forward" else ends[::-1]))
    return connections, tuples


@given(m=st.integers(1, 20), more=st.integers(0, 20), count=st.integers(1, 100_000), rate=st.integers(1, 10**8))
def test_phase_1_has_exactly_one_foreground_frame_a_connection(m: int, more: int, count: int, rate: int) -> None:
    mix = Mix(m=m, n=m + more)
    frames, per_second = frames_with(mix, count), frame_rate(mix, rate)
    assume(per_second <= FRAMES_PER_SECOND_MAX)  # faster, a frame takes less than the nanosecond that times are kept in
    assert frames // mix.n * mix.m + min(frames % mix.n, mix.m) == count
    assert (frames - 1) % mix.n < mix.m  # with one frame fewer a connection would be missing
    assert establishing_ns(mix, count, rate) * per_second // SECOND == frames
    assert per_second * mix.m >= rate * mix.n > (per_second - 1) * mix.m


@pytest.mark.parametrize("technology", ["nat44", "nat64", "nat66", "nat46"])
@pytest.mark.parametrize("inside", ["left", "right"])
def test_all_phases_are_about_the_same_connections(nat_campaign: NatCampaign, technology: str, inside: str) -> None:
    campaign = nat_campaign(technology, gateway={"inside": inside})
    bodies = phases(campaign)
    known = [identity(body) for body in bodies]
    assert known[0] == known[1] == known[2]
    assert all(len(tuples) == 1 for _, tuples in known)  # the Responder's stream is the mirror image
    upload, download = ("forward", "reverse") if inside == "left" else ("reverse", "forward")
    assert [d["direction"] for d in bodies[0]["directions"]] == [upload]
    assert [d["direction"] for d in bodies[1]["directions"]] == ["forward", "reverse"]
    assert [d["direction"] for d in bodies[2]["directions"]] == [download]
    assert {body["connections"]["initiator"] for body in bodies} == {inside}


def test_phase_1_opens_all_ports_and_waits_for_the_last_frames(nat_campaign: NatCampaign) -> None:
    body = phases(nat_campaign(connections={"count": "100k", "timeout": "700ms"}), 100_000)[0]
    stream = body["directions"][0]["foreground"]
    assert stream["source_ports"] == {"mode": "pseudorandom", "minimum": 1024, "maximum": 41023}
    assert stream["destination_ports"] == {"mode": "pseudorandom", "minimum": 1, "maximum": 3}
    assert body["waits"] == {"settle_ns": 10**7, "learn_ns": 10**7, "drain_ns": 7 * 10**8, "rest_ns": 0}
    assert body["directions"][0]["frames_per_second"] == 500
    assert body["duration_ns"] == 200 * SECOND
    assert body["connections"] == {
        "phase": "establish",
        "initiator": "left",
        "count": 100_000,
        "order": "pseudorandom",
        "send_order": "increasing",
        "read_order": "pseudorandom",
        "pool": ["198.19.0.1/32"],
    }


def test_one_port_is_fixed(nat_campaign: NatCampaign) -> None:
    stream = phases(nat_campaign())[0]["directions"][0]["foreground"]
    assert stream["destination_ports"] == {"mode": "fixed", "minimum": 1, "maximum": 1}


def test_phase_2_follows_after_the_gap_without_learning(nat_campaign: NatCampaign) -> None:
    campaign = nat_campaign(connections={"send_order": "fixed", "read_order": "decreasing"})
    establish, use, validation = phases(campaign)
    for body in (use, validation):
        assert body["connections"]["phase"] == "use"
        assert body["waits"] == {"settle_ns": 3 * 10**7, "learn_ns": 0, "drain_ns": 10**7, "rest_ns": 10**7}
    assert establish["connections"]["send_order"] == "increasing"
    assert use["connections"]["send_order"] == "fixed"
    assert use["connections"]["read_order"] == "decreasing"
    assert validation["connections"]["read_order"] == "increasing"
    assert validation["duration_ns"] * 250 // SECOND == 1000


def test_background_goes_on_beside_the_connections(nat_campaign: NatCampaign) -> None:
    campaign = nat_campaign("nat64", traffic=HALF, background=True)
    establish, use, _ = phases(campaign)
    (direction,) = establish["directions"]
    assert direction["frames_per_second"] == 1000
    assert establish["duration_ns"] * 1000 // SECOND == 1999
    for way in (direction, *use["directions"]):
        assert way["background"]["source_ports"]["maximum"] - way["background"]["source_ports"]["minimum"] > 1000
        assert way["background"]["translation"] is None
        assert way["foreground"]["translation"]["prefix"] == "2001:2:0:6400::/96"


def test_a_known_zero_checksum_is_told_to_the_engine(nat_campaign: NatCampaign) -> None:
    for known in (True, False):
        body = phases(nat_campaign("nat64", gateway={"zero_udp_checksum": known}))[0]
        assert body["directions"][0]["foreground"]["translation"]["zero_udp_checksum"] is known


def test_the_dont_fragment_rule_of_a_translator_in_a_nat44_is_told_to_the_engine(nat_campaign: NatCampaign) -> None:
    """464XLAT from end to end is a NAT44 in which the last translator decides on DF (RFC 6877)."""
    for rule, told in ((None, "kept"), ("rfc7915", "rfc7915"), ("rfc6145", "rfc6145")):
        gateway = {} if rule is None else {"dont_fragment_rule": rule}
        bodies = phases(nat_campaign(gateway=gateway))
        streams = [way["foreground"] for body in bodies for way in body["directions"]]
        assert {stream["dont_fragment_rule"] for stream in streams} == {told}
        assert {stream["translation"] for stream in streams} == {None}
    streams = [way["foreground"] for way in phases(nat_campaign("nat64"))[-1]["directions"]]
    assert {stream["dont_fragment_rule"] for stream in streams} == {"rfc7915"}
    with pytest.raises(ConfigError, match=r"which sends no IPv4"):
        nat_campaign("nat66", gateway={"dont_fragment_rule": "rfc7915"})


def test_in_a_loop_back_the_initiators_hosts_are_the_pool(nat_campaign: NatCampaign) -> None:
    hosts = {"offset": 2, "mode": "pseudorandom", "range": "2-9"}
    left = {"ipv4": {"address": "198.18.0.2", "hosts": hosts}}
    campaign = nat_campaign(
        gateway={"pool": [], "control": None},
        testbed={"kind": "loopback"},
        left=left,
        right={"ipv4": {"address": "198.19.0.2"}},
    )
    body = phases(campaign)[0]
    assert body["connections"]["pool"] == ["198.18.0.0/28"]
    assert body["directions"][0]["foreground"]["expect"] == "as_sent"


def test_the_tester_answers_for_no_public_address(nat_campaign: NatCampaign) -> None:
    campaign = nat_campaign(gateway={"pool": ["198.19.1.0/24"]})
    opened: Any = open_request(campaign, [])
    assert [hosts["address"] for hosts in opened["right"]["answer_for"]] == ["198.19.0.2"]


def test_frames_are_shown_of_phase_1_and_of_the_responder(nat_campaign: NatCampaign) -> None:
    campaign = nat_campaign()
    shown: Any = frames_requests(campaign, cells_of(campaign)[0], count=5)
    assert [(body["trial"]["connections"]["phase"], body["trial"]["directions"][0]["direction"]) for body in shown] == [
        ("establish", "forward"),
        ("use", "reverse"),
    ]
    assert all("request" not in body["trial"] and body["count"] == 5 for body in shown)
    capacity = nat_campaign(
        frame_loss=None, connections={"count": []}, connection_tracking_table_capacity={"start": 77}
    )
    shown = frames_requests(capacity, cells_of(capacity)[0], count=5)
    assert shown[0]["trial"]["connections"]["count"] == 77
