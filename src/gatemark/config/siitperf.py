"""Read `siitperf.conf`, the configuration file of the tester siitperf, as a campaign document. Pure.

Its keys and their meanings are those that its author describes; `siitperf_script` reads the variables of its scripts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Any

from gatemark.config.key_value_file import Entries, Imported, Reader, address, integer, read_entries, typed
from gatemark.config.types import MacAddress
from gatemark.embedded_ipv4 import WELL_KNOWN_PREFIX
from gatemark.errors import ConfigError
from gatemark.technology import OPPOSITE, SIDES, TECHNOLOGIES, SideName, Technology

LETTER: Mapping[SideName, str] = {"left": "L", "right": "R"}

FIXED_SOURCE_PORT = 0xC020
FIXED_DESTINATION_PORT = 7
"""Ports of frames whose ports do not vary (RFC 2544 appendix C.2.6.4)."""

MODES = ("fixed", "increasing", "decreasing", "pseudorandom")
"""What 0 to 3 mean for everything that varies."""


_FLAG, _MODE, _PORT, _NETS = integer(0, 1), integer(0, 3), integer(0, 65535), integer(1, 256)
_HALF = integer(0, 65535)
_IPV4 = address(IPv4Address, "an address", "write one, such as 198.18.0.2")
_IPV6 = address(IPv6Address, "an address", "write one, such as 2001:2::2")

KEYS: Mapping[str, Reader] = {
    **{f"IP-{side}-Vers": integer(4, 6) for side in "LR"},
    **{f"IPv4-{side}-{kind}": _IPV4 for side in "LR" for kind in ("Real", "Virt")},
    **{f"IPv6-{side}-{kind}": _IPV6 for side in "LR" for kind in ("Real", "Virt")},
    **{f"MAC-{side}-{who}": typed(MacAddress) for side in "LR" for who in ("Tester", "DUT")},
    "Forward": _FLAG,
    "Reverse": _FLAG,
    "Promisc": _FLAG,
    "Num-L-Nets": _NETS,
    "Num-R-Nets": _NETS,
    **{f"CPU-{side}-{work}": integer(0, 65535) for side in "LR" for work in ("Send", "Recv")},
    "MEM-Channels": integer(1, 64),
    **{f"{way}-var-{port}": _MODE for way in ("Fwd", "Rev") for port in ("sport", "dport")},
    **{f"{way}-{port}-{end}": _PORT for way in ("Fwd", "Rev") for port in ("sport", "dport") for end in ("min", "max")},
    **{f"IP-{side}-var": _MODE for side in "LR"},
    **{f"IP-{side}-{end}": _HALF for side in "LR" for end in ("min", "max")},
    **{f"IPv4-{side}-offset": integer(0, 2) for side in "LR"},
    **{f"IPv6-{side}-offset": integer(6, 14) for side in "LR"},
    "Stateful": integer(0, 2),
    "Enumerate-ports": _MODE,
    "Enumerate-ips": _MODE,
    "Responder-tuples": _MODE,
}
"""Keys of siitperf, each with what its value is."""

OTHER_SPELLINGS: Mapping[str, str] = {"responder-ports": "Responder-tuples"}
"""Of earlier versions and of the papers."""

KEYS_TOLD = 4
"""Keys of siitperf that a comment names one by one."""

LEFT_OUT: Mapping[str, str] = {
    "MAC-L-Tester": "the left port has an address of its own",
    "MAC-R-Tester": "the right port has an address of its own",
    "Promisc": "the Tester never takes frames for other stations",
    "MEM-Channels": "the engine does not need it",
}


@dataclass(slots=True)
class Writer:
    """A campaign document under way, with where its keys come from and what a user must know."""

    entries: Entries
    document: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    comments: dict[str, str] = field(default_factory=dict)

    def value(self, key: str, default: Any = None) -> Any:
        """Return the value of a key of siitperf."""
        return self.entries.values.get(key, default)

    def place(self, *keys: str) -> str:
        """Return where keys are written: "IP-L-Vers, line 3"."""
        return "; ".join(
            f"{key}, line {self.entries.lines[key]}" if key in self.entries.lines else f"{key} is missing"
            for key in keys
        )

    def put(self, path: str, value: Any, *keys: str) -> None:
        """Set a key of the document that follows from keys of siitperf."""
        table, _, key = path.partition(".")
        (self.document.setdefault(table, {}) if key else self.document)[key or table] = value
        known = [name for name in keys if name in self.entries.lines]
        if len(known) > KEYS_TOLD:
            lines = sorted(self.entries.lines[name] for name in known)
            self.comments[path] = f"{known[0]} to {known[-1]}, lines {lines[0]} to {lines[-1]}"
        else:
            self.comments[path] = self.place(*known)

    def note(self, what: str, *keys: str) -> None:
        """Say what cannot be expressed, with the lines that say it."""
        self.notes.append(f"{self.place(*keys)}: {what}" if keys else what)


def read_siitperf(text: str, *, where: str, mixed: bool = False) -> Imported:
    """Return the campaign that a `siitperf.conf` describes; `mixed`: there is background traffic, which is IPv6.

    Raises ConfigError with everything that is wrong, keys that nobody knows among it.
    """
    entries = read_entries(text, where, KEYS, OTHER_SPELLINGS)
    _check(entries)
    if entries.problems:
        raise ConfigError(problems=entries.problems)
    writer = Writer(entries)
    technology, inside = _technology(writer)
    writer.put("name", "siitperf")
    writer.put("gateway.technology", technology.name, "IP-L-Vers", "IP-R-Vers", "Stateful")
    if inside is not None:
        writer.put("gateway.inside", inside, "Stateful")
    _translation(writer, technology, inside)
    _testbed(writer)
    for side in SIDES:
        _side(writer, side, mixed=mixed, inside=inside)
    _traffic(writer, inside)
    if inside is not None:
        _connections(writer, inside)
    for key, why in LEFT_OUT.items():
        if writer.value(key):
            writer.note(f"is left out: {why}.", key)
    if entries.problems:
        raise ConfigError(problems=entries.problems)
    return Imported(document=writer.document, notes=tuple(writer.notes), comments=writer.comments)


def _check(entries: Entries) -> None:
    """Refuse what contradicts itself."""
    values = entries.values
    for side in "LR":
        key = f"IP-{side}-Vers"
        if key not in entries.lines:
            entries.refuse(key, "is missing", "add the key")
        elif values.get(key) == 5:
            entries.refuse(key, "5 is not an IP version", "write 4 or 6")
    if not values.get("Forward", 1) and not values.get("Reverse", 1):
        entries.refuse("Reverse", "is 0, as is Forward: nothing would be sent", "write 1 for one of them")
    for name in (*(f"{way}-{port}" for way in ("Fwd", "Rev") for port in ("sport", "dport")), "IP-L", "IP-R"):
        low, high = values.get(f"{name}-min"), values.get(f"{name}-max")
        if low is not None and high is not None and low > high:
            entries.refuse(f"{name}-max", f"{high} is below the {low} of {name}-min", "write the lower end as min")
    ports, addresses = values.get("Enumerate-ports", 0), values.get("Enumerate-ips", 0)
    if ports and addresses and ports != addresses:
        entries.refuse("Enumerate-ips", f"is {addresses}, Enumerate-ports {ports}", "write the same for both, or 0")


def _technology(writer: Writer) -> tuple[Technology, SideName | None]:
    """Return what the gateway does, and the side of the Initiator if it is stateful."""
    stateful = writer.value("Stateful", 0)
    inside: SideName | None = None if not stateful else "left" if stateful == 1 else "right"
    first = inside or "left"
    families = tuple(f"ipv{writer.value(f'IP-{LETTER[side]}-Vers')}" for side in (first, OPPOSITE[first]))
    plain = (row for row in TECHNOLOGIES.values() if not (row.has_rules or row.has_tunnels or row.in_a_row))
    (row,) = (row for row in plain if row.families == families and row.is_stateful == (inside is not None))
    return row, inside


def _family(writer: Writer, side: SideName) -> int:
    return int(writer.value(f"IP-{LETTER[side]}-Vers"))


def _used(writer: Writer, key: str) -> Any:
    """Return an address; None where it is missing or 0, which siitperf does not use."""
    value = writer.value(key)
    return None if value is None or int(value) == 0 else value


def _pair(writer: Writer, side: SideName) -> tuple[IPv4Address | None, IPv6Address | None, tuple[str, str]]:
    """Return the IPv4 and the IPv6 address of the host of a side, one real and one as the other family sees it."""
    letter = LETTER[side]
    real, virtual = ("Real", "Virt") if _family(writer, side) == 4 else ("Virt", "Real")
    keys = (f"IPv4-{letter}-{real}", f"IPv6-{letter}-{virtual}")
    return _used(writer, keys[0]), _used(writer, keys[1]), keys


def _translation(writer: Writer, technology: Technology, inside: SideName | None) -> None:
    """Say how the gateway translates addresses: by a prefix if that explains all of them, else one by one."""
    if not technology.is_translation:
        return
    sides: tuple[SideName, ...] = SIDES if inside is None else (OPPOSITE[inside],)
    prefixes: set[IPv6Network] = set()
    pairs: list[tuple[IPv4Address, IPv6Address, SideName]] = []
    keys: list[str] = []
    for side in sides:
        ipv4, ipv6, names = _pair(writer, side)
        keys += names
        if ipv6 is None or (ipv4 is None and inside is None):
            missing = names[1] if ipv6 is None else names[0]
            writer.entries.refuse(missing, "is missing, and the other side sends to it", "add the address")
            continue
        embedded = IPv4Address(int(ipv6) & 0xFFFFFFFF)
        if ipv4 is None or ipv4 == embedded:
            prefixes.add(IPv6Network((int(ipv6) >> 32 << 32, 96)))
            ipv4 = embedded
        else:
            prefixes.add(IPv6Network("::/0"))
        pairs.append((ipv4, ipv6, side))
    if len(prefixes) == 1 and (prefix := next(iter(prefixes))).prefixlen == 96:
        writer.put("gateway.prefix", str(prefix), *keys)
        if prefix == WELL_KNOWN_PREFIX and not all(ipv4.is_global for ipv4, _, _ in pairs):
            writer.put("gateway.well_known_prefix_allowed", True, *keys)
    elif pairs:
        writer.put("gateway.eam", [_mapping(writer, *pair) for pair in pairs], *keys)


def _mapping(writer: Writer, ipv4: IPv4Address, ipv6: IPv6Address, side: SideName) -> dict[str, str]:
    if not writer.value(f"IP-{LETTER[side]}-var", 0):
        return {"ipv4": f"{ipv4}/32", "ipv6": f"{ipv6}/128"}
    return {
        "ipv4": f"{IPv4Address(int(ipv4) >> 16 << 16)}/16",
        "ipv6": f"{IPv6Address(int(ipv6) >> 16 << 16)}/112",
    }


def _testbed(writer: Writer) -> None:
    keys = [
        key
        for way, names in (("Forward", ("CPU-L-Send", "CPU-R-Recv")), ("Reverse", ("CPU-R-Send", "CPU-L-Recv")))
        for key in names
        if writer.value(way, 1) and writer.value(key) is not None
    ]
    writer.put("testbed.kind", "ports")
    if keys:
        writer.put("testbed.cores", list(dict.fromkeys(writer.value(key) for key in keys)), *keys)


def _side(writer: Writer, side: SideName, *, mixed: bool, inside: SideName | None) -> None:
    """Hosts of one side, and the gateway's address there."""
    letter, family = LETTER[side], _family(writer, side)
    gateway_mac = f"MAC-{letter}-DUT"
    if writer.value(gateway_mac) is not None:
        writer.put(f"{side}.gateway_mac", writer.value(gateway_mac), gateway_mac)
    else:
        writer.note(f"add {side}.gateway_mac, or the gateway's address as {side}.ipv{family}.gateway.", gateway_mac)
    key = f"IPv{family}-{letter}-Real"
    address, keys = _used(writer, key), [key]
    if address is None and inside == OPPOSITE[side] and family == 4:  # only its representation is used
        _, virtual, names = _pair(writer, side)
        address = None if virtual is None else IPv4Address(int(virtual) & 0xFFFFFFFF)
        keys = [names[1]]
    if address is None:
        writer.entries.refuse(key, "is missing, and frames are sent from it", "add the address")
        return
    host: dict[str, Any] = {"address": str(address)}
    if writer.value(f"IP-{letter}-var", 0):
        host["hosts"] = _hosts(writer, side, family, inside)
        keys += [f"IP-{letter}-var", f"IP-{letter}-min", f"IP-{letter}-max"]
    writer.put(f"{side}.ipv{family}", host, *keys)
    native = f"IPv6-{letter}-Real"
    if family == 4 and _used(writer, native) is not None:
        writer.put(f"{side}.ipv6", {"address": str(_used(writer, native))}, native)
    elif family == 4 and mixed:
        writer.entries.refuse(native, "is missing, and background frames are sent from it", "add the address")


def _hosts(writer: Writer, side: SideName, family: int, inside: SideName | None) -> dict[str, Any]:
    letter = LETTER[side]
    represented = inside == OPPOSITE[side] and family == 4 and _family(writer, OPPOSITE[side]) == 6
    key = f"IPv{6 if represented else family}-{letter}-offset"
    offset = writer.value(key, 14 if family == 6 or represented else 2) - (12 if represented else 0)
    if offset < 0:
        writer.entries.refuse(key, "lies before the IPv4 address that the IPv6 address holds", "write 12, 13 or 14")
    low, high = writer.value(f"IP-{letter}-min", 0), writer.value(f"IP-{letter}-max", 65535)
    return {"offset": offset, "mode": MODES[writer.value(f"IP-{letter}-var")], "range": f"{low}-{high}"}


def _traffic(writer: Writer, inside: SideName | None) -> None:
    ways = [way for way in ("Forward", "Reverse") if writer.value(way, 1)]
    direction = "bidirectional" if len(ways) == 2 else ways[0].lower()
    writer.put("traffic.direction", direction, "Forward", "Reverse")
    for way, name, nets in (("Fwd", "forward", "Num-R-Nets"), ("Rev", "reverse", "Num-L-Nets")):
        if name.capitalize() not in ways:
            continue
        table: dict[str, Any] = {}
        keys = []
        for port, key in (("sport", "source_ports"), ("dport", "destination_ports")):
            if inside is None:
                table[key] = _ports(writer, way, port)
                keys += [f"{way}-var-{port}", f"{way}-{port}-min", f"{way}-{port}-max"]
        if writer.value(nets, 1) > 1:
            if inside is not None:
                writer.note("a stateful gateway is measured with one destination network.", nets)
            else:
                table["destination_networks"] = writer.value(nets)
                keys.append(nets)
        if table:
            writer.put(f"traffic.{name}", table, *keys)


def _ports(writer: Writer, way: str, port: str) -> dict[str, str]:
    mode = MODES[writer.value(f"{way}-var-{port}", 0)]
    if mode == "fixed":
        return {"mode": mode, "range": str(FIXED_SOURCE_PORT if port == "sport" else FIXED_DESTINATION_PORT)}
    return {"mode": mode, "range": _range(writer, way, port)}


def _range(writer: Writer, way: str, port: str) -> str:
    default = (1024, 65535) if port == "sport" else (1, 49151)
    low, high = (writer.value(f"{way}-{port}-{end}", each) for end, each in zip(("min", "max"), default, strict=True))
    if low == 0:
        writer.note("port 0 is not a valid port: the range starts at 1 here.", f"{way}-{port}-min")
        low = 1
    return f"{low}-{max(low, high)}"


def _connections(writer: Writer, inside: SideName) -> None:
    """Four-tuples of the Initiator, and the orders of both sides."""
    way = "Fwd" if inside == "left" else "Rev"
    ports, addresses = writer.value("Enumerate-ports", 0), writer.value("Enumerate-ips", 0)
    for port, key, fixed in (
        ("sport", "source_ports", FIXED_SOURCE_PORT),
        ("dport", "destination_ports", FIXED_DESTINATION_PORT),
    ):
        varies = writer.value(f"{way}-var-{port}", 0)
        names = (f"{way}-{port}-min", f"{way}-{port}-max")
        if ports or (varies and not addresses):
            writer.put(f"connections.{key}", _range(writer, way, port), *names)
        else:
            writer.put(f"connections.{key}", str(fixed), f"{way}-var-{port}")
            if varies:
                writer.note("ports that vary without being enumerated cannot be combined with enumerated addresses"
                            ": they are fixed here.", f"{way}-var-{port}")  # fmt: skip
    if not ports and not addresses:
        writer.note(
            "no enumeration: four-tuples would repeat. Connections are enumerated here; frames with"
            " repeated four-tuples are a separate procedure.",
            "Enumerate-ports",
        )
    writer.put("connections.order", MODES[ports or addresses or 3], "Enumerate-ports", "Enumerate-ips")
    writer.put("connections.read_order", MODES[writer.value("Responder-tuples", 0)], "Responder-tuples")
    orders = list(dict.fromkeys(_phase_two_orders(writer, way)))
    writer.put("connections.send_order", orders[0], f"{way}-var-sport", f"{way}-var-dport")
    if len(orders) > 1:
        writer.note(
            f"source and destination ports vary in different ways in phase 2; here connections do as {orders[0]}.",
            f"{way}-var-sport",
            f"{way}-var-dport",
        )
    writer.note("the gateway's public addresses are not in the file: add gateway.pool.", "Stateful")


def _phase_two_orders(writer: Writer, way: str) -> Iterator[str]:
    """Yield how the Initiator's four-tuples vary in phase 2, of each part that varies at all."""
    varying = [
        writer.value(key, 0)
        for key in (f"{way}-var-sport", f"{way}-var-dport", "IP-L-var", "IP-R-var")
        if writer.value(key, 0)
    ]
    yield from (MODES[value] for value in varying or [0])
