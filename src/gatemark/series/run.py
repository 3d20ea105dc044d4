"""A series from its file to its report: every column is checked, then one campaign is measured after the other.

Each column is a campaign of its own in a folder of its own, so resuming a series is resuming the column under way.
After each run of a column the joined files are written again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gatemark.begun import check_origin
from gatemark.campaign.columns import Column, SeriesFile, load_series, of_each, series_of_text
from gatemark.campaign.estimate import estimate
from gatemark.campaign.events import ColumnEnded, ColumnStarted, ColumnWarning, Event, EventCallback, RunFinished
from gatemark.campaign.plan import plan_of
from gatemark.config.model import Campaign
from gatemark.errors import (
    ConfigError,
    EngineError,
    GatemarkError,
    GatewayCollapsed,
    ResultError,
    TestBedError,
)
from gatemark.report.plot_files import plot_files
from gatemark.report.table import Plot
from gatemark.results import this_machine
from gatemark.results.document import ResultDocument
from gatemark.results.new_file import write_files
from gatemark.results.provenance import machine_changes
from gatemark.results.quantity import Quantity
from gatemark.results.store import default_folder, evaluating
from gatemark.series import report as series_report
from gatemark.series.degradation import degradation_plots
from gatemark.series.document import ENDED, Outcome, SeriesColumn, SeriesDocument, VariedKeys
from gatemark.series.join import expected_results, joined
from gatemark.series.memory import warning
from gatemark.series.page import Waiting, render_series
from gatemark.series.parameters import parameters_of
from gatemark.series.report import OUTCOMES
from gatemark.series.services import services_plots
from gatemark.series.store import SERIES_FILE, SeriesFolder, digest, folder_name
from gatemark.session import PlanCallback, begin, measure, own_equipment, resume_campaign
from gatemark.stored import CampaignResult, open_result, provenance_of
from gatemark.tester import Equipment, prepare, stop_signals


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesResult:
    """What a series found, and the folder that holds all of it."""

    folder: Path
    document: SeriesDocument

    @property
    def report_file(self) -> Path:
        """The report as one self-contained page."""
        return self.folder / "report.html"

    @property
    def columns(self) -> tuple[CampaignResult, ...]:
        """The campaigns that have a result, in the order of the columns."""
        folders = (self.folder / column.folder for column in self.document.columns)
        return tuple(open_result(folder) for folder in folders if (folder / "result.json").is_file())

    @property
    def has_failed(self) -> bool:
        """Whether a column failed, or no figure says anything about the gateway."""
        if any(column.outcome == "failed" for column in self.document.columns):
            return True
        of_gateway = (
            metric.row(figure)
            for metric in self.document.metrics
            for figure in metric.figures
            if figure.limited_by is not None
        )
        return not any(figure.is_measured for figure in of_gateway)


def measure_series(
    file: str | Path | SeriesFile,
    *,
    output: str | Path | None = None,
    on_event: EventCallback | None = None,
    on_plan: PlanCallback | None = None,
    equipment: Equipment | None = None,
    report: bool = True,
) -> SeriesResult:
    """Measure every column of a campaign file with `[[vary]]` into a new folder (default: below results/).

    Without `report` there are no pages, which take most of the time where trials are short: `rebuild_series` makes that
    of the series, `rebuild_report` that of a column.

    All columns are checked before the first trial. A column that cannot be measured has its reason in the result, and
    the series goes on; so it does after a gateway collapsed, without the columns that ask it for more. Raises
    GatemarkError if nothing can go on; whatever was measured stays in the folder.
    """
    series = file if isinstance(file, SeriesFile) else load_series(Path(file))
    used = equipment or own_equipment()
    complete = _checked(series, used)
    path = Path(output) if output is not None else default_folder(series.name)
    with stop_signals(resume_hint=str(path)):
        folder = SeriesFolder.create(path)
        with folder.files.locked():
            under_way = _SeriesUnderWay(folder, series, complete, used, (on_event, on_plan), report=report)
            under_way.write()
            folder.files.write_text(SERIES_FILE, series.text)  # makes it the folder of a series, which can be resumed
            return under_way.go_on()


def begin_series(series: SeriesFile, folder: Path) -> tuple[Path, ...]:
    """Make the folder of a series of which nothing is measured yet, and that of each column; return those.

    Each column is a campaign that `resume_campaign` begins, at any time and in any order; `rebuild_series` joins what
    there is. Or `resume_series` measures all of it. Raises GatemarkError.
    """
    used = own_equipment()
    document = _new_document(series, _checked(series, used))
    created = SeriesFolder.create(folder)
    with created.files.locked():
        for column, described in zip(series.columns, document.columns, strict=True):
            begin(column.source, created.path / described.folder, equipment=used)
        created.write(document, {}, {}, None)
        created.files.write_text(SERIES_FILE, series.text)
    return tuple(created.path / column.folder for column in document.columns)


def resume_series(
    folder: str | Path,
    *,
    trust_commands: bool = False,
    on_event: EventCallback | None = None,
    on_plan: PlanCallback | None = None,
    equipment: Equipment | None = None,
) -> SeriesResult:
    """Go on with an interrupted series; at most one trial of the column under way is made again.

    Columns that failed are tried again; those at which the gateway collapsed are results. Refused with a ResultError if
    file, machine or engine are not what they were, or if the folder is a stranger's and `trust_commands` is not set.
    """
    opened, used = SeriesFolder.open(Path(folder)), equipment or own_equipment()
    if not trust_commands:
        check_origin(opened.files)
    with stop_signals(resume_hint=str(folder)), opened.files.locked():
        before = opened.read()
        text = opened.files.read_text(SERIES_FILE)
        if digest(text) != before.file_sha256:
            raise ResultError(
                what=f"{SERIES_FILE} has changed since the folder was made",
                where=str(opened.path),
                fix="undo the change, or measure the new series into a new folder",
            )
        series = series_of_text(text, Path(before.file))
        if not all(column.outcome in ENDED for column in joined(before, opened.results(before), {}).columns):
            _same_machine(opened, before, used)
        complete = _checked(series, used)
        under_way = _SeriesUnderWay(opened, series, complete, used, (on_event, on_plan), trust_commands=trust_commands)
        under_way.take(before)
        return under_way.go_on()


def open_series(folder: str | Path) -> SeriesResult:
    """Read the result of a series from its folder."""
    opened = SeriesFolder.open(Path(folder))
    document = opened.read()
    return SeriesResult(folder=opened.path, document=joined(document, opened.results(document), {}))


def rebuild_series(folder: str | Path, *, plots: Path | None = None) -> SeriesResult:
    """Join the columns of a folder again: table, series.json, series.csv and report.

    `plots`: folder for the plots of the report as PDF, SVG and CSV.
    """
    opened = SeriesFolder.open(Path(folder))
    with evaluating(opened.path):
        before = opened.read()
        results = opened.results(before)
        document = joined(before, results, {})
        drawn = _drawn(document)
        opened.write(document, results, {}, _page(opened, document, results, drawn))
        if plots is not None:
            write_files(plots, plot_files(drawn))
    return SeriesResult(folder=opened.path, document=document)


def series_page(opened: SeriesFolder) -> str:
    """Return report.html of a series that nobody measures."""
    document = opened.read()
    return _page(opened, document, opened.results(document), _drawn(document))


def _page(
    opened: SeriesFolder, document: SeriesDocument, results: Mapping[int, ResultDocument], drawn: Sequence[Plot]
) -> str:
    waiting = [_waiting(column) for column in document.columns if column.outcome not in ENDED]
    return render_series(document, results, drawn, waiting=waiting, text=opened.files.read_text(SERIES_FILE))


def _drawn(document: SeriesDocument) -> tuple[Plot, ...]:
    return (*(tuple(services_plots(document)) or series_report.plots(document)), *degradation_plots(document))


def _checked(series: SeriesFile, equipment: Equipment) -> tuple[Campaign, ...]:
    """Return the campaigns of all columns with what their recipes know. Raises ConfigError with all problems."""

    def check(column: Column) -> Campaign:
        complete = prepare(column.campaign, equipment)[1]
        plan_of(complete)
        return complete

    return of_each(series, check)


class _SeriesUnderWay:
    """A series that is measured: how each column ended so far, and the files that tell it."""

    def __init__(
        self,
        folder: SeriesFolder,
        series: SeriesFile,
        complete: Sequence[Campaign],
        equipment: Equipment,
        watchers: tuple[EventCallback | None, PlanCallback | None],
        *,
        trust_commands: bool = False,
        report: bool = True,
    ) -> None:
        self._folder, self._series, self._equipment = folder, series, equipment
        self._on_event, self._on_plan = watchers
        self._trust_commands, self._report = trust_commands, report
        self._work_s = {
            column.number: _expected_s(campaign) for column, campaign in zip(series.columns, complete, strict=True)
        }
        self._document = _new_document(series, complete)
        self._more: dict[int, list[Quantity]] = {}
        self._plots: tuple[Plot, ...] = ()
        self._began: tuple[int, str] | None = None
        """Number of the column under way, and since when."""

    def take(self, before: SeriesDocument) -> None:
        """Take over how columns ended in an earlier session, and where their searches began."""
        for column in before.columns:
            self._update(
                column.number,
                outcome=column.outcome,
                reason=column.reason,
                campaign_sha256=column.campaign_sha256,
                expected=column.expected,
                warning=column.warning,
            )
        self.write()

    def go_on(self) -> SeriesResult:
        """Measure the columns that have not ended."""
        try:
            for column in self._series.columns:
                if self._column(column.number).outcome not in ENDED:
                    self._take_turn(column)
        except BaseException:
            self._began = None
            self._more.clear()
            with contextlib.suppress(GatemarkError):
                self.write()
            raise
        self._began = None
        self.write()
        return SeriesResult(folder=self._folder.path, document=self._document)

    def write(self, *, with_plots: bool = True) -> None:
        """Write everything that is joined, as it is now."""
        results = self._join()
        page = self._page(results, with_plots=with_plots) if self._report else None
        self._folder.write(self._document, results, self._more, page)

    def _page(self, results: Mapping[int, ResultDocument], *, with_plots: bool) -> str:
        """Return the report as it is now; without `with_plots`, with those drawn before."""
        if with_plots:
            self._plots = _drawn(self._document)
        waiting = [self._expected(column) for column in self._document.columns if column.outcome not in ENDED]
        return render_series(self._document, results, self._plots, waiting=waiting, text=self._series.text)

    def _join(self) -> dict[int, ResultDocument]:
        """Join what the columns found so far; return it."""
        results = self._folder.results(self._document)
        self._document = joined(self._document, results, self._more)
        return results

    def _column(self, number: int) -> SeriesColumn:
        return self._document.columns[number - 1]

    def _end(self, number: int, outcome: Outcome, reason: str | None) -> None:
        self._update(number, outcome=outcome, reason=reason)

    def _expect(self, column: Column) -> Column:
        """Return a column that is about to begin, with the results expected that the column before it has.

        They are in its campaign.toml from then on, so that a resumed column searches as before.
        """
        if column.previous is None:
            return column
        result = self._folder.results(self._document).get(column.previous)
        results = {} if result is None else expected_results(row.quantity for row in result.rows())
        begun, used = column.expecting(results)
        self._update(column.number, campaign_sha256=digest(begun.source.text), expected=used)
        return begun

    def _update(self, number: int, **changes: object) -> None:
        changed = self._column(number).model_copy(update=changes)
        columns = (changed if column.number == number else column for column in self._document.columns)
        self._document = self._document.model_copy(update={"columns": tuple(columns)})

    def _take_turn(self, column: Column) -> None:
        """Measure one column, or say why not."""
        self._began = (column.number, this_machine.now_iso())
        collapsed = self._collapsed_below(column.number)
        if collapsed is not None:
            reason = (
                f"it asks for more than column {collapsed.number}, {collapsed.title}, at which the gateway collapsed"
            )
            self._end(column.number, "skipped", reason)
        else:
            later_s = sum(self._left_s(later.number) for later in self._series.columns if later.number > column.number)
            count = len(self._series.columns)
            self._tell(ColumnStarted(number=column.number, columns=count, title=column.title, later_s=later_s))
            self._warn(column)
            self._end(column.number, "missing", None)  # it may have failed in an earlier session
            is_new = not self._folder.column(self._column(column.number).folder).has("campaign.toml")
            begun = self._expect(column) if is_new else column
            self.write(with_plots=False)
            self._end(column.number, *self._measured(begun))
        self._more.pop(column.number, None)
        self._began = (column.number + 1, this_machine.now_iso())
        self.write()
        ended = self._column(column.number)
        words = OUTCOMES[ended.outcome] + ("" if ended.reason is None else f": {ended.reason}")
        self._tell(
            ColumnEnded(number=column.number, columns=len(self._series.columns), title=column.title, words=words)
        )

    def _warn(self, column: Column) -> None:
        """Say so if the connections of a column may not fit into the gateway's memory; it is measured all the same."""
        words = warning(self._column(column.number), self._document.memory)
        self._update(column.number, warning=words)
        if words is not None:
            count = len(self._series.columns)
            self._tell(ColumnWarning(number=column.number, columns=count, title=column.title, words=words))

    def _measured(self, column: Column) -> tuple[Outcome, str | None]:
        """Measure a column, or go on with it; return how it ended."""
        target = self._folder.column(self._column(column.number).folder)

        def watch(event: Event) -> None:
            self._tell(event)
            if isinstance(event, RunFinished):
                self._more.setdefault(column.number, []).extend(event.result.quantities())
                self.write(with_plots=False)

        try:
            if target.has("campaign.toml"):
                resume_campaign(
                    target.path,
                    trust_commands=self._trust_commands,
                    on_event=watch,
                    on_plan=self._on_plan,
                    equipment=self._equipment,
                )
            else:
                measure(
                    column.source,
                    output=target.path,
                    on_event=watch,
                    on_plan=self._on_plan,
                    equipment=self._equipment,
                    report=self._report,
                )
        except GatewayCollapsed as error:
            return "collapsed", _words(error)
        except (ConfigError, TestBedError, EngineError) as error:
            return "failed", _words(error)
        return "measured", None

    def _tell(self, event: Event) -> None:
        if self._on_event is not None:
            self._on_event(event)

    def _collapsed_below(self, number: int) -> SeriesColumn | None:
        """Return a column at which the gateway collapsed, and of which this one asks for more in the same way."""
        column = self._column(number)
        collapsed = (earlier for earlier in self._document.columns if earlier.outcome == "collapsed")
        return next((earlier for earlier in collapsed if asks_for_more(column, earlier)), None)

    def _expected(self, column: SeriesColumn) -> Waiting:
        """Return when a column that is missing is expected to be measured."""
        if self._began is None:
            return _waiting(column)
        under_way, since = self._began
        if column.number < under_way:  # it failed, and is tried again only when the series is resumed
            return _waiting(column)
        ahead = [
            self._left_s(before.number)
            for before in self._document.columns
            if before.outcome not in ENDED and under_way <= before.number <= column.number
        ]
        return Waiting(
            column=column,
            is_under_way=column.number == under_way,
            expected_at=this_machine.iso_after(since, sum(ahead)),
        )

    def _left_s(self, number: int) -> float:
        """Return the seconds that a column is expected to take, by the pace of those that were measured."""
        if self._column(number).outcome in ENDED:
            return 0.0
        spent = {
            column.number: self._spent_s(column) for column in self._document.columns if column.outcome == "measured"
        }
        planned_s = sum(self._work_s[number] for number in spent)
        pace = sum(spent.values()) / planned_s if planned_s else 1.0
        return pace * self._work_s[number]

    def _spent_s(self, column: SeriesColumn) -> float:
        """Return the seconds that a column took in all its sessions."""
        provenance = provenance_of(self._folder.column(column.folder))
        sessions = () if provenance is None else provenance.sessions
        return sum(
            this_machine.seconds_between(session.started_at, session.finished_at)
            for session in sessions
            if session.finished_at is not None
        )


def asks_for_more(column: SeriesColumn, than: SeriesColumn) -> bool:
    """Whether a column has more connections, more subscribers or a larger table of the same gateway, and differs only
    in one part.
    """
    mine_is, other_is = ((known.gateway, known.technology) for known in (column.parameters, than.parameters))
    if mine_is != other_is:
        return False
    later = [mine > other for mine, other in zip(column.steps, than.steps, strict=True) if mine != other]
    if later != [True]:
        return False
    connections, others = (max(either.parameters.connections, default=0) for either in (column, than))
    if connections != others:
        return connections > others
    if column.parameters.subscribers != than.parameters.subscribers:
        return (column.parameters.subscribers or 0) > (than.parameters.subscribers or 0)
    return (column.parameters.table_size or 0) > (than.parameters.table_size or 0)


def _new_document(series: SeriesFile, complete: Sequence[Campaign]) -> SeriesDocument:
    """Return a series of which nothing is measured yet."""
    columns = tuple(
        SeriesColumn(
            number=column.number,
            title=column.title,
            folder=folder_name(column.number, len(series.columns), column.title),
            steps=column.steps,
            settings=dict(column.settings),
            campaign_sha256=digest(column.source.text),
            parameters=parameters_of(campaign),
            outcome="missing",
            reason=None,
            trials=0,
            invalid_trials=0,
        )
        for column, campaign in zip(series.columns, complete, strict=True)
    )
    return SeriesDocument(
        schema_=1,
        name=series.name,
        gatemark=this_machine.gatemark_version(),
        status="incomplete",
        file=str(series.file.resolve()),
        file_sha256=digest(series.text),
        varied=tuple(VariedKeys(keys=tuple(vary.values), titles=vary.titles) for vary in series.vary),
        columns=columns,
        metrics=(),
    )


def _waiting(column: SeriesColumn) -> Waiting:
    return Waiting(column=column, is_under_way=False, expected_at=None)


def _expected_s(campaign: Campaign) -> float:
    """Return the seconds that a campaign is expected to take before anything was measured."""
    needed = estimate(campaign)
    return (needed.seconds_min + needed.seconds_max) / 2


def _same_machine(folder: SeriesFolder, document: SeriesDocument, equipment: Equipment) -> None:
    """Raise ResultError if machine or engine are not those of the first column: columns are compared."""
    provenances = (provenance_of(folder.column(column.folder)) for column in document.columns)
    first = next((provenance.sessions[0] for provenance in provenances if provenance is not None), None)
    if first is None:
        return
    differing = machine_changes(first.machine, this_machine.machine_facts())
    now = equipment.engine_sha256()
    if first.engine.program_sha256 != now:
        differing.append(f"engine.program_sha256 was {first.engine.program_sha256}, is {now}")
    if differing:
        raise ResultError(
            what=f"machine or engine are not those of the first column: {'; '.join(differing)}",
            where=str(folder.path),
            fix="restore the earlier ones, or measure with these into a new folder",
        )


def _words(error: GatemarkError) -> str:
    return "; ".join(f"{problem.where}: {problem.what}" for problem in error.problems)
