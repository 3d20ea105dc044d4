"""A border relay of MAP-E made of the Linux kernel (RFC 7597 section 8): rules of nftables, and routes, as text. Pure.

One tunnel device has all tunnels. A route of its own leads to each customer edge, with the outer header; where edges
share an address, nftables puts a private one in its place for that, by address and PSID, and takes it back before the
packet enters the tunnel. The device takes headers off and looks at nothing, so nftables compares outer source, inner
source and PSID before it. All sets have one element for each customer edge, whatever its port set looks like: PSIDs are
masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from gatemark.map_domains.domain import Edge, MapDomain
from gatemark.map_domains.edge_nat import edge_rules
from gatemark.map_domains.port_set import PORT_BITS
from gatemark.map_domains.relay import GatewayFiles, elements

TUNNEL = "softwires"
"""Interface of all tunnels."""
MESH = "mesh"
"""Interface of a customer edge's tunnels to others."""
MESH_MTU = 9196
"""Of the packets inside, on links of the 9,236 octets that recipes have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule, its customer edges that the relay knows, and the private addresses of those that share theirs."""

    number: int
    domain: MapDomain
    edges: Sequence[Edge]
    private: Sequence[IPv4Address]

    @property
    def mask(self) -> str:
        """The bits of a port that are the PSID."""
        bits = (1 << self.domain.psid_length) - 1
        return hex(bits << self.domain.contiguous_bits)

    @property
    def lowest_port(self) -> int:
        """With an offset the ports below are nobody's (RFC 7597 section 5.1)."""
        offset = self.domain.ports_of(0).offset_bits
        return 1 << (PORT_BITS - offset) if offset else 0

    def masked(self, edge: Edge) -> int:
        """Return what a port of an edge is under the mask."""
        return edge.psid << self.domain.contiguous_bits


def tunnel_relay(
    domains: Sequence[MapDomain],
    edges: Sequence[Edge],
    *,
    relay: IPv6Address,
    private: IPv4Network,
    hop_limit: int,
    tunnel: str = TUNNEL,
) -> GatewayFiles:
    """Return a border relay at `relay` for these customer edges; `private` has an address for each that shares its own.

    It carries IPv4 without options, of shared addresses TCP and UDP only. The traffic class of outer headers is 0.
    """
    rules = list(_rules_of(domains, edges, private))
    shared = [rule for rule in rules if rule.private]
    by_private = [pair for rule in shared for pair in zip(rule.private, rule.edges, strict=True)]
    whole = [(edge.ipv4_network, edge) for rule in rules if not rule.private for edge in rule.edges]
    return GatewayFiles(
        nftables=_inward(rules, relay) + (_outward(shared, by_private, private, tunnel) if shared else ""),
        routes=tuple(
            f"route add {to} encap ip6 id 0 dst {edge.address} src {relay} hoplimit {hop_limit} dev {tunnel}"
            for to, edge in (*by_private, *whole)
        ),
    )


def tunnel_edge(edge: Edge, peers: Sequence[Edge] = (), *, tunnel: str = TUNNEL, mesh: str = MESH) -> GatewayFiles:
    """Return a customer edge with one tunnel of the kernel, which is the recipe's own: its NAT44.

    To `peers`, other customer edges with an IPv4 address each, lead routes of their own through a second device. It
    would take what anybody sends, so nftables lets in tunnels of the relay, which `$relay` stands for in its rules, and
    of a peer packets from his address and PSID: without options, of shared addresses TCP and UDP only. The traffic
    class of outer headers to peers is 0.
    """
    if not peers:
        return GatewayFiles(nftables=edge_rules(edge, [tunnel]), routes=())
    rule = Rule(number=0, domain=edge.domain, edges=peers, private=())
    return GatewayFiles(
        nftables=edge_rules(edge, [tunnel, mesh]) + _inward([rule], edge.address, "ip6 saddr != $relay"),
        routes=(
            f"link add {mesh} mtu {MESH_MTU} type ip6tnl external",
            f"link set {mesh} up",
            *(
                f"route add {peer.ipv4}/32 encap ip6 id 0 dst {peer.address} src {edge.address} hoplimit 64 dev {mesh}"
                for peer in peers
            ),
        ),
    )


def tunnel_script(files: GatewayFiles, relay: IPv6Address, *, mtu: int, tunnel: str = TUNNEL) -> str:
    """Return commands for a shell that make the gateway of these files, with its end at `relay`, on a host.

    `mtu` is of the packets inside, octets: Linux does not derive it from the link where tunnels have many ends.
    """
    settings = "net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"
    return "".join(
        (
            f"cat > relay.nft <<'END'\n{files.nftables}END\n",
            "cat > routes <<'END'\n" + "".join(f"{line}\n" for line in files.routes) + "END\n",
            f"sysctl -w {settings} net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0\n",
            f"ip -6 address add {relay}/128 dev lo\n",
            f"ip link add {tunnel} type ip6tnl external\n",
            f"ip link set {tunnel} mtu {mtu} up\n",
            "nft -f relay.nft\n",
            "ip -batch routes\n",
        )
    )


def sixrd_script(prefix: IPv6Network, edges: IPv4Network, *, end: IPv4Address, hop_limit: int, mtu: int) -> str:
    """Return commands for a shell that make a 6rd border relay at `end` of the Linux kernel (RFC 5969).

    `edges` are the IPv4 addresses of customer edges, as far as all begin alike; `hop_limit` is of outer headers, `mtu`
    of the packets inside, octets.
    """
    return "".join(
        (
            "sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1\n",
            f"ip address add {end}/32 dev lo\n",
            f"ip tunnel add sixrd mode sit local {end} ttl {hop_limit} tos inherit\n",
            f"ip tunnel 6rd dev sixrd 6rd-prefix {prefix} 6rd-relay_prefix {edges}\n",
            f"ip link set sixrd mtu {mtu} up\n",
            f"ip -6 route add {prefix} dev sixrd\n",
        )
    )


def _rules_of(domains: Sequence[MapDomain], edges: Sequence[Edge], private: IPv4Network) -> Iterator[Rule]:
    by_rule: dict[IPv6Network, list[Edge]] = {}
    for edge in edges:
        by_rule.setdefault(edge.domain.rule_ipv6, []).append(edge)
    next_private = int(private.network_address) + 1
    for number, domain in enumerate(domains):
        of_domain = by_rule.get(domain.rule_ipv6, [])
        count = len(of_domain) if domain.kind == "shared address" else 0
        addresses = [IPv4Address(next_private + place) for place in range(count)]
        next_private += count
        if of_domain:
            yield Rule(number=number, domain=domain, edges=of_domain, private=addresses)


def _inward(rules: Sequence[Rule], end: IPv6Address, which: str = "") -> str:
    """Return the check of what comes in tunnels to an end, or `which` of that."""
    sets = "".join(_sources(rule) for rule in rules)
    checks = "".join(f"        {_is_right(rule)} accept\n" for rule in rules)
    return inward_table("softwires", sets, f"ip6 daddr {end} {which}".strip(), checks)


def inward_table(name: str, sets: str, which: str, checks: str) -> str:
    """Return the table of nftables that drops what comes in tunnels, if it is `which`, and meets none of the checks.

    `sets` and `checks` are lines of it. nftables knows neither inner address nor inner port by name.
    """
    return f"""\
table ip6 {name} {{
{sets}    chain prerouting {{
        type filter hook prerouting priority raw; policy accept;
        {which} jump inward
    }}
    chain inward {{
        ip6 nexthdr icmpv6 accept
        ip6 nexthdr != 4 drop
        @nh,320,8 != 0x45 drop
{checks}        drop
    }}
}}
"""


def _sources(rule: Rule) -> str:
    shared = rule.domain.kind == "shared address"
    key = "ip6 saddr . @nh,416,32" + (" . @nh,480,16" if shared else "")
    flags = "        flags interval\n" if rule.domain.kind == "IPv4 prefix" else ""
    lines = elements(
        [f"{edge.address} . {_inner(edge)}" + (f" . {rule.masked(edge):#x}" if shared else "") for edge in rule.edges]
    )
    return f"    set sources{rule.number} {{\n        typeof {key}\n{flags}{lines}\n    }}\n"


def _inner(edge: Edge) -> str:
    """Return the IPv4 addresses of an edge as the number that they are in a packet."""
    first, last = int(edge.ipv4_network[0]), int(edge.ipv4_network[-1])
    return f"{first:#x}" if first == last else f"{first:#x}-{last:#x}"


def _is_right(rule: Rule) -> str:
    if rule.domain.kind != "shared address":
        return f"ip6 saddr . @nh,416,32 @sources{rule.number}"
    floor = f" @nh,480,16 >= {rule.lowest_port}" if rule.lowest_port else ""
    whole = "@nh,368,16 & 0x3fff == 0"  # of fragments only the first has ports
    return (
        f"{whole} @nh,392,8 {{ 6, 17 }}{floor}"
        f" ip6 saddr . @nh,416,32 . (@nh,480,16 & {rule.mask}) @sources{rule.number}"
    )


def _outward(
    shared: Sequence[Rule], by_private: Sequence[tuple[IPv4Address, Edge]], private: IPv4Network, tunnel: str
) -> str:
    """Return what finds the customer edge of a packet for a shared address; what is for nobody's port is dropped."""
    maps = "".join(
        f"    map private{rule.number} {{\n        type ipv4_addr . inet_service : ipv4_addr\n"
        + elements(
            [f"{edge.ipv4} . {rule.masked(edge)} : {to}" for to, edge in zip(rule.private, rule.edges, strict=True)]
        )
        + "\n    }\n"
        for rule in shared
    )
    finds = "".join(
        f"        ip daddr {rule.domain.rule_ipv4} meta l4proto {{ tcp, udp }}"
        + (f" th dport >= {rule.lowest_port}" if rule.lowest_port else "")
        + f" ip daddr set ip daddr . (th dport & {rule.mask}) map @private{rule.number}\n"
        for rule in shared
    )
    addresses = elements([str(address) for address in sorted({edge.ipv4 for _, edge in by_private})])
    shared_of = elements([f"{to} : {edge.ipv4}" for to, edge in by_private])
    return f"""\
table ip softwires {{
{maps}    map shared_of {{
        type ipv4_addr : ipv4_addr
{shared_of}
    }}
    set shared {{
        type ipv4_addr
{addresses}
    }}
    chain prerouting {{
        type filter hook prerouting priority raw; policy accept;
        ip daddr {private} drop
{finds}        ip daddr @shared drop
    }}
    chain postrouting {{
        type filter hook postrouting priority raw; policy accept;
        oifname "{tunnel}" ip daddr set ip daddr map @shared_of
    }}
}}
"""
