"""Addresses that no host has: everywhere, or on one link. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Reserved:
    """Addresses that no host has."""

    prefix: Network
    name: str
    """What they are, for messages."""


EVERYWHERE: tuple[Reserved, ...] = tuple(
    Reserved(ip_network(prefix), f"{name} ({prefix})")
    for prefix, name in (
        ("0.0.0.0/32", "the unspecified address"),
        ("127.0.0.0/8", "a loopback address"),
        ("169.254.0.0/16", "a link-local address"),
        ("224.0.0.0/4", "a multicast address"),
        ("255.255.255.255/32", "the limited broadcast address"),
        ("::/128", "the unspecified address"),
        ("::1/128", "the loopback address"),
        ("fe80::/10", "a link-local address"),
        ("ff00::/8", "a multicast address"),
    )
)
"""Addresses of no host that a router forwards to (RFC 1812 section 5.3.5.1, section 5.3.7; RFC 4291 section 2.4)."""


def reserved_on(link: Network) -> Iterator[Reserved]:
    """Yield what a link reserves: none where it is a /31 or /32 (RFC 3021), a /127 or /128 (RFC 6164).

    Of IPv4 these are the two directed broadcast addresses, with all host bits 1 (RFC 1812 section 5.3.5.2) or 0, as
    some hosts still have it (RFC 1812 section 4.2.3.1). Of IPv6 it is the address of any of its routers.
    """
    if link.num_addresses <= 2:
        return
    first = ip_network(link.network_address)
    if isinstance(link, IPv4Network):
        yield Reserved(first, f"the zero address of the link {link} (RFC 1812 section 4.2.3.1)")
        last = ip_network(link.broadcast_address)
        yield Reserved(last, f"the broadcast address of the link {link} (RFC 1812 section 5.3.5.2)")
    else:
        yield Reserved(first, f"the subnet-router anycast address of the link {link} (RFC 4291 section 2.6.1)")


def host_addresses(link: Network) -> tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address]:
    """Return the lowest and the highest address that hosts of a link may have."""
    reserved = {entry.prefix.network_address for entry in reserved_on(link)}
    lowest, highest = link.network_address, link.broadcast_address
    return lowest + (lowest in reserved), highest - (highest in reserved)
