"""Parts of `result.json` about what the gateway's host did: null or empty where it was not sampled."""

from __future__ import annotations

from typing import Literal

from gatemark.results.part import Part, ReasonPart
from gatemark.stats.summary import Number


def is_of_one_core(series: str) -> bool:
    """Whether a series is of a single core: its own table shows it, and no figure is made of it."""
    return series.startswith(("cpu.", "interrupts."))


class HostLevel(Part):
    """One thing that was sampled at the gateway's host while frames were sent, over the repetitions of a run."""

    phase: Literal["measured", "test phase 1"]
    """Of a stateful trial, whether it is of the phase that is measured or of the one that establishes connections."""
    series: str
    """As the files in `telemetry/` call it: `busy`, `busiest`, `cpu.0`, `interrupts.0`, `memory_available`,
    `connections`, `process.NAME.cpu`, `process.NAME.memory`, `command.NAME`."""
    name: str
    """Its name in words."""
    unit: str
    """`%`, `1/s`, `% of a core`, `kB` or `connections`; empty for what a command of the user prints."""
    values: tuple[Number | None, ...]
    """One value for each repetition, while frames were sent in its trial that passed at the highest load. It is the
    mean; of `memory_available` it is the least, of memory of a process and of `connections` the most. Null if no trial
    passed, or if no sample is of that time."""


class Spread(Part):
    """Values of several trials."""

    minimum: Number
    """The least of the trials."""
    median: Number
    """The median of the trials."""
    maximum: Number
    """The most of the trials."""


class TableMemory(Part):
    """Memory available at the gateway's host in trials that filled its connection tracking table, kB."""

    connections: int
    """Number of connections, all of which were established."""
    trials: int
    """Trials with samples on both sides."""
    empty: Spread
    """Memory available before the first connection, kB."""
    full: Spread
    """Memory available after the last connection, while the table held all of them, kB."""


class TelemetryPart(Part):
    """In how many trials the gateway's host was sampled."""

    trials: int
    """Number of trials of the engine; each phase of a stateful trial is one."""
    sampled: int
    """Trials with samples; the others have a reason."""
    sending: int
    """Trials in which some time between two samples lies in the sending time as a whole."""
    damaged: int
    """Samples that were left out: torn, out of order, or too slow to have a single time."""
    tables: tuple[TableMemory, ...] = ()
    """Effect of connection tables on the host's memory: one entry for each number of connections that trials
    established, with samples before and after."""
    reasons: tuple[ReasonPart, ...]
    """Why trials have no samples, and impossible values from the host."""
