"""Single packets, built octet for octet and read again by a library that shares nothing with the engine. Pure.

Frames from the wire are hostile: `read_frame` takes any octets.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Literal

import dpkt

IpAddress = IPv4Address | IPv6Address
Kind = Literal["udp", "echo request"]

ETHERNET_OCTETS = 14
TAG_OCTETS = 4
IPV6_OCTETS = 40
VLAN_TYPE = 0x8100
TYPES = {0x0800: 4, 0x86DD: 6}
TOO_LARGE = frozenset(("icmpv4 3/4", "icmpv6 2/0"))
"""Messages that a packet is too large for the next link, which state its MTU."""
IPV4_ERRORS = frozenset((3, 4, 5, 11, 12))
"""Types of ICMPv4 messages that quote the packet that they are about; those of ICMPv6 are below 128."""

_UNREADABLE = (
    dpkt.Error, struct.error, ValueError, IndexError, KeyError, AttributeError, TypeError, RecursionError
)  # fmt: skip
"""What dpkt raises on octets that are no packet, or one in hundreds of tunnels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunnel:
    """From where to where a tunnel leads: the addresses of the outer header (RFC 2473 section 3)."""

    source: IpAddress
    destination: IpAddress

    @property
    def back(self) -> Tunnel:
        """Return the tunnel between the same ends in the other direction."""
        return Tunnel(source=self.destination, destination=self.source)

    def __str__(self) -> str:
        return f"{self.source} to {self.destination}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What a packet is and between whom."""

    kind: Kind
    source: IpAddress
    destination: IpAddress
    source_port: int
    """The identifier of an echo request, which stands for its port (RFC 7599 section 9)."""
    destination_port: int = 0
    """The sequence number of an echo request."""
    tunnel: Tunnel | None = None
    """The tunnel that the packet is in, if any."""

    @property
    def inside(self) -> Flow:
        """Return the same packet in no tunnel."""
        return replace(self, tunnel=None)

    def __str__(self) -> str:
        if self.tunnel is not None:
            return f"{self.inside} in a tunnel from {self.tunnel}"
        if self.kind == "udp":
            return f"{self.source} port {self.source_port} to {self.destination} port {self.destination_port}"
        return f"{self.source} to {self.destination} identifier {self.source_port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterHeader:
    """What else the header of a tunnel says."""

    hop_limit: int
    traffic_class: int
    faults: tuple[str, ...] = ()
    """In words what is wrong with it whatever the tunnel is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """A UDP packet or echo request that arrived whole."""

    flow: Flow
    hop_limit: int
    data: bytes
    checksum_correct: bool
    """Of the transport header, and of the IPv4 header."""
    checksum_left_to_hardware: bool = False
    """Whether the UDP checksum is the sum of the pseudo-header alone: what software writes for a card that adds the
    rest."""
    outer: OuterHeader | None = None
    """The header of its tunnel, if it is in one."""
    was_in_fragments: bool = False
    """Whether it came in IPv4 fragments, each of them in its tunnel if there is one."""
    traffic_class: int = 0
    """Of its own header, not of that of its tunnel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcmpError:
    """An ICMP error message with what it quotes."""

    name: str
    """For example "icmpv6 1/5"."""
    quoted: Flow | None
    """None if it quotes too little."""
    mtu: int | None = None
    """Of the link that the packet was too large for (RFC 1191 section 4, RFC 4443 section 3.2); None if not stated."""
    tunnel: Tunnel | None = None
    """The tunnel that the message itself is in, if any."""
    quote: bytes = field(default=b"", compare=False)
    """What it quotes, octet for octet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A fragment of a packet."""

    source: IpAddress
    destination: IpAddress
    data: bytes
    tunnel: Tunnel | None = None
    """The tunnel that the fragment is in, if any."""
    outer: OuterHeader | None = None
    """The header of that tunnel."""
    header: bytes
    """Its own header; of IPv6 with the fragment header behind it (RFC 8200 section 4.5)."""

    @property
    def is_ipv6(self) -> bool:
        return isinstance(self.source, IPv6Address)

    @property
    def is_of_tunnel(self) -> bool:
        """Whether it is one of a tunnel packet, which its exit-point puts together (RFC 2473 section 7, RFC 4213
        section 3.6)."""
        if self.is_ipv6:
            return self.header[IPV6_OCTETS] == int(dpkt.ip.IP_PROTO_IPIP)
        return self.tunnel is None and self.header[9] == int(dpkt.ip.IP_PROTO_IP6)

    @property
    def identification(self) -> int:
        """Return the number that the fragments of a packet have in common."""
        return int.from_bytes(self.header[44:48] if self.is_ipv6 else self.header[4:6], "big")

    @property
    def offset(self) -> int:
        """Return where in the packet's payload its data begin, in octets."""
        if self.is_ipv6:
            return int.from_bytes(self.header[42:44], "big") & ~7
        return (int.from_bytes(self.header[6:8], "big") & 0x1FFF) << 3

    @property
    def is_last(self) -> bool:
        return not (self.header[43] & 1 if self.is_ipv6 else self.header[6] & 0x20)


Read = Packet | IcmpError | Fragment | None
"""What octets are; None if they are none of these."""


def build(
    flow: Flow,
    data: bytes,
    *,
    hop_limit: int,
    traffic_class: int = 0,
    dont_fragment: bool = False,
    identification: int = 0,
) -> bytes:
    """Return the IP packet of a flow in no tunnel, with correct checksums; identification and DF are those of IPv4."""
    upper: dpkt.udp.UDP | dpkt.icmp.ICMP | dpkt.icmp6.ICMP6
    is_ipv6 = isinstance(flow.source, IPv6Address)
    if flow.kind == "udp":
        protocol = dpkt.ip.IP_PROTO_UDP
        upper = dpkt.udp.UDP(sport=flow.source_port, dport=flow.destination_port, ulen=8 + len(data), data=data)
    elif is_ipv6:
        protocol = dpkt.ip.IP_PROTO_ICMP6
        echo = dpkt.icmp6.ICMP6.Echo(id=flow.source_port, seq=flow.destination_port, data=data)
        upper = dpkt.icmp6.ICMP6(type=dpkt.icmp6.ICMP6_ECHO_REQUEST, data=echo)
    else:
        protocol = dpkt.ip.IP_PROTO_ICMP
        inner = dpkt.icmp.ICMP.Echo(id=flow.source_port, seq=flow.destination_port, data=data)
        upper = dpkt.icmp.ICMP(type=dpkt.icmp.ICMP_ECHO, data=inner)
    packet = _packet_around(upper, protocol, flow.source, flow.destination, hop_limit=hop_limit)
    if is_ipv6:
        word = int.from_bytes(packet[:2], "big") | traffic_class << 4
        return word.to_bytes(2, "big") + packet[2:]
    header = bytearray(packet[:20])
    header[1] = traffic_class
    header[4:8] = struct.pack("!HH", identification, 0x4000 if dont_fragment else 0)
    header[10:12] = bytes(2)
    header[10:12] = struct.pack("!H", dpkt.in_cksum(bytes(header)))
    return bytes(header) + packet[20:]


def _packet_around(
    upper: dpkt.Packet, protocol: int, source: IpAddress, destination: IpAddress, *, hop_limit: int
) -> bytes:
    """Return the packet that a transport header and its data are in, with correct checksums of both."""
    length, ends = len(bytes(upper)), {"src": source.packed, "dst": destination.packed}
    if isinstance(source, IPv6Address):
        return bytes(dpkt.ip6.IP6(nxt=protocol, p=protocol, hlim=hop_limit, plen=length, data=upper, **ends))
    return bytes(dpkt.ip.IP(p=protocol, ttl=hop_limit, len=20 + length, data=upper, **ends))


def encapsulated(packet: bytes, tunnel: Tunnel, *, hop_limit: int, traffic_class: int) -> bytes:
    """Return the packet of a tunnel that another one is in (RFC 2473 section 3, RFC 4213 section 3.1)."""
    if isinstance(tunnel.source, IPv4Address):
        outer = dpkt.ip.IP(
            p=dpkt.ip.IP_PROTO_IP6,
            ttl=hop_limit,
            tos=traffic_class,
            len=20 + len(packet),
            src=tunnel.source.packed,
            dst=tunnel.destination.packed,
            data=packet,
        )
        return bytes(outer)
    header = dpkt.ip6.IP6(
        nxt=dpkt.ip.IP_PROTO_IPIP if packet[0] >> 4 == 4 else dpkt.ip.IP_PROTO_IP6,
        hlim=hop_limit,
        plen=len(packet),
        src=tunnel.source.packed,
        dst=tunnel.destination.packed,
    )
    header.fc = traffic_class
    return bytes(header)[:IPV6_OCTETS] + packet


def fragmented(packet: bytes, *, octets: int, identification: int) -> tuple[bytes, ...]:
    """Return a packet in fragments of `octets` of its payload, a multiple of 8."""
    if packet[0] >> 4 == 6:
        return tuple(_fragments_of_ipv6(packet, octets, identification))
    whole = dpkt.ip.IP(packet)
    payload = packet[whole.hl << 2 :]
    fragments = []
    for begin in range(0, len(payload), octets):
        part = payload[begin : begin + octets]
        fragment = dpkt.ip.IP(
            p=whole.p,
            ttl=whole.ttl,
            tos=whole.tos,
            id=identification,
            src=whole.src,
            dst=whole.dst,
            len=20 + len(part),
        )
        fragment.mf, fragment.offset = begin + octets < len(payload), begin // 8
        header = bytearray(fragment.pack_hdr())
        header[10:12] = struct.pack("!H", dpkt.in_cksum(bytes(header)))
        fragments.append(bytes(header) + part)
    return tuple(fragments)


def unreachable(packet: bytes, *, source: IpAddress, destination: IpAddress, hop_limit: int) -> bytes:
    """Return the ICMP error that the destination of a packet is not reached: IPv4 type 3 code 3, IPv6 type 1 code 3."""
    quote = bytes(4) + packet
    if isinstance(source, IPv6Address):
        protocol, message = dpkt.ip.IP_PROTO_ICMP6, dpkt.icmp6.ICMP6(type=1, code=3, data=quote)
    else:
        protocol, message = dpkt.ip.IP_PROTO_ICMP, dpkt.icmp.ICMP(type=3, code=3, data=quote)
    return _packet_around(message, protocol, source, destination, hop_limit=hop_limit)


def _fragments_of_ipv6(packet: bytes, octets: int, identification: int) -> Iterator[bytes]:
    """Yield the fragments of a packet without extension headers (RFC 8200 section 4.5)."""
    header, payload = packet[:IPV6_OCTETS], packet[IPV6_OCTETS:]
    for begin in range(0, len(payload), octets):
        data = payload[begin : begin + octets]
        more = begin + octets < len(payload)
        length = (8 + len(data)).to_bytes(2, "big")
        fragment = struct.pack("!BBHI", header[6], 0, begin | more, identification)
        yield header[:4] + length + bytes((dpkt.ip.IP_PROTO_FRAGMENT,)) + header[7:] + fragment + data


def joined(fragments: Sequence[Fragment]) -> Read:
    """Return the packet that is in these fragments; None if any is missing or there more than once."""
    parts = sorted(fragments, key=lambda part: part.offset)
    payload = b""
    for part in parts:
        if part.offset != len(payload) or part.is_last != (part is parts[-1]):
            return None
        payload += part.data
    try:
        return _joined_ipv6(parts[0], payload) if parts[0].is_ipv6 else _joined_ipv4(parts, payload)
    except _UNREADABLE:
        return None


def _joined_ipv6(first: Fragment, payload: bytes) -> Read:
    header = bytearray(first.header[:IPV6_OCTETS])
    header[4:6] = struct.pack("!H", len(payload))
    header[6] = first.header[IPV6_OCTETS]
    return _read_ipv6(bytes(header) + payload)


def _joined_ipv4(parts: Sequence[Fragment], payload: bytes) -> Read:
    first = parts[0]
    header = bytearray(first.header)
    header[2:4] = struct.pack("!H", len(header) + len(payload))
    header[6:8] = bytes(2)
    header[10:12] = bytes(2)
    if all(sums_to_zero(part.header) for part in parts):
        header[10:12] = struct.pack("!H", dpkt.in_cksum(bytes(header)))
    read = _read_ipv4(bytes(header) + payload, in_tunnel=not first.is_of_tunnel)
    if isinstance(read, Packet) and not first.is_of_tunnel:
        read = replace(read, was_in_fragments=True)
    return read if first.tunnel is None or first.outer is None else _in_tunnel(first.tunnel, first.outer, read)


def read_frame(frame: bytes) -> Read:
    """Read an Ethernet frame, with VLAN tag or without, and what is in its tunnel."""
    begin = _header_octets(frame)
    version = TYPES.get(int.from_bytes(frame[begin - 2 : begin], "big"))
    if version is None:
        return None
    try:
        return _read_ipv4(frame[begin:]) if version == 4 else _read_ipv6(frame[begin:])
    except _UNREADABLE:
        return None


def ip_packet(frame: bytes) -> bytes:
    """Return what an Ethernet frame carries, with VLAN tag or without."""
    return frame[_header_octets(frame) :]


def _header_octets(frame: bytes) -> int:
    return ETHERNET_OCTETS + TAG_OCTETS * (frame[12:14] == VLAN_TYPE.to_bytes(2, "big"))


def _read_ipv4(octets: bytes, *, in_tunnel: bool = False) -> Read:
    packet = dpkt.ip.IP(octets)
    header = octets[: packet.hl << 2]
    if packet.v != 4 or len(octets) < packet.len or packet.len < len(header):
        return None
    payload = octets[len(header) : packet.len]
    source, destination = IPv4Address(packet.src), IPv4Address(packet.dst)
    if packet.mf or packet.offset:
        return Fragment(source=source, destination=destination, data=payload, header=header)
    if packet.p == dpkt.ip.IP_PROTO_IP6 and not in_tunnel:
        faults = () if sums_to_zero(header) else ("wrong checksum of the outer header",)
        outer = OuterHeader(hop_limit=packet.ttl, traffic_class=packet.tos, faults=faults)
        return _in_tunnel(Tunnel(source=source, destination=destination), outer, _read_ipv6(payload, in_tunnel=True))
    pseudo = packet.src + packet.dst + struct.pack("!HH", packet.p, len(payload))
    if packet.p == dpkt.ip.IP_PROTO_ICMP and payload[0] in IPV4_ERRORS:
        name, mtu = f"icmpv4 {payload[0]}/{payload[1]}", int.from_bytes(payload[6:8], "big")
        return _error(name, payload, 4, mtu)
    flow = _flow(source, destination, packet.p, payload)
    summed = b"" if packet.p == dpkt.ip.IP_PROTO_ICMP else pseudo
    read = _packet(flow, packet.ttl, summed, payload, header_correct=sums_to_zero(header))
    return None if read is None else replace(read, traffic_class=packet.tos)


def _read_ipv6(octets: bytes, *, in_tunnel: bool = False) -> Read:
    is_extended = octets[6] in (dpkt.ip.IP_PROTO_DSTOPTS, dpkt.ip.IP_PROTO_FRAGMENT)
    packet = dpkt.ip6.IP6(octets if is_extended else octets[:40])
    payload = octets[40 : 40 + packet.plen]
    if packet.v != 6 or len(payload) < packet.plen:
        return None
    source, destination = IPv6Address(packet.src), IPv6Address(packet.dst)
    traffic_class = int.from_bytes(octets[:2], "big") >> 4 & 0xFF
    if packet.nxt == dpkt.ip.IP_PROTO_FRAGMENT:
        return Fragment(source=source, destination=destination, data=payload[8:], header=octets[: IPV6_OCTETS + 8])
    faults, protocol, carried = _behind_options(packet.nxt, payload)
    if protocol == dpkt.ip.IP_PROTO_IPIP and not in_tunnel:
        if len(carried) != int.from_bytes(carried[2:4], "big"):
            faults += ("octets behind the packet in the tunnel",)
        outer = OuterHeader(hop_limit=packet.hlim, traffic_class=traffic_class, faults=faults)
        return _in_tunnel(Tunnel(source=source, destination=destination), outer, _read_ipv4(carried, in_tunnel=True))
    pseudo = packet.src + packet.dst + struct.pack("!II", len(payload), packet.nxt)
    if packet.nxt == dpkt.ip.IP_PROTO_ICMP6 and payload[0] < 128:
        name, mtu = f"icmpv6 {payload[0]}/{payload[1]}", int.from_bytes(payload[4:8], "big")
        return _error(name, payload, 6, mtu)
    flow = _flow(source, destination, packet.nxt, payload)
    read = _packet(flow, packet.hlim, pseudo, payload, header_correct=True)
    return None if read is None else replace(read, traffic_class=traffic_class)


def _error(name: str, payload: bytes, version: int, mtu: int) -> IcmpError:
    stated = mtu or None if name in TOO_LARGE else None
    return IcmpError(name=name, quoted=_quoted(payload[8:], version), mtu=stated, quote=payload[8:])


def _behind_options(protocol: int, payload: bytes) -> tuple[tuple[str, ...], int, bytes]:
    """Return the fault of having destination options, as an encapsulation limit is, and what is behind them."""
    if protocol != dpkt.ip.IP_PROTO_DSTOPTS:
        return (), protocol, payload
    return ("options before the packet in the tunnel",), payload[0], payload[8 * (payload[1] + 1) :]


def _in_tunnel(tunnel: Tunnel, outer: OuterHeader, inside: Read) -> Read:
    """Return what a tunnel carries, with the tunnel."""
    if isinstance(inside, Packet):
        return replace(inside, flow=replace(inside.flow, tunnel=tunnel), outer=outer)
    if isinstance(inside, Fragment):
        return replace(inside, tunnel=tunnel, outer=outer)
    return None if inside is None else replace(inside, tunnel=tunnel)


def _packet(flow: Flow | None, hop_limit: int, pseudo: bytes, payload: bytes, *, header_correct: bool) -> Packet | None:
    """Return the packet whose transport header and data are `payload`, with the pseudo-header of its checksum."""
    if flow is None:
        return None
    correct, left = header_correct and sums_to_zero(pseudo + payload), False
    if flow.kind == "udp":
        length, checksum = struct.unpack("!HH", payload[4:8])
        left = not correct and checksum == _sum(pseudo)
        correct = correct and length == len(payload) and checksum != 0
    return Packet(
        flow=flow, hop_limit=hop_limit, data=payload[8:], checksum_correct=correct, checksum_left_to_hardware=left
    )


def _quoted(octets: bytes, version: int, *, in_tunnel: bool = False) -> Flow | None:
    """Return the flow of a packet that an error quotes, of which the end may be missing."""
    try:
        if version == 4:
            packet = dpkt.ip.IP(octets)
            header, protocol, carried = packet.hl << 2, packet.p, dpkt.ip.IP_PROTO_IP6
        else:
            packet = dpkt.ip6.IP6(octets[:40])
            header, protocol, carried = 40, packet.nxt, dpkt.ip.IP_PROTO_IPIP
        if protocol == carried and not in_tunnel:
            flow = _quoted(octets[header:], 10 - version, in_tunnel=True)
            ends = Tunnel(source=ip_address(packet.src), destination=ip_address(packet.dst))
            return None if flow is None else replace(flow, tunnel=ends)
        return _flow(ip_address(packet.src), ip_address(packet.dst), protocol, octets[header : header + 8])
    except _UNREADABLE:
        return None


def _flow(source: IpAddress, destination: IpAddress, protocol: int, upper: bytes) -> Flow | None:
    if len(upper) < 8:
        return None
    ports = struct.unpack("!HH", upper[:4] if protocol == dpkt.ip.IP_PROTO_UDP else upper[4:8])
    is_echo = (protocol, upper[0]) in (
        (dpkt.ip.IP_PROTO_ICMP, dpkt.icmp.ICMP_ECHO),
        (dpkt.ip.IP_PROTO_ICMP6, dpkt.icmp6.ICMP6_ECHO_REQUEST),
    )
    if protocol != dpkt.ip.IP_PROTO_UDP and not is_echo:
        return None
    return Flow(
        kind="echo request" if is_echo else "udp",
        source=source,
        destination=destination,
        source_port=ports[0],
        destination_port=ports[1],
    )


def differences(arrived: Packet, due: Flow, *, hop_limits: range, data: bytes) -> Iterator[str]:
    """Yield in words how a packet differs from what a correct gateway delivers, with any of these hop limits."""
    is_echo = due.kind == "echo request"
    flow = arrived.flow
    pairs = (
        ("kind", flow.kind, due.kind),
        ("source", flow.source, due.source),
        ("destination", flow.destination, due.destination),
        ("identifier" if is_echo else "source port", flow.source_port, due.source_port),
        ("sequence number" if is_echo else "destination port", flow.destination_port, due.destination_port),
    )
    yield from (f"{name} {got} instead of {wanted}" for name, got, wanted in pairs if got != wanted)
    if flow.tunnel != due.tunnel:
        yield f"{tunnel_words(flow.tunnel)} instead of {tunnel_words(due.tunnel)}"
    yield from () if arrived.outer is None else arrived.outer.faults
    if arrived.hop_limit not in hop_limits:
        yield f"hop limit {arrived.hop_limit} instead of {span_words(hop_limits)}"
    if arrived.checksum_left_to_hardware:
        yield "wrong checksum: the sum of the pseudo-header, left to hardware (checksum offload)"
    elif not arrived.checksum_correct:
        yield "wrong checksum"
    if arrived.data != data:
        yield "changed data"


def tunnel_words(tunnel: Tunnel | None) -> str:
    """Return in words which tunnel something is in."""
    return "in no tunnel" if tunnel is None else f"in a tunnel from {tunnel}"


def span_words(numbers: range) -> str:
    """Return in words which numbers are due, for example hop limits: "62" or "62 to 63"."""
    lowest, highest = numbers[0], numbers[-1]
    return str(lowest) if lowest == highest else f"{lowest} to {highest}"


def sums_to_zero(data: bytes) -> bool:
    """Whether the Internet checksum over data that holds its own checksum is right (RFC 1071)."""
    return _sum(data) == 0xFFFF


def _sum(data: bytes) -> int:
    """Return the one's complement sum of data (RFC 1071), which a checksum is the complement of."""
    total = sum(int.from_bytes(data[i : i + 2].ljust(2, b"\0"), "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
