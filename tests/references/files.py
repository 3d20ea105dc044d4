"""Every file of the reference that is made of the code, in whole or in part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.references import campaign, commands, counters, protocol, refdut, results
from tests.references.objects import described_schema
from tests.references.page import filled

from gatemark.campaign.file import schema_text
from gatemark.compare.document import ComparisonDocument
from gatemark.pairs.document import PairDocument
from gatemark.procedures.registry import PublishedDocument
from gatemark.series.document import SeriesDocument

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"
PROTOCOL = ROOT / "protocol"

PAGES: Mapping[Path, Callable[[str], str]] = {
    REFERENCE / "campaign-file.md": campaign.block,
    REFERENCE / "result-keys.md": results.block,
    REFERENCE / "counters.md": counters.block,
    REFERENCE / "command-line.md": commands.block,
    REFERENCE / "refdut.md": refdut.block,
}
"""Pages by hand, and what makes their blocks."""

WHOLE: Mapping[Path, Callable[[], str]] = {
    REFERENCE / "campaign-file.schema.json": schema_text,
    REFERENCE / "result.schema.json": lambda: described_schema(PublishedDocument),
    REFERENCE / "series.schema.json": lambda: described_schema(SeriesDocument),
    REFERENCE / "comparison.schema.json": lambda: described_schema(ComparisonDocument),
    REFERENCE / "pair.schema.json": lambda: described_schema(PairDocument),
    REFERENCE / "gatemark.1": commands.man_page,
    PROTOCOL / "request.schema.json": protocol.request_schema,
    PROTOCOL / "answer.schema.json": protocol.answer_schema,
    PROTOCOL / "messages.md": protocol.messages_page,
}
"""Files of which nothing is by hand."""

MADE = (*PAGES, *WHOLE)


def made(path: Path) -> str:
    """Return what a file has to hold."""
    return WHOLE[path]() if path in WHOLE else filled(path.read_text(encoding="utf-8"), PAGES[path])
