"""What the report of one campaign is made from: its document, and the trials of its journal as rows.

An invalid trial is neither pass nor fail. Pure: the same folder gives the same rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from gatemark.report.headline import Statement
from gatemark.report.statements import headlines, statement
from gatemark.report.words import ESTABLISHMENT_RATES, format_bits
from gatemark.results.provenance import Provenance
from gatemark.results.schema import ResultDocument, RunPart


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
    """Lost frames in each hundredth of the frames of the trial."""


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
    """passed, failed, invalid or cancelled."""
    reasons: tuple[str, ...]
    directions: tuple[DirectionRow, ...]
    lateness_histogram: tuple[tuple[int, int], ...] = ()
    """(upper edge in ns, bursts) over all directions."""
    faults: dict[str, int] = field(default_factory=dict)
    phase: str = ""
    """Stateful: what `directions` are of: phase 1 only, phase 2, validation or tear-down (RFC 9693)."""
    connections: int | None = None
    """Stateful: number of connections N."""
    phase_one_attempts: int = 0
    """Stateful: how often test phase 1 was made before what `directions` are of."""

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

    @property
    def statements(self) -> tuple[Statement, ...]:
        """One statement per run."""
        return tuple(statement(self.document, run, self.medium) for run in self.document.runs)

    @property
    def headlines(self) -> tuple[Statement, ...]:
        """Statements whose figures are shown large."""
        return headlines(self.document.runs, self.statements)

    @property
    def medium(self) -> str:
        """The medium in words."""
        if self.provenance is None:
            return "medium not recorded"
        rate = self.provenance.line_bits_per_second
        if rate is None:
            return f"no theoretical maximum: {self.provenance.line_rate_source}"
        return f"{format_bits(rate)} ({self.provenance.line_rate_source})"

    @property
    def establishment_runs(self) -> tuple[RunPart, ...]:
        """Runs that measure how fast connections are established, validated or not."""
        return tuple(run for run in self.document.runs if run.procedure in ESTABLISHMENT_RATES)

    @property
    def throughput_runs(self) -> tuple[RunPart, ...]:
        """Runs of the throughput procedure."""
        return tuple(run for run in self.document.runs if run.procedure == "throughput")

    @property
    def frame_loss_runs(self) -> tuple[RunPart, ...]:
        """Runs of the frame loss procedure."""
        return tuple(run for run in self.document.runs if run.procedure == "frame_loss")

    @property
    def has_late_frames(self) -> bool:
        """Whether any trial had a limit for the delay of a frame, or frames beyond it."""
        limited = any(run.goal.frame_timeout_ns is not None for run in self.document.runs)
        return limited or any(row.late for trial in self.trials for row in trial.directions)

    @property
    def is_stateful(self) -> bool:
        """Whether the gateway keeps state for each connection (RFC 9693)."""
        return self.document.gateway.inside is not None

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
