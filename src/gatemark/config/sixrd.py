"""6rd: prefixes of customer edges that follow from their IPv4 addresses (RFC 5969 section 4). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Network

from gatemark.config.hosts import HostSet
from gatemark.config.model import Campaign
from gatemark.config.problems import problem
from gatemark.errors import Problem
from gatemark.technology import SIDES

DELEGATED_MAX = 64
"""Longest prefix of a customer edge: its hosts have 64 bits of their own (RFC 5969 section 4)."""


def sixrd_problems(campaign: Campaign) -> Iterator[Problem]:
    """Yield what is wrong with a 6rd relay's end of the tunnels and with its prefix; they are there."""
    tunnel = campaign.gateway.tunnel
    assert tunnel is not None, "the campaign says where its tunnels end"
    key = "gateway.tunnel"
    if not isinstance(tunnel.address, IPv4Address):
        what = f"is {tunnel.address}, but the tunnels of 6rd are in IPv4"
        yield problem(campaign, f"{key}.address", what, "write the IPv4 address of the relay (RFC 5969 section 7.2)")
    edges, prefix, mask = campaign.left.ipv4, tunnel.prefix, tunnel.masked_bits
    if prefix is None:
        what = "is missing: the prefixes of all customer edges begin with it"
        yield problem(campaign, f"{key}.prefix", what, 'write for example prefix = "2001:db8::/32"')
        return
    delegated = prefix.prefixlen + 32 - mask
    if delegated > DELEGATED_MAX:
        what = f"{prefix} and {32 - mask} bits of an IPv4 address are a prefix of {delegated} bits"
        fix = f"write a shorter prefix, or a larger ipv4_mask_length: {DELEGATED_MAX} bits at most (RFC 5969 section 4)"
        yield problem(campaign, f"{key}.prefix", what, fix)
        return
    if edges is not None and edges.hosts.offset is not None and edges.hosts.mode != "fixed":
        if (prefix.prefixlen - mask) % 8:
            what = (
                f"moves addresses by {prefix.prefixlen - mask} bits, and customer edges that vary move by whole octets"
            )
            yield problem(campaign, f"{key}.prefix", what, "write a prefix that is longer or shorter by some bits")
        if mask > 8 * edges.hosts.offset:
            what = f"is {mask}, but the octets that vary begin at bit {8 * edges.hosts.offset}"
            fix = "write fewer bits, or let later octets vary (left.ipv4.hosts.offset)"
            yield problem(campaign, f"{key}.ipv4_mask_length", what, fix)
    yield from _hosts_inside(campaign, prefix)


def _hosts_inside(campaign: Campaign, prefix: IPv6Network) -> Iterator[Problem]:
    """Native hosts are in nobody's prefix."""
    for name in SIDES:
        native = campaign.side(name).ipv6
        if native is not None and HostSet.of("ipv6", native).meets_prefix(prefix):
            what = f"{prefix} holds hosts of the {name} side, whose packets would go to customer edges"
            yield problem(campaign, "gateway.tunnel.prefix", what, f"write another prefix, or move {name}.ipv6")
