"""6rd border relays made of scapy, for packets that are exchanged one by one; what each does wrong is an argument."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Literal

from scapy.layers.inet import ICMP, IP, UDP, fragment
from scapy.layers.inet6 import ICMPv6DestUnreach, ICMPv6PacketTooBig, ICMPv6TimeExceeded, IPv6
from scapy.packet import Packet
from tests.unit.translators import ClassFault, fragments_joined, framed, octets_of, put_in, stacked, taken_out

SixrdFault = Literal[
    "forwards nothing",
    "keeps the tunnel",
    "into another tunnel",
    "outer hop limit",
    "outer traffic class",
    "takes any tunnel",
    "takes any source",
    "ends any tunnel",
    "routes tunnels to others",
    "drops echo",
    "drops outer fragments",
    "counts padding",
    "forwards what expired",
    "never answers",
    "answers to another edge",
    "answers in no tunnel",
    "drops errors",
    "errors to another edge",
    "passes errors of tunnels on",
    "hairpins",
    "hairpins to the sender",
    "returns nothing",
    "has no null route",
    "drops what is nobody's",
    "answers in the next exchange",
    "drops large packets",
    "ignores the tunnel MTU",
    "fragments tunnels",
    "a tunnel MTU of 1280",
    "a tunnel MTU of 1200",
    "a tunnel MTU of 1500",
]
ROUTER = "2001:2:0:8000::1"
OTHER = "198.18.0.101"


class SixrdRelay:
    """Answers the request `exchange` as a relay of 6rd would, with 2001:db8::/32 before whole IPv4 addresses."""

    def __init__(self, relay: str, edges: Collection[str], faults: Collection[SixrdFault | ClassFault] = ()) -> None:
        self.relay = relay
        self.edges = frozenset(edges)
        self.planted = frozenset(faults)
        self.tunnels = 0
        self.late: list[tuple[str, Packet]] = []

    def exchange(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield what arrives; with it answers to the packets of the exchange before, where that is the fault."""
        arrived, before = list(self._arrivals(body)), self.late
        if "answers in the next exchange" in self.planted:
            self.late = [(side, packet) for side, packet in arrived if ICMPv6TimeExceeded in packet]
        yield from framed(before + [each for each in arrived if each not in self.late])

    def _arrivals(self, body: Mapping[str, Any]) -> Iterator[tuple[str, Packet]]:
        if "forwards nothing" in self.planted:
            return
        left = [IP(bytes.fromhex(packet)) for packet in body["left"]]
        whole = [packet for packet in left if not packet.frag and "MF" not in packet.flags]
        if len(whole) < len(left) and "drops outer fragments" not in self.planted:
            parts = [packet for packet in left if packet not in whole]
            for number in dict.fromkeys(packet.id for packet in parts):
                whole += fragments_joined([packet for packet in parts if packet.id == number], self.planted)
        for packet in whole:
            yield from self._leave(packet)
        for packet in body["right"]:
            yield from self._enter(IPv6(bytes.fromhex(packet)))

    def _edge_of(self, address: str) -> str | None:
        octets = IPv6Address(address).packed
        return str(IPv4Address(octets[4:8])) if octets[:4] == b"\x20\x01\x0d\xb8" else None

    def _tunnel(self, to: str, packet: Packet) -> Packet:
        octet, inner = put_in(packet, self.planted)
        limit, service = (
            63 if "outer hop limit" in self.planted else 64,
            8 if "outer traffic class" in self.planted else octet,
        )
        return stacked(IP(src=self.relay, dst=to, ttl=limit, tos=service, proto=41), inner)

    def _lower(self, packet: IPv6) -> IPv6:
        lowered = packet.copy()
        lowered.hlim -= 1
        return lowered

    def _leave(self, outer: IP) -> Iterator[tuple[str, Packet]]:
        if outer.dst != self.relay and "ends any tunnel" not in self.planted:
            if "routes tunnels to others" in self.planted:
                yield "left", outer
            return
        if ICMP in outer:
            about = IPv6(octets_of(outer[ICMP].payload)[20:])
            if "passes errors of tunnels on" in self.planted:
                yield "right", stacked(IPv6(src=ROUTER, dst=about.src), ICMPv6DestUnreach(code=3), about)
            return
        inner = taken_out(outer, IPv6(octets_of(outer.payload)), self.planted)
        edge = self._edge_of(inner.src)
        if edge != outer.src and ("takes any source" if edge is None else "takes any tunnel") not in self.planted:
            return
        if inner.hlim <= 1 and "forwards what expired" not in self.planted:
            error = stacked(IPv6(src=ROUTER, dst=inner.src), ICMPv6TimeExceeded(), inner)
            to = OTHER if "answers to another edge" in self.planted else outer.src
            if "never answers" not in self.planted:
                yield "left", error if "answers in no tunnel" in self.planted else self._tunnel(to, error)
            return
        to_edge = self._edge_of(inner.dst)
        if "drops echo" in self.planted and UDP not in inner:
            return
        if to_edge is None:
            yield "right", outer if "keeps the tunnel" in self.planted else self._lower(inner)
        elif to_edge == outer.src:
            yield from (
                () if "returns nothing" in self.planted else (("left", self._tunnel(to_edge, self._lower(inner))),)
            )
        elif self.planted & {"hairpins", "hairpins to the sender"}:
            yield "left", self._tunnel(to_edge if "hairpins" in self.planted else outer.src, self._lower(inner))

    def _enter(self, packet: IPv6) -> Iterator[tuple[str, Packet]]:
        edge = self._edge_of(packet.dst)
        if edge == self.relay and "has no null route" not in self.planted:
            return
        if edge is None or (edge not in self.edges and "drops what is nobody's" in self.planted):
            return
        if packet.hlim <= 1 and "forwards what expired" not in self.planted:
            if "never answers" not in self.planted:
                yield "right", stacked(IPv6(src=ROUTER, dst=packet.src), ICMPv6TimeExceeded(), packet)
            return
        if len(packet) > 1480 and not {"ignores the tunnel MTU", "fragments tunnels"} & self.planted:
            if not {"never answers", "drops large packets"} & self.planted:
                stated = next((mtu for mtu in (1200, 1280, 1500) if f"a tunnel MTU of {mtu}" in self.planted), 1480)
                yield "right", stacked(IPv6(src=ROUTER, dst=packet.src), ICMPv6PacketTooBig(mtu=stated), packet)
            return
        is_error = ICMPv6DestUnreach in packet
        if ("drops errors" in self.planted and is_error) or ("drops echo" in self.planted and UDP not in packet):
            return
        is_astray = "into another tunnel" in self.planted or ("errors to another edge" in self.planted and is_error)
        tunnel = self._tunnel(OTHER if is_astray else edge, self._lower(packet))
        self.tunnels += 1
        tunnel.id = self.tunnels
        whole = len(packet) <= 1480 or "fragments tunnels" not in self.planted
        yield from (("left", part) for part in ([tunnel] if whole else fragment(tunnel, fragsize=800)))
