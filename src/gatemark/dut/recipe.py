"""Recipes: small TOML files that say what a gateway is and which commands set it up in its network namespace."""

from __future__ import annotations

import difflib
import hashlib
import ipaddress
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from gatemark.bed_kinds import RECIPE_BED
from gatemark.config import defaults
from gatemark.config.b4_gateway import B4GatewayModel, unmade_aftr
from gatemark.config.complete import complete
from gatemark.config.control import lost_values
from gatemark.config.load import field_at, keys_of, known_keys
from gatemark.config.map_gateway import unmade_gateway
from gatemark.config.model import Campaign, CampaignFile
from gatemark.config.only import IN_A_ROW, STATEFUL, refusals
from gatemark.config.recipe import (
    B4_VARIABLES,
    FACT_VARIABLES,
    MAP_VARIABLES,
    RELAY_VARIABLE,
    SUBSCRIBER_VARIABLE,
    Recipe,
)
from gatemark.config.row import RowFile, RowRecipe, row_recipe
from gatemark.config.tables import B4Model, KeyByKey, KnownGateway, OfRecipe
from gatemark.config.types import BadValueError
from gatemark.errors import ConfigError, Problem
from gatemark.files import read_named
from gatemark.harmless import toml_of
from gatemark.map_domains.problems import domain_problems
from gatemark.map_domains.relay import PRIVATE
from gatemark.technology import OPPOSITE, SIDES, TECHNOLOGIES

_GATEWAY_KEYS = tuple(
    name
    for name, field in KnownGateway.model_fields.items()
    if any(isinstance(rule, OfRecipe) or rule is KeyByKey for rule in field.metadata)
    and IN_A_ROW not in field.metadata
    and name != "inside"
)
"""Keys of `gateway` that stand at the top of a recipe: those that a recipe has a say in. Its inside is on the left."""


def built_in_recipes() -> list[str]:
    """Names of the recipes that come with gatemark."""
    folder = resources.files("gatemark.dut") / "recipes"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_recipe(name_or_path: str | Path) -> Recipe:
    """Load a built-in recipe by name, or a file, or the file `recipe.toml` of a folder.

    Raises ConfigError with everything that is wrong.
    """
    text, where = _read(str(name_or_path))
    try:
        table = toml_of(text)
    except ValueError as error:
        raise ConfigError(what=f"not TOML: {error}", where=where, fix="correct the line named") from None
    return recipe_from_dict(table, where)


def complete_campaign(file: CampaignFile) -> Campaign:
    """Complete a campaign by the recipe that it names, if it names one.

    Raises ConfigError with every reason why it cannot be run.
    """
    recipe = file.testbed.recipe
    return complete(file, None if recipe is None else load_recipe(recipe))


def recipe_from_dict(document: Mapping[str, Any], where: str = "recipe") -> Recipe:
    """Build a recipe from the document that a file holds. Raises ConfigError with everything that is wrong."""
    if "row" in document:
        return _row_from_dict(document, where)
    table = dict(document)
    gateway = {key: table.pop(key) for key in (*_GATEWAY_KEYS, "gateway") if key in table}
    is_stateful = any(row.is_stateful and row.name == gateway.get("technology") for row in TECHNOLOGIES.values())
    inside = {"inside": "left"} if is_stateful else {}
    table["gateway"] = {"hop_limit_decrement": defaults.HOP_LIMIT_DECREMENT, **inside, **gateway}
    try:
        recipe = Recipe.model_validate_json(json.dumps(table, default=str))
    except ValidationError as error:
        raise ConfigError(problems=[_problem(detail, where) for detail in error.errors()]) from None
    problems = _contradictions(recipe, where)
    if problems:
        raise ConfigError(problems=problems)
    return recipe


def _row_from_dict(document: Mapping[str, Any], where: str) -> RowRecipe:
    """Build two built-in recipes in a row. Raises ConfigError with everything that is wrong."""
    try:
        file = RowFile.model_validate_json(json.dumps(document, default=str))
    except ValidationError as error:
        raise ConfigError(problems=[_problem(detail, where, RowFile) for detail in error.errors()]) from None
    known = built_in_recipes()
    unknown = [name for name in file.row if name not in known]
    if unknown:
        what, fix = f"no built-in recipe `{unknown[0]}`", f"choose two of {', '.join(known)}"
        raise ConfigError(what=what, where=f"{where}: row", fix=fix)
    first, second = map(load_recipe, file.row)
    return row_recipe(file, first, second, where)


def recipe_text(name_or_path: str | Path) -> str:
    """Return the text of a recipe. Raises ConfigError if it cannot be read."""
    return _read(str(name_or_path))[0]


def recipe_sha256(name_or_path: str | Path) -> str:
    """Return the digest of a recipe's text, in hexadecimal; of a row with the texts of both that it is made of.

    Raises ConfigError if it cannot be read.
    """
    text, recipe = recipe_text(name_or_path), load_recipe(name_or_path)
    parts = () if len(recipe.parts) == 1 else (recipe_text(part.name) for part in recipe.parts)
    return hashlib.sha256("".join((text, *parts)).encode()).hexdigest()


def substitute(text: str, values: dict[str, str]) -> str:
    """Replace the names of `values` in braces; all other braces stay as they are, as shell and nft need."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def _read(name: str) -> tuple[str, str]:
    """Return the text of a recipe and where it came from."""
    if name in built_in_recipes():
        text = (resources.files("gatemark.dut") / "recipes" / f"{name}.toml").read_text(encoding="utf-8")
        return text, f"recipe {name}"
    path = Path(name)
    try:
        if path.is_dir():
            path = path / "recipe.toml"
        return read_named(path).decode(), str(path)
    except FileNotFoundError:
        known = ", ".join(built_in_recipes())
        near = difflib.get_close_matches(name, built_in_recipes(), n=1)
        fix = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(
            what=f"no recipe `{name}`: neither built in nor a file",
            where="testbed.recipe",
            fix=f"{fix}built in are {known}; or give the path of a recipe file",
        ) from None
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a name that no file can have
        raise ConfigError(what=f"cannot read the recipe: {error}", where=str(path), fix="check the file") from None


def _problem(detail: Any, where: str, model: type[BaseModel] = Recipe) -> Problem:
    """Turn one finding of pydantic into a problem with the key path as the user wrote it."""
    path = [str(part) for part in detail["loc"]]
    if path[:1] == ["gateway"] and model is Recipe:  # its keys stand at the top
        del path[0]
    key = ".".join(path)
    if detail["type"] == "extra_forbidden":
        holder, _ = field_at(model, detail["loc"])
        known = keys_of(holder) if holder is not Recipe else [*keys_of(Recipe), *_GATEWAY_KEYS]
        fix = known_keys([name for name in known if name != "gateway"], path[-1])
        return Problem(what="unknown key", where=f"{where}: {key}", fix=fix)
    if detail["type"] == "missing":
        return Problem(what="this key is required", where=f"{where}: {key}", fix="copy it from a built-in recipe")
    error = detail.get("ctx", {}).get("error")
    if isinstance(error, BadValueError):
        return Problem(what=error.what, where=f"{where}: {key}", fix=error.fix)
    what = str(detail["msg"]).removeprefix("Value error, ")
    return Problem(what=f"{detail['input']!r}: {what}"[:300], where=f"{where}: {key}", fix="see the built-in recipes")


def _contradictions(recipe: Recipe, where: str) -> list[Problem]:
    """Find what each key allows but all together do not."""
    problems = list(lost_values(recipe.commands, f"{where}: commands"))
    technology = recipe.technology
    for name, outer, inner in zip(SIDES, technology.families, technology.packet_families, strict=True):
        side, is_behind = recipe.side(name), recipe.roles.is_behind_relay(name, inner)
        for family in (outer, inner) if is_behind else (outer,):
            if side.family(family) is None:
                what = f"{technology.name} needs {family} on the {name}"
                problems.append(Problem(what=what, where=f"{where}: {name}", fix=f"add {name}.{family}"))
    if technology.translates_by_prefix and recipe.gateway.prefix is None and not recipe.gateway.eam:
        what = f"{technology.name} needs a prefix (RFC 6052) or address mappings (RFC 7757)"
        problems.append(Problem(what=what, where=f"{where}: prefix", fix='for example prefix = "2001:2:0:6400::/96"'))
    problems += _tunnel_contradictions(recipe, where)
    problems += _unknown_facts(recipe, where)
    for contradictions in (_refused, _map_contradictions, _b4_contradictions):
        problems += contradictions(recipe, where)
    return problems


def _tunnel_contradictions(recipe: Recipe, where: str) -> Iterator[Problem]:
    """Find ends of tunnels that are not known: the gateway's own, and the relay's as the campaign has it."""
    technology = recipe.technology
    tunnel = recipe.gateway.tunnel
    if technology.has_tunnels and not technology.is_edge and (tunnel is None or tunnel.address is None):
        what = f"{technology.name} needs an end of its tunnels"
        yield Problem(what=what, where=f"{where}: tunnel", fix='for example tunnel = {address = "2001:2:0:ff::1"}')
    for name, end in ((RELAY_VARIABLE, "leads to"), (SUBSCRIBER_VARIABLE, "begins at")):
        users = [key for key, text in recipe.texts if f"{{{name}}}" in text]
        if technology.is_subscriber and not users:
            what = f"is missing: its tunnel {end} an address for which {{{name}}} stands"
            yield Problem(what=what, where=f"{where}: commands.setup", fix=f"write {{{name}}} in a command")
        elif users and not technology.is_subscriber:
            what = f"{{{name}}} is undefined: {technology.name} leads to no relay"
            yield Problem(what=what, where=f"{where}: {users[0]}", fix="leave it out")


def _unknown_facts(recipe: Recipe, where: str) -> Iterator[Problem]:
    """Find variables that stand for keys which the recipe has not."""
    for name in FACT_VARIABLES:
        key = next((key for key, text in recipe.texts if f"{{{name}}}" in text), None)
        if key is not None and name not in recipe.fact_variables:
            yield Problem(what=f"{{{name}}} is undefined", where=f"{where}: {key}", fix=f"write the key {name}")


def _map_contradictions(recipe: Recipe, where: str) -> Iterator[Problem]:
    """Find rules that contradict each other or the technology, and variables that stand for nothing or are not used."""
    technology, table, gateway = recipe.technology, recipe.map, recipe.map_gateway
    if not technology.has_rules:
        return
    missing = ("map_tayga", *(("map_routes",) if technology.is_subscriber else ())) if technology.has_tunnels else ()
    needed = [name for name in MAP_VARIABLES if name not in missing]
    yield from _variable_problems(recipe, where, "map_gateway", MAP_VARIABLES, needed)
    if gateway is not None:
        yield from _private_problems(recipe, gateway.private, PRIVATE, f"{where}: map_gateway.private")
    if table is None:
        return
    rules = table.whole_rules
    unsound = list(domain_problems(rules, edges=table.edges))
    if gateway is not None and not unsound:
        unsound = list(unmade_gateway(technology, table, gateway, private_at="map_gateway.private"))
    yield from (replace(problem, where=f"{where}: {problem.where}") for problem in unsound)


def _b4_contradictions(recipe: Recipe, where: str) -> Iterator[Problem]:
    """Find variables of an AFTR that stand for nothing or are not used, and B4s of which it cannot be made."""
    if not recipe.technology.has_b4s:
        return
    yield from _variable_problems(recipe, where, "b4_gateway", B4_VARIABLES, B4_VARIABLES)
    gateway, inside = recipe.b4_gateway, recipe.inside
    if gateway is not None:
        at = f"{where}: b4_gateway.private"
        yield from _private_problems(recipe, gateway.private, B4GatewayModel().private, at)
        sides = recipe.side(inside), recipe.side(OPPOSITE[inside])
        yield from unmade_aftr(*sides, B4Model(), gateway, private_at=at)


def _variable_problems(
    recipe: Recipe, where: str, key: str, known: Sequence[str], needed: Sequence[str]
) -> Iterator[Problem]:
    """Find variables that have no meaning without a key, and those that it makes for nothing."""
    texts, is_made = dict(recipe.texts), getattr(recipe, key) is not None
    for name in known:
        users = [at for at, text in texts.items() if f"{{{name}}}" in text]
        if users and not is_made:
            what = f"{{{name}}} is undefined without {key}"
            yield Problem(what=what, where=f"{where}: {users[0]}", fix=f"write {key} = {{}}")
        elif is_made and not users and name in needed:
            what = f"{{{name}}} is in no file and no command"
            yield Problem(what=what, where=f"{where}: {key}", fix="write it where the gateway needs it")


def _private_problems(recipe: Recipe, private: IPv4Network, usual: IPv4Network, at: str) -> Iterator[Problem]:
    for network in (*recipe.left.networks, *recipe.right.networks):
        other = ipaddress.ip_network(network)
        if isinstance(other, IPv4Network) and private.overlaps(other):
            what = f"{private} overlaps {network}, a network of the gateway's links"
            yield Problem(what=what, where=at, fix=f"choose an unused network, such as {usual}")


def _refused(recipe: Recipe, where: str) -> Iterator[Problem]:
    """Find keys that the technology has no use for."""
    refused = list(refusals(recipe, recipe.technology, RECIPE_BED))
    if recipe.set_by_machine and (refusal := STATEFUL.refusal(recipe.technology, None)) is not None:
        refused.append(("host_sysctl", *refusal))
    for key, what, fix in refused:
        yield Problem(what=what, where=f"{where}: {key.removeprefix('gateway.')}", fix=fix)
