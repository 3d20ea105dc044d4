"""Every file of the reference that is made of the code, in whole or in part."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import BaseModel
from tests.references import campaign
from tests.references.page import filled

from gatemark.campaign.file import schema_text
from gatemark.cli.man_page import man_page
from gatemark.compare.document import ComparisonDocument
from gatemark.procedures.registry import PublishedDocument
from gatemark.series.document import SeriesDocument

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"

PAGES: Mapping[Path, Callable[[str], str]] = {
    REFERENCE / "campaign-file.md": campaign.block,
}
"""Pages by hand, and what makes their blocks."""

WHOLE: Mapping[Path, Callable[[], str]] = {
    REFERENCE / "campaign-file.schema.json": schema_text,
    REFERENCE / "result.schema.json": lambda: _schema(PublishedDocument),
    REFERENCE / "series.schema.json": lambda: _schema(SeriesDocument),
    REFERENCE / "comparison.schema.json": lambda: _schema(ComparisonDocument),
    REFERENCE / "gatemark.1": man_page,
}
"""Files of which nothing is by hand."""

MADE = (*PAGES, *WHOLE)


def made(path: Path) -> str:
    """Return what a file has to hold."""
    return WHOLE[path]() if path in WHOLE else filled(path.read_text(encoding="utf-8"), PAGES[path])


def _schema(model: type[BaseModel]) -> str:
    return json.dumps(model.model_json_schema(by_alias=True, mode="serialization"), indent=2) + "\n"
