"""The folder of a series.

::

    DIR/series.toml       the campaign file as it was given
    DIR/series.json       the columns, and each metric over them, below; JSON Schema in
                          [series.schema.json](series.schema.json)
    DIR/series.csv        the rows of all `result.csv`, with `column`, `title`, `outcome` and each varied key as further
                          columns; a column without figures has one row with the reason in `refused`
    DIR/report.html       the report of the series; it is made again after each run, and says what is missing and when
                          it is expected
    DIR/01-TITLE/         the result folder of column 1, like that of any campaign
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gatemark.errors import ResultError
from gatemark.results.document import ResultDocument
from gatemark.results.quantity import Quantity, to_csv
from gatemark.results.store import ResultFolder, file_name
from gatemark.series.document import SERIES_SCHEMA, SeriesDocument
from gatemark.series.join import csv_rows
from gatemark.stored import read_document

SERIES_FILE = "series.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesFolder:
    """The folder of a series; a file is written completely or left unchanged."""

    files: ResultFolder

    @classmethod
    def create(cls, path: Path) -> SeriesFolder:
        """Make a new folder; one that already holds a campaign or a series is refused."""
        if is_series(path):
            raise ResultError(
                what="the folder already holds a series",
                where=str(path),
                fix=f"name another folder with --output, or continue this one with: gatemark run --resume {path}",
            )
        return cls(files=ResultFolder.create(path))

    @classmethod
    def open(cls, path: Path) -> SeriesFolder:
        """Open the folder of a series that was started before."""
        if not is_series(path):
            raise ResultError(
                what=f"this is not the folder of a series: it holds no {SERIES_FILE}",
                where=str(path),
                fix="name the folder that `gatemark run` printed",
            )
        return cls(files=ResultFolder(path=path))

    @property
    def path(self) -> Path:
        return self.files.path

    def read(self) -> SeriesDocument:
        """Return the checked series.json."""
        return self.files.read_published("series.json", SeriesDocument, SERIES_SCHEMA)

    def column(self, name: str) -> ResultFolder:
        """Return the result folder of a column; it need not exist."""
        return ResultFolder(path=self.path / name)

    def results(self, document: SeriesDocument) -> dict[int, ResultDocument]:
        """Return what the columns found so far, by the number of the column.

        Raises ResultError if a folder holds another campaign than that of its column.
        """
        results = {}
        for column in document.columns:
            folder = self.column(column.folder)
            if folder.has("campaign.toml") and digest(folder.read_text("campaign.toml")) != column.campaign_sha256:
                raise ResultError(
                    what=f"campaign.toml in {column.folder} is not that of column {column.number}",
                    where=str(self.path),
                    fix="undo the change, or measure the new series into a new folder",
                )
            if folder.has("result.json"):
                results[column.number] = read_document(folder)
        return results

    def write(
        self,
        document: SeriesDocument,
        results: Mapping[int, ResultDocument],
        more: Mapping[int, Sequence[Quantity]],
        page: str | None,
    ) -> None:
        """Write series.csv, the report if there is one, and series.json; `more` has figures of columns under way."""
        self.files.write_text("series.csv", to_csv(csv_rows(document, results, more)))
        if page is not None:
            self.files.write_text("report.html", page)
        self.files.write_text("series.json", document.to_text())


def digest(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def is_series(path: Path) -> bool:
    """Whether a folder is that of a series."""
    return (path / SERIES_FILE).is_file()


def folder_name(number: int, columns: int, title: str) -> str:
    """Return the name of a column's folder: 02-cores_4."""
    return f"{number:0{max(2, len(str(columns)))}}-{file_name(title)[:60]}"
