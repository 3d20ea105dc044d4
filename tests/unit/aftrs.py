"""AFTRs made of scapy, for packets that are exchanged one by one; what each does wrong is an argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Literal

from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet
from tests.unit.translators import (
    PUBLIC,
    ClassFault,
    Gateway,
    LargeFault,
    TunnelEntry,
    fragments_joined,
    octets_of,
    parsed,
    ports_of,
    put_in,
    sent_again,
    stacked,
    taken_out,
    time_exceeded,
    tunnel_packet,
)

PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "192.0.0.0/29")))
ANOTHER_B4 = "2001:2::44"

AftrFault = Literal[
    "forwards nothing",
    "drops echo",
    "never answers",
    "ignores hop limits",
    "answers in no tunnel",
    "answers about another address",
    "drops hairpin",
    "hairpin to the sender",
    "hairpin in no tunnel",
    "into another tunnel",
    "outer hop limit",
    "takes any address",
    "ends any tunnel",
    "routes tunnels to others",
    "the first B4 of an address",
    "the last B4 of an address",
    "one B4 of an address",
    "drops fragments",
    "counts padding",
    "drops inner fragments",
    "drops outer fragments",
    "drops errors",
    "errors to another B4",
    "errors about the public address",
]


@dataclass(slots=True)
class Host:
    """A port of a host behind a B4."""

    b4: str
    address: str
    port: int
    is_udp: bool


class Aftr(Gateway):
    """One with B4s on the left, whose tunnels end at `end`."""

    def __init__(self, end: str, *faults: AftrFault | ClassFault | LargeFault) -> None:
        super().__init__(*faults)
        self.end = end
        self._entry = TunnelEntry(1460, self.faults)
        self._hosts: dict[int, Host] = {}
        self._outer: list[Packet] = []
        self._inner: list[Packet] = []
        self._outside: list[Packet] = []

    def _arrivals(self, body: Mapping[str, Any]) -> Iterator[tuple[str, Packet]]:
        for place in range(max(len(body["left"]), len(body["right"]))):
            for packet in map(parsed, body["left"][place : place + 1]):
                yield from self._leave(packet)
            for packet in map(parsed, body["right"][place : place + 1]):
                yield from self._enter(packet)

    def _tunnel(self, b4: str, packet: Packet) -> Packet:
        octet, inner = put_in(packet, self.faults)
        header = IPv6(src=self.end, dst=b4, hlim=63 if "outer hop limit" in self.faults else 64, tc=octet)
        return stacked(header, inner)

    def _leave(self, part: Packet) -> Iterator[tuple[str, Packet]]:
        outer = tunnel_packet(part, self._outer, drops_fragments="drops outer fragments" in self.faults)
        if outer is None:
            return
        if outer.dst != self.end and "ends any tunnel" not in self.faults:
            if "routes tunnels to others" in self.faults:
                yield "left", outer
            return
        inner = taken_out(outer, IP(octets_of(outer.payload)), self.faults)
        if "drops inner fragments" in self.faults and (inner.frag or inner.flags.MF):
            return
        for packet in self._whole(inner, self._inner):
            is_private = any(IPv4Address(packet.src) in network for network in PRIVATE)
            if is_private or "takes any address" in self.faults:
                yield from self._outward(packet, outer.src)

    def _whole(self, packet: Packet, parts: list[Packet]) -> Iterator[Packet]:
        if not packet.frag and not packet.flags.MF:
            yield packet
            return
        parts.append(packet)
        yield from fragments_joined(parts, self.faults)

    def _outward(self, packet: Packet, b4: str) -> Iterator[tuple[str, Packet]]:
        if self._is_dropped(packet):
            return
        if packet.ttl <= 1 and "ignores hop limits" not in self.faults:
            about = packet.copy()
            if "answers about another address" in self.faults:
                about.src = "100.64.0.1"
            error = stacked(IP(src=str(PUBLIC), dst=packet.src), ICMP(type=11, code=0), about)
            if "never answers" not in self.faults:
                yield "left", error if "answers in no tunnel" in self.faults else self._tunnel(b4, error)
            return
        public = self._public_of(packet, b4)
        to_port = ports_of(packet)[1]
        if packet.dst != str(PUBLIC):
            destination = IPv4Address(packet.dst)
            yield "right", sent_again(packet, PUBLIC, destination, hops=1, ports=(public, to_port))
        elif "drops hairpin" not in self.faults and to_port in self._hosts:
            to = self._hosts[to_port]
            turned = sent_again(packet, PUBLIC, IPv4Address(to.address), hops=1, ports=(public, to.port))
            end = b4 if "hairpin to the sender" in self.faults else to.b4
            yield "left", turned if "hairpin in no tunnel" in self.faults else self._tunnel(end, turned)

    def _public_of(self, packet: Packet, b4: str) -> int:
        port, is_udp = ports_of(packet)[0], UDP in packet
        confuses = {"the first B4 of an address", "the last B4 of an address"} & self.faults
        for public, host in self._hosts.items():
            if (host.address, host.port, host.is_udp) == (packet.src, port, is_udp) and (confuses or host.b4 == b4):
                if "the last B4 of an address" in self.faults:
                    host.b4 = b4
                return public
        public = 20_000 + len(self._hosts)
        self._hosts[public] = Host(b4, packet.src, port, is_udp)
        return public

    def _is_dropped(self, packet: Packet) -> bool:
        return "forwards nothing" in self.faults or ("drops echo" in self.faults and UDP not in packet)

    def _enter(self, packet: Packet) -> Iterator[tuple[str, Packet]]:
        if "drops fragments" in self.faults and (packet.frag or packet.flags.MF):
            return
        if ICMP in packet and packet[ICMP].type == 3:
            yield from self._error(packet)
            return
        for whole in self._whole(packet, self._outside):
            if self._is_dropped(whole):
                return
            if whole.ttl <= 1 and "ignores hop limits" not in self.faults:
                if "never answers" not in self.faults:
                    yield "right", time_exceeded(whole)
                return
            if self._entry.is_refused(whole):
                yield from (("right", answer) for answer in self._entry.refusals(whole, str(PUBLIC)))
                return
            port, to_port = ports_of(whole)
            if to_port in self._hosts:
                to = self._hosts[to_port]
                inside = sent_again(
                    whole, IPv4Address(whole.src), IPv4Address(to.address), hops=1, ports=(port, to.port)
                )
                entered = self._entry.put_in(inside, partial(self._tunnel, self._b4_of(to)))
                yield from (("left", part) for part in entered)

    def _b4_of(self, to: Host) -> str:
        if "into another tunnel" in self.faults:
            return ANOTHER_B4
        if "one B4 of an address" in self.faults:
            same = (host.b4 for host in self._hosts.values() if (host.address, host.port) == (to.address, to.port))
            return next(same)
        return to.b4

    def _error(self, packet: Packet) -> Iterator[tuple[str, Packet]]:
        about = IP(octets_of(packet[ICMP].payload))
        to = self._hosts.get(about[UDP].sport)
        if to is None or {"drops errors", "forwards nothing"} & self.faults:
            return
        if "errors about the public address" not in self.faults:
            about.src, about[UDP].sport = to.address, to.port
        error = stacked(IP(src=packet.src, dst=to.address), ICMP(type=3, code=packet[ICMP].code), about)
        yield "left", self._tunnel(ANOTHER_B4 if "errors to another B4" in self.faults else to.b4, error)
