"""What keys are, in the words of their docstrings. Those are read from the sources, and only when somebody asks.

Pydantic can read them itself (`use_attribute_docstrings`). It does so at every import, which made each command start
0.2 s later.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel

from gatemark.config.keys import models_in
from gatemark.config.only import With, rules_of


def described(model: type[BaseModel], name: str) -> str:
    """Return what a key is: the docstring of its field or of its table, with the rules that say for what it is."""
    field = model.model_fields[name]
    tables = (one_line(inspect.getdoc(table) or "").partition("\n")[0] for table in models_in(field.annotation))
    rules = rules_of(field)
    words = "".join(f" {'with' if rule.procedure else 'of'} {rule.words}" for rule in rules)
    spared = "".join(f", except `{rule.but}`" for rule in rules if rule.but is not None)
    only = f" For {words.split(maxsplit=1)[1]} only{spared}." if rules else ""
    withs = (rule.words().partition(" ") for rule in field.metadata if isinstance(rule, With))
    besides = "".join(f" {word.capitalize()} `{other}` only." for word, _, other in withs)
    return (docstring_of(model, name) or next(tables, "")) + only + besides


def docstring_of(owner: type, name: str) -> str:
    """Return the docstring of a field or a property as one line for each paragraph; empty if there is none."""
    texts = (_in_source(inspect.getsourcefile(base) or "", base.__qualname__).get(name) for base in _classes(owner))
    return one_line(next((text for text in texts if text), ""))


def one_line(text: str) -> str:
    """Return a text with each paragraph on one line."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _classes(owner: type) -> Iterator[type]:
    """Yield a class and its bases as far as they have a source."""
    yield from (base for base in owner.__mro__ if base.__module__.startswith(__name__.partition(".")[0] + "."))


def _in_source(file: str, class_name: str) -> Mapping[str, str]:
    return _classes_of(file).get(class_name, {})


@cache
def _classes_of(file: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings in a file by class and name."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {node.name: dict(_docstrings(node)) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _docstrings(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, following in pairwise([*node.body, ast.Pass()]):
        if isinstance(statement, ast.FunctionDef):
            yield statement.name, ast.get_docstring(statement) or ""
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            value = following.value if isinstance(following, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield statement.target.id, inspect.cleandoc(value.value)
