"""How the tables of a campaign file and those of its recipe become one: by the rule of each field. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

from gatemark.config.b4_gateway import unmade_aftr
from gatemark.config.map_gateway import unmade_gateway
from gatemark.config.model import CampaignFile
from gatemark.config.problems import in_file, raise_if_any
from gatemark.config.recipe import Recipe
from gatemark.config.tables import KeyByKey, OfRecipe, SetByRecipe, SideModel, Table
from gatemark.config.types import write_text
from gatemark.config.views import Directions
from gatemark.errors import Problem

C = TypeVar("C", bound=CampaignFile)
T = TypeVar("T", bound=Table)
_EMPTY: tuple[Any, ...] = (None, ())
_COPY = "leave the key out, or copy the recipe and"


def merge_recipe(file: C, recipe: Recipe) -> C:
    """Fill in from the recipe what the file leaves open.

    The file wins for everything that is the Tester's own, for the domains of MAP-T, and for the connection tracking
    table where the recipe has commands that set it up; a file that contradicts its recipe about the gateway is a
    ConfigError, because the gateway is what the recipe makes it.
    """
    pairs: dict[str, tuple[Table, Table]] = {
        "gateway": (file.gateway, recipe.gateway),
        "left": (file.left or SideModel(), recipe.side("left")),
        "right": (file.right or SideModel(), recipe.side("right")),
    }
    contradictions = (
        in_file(file, told)
        for at, (ours, theirs) in pairs.items()
        for told in _contradictions(at, ours, theirs, recipe)
    )
    unmade = (told for part in recipe.parts for told in _unmade_gateway(file, part))
    raise_if_any([*contradictions, *unmade])
    tables = {at: _merged(ours, theirs) for at, (ours, theirs) in pairs.items()}
    merged = file.model_copy(update={**tables, "map": file.map or recipe.map})
    raise_if_any(_unmade_aftr(merged, recipe))
    return merged


def _merged(ours: T, theirs: Table) -> T:
    update: dict[str, Any] = {}
    for name, field in type(ours).model_fields.items():
        mine, other = getattr(ours, name), getattr(theirs, name)
        is_theirs = any(isinstance(rule, OfRecipe) and not rule.is_limit for rule in field.metadata)
        is_silent = mine is None or name not in ours.model_fields_set
        if KeyByKey in field.metadata and mine is not None and other is not None:
            update[name] = _merged(mine, other)
        elif is_silent or (is_theirs and other not in _EMPTY):
            update[name] = other
    return ours.model_copy(update=update)


def _contradictions(at: str, ours: Table, theirs: Table, recipe: Recipe) -> Iterator[Problem]:
    """Yield what a file says of its gateway that its recipe does not make; where: the key."""
    for name, field in type(ours).model_fields.items():
        mine, other, key = getattr(ours, name), getattr(theirs, name), f"{at}.{field.alias or name}"
        if mine in _EMPTY or mine == other:
            continue
        for rule in field.metadata:
            if rule is KeyByKey and other is not None:
                yield from _contradictions(key, mine, other, recipe)
            elif isinstance(rule, SetByRecipe) and rule.action not in recipe.actions:
                what = f"is set, but recipe {recipe.name} has no command {rule.action}"
                yield Problem(what=what, where=key, fix=f"{_COPY} add {rule.action} under [commands]")
            elif isinstance(rule, OfRecipe) and not rule.allows(mine, other):
                what = f"is {write_text(mine)}, but recipe {recipe.name} {rule.words} {write_text(other)}"
                yield Problem(what=what, where=key, fix=f"{_COPY} change it there")


def _unmade_gateway(file: CampaignFile, recipe: Recipe) -> Iterator[Problem]:
    """Rules of the campaign that the recipe cannot make its gateway of; those of the recipe are its own matter."""
    table, gateway = file.map, recipe.map_gateway
    if table is None or gateway is None:
        return
    at = f"recipe {recipe.name}: map_gateway.private"
    classes = Directions(traffic=file.traffic, roles=recipe.roles, validates=file.validates).classes_into_tunnels
    for unmade in unmade_gateway(recipe.technology, table, gateway, private_at=at, classes=classes):
        if unmade.where == at:
            yield replace(unmade, fix=f"{unmade.fix}; for another network copy the recipe and change it there")
        else:
            yield in_file(file, unmade)


def _unmade_aftr(file: CampaignFile, recipe: Recipe) -> Iterator[Problem]:
    """B4s of the campaign that the recipe cannot make its AFTR of."""
    if recipe.b4_gateway is None or file.left is None or file.right is None:
        return
    inside, outside = (file.left, file.right) if recipe.inside == "left" else (file.right, file.left)
    at = f"recipe {recipe.name}: b4_gateway.private"
    for unmade in unmade_aftr(inside, outside, file.b4_model, recipe.b4_gateway, private_at=at):
        yield replace(unmade, fix=f"{unmade.fix}; for another network copy the recipe and change it there")
