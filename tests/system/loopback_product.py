"""Every combination of settings that changes frames, as campaigns without a gateway; generated, not chosen.

`shapes` is the full product of what changes the shape of a frame (kind of gateway, size, VLAN, mix, destination
networks) with the ways in which values vary; in it both ports of a frame vary alike, and so do the hosts of both sides.
`values` is the full product of the four varying values (source port, destination port, left hosts, right hosts, four
ways each) with kind of gateway and networks, at the smallest size without VLAN, half of the frames background. The
split loses nothing: size and VLAN move and lengthen a frame, while the values of a frame are a function of seed, stream
and its number within its class alone. `prefixes` is the full product of the translation prefix lengths of RFC 6052 with
translators and the ways in which hosts vary. `trailers` is that of octets behind the packet with kinds of gateway,
sizes and VLAN. All send in both directions at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from ipaddress import IPv6Address
from typing import Any, get_args

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.facts import Variation
from gatemark.technology import TECHNOLOGIES, Family, SideName, TechnologyName

STATELESS: tuple[TechnologyName, ...] = tuple(
    row.name for row in TECHNOLOGIES.values() if not (row.is_stateful or row.has_edges or row.has_tunnels)
)
"""Without those whose hosts on the left follow from rules (test_map_t.py, test_reference_gateway.py)."""
TRANSLATORS = tuple(name for name in STATELESS if TECHNOLOGIES[name].is_translation)
WAYS: tuple[Variation, ...] = get_args(Variation)
SIZES = (64, 1518, 9216)
"""Frame sizes in octets: the smallest, the largest of Ethernet, the largest of RFC 8219 section 5.1.1."""
SMALLEST_IPV6 = 84
TRAILERS = (1, 4, 46, 64)
MTU = 9218
"""Carries the IPv6 frame of 9236 octets that an IPv4 frame of 9216 becomes."""
MIXES = ("1/1", "9/10", "0/1")
NETWORKS = (1, 256)
VLANS = (None, 100)
RING_FRAMES = 64
HOSTS = (2, 254)
SOURCE_PORTS, SOURCE_PORT = (1024, 65535), 40000
DESTINATION_PORTS, DESTINATION_PORT = (1, 49151), 7
HOP_LIMIT, TRAFFIC_CLASS = 10, 8
GATEWAY_MAC = "02:00:00:00:00:09"

PREFIX = "2001:2:0:6400::/96"
PREFIXES = {
    32: "2001:2::",
    40: "2001:2::",
    48: "2001:2::",
    56: "2001:2:0:aa00::",
    64: "2001:2:0:aa00::",
    96: PREFIX[:-3],
}
"""A translation prefix of each length (RFC 6052 section 2.2)."""
EMBEDDED_OCTETS = {
    32: (4, 5, 6, 7),
    40: (5, 6, 7, 9),
    48: (6, 7, 9, 10),
    56: (7, 9, 10, 11),
    64: (9, 10, 11, 12),
    96: (12, 13, 14, 15),
}
"""Octets of the IPv6 address that hold the IPv4 address; octet 8 is 0 (RFC 6052 section 2.2)."""
IPV4_NETWORK: dict[SideName, str] = {"left": "198.18", "right": "198.19"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One campaign of a product."""

    technology: TechnologyName
    size: int = SIZES[0]
    vlan: int | None = None
    mix: str = "1/1"
    networks: int = 1
    trailer: int = 0
    source_ports: Variation = "fixed"
    destination_ports: Variation = "fixed"
    left_hosts: Variation
    right_hosts: Variation
    prefix_length: int | None = None
    """All hosts lie under a translation prefix of this length; None: the IPv6 hosts have an explicit mapping."""

    def campaign(self, *, port: str = "ring", kind: str = "loopback") -> Campaign:
        """Return the checked campaign; `{side}` in `port` stands for the side."""
        sides: dict[str, Any] = {
            "left": self._side("left", self.left_hosts, port, kind),
            "right": self._side("right", self.right_hosts, port, kind),
        }
        document = {
            "gateway": self._gateway(),
            "testbed": {"kind": kind},
            **sides,
            "traffic": {
                "frame_sizes": {"family": self.naming_family, "octets": [self.octets]},
                "mix": [self.mix],
                "source_ports": _ports(self.source_ports, SOURCE_PORTS, SOURCE_PORT),
                "destination_ports": _ports(self.destination_ports, DESTINATION_PORTS, DESTINATION_PORT),
                "destination_networks": self.networks,
                "hop_limit": HOP_LIMIT,
                "traffic_class": TRAFFIC_CLASS,
                "trailer_octets": self.trailer,
                "dont_fragment": self.technology != "router66" and kind != "loopback",
            },
            "trial": {"duration": "400us", "settle": "0s", "learn": "0s", "drain": "500us", "rest": "0s"},
            "frame_loss": {"rates": ["500k"]},
        }
        return complete_campaign(campaign_from_dict(document, where=str(self)))

    @property
    def naming_family(self) -> Family:
        """The family that names the size."""
        return "ipv6" if self.technology == "router66" else "ipv4"

    @property
    def octets(self) -> int:
        """The size in the family that names it."""
        return max(self.size, SMALLEST_IPV6 + self.trailer) if self.naming_family == "ipv6" else self.size

    @property
    def prefix(self) -> str:
        """The translation prefix."""
        return PREFIX if self.prefix_length is None else f"{PREFIXES[self.prefix_length]}/{self.prefix_length}"

    @property
    def ipv6_side(self) -> SideName:
        """The side of a translator that has IPv6."""
        return "left" if self.technology == "siit64" else "right"

    def mapped_network(self) -> tuple[str, str]:
        """IPv4 network of the IPv6 side's hosts and the IPv6 network that it is mapped to (RFC 7757)."""
        if self.networks == 1:
            return f"{IPV4_NETWORK[self.ipv6_side]}.0.0/16", "2001:2:0:c000::/112"
        # Octet 7 numbers the network, so the mapping must put an octet of the IPv4 address there: the last one.
        return "198.0.0.0/8", "2001:2:100::/40"

    def _gateway(self) -> dict[str, Any]:
        if self.technology not in TRANSLATORS:
            return {"technology": self.technology}
        if self.prefix_length is not None:
            return {"technology": self.technology, "prefix": self.prefix}
        ipv4, ipv6 = self.mapped_network()
        return {"technology": self.technology, "prefix": self.prefix, "eam": [{"ipv4": ipv4, "ipv6": ipv6}]}

    def _side(self, name: SideName, way: Variation, port: str, kind: str) -> dict[str, Any]:
        side: dict[str, Any] = {
            "port": port.format(side=name),
            "mtu": MTU,
            "ring_frames": RING_FRAMES,
            "vlan": self.vlan,
        }
        if kind != "loopback":
            side["gateway_mac"] = GATEWAY_MAC
        families: set[Family] = (
            {TECHNOLOGIES[self.technology].families[0 if name == "left" else 1]} if self.mix != "0/1" else set()
        )
        of_background: set[Family] = {"ipv6"} if self.mix != "1/1" else set()
        for family in families | of_background:
            address, offset, upper = self._base(name, family)
            span = f"{upper + HOSTS[0]}-{upper + HOSTS[1]}"
            hosts = {} if way == "fixed" else {"offset": offset, "mode": way, "range": span}
            side[family] = {"address": address, "hosts": hosts}
        return side

    def _base(self, name: SideName, family: Family) -> tuple[str, int, int]:
        """Return a host of one side, the offset at which its number stands, and the upper octet of that number."""
        ipv4 = f"{IPV4_NETWORK[name]}.0.{HOSTS[0]}"
        if family == "ipv4":
            return ipv4, 2, 0
        if self.technology in TRANSLATORS and name == self.ipv6_side:
            if self.prefix_length is not None:
                return embed(ipv4, self.prefix), EMBEDDED_OCTETS[self.prefix_length][-1] - 1, 0
            if self.networks == 256:
                second = int(IPV4_NETWORK[name].split(".")[1])
                return f"2001:2:1{second:02x}:{HOSTS[0] << 8:x}::", 5, second << 8
            return "2001:2:0:c000::2", 14, 0
        return {"left": "2001:2::2", "right": "2001:2:0:8000::2"}[name], 14, 0


def shapes() -> Iterator[Combination]:
    """Everything that changes the shape of a frame, with the ways in which ports and hosts vary."""
    product = itertools.product(VLANS, STATELESS, SIZES, MIXES, NETWORKS, WAYS, WAYS)
    for vlan, technology, size, mix, networks, ports, hosts in product:
        yield Combination(
            technology=technology,
            size=size,
            vlan=vlan,
            mix=mix,
            networks=networks,
            source_ports=ports,
            destination_ports=ports,
            left_hosts=hosts,
            right_hosts=hosts,
        )


def values() -> Iterator[Combination]:
    """Every way of varying the four values of a frame, at the smallest size."""
    product = itertools.product(STATELESS, NETWORKS, WAYS, WAYS, WAYS, WAYS)
    for technology, networks, source_ports, destination_ports, left_hosts, right_hosts in product:
        yield Combination(
            technology=technology,
            mix="1/2",
            networks=networks,
            source_ports=source_ports,
            destination_ports=destination_ports,
            left_hosts=left_hosts,
            right_hosts=right_hosts,
        )


def prefixes() -> Iterator[Combination]:
    """Every length of a translation prefix, every way of varying hosts under it."""
    for technology, length, left_hosts, right_hosts in itertools.product(TRANSLATORS, PREFIXES, WAYS, WAYS):
        yield Combination(technology=technology, prefix_length=length, left_hosts=left_hosts, right_hosts=right_hosts)


def trailers() -> Iterator[Combination]:
    """Frames of every kind of gateway with octets behind the smallest packet and larger ones."""
    product = itertools.product(VLANS, STATELESS, TRAILERS, (0, 1, 1518), ("1/1", "9/10"))
    for vlan, technology, trailer, size, mix in product:
        yield Combination(
            technology=technology,
            size=size if size > SIZES[0] else SIZES[0] + trailer + size,
            vlan=vlan,
            mix=mix,
            trailer=trailer,
            left_hosts="pseudorandom",
            right_hosts="pseudorandom",
        )


STRIDE = 7
"""Prime to the number of values of every setting, so that each STRIDE-th combination of a product has every pair of
values that the product has."""


def sample(combinations: Iterable[Combination], *, all_of_them: bool) -> list[Combination]:
    """Return a product, or a part of it that still has each pair of values of two settings."""
    return list(itertools.islice(combinations, 0, None, 1 if all_of_them else STRIDE))


def pairs(combinations: Iterable[Combination]) -> set[tuple[tuple[str, Any], tuple[str, Any]]]:
    """Return the pairs of values of two settings."""
    return {pair for combination in combinations for pair in itertools.combinations(asdict(combination).items(), 2)}


def embed(ipv4: str, prefix: str) -> str:
    """Write an IPv4 address inside an IPv6 prefix (RFC 6052 section 2.2); this is not the code under test."""
    base, _, length = prefix.partition("/")
    octets = bytearray(IPv6Address(base).packed)
    for position, octet in zip(EMBEDDED_OCTETS[int(length)], ipv4.split("."), strict=True):
        octets[position] = int(octet)
    return str(IPv6Address(bytes(octets)))


def _ports(way: Variation, span: tuple[int, int], single: int) -> dict[str, str]:
    return {"mode": way, "range": str(single) if way == "fixed" else f"{span[0]}-{span[1]}"}
