"""The table of every trial. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from gatemark.report.model import DirectionRow, ReportPart, TrialRow
from gatemark.report.table import Column, Section, table_of
from gatemark.report.words import format_count, format_time
from gatemark.trial.host_counters import counter_words
from gatemark.units import format_duration_ns

MARKS = {
    "passed": "●\N{NO-BREAK SPACE}passed",
    "failed": "✕\N{NO-BREAK SPACE}failed",
    "suspect": "▽\N{NO-BREAK SPACE}suspect",
    "invalid": "△\N{NO-BREAK SPACE}invalid",
}
"""The symbols survive black-and-white printing."""
CANCELLED = "|\N{NO-BREAK SPACE}cancelled"


class _Row(NamedTuple):
    """One direction of a trial; the first row says what the trial was."""

    trial: TrialRow
    direction: DirectionRow | None
    is_first: bool


def trial_section(part: ReportPart) -> Section:
    """Return the table of every trial of a campaign. Below a trial stands why it does not count, or failed."""
    rows: list[_Row | str] = []
    quiet, remarks = set(), set()
    for trial in part.trials:
        begin = len(rows)
        rows += [_Row(trial, direction, place == 0) for place, direction in enumerate(trial.directions or (None,))]
        if trial.outcome not in ("passed", "failed"):
            quiet |= {*range(begin, len(rows)), *({len(rows)} if trial.reasons else ())}
        if trial.reasons:
            remarks.add(len(rows))
            told = (*trial.reasons, *(cause.told for cause, _ in trial.losses), *_counted(trial))
            rows.append("; ".join(told))
    table = table_of("", tuple(_columns(part)), rows)
    return Section(title="", tables=(replace(table, quiet_rows=frozenset(quiet), remark_rows=frozenset(remarks)),))


def _counted(trial: TrialRow) -> Iterator[str]:
    """Say what the gateway's host counted, if it did."""
    lost = sum(direction.lost for direction in trial.directions)
    if trial.host is not None and (words := counter_words(trial.host.counters, lost)):
        yield words


def _columns(part: ReportPart) -> Iterator[Column[_Row]]:
    yield _of_trial("trial", lambda trial: str(trial.trial_number))
    yield _of_trial("run", lambda trial: str(trial.run))
    yield _of_trial("rep.", lambda trial: str(trial.repetition))
    yield _of_trial("purpose", _purpose, numeric=False)
    yield _of_trial("outcome", lambda trial: MARKS.get(trial.outcome, CANCELLED), numeric=False)
    if part.is_stateful:
        yield _of_trial("phase", lambda trial: trial.phase, numeric=False)
        yield _of_trial("connec-\ntions", lambda trial: format_count(trial.connections))
        yield _of_trial("phase 1\nattempts", lambda trial: str(trial.phase_one_attempts or ""))
    yield _of_trial("load", lambda trial: format_count(trial.frames_per_second))
    yield _of_trial("sending", lambda trial: format_duration_ns(trial.duration_ns))
    yield _of_direction("direction", lambda way: way.direction, numeric=False)
    yield _of_direction("offered / intended", lambda way: f"{format_count(way.offered)} / {format_count(way.intended)}")
    yield _of_direction("received", lambda way: format_count(way.received))
    yield _of_direction("lost", lambda way: format_count(way.lost))
    yield _of_direction("wrong", lambda way: format_count(way.faulty))
    if part.has_late_frames:
        yield _of_direction("too late", lambda way: format_count(way.late))
    yield _of_direction("dupl.", lambda way: format_count(way.duplicate))
    yield _of_direction("late max.", lambda way: format_time(way.lateness_max_ns))


def _purpose(trial: TrialRow) -> str:
    again = f" (attempt {trial.attempt})" if trial.attempt > 1 else ""
    return trial.purpose.replace("_", " ") + again


def _of_trial(heading: str, cell: Callable[[TrialRow], str], *, numeric: bool = True) -> Column[_Row]:
    return Column(heading, lambda row: cell(row.trial) if row.is_first else "", numeric=numeric)


def _of_direction(heading: str, cell: Callable[[DirectionRow], str], *, numeric: bool = True) -> Column[_Row]:
    return Column(heading, lambda row: "" if row.direction is None else cell(row.direction), numeric=numeric)
