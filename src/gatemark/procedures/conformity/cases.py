"""The cases: which packets are sent, and what a conforming gateway makes of them. Pure.

RFCs say what is due. Beside each case go control frames that must come through. So a gateway that forwards nothing
at all does not pass for one that drops what it has to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Generic, TypeVar

from gatemark.config import defaults
from gatemark.config.model import Campaign
from gatemark.map_domains.domain import Edge
from gatemark.packets import IpAddress
from gatemark.procedures.conformity.result import CaseName, Due, Level
from gatemark.procedures.conformity.scenes import (
    CLIENT_PORT,
    FRAGMENT_OCTETS,
    SMALL_FRAGMENT_OCTETS,
    TUNNEL_FRAGMENT_OCTETS,
    B4Scene,
    EdgeScene,
    Endpoint,
    NatScene,
    RelayScene,
    Scene,
    Sending,
    SixrdScene,
    SubscriberScene,
    TranslatorScene,
    TunnelRelayScene,
    TunnelScene,
    error_from_outside,
    error_from_tunnel,
    in_tunnel,
    into_tunnel,
    scenes,
)
from gatemark.technology import TECHNOLOGIES, Family, Technology
from gatemark.trial.exchange import PACKET_OCTETS_MAX

S = TypeVar("S")
Scene_contra = TypeVar("Scene_contra", contravariant=True)
T = TypeVar("T", TranslatorScene, NatScene, TunnelScene, B4Scene)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Generic[Scene_contra]):
    """A row of a table of cases."""

    words: str
    """What is sent, in a sentence's middle."""
    section: str
    """Where the RFC says what is due."""
    due: Due
    level: Level
    needs: str
    """What a rule must have for it, for a message."""
    sending: Callable[[Scene_contra], Sending | None]
    """Return the packet; None if the rule has no such case."""
    answer: str | None = None
    """ICMP error with which the gateway must or should answer."""
    answer_level: Level = "should"
    """How strongly the RFC asks for that."""
    silently: bool = False
    """Whether it must answer with none."""
    some_suffice: bool = False
    """Whether one delivery is enough, as of ICMP errors, whose number a gateway may limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A case with a domain."""

    name: CaseName
    case: Case[Any]
    domain: int
    """From 0, in the order of the file."""
    scene: Scene
    sending: Sending


def _port_of_neighbour(edge: Edge) -> int | None:
    """Return a port of another customer edge with the same address; None if nobody shares it."""
    domain = edge.domain
    if not domain.psid_length:
        return None
    ports = domain.ports_of((edge.psid + 1) % domain.sharing_ratio)
    return ports.port(ports.count // 2)


def _foreign_source_port(scene: RelayScene) -> Sending | None:
    port = _port_of_neighbour(scene.edge)
    return None if port is None else Sending(side="left", flow=replace(scene.upward().flow, source_port=port))


def _foreign_source_address(scene: RelayScene) -> Sending | None:
    for bit in range(128 - scene.domain.rule_ipv6.prefixlen, 128):
        address = IPv6Address(int(scene.edge.address) ^ 1 << bit)
        known = (network for domain in scene.domains for network in (domain.rule_ipv6, domain.default_rule))
        if not address.is_multicast and not any(address in network for network in known):
            return Sending(side="left", flow=replace(scene.upward().flow, source=address))
    return None


def _nobodys_port(scene: RelayScene) -> Sending | None:
    lowest = scene.domain.ports_of(0).port(0)
    if not scene.domain.psid_length or not lowest:
        return None
    return Sending(side="right", flow=replace(scene.downward().flow, destination_port=lowest // 2))


def _nobodys_address(scene: RelayScene) -> Sending | None:
    for bit in range(32 - scene.domain.rule_ipv4.prefixlen, 32):
        address = IPv4Address(int(scene.edge.ipv4) ^ 1 << bit)
        is_unicast = not (address.is_multicast or address.is_reserved or address.is_loopback or address.is_unspecified)
        if is_unicast and address != scene.server and not any(address in domain.rule_ipv4 for domain in scene.domains):
            return Sending(side="right", flow=replace(scene.downward().flow, destination=address))
    return None


def _small_fragments(whole: Callable[[S], Sending], sender: str, section: str, level: Level) -> Case[S]:
    """Return the case of a packet whose fragments Ethernet pads, as strongly as that of larger ones."""
    return Case(
        words=f"{sender} sends packets in fragments of 44 octets, which Ethernet pads: what it adds is no data",
        section=section,
        due="delivered",
        level=level,
        needs="",
        sending=lambda scene: replace(whole(scene), fragment_octets=SMALL_FRAGMENT_OCTETS),
    )


RELAY_CASES: Mapping[CaseName, Case[RelayScene]] = {
    "foreign_source_port": Case(
        words="a customer edge sends from a port of its neighbour",
        section="RFC 7599 section 8.3",
        due="dropped",
        level="must",
        answer="icmpv6 1/5",
        needs="no address is shared",
        sending=_foreign_source_port,
    ),
    "foreign_source_address": Case(
        words="a host sends from an address of no rule",
        section="RFC 7599 section 8.3",
        due="dropped",
        level="must",
        needs="the rules hold every address",
        sending=_foreign_source_address,
    ),
    "nobodys_port": Case(
        words="a server sends to a port that no customer edge has",
        section="RFC 7599 section 8.4",
        due="reported",
        level="none",
        needs="every port of an address belongs to a customer edge",
        sending=_nobodys_port,
    ),
    "nobodys_address": Case(
        words="a server sends to an address of no rule",
        section="RFC 7599 section 8.4",
        due="reported",
        level="none",
        needs="the rules hold every address",
        sending=_nobodys_address,
    ),
    "echo_from_outside": Case(
        words="a server sends echo requests whose identifier is a port of the customer edge",
        section="RFC 7599 section 9",
        due="delivered",
        level="should",
        needs="",
        sending=lambda scene: scene.downward("echo request"),
    ),
    "echo_from_inside": Case(
        words="a customer edge sends echo requests whose identifier is one of its ports",
        section="RFC 7599 section 9",
        due="delivered",
        level="should",
        needs="",
        sending=lambda scene: scene.upward("echo request"),
    ),
    "hairpin": Case(
        words="a customer edge sends to the public address and port of another one",
        section="RFC 7599 section 12.2",
        due="reported",
        level="none",
        needs="there is only one customer edge",
        sending=lambda scene: scene.hairpin(),
    ),
    "fragments": Case(
        words="a server sends packets in two fragments",
        section="RFC 7599 section 10.2",
        due="delivered",
        level="should",
        needs="",
        sending=lambda scene: replace(scene.downward(), fragment_octets=FRAGMENT_OCTETS),
    ),
}


def _unused_port_of(edge: Edge, *used: int) -> int | None:
    """Return a port of the set, far from the first of those in use; None if there is no other."""
    ports = edge.ports
    far = (ports.index_of(used[0]) or 0) + ports.count // 2
    others = (ports.port((far + step) % ports.count) for step in range(len(used) + 1))
    return next((port for port in others if port not in used), None)


def _to_port(scene: EdgeScene | NatScene, port: int | None) -> Sending | None:
    """Return a packet of the server to another port of the public address; None without one."""
    if port is None:
        return None
    return Sending(side=scene.outside, flow=replace(scene.downward().flow, destination_port=port))


def _outside_dmr(scene: EdgeScene) -> Sending | None:
    domain = scene.edge.domain
    for bit in range(128 - domain.default_rule.prefixlen, 128):
        address = IPv6Address(int(scene.server_outside) ^ 1 << bit)
        known = (domain.default_rule, domain.rule_ipv6)
        if not address.is_multicast and not any(address in network for network in known):
            return Sending(side=scene.outside, flow=replace(scene.downward().flow, source=address))
    return None


def _wrong_interface_identifier(scene: EdgeScene) -> Sending | None:
    if scene.edge.end_user_prefix.prefixlen == 128:
        return None
    address = IPv6Address(int(scene.edge.address) ^ 1)
    return Sending(side=scene.outside, flow=replace(scene.downward().flow, destination=address))


EDGE_CASES: Mapping[CaseName, Case[EdgeScene]] = {
    "port_of_the_set": Case(
        words="a client sends from another port",
        section="RFC 7599 section 8.1",
        due="delivered",
        level="must",
        needs="",
        sending=lambda scene: scene.upward(port=CLIENT_PORT + 1),
    ),
    "echo_from_inside": Case(
        words="a client sends echo requests, whose identifier becomes a port of the set",
        section="RFC 7599 section 9",
        due="delivered",
        level="should",
        needs="",
        sending=lambda scene: scene.upward("echo request"),
    ),
    "foreign_destination_port": Case(
        words="a server sends to a port of another customer edge",
        section="RFC 7599 section 8.2",
        due="dropped",
        level="must",
        silently=True,
        needs="the gateway shares its address with nobody",
        sending=lambda scene: _to_port(scene, _port_of_neighbour(scene.edge)),
    ),
    "outside_dmr": Case(
        words="a host that stands for no IPv4 address sends to a port that is in use",
        section="RFC 7599 section 8.2",
        due="dropped",
        level="must",
        needs="the default mapping rule holds every address",
        sending=_outside_dmr,
    ),
    "unused_port": Case(
        words="a server sends to a port of the set that no client uses",
        section="RFC 7599 section 8.2",
        due="reported",
        level="none",
        needs="the set has a single port",
        sending=lambda scene: _to_port(scene, _unused_port_of(scene.edge, scene.public_port)),
    ),
    "wrong_interface_identifier": Case(
        words="a server sends to another address of the end-user prefix",
        section="RFC 7599 section 8.2",
        due="reported",
        level="none",
        needs="the end-user prefix is a single address",
        sending=_wrong_interface_identifier,
    ),
}


TIME_EXCEEDED: Mapping[Family, str] = {"ipv4": "icmpv4 11/0", "ipv6": "icmpv6 3/0"}
EXPIRY_SECTIONS: Mapping[tuple[Family, Family], str] = {
    ("ipv6", "ipv4"): "RFC 7915 section 5.1",
    ("ipv4", "ipv6"): "RFC 7915 section 4.1",
    ("ipv4", "ipv4"): "RFC 1812 section 5.3.1",
    ("ipv6", "ipv6"): "RFC 4443 section 3.3",
}
"""Where an RFC says that a packet whose hop limit ends in a gateway must be dropped and answered, by its family before
and behind the gateway. Answers may be limited (RFC 1812 section 4.3.2.8, RFC 4443 section 2.4), so one is enough."""


def _ping(words: str, section: str | None, sending: Callable[[S], Sending]) -> Case[S]:
    assert section is not None, "a gateway with cases has a section about echo requests"
    return Case(words=words, section=section, due="delivered", level="must", needs="", sending=sending)


def _expiry(words: str, family: Family, behind: Family, way: Callable[[T], Sending]) -> Case[T]:
    """Return the case of a packet with the highest hop limit that ends in the gateway."""

    def sending(scene: T) -> Sending | None:
        return replace(way(scene), delivery=None, hop_limit=scene.decrement) if scene.decrement else None

    return Case(
        words=words,
        section=EXPIRY_SECTIONS[family, behind],
        due="dropped",
        level="must",
        answer=TIME_EXCEEDED[family],
        answer_level="must",
        needs="the gateway leaves hop limits as they are",
        sending=sending,
    )


def translator_cases(technology: Technology) -> Mapping[CaseName, Case[TranslatorScene]]:
    """Return the cases of a stateless translator: its inside is where IPv6 is."""
    assert technology.hairpin_section is not None
    return {
        "echo_from_outside": _ping(
            "an IPv4 host sends echo requests", "RFC 7915 section 4.2", lambda scene: scene.downward("echo request")
        ),
        "echo_from_inside": _ping(
            "an IPv6 host sends echo requests", technology.ping_section, lambda scene: scene.upward("echo request")
        ),
        "hairpin": Case(
            words="an IPv6 host sends to the IPv4 address of another one under the translation prefix",
            section=technology.hairpin_section,
            due="delivered",
            level="should",
            needs="IPv6 hosts have no explicit mapping, or there is no translation prefix",
            sending=lambda scene: scene.hairpin(),
        ),
        "expired_from_outside": _expiry(
            "an IPv4 host sends with a hop limit that ends in the gateway",
            "ipv4",
            "ipv6",
            lambda scene: scene.downward(),
        ),
        "expired_from_inside": _expiry(
            "an IPv6 host sends with a hop limit that ends in the gateway",
            "ipv6",
            "ipv4",
            lambda scene: scene.upward(),
        ),
    }


def nat_cases(technology: Technology) -> Mapping[CaseName, Case[NatScene]]:
    """Return the cases of a stateful gateway; hairpinning where an RFC says what becomes of it."""
    inside, outside = technology.packet_families
    hairpin: dict[CaseName, Case[NatScene]] = {}
    if technology.hairpin_section is not None:
        hairpin["hairpin"] = Case(
            words="a client sends to the public address and port of another one",
            section=technology.hairpin_section,
            due="delivered",
            level="must",
            needs="no translation prefix represents the public addresses",
            sending=lambda scene: scene.hairpin(),
        )
    return {
        "echo_from_inside": _ping(
            "a client sends echo requests, whose identifier may change",
            technology.ping_section,
            lambda scene: scene.upward("echo request"),
        ),
        **hairpin,
        "expired_from_outside": _expiry(
            "a server answers with a hop limit that ends in the gateway",
            outside,
            inside,
            lambda scene: scene.downward(),
        ),
        "expired_from_inside": _expiry(
            "a client sends with a hop limit that ends in the gateway",
            inside,
            outside,
            lambda scene: scene.upward(),
        ),
    }


def _foreign_inner_address(scene: TunnelRelayScene) -> Sending | None:
    for bit in range(32):
        address = IPv4Address(int(scene.edge.ipv4) ^ 1 << bit)
        if address not in scene.edge.ipv4_network and address != scene.server and not address.is_multicast:
            return Sending(side="left", flow=replace(scene.upward().flow, source=address))
    return None


def _in_other_tunnel(scene: TunnelScene, **ends: IpAddress) -> Sending:
    """Return the packet that is sent in a tunnel, in one with another source or destination than its own."""
    sent = in_tunnel(scene)
    assert sent.flow.tunnel is not None, "it is in a tunnel"
    return Sending(side=sent.side, flow=replace(sent.flow, tunnel=replace(sent.flow.tunnel, **ends)))


def _nobodys_tunnel(scene: TunnelRelayScene) -> Sending | None:
    for bit in range(128 - scene.domain.rule_ipv6.prefixlen, 128):
        address = IPv6Address(int(scene.edge.address) ^ 1 << bit)
        if not address.is_multicast and not any(address in domain.rule_ipv6 for domain in scene.domains):
            return _in_other_tunnel(scene, source=address)
    return None


def _neighbour(address: IpAddress, is_taken: Callable[[IpAddress], bool], *, below: int) -> IpAddress | None:
    """Return a unicast address that nobody has and that differs from another one in a bit of the last `below`."""
    for bit in range(below):
        other = ip_address((int(address) ^ 1 << bit).to_bytes(address.max_prefixlen // 8, "big"))
        is_anycast = other.version == 6 and not int(other) & (1 << 64) - 1  # of the routers of its subnet
        is_broadcast = other.version == 4 and int(other) & 0xFF in (0, 0xFF)  # or may be
        if not (is_anycast or is_broadcast or other.is_multicast or is_taken(other)):
            return other
    return None


def _foreign_tunnel_destination(scene: TunnelScene) -> Sending | None:
    tunnel = in_tunnel(scene).flow.tunnel
    assert tunnel is not None, "it is in a tunnel"
    address = _neighbour(tunnel.destination, scene.is_taken, below=tunnel.destination.max_prefixlen)
    return None if address is None else _in_other_tunnel(scene, destination=address)


FOREIGN_TUNNEL_DESTINATION: Case[TunnelScene] = Case(
    words="a customer edge sends through a tunnel to an address that is not the relay's",
    section="RFC 7597 section 8.1",
    due="not_decapsulated",
    level="must",
    needs="the rules hold every address",
    sending=_foreign_tunnel_destination,
)
OUTER_FRAGMENTS: Case[TunnelScene] = Case(
    words="a customer edge sends packets of its tunnel in two fragments",
    section="RFC 2473 section 7",
    due="delivered",
    level="must",
    needs="",
    sending=lambda scene: replace(in_tunnel(scene), tunnel_fragment_octets=TUNNEL_FRAGMENT_OCTETS),
)


NO_LARGE_PACKETS = (
    f"the link with the tunnels carries every packet of the other link, of at most {PACKET_OCTETS_MAX} octets, with its"
    " outer header"
)


def _larger_than_tunnel(scene: TunnelScene) -> Sending | None:
    room, sent = scene.room, into_tunnel(scene)
    if room is None or room.too_large is None or sent.delivery is None:
        return None
    due = replace(sent.delivery, in_fragments=False)
    return replace(sent, octets=room.too_large, mtus=range(room.mtu, room.mtu + 1), delivery=due)


def _larger_than_tunnel_with_df(scene: TunnelScene) -> Sending | None:
    sent = _larger_than_tunnel(scene)
    return None if sent is None else replace(sent, delivery=None, dont_fragment=True)


def _larger(sender: str, section: str, level: Level) -> Mapping[CaseName, Case[TunnelScene]]:
    """Return the cases of IPv4 packets that do not fit into a tunnel; where, and how strongly, fragments are due."""
    return {
        "larger_than_tunnel": Case(
            words=f"{sender} sends packets without DF that are larger than the tunnel MTU: fragments are due of the"
            " tunnel packet, not of what is in it",
            section=section,
            due="delivered",
            level=level,
            needs=NO_LARGE_PACKETS,
            sending=_larger_than_tunnel,
        ),
        "larger_than_tunnel_with_df": Case(
            words=f"{sender} sends packets with DF that are larger than the tunnel MTU",
            section="RFC 2473 section 7.2",
            due="dropped",
            level="must",
            answer="icmpv4 3/4",
            needs=NO_LARGE_PACKETS,
            sending=_larger_than_tunnel_with_df,
        ),
    }


def _differentiated(
    into: str, back: str, *, sender: str = "a customer edge", server: str = "a server"
) -> Mapping[CaseName, Case[TunnelScene]]:
    """Return the cases of traffic classes: `into` a tunnel and `back` out of it are sections; who sends which."""
    return {
        "class_into_tunnel": Case(
            words=f"{server} sends packets with a traffic class, which they keep in the tunnel; the outer header's is"
            " the same, or the stated one",
            section=into,
            due="delivered",
            level="must",
            needs="",
            sending=lambda scene: replace(into_tunnel(scene), differentiated="alike"),
        ),
        "class_from_tunnel": Case(
            words=f"{sender} sends packets with a traffic class in the tunnel, which they keep",
            section=back,
            due="delivered",
            level="must",
            needs="",
            sending=lambda scene: replace(in_tunnel(scene), differentiated="alike"),
        ),
        "class_remarked": Case(
            words=f"{sender} sends packets with a traffic class in the tunnel, and a router on their way writes another"
            " one into the outer header",
            section="RFC 2983 section 5.1",
            due="reported",
            level="none",
            needs="",
            sending=lambda scene: replace(in_tunnel(scene), differentiated="remarked"),
        ),
    }


def _expiries_of_relay(family: Family) -> Mapping[CaseName, Case[TunnelScene]]:
    """Return the cases of hop limits that end in a relay; packets of this family are in its tunnels."""
    return {
        "expired_from_outside": _expiry(
            "a server sends with a hop limit that ends in the gateway", family, family, lambda scene: scene.downward()
        ),
        "expired_from_inside": _expiry(
            "a customer edge sends with a hop limit, inside its tunnel, that ends in the gateway",
            family,
            family,
            lambda scene: scene.upward(),
        ),
    }


TUNNEL_RELAY_CASES: Mapping[CaseName, Case[TunnelRelayScene]] = {
    **_expiries_of_relay("ipv4"),
    "foreign_tunnel": Case(
        words="a packet of a customer edge comes in the tunnel of another one",
        section="RFC 7597 section 8.1",
        due="dropped",
        level="must",
        silently=True,
        needs="there is only one customer edge",
        sending=lambda scene: None if scene.other is None else _in_other_tunnel(scene, source=scene.other.address),
    ),
    "nobodys_tunnel": Case(
        words="a packet of a customer edge comes in a tunnel from an address of no rule",
        section="RFC 7597 section 8.1",
        due="dropped",
        level="must",
        needs="the rules hold every address",
        sending=_nobodys_tunnel,
    ),
    "foreign_tunnel_destination": FOREIGN_TUNNEL_DESTINATION,
    "foreign_source_address": Case(
        words="a customer edge sends from an IPv4 address that is not its own",
        section="RFC 7597 section 8.1",
        due="dropped",
        level="must",
        silently=True,
        needs="the customer edge has every address",
        sending=_foreign_inner_address,
    ),
    "foreign_source_port": Case(
        words="a customer edge sends from a port of its neighbour",
        section="RFC 7597 section 8.1",
        due="dropped",
        level="must",
        silently=True,
        needs="no address is shared",
        sending=_foreign_source_port,
    ),
    "echo_from_outside": replace(RELAY_CASES["echo_from_outside"], section="RFC 7597 section 8.2"),
    "echo_from_inside": replace(RELAY_CASES["echo_from_inside"], section="RFC 7597 section 8.2"),
    "hairpin": replace(RELAY_CASES["hairpin"], section="RFC 7597 section 7"),
    "fragments": Case(
        words="a server sends packets in two fragments, which may be put together or not",
        section="RFC 7597 section 8.3.2",
        due="delivered",
        level="should",
        needs="",
        sending=lambda scene: replace(scene.downward(), fragment_octets=FRAGMENT_OCTETS),
    ),
    "small_fragments": _small_fragments(lambda scene: scene.downward(), "a server", "RFC 7597 section 8.3.2", "should"),
    "inner_fragments": Case(
        words="a customer edge sends packets in two fragments, each in its tunnel",
        section="RFC 7597 section 8.1",
        due="reported",
        level="none",
        needs="",
        sending=lambda scene: replace(scene.upward(), fragment_octets=FRAGMENT_OCTETS),
    ),
    "outer_fragments": OUTER_FRAGMENTS,
    **_larger("a server", "RFC 7597 section 8.3.1", "should"),
    "error_from_outside": Case(
        words="a server answers a packet of a customer edge with an ICMP error",
        section="RFC 7597 section 8.2",
        due="reported",
        level="none",
        needs="",
        sending=error_from_outside,
    ),
    "error_from_tunnel": Case(
        words="a router answers a tunnel to a customer edge with an ICMP error, which the relay passes on",
        section="RFC 7597 section 8.2",
        due="delivered",
        level="should",
        some_suffice=True,
        needs="",
        sending=error_from_tunnel,
    ),
    **_differentiated("RFC 2473 section 6.4", "RFC 2473 section 3.3"),
    "nobodys_port": replace(RELAY_CASES["nobodys_port"], section="RFC 7597 section 5.4"),
    "nobodys_address": replace(RELAY_CASES["nobodys_address"], section="RFC 7597 section 5.4"),
}
"""What the relay itself sends errors about comes first and last: it may limit how many it sends to a host."""


def _of_binding(name: CaseName, **changes: Any) -> Case[TunnelRelayScene]:
    """Return what must have an entry in the binding table, or is dropped; an error may tell the sender."""
    return replace(TUNNEL_RELAY_CASES[name], section="RFC 7596 section 6.2", silently=False, **changes)


SOFTWIRE_CASES: Mapping[CaseName, Case[TunnelRelayScene]] = {
    **_expiries_of_relay("ipv4"),
    "foreign_tunnel": _of_binding("foreign_tunnel"),
    "nobodys_tunnel": _of_binding("nobodys_tunnel"),
    "foreign_tunnel_destination": _of_binding("foreign_tunnel_destination"),
    "foreign_source_address": _of_binding("foreign_source_address"),
    "foreign_source_port": _of_binding("foreign_source_port"),
    "echo_from_outside": replace(RELAY_CASES["echo_from_outside"], section="RFC 7596 section 8.1"),
    "echo_from_inside": replace(RELAY_CASES["echo_from_inside"], section="RFC 7596 section 8.1"),
    "hairpin": _of_binding("hairpin", due="delivered", level="must"),
    "outer_fragments": replace(
        OUTER_FRAGMENTS, words="an lwB4 sends packets of its tunnel in two fragments", section="RFC 6333 section 6.3"
    ),
    **_larger("a server", "RFC 6333 section 6.3", "must"),
    "error_from_outside": replace(
        TUNNEL_RELAY_CASES["error_from_outside"], section="RFC 7596 section 8.1", due="delivered", level="should"
    ),
    **_differentiated("RFC 7596 section 6.2", "RFC 7596 section 6.2", sender="an lwB4"),
    "nobodys_port": _of_binding("nobodys_port", due="dropped", level="must"),
    "nobodys_address": _of_binding("nobodys_address", due="dropped", level="must"),
}
"""Those of an lwAFTR. What its RFC says of fragments inside tunnels, and of errors about tunnels, is not tried."""


def _outside_prefix(scene: SixrdScene) -> Sending | None:
    upward, prefix = scene.upward(), scene.relay.prefix
    for bit in range(128 - prefix.prefixlen, 128):
        address = IPv6Address(int(scene.host_of(scene.edge)) ^ 1 << bit)
        if not address.is_multicast and address != scene.server.address:
            return Sending(side="left", flow=replace(upward.flow, source=address))
    return None


def _nobodys_prefix(scene: SixrdScene) -> Sending | None:
    edge = _neighbour(scene.edge, scene.is_taken, below=32 - scene.relay.tunnel.masked_bits)
    if not isinstance(edge, IPv4Address):
        return None
    return Sending(side="right", flow=replace(scene.downward().flow, destination=scene.host_of(edge)))


def _larger_than_sixrd_tunnel(scene: SixrdScene) -> Sending | None:
    """Return a packet about which the relay states the tunnel MTU: any from the least one to what the link leaves."""
    sent = _larger_than_tunnel_with_df(scene)
    if sent is None or scene.room.mtu < defaults.LOWEST_IPV6_MTU:
        return None
    return replace(sent, mtus=range(defaults.LOWEST_IPV6_MTU, scene.room.mtu + 1))


SIXRD_CASES: Mapping[CaseName, Case[SixrdScene]] = {
    **_expiries_of_relay("ipv6"),
    "foreign_tunnel": Case(
        words="a packet of a customer edge comes in the tunnel of another one",
        section="RFC 5969 section 9.2",
        due="dropped",
        level="must",
        needs="there is only one customer edge",
        sending=lambda scene: None if scene.other is None else _in_other_tunnel(scene, source=scene.other),
    ),
    "foreign_tunnel_destination": replace(
        FOREIGN_TUNNEL_DESTINATION, section="RFC 4213 section 3.6", needs="every address of the link is in use"
    ),
    "foreign_source_address": Case(
        words="a customer edge sends from an IPv6 address that is not under the 6rd prefix",
        section="RFC 5969 section 9.2",
        due="dropped",
        level="must",
        needs="the 6rd prefix holds every address",
        sending=_outside_prefix,
    ),
    "echo_from_outside": _ping(
        "a server sends echo requests", "RFC 5969 section 9", lambda scene: scene.downward("echo request")
    ),
    "echo_from_inside": _ping(
        "a customer edge sends echo requests", "RFC 5969 section 9", lambda scene: scene.upward("echo request")
    ),
    "hairpin": Case(
        words="a customer edge sends to another one through the relay",
        section="RFC 5969 section 9",
        due="reported",
        level="none",
        needs="there is only one customer edge",
        sending=lambda scene: scene.hairpin(),
    ),
    "to_own_prefix": Case(
        words="a customer edge sends through the relay to its own prefix, to see whether the relay is there",
        section="RFC 5969 section 8",
        due="delivered",
        level="must",
        needs="",
        sending=lambda scene: scene.to_own_prefix(),
    ),
    "to_relays_prefix": Case(
        words="a server sends to the prefix that the relay's own IPv4 address gives",
        section="RFC 5969 section 12",
        due="dropped",
        level="must",
        needs="the relay's IPv4 address has other bits at its begin than those of customer edges",
        sending=lambda scene: scene.to_relays_prefix(),
    ),
    "outer_fragments": replace(OUTER_FRAGMENTS, section="RFC 4213 section 3.6"),
    "small_fragments": replace(
        OUTER_FRAGMENTS,
        words="a customer edge sends packets of its tunnel in fragments of 44 octets, which Ethernet pads: what it adds"
        " is no data",
        section="RFC 4213 section 3.6",
        sending=lambda scene: replace(in_tunnel(scene), tunnel_fragment_octets=SMALL_FRAGMENT_OCTETS),
    ),
    "larger_than_tunnel": Case(
        words="a server sends packets that are larger than the tunnel MTU",
        section="RFC 4213 section 3.2",
        due="dropped",
        level="should",
        answer="icmpv6 2/0",
        answer_level="must",
        needs=f"{NO_LARGE_PACKETS}, or the tunnel MTU is below {defaults.LOWEST_IPV6_MTU}",
        sending=_larger_than_sixrd_tunnel,
    ),
    "error_from_outside": Case(
        words="a server answers a packet of a customer edge with an ICMP error",
        section="RFC 5969 section 9",
        due="delivered",
        level="must",
        needs="",
        sending=error_from_outside,
    ),
    "error_from_tunnel": Case(
        words="a router answers a tunnel to a customer edge with an ICMP error, which the relay may pass on",
        section="RFC 4213 section 3.4",
        due="reported",
        level="none",
        needs="",
        sending=error_from_tunnel,
    ),
    **_differentiated("RFC 5969 section 9", "RFC 4213 section 3.6"),
    "nobodys_address": Case(
        words="a server sends to an address under the 6rd prefix that no customer edge has",
        section="RFC 5969 section 9",
        due="reported",
        level="none",
        needs="customer edges have every address",
        sending=_nobodys_prefix,
    ),
}


def _public_inner_address(scene: NatScene) -> Sending | None:
    upward = scene.upward()
    for bit in reversed(range(32)):
        address = IPv4Address(int(upward.flow.source) ^ 1 << bit)
        is_inner = any(address in network for network in defaults.B4_HOST_NETWORKS)
        if not (is_inner or address.is_multicast or address.is_loopback or address == scene.server.address):
            return Sending(side=upward.side, flow=replace(upward.flow, source=address))
    return None


def aftr_cases(technology: Technology) -> Mapping[CaseName, Case[NatScene]]:
    """Return the cases of an AFTR: those of a NAT (RFC 6333 section 8.2) through tunnels, and those of tunnels."""
    return {
        **nat_cases(technology),
        "foreign_source_address": Case(
            words="a host behind a B4 sends from an address that is neither private nor of 192.0.0.0/29",
            section="RFC 6333 section 11",
            due="dropped",
            level="must",
            needs="no such address differs in a single bit",
            sending=_public_inner_address,
        ),
        "foreign_tunnel_destination": replace(
            FOREIGN_TUNNEL_DESTINATION,
            words="a B4 sends through a tunnel to an address that is not the AFTR's",
            section="RFC 2473 section 3.3",
            needs="every address of the link is in use",
        ),
        "same_inner_endpoint": Case(
            words="a server answers a host that has the address and port of a host behind another B4",
            section="RFC 6333 section 6.6",
            due="delivered",
            level="must",
            needs="there is only one B4",
            sending=lambda scene: scene.to_twin(),
        ),
        "fragments": Case(
            words="a server answers in two fragments",
            section="RFC 4787 section 11",
            due="delivered",
            level="must",
            needs="",
            sending=lambda scene: replace(scene.downward(), fragment_octets=FRAGMENT_OCTETS),
        ),
        "small_fragments": _small_fragments(NatScene.downward, "a server", "RFC 4787 section 11", "must"),
        "inner_fragments": Case(
            words="a client sends packets in two fragments, each in its tunnel",
            section="RFC 4787 section 11",
            due="delivered",
            level="must",
            needs="",
            sending=lambda scene: replace(scene.upward(), fragment_octets=FRAGMENT_OCTETS),
        ),
        "outer_fragments": replace(
            OUTER_FRAGMENTS, words="a B4 sends packets of its tunnel in two fragments", section="RFC 6333 section 6.3"
        ),
        **_larger("a server", "RFC 6333 section 6.3", "must"),
        "error_from_outside": Case(
            words="a server answers a packet of a client with an ICMP error",
            section="RFC 5508 section 4.2",
            due="delivered",
            level="must",
            needs="",
            sending=error_from_outside,
        ),
        **_differentiated("RFC 6333 section 7.1", "RFC 6333 section 7.1", sender="a client"),
    }


def _of_nobody(scene: SubscriberScene) -> Sending | None:
    """Return a packet of the server in a tunnel from a neighbour of its relay that nobody is."""
    assert scene.uplink is not None, "it is at the end of a tunnel"
    address = _neighbour(scene.uplink.destination, scene.is_taken, below=64)
    return None if address is None else _in_other_tunnel(scene, source=address)


def _edge_of(scene: NatScene) -> Edge:
    assert scene.edge is not None, "it is a customer edge"
    return scene.edge


def _of_other_edge(scene: NatScene) -> Sending | None:
    """Return a packet of the server in a tunnel from another customer edge of the rule."""
    edge = _edge_of(scene)
    others = (edge.domain.edge(number) for number in range(min(2, edge.domain.edge_count)))
    other = next((other for other in others if other != edge), None)
    return None if other is None else _in_other_tunnel(scene, source=other.address)


def _foreign_destination_address(scene: NatScene) -> Sending | None:
    network = _edge_of(scene).ipv4_network

    def is_taken(address: IpAddress) -> bool:
        return address in network or address in (scene.server.address, scene.client.inside.address)

    address = _neighbour(network.network_address, is_taken, below=32)
    flow = scene.downward().flow
    return None if address is None else Sending(side=scene.outside, flow=replace(flow, destination=address))


def _inner_destination_address(scene: NatScene) -> Sending:
    inside = scene.client.inside
    flow = replace(scene.downward().flow, destination=inside.address, destination_port=inside.port)
    return Sending(side=scene.outside, flow=flow)


def _foreign_identifier(scene: NatScene) -> Sending | None:
    identifier, flow = _port_of_neighbour(_edge_of(scene)), scene.downward().flow
    if identifier is None:
        return None
    echo = replace(flow, kind="echo request", source_port=identifier, destination_port=flow.source_port)
    return Sending(side=scene.outside, flow=echo)


def _translated(scene: NatScene) -> Sending | None:
    sent = _public_inner_address(scene)
    return None if sent is None else replace(sent, delivery=scene.upward().delivery)


NOBODYS_TUNNEL: Case[SubscriberScene] = Case(
    words="a packet of a server comes in a tunnel from an address that is neither the relay's nor of the rule",
    section="RFC 7597 section 8.1",
    due="dropped",
    level="must",
    needs="every address of the link is in use",
    sending=_of_nobody,
)
ERROR_FROM_OUTSIDE: Case[TunnelScene] = Case(
    words="a server answers a packet of a host with an ICMP error",
    section="RFC 5508 section 4.2",
    due="delivered",
    level="must",
    needs="",
    sending=error_from_outside,
)


def _of_subscriber(
    *, passing: str, joining: str, fragmenting: str, level: Level, classes: tuple[str, str]
) -> Mapping[CaseName, Case[SubscriberScene]]:
    """Return the cases of tunnels that every subscriber's end has.

    `passing` is the section about IPv4 fragments of others, `joining` and `fragmenting` are those about fragments of
    tunnel packets. `level` is how strongly the first and the last ask for it. `classes` are those about traffic classes
    into the tunnel and out of it.
    """
    return {
        "fragments": Case(
            words="a host sends packets in two fragments",
            section=passing,
            due="delivered",
            level=level,
            needs="",
            sending=lambda scene: replace(into_tunnel(scene), fragment_octets=FRAGMENT_OCTETS),
        ),
        "small_fragments": _small_fragments(into_tunnel, "a host", passing, level),
        "inner_fragments": Case(
            words="a server sends packets in two fragments, each in the tunnel",
            section=passing,
            due="delivered",
            level=level,
            needs="",
            sending=lambda scene: replace(in_tunnel(scene), fragment_octets=FRAGMENT_OCTETS),
        ),
        "foreign_tunnel_destination": replace(
            FOREIGN_TUNNEL_DESTINATION,
            words="the relay sends through a tunnel to an address that is not the gateway's",
            section="RFC 2473 section 3.3",
            needs="every address of the link is in use",
        ),
        "outer_fragments": replace(
            OUTER_FRAGMENTS, words="the relay sends packets of the tunnel in two fragments", section=joining
        ),
        **_larger("a host", fragmenting, level),
        "error_from_outside": ERROR_FROM_OUTSIDE,
        "error_from_tunnel": Case(
            words="a router answers the tunnel of a host's packet with an ICMP error, which the gateway passes on",
            section="RFC 2473 section 8",
            due="delivered",
            level="should",
            some_suffice=True,
            needs="",
            sending=error_from_tunnel,
        ),
        **_differentiated(*classes, sender="a server", server="a host"),
    }


def _expiries_of_subscriber() -> Mapping[CaseName, Case[TunnelScene]]:
    return {
        "expired_from_outside": _expiry(
            "a server sends with a hop limit, inside the tunnel, that ends in the gateway",
            "ipv4",
            "ipv4",
            lambda scene: scene.downward(),
        ),
        "expired_from_inside": _expiry(
            "a host sends with a hop limit that ends in the gateway", "ipv4", "ipv4", lambda scene: scene.upward()
        ),
    }


TUNNEL_EDGE_CASES: Mapping[CaseName, Case[NatScene]] = {
    **_expiries_of_subscriber(),
    "unused_port": Case(
        words="a server sends to a port of the set that no client uses",
        section="RFC 7597 section 8.1",
        due="reported",
        level="none",
        needs="the set has a single port",
        sending=lambda scene: _to_port(
            scene, _unused_port_of(_edge_of(scene), scene.client.public.port, scene.other.public.port)
        ),
    ),
    "port_of_the_set": Case(
        words="a client sends from another port",
        section="RFC 7597 section 8",
        due="delivered",
        level="must",
        needs="",
        sending=lambda scene: scene.from_port(CLIENT_PORT + 2),
    ),
    "echo_from_inside": _ping(
        "a client sends echo requests, whose identifier becomes a port of the set",
        "RFC 7597 section 8.2",
        lambda scene: scene.upward("echo request"),
    ),
    "hairpin": Case(
        words="a client sends to the public address and port of another one",
        section="RFC 4787 section 6",
        due="delivered",
        level="should",
        needs="",
        sending=lambda scene: scene.hairpin(),
    ),
    "foreign_source_address": Case(
        words="a host sends from an address that is not of the customer's network",
        section="RFC 7597 section 8",
        due="translated",
        level="must",
        needs="no such address differs in a single bit",
        sending=_translated,
    ),
    "foreign_tunnel": Case(
        words="a packet of a server comes in a tunnel from another customer edge",
        section="RFC 7597 section 8.1",
        due="dropped",
        level="must",
        silently=True,
        needs="the rule has a single customer edge",
        sending=_of_other_edge,
    ),
    "nobodys_tunnel": NOBODYS_TUNNEL,
    "foreign_destination_address": Case(
        words="a server sends to another public address, in the tunnel of the gateway",
        section="RFC 7597 section 8.1",
        due="dropped",
        level="must",
        needs="the gateway has every address",
        sending=_foreign_destination_address,
    ),
    "inner_destination_address": Case(
        words="a server sends to the address and port of a client on its own side, in the tunnel of the gateway",
        section="RFC 7597 section 8.1",
        due="dropped",
        level="must",
        needs="",
        sending=_inner_destination_address,
    ),
    "foreign_destination_port": Case(
        words="a server sends to a port of another customer edge",
        section="RFC 7597 section 9",
        due="dropped",
        level="must",
        needs="the gateway shares its address with nobody",
        sending=lambda scene: _to_port(scene, _port_of_neighbour(_edge_of(scene))),
    ),
    "foreign_identifier": Case(
        words="a server sends echo requests whose identifier is a port of another customer edge",
        section="RFC 7597 section 8.2",
        due="dropped",
        level="must",
        needs="the gateway shares its address with nobody",
        sending=_foreign_identifier,
    ),
    **_of_subscriber(
        passing="RFC 4787 section 11",
        joining="RFC 2473 section 7",
        fragmenting="RFC 7597 section 8.3.1",
        level="should",
        classes=("RFC 2473 section 6.4", "RFC 2473 section 3.3"),
    ),
}
"""Those of a MAP-E customer edge. A port that no client uses comes first: later ones take ports that are not known."""


def _of_lwb4(name: CaseName, **changes: Any) -> Case[NatScene]:
    """Return what does not match the configuration of an lwB4, which drops it; an error may tell the sender."""
    return replace(TUNNEL_EDGE_CASES[name], **{"section": "RFC 7596 section 5.2", "silently": False, **changes})


LWB4_CASES: Mapping[CaseName, Case[NatScene]] = {
    **TUNNEL_EDGE_CASES,
    "port_of_the_set": _of_lwb4("port_of_the_set"),
    "echo_from_inside": _of_lwb4("echo_from_inside", section="RFC 7596 section 8.2", level="should"),
    "hairpin": _of_lwb4("hairpin", section="RFC 4787 section 6", level="must"),
    "foreign_source_address": _of_lwb4("foreign_source_address"),
    "foreign_tunnel": _of_lwb4("foreign_tunnel"),
    "nobodys_tunnel": _of_lwb4("nobodys_tunnel"),
    "foreign_destination_address": _of_lwb4("foreign_destination_address"),
    "inner_destination_address": _of_lwb4("inner_destination_address"),
    "foreign_destination_port": _of_lwb4("foreign_destination_port"),
    "foreign_identifier": _of_lwb4("foreign_identifier"),
    "unused_port": _of_lwb4("unused_port"),
    **_of_subscriber(
        passing="RFC 4787 section 11",
        joining="RFC 6333 section 5.3",
        fragmenting="RFC 6333 section 5.3",
        level="must",
        classes=("RFC 7596 section 5.2", "RFC 7596 section 5.2"),
    ),
}
"""Those of an lwB4, whose RFC demands what those of NATs and of the B4 do."""

B4_CASES: Mapping[CaseName, Case[B4Scene]] = {
    **_expiries_of_subscriber(),
    "echo_from_outside": _ping(
        "a server sends echo requests", "RFC 6333 section 5.2", lambda scene: scene.downward("echo request")
    ),
    "echo_from_inside": _ping(
        "a host sends echo requests", "RFC 6333 section 5.2", lambda scene: scene.upward("echo request")
    ),
    "nobodys_tunnel": replace(
        NOBODYS_TUNNEL,
        words="a packet of a server comes in a tunnel from an address that is not the AFTR's",
        section="RFC 6333 section 5.2",
        due="reported",
        level="none",
    ),
    **_of_subscriber(
        passing="RFC 6333 section 5.2",
        joining="RFC 6333 section 5.3",
        fragmenting="RFC 6333 section 5.3",
        level="must",
        classes=("RFC 6333 section 7.1", "RFC 6333 section 7.1"),
    ),
    "error_from_outside": replace(ERROR_FROM_OUTSIDE, section="RFC 6333 section 5.2"),
}
"""Those of a B4, which leaves the packets in its tunnel as they are."""


def _cases_of_subscriber(technology: Technology) -> Mapping[CaseName, Case[Any]]:
    if not technology.is_stateful:
        return B4_CASES
    return LWB4_CASES if technology.has_bindings else TUNNEL_EDGE_CASES


OF_MAP_T: Mapping[CaseName, str] = {
    "unused_port": "RFC 7599 section 8.2",
    "port_of_the_set": "RFC 7599 section 8.1",
    "echo_from_inside": "RFC 7599 section 9",
    "foreign_source_address": "RFC 7599 section 8.1",
    "foreign_destination_port": "RFC 7599 section 8.2",
    "foreign_identifier": "RFC 7599 section 9",
}
"""Where the same is said of a MAP-T customer edge as of one of MAP-E."""
END_TO_END: tuple[CaseName, ...] = (
    "unused_port",
    "port_of_the_set",
    "echo_from_inside",
    "hairpin",
    "foreign_source_address",
    "foreign_destination_port",
    "foreign_identifier",
    "fragments",
    "small_fragments",
    "error_from_outside",
)
"""What is due of the gateway with the connections even if another one is between it and the Tester."""


def _expiries_of_row(technology: Technology) -> Mapping[CaseName, Case[NatScene]]:
    """Return the cases of hop limits that end in the second gateway, to which translators send packets in IPv6."""
    cases: dict[CaseName, Case[NatScene]] = {
        "expired_from_outside": _expiry(
            "a server sends with a hop limit that ends in the second gateway", "ipv4", "ipv4", NatScene.downward
        ),
        "expired_from_inside": _expiry(
            "a client sends with a hop limit that ends in the second gateway", "ipv4", "ipv4", NatScene.upward
        ),
    }
    assert technology.in_a_row is not None, "it is two gateways"
    if TECHNOLOGIES[technology.in_a_row[1]].has_tunnels:
        return cases
    return {name: replace(case, section=EXPIRY_SECTIONS["ipv6", "ipv4"]) for name, case in cases.items()}


def row_cases(technology: Technology) -> Mapping[CaseName, Case[NatScene]]:
    """Return the cases of two gateways in a row, tried as one (RFC 8219 section 4.2), which is a NAT44.

    They are those of the gateway with the connections; what only the link between both shows is not tried.
    """
    assert technology.in_a_row is not None, "it is two gateways"
    of_keeper: dict[CaseName, Case[Any]] = {**cases_of(TECHNOLOGIES[technology.in_a_row[technology.keeper]])}
    if technology.has_default_rules:
        of_keeper = {
            name: replace(case, section=OF_MAP_T.get(name, case.section)) for name, case in TUNNEL_EDGE_CASES.items()
        }
        of_keeper["error_from_outside"] = replace(ERROR_FROM_OUTSIDE, level="should")
    return {**_expiries_of_row(technology), **{name: of_keeper[name] for name in END_TO_END if name in of_keeper}}


def cases_of(technology: Technology) -> Mapping[CaseName, Case[Any]]:
    """Return the cases of a gateway, in the order in which they are tried; none if no RFC says what it has to do."""
    if not technology.has_duties:
        return {}
    if technology.has_edges:
        of_tunnels = SOFTWIRE_CASES if technology.has_bindings else TUNNEL_RELAY_CASES
        return of_tunnels if technology.has_tunnels else RELAY_CASES
    if technology.in_a_row is not None:
        return row_cases(technology)
    if technology.is_subscriber:
        return _cases_of_subscriber(technology)
    if technology.is_edge:
        return EDGE_CASES
    if technology.delegates_prefixes:
        return SIXRD_CASES
    if technology.has_b4s:
        return aftr_cases(technology)
    return nat_cases(technology) if technology.is_stateful else translator_cases(technology)


def probes(campaign: Campaign, public: Sequence[Endpoint | None] = ()) -> Iterator[Probe]:
    """Yield every case of every domain, case by case; `public` as in `scenes`."""
    known = list(scenes(campaign, public))
    for name, case in cases_of(campaign.technology).items():
        for index, scene in known:
            sending = case.sending(scene)
            if sending is not None:
                yield Probe(name=name, case=case, domain=index, scene=scene, sending=sending)
