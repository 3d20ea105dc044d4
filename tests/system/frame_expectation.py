"""What an independent decoder must find in the frames of a combination; computed without the code under test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from tests.system.independent_decoder import Decoded
from tests.system.loopback_product import (
    DESTINATION_PORT,
    DESTINATION_PORTS,
    EMBEDDED_OCTETS,
    HOP_LIMIT,
    HOSTS,
    IPV4_NETWORK,
    SMALLEST_IPV6,
    SOURCE_PORT,
    SOURCE_PORTS,
    TRAFFIC_CLASS,
    TRANSLATORS,
    Combination,
    embed,
)

from gatemark.facts import OneWay, Variation
from gatemark.technology import TECHNOLOGIES, Family, SideName

TRANSLATION_OCTETS = 20


@dataclass(frozen=True, slots=True)
class Form:
    """Addresses of one set of hosts as one family sees them: fixed octets, and where number and network stand."""

    base: bytes
    number_octet: int
    network_octet: int

    def read(self, address: bytes) -> tuple[int, int] | None:
        """Return number and network of an address, None if it is none of these hosts."""
        if len(address) != len(self.base):
            return None
        bare = bytearray(address)
        bare[self.number_octet] = bare[self.network_octet] = 0
        return (address[self.number_octet], address[self.network_octet]) if bytes(bare) == self.base else None


def form_of(combination: Combination, side: SideName, native: Family, family: Family) -> Form:
    """Return the form of the hosts of a side whose own family is `native`, in a packet of the family `seen`."""
    ipv4 = f"{IPV4_NETWORK[side]}.0.0"
    translated = combination.technology in TRANSLATORS and side == combination.ipv6_side and native == "ipv6"
    mapped = translated and combination.prefix_length is None
    if family == "ipv4":
        swapped = mapped and combination.networks == 256
        return Form(ip_address(ipv4).packed, *((2, 3) if swapped else (3, 2)))
    wide_mapping = combination.prefix_length is None and combination.networks == 256
    if wide_mapping and (mapped or native == "ipv4"):  # 198.0.0.0/8 covers the IPv4 hosts of the other side as well
        base = {"left": "2001:2:112::", "right": "2001:2:113::"}[side]
        return Form(ip_address(base).packed, *((6, 7) if mapped else (7, 6)))
    if native == "ipv4" or (translated and not mapped):
        length = combination.prefix_length or 96
        return Form(ip_address(embed(ipv4, combination.prefix)).packed, *EMBEDDED_OCTETS[length][:1:-1])
    base = "2001:2:0:c000::" if mapped else {"left": "2001:2::", "right": "2001:2:0:8000::"}[side]
    return Form(ip_address(base).packed, 15, 7)


def is_foreground(mix: str, index: int) -> bool:
    """The rule of RFC 8219 section 5.3 as this project reads it."""
    m, n = (int(part) for part in mix.split("/"))
    return index % n < m


def complaints(
    combination: Combination, way: OneWay, frames: Sequence[Decoded], *, behind_gateway: bool = False
) -> Iterator[str]:
    """Name everything that is wrong with the first frames of one direction, as sent or as a gateway delivers them."""
    sender: SideName = "left" if way == "forward" else "right"
    receiver: SideName = "right" if way == "forward" else "left"
    for foreground in (True, False):
        of_class = [f for index, f in enumerate(frames) if is_foreground(combination.mix, index) is foreground]
        natives = [
            TECHNOLOGIES[combination.technology].families[0 if side == "left" else 1] for side in (sender, receiver)
        ]
        families: list[Family] = natives if foreground else ["ipv6", "ipv6"]
        native, other = families
        family = other if behind_gateway else native
        source, destination = (
            form_of(combination, sender, native, family),
            form_of(combination, receiver, other, family),
        )
        yield from itertools.chain.from_iterable(
            _shape(combination, frame, family, behind_gateway) for frame in of_class
        )
        hosts = [source.read(frame.source) for frame in of_class]
        goals = [destination.read(frame.destination) for frame in of_class]
        if None in hosts or None in goals:
            yield f"an address is none of the configured hosts: {of_class}"
            continue
        ways: dict[SideName, Variation] = {"left": combination.left_hosts, "right": combination.right_hosts}
        networks = {number[1] for number in goals if number}
        fixed_network = destination.base[destination.network_octet]
        if combination.networks == 1 and networks - {fixed_network}:
            yield f"destination networks {networks}"
        if combination.networks == 256 and len(of_class) > 4 and len(networks) == 1:
            yield "one destination network only"
        numbers = {
            "source port": (combination.source_ports, SOURCE_PORTS, SOURCE_PORT, [f.source_port for f in of_class]),
            "destination port": (
                combination.destination_ports,
                DESTINATION_PORTS,
                DESTINATION_PORT,
                [f.destination_port for f in of_class],
            ),
            "source": (ways[sender], HOSTS, HOSTS[0], [host[0] for host in hosts if host]),
            "destination": (ways[receiver], HOSTS, HOSTS[0], [goal[0] for goal in goals if goal]),
        }
        for name, (variation, span, single, actual) in numbers.items():
            if not varies_as(variation, span, single, actual):
                yield f"{name} {variation}: {actual}"


def _shape(combination: Combination, frame: Decoded, family: Family, behind_gateway: bool) -> Iterator[str]:
    """Name what is wrong with one frame, its addresses and ports apart."""
    yield from frame.complaints
    octets = combination.size
    if combination.technology == "router66":
        octets = max(octets, SMALLEST_IPV6 + combination.trailer)
    elif family == "ipv6":
        octets += TRANSLATION_OCTETS
    behind_packet = 0 if behind_gateway else combination.trailer
    wanted = {
        "family": (frame.family, family),
        "octets": (frame.octets - behind_packet, octets - combination.trailer),
        "octets behind the packet": (frame.behind_packet, behind_packet),
        "VLAN": (frame.vlan, combination.vlan),
        "hop limit": (frame.hop_limit, HOP_LIMIT - 1 if behind_gateway else HOP_LIMIT),
        "traffic class": (frame.traffic_class, TRAFFIC_CLASS),
    }
    for name, (actual, right) in wanted.items():
        if actual != right:
            yield f"{name} {actual}, {right} is right"


def varies_as(variation: Variation, span: tuple[int, int], single: int, actual: Sequence[int]) -> bool:
    """Whether values follow one another as they should: all within the range, each one up or down from the last."""
    if variation == "fixed":
        return set(actual) <= {single}
    count = span[1] - span[0] + 1
    if any(not span[0] <= value <= span[1] for value in actual):
        return False
    steps = {(after - before) % count for before, after in itertools.pairwise(actual)}
    if variation == "pseudorandom":
        return len(actual) < 5 or len(steps) > 1
    return steps <= {1 if variation == "increasing" else count - 1}
