"""MAP gateways made of scapy, for packets that are exchanged one by one; what each does wrong is an argument."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Literal

from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    defragment6,
)
from scapy.packet import Packet, Raw
from tests.unit.translators import (
    ClassFault,
    LargeFault,
    TunnelEntry,
    fragments_joined,
    framed,
    octets_of,
    put_in,
    stacked,
    taken_out,
)

from gatemark.embedded_ipv4 import embed_ipv4, embedded_ipv4
from gatemark.map_domains.domain import Edge, MapDomain

Fault = Literal[
    "forwards nothing",
    "forwards upward only",
    "takes any port",
    "takes any source",
    "never answers",
    "drops echo",
    "drops hairpin",
    "drops fragments",
    "counts padding",
    "keeps fragments",
    "returns what is nobody's",
    "wrong hop limit",
    "wrong checksum",
    "everything twice",
    "late for the next exchange",
    "loses every second packet of the case",
    "other data",
]

ROUTER = "2001:2::1"


class BorderRelay:
    """Answers the request `exchange` as a border relay would."""

    def __init__(self, domains: Collection[MapDomain], faults: Collection[str] = ()) -> None:
        self.domains = tuple(domains)
        self.faults = frozenset(faults)
        self.late: list[dict[str, Any]] = []

    def exchange(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield what arrives; with it what came of the exchange before, where that is the fault."""
        before, self.late = self.late, list(self._arrivals(body))
        yield from self.late
        if "late for the next exchange" in self.faults:
            yield from before

    def _arrivals(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if "forwards nothing" in self.faults:
            return
        left = [IPv6(bytes.fromhex(packet)) for packet in body["left"]]
        right = [IP(bytes.fromhex(packet)) for packet in body["right"]]
        whole = [packet for packet in right if not packet.frag and "MF" not in packet.flags]
        if not self.faults & {"drops fragments", "keeps fragments"} and len(whole) < len(right):
            whole += self._put_together([packet for packet in right if packet not in whole])
        passed = [reply for packet in left for reply in self._from_left(packet)]
        if "forwards upward only" not in self.faults:
            passed += [reply for packet in whole for reply in self._from_right(packet)]
        if "keeps fragments" in self.faults:
            passed += [("left", self._fragment(packet)) for packet in right if packet not in whole]
        yield from framed(passed * (2 if "everything twice" in self.faults else 1))

    def _put_together(self, parts: list[IP]) -> list[IP]:
        """Return packets of their fragments, those of each in order."""
        joined: list[IP] = []
        for number in dict.fromkeys(packet.id for packet in parts):
            joined += fragments_joined([packet for packet in parts if packet.id == number], self.faults)
        return joined

    def _edge_of(self, address: str) -> Edge | None:
        for domain in self.domains:
            ea = domain.ea_in(IPv6Address(address))
            if ea is not None and Edge(domain, ea).address == IPv6Address(address):
                return Edge(domain, ea)
        return None

    def _edge_at(self, address: str, port: int) -> Edge | None:
        for domain in self.domains:
            if IPv4Address(address) in domain.rule_ipv4:
                host = int(IPv4Address(address)) & int(domain.rule_ipv4.hostmask)
                suffix = host >> (32 - domain.rule_ipv4.prefixlen - domain.suffix_bits)
                for psid in range(1 << domain.ea_psid_bits):
                    edge = Edge(domain, suffix << domain.ea_psid_bits | psid)
                    if edge.ports.index_of(port) is not None:
                        return edge
        return None

    def _from_left(self, packet: IPv6) -> Iterator[tuple[str, Packet]]:
        edge, port = self._edge_of(packet.src), _port(packet, source=True)
        destination = next(
            (to for domain in self.domains if (to := embedded_ipv4(IPv6Address(packet.dst), domain.default_rule))), None
        )
        if destination is None or ("drops echo" in self.faults and UDP not in packet):
            return
        if edge is None and "takes any source" not in self.faults:
            return
        if edge is not None and edge.ports.index_of(port) is None and "takes any port" not in self.faults:
            if "never answers" not in self.faults:
                yield "left", stacked(IPv6(src=ROUTER, dst=packet.src), ICMPv6DestUnreach(code=5), packet)
            return
        source = "192.0.2.99" if edge is None else str(edge.ipv4)
        other = self._edge_at(str(destination), _port(packet, source=False))
        if other is None:
            header = IP(src=source, dst=str(destination), ttl=self._lowered(packet.hlim))
            yield "right", stacked(header, *self._upper(packet))
        elif "drops hairpin" not in self.faults:
            inside = embed_ipv4(IPv4Address(source), other.domain.default_rule)
            header6 = IPv6(src=str(inside), dst=str(other.address), hlim=packet.hlim - 2)
            yield "left", stacked(header6, *self._upper(packet))

    def _from_right(self, packet: IP) -> Iterator[tuple[str, Packet]]:
        edge = self._edge_at(packet.dst, _port(packet, source=False))
        if "drops echo" in self.faults and UDP not in packet:
            return
        if edge is None:
            if "returns what is nobody's" in self.faults:
                yield "right", packet
            return
        inside = embed_ipv4(IPv4Address(packet.src), edge.domain.default_rule)
        header = IPv6(src=str(inside), dst=str(edge.address), hlim=self._lowered(packet.ttl))
        yield "left", stacked(header, *self._upper(packet))

    def _fragment(self, packet: IP) -> Packet:
        rule = self.domains[0]
        edge = Edge(rule, (int(IPv4Address(packet.dst)) & int(rule.rule_ipv4.hostmask)) << rule.ea_psid_bits)
        inside = embed_ipv4(IPv4Address(packet.src), rule.default_rule)
        header = IPv6ExtHdrFragment(nh=17, offset=packet.frag, m=int(packet.flags.MF), id=packet.id)
        return stacked(IPv6(src=str(inside), dst=str(edge.address)), header, Raw(octets_of(packet.payload)))

    def _lowered(self, hop_limit: int) -> int:
        return hop_limit - (2 if "wrong hop limit" in self.faults else 1)

    def _upper(self, packet: Packet) -> tuple[Packet, ...]:
        data = bytes(packet[Raw].load) if Raw in packet else bytes(packet[ICMPv6EchoRequest].data)
        if "other data" in self.faults:
            data = data[:-1] + b"!"
        if UDP in packet:
            checksum: dict[str, Any] = {"chksum": 0x1234} if "wrong checksum" in self.faults else {}
            return UDP(sport=packet[UDP].sport, dport=packet[UDP].dport, **checksum), Raw(data)
        if ICMP in packet:
            return (ICMPv6EchoRequest(id=packet[ICMP].id, seq=packet[ICMP].seq, data=data),)
        echo = packet[ICMPv6EchoRequest]
        return ICMP(type="echo-request", id=echo.id, seq=echo.seq), Raw(data)


def _port(packet: Packet, *, source: bool) -> int:
    """Return the port, or the identifier that stands for it."""
    if UDP in packet:
        port: int = packet[UDP].sport if source else packet[UDP].dport
    else:
        port = packet[ICMP].id if ICMP in packet else packet[ICMPv6EchoRequest].id
    return port


TunnelFault = Literal[
    "forwards nothing",
    "keeps the tunnel",
    "an option in every tunnel",
    "outer hop limit",
    "outer traffic class",
    "takes any tunnel",
    "takes nobody's tunnel",
    "ends any tunnel",
    "routes tunnels to others",
    "takes any address",
    "takes any port",
    "answers foreign ports",
    "drops echo",
    "drops hairpin",
    "hairpin to the sender",
    "drops fragments",
    "counts padding",
    "keeps fragments",
    "loses second fragments",
    "drops inner fragments",
    "drops outer fragments",
    "forwards what expired",
    "never answers",
    "answers once",
    "answers to another edge",
    "answers in no tunnel",
    "quotes another address",
    "drops errors",
    "passes one error on",
    "errors to another edge",
]


class TunnelRelay(BorderRelay):
    """Answers the request `exchange` as a border relay with tunnels would."""

    def __init__(
        self, domains: Collection[MapDomain], relay: str, faults: Collection[TunnelFault | ClassFault | LargeFault] = ()
    ) -> None:
        super().__init__(domains, faults)
        self.relay = relay
        self.planted = frozenset(faults)
        self._entry = TunnelEntry(1460, self.planted)
        self.passed: list[str] = []
        self.answered = 0

    def _arrivals(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if "forwards nothing" in self.planted:
            return
        self.answered = 0
        left = [IPv6(bytes.fromhex(packet)) for packet in body["left"]]
        right = [IP(bytes.fromhex(packet)) for packet in body["right"]]
        outer = [packet for packet in left if IPv6ExtHdrFragment in packet]
        left = [packet for packet in left if packet not in outer]
        if "drops outer fragments" not in self.planted:
            for number in {packet[IPv6ExtHdrFragment].id for packet in outer}:
                of_packet = [packet for packet in outer if packet[IPv6ExtHdrFragment].id == number]
                left.append(IPv6(bytes(defragment6(of_packet))))
        parts = [packet for packet in right if packet.frag or "MF" in packet.flags]
        whole = [packet for packet in right if packet not in parts]
        if parts and not self.planted & {"drops fragments", "keeps fragments", "loses second fragments"}:
            whole += self._put_together(parts)
        passed = [reply for packet in left for reply in self._leave(packet)]
        passed += [reply for packet in whole for reply in self._enter(packet)]
        if self.planted & {"keeps fragments", "loses second fragments"}:
            passed += self._enter_in_fragments(parts)
        yield from framed(passed)

    def _enter_in_fragments(self, parts: list[IP]) -> Iterator[tuple[str, Packet]]:
        ports = {packet.id: UDP(bytes(packet.payload)).dport for packet in parts if not packet.frag}
        for packet in parts:
            if packet.frag and "loses second fragments" in self.planted:
                continue
            edge = self._edge_at(packet.dst, ports[packet.id])
            if edge is not None:
                yield "left", self._tunnel(str(edge.address), self._lower(packet))

    def _tunnel(self, to: str, packet: Packet) -> Packet:
        octet, packet = put_in(packet, self.planted)
        header = IPv6(
            src=self.relay,
            dst=to,
            hlim=63 if "outer hop limit" in self.planted else 64,
            tc=8 if "outer traffic class" in self.planted else octet,
        )
        options = [IPv6ExtHdrDestOpt(nh=4)] if "an option in every tunnel" in self.planted else []
        return stacked(header, *options, packet)

    def _lower(self, packet: IP) -> IP:
        lowered = packet.copy()
        lowered.ttl -= 1
        del lowered.chksum
        return IP(octets_of(lowered))

    def _leave(self, outer: IPv6) -> Iterator[tuple[str, Packet]]:
        if outer.dst != self.relay and "ends any tunnel" not in self.planted:
            if "routes tunnels to others" in self.planted:
                outer.hlim -= 1
                yield "left", outer
            return
        if ICMPv6DestUnreach in outer:
            about = IP(octets_of(outer.payload)[48:])
            is_limited = "passes one error on" in self.planted and about.src in self.passed
            if "drops errors" not in self.planted and not is_limited:
                yield "right", stacked(IP(src="198.19.0.1", dst=about.src), ICMP(type=3, code=1), about)
            self.passed.append(about.src)
            return
        inner = taken_out(outer, IP(octets_of(outer.payload)), self.planted)
        edge = self._edge_of(outer.src)
        if inner.frag or "MF" in inner.flags:
            if "drops inner fragments" not in self.planted:
                yield "right", self._lower(inner)
            return
        if ("drops echo" in self.planted and UDP not in inner) or not self._is_taken(inner, edge):
            if "answers foreign ports" in self.planted and edge is not None:
                yield "left", stacked(IPv6(src=ROUTER, dst=outer.src), ICMPv6DestUnreach(code=5), outer)
            return
        if inner.ttl <= 1 and "forwards what expired" not in self.planted:
            error = stacked(IP(src="198.19.0.1", dst=inner.src), ICMP(type=11), inner)
            to = "2001:db8:0:200:0:c000:200:2" if "answers to another edge" in self.planted else outer.src
            if self._answers():
                yield "left", error if "answers in no tunnel" in self.planted else self._tunnel(to, error)
            return
        other = self._edge_at(inner.dst, _port(inner, source=False))
        if other is None:
            yield "right", outer if "keeps the tunnel" in self.planted else self._lower(inner)
        elif "drops hairpin" not in self.planted:
            to = outer.src if "hairpin to the sender" in self.planted else str(other.address)
            yield "left", self._tunnel(to, self._lower(inner))

    def _answers(self) -> bool:
        self.answered += 1
        return not ("never answers" in self.planted or ("answers once" in self.planted and self.answered > 1))

    def _is_taken(self, inner: IP, edge: Edge | None) -> bool:
        if edge is None:
            return "takes nobody's tunnel" in self.planted
        port = _port(inner, source=True)
        if "takes any tunnel" in self.planted:
            return self._edge_at(inner.src, port) is not None
        is_his_address = IPv4Address(inner.src) in edge.ipv4_network or "takes any address" in self.planted
        return is_his_address and (edge.ports.index_of(port) is not None or "takes any port" in self.planted)

    def _enter(self, packet: IP) -> Iterator[tuple[str, Packet]]:
        if ICMP in packet and packet[ICMP].type == 3:
            edge = self._edge_at(packet.dst, IP(octets_of(packet[ICMP].payload))[UDP].sport)
            if edge is not None and "drops errors" not in self.planted:
                to = "2001:db8:0:200:0:c000:200:2" if "errors to another edge" in self.planted else str(edge.address)
                yield "left", self._tunnel(to, self._lower(packet))
            return
        edge = self._edge_at(packet.dst, _port(packet, source=False))
        if edge is None or ("drops echo" in self.planted and UDP not in packet):
            return
        if packet.ttl <= 1 and "forwards what expired" not in self.planted:
            if self._answers():
                about = packet.copy()
                if "quotes another address" in self.planted:
                    about.dst = "10.0.0.1"
                yield "right", stacked(IP(src="198.19.0.1", dst=packet.src), ICMP(type=11), about)
            return
        if self._entry.is_refused(packet):
            yield from (("right", answer) for answer in self._entry.refusals(packet, "198.19.0.1"))
            return
        to = str(edge.address)
        entered = self._entry.put_in(self._lower(packet), lambda inner: self._tunnel(to, inner))
        yield from (("left", part) for part in entered)


EdgeFault = Literal[
    "forwards nothing",
    "keeps the port",
    "drops echo",
    "takes any source",
    "takes any port",
    "takes any address",
    "answers foreign ports",
    "forgets connections",
]


class CustomerEdge:
    """Answers the request `exchange` as a customer edge would, with clients on the left."""

    def __init__(self, edge: Edge, faults: Collection[EdgeFault] = ()) -> None:
        self.edge = edge
        self.faults = frozenset(faults)
        self._ports: dict[tuple[str, int, bool], int] = {}

    def exchange(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield what arrives."""
        if "forwards nothing" in self.faults:
            return
        passed = [reply for packet in body["left"] for reply in self._outward(IP(bytes.fromhex(packet)))]
        passed += [reply for packet in body["right"] for reply in self._inward(IPv6(bytes.fromhex(packet)))]
        yield from framed(passed)
        if "forgets connections" in self.faults:
            self._ports.clear()

    def _outward(self, packet: IP) -> Iterator[tuple[str, Packet]]:
        is_udp, port = UDP in packet, _port(packet, source=True)
        if not is_udp and "drops echo" in self.faults:
            return
        inside = (packet.src, port, is_udp)
        public = self._ports.setdefault(inside, self.edge.ports.port(len(self._ports)))
        if "keeps the port" in self.faults:
            public = self._ports[inside] = port
        destination = embed_ipv4(IPv4Address(packet.dst), self.edge.domain.default_rule)
        header = IPv6(src=str(self.edge.address), dst=str(destination), hlim=packet.ttl - 1)
        data = bytes(packet[Raw].load)
        if is_udp:
            yield "right", stacked(header, UDP(sport=public, dport=packet[UDP].dport), Raw(data))
        else:
            yield "right", stacked(header, ICMPv6EchoRequest(id=public, seq=packet[ICMP].seq, data=data))

    def _inward(self, packet: IPv6) -> Iterator[tuple[str, Packet]]:
        source = embedded_ipv4(IPv6Address(packet.src), self.edge.domain.default_rule)
        if source is None and "takes any source" not in self.faults:
            return
        if packet.dst != str(self.edge.address) and "takes any address" not in self.faults:
            return
        if "answers foreign ports" in self.faults and packet[UDP].dport not in self.edge.ports:
            header6 = IPv6(src=str(self.edge.address), dst=packet.src)
            yield "right", stacked(header6, ICMPv6DestUnreach(code=4), packet)
        inside = next((key for key, port in self._ports.items() if port == packet[UDP].dport), None)
        if inside is None and "takes any port" not in self.faults:
            return
        address, port, _ = inside or ("198.18.0.2", 9, True)
        header = IP(src=str(source or "192.0.2.99"), dst=address, ttl=packet.hlim - 1)
        yield "left", stacked(header, UDP(sport=packet[UDP].sport, dport=port), Raw(bytes(packet[Raw].load)))
