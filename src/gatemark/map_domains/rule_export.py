"""Rules, softwires and ends of tunnels in the syntax of gateways that know them: Jool 4.2 (MAP-T), VPP, Snabb. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from gatemark.errors import ConfigError, Problem
from gatemark.map_domains.domain import Edge, MapDomain


def jool_commands(domains: Sequence[MapDomain]) -> str:
    """Return commands for a shell that make a border relay of Jool 4.2 with these rules.

    An instance has one default mapping rule: several are instances BR-1, BR-2, ...
    Raises ConfigError with every rule that Jool has no syntax for.
    """
    _without_single_psids(domains, "Jool", "its command `fmrt add` takes no PSID")
    by_dmr: dict[IPv6Network, list[MapDomain]] = {}
    for domain in domains:
        by_dmr.setdefault(domain.default_rule, []).append(domain)
    lines = ["modprobe jool_mapt"]
    for number, (dmr, rules) in enumerate(by_dmr.items(), 1):
        name = '"BR"' if len(by_dmr) == 1 else f'"BR-{number}"'
        lines.append(f"jool_mapt instance add {name} --netfilter --dmr {dmr}")
        lines += [
            f"jool_mapt -i {name} fmrt add {rule.rule_ipv6} {rule.rule_ipv4} {rule.ea_bits} {rule.psid_offset}"
            for rule in rules
        ]
        lines.append(f"jool_mapt -i {name} global update map-t-type BR")
    return "\n".join(lines) + "\n"


def vpp_commands(
    domains: Sequence[MapDomain],
    *,
    relay: IPv6Address | None = None,
    traffic_class: int | None = None,
    interfaces: Sequence[str] = (),
) -> str:
    """Return commands of VPP's command line that make a border relay with these rules, on `interfaces`.

    `relay`: the end of its tunnels, of MAP-E; None: MAP-T. `traffic_class`: that of all outer headers; None: that of
    the packet inside. Raises ConfigError with every rule that is not written for VPP.
    """
    _without_single_psids(domains, "VPP", "it would need a `map add rule` for each PSID, which is not written here")
    lines = []
    for domain in domains:
        # without a PSID VPP has no use for an offset
        offset = domain.psid_offset if domain.psid_length else 0
        source = relay or domain.default_rule
        lines.append(
            f"map add domain ip4-pfx {domain.rule_ipv4} ip6-pfx {domain.rule_ipv6} ip6-src {source}"
            f" ea-bits-len {domain.ea_bits} psid-offset {offset} psid-len {domain.psid_length}"
        )
    lines += _vpp_class(traffic_class)
    lines += [f"map interface {interface}{'' if relay else ' map-t'}" for interface in interfaces]
    return "\n".join(lines) + "\n"


def vpp_softwires(
    edges: Iterable[Edge], *, relay: IPv6Address, traffic_class: int | None = None, interfaces: Sequence[str] = ()
) -> str:
    """Return commands of VPP's command line that make an lwAFTR at `relay`, which has no domains yet, on `interfaces`.

    VPP numbers its domains from 0: each IPv4 address is one, and each PSID of it a rule. `traffic_class`: that of all
    outer headers; None: that of the packet inside.
    """
    lines: list[str] = []
    numbers: dict[IPv4Address, int] = {}
    for edge in edges:
        psid_bits = edge.domain.psid_length
        if edge.ipv4 not in numbers:
            numbers[edge.ipv4] = len(numbers)
            inside = "::/0" if psid_bits else f"{edge.address}/128"
            offset = edge.domain.psid_offset if psid_bits else 0
            lines.append(
                f"map add domain ip4-pfx {edge.ipv4}/32 ip6-pfx {inside} ip6-src {relay}"
                f" ea-bits-len 0 psid-offset {offset} psid-len {psid_bits}"
            )
        if psid_bits:
            lines.append(f"map add rule index {numbers[edge.ipv4]} psid {edge.psid} ip6-dst {edge.address}")
    lines += _vpp_class(traffic_class)
    lines += [f"map interface {interface}" for interface in interfaces]
    return "\n".join(lines) + "\n"


def vpp_aftr(pool: Iterable[IPv4Network], *, end: IPv6Address) -> str:
    """Return commands of VPP's command line that make an AFTR at `end` (RFC 6333): it needs to know no B4."""
    addresses = "".join(f"dslite add pool address {network[0]} - {network[-1]}\n" for network in pool)
    return f"dslite set aftr-tunnel-endpoint-address {end}\n{addresses}"


def vpp_sixrd(prefix: IPv6Network, edges: IPv4Network, *, end: IPv4Address) -> str:
    """Return commands of VPP's command line that make a 6rd border relay at `end` (RFC 5969).

    `edges` are the IPv4 addresses of customer edges, as far as all begin alike.
    """
    return f"create 6rd tunnel ip6-pfx {prefix} ip4-pfx {edges} ip4-src {end}\n"


def snabb_bindings(edges: Iterable[Edge], *, relay: IPv6Address) -> str:
    """Return the binding table of an lwAFTR at `relay`, as a part of Snabb's `softwire-config`."""
    softwires = "".join(
        f"  softwire {{\n    ipv4 {edge.ipv4};\n    psid {edge.psid};\n    b4-ipv6 {edge.address};\n"
        f"    br-address {relay};\n    port-set {{\n      psid-length {edge.domain.psid_length};\n"
        f"      reserved-ports-bit-count {edge.domain.psid_offset};\n    }}\n  }}\n"
        for edge in edges
    )
    return f"binding-table {{\n{softwires}}}\n"


def _vpp_class(traffic_class: int | None) -> list[str]:
    """Return the command for outer headers that all have one class, in hexadecimal digits; VPP copies it otherwise."""
    return [] if traffic_class is None else [f"map params traffic-class {traffic_class:x}"]


def _without_single_psids(domains: Sequence[MapDomain], gateway: str, why: str) -> None:
    """Refuse rules without EA bits whose customer edge shares its address."""
    problems = [
        Problem(
            what=f"the rule of a single PSID cannot be written for {gateway}: {why}",
            where=f"map.domains[{index}].psid_bits",
            fix="use a rule with EA bits",
        )
        for index, domain in enumerate(domains)
        if domain.ea_bits == 0 and domain.psid_length
    ]
    if problems:
        raise ConfigError(problems=problems)
