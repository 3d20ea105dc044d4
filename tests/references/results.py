"""The objects that gatemark publishes, in the order of their page."""

from __future__ import annotations

from tests.references.objects import Page

from gatemark.compare.document import ComparisonDocument
from gatemark.procedures.registry import PROCEDURES
from gatemark.results.document import ResultDocument
from gatemark.results.provenance import Provenance
from gatemark.results.run import RunResult
from gatemark.results.search import RateResult
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
        "provenance": Provenance,
    },
    heading=_heading,
)
