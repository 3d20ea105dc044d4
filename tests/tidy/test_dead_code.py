"""Nothing is shipped that gatemark itself does not use: what only tests call is deleted, or lies below tests."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.tidy.modules import MODULES, PACKAGE, top_level_names
from vulture import Vulture

from gatemark.cli.main import COMMANDS, function_of

CALLED_BY_PYDANTIC = ["@computed_field", "@field_validator", "@model_serializer", "@model_validator"]
"""Decorators whose functions pydantic calls."""

CALLED_BY_PYTHON = ["__dir__", "__getattr__"]
"""Functions that make public names of a package that it imports when they are asked for."""

CALLED_BY_CYCLOPTS = [*(function_of(command) for command in COMMANDS), "render_description"]
"""Functions that a table of the command line names, and what a formatter of help overrides."""

KINDS = {"class", "function", "method", "property", "import", "unreachable_code"}
"""Fields are exempt: readers of a file, or of the JSON that a command prints, use them."""


def unused_names(package: Path) -> list[str]:
    """Return what nothing below a folder names, neither code nor a template of a page."""
    known = Vulture(ignore_decorators=CALLED_BY_PYDANTIC, ignore_names=[*CALLED_BY_CYCLOPTS, *CALLED_BY_PYTHON])
    known.scavenge([package])
    for template in sorted(package.rglob("*.j2")):
        attributes = re.findall(r"\.([a-z]\w*)", template.read_text(encoding="utf-8"))
        known.scan("".join(f"template.{name}\n" for name in attributes), filename=template)
    return [
        f"{Path(item.filename).relative_to(package)}:{item.first_lineno}: {item.typ} {item.name}"
        for item in known.get_unused_code()
        if item.typ in KINDS or (item.typ == "variable" and item.name.isupper())
    ]


GATEWAY = """
RATE_MAX = 1

def send(): ...

class Gateway:
    @property
    def words(self): ...

    def clear(self): ...

    @computed_field
    def rate(self): ...
"""


def test_everything_that_is_shipped_is_used() -> None:
    assert unused_names(PACKAGE) == []


def test_what_nothing_names_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "page.html.j2").write_text("{{ gateway.words }}", encoding="utf-8")
    (tmp_path / "gateway.py").write_text(GATEWAY, encoding="utf-8")
    assert unused_names(tmp_path) == [
        "gateway.py:2: variable RATE_MAX",
        "gateway.py:4: function send",
        "gateway.py:6: class Gateway",
        "gateway.py:10: method clear",
    ]


CALLED_FROM_OUTSIDE = {(f"cli.{name}", name) for name in map(function_of, COMMANDS)}
"""Functions of modules that nothing imports by name: the commands."""


def reads_of(tree: ast.AST) -> Counter[str]:
    """Count how often each name is read."""
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return Counter(node.id for node in names if isinstance(node.ctx, ast.Load))


def names_taken(tree: ast.Module, modules: Mapping[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """Yield module and name of what a file takes from other modules.

    The name is empty where a module is handed on whole, as those of a procedure are.
    """
    aliases: dict[str, str] = {}
    reads = reads_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            package = (node.module or "").removeprefix("gatemark").removeprefix(".")
            for alias in node.names:
                module = f"{package}.{alias.name}".removeprefix(".")
                if module in modules:
                    aliases[alias.asname or alias.name] = module
                else:
                    yield package, alias.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            yield aliases[node.value.id], node.attr
            reads[node.value.id] -= 1
    yield from ((module, "") for name, module in aliases.items() if reads[name] > 0)


def names_without_use(modules: Mapping[str, ast.Module]) -> set[tuple[str, str]]:
    """Return module and name of what no other module takes and its own does not read outside its definition."""
    taken = {use for tree in modules.values() for use in names_taken(tree, modules)}
    attributes = {node.attr for tree in modules.values() for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {
        (module, name)
        for module, tree in modules.items()
        for reads in [reads_of(tree)]
        for name, definition in top_level_names(tree)
        if (module, name) not in taken
        and reads[name] == reads_of(definition)[name]
        and not ((module, "") in taken and name in attributes)
    }


def test_every_name_of_a_module_is_used() -> None:
    trees = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in MODULES.items()}
    assert names_without_use(trees) - CALLED_FROM_OUTSIDE == set()


def test_a_name_without_use_is_noticed_though_another_module_has_it_too() -> None:
    files = {
        "above": "from gatemark import below, whole\nfrom gatemark.other import send\nprint(below.A, send, whole)",
        "below": "A, B = 1, 2\nC = 3\nD: int = C\ndef send(): send()\nclass E: ...",
        "other": "def send(): E().measure(), E.B\nclass E: ...",
        "whole": "def measure(): ...\ndef B(): ...\ndef no_attribute(): ...",
    }
    assert names_without_use({module: ast.parse(text) for module, text in files.items()}) == {
        ("below", "B"), ("below", "D"), ("below", "send"), ("below", "E"), ("whole", "no_attribute"),
    }  # fmt: skip
