"""The tables of the campaign file: each key with its type, its default and its docstring."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from tests.references.page import default_in, limits, table

from gatemark.config.control_files import commands_text, known_commands
from gatemark.config.described import described
from gatemark.config.keys import models_in
from gatemark.config.types import Written
from gatemark.config.vary import VaryModel
from gatemark.dut.recipe import built_in_recipes, load_recipe
from gatemark.procedures.conformity.cases import cases_of
from gatemark.procedures.conformity.result import CaseName
from gatemark.procedures.registry import CampaignFile
from gatemark.technology import TECHNOLOGIES

LIMITS = ("ge", "lt", "le", "max_length")
PLAIN = {int: ("integer", "integers"), bool: ("boolean", "booleans"), str: ("text", "texts")}


def models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a table and all tables in it."""
    yield model
    for field in model.model_fields.values():
        for inner in models_in(field.annotation):
            yield from models(inner)


TABLES: Mapping[str, type[BaseModel]] = {
    model.__name__: model for root in (CampaignFile, VaryModel) for model in models(root)
}
ALIKE = {"Ipv6Model"}
"""Tables with the keys of another one, which have no place of their own."""


def block(name: str) -> str:
    """Return a table of the file as a table of the page, or one of `OTHERS`."""
    if name in OTHERS:
        return OTHERS[name]()
    return table(("key", "type", "default", "meaning"), (_row(TABLES[name], key) for key in TABLES[name].model_fields))


def _technologies() -> str:
    headings = ("technology", "what it is", "left, or inside", "right, or outside")
    return table(headings, ((f"`{row.name}`", row.words, *row.side_words) for row in TECHNOLOGIES.values()))


def _cases() -> str:
    return table(("case", "technologies", "left out where"), map(_case, get_args(CaseName)))


def _case(name: CaseName) -> tuple[str, str, str]:
    cases = {row.name: cases_of(row)[name] for row in TECHNOLOGIES.values() if name in cases_of(row)}
    needs = dict.fromkeys(case.needs for case in cases.values() if case.needs)
    return f"`{name}`", ", ".join(f"`{technology}`" for technology in cases), "; ".join(needs)


def _recipes() -> str:
    recipes = ((name, load_recipe(name)) for name in built_in_recipes())
    rows = ((f"`{name}`", recipe.description, f"`{recipe.technology.name}`") for name, recipe in recipes)
    return table(("recipe", "gateway", "technology"), rows)


def _commands() -> str:
    return table(("file", "what it is for", "settings"), map(_file_of_commands, known_commands()))


def _file_of_commands(name: str) -> tuple[str, str, str]:
    """Return a file of commands, which says in its first sentence what it is for."""
    text = commands_text(name)
    purpose = re.match("# ([^.:]+)", text)
    assert purpose, f"{name} does not say what it is for"
    settings = tomllib.loads(text).get("set", {}).items()
    words = (f"`{key}`{' (takes effect with a boot)' if setting.get('at_boot') else ''}" for key, setting in settings)
    return f'`"{name}"`', purpose[1], ", ".join(words)


OTHERS: Mapping[str, Callable[[], str]] = {
    "technologies": _technologies,
    "files of commands": _commands,
    "built-in recipes": _recipes,
    "cases of conformity": _cases,
}
"""Tables of the page that are no tables of the file."""


def _row(model: type[BaseModel], name: str) -> tuple[str, str, str, str]:
    field = model.model_fields[name]
    meaning, default = default_in(described(model, name))
    assert meaning, f"{model.__name__}.{name} has no docstring"
    return f"`{field.alias or name}`", _type(_annotation(field), _extra(field)), default or _default(field), meaning


def _extra(field: FieldInfo) -> dict[str, Any]:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def _annotation(field: FieldInfo) -> Any:
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    if default is None:
        return "-"
    if isinstance(default, BaseModel):
        return ""
    return f"`{json.dumps(TypeAdapter(_annotation(field)).dump_python(default, mode='json'))}`"


def _type(annotation: Any, extra: dict[str, Any], *, many: bool = False) -> str:
    """Return what a type is called, of one value or of several in a list."""
    metadata: list[Any] = []
    while get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        metadata += (inner for item in more for inner in (item.metadata if isinstance(item, FieldInfo) else [item]))
    parts = [part for part in get_args(annotation) if part is not type(None)]
    if written := next((item for item in metadata if isinstance(item, Written)), None):
        return written.several if many else written.single
    if get_origin(annotation) in (Union, UnionType):
        return _type(Annotated[parts[0], *metadata] if metadata else parts[0], extra, many=many)
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{json.dumps(part)}`" for part in parts)
    if get_origin(annotation) is tuple:
        return f"{'lists' if many else 'list'} of {_type(parts[0], {}, many=True)}"
    if get_origin(annotation) is dict:
        return f"table of {_type(parts[1], {}, many=True)}"
    if issubclass(annotation, BaseModel):
        return "tables" if many else "table"
    return PLAIN[annotation][many] + _limits(metadata, extra)


def _limits(metadata: list[Any], extra: dict[str, Any]) -> str:
    """Return the limits of a number or of a text in words; `extra` has those of the schema."""
    known = {name: getattr(item, name) for item in metadata for name in LIMITS if hasattr(item, name)} | extra
    if "max_length" in known:
        return f", at most {known['max_length']} characters"
    highest = known.get("le", known.get("maximum", known["lt"] - 1 if "lt" in known else None))
    return limits(known.get("ge", known.get("minimum")), highest)
