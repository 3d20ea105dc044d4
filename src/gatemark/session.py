"""One campaign from its file to its report: test bed, engine, runs, result folder; all of it cleaned up in every case.

The order of effects: lock the folder, open the test bed, start the engine inside it, open the ports, find the gateway,
write provenance, run, write result.json, result.csv and report.html. What was measured is on disk before anything else
can go wrong.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from gatemark.begun import (
    begun_provenance,
    check_campaign,
    check_file,
    check_gateway,
    check_machine_and_recipe,
    check_origin,
    end_provenance,
    moved_since,
    resolved,
)
from gatemark.campaign.estimate import expected_ns
from gatemark.campaign.events import Event, EventCallback, RunFinished, TrialFinished
from gatemark.campaign.file import CampaignText, campaign_from_text, read_campaign_text
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import Plan, plan_of
from gatemark.campaign.requests import check_trials
from gatemark.campaign.runner import run_campaign, run_single_trial
from gatemark.config.model import Campaign, CampaignFile
from gatemark.dut.base import TestBed
from gatemark.dut.recipe import complete_campaign
from gatemark.errors import (
    ConfigError,
    GatemarkError,
    TestBedError,
)
from gatemark.results import this_machine
from gatemark.results.document import ResultDocument
from gatemark.results.provenance import Provenance
from gatemark.results.quantity import to_csv
from gatemark.results.run import RunResult
from gatemark.results.store import ResultFolder, default_folder
from gatemark.results.tester_parts import SELF_TEST_FILE
from gatemark.results.toml_text import to_toml
from gatemark.selftest.own_delay import self_test_for
from gatemark.stored import (
    PROVENANCE,
    CampaignResult,
    document_of,
    keep_beside_journal,
    part_of,
    read_document,
    trial_rows,
    write_report,
)
from gatemark.tester import Equipment, open_tester, prepare, stop_signals, telling_collapse
from gatemark.trial.cell import Cell
from gatemark.trial.record import TrialRecord
from gatemark.units import format_ratio

PlanCallback = Callable[[Plan, tuple[int, ...]], None]
"""Called once before the first trial: what will be run, and how long each run is expected to take, nanoseconds."""


def measure(
    campaign: str | Path | CampaignFile | CampaignText,
    *,
    output: str | Path | None = None,
    on_event: EventCallback | None = None,
    on_plan: PlanCallback | None = None,
    equipment: Equipment | None = None,
    report: bool = True,
) -> CampaignResult:
    """Measure a campaign into a new folder (default: below results/) and write its report.

    Without `report` there is no page: for one of several campaigns, of which `rebuild_report` makes a common one. A
    file with `[[vary]]` is refused: `gatemark.measure_series` takes it. Raises GatemarkError; whatever was measured
    stays in the folder, and the test bed and the engine are gone.
    """
    source = _source_of(campaign)
    folder_path = Path(output) if output is not None else default_folder(source.campaign.name)
    used = equipment or own_equipment()
    with stop_signals(resume_hint=str(folder_path)):
        bed, complete = prepare(source.campaign, used)
        folder = ResultFolder.create(folder_path)
        with folder.locked():
            _begin(folder, source, complete)
            try:
                return _measure_in(folder, complete, bed, used, (on_event, on_plan), report=report)
            except (ConfigError, TestBedError):
                if not folder.has(PROVENANCE):  # refused before the ports were open
                    folder.discard()
                raise


def make_plan(campaign: CampaignFile) -> Plan:
    """Return all runs of a campaign, in the order in which they are measured. Raises ConfigError if it has none."""
    return plan_of(complete_campaign(campaign))


def begin(source: CampaignText, folder: Path, *, equipment: Equipment | None = None) -> None:
    """Make the folder of a campaign of which nothing is measured yet: `resume_campaign` begins.

    Raises GatemarkError.
    """
    complete = prepare(source.campaign, equipment or own_equipment())[1]
    plan_of(complete)
    created = ResultFolder.create(folder)
    with created.locked():
        _begin(created, source, complete)


def _begin(folder: ResultFolder, source: CampaignText, complete: Campaign) -> None:
    file = None if source.file is None else str(source.file)
    folder.write_json("campaign.json", {"file": file, **resolved(complete)})
    folder.write_text("campaign.toml", source.text)  # makes it the folder of a campaign, which can be resumed


def _source_of(campaign: str | Path | CampaignFile | CampaignText) -> CampaignText:
    """Return a campaign with the text that its folder keeps."""
    if isinstance(campaign, CampaignText):
        return campaign
    if isinstance(campaign, CampaignFile):
        return CampaignText(campaign=campaign, text=to_toml(campaign.to_document()), file=None)
    return read_campaign_text(campaign)


def resume_campaign(
    folder: str | Path,
    *,
    trust_commands: bool = False,
    on_event: EventCallback | None = None,
    on_plan: PlanCallback | None = None,
    equipment: Equipment | None = None,
    report: bool = True,
) -> CampaignResult:
    """Go on with an interrupted campaign: its trials are replayed from the journal, the missing ones are made.

    Without `report` there is no page. Refused with a ResultError if campaign, recipe, gateway, machine, engine or ports
    are not what they were. So is a stranger's folder, unless `trust_commands` says otherwise, before anything in it is
    opened for writing.
    """
    opened = ResultFolder.open(Path(folder))
    used = equipment or own_equipment()
    if not trust_commands:
        check_origin(opened)
    with stop_signals(resume_hint=str(folder)), opened.locked():
        if opened.has("result.json") and read_document(opened).status == "complete":
            if report:
                write_report([part_of(opened)], opened.report_file)
            return CampaignResult(folder=opened.path, document=read_document(opened))
        stored, source = opened.read_campaign()
        check_file(opened)
        file = Path(source or opened.campaign_file)
        loaded = campaign_from_text(opened.read_text("campaign.toml"), file)
        check_machine_and_recipe(opened, loaded)
        bed, complete = prepare(loaded, used)
        check_campaign(opened, stored, complete)
        return _measure_in(opened, complete, bed, used, (on_event, on_plan), report=report)


def single_trial(
    campaign: CampaignFile,
    cell: Cell,
    *,
    frames_per_second: int,
    duration_ns: int | None = None,
    connections_per_second: int | None = None,
    on_event: EventCallback | None = None,
    log: Path | None = None,
    equipment: Equipment | None = None,
) -> TrialRecord:
    """Make one trial without a folder; `campaign` may lack what its recipe knows.

    Through a stateful gateway it begins with test phase 1, at `connections_per_second` or at `connections.rate`.
    """
    used = equipment or Equipment()
    with stop_signals(resume_hint=None):
        bed, complete = prepare(campaign, used)
        if cell.connections is not None and connections_per_second is None:
            connections_per_second = _phase_one_rate(complete)
        with open_tester(complete, bed, used, log=log) as tester:
            return run_single_trial(
                tester.campaign,
                cell,
                tester.engine,
                frames_per_second=frames_per_second,
                duration_ns=duration_ns if duration_ns is not None else complete.trial.duration_ns,
                connections_per_second=connections_per_second,
                can=tester.testbed.can,
                on_event=on_event,
            )


def _phase_one_rate(complete: Campaign) -> int:
    """Return the rate of test phase 1 of a single trial, in connections per second."""
    rate = complete.connections_model.rate
    if isinstance(rate, Fraction):
        raise ConfigError(
            what=f"{format_ratio(rate)} of a rate that a single trial does not measure",
            where=f"{complete.source}: connections.rate",
            fix="name connections per second, for example gatemark trial --phase-one-rate 10k",
        )
    return rate


def _measure_in(
    folder: ResultFolder,
    complete: Campaign,
    bed: TestBed,
    equipment: Equipment,
    watchers: tuple[EventCallback | None, PlanCallback | None],
    *,
    report: bool,
) -> CampaignResult:
    finished: dict[int, RunResult] = {}
    on_event, on_plan = watchers

    def watch(event: Event) -> None:
        if isinstance(event, RunFinished):
            finished[event.run.number] = event.result
        if isinstance(event, TrialFinished) and not event.replayed:
            keep_beside_journal(folder, event.record)
        if on_event is not None:
            on_event(event)

    if not folder.has(SELF_TEST_FILE) and (self_test := equipment.self_test(complete)) is not None:
        folder.write_text(SELF_TEST_FILE, self_test)
    session: _Session | None = None
    machine = this_machine.machine_facts()  # before this process leaves the CPUs of the workers to them
    try:
        with open_tester(complete, bed, equipment, log=folder.engine_log) as tester:
            gateway = tester.testbed.describe()
            check_gateway(folder, gateway)
            plan = plan_of(tester.campaign)
            if on_plan is not None:
                on_plan(plan, expected_ns(tester.campaign, plan))
            check_trials(tester.campaign, tester.engine.frames)
            record = begun_provenance(
                folder, tester, gateway, machine, equipment.engine_sha256(), campaign_file=folder.campaign_file,
                resumed=folder.has(PROVENANCE),  # not if it is one of several that were only made
            )  # fmt: skip
            folder.write_text(PROVENANCE, record.to_text())
            session = _Session(campaign=tester.campaign, plan=plan, record=record)
            with Journal(folder.journal_file) as journal, telling_collapse(tester):
                results = run_campaign(
                    tester.campaign, plan, tester.engine, journal, can=tester.testbed.can, on_event=watch
                )
            moved = moved_since(gateway, tester.testbed.can)
    except BaseException:
        # The report is made when everything is removed: it takes seconds of CPU time, and a gateway
        # may keep the CPUs busy.
        if session is not None:
            with contextlib.suppress(GatemarkError):
                _store(folder, session, [finished[number] for number in sorted(finished)], report=report)
        raise
    document = _store(folder, session, list(results), report=report, moved=moved)
    return CampaignResult(folder=folder.path, document=document)


def own_equipment() -> Equipment:
    """Return the equipment of a measurement: test bed and engine of this machine, and its self-test."""
    return Equipment(self_test=_self_test_text)


def _self_test_text(campaign: Campaign) -> str | None:
    self_test = self_test_for(campaign)
    return None if self_test is None else self_test.to_text()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """What is known of a session once its test bed is made."""

    campaign: Campaign
    plan: Plan
    record: Provenance


def _store(
    folder: ResultFolder,
    session: _Session,
    results: list[RunResult],
    *,
    report: bool,
    moved: tuple[str, ...] = (),
) -> ResultDocument:
    """Write result.json, result.csv, the end of the session and, if asked for, the report."""
    record = end_provenance(folder, session.record, folder.engine_log, moved=moved)
    rows = trial_rows(folder)
    document = document_of(folder, session.campaign, record, results, rows, runs_planned=len(session.plan.runs))
    folder.write_text("result.csv", to_csv(document.rows()))
    folder.write_text("result.json", document.to_text())  # says that the campaign is complete, so it comes last
    if report:
        write_report([part_of(folder, rows)], folder.report_file)
    return document
