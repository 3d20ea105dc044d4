"""What a technology is called is not what it does: nothing but its table looks at a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from gatemark.technology import TechnologyName

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "gatemark"
NAMES = set(get_args(TechnologyName))
CHOSEN_IN = ("technology.py", "calibrate/checks")
"""Where names stand: the table itself, and the checks that are made of some of the technologies."""
LETTER_TESTS = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "find"}
NAMED = {"technology", "mode", "reference_mode"}
FILES = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def last_name(node: ast.expr) -> str:
    """Return `technology` of `campaign.gateway.technology`, and `name` of `row.name`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_technology_name(node: ast.expr) -> bool:
    """Whether an expression is called like the name of a technology: `x.technology`, `technology.name`."""
    if last_name(node) == "name" and isinstance(node, ast.Attribute):
        return last_name(node.value) == "technology"
    return last_name(node) in NAMED


def letter_tests(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that look at the letters of a technology's name."""
    for node in ast.walk(tree):
        method = node.func if isinstance(node, ast.Call) else None
        if isinstance(method, ast.Attribute) and method.attr in LETTER_TESTS and is_technology_name(method.value):
            yield node.lineno
        if isinstance(node, ast.Subscript) and is_technology_name(node.value):
            yield node.lineno


def typed_names(tree: ast.Module) -> Iterator[int]:
    """Yield the lines with a text that is the name of a technology, or holds one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.replace(",", " ").replace("`", " ").replace('"', " ").split()
            if not NAMES.isdisjoint(words):
                yield node.lineno


@pytest.mark.parametrize("file", FILES)
def test_nothing_looks_at_the_letters_of_a_technology(file: str) -> None:
    assert list(letter_tests(tree_of(FILES[file]))) == []


@pytest.mark.parametrize("file", [name for name in FILES if not name.startswith(CHOSEN_IN)])
def test_no_technology_is_named_outside_the_table(file: str) -> None:
    assert list(typed_names(tree_of(FILES[file]))) == []


@pytest.mark.parametrize(
    "line",
    ["mode.startswith('nat')", "x.gateway.technology[-2:]", "row.technology.name.endswith('46')"],
)
def test_a_look_at_the_letters_is_seen(line: str) -> None:
    assert list(letter_tests(ast.parse(line))) == [1]


@pytest.mark.parametrize("line", ["x == 'nat66'", "'set it to siit64, siit46 or nat64'", "{'nat44': 1}"])
def test_a_typed_name_is_seen(line: str) -> None:
    assert list(typed_names(ast.parse(line))) == [1]
