"""Which of two gateways in a row damaged frames: a row for each kind of fault of each run. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gatemark.report.table import Column, Section, table_of
from gatemark.report.words import format_count
from gatemark.results.document import ResultDocument
from gatemark.results.run import FrameDamage, RunResult

LEAD = (
    "After the first trial with a fault, a short one at a low load is captured on all three links, and each frame that"
    " arrives damaged is compared with the output due from each gateway. All counts but `faulty` are of the short"
    " trial, which changes no result."
)

COLUMNS: tuple[Column[tuple[RunResult, FrameDamage]], ...] = (
    Column("run", lambda row: str(row[0].number), names=True),
    Column("trial", lambda row: str(row[1].trial)),
    Column("frames", lambda row: f"{row[1].direction} {row[1].traffic_class}", names=True, numeric=False),
    Column("fault", lambda row: row[1].reason, numeric=False),
    Column("faulty", lambda row: format_count(row[1].faulty)),
    Column("again", lambda row: format_count(row[1].again)),
    Column("customer's", lambda row: format_count(row[1].customer)),
    Column("provider's", lambda row: format_count(row[1].provider)),
    Column("both", lambda row: format_count(row[1].both)),
    Column("undecided", lambda row: format_count(row[1].undecided)),
    Column("answer", lambda row: row[1].sentence, numeric=False),
)


def damages_section(document: ResultDocument) -> Section:
    """Return the damage of each run; no table if there is none."""
    rows = ((run, damage) for run in document.runs for damage in run.damages)
    return Section(title="Which gateway damaged frames?", lead=(LEAD,), tables=(table_of("", COLUMNS, rows),))


def damages_sentences(document: ResultDocument) -> Iterator[str]:
    """Yield the damage of each run, for the terminal."""
    for run in document.runs:
        for damage in run.damages:
            yield (
                f"run {run.number}: {damage.direction} {damage.traffic_class}, fault {damage.reason}: {damage.sentence}"
            )
