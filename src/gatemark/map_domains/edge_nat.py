"""The NAT44 of a customer edge, made of nftables: its public ports are those of a port set. Text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gatemark.map_domains.domain import Edge

SEARCHED_PORTS = 128
"""In so many ports of a range Linux finds every one that is free (NF_NAT_MAX_ATTEMPTS of nf_nat_core.c)."""


def edge_rules(edge: Edge, interfaces: Sequence[str]) -> str:
    """Return rules for nftables: what leaves by one of these has the edge's address and a port of its set.

    Each connection takes its port from the next range, so that a destination gets connections from every port of the
    set before the first is dropped; mapping is endpoint-dependent. What comes back and is no answer of a connection is
    dropped.
    """
    protocols = "meta l4proto { icmp, tcp, udp }"
    names = [f'"{name}"' for name in interfaces]
    outside = names[0] if len(names) == 1 else f"{{ {', '.join(names)} }}"
    if edge.domain.psid_length == 0:
        translate = f"oifname {outside} snat to {edge.ipv4}"
    else:
        spans = [f"{edge.ipv4} . {low}-{high}" for low, high in _searched_ranges(edge)]
        elements = ",\n".join(f"            {number} : {span}" for number, span in enumerate(spans))
        choice = f"numgen inc mod {len(spans)} map {{\n{elements}\n        }}"
        translate = f"oifname {outside} {protocols} snat ip addr . port to {choice}"
    return f"""\
table ip edge {{
    chain forward {{
        type filter hook forward priority filter; policy accept;
        iifname {outside} ct state new drop
        oifname {outside} meta l4proto != {{ icmp, tcp, udp }} drop
    }}
    chain postrouting {{
        type nat hook postrouting priority srcnat; policy accept;
        {translate}
    }}
}}
"""


def _searched_ranges(edge: Edge) -> Iterator[tuple[int, int]]:
    """Yield ranges of equal size that together are the port set; Linux finds every free port of each.

    In more than 128 ports it looks at some places only, and drops packets before all are taken. There is no port 0.
    """
    for first, last in edge.ports.ranges():
        for low in range(first, last + 1, SEARCHED_PORTS):
            yield max(low, 1), min(low + SEARCHED_PORTS - 1, last)
