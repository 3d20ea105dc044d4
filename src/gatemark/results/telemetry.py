"""Parts of `result.json` about what the gateway's host did: null or empty where it was not sampled."""

from __future__ import annotations

from typing import Literal

from gatemark.results.part import Part, ReasonPart
from gatemark.stats.summary import Number


class HostLevel(Part):
    """One thing that was sampled at the gateway's host while frames were sent, over the repetitions of a run."""

    phase: Literal["measured", "test phase 1"]
    """Of a stateful trial, whether it is of the phase that is measured or of the one that establishes connections."""
    series: str
    """As the files of the samples call it."""
    name: str
    """In words."""
    unit: str
    """Empty for what a command of the user prints."""
    values: tuple[Number | None, ...]
    """While frames were sent in the trial of each repetition that passed at the highest load: the mean; of memory that
    is available the least, of memory of a process and of connections the most. Null if none passed, or if no sample is
    of that time."""


class Spread(Part):
    """Values of several trials."""

    minimum: Number
    median: Number
    maximum: Number


class TableMemory(Part):
    """Memory available at the gateway's host in trials that filled its connection tracking table, kB."""

    connections: int
    """All of them were established."""
    trials: int
    empty: Spread
    """Before the first connection of the trial."""
    full: Spread
    """After the last one, while the table held all of them."""


class TelemetryPart(Part):
    """In how many trials the gateway's host was sampled."""

    trials: int
    """Of the engine: each phase of a stateful trial is one."""
    sampled: int
    """Those with samples; the others have a reason."""
    sending: int
    """Those of them with time between two samples that lies in their sending time as a whole."""
    damaged: int
    """Samples that were left out."""
    tables: tuple[TableMemory, ...] = ()
    """What tables of connections did to its memory, by their number: of trials with samples both before and after."""
    reasons: tuple[ReasonPart, ...]
    """Why trials were not sampled, and what the host said that cannot be."""
