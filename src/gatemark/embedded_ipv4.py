"""IPv4 addresses inside IPv6 addresses (RFC 6052). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from types import MappingProxyType

WELL_KNOWN_PREFIX = IPv6Network("64:ff9b::/96")
"""RFC 6052 section 2.1; must not represent non-global IPv4 addresses (section 3.1)."""

EMBEDDED_OCTETS: Mapping[int, tuple[int, int, int, int]] = MappingProxyType(
    {
        32: (4, 5, 6, 7),
        40: (5, 6, 7, 9),
        48: (6, 7, 9, 10),
        56: (7, 9, 10, 11),
        64: (9, 10, 11, 12),
        96: (12, 13, 14, 15),
    }
)
"""Octets of the IPv6 address that hold the IPv4 address, by prefix length (RFC 6052 section 2.2)."""


def prefix_faults(prefix: IPv6Network) -> Iterator[tuple[str, str]]:
    """Yield why a prefix cannot hold an IPv4 address, and what RFC 6052 section 2.2 requires."""
    if prefix.prefixlen not in EMBEDDED_OCTETS:
        yield f"{prefix} has length {prefix.prefixlen}", "RFC 6052 section 2.2 allows /32, /40, /48, /56, /64 and /96"
    if prefix.network_address.packed[8] != 0:
        fix = "RFC 6052 section 2.2 requires them to be zero, as in 2001:2:0:6400::/96"
        yield f"{prefix} has bits 64 to 71 set", fix


def embed_ipv4(address: IPv4Address, prefix: IPv6Network) -> IPv6Address:
    """Return the IPv4-embedded IPv6 address under `prefix`, octet 8 and suffix zero (RFC 6052 section 2.2)."""
    octets = bytearray(prefix.network_address.packed)
    for position, octet in zip(EMBEDDED_OCTETS[prefix.prefixlen], address.packed, strict=True):
        octets[position] = octet
    return IPv6Address(bytes(octets))


def embedded_ipv4(address: IPv6Address, prefix: IPv6Network) -> IPv4Address | None:
    """Return the IPv4 address inside an IPv4-embedded IPv6 address; None if it embeds none (RFC 6052 section 2.2)."""
    if address not in prefix:
        return None
    octets = address.packed
    positions = EMBEDDED_OCTETS[prefix.prefixlen]
    suffix = range(positions[-1] + 1, 16)
    if octets[8] != 0 or any(octets[position] for position in suffix):
        return None
    return IPv4Address(bytes(octets[position] for position in positions))
