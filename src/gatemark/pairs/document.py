"""What `gatemark pair --json` prints and `pair.json` holds, format number 1: sides, estimate, conditions, every pair.

Every key is described in `docs/reference/result-keys.md`; the JSON Schema is `docs/reference/pair.schema.json`.
"""

from __future__ import annotations

from typing import Literal

from gatemark.compare.document import Condition, Judgement, SetupDifference
from gatemark.pairs.figure import FigureName
from gatemark.pairs.pair import Outcome, Side
from gatemark.results.part import Document, Part
from gatemark.results.quantity import Better

PAIR_SCHEMA = 1
"""Format number: changes whenever a key changes its name, type or meaning."""

Ended = Literal["precision", "decided", "time", "stopped"]
"""Why no more pairs were made. ``decided``: every condition is. ``time``: it was over before. ``stopped``: by the user
or an error, or it still runs."""


class PairSide(Part):
    """One of both gateways."""

    side: Side
    """A, which is the reference, or B."""
    file: str
    """Campaign file."""
    recipe: str
    """Recipe that made the gateway."""
    gateway: str
    """Name of the gateway with its version."""
    value: float | None
    """Median of the figure over the pairs that count, in `unit`. Null without any."""
    drift: float | None
    """Median of the figures in the last third of these pairs / that in the first third, less 1. Null with fewer than
    nine pairs."""
    lossy: int
    """Trials in which it lost frames at a load at which its delay was measured."""
    bounds: int
    """Trials of pairs that count in which it forwarded nearly everything offered."""
    invalid: int
    """Trials in which the Tester did not do its job, searches for a load included."""
    suspect: int
    """Trials in which other work held up the gateway's host, searches for a load included."""
    idle_cpu_share: float | None
    """CPU time of the processes of its test bed, engine included, while the other one was measured / the time that
    took, in the last session. Null if nothing was measured in it."""


class PairLook(Part):
    """Evidence of the first pairs that count, at one look."""

    pairs: int
    """Number of these pairs."""
    ratio_low: float | None
    """Estimate of B's figure / A's figure. Null if unknown."""
    ratio_high: float | None
    """The same; larger than `ratio_low` only where trials are bounds. Null if unknown."""
    low: float | None
    """Lower end of the interval, which allows for 1.5 % by which two test beds of one gateway differ. Null if trials
    that are bounds leave it open."""
    high: float | None
    """Upper end of the interval. Null as `low`."""


class PairTrial(Part):
    """One trial of a pair."""

    trial: int
    """Its number, in the journal too. Of a search, that of its last trial."""
    value: float
    """Forwarding rate, frames/s: frames delivered correctly, in all directions, divided by the sending time. Or median
    delay, ns, in the direction in which it is longer. Or connections established divided by the sending time: those
    whose frame arrived and which the gateway counts after it. Or the throughput that a search found."""
    outcome: Outcome
    """`measured`, or `bound` if it forwarded nearly all that was offered; then it may forward more. `lossy`, `invalid`
    and `suspect` ones take their partner with them."""


class PairRow(Part):
    """One pair."""

    number: int
    """From 1."""
    at_s: float
    """When it began, seconds of measuring."""
    load: int
    """Offered load of each direction, frames/s; of `connections per second` new connections/s; of `throughput` that of
    the first trial."""
    search: bool
    """Whether it was made to find a load. Then it does not count."""
    first: Side
    """Which trial was made first, as chance decided."""
    a: PairTrial
    """The trial of A."""
    b: PairTrial
    """The trial of B."""


class PairDocument(Document):
    """All of it."""

    schema_: Literal[1]
    """Format number. It changes when a key changes its name, type or meaning."""
    gatemark: str
    """Version that measured."""
    quantity: FigureName
    """`forwarding rate`: at the maximum offered load (RFC 2285 section 3.6.2); `median delay`: at a load below both;
    `connections per second`: at a rate above both; `throughput`: of two searches whose trials alternate."""
    unit: str
    """Unit of the figure."""
    better: Better
    """Whether more or less of it is better."""
    traffic: str
    """Direction, frame size and foreground share, in words."""
    sides: tuple[PairSide, ...]
    """A, then B."""
    differences: tuple[SetupDifference, ...]
    """One entry for each fact in which both campaigns and gateways differ."""
    trial_ns: int | None
    """Sending time of a trial. Null for `connections per second`: it is that of all connections at the load."""
    seed: int
    """Decides which trial of a pair is made first."""
    confidence_percent: float
    """In this share of comparisons of equal gateways at least, no look ever shows a difference."""
    precision: float
    """Half the width of the interval at which it ends, as a share."""
    time_s: float
    """Time after which it ends, seconds of measuring."""
    measured_s: float
    """Seconds of measuring."""
    ended: Ended
    """Why no more pairs were made."""
    pairs: int
    """Pairs that count."""
    pairs_left_out: int
    """Pairs left out because a trial of them was lossy, invalid or suspect, searches for a load included."""
    look: PairLook | None
    """The last look, on which the conclusions rest. Null if it was not due."""
    judgement: Judgement
    """What it shows of B against A."""
    autocorrelation: float | None
    """Of the logarithms of successive ratios. Null with fewer than 10 pairs."""
    findings: tuple[str, ...]
    """Further findings, in sentences."""
    conditions: tuple[Condition, ...]
    """One entry for each `--fail-if`."""
    decided: bool
    """Whether all of the interval lies on one side of the limit of each condition; without a condition, whether the
    interval is as narrow as asked."""
    looks: tuple[PairLook, ...]
    """All looks, in their order."""
    rows: tuple[PairRow, ...]
    """All pairs, in their order."""

    @property
    def passes(self) -> bool:
        """Whether every condition could be judged, and none is met."""
        return all(condition.outcome == "not_met" for condition in self.conditions)
