"""The engine's enumeration of four-tuples against an oracle written apart: every combination once, in any order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gatemark.engine.client import EngineClient
from gatemark.engine.process import start_engine

FIRST_HOST = 2


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineClient]:
    with start_engine() as started:
        started.hello()
        yield started


def hosts(address: str, count: int) -> dict[str, Any]:
    if count == 1:
        return {"address": address, "offset": 0, "mode": "fixed", "minimum": 0, "maximum": 0, "networks": 1}
    span = {"minimum": FIRST_HOST, "maximum": FIRST_HOST + count - 1}
    return {"address": address, "offset": 2, "mode": "pseudorandom", "networks": 1, **span}


def phase_one(radix: tuple[int, int, int, int], count: int, order: str, seed: int) -> dict[str, Any]:
    """Return the request for the frames of test phase 1: counts of source and destination ports and hosts."""
    source_ports, destination_ports, sources, destinations = radix
    stream = {
        "frame_octets": 64,
        "trailer_octets": 0,
        "hop_limit": 10,
        "traffic_classes": [0],
        "flow_label": 0,
        "extension_headers": [],
        "dont_fragment": False,
        "dont_fragment_rule": "kept",
        "udp_checksum": "computed",
        "source": hosts("198.18.0.2", sources),
        "destination": hosts("198.19.0.2", destinations),
        "source_ports": {"mode": "pseudorandom", "minimum": 1024, "maximum": 1023 + source_ports},
        "destination_ports": {"mode": "pseudorandom", "minimum": 1, "maximum": destination_ports},
        "expect": "gateway",
        "hop_limit_decrement": 1,
        "translation": None,
    }
    trial = {
        "trial_number": 1,
        "seed": seed,
        "duration_ns": count * 1_000_000,
        "waits": {"settle_ns": 0, "learn_ns": 0, "drain_ns": 0, "rest_ns": 0},
        "give_up_lateness_ns": 1_000_000_000,
        "kept_frames_max": 0,
        "progress_ns": 1_000_000_000,
        "connections": {
            "phase": "establish",
            "initiator": "left",
            "count": count,
            "order": order,
            "send_order": "increasing",
            "read_order": "pseudorandom",
            "pool": ["203.0.113.1/32"],
        },
        "directions": [
            {
                "direction": "forward",
                "frames_per_second": 1000,
                "foreground_m": 1,
                "foreground_n": 1,
                "foreground": stream,
                "background": None,
            }
        ],
    }
    macs = {"left_mac": "02:00:00:00:00:01", "right_mac": "02:00:00:00:00:02"}
    host_macs = {"left_host_macs": "fixed", "right_host_macs": "fixed"}
    vlans = {"left_vlan_id": None, "right_vlan_id": None}
    return {"request": "frames", "count": count, "trial": trial, **macs, **host_macs, **vlans}


def tuple_of(octets: str) -> tuple[int, int, int, int]:
    """Return source port, destination port, source host and destination host of a frame, each from 0."""
    packet = Ether(bytes.fromhex(octets))
    source, destination = (int(address.rpartition(".")[2]) - FIRST_HOST for address in (packet[IP].src, packet[IP].dst))
    return packet[UDP].sport - 1024, packet[UDP].dport - 1, source, destination


def decoded(number: int, radix: tuple[int, int, int, int]) -> tuple[int, ...]:
    """Return the digits of a number, the source port least significant."""
    digits = []
    for base in radix:
        number, digit = divmod(number, base)
        digits.append(digit)
    return tuple(digits)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    radix=st.tuples(st.integers(1, 30), st.integers(1, 12), st.integers(1, 5), st.integers(1, 5)),
    order=st.sampled_from(["increasing", "decreasing", "pseudorandom"]),
    seed=st.integers(0, 2**63 - 1),
    data=st.data(),
)
def test_every_connection_has_a_four_tuple_of_its_own(
    engine: EngineClient, radix: tuple[int, int, int, int], order: str, seed: int, data: st.DataObject
) -> None:
    product = radix[0] * radix[1] * radix[2] * radix[3]
    count = data.draw(st.one_of(st.just(product), st.integers(1, product)))
    frames = engine.frames(phase_one(radix, count, order, seed))["frames"]
    tuples = [tuple_of(frame["sent"]) for frame in frames]
    assert len(tuples) == count
    assert len(set(tuples)) == count
    assert all(0 <= digit < base for digits in tuples for digit, base in zip(digits, radix, strict=True))
    if order != "pseudorandom":
        numbers = range(count) if order == "increasing" else range(product - 1, product - 1 - count, -1)
        assert tuples == [decoded(number, radix) for number in numbers]
    elif count == product > 1000:
        assert tuples != sorted(tuples)
