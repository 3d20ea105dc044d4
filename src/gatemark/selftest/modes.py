"""The modes of traffic in which the Tester is tested alone, each as a loop-back campaign. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any, Final, Literal

from gatemark.campaign.file import campaign_from_dict
from gatemark.config.complete import complete
from gatemark.config.defaults import (
    FRAME_OCTETS_IPV4,
    FRAME_OCTETS_IPV6,
    HEADER_OCTETS,
    LATENESS_MAX_NS,
    TRANSLATION_OVERHEAD,
)
from gatemark.config.model import Campaign
from gatemark.config.tables import HostMacs, UdpChecksum
from gatemark.facts import Mode
from gatemark.technology import SIDES, TECHNOLOGIES, Family, TechnologyName

Direction = Literal["forward", "bidirectional"]

STATELESS_MODES: tuple[Mode, ...] = ("fixed", "random_ports", "random_hosts", "random_both")
"""Each family by itself."""
BOTH_FAMILIES_MODES: dict[Mode, Family] = {
    "mixed": "ipv6",
    "translated": "ipv6",
    "edges": "ipv6",
    "tunnels": "ipv6",
    "tunnels_6in4": "ipv4",
}
"""Frames of both families, with random ports and hosts, each with the family whose frame names a size."""
STATEFUL_MODES: tuple[Mode, ...] = ("stateful_ports", "stateful_hosts", "stateful_both")
"""Connections enumerated over ports, over hosts, or over both (RFC 9693 section 4.1)."""
B4S_MAX = 10_000
"""B4s of the self-test with connections in tunnels."""
ECHO_MODE: Final = "echo"
"""Echo requests: no mode of the search, for a closed loop finds its rate itself."""
EDGES_MODES: tuple[Mode, ...] = ("edges", "tunnels")
TUNNEL = {"address": "2001:2:0:6400::1"}
"""End of the tunnels that is not a customer edge's or a B4's."""
SIXRD_TUNNEL = {"address": "198.18.0.1", "prefix": "2001:db8::/32", "ipv4_mask_length": 0}
"""That of 6rd, and what the prefixes of all customer edges begin with (RFC 5969 section 4)."""
SMALLEST: dict[Mode, int] = {
    "tunnels": FRAME_OCTETS_IPV4[0] + HEADER_OCTETS["ipv6"],
    "stateful_tunnels": FRAME_OCTETS_IPV4[0] + HEADER_OCTETS["ipv6"],
    "tunnels_6in4": FRAME_OCTETS_IPV6[0] + HEADER_OCTETS["ipv4"],
}
"""Octets of the smallest frame of a mode, if it is larger than others."""
_RANDOM_BOTH = ("random_both", *BOTH_FAMILIES_MODES)
TRANSLATED_HOSTS = {"ipv4": "198.18.0.0/16", "ipv6": "2001:2::/112"}
"""Gives the IPv6 hosts an IPv4 representation (RFC 7757)."""
EDGES = 1_000_000
EDGE_BITS = 20
RULES = {"ipv6": "2001:2:0:c000::/50", "ipv4": "198.18.128.0/17"}
"""Prefixes of all customer edges, whose EA bits hold the rest of the IPv4 address and a PSID of 5 bits."""
CONNECTIONS = 100_000
SIZES: dict[Family, tuple[int, ...]] = {"ipv4": (64, 256, 512, 1024, 1518), "ipv6": (84, 256, 512, 1024, 1518)}
QUICK_SIZES: dict[Family, tuple[int, ...]] = {"ipv4": (64, 1518), "ipv6": (84, 1518)}
WAITS = {"settle": "0s", "learn": "0s", "drain": "50ms", "rest": "0s"}
HOSTS_MAX = 60_000
HOST_OFFSET: dict[Family, int] = {"ipv4": 2, "ipv6": 14}
HOSTS = {"ipv4": ("198.18.0.2", "198.19.0.2"), "ipv6": ("2001:2::2", "2001:2:0:8000::2")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One figure of a self-test: which traffic, and what is searched for."""

    family: Family
    frame_octets: int
    direction: Direction
    mode: Mode | Literal["echo"]
    connections: int | None = None

    @property
    def kind(self) -> Literal["frames", "connections"]:
        """Return what is searched for."""
        return "frames" if self.connections is None else "connections"

    @property
    def words(self) -> str:
        count = "" if self.connections is None else f", {self.connections} connections"
        return f"{self.family}, {self.frame_octets} octets, {self.direction}, {self.mode.replace('_', ' ')}{count}"


def cases(
    *,
    families: tuple[Family, ...],
    sizes: dict[Family, tuple[int, ...]],
    directions: tuple[Direction, ...],
    connections: tuple[int, ...],
) -> list[Case]:
    """Return all cases, sizes ascending within each mode, so that each search begins at the result before it."""
    planned = [
        Case(family=family, frame_octets=octets, direction=direction, mode=mode)
        for family in families
        for direction in directions
        for mode in STATELESS_MODES
        for octets in sizes[family]
    ]
    if "ipv6" in families:
        planned += [
            Case(family=family, frame_octets=max(octets, SMALLEST.get(mode, 0)), direction=direction, mode=mode)
            for direction in directions
            for mode, family in BOTH_FAMILIES_MODES.items()
            for octets in sizes["ipv6"]
        ]
    planned += [
        Case(family=family, frame_octets=sizes[family][0], direction="forward", mode=mode, connections=count)
        for family in families
        for count in connections
        for mode in STATEFUL_MODES
    ]
    if "ipv6" in families:
        planned += [
            Case(
                family="ipv6",
                frame_octets=SMALLEST["stateful_tunnels"],
                direction="forward",
                mode="stateful_tunnels",
                connections=count,
            )
            for count in connections
        ]
    return planned


def campaign_of(
    case: Case,
    *,
    ports: dict[str, str],
    cores: tuple[int, ...] = (),
    queues: tuple[int | None, int | None] = (None, None),
    trial_ns: int,
    lateness_max_ns: int = LATENESS_MAX_NS,
    udp_checksum: UdpChecksum = "computed",
    host_macs: HostMacs = "fixed",
    domains: int = 1,
) -> Campaign:
    """Return the loop-back campaign of a case; its trials count under the same rule as those of the gateway.

    Customer edges are spread over so many domains.
    """
    stateful = case.connections is not None
    # Customer edges and B4s have the MAC address of the port.
    macs: HostMacs = "fixed" if case.mode in ("stateful_tunnels", "tunnels_6in4", *EDGES_MODES) else host_macs
    random_ports = case.mode in ("random_ports", *_RANDOM_BOTH)
    document: dict[str, Any] = {
        "name": "selftest",
        "gateway": _gateway(case),
        "testbed": {"kind": "loopback"} | ({"cores": list(cores)} if cores else {}),
        **{
            side: _side(case, side, ports[side]) | {"host_macs": macs} | ({"queues": count} if count else {})
            for side, count in zip(SIDES, queues, strict=True)
        },
        "traffic": {
            "direction": case.direction if not stateful else "forward",
            "frame_sizes": _frame_sizes(case),
            "mix": "1/2" if case.mode == "mixed" else "1/1",
        },
        "trial": {"duration": f"{trial_ns}ns", **WAITS},
        "validity": {"lateness_max": f"{lateness_max_ns}ns"},
    }
    if case.mode in EDGES_MODES:
        document["map"] = _map(domains, has_default_rules=case.mode == "edges")
    if udp_checksum == "zero":
        document["traffic"] |= _without_checksum(case)
    if stateful:
        document["connections"] = {"count": case.connections, "timeout": "50ms", "gap": "20ms", **_four_tuples(case)}
    elif not random_ports:
        fixed = {"mode": "fixed", "range": 10_000}
        document["traffic"] |= {"source_ports": fixed, "destination_ports": fixed}
    return complete(campaign_from_dict(document, where="selftest"))


def _without_checksum(case: Case) -> dict[str, Any]:
    """Return what sends the IPv4 frames of a case without UDP checksum; IPv6 must have one (RFC 8200 section 8.1)."""
    if case.mode == "stateful_tunnels":
        return {"udp_checksum": "zero"}
    if case.mode in ("translated", *EDGES_MODES):
        return {"reverse": {"udp_checksum": "zero"}} if case.direction == "bidirectional" else {}
    has_ipv4 = case.mode == "mixed" or (case.family == "ipv4" and case.mode != "tunnels_6in4")
    return {"udp_checksum": "zero"} if has_ipv4 else {}


def _frame_sizes(case: Case) -> dict[str, Any]:
    if case.mode == "mixed":
        return {"family": "ipv4", "octets": case.frame_octets - TRANSLATION_OVERHEAD}
    if case.mode in ("tunnels", "stateful_tunnels"):
        return {"family": "ipv4", "octets": case.frame_octets - HEADER_OCTETS["ipv6"]}
    if case.mode == "tunnels_6in4":
        return {"family": "ipv6", "octets": case.frame_octets - HEADER_OCTETS["ipv4"]}
    return {"family": case.family, "octets": case.frame_octets}


def _gateway(case: Case) -> dict[str, Any]:
    if case.mode in EDGES_MODES:
        has_tunnels = case.mode == "tunnels"
        names = (row.name for row in TECHNOLOGIES.values() if row.has_edges and row.has_tunnels == has_tunnels)
        return {"technology": next(names), **({"tunnel": TUNNEL} if has_tunnels else {})}
    if case.mode == "stateful_tunnels":
        name = next(row.name for row in TECHNOLOGIES.values() if row.has_b4s)
        return {"technology": name, "tunnel": TUNNEL}
    if case.mode == "tunnels_6in4":
        name = next(row.name for row in TECHNOLOGIES.values() if row.delegates_prefixes)
        return {"technology": name, "tunnel": SIXRD_TUNNEL}
    if case.mode == "translated":
        technology = _technology("ipv6", "ipv4", stateful=False)
        return {"technology": technology, "prefix": "2001:2:0:6400::/96", "eam": [TRANSLATED_HOSTS]}
    family: Family = "ipv4" if case.mode == "mixed" else case.family
    return {"technology": _technology(family, family, stateful=case.connections is not None)}


def _technology(left: Family, right: Family, *, stateful: bool) -> TechnologyName:
    """Return the technology that has these families on its sides."""
    return next(
        row.name
        for row in TECHNOLOGIES.values()
        if row.families == (left, right) and row.is_stateful == stateful and not row.has_edges
    )


def _map(domains: int, *, has_default_rules: bool) -> dict[str, Any]:
    """Return domains of equal size, which together have nearly as many customer edges as one."""
    bits = (domains - 1).bit_length()
    parts = {family: list(ip_network(prefix).subnets(bits)) for family, prefix in RULES.items()}
    ea_bits = EDGE_BITS - bits
    default_rule = {"dmr": "2001:2:0:6400::/64"} if has_default_rules else {}
    rules = [
        {"ipv6": str(ipv6), "ipv4": str(ipv4), "ea_bits": ea_bits} | default_rule
        for ipv6, ipv4 in zip(parts["ipv6"][:domains], parts["ipv4"][:domains], strict=True)
    ]
    return {"edges": min(EDGES, domains << ea_bits), "domains": rules}


def _side(case: Case, side: str, port: str) -> dict[str, Any]:
    families: tuple[Family, ...] = (case.family,)
    if case.mode == "mixed":
        families = ("ipv4", "ipv6")
    elif case.mode in ("translated", "stateful_tunnels", *EDGES_MODES) and side == "right":
        families = ("ipv4",)
    elif case.mode == "tunnels_6in4" and side == "right":
        families = ("ipv6",)
    return {"port": port, **{family: _host(case, side, family) for family in families}}


def _host(case: Case, side: str, family: Family) -> dict[str, Any]:
    host: dict[str, Any] = {"address": HOSTS[family][side == "right"]}
    if hosts := _hosts(case, side):
        host["hosts"] = {"offset": HOST_OFFSET[family], "mode": "pseudorandom", "range": f"2-{hosts + 1}"}
    return host


def _hosts(case: Case, side: str) -> int:
    """Return how many hosts a side emulates; 0 for one that never changes."""
    if case.mode in EDGES_MODES and side == "left":
        return 0
    if case.mode in ("random_hosts", ECHO_MODE, *_RANDOM_BOTH):
        return HOSTS_MAX
    count = case.connections or 0
    if case.mode == "stateful_tunnels":
        return _b4s(count) if side == "left" else 0
    if case.mode == "stateful_hosts":  # as near to a square as whole tens allow
        right = min(10_000, max(10, count // 10_000))
        return right if side == "right" else -(-count // right)
    return 10 if case.mode == "stateful_both" else 0


def _b4s(connections: int) -> int:
    """Return how many B4s connections are spread over."""
    return min(B4S_MAX, max(1, connections // 10))


def _four_tuples(case: Case) -> dict[str, Any]:
    """Return the ports that connections combine."""
    count = case.connections or 0
    if case.mode == "stateful_tunnels":
        ports = -(-count // _b4s(count))
        destinations = -(-ports // 40_000)
        return {"source_ports": f"1024-{1023 + -(-ports // destinations)}", "destination_ports": f"1-{destinations}"}
    if case.mode == "stateful_hosts":
        return {"source_ports": "10000", "destination_ports": "10000"}
    hosts = 100 if case.mode == "stateful_both" else 1
    sources = min(40_000, max(1, count // hosts // 10))
    destinations = -(-count // (hosts * sources))
    return {"source_ports": f"1024-{1023 + sources}", "destination_ports": f"1-{destinations}"}
