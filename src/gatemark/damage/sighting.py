"""A frame of the Tester as a link carried it: its headers as they are, right or wrong. Pure.

Frames from the wire are hostile: any octets are read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from gatemark.packets import IpAddress, ip_packet, sums_to_zero

IPV6_OCTETS, UDP_OCTETS, FRAGMENT_OCTETS = 40, 8, 8
MARK_OCTETS = 18
"""The mark at the beginning of the UDP data (`engine/src/frame/signature.hpp`)."""
UDP, IPV4_INSIDE, IPV6_INSIDE, FRAGMENT = 17, 4, 41, 44
EXTENSIONS = frozenset((0, 43, 60))
"""Hop-by-hop options, routing, destination options (RFC 8200 section 4): their length is in units of 8 octets."""
HEADERS_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """One IP header with its extension headers."""

    version: int
    octets: int
    """Its length, extension headers included."""
    total: int
    """Length of the packet, as the header says."""
    is_whole: bool
    """Whether as many octets are there."""
    traffic_class: int
    hop_limit: int
    source: IpAddress
    destination: IpAddress
    inside: int
    """What follows it: a protocol number."""
    is_fragment: bool
    has_fragment_header: bool = False
    """IPv6: also of a packet that is no fragment (RFC 6946)."""
    extensions: bytes = b""
    flow_label: int = 0
    is_plain: bool = True
    """IPv4: it has no options, and the reserved bit is clear."""
    is_summed: bool = True
    """IPv4: its checksum is right."""
    dont_fragment: bool = False
    identification: int = 0

    @property
    def carried(self) -> int:
        """How many octets of payload it says there are."""
        return self.total - self.octets


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A UDP packet, in tunnels or not."""

    headers: tuple[Header, ...]
    """From the outside."""
    udp: bytes
    """From the UDP header to where the inner packet ends."""

    @property
    def ip(self) -> Header:
        """The header of the packet itself."""
        return self.headers[-1]

    @property
    def form(self) -> tuple[int, ...]:
        """The IP versions of its headers from the outside."""
        return tuple(header.version for header in self.headers)

    @property
    def is_part(self) -> bool:
        """Whether it is a fragment, or inside one."""
        return any(header.is_fragment for header in self.headers)

    @property
    def source_port(self) -> int:
        return int.from_bytes(self.udp[0:2], "big")

    @property
    def destination_port(self) -> int:
        return int.from_bytes(self.udp[2:4], "big")

    @property
    def udp_length(self) -> int:
        return int.from_bytes(self.udp[4:6], "big")

    @property
    def mark(self) -> bytes:
        """What tells which frame it is, or is in that place."""
        return self.udp[UDP_OCTETS : UDP_OCTETS + MARK_OCTETS]

    @property
    def data(self) -> bytes:
        """What follows the mark."""
        return self.udp[UDP_OCTETS + MARK_OCTETS :]

    @property
    def has_checksum(self) -> bool:
        """Whether the UDP checksum is not zero (RFC 768)."""
        return self.udp[6:8] != bytes(2)

    @property
    def is_summed(self) -> bool:
        """Whether everything with the UDP checksum, zero or not, sums to zero over the pseudo-header (RFC 1071)."""
        length = len(self.udp)
        pseudo = self.ip.source.packed + self.ip.destination.packed + struct.pack("!II", length, UDP)
        return self.udp_length == length and sums_to_zero(pseudo + self.udp)


def read_sighting(frame: bytes) -> Sighting | None:
    """Read an Ethernet frame, with VLAN tag or without; None if it holds no UDP packet or the first part of one."""
    rest, headers = ip_packet(frame), list[Header]()
    while len(headers) < HEADERS_MAX:
        header = _read_header(rest)
        if header is None:
            return None
        headers.append(header)
        rest = rest[header.octets : max(header.octets, header.total)]
        if header.inside == UDP:
            return Sighting(headers=tuple(headers), udp=rest) if len(rest) >= UDP_OCTETS else None
        if header.inside not in (IPV4_INSIDE, IPV6_INSIDE):
            return None
    return None


def _read_header(octets: bytes) -> Header | None:
    version = octets[0] >> 4 if octets else 0
    if version == 4:
        return _read_ipv4(octets)
    return _read_ipv6(octets) if version == 6 else None


def _read_ipv4(octets: bytes) -> Header | None:
    length = (octets[0] & 0xF) * 4
    if length < 20 or len(octets) < length:
        return None
    flags = int.from_bytes(octets[6:8], "big")
    total = int.from_bytes(octets[2:4], "big")
    if flags & 0x1FFF:  # a later fragment: what follows is no header
        return None
    return Header(
        version=4,
        octets=length,
        total=total,
        is_whole=len(octets) >= total,
        traffic_class=octets[1],
        hop_limit=octets[8],
        source=IPv4Address(octets[12:16]),
        destination=IPv4Address(octets[16:20]),
        inside=octets[9],
        is_fragment=bool(flags & 0x2000),
        is_plain=length == 20 and not flags & 0x8000,
        is_summed=sums_to_zero(octets[:length]),
        dont_fragment=bool(flags & 0x4000),
        identification=int.from_bytes(octets[4:6], "big"),
    )


def _read_ipv6(octets: bytes) -> Header | None:
    if len(octets) < IPV6_OCTETS:
        return None
    inside, end, is_fragment, has_fragment_header = octets[6], IPV6_OCTETS, False, False
    while inside in EXTENSIONS or inside == FRAGMENT:
        if len(octets) < end + 8:
            return None
        if inside == FRAGMENT:
            place = int.from_bytes(octets[end + 2 : end + 4], "big")
            if place & 0xFFF8:
                return None
            is_fragment, has_fragment_header = bool(place & 1), True
        length = FRAGMENT_OCTETS if inside == FRAGMENT else 8 * (octets[end + 1] + 1)
        inside, end = octets[end], end + length
    if len(octets) < end:
        return None
    word = int.from_bytes(octets[:4], "big")
    total = IPV6_OCTETS + int.from_bytes(octets[4:6], "big")
    return Header(
        version=6,
        octets=end,
        total=total,
        is_whole=len(octets) >= total,
        traffic_class=word >> 20 & 0xFF,
        flow_label=word & 0xFFFFF,
        hop_limit=octets[7],
        source=IPv6Address(octets[8:24]),
        destination=IPv6Address(octets[24:40]),
        inside=inside,
        is_fragment=is_fragment,
        has_fragment_header=has_fragment_header,
        extensions=octets[IPV6_OCTETS:end],
    )
