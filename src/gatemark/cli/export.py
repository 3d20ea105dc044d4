"""`gatemark export GATEWAY FILE`: the gateway of a campaign in the syntax of one that can be it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from cyclopts import Parameter

from gatemark.cli.common import one_campaign
from gatemark.cli.output import AsJson, print_json
from gatemark.config import defaults
from gatemark.config.b4_gateway import B4GatewayModel, made_aftr, unmade_aftr
from gatemark.config.complete import host_set
from gatemark.config.map_gateway import made_relay
from gatemark.config.map_tables import MapGatewayModel, MapModel
from gatemark.config.model import Campaign
from gatemark.config.problems import raise_if_any
from gatemark.config.reserved import Network
from gatemark.config.sizes import mtu_of
from gatemark.config.tables import TunnelModel
from gatemark.config.views import Sixrd, TunnelEnd
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError, Problem
from gatemark.linux_aftr import PRIVATE, TUNNEL, nat_rules
from gatemark.map_domains.domain import Edge
from gatemark.map_domains.linux import sixrd_script, tunnel_script
from gatemark.map_domains.relay import known_edges
from gatemark.map_domains.rule_export import (
    jool_commands,
    snabb_bindings,
    vpp_aftr,
    vpp_commands,
    vpp_sixrd,
    vpp_softwires,
)
from gatemark.map_domains.tayga import border_relay, relay_script
from gatemark.technology import FAMILY_WORDS, SIDES, TECHNOLOGIES, Technology

VPP_HOP_LIMIT = 64
"""Of VPP's outer headers of MAP-E, lwAFTR and 6rd (`src/plugins/map/ip4_map.c`, `src/vnet/ipip/sixrd.c`)."""

GatewayName = Literal["jool", "linux", "snabb", "tayga", "vpp"]
SYNTAX: Mapping[GatewayName, str] = {
    "jool": "shell commands, Jool 4.2",
    "linux": "shell commands, with nftables",
    "snabb": "part of its configuration file",
    "tayga": "shell commands, with nftables",
    "vpp": "VPP's command line",
}
"""What is printed for each gateway."""


def export(
    gateway: Annotated[GatewayName, Parameter(help=_GATEWAYS)],
    file: Path,
    /,
    *,
    interface: tuple[str, ...] = (),
    as_json: AsJson = False,
) -> int:
    """Print commands that configure the provider's gateway of a campaign.

    These are MAP rules or softwires with the routes to their customers, the tunnels of B4s, or the 6rd prefix; and
    routes to hosts behind a router.

    Example: gatemark export jool campaign.toml > relay.sh

    Parameters
    ----------
    file
        Campaign file (TOML).
    interface
        For vpp: interface to enable MAP on. Can be repeated.
    as_json
        Print JSON instead of text.
    """
    campaign = complete_campaign(one_campaign(file))
    technology = campaign.technology
    writers = {writer.gateway: writer for writer in _WRITERS if writer.part(campaign) is not None}
    writer = writers.get(gateway)
    if writer is None:
        provider = "name the campaign of a border relay, an lwAFTR or an AFTR"
        raise ConfigError(
            what=f"is {technology.name}, and export knows no {technology.words} for {gateway}",
            where=f"{file}: gateway.technology",
            fix=" or ".join(f"gatemark export {other} FILE" for other in writers) or provider,
        )
    if interface and not writer.has_interfaces:
        what = f"does not apply to {gateway} as {technology.words}, which needs no interface"
        raise ConfigError(what=what, where="--interface", fix="leave it out")
    try:
        commands = writer.write(campaign, writer.part(campaign), interface)
    except ConfigError as error:
        raise ConfigError(problems=[replace(p, where=f"{file}: {p.where}") for p in error.problems]) from None
    if gateway != "snabb":
        ipv6_route = "ip route add" if gateway == "vpp" else "ip -6 route add"
        for network, through in _routes(campaign):
            commands += f"{ipv6_route if network.version == 6 else 'ip route add'} {network} via {through}\n"
    if as_json:
        print_json({"gateway": gateway, "commands": commands})
    else:
        print(commands, end="")
    return 0


def _routes(campaign: Campaign) -> Iterator[tuple[Network, IPv4Address | IPv6Address]]:
    """Yield networks that are not on a link of the gateway, each with its neighbour on the way there."""
    for name, family in product(SIDES, FAMILY_WORDS):
        side = campaign.side(name)
        hosts, through = host_set(campaign, name, family), side.link_address(family)
        if side.address_mode == "nexthop" and hosts is not None and through is not None:
            yield from ((network, through) for network in hosts.covering())
    table, through = campaign.edges.emulated, campaign.side("left").link_address("ipv6")
    if table is not None and through is not None and not table.onlink:
        yield from ((part.ipv6, through) for part in table.parts)


def _known_edges(table: MapModel) -> Iterator[Edge]:
    return known_edges(table.whole_rules, table.edge_count, table.order)


def _jool(_: Campaign, table: MapModel, __: Sequence[str]) -> str:
    return jool_commands(table.whole_rules)


def _tayga(_: Campaign, table: MapModel, __: Sequence[str]) -> str:
    return relay_script(border_relay(table.whole_rules, table.edge_count, order=table.order))


def _inside_mtu(campaign: Campaign) -> int:
    """Return the largest packet that the link carries inside a tunnel, octets."""
    return mtu_of(campaign, campaign.roles.inside) - defaults.HEADER_OCTETS[campaign.technology.outer_family]


def _other_classes(campaign: Campaign, tunnel: TunnelModel, *, copies: bool) -> Iterator[Problem]:
    """Yield why outer headers are of another traffic class than stated: the gateway copies that of the packet inside,
    or writes 0."""
    stated = tunnel.traffic_class
    for octet in campaign.directions.classes_into_tunnels:
        due, written = tunnel.outer_class(octet), octet if copies else 0
        if due != written:
            what = f"is {stated}: outer headers of packets of class {octet} would have class {written}, not {due}"
            fix = 'write traffic_class = "copied"' if copies else "write traffic_class = 0"
            yield Problem(what=what, where="gateway.tunnel.traffic_class", fix=fix)
            return


def _other_hop_limit(tunnel: TunnelModel, *, written: int | None) -> Iterator[Problem]:
    """Yield why outer headers have another hop limit than stated: always `written`; None: that of the packet inside."""
    stated = tunnel.hop_limit
    if stated not in ("any", written):
        words, fix = ("that of the packet inside", "") if written is None else (written, f" or hop_limit = {written}")
        what = f"is {stated}, but this gateway always writes {words}"
        yield Problem(what=what, where="gateway.tunnel.hop_limit", fix=f'write hop_limit = "any"{fix}')


def _linux_relay(campaign: Campaign, relay: tuple[MapModel, TunnelEnd], _: Sequence[str]) -> str:
    table, end = relay
    raise_if_any(_other_classes(campaign, end.tunnel, copies=False))
    return tunnel_script(made_relay(table, MapGatewayModel(), end), end.address, mtu=_inside_mtu(campaign))


def _linux_aftr(campaign: Campaign, end: TunnelEnd, _: Sequence[str]) -> str:
    raise_if_any(_other_classes(campaign, end.tunnel, copies=False))
    gateway, roles = campaign.gateway, campaign.roles
    inside, outside = campaign.side(roles.inside), campaign.side(roles.outside)
    raise_if_any(unmade_aftr(inside, outside, campaign.b4_model, B4GatewayModel(), private_at="b4.hosts"))
    files = made_aftr(inside, campaign.b4_model, B4GatewayModel(), end)
    ports = None if gateway.pool_ports is None else f"{gateway.pool_ports.minimum}-{gateway.pool_ports.maximum}"
    pool = [network for network in gateway.pool if isinstance(network, IPv4Network)]
    whole = replace(files, nftables=files.nftables + nat_rules(PRIVATE, pool, ports))
    return tunnel_script(whole, end.address, mtu=_inside_mtu(campaign), tunnel=TUNNEL)


def _linux_sixrd(campaign: Campaign, sixrd: Sixrd, _: Sequence[str]) -> str:
    raise_if_any(_other_classes(campaign, sixrd.tunnel, copies=True))
    return sixrd_script(
        sixrd.prefix,
        _sixrd_edges(sixrd),
        end=sixrd.end,
        hop_limit=sixrd.tunnel.made_hop_limit,
        mtu=_inside_mtu(campaign),
    )


def _sixrd_edges(sixrd: Sixrd) -> IPv4Network:
    """Return the network of the customer edges, in which the relay need not be (RFC 5969 section 4)."""
    return IPv4Network((sixrd.edges.address, sixrd.tunnel.masked_bits), strict=False)


def _snabb(_: Campaign, relay: tuple[MapModel, TunnelEnd], __: Sequence[str]) -> str:
    table, end = relay
    return snabb_bindings(_known_edges(table), relay=end.address)


def _vpp_translator(_: Campaign, table: MapModel, interfaces: Sequence[str]) -> str:
    return vpp_commands(table.whole_rules, interfaces=interfaces)


def _vpp_relay(campaign: Campaign, relay: tuple[MapModel, TunnelEnd], interfaces: Sequence[str]) -> str:
    table, end = relay
    raise_if_any(_other_hop_limit(end.tunnel, written=VPP_HOP_LIMIT))
    octet = None if end.tunnel.traffic_class == "copied" else end.tunnel.traffic_class
    if campaign.technology.has_bindings:
        return vpp_softwires(_known_edges(table), relay=end.address, traffic_class=octet, interfaces=interfaces)
    return vpp_commands(table.whole_rules, relay=end.address, traffic_class=octet, interfaces=interfaces)


def _vpp_aftr(campaign: Campaign, end: TunnelEnd, _: Sequence[str]) -> str:
    tunnel = end.tunnel
    raise_if_any((*_other_hop_limit(tunnel, written=None), *_other_classes(campaign, tunnel, copies=True)))
    pool = (network for network in campaign.gateway.pool if isinstance(network, IPv4Network))
    return vpp_aftr(pool, end=end.address)


def _vpp_sixrd(campaign: Campaign, sixrd: Sixrd, _: Sequence[str]) -> str:
    tunnel = sixrd.tunnel
    raise_if_any((*_other_hop_limit(tunnel, written=VPP_HOP_LIMIT), *_other_classes(campaign, tunnel, copies=False)))
    return vpp_sixrd(sixrd.prefix, _sixrd_edges(sixrd), end=sixrd.end)


Part = TypeVar("Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Role(Generic[Part]):
    """What a provider's gateway can be."""

    suits: Callable[[Technology], bool]
    of: Callable[[Campaign], Part | None]
    """What a campaign of a technology that suits says of it."""


def _relay_of(campaign: Campaign) -> tuple[MapModel, TunnelEnd] | None:
    table, end = campaign.edges.emulated, campaign.forwarding.ipv6_end
    return None if table is None or end is None else (table, end)


_TRANSLATOR = _Role(
    suits=lambda row: row.has_edges and not row.has_tunnels, of=lambda campaign: campaign.edges.emulated
)
_RELAY = _Role(suits=lambda row: row.has_edges and row.has_tunnels, of=_relay_of)
_LWAFTR = _Role(suits=lambda row: row.has_edges and row.has_bindings, of=_relay_of)
_AFTR = _Role(suits=lambda row: row.has_b4s, of=lambda campaign: campaign.forwarding.ipv6_end)
_SIXRD = _Role(suits=lambda row: row.delegates_prefixes, of=lambda campaign: campaign.sixrd)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer(Generic[Part]):
    """How one gateway is told to be a technology."""

    gateway: GatewayName
    role: _Role[Part]
    write: Callable[[Campaign, Part, Sequence[str]], str]
    has_interfaces: bool = False

    def part(self, campaign: Campaign) -> Part | None:
        """Return what the gateway of a campaign is; None of a technology that it cannot be."""
        return self.role.of(campaign) if self.role.suits(campaign.technology) else None


_WRITERS: Sequence[_Writer[Any]] = (
    _Writer(gateway="jool", role=_TRANSLATOR, write=_jool),
    _Writer(gateway="tayga", role=_TRANSLATOR, write=_tayga),
    _Writer(gateway="linux", role=_RELAY, write=_linux_relay),
    _Writer(gateway="linux", role=_AFTR, write=_linux_aftr),
    _Writer(gateway="linux", role=_SIXRD, write=_linux_sixrd),
    _Writer(gateway="snabb", role=_LWAFTR, write=_snabb),
    _Writer(gateway="vpp", role=_TRANSLATOR, write=_vpp_translator, has_interfaces=True),
    _Writer(gateway="vpp", role=_RELAY, write=_vpp_relay, has_interfaces=True),
    _Writer(gateway="vpp", role=_AFTR, write=_vpp_aftr),
    _Writer(gateway="vpp", role=_SIXRD, write=_vpp_sixrd),
)


def _provided_by(gateway: GatewayName) -> str:
    """Return in words what a gateway can be."""
    writers = [writer for writer in _WRITERS if writer.gateway == gateway]
    return ", ".join(row.words for row in TECHNOLOGIES.values() if any(writer.role.suits(row) for writer in writers))


_GATEWAYS = "; ".join(f"{gateway}: {_provided_by(gateway)} ({syntax})" for gateway, syntax in SYNTAX.items()) + "."
