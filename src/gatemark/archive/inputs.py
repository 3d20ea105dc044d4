"""The files that a campaign names, so that an archive has all that it is measured with."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatemark.archive.layout import DESCRIPTION, INPUTS, Input, InputKind
from gatemark.config.control_files import COMMANDS, commands_text, is_path
from gatemark.config.vary import OPTIONS, VARY
from gatemark.dut.recipe import built_in_recipes, recipe_text
from gatemark.errors import ConfigError, ResultError
from gatemark.results.store import ResultFolder, file_name
from gatemark.series.store import digest

KEYS: Mapping[str, InputKind] = {"testbed.recipe": "recipe", f"gateway.control.{COMMANDS}": "commands"}
"""Keys of the campaign file that name files."""

Rename = Callable[[InputKind, str], str]
"""What a file is to be named in place of its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputText:
    """A file that a campaign names, with its text."""

    facts: Input
    text: str


def renamed(document: Any, rename: Rename, path: str = "") -> Any:
    """Return the document of a campaign file with other names of its files, those that it varies as well."""
    if path == VARY and isinstance(document, list):
        return [_renamed_columns(table, rename) for table in document]
    if path in KEYS and isinstance(document, str):
        return rename(KEYS[path], document)
    if path in KEYS and isinstance(document, list):
        return [rename(KEYS[path], name) if isinstance(name, str) else name for name in document]
    if isinstance(document, dict):
        return {key: renamed(value, rename, f"{path}.{key}" if path else key) for key, value in document.items()}
    return document


def _renamed_columns(table: Any, rename: Rename, path: str = "") -> Any:
    """Return a `[[vary]]` with other names: each key has a list of values, one for each column."""
    if isinstance(table, dict):
        return {
            key: value
            if not path and key in OPTIONS
            else _renamed_columns(value, rename, f"{path}.{key}" if path else key)
            for key, value in table.items()
        }
    return [renamed(value, rename, path) for value in table] if isinstance(table, list) else table


def as_packed(document: Any, inputs: Mapping[tuple[InputKind, str], Path], where: str) -> Any:
    """Return the document of a campaign file that names its files where they are unpacked, and no other file.

    Raises ResultError if it names one that is not in the archive.
    """

    def packed(kind: InputKind, name: str) -> str:
        if (kind, name) not in inputs:
            what, fix = (
                f"names the {kind} {name!a}, which is not in the archive",
                "archive it again where it was measured",
            )
            raise ResultError(what=what, where=where, fix=fix)
        return str(inputs[kind, name])

    return renamed(document, packed)


def inputs_of(document: Mapping[str, Any], folder: Path, taken: set[str]) -> tuple[InputText, ...]:
    """Return the files that the document of a campaign file in `folder` names, each once, in its order.

    In the archive they get names that are not `taken` yet. Raises ResultError if one cannot be read.
    """
    texts: dict[tuple[InputKind, str], str] = {}

    def take(kind: InputKind, name: str) -> str:
        if (kind, name) not in texts:
            texts[kind, name] = _text(kind, os.path.abspath(folder / name) if is_path(name) else name)
        return name

    renamed(document, take)
    return tuple(_input(kind, name, text, taken) for (kind, name), text in texts.items())


def _text(kind: InputKind, name: str) -> str:
    try:
        return recipe_text(name) if kind == "recipe" else commands_text(name)
    except (ConfigError, OSError, KeyError, ValueError) as error:  # not UTF-8, or a path that no file can have
        raise ResultError(
            what=f"the {kind} that it was measured with cannot be read: {error}",
            where=name,
            fix="put the file back; an archive without it could not be measured again",
        ) from error


def _input(kind: InputKind, name: str, text: str, taken: set[str]) -> InputText:
    base = f"{kind}-{file_name(Path(name).stem)}"
    file, number = f"{base}.toml", 1
    while file in taken:
        number += 1
        file = f"{base}-{number}.toml"
    taken.add(file)
    return InputText(facts=Input(kind=kind, name=name, file=file, sha256=digest(text)), text=text)


def kept_inputs(folder: ResultFolder, inputs: tuple[Input, ...]) -> tuple[InputText, ...]:
    """Return the files of a folder that was unpacked. Raises ResultError if one is missing, or another."""
    kept = tuple(InputText(facts=facts, text=folder.read_text(f"{INPUTS}/{facts.file}")) for facts in inputs)
    for given in kept:
        if digest(given.text) != given.facts.sha256:
            raise ResultError(
                what=f"{INPUTS}/{given.facts.file} is not the file that {DESCRIPTION} describes",
                where=str(folder.path),
                fix="get the archive again from where it comes from",
            )
    return kept


def is_here(given: InputText) -> bool:
    """Whether this gatemark has the same file under the same name, so that nothing has to be unpacked."""
    name, kind = given.facts.name, given.facts.kind
    if is_path(name) or (kind == "recipe" and name not in built_in_recipes()):
        return False
    try:
        return digest(_text(kind, name)) == given.facts.sha256
    except ResultError:
        return False
