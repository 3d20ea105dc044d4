"""What a running campaign tells its watchers. Values only; a watcher must not raise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gatemark.engine.answers import Progress
from gatemark.results.run import RunResult
from gatemark.search.goal import Bounds
from gatemark.trial.cell import Run
from gatemark.trial.order import TrialOrder
from gatemark.trial.record import TrialRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class TornLineDropped:
    """The last line of the journal had no end, after a kill or a full disk; its trial is made again."""

    octets: int
    """Length of what was dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The measurement of a cell of the matrix begins."""

    run: Run
    repetitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressesAsked:
    """The gateway was asked for its link-layer addresses before the first trial that a run makes, and there is news."""

    run: Run
    news: tuple[str, ...]
    """Which addresses changed and for which it no longer answers, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStarted:
    """A trial is about to be made. Trials taken from the journal have no such event."""

    order: TrialOrder
    bounds: Bounds
    """What the trials of this repetition leave so far."""


PhaseName = Literal["phase 1", "phase 2", "validation", "tear-down"]
"""Part of a trial through a stateful gateway (RFC 9693 sections 4.2, 4.6, 4.7 and 4.8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseStarted:
    """A phase of a stateful trial begins."""

    trial_number: int
    phase: PhaseName
    connections: int
    """Number of connections of the trial."""
    per_second: int | None
    """Phase 1 and validation: connections per second; phase 2: frames per second of each direction; else None."""
    attempt: int
    """From 0; the attempts at phase 1 before it did not fill the table."""
    drawn_frames: int | None = None
    """Frames of phase 1, if the connection of each is drawn at random; None if each has a connection of its own."""

    @property
    def uses_connections(self) -> bool:
        """Whether frames of established connections are measured."""
        return self.phase == "phase 2"

    @property
    def deletes_connections(self) -> bool:
        return self.phase == "tear-down"

    @property
    def unit(self) -> str:
        """Unit of `per_second`."""
        return "frames/s" if self.uses_connections or self.drawn_frames is not None else "connections/s"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBooting:
    """The gateway's host begins to boot before a trial, or in it because the gateway stopped working."""

    trial_number: int
    why: str | None = None
    """Why in the trial; None before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableClearing:
    """The gateway begins to delete all connections before test phase 1; with a large table that takes its time."""

    trial_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DamageAsked:
    """A short trial begins that finds out which of two gateways in a row damaged the frames of a trial."""

    trial_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialProgress:
    """A trial is running."""

    trial_number: int
    progress: Progress
    """The engine's progress record (`protocol/messages.md`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFinished:
    """A trial was made and is in the journal."""

    record: TrialRecord
    bounds: Bounds
    """What the trials of this repetition leave, this one included."""
    replayed: bool
    """Taken from the journal of an interrupted campaign, not made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepetitionFinished:
    """One repetition of a run is done."""

    repetition: int
    """From 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """All repetitions of a run are done."""

    run: Run
    result: RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStarted:
    """The next campaign of a series begins."""

    number: int
    """From 1."""
    columns: int
    """How many the series has."""
    title: str
    later_s: float
    """Seconds that the columns after this one are expected to take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnWarning:
    """The next campaign of a series may ask for more than the gateway has."""

    number: int
    columns: int
    title: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEnded:
    """A campaign of a series ended."""

    number: int
    columns: int
    title: str
    words: str
    """How it ended, with the reason if it was not measured."""


Event = (
    ColumnStarted
    | ColumnWarning
    | ColumnEnded
    | TornLineDropped
    | RunStarted
    | AddressesAsked
    | TrialStarted
    | HostBooting
    | TableClearing
    | DamageAsked
    | PhaseStarted
    | TrialProgress
    | TrialFinished
    | RepetitionFinished
    | RunFinished
)
EventCallback = Callable[[Event], None]
