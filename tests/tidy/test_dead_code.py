"""Nothing is shipped that gatemark itself does not use: what only tests call is deleted, or lies below tests."""

from __future__ import annotations

import re
from pathlib import Path

from tests.tidy.modules import PACKAGE
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
