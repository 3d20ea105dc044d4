"""Echo requests as the engine writes and expects them, read by a decoder that was written apart."""

from __future__ import annotations

import json
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Ether

from gatemark.engine.answers import Frame
from gatemark.engine.process import start_engine

EXAMPLE = Path(__file__).parents[2] / "protocol" / "examples" / "trial_echo_request.json"
COUNT = 300
MARK_OCTETS = 18
POOL = "198.19.0.1"


@pytest.fixture(scope="module")
def previewed() -> list[Frame]:
    trial = {key: value for key, value in json.loads(EXAMPLE.read_text()).items() if key not in ("request", "id")}
    request = {
        "request": "frames",
        "count": COUNT,
        "trial": trial,
        "left_mac": "02:00:00:00:00:01",
        "right_mac": "02:00:00:00:00:02",
        "left_host_macs": "fixed",
        "right_host_macs": "fixed",
        "left_vlan_id": None,
        "right_vlan_id": None,
    }
    with start_engine() as engine:
        engine.hello()
        frames = engine.frames(request)["frames"]
    assert len(frames) == COUNT
    return frames


def place(index: int) -> tuple[int, int, int]:
    """Return client, destination and round of a request of the example: 2 clients, 4 slots each, 11 rounds."""
    turn, client = divmod(index, 2)
    number, slot = divmod(turn, 4)
    return client, number // 11 * 4 + slot, number % 11


def checksums_made_again(packet: Any, octets: bytes) -> bytes:
    """Return the packet with the checksums that scapy finds."""
    for layer, field in ((IP, "chksum"), (ICMP, "chksum"), (ICMPv6EchoRequest, "cksum")):
        if layer in packet:
            delattr(packet[layer], field)
    written = bytes(packet)
    assert len(written) == len(octets)
    return written


def test_sent_requests_are_those_of_the_numbering(previewed: list[Frame]) -> None:
    for index, frame in enumerate(previewed):
        octets = bytes.fromhex(frame["sent"])
        packet = Ether(octets)
        client, destination, round_ = place(index)
        message = packet[ICMPv6EchoRequest]
        assert packet[IPv6].src == str(ip_address("2001:2::2") + client)
        host = ip_address("198.18.16.0") + client * 2048 + destination
        assert ip_address(packet[IPv6].dst) == ip_address("64:ff9b::") + int(host)
        assert (message.type, message.code, message.id, message.seq) == (128, 0, destination, round_)
        assert len(octets) == 118
        assert int.from_bytes(message.data[5:10], "big") == index
        assert message.data[MARK_OCTETS:] == bytes(range(MARK_OCTETS, 56))
        assert checksums_made_again(packet, octets) == octets


def test_expected_requests_are_what_a_nat64_makes_of_them(previewed: list[Frame]) -> None:
    for index, frame in enumerate(previewed):
        octets = bytes.fromhex(frame["expected"])
        packet = Ether(octets)
        client, destination, round_ = place(index)
        message = packet[ICMP]
        assert packet[IP].src == POOL
        assert packet[IP].dst == str(ip_address("198.18.16.0") + client * 2048 + destination)
        assert (packet[IP].ttl, packet[IP].len, int(packet[IP].flags)) == (9, 84, 0)
        assert (message.type, message.code, message.id, message.seq) == (8, 0, destination, round_)
        assert bytes(message.payload) == Ether(bytes.fromhex(frame["sent"]))[ICMPv6EchoRequest].data
        assert checksums_made_again(packet, octets) == octets
