"""What `gatemark compare --json` prints, format number 1: sides, differences of set-up, quantities, conditions.

Every key is described in `docs/reference/result-keys.md`; the JSON Schema is `docs/reference/comparison.schema.json`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from gatemark.results.coordinates import Coordinate
from gatemark.results.part import Document, LimitedBy, Part
from gatemark.results.quantity import Better
from gatemark.stats.summary import Number

COMPARISON_SCHEMA = 1
"""Format number: changes whenever a key changes its name, type or meaning."""

Judgement = Literal["worse", "better", "different", "no_difference", "not_judged"]
"""What is shown of a side against the first. ``different``: of a quantity of which neither more nor less is better.
``no_difference``: none is shown, which does not mean that there is none. ``not_judged``: it cannot be told."""

Outcome = Literal["met", "not_met", "cannot_be_judged"]


class ComparedSide(Part):
    """One folder."""

    label: str
    """A, B, C, in the order in which they were given."""
    folder: str
    """The folder as it was given."""
    kind: Literal["campaign", "series", "campaigns", "repeated"]
    """`repeated`: a folder with result folders of one campaign that was made several times, each of which is one value.
    `campaigns`: a folder with those of different ones."""
    folders: int
    """Result folders that it has."""
    campaigns: tuple[str, ...]
    """Names of the campaigns, each once."""
    gateways: tuple[str, ...]
    """Names of the gateways with versions, each once."""
    gatemark: tuple[str, ...]
    """Versions that measured it, each once."""
    measured_at: str | None
    """Start of the first session, UTC. Null if nothing was measured."""
    incomplete: bool
    """Whether any campaign has not ended."""
    trials: int
    """Trials made, invalid ones included."""
    invalid_trials: int
    """Trials that say nothing about the gateway."""


class SetupDifference(Part):
    """One fact of the set-up in which sides differ."""

    topic: str
    """`campaign`, `gateway`, `gateway's host`, `machine`, `engine`, `software`, `ports` or `result`."""
    key: str
    """Key of `campaign.json`, `gateway.json` or `provenance.json`."""
    where: tuple[str, ...]
    """Columns of a series in which it differs; empty: in all."""
    values: tuple[JsonValue, ...]
    """One value for each side; null where it does not have it."""


class SideFigure(Part):
    """A quantity as one side has it."""

    side: str
    """Label of the side."""
    figure: Number | None
    """Median, or mean where the RFC asks for it. Null if it is not a figure of the gateway."""
    values: tuple[Number | None, ...]
    """One for each valid repetition, or for each campaign where one was made several times."""
    p1: Number | None
    """1st percentile. Null as `figure`, and where there is none."""
    p99: Number | None
    """99th percentile. Null as `p1`."""
    repetitions: int
    """Number of values."""
    resolution: int | None
    """Distance of the bounds at which the search ended. Null without a search."""
    at_least: int | None
    """What passed in every repetition, where the figure is only a bound. Null where it is not one."""
    limited_by: LimitedBy | None
    """What limited it, as in `result.csv`. Null where nothing was measured, or nothing limits it."""
    load_frames_per_second: Coordinate
    """Its load, frames/s. Null without a load."""
    reason: str | None
    """Why it is compared with nothing. Null if it may be compared."""


class Comparison(Part):
    """One side against the first."""

    side: str
    """Label of the side."""
    ratio: float | None
    """Its figure / that of the first side. Null unless both are figures, that of the first above 0 and
    its own not below."""
    interval_of: Literal["ratio", "difference"] | None
    """What the interval is of; `difference` where values of 0 or below have no ratio. Null without an interval."""
    low: float | None
    """Lower end; of a difference in `unit`. Null without an interval."""
    high: float | None
    """Upper end. Null without an interval."""
    judgement: Judgement
    """`different` where neither more nor less is better; `no_difference` where none is shown."""
    reason: str | None
    """Why it cannot be judged. Null if it was."""


class ComparedQuantity(Part):
    """One quantity, measured with the same traffic on all sides that have it."""

    procedure: str
    """Name of the procedure, as in `result.csv`."""
    quantity: str
    """Name of the quantity, as in `result.csv`."""
    unit: str
    """Unit of its figures, as in `result.csv`."""
    better: Better | None
    """Whether more or less of it is better. Null where neither is."""
    headline: bool
    """Whether it is what its procedure is for."""
    where: dict[str, Coordinate]
    """Its coordinates without the load, and the varied keys of a series."""
    figures: tuple[SideFigure, ...]
    """One figure for each side."""
    comparisons: tuple[Comparison, ...]
    """One comparison for each side but the first."""


class Check(Part):
    """A condition on one quantity of one side."""

    procedure: str
    """Name of the procedure."""
    quantity: str
    """Name of the quantity."""
    where: dict[str, Coordinate]
    """Coordinates of the quantity."""
    side: str
    """Label of the side."""
    outcome: Outcome
    """What the check says."""
    reason: str
    """The reason in words, with the interval."""


class Condition(Part):
    """A condition of `--fail-if`."""

    text: str
    """The condition as it was given."""
    outcome: Outcome
    """`met` if any check is, else `cannot_be_judged` if any cannot, else `not_met`; without any check
    `cannot_be_judged`."""
    checks: tuple[Check, ...]
    """One check for each quantity of that name and each side but the first."""


class ComparisonDocument(Document):
    """All of it."""

    schema_: Literal[1]
    """Format number. It changes when a key changes its name, type or meaning."""
    gatemark: str
    """Version that compared."""
    sides: tuple[ComparedSide, ...]
    """One entry for each folder; the others are compared with the first."""
    differences: tuple[SetupDifference, ...]
    """One entry for each fact of the set-up in which sides differ."""
    confidence_percent: float
    """Confidence of all intervals together: in that share of comparisons of equal gateways, none is shown to differ."""
    intervals: int
    """How many there are; each has a confidence of 1 - (1 - confidence) / intervals."""
    quantities: tuple[ComparedQuantity, ...]
    """One entry for each quantity that any side has."""
    conditions: tuple[Condition, ...]
    """One entry for each `--fail-if`."""

    @property
    def passes(self) -> bool:
        """Whether every condition could be judged, and none is met."""
        return all(condition.outcome == "not_met" for condition in self.conditions)
