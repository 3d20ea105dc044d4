"""Read a configuration file of the tester Maptperf as a campaign document. Pure.

A line is a key and a value; what follows # is a comment. Maptperf has one domain, no PSID offset, and never uses the
first and the last IPv4 suffix.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any

from gatemark.config import defaults
from gatemark.config.key_value_file import Entries, Imported, Reader, address, integer, read_entries, typed
from gatemark.config.types import Ipv4, Ipv6, MacAddress
from gatemark.embedded_ipv4 import WELL_KNOWN_PREFIX
from gatemark.errors import ConfigError
from gatemark.facts import Order
from gatemark.map_domains.domain import MapDomain
from gatemark.map_domains.problems import domain_problems

ORDER: Order = "pseudorandom"
"""In which Maptperf takes its customer edges."""


def read_maptperf(text: str, *, where: str, technology: str) -> Imported:
    """Return the campaign that a file of Maptperf describes; `technology` is the one that campaigns have for MAP-T.

    Raises ConfigError with everything that is wrong, keys that nobody knows among it.
    """
    entries = read_entries(text, where, KEYS, OTHER_SPELLINGS)
    for key in REQUIRED:
        if key not in entries.lines:
            entries.refuse(key, "is missing", "add the key")
    for name in PORTS_BY_KEY:
        first, last = _ports(entries.values, name)
        if first > last:
            entries.refuse(f"{name}-max", f"{last} is below the {first} of {name}-min", "write the lower end as min")
    if not entries.values.get("FW", 1) and not entries.values.get("RV", 1):
        entries.refuse("RV", "is 0, as is FW: nothing would be sent", "write 1 for one of them")
    rule = _rule(entries)
    if rule is not None:
        _check_rule(entries, rule)
    if entries.problems:
        raise ConfigError(problems=entries.problems)
    assert rule is not None
    return Imported(document=_document(entries.values, rule, technology), notes=_notes(entries, rule))


_PORT, _CPU, _FLAG = integer(1, 65535), integer(0, 65535), integer(0, 1)
_VARIATION = integer(1, 3)
_IPV4_PREFIX = address(IPv4Address, "a prefix", "write its first address, such as 192.0.2.0")
_IPV6_PREFIX = address(IPv6Address, "a prefix", "write its first address, such as 2001:db8:ce::")
_IPV4_LENGTH, _IPV6_LENGTH = integer(0, 32), integer(0, 128)

KEYS: Mapping[str, Reader] = {
    "Tester-L-IPv6": typed(Ipv6),
    "Tester-R-IPv4": typed(Ipv4),
    "Tester-R-IPv6": typed(Ipv6),
    "Tester-L-MAC": typed(MacAddress),
    "Tester-R-MAC": typed(MacAddress),
    "DUT-L-MAC": typed(MacAddress),
    "DUT-R-MAC": typed(MacAddress),
    **{f"{port}-{end}": _PORT for port in ("FW-dport", "RV-sport", "bg-sport", "bg-dport") for end in ("min", "max")},
    **{f"{way}-var-{port}": _VARIATION for way in ("FW", "RV") for port in ("sport", "dport")},
    "NUM-OF-CEs": integer(1, 1 << 40),
    "BMR-IPv6-Prefix": _IPV6_PREFIX,
    "BMR-IPv6-prefix-length": _IPV6_LENGTH,
    "BMR-IPv4-Prefix": _IPV4_PREFIX,
    "BMR-IPv4-prefix-length": _IPV4_LENGTH,
    "BMR-EA-length": integer(0, 48),
    "DMR-IPv6-Prefix": _IPV6_PREFIX,
    "DMR-IPv6-prefix-length": _IPV6_LENGTH,
    **{f"CPU-{way}-{work}": _CPU for way in ("FW", "RV") for work in ("Send", "Receive")},
    "Mem-Channels": integer(1, 64),
    "FW": _FLAG,
    "RV": _FLAG,
    "Promisc": _FLAG,
}
"""Keys of Maptperf, each with what its value is."""

OTHER_SPELLINGS: Mapping[str, str] = {"bmr-ea-len": "BMR-EA-length"}
"""Of the paper on Maptperf, which also writes keys with other capitals."""

REQUIRED = (
    "Tester-L-IPv6", "Tester-R-IPv4", "NUM-OF-CEs", "BMR-IPv6-Prefix", "BMR-IPv6-prefix-length", "BMR-IPv4-Prefix",
    "BMR-IPv4-prefix-length", "BMR-EA-length", "DMR-IPv6-Prefix", "DMR-IPv6-prefix-length",
)  # fmt: skip

PORTS_BY_KEY: Mapping[str, tuple[int, int]] = {
    "FW-dport": defaults.DESTINATION_PORTS,
    "RV-sport": defaults.SOURCE_PORTS,
    "bg-sport": defaults.SOURCE_PORTS,
    "bg-dport": defaults.DESTINATION_PORTS,
}

KEYS_OF_RULE: Mapping[str, str] = {
    "map.domains[0].ipv6": "BMR-IPv6-Prefix",
    "map.domains[0].ipv4": "BMR-IPv4-Prefix",
    "map.domains[0].dmr": "DMR-IPv6-prefix-length",
    "map.domains[0].exclude": "BMR-EA-length",
    "map.domains[0].ea_bits": "BMR-EA-length",
    "map.domains[0].psid_offset": "BMR-EA-length",
    "map.edges": "NUM-OF-CEs",
}
"""Which key of Maptperf says what a key of the campaign file says."""


def _ports(values: Mapping[str, Any], name: str) -> tuple[int, int]:
    first, last = PORTS_BY_KEY[name]
    return values.get(f"{name}-min", first), values.get(f"{name}-max", last)


def _rule(entries: Entries) -> MapDomain | None:
    """Return the rule; None while a part of it is missing or wrong."""
    networks: dict[str, Any] = {}
    for name, network in (("BMR-IPv6", IPv6Network), ("BMR-IPv4", IPv4Network), ("DMR-IPv6", IPv6Network)):
        first, length = entries.values.get(f"{name}-Prefix"), entries.values.get(f"{name}-prefix-length")
        if first is None or length is None:
            continue
        networks[name] = network((first, length), strict=False)
        if networks[name].network_address != first:
            fix = f"write {networks[name].network_address}"
            entries.refuse(f"{name}-Prefix", f"{first} has bits set behind the first {length}", fix)
    if len(networks) < 3 or "BMR-EA-length" not in entries.values:
        return None
    return MapDomain(
        rule_ipv6=networks["BMR-IPv6"],
        rule_ipv4=networks["BMR-IPv4"],
        ea_bits=entries.values["BMR-EA-length"],
        dmr=networks["DMR-IPv6"],
        psid_offset=0,
        except_suffixes=True,
    )


def _check_rule(entries: Entries, rule: MapDomain) -> None:
    for problem in domain_problems([rule], edges=entries.values.get("NUM-OF-CEs")):
        entries.refuse(KEYS_OF_RULE[problem.where], problem.what, problem.fix)


def _document(values: Mapping[str, Any], rule: MapDomain, technology: str) -> dict[str, Any]:
    modes = {1: "increasing", 2: "decreasing", 3: "pseudorandom"}
    varies = {name: modes[values.get(name, 3)] for name in KEYS if "-var-" in name}
    ways = [way for way in ("FW", "RV") if values.get(way, 1)]
    span = {name: "{}-{}".format(*_ports(values, name)) for name in PORTS_BY_KEY}
    forward = {
        "source_ports": {"mode": varies["FW-var-sport"], "range": span["bg-sport"]},  # of the background
        "destination_ports": {"mode": varies["FW-var-dport"], "range": span["FW-dport"]},
    }
    reverse = {
        "source_ports": {"mode": varies["RV-var-sport"], "range": span["RV-sport"]},
        "destination_ports": {"mode": varies["RV-var-dport"], "range": span["bg-dport"]},  # of the background
    }
    directions = {"FW": ("forward", forward), "RV": ("reverse", reverse)}
    cores = [values.get(f"CPU-{way}-{work}") for way in ways for work in ("Send", "Receive")]
    sides = {
        "left": {"gateway_mac": values.get("DUT-L-MAC"), "ipv6": _host(values, "Tester-L-IPv6")},
        "right": {
            "gateway_mac": values.get("DUT-R-MAC"),
            "ipv4": _host(values, "Tester-R-IPv4"),
            "ipv6": _host(values, "Tester-R-IPv6"),
        },
    }
    return {
        "name": "maptperf",
        "gateway": {"technology": technology},
        "testbed": {"kind": "ports", "cores": list(dict.fromkeys(core for core in cores if core is not None))},
        **{side: {key: value for key, value in keys.items() if value is not None} for side, keys in sides.items()},
        "traffic": {
            "direction": "bidirectional" if len(ways) == 2 else directions[ways[0]][0],
            **dict(directions[way] for way in ways),
        },
        "map": {
            "edges": values["NUM-OF-CEs"],
            "order": ORDER,
            "choice": "cycle",
            "forward_ports": varies["FW-var-sport"],
            "reverse_ports": varies["RV-var-dport"],
            "domains": [
                {
                    "ipv6": str(rule.rule_ipv6),
                    "ipv4": str(rule.rule_ipv4),
                    "ea_bits": rule.ea_bits,
                    "psid_offset": rule.psid_offset,
                    "dmr": str(rule.dmr),
                    "exclude": ["first_and_last_suffix"],
                }
            ],
        },
    }


def _host(values: Mapping[str, Any], key: str) -> dict[str, str] | None:
    return {"address": str(values[key])} if key in values else None


def _notes(entries: Entries, rule: MapDomain) -> tuple[str, ...]:
    values = entries.values
    notes = [
        f"{key}, line {entries.lines[key]}: is left out: {why}."
        for key, why in (
            ("Tester-L-MAC", "the left port has an address of its own"),
            ("Tester-R-MAC", "the right port has an address of its own"),
            ("Mem-Channels", "the engine does not need it"),
            ("Promisc", "the Tester never takes frames for other stations"),
        )
        if values.get(key)
    ]
    for foreground, background, way in (("FW-dport", "bg-dport", "forward"), ("RV-sport", "bg-sport", "reverse")):
        ports, others = _ports(values, foreground), _ports(values, background)
        if ports != others:
            notes.append(
                f"{background} {others[0]}-{others[1]} is left out for {way} frames: their background has the ports"
                f" {ports[0]}-{ports[1]} of {foreground}, like the foreground."
            )
    if rule.dmr == WELL_KNOWN_PREFIX and not IPv4Address(values["Tester-R-IPv4"]).is_global:
        notes.append(
            f"{WELL_KNOWN_PREFIX} must not represent {values['Tester-R-IPv4']}, which is not global (RFC 6052 section"
            " 3.1): add gateway.well_known_prefix_allowed = true if the gateway translates it anyway."
        )
    return tuple(notes)
