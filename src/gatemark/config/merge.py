"""What a recipe tells the campaign, and how the two are merged. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Literal, TypeVar

from pydantic import BaseModel

from gatemark.config import defaults
from gatemark.config.check import SIDES, TABLE_KEYS, table_value
from gatemark.config.map_gateway import unmade_gateway
from gatemark.config.map_tables import MapGatewayModel, MapModel
from gatemark.config.model import CampaignFile
from gatemark.config.problems import problem, raise_if_any
from gatemark.config.tables import (
    EamEntry,
    GatewayAction,
    GatewayModel,
    GatewayTableModel,
    Ipv4Model,
    Ipv6Model,
    SideModel,
)
from gatemark.config.types import Span, write_text
from gatemark.errors import Problem
from gatemark.technology import TECHNOLOGIES, Family, SideName, TechnologyName

C = TypeVar("C", bound=CampaignFile)
_OPEN_KEYS = ("background_hop_limit_decrement", "zero_udp_checksum", "pool", "pool_ports", "mapping")
"""What the file may say of the gateway where the recipe is silent."""
_GATEWAY_KEYS = ("technology", "hop_limit_decrement", "prefix", "eam", "dont_fragment_rule", "inside", *_OPEN_KEYS)

_TABLE_ACTIONS: dict[str, GatewayAction] = {
    "size": "set_table_size",
    "hash_size": "set_hash_size",
    "udp_timeout": "set_udp_timeout",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeFacts:
    """What a recipe of a gateway tells the campaign. The sides have no port: the test bed makes it."""

    name: str
    technology: TechnologyName
    hop_limit_decrement: int
    background_hop_limit_decrement: int | None = None
    prefix: IPv6Network | str | None = None
    eam: tuple[EamEntry, ...] = ()
    dont_fragment_rule: Literal["rfc7915", "rfc6145"] | None = None
    zero_udp_checksum: bool | None = None
    inside: SideName | None = None
    """Stateful: side of the Initiator."""
    pool: tuple[IPv4Network | IPv6Network, ...] = ()
    pool_ports: Span | None = None
    mapping: Literal["endpoint_independent", "endpoint_dependent"] | None = None
    table: GatewayTableModel = field(default_factory=GatewayTableModel)
    """Stateful: what the recipe sets where the campaign file sets nothing."""
    actions: frozenset[GatewayAction] = frozenset()
    """Stateful: what the recipe has commands for."""
    setting_names: frozenset[str] = frozenset()
    """Settings of the user's own that the recipe has commands for."""
    map: MapModel | None = None
    """MAP-T: the domains of a campaign that has none."""
    map_gateway: MapGatewayModel | None = None
    """MAP-T: how the gateway is made of the campaign's rules; None: the recipe says it itself."""
    left: SideModel
    right: SideModel
    mtu: int = defaults.MTU


def merge_recipe(campaign: C, recipe: RecipeFacts) -> C:
    """Fill in from the recipe what the file leaves open.

    The file wins for everything that is the Tester's own, for the domains of MAP-T, and for the connection tracking
    table where the recipe has commands that set it up; a file that contradicts its recipe about the gateway is a
    ConfigError, because the gateway is what the recipe makes it. Recipes have the Initiator on the left; a file that
    has it on the right gets the gateway mirrored.
    """
    if recipe.inside is not None and campaign.gateway.inside not in (None, recipe.inside):
        recipe = replace(recipe, inside=campaign.gateway.inside, left=recipe.right, right=recipe.left)
    known = {key: getattr(recipe, key) for key in _GATEWAY_KEYS}
    given = {key: value for key, value in known.items() if value not in (None, ())}
    facts = GatewayModel.model_validate({key: _plain(value) for key, value in given.items()})
    raise_if_any(_contradictions(campaign, recipe, facts))
    update = {key: getattr(facts, key) for key in given} | {"table": merged_table(campaign.gateway.table, recipe.table)}
    gateway = campaign.gateway.model_copy(update=update)
    left = _merged_side(campaign.left, recipe.left, recipe.mtu)
    right = _merged_side(campaign.right, recipe.right, recipe.mtu)
    tables = {"gateway": gateway, "left": left, "right": right, "map": campaign.map or recipe.map}
    return campaign.model_copy(update=tables)


def merged_table(ours: GatewayTableModel, theirs: GatewayTableModel) -> GatewayTableModel:
    """Return the settings of a table: each as the file has it, else as the recipe has it."""
    settings = {key: value for key in GatewayTableModel.model_fields if (value := getattr(ours, key)) is not None}
    return theirs.model_copy(update=settings)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [entry.model_dump() if isinstance(entry, BaseModel) else entry for entry in value]
    return value


def _contradictions(campaign: CampaignFile, recipe: RecipeFacts, facts: GatewayModel) -> Iterator[Problem]:
    for key in _GATEWAY_KEYS:
        ours, theirs = getattr(campaign.gateway, key), getattr(facts, key)
        free = key in _OPEN_KEYS and theirs in (None, ())
        if ours not in (None, ()) and ours != theirs and not free:
            yield problem(
                campaign,
                f"gateway.{key}",
                f"is {write_text(ours)}, but recipe {recipe.name} makes a gateway with {write_text(theirs)}",
                "leave the key out, or copy the recipe and change it there",
            )
    for key in TABLE_KEYS:
        ours, theirs = table_value(campaign.gateway.table, key), table_value(recipe.table, key)
        action = _TABLE_ACTIONS[key]
        if ours not in (None, theirs) and action not in recipe.actions:
            yield problem(
                campaign,
                f"gateway.table.{key}",
                f"is set, but recipe {recipe.name} has no command {action}",
                f"leave the key out, or copy the recipe and add {action} under [commands]",
            )
    for name in SIDES:
        ours_side = getattr(campaign, name)
        theirs_side: SideModel = getattr(recipe, name)
        if ours_side is None:
            continue
        if ours_side.mtu is not None and ours_side.mtu > (theirs_side.mtu or recipe.mtu):
            yield problem(
                campaign,
                f"{name}.mtu",
                f"is {ours_side.mtu}, but recipe {recipe.name} sets {theirs_side.mtu or recipe.mtu}",
                "leave the key out, or copy the recipe and change it there",
            )
        yield from _gateway_addresses(campaign, recipe, name, ours_side, theirs_side)
    yield from _unmade_gateway(campaign, recipe)


def _unmade_gateway(campaign: CampaignFile, recipe: RecipeFacts) -> Iterator[Problem]:
    """Rules of the campaign that the recipe cannot make its gateway of; those of the recipe are its own matter."""
    table, gateway = campaign.map, recipe.map_gateway
    if table is None or gateway is None:
        return
    at = f"recipe {recipe.name}: map_gateway.private"
    for unmade in unmade_gateway(TECHNOLOGIES[recipe.technology], table, gateway, private_at=at):
        if unmade.where == at:
            yield replace(unmade, fix=f"{unmade.fix}; for another network copy the recipe and change it there")
        else:
            yield problem(campaign, unmade.where, unmade.what, unmade.fix)


def _gateway_addresses(
    campaign: CampaignFile, recipe: RecipeFacts, name: SideName, ours: SideModel, theirs: SideModel
) -> Iterator[Problem]:
    families: tuple[Family, ...] = ("ipv4", "ipv6")
    for family in families:
        mine, other = ours.family(family), theirs.family(family)
        if mine is not None and other is not None and mine.gateway not in (None, other.gateway):
            yield problem(
                campaign,
                f"{name}.{family}.gateway",
                f"is {mine.gateway}, but recipe {recipe.name} gives the gateway {other.gateway}",
                "leave the key out, or copy the recipe and change it there",
            )


def _merged_side(ours: SideModel | None, theirs: SideModel, mtu: int) -> SideModel:
    update: dict[str, Any] = {"mtu": theirs.mtu or mtu}
    if ours is not None:
        update |= {key: getattr(ours, key) for key in ours.model_fields_set if getattr(ours, key) is not None}
        update["ipv4"] = _merged_family(ours.ipv4, theirs.ipv4)
        update["ipv6"] = _merged_family(ours.ipv6, theirs.ipv6)
    return theirs.model_copy(update=update)


F = TypeVar("F", Ipv4Model, Ipv6Model)


def _merged_family(ours: F | None, theirs: F | None) -> F | None:
    if ours is None or theirs is None:
        return ours or theirs
    return theirs.model_copy(update={key: getattr(ours, key) for key in ours.model_fields_set})
