"""Read a configuration file of the tester Maptperf as a campaign document. Pure.

A line is a key and a value; what follows # is a comment. Maptperf has one domain, no PSID offset, and never uses the
first and the last IPv4 suffix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gatemark.config import defaults
from gatemark.config.check import nearest
from gatemark.config.types import BadValueError, Ipv4, Ipv6, MacAddress
from gatemark.embedded_ipv4 import WELL_KNOWN_PREFIX
from gatemark.errors import ConfigError, Problem
from gatemark.map_domains.domain import MapDomain
from gatemark.map_domains.edges import Order
from gatemark.map_domains.problems import domain_problems

ORDER: Order = "pseudorandom"
"""In which Maptperf takes its customer edges."""

Reader = Callable[[str], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaptperfImport:
    """What the file says, as a campaign document, and what a user must know of it."""

    document: dict[str, Any]
    notes: tuple[str, ...]
    """What is not in the document, a sentence each."""


@dataclass(slots=True)
class _Entries:
    """Values of the file by key, and everything that is wrong with it."""

    where: str
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, key: str, what: str, fix: str) -> None:
        """Note what is wrong with a key."""
        line = f" line {self.lines[key]}:" if key in self.lines else ""
        self.problems.append(Problem(what=what, where=f"{self.where}:{line} {key}", fix=fix))


def read_maptperf(text: str, *, where: str, technology: str) -> MaptperfImport:
    """Return the campaign that a file of Maptperf describes; `technology` is the one that campaigns have for MAP-T.

    Raises ConfigError with everything that is wrong, keys that nobody knows among it.
    """
    entries = _read_lines(text, where)
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
    return MaptperfImport(document=_document(entries.values, rule, technology), notes=_notes(entries.values, rule))


def _typed(annotation: Any) -> Reader:
    """Read a value as the campaign file reads it."""
    adapter = TypeAdapter(annotation)

    def reader(text: str) -> Any:
        try:
            return adapter.validate_python(text)
        except ValidationError as error:
            raise error.errors()[0]["ctx"]["error"] from None

    return reader


def _integer(lowest: int, highest: int) -> Reader:
    def reader(text: str) -> int:
        digits = text.replace(",", "")
        if re.fullmatch(r"[0-9]{1,18}", digits) is None or not lowest <= int(digits) <= highest:
            raise BadValueError(f"{text!r} is not between {lowest} and {highest}", f"write {lowest} to {highest}")
        return int(digits)

    return reader


def _prefix(address: type[IPv4Address] | type[IPv6Address]) -> Reader:
    def reader(text: str) -> IPv4Address | IPv6Address:
        try:
            return address(text)
        except ValueError:
            example = "192.0.2.0" if address is IPv4Address else "2001:db8:ce::"
            raise BadValueError(f"{text!r} is not a prefix", f"write its first address, such as {example}") from None

    return reader


_PORT, _CPU, _FLAG = _integer(1, 65535), _integer(0, 65535), _integer(0, 1)
_VARIATION = _integer(1, 3)
_IPV4_LENGTH, _IPV6_LENGTH = _integer(0, 32), _integer(0, 128)

KEYS: Mapping[str, Reader] = {
    "Tester-L-IPv6": _typed(Ipv6),
    "Tester-R-IPv4": _typed(Ipv4),
    "Tester-R-IPv6": _typed(Ipv6),
    "Tester-L-MAC": _typed(MacAddress),
    "Tester-R-MAC": _typed(MacAddress),
    "DUT-L-MAC": _typed(MacAddress),
    "DUT-R-MAC": _typed(MacAddress),
    **{f"{port}-{end}": _PORT for port in ("FW-dport", "RV-sport", "bg-sport", "bg-dport") for end in ("min", "max")},
    **{f"{way}-var-{port}": _VARIATION for way in ("FW", "RV") for port in ("sport", "dport")},
    "NUM-OF-CEs": _integer(1, 1 << 40),
    "BMR-IPv6-Prefix": _prefix(IPv6Address),
    "BMR-IPv6-prefix-length": _IPV6_LENGTH,
    "BMR-IPv4-Prefix": _prefix(IPv4Address),
    "BMR-IPv4-prefix-length": _IPV4_LENGTH,
    "BMR-EA-length": _integer(0, 48),
    "DMR-IPv6-Prefix": _prefix(IPv6Address),
    "DMR-IPv6-prefix-length": _IPV6_LENGTH,
    **{f"CPU-{way}-{work}": _CPU for way in ("FW", "RV") for work in ("Send", "Receive")},
    "Mem-Channels": _integer(1, 64),
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


def _read_lines(text: str, where: str) -> _Entries:
    entries = _Entries(where)
    known = {key.lower(): key for key in KEYS} | dict(OTHER_SPELLINGS)
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        key = known.get(words[0].lower())
        at = f"{where}: line {number}: {words[0]}"
        if key is None:
            guess = nearest(words[0].lower(), known)
            fix = f"did you mean {known[guess]}?" if guess else f"leave it out; known are {', '.join(KEYS)}"
            entries.problems.append(Problem(what="unknown key", where=at, fix=fix))
            continue
        if key in entries.lines:
            what = f"is written in line {entries.lines[key]} as well"
            entries.problems.append(Problem(what=what, where=at, fix="write it once"))
            continue
        entries.lines[key] = number
        try:
            entries.values[key] = KEYS[key](_single(words[1:]))
        except BadValueError as error:
            entries.refuse(key, error.what, error.fix)
    return entries


def _single(words: list[str]) -> str:
    if len(words) != 1:
        what = f"has {len(words)} values" if words else "has no value"
        raise BadValueError(what, "write the key, a space and its value")
    return words[0]


def _ports(values: Mapping[str, Any], name: str) -> tuple[int, int]:
    first, last = PORTS_BY_KEY[name]
    return values.get(f"{name}-min", first), values.get(f"{name}-max", last)


def _rule(entries: _Entries) -> MapDomain | None:
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
        except_first_and_last_suffix=True,
    )


def _check_rule(entries: _Entries, rule: MapDomain) -> None:
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


def _notes(values: Mapping[str, Any], rule: MapDomain) -> tuple[str, ...]:
    notes = ["The file names no ports and no test: add left.port, right.port and the table of a procedure."]
    notes += [
        f"{key} is left out: {why}."
        for key, why in (
            ("Tester-L-MAC", "the left port has an address of its own"),
            ("Tester-R-MAC", "the right port has an address of its own"),
            ("Mem-Channels", "the engine does not need it"),
            ("Promisc", "frames for other stations are never ours"),
        )
        if values.get(key)
    ]
    for foreground, background, way in (("FW-dport", "bg-dport", "forward"), ("RV-sport", "bg-sport", "reverse")):
        ports, others = _ports(values, foreground), _ports(values, background)
        if ports != others:
            notes.append(
                f"{background} {others[0]}-{others[1]} is left out for {way} frames: their background has the ports"
                f" {ports[0]}-{ports[1]} of {foreground}, as the foreground."
            )
    if rule.dmr == WELL_KNOWN_PREFIX and not IPv4Address(values["Tester-R-IPv4"]).is_global:
        notes.append(
            f"{WELL_KNOWN_PREFIX} must not represent {values['Tester-R-IPv4']}, which is not global (RFC 6052 section"
            " 3.1): add gateway.well_known_prefix_allowed = true if the gateway translates it all the same."
        )
    return tuple(notes)
