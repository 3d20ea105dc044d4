"""The gateways that a recipe makes of MAP rules: a relay or a customer edge. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gatemark.config.map_tables import MapGatewayModel, MapModel
from gatemark.config.views import TunnelEnd
from gatemark.errors import ConfigError, Problem
from gatemark.map_domains.domain import Edge
from gatemark.map_domains.linux import tunnel_edge, tunnel_relay
from gatemark.map_domains.peers import PeerEdges
from gatemark.map_domains.relay import GatewayFiles, known_edges, private_problems
from gatemark.map_domains.tayga import border_relay, border_relay_problems, customer_edge, customer_edge_problems
from gatemark.technology import Technology

PEERS_MAX = (1 << 12) - 1
"""Other customer edges of which a recipe's gateway knows each by a line of its own."""


def made_edge(edge: Edge, peers: PeerEdges | None, gateway: MapGatewayModel, *, has_tunnels: bool) -> GatewayFiles:
    """Return a gateway that is a customer edge, with its peers."""
    if has_tunnels:
        return tunnel_edge(edge, list(peers or ()))
    return customer_edge(edge, ipv4=gateway.private.network_address + 1, peers=list(peers or ()))


def made_relay(table: MapModel, gateway: MapGatewayModel, end: TunnelEnd | None, *, echo: bool = False) -> GatewayFiles:
    """Return a border relay for the customer edges of the table, of MAP-T where it has no end of tunnels.

    With `echo` that of MAP-T knows the identifiers of echo messages. Raises ConfigError if no such gateway can be made
    of them.
    """
    rules, private = table.whole_rules, gateway.private
    if end is None:
        return border_relay(rules, table.edge_count, order=table.order, private=private, echo=echo)
    if problems := list(private_problems(rules, table.edge_count, table.order, private, private_at="private network")):
        raise ConfigError(problems=problems)
    return tunnel_relay(
        rules,
        list(known_edges(rules, table.edge_count, table.order)),
        relay=end.address,
        private=private,
        hop_limit=end.tunnel.made_hop_limit,
    )


def unmade_gateway(
    technology: Technology,
    table: MapModel,
    gateway: MapGatewayModel,
    *,
    private_at: str,
    classes: Collection[int] = (),
) -> Iterator[Problem]:
    """Yield why no gateway can be made of rules that are sound, for packets of these traffic classes."""
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
