"""Progress of a running campaign: a live display on a terminal, one line per trial elsewhere. Words go to stderr."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gatemark.campaign.events import (
    AddressesAsked,
    ColumnEnded,
    ColumnStarted,
    ColumnWarning,
    DamageAsked,
    Event,
    EventCallback,
    HostBooting,
    PhaseStarted,
    RepetitionFinished,
    RunFinished,
    RunStarted,
    TableClearing,
    TornLineDropped,
    TrialFinished,
    TrialProgress,
    TrialStarted,
)
from gatemark.campaign.plan import Plan
from gatemark.consoles import stderr_console
from gatemark.results.coordinates import named_sizes
from gatemark.results.run import RunResult
from gatemark.search.goal import Bounds, Purpose
from gatemark.trial.cell import Run
from gatemark.trial.kinds import kind_of
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import TrialReport
from gatemark.units import format_duration_ns, format_rate, format_ratio

REMIND_S = 30.0

WITH_BOUNDS: Final[frozenset[Purpose]] = frozenset(("search", "confirmation", "single"))
"""Purposes of trials that narrow the bounds of a load."""


@dataclass(slots=True, kw_only=True)
class ProgressState:
    """What is known so far; `update` takes one event, the rest turns it into words."""

    now: Callable[[], float] = time.monotonic
    column: ColumnStarted | None = None
    """Campaign of a series that is under way."""
    expected_ns: tuple[int, ...] = ()
    """How long each run is expected to take; empty until that is known."""
    started: float = 0.0
    run: Run | None = None
    runs_done: int = 0
    repetitions: int = 1
    repetitions_done: int = 0
    trial: TrialOrder | None = None
    stateful: PhaseStarted | None = None
    """Part of a stateful trial that is under way."""
    waits: tuple[str, float] | None = None
    """What the gateway is waited for, and since when; None if it is not."""
    phase: str = ""
    elapsed_ns: int = 0
    offered: int = 0
    received: int = 0
    bounds: Bounds | None = None
    invalid: int = 0
    trials_made: int = 0
    work_replayed: float = 0.0
    """Work that counts as done, but took no time: replayed from the journal, or refused."""
    lines: list[str] = field(default_factory=list)
    """Lines to print and forget."""

    def __post_init__(self) -> None:
        """Start the clock."""
        self.started = self.now()

    def update(self, event: Event) -> None:
        """Take one event."""
        wait = wait_words(event)
        self.waits = None if wait is None else (wait, self.now())
        match event:
            case ColumnStarted():
                self._begin_column(event)
            case ColumnWarning():
                self.lines.append(f"column {event.number} of {event.columns}, {event.title}: warning: {event.words}")
            case ColumnEnded():
                self.lines.append(f"column {event.number} of {event.columns}, {event.title}: {event.words}")
            case TornLineDropped():
                self.lines.append(
                    f"journal: dropped an incomplete last line ({event.octets} octets); its trial is repeated"
                )
            case RunStarted():
                self.run, self.repetitions, self.repetitions_done = event.run, event.repetitions, 0
                self.bounds = None
                self.lines.append(f"run {self._of(event.run)}: {run_words(event.run)}")
            case AddressesAsked():
                self.lines += [f"run {self._of(event.run)}: {sentence}" for sentence in event.news]
            case TrialStarted():
                self.trial, self.bounds, self.stateful = event.order, event.bounds, None
                self._begin()
            case TableClearing() | HostBooting():
                if isinstance(event, HostBooting) and event.why is not None:
                    self.lines.append(f"  trial {event.trial_number}: {event.why}; its host is booted")
                self.stateful = None
                self._begin()
            case DamageAsked():
                self.stateful = None
                self._begin()
                self.phase = "which gateway damaged frames?"
            case PhaseStarted():
                self.stateful = event
                self._begin()
            case TrialProgress():
                self._take_progress(event)
            case TrialFinished():
                self.bounds = event.bounds
                self.trials_made += not event.replayed
                self.invalid += event.record.tester_fell_short
                self.lines += [trial_line(event), *damage_lines(event.record)]
            case RepetitionFinished():
                self.repetitions_done += 1
            case RunFinished():
                self.runs_done, self.repetitions_done = self.runs_done + 1, 0
                self.run = None
                if not event.result.trials:  # refused
                    self.work_replayed += sum(self.expected_ns[self.runs_done - 1 : self.runs_done])
                self.lines.append(f"run {self._of(event.run)}: {done_words(event.result)}")
        if self.trials_made == 0:
            self.work_replayed, self.started = self._work(), self.now()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the first trial that was not replayed."""
        return self.now() - self.started

    @property
    def left_s(self) -> float | None:
        """Seconds that the rest will take at the pace so far; None before anything is known."""
        done = self._work() - self.work_replayed
        if not self.expected_ns or done <= 0 or self.elapsed_s <= 0:
            return None
        later = 0.0 if self.column is None else self.column.later_s
        return later + max(0.0, (self._work_planned() - self._work()) * self.elapsed_s / done)

    @property
    def waiting_words(self) -> str | None:
        """What the gateway is waited for and how long; None if it is not."""
        waits = self.waits  # read once: another thread may end the wait
        return None if waits is None else f"{waits[0]}, {clock(self.now() - waits[1])} so far"

    def _work_planned(self) -> float:
        """All work, as the time that it was expected to take, nanoseconds."""
        return float(sum(self.expected_ns))

    def _work(self) -> float:
        """Work that is done: of the current run the part of its repetitions."""
        done, current = self.expected_ns[: self.runs_done], self.expected_ns[self.runs_done : self.runs_done + 1]
        return sum(done) + sum(current) * self.repetitions_done / max(1, self.repetitions)

    def _begin_column(self, event: ColumnStarted) -> None:
        """Begin a campaign: what was counted belongs to the one before."""
        self.column, self.expected_ns, self.run, self.trial, self.stateful = event, (), None, None, None
        self.runs_done = self.repetitions_done = self.trials_made = self.invalid = 0
        self.work_replayed, self.started, self.bounds = 0.0, self.now(), None
        self.lines.append(f"column {event.number} of {event.columns}: {event.title}")

    def _begin(self) -> None:
        self.phase = "start"
        self.elapsed_ns = self.offered = self.received = 0

    def _take_progress(self, event: TrialProgress) -> None:
        self.phase = str(event.progress.get("phase", self.phase))
        self.elapsed_ns = int(event.progress.get("elapsed_ns", 0))
        directions = event.progress.get("directions", [])
        self.offered = sum(int(direction.get("offered", 0)) for direction in directions)
        self.received = sum(int(direction.get("received", 0)) for direction in directions)

    def _of(self, run: Run) -> str:
        return f"{run.number} of {len(self.expected_ns)}" if self.expected_ns else f"{run.number}"

    def position(self) -> str:
        """Which run and repetition is measured; in a series, of which column."""
        place = self._place_in_campaign()
        if self.column is None:
            return place
        return f"column {self.column.number} of {self.column.columns}, {self.column.title}: {place}"

    def _place_in_campaign(self) -> str:
        if self.run is None:
            return "preparing" if self.runs_done == 0 else f"{self.runs_done} runs done"
        repetition = min(self.repetitions_done + 1, self.repetitions)
        return f"run {self._of(self.run)}, repetition {repetition} of {self.repetitions}: {run_words(self.run)}"


def wait_words(event: Event) -> str | None:
    """What the gateway begins to do that may take long; None if it does not."""
    if isinstance(event, HostBooting):
        return "its host boots"
    deletes = isinstance(event, TableClearing) or (isinstance(event, PhaseStarted) and event.deletes_connections)
    return "it deletes its connections" if deletes else None


def run_words(run: Run) -> str:
    """A run in a few words."""
    sizes = run.cell.frame_sizes
    named = named_sizes(sizes.ipv4, sizes.ipv6, sizes.tunnel)
    mix = "" if run.cell.mix.m == run.cell.mix.n else f", {run.cell.mix.m} of {run.cell.mix.n} foreground"
    count = "" if run.cell.connections is None else f", {run.cell.connections:,} connections"
    alpha = "" if run.cell.alpha is None else f", alpha {format_ratio(run.cell.alpha)}"
    return f"{run.procedure.replace('_', ' ')}, {named}, {run.cell.direction}{mix}{count}{alpha}"


def done_words(result: RunResult) -> str:
    """How a run ended."""
    if result.refused is not None:
        return f"not measured: {result.refused}"
    return f"done, limited by {result.limited_by}"


def phase_words(phase: PhaseStarted) -> str:
    """A part of a stateful trial and how many connections it has."""
    rate = "" if phase.per_second is None else f" at {format_rate(phase.per_second)} {phase.unit}"
    attempt = f", attempt {phase.attempt + 1}" if phase.attempt else ""
    drawn = "" if phase.drawn_frames is None else f"{phase.drawn_frames:,} frames drawn from "
    return f"{phase.phase}, {drawn}{phase.connections:,} connections{rate}{attempt}"


def trial_line(event: TrialFinished) -> str:
    """One finished trial in one line."""
    record, step = event.record, event.record.order.step
    kind = kind_of(record.order)
    if not record.validity.valid:
        outcome, why = "invalid", record.validity.reasons
    elif record.suspicion is not None:
        outcome, why = "suspect", record.reasons
    else:
        outcome, why = kind.told(record)
    words = f"  trial {record.order.trial_number}: {kind.subject(record)}: {outcome}"
    if why:
        words += f" ({why[0]}{', ...' if len(why) > 1 else ''})"
    if event.replayed:
        words += " [from the journal]"
    if record.order.form.histogram:
        return f"{words}; {delay_words(record.report)}" if record.validity.valid else words
    has_bounds = step.purpose in WITH_BOUNDS and not step.is_burst
    return f"{words}; bounds {bounds_words(event.bounds)}" if has_bounds else words


def damage_lines(record: TrialRecord) -> list[str]:
    """Which of two gateways in a row damaged frames, a line for each kind of fault."""
    return [f"    {damage.told}" for damage in record.damages]


def delay_words(report: TrialReport) -> str:
    """The longest delays of any direction and class, and how many frames and tags have none."""
    delays = [(counts, counts.delay) for _, _, counts in report.counts()]
    parts = []
    for name, per_100000 in (("median", 50_000), ("99.9 %", 99_900)):
        delays_ns = [ns for _, delay in delays if (ns := delay.percentile_ns(per_100000)) is not None]
        parts.append(f"{name} {format_duration_ns(max(delays_ns))}" if delays_ns else f"{name} -")
    missing = (
        ("frames not delivered", sum(counts.undelivered for counts, _ in delays)),
        ("tags lost", sum(delay.tags.lost for _, delay in delays if delay.tags is not None)),
        ("delays below 0", sum(delay.negative for _, delay in delays)),
    )
    return ", ".join(["delay " + parts[0], parts[1], *(f"{count:,} {what}" for what, count in missing if count)])


def bounds_words(bounds: Bounds | None) -> str:
    """Bounds of the search so far."""
    if bounds is None:
        return "-"
    lower = "-" if bounds.lower is None else format_rate(bounds.lower)
    upper = "-" if bounds.upper is None else format_rate(bounds.upper)
    limit = "" if bounds.tester_limit is None else f", Tester-limited at {format_rate(bounds.tester_limit)}"
    return f"{lower} to {upper}{limit}"


def clock(seconds: float | None) -> str:
    """Minutes and seconds."""
    return "-" if seconds is None else f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def live_view(state: ProgressState) -> RenderableType:
    """The display on a terminal."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim")
    rows.add_column()
    if state.trial is not None:
        trial, step = state.trial, state.trial.step
        attempt = f", attempt {trial.attempt + 1}" if trial.attempt else ""
        rows.add_row(
            "trial",
            f"{trial.trial_number}: {kind_of(trial).load_words(trial)} ({step.purpose}{attempt}), {state.phase}",
        )
        if state.stateful is not None:
            rows.add_row("phase", phase_words(state.stateful))
        if state.waiting_words is not None:
            rows.add_row("gateway", state.waiting_words)
        rows.add_row("frames", f"{state.offered:,} offered, {state.received:,} back")
        rows.add_row("bounds", bounds_words(state.bounds))
    invalid = f", {state.invalid} invalid" if state.invalid else ""
    rows.add_row("time", f"{clock(state.elapsed_s)} elapsed, about {clock(state.left_s)} left{invalid}")
    bar = ProgressBar(total=state._work_planned() or 1.0, completed=state._work(), width=60)
    return Group(Text(state.position(), style="bold"), rows, bar)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watcher:
    """The two callbacks of a session: what will be run, and what happens."""

    on_plan: Callable[[Plan, tuple[int, ...]], None]
    on_event: EventCallback


class Reminder:
    """Says again and again, from a thread of its own, that the gateway is still being waited for."""

    def __init__(self, state: ProgressState, say: Callable[[str], None], every_s: float) -> None:
        self._state, self._say, self._every_s = state, say, every_s
        self._changed = threading.Condition()
        self._waits: tuple[str, float] | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._remind, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def look(self) -> None:
        """Take note of whether the state has begun to wait, or has ended."""
        if self._state.waits != self._waits:
            with self._changed:
                self._waits = self._state.waits
                self._changed.notify()

    def _remind(self) -> None:
        with self._changed:
            while not self._closed:
                changed = self._changed.wait(None if self._waits is None else self._every_s)
                words = self._state.waiting_words
                if not changed and words is not None:
                    self._say(f"  waiting for the gateway: {words}")


@contextlib.contextmanager
def progress_display(console: Console | None = None, *, remind_s: float = REMIND_S) -> Iterator[Watcher]:
    """Show a campaign while the block runs: live on a terminal, plain lines elsewhere.

    Plain lines say every `remind_s` seconds that the gateway is waited for.
    """
    out = console or stderr_console()
    state = ProgressState()

    def on_plan(_plan: Plan, expected_ns: tuple[int, ...]) -> None:
        state.expected_ns = expected_ns

    def say(line: str) -> None:
        with contextlib.suppress(OSError):  # nobody looks any more: the terminal or the pipe was closed
            out.print(Text(line), soft_wrap=True)

    reminder = Reminder(state, say, remind_s)

    def on_event(event: Event) -> None:
        state.update(event)
        reminder.look()
        while state.lines:
            line = state.lines.pop(0)
            if not out.is_terminal or line.startswith(("run", "journal", "column")):
                say(line)

    watcher = Watcher(on_plan=on_plan, on_event=on_event)
    if not out.is_terminal:
        with reminder:
            yield watcher
        return
    live = Live(get_renderable=lambda: live_view(state), console=out, refresh_per_second=4, transient=True)
    live.start()
    try:
        yield watcher
    finally:
        with contextlib.suppress(OSError):  # as above
            live.stop()
