"""Translators made of scapy, for packets that are exchanged one by one; what each does wrong is an argument.

They know one IPv6 prefix of the IPv4 side (RFC 6052), and of the IPv6 side 2001:2::x as 198.18.0.x (RFC 7757).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from itertools import pairwise
from typing import Any, Literal, TypeVar

from scapy.layers.inet import ICMP, IP, UDP, defragment, fragment
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    ICMPv6TimeExceeded,
    IPv6,
    IPv6ExtHdrFragment,
    defragment6,
    fragment6,
)
from scapy.packet import Packet, Raw

from gatemark.embedded_ipv4 import embed_ipv4, embedded_ipv4

PREFIX = IPv6Network("2001:2:0:6400::/96")
INSIDE_IPV6, INSIDE_IPV4 = IPv6Network("2001:2::/112"), 0xC612_0000
PUBLIC = IPv4Address("198.19.0.1")
CLAT = IPv6Address("2001:2:0:4000::1")
MACS = "020000000001020000000099"
ETHERNET_PAYLOAD_OCTETS = 46
"""Least octets of what a frame carries; it is padded to them."""
ETHERNET = {IP: f"{MACS}0800", IPv6: f"{MACS}86dd"}
"""Header of a frame by what is in it."""

TranslatorFault = Literal[
    "forwards nothing",
    "drops echo",
    "never answers",
    "ignores hop limits",
    "drops hairpin",
    "hairpins to the other side",
    "keeps the mapped source",
    "hairpins without a hop",
    "hairpins with too many hops",
]
NatFault = Literal[
    "forwards nothing",
    "drops echo",
    "never answers",
    "ignores hop limits",
    "drops hairpin",
    "keeps the inside source",
    "another source port",
    "a source outside the pool",
    "filters by address",
    "symmetric",
]


P = TypeVar("P", bound=Packet)
ClassFault = Literal[
    "loses the class of tunnels",
    "loses the class into tunnels",
    "loses the class from tunnels",
    "takes the class of tunnels",
]
CLASS_FAULTS: list[tuple[ClassFault, dict[str, str]]] = [
    ("loses the class of tunnels", {"class_into_tunnel": "does_not_conform"}),
    ("loses the class into tunnels", {"class_into_tunnel": "does_not_conform"}),
    ("loses the class from tunnels", {"class_from_tunnel": "does_not_conform"}),
    ("takes the class of tunnels", {}),
]
"""What a gateway with tunnels does wrong with traffic classes, and which judgements that changes."""


def class_of(packet: Packet) -> int:
    octet: int = packet.tos if isinstance(packet, IP) else packet.tc
    return octet


def with_class(packet: P, octet: int) -> P:
    """Return a packet with another traffic class."""
    changed = packet.copy()
    if not isinstance(changed, IP):
        changed.tc = octet
        return changed
    changed.tos = octet
    del changed.chksum
    return type(packet)(bytes(changed))


def put_in(packet: P, faults: Collection[str]) -> tuple[int, P]:
    """Return the class of the tunnel of a packet, and the packet as it is in there."""
    octet = 0 if "loses the class of tunnels" in faults else class_of(packet)
    return octet, with_class(packet, 0) if "loses the class into tunnels" in faults else packet


def taken_out(outer: Packet, inner: P, faults: Collection[str]) -> P:
    """Return the packet that was in a tunnel."""
    if "loses the class from tunnels" in faults:
        return with_class(inner, 0)
    return with_class(inner, class_of(outer)) if "takes the class of tunnels" in faults else inner


LargeFault = Literal[
    "drops large packets",
    "fragments inside",
    "loses last fragments",
    "ignores DF",
    "states another MTU",
]
LARGE = ("larger_than_tunnel", "larger_than_tunnel_with_df")


class TunnelEntry:
    """What puts IPv4 packets into tunnels in IPv6, where those of more than `mtu` octets do not fit."""

    def __init__(self, mtu: int, faults: Collection[str]) -> None:
        self.mtu = mtu
        self.faults = faults
        self._identification = 0

    def is_refused(self, packet: Packet) -> bool:
        return len(packet) > self.mtu and bool(packet.flags.DF) and "ignores DF" not in self.faults

    def refusals(self, packet: Packet, router: str) -> Iterator[Packet]:
        """Yield the answer to a packet with DF."""
        if "never answers" not in self.faults:
            mtu = 1280 if "states another MTU" in self.faults else self.mtu
            yield stacked(IP(src=router, dst=packet.src), ICMP(type=3, code=4, nexthopmtu=mtu), packet)

    def put_in(self, packet: Packet, tunnel: Callable[[Packet], Packet]) -> list[Packet]:
        """Return the packet in its tunnel, whole where it fits."""
        if len(packet) <= self.mtu or "ignores DF" in self.faults:
            return [tunnel(packet)]
        if "drops large packets" in self.faults:
            return []
        self._identification += 1
        if "fragments inside" in self.faults:
            packet.id = self._identification
            parts = [tunnel(part) for part in fragment(packet, fragsize=800)]
        else:
            outer = tunnel(packet)
            header = IPv6(src=outer.src, dst=outer.dst, hlim=outer.hlim, tc=outer.tc)
            parts = list(fragment6(header / IPv6ExtHdrFragment(nh=4, id=self._identification) / packet, self.mtu + 40))
        return parts[:-1] if "loses last fragments" in self.faults else parts


def stacked(*layers: Packet) -> Packet:
    """Return a packet of layers, each inside the one before: what `/` makes of copies, which takes thrice the time."""
    for outer, inner in pairwise(layers):
        outer.add_payload(inner)
    return layers[0]


def octets_of(packet: Packet) -> bytes:
    """Return what `bytes` does in half the time: no field has several values, so scapy need not make each packet."""
    layer = packet
    while layer:
        layer.explicit = 1
        layer = layer.payload
    return bytes(packet)


def framed(passed: Iterable[tuple[str, Packet]]) -> Iterator[dict[str, Any]]:
    """Yield packets as frames that arrived."""
    for at_ns, (side, packet) in enumerate(passed):
        yield {"side": side, "at_ns": at_ns, "octets": ETHERNET[type(packet)] + octets_of(packet).hex()}


def parsed(packet: str) -> Packet:
    octets = bytes.fromhex(packet)
    return IP(octets) if octets[0] >> 4 == 4 else IPv6(octets)


def hop_limit_of(packet: Packet) -> int:
    limit: int = packet.ttl if IP in packet else packet.hlim
    return limit


def sent_again(packet: Packet, source: object, destination: object, *, hops: int, ports: tuple[int, int]) -> Packet:
    """Return a packet with other addresses, ports or identifier, and a lower hop limit."""
    data = bytes(packet[Raw].load) if Raw in packet else bytes(packet[ICMPv6EchoRequest].data)
    limit = hop_limit_of(packet) - hops
    is_ipv4 = isinstance(destination, IPv4Address)
    header = (
        IP(src=str(source), dst=str(destination), ttl=limit, tos=class_of(packet))
        if is_ipv4
        else IPv6(src=str(source), dst=str(destination), hlim=limit, tc=class_of(packet))
    )
    if UDP in packet:
        return stacked(header, UDP(sport=ports[0], dport=ports[1]), Raw(data))
    number = packet[ICMP].seq if ICMP in packet else packet[ICMPv6EchoRequest].seq
    if is_ipv4:
        return stacked(header, ICMP(type="echo-request", id=ports[0], seq=number), Raw(data))
    return stacked(header, ICMPv6EchoRequest(id=ports[0], seq=number, data=data))


def ports_of(packet: Packet) -> tuple[int, int]:
    if UDP in packet:
        return packet[UDP].sport, packet[UDP].dport
    echo = packet[ICMP] if ICMP in packet else packet[ICMPv6EchoRequest]
    return echo.id, echo.seq


def tunnel_packet(part: Packet, kept: list[Packet], *, drops_fragments: bool) -> Packet | None:
    """Return the tunnel packet that is whole with a packet or fragment that comes; None before both fragments came."""
    if IPv6ExtHdrFragment not in part:
        return part
    kept.append(part)
    if len(kept) < 2 or drops_fragments:
        return None
    whole = IPv6(bytes(defragment6(kept)))
    kept.clear()
    return whole


def taken_for(part: P, faults: Collection[str]) -> P:
    """Return a fragment as a gateway takes it: one that counts what Ethernet adds takes a short one for longer."""
    if "counts padding" not in faults or len(part) >= ETHERNET_PAYLOAD_OCTETS:
        return part
    header = IP(octets_of(part)[:20])
    header.len, header.chksum = ETHERNET_PAYLOAD_OCTETS, None
    padding = bytes(ETHERNET_PAYLOAD_OCTETS - len(part))
    return type(part)(octets_of(stacked(header, Raw(octets_of(part.payload) + padding))))


def fragments_joined(parts: list[P], faults: Collection[str]) -> Iterator[P]:
    """Yield the packet of IPv4 fragments, which come in order, with the last of them, and forget them."""
    if parts[-1].flags.MF:
        return
    taken = [taken_for(part, faults) for part in parts]
    parts.clear()
    if all(behind.frag << 3 == (part.frag << 3) + len(part) - 20 for part, behind in pairwise(taken)):
        yield from defragment(taken)


def time_exceeded(packet: Packet) -> Packet:
    if IP in packet:
        return stacked(IP(src="198.19.0.1", dst=packet.src), ICMP(type=11, code=0), packet)
    return stacked(IPv6(src="2001:2::1", dst=packet.src), ICMPv6TimeExceeded(), packet)


class Gateway:
    """Answers the request `exchange` in the order of the packets: inside, then outside, turn about."""

    def __init__(self, *faults: str) -> None:
        self.faults = frozenset(faults)
        self.crossing = 1

    def exchange(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield what arrives."""
        yield from framed(self._arrivals(body))

    def _arrivals(self, body: Mapping[str, Any]) -> Iterator[tuple[str, Packet]]:
        for place in range(max(len(body["left"]), len(body["right"]))):
            for side in ("left", "right"):
                for packet in map(parsed, body[side][place : place + 1]):
                    yield from self._passed(side, packet)

    def _passed(self, side: str, packet: Packet) -> Iterator[tuple[str, Packet]]:
        if "forwards nothing" in self.faults or ("drops echo" in self.faults and UDP not in packet):
            return
        if hop_limit_of(packet) <= self.crossing and "ignores hop limits" not in self.faults:
            if "never answers" not in self.faults:
                yield side, time_exceeded(packet)
            return
        yield from self.forwarded(side, packet)

    def forwarded(self, side: str, packet: Packet) -> Iterator[tuple[str, Packet]]:
        raise NotImplementedError


class Translator(Gateway):
    """A stateless one with IPv6 on the left."""

    def __init__(self, *faults: TranslatorFault) -> None:
        super().__init__(*faults)

    def forwarded(self, side: str, packet: Packet) -> Iterator[tuple[str, Packet]]:
        """Yield what becomes of a packet."""
        ports = ports_of(packet)
        if side == "right":
            source, destination = embed_ipv4(IPv4Address(packet.src), PREFIX), inside_of(IPv4Address(packet.dst))
            yield "left", sent_again(packet, source, destination, hops=1, ports=ports)
            return
        source4 = IPv4Address(INSIDE_IPV4 | int(IPv6Address(packet.src)) & 0xFFFF)
        destination4 = embedded_ipv4(IPv6Address(packet.dst), PREFIX)
        assert destination4 is not None
        if int(destination4) & 0xFFFF_0000 != INSIDE_IPV4 or "hairpins to the other side" in self.faults:
            yield "right", sent_again(packet, source4, destination4, hops=1, ports=ports)
        elif "drops hairpin" not in self.faults:
            source = (
                IPv6Address(packet.src) if "keeps the mapped source" in self.faults else embed_ipv4(source4, PREFIX)
            )
            hops = 2 - 2 * ("hairpins without a hop" in self.faults) + ("hairpins with too many hops" in self.faults)
            yield "left", sent_again(packet, source, inside_of(destination4), hops=hops, ports=ports)


def inside_of(address: IPv4Address) -> IPv6Address:
    return IPv6Address(int(INSIDE_IPV6.network_address) | int(address) & 0xFFFF)


class Nat(Gateway):
    """A stateful one with its clients on the left: NAT64 with a prefix, NAT44 without."""

    def __init__(self, *faults: NatFault, prefix: IPv6Network | None = None) -> None:
        super().__init__(*faults)
        self.prefix = prefix
        self._public: dict[tuple[object, ...], int] = {}
        self._allowed: set[tuple[int, str]] = set()

    def forwarded(self, side: str, packet: Packet) -> Iterator[tuple[str, Packet]]:
        """Yield what becomes of a packet."""
        if side == "right":
            yield from self._inward(packet, IPv4Address(packet.src), ports_of(packet)[0], hops=1)
            return
        to = ip_address(packet.dst) if self.prefix is None else embedded_ipv4(IPv6Address(packet.dst), self.prefix)
        assert isinstance(to, IPv4Address)
        source_port, destination_port = ports_of(packet)
        inside = (packet.src, source_port, UDP in packet)
        key = (*inside, to, destination_port) if "symmetric" in self.faults else inside
        public = self._public.setdefault(key, 20_000 + len(self._public))
        self._allowed.add((public, str(to)))
        if to != PUBLIC:
            yield "right", sent_again(packet, PUBLIC, to, hops=1, ports=(public, destination_port))
        elif "drops hairpin" not in self.faults:
            yield from self._inward(packet, PUBLIC, public, hops=2, inside=packet.src)

    def _inward(
        self, packet: Packet, source: IPv4Address, source_port: int, *, hops: int, inside: str | None = None
    ) -> Iterator[tuple[str, Packet]]:
        destination_port = ports_of(packet)[1]
        client = next((key for key, port in self._public.items() if port == destination_port), None)
        filters = {"filters by address", "symmetric"} & self.faults
        if client is None or (filters and (destination_port, str(source)) not in self._allowed):
            return
        known: object = source if self.prefix is None else embed_ipv4(source, self.prefix)
        if inside is not None and "keeps the inside source" in self.faults:
            known = ip_address(inside)
        if inside is not None and "a source outside the pool" in self.faults:
            known = IPv4Address("198.18.0.1") if self.prefix is None else IPv6Address("2001:2:0:6400::c612:1")
        if inside is not None and "another source port" in self.faults:
            source_port += 1000
        address, port, *_ = client
        assert isinstance(port, int)
        ports = (source_port, port)
        yield "left", sent_again(packet, known, ip_address(str(address)), hops=hops, ports=ports)


class Clat(Nat):
    """One with IPv4 clients and a single IPv6 address, before a PLAT, under whose prefix its servers are."""

    def forwarded(self, side: str, packet: Packet) -> Iterator[tuple[str, Packet]]:
        """Yield what becomes of a packet."""
        if side == "right":
            server = embedded_ipv4(IPv6Address(packet.src), PREFIX)
            assert server is not None
            yield from self._inward(packet, server, ports_of(packet)[0], hops=1)
            return
        for to, public in super().forwarded(side, packet):
            server6 = embed_ipv4(IPv4Address(public.dst), PREFIX)
            yield to, sent_again(public, CLAT, server6, hops=0, ports=ports_of(public))
