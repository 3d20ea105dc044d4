"""MAP-T gateways made of scapy, for packets that are exchanged one by one; what each does wrong is an argument."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Literal

from scapy.layers.inet import ICMP, IP, UDP, defragment
from scapy.layers.inet6 import ICMPv6DestUnreach, ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

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

    def __init__(self, domains: Collection[MapDomain], faults: Collection[Fault] = ()) -> None:
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
        if "drops fragments" not in self.faults and len(whole) < len(right):
            whole += [packet for packet in defragment(right) if packet not in whole]
        passed = [reply for packet in left for reply in self._from_left(packet)]
        if "forwards upward only" not in self.faults:
            passed += [reply for packet in whole for reply in self._from_right(packet)]
        for at_ns, (side, packet) in enumerate(passed * (2 if "everything twice" in self.faults else 1)):
            frame = Ether(src="02:00:00:00:00:99", dst="02:00:00:00:00:01") / packet
            yield {"side": side, "at_ns": at_ns, "octets": bytes(frame).hex()}

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
                yield "left", IPv6(src=ROUTER, dst=packet.src) / ICMPv6DestUnreach(code=5) / packet
            return
        source = "192.0.2.99" if edge is None else str(edge.ipv4)
        other = self._edge_at(str(destination), _port(packet, source=False))
        if other is None:
            yield "right", IP(src=source, dst=str(destination), ttl=self._lowered(packet.hlim)) / self._upper(packet)
        elif "drops hairpin" not in self.faults:
            inside = embed_ipv4(IPv4Address(source), other.domain.default_rule)
            yield "left", IPv6(src=str(inside), dst=str(other.address), hlim=packet.hlim - 2) / self._upper(packet)

    def _from_right(self, packet: IP) -> Iterator[tuple[str, Packet]]:
        edge = self._edge_at(packet.dst, _port(packet, source=False))
        if "drops echo" in self.faults and UDP not in packet:
            return
        if edge is None:
            if "returns what is nobody's" in self.faults:
                yield "right", packet
            return
        inside = embed_ipv4(IPv4Address(packet.src), edge.domain.default_rule)
        upper = self._upper(packet)
        yield "left", IPv6(src=str(inside), dst=str(edge.address), hlim=self._lowered(packet.ttl)) / upper

    def _lowered(self, hop_limit: int) -> int:
        return hop_limit - (2 if "wrong hop limit" in self.faults else 1)

    def _upper(self, packet: Packet) -> Packet:
        data = bytes(packet[Raw].load) if Raw in packet else bytes(packet[ICMPv6EchoRequest].data)
        if "other data" in self.faults:
            data = data[:-1] + b"!"
        if UDP in packet:
            checksum: dict[str, Any] = {"chksum": 0x1234} if "wrong checksum" in self.faults else {}
            return UDP(sport=packet[UDP].sport, dport=packet[UDP].dport, **checksum) / Raw(data)
        if ICMP in packet:
            return ICMPv6EchoRequest(id=packet[ICMP].id, seq=packet[ICMP].seq, data=data)
        echo = packet[ICMPv6EchoRequest]
        return ICMP(type="echo-request", id=echo.id, seq=echo.seq) / Raw(data)


def _port(packet: Packet, *, source: bool) -> int:
    """Return the port, or the identifier that stands for it."""
    if UDP in packet:
        port: int = packet[UDP].sport if source else packet[UDP].dport
    else:
        port = packet[ICMP].id if ICMP in packet else packet[ICMPv6EchoRequest].id
    return port


EdgeFault = Literal[
    "forwards nothing",
    "keeps the port",
    "drops echo",
    "takes any source",
    "takes any port",
    "takes any address",
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
        for at_ns, (side, packet) in enumerate(passed):
            frame = Ether(src="02:00:00:00:00:99", dst="02:00:00:00:00:01") / packet
            yield {"side": side, "at_ns": at_ns, "octets": bytes(frame).hex()}
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
            yield "right", header / UDP(sport=public, dport=packet[UDP].dport) / Raw(data)
        else:
            yield "right", header / ICMPv6EchoRequest(id=public, seq=packet[ICMP].seq, data=data)

    def _inward(self, packet: IPv6) -> Iterator[tuple[str, Packet]]:
        source = embedded_ipv4(IPv6Address(packet.src), self.edge.domain.default_rule)
        if source is None and "takes any source" not in self.faults:
            return
        if packet.dst != str(self.edge.address) and "takes any address" not in self.faults:
            return
        inside = next((key for key, port in self._ports.items() if port == packet[UDP].dport), None)
        if inside is None and "takes any port" not in self.faults:
            return
        address, port, _ = inside or ("198.18.0.2", 9, True)
        header = IP(src=str(source or "192.0.2.99"), dst=address, ttl=packet.hlim - 1)
        yield "left", header / UDP(sport=packet[UDP].sport, dport=port) / Raw(bytes(packet[Raw].load))
