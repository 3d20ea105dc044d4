"""The objects that gatemark publishes, in the order of their page."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from types import ModuleType

from tests.references.objects import Page
from tests.references.page import table

from gatemark.compare.document import ComparisonDocument
from gatemark.config.described import one_line
from gatemark.pairs.document import PairDocument
from gatemark.procedures.registry import PROCEDURES
from gatemark.results import store
from gatemark.results.coordinates import NAMES
from gatemark.results.document import ResultDocument
from gatemark.results.provenance import Provenance
from gatemark.results.quantity import COLUMNS
from gatemark.results.run import RunResult
from gatemark.results.search import RateResult
from gatemark.series import store as series_store
from gatemark.series.document import SeriesDocument


def _heading(block: str, path: str) -> str:
    if block in PROCEDURES:
        return f"`{path}` of `{block}`"
    return f"`runs[].{path}`" if block in ("run", "rate") else f"`{path}`"


PAGE = Page(
    roots={
        "result": ResultDocument,
        "run": RunResult,
        "rate": RateResult,
        **{name: row.result for name, row in PROCEDURES.items()},
        "series": SeriesDocument,
        "comparison": ComparisonDocument,
        "pair": PairDocument,
        "provenance": Provenance,
    },
    heading=_heading,
)


def _columns() -> str:
    always = ((name, column.unit, column.meaning) for name, column in COLUMNS.items())
    others = ((name, unit, meaning) for name, unit, meaning, always in NAMES if meaning and not always)
    rows = ((f"`{name}`", unit, meaning) for name, unit, meaning in (*always, *others))
    return table(("column", "unit", "meaning"), rows)


def _quantities() -> str:
    of: dict[type[RunResult], list[str]] = {}
    for name, row in PROCEDURES.items():
        of.setdefault(row.result, []).append(f"`{name}`")
    rows = (
        (", ".join(names), kind.name, kind.unit, kind.better or "", kind.source)
        for result, names in of.items()
        for kind in result.kinds
    )
    return table(("procedure", "quantity", "unit", "better", "RFC section"), rows)


def _files(module: ModuleType) -> str:
    """Return the files of a folder, from the list in the docstring of the module that writes it."""
    entries = re.findall(r"(?m)^    DIR/(\S+) (.+(?:\n {6,}.+)*)", inspect.getdoc(module) or "")
    return table(("file", "what it holds"), ((f"`{name}`", words) for name, words in entries))


OTHERS: Mapping[str, Callable[[], str]] = {
    "files of a result folder": lambda: _files(store),
    "columns of result.csv": _columns,
    "quantities": _quantities,
    "files of a series": lambda: _files(series_store),
}
"""Tables of the page that are no objects of JSON."""


def block(name: str) -> str:
    """Return a block of the page: of a procedure the docstring of its result, and its keys."""
    if name in OTHERS:
        return OTHERS[name]()
    return f"{_lead(PROCEDURES[name].result)}\n\n{PAGE.block(name)}" if name in PROCEDURES else PAGE.block(name)


def _lead(result: type[RunResult]) -> str:
    words = one_line(inspect.getdoc(result) or "")
    return f"{words}\n\nA run that searches for a rate, and:" if issubclass(result, RateResult) else words
