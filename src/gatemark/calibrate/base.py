"""Campaigns and reference gateways that all checks share: addresses, times, port names. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gatemark.calibrate.model import Check
from gatemark.config.defaults import HEADER_OCTETS, MTU
from gatemark.config.map_tables import MapModel
from gatemark.refdut.document import Configuration, MapRule, Port, Translation, Tunnel
from gatemark.technology import TECHNOLOGIES, Family, Technology
from gatemark.trial.request import rule_json

SEED = 20
HELD_FRAMES = 4096
"""More than any check keeps waiting or delayed at once; memory for many more would slow down each start."""
FRAMES = {"ipv4": 64, "ipv6": 84}
PREFIX = "2001:2:0:6400::/96"
EAM = (("198.18.0.0/16", "2001:2::/112"),)
"""The IPv6 hosts on the left as seen from the IPv4 side."""
MAP: Mapping[str, Any] = {
    "domains": [{"ipv6": "2001:2:0:4000::/50", "ipv4": "198.18.0.0/16", "ea_bits": 24, "dmr": "2001:2:0:c000::/96"}],
    "edges": 1000,
}
"""Rule of the customer edges, 2^24 of them, whose prefixes of 74 bits reach into the interface identifier."""
SOFTWIRES: Mapping[str, Any] = {
    "softwires": [{"ipv6": "2001:2:0:4000::/64", "ipv4": "198.18.0.0/16", "psid_bits": 8}],
    "edges": 1000,
}
"""The same customers as lwB4s: the number of a softwire is in the interface identifier only."""
EDGE: Mapping[str, Any] = {
    "domains": [{"ipv6": "2001:2:0:4000::/56", "ipv4": "198.18.128.0/24", "ea_bits": 16, "dmr": PREFIX}],
    "end_user_prefix": "2001:2:0:4012:3400::/72",
}
"""Rule of a gateway that is a customer edge: 198.18.128.18 and PSID 0x34, with 63 ranges of 4 ports."""
PEER = "198.18.128.64"
"""Another customer edge of this rule, where the gateway reaches it directly."""
LWB4: Mapping[str, Any] = {
    "softwires": [{"ipv6": "2001:2:0:4000::/64", "ipv4": "198.18.128.0/24", "psid_bits": 8}],
    "end_user_prefix": "2001:2:0:4000:0:c612:8012:34/128",
}
"""The same as lwB4, with 256 ports from 13312 on."""
TUNNEL: Mapping[Family, str] = {"ipv4": "198.18.0.1", "ipv6": "2001:2:0:ffff::1"}
"""The gateway's end of all tunnels, by the family of the outer header."""
SIXRD: Mapping[str, Any] = {"ipv6": "2001:db8::/32", "ipv4": "0.0.0.0/0"}
"""Rule of the customer edges of 6rd: all bits of their IPv4 addresses are in their prefixes."""
FIRST_HOST = 4
"""Of several on the left, so that these are blocks of four without the gateway: where the reference gateway damages the
address of one, it takes another of its block."""
POOL = {"ipv4": "198.19.0.1/32", "ipv6": "2001:2:0:8000::1/128"}
POOL_PORTS = (1024, 65535)
ADDRESSES: Mapping[tuple[str, Family], tuple[str, str]] = {
    ("left", "ipv4"): ("198.18.0.2", "198.18.0.1"),
    ("right", "ipv4"): ("198.19.0.2", "198.19.0.1"),
    ("left", "ipv6"): ("2001:2::2", "2001:2::1"),
    ("right", "ipv6"): ("2001:2:0:8000::2", "2001:2:0:8000::1"),
}
"""The Tester's host and the gateway of each side (RFC 2544 appendix C.2.2, RFC 5180 section 8)."""
FAR_IPV6 = ("2001:2:0:6400::c613:2", "2001:2:0:6400::c613:1")
"""The same on the right of a translator from IPv4: a host that IPv4 can name by the prefix (RFC 6052)."""
TIMES = {"settle": "0s", "learn": "20ms", "drain": "100ms", "rest": "20ms"}
RETRIES = 20
"""How often a trial at one load may be repeated until one is undisturbed; without disturbances it never is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortNames:
    """Both ends of both links, as the engine and the reference gateway name their ports."""

    tester_left: str
    tester_right: str
    gateway_left: str
    gateway_right: str


def gateway_of(check: Check, ports: PortNames, control: str, cpu: int | None) -> Configuration:
    """Return the reference gateway's configuration for a check."""
    technology = TECHNOLOGIES[check.technology]
    stateful, left, right = technology.is_stateful, *technology.families
    has_pool = stateful and not technology.is_edge
    assert technology.reference_mode is not None, "it is one gateway, not two in a row"
    return Configuration(
        mode=technology.reference_mode,
        control=control,
        seed=SEED,
        cpu=cpu,
        held_frames=HELD_FRAMES,
        inside="left" if stateful else None,
        left=_port("left", ports.gateway_left, left, technology),
        right=_port("right", ports.gateway_right, right, technology),
        translation=Translation(
            prefix=PREFIX if technology.translates_by_prefix else None,
            eam=EAM if technology.translates_by_prefix and not stateful else (),
            domains=_rules_of(check),
            end_user_prefix=map_of(check)["end_user_prefix"] if technology.is_edge else None,
            pool=(POOL[right],) if has_pool else (),
            pool_ports=POOL_PORTS if has_pool else None,
            mapping=check.mapping if stateful else None,
        ),
        tunnel=_tunnel_of(technology) if technology.has_tunnels else None,
        table=check.table,
        forward=check.forward,
        reverse=check.reverse,
    )


def _tunnel_of(technology: Technology) -> Tunnel:
    gateway = TUNNEL[technology.outer_family]
    if technology.is_subscriber:
        tester, _ = ADDRESSES[technology.tunnel_side, technology.outer_family]
        return Tunnel(relay=tester, subscriber=None if technology.is_edge else gateway)
    return Tunnel(relay=gateway)


def _rules_of(check: Check) -> tuple[MapRule, ...]:
    technology = TECHNOLOGIES[check.technology]
    if technology.delegates_prefixes:
        return (MapRule(**SIXRD),)
    if not technology.has_rules:
        return ()
    table = MapModel.model_validate(map_of(check))
    fmr = None if table.mesh is None else True
    return tuple(MapRule(**rule_json(rule), fmr=fmr) for rule in table.whole_rules)


def map_of(check: Check) -> dict[str, Any]:
    """Return the table `[map]` of a check's campaign."""
    technology = TECHNOLOGIES[check.technology]
    if technology.is_edge:
        usual = LWB4 if technology.has_bindings else EDGE
    else:
        usual = SOFTWIRES if technology.has_bindings else MAP
    table = {**usual, **check.tables.get("map", {})}
    if technology.has_tunnels and "domains" in table:
        table["domains"] = [{key: value for key, value in rule.items() if key != "dmr"} for rule in table["domains"]]
    return table


def campaign_of(
    check: Check, ports: PortNames, *, ask: str, cores: tuple[int, ...], configuration: Configuration
) -> dict[str, Any]:
    """Return the campaign of a check as a document; `ask` is the shell command that asks the reference gateway."""
    technology = TECHNOLOGIES[check.technology]
    stateful, families = technology.is_stateful, technology.families
    sending = technology.packet_families[0]
    tables = dict(check.tables)
    trial = {**TIMES, **tables.pop("trial", {})}
    traffic = {
        "direction": "bidirectional" if stateful else "forward",
        "frame_sizes": {"family": sending, "octets": FRAMES[sending]},
        **tables.pop("traffic", {}),
    }
    right = _side("right", ports.tester_right, families[1], technology)
    if technology.has_rules:
        tables["map"] = map_of(check)
        if "mesh" in tables["map"]:
            right["ipv4"] = {"address": PEER}
    if stateful:
        tables["connections"] = {"timeout": "50ms", "gap": "50ms", **tables.get("connections", {})}
    return {
        "name": check.name,
        "seed": SEED,
        "repetitions": 1,
        "gateway": _gateway(check, ask, configuration),
        "testbed": {"kind": "ports", "cores": list(cores)},
        "left": _side("left", ports.tester_left, families[0], technology, hosts=check.subscribers),
        "right": right,
        "traffic": traffic,
        "trial": trial,
        "validity": {"retries": RETRIES, "lateness_max": check.lateness_max},
        **tables,
    }


def _gateway(check: Check, ask: str, configuration: Configuration) -> dict[str, Any]:
    technology = TECHNOLOGIES[check.technology]
    gateway: dict[str, Any] = {
        "technology": technology.name,
        "hop_limit_decrement": 1,
        "name": "gatemark-refdut, the reference gateway",
        "configuration": configuration.to_toml(),
    }
    control: dict[str, Any] = {}
    if technology.has_tunnels:
        end = {} if technology.is_edge else {"address": TUNNEL[technology.outer_family]}
        gateway["tunnel"] = {**end, "hop_limit": 64}
    if technology.delegates_prefixes:
        gateway["tunnel"]["prefix"] = SIXRD["ipv6"]
    if technology.translates_by_prefix:
        gateway["prefix"] = PREFIX
        if not technology.is_stateful:
            gateway["eam"] = [{"ipv4": ipv4, "ipv6": ipv6} for ipv4, ipv6 in EAM]
    if check.table is not None:
        control = {
            "clear_state": [f"{ask} clear"],
            "count_connections": f"{ask} connections",
            "tear_down": f"{ask} clear",
        }
        gateway |= {"mapping": check.mapping, "table": {"udp_timeout": "300s"}}
        if not technology.is_edge:
            gateway["pool"] = [POOL[technology.families[1]]]
            gateway["pool_ports"] = f"{POOL_PORTS[0]}-{POOL_PORTS[1]}"
    if check.reset_ns is not None:
        control["reset"] = [f"{ask} reset {check.reset_ns}ns"]
    return {**gateway, **({"control": control} if control else {})}


def _addresses(side: str, family: Family, technology: Technology) -> tuple[str, str]:
    if (side, family) == ("right", "ipv6") and technology.is_translation:
        return FAR_IPV6
    return ADDRESSES[side, family]


def _port(side: str, port: str, family: Family, technology: Technology) -> Port:
    address = _addresses(side, family, technology)[1]
    return Port(
        port=port,
        ipv4=address if family == "ipv4" else None,
        ipv6=address if family == "ipv6" else None,
        mtu=_mtu(side, technology),
    )


def _side(side: str, port: str, family: Family, technology: Technology, *, hosts: int = 1) -> dict[str, Any]:
    host, gateway = _addresses(side, family, technology)
    mtu = _mtu(side, technology)
    offset = 2 if family == "ipv4" else 14
    several = {"offset": offset, "mode": "pseudorandom", "range": f"{FIRST_HOST}-{FIRST_HOST + hosts - 1}"}
    addresses = {"address": host, "gateway": gateway, **({} if hosts == 1 else {"hosts": several})}
    behind: dict[str, Any] = {}
    if technology.is_subscriber and side == technology.tunnel_side:
        inner = technology.packet_families[side == "right"]
        behind = {inner: {"address": _addresses(side, inner, technology)[0]}}
    return {"port": port, family: addresses, **behind, **({} if mtu is None else {"mtu": mtu})}


def _mtu(side: str, technology: Technology) -> int | None:
    """Return the MTU of a side where it is not the default: packets in tunnels are longer."""
    has_tunnels = technology.has_tunnels and side == technology.tunnel_side
    return MTU + HEADER_OCTETS[technology.outer_family] if has_tunnels else None
