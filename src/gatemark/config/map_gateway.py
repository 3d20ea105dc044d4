"""The gateway that a recipe makes of MAP rules: which one follows from its technology. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gatemark.config.map_tables import MapGatewayModel, MapModel
from gatemark.config.tables import TunnelModel
from gatemark.errors import ConfigError, Problem
from gatemark.map_domains.linux import tunnel_edge, tunnel_relay
from gatemark.map_domains.relay import GatewayFiles, known_edges, private_problems
from gatemark.map_domains.tayga import border_relay, border_relay_problems, customer_edge, customer_edge_problems
from gatemark.technology import Technology

PEERS_MAX = (1 << 12) - 1
"""Other customer edges of which a recipe's gateway knows each by a line of its own."""


def made_gateway(
    technology: Technology, table: MapModel, gateway: MapGatewayModel, tunnel: TunnelModel | None, *, echo: bool
) -> GatewayFiles:
    """Return a border relay for the customer edges of the table, or the customer edge that it names, with its peers.

    With `echo` a border relay of MAP-T knows the identifiers of echo messages. Raises ConfigError if no such gateway
    can be made of them.
    """
    if technology.is_edge:
        edge, peers = table.gateway_edge, list(table.peers or ())
        assert edge is not None, "the campaign is complete"
        if technology.has_tunnels:
            return tunnel_edge(edge, peers)
        return customer_edge(edge, ipv4=gateway.private.network_address + 1, peers=peers)
    if tunnel is not None:
        if problems := list(unmade_gateway(technology, table, gateway, private_at="private network")):
            raise ConfigError(problems=problems)
        return tunnel_relay(
            table.whole_rules,
            list(known_edges(table.whole_rules, table.edge_count, table.order)),
            relay=tunnel.ipv6_end,
            private=gateway.private,
            hop_limit=tunnel.made_hop_limit,
        )
    return border_relay(table.whole_rules, table.edge_count, order=table.order, private=gateway.private, echo=echo)


def unmade_gateway(
    technology: Technology,
    table: MapModel,
    gateway: MapGatewayModel,
    *,
    private_at: str,
    classes: Collection[int] = (),
) -> Iterator[Problem]:
    """Yield why `made_gateway` cannot be made of rules that are sound, for packets of these traffic classes."""
    if not technology.is_edge:
        problems = private_problems if technology.has_tunnels else border_relay_problems
        yield from problems(table.whole_rules, table.edge_count, table.order, gateway.private, private_at=private_at)
        return
    if table.gateway_edge is not None and not technology.has_tunnels:
        yield from customer_edge_problems(
            table.gateway_edge, gateway.private.network_address + 1, private_at=private_at
        )
    if table.peers is not None and len(table.peers) > PEERS_MAX:
        what = f"makes a gateway with a line for each of {len(table.peers)} other customer edges"
        yield Problem(what=what, where="map.mesh", fix=f"write a rule with {PEERS_MAX + 1} IPv4 addresses at most")
    if table.peers is not None and technology.has_tunnels and any(classes):
        what = (
            "works with traffic class 0 only: outer headers to other customers have it, and packets have"
            f" {max(classes)}"
        )
        yield Problem(what=what, where="map.mesh", fix="send packets of traffic class 0, or leave map.mesh out")
