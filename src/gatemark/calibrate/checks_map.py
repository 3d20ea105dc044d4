"""Customer edges of MAP-T, MAP-E and 6rd: a border relay's, from one to millions, and the gateway as one of them. Pure.

The reference gateway drops what is not the MAP address of a customer edge with a port of its set, and knows customer
edges by the rules only. So each frame that arrives is one more address, port set and translation that two programs have
from the RFCs by themselves (RFC 7597 sections 5 and 6, RFC 7599 section 5.1).
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from typing import Any, get_args

from gatemark.calibrate.base import EDGE, LWB4, MAP
from gatemark.calibrate.checks_stateful import capacity_check
from gatemark.calibrate.model import ONLY_COUNTS, Check, Comparison, Evidence, equal_frames
from gatemark.refdut.document import Flow, Selector, Table
from gatemark.technology import TECHNOLOGIES, MappingKind, TechnologyName

LOAD = 20_000
EVERY = 97
TIMEOUT_NS = 300 * 10**9
NUMBERS = (1, 1_000, 1_000_000, 16_777_216)
SIXRD_NUMBERS = (1, 1_000, 65_000)
SHAPES: dict[str, dict[str, Any]] = {
    "one range of ports": {"psid_offset": 0},
    "an address of its own": {"ea_bits": 16},
    "one address for all": {"ipv4": "198.18.1.1/32", "ea_bits": 10},
}
"""What differs from the rule of `base.MAP`: words for the customer edges, and keys."""


PORT_SETS: dict[int, dict[str, Any]] = {
    252: {},
    256: {"psid_offset": 0},
    1008: {"ea_bits": 14},
}
"""Sizes of the port set of a gateway that is a customer edge, and what differs from the rule of `base.EDGE`."""


def map_checks(*, quick: bool) -> list[Check]:
    """Return the checks of customer edges, and of a gateway that is one."""
    checks = [_counts(_many(number, "customer edge"), {"edges": number}, number) for number in NUMBERS]
    tunnels = [
        _counts(f"{_many(number, 'customer edge')} in tunnels", {"edges": number}, f"e-{number}", technology="map_e_br")
        for number in NUMBERS
    ]
    softwires = [
        _counts(_many(number, "softwire"), {"edges": number}, f"lw-{number}", technology="lwaftr") for number in NUMBERS
    ]
    if quick:
        return [*checks[1::2], tunnels[1], _port_set(252, "endpoint_independent")]
    checks += [*tunnels, *softwires]
    checks += [
        _counts(
            f"{_many(number, 'customer edge')} of 6rd", None, f"6rd-{number}", technology="sixrd_br", subscribers=number
        )
        for number in SIXRD_NUMBERS
    ]
    checks += [_shape(words, keys) for words, keys in SHAPES.items()]
    checks += [_port_set(ports, mapping) for ports in PORT_SETS for mapping in get_args(MappingKind)]
    checks += [_port_set(252, "endpoint_dependent", technology="map_e_ce"), _softwire_ports()]
    mesh: tuple[TechnologyName, ...] = ("map_t_ce", "map_e_ce")
    return [*checks, *(_port_set(252, "endpoint_dependent", technology=name, in_mesh=True) for name in mesh)]


def _port_set(
    ports: int, mapping: MappingKind, *, technology: TechnologyName = "map_t_ce", in_mesh: bool = False
) -> Check:
    """Return a check of the capacity: to one destination it is the size of the port set, however the gateway maps."""
    (rule,) = EDGE["domains"]
    rule = {**rule, **PORT_SETS[ports]}
    length = ip_network(rule["ipv6"]).prefixlen + rule["ea_bits"]
    prefix = ip_network(EDGE["end_user_prefix"]).supernet(new_prefix=length)
    words = mapping.replace("_", "-")
    name = f"{words}-in-tunnel" if TECHNOLOGIES[technology].has_tunnels else words
    table: dict[str, Any] = {"domains": [rule], "end_user_prefix": str(prefix)}
    if in_mesh:
        table, name, words = {**table, "mesh": {}}, f"{name}-mesh", f"to another customer edge, {words}"
    return _capacity_of_ports(ports, f"port-set-{ports}-{name}", f"{words} mapping", table, technology, mapping)


def _softwire_ports() -> Check:
    """Return the same check of an lwB4."""
    return _capacity_of_ports(256, "port-set-256-lwb4", "one range", dict(LWB4), "lwb4", "endpoint_dependent")


def _capacity_of_ports(
    ports: int, name: str, words: str, table: dict[str, Any], technology: TechnologyName, mapping: MappingKind
) -> Check:
    return replace(
        capacity_check("refuse", "refused", ports),
        procedure="map",
        name=name,
        truth=f"a customer edge with {ports} ports, {words}",
        technology=technology,
        table=Table(size=100_000, udp_timeout_ns=TIMEOUT_NS),
        mapping=mapping,
        tables={
            "map": table,
            "connection_tracking_table_capacity": {
                "start": 100,
                "maximum": 4000,
                "maximum_rate": 10_000,
                "rate_resolution": 2_000,
            },
        },
    )


def _shape(words: str, keys: dict[str, Any]) -> Check:
    (rule,) = MAP["domains"]
    rule = {**rule, "dmr": "2001:2:0:c000::/64", **keys}
    return _counts(f"1,000 customer edges, {words}", {"domains": [rule]}, words.replace(" ", "-"))


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


def _counts(
    words: str,
    table: dict[str, Any] | None,
    name: int | str,
    *,
    technology: TechnologyName = "map_t_br",
    subscribers: int = 1,
) -> Check:
    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        if not evidence.trials:
            return (Comparison(quantity="frames", unit="frames", true=LOAD, measured=None),)
        last = evidence.trials[-1]
        comparisons = []
        for way in last.record.report.directions:
            counts, gateway = way.foreground, last.counts[way.direction]
            faults = {reason: count for reason, count in counts.faults.items() if count}
            port = "source_port" if way.direction == "forward" else "destination_port"
            received = counts.offered - gateway["lost"] - counts.faulty
            comparisons += [
                equal_frames(f"frames lost, {way.direction}", gateway["lost"], counts.lost),
                equal_frames(
                    f"frames with another port, {way.direction}", gateway["reasons"].get(port, 0), faults.get(port, 0)
                ),
                equal_frames(f"frames received, {way.direction}", received, counts.received),
            ]
        return tuple(comparisons)

    damaged = Selector(every=EVERY + 4)
    return Check(
        procedure="map",
        name=f"map-{name}",
        truth=f"{words}; one of {EVERY} frames lost, one of {EVERY + 4} with another port",
        technology=technology,
        subscribers=subscribers,
        forward=Flow(loss=(Selector(every=EVERY),), corrupt=(("source_port", damaged),)),
        reverse=Flow(loss=(Selector(every=EVERY),), corrupt=(("destination_port", damaged),)),
        tables={
            **({} if table is None else {"map": table}),
            "trial": {"duration": "1s"},
            "traffic": {"direction": "bidirectional"},
            "frame_loss": {"rates": [LOAD]},
        },
        compare=compare,
        **ONLY_COUNTS,
    )
