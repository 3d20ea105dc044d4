"""One campaign from its file to its report: test bed, engine, runs, result folder; all of it cleaned up in every case.

The order of effects: lock the folder, open the test bed, start the engine inside it, open the ports, find the gateway,
write provenance, run, write result.json, result.csv and report.html. What was measured is on disk before anything else
can go wrong.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from gatemark.campaign.estimate import expected_ns
from gatemark.campaign.events import Event, EventCallback, RunFinished, TrialFinished
from gatemark.campaign.file import CampaignText, campaign_from_text, read_campaign_text
from gatemark.campaign.journal import Journal, KeptTrials
from gatemark.campaign.plan import Plan, plan_of
from gatemark.campaign.requests import preview_requests
from gatemark.campaign.result_document import build_document, host_of, telemetry_of
from gatemark.campaign.runner import run_campaign, run_single_trial
from gatemark.campaign.telemetry import samples_text
from gatemark.config.model import Campaign, CampaignFile
from gatemark.dut.base import GatewayDescription, TestBed
from gatemark.dut.recipe import complete_campaign, recipe_sha256
from gatemark.errors import (
    ConfigError,
    EngineError,
    GatemarkError,
    GatewayCollapsed,
    HostBootError,
    OutsideGatewayError,
    Problem,
    ResultError,
    TestBedError,
)
from gatemark.files import sha256_of
from gatemark.report.model import TrialRow
from gatemark.results import this_machine
from gatemark.results.document import ResultDocument
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.provenance import (
    MachineFacts,
    Provenance,
    Session,
    changes,
    engine_facts,
    interrupts_moved,
    machine_changes,
    port_fact,
)
from gatemark.results.quantity import to_csv
from gatemark.results.run import RunResult
from gatemark.results.store import ResultFolder, default_folder, evaluating
from gatemark.results.tester_parts import SELF_TEST_FILE, clock_of
from gatemark.results.toml_text import to_toml
from gatemark.selftest.own_delay import self_test_for
from gatemark.stored import PROVENANCE, part_of, provenance_of, read_document, self_test_of, trial_rows, write_report
from gatemark.tester import Equipment, Tester, open_tester, prepare, stop_signals
from gatemark.trial.cell import Cell
from gatemark.trial.record import TrialRecord
from gatemark.units import format_ratio

PlanCallback = Callable[[Plan, tuple[int, ...]], None]
"""Called once before the first trial: what will be run, and how long each run is expected to take, nanoseconds."""
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
                return _measure_in(folder, complete, bed, used, (on_event, on_plan), resumed=False, report=report)
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
        _same_files(opened)
        file = Path(source or opened.campaign_file)
        loaded = campaign_from_text(opened.read_text("campaign.toml"), file)
        _same_machine(opened)
        _same_recipe(opened, loaded)
        bed, complete = prepare(loaded, used)
        if stored != resolved(complete):
            raise _changed(opened, "campaign.json does not match campaign.toml and the recipe")
        is_begun = opened.has(PROVENANCE)  # not if it is one of several that were only made
        return _measure_in(opened, complete, bed, used, (on_event, on_plan), resumed=is_begun, report=report)


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
    resumed: bool,
    report: bool,
) -> CampaignResult:
    finished: dict[int, RunResult] = {}
    on_event, on_plan = watchers

    def watch(event: Event) -> None:
        if isinstance(event, RunFinished):
            finished[event.run.number] = event.result
        if isinstance(event, TrialFinished) and not event.replayed:
            _keep_bad_frames(folder, event.record)
            _keep_samples(folder, event.record)
        if on_event is not None:
            on_event(event)

    if not folder.has(SELF_TEST_FILE) and (self_test := equipment.self_test(complete)) is not None:
        folder.write_text(SELF_TEST_FILE, self_test)
    session: _Session | None = None
    machine = this_machine.machine_facts()  # before this process leaves the CPUs of the workers to them
    try:
        with open_tester(complete, bed, equipment, log=folder.engine_log) as tester:
            gateway = tester.testbed.describe()
            _same_gateway(folder, gateway)
            plan = plan_of(tester.campaign)
            if on_plan is not None:
                on_plan(plan, expected_ns(tester.campaign, plan))
            _check_trials(tester)
            record = begun_provenance(
                folder, tester, gateway, machine, equipment.engine_sha256(), campaign_file=folder.campaign_file,
                resumed=resumed,
            )  # fmt: skip
            folder.write_text(PROVENANCE, record.to_text())
            session = _Session(campaign=tester.campaign, plan=plan, record=record)
            with Journal(folder.journal_file) as journal, _telling_collapse(tester):
                results = run_campaign(
                    tester.campaign, plan, tester.engine, journal, can=tester.testbed.can, on_event=watch
                )
            moved = _interrupts_moved(tester, gateway)
    except BaseException:
        # The report is made when everything is removed: it takes seconds of CPU time, and a gateway
        # may keep the CPUs busy.
        if session is not None:
            with contextlib.suppress(GatemarkError):
                _store(folder, session, [finished[number] for number in sorted(finished)], report=report)
        raise
    document = _store(folder, session, list(results), report=report, moved=moved)
    return CampaignResult(folder=folder.path, document=document)


def _interrupts_moved(tester: Tester, described: GatewayDescription) -> tuple[str, ...]:
    """Say which interrupts of the gateway's host were moved since it was described; nothing if it does not answer."""
    describe = tester.testbed.can.describe_host
    if describe is None or described.host is None:
        return ()
    with contextlib.suppress(TestBedError):
        return tuple(interrupts_moved(described.host, describe()))
    return ()


def _check_trials(tester: Tester) -> None:
    """Raise ConfigError if the engine would refuse any trial of the campaign: before the first one, and all at once."""
    problems: dict[Problem, None] = {}
    for words, preview in preview_requests(tester.campaign):
        try:
            tester.engine.frames(preview)
        except EngineError as error:
            for problem in error.problems:
                what = f"the engine refuses a trial of {words}: {problem.where}: {problem.what}"
                problems[replace(problem, what=what, where=tester.campaign.source)] = None
    if problems:
        raise ConfigError(problems=[*problems])


@contextlib.contextmanager
def _telling_collapse(tester: Tester) -> Iterator[None]:
    """Tell a gateway that stopped working while it was measured from other failures of a test bed.

    One that somebody else set up is started again, or its host is booted, if the campaign file says how: the next
    campaign needs it.
    """
    try:
        yield
    except OutsideGatewayError:
        raise  # it says nothing about the gateway
    except TestBedError as error:
        try:
            tester.testbed.can.check()
        except OutsideGatewayError:
            raise error from None
        except TestBedError:
            if tester.campaign.bed.takes_control:
                with contextlib.suppress(TestBedError):
                    _bring_back(tester, error)
            raise GatewayCollapsed(problems=error.problems) from error
        raise


def _bring_back(tester: Tester, error: TestBedError) -> None:
    can = tester.testbed.can
    if not tester.campaign.control.model.boot_after_collapse:
        if can.control is not None:
            can.control.restart()
    elif can.booter is not None and not isinstance(error, HostBootError):  # or another boot would fail as well
        can.booter.boot()


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


def begun_provenance(
    folder: ResultFolder,
    tester: Tester,
    gateway: GatewayDescription,
    machine: MachineFacts,
    program_sha256: str,
    *,
    campaign_file: Path,
    resumed: bool,
    name: str = PROVENANCE,
) -> Provenance:
    """Return the provenance at the start of a session, with the earlier sessions that the file `name` has.

    Raises ResultError if machine, engine, ports or the gateway's host are not those of the first session.
    """
    before = provenance_of(folder, name) if resumed else None
    earlier = () if before is None else before.sessions
    with KeptTrials(folder.journal_file) as kept:
        counts = {"trials_before": kept.lines, "trials_removed": kept.removed}
    session = Session(
        **counts,
        started_at=this_machine.now_iso(),
        finished_at=None,
        resumed=resumed,
        machine=machine,
        software=this_machine.software_facts(),
        engine=engine_facts(tester.hello, tester.opened, program_sha256=program_sha256),
        left=port_fact(tester.opened["left"]),
        right=port_fact(tester.opened["right"]),
        gateway_host=gateway.host,
        settings=gateway.settings,
        sampling=gateway.sampling,
        other_gateway_host=gateway.other_host,
    )
    if earlier and (differing := changes(earlier[0], session, makes_ports=tester.campaign.bed.makes_ports)):
        raise _other_equipment(folder, differing)
    return Provenance(
        seed=tester.campaign.seed,
        campaign_sha256=sha256_of(campaign_file),
        recipe_sha256=_recipe_digest(tester.campaign),
        tester_cpus=tester.testbed.placement.tester_cores,
        line_bits_per_second=tester.campaign.line.rate,
        line_rate_source=tester.line_rate_source,
        sessions=(*earlier, session),
    )


def end_provenance(
    folder: ResultFolder, record: Provenance, log: Path, *, moved: tuple[str, ...] = (), name: str = PROVENANCE
) -> Provenance:
    """Write the end of the last session; `log` is the engine's, `moved` are interrupts that moved meanwhile."""
    *earlier, last = record.sessions
    digest = sha256_of(log) if folder.has(log.name) else None
    end = {"finished_at": this_machine.now_iso(), "engine_log_sha256": digest, "interrupts_moved": moved}
    record = record.model_copy(update={"sessions": (*earlier, last.model_copy(update=end))})
    folder.write_text(name, record.to_text())
    return record


def _same_gateway(folder: ResultFolder, gateway: GatewayDescription) -> None:
    """Keep the gateway's description at the first session and refuse another gateway later.

    Name, version and set-up commands are compared: the configuration text holds counters and addresses that the kernel
    draws again each time.
    """
    now = json.loads(json.dumps(gateway.to_json()))
    if not folder.has(PROVENANCE):
        folder.write_json("gateway.json", now)
        return
    before = folder.read_json("gateway.json")
    keys = ("name", "version", "commands") if gateway.commands else ("name", "version", "configuration")
    changed = [key for key in keys if before.get(key) != now.get(key)]
    if changed:
        raise ResultError(
            what=f"the gateway differs from the one measured before: its {', '.join(changed)} changed",
            where=str(folder.path),
            fix="restore the earlier gateway, or measure this one into a new folder",
        )


def gateway_of(folder: ResultFolder) -> GatewayDescription:
    """Return the description of the gateway at the first session. Raises ResultError if it is damaged."""
    stored = folder.read_json("gateway.json")
    described = folder.valid("gateway.json", stored, _DESCRIPTION.validate_python)
    if others := stored.keys() - described.to_json().keys():
        what = f"gateway.json has keys that no description of a gateway has: {', '.join(sorted(others))}"
        raise ResultError(what=what, where=str(folder.path), fix="restore the file, or measure again")
    return described


def kept_frames(record: TrialRecord) -> dict[tuple[str, str], list[bytes]]:
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


def _keep_bad_frames(folder: ResultFolder, record: TrialRecord) -> None:
    """Keep the first bad frames of a trial, those of its attempts at test phase 1 as well."""
    if kept := kept_frames(record):
        folder.write_bad_frames(record.order.trial_number, kept)


def _keep_samples(folder: ResultFolder, record: TrialRecord) -> None:
    """Keep the samples of the gateway's host in a trial, those of its attempts at test phase 1 as well."""
    text = samples_text(record)
    if text:
        folder.write_samples(record.order.trial_number, text)


def resolved(complete: Campaign) -> dict[str, Any]:
    """The campaign as campaign.json holds it; exactly what reading the file gives back."""
    return json.loads(json.dumps(complete.to_document()))  # type: ignore[no-any-return]


def _recipe_digest(campaign: CampaignFile) -> str | None:
    return None if campaign.testbed.recipe is None else recipe_sha256(campaign.testbed.recipe)


def check_origin(folder: ResultFolder) -> None:
    """Raise ResultError if a folder is a stranger's: it came from another user, another machine or an archive."""
    strangers = folder.written_by_others()
    if strangers:
        origin = f"another user made it or can write to it ({', '.join(strangers)})"
    elif folder.is_unpacked:
        origin = "it was unpacked from an archive"
    elif not folder.was_made_here:
        origin = "it was made on another machine"
    else:
        return
    raise ResultError(
        what=f"{origin}, and it says which ports are opened and which commands run on this machine",
        where=str(folder.path),
        fix="read campaign.toml and its recipe; if you trust them, add --trust-commands",
    )


def _same_machine(folder: ResultFolder) -> None:
    """Raise ResultError if this machine is not that of the first session: before any command of the folder runs."""
    before = provenance_of(folder)
    differing = () if before is None else machine_changes(before.sessions[0].machine, this_machine.machine_facts())
    if differing:
        raise _other_equipment(folder, differing)


def _other_equipment(folder: ResultFolder, differing: Iterable[str]) -> ResultError:
    return ResultError(
        what="machine, engine, ports or the gateway's host are not those of the trials in this folder: "
        + "; ".join(differing),
        where=str(folder.path),
        fix="restore the earlier ones, or measure with these into a new folder",
    )


def _same_files(folder: ResultFolder) -> None:
    """Raise ResultError if campaign.toml is not that of the first session."""
    before = provenance_of(folder)
    if before is not None and before.campaign_sha256 != sha256_of(folder.campaign_file):
        raise _changed(folder, "campaign.toml has changed since the folder was made")


def _same_recipe(folder: ResultFolder, campaign: CampaignFile) -> None:
    """Raise ResultError if the recipe is not that of the first session, in any of its commands for example."""
    before = provenance_of(folder)
    if before is not None and before.recipe_sha256 != _recipe_digest(campaign):
        raise _changed(folder, f"the recipe {campaign.testbed.recipe} has changed since the folder was made")


def _changed(folder: ResultFolder, what: str) -> ResultError:
    return ResultError(
        what=what, where=str(folder.path), fix="undo the change, or measure the new campaign into a new folder"
    )
