"""Captures decoded by tshark, which shares nothing with gatemark; every checksum and length is checked."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from gatemark.technology import Family

FCS_OCTETS, ETHERNET_OCTETS, TAG_OCTETS = 4, 14, 4
HEADER_OCTETS: dict[Family, int] = {"ipv4": 20, "ipv6": 40}
GOOD = "1"
"""What tshark calls a checksum that is right."""
FAMILIES: dict[str, Family] = {"ip": "ipv4", "ipv6": "ipv6"}
"""By what tshark calls a protocol."""
NEXT_HEADER: dict[Family, int] = {"ipv4": 4, "ipv6": 41}
"""Of a packet inside another one (IANA, protocol numbers)."""
FIELDS = (
    "frame.len",
    "frame.protocols",
    "vlan.id",
    "ip.src",
    "ipv6.src",
    "ip.dst",
    "ipv6.dst",
    "udp.srcport",
    "udp.dstport",
    "ip.ttl",
    "ipv6.hlim",
    "ip.dsfield",
    "ipv6.tclass",
    "ip.checksum.status",
    "udp.checksum.status",
    "ip.len",
    "ipv6.plen",
    "ip.proto",
    "ipv6.nxt",
    "udp.length",
    "_ws.expert",
    "_ws.malformed",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    """The header around another packet."""

    family: Family
    source: bytes
    destination: bytes
    hop_limit: int
    traffic_class: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A frame as tshark reads it: the packet with UDP, and what is around it."""

    outer: Outer | None
    """None if it is in no tunnel."""
    family: Family
    octets: int
    """With FCS, without VLAN tag."""
    behind_packet: int
    """Of these: octets between the IP packet and the FCS."""
    vlan: int | None
    source: bytes
    destination: bytes
    source_port: int
    destination_port: int
    hop_limit: int
    traffic_class: int
    complaints: tuple[str, ...]
    """Wrong checksums and lengths, and whatever tshark calls malformed."""


def decode_capture(path: Path) -> Iterator[Decoded]:
    """Yield every frame of a capture, which must hold nothing but UDP."""
    options = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]
    # No dissector above UDP may find meaning in ports and payload.
    options += ["-d", "udp.port==0-65535,data", "-o", "udp.try_heuristic_first:FALSE"]
    fields = [word for field in FIELDS for word in ("-e", field)]
    command = ["tshark", "-n", "-r", str(path), *options, "-T", "fields", "-E", "occurrence=f", *fields]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tshark:
        assert tshark.stdout is not None
        assert tshark.stderr is not None
        for line in tshark.stdout:
            yield _decoded(dict(zip(FIELDS, line.rstrip("\n").split("\t"), strict=True)))
        said = tshark.stderr.read()
    assert tshark.returncode == 0, said


def _decoded(field: dict[str, str]) -> Decoded:
    families = [FAMILIES[name] for name in field["frame.protocols"].split(":") if name in FAMILIES]
    outer, family = families[0], families[-1]
    is_tunnel = len(families) > 1
    octets = int(field["frame.len"]) - (TAG_OCTETS if field["vlan.id"] else 0) + FCS_OCTETS
    packet, whole = _packet_octets(field, family), _packet_octets(field, outer)
    header = _header(field, family)
    return Decoded(
        outer=_header(field, outer) if is_tunnel else None,
        family=family,
        octets=octets,
        behind_packet=octets - FCS_OCTETS - ETHERNET_OCTETS - whole,
        vlan=int(field["vlan.id"]) if field["vlan.id"] else None,
        source=header.source,
        destination=header.destination,
        source_port=int(field["udp.srcport"]),
        destination_port=int(field["udp.dstport"]),
        hop_limit=header.hop_limit,
        traffic_class=header.traffic_class,
        complaints=(
            *_complaints(field, family, packet),
            *(_tunnel_complaints(field, outer, family, whole - packet) if is_tunnel else ()),
        ),
    )


def _header(field: dict[str, str], family: Family) -> Outer:
    name, hop_limit, traffic_class = ("ip", "ttl", "dsfield") if family == "ipv4" else ("ipv6", "hlim", "tclass")
    return Outer(
        family=family,
        source=ip_address(field[f"{name}.src"]).packed,
        destination=ip_address(field[f"{name}.dst"]).packed,
        hop_limit=int(field[f"{name}.{hop_limit}"]),
        traffic_class=int(field[f"{name}.{traffic_class}"], 0),
    )


def _packet_octets(field: dict[str, str], family: Family) -> int:
    return int(field["ip.len"]) if family == "ipv4" else int(field["ipv6.plen"]) + HEADER_OCTETS["ipv6"]


def _tunnel_complaints(field: dict[str, str], outer: Family, inside: Family, more: int) -> Iterator[str]:
    said = int(field["ip.proto" if outer == "ipv4" else "ipv6.nxt"])
    if said != NEXT_HEADER[inside]:
        yield f"next header {said} before a packet of {inside}"
    if more != HEADER_OCTETS[outer]:
        yield f"the packet outside is {more} octets longer than the one inside"


def _complaints(field: dict[str, str], family: Family, packet_octets: int) -> Iterator[str]:
    for name in ("_ws.expert", "_ws.malformed"):
        if field[name] and "(Chat/" not in field[name]:  # ports that may be those of a traceroute are no fault
            yield f"{name}: {field[name]}"
    if field["udp.checksum.status"] != GOOD:
        yield "wrong UDP checksum"
    if field["ip.checksum.status"] not in ("", GOOD):
        yield "wrong IPv4 header checksum"
    if int(field["udp.length"]) != packet_octets - HEADER_OCTETS[family]:
        yield f"UDP says {field['udp.length']} octets in a packet of {packet_octets}"


def write_capture(path: Path, frames: Iterable[bytes]) -> None:
    """Write frames without FCS as a capture of Ethernet."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for octets in frames:
            file.write(struct.pack("<IIII", 0, 0, len(octets), len(octets)) + octets)
