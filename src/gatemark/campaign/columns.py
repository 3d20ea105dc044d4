"""A campaign file with `[[vary]]` as the campaigns that it stands for: one for each column of the series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from gatemark.campaign.file import CampaignText, campaign_from_text
from gatemark.config import model
from gatemark.config.load import campaign_of_file, document_of_text, text_of
from gatemark.config.problems import raise_if_any
from gatemark.config.vary import VARY, ColumnDocument, ColumnPlace, Vary, columns_of, read_vary
from gatemark.errors import ConfigError, Problem
from gatemark.procedures.registry import CampaignFile
from gatemark.results.toml_text import to_toml

EXPECTED = "expected"
"""Key of a table that searches: near which result its search begins."""

C = TypeVar("C")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(ColumnPlace):
    """One campaign of a series."""

    source: CampaignText

    @property
    def campaign(self) -> model.CampaignFile:
        """Return the campaign as it is written."""
        return self.source.campaign

    def expecting(self, results: Mapping[str, int]) -> tuple[Column, dict[str, int]]:
        """Return the column with these results expected, by table, where its file expects none; and which those are."""
        path = self.source.file or Path()
        document = document_of_text(self.source.text, path=path)
        used = {
            key: value
            for key, value in results.items()
            if isinstance(document.get(key), dict) and EXPECTED not in document[key]
        }
        if not used:
            return self, {}
        text = expecting_text(self.source.text, used)
        campaign = campaign_from_text(text, path).renamed(source=self.campaign.source)
        return replace(self, source=replace(self.source, campaign=campaign, text=text)), used


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesFile:
    """A campaign file with `[[vary]]`."""

    name: str
    file: Path
    text: str
    vary: tuple[Vary, ...]
    columns: tuple[Column, ...]


def expecting_text(text: str, results: Mapping[str, int]) -> str:
    """Return the text of a column that expects these results, by table."""
    if not results:
        return text
    document = document_of_text(text, path=Path())
    for key, value in results.items():
        document[key][EXPECTED] = value
    return to_toml(document)


def varies(file: Path | str) -> bool:
    """Whether a campaign file has `[[vary]]`. Raises ConfigError if it cannot be read."""
    return VARY in document_of_text(text_of(Path(file)), path=Path(file))


def load_series(file: Path | str) -> SeriesFile:
    """Read a campaign file with `[[vary]]`. Raises ConfigError with all problems of all columns."""
    return series_of_text(text_of(Path(file)), Path(file))


def series_of_text(text: str, file: Path) -> SeriesFile:
    """Build a series from the text of the file that lies, or lay, at `file`. Raises ConfigError with all problems."""
    document = document_of_text(text, path=file)
    vary, problems = read_vary(document, CampaignFile, str(file))
    # with problems of [[vary]], those of the file are told as well, as far as its first column shows them
    documents = list(columns_of(document, [table.first for table in vary] if problems else vary))
    places = [(str(file), _named(file, column)) for column in documents]
    columns, more = _each(places, documents, lambda column: _column(column, file))
    raise_if_any([*problems, *more])
    return SeriesFile(name=str(document["name"]), file=file, text=text, vary=vary, columns=columns)


def of_each(series: SeriesFile, make: Callable[[Column], T]) -> tuple[T, ...]:
    """Return what `make` gives for each column. Raises ConfigError with all problems of all columns."""
    places = [(str(series.file), column.campaign.source) for column in series.columns]
    results, problems = _each(places, series.columns, make)
    raise_if_any(problems)
    return results


def written_columns(text: str, file: Path) -> tuple[dict[str, Any], tuple[Vary, ...], tuple[ColumnDocument, ...]]:
    """Return the document of a file that lies, or lay, at `file`, its `[[vary]]`, and columns; no other file is opened.

    Raises ConfigError if it is no TOML, or for what is wrong with `[[vary]]`.
    """
    document = document_of_text(text, path=file)
    vary, problems = read_vary(document, CampaignFile, str(file))
    raise_if_any(problems)
    return document, vary, tuple(columns_of(document, vary))


def _column(column: ColumnDocument, file: Path) -> Column:
    campaign = campaign_of_file(column.document, CampaignFile, path=file)
    return Column(
        **{part.name: getattr(column, part.name) for part in fields(ColumnPlace)},
        source=CampaignText(
            campaign=campaign.renamed(source=_named(file, column)), text=to_toml(column.document), file=file.resolve()
        ),
    )


def _named(file: Path, column: ColumnDocument) -> str:
    """Return the name of a column for messages."""
    return f"{file}, column {column.number} ({column.title})"


def _each(
    places: Sequence[tuple[str, str]], columns: Sequence[C], make: Callable[[C], T]
) -> tuple[tuple[T, ...], list[Problem]]:
    """Make something for each column, and gather all problems; one that every column has is told once, of the file.

    `places` has the names of file and column with which the place of a problem may begin.
    """
    results: list[T] = []
    numbers_of: dict[Problem, list[int]] = {}
    for number, ((file, column), of_column) in enumerate(zip(places, columns, strict=True)):
        try:
            results.append(make(of_column))
        except ConfigError as error:
            for problem in error.problems:
                where = problem.where.removeprefix(column).removeprefix(file)
                where = f"{file}{where}" if where.startswith(":") or not where else problem.where
                numbers_of.setdefault(replace(problem, where=where), []).append(number)
    return tuple(results), list(_told(numbers_of, places))


def _told(numbers_of: Mapping[Problem, Iterable[int]], places: Sequence[tuple[str, str]]) -> Iterable[Problem]:
    for problem, numbers in numbers_of.items():
        columns = sorted(set(numbers))
        if len(columns) == len(places):
            yield problem
            continue
        file, named = places[columns[0]]
        if len(columns) > 1:
            named = f"{file}, columns {', '.join(str(number + 1) for number in columns)}"
        of_file = problem.where.startswith(file)
        where = f"{named}{problem.where.removeprefix(file)}" if of_file else f"{named}: {problem.where}"
        yield replace(problem, where=where)
