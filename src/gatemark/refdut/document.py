"""The configuration of the reference gateway as frozen dataclasses, and its TOML text. Pure.

Every attribute that has a unit names it; the key in the file does not, because its value does. The attributes of a
table stand in the order of its keys. What the keys mean is in `docs/reference/refdut.md`.
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
    """Short name, as the engine's ports have it."""
    mtu: int | None = None
    vlan: int | None = None
    ipv4: str | None = None
    ipv6: str | None = None
    """The gateway's own address of each family."""
    mac: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRule:
    """One rule of a MAP domain (RFC 7597 section 5) or of a 6rd domain (RFC 5969 section 4)."""

    ipv6: str
    ipv4: str
    """Prefixes of the rule."""
    ea_bits: int | None = None
    """None: 6rd, which has all bits behind the IPv4 prefix."""
    psid_offset: int | None = None
    psid_bits: int | None = None
    psid: int | None = None
    """Of a rule without EA bits."""
    dmr: str | None = None
    """MAP-T: prefix for all that is outside the domain (RFC 7599 section 5.1)."""
    fmr: bool | None = None
    """A customer edge sends to other customers of it directly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """How addresses are translated."""

    prefix: str | None = None
    """RFC 6052."""
    eam: tuple[tuple[str, str], ...] = ()
    """IPv4 prefix and IPv6 prefix of each explicit address mapping (RFC 7757)."""
    pool: tuple[str, ...] = ()
    pool_ports: tuple[int, int] | None = None
    mapping: MappingKind | None = None
    """NAT modes and customer edges (RFC 4787 section 4.1)."""
    domains: tuple[MapRule, ...] = ()
    """MAP rules of a border relay or customer edge."""
    end_user_prefix: str | None = None
    """Of the customer of a customer edge."""
    hop_limit_decrement: int | None = None
    dont_fragment_rule: DontFragmentRule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunnel:
    """Where tunnels end, and the header of what leaves in one (RFC 2473)."""

    relay: str
    """Address of the border relay or AFTR, which the gateway is or leads to."""
    subscriber: str | None = None
    """Address of the gateway's own end; of a subscriber only."""
    hop_limit: int | None = None
    traffic_class: int | None = None
    """None: that of the packet in the tunnel."""
    ecn: EcnMode | None = None
    """None: as the traffic class."""
    dont_fragment: bool | None = None
    """6rd."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The connection table of a NAT mode or of a customer edge."""

    size: int
    overflow: Overflow = "refuse"
    establishment_rate: int | None = None
    """New connections a second; None: no limit."""
    establishment_burst: int | None = None
    udp_timeout_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which frames are taken; exactly one of the four ways."""

    every: int | None = None
    """Frames n, 2n, 3n, ..., counted from 1."""
    probability: float | None = None
    first: int | None = None
    window_ns: tuple[int, int] | None = None
    """Frames that arrive from the first time until before the second, counted from the direction's first test frame."""

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
    """Frames per second; None: no limit."""
    queue: int | None = None
    """Frames that may wait beside the one in service."""
    flow_cost_ns: int | None = None
    """How much longer a frame takes for each flow beyond the first."""
    recovery_ns: int | None = None
    """How long, after the last frame that found the queue full, every `recovery_loss`-th frame is lost."""
    recovery_loss: int | None = None
    delay: Delay | None = None
    keep_order: bool | None = None
    loss: tuple[Selector, ...] = ()
    duplicate: tuple[Selector, ...] = ()
    reorder: tuple[tuple[Selector, int], ...] = ()
    """Selector, and how many later frames leave before the one taken."""
    corrupt: tuple[tuple[str, Selector], ...] = ()
    """Field that the Tester verifies, and the frames in which it is damaged."""

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
    control: str
    """Path of the Unix socket that takes commands."""
    left: Port
    right: Port
    seed: int = 1
    cpu: int | None = None
    held_frames: int | None = None
    """Frames that may wait or be delayed at once, of each direction; None: always enough."""
    inside: SideName | None = None
    """NAT and MAP modes: side of the Initiator, of the MAP domain, of the customer."""
    translation: Translation = field(default_factory=Translation)
    tunnel: Tunnel | None = None
    """Modes that have tunnels."""
    table: Table | None = None
    forward: Flow = field(default_factory=Flow)
    """Left to right."""
    reverse: Flow = field(default_factory=Flow)

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
        top = {name: getattr(self, name) for name in ("mode", "seed", "control", "cpu", "held_frames", "inside")}
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
