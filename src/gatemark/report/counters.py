"""Counters of the engine and the test bed: a table of everything that was counted. Pure.

A counter is a field of the record of a trial that is marked `Counter`.
`tests/counter_places.py` says where the report shows the others, and which stay in the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel

from gatemark.report.model import TrialRow
from gatemark.report.table import Column, Section, table_of
from gatemark.report.words import format_count
from gatemark.trial.delay import DelayFacts
from gatemark.trial.facts import Counter
from gatemark.trial.loss import LossFacts
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import Counts, DirectionResult, Foreign, PortFacts, SendingClocks, TrialReport

PLACES: Mapping[str, type[BaseModel]] = {
    "counts": Counts,
    "loss": LossFacts,
    "delay": DelayFacts,
    "clocks": SendingClocks,
    "direction": DirectionResult,
    "port": PortFacts,
    "foreign": Foreign,
    "record": TrialRecord,
}
"""Where counters stand in the record of a trial."""

COUNTERS: Mapping[str, Counter] = {
    f"{place}.{name}": mark
    for place, model in PLACES.items()
    for name, field in model.model_fields.items()
    for mark in field.metadata
    if isinstance(mark, Counter)
}
"""Shown in the table of everything that was counted, by the place of the counter in the record of a trial. A counter
with several names, such as drops by place, has one row each."""


def count(reports: Iterable[TrialReport], **of_the_record: Mapping[str, int]) -> dict[str, int]:
    """Return the counters of a trial that are not 0, by place; if a counter has several names, by place and name.

    `of_the_record`: drops by place that the record holds in addition to the engine's report.
    """
    totals: dict[str, int] = {}
    drops = [(f"record.{name}", by_place) for name, by_place in of_the_record.items()]
    for place, value in (*(counter for report in reports for counter in _counters(report)), *drops):
        for key, number in _named(place, value):
            totals[key] = COUNTERS[place].total((totals.get(key, 0), number))
    return {key: number for key, number in totals.items() if number}


def counter_section(trials: Sequence[TrialRow]) -> Section:
    """Return the table of everything that was counted in the trials that count: valid ones that are not suspect."""
    counted = [trial for trial in trials if trial.outcome in ("passed", "failed")]
    rows = tuple(_rows(counted))
    if not rows:
        return Section(title="", lead=("Nothing else was counted: every counter is 0 in all trials that count.",))
    note = (
        "Trials that are invalid or suspect do not count. Counters that are 0 in all others are left out; the journal"
        " holds all of them for each trial."
    )
    return Section(title="", tables=(table_of("", COLUMNS, rows, notes=(note,)),))


class _Row(NamedTuple):
    """A counter, with its number in each trial that has it."""

    words: str
    counter: Counter
    numbers: Sequence[int]


COLUMNS: tuple[Column[_Row], ...] = (
    Column("counted", lambda row: row.words, numeric=False),
    Column("whose", lambda row: row.counter.whose, numeric=False),
    Column("in all trials that count", lambda row: format_count(row.counter.total(row.numbers))),
    Column("trials", lambda row: format_count(len(row.numbers))),
)


def _rows(trials: Sequence[TrialRow]) -> Iterator[_Row]:
    keys = {key for trial in trials for key in trial.counters}
    for place, counter in COUNTERS.items():
        for key in sorted(key for key in keys if key.partition(" ")[0] == place):
            name = key.partition(" ")[2]
            words = f"{counter.words} ({name})" if name else counter.words
            yield _Row(words, counter, [trial.counters[key] for trial in trials if key in trial.counters])


def _counters(report: TrialReport) -> Iterator[tuple[str, object]]:
    """Yield place and value of every counter of a report that has a row."""
    for direction in report.directions:
        parts: list[tuple[str, object]] = [("direction", direction)]
        for _, counts in direction.classes:
            parts += [("counts", counts), ("loss", counts.loss), ("delay", counts.delay)]
        yield from _of(parts)
    for port in report.ports.values():
        yield from _of([("port", port), ("foreign", port.foreign)])


def _of(parts: Sequence[tuple[str, object]]) -> Iterator[tuple[str, object]]:
    for name, part in parts:
        for place in COUNTERS:
            prefix, _, field = place.partition(".")
            if prefix == name:
                yield place, getattr(part, field)


def _named(place: str, value: object) -> Iterator[tuple[str, int]]:
    if isinstance(value, Mapping):
        yield from ((f"{place} {name}", int(number)) for name, number in value.items())
    elif isinstance(value, int):
        yield place, int(value)
