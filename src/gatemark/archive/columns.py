"""Compares what a series says of its columns with its file and with their campaigns. No other file is opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gatemark.archive.recompute import Inputs, campaign_of, differences
from gatemark.campaign.columns import expecting_text, written_columns
from gatemark.config.vary import ColumnDocument
from gatemark.results.store import ResultFolder
from gatemark.results.toml_text import to_toml
from gatemark.series.document import SeriesColumn, SeriesDocument
from gatemark.series.parameters import parameters_of
from gatemark.series.store import SERIES_FILE, SeriesFolder, digest, folder_name


def column_faults(result: ResultFolder, document: SeriesDocument, inputs: Inputs) -> Iterator[str]:
    """Say where the columns are not those of the file of the series, or of the campaigns measured: a sentence each.

    Raises ConfigError if this gatemark cannot read them.
    """
    text = result.read_text(SERIES_FILE)
    if digest(text) != document.file_sha256:
        yield f"{SERIES_FILE} is not the one that was measured"
        return
    given, vary, due = written_columns(text, Path(document.file))
    if len(due) != len(document.columns):
        yield f"series.json has {len(document.columns):,} columns, {SERIES_FILE} has {len(due):,}"
        return
    columns = [column.model_dump(mode="json") for column in document.columns]
    varied = [each.model_dump(mode="json") for each in document.varied]
    stated = {"name": document.name, "varied": varied, "columns": columns}
    follows = {
        "name": given["name"],
        "varied": [{"keys": list(each.values), "titles": list(each.titles)} for each in vary],
        "columns": [
            {**as_json, **_from_file(each, len(due), column), **_measured(result, column, inputs)}
            for each, column, as_json in zip(due, document.columns, columns, strict=True)
        ],
    }
    yield from (f"series.json: {words}" for words in differences(stated, follows))


def _from_file(column: ColumnDocument, columns: int, stated: SeriesColumn) -> dict[str, Any]:
    """Return what the file of the series says of a column; its searches began where it is stated."""
    return {
        "number": column.number,
        "title": column.title,
        "folder": folder_name(column.number, columns, column.title),
        "steps": list(column.steps),
        "settings": dict(column.settings),
        "campaign_sha256": digest(expecting_text(to_toml(column.document), stated.expected)),
    }


def _measured(result: ResultFolder, stated: SeriesColumn, inputs: Inputs) -> dict[str, Any]:
    """Return what the campaign of a column says of it; nothing of one that was not begun."""
    folder = SeriesFolder(files=result).column(stated.folder)
    if not folder.has("campaign.json"):
        return {}
    return {"parameters": parameters_of(campaign_of(folder, inputs)).model_dump(mode="json")}
