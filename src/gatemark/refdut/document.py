"""The configuration of the reference gateway as frozen dataclasses, and its TOML text. Pure.

Every attribute that has a unit names it; the key in the file does not, because its value does. The attributes of a
table stand in the order of its keys. `docs/reference/refdut.md` has its tables of keys from their docstrings. None is
a key that is left out, with the default of the gateway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any, Literal

from gatemark.results.toml_text import to_toml
from gatemark.technology import DontFragmentRule, EcnMode, MappingKind, ReferenceMode, SideName

Overflow = Literal["refuse", "drop", "evict_oldest", "forward_untranslated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One side of the gateway."""

    port: str
    """Short name as in the [campaign file](campaign-file.md); not `ring`, which joins two ports of one process."""
    mtu: int | None = None
    """576 to 9500 octets; longer packets are dropped, never fragmented. Default: `1500`."""
    vlan: int | None = None
    """VLAN ID, 1 to 4094: other frames are not the gateway's."""
    ipv4: str | None = None
    """The gateway's own IPv4 address; without it the gateway answers for no IPv4 address and asks for none."""
    ipv6: str | None = None
    """The same for IPv6."""
    mac: str | None = None
    """The side's own link-layer address. Default: the port's."""
    peer_mac: str | None = None
    """Where frames are sent to; if it is given, nothing is learned. Default: learned."""
    ring_frames: int | None = None
    """Receive and transmit ring, 16 to 65536. Default: `4096`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRule:
    """One rule of a MAP domain (RFC 7597 section 5) or of a 6rd domain (RFC 5969 section 4)."""

    ipv6: str
    """The rule's IPv6 prefix."""
    ipv4: str
    """The rule's IPv4 prefix."""
    ea_bits: int | None = None
    """EA bits, 0 to 48: IPv4 suffix, then PSID. Required, except in `sixrd_br`, whose rules have only the prefixes."""
    psid_offset: int | None = None
    """Bits of a port before the PSID, 0 to 15. Default: `6`, of an `lwaftr` `0`."""
    psid_bits: int | None = None
    """Length of the PSID of a rule without EA bits, which is for one customer; several may share an address of 32
    bits. Default: `0`."""
    psid: int | None = None
    """PSID of such a rule. Default: `0`."""
    dmr: str | None = None
    """MAP-T: prefix for all that is outside the domain (RFC 7599 section 5.1), any length of RFC 6052 section 2.2.
    Required in `map_t_br` and `map_t_ce`."""
    fmr: bool | None = None
    """`map_t_ce`, `map_e_ce`: packets for other customers of this rule go to them directly. Default: `false`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """How addresses are translated."""

    prefix: str | None = None
    """`siit`, `nat64`, `nat46`: translation prefix, any length of RFC 6052 section 2.2."""
    eam: tuple[tuple[str, str], ...] = ()
    """The same modes: list of `{ipv4 = "PREFIX", ipv6 = "PREFIX"}` (RFC 7757), longest prefix first."""
    pool: tuple[str, ...] = ()
    """List of prefixes: public addresses, in the outside's family. Required of a NAT; not in MAP modes, `lwaftr` and
    `sixrd_br`."""
    pool_ports: tuple[int, int] | None = None
    """Public ports of each of them. Default: `"1024-65535"`."""
    mapping: MappingKind | None = None
    """NAT modes, `aftr` and customer edges: `endpoint_independent` or `endpoint_dependent` (RFC 4787 section 4.1),
    [below](#table-nat-modes-aftr-map_t_ce-map_e_ce-and-lwb4). Default: `"endpoint_independent"`."""
    domains: tuple[MapRule, ...] = ()
    """List of MAP rules, [below](#map-t), or of 6rd. Required of MAP modes, `lwaftr` and `sixrd_br`."""
    end_user_prefix: str | None = None
    """The customer's IPv6 prefix: with its rule it gives MAP address, IPv4 address and ports. Required of `map_t_ce`,
    `map_e_ce` and `lwb4`."""
    hop_limit_decrement: int | None = None
    """By how much a hop limit decreases, 1 to 254. Default: `1`."""
    dont_fragment_rule: DontFragmentRule | None = None
    """DF of the IPv4 packets that it makes: `rfc7915` (set above 1260 octets) or `rfc6145` (always set). Default:
    `"rfc7915"`."""
    lowest_ipv6_mtu: int | None = None
    """An IPv4 packet without DF that would be longer as IPv6 is dropped: it fragments nothing. Default: `65535`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunnel:
    """Where tunnels end, and the header of what leaves in one (RFC 2473)."""

    relay: str
    """The border relay's or AFTR's end of all tunnels, which is the gateway's own except in `b4`, `map_e_ce` and
    `lwb4`: an IPv6 address that no customer has; in `sixrd_br` an IPv4 address. It may be that of a side; frames are
    sent to the side's own address in either case."""
    subscriber: str | None = None
    """The gateway's own end: an IPv6 address. Required in `b4`."""
    hop_limit: int | None = None
    """Of what leaves in a tunnel, 1 to 255. Default: `64`."""
    traffic_class: int | None = None
    """Of what leaves in a tunnel, 0 to 255. Default: that of the packet."""
    ecn: EcnMode | None = None
    """Its last two bits: `normal` or `compatibility` (RFC 6040 section 4.1), or `full_functionality` (RFC 3168 section
    9.1.1). Default: as the traffic class."""
    dont_fragment: bool | None = None
    """`sixrd_br`: DF of what leaves in a tunnel. With it identifications are 0, without it they count up from 0.
    Default: `false`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The connection table of a NAT mode or of a customer edge."""

    size: int
    """Connections that it holds, 1 to 100,000,000. Default: `1000000`."""
    overflow: Overflow = "refuse"
    """What becomes of a new connection beyond them, below."""
    establishment_rate: int | None = None
    """New connections a second; a frame for one more is dropped."""
    establishment_burst: int | None = None
    """New connections at once after a pause; in T seconds burst + rate x T of them. Default: `100`."""
    udp_timeout_ns: int | None = None
    """A connection that no frame of either direction has used for so long is deleted; `"0"`: never. Default:
    `"300 s"`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which frames are taken; exactly one of the four ways."""

    every: int | None = None
    """Frames n, 2n, 3n, ..., counted from 1."""
    probability: float | None = None
    """Each frame with this probability, on its own."""
    first: int | None = None
    """The first n frames."""
    window_ns: tuple[int, int] | None = None
    """Frames that arrive from `from` (default 0) on and before `to`, counted from the direction's first test frame."""

    def to_document(self) -> dict[str, Any]:
        """Return it as its table in the file."""
        ways = [name for name in ("every", "probability", "first", "window_ns") if getattr(self, name) is not None]
        if len(ways) != 1:
            raise ValueError(f"a selector has exactly one of every, probability, first and window_ns, not {ways}")
        if self.window_ns is not None:
            return {"from": _duration(self.window_ns[0]), "to": _duration(self.window_ns[1])}
        return {ways[0]: getattr(self, ways[0])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """How long frames stay in the gateway, beside its queue."""

    kind: Literal["fixed", "uniform", "periodic"]
    values_ns: tuple[int, ...]
    """fixed: one; uniform: the smallest and the largest; periodic: frame j gets number j modulo their count."""

    def to_document(self) -> dict[str, Any]:
        """Return it as its table in the file."""
        texts = [_duration(value) for value in self.values_ns]
        match self.kind:
            case "fixed":
                return {"kind": self.kind, "value": texts[0]}
            case "uniform":
                return {"kind": self.kind, "minimum": texts[0], "maximum": texts[1]}
            case "periodic":
                return {"kind": self.kind, "values": texts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What happens to the test frames of one direction. If nothing is set, all are forwarded at once."""

    capacity: int | None = None
    """Frames/s that it serves; none: no limit and no queue."""
    queue: int | None = None
    """Frames that may wait in addition to the one in service. Default: `1000`."""
    flow_cost_ns: int | None = None
    """How much longer a frame takes for each flow beyond the first, [below](#capacity-as-a-known-truth)."""
    recovery_ns: int | None = None
    """Time after the last frame that found the queue full in which frames are lost."""
    recovery_loss: int | None = None
    """One in this many of them is lost. Default: `2`."""
    delay: Delay | None = None
    """`{kind = "fixed", value = ..}`, `{kind = "uniform", minimum = .., maximum = ..}`, or
    `{kind = "periodic", values = [..]}`: frame j gets number j modulo their count."""
    keep_order: bool | None = None
    """No frame overtakes another because its delay is shorter: it waits. Default: `true`."""
    loss: tuple[Selector, ...] = ()
    """List of selectors."""
    duplicate: tuple[Selector, ...] = ()
    """List of selectors; the copy leaves right behind its frame."""
    reorder: tuple[tuple[Selector, int], ...] = ()
    """List of selectors, each with `by`: the number of later frames that leave first (1 to 1000; it waits 100 ms for
    them)."""
    corrupt: tuple[tuple[str, Selector], ...] = ()
    """List of selectors, each with `field`, below."""

    def to_document(self) -> dict[str, Any]:
        """Return it as its table in the file; empty if nothing is set."""
        return _without_none(
            {
                "capacity": self.capacity,
                "queue": self.queue,
                "flow_cost": None if self.flow_cost_ns is None else _duration(self.flow_cost_ns),
                "recovery": None if self.recovery_ns is None else _duration(self.recovery_ns),
                "recovery_loss": self.recovery_loss,
                "delay": None if self.delay is None else self.delay.to_document(),
                "keep_order": self.keep_order,
                "loss": [selector.to_document() for selector in self.loss] or None,
                "duplicate": [selector.to_document() for selector in self.duplicate] or None,
                "reorder": [{**selector.to_document(), "by": by} for selector, by in self.reorder] or None,
                "corrupt": [{"field": name, **selector.to_document()} for name, selector in self.corrupt] or None,
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All of the reference gateway's file."""

    mode: ReferenceMode
    """What the gateway is, [below](#modes)."""
    control: str
    """Path of the Unix socket that takes commands. Default: none."""
    left: Port
    """The left side, [below](#left-and-right)."""
    right: Port
    """The right side."""
    seed: int = 1
    """Of all pseudorandom choices: the same seed makes the same ones again."""
    cpu: int | None = None
    """Core to which the thread is bound."""
    huge_pages: bool | None = None
    """Whether they may be used. Default: `true`."""
    held_frames: int | None = None
    """Frames that a direction can hold, waiting and delayed; their buffers are made at the start. Default: 16,384, with
    a capacity that number in addition to the queue."""
    inside: SideName | None = None
    """NAT modes and `aftr`: side of the Initiator; `map_t_br`, `map_e_br`, `sixrd_br`: of the domain; `lwaftr`: of the
    softwires; customer edges and `b4`: of the customer. Default: `"left"`."""
    translation: Translation = field(default_factory=Translation)
    """How addresses are translated, [below](#translation)."""
    tunnel: Tunnel | None = None
    """Modes with tunnels: where these end."""
    table: Table | None = None
    """NAT modes, `aftr` and customer edges: the table of connections."""
    forward: Flow = field(default_factory=Flow)
    """What happens to test frames left to right, [below](#forward-and-reverse)."""
    reverse: Flow = field(default_factory=Flow)
    """The same right to left."""

    def to_document(self) -> dict[str, Any]:
        """Return the file as nested tables."""
        settings = self.translation
        translation = _without_none(
            {
                **asdict(settings),
                "eam": [{"ipv4": ipv4, "ipv6": ipv6} for ipv4, ipv6 in settings.eam] or None,
                "pool": list(settings.pool) or None,
                "pool_ports": None
                if settings.pool_ports is None
                else f"{settings.pool_ports[0]}-{settings.pool_ports[1]}",
                "domains": [_without_none(asdict(rule)) for rule in settings.domains] or None,
            }
        )
        tables = {
            "left": _without_none(asdict(self.left)),
            "right": _without_none(asdict(self.right)),
            "translation": translation,
            "tunnel": {} if self.tunnel is None else _without_none(asdict(self.tunnel)),
            "table": {} if self.table is None else _table(self.table),
            "forward": self.forward.to_document(),
            "reverse": self.reverse.to_document(),
        }
        names = ("mode", "seed", "control", "cpu", "huge_pages", "held_frames", "inside")
        top = {name: getattr(self, name) for name in names}
        return {**_without_none(top), **{name: table for name, table in tables.items() if table}}

    def to_toml(self) -> str:
        """Return the text of the file."""
        return to_toml(self.to_document())


def _table(table: Table) -> dict[str, Any]:
    timeout = None if table.udp_timeout_ns is None else _duration(table.udp_timeout_ns)
    return _without_none({**asdict(table), "udp_timeout_ns": None, "udp_timeout": timeout})


def _without_none(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}


def _duration(nanoseconds: int) -> str:
    """Write a time exactly, in the largest unit in which it is a whole number."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if Fraction(nanoseconds, size).denominator == 1:
            return f"{nanoseconds // size} {unit}"
    return f"{nanoseconds} ns"
