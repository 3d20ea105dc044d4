"""Reads a result folder for the report and writes the report: the bridge between `results` and `report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

from pydantic import ValidationError

from gatemark.campaign.journal import records_of
from gatemark.errors import ResultError
from gatemark.report.html import render
from gatemark.report.model import DirectionRow, ReportPart, TrialRow
from gatemark.results.provenance import Provenance
from gatemark.results.schema import RESULT_SCHEMA, ResultDocument
from gatemark.results.stateful import reports_of
from gatemark.results.store import ResultFolder
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import DirectionResult

UNBOUNDED_NS = 2**63
"""Stands for "no upper edge" in a lateness histogram."""


def read_document(folder: ResultFolder) -> ResultDocument:
    """The checked result.json of a folder."""
    data = folder.read_json("result.json")
    if data.get("schema") != RESULT_SCHEMA:
        raise ResultError(
            what=f"result.json has format {data.get('schema')!r}, this version reads format {RESULT_SCHEMA}",
            where=str(folder.path),
            fix="use the version of gatemark that wrote it",
        )
    try:
        return ResultDocument.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise ResultError(
            what=f"result.json is damaged at {'.'.join(map(str, first['loc']))}: {first['msg']}",
            where=str(folder.path),
            fix="restore the file, or measure again",
        ) from error


def part_of(folder: ResultFolder, records: Iterable[TrialRecord] | None = None) -> ReportPart:
    """Everything that the report shows of one folder; `records` are those of its journal if they were read already."""
    provenance = None
    if folder.has("provenance.json"):
        try:
            provenance = Provenance.model_validate(folder.read_json("provenance.json"))
        except ValidationError as error:
            raise ResultError(
                what="provenance.json is damaged", where=str(folder.path), fix="restore the file, or measure again"
            ) from error
    if records is None:
        records = records_of(folder.journal_file) if folder.journal_file.exists() else ()
    return ReportPart(
        document=read_document(folder),
        provenance=provenance,
        trials=tuple(trial_row(record) for record in records),
        campaign_text=folder.read_text("campaign.toml"),
    )


def write_report(parts: Sequence[ReportPart], target: Path) -> Path:
    """Write report.html of one or several campaigns, stateful gateways first."""
    title = parts[0].document.name if len(parts) == 1 else "Gateways compared"
    ordered = sorted(parts, key=lambda part: not part.is_stateful)
    return ResultFolder(path=target.parent).write_text(target.name, render(ordered, title=title))


def trial_row(record: TrialRecord) -> TrialRow:
    """A record of the journal as the report shows it: repetitions and attempts counted from 1."""
    reasons = record.validity.reasons
    if record.report.cancelled:
        outcome = "cancelled"
    elif not record.validity.valid or record.verdict is None:
        outcome = "invalid"
    else:
        outcome = "passed" if record.verdict.passed else "failed"
        reasons = record.verdict.reasons
    edges: Counter[int] = Counter()
    faults: Counter[str] = Counter()
    for direction in (direction for report in reports_of(record) for direction in report.directions):
        for bucket in direction.lateness_histogram:
            edges[UNBOUNDED_NS if bucket.below_ns is None else min(bucket.below_ns, UNBOUNDED_NS)] += bucket.bursts
        for _, counts in direction.classes:
            faults.update(counts.faults)
    order, facts = record.order, record.connections
    return TrialRow(
        trial_number=order.trial_number,
        run=order.run.number,
        repetition=order.repetition + 1,
        attempt=order.attempt + 1,
        purpose=order.step.purpose,
        frames_per_second=order.step.frames_per_second,
        duration_ns=order.step.duration_ns,
        outcome=outcome,
        reasons=reasons,
        directions=tuple(_direction_row(direction) for direction in record.report.directions),
        lateness_histogram=tuple(sorted(edges.items())),
        faults=dict(faults),
        phase=_phase(record),
        connections=None if facts is None else order.connections,
        phase_one_attempts=0 if facts is None else len(facts.phase_one),
    )


def _phase(record: TrialRecord) -> str:
    """What the report of a record is about, if the gateway is stateful (RFC 9693): the last phase that was made."""
    facts = record.connections
    if facts is None:
        return ""
    if record.order.step.purpose == "tear_down":
        return "tear-down" if record.order.connections else "tear-down, empty table"
    if not facts.phase_one or record.report == facts.phase_one[-1].report:
        return "phase 1 only"
    return "phase 2" if record.order.step.alpha is None else "validation"


def _direction_row(direction: DirectionResult) -> DirectionRow:
    both = (direction.foreground, direction.background)
    return DirectionRow(
        direction=direction.direction,
        intended=direction.intended,
        offered=direction.offered,
        received=direction.received,
        faulty=sum(counts.faulty for counts in both),
        duplicate=sum(counts.duplicate for counts in both),
        lost=sum(counts.lost for counts in both),
        lateness_max_ns=direction.lateness_max_ns,
        late=sum(counts.late for counts in both),
        loss_by_slice=tuple(sum(pair) for pair in zip_longest(*(counts.loss.by_slice for counts in both), fillvalue=0)),
    )
