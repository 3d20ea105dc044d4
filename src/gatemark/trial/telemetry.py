"""What the gateway's host did in a trial, as far as samples of it tell: before frames were sent, meanwhile, afterwards.

A sample says what a kernel has counted until then, so a busy share belongs to the time between two samples. It counts
for a phase of the trial only if that time lies in it as a whole, whatever the clocks leave open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from gatemark.trial.facts import Facts

SpanName = Literal["before", "sending", "after", "whole"]
"""Before the first frame, while frames are sent, after the last one. All of the trial with its waits where no time
between samples lies in its sending time."""

BUSY, BUSIEST = "busy", "busiest"
AVAILABLE, TOTAL, CONNECTIONS = "memory_available", "memory_total", "connections"
INTERRUPTS = "interrupts."
"""Begin of the series with the interrupts of the network cards that one core took."""

OTHER = "other."
"""Begin of the series of the other gateway's host, of two in a row."""

NUMBER, PHASE, AT = SAMPLE_COLUMNS = ("number", "phase", "at_s")
"""First columns of a file of samples: trial of the engine by number and name, and seconds from the start of sending."""

MEASURED, PHASE_ONE = "measured", "test phase 1"
"""Which trial of the engine samples are of: the one with the frames that count, or one that establishes connections."""


def unit_of(series: str) -> str:
    """Return the unit of a series of samples."""
    series = series.removeprefix(OTHER)
    if series in (BUSY, BUSIEST) or series.startswith("cpu."):
        return "%"
    if series.startswith(INTERRUPTS):
        return "1/s"
    if series.startswith("process."):
        return "kB" if series.endswith(".memory") else "% of a core"
    return {AVAILABLE: "kB", TOTAL: "kB", CONNECTIONS: "connections"}.get(series, "")


def words_of(series: str) -> str:
    """Return what a series is, for people."""
    if series.startswith(OTHER):
        return f"the other gateway: {words_of(series.removeprefix(OTHER))}"
    known = {
        BUSY: "busy share, mean of the cores",
        BUSIEST: "busy share, busiest core",
        AVAILABLE: "memory available",
        TOTAL: "memory",
        CONNECTIONS: "connections",
    }
    if series in known:
        return known[series]
    kind, _, rest = series.partition(".")
    if kind == "cpu":
        return f"busy share, core {rest}"
    if series.startswith(INTERRUPTS):
        return f"interrupts of the network cards, core {rest}"
    if kind == "process":
        name, _, what = rest.rpartition(".")
        return f"{name}, {'memory' if what == 'memory' else 'CPU time'}"
    return rest


class Level(Facts):
    """One series in one span."""

    samples: int
    """Number of samples."""
    mean: float
    """Mean; of a share that of the whole time, whatever the length of the intervals."""
    sd: float | None
    """Standard deviation of the samples. Null with fewer than two."""
    minimum: float
    """Least of the samples."""
    maximum: float
    """Most of the samples."""


def figure_of(series: str, level: Level) -> float:
    """Return the one figure of a series: the least memory that is available, the most that is in use, else the mean."""
    if series == AVAILABLE:
        return level.minimum
    return level.maximum if unit_of(series) in ("kB", "connections") else level.mean


class SpanFacts(Facts):
    """One span of a trial. The series are named as in the file of the samples."""

    span: SpanName
    """The part of the trial; `whole` is all of it with its waits, where no time between samples lies in the sending
    time."""
    covered_ns: int
    """Time between samples that lies in it as a whole."""
    intervals: int
    """Number of times between two samples."""
    error_ns: int
    """How far the times of the samples at both ends of what is covered may be off, together."""
    busiest_cpu: int | None
    """The CPU that was busy most. Null where none is known."""
    levels: Mapping[str, Level]
    """What was sampled, each series by its name in the file of the samples."""


class TelemetryPoint(Facts):
    """One sample as the file of the trial has it, with what follows from the one before."""

    at_ns: int
    """From the start of sending; negative before."""
    values: Mapping[str, float]


class TelemetryFacts(Facts):
    """Samples of the gateway's host in one trial of the engine."""

    reason: str | None = None
    """Why there are no samples. Null if there are."""
    samples: int = 0
    """Samples of the trial."""
    damaged: int = 0
    """Samples that were left out: torn, out of order, or too slow to have a single time."""
    uncertainty_ns: int = 0
    """How far all samples may lie from where they are put in the trial."""
    faults: tuple[str, ...] = ()
    """Impossible or missing values from the host, in sentences; they are left out."""
    spans: tuple[SpanFacts, ...] = ()
    """Each part of the trial that samples lie in."""
    first: Mapping[str, float] = {}
    """Memory, connections and the user's commands in the first sample."""
    last: Mapping[str, float] = {}
    """The same in the last sample."""
    other: TelemetryFacts | None = Field(default=None, exclude_if=lambda other: other is None)
    """The same of the other gateway's host, of two in a row. Absent where it is not sampled."""
    points: tuple[TelemetryPoint, ...] = Field(default=(), exclude=True, repr=False)
    """All samples; they go to a file of the trial, not to the journal."""

    @property
    def of_hosts(self) -> tuple[tuple[str, TelemetryFacts], ...]:
        """Return what each host did, with what the names of its series begin with."""
        return (("", self),) if self.other is None else (("", self), (OTHER, self.other))

    @property
    def complaints(self) -> tuple[str, ...]:
        """Return what is missing or cannot be of any host, in sentences."""
        of_host = self.faults if self.reason is None else (*self.faults, self.reason)
        others = () if self.other is None else self.other.complaints
        return (*of_host, *(f"the other gateway: {sentence}" for sentence in others))

    def level(self, span: SpanName, series: str) -> Level | None:
        """Return a series in a span; None if nothing is known of it."""
        facts = self.span(span)
        return None if facts is None else facts.levels.get(series)

    def span(self, name: SpanName) -> SpanFacts | None:
        """Return a span; None if no time between samples lies in it."""
        return next((span for span in self.spans if span.span == name), None)
