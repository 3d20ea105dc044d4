"""`[[vary]]`: which keys of a campaign file change from column to column, and the document of each column. Pure.

The lists of one `[[vary]]` change together; several `[[vary]]` are crossed, the last one changing fastest. Keys that
`without` lists are taken out after all values were set. Columns that then differ in nothing are measured once.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict

from gatemark.config.check import nearest
from gatemark.config.keys import is_key, key_paths
from gatemark.errors import Problem

VARY = "vary"
TITLES = "titles"
WITHOUT = "without"
FROM_PREVIOUS = "search_from_previous"
OPTIONS = (TITLES, WITHOUT, FROM_PREVIOUS)
"""Keys of a `[[vary]]` that are no paths."""
COLUMNS_MAX = 1000
TITLE_CHARACTERS_MAX = 60


class VaryModel(BaseModel):
    """Keys that change together from column to column: each by its path in quotes, with a list of its values."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, tuple[Any, ...]]

    titles: tuple[str, ...] = ()
    """Name of each value, for tables and folders, of 1 to 60 characters. Default: the value of the first key, such as
    `count 1M`."""
    without: tuple[tuple[str, ...], ...] = ()
    """Paths of keys that columns do not have, a list for each value: `[[], ["connections", "gateway.table"]]` for a NAT
    and a router. Columns that then differ in nothing are measured once."""
    search_from_previous: bool = False
    """Searches begin near the results of the column before along this `[[vary]]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vary:
    """One `[[vary]]`."""

    values: Mapping[str, tuple[Any, ...]]
    """The values of each key as the file has them, by path; all of one length, which is not 0."""
    titles: tuple[str, ...]
    """One for each value."""
    without: tuple[tuple[str, ...], ...] = ()
    """Paths of the keys that the columns of each value do not have; empty: none."""
    search_from_previous: bool = False
    """Whether searches begin near the result of the column before."""

    def row(self, step: int) -> dict[str, Any]:
        """Return what each key is set to in one step, from 0."""
        return {path: values[step] for path, values in self.values.items()}

    @property
    def first(self) -> Vary:
        """The same keys with the first value of each only."""
        values = {path: values[:1] for path, values in self.values.items()}
        return replace(self, values=values, titles=self.titles[:1], without=self.without[:1])


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlace:
    """One column of a series, and how it differs from the others."""

    number: int
    """From 1, in the order in which columns are measured."""
    title: str
    settings: Mapping[str, Any]
    """Values of the varied keys, as the file has it, by path."""
    steps: tuple[int, ...]
    """Which value of each `[[vary]]` it has, from 0."""
    without: tuple[str, ...]
    """Keys of the file that it does not have, by path."""
    previous: int | None
    """Number of the column near whose results its searches begin; None: they begin as its file says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDocument(ColumnPlace):
    """The document of one column."""

    document: Mapping[str, Any]
    """The file without `[[vary]]` and these keys, and with the others set."""


def read_vary(
    document: Mapping[str, Any], model: type[BaseModel], where: str
) -> tuple[tuple[Vary, ...], list[Problem]]:
    """Return every `[[vary]]` of a file as far as it is right, and all that is wrong.

    `model` knows the keys that a campaign file may have, `where` is the file.
    """
    tables = document.get(VARY, [])
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        what = "is not a list of tables"
        return (), [Problem(what=what, where=f"{where}: {VARY}", fix=f"write [[{VARY}]] above the keys that vary")]
    reader = _Reader(where, sorted(key_paths(model)), [_by_path(table) for table in tables], document)
    if len(reader.paths) > COLUMNS_MAX:
        reader.tell("", f"varies more than {COLUMNS_MAX} keys", "leave out some, or write several files")
        return (), reader.problems
    read = [reader.read(number, table) for number, table in enumerate(reader.tables)]
    good = tuple(vary for vary in read if vary is not None)
    columns = math.prod(len(vary.titles) for vary in good)
    if columns > COLUMNS_MAX:
        reader.tell("", f"gives more than {COLUMNS_MAX} columns", "leave out values, or write several files")
    elif len({", ".join(titles) for titles in itertools.product(*(vary.titles for vary in good))}) < columns:
        reader.tell("", "names two columns alike", "write other titles")
    return good, reader.problems


def columns_of(document: Mapping[str, Any], vary: Sequence[Vary]) -> Iterator[ColumnDocument]:
    """Yield the columns of a file in the order in which they are measured.

    Steps that give the same document are one column, the first of them, without the titles in which they differ.
    """
    alike: dict[str, list[tuple[int, ...]]] = {}
    for steps in itertools.product(*(range(len(table.titles)) for table in vary)):
        whole = _document(document, vary, steps)
        alike.setdefault(json.dumps(whole, sort_keys=True, default=repr), []).append(steps)
    number_of = {steps: number for number, members in enumerate(alike.values(), 1) for steps in members}
    for number, members in enumerate(alike.values(), 1):
        steps = members[0]
        titles = [table.titles[step] for table, step in zip(vary, steps, strict=True)]
        is_same = [len(set(of_part)) == 1 for of_part in zip(*members, strict=True)]
        title = ", ".join([*itertools.compress(titles, is_same)] or titles)
        whole = _document(document, vary, steps)
        if isinstance(whole.get("name"), str):
            whole["name"] = f"{whole['name'][:30]}: {title}"[:100]
        before = _previous(vary, steps)
        yield ColumnDocument(
            number=number,
            title=title,
            settings=_settings(vary, steps),
            steps=steps,
            without=tuple(_without(vary, steps)),
            previous=None if before is None else number_of[before],
            document=whole,
        )


def _document(document: Mapping[str, Any], vary: Sequence[Vary], steps: tuple[int, ...]) -> dict[str, Any]:
    whole = {key: copy.deepcopy(value) for key, value in document.items() if key != VARY}
    for path, value in _settings(vary, steps).items():
        _set(whole, path.split("."), value)
    for path in _without(vary, steps):
        _remove(whole, path.split("."))
    return whole


def _settings(vary: Sequence[Vary], steps: tuple[int, ...]) -> dict[str, Any]:
    without = tuple(_without(vary, steps))
    return {
        path: value
        for table, step in zip(vary, steps, strict=True)
        for path, value in table.row(step).items()
        if not any(_is_below(path, gone) for gone in without)
    }


def _without(vary: Sequence[Vary], steps: tuple[int, ...]) -> Iterator[str]:
    for table, step in zip(vary, steps, strict=True):
        yield from table.without[step] if table.without else ()


def _previous(vary: Sequence[Vary], steps: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the steps of the column before along the last part that says so and has one."""
    for part in reversed(range(len(vary))):
        if vary[part].search_from_previous and steps[part]:
            return (*steps[:part], steps[part] - 1, *steps[part + 1 :])
    return None


def value_words(value: Any) -> str:
    """Return a value of the file in words: a text without quotes, a list with commas."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ",".join(value_words(item) for item in value)
    if isinstance(value, dict):
        return " ".join(f"{key} {value_words(item)}" for key, item in value.items())
    return json.dumps(value, default=str)


class _Reader:
    """Reads the tables of a file and gathers what is wrong with them."""

    def __init__(
        self, where: str, known: Sequence[str], tables: Sequence[Mapping[str, Any]], document: Mapping[str, Any]
    ) -> None:
        self.tables = tables
        self.problems: list[Problem] = []
        self._where, self._known, self._document = where, known, document
        self.paths = [path for table in tables for path in table if path not in OPTIONS]

    def tell(self, at: str, what: str, fix: str) -> None:
        """Add a problem; `at` is the place below `vary`, such as "[0].titles"."""
        self.problems.append(Problem(what=what, where=f"{self._where}: {VARY}{at}", fix=fix))

    def read(self, number: int, table: Mapping[str, Any]) -> Vary | None:
        """Return one `[[vary]]` without the keys that are wrong; None if nothing is left."""
        values = {path: value for path, value in table.items() if path not in OPTIONS}
        if not values:
            self.tell(f"[{number}]", "varies nothing", 'add a key, for example "connections.count" = ["1M", "2M"]')
        good = {
            path: tuple(value) for path, value in values.items() if self._is_good(f"[{number}].{path}", path, value)
        }
        if not good:
            return None
        first, count = next((path, len(column)) for path, column in good.items())
        for path, column in list(good.items()):
            if len(column) != count:
                self.tell(
                    f"[{number}].{path}",
                    f"has {len(column)} values, {first} has {count}",
                    "the lists of one [[vary]] change together and have the same length; to combine a key with every"
                    " other value, give it a [[vary]] of its own",
                )
                del good[path]
        without = self._without(number, table, count)
        rows = list(zip(*good.values(), *([without] if without else []), strict=True))
        for later, row in enumerate(rows):
            if row in rows[:later]:
                same = f"values {rows.index(row) + 1} and {later + 1} of every list are the same"
                self.tell(f"[{number}]", same, "leave one out; repetitions says how often a column is measured")
        from_previous = table.get(FROM_PREVIOUS, False)
        if not isinstance(from_previous, bool):
            self.tell(f"[{number}].{FROM_PREVIOUS}", "is neither true nor false", "write true, or leave it out")
        return Vary(
            values=good,
            titles=self._titles(number, table, good, count),
            without=without,
            search_from_previous=from_previous is True,
        )

    def _without(self, number: int, table: Mapping[str, Any], count: int) -> tuple[tuple[str, ...], ...]:
        """Return which keys the columns of each value do not have; empty if all of them have all."""
        given, at = table.get(WITHOUT), f"[{number}].{WITHOUT}"
        if given is None:
            return ()
        lists = isinstance(given, list) and all(isinstance(paths, list) for paths in given)
        if not lists or not all(isinstance(path, str) for paths in given for path in paths):
            self.tell(at, "is not a list of lists of texts", 'write for example without = [[], ["connections"]]')
        elif len(given) != count:
            self.tell(at, f"has {len(given)} lists for {count} values", "give one list for each value; it may be empty")
        else:
            for path in dict.fromkeys(path for paths in given for path in paths):
                if not is_key(path, self._known):
                    guess = nearest(path, self._known)
                    fix = f"did you mean {guess}?" if guess else "write a path of the file, such as connections"
                    self.tell(at, f"{path} names no key of the campaign file", fix)
                elif not self._is_set(path):
                    self.tell(at, f"the file has no key {path}", "leave it out")
            return tuple(tuple(paths) for paths in given)
        return ()

    def _is_set(self, path: str) -> bool:
        """Whether the file has a key, or one inside of it varies."""
        return _has(self._document, path.split(".")) or any(_is_below(varied, path) for varied in self.paths)

    def _is_good(self, at: str, path: str, value: Any) -> bool:
        if not is_key(path, self._known):
            guess = nearest(path, self._known)
            fix = f"did you mean {guess}?" if guess else "write a path of the file, such as connections.count"
            self.tell(at, "names no key of the campaign file", fix)
        elif not isinstance(value, list):
            self.tell(at, f"is {value_words(value)}, not a list", "list the values of the key, one for each column")
        elif len(value) > COLUMNS_MAX:
            self.tell(at, f"has more than {COLUMNS_MAX} values", "leave out some, or write several files")
        elif not value:
            self.tell(at, "is an empty list", "list the values of the key, one for each column, or leave it out")
        elif self.paths.count(path) > 1:
            self.tell(at, "is varied twice", "vary each key in one [[vary]] only")
        elif over := next((other for other in self.paths if path.startswith(f"{other}.")), None):
            self.tell(at, f"is part of {over}, which is varied as well", "vary one of them")
        else:
            return True
        return False

    def _titles(
        self, number: int, table: Mapping[str, Any], values: Mapping[str, Sequence[Any]], count: int
    ) -> tuple[str, ...]:
        given, at = table.get(TITLES), f"[{number}].{TITLES}"
        if given is None:
            return self._own_titles(number, values)
        if not isinstance(given, list) or not all(map(_is_title, given)):
            self.tell(at, "is not a list of texts", 'name the columns, for example titles = ["small", "large"]')
        elif len(given) != count:
            self.tell(at, f"has {len(given)} names for {count} values", "give one name for each value, or leave it out")
        elif len(set(given)) < count:
            self.tell(at, "names two columns alike", "give each a name of its own, or leave titles out")
        elif any(len(title) > TITLE_CHARACTERS_MAX for title in given):
            self.tell(at, f"has a name of more than {TITLE_CHARACTERS_MAX} characters", "shorten it")
        else:
            return tuple(given)
        return tuple(str(step + 1) for step in range(count))

    def _own_titles(self, number: int, values: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
        """Name the values by the first key, or by all if the first one has a value twice."""
        columns = {path: [value_words(value) for value in column] for path, column in values.items()}
        first = next(iter(columns))
        naming = [first] if len(set(columns[first])) == len(columns[first]) else list(columns)
        rows = zip(*(columns[path] for path in naming), strict=True)
        titles = [
            ", ".join(f"{self._label(path)} {words}" for path, words in zip(naming, row, strict=True)) for row in rows
        ]
        if any(len(title) > TITLE_CHARACTERS_MAX for title in titles) or len(set(titles)) < len(titles):
            self.tell(
                f"[{number}]", "has values that are too long or too alike to name columns", "write titles = [...]"
            )
        return tuple(titles)

    def _label(self, path: str) -> str:
        """Return the end of a path, as short as tells it from the others."""
        parts = path.split(".")
        for length in range(1, len(parts)):
            end = ".".join(parts[-length:])
            if not any(other != path and other.endswith(f".{end}") for other in self.paths):
                return end
        return path


def _is_title(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _by_path(table: Mapping[str, Any], at: str = "") -> dict[str, Any]:
    """Return the values of a table by path: a path without quotes is a table in TOML."""
    paths: dict[str, Any] = {}
    for key, value in table.items():
        paths |= _by_path(value, f"{at}{key}.") if isinstance(value, dict) else {f"{at}{key}": value}
    return paths


def _is_below(path: str, other: str) -> bool:
    """Whether a path is another one, or the path of a key inside of it."""
    return path == other or path.startswith(f"{other}.")


def _has(document: Any, parts: Sequence[str]) -> bool:
    for part in parts:
        if not isinstance(document, dict) or part not in document:
            return False
        document = document[part]
    return True


def _remove(document: dict[str, Any], parts: Sequence[str]) -> None:
    """Remove a key where it is there."""
    if _has(document, parts):
        *above, last = parts
        for part in above:
            document = document[part]
        del document[last]


def _set(document: dict[str, Any], parts: Sequence[str], value: Any) -> None:
    """Set a key; where a table is no table in the file nothing is set, because the file is wrong in any case."""
    *above, last = parts
    for part in above:
        document = document.setdefault(part, {})
        if not isinstance(document, dict):
            return
    document[last] = copy.deepcopy(value)
