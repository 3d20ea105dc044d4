"""Files with commands of `gateway.control`, which campaign files name: those of gatemark or the user's own.

What the campaign file says itself wins. What would have no effect in it is left out: settings to which it gives no
value, ways to boot a host that it does not boot, and what its technology has no use for.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from gatemark.config.check import nearest
from gatemark.config.only import With, rules_of
from gatemark.config.tables import GatewayControlModel
from gatemark.errors import ConfigError, Problem
from gatemark.files import read_named
from gatemark.harmless import toml_of
from gatemark.technology import TECHNOLOGIES

COMMANDS = "commands"
"""Key of `gateway.control` that names the files."""

Document = Mapping[str, Any]
Check = Callable[[Document, str], list[Problem]]
"""Returns what is wrong with the document of a file of commands; the text names the file."""


def known_commands() -> Mapping[str, Traversable]:
    """Return the files of commands that come with gatemark, by name."""
    folder = resources.files("gatemark").joinpath("controls")
    files = {entry.name.removesuffix(".toml"): entry for entry in folder.iterdir() if entry.name.endswith(".toml")}
    return {name: files[name] for name in sorted(files)}


def commands_text(name: str) -> str:
    """Return the text of a file of commands, by its name or path. Raises OSError or KeyError if there is none."""
    return read_named(Path(name)).decode() if is_path(name) else known_commands()[name].read_text("utf-8")


def is_path(name: str) -> bool:
    """Whether a name is that of a file of the user."""
    return "/" in name or name.endswith(".toml")


def with_absolute_paths(document: Document, folder: Path) -> Document:
    """Return the document of a campaign file in `folder` with absolute paths of its files of commands."""
    control = _control_of(document)
    if COMMANDS not in control:
        return document

    def absolute(name: object) -> object:
        return os.path.abspath(folder / name) if isinstance(name, str) and is_path(name) else name

    names = control[COMMANDS]
    changed = [absolute(name) for name in names] if isinstance(names, list) else absolute(names)
    return _with_control(document, {**control, COMMANDS: changed})


def with_commands(document: Document, where: str, check: Check) -> tuple[Document, list[Problem]]:
    """Return the document of a campaign file with the commands of the files that it names, and what is wrong with them.

    Files are read in the order in which they are named; of two that say the same key the later one wins.
    """
    control = _control_of(document)
    names = control.get(COMMANDS)
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return document, []  # the model tells what is wrong with it
    merged: dict[str, Any] = {}
    problems: list[Problem] = []
    for name in names:
        try:
            content = _read(name, f"{where}: gateway.control.{COMMANDS}")
        except ConfigError as error:
            problems += error.problems
            continue
        problems += check(content, f"commands {name}")
        merged = _merged(merged, content)
    if problems:
        return document, problems
    known = dict(_with_effect(merged, control, document["gateway"]))
    return _with_control(document, _merged(known, control)), []


def _control_of(document: Document) -> Document:
    """Return the table gateway.control of a campaign file; empty if there is none, or something that is no table."""
    gateway = document.get("gateway")
    control = gateway.get("control") if isinstance(gateway, dict) else None
    return control if isinstance(control, dict) else {}


def _with_control(document: Document, control: Document) -> Document:
    return {**document, "gateway": {**document["gateway"], "control": control}}


def _read(name: str, where: str) -> dict[str, Any]:
    try:
        return toml_of(commands_text(name))
    except KeyError:
        known = known_commands()
        guess = nearest(name, known)
        fix = f"did you mean {guess}?" if guess else "write one of these, or the path of a file"
        raise ConfigError(what=f"{name!r} is not one of {', '.join(known)}", where=where, fix=fix) from None
    except OSError as error:
        what = f"{name} cannot be read: {error.strerror}"
        raise ConfigError(what=what, where=where, fix="name an existing file") from None
    except ValueError as error:
        raise ConfigError(what=f"{name} is not TOML: {error}", where=where, fix="correct the file") from None


def _with_effect(known: Document, control: Document, gateway: Document) -> Iterator[tuple[str, Any]]:
    """Yield what files of commands say, without what would have no effect in this campaign."""
    settings = gateway.get("settings")
    values = settings if isinstance(settings, dict) else {}
    without = set(_without_effect(gateway, control, control.get("boot", known.get("boot", "never"))))
    for key, value in known.items():
        if key == "set" and isinstance(value, dict):
            yield key, {name: setting for name, setting in value.items() if name in values}
        elif key not in without:
            yield key, value


def _without_effect(gateway: Document, control: Document, boot: object) -> Iterator[str]:
    """Yield keys that would have no effect in a campaign, wherever they are written."""
    if {"reboot", "power_cycle"} & set(control):  # the campaign says how
        yield from ("reboot", "power_cycle")
    technology = next((row for row in TECHNOLOGIES.values() if row.name == gateway.get("technology")), None)
    for name, field in GatewayControlModel.model_fields.items():
        withs = (rule for rule in field.metadata if isinstance(rule, With) and rule.key == "boot")
        if any(rule.refusal(technology, None) for rule in rules_of(field)) or not all(
            rule.holds(boot) for rule in withs
        ):
            yield name


def _merged(below: Document, above: Document) -> dict[str, Any]:
    """Return both tables as one; a key of `above` wins, and tables in them are merged as well."""
    merged = copy.deepcopy(dict(below))
    for key, value in above.items():
        both_tables = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both_tables else copy.deepcopy(value)
    return merged
