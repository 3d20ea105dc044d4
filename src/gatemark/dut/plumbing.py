"""The commands that lay the links of a namespace test bed: pure, so that they can be tested and printed."""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gatemark.config.recipe import Recipe
from gatemark.errors import ConfigError

if TYPE_CHECKING:
    from gatemark.config.map_tables import MapModel
    from gatemark.config.tables import FamilyModel, GatewayTableModel, SideModel
    from gatemark.technology import Family, SideName

OFFLOADS_OFF = tuple(part for name in ("rx", "tx", "sg", "tso", "gso", "txvlan") for part in (name, "off"))
"""Arguments of `ethtool -K` for every end: with offloads user-space gateways see partial checksums, and a VLAN tag
travels beside the frame, where AF_XDP does not see it."""

GATEWAY_SYSCTL: dict[str, str | int] = {
    "net.ipv4.ip_forward": 1,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv4.conf.all.send_redirects": 0,
    "net.ipv4.conf.default.send_redirects": 0,
    "net.ipv6.conf.all.disable_ipv6": 0,
    "net.ipv6.conf.default.disable_ipv6": 0,
    "net.ipv6.conf.all.forwarding": 1,
    "net.ipv6.conf.default.accept_dad": 0,
    "net.ipv6.conf.all.accept_dad": 0,
    "net.ipv6.conf.default.router_solicitations": 0,
}
"""Settings of the gateway's namespace; a recipe may change them."""

TESTER_SYSCTL: dict[str, str | int] = {
    "net.ipv6.conf.all.disable_ipv6": 1,
    "net.ipv6.conf.default.disable_ipv6": 1,
    "net.ipv4.conf.all.arp_ignore": 8,
    "net.ipv4.conf.default.arp_ignore": 8,
    "net.ipv4.ip_forward": 0,
}
"""Settings of the Tester's namespace: its kernel must never answer in place of the engine."""

REPORTED_SYSCTL = (
    "net.ipv4.icmp_ratelimit",
    "net.ipv4.icmp_msgs_per_sec",
    "net.ipv6.icmp.ratelimit",
)
"""Settings left as they are but worth naming: they bound the ICMP errors that a trial may see."""


IPV6_SETTINGS = "/proc/sys/net/ipv6/conf"
"""A folder that a kernel lacks where IPv6 is switched off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayEnd:
    """Addresses and routes of one interface of the gateway."""

    interface: str
    addresses: tuple[str, ...]
    """With prefix length, both families."""
    routes: tuple[tuple[str, str | None], ...]
    """(network, next hop) pairs; None where the network lies on the link."""

    def commands(self) -> Iterator[list[str]]:
        """Yield the `ip` commands that configure the interface, run in its namespace."""
        for address in self.addresses:
            yield ["ip", "address", "add", address, "dev", self.interface, *_no_dad(address)]
        for network, router in self.routes:
            via = [] if router is None else ["via", router]
            yield ["ip", "route", "add", network, *via, "dev", self.interface]


def gateway_end(
    recipe: Recipe, side_name: SideName, side: SideModel, interface: str, edges: MapModel | None = None
) -> GatewayEnd:
    """Derive the gateway's addresses and routes of one side from what the Tester plays there.

    On-link hosts are neighbours, so the gateway's address gets the prefix length of the side's network. With a next hop
    all hosts lie behind one router, so the networks get a route (RFC 2544 appendix C.2.2). Customer edges, on the left,
    lie behind the router or host of that side unless they are neighbours; behind the one on the outside of a gateway
    that is a customer edge lies all that its rule's default mapping rule stands for, and in mesh mode every other
    customer edge. What a tunnel leads to is the recipe's. Raises ConfigError if an address does not fit the recipe's
    networks.
    """
    networks = [ipaddress.ip_network(text) for text in (recipe.left if side_name == "left" else recipe.right).networks]
    addresses: list[str] = []
    routes: list[tuple[str, str | None]] = []
    roles = replace(recipe.roles, mesh=edges is not None and edges.mesh is not None)
    plays: tuple[tuple[Family, FamilyModel | None], ...] = (("ipv4", side.ipv4), ("ipv6", side.ipv6))
    for family, hosts in plays:
        if hosts is None or roles.is_behind_relay(side_name, family):
            continue
        where = f"{side_name}.{family}"
        gateway, router = hosts.gateway, hosts.router
        if gateway is None:
            raise ConfigError(what="the gateway's address is needed", where=f"{where}.gateway", fix="name it")
        link = recipe.link(side_name, side, family)
        if link is None:
            known = ", ".join(str(network) for network in networks)
            what = f"the gateway address {gateway} is in no network of recipe {recipe.name} on this side"
            raise ConfigError(what=what, where=f"{where}.gateway", fix=f"its networks are {known}")
        addresses.append(f"{gateway}/{link.prefixlen}")
        if side.address_mode == "nexthop":
            if router is None or router not in link:
                what = f"the router {router} is not in the gateway's link network {link}"
                raise ConfigError(what=what, where=f"{where}.router", fix="both must be neighbours")
            routes += [(str(network), str(router)) for network in networks if network.version == link.version]
    neighbour = side.link_address("ipv6")
    technology, inside = recipe.technology, recipe.inside
    if edges is not None and roles.mesh and side_name != inside:
        routes += [(str(domain.ipv6), str(neighbour)) for domain in edges.domains]
    if edges is not None and technology.is_edge and side_name != inside and side.address_mode == "nexthop":
        routes += [(str(domain.dmr), str(neighbour)) for domain in edges.domains if domain.dmr is not None]
    elif edges is not None and technology.has_edges and side_name == "left" and neighbour is not None:
        through = None if edges.onlink else str(neighbour)
        routes += [(str(part.ipv6), through) for part in edges.parts]
    return GatewayEnd(interface=interface, addresses=tuple(addresses), routes=tuple(routes))


def machine_settings(recipe: Recipe, table: GatewayTableModel) -> dict[str, str]:
    """Return the recipe's settings of the whole machine; without those that need a size that is not known."""
    sizes = {"{table_size}": table.size, "{hash_size}": table.hash_size}
    settings = {}
    for name, text in recipe.host_sysctl.items():
        value = str(text)
        unknown = [variable for variable, size in sizes.items() if variable in value and size is None]
        for variable, size in sizes.items():
            value = value.replace(variable, str(size))
        if not unknown:
            settings[name] = value
    return settings


def sysctl_script(settings: Mapping[str, str | int]) -> str:
    """Write settings as a shell script that needs no `sysctl` program; a missing one is an error that names it.

    Where IPv6 is switched off, its settings have no meaning and are passed over. Nothing in a value is part of the
    script.
    """
    return "\n".join(_sysctl_line("/proc/sys/" + name.replace(".", "/"), value) for name, value in settings.items())


def _sysctl_line(path: str, value: str | int) -> str:
    line = f"echo {shlex.quote(str(value))} > {shlex.quote(path)}"
    return f"[ ! -e {IPV6_SETTINGS} ] || {line}" if path.startswith("/proc/sys/net/ipv6/") else line


def _no_dad(address: str) -> list[str]:
    return ["nodad"] if ":" in address else []
