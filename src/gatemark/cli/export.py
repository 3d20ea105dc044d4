"""`gatemark export GATEWAY FILE`: the MAP rules or softwires of a campaign in the syntax of a gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from gatemark.cli.common import one_campaign
from gatemark.cli.output import AsJson, print_json
from gatemark.config.map_gateway import made_gateway
from gatemark.config.map_tables import MapGatewayModel, MapModel
from gatemark.config.model import Campaign
from gatemark.config.tables import TunnelModel
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import ConfigError
from gatemark.map_domains.domain import Edge
from gatemark.map_domains.linux import tunnel_script
from gatemark.map_domains.relay import known_edges
from gatemark.map_domains.rule_export import jool_commands, snabb_bindings, vpp_commands, vpp_softwires
from gatemark.map_domains.tayga import border_relay, relay_script

GatewayName = Literal["jool", "linux", "snabb", "tayga", "vpp"]


def export(gateway: GatewayName, file: Path, /, *, interface: tuple[str, ...] = (), as_json: AsJson = False) -> int:
    """Print commands that configure a border relay with the MAP rules of a campaign and its routes to customer edges.

    Of a lwAFTR these are its softwires; for Snabb they are a part of its configuration file.

    Example: gatemark export jool campaign.toml > relay.sh

    Parameters
    ----------
    gateway
        jool (shell commands, Jool 4.2), vpp (VPP's command line), tayga (shell commands, with nftables), linux (of
        MAP-E and lwAFTRs: shell commands, with nftables), or snabb (of lwAFTRs).
    file
        Campaign file (TOML).
    interface
        For vpp: interface to enable MAP on. Can be repeated.
    as_json
        Print JSON instead of text.
    """
    if interface and gateway != "vpp":
        what = f"does not apply to {gateway}, which needs no interface"
        raise ConfigError(what=what, where="--interface", fix="leave it out")
    campaign = complete_campaign(one_campaign(file))
    table = campaign.edges.emulated
    if table is None and campaign.edges.gateway is not None:
        what = "describes a customer edge, and export writes border relays only"
        raise ConfigError(what=what, where=f"{file}: map", fix="name the campaign of a border relay")
    if table is None:
        what = f"is missing: a gateway of technology {campaign.technology.name} has no MAP rules"
        raise ConfigError(what=what, where=f"{file}: map", fix="name the campaign of a MAP border relay")
    if campaign.technology.has_tunnels and gateway not in _WITH_TUNNELS:
        what = f"is {campaign.technology.name}, and {gateway} translates and has no such tunnels"
        raise ConfigError(what=what, where=f"{file}: gateway.technology", fix="gatemark export vpp FILE, or linux")
    if gateway == "linux" and not campaign.technology.has_tunnels:
        what = f"is {campaign.technology.name}, and Linux itself does not translate"
        raise ConfigError(what=what, where=f"{file}: gateway.technology", fix="gatemark export tayga FILE, or jool")
    if gateway == "snabb" and not campaign.technology.has_bindings:
        what = f"is {campaign.technology.name}, and {gateway} knows softwires only"
        raise ConfigError(what=what, where=f"{file}: gateway.technology", fix="gatemark export vpp FILE, or linux")
    try:
        commands = _WRITERS[gateway](campaign, table, interface)
    except ConfigError as error:
        raise ConfigError(problems=[replace(p, where=f"{file}: {p.where}") for p in error.problems]) from None
    through = campaign.side("left").link_address("ipv6")
    if through is not None and not table.onlink and gateway != "snabb":
        route = "ip route add" if gateway == "vpp" else "ip -6 route add"
        commands += "".join(f"{route} {domain.ipv6} via {through}\n" for domain in table.parts)
    if as_json:
        print_json({"gateway": gateway, "commands": commands})
    else:
        print(commands, end="")
    return 0


def _jool(_campaign: Campaign, table: MapModel, _: Sequence[str]) -> str:
    return jool_commands(table.whole_rules)


def _tayga(_campaign: Campaign, table: MapModel, _: Sequence[str]) -> str:
    return relay_script(border_relay(table.whole_rules, table.edge_count, order=table.order))


def _tunnel_of(campaign: Campaign) -> TunnelModel:
    tunnel = campaign.gateway.tunnel
    assert tunnel is not None, "a complete campaign of a gateway with tunnels has their end"
    return tunnel


def _known_edges(table: MapModel) -> Iterator[Edge]:
    return known_edges(table.whole_rules, table.edge_count, table.order)


def _linux(campaign: Campaign, table: MapModel, _: Sequence[str]) -> str:
    tunnel = _tunnel_of(campaign)
    files = made_gateway(campaign.technology, table, MapGatewayModel(), tunnel, echo=False)
    return tunnel_script(files, tunnel.ipv6_end)


def _snabb(campaign: Campaign, table: MapModel, _: Sequence[str]) -> str:
    return snabb_bindings(_known_edges(table), relay=_tunnel_of(campaign).ipv6_end)


def _vpp(campaign: Campaign, table: MapModel, interfaces: Sequence[str]) -> str:
    if campaign.technology.has_bindings:
        return vpp_softwires(_known_edges(table), relay=_tunnel_of(campaign).ipv6_end, interfaces=interfaces)
    relay = _tunnel_of(campaign).ipv6_end if campaign.technology.has_tunnels else None
    return vpp_commands(table.whole_rules, relay=relay, interfaces=interfaces)


_WRITERS: Mapping[GatewayName, Callable[[Campaign, MapModel, Sequence[str]], str]] = {
    "jool": _jool,
    "linux": _linux,
    "snabb": _snabb,
    "tayga": _tayga,
    "vpp": _vpp,
}
_WITH_TUNNELS: frozenset[GatewayName] = frozenset(("linux", "snabb", "vpp"))
