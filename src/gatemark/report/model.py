"""What the report of one campaign is made from: its document, and the trials of its journal as rows.

An invalid trial is neither pass nor fail. Pure: the same folder gives the same rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gatemark.report.words import format_bits
from gatemark.results.document import ResultDocument
from gatemark.results.provenance import Provenance
from gatemark.results.run import RunResult
from gatemark.trial.cause import Cause
from gatemark.trial.host import HostFacts
from gatemark.trial.loss import LossField
from gatemark.trial.record import BootFacts
from gatemark.trial.telemetry import TelemetryFacts
from gatemark.trial.validity import Validity

UNBOUNDED_NS = 2**63
"""Stands for "no upper edge" in a lateness histogram."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionRow:
    """Counts of one direction of one trial, foreground and background together."""

    direction: str
    intended: int
    offered: int
    received: int
    faulty: int
    duplicate: int
    lost: int
    lateness_max_ns: int
    late: int = 0
    """Correct frames that came back after the frame timeout."""
    loss_by_slice: tuple[int, ...] = ()
    """Lost frames in each hundredth of the frames of the trial; empty if every frame came back correct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """One trial of the journal as the report shows it."""

    trial_number: int
    run: int
    repetition: int
    attempt: int
    purpose: str
    frames_per_second: int
    """Connections/s where connections are established."""
    duration_ns: int
    outcome: str
    """passed, failed, suspect, invalid or cancelled."""
    validity: Validity
    reasons: tuple[str, ...]
    """Why it is invalid or suspect, or why it failed."""
    directions: tuple[DirectionRow, ...]
    losses: tuple[tuple[Cause, LossField | None], ...] = ()
    """Why frames were lost, each with the counts by what tells them from others."""
    lateness_histogram: tuple[tuple[int, int], ...] = ()
    """(upper edge in ns, bursts) over all directions."""
    faults: dict[str, int] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    """Everything else that was counted and is not 0: see `report.counters`."""
    phase: str = ""
    """Stateful: the phase that `directions` belong to: phase 1 only, phase 2, validation or tear-down (RFC 9693)."""
    connections: int | None = None
    """Stateful: number of connections N."""
    host: HostFacts | None = None
    """The gateway's host meanwhile; None where it cannot be read."""
    boot: BootFacts | None = None
    """The gateway stopped working in it, and its host was booted."""
    telemetry: tuple[tuple[str, TelemetryFacts], ...] = ()
    """Samples of the gateway's host, with the phase that they are of; empty where it was not to be sampled."""
    memory: tuple[float, float] | None = None
    """Memory available at the gateway's host with an empty table and with one that holds all connections, kB."""
    phase_one_attempts: int = 0
    """Stateful: how often test phase 1 was attempted before the phase that `directions` belong to."""

    @property
    def lateness_max_ns(self) -> int:
        """Worst lateness of any burst of the trial."""
        return max((row.lateness_max_ns for row in self.directions), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPart:
    """Everything that the report of one campaign is made from."""

    document: ResultDocument
    provenance: Provenance | None
    trials: tuple[TrialRow, ...]
    campaign_text: str
    samples: Mapping[int, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    """Samples of the gateway's host in some trials, by trial: the lines of their files, by column."""

    @property
    def medium(self) -> str:
        if self.provenance is None:
            return "medium not recorded"
        rate = self.provenance.line_bits_per_second
        if rate is None:
            return f"no theoretical maximum: {self.provenance.line_rate_source}"
        return f"{format_bits(rate)} ({self.provenance.line_rate_source})"

    def trials_of(self, run: RunResult) -> tuple[TrialRow, ...]:
        """Return the trials of one run, in the order in which they were made."""
        return tuple(trial for trial in self.trials if trial.run == run.number)

    def valid_trials_of(self, run: RunResult) -> tuple[TrialRow, ...]:
        """Return the valid trials of one run."""
        return tuple(trial for trial in self.trials_of(run) if trial.outcome in ("passed", "failed"))

    @property
    def has_late_frames(self) -> bool:
        """Whether any frame came back after the limit that its trial had."""
        return any(row.late for trial in self.trials for row in trial.directions)

    @property
    def is_stateful(self) -> bool:
        return self.document.gateway.is_stateful

    def faults(self) -> tuple[tuple[str, int], ...]:
        """Frames that came back wrong, by reason, most frequent first."""
        return count_faults(self.trials)


def count_faults(trials: Iterable[TrialRow]) -> tuple[tuple[str, int], ...]:
    """Faults by reason over these trials."""
    total: Counter[str] = Counter()
    for trial in trials:
        total.update(trial.faults)
    return tuple((reason, count) for reason, count in total.most_common() if count)


def lateness_histogram(trials: Iterable[TrialRow]) -> tuple[tuple[int, int], ...]:
    """Bursts by lateness over these trials: (upper edge in ns, bursts), edges increasing."""
    total: Counter[int] = Counter()
    for trial in trials:
        for below_ns, bursts in trial.lateness_histogram:
            total[below_ns] += bursts
    return tuple(sorted(total.items()))
