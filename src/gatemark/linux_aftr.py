"""An AFTR of DS-Lite made of the Linux kernel (RFC 6333 section 6): rules of nftables, and routes, as text. Pure.

One tunnel device has all tunnels. Before it takes the outer header off, nftables looks up B4 and host and marks the
packet with their number; behind it the packet gets a private address of this number as source, so that the kernel's
NAT sees other hosts where all have the same address (RFC 6333 section 6.6). A route of its own leads to each private
address, with the outer header; nftables writes the host's address back before the packet enters the tunnel.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address

from gatemark.map_domains.linux import inward_table
from gatemark.map_domains.relay import GatewayFiles, elements

TUNNEL = "dslite"
"""Interface of all tunnels."""
PRIVATE = IPv4Network("100.64.0.0/10")
"""Addresses behind which an AFTR sees hosts, where nobody says it: those for what is inside a provider (RFC 6598)."""


def aftr_files(
    b4s: Sequence[IPv6Address],
    hosts: Sequence[IPv4Address],
    *,
    end: IPv6Address,
    private: IPv4Network,
    hop_limit: int,
) -> GatewayFiles:
    """Return the tunnels of an AFTR at `end`, with the same `hosts` behind each B4; `private` has an address for each.

    It carries IPv4 without options. The traffic class of outer headers is 0. The NAT between `private` and the pool is
    not in these files.
    """
    first = int(private.network_address) + 1
    inside = [
        (number, b4, host, IPv4Address(first + number))
        for number, (b4, host) in enumerate((b4, host) for b4 in b4s for host in hosts)
    ]
    return GatewayFiles(
        nftables=_nftables(inside, end=end, private=private),
        routes=tuple(
            f"route add {to} encap ip6 id 0 dst {b4} src {end} hoplimit {hop_limit} dev {TUNNEL}"
            for _, b4, _, to in inside
        ),
    )


def nat_rules(private: IPv4Network, pool: Sequence[IPv4Network], ports: str | None) -> str:
    """Return the NAT of hosts in `private` to public addresses, whose networks take new connections in turn.

    `ports` are the public ones ("1024-65535"); None: those that the kernel chooses.
    """
    protocols, of_ports = ("", "") if ports is None else ("meta l4proto { tcp, udp, icmp } ", f":{ports}")
    rules = "".join(
        f'        ip saddr {private} oifname != "{TUNNEL}" {protocols}'
        + (f"numgen inc mod {left} == 0 " if left > 1 else "")
        + f"snat to {network[0]}{'' if network.num_addresses == 1 else f'-{network[-1]}'}{of_ports}\n"
        for left, network in zip(range(len(pool), 0, -1), pool, strict=True)
    )
    return f"""\
table ip nat {{
    chain postrouting {{
        type nat hook postrouting priority srcnat;
{rules}    }}
}}
"""


def _nftables(
    inside: Sequence[tuple[int, IPv6Address, IPv4Address, IPv4Address]],
    *,
    end: IPv6Address,
    private: IPv4Network,
) -> str:
    marks = elements([f"{b4} . {int(host):#x} : {number + 1}" for number, b4, host, _ in inside])
    private_of = elements([f"{number + 1} : {to}" for number, _, _, to in inside])
    host_of = elements([f"{to} : {host}" for _, _, host, to in inside])
    sets = f"    map marks {{\n        typeof ip6 saddr . @nh,416,32 : meta mark\n{marks}\n    }}\n"
    checks = "        meta mark set ip6 saddr . @nh,416,32 map @marks accept\n"
    return f"""\
{inward_table("dslite", sets, f"ip6 daddr {end}", checks)}\
table ip dslite {{
    map private_of {{
        type mark : ipv4_addr
{private_of}
    }}
    map host_of {{
        type ipv4_addr : ipv4_addr
{host_of}
    }}
    chain prerouting {{
        type filter hook prerouting priority raw; policy accept;
        ip daddr {private} drop
        iifname "{TUNNEL}" ip saddr set meta mark map @private_of
    }}
    chain postrouting {{
        type filter hook postrouting priority raw; policy accept;
        oifname "{TUNNEL}" ip daddr set ip daddr map @host_of
    }}
}}
"""
