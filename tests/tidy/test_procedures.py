"""A procedure is one folder and one row of the registry: nothing else knows its name, and no folder knows another."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import ModuleType

import pytest
from tests.tidy.modules import MODULES, PACKAGE, own_imports, top_level_names

from gatemark.procedures.procedure import Procedure
from gatemark.procedures.registry import PROCEDURES

FOLDERS = sorted(path.name for path in (PACKAGE / "procedures").iterdir() if (path / "run.py").is_file())

NAMES = {*PROCEDURES, *(row.table.key for row in PROCEDURES.values())}
"""Names of procedures and of their tables in the campaign file."""

LISTS = ("calibrate", "procedures/registry.py", "pairs/figure.py")
"""Where any procedure may be named: the registry, the calibration, which checks procedures by name, and the figures of
pairs, one of which is called as a procedure is."""

ROLES: dict[str, set[str]] = {
    "__init__": {"procedures.cells", "procedures.procedure"},
    "table": {"config", "errors", "procedures.assumed", "procedures.checks", "search", "technology", "units"},
    "run": {"config", "errors", "packets", "procedures", "results", "search", "stats", "technology", "trial", "units"},
    "cases": {"config", "embedded_ipv4", "map_domains", "packets", "technology", "trial.exchange"},
    "scenes": {"config", "embedded_ipv4", "map_domains", "packets", "technology", "trial.exchange"},
    "result": {"facts", "results", "search", "stats", "units"},
    "report": {"map_domains.port_set", "report", "results", "stats", "units"},
    "plots": {"report", "results", "stats", "units"},
}
"""Files of a procedure's folder, and what they may import besides each other."""

SAME_FOLDER: dict[str, set[str]] = {
    "__init__": {"table", "run", "result", "report"},
    "table": {"cases", "result", "scenes"},
    "run": {"table", "result", "cases", "scenes"},
    "cases": {"result", "scenes"},
    "scenes": set(),
    "result": set(),
    "report": {"result", "plots"},
    "plots": {"result"},
}
"""Files of the same folder that a file may import."""


def sources() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in (".py", ".j2"):
            yield str(path.relative_to(PACKAGE)), path.read_text(encoding="utf-8")


def words_of(text: str) -> Iterator[tuple[int, str]]:
    """Every attribute, and every string that is no docstring, with its line."""
    tree = ast.parse(text)
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.lineno, node.value
        elif isinstance(node, ast.Attribute) and "_" in node.attr:
            yield node.lineno, node.attr


ENGLISH = {"delay", "reset"}
"""Procedures whose names are also the plain word for a fact about a frame, and for what is done to a gateway."""


def names_procedure(words: str, names: set[str]) -> bool:
    """Whether a string is the name of one of these procedures, or has one in it: in brackets, or no English word."""
    unmistakable = "|".join(name for name in names if "_" in name)
    if any(f"[{name}]" in words for name in names):
        return True
    return words in names - ENGLISH or re.search(rf"(?<![a-z_])({unmistakable})(?![a-z_])", words) is not None


def names_of_folder(name: str) -> set[str]:
    """Names of the procedures in whose folder a file lies."""
    rows = [row for row in PROCEDURES.values() if name.startswith(f"procedures/{folder_of(row)}/")]
    return {*(row.name for row in rows), *(row.table.key for row in rows)}


def folder_of(row: Procedure) -> str:
    assert isinstance(row.run, ModuleType)
    return row.run.__name__.split(".")[2]


def test_a_procedure_is_named_nowhere_but_in_its_folder_and_the_registry() -> None:
    wrong = [
        f"{name}:{line}: {words[:80]}"
        for name, text in sources()
        if not name.startswith(LISTS)
        for line, words in (words_of(text) if name.endswith(".py") else enumerate(text.splitlines(), 1))
        if names_procedure(words, NAMES - names_of_folder(name))
    ]
    assert wrong == []


def test_every_folder_has_a_row_and_every_row_a_folder() -> None:
    assert {folder_of(row) for row in PROCEDURES.values()} == set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_offers_its_procedures_and_nothing_else(folder: str) -> None:
    tree = ast.parse(MODULES[f"procedures.{folder}"].read_text(encoding="utf-8"))
    offered = [name for name, _ in top_level_names(tree) if not name.startswith("_")]
    count = sum(folder_of(row) == folder for row in PROCEDURES.values())
    assert offered == ["PROCEDURE" if count == 1 else "PROCEDURES"]


def test_the_registry_takes_whole_folders() -> None:
    wrong = [
        module
        for module in own_imports(MODULES["procedures.registry"])
        if module.startswith(tuple(f"procedures.{folder}." for folder in FOLDERS))
    ]
    assert wrong == []


def test_only_the_registry_and_the_calibration_import_a_procedure() -> None:
    wrong = [
        f"{name} imports {module}"
        for name, _ in sources()
        if name.endswith(".py") and not name.startswith((*LISTS, *(f"procedures/{folder}/" for folder in FOLDERS)))
        for module in own_imports(PACKAGE / name)
        if module.startswith(tuple(f"procedures.{folder}" for folder in FOLDERS))
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_arrows_inside_a_folder(folder: str) -> None:
    files = {path.stem: path for path in (PACKAGE / "procedures" / folder).glob("*.py")}
    assert set(files) <= set(ROLES)
    assert {"__init__", "table", "run", "result", "report"} <= set(files)
    home = f"procedures.{folder}."
    wrong = []
    for stem, path in files.items():
        for module in own_imports(path):
            if module.startswith(home):
                allowed = module.removeprefix(home).partition(".")[0] in SAME_FOLDER[stem]
            elif f"{module}.".startswith(tuple(f"procedures.{other}." for other in FOLDERS)):
                allowed = False
            else:
                allowed = any(f"{module}.".startswith(f"{package}.") for package in ROLES[stem])
            if not allowed:
                wrong.append(f"{folder}/{stem}.py imports {module}")
    assert wrong == []
