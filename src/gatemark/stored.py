"""What a result folder says, and the result and report made of it: the bridge between journal, results and report."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from gatemark.campaign.journal import records_of
from gatemark.campaign.result_document import build_document, host_of, telemetry_of
from gatemark.campaign.telemetry import memory_around_filling, samples_text
from gatemark.config.model import Campaign
from gatemark.dut.base import GatewayDescription
from gatemark.errors import ResultError
from gatemark.procedures.registry import PublishedDocument, by_procedure
from gatemark.report import counters
from gatemark.report.headline import refusal
from gatemark.report.model import UNBOUNDED_NS, DirectionRow, ReportPart, TrialRow
from gatemark.report.page import CampaignReport, Chapter, plots_of, render
from gatemark.report.plot_files import plot_files
from gatemark.report.table import Section
from gatemark.report.telemetry import sampled_trials
from gatemark.results.document import RESULT_SCHEMA, ResultDocument
from gatemark.results.new_file import write_files
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.provenance import Provenance
from gatemark.results.run import RunResult
from gatemark.results.store import ResultFolder, evaluating, samples_name
from gatemark.results.tester_parts import SELF_TEST_FILE, SelfTestPart, clock_of, self_test_part
from gatemark.trial.cause import Cause
from gatemark.trial.kinds import kind_of
from gatemark.trial.loss import LossField
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import Counts, DirectionResult, TrialReport
from gatemark.trial.telemetry import PHASE, SAMPLE_COLUMNS
from gatemark.trial.validity import Validity

PROVENANCE = "provenance.json"
_DESCRIPTION = TypeAdapter(GatewayDescription)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignResult:
    """What a campaign found, and the folder that holds all of it."""

    folder: Path
    document: ResultDocument

    @property
    def runs(self) -> tuple[RunResult, ...]:
        """One result per cell of the matrix."""
        return self.document.runs

    @property
    def report_file(self) -> Path:
        """The report as one self-contained page."""
        return self.folder / "report.html"

    @property
    def tester_limited_everywhere(self) -> bool:
        """Whether no run says anything about the gateway's limit."""
        return bool(self.runs) and all(run.limited_by in NOT_THE_GATEWAY for run in self.runs)


def read_document(folder: ResultFolder) -> ResultDocument:
    """The checked result.json of a folder."""
    return folder.read_published("result.json", PublishedDocument, RESULT_SCHEMA)


def self_test_of(folder: ResultFolder) -> SelfTestPart | None:
    """Read the self-test that lies in a result folder; None if there is none. Raises ResultError if it is damaged."""
    if not folder.has(SELF_TEST_FILE):
        return None
    try:
        return self_test_part(folder.read_json(SELF_TEST_FILE))
    except (KeyError, TypeError, ValidationError) as error:
        raise ResultError(
            what=f"{SELF_TEST_FILE} is damaged or has another version", where=str(folder.path), fix="delete that file"
        ) from error


def provenance_of(folder: ResultFolder, name: str = PROVENANCE) -> Provenance | None:
    """Read a provenance; None if nothing was measured. Raises ResultError if it is damaged."""
    if not folder.has(name):
        return None
    try:
        return Provenance.model_validate(folder.read_json(name))
    except ValidationError as error:
        raise ResultError(
            what=f"{name} is damaged or has another version",
            where=str(folder.path),
            fix="restore the file, or measure again",
        ) from error


def gateway_of(folder: ResultFolder) -> GatewayDescription:
    """Return the description of the gateway at the first session. Raises ResultError if it is damaged."""
    stored = folder.read_json("gateway.json")
    described = folder.valid("gateway.json", stored, _DESCRIPTION.validate_python)
    if others := stored.keys() - described.to_json().keys():
        what = f"gateway.json has keys that no description of a gateway has: {', '.join(sorted(others))}"
        raise ResultError(what=what, where=str(folder.path), fix="restore the file, or measure again")
    return described


def trial_rows(folder: ResultFolder) -> tuple[TrialRow, ...]:
    """Read the journal of a folder once, a trial at a time, as the report shows it."""
    if not folder.journal_file.exists():
        return ()
    return tuple(trial_row(record) for record in records_of(folder.journal_file))


def document_of(
    folder: ResultFolder,
    campaign: Campaign,
    record: Provenance,
    results: Sequence[RunResult],
    rows: Sequence[TrialRow],
    *,
    runs_planned: int,
) -> ResultDocument:
    """Return what result.json says of a complete campaign with these results; `rows` are the trials of its journal.

    The gateway is described as it was in the first session, with the settings of the last one.
    """
    return build_document(
        campaign,
        replace(gateway_of(folder), settings=record.last.settings),
        results,
        (row.validity for row in rows),
        runs_planned=runs_planned,
        host=host_of(campaign, ((row.host, row.reasons if row.outcome == "suspect" else ()) for row in rows)),
        telemetry=telemetry_of(
            campaign,
            (facts for row in rows for _, facts in row.telemetry),
            ((row.connections, row.memory) for row in rows if row.connections and row.memory is not None),
        ),
        clock=clock_of(record),
        removed=sum(session.trials_removed for session in record.sessions),
        interrupts_moved=tuple(sentence for session in record.sessions for sentence in session.interrupts_moved),
        self_test=self_test_of(folder),
    )


def part_of(folder: ResultFolder, trials: Sequence[TrialRow] | None = None) -> ReportPart:
    """Everything that the report shows of one folder; `trials` are those of its journal if they were read already."""
    document, rows = read_document(folder), trial_rows(folder) if trials is None else tuple(trials)
    shown = [trial.trial_number for trial in sampled_trials(document, rows)]
    return ReportPart(
        document=document,
        provenance=provenance_of(folder),
        trials=rows,
        campaign_text=folder.read_text("campaign.toml"),
        samples={number: samples_of(folder, number) for number in shown if folder.has(samples_name(number))},
    )


def bad_frames(record: TrialRecord) -> dict[tuple[str, str], list[bytes]]:
    """Return the bad frames that a trial kept, by the side where they arrived and the reason.

    Those of the short trial that found out which of two gateways in a row damaged them: as they were on each link.
    """
    kept: dict[tuple[str, str], list[bytes]] = {}
    for report in record.reports():
        for frame in report.kept_frames:
            kept.setdefault((frame.side, frame.reason), []).append(bytes.fromhex(frame.octets))
    for damage in record.damages:
        for place in ("entered", "middle", "arrived"):
            octets = [bytes.fromhex(text) for frame in damage.frames if (text := getattr(frame, place))]
            if octets:
                kept[f"{damage.direction}-{damage.traffic_class}-{place}", damage.reason] = octets
    return kept


def keep_beside_journal(folder: ResultFolder, record: TrialRecord) -> None:
    """Keep the first bad frames of a trial and the samples of the gateway's host, those of its attempts as well."""
    number = record.order.trial_number
    if frames := bad_frames(record):
        folder.write_bad_frames(number, frames)
    if text := samples_text(record):
        folder.write_samples(number, text)


def samples_of(folder: ResultFolder, trial_number: int) -> tuple[Mapping[str, str], ...]:
    """Read the samples of the gateway's host in a trial: each line by column. A line that is torn is left out."""
    text = folder.read_text(samples_name(trial_number), errors="replace")
    try:
        return tuple(line for line in csv.DictReader(text.splitlines()) if _is_sample(line))
    except csv.Error:
        return ()


def _is_sample(line: Mapping[str, object]) -> bool:
    """Whether a line of a file of samples has all columns, with numbers where there are to be any."""
    try:
        [float(str(value)) for name, value in line.items() if name != PHASE and value != ""]
    except ValueError:
        return False
    return line.keys() >= set(SAMPLE_COLUMNS)


def sections_of(document: ResultDocument) -> tuple[Section, ...]:
    """Return what each procedure says about its runs, as tables."""
    return tuple(procedure.report.section(document, runs) for procedure, runs in by_procedure(document))


def report_of(part: ReportPart) -> CampaignReport:
    """Return one campaign with what its procedures say about it."""
    sentences: dict[int, str] = {}
    chapters = []
    for procedure, runs in by_procedure(part.document):
        for run in runs:
            sentence = procedure.report.sentence(part, run) if run.refused is None else refusal(part.document, run)
            sentences[run.number] = sentence
        section = procedure.report.section(part.document, runs)
        chapters.append(Chapter(section=section, plots=tuple(procedure.report.plots(part, runs))))
    return CampaignReport(
        part=part,
        sentences=tuple(sentences[run.number] for run in part.document.runs),
        chapters=tuple(chapters),
    )


def reports_of(parts: Sequence[ReportPart]) -> list[CampaignReport]:
    """Return what a page says of one or several campaigns, stateful gateways first."""
    return [report_of(part) for part in sorted(parts, key=lambda part: not part.is_stateful)]


def page_of(reports: Sequence[CampaignReport]) -> str:
    """Return report.html of one or several campaigns."""
    return render(reports, title=reports[0].part.document.name if len(reports) == 1 else "Gateways compared")


def write_report(parts: Sequence[ReportPart], target: Path, *, plots: Path | None = None) -> Path:
    """Write report.html of one or several campaigns, and its plots as files into a folder."""
    reports = reports_of(parts)
    page = ResultFolder(path=target.parent).write_text(target.name, page_of(reports))
    if plots is not None:
        write_files(plots, plot_files(plots_of(reports)))
    return page


def open_result(folder: str | Path) -> CampaignResult:
    """Read the result of a folder."""
    opened = ResultFolder.open(Path(folder))
    return CampaignResult(folder=opened.path, document=read_document(opened))


def rebuild_report(folder: str | Path, *, plots: Path | None = None) -> tuple[list[CampaignResult], Path]:
    """Make report.html again: of one campaign, or of all in the folders below, as `gatemark run` leaves several.

    `plots`: folder for the plots of the report as PDF, SVG and CSV.
    """
    path = Path(folder)
    single = (path / "campaign.toml").exists() or not path.is_dir()
    with evaluating(path):
        folders = [ResultFolder.open(path)] if single else ResultFolder.open_below(path)
        parts = [part_of(member) for member in folders]
        page = write_report(parts, path / "report.html", plots=plots)
    results = [
        CampaignResult(folder=member.path, document=part.document)
        for member, part in zip(folders, parts, strict=True)
    ]  # fmt: skip
    return results, page


def trial_row(record: TrialRecord) -> TrialRow:
    """A record of the journal as the report shows it: repetitions and attempts counted from 1."""
    if record.report.cancelled:
        outcome = "cancelled"
    elif record.tester_fell_short or record.verdict is None:
        outcome = "invalid"
    else:
        outcome = "passed" if record.verdict.passed else "failed"
        if record.suspicion is not None:
            outcome = "suspect"
    edges: Counter[int] = Counter()
    faults: Counter[str] = Counter()
    for direction in (direction for report in record.reports() for direction in report.directions):
        for bucket in direction.lateness_histogram:
            edges[UNBOUNDED_NS if bucket.below_ns is None else min(bucket.below_ns, UNBOUNDED_NS)] += bucket.bursts
        for _, counts in direction.classes:
            faults.update(counts.faults)
    order = record.order
    kind = kind_of(order)
    return TrialRow(
        trial_number=order.trial_number,
        run=order.run.number,
        repetition=order.repetition + 1,
        attempt=order.attempt + 1,
        purpose=kind.purpose(record),
        frames_per_second=order.step.frames_per_second,
        duration_ns=kind.sending_ns(record),
        outcome=outcome,
        validity=Validity(valid=False, reasons=record.reasons) if record.tester_fell_short else record.validity,
        reasons=record.reasons,
        directions=tuple(_direction_row(direction) for direction in record.report.directions),
        losses=tuple((cause, _field_of(record.report, cause)) for cause in record.causes),
        lateness_histogram=tuple(sorted(edges.items())),
        faults=dict(faults),
        counters=counters.count(
            record.reports(), testbed_drops=record.testbed_drops, gateway_drops=record.gateway_drops
        ),
        host=record.host,
        boot=record.boot,
        telemetry=tuple(record.telemetries()),
        memory=memory_around_filling(record),
        phase=kind.phase(record),
        connections=None if record.connections is None else order.connections,
        phase_one_attempts=len(record.attempts),
    )


def _field_of(report: TrialReport, cause: Cause) -> LossField | None:
    """Return the counts of lost frames by what the cause tells them by; None if it is no such thing."""
    for way, name, counts in report.counts():
        if (way, name) == (cause.direction, cause.traffic_class) and counts.loss_table is not None:
            return next((field for field in counts.loss_table.fields if field.field == cause.field), None)
    return None


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
        loss_by_slice=_loss_by_slice(both) if direction.undelivered else (),
    )


def _loss_by_slice(classes: Iterable[Counts]) -> tuple[int, ...]:
    return tuple(sum(pair) for pair in zip_longest(*(counts.loss.by_slice for counts in classes), fillvalue=0))
