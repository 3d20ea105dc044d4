"""To which technologies, test beds and procedures a key applies, and with which others: rules at its field. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gatemark.bed_kinds import BedKind, bed_kinds_where
from gatemark.technology import Technology, technologies_where


class Measured(Protocol):
    """What the rules ask of a procedure: its table says it."""

    key: ClassVar[str]
    sends_udp: ClassVar[bool]
    sends_echo: ClassVar[bool]
    lets_flows_start_apart: ClassVar[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """Rule of a field: it applies only to some technologies, only to some test beds, or only to some procedures."""

    technology: Callable[[Technology], bool] | None = None
    bed: Callable[[BedKind], bool] | None = None
    procedure: Callable[[Measured], bool] | None = None
    but: str | None = None
    """Key of the table for which the rule does not hold."""
    lack: str
    """What the others lack: "which keeps no state"."""
    words: str
    """To which it applies, for the description of the file: "stateful gateways"."""

    def refusal(
        self, technology: Technology | None, kind: BedKind | None, procedures: Sequence[Measured] = ()
    ) -> tuple[str, str] | None:
        """Say why a key does not apply here, and what to do; None if it does. None stands for what is not known."""
        leave = "leave it out" if self.but is None else f"leave out all but {self.but}"
        if self.technology is not None and technology is not None and not self.technology(technology):
            fix = f"{leave}, or set technology to {technologies_where(self.technology)}"
            return f"does not apply to {technology.name}, {self.lack}", fix
        if self.bed is not None and kind is not None and not self.bed(kind):
            fix = f"{leave}, or set testbed.kind to {bed_kinds_where(self.bed)}"
            return f"does not apply to kind = {kind.name}, {self.lack}", fix
        others = [] if self.procedure is None else [table.key for table in procedures if not self.procedure(table)]
        if others:
            tables = " and ".join(f"[{key}]" for key in others)
            return f"does not apply to {tables}, {self.lack}", f"{leave}, or measure {tables} in a campaign without it"
        return None

    def spares(self, value: object) -> bool:
        """Whether a table has no other key than the one for which the rule does not hold."""
        return self.but is not None and isinstance(value, BaseModel) and {key for key, *_ in _set(value)} <= {self.but}


@dataclass(frozen=True, slots=True, kw_only=True)
class With:
    """Rule of a field: it applies only with another key, of the same table or of the nearest one around it that has it.

    Where no table has that key, as in a recipe, the rule says nothing.
    """

    key: str
    holds: Callable[[Any], bool]
    """Whether it applies with a value of the other key."""
    write: str | None = None
    """What to write for it, as the file has it: `mode = "constant_rate"`; None to leave the other key out."""
    lack: str
    """Why it does not apply otherwise: "in a closed loop the gateway sets the pace"."""

    def words(self, at: str = "") -> str:
        """Say with what it applies; `at` is the path of the table of the other key, where it is another table."""
        return f"{'without' if self.write is None else 'with'} {at}{self.write or self.key}"

    def refusal(self, tables: Sequence[tuple[str, BaseModel]]) -> tuple[str, str] | None:
        """Say why a key does not apply, and what to do; None if it does.

        `tables` are that of the key and those around it, each with its path and the innermost first.
        """
        at, table = next(((at, table) for at, table in tables if self.key in type(table).model_fields), ("", None))
        if table is None or self.holds(getattr(table, self.key)):
            return None
        place = "" if table is tables[0][1] else at
        fix = f"leave it out, or {'leave out' if self.write is None else 'write'} {place}{self.write or self.key}"
        return f"applies only {self.words(place)}: {self.lack}", fix


def _to(technology: Callable[[Technology], bool], lack: str, words: str) -> Only:
    return Only(technology=technology, lack=lack, words=words)


def _on_beds(bed: Callable[[BedKind], bool], lack: str) -> Only:
    return Only(bed=bed, lack=lack, words=f"kind {bed_kinds_where(bed)}")


WITH_TRANSLATION = _to(
    lambda row: row.translates_within,
    "which does not translate between IPv4 and IPv6",
    "translators, and two of them in a row",
)
TRANSLATORS = _to(lambda row: row.is_translation, "which does not translate between IPv4 and IPv6", "translators")
BY_PREFIX = _to(
    lambda row: row.translates_by_prefix,
    "which does not translate by prefix or mappings",
    "translators without MAP rules",
)
WITH_IPV4 = _to(lambda row: "ipv4" in row.packet_families, "which forwards no IPv4", "gateways that forward IPv4")
IPV6_ALONE = _to(
    lambda row: set(row.packet_families) == {"ipv6"} and not row.is_stateful,
    "which need not forward extension headers (RFC 8219 section 5.2)",
    "IPv6 routers and 6rd border relays",
)
WITH_IPV4_OUT = _to(
    lambda row: row.is_translation or row.families == ("ipv4", "ipv4"),
    "which sends no IPv4",
    "translators, and where two of them are a gateway from IPv4 to IPv4",
)
STATEFUL = _to(lambda row: row.is_stateful, "which keeps no state", "stateful gateways")
STATELESS = _to(
    lambda row: not row.is_stateful,
    "whose destinations are those of hosts.range (RFC 9693 section 4.1)",
    "stateless gateways",
)
WITH_POOL = _to(
    lambda row: row.is_stateful and not row.is_edge,
    "which has no pool of addresses",
    "stateful gateways other than customer edges",
)
HAS_DUTIES = _to(
    lambda row: row.has_duties,
    "of which no RFC says what becomes of single packets",
    "gateways with duties for single packets",
)
WITH_RULES = _to(lambda row: row.has_rules, "which has no customer edges", "gateways of MAP and lightweight 4over6")
WITH_MAP_RULES = _to(lambda row: row.has_rules and not row.has_bindings, "which has no MAP rules", "MAP gateways")
MAP_EDGES = _to(
    lambda row: row.is_edge and not row.has_bindings and row.in_a_row is None,
    "which is not a customer edge of MAP",
    "customer edges of MAP",
)
MAP_T = _to(
    lambda row: row.has_default_rules,
    "whose customer edges reach the outside by tunnels (RFC 7597 section 5.4)",
    "gateways of MAP-T",
)
EDGES_OF_TESTER = _to(lambda row: row.has_edges, "which is the only customer edge itself", "border relays and lwAFTRs")
EDGE = _to(lambda row: row.is_edge, "whose customer edges are the Tester's", "customer edges")
NOT_EDGE = _to(
    lambda row: not row.is_edge, "whose tunnel begins at its MAP address", "gateways other than customer edges"
)
WITH_BINDINGS = _to(lambda row: row.has_bindings, "which has no softwires", "gateways of lightweight 4over6")
WITH_TUNNELS = _to(lambda row: row.has_tunnels, "which has no tunnels", "gateways with tunnels")
FREE_ANSWERS = _to(
    lambda row: not (row.has_tunnels and row.is_subscriber),
    "behind whose tunnels nothing answers echo requests",
    "gateways without tunnels, or with those of the clients",
)
SIXRD = _to(lambda row: row.delegates_prefixes, "which delegates no prefixes", "6rd border relays")
IN_A_ROW = _to(lambda row: row.in_a_row is not None, "which is one gateway", "two gateways in a row")
WITH_B4S = _to(lambda row: row.has_b4s, "which has no B4s", "DS-Lite AFTRs")
WITH_GATEWAY = _on_beds(lambda kind: kind.has_gateway, "which has no gateway")
CONTROLLED = _on_beds(lambda kind: kind.takes_control, "whose gateway, if any, gatemark makes itself")
BOOTED = _on_beds(lambda kind: kind.takes_control, "whose gateway, if any, does not boot")
CONTROLLED_BUT_LIMITS = replace(CONTROLLED, but="limits")
ELSEWHERE = _on_beds(
    lambda kind: kind.has_gateway and not kind.gateway_is_local,
    "whose gateway, if any, has the CPUs of testbed.gateway_cores",
)
WITH_RECIPE = _on_beds(lambda kind: kind.has_recipe, "which has no recipes")
WITH_KERNELS = _on_beds(lambda kind: kind.has_kernels, "whose gateway cannot have a kernel of its own")
LOCAL = _on_beds(lambda kind: kind.gateway_is_local, "whose gateway does not run on this host")
SEEN = _on_beds(lambda kind: kind.sees_host, "where the gateway's host is not read")
UDP = Only(
    procedure=lambda table: table.sends_udp, lack="whose frames are echo requests", words="procedures that send UDP"
)
NO_ECHO = Only(
    procedure=lambda table: not table.sends_echo,
    lack="whose packets are for hosts behind the border relay",
    words="procedures that send no echo messages",
)
CONSTANT_LOAD = Only(
    procedure=lambda table: table.lets_flows_start_apart,
    lack="whose load is not constant",
    words="throughput, frame loss rate and delay",
)
BOOTING = With(
    key="boot",
    holds=lambda boot: boot != "never",
    write='boot = "column", "repetition" or "trial"',
    lack="nothing boots the host",
)
BOOTING_THROUGHOUT = replace(BOOTING, lack="trials before and after that boot would see another host")
NO_BOOT_IN_PLACE = With(
    key="boot",
    holds=lambda boot: boot != "trial",
    write='boot = "never", "column" or "repetition"',
    lack="every trial begins with a boot in its place",
)
VARIED = With(
    key="mode",
    holds=lambda mode: mode != "fixed",
    write='mode = "pseudorandom", "increasing" or "decreasing"',
    lack="fixed uses the address as written",
)
ON_LINK = With(
    key="address_mode",
    holds=lambda mode: mode == "onlink",
    write='address_mode = "onlink"',
    lack="the gateway sees the router's MAC address only",
)
BEHIND_ROUTER = With(
    key="address_mode",
    holds=lambda mode: mode == "nexthop",
    write='address_mode = "nexthop"',
    lack="every host is a neighbour of the gateway",
)


def refusals(
    table: BaseModel,
    technology: Technology | None,
    kind: BedKind | None,
    procedures: Sequence[Measured] = (),
    *,
    skip: frozenset[str] = frozenset(),
    at: str = "",
    around: tuple[tuple[str, BaseModel], ...] = (),
) -> Iterator[tuple[str, str, str]]:
    """Yield each key of a table and its tables that does not apply: its path, why, and what to do.

    Keys of `skip` are left out. `around`: the tables that this one is in, each with its path and the innermost first.
    """
    tables = ((at, table), *around)
    for name, field, value in _set(table):
        key = f"{at}{name}"
        if key in skip:
            continue
        told = [rule.refusal(tables) for rule in field.metadata if isinstance(rule, With)]
        if value:  # a no or 0 asks for nothing
            told += [rule.refusal(technology, kind, procedures) for rule in rules_of(field) if not rule.spares(value)]
        refusal = next(filter(None, told), None)
        if refusal is not None:
            yield (key, *refusal)
            continue
        for inner, part in _parts(key, value):
            if isinstance(part, BaseModel):
                yield from refusals(part, technology, kind, procedures, skip=skip, at=f"{inner}.", around=tables)


def _parts(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what may be tables in the value of a key, each with its path."""
    if isinstance(value, tuple):
        yield from ((f"{key}[{index}]", part) for index, part in enumerate(value))
    elif isinstance(value, dict):
        yield from ((f"{key}.{name}", part) for name, part in value.items())
    else:
        yield key, value


def _set(table: BaseModel) -> Iterator[tuple[str, FieldInfo, Any]]:
    """Yield each key with a value other than the default, and its field."""
    for name, field in type(table).model_fields.items():
        value = getattr(table, name)
        if value != field.get_default(call_default_factory=True):
            yield field.alias or name, field, value


def without_effect(table: BaseModel) -> Iterator[str]:
    """Yield the keys of a table that do not apply with its other keys, whatever their values."""
    for name, field in type(table).model_fields.items():
        if any(isinstance(rule, With) and rule.refusal([("", table)]) is not None for rule in field.metadata):
            yield field.alias or name


def rules_of(field: FieldInfo) -> list[Only]:
    """Return to what a key applies."""
    return [rule for rule in field.metadata if isinstance(rule, Only)]
