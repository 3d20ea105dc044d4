"""Frames of customer edges as tshark reads them, translated and in tunnels: the vectors of the RFCs, and all forms.

What is due is computed here, bit by bit from RFC 7597, and shares nothing with gatemark.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.system.independent_decoder import Decoded, decode_capture, write_capture
from tests.system.machine import missing

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.plan import cells_of
from gatemark.dut.recipe import complete_campaign
from gatemark.engine.answers import Frame
from gatemark.engine.client import EngineClient
from gatemark.engine.process import start_engine
from gatemark.facts import OneWay
from gatemark.trial.request import frames_request

MISSING = [*missing(root=False), *([] if shutil.which("tshark") else ["tshark"])]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")

SERVER = "198.19.0.2"
DMR_LENGTHS = (32, 40, 48, 56, 64, 96)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """A rule, and one of its customer edges."""

    ipv6: str
    ipv4: str
    ea_bits: int
    offset: int
    edge: str
    """Its IPv4 address."""
    psid: int
    address: str
    """Its MAP address."""
    ports: tuple[int, int, int]
    """Lowest, highest, and how many."""
    psid_bits: int | None = None
    """Of a rule without EA bits."""


TABLE = """
2001:db8::/40          192.0.2.0/24     16 6 192.0.2.18       52 2001:db8:12:3400:0:c000:212:34         1232 64723  252
2001:db8::/40          192.0.2.0/24     16 6 192.0.2.0         0 2001:db8::c000:200:0                   1024 64515  252
2001:db8::/40          192.0.2.0/24     16 6 192.0.2.255     255 2001:db8:ff:ff00:0:c000:2ff:ff         2044 65535  252
2001:db8:8000::/50     192.0.2.0/24     14 0 192.0.2.200      10 2001:db8:8000:320a:0:c000:2c8:a       10240 11263  1024
2001:db8:ce::/51       192.0.2.0/24     13 0 192.0.2.192      21 2001:db8:ce:1815:0:c000:2c0:15        43008 45055  2048
2001:db8:ce::/51       192.0.2.0/24     13 6 192.0.2.192      21 2001:db8:ce:1815:0:c000:2c0:15         1696 65215  2016
2001:db8:ce::/51       192.0.2.0/24     20 0 192.0.2.200      10 2001:db8:ce:1900:1400:c000:2c8:a        160   175    16
2001:db8:ce::/51       192.0.2.0/24     20 0 192.0.2.255    4095 2001:db8:ce:1fff:fe00:c000:2ff:fff    65520 65535    16
2001:db8::/32          10.0.0.0/8       32 6 10.18.52.86     171 2001:db8:1234:56ab:0:a12:3456:ab       1708 65199  252
2001:db8::/32          203.0.113.77/32  12 4 203.0.113.77   2748 2001:db8:abc0::cb00:714d:abc           6844 64188    15
2001:db8::/36          192.0.2.0/24     16 2 192.0.2.9       129 2001:db8:98:1000:0:c000:209:81        24640 57471   192
2001:db8:a0::/44       198.18.0.0/16    20 4 198.18.1.2       15 2001:db8:a0:102f:0:c612:102:f          7936 65535  3840
2001:db8:1::/48        0.0.0.0/0        48 0 198.51.100.7  48879 2001:db8:1:c633:6407:beef:6407:beef   48879 48879     1
2001:db8::/32          198.51.100.0/24   6 6 198.51.100.20     0 2001:db8:1400::c633:6414:0                0 65535 65536
2001:db8:12:3400::/56  192.0.2.18/32     0 6 192.0.2.18       52 2001:db8:12:3400:0:c000:212:34         1232 64723  252
2001:db8:12:3400::/56  192.0.2.18/32     0 6 192.0.2.18        0 2001:db8:12:3400:0:c000:212:0             0 65535 65536
"""
"""RFC 7597 appendix A, and from a program of its own: rule IPv6 and IPv4 prefix, EA bits, offset; of a customer edge
IPv4 address, PSID and MAP address; the lowest and highest of its ports, and how many."""


def _vector(row: str) -> Vector:
    ipv6, ipv4, ea_bits, offset, edge, psid, address, *ports = row.split()
    lowest, highest, count = map(int, ports)
    return Vector(
        ipv6=ipv6,
        ipv4=ipv4,
        ea_bits=int(ea_bits),
        offset=int(offset),
        edge=edge,
        psid=int(psid),
        address=address,
        ports=(lowest, highest, count),
        psid_bits=8 if ea_bits == "0" and psid != "0" else None,
    )


VECTORS = [_vector(row) for row in TABLE.strip().splitlines()]


def bits_of(address: str, width: int) -> str:
    packed = int(IPv6Address(address)) if width == 128 else int(IPv4Address(address))
    return format(packed, f"0{width}b")


def embedded(address: str, dmr: IPv6Network) -> bytes:
    """An IPv4 address under a prefix (RFC 6052 section 2.2): octet 8 is skipped."""
    octets = list(dmr.network_address.packed)
    place = dmr.prefixlen // 8
    for octet in IPv4Address(address).packed:
        place += place == 8
        octets[place] = octet
        place += 1
    return bytes(octets)


def in_set(port: int, vector: Vector, psid_bits: int) -> bool:
    """Whether a port is one of the PSID's (RFC 7597 section 5.1), on its binary digits."""
    if not psid_bits:
        return True
    digits, end = format(port, "016b"), vector.offset + psid_bits
    return int(digits[vector.offset : end], 2) == vector.psid and (not vector.offset or "1" in digits[: vector.offset])


def narrowed(vector: Vector) -> tuple[dict[str, Any], int, int]:
    """Return a rule of few customer edges with the same one in it, its number among them, and the length of its PSID.

    EA bits that belong to the IPv4 suffix become part of both prefixes, which changes no address.
    """
    n, r = IPv6Network(vector.ipv6).prefixlen, IPv4Network(vector.ipv4).prefixlen
    suffix_bits = min(vector.ea_bits, 32 - r)
    psid_bits = vector.ea_bits - suffix_bits if vector.ea_bits else vector.psid_bits or 0
    moved = min(suffix_bits, max(0, vector.ea_bits - 8)) if vector.ea_bits else 0
    address, edge = bits_of(vector.address, 128), bits_of(vector.edge, 32)
    ea = address[n + moved : n + vector.ea_bits]
    rule = {
        "ipv6": str(IPv6Network((int(address[: n + moved].ljust(128, "0"), 2), n + moved))),
        "ipv4": str(IPv4Network((int(edge[: r + moved].ljust(32, "0"), 2), r + moved))),
        "ea_bits": vector.ea_bits - moved,
        "psid_offset": vector.offset,
    }
    if not vector.ea_bits and vector.psid_bits:
        rule |= {"psid_bits": vector.psid_bits, "psid": vector.psid}
    return rule, int(ea or "0", 2), psid_bits


def table_with(vector: Vector, **keys: str) -> tuple[dict[str, Any], int, int]:
    """Return few customer edges of which the last one is that of a vector, its number, and the length of its PSID."""
    rule, place, psid_bits = narrowed(vector)
    whole = 1 << rule["ea_bits"]
    from_above = place > whole // 2
    index = whole - 1 - place if from_above else place
    order = "decreasing" if from_above else "increasing"
    return {"domains": [{**rule, **keys}], "edges": index + 1, "order": order}, index, psid_bits


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineClient]:
    with start_engine() as started:
        yield started


def frames_of(
    engine: EngineClient, document: dict[str, Any], count: int, side: dict[str, Any] | None = None
) -> list[Frame]:
    """Return the first frames of every size of a campaign; `side` is what both sides have besides addresses."""
    campaign = complete_campaign(
        campaign_from_dict(
            {
                "gateway": {"technology": "map_t_br"},
                "testbed": {"kind": "ports"},
                "left": {
                    **(side or {}),
                    "mtu": 1600,
                    "port": "ring",
                    "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"},
                },
                "right": {
                    **(side or {}),
                    "port": "ring",
                    "ipv4": {"address": SERVER, "gateway": "198.19.0.1"},
                    "ipv6": {"address": "2001:2:0:8000::2", "gateway": "2001:2:0:8000::1"},
                },
                "frame_loss": {"rates": [1000]},
                **document,
            }
        )
    )
    of_cells = [engine.frames(frames_request(campaign, cell, count=count)) for cell in cells_of(campaign)]
    return [frame for of_cell in of_cells for frame in of_cell["frames"]]


def decoded(frames: list[Frame], tmp_path: Path) -> Iterator[tuple[Frame, Decoded, Decoded]]:
    """Yield each frame as it is sent and as it is due, as tshark reads both."""
    capture = tmp_path / "frames.pcap"
    write_capture(capture, (bytes.fromhex(frame[form]) for frame in frames for form in ("sent", "expected")))
    read = decode_capture(capture)
    yield from zip(frames, read, read, strict=True)


def faultless(frames: list[Frame], index: int, tmp_path: Path) -> dict[OneWay, tuple[Decoded, Decoded]]:
    """Check that nothing is wrong with any frame; return those of one index by direction, as sent and as due."""
    chosen = {}
    for frame, sent, due in decoded(frames, tmp_path):
        assert (sent.complaints, due.complaints, sent.behind_packet, due.behind_packet) == ((), (), 0, 0)
        if frame["index"] == index:
            chosen[frame["direction"]] = sent, due
    return chosen


@pytest.mark.parametrize("number", range(len(VECTORS)))
def test_each_vector_is_what_tshark_reads(engine: EngineClient, number: int, tmp_path: Path) -> None:
    vector = VECTORS[number]
    dmr = IPv6Network(("3fff::", DMR_LENGTHS[number % len(DMR_LENGTHS)]))
    table, index, psid_bits = table_with(vector, dmr=str(dmr))
    frames = frames_of(engine, {"map": table, "traffic": {"frame_sizes": {"family": "ipv6", "octets": 128}}}, index + 1)
    last = faultless(frames, index, tmp_path)
    server, edge = IPv4Address(SERVER).packed, IPv4Address(vector.edge).packed
    sent, due = last["forward"]
    assert (sent.source, sent.destination) == (IPv6Address(vector.address).packed, embedded(SERVER, dmr))
    assert (due.source, due.destination) == (edge, server)
    assert due.source_port == sent.source_port
    assert in_set(sent.source_port, vector, psid_bits)
    sent, due = last["reverse"]
    assert (sent.source, sent.destination) == (server, edge)
    assert (due.source, due.destination) == (embedded(SERVER, dmr), IPv6Address(vector.address).packed)
    assert due.destination_port == sent.destination_port
    assert in_set(sent.destination_port, vector, psid_bits)
    of_psid = [port for port in range(65536) if in_set(port, vector, psid_bits)]
    assert (of_psid[0], of_psid[-1], len(of_psid)) == vector.ports


RELAY = "2001:2:0:ffff::1"
TUNNELS = {"gateway": {"technology": "map_e_br", "tunnel": {"address": RELAY, "hop_limit": 33}}}


@pytest.mark.parametrize("number", range(len(VECTORS)))
def test_each_vector_is_in_its_tunnel(engine: EngineClient, number: int, tmp_path: Path) -> None:
    """MAP-E (RFC 7597 section 8): the MAP address is that of the outer header, and no checksum is one of it."""
    vector = VECTORS[number]
    table, index, psid_bits = table_with(vector)
    check_tunnel(engine, table, index, vector, psid_bits, "map_e_br", tmp_path)


BINDINGS = [
    Vector(
        ipv6="2001:db8:1:2::/64", ipv4="192.0.2.1/32", ea_bits=6, offset=0, edge="192.0.2.1", psid=0x12,
        address="2001:db8:1:2:0:c000:201:12", ports=(18432, 19455, 1024),
    ),
    Vector(
        ipv6="2001:db8:1:2::/64", ipv4="192.0.2.1/32", ea_bits=0, offset=0, edge="192.0.2.1", psid=0,
        address="2001:db8:1:2:0:c000:201:0", ports=(0, 65535, 65536),
    ),
    Vector(
        ipv6="2001:db8:ffff:ffff::/64", ipv4="198.51.100.20/30", ea_bits=10, offset=4, edge="198.51.100.20", psid=0xAB,
        address="2001:db8:ffff:ffff:0:c633:6414:ab", ports=(6832, 64191, 240),
    ),
]  # fmt: skip
"""Softwires: here the EA bits are those of IPv4 suffix and PSID."""


@pytest.mark.parametrize("binding", BINDINGS, ids=lambda binding: binding.address)
def test_each_softwire_has_the_address_of_its_binding(engine: EngineClient, binding: Vector, tmp_path: Path) -> None:
    """An lwAFTR (RFC 7596 section 5.1): all lwB4s have one prefix."""
    psid_bits = binding.ea_bits - (32 - IPv4Network(binding.ipv4).prefixlen)
    part = {"ipv6": binding.ipv6, "ipv4": binding.ipv4, "psid_bits": psid_bits, "psid_offset": binding.offset}
    table = {"softwires": [part], "edges": binding.psid + 1, "order": "increasing"}
    check_tunnel(engine, table, binding.psid, binding, psid_bits, "lwaftr", tmp_path)


def check_tunnel(
    engine: EngineClient,
    table: dict[str, Any],
    index: int,
    vector: Vector,
    psid_bits: int,
    technology: str,
    tmp_path: Path,
) -> None:
    """Check the frames of the customer edge with this number in both directions."""
    traffic = {"frame_sizes": {"family": "ipv4", "octets": 128}}
    gateway = {**TUNNELS["gateway"], "technology": technology}
    frames = frames_of(engine, {"map": table, "traffic": traffic, "gateway": gateway}, index + 1)
    last = faultless(frames, index, tmp_path)
    server, bits = IPv4Address(SERVER).packed, IPv4Network(vector.ipv4).prefixlen + vector.ea_bits
    edge = IPv4Network((vector.edge, min(32, bits)))  # its address, or its prefix
    ends = IPv6Address(vector.address).packed, IPv6Address(RELAY).packed
    of_psid = [port for port in range(65536) if in_set(port, vector, psid_bits)]
    assert (of_psid[0], of_psid[-1], len(of_psid)) == vector.ports
    sent, due = last["forward"]
    assert sent.outer is not None and due.outer is None
    assert (sent.outer.source, sent.outer.destination) == ends
    assert sent.source == due.source and IPv4Address(sent.source) in edge
    assert sent.destination == due.destination == server
    assert due.source_port == sent.source_port and in_set(sent.source_port, vector, psid_bits)
    sent, due = last["reverse"]
    assert sent.outer is None and due.outer is not None
    assert (due.outer.destination, due.outer.source, due.outer.hop_limit) == (*ends, 33)
    assert sent.source == due.source == server
    assert sent.destination == due.destination and IPv4Address(sent.destination) in edge
    assert due.destination_port == sent.destination_port and in_set(sent.destination_port, vector, psid_bits)
    assert due.hop_limit == sent.hop_limit - 1


@pytest.mark.parametrize(("vlan", "traffic_class"), [(None, 184), (7, 0)])
def test_every_size_is_whole_in_its_tunnel(
    engine: EngineClient, vlan: int | None, traffic_class: int, tmp_path: Path
) -> None:
    """Forty octets more on the left, with and without a VLAN tag, beside native IPv6."""
    rule, _, _ = narrowed(VECTORS[0])
    sizes = (*range(64, 90), 127, 128, 512, 1023, 1024, 1280, 1498)
    traffic = {
        "frame_sizes": {"family": "ipv4", "octets": sizes},
        "mix": "1/2",
        "traffic_class": traffic_class,
        "direction": "bidirectional",
    }
    document = {"map": {"domains": [rule]}, "traffic": traffic, **TUNNELS}
    alone_octets = set()
    for frame, sent, due in decoded(frames_of(engine, document, 12, {} if vlan is None else {"vlan": vlan}), tmp_path):
        assert (sent.complaints, due.complaints, sent.behind_packet, due.behind_packet) == ((), (), 0, 0)
        assert (sent.vlan, due.vlan) == (vlan, vlan)
        assert sent.traffic_class == due.traffic_class == traffic_class
        inside, alone = (sent, due) if frame["direction"] == "forward" else (due, sent)
        if frame["class"] == "background":
            assert (inside.outer, alone.outer, inside.octets - alone.octets) == (None, None, 0)
            continue
        assert inside.outer is not None and alone.outer is None
        assert inside.outer.traffic_class == traffic_class
        assert inside.octets == alone.octets + 40
        alone_octets.add(alone.octets)
    assert alone_octets == set(sizes)


FORMS = list(product((84, 129, 1044), DMR_LENGTHS, ("pseudorandom", "increasing"), (0, 184)))


def test_no_checksum_is_wrong_in_any_form(engine: EngineClient, tmp_path: Path) -> None:
    """Sizes, prefix lengths, order of ports, traffic classes, both rules for DF, beside native IPv6."""
    frames: list[Frame] = []
    classes: list[int] = []
    for number, (octets, length, ports, traffic_class) in enumerate(FORMS):
        vector = VECTORS[number % len(VECTORS)]
        rule, _, _ = narrowed(vector)
        table = {
            "domains": [{**rule, "dmr": str(IPv6Network(("3fff::", length)))}],
            "forward_ports": ports,
            "reverse_ports": ports,
        }
        traffic = {
            "frame_sizes": {"family": "ipv6", "octets": octets},
            "mix": "1/2",
            "traffic_class": traffic_class,
            "dont_fragment": bool(number % 2),
        }
        gateway = {"technology": "map_t_br", "dont_fragment_rule": ("rfc7915", "rfc6145")[number // 2 % 2]}
        of_form = frames_of(engine, {"map": table, "traffic": traffic, "gateway": gateway}, 60)
        frames += of_form
        classes += [traffic_class] * len(of_form)
    for (frame, sent, due), traffic_class in zip(decoded(frames, tmp_path), classes, strict=True):
        assert (sent.complaints, due.complaints, sent.behind_packet, due.behind_packet) == ((), (), 0, 0), frame
        assert sent.traffic_class == due.traffic_class == traffic_class
        is_foreground = frame["class"] == "foreground"
        assert (sent.octets - due.octets) == (0 if not is_foreground else 20 if sent.family == "ipv6" else -20)
