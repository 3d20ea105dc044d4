"""For which technologies and test beds a key makes sense: a rule at its field. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from gatemark.bed_kinds import BedKind, bed_kinds_where
from gatemark.technology import Technology, technologies_where


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """Rule of a field: it makes sense only for some technologies, or only on some test beds."""

    technology: Callable[[Technology], bool] | None = None
    bed: Callable[[BedKind], bool] | None = None
    lack: str
    """What the others lack: "which keeps no state"."""
    words: str
    """For which it is, for the description of the file: "stateful gateways"."""

    def refusal(self, technology: Technology | None, kind: BedKind | None) -> tuple[str, str] | None:
        """Say why a key does not apply here, and what to do; None if it does. None stands for what is not known."""
        if self.technology is not None and technology is not None and not self.technology(technology):
            fix = f"leave it out, or set technology to {technologies_where(self.technology)}"
            return f"does not apply to {technology.name}, {self.lack}", fix
        if self.bed is not None and kind is not None and not self.bed(kind):
            fix = f"leave it out, or set testbed.kind to {bed_kinds_where(self.bed)}"
            return f"does not apply to kind = {kind.name}, {self.lack}", fix
        return None


def _on_beds(bed: Callable[[BedKind], bool], lack: str) -> Only:
    return Only(bed=bed, lack=lack, words=f"kind {bed_kinds_where(bed)}")


WITH_TRANSLATION = Only(
    technology=lambda row: row.translates_within,
    lack="which does not translate between IPv4 and IPv6",
    words="translators, and two of them in a row",
)
TRANSLATORS = Only(
    technology=lambda row: row.is_translation,
    lack="which does not translate between IPv4 and IPv6",
    words="translators",
)
WITH_IPV4_OUT = Only(
    technology=lambda row: row.is_translation or row.families == ("ipv4", "ipv4"),
    lack="which sends no IPv4",
    words="translators, and where two of them are a gateway from IPv4 to IPv4",
)
STATEFUL = Only(technology=lambda row: row.is_stateful, lack="which keeps no state", words="stateful gateways")
WITH_RULES = Only(
    technology=lambda row: row.has_rules,
    lack="which has no customer edges",
    words="gateways of MAP and lightweight 4over6",
)
WITH_MAP_RULES = Only(
    technology=lambda row: row.has_rules and not row.has_bindings, lack="which has no MAP rules", words="MAP gateways"
)
MAP_EDGES = Only(
    technology=lambda row: row.is_edge and not row.has_bindings and row.in_a_row is None,
    lack="which is no customer edge of MAP",
    words="customer edges of MAP",
)
WITH_BINDINGS = Only(
    technology=lambda row: row.has_bindings, lack="which has no softwires", words="gateways of lightweight 4over6"
)
WITH_TUNNELS = Only(technology=lambda row: row.has_tunnels, lack="which has no tunnels", words="gateways with tunnels")
IN_A_ROW = Only(
    technology=lambda row: row.in_a_row is not None,
    lack="which is one gateway",
    words="two gateways in a row",
)
WITH_B4S = Only(technology=lambda row: row.has_b4s, lack="which has no B4s", words="DS-Lite AFTRs")
WITH_GATEWAY = _on_beds(lambda kind: kind.has_gateway, "which has no gateway")
CONTROLLED = _on_beds(lambda kind: kind.takes_control, "whose gateways gatemark makes itself")
WITH_RECIPE = _on_beds(lambda kind: kind.has_recipe, "which has no recipes")
WITH_KERNELS = _on_beds(lambda kind: kind.has_kernels, "whose gateway cannot have a kernel of its own")
LOCAL = _on_beds(lambda kind: kind.gateway_is_local, "whose gateway does not run on this host")
SEEN = _on_beds(lambda kind: kind.sees_host, "where the gateway's host is not read")


def refusals(
    table: BaseModel,
    technology: Technology | None,
    kind: BedKind | None,
    *,
    skip: frozenset[str] = frozenset(),
    at: str = "",
) -> Iterator[tuple[str, str, str]]:
    """Yield each key of a table and its tables that does not apply: its path, why, and what to do.

    A key counts only with a value of its own; keys of `skip` are left out.
    """
    for name, field in type(table).model_fields.items():
        value, key = getattr(table, name), f"{at}{field.alias or name}"
        if key in skip or value is None or value is False or value == field.get_default(call_default_factory=True):
            continue
        rules = (rule.refusal(technology, kind) for rule in field.metadata if isinstance(rule, Only))
        refusal = next((told for told in rules if told is not None), None)
        if refusal is not None:
            yield (key, *refusal)
        elif isinstance(value, BaseModel):
            yield from refusals(value, technology, kind, skip=skip, at=f"{key}.")
