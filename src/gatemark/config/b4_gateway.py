"""The AFTR that a recipe makes of a campaign's B4s and the hosts behind them (RFC 6333). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

from gatemark.config.hosts import HostSet
from gatemark.config.tables import B4Model, SideModel, Table
from gatemark.config.types import Ipv4Prefix
from gatemark.config.views import TunnelEnd
from gatemark.errors import Problem
from gatemark.linux_aftr import PRIVATE, aftr_files
from gatemark.map_domains.relay import GatewayFiles


class B4GatewayModel(Table):
    """How a recipe's AFTR is made of the campaign's B4s (`gatemark.linux_aftr`)."""

    private: Ipv4Prefix = PRIVATE
    """Addresses behind which its NAT sees the hosts behind B4s, which all have the same."""


def made_aftr(inside: SideModel, behind: B4Model, gateway: B4GatewayModel, end: TunnelEnd) -> GatewayFiles:
    """Return the tunnels of an AFTR for the B4s of a complete side and the hosts `behind` each of them."""
    b4s, hosts = _b4s(inside), HostSet.of("ipv4", behind)
    assert b4s is not None, "the side is complete"
    return aftr_files(
        [IPv6Address(b4s.address_of(number)) for number in b4s.numbers],
        [IPv4Address(hosts.address_of(number)) for number in hosts.numbers],
        end=end.address,
        private=gateway.private,
        hop_limit=end.tunnel.made_hop_limit,
    )


def unmade_aftr(
    inside: SideModel, outside: SideModel, behind: B4Model, gateway: B4GatewayModel, *, private_at: str
) -> Iterator[Problem]:
    """Yield why `made_aftr` cannot make one of these sides; `private_at` names the key of the private network."""
    b4s, hosts, private = _b4s(inside), HostSet.of("ipv4", behind), gateway.private
    if b4s is not None:
        wanted, most = len(b4s.numbers) * len(hosts.numbers), max(0, private.num_addresses - 2)
        if wanted > most:
            yield Problem(
                what=f"{private} has addresses for {most} hosts, not for {wanted} behind {len(b4s.numbers)} B4s",
                where=private_at,
                fix=f"choose a larger network, such as {PRIVATE}, or fewer B4s",
            )
    if outside.ipv4 is not None and HostSet.of("ipv4", outside.ipv4).meets_prefix(private):
        yield Problem(
            what=f"{private} holds hosts outside, to which the AFTR would not forward",
            where=private_at,
            fix="choose a network that nobody else uses",
        )


def _b4s(inside: SideModel) -> HostSet | None:
    return None if inside.ipv6 is None else HostSet.of("ipv6", inside.ipv6)
