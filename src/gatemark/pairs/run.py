"""Measures two gateways in pairs: both test beds open at once, the trials of a pair one right after the other.

Each bed has an engine of its own; the one that is asked nothing waits. Every trial is on disk before the next choice.
Which load and which order the next pair has, and whether there is one, follows from the pairs so far, so resuming
replays the journal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from gatemark.begun import begun_provenance, check_origin, end_provenance, resolved
from gatemark.campaign.engine_trial import Demands
from gatemark.campaign.journal import Journal
from gatemark.campaign.maker import TrialMaker
from gatemark.campaign.plan import flow_start_of
from gatemark.campaign.progress import run_words
from gatemark.campaign.runner import ignore
from gatemark.config.model import Campaign
from gatemark.dut.base import GatewayDescription
from gatemark.dut.recipe import recipe_sha256
from gatemark.errors import ConfigError, GatemarkError, Interrupted, Problem, ResultError, TestBedError
from gatemark.pairs.conclude import Setting, SideFacts, Wanted, conclude, end_of
from gatemark.pairs.document import Ended, PairDocument
from gatemark.pairs.figure import CONNECTIONS_PER_SECOND, Figure
from gatemark.pairs.idle import IdleCost
from gatemark.pairs.load import FIRST_LOAD, LOWEST_LOAD, LoadChoice
from gatemark.pairs.options import PairOptions
from gatemark.pairs.pair import OTHER, SIDES, Pair, Side, SideTrial, side_trial
from gatemark.pairs.report import render_pairs
from gatemark.pairs.searched import search_from
from gatemark.pairs.setup import setup_differences, setup_problems
from gatemark.procedures.cells import upload_cells
from gatemark.procedures.earlier import Earlier
from gatemark.procedures.phase_one import rate_before, slowest_rate
from gatemark.results.provenance import Provenance
from gatemark.results.store import ORIGIN, ResultFolder, evaluating, writing
from gatemark.results.this_machine import gatemark_version, machine_facts, names
from gatemark.search.goal import Measure, Purpose, bounds_of, sending_ns
from gatemark.tester import Equipment, Tester, open_testers, prepare, stop_signals
from gatemark.trial.cell import Cell, Run
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.trial.order import TrialOrder, difference
from gatemark.trial.record import TrialRecord

INPUTS, RESULT = "inputs.json", "pair.json"

DRAIN_MAX_NS = 20_000_000
"""Frames that a gateway still holds after this time are not waited for: a trial of tenths of a second would become one
of seconds."""

CONNECTIONS_MIN = 10_000
"""Of fewer, those that wait in the gateway's queues when the last frame was sent would be a large share."""

Measured = Mapping[Side, tuple[Campaign, Cell]]
"""A complete campaign of each side, with the traffic to be measured."""

PairCallback = Callable[[Sequence[Pair], float, Wanted], None]
"""Called after each pair with all pairs so far, the seconds of measuring, and what was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairResult:
    """What the pairs showed, and the folder that holds all of it."""

    folder: Path
    document: PairDocument
    was_interrupted: bool

    @property
    def report_file(self) -> Path:
        """The report as one self-contained page."""
        return ResultFolder(path=self.folder).report_file


def traffic_of(campaign: Campaign, cell: Cell, figure: Figure) -> Cell:
    """Return the cell that is measured in place of one of a campaign: only the Initiator establishes connections."""
    return upload_cells(campaign, (cell,))[0] if figure.establishes and campaign.technology.is_stateful else cell


def check_measured(measured: Measured, figure: Figure) -> None:
    """Raise ConfigError with everything that keeps two campaigns from being measured in pairs."""
    problems: dict[Problem, None] = {}
    campaigns = {side: measured[side][0] for side in SIDES}
    for campaign, cell in measured.values():
        if not campaign.bed.has_recipe:
            what = f"{campaign.bed.words} cannot be there twice"
            fix = "both gateways of pairs are made of recipes: write testbed.kind and testbed.recipe"
            problems[Problem(what=what, where=f"{campaign.source}: testbed.kind", fix=fix)] = None
        problems |= dict.fromkeys(_rate_problems(campaign, cell, figure))
    documents = {side: resolved(campaign) for side, campaign in campaigns.items()}
    sources = {side: str(campaign.source) for side, campaign in campaigns.items()}
    problems |= dict.fromkeys(setup_problems(documents, sources))
    if problems:
        raise ConfigError(problems=[*problems])


def _rate_problems(campaign: Campaign, cell: Cell, figure: Figure) -> Sequence[Problem]:
    """Return why no trial can be test phase 1, or begin with it; that of a stateless gateway never does."""
    try:
        if figure.establishes:
            _lowest_rate(campaign, cell)
        else:
            rate_before(campaign, cell, Earlier(), phase_two_ns=0)
    except ConfigError as error:
        return error.problems
    return ()


def _lowest_rate(campaign: Campaign, cell: Cell) -> int:
    """Return the lowest connections/s of a trial; at lower ones connections would expire (RFC 9693 section 4.4).

    Raises ConfigError if connections per second cannot be measured.
    """
    if cell.connections is None:
        raise ConfigError(
            what=f"{CONNECTIONS_PER_SECOND.name} needs a stateful gateway and a number of connections",
            where=f"{campaign.source}: connections.count",
            fix=f"write {CONNECTIONS_MIN} or more, or measure another --quantity",
        )
    if cell.connections < CONNECTIONS_MIN:
        raise ConfigError(
            what=f"{cell.connections} connections are too few for {CONNECTIONS_PER_SECOND.name}: those that wait in the"
            " gateway's queues when the last one was sent, some hundred in Linux, count as well",
            where=f"{campaign.source}: connections.count",
            fix=f"write {CONNECTIONS_MIN} or more",
        )
    return max(LOWEST_LOAD, slowest_rate(campaign, cell.connections, None, maximum=None))


def create_folder(path: Path, options: PairOptions, measured: Measured, equipment: Equipment) -> ResultFolder:
    """Make the folder of new pairs; one that already holds some is refused."""
    if (path / INPUTS).exists() or (path / "campaign.toml").exists():
        fix = f"name another folder with --output, or resume this one with: gatemark pair --resume {path}"
        raise ResultError(what="the folder already holds results", where=str(path), fix=fix)
    with writing(path, command="pair"):
        path.mkdir(parents=True, exist_ok=True)
    folder = ResultFolder(path=path, command="pair")
    folder.write_json(ORIGIN, names())
    folder.write_json(INPUTS, {"options": options.model_dump(mode="json"), "facts": _facts(measured, equipment)})
    return folder


def open_folder(path: Path, *, trust_commands: bool) -> tuple[ResultFolder, PairOptions]:
    """Return the folder of pairs that were begun, with what was asked for. Raises ResultError for a stranger's."""
    if not (path / INPUTS).is_file():
        fix = "name the folder that `gatemark pair` printed"
        raise ResultError(what=f"it holds no {INPUTS}: nothing was measured in pairs here", where=str(path), fix=fix)
    folder = ResultFolder(path=path, command="pair")
    if not trust_commands:
        check_origin(folder)
    with evaluating(path):
        return folder, PairOptions.model_validate(folder.read_json(INPUTS)["options"])


def check_unchanged(folder: ResultFolder, measured: Measured, equipment: Equipment) -> None:
    """Raise ResultError if campaigns, recipes or engine are not those with which the folder was made."""
    before, now = folder.read_json(INPUTS).get("facts", {}), _facts(measured, equipment)
    changed = [key for key in now if before.get(key) != now[key]]
    if changed:
        fix = "undo the change, or measure into a new folder"
        raise ResultError(
            what=f"changed since the folder was made: {', '.join(changed)}", where=str(folder.path), fix=fix
        )


def _facts(measured: Measured, equipment: Equipment) -> dict[str, object]:
    facts: dict[str, object] = {"engine": equipment.engine_sha256()}
    for side, (campaign, _) in measured.items():
        facts[f"campaign of {side}"] = resolved(campaign)
        facts[f"recipe of {side}"] = recipe_sha256(_recipe(campaign))
    return json.loads(json.dumps(facts))  # type: ignore[no-any-return]


def _recipe(campaign: Campaign) -> str:
    assert campaign.testbed.recipe is not None, "a bed with a recipe names it"
    return campaign.testbed.recipe


def measure_pairs(
    folder: ResultFolder,
    measured: Measured,
    wanted: Wanted,
    *,
    on_open: Callable[[Setting], None] = ignore,
    on_pair: PairCallback | None = None,
    equipment: Equipment | None = None,
) -> PairResult:
    """Make pairs until enough is known, and write pair.json and report.html; a folder with a journal is gone on with.

    Whatever ends it, test beds and engines are gone, and every trial is in the journal. Where the user stops it, the
    result is what the pairs so far show. Raises GatemarkError if a gateway, a test bed or the engine fails.
    """
    used, resumed = equipment or Equipment(), folder.has(folder.journal_file.name)
    session: _Session | None = None
    records: dict[Side, Provenance] = {}
    machine = machine_facts()  # before this process leaves the CPUs of the workers to them
    ended: Ended = "stopped"
    try:
        with stop_signals(resume_hint=None), folder.locked():
            prepared = [prepare(measured[side][0], used) for side in SIDES]
            beds = [(campaign, bed) for bed, campaign in prepared]
            logs = [folder.path / _log(side) for side in SIDES]
            with open_testers(beds, used, logs=logs) as testers:
                sides = {
                    side: _SideBed(side, _short(tester, wanted), *measured[side])
                    for side, tester in zip(SIDES, testers, strict=True)
                }
                for side, tester in zip(SIDES, testers, strict=True):
                    records[side] = begun_provenance(
                        folder, tester, sides[side].gateway, machine, used.engine_sha256(),
                        campaign_file=folder.path / INPUTS, resumed=resumed, name=_provenance(side),
                    )  # fmt: skip
                for side, record in records.items():  # not before both are those of the first session
                    folder.write_text(_provenance(side), record.to_text())
                with Journal(folder.journal_file) as journal:
                    session = _Session(sides, journal, wanted)
                    on_open(session.setting)
                    ended = session.measure(on_pair)
    except GatemarkError as error:
        if session is None:
            _discard(folder)
            raise
        if not isinstance(error, Interrupted):
            _store(folder, session, records, ended)
            raise
    assert session is not None, "the testers were open"
    document = _store(folder, session, records, ended)
    return PairResult(folder=folder.path, document=document, was_interrupted=ended == "stopped")


def _discard(folder: ResultFolder) -> None:
    """Remove a folder in which nothing was measured."""
    if not folder.has(folder.journal_file.name):
        for name in (INPUTS, *map(_log, SIDES), *map(_provenance, SIDES)):
            (folder.path / name).unlink(missing_ok=True)
        folder.discard()


def _log(side: Side) -> str:
    return f"engine-{side.lower()}.log"


def _provenance(side: Side) -> str:
    return f"provenance-{side.lower()}.json"


def _store(folder: ResultFolder, session: _Session, records: Mapping[Side, Provenance], ended: Ended) -> PairDocument:
    records = {
        side: end_provenance(folder, record, folder.path / _log(side), name=_provenance(side))
        for side, record in records.items()
    }
    document = conclude(session.pairs, session.measured_s, session.wanted, session.now(), ended)
    folder.write_text(folder.report_file.name, render_pairs(document, records))
    folder.write_text(RESULT, document.to_text())
    return document


def _short(tester: Tester, wanted: Wanted) -> Tester:
    """Return a Tester whose trials follow each other closely: addresses are known, and nothing needs to rest."""
    trial = tester.campaign.trial
    waits = {"settle_ns": 0, "learn_ns": 0, "rest_ns": 0, "drain_ns": min(DRAIN_MAX_NS, trial.drain_ns)}
    if wanted.trial_ns is not None:
        waits["duration_ns"] = wanted.trial_ns
    tables: dict[str, object] = {"trial": trial.model_copy(update=waits)}
    if wanted.figure.establishes:
        connections = tester.campaign.connections_model
        timeout_ns = min(DRAIN_MAX_NS, connections.timeout_ns)
        tables["connections"] = connections.model_copy(update={"timeout_ns": timeout_ns})
    return replace(tester, campaign=tester.campaign.model_copy(update=tables))


class _SideBed:
    """The opened Tester of one side."""

    def __init__(self, side: Side, tester: Tester, campaign: Campaign, cell: Cell) -> None:
        """`campaign`: as it was read, without the ports of this session."""
        self.campaign = campaign
        self.gateway: GatewayDescription = tester.testbed.describe()
        self.idle = IdleCost(tester.testbed)
        self._run = Run(number=SIDES.index(side) + 1, procedure="pair", cell=cell)
        self._maker = TrialMaker(
            campaign=tester.campaign, engine=tester.engine, can=tester.testbed.can, on_event=ignore
        )

    @property
    def connections(self) -> int:
        """Connections of each trial; 0 where there are none."""
        return self._run.cell.connections or 0

    def lowest_load(self, figure: Figure) -> int:
        """Return the lowest load of a trial."""
        return _lowest_rate(self._maker.campaign, self._run.cell) if figure.establishes else LOWEST_LOAD

    @property
    def duration_ns(self) -> int:
        """Sending time of a trial that establishes no connections."""
        return self._maker.campaign.trial.duration_ns

    def step(self, choice: LoadChoice) -> Measure:
        """Return the load that was chosen."""
        purpose: Purpose = "search" if choice.is_search else "load"
        step = Measure(frames_per_second=choice.load, duration_ns=self.duration_ns, purpose=purpose)
        if not choice.figure.establishes:
            return step
        duration_ns = sending_ns(self.connections, choice.load)
        return replace(step, duration_ns=duration_ns, connections=self.connections)

    def order(self, pair: int, trial_number: int, step: Measure, attempt: int = 0) -> TrialOrder:
        """Return the trial of a pair at a load."""
        campaign, cell = self._maker.campaign, self._run.cell
        rate, form = None, PLAIN
        if not step.establishes:
            rate = rate_before(campaign, cell, Earlier(), phase_two_ns=step.duration_ns)
            form = TrialForm(flow_start=flow_start_of(campaign, cell))
        return TrialOrder(
            run=self._run,
            trial_number=trial_number,
            repetition=pair - 1,
            attempt=attempt,
            step=step,
            connections_per_second=rate,
            form=form,
        )

    def make(self, order: TrialOrder) -> TrialRecord:
        """Make a trial. That it loses frames says nothing: it is to."""
        return self._maker.make(
            order,
            loss_tolerance=Fraction(0),
            bounds=bounds_of(()),
            demands=Demands(needs_link=True),
            asks_for_pattern=False,
        )

    def facts(self) -> SideFacts:
        return SideFacts(
            file=str(self.campaign.source),
            recipe=_recipe(self.campaign),
            gateway=f"{self.gateway.name} {self.gateway.version}".strip(),
            idle_cpu_share=self.idle.share,
        )

    def known(self) -> dict[str, object]:
        """Return what the gateway says of itself, without what the kernel draws each time."""
        gateway = self.gateway
        settings = {
            f"settings.{fact.name}": fact.value if fact.read is None else fact.read for fact in gateway.settings
        }
        return {
            "name": gateway.name,
            "version": gateway.version,
            "commands": list(gateway.commands),
            "recipe_sha256": recipe_sha256(_recipe(self.campaign)),
            **settings,
        }


class _Session:
    """Pairs that are made one after the other, the first ones replayed from the journal."""

    def __init__(self, sides: Mapping[Side, _SideBed], journal: Journal, wanted: Wanted) -> None:
        self.pairs: list[Pair] = []
        self.measured_s = 0.0
        self.wanted = wanted
        self._sides = sides
        self._journal = journal
        self._trials = 0
        self.setting = Setting(
            version=gatemark_version(),
            traffic=run_words(sides["A"]._run).removeprefix("pair, "),
            sides={side: bed.facts() for side, bed in sides.items()},
            differences=setup_differences(
                {side: resolved(bed.campaign) for side, bed in sides.items()},
                {side: bed.known() for side, bed in sides.items()},
            ),
        )

    def now(self) -> Setting:
        """Return what was measured, with what the idle test beds cost so far."""
        return replace(self.setting, sides={side: bed.facts() for side, bed in self._sides.items()})

    def measure(self, on_pair: PairCallback | None) -> Ended:
        """Make pairs until enough is known; return why it is."""
        choice = self._first_choice()
        while (ended := end_of(self.pairs, self.measured_s, self.wanted)) is None:
            pair = self._pair(choice)
            self.pairs.append(pair)
            choice = choice.after(pair)
            if choice.never_held:
                raise self._never_held(pair, choice.never_held)
            if on_pair is not None:
                on_pair(self.pairs, self.measured_s, self.wanted)
        return ended

    def _first_choice(self) -> LoadChoice:
        figure = self.wanted.figure
        lowest = max(bed.lowest_load(figure) for bed in self._sides.values())
        return LoadChoice(figure=figure, load=max(FIRST_LOAD, lowest), lowest=lowest)

    def _never_held(self, pair: Pair, sides: Sequence[Side]) -> TestBedError:
        count = self._sides["A"].connections
        shares = " and ".join(f"{side} establishes {float(1 - pair.trials[side].loss_ratio):.1%}" for side in sides)
        return TestBedError(
            what=f"of {count:,} connections {shares} at {pair.load:,} connections/s, and no more than at a higher rate",
            where=f"gateway {' and '.join(sides)}",
            fix="give it a table and ports enough for connections.count, or write a smaller one",
        )

    def _pair(self, choice: LoadChoice) -> Pair:
        number = len(self.pairs) + 1
        first: Side = SIDES[int(np.random.default_rng([self.wanted.seed, number]).integers(2))]
        at_s = self.measured_s
        turns = (first, OTHER[first])
        trials = self._searches(turns, number, choice) if choice.searches else self._trials_at(turns, number, choice)
        return Pair(number=number, load=choice.load, is_search=choice.is_search, first=first, trials=trials, at_s=at_s)

    def _trials_at(self, turns: Sequence[Side], pair: int, choice: LoadChoice) -> dict[Side, SideTrial]:
        records = {side: self._record(side, pair, self._sides[side].step(choice)) for side in turns}
        figure, is_search = self.wanted.figure, choice.is_search
        return {side: side_trial(record, figure, is_search=is_search) for side, record in records.items()}

    def _searches(self, turns: Sequence[Side], pair: int, choice: LoadChoice) -> dict[Side, SideTrial]:
        searches = {side: search_from(choice.load, self._sides[side].duration_ns) for side in turns}
        while any(not search.is_over for search in searches.values()):
            for side, search in searches.items():
                if not search.is_over and isinstance(step := search.step, Measure):
                    searches[side] = search.after(self._record(side, pair, step, search.tries))
        return {side: search.result() for side, search in searches.items()}

    def _record(self, side: Side, pair: int, step: Measure, attempt: int = 0) -> TrialRecord:
        self._trials += 1
        order = self._sides[side].order(pair, self._trials, step, attempt)
        record = next(self._journal.records, None)
        if record is None:
            with self._sides[OTHER[side]].idle.measured():
                record = self._sides[side].make(order)
            self._journal.append(record)
        elif (unlike := difference(record.order, order)) is not None:
            raise ResultError(
                what=f"trial {order.trial_number} was made with {unlike.part} {unlike.first}, not {unlike.second}",
                where=str(self._journal.path),
                fix="it was written by another version of gatemark: measure into a new folder",
            )
        self.measured_s += record.seconds
        return record
