"""What is wrong with a gateway's tunnels, by the faults of frames and by those that were kept, and what to do. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from itertools import product
from types import MappingProxyType
from typing import get_args

from gatemark.config.model import Campaign
from gatemark.config.sixrd import DELEGATED_MAX
from gatemark.config.tables import TunnelModel
from gatemark.config.views import Sixrd
from gatemark.packets import Packet
from gatemark.technology import EcnMode
from gatemark.trial.report import DirectionResult, TrialReport
from gatemark.trial.verdict import kept_frames

FITS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Told:
    """What is seen of a fault, and its remedy."""

    observed: str
    """Empty if no frame with it was kept."""
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """Frames of one direction that were kept for a fault of their tunnels."""

    campaign: Campaign
    way: DirectionResult
    packets: Sequence[Packet]

    @property
    def tunnel(self) -> TunnelModel:
        """Return the policies of the tunnels."""
        tunnel = self.campaign.forwarding.tunnel
        assert tunnel is not None, "faults of tunnels are those of gateways that have any"
        return tunnel

    @property
    def sources(self) -> str:
        """Return where the tunnels begin, in words."""
        return _listed({packet.flow.tunnel.source for packet in self.packets if packet.flow.tunnel is not None})

    @property
    def destinations(self) -> str:
        """Return where the tunnels lead to, in words."""
        return _listed({packet.flow.tunnel.destination for packet in self.packets if packet.flow.tunnel is not None})


def tunnel_faults(campaign: Campaign, report: TrialReport, direction: DirectionResult) -> Iterator[Told]:
    """Yield what is wrong with the tunnels of one direction, a remedy for each fault; of a mesh not where they lead."""
    faults = {reason for _, counts in direction.classes for reason, count in counts.faults.items() if count}
    if faults & {"tunnel_source", "tunnel_destination"}:
        faults.discard("other_subscriber")  # it is beside one of these, which says it
    if campaign.edges.peers is not None:
        faults.discard("tunnel_destination")
    for reason, told in _REMEDIES.items():
        if reason in faults:
            read = kept_frames(report, direction.direction, reason)
            packets = [packet for packet in read if isinstance(packet, Packet)]
            yield told(_Kept(campaign=campaign, way=direction, packets=packets))


def _left(kept: _Kept) -> Told:
    end = kept.campaign.forwarding.tunnel_end
    return Told("", f"the gateway forwards tunnels that end in it: give it {end}, or set gateway.tunnel.address")


def _missing(kept: _Kept) -> Told:
    if kept.campaign.technology.is_subscriber:
        return Told("", f"the gateway sends packets without their tunnel: route them into the one to {_far_end(kept)}")
    remedy = "the gateway sends packets for subscribers without their tunnels: give it tunnels and routes as"
    return Told("", f"{remedy} `gatemark export` prints them")


def _option(_: _Kept) -> Told:
    remedy = "keep the gateway from adding options, such as an encapsulation limit: on Linux with `encaplimit none`"
    return Told("options before the packet in the tunnel", remedy)


def _source(kept: _Kept) -> Told:
    end, edge = kept.campaign.forwarding.tunnel_end, kept.campaign.edges.gateway
    observed = f"tunnels begin at {kept.sources}, not at {end}" if kept.sources else ""
    key = "set gateway.tunnel.address" if edge is None else "compare its rule with [map] (`gatemark plan`)"
    return Told(observed, f"correct the gateway's end of its tunnels, or {key}")


def _destination(kept: _Kept) -> Told:
    technology = kept.campaign.technology
    if technology.is_subscriber:
        due, key = _far_end(kept), f"{kept.campaign.roles.outside}.ipv6.address"
        observed = f"tunnels lead to {kept.destinations}, not to {due}" if kept.destinations else ""
        return Told(observed, f"correct where the gateway's tunnels lead, or set {key}")
    inside = next((packet for packet in kept.packets if packet.flow.tunnel is not None), None)
    observed = "" if inside is None else f"a packet for {inside.flow.destination} came {_where(inside)}"
    if kept.campaign.sixrd is not None:
        return _sixrd(kept, kept.campaign.sixrd, observed)
    if technology.has_b4s:
        remedy = "the AFTR must tell connections apart by their B4 (RFC 6333 section 6.6)"
        return Told(observed, f"{remedy}; compare the B4s that it knows with {kept.campaign.roles.inside}.ipv6")
    return Told(observed, "compare the gateway's rules or bindings with those that `gatemark export` prints")


def _sixrd(kept: _Kept, sixrd: Sixrd, observed: str) -> Told:
    """Return which 6rd prefix and mask length explain all that arrived."""
    ends = [
        (packet.flow.destination, packet.flow.tunnel.destination)
        for packet in kept.packets
        if packet.flow.tunnel is not None
    ]
    arrived = [(inner, to) for inner, to in ends if isinstance(inner, IPv6Address) and isinstance(to, IPv4Address)]
    fits = sixrd_fits(sixrd, arrived) if arrived else ()
    if not fits:
        return Told(observed, "compare the gateway's 6rd prefix and IPv4 mask length with gateway.tunnel")
    more = f", and {len(fits) - FITS_SHOWN} others" if len(fits) > FITS_SHOWN else ""
    words = f"the gateway behaves as it would with {' or '.join(fits[:FITS_SHOWN])}{more}"
    remedy = f"correct the gateway, or set {fits[0]} in gateway.tunnel" if len(fits) == 1 else "compare both values"
    return Told(f"{observed}; {words}", remedy)


def sixrd_fits(sixrd: Sixrd, arrived: Collection[tuple[IPv6Address, IPv4Address]]) -> tuple[str, ...]:
    """Return the lengths of 6rd prefix and mask that explain where packets arrived, with as few changes as it takes.

    `arrived` has destinations of packets, each with that of its tunnel (RFC 5969 section 4). A relay takes the bits
    before the mask from its own configuration, here those of an edge or of the relay's address.
    """
    network, mask = sixrd.prefix, sixrd.tunnel.masked_bits
    length, bases = network.prefixlen, (sixrd.edges.address, sixrd.end)
    by_changes: dict[int, list[str]] = {}
    for other, bits in product(range(1, DELEGATED_MAX + 1), range(32)):
        changes = (other != length) + (bits != mask)
        if not changes or other + 32 - bits > DELEGATED_MAX:
            continue
        prefix = IPv6Network((network.network_address, other), strict=False)
        if any(all(_sixrd_end(inner, prefix, bits, base) == to for inner, to in arrived) for base in bases):
            words = [f'prefix = "{prefix}"'] * (other != length) + [f"ipv4_mask_length = {bits}"] * (bits != mask)
            by_changes.setdefault(changes, []).append(" and ".join(words))
    return tuple(by_changes[min(by_changes)]) if by_changes else ()


def _sixrd_end(inner: IPv6Address, prefix: IPv6Network, mask: int, base: IPv4Address) -> IPv4Address | None:
    """Return the end of the tunnel that a relay computes for a packet; None for one that is not under its prefix."""
    if inner not in prefix:
        return None
    below = 32 - mask
    suffix = int(inner) >> (128 - prefix.prefixlen - below) & ((1 << below) - 1)
    return IPv4Address(int(base) >> below << below | suffix)


def _ecn_modes(kept: _Kept) -> Iterator[EcnMode]:
    """Yield the ways to write the congestion field that all these outer headers are in accord with."""
    classes = {(each.traffic_class, each.outer.traffic_class) for each in kept.packets if each.outer is not None}
    mode: EcnMode
    for mode in get_args(EcnMode):
        tunnel = kept.tunnel.model_copy(update={"ecn": mode})
        if classes and all(tunnel.outer_class(inside) == outside for inside, outside in classes):
            yield mode


def _traffic_class(kept: _Kept) -> Told:
    stated, sent = kept.tunnel.traffic_class, kept.campaign.directions.traffic_of(kept.way.direction).traffic_class
    octets = sorted({packet.outer.traffic_class for packet in kept.packets if packet.outer is not None})
    due = "that of the packet inside" if stated == "copied" else stated
    observed = f"outer headers of traffic class {_listed(octets)}, not {due}" if octets else ""
    if stated != "copied" and octets and set(octets) <= set(sent):
        return Told(observed, 'correct it in the gateway, or set gateway.tunnel.traffic_class = "copied"')
    mode = next(_ecn_modes(kept), None)
    if mode is not None:
        return Told(observed, f'correct it in the gateway, or set gateway.tunnel.ecn = "{mode}"')
    value = str(octets[0]) if len(octets) == 1 else "to what the gateway writes"
    equals = " = " if len(octets) == 1 else " "
    return Told(observed, f"correct it in the gateway, or set gateway.tunnel.traffic_class{equals}{value}")


def _header(kept: _Kept) -> Told:
    stated = kept.tunnel.hop_limit
    outer = [packet.outer for packet in kept.packets if packet.outer is not None]
    limits = sorted({header.hop_limit for header in outer} - {stated})
    if stated == "any" or (outer and not limits):
        words = sorted({fault for header in outer for fault in header.faults}) or ["wrong length or checksum there"]
        remedy = "the gateway writes wrong outer headers: `gatemark frame` shows those that are due"
        return Told(", ".join(words), remedy)
    observed = f"outer headers of hop limit {_listed(limits)}, not {stated}" if limits else ""
    value = str(limits[0]) if len(limits) == 1 else '"any"'
    return Told(observed, f"correct the hop limit in the gateway, or set gateway.tunnel.hop_limit = {value}")


def _far_end(kept: _Kept) -> str:
    """Return where the tunnels of a subscriber's gateway must lead: to the Tester as AFTR or relay."""
    return str(kept.campaign.hosts(kept.campaign.roles.outside, "ipv6").address)


def _where(packet: Packet) -> str:
    assert packet.flow.tunnel is not None, "it came in one"
    return f"in the tunnel to {packet.flow.tunnel.destination}"


def _listed(values: Collection[object]) -> str:
    return " and ".join(sorted(map(str, values)))


_REMEDIES: Mapping[str, Callable[[_Kept], Told]] = MappingProxyType(
    {
        "tunnel_left": _left,
        "tunnel_missing": _missing,
        "tunnel_option": _option,
        "tunnel_source": _source,
        "tunnel_destination": _destination,
        "other_subscriber": _destination,
        "tunnel_traffic_class": _traffic_class,
        "tunnel_header": _header,
    }
)
"""Faults of tunnels, in the order in which they are put right."""
