"""Frames of AFTRs and 6rd border relays as tshark reads them, in tunnels and behind them, at every size.

What is due is computed here from the RFCs, and shares nothing with gatemark.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import pytest
from tests.system.independent_decoder import Decoded
from tests.system.machine import missing
from tests.system.test_map_captures import decoded

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.dut.recipe import complete_campaign
from gatemark.engine.answers import Frame
from gatemark.engine.client import EngineClient
from gatemark.engine.process import start_engine
from gatemark.trial.connection_request import frames_requests

MISSING = [*missing(root=False), *([] if shutil.which("tshark") else ["tshark"])]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

IPV4_SIZES = (*range(64, 90), 127, 128, 512, 1023, 1024, 1280, 1498)
IPV6_SIZES = (*range(84, 110), 127, 128, 512, 1023, 1024, 1280, 1498)
HOP_LIMIT = 33
FRAMES = 20
VLANS = [(None, 184), (7, 0)]
AFTR, POOL, SERVER, PRIVATE = "2001:2:0:ffff::1", "198.19.0.1", "198.19.0.2", "10.0.0.1"
RELAY, SERVER_IPV6 = "198.18.0.1", "2001:2:0:8000::2"


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineClient]:
    with start_engine() as started:
        yield started


def frames_of(engine: EngineClient, document: dict[str, Any], vlan: int | None, traffic: dict[str, Any]) -> list[Frame]:
    """Return the first frames of both directions of every size of a campaign between two ports."""
    for name in ("left", "right"):
        document[name] |= {"port": "ring", "mtu": 1600, **({} if vlan is None else {"vlan": vlan})}
    whole = {"testbed": {"kind": "ports"}, "frame_loss": {"rates": [1000]}, "traffic": traffic, **document}
    campaign = complete_campaign(campaign_from_dict(whole))
    answers = [
        engine.frames(request)
        for cell in cells_of(campaign)
        for request in frames_requests(campaign, cell, count=FRAMES)
    ]
    return [frame for answer in answers for frame in answer["frames"]]


def check_whole(sent: Decoded, due: Decoded, vlan: int | None, traffic_class: int) -> None:
    """Check what holds of all frames that a relay forwards, in a tunnel or not."""
    assert (sent.complaints, due.complaints, sent.behind_packet, due.behind_packet) == ((), (), 0, 0)
    assert (sent.vlan, due.vlan) == (vlan, vlan)
    assert sent.traffic_class == due.traffic_class == traffic_class
    assert due.hop_limit == sent.hop_limit - 1


def aftr(b4s: int) -> dict[str, Any]:
    return {
        "gateway": {
            "technology": "aftr",
            "tunnel": {"address": AFTR, "hop_limit": HOP_LIMIT},
            "pool": [f"{POOL}/32"],
            "control": {"clear_state": "true"},
        },
        "left": {
            "ipv6": {
                "address": "2001:2::2",
                "gateway": "2001:2::1",
                "hosts": {"offset": 14, "mode": "pseudorandom", "range": f"2-{b4s + 1}"},
            }
        },
        "right": {"ipv4": {"address": SERVER, "gateway": "198.19.0.254"}},
        "connections": {"count": 1000, "rate": 1000, "source_ports": f"10000-{10_000 + 1000 // b4s - 1}"},
    }


@pytest.mark.parametrize(("vlan", "traffic_class"), VLANS)
def test_every_frame_of_an_aftr_is_whole(
    engine: EngineClient, vlan: int | None, traffic_class: int, tmp_path: Path
) -> None:
    """RFC 6333 section 6: each B4 has a tunnel of its own, and all have the same host behind them."""
    traffic = {"frame_sizes": {"family": "ipv4", "octets": IPV4_SIZES}, "traffic_class": traffic_class}
    frames = frames_of(engine, aftr(100), vlan, traffic)
    sizes, b4s, ways = set(), set(), set()
    for frame, sent, due in decoded(frames, tmp_path):
        is_up = frame["direction"] == "forward"
        inside, alone = (sent, due) if is_up else (due, sent)
        check_whole(sent, due, vlan, traffic_class)
        assert inside.outer is not None and alone.outer is None
        ends = [IPv6Address(end) for end in (inside.outer.source, inside.outer.destination)]
        b4, end = ends if is_up else ends[::-1]
        assert end == IPv6Address(AFTR) and IPv6Address("2001:2::2") <= b4 <= IPv6Address("2001:2::65")
        assert inside.outer.traffic_class == traffic_class
        assert is_up or inside.outer.hop_limit == HOP_LIMIT
        hosts = (inside.source, inside.destination) if is_up else (inside.destination, inside.source)
        assert [IPv4Address(host) for host in hosts] == [IPv4Address(PRIVATE), IPv4Address(SERVER)]
        assert IPv4Address(alone.destination if is_up else alone.source) == IPv4Address(SERVER)
        assert inside.octets == alone.octets + 40
        sizes.add(alone.octets)
        b4s.add(b4)
        ways.add(is_up)
    assert sizes == set(IPV4_SIZES) and len(b4s) > 1 and ways == {True, False}


def sixrd(prefix: str, mask: int, edges: dict[str, Any]) -> dict[str, Any]:
    tunnel = {"address": RELAY, "prefix": prefix, "ipv4_mask_length": mask, "hop_limit": HOP_LIMIT}
    return {
        "gateway": {"technology": "sixrd_br", "tunnel": tunnel},
        "left": {"ipv4": {"address": "198.18.0.2", "gateway": RELAY, **edges}},
        "right": {"ipv6": {"address": SERVER_IPV6, "gateway": "2001:2:0:8000::1"}},
    }


VARYING = {"hosts": {"offset": 2, "mode": "pseudorandom", "range": "2-1001"}}
PREFIXES = [
    ("2001:db8::/32", 0, VARYING),
    ("2001:db8:6464::/48", 16, VARYING),
    ("2001:db8:6400::/40", 8, VARYING),
    ("2001:db8:8000::/33", 4, {}),
]


@pytest.mark.parametrize(("vlan", "traffic_class"), VLANS)
@pytest.mark.parametrize(("prefix", "mask", "edges"), PREFIXES, ids=[prefix for prefix, _, _ in PREFIXES])
def test_every_frame_of_a_6rd_relay_is_whole(
    engine: EngineClient,
    prefix: str,
    mask: int,
    edges: dict[str, Any],
    vlan: int | None,
    traffic_class: int,
    tmp_path: Path,
) -> None:
    """RFC 5969 section 4: an edge's prefix is the 6rd prefix and the bits of its IPv4 address behind the mask."""
    traffic = {"frame_sizes": {"family": "ipv6", "octets": IPV6_SIZES}, "traffic_class": traffic_class}
    frames = frames_of(engine, sixrd(prefix, mask, edges), vlan, traffic)
    base, _, length = prefix.partition("/")
    sizes, addresses, ways = set(), set(), set()
    for frame, sent, due in decoded(frames, tmp_path):
        is_up = frame["direction"] == "forward"
        inside, alone = (sent, due) if is_up else (due, sent)
        check_whole(sent, due, vlan, traffic_class)
        assert inside.outer is not None and alone.outer is None
        assert (inside.outer.family, inside.family, inside.outer.traffic_class) == ("ipv4", "ipv6", traffic_class)
        ends = [IPv4Address(end) for end in (inside.outer.source, inside.outer.destination)]
        edge, end = ends if is_up else ends[::-1]
        bits = f"{int(IPv6Address(base)):0128b}"[: int(length)] + f"{int(edge):032b}"[mask:]
        host, server = (inside.source, inside.destination) if is_up else (inside.destination, inside.source)
        assert f"{int(IPv6Address(host)):0128b}".startswith(bits)
        assert (end, IPv6Address(server)) == (IPv4Address(RELAY), IPv6Address(SERVER_IPV6))
        assert is_up or inside.outer.hop_limit == HOP_LIMIT
        assert (sent.source, sent.destination) == (due.source, due.destination)
        assert inside.octets == alone.octets + 20
        sizes.add(alone.octets)
        addresses.add(edge)
        ways.add(is_up)
    assert sizes == set(IPV6_SIZES) and ways == {True, False}
    assert (len(addresses) > 1) == bool(edges)
