"""Read a campaign file; all its problems are reported together, with file, key path and remedy."""

from __future__ import annotations

import copy
import os
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gatemark.bed_kinds import RECIPE_BED
from gatemark.config.check import file_problems, misplaced, nearest
from gatemark.config.complete import complete_problems
from gatemark.config.control_files import is_path, with_absolute_paths, with_commands
from gatemark.config.described import described
from gatemark.config.keys import models_in
from gatemark.config.model import CampaignFile
from gatemark.config.problems import raise_if_any
from gatemark.config.tables import GatewayControlModel, Ipv4Model, Ipv6Model, SideModel
from gatemark.config.types import BadValueError
from gatemark.config.vary import VARY
from gatemark.config.views import default_decrement
from gatemark.errors import ConfigError, Problem
from gatemark.harmless import toml_of

C = TypeVar("C", bound=CampaignFile)
Location = tuple[str | int, ...]

_LOOPBACK_SIDES = {
    "left": ("198.18.0.2", "2001:2::2"),
    "right": ("198.19.0.2", "2001:2:0:8000::2"),
}
"""Hosts of a loop-back that names none: one in each half of the benchmarking ranges (RFC 2544 C.2.2, RFC 8219)."""


def text_of(path: Path, kind: str = "campaign file") -> str:
    """Return the text of a campaign file, or of a file of another kind. Raises ConfigError."""
    name = str(path).encode(errors="backslashreplace").decode()
    if name != str(path):
        raise ConfigError(what="its path is not UTF-8, which files of results require", where=name, fix="rename it")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            what=f"cannot be read: {error.strerror}", where=str(path), fix=f"name an existing {kind}"
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(what=f"is not UTF-8 text: {error}", where=str(path), fix="save the file as UTF-8") from None


def document_of_text(text: str, *, path: Path) -> dict[str, Any]:
    """Return the document that the text of a file at `path` holds; its name is that of the file if it has none."""
    try:
        document = toml_of(text)
    except ValueError as error:
        raise ConfigError(
            what=f"is not TOML: {error}", where=str(path), fix='write keys as key = value, and texts in "quotes"'
        ) from None
    document.setdefault("name", path.stem)
    return document


def campaign_of_text(text: str, model: type[C], *, path: Path) -> C:
    """Build a campaign from the text of the file that lies, or lay, at `path`. Raises ConfigError with all problems."""
    return campaign_of_file(document_of_text(text, path=path), model, path=path)


def campaign_of_file(document: Mapping[str, Any], model: type[C], *, path: Path) -> C:
    """Build a campaign from the document of the file at `path`, to which paths of recipes and commands are relative."""
    testbed = document.get("testbed")
    recipe = testbed.get("recipe") if isinstance(testbed, dict) else None
    if isinstance(testbed, dict) and isinstance(recipe, str) and is_path(recipe):
        document = {**document, "testbed": {**testbed, "recipe": os.path.abspath(path.parent / recipe)}}
    return campaign_of(with_absolute_paths(document, path.parent), model, where=str(path))


def campaign_of(document: Mapping[str, Any], model: type[C], *, where: str = "campaign") -> C:
    """Build a campaign from the document that a file holds. Raises ConfigError with all problems.

    A campaign without a recipe is checked completely here, one with a recipe by `complete` once the recipe is read.
    """
    if VARY in document:
        raise ConfigError(
            what="varies keys, so it is a series, not one campaign",
            where=f"{where}: {VARY}",
            fix="leave [[vary]] out; gatemark run, gatemark plan and gatemark.measure_series take a series",
        )
    document, of_commands = with_commands(document, where, _command_problems)
    try:
        campaign = _completed(model.model_validate(document)).renamed(source=where)
        skip: frozenset[str] = frozenset()
        problems: list[Problem] = []
    except ValidationError as error:
        problems = [_problem(detail, document, model, where) for detail in _told_once(error.errors())]
        skip = frozenset(str(detail["loc"][0]) for detail in error.errors() if detail["loc"])
        rest = _without_bad_keys(document, model, error)
        if rest is None:
            raise_if_any([*of_commands, *problems])
        assert rest is not None
        campaign = _completed(rest).renamed(source=where)
    if of_commands:  # what they would have said is not known
        skip |= {"gateway"}
        problems = [*of_commands, *problems]
    problems.extend(file_problems(campaign, skip))
    if not campaign.bed.has_recipe:
        problems.extend(complete_problems(campaign, skip | _tables_of(problems, where)))
    raise_if_any([*misplaced(campaign, skip), *problems])
    return campaign


def _command_problems(document: Mapping[str, Any], where: str) -> list[Problem]:
    """Return what is wrong with a file of commands, whose keys are those of `gateway.control`."""
    try:
        GatewayControlModel.model_validate(document)
    except ValidationError as error:
        return [_problem(detail, document, GatewayControlModel, where) for detail in _told_once(error.errors())]
    return []


def _told_once(details: list[ErrorDetails]) -> list[ErrorDetails]:
    """Leave out that a list is too short if wrong items are the only reason."""
    places = [detail["loc"] for detail in details]
    return [
        detail
        for detail in details
        if detail["type"] != "too_short"
        or not any(place[: len(detail["loc"])] == detail["loc"] and place != detail["loc"] for place in places)
    ]


def _tables_of(problems: list[Problem], where: str) -> frozenset[str]:
    """Return the tables that have problems of their own, so that no check of the whole repeats them."""
    return frozenset(
        problem.where.removeprefix(f"{where}: ").partition(".")[0].partition("[")[0] for problem in problems
    )


def _completed(campaign: C) -> C:
    """Fill in the defaults that depend on other keys."""
    update: dict[str, Any] = {}
    for table in campaign.tables:
        update[table.key] = table.completed(campaign)
    if not campaign.bed.has_gateway:
        for name in _LOOPBACK_SIDES:
            side: SideModel = getattr(campaign, name) or SideModel()
            update[name] = side.model_copy(update=_loopback_defaults(name, side, campaign.bed.default_port))
    elif not campaign.bed.has_recipe and campaign.technology and campaign.gateway.hop_limit_decrement is None:
        decrement = default_decrement(campaign.technology)
        update["gateway"] = campaign.gateway.model_copy(update={"hop_limit_decrement": decrement})
    return campaign.model_copy(update=update) if update else campaign


def _loopback_defaults(name: str, side: SideModel, port: str | None) -> dict[str, Any]:
    ipv4, ipv6 = _LOOPBACK_SIDES[name]
    update: dict[str, Any] = {}
    if side.port is None:
        update["port"] = port
    if side.ipv4 is None:
        update["ipv4"] = Ipv4Model.model_validate({"address": ipv4})
    if side.ipv6 is None:
        update["ipv6"] = Ipv6Model.model_validate({"address": ipv6})
    if side.address_mode == "nexthop":  # the router of a family that the file does not name is its neighbour address
        update = {key: value for key, value in update.items() if key == "port"}
    return update


def _without_bad_keys(document: Mapping[str, Any], model: type[C], error: ValidationError) -> C | None:
    """Validate the document without its bad keys, so that the rest of it can be checked; None if nothing is left."""
    rest = copy.deepcopy(dict(document))
    for _ in range(8):
        for detail in error.errors():
            location = _document_location(rest, detail["loc"])
            _remove(rest, location[:-1] if detail["type"] == "missing" else location)
        rest.setdefault("testbed", {"kind": RECIPE_BED.name, "recipe": "none"})
        try:
            return model.model_validate(rest)
        except ValidationError as again:
            error = again
    return None


def _document_location(document: Any, location: Location) -> Location:
    """Return the part of a location that exists in the document, plus one key for what is missing."""
    kept: list[str | int] = []
    for key in location:
        kept.append(key)
        present = (isinstance(document, dict) and key in document) or (
            isinstance(document, list) and isinstance(key, int) and key < len(document)
        )
        if not present:
            break
        document = document[key]
    return tuple(kept)


def _remove(document: dict[str, Any], location: Location) -> None:
    node: Any = document
    if not location:
        return
    for index, key in enumerate(location[:-1]):
        if isinstance(node, list):  # a list loses its table, so that the places of its other items stay true
            _remove(document, location[:index])
            return
        if not isinstance(node, dict) or key not in node:
            return
        node = node[key]
    if isinstance(node, dict):
        node.pop(str(location[-1]), None)
    elif isinstance(node, list):
        _remove(document, location[:-1])


def _problem(detail: ErrorDetails, document: Mapping[str, Any], root: type[BaseModel], where: str) -> Problem:
    """Describe one error of pydantic in words."""
    location = detail["loc"] if detail["type"] == "missing" else _document_location(document, detail["loc"])
    if detail["type"] != "missing" and location and not _exists(document, location):
        location = location[:-1]
    at = f"{where}: {_key_path(location)}" if location else where
    value = detail["input"]
    error_type = detail["type"]
    model, name = field_at(root, location)
    if error_type == "value_error":
        error = detail["ctx"]["error"]
        if isinstance(error, BadValueError):
            return Problem(what=error.what, where=at, fix=error.fix)
    if error_type == "missing":
        return Problem(what="is missing", where=at, fix=_describe(model, name, "add the key"))
    if error_type == "extra_forbidden":
        return Problem(what="unknown key", where=at, fix=known_keys(keys_of(model), str(location[-1])))
    if error_type == "literal_error":
        return Problem(
            what=f"{value!r} is not one of {detail['ctx']['expected']}", where=at, fix=_guess(model, name, value)
        )
    message = detail["msg"].replace("Input should be", "should be")
    return Problem(what=f"{_shown(value)} {message}", where=at, fix=_describe(model, name, "correct the value"))


def _exists(document: Any, location: Location) -> bool:
    for key in location:
        try:
            document = document[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _key_path(location: Location) -> str:
    text = ""
    for key in location:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


def _describe(model: type[BaseModel] | None, name: str | None, otherwise: str) -> str:
    words = "" if model is None or name is None else described(model, name)
    return f"wanted: {words.partition('. ')[0].removesuffix('.')}" if words else otherwise


def _guess(model: type[BaseModel] | None, name: str | None, value: object) -> str:
    known = (
        [] if model is None or name is None else [str(item) for item in _literals(model.model_fields[name].annotation)]
    )
    guess = nearest(str(value), known)
    return f"did you mean {guess!r}?" if guess else _describe(model, name, "write one of these")


def keys_of(model: type[BaseModel] | None) -> list[str]:
    """Return the keys of a table; none where it is not known."""
    return [] if model is None else [field.alias or name for name, field in model.model_fields.items()]


def known_keys(known: Sequence[str], key: str) -> str:
    """Say what to do about an unknown key where others are known."""
    guess = nearest(key, known)
    if guess is not None:
        return f"did you mean {guess}?"
    return f"leave it out; known here: {', '.join(known)}" if known else "leave it out"


def field_at(root: type[BaseModel], location: Location) -> tuple[type[BaseModel] | None, str | None]:
    """Return the model that holds the last key of a location, and the name of that key's field if there is one."""
    model: type[BaseModel] | None = root
    name: str | None = None
    holder: type[BaseModel] | None = root
    is_name = False
    for key in location:
        if isinstance(key, int):
            continue
        if is_name:  # the user's own, of one of several tables
            is_name = False
            continue
        holder = model
        fields = {} if holder is None else holder.model_fields
        name = next((name for name, field in fields.items() if (field.alias or name) == key), None)
        annotation = None if name is None else fields[name].annotation
        model = next(models_in(annotation), None)
        is_name = model is not None and typing.get_origin(annotation) is dict
    return holder, name


def _literals(annotation: Any) -> Iterator[object]:
    if typing.get_origin(annotation) is typing.Literal:
        yield from typing.get_args(annotation)
        return
    for part in typing.get_args(annotation):
        yield from _literals(part)
