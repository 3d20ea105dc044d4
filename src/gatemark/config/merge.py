"""How the tables of a campaign file and those of its recipe become one: by the rule of each field. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from gatemark.config.b4_gateway import unmade_aftr
from gatemark.config.map_gateway import unmade_gateway
from gatemark.config.model import CampaignFile
from gatemark.config.problems import in_file, raise_if_any
from gatemark.config.recipe import Recipe
from gatemark.config.tables import KeyByKey, OfRecipe, SetByRecipe, Table
from gatemark.config.types import write_text
from gatemark.config.views import Directions
from gatemark.errors import Problem

C = TypeVar("C", bound=CampaignFile)
T = TypeVar("T", bound=Table)
_EMPTY: tuple[Any, ...] = (None, ())
_COPY = "leave the key out, or copy the recipe and"


def merge_recipe(file: C, recipe: Recipe) -> C:
    """Fill in from the recipe what the file leaves open, by the rule at each field.

    The file wins for everything that is the Tester's own, for the domains of MAP-T, and for the connection tracking
    table where the recipe has commands that set it up; a file that contradicts its recipe about the gateway is a
    ConfigError, because the gateway is what the recipe makes it.
    """
    contradictions = (in_file(file, told) for told in _contradictions(file, recipe.tables, recipe))
    unmade = (told for part in recipe.parts for told in _unmade_gateway(file, part))
    raise_if_any([*contradictions, *unmade])
    merged = _merged(file, recipe.tables)
    raise_if_any(_unmade_aftr(merged, recipe))
    return merged


def _merged(ours: T, theirs: Mapping[str, Any]) -> T:
    """Return a table with what the recipe says of its keys, by name."""
    update: dict[str, Any] = {}
    for name, rules, mine, other in _both(ours, theirs):
        is_theirs = any(isinstance(rule, OfRecipe) and not rule.is_limit for rule in rules)
        is_silent = mine is None or name not in ours.model_fields_set
        if KeyByKey in rules and mine is not None and other is not None:
            update[name] = _merged(mine, dict(other))
        elif is_silent or (is_theirs and other not in _EMPTY):
            update[name] = other
    return ours.model_copy(update=update)


def _contradictions(ours: Table, theirs: Mapping[str, Any], recipe: Recipe, at: str = "") -> Iterator[Problem]:
    """Yield what a file says of its gateway that its recipe does not make; where: the key."""
    for name, rules, mine, other in _both(ours, theirs):
        key = f"{at}{type(ours).model_fields[name].alias or name}"
        if mine in _EMPTY or mine == other:
            continue
        for rule in rules:
            if rule is KeyByKey and other is not None:
                yield from _contradictions(mine, dict(other), recipe, f"{key}.")
            elif isinstance(rule, SetByRecipe) and rule.action not in recipe.actions:
                what = f"is set, but recipe {recipe.name} has no command {rule.action}"
                yield Problem(what=what, where=key, fix=f"{_COPY} add {rule.action} under [commands]")
            elif isinstance(rule, OfRecipe) and not rule.allows(mine, other):
                what = f"is {write_text(mine)}, but recipe {recipe.name} {rule.words} {write_text(other)}"
                yield Problem(what=what, where=key, fix=f"{_COPY} change it there")


def _both(ours: Table, theirs: Mapping[str, Any]) -> Iterator[tuple[str, list[Any], Any, Any]]:
    """Yield each field that both have: its name and rules, the file's value and the recipe's."""
    for name, field in type(ours).model_fields.items():
        if name in theirs:
            yield name, field.metadata, getattr(ours, name), theirs[name]


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
