"""MAP-T gateways made of tayga and nftables, for kernels without MAP-T: their configuration as text. Pure.

tayga translates headers, one IPv4 address for one IPv6 address. At a border relay each customer edge that shares its
address is given a private one for that; stateless sets and maps of nftables change address and port set into it and
back. At a customer edge nftables keeps the connections of a NAT44 within the port set. Where no address is shared,
tayga alone does all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from gatemark.errors import ConfigError, Problem
from gatemark.facts import Order
from gatemark.map_domains.domain import Edge, MapDomain
from gatemark.map_domains.edge_nat import edge_rules
from gatemark.map_domains.relay import PRIVATE, GatewayFiles, elements, known_edges, private_problems

TUNNEL = "mapt"
"""Interface of tayga."""


def border_relay(
    domains: Sequence[MapDomain],
    edges: int,
    *,
    order: Order = "increasing",
    private: IPv4Network = PRIVATE,
    tunnel: str = TUNNEL,
    ipv6: IPv6Address | None = None,
    echo: bool = True,
) -> GatewayFiles:
    """Return a border relay for the first `edges` customer edges.

    In pseudorandom order, where only the engine knows which of a domain are emulated, it knows all of that domain.
    `private` has the addresses behind which tayga sees them, the first of which is its own; `ipv6` is its own IPv6
    address, which it otherwise takes from its prefix. With `echo` it knows identifiers of echo messages as ports (RFC
    7599 section 9), for which nftables needs as much time and memory again. What comes from a port outside of the
    sender's port set is dropped, and what goes to nobody's port as well. Raises ConfigError if such a gateway cannot be
    made.
    """
    problems = list(border_relay_problems(domains, edges, order, private))
    if problems:
        raise ConfigError(problems=problems)
    dmr = domains[0].default_rule
    every = list(known_edges(domains, edges, order))
    shared = [edge for edge in every if edge.domain.kind == "shared address"]
    addresses = [private.network_address + 1 + number for number in range(len(shared) + 1)]
    by_private = list(zip(addresses[1:], shared, strict=True))
    maps = [(edge.ipv4, edge) for edge in every if edge.domain.kind != "shared address"]
    unshared = [domain.rule_ipv4 for domain in domains if domain.kind != "shared address"]
    routed = [*((private,) if shared else ()), *unshared]
    return GatewayFiles(
        tayga=_tayga_text(addresses[0], ipv6, dmr, [*maps, *by_private], tunnel),
        nftables=_relay_rules(by_private, private, tunnel, echo=echo) if shared else "",
        routes=(
            *(f"ip route add {network} dev {tunnel}" for network in routed),
            f"ip -6 route add {dmr} dev {tunnel}",
        ),
    )


def customer_edge(
    edge: Edge,
    *,
    ipv4: IPv4Address,
    peers: Sequence[Edge] = (),
    tunnel: str = TUNNEL,
    ipv6: IPv6Address | None = None,
) -> GatewayFiles:
    """Return a customer edge: a NAT44 whose ports are its port set, and tayga behind it.

    `ipv4` and `ipv6` are addresses of tayga itself; the latter it otherwise takes from its prefix. `peers` are other
    customer edges that it reaches directly, each with an IPv4 address of its own. Raises ConfigError if such a gateway
    cannot be made.
    """
    problems = list(customer_edge_problems(edge, ipv4))
    if problems:
        raise ConfigError(problems=problems)
    maps = [(each.ipv4, each) for each in (edge, *peers)]
    return GatewayFiles(
        tayga=_tayga_text(ipv4, ipv6, edge.domain.default_rule, maps, tunnel),
        nftables=edge_rules(edge, [tunnel]),
        routes=(f"ip route add default dev {tunnel}", f"ip -6 route add {edge.address}/128 dev {tunnel}"),
    )


def customer_edge_problems(edge: Edge, ipv4: IPv4Address, *, private_at: str = "private network") -> Iterator[Problem]:
    """Yield why `customer_edge` cannot be made; `private_at` names the key of tayga's own address."""
    if ipv4 == edge.ipv4:
        what = f"{ipv4}, tayga's own address, is that of the customer edge"
        yield Problem(what=what, where=private_at, fix=f"choose another network, such as {PRIVATE}")


def relay_script(files: GatewayFiles) -> str:
    """Return commands for a shell that make the border relay of these files on a host of its own, and start tayga."""
    forwarding = "net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"
    return "".join(
        (
            f"cat > tayga.conf <<'END'\n{files.tayga}END\n",
            f"cat > relay.nft <<'END'\n{files.nftables}END\n",
            f"sysctl -w {forwarding} net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0\n",
            "nft -f relay.nft\n",
            'tayga --config "$PWD/tayga.conf" --mktun\n',
            f"ip link set {TUNNEL} up\n",
            *(f"{command}\n" for command in files.routes),
            'tayga --config "$PWD/tayga.conf"\n',
        )
    )


def border_relay_problems(
    domains: Sequence[MapDomain], edges: int, order: Order, private: IPv4Network, *, private_at: str = "private network"
) -> Iterator[Problem]:
    """Yield why `border_relay` cannot be made of rules that are sound; `private_at` names the key of the network."""
    for index, domain in enumerate(domains):
        if domain.dmr != domains[0].dmr:
            yield Problem(
                what=f"{domain.dmr} is not the {domains[0].dmr} of domains[0], and tayga has a single prefix",
                where=f"map.domains[{index}].dmr",
                fix="write the same default mapping rule for all domains",
            )
    yield from private_problems(domains, edges, order, private, private_at=private_at)


def _tayga_text(
    ipv4: IPv4Address,
    ipv6: IPv6Address | None,
    dmr: IPv6Network,
    maps: Sequence[tuple[IPv4Address, Edge]],
    tunnel: str,
) -> str:
    lines = [f"tun-device {tunnel}", f"ipv4-addr {ipv4}"]
    lines += [f"ipv6-addr {ipv6}"] if ipv6 is not None else []
    lines.append(f"prefix {dmr}")
    lines += [f"map {address} {edge.address}" for address, edge in maps]
    return "\n".join(lines) + "\n"


def _relay_rules(edges: Sequence[tuple[IPv4Address, Edge]], private: IPv4Network, tunnel: str, *, echo: bool) -> str:
    ranges = [(ipv4, edge, first, last) for ipv4, edge in edges for first, last in edge.ports.ranges()]
    shared = sorted({edge.ipv4 for _, edge in edges})
    port_sets = [f"{ipv4} . {_span(first, last)}" for ipv4, _, first, last in ranges]
    shared_of = [f"{ipv4} : {edge.ipv4}" for ipv4, edge in edges]
    private_of = [f"{edge.ipv4} . {_span(first, last)} : {ipv4}" for ipv4, edge, first, last in ranges]
    identifiers, check, find = _echo_rules(port_sets, private_of, private, tunnel) if echo else ("", "", "")
    return f"""\
table ip mapt {{
    set port_sets {{
        type ipv4_addr . inet_service
        flags interval
{elements(port_sets)}
    }}
    map shared_of {{
        type ipv4_addr : ipv4_addr
{elements(shared_of)}
    }}
    map private_of {{
        type ipv4_addr . inet_service : ipv4_addr
        flags interval
{elements(private_of)}
    }}
{identifiers}    set shared {{
        type ipv4_addr
{elements([str(address) for address in shared])}
    }}
    chain prerouting {{
        type filter hook prerouting priority raw; policy accept;
        iifname != "{tunnel}" ip daddr {private} drop
        iifname "{tunnel}" ip saddr {private} meta l4proto {{ tcp, udp }} ip saddr . th sport != @port_sets drop
{check}        iifname "{tunnel}" ip saddr set ip saddr map @shared_of
        meta l4proto {{ tcp, udp }} ip daddr set ip daddr . th dport map @private_of
{find}        ip daddr @shared drop
    }}
}}
"""


def _echo_rules(
    port_sets: Sequence[str], private_of: Sequence[str], private: IPv4Network, tunnel: str
) -> tuple[str, str, str]:
    """Return the sets of identifiers, the rule that drops foreign ones, and the one that finds the customer edge.

    The sets have the ports once more: nftables compares no identifier with elements that are ports.
    """
    messages = "icmp type { echo-request, echo-reply }"
    sets = f"""\
    set echo_ids {{
        typeof ip saddr . icmp id
        flags interval
{elements(port_sets)}
    }}
    map private_by_id {{
        typeof ip daddr . icmp id : ip daddr
        flags interval
{elements(private_of)}
    }}
"""
    return (
        sets,
        f'        iifname "{tunnel}" ip saddr {private} {messages} ip saddr . icmp id != @echo_ids drop\n',
        f"        {messages} ip daddr set ip daddr . icmp id map @private_by_id\n",
    )


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
