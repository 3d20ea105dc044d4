"""What a technology, test bed, port or kind of trial is called is not what it does: nothing but the tables looks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from gatemark.bed_kinds import BedKindName
from gatemark.config.model import CampaignFile
from gatemark.port_kinds import PORT_KINDS
from gatemark.technology import TechnologyName
from gatemark.trial import kinds

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "gatemark"
NAMES = set(get_args(TechnologyName)) - set(CampaignFile.model_fields)
"""Without those that are the name of a table as well: a campaign of an AFTR has a table `b4`."""
CHOSEN_IN = ("technology.py", "calibrate/checks", "refdut/document.py")
"""Where names stand: the table itself, the checks that are made of some of the technologies, and the docstrings that
say in which modes the reference gateway has a key."""
LETTER_TESTS = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "find"}
NAMED = {"technology", "mode", "reference_mode"}
TRIAL_KINDS = {
    name
    for name, value in vars(kinds).items()
    if isinstance(value, kinds.RateTrial) or (isinstance(value, type) and issubclass(value, kinds.RateTrial))
}
FORMS = {("form", "echo"), ("form", "exchange")}
MAKES_TRIALS = ("campaign/maker.py", "campaign/phases.py")
"""Where each kind of trial has a row that says how it is made."""
KINDS = {*get_args(BedKindName), *PORT_KINDS}
"""Of test beds and of ports."""
KIND_TABLES = ("bed_kinds.py", "dut/open.py", "port_kinds.py")
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
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func
            if method.attr in LETTER_TESTS and is_technology_name(method.value):
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


def kinds_asked_for(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that compare the kind of a test bed or of a port or a class, or look something up by it.

    Documents may say `{"kind": "loopback"}`; a dictionary with several kinds as keys, or a list of several, is a second
    table.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            asked = any(isinstance(side, ast.Attribute) and is_bed_kind(side) for side in sides)
            if asked or any(texts_in(side) & KINDS for side in sides):
                yield node.lineno
        elif isinstance(node, ast.Dict):
            if len({text for key in node.keys if key is not None for text in texts_in(key)} & KINDS) > 1:
                yield node.lineno
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            if len(texts_in(node) & KINDS) > 1:
                yield node.lineno
        elif isinstance(node, ast.MatchValue) and texts_in(node.value) & KINDS:
            yield node.value.lineno
        elif isinstance(node, ast.Subscript | ast.Call) and names_a_bed(node):
            yield node.lineno


def names_a_bed(node: ast.Subscript | ast.Call) -> bool:
    """Whether an expression is a row that is taken by its name, or asks for the class of a test bed."""
    if isinstance(node, ast.Subscript):
        return last_name(node.value) == "BED_KINDS" and bool(texts_in(node.slice))
    classes = ast.walk(node.args[-1]) if last_name(node.func) == "isinstance" else ()
    return any(last_name(part).endswith("TestBed") for part in classes if isinstance(part, ast.expr))


def is_bed_kind(node: ast.Attribute) -> bool:
    """Whether an expression is `testbed.kind` or `bed.name`."""
    return (last_name(node.value), node.attr) in (("testbed", "kind"), ("bed", "kind"), ("bed", "name"))


def texts_in(node: ast.expr) -> set[str]:
    """Return the text of a constant, or the texts of a tuple, list or set of them."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}


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


@pytest.mark.parametrize("file", [name for name in FILES if name not in KIND_TABLES])
def test_nothing_asks_for_the_kind_of_a_test_bed_or_port(file: str) -> None:
    assert list(kinds_asked_for(tree_of(FILES[file]))) == []


@pytest.mark.parametrize(
    "line",
    [
        "campaign.testbed.kind == wanted",
        "bed.name in ('netns', 'uml')",
        "kind != 'loopback'",
        "{'netns': 1, 'ports': 2}[kind]",
        "BED_KINDS['netns'].words",
        "isinstance(bed, str | netns.NetnsTestBed)",
        "port.kind.name == 'pci'",
        "JOINED = ('ring', 'null')",
    ],
)
def test_a_question_for_the_kind_is_seen(line: str) -> None:
    assert list(kinds_asked_for(ast.parse(line))) == [1]


def trial_kinds_asked_for(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that import a kind of trial, or look at the form by which it is known."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}".removeprefix("gatemark.trial.") for alias in node.names}
            if not names.isdisjoint({"kinds", *(f"kinds.{name}" for name in TRIAL_KINDS)}):
                yield node.lineno
        elif isinstance(node, ast.Attribute) and (last_name(node.value), node.attr) in FORMS:
            yield node.lineno


@pytest.mark.parametrize("file", [name for name in FILES if not name.startswith(("trial/", *MAKES_TRIALS))])
def test_nothing_asks_for_the_kind_of_a_trial(file: str) -> None:
    assert list(trial_kinds_asked_for(tree_of(FILES[file]))) == []


@pytest.mark.parametrize("file", MAKES_TRIALS)
def test_what_makes_trials_has_a_row_for_each_kind_and_compares_none(file: str) -> None:
    for node in ast.walk(tree_of(FILES[file])):
        if isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and last_name(node.func) == "isinstance"):
            assert TRIAL_KINDS.isdisjoint(last_name(part) for part in ast.walk(node) if isinstance(part, ast.expr))


@pytest.mark.parametrize(
    "line",
    [
        "from gatemark.trial.kinds import ECHO, kind_of",
        "from gatemark.trial.kinds import StatefulTrial",
        "from gatemark.trial import kinds",
        "order.form.echo is None",
        "if record.order.form.exchange: pass",
    ],
)
def test_a_question_for_the_kind_of_a_trial_is_seen(line: str) -> None:
    assert list(trial_kinds_asked_for(ast.parse(line))) == [1]
