"""Customer edges with tunnels, made of scapy: B4s, and NATs with a port set; what each does wrong is an argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from typing import Any, Literal

from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import ICMPv6DestUnreach, IPv6, IPv6ExtHdrDestOpt
from scapy.packet import Packet
from tests.unit.translators import (
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
    taken_for,
    taken_out,
    time_exceeded,
    tunnel_packet,
)

from gatemark.map_domains.domain import Edge

INSIDE = ("198.18.", "10.")
"""What addresses of its hosts begin with."""

EdgeFault = Literal[
    "forwards nothing",
    "an option in every tunnel",
    "outer hop limit",
    "another relay",
    "a port of nobody",
    "a port of nobody for the third client",
    "an identifier of nobody",
    "forwards foreign sources as they are",
    "drops foreign sources",
    "drops echo",
    "never answers",
    "answers in no tunnel",
    "ignores hop limits",
    "drops hairpin",
    "hairpin from inside",
    "takes any tunnel",
    "takes tunnels of customer edges",
    "answers customer edges",
    "ends any tunnel",
    "routes tunnels to others",
    "returns other addresses",
    "takes inner addresses",
    "takes any port",
    "takes any identifier",
    "drops fragments",
    "counts padding",
    "drops inner fragments",
    "drops outer fragments",
    "drops errors",
    "errors about the public address",
    "drops errors of routers",
    "passes one error on",
]


class SubscriberEdge(Gateway):
    """One with its hosts on the left; without an `edge` it is a B4. Packets of more than `mtu` octets do not fit."""

    def __init__(
        self, end: str, relay: str, edge: Edge | None, mtu: int, *faults: EdgeFault | ClassFault | LargeFault
    ) -> None:
        super().__init__(*faults)
        self.end, self.relay, self.edge = end, relay, edge
        self._entry = TunnelEntry(mtu, self.faults)
        self._public: dict[tuple[str, int, bool], int] = {}
        self._outer: list[Packet] = []
        self._parts: dict[str, list[Packet]] = {"left": [], "right": []}
        self._passed_on = 0

    def _arrivals(self, body: Mapping[str, Any]) -> Iterator[tuple[str, Packet]]:
        if "forwards nothing" in self.faults:
            return
        for place in range(max(len(body["left"]), len(body["right"]))):
            for packet in map(parsed, body["left"][place : place + 1]):
                for whole in self._whole("left", packet):
                    yield from self._leave(whole)
            for packet in map(parsed, body["right"][place : place + 1]):
                yield from self._enter(packet)

    def _whole(self, side: str, packet: Packet) -> Iterator[Packet]:
        """Yield packets as a NAT needs them; fragments of a packet are put together."""
        if not packet.frag and not packet.flags.MF:
            yield packet
            return
        if ("drops fragments" if side == "left" else "drops inner fragments") in self.faults:
            return
        if self.edge is None:
            yield taken_for(packet, self.faults)
            return
        parts = self._parts[side]
        parts.append(packet)
        yield from fragments_joined(parts, self.faults)

    def _tunnel(self, packet: Packet) -> Packet:
        to = "2001:2:0:8000::77" if "another relay" in self.faults else self.relay
        octet, packet = put_in(packet, self.faults)
        header = IPv6(src=self.end, dst=to, hlim=63 if "outer hop limit" in self.faults else 64, tc=octet)
        options = [IPv6ExtHdrDestOpt(nh=4)] if "an option in every tunnel" in self.faults else []
        return stacked(header, *options, packet)

    def _leave(self, packet: Packet) -> Iterator[tuple[str, Packet]]:
        if "drops echo" in self.faults and ICMP in packet:
            return
        if packet.ttl <= self.crossing and "ignores hop limits" not in self.faults:
            if "never answers" not in self.faults:
                yield "left", time_exceeded(packet)
            return
        if self._entry.is_refused(packet):
            yield from (("left", answer) for answer in self._entry.refusals(packet, "198.18.0.1"))
            return
        if "drops foreign sources" in self.faults and not packet.src.startswith(INSIDE):
            return
        if self.edge is not None and packet.dst == str(self.edge.ipv4):
            yield from self._hairpin(packet)
            return
        yield from (("right", part) for part in self._entry.put_in(self._as_public(packet), self._tunnel))

    def _as_public(self, packet: Packet) -> Packet:
        is_own = packet.src.startswith(INSIDE) or "forwards foreign sources as they are" not in self.faults
        if self.edge is None or (packet.frag and UDP not in packet) or not is_own:
            lowered = packet.copy()
            lowered.ttl -= self.crossing
            del lowered.chksum
            return IP(octets_of(lowered))
        port = self._port_of(packet)
        return sent_again(
            packet, self.edge.ipv4, IPv4Address(packet.dst), hops=self.crossing, ports=(port, ports_of(packet)[1])
        )

    def _port_of(self, packet: Packet) -> int:
        assert self.edge is not None
        inside, is_udp = ports_of(packet)[0], UDP in packet
        number = len(self._public)
        wrong = {"a port of nobody"} | ({"a port of nobody for the third client"} if inside == 40_002 else set())
        if (wrong if is_udp else {"an identifier of nobody"}) & self.faults:
            return self._public.setdefault((packet.src, inside, is_udp), 100 + number)
        ports = self.edge.ports
        return self._public.setdefault((packet.src, inside, is_udp), ports.port(ports.count // 2 + number))

    def _inside_of(self, public: int, *, is_udp: bool = True) -> tuple[str, int] | None:
        known = ((key[:2], port) for key, port in self._public.items() if key[2] == is_udp)
        return next((inside for inside, port in known if port == public), None)

    def _hairpin(self, packet: Packet) -> Iterator[tuple[str, Packet]]:
        to = self._inside_of(ports_of(packet)[1])
        if to is None or "drops hairpin" in self.faults:
            return
        assert self.edge is not None
        source, port = self.edge.ipv4, self._port_of(packet)
        if "hairpin from inside" in self.faults:
            source, port = IPv4Address(packet.src), ports_of(packet)[0]
        yield "left", sent_again(packet, source, IPv4Address(to[0]), hops=self.crossing, ports=(port, to[1]))

    def _enter(self, part: Packet) -> Iterator[tuple[str, Packet]]:
        outer = tunnel_packet(part, self._outer, drops_fragments="drops outer fragments" in self.faults)
        if outer is None:
            return
        if outer.dst != self.end and "ends any tunnel" not in self.faults:
            if "routes tunnels to others" in self.faults:
                yield "right", outer
        elif ICMPv6DestUnreach in outer:
            yield from self._router_error(IP(octets_of(outer.payload)[48:]))
        elif self._is_taken(outer):
            for inner in self._whole("right", taken_out(outer, IP(octets_of(outer.payload)), self.faults)):
                yield from self._inward(inner)
        elif "answers customer edges" in self.faults:
            yield "right", stacked(IPv6(src=self.end, dst=outer.src), ICMPv6DestUnreach(code=5), outer)

    def _is_taken(self, outer: Packet) -> bool:
        if outer.src == self.relay or "takes any tunnel" in self.faults:
            return True
        return "takes tunnels of customer edges" in self.faults and not outer.src.startswith("2001:2:")

    def _inward(self, packet: Packet) -> Iterator[tuple[str, Packet]]:
        if ICMP in packet and packet[ICMP].type == 3:
            yield from self._error(packet)
            return
        if "drops echo" in self.faults and ICMP in packet:
            return
        if packet.ttl <= self.crossing and "ignores hop limits" not in self.faults:
            answer = time_exceeded(packet)
            if "never answers" not in self.faults:
                yield "right", answer if "answers in no tunnel" in self.faults else self._tunnel(answer)
            return
        yield from self._to_host(packet)

    def _to_host(self, packet: Packet) -> Iterator[tuple[str, Packet]]:
        if self.edge is None:
            yield "left", self._as_public(packet)
            return
        if packet.dst != str(self.edge.ipv4):
            if packet.dst.startswith(INSIDE) and "takes inner addresses" in self.faults:
                yield "left", packet
            elif not packet.dst.startswith(INSIDE) and "returns other addresses" in self.faults:
                yield "right", self._tunnel(packet)
            return
        port = ports_of(packet)[1] if UDP in packet else ports_of(packet)[0]
        to = self._inside_of(port, is_udp=UDP in packet)
        if to is None and ("takes any port" if UDP in packet else "takes any identifier") in self.faults:
            to = ("198.18.0.2", port)
        if to is not None:
            source = IPv4Address(packet.src)
            yield (
                "left",
                sent_again(packet, source, IPv4Address(to[0]), hops=self.crossing, ports=(ports_of(packet)[0], to[1])),
            )

    def _known_inside(self, about: Packet) -> Packet | None:
        """Return a packet that an error quotes as its host sent it; None if there is none."""
        if self.edge is None or "errors about the public address" in self.faults:
            return about
        to = self._inside_of(about[UDP].sport)
        if to is not None:
            about.src, about[UDP].sport = to
        return None if to is None else about

    def _error(self, packet: Packet) -> Iterator[tuple[str, Packet]]:
        about = self._known_inside(IP(octets_of(packet[ICMP].payload)))
        if about is not None and "drops errors" not in self.faults:
            header = IP(src=packet.src, dst="198.18.0.2")
            yield "left", stacked(header, ICMP(type=3, code=packet[ICMP].code), about)

    def _router_error(self, about: Packet) -> Iterator[tuple[str, Packet]]:
        is_limited = "passes one error on" in self.faults and self._passed_on
        self._passed_on += 1
        known = self._known_inside(about)
        if known is not None and not is_limited and "drops errors of routers" not in self.faults:
            yield "left", stacked(IP(src="198.18.0.1", dst="198.18.0.2"), ICMP(type=3, code=1), known)


class EdgeRow(SubscriberEdge):
    """One with its relay behind it, which together are a NAT44 that lowers hop limits by 2."""

    def __init__(self, edge: Edge, *faults: EdgeFault) -> None:
        super().__init__("", "", edge, 1500, *faults)
        self.crossing = 2

    def _tunnel(self, packet: Packet) -> Packet:
        return packet

    def _enter(self, part: Packet) -> Iterator[tuple[str, Packet]]:
        for inner in self._whole("right", part):
            yield from self._inward(inner)
