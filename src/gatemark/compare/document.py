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
    kind: Literal["campaign", "series", "campaigns", "repeated"]
    """``campaigns``: a folder with result folders of different campaigns. ``repeated``: of one that was made several
    times, each of which is one value."""
    folders: int
    """Result folders that it has."""
    campaigns: tuple[str, ...]
    gateways: tuple[str, ...]
    """Names with versions, each once."""
    gatemark: tuple[str, ...]
    """Versions that measured it, each once."""
    measured_at: str | None
    """Begin of the first session; null if nothing was measured."""
    incomplete: bool
    trials: int
    invalid_trials: int


class SetupDifference(Part):
    """One fact of the set-up in which sides differ."""

    topic: str
    """campaign, gateway, gateway's host, machine, engine, software, ports or result."""
    key: str
    where: tuple[str, ...]
    """Columns of a series in which they differ; empty: in all."""
    values: tuple[JsonValue, ...]
    """One for each side; null where it does not have it."""


class SideFigure(Part):
    """A quantity as one side has it."""

    side: str
    figure: Number | None
    """Median, or mean where the RFC asks for it; null if nothing was measured."""
    values: tuple[Number | None, ...]
    """One for each valid repetition, or for each campaign where one was made several times."""
    p1: Number | None
    p99: Number | None
    repetitions: int
    """Number of values."""
    resolution: int | None
    at_least: int | None
    """What passed in every repetition, where the figure is only a bound; null where it is none."""
    limited_by: LimitedBy | None
    load_frames_per_second: Coordinate
    """Null for figures without a load."""
    reason: str | None
    """Why it is compared with nothing; null if it may be compared."""


class Comparison(Part):
    """One side against the first."""

    side: str
    ratio: float | None
    """Its figure / that of the first side; null unless both are figures, and that of the first is not 0."""
    interval_of: Literal["ratio", "difference"] | None
    """``difference``: values of 0 or below have no ratio. Null without an interval."""
    low: float | None
    high: float | None
    judgement: Judgement
    reason: str | None
    """Why it cannot be judged; null if it was."""


class ComparedQuantity(Part):
    """One quantity, measured with the same traffic on all sides that have it."""

    procedure: str
    quantity: str
    unit: str
    better: Better | None
    headline: bool
    """Whether it is what its procedure is for."""
    where: dict[str, Coordinate]
    """What it was measured with, without its load."""
    figures: tuple[SideFigure, ...]
    """One for each side."""
    comparisons: tuple[Comparison, ...]
    """One for each side but the first."""


class Check(Part):
    """A condition on one quantity of one side."""

    procedure: str
    quantity: str
    where: dict[str, Coordinate]
    side: str
    outcome: Outcome
    reason: str
    """In words."""


class Condition(Part):
    """A condition of `--fail-if`."""

    text: str
    outcome: Outcome
    """``met`` if any check is, else ``cannot_be_judged`` if any cannot. Both end with exit status 1."""
    checks: tuple[Check, ...]


class ComparisonDocument(Document):
    """All of it."""

    schema_: Literal[1]
    gatemark: str
    sides: tuple[ComparedSide, ...]
    """The first is the one that others are compared with."""
    differences: tuple[SetupDifference, ...]
    confidence_percent: float
    """Of all intervals together: in that share of comparisons of equal gateways, none is shown to differ."""
    intervals: int
    """How many there are; each has a confidence of 1 - (1 - confidence) / intervals."""
    quantities: tuple[ComparedQuantity, ...]
    conditions: tuple[Condition, ...]

    @property
    def passes(self) -> bool:
        """Whether every condition could be judged, and none is met."""
        return all(condition.outcome == "not_met" for condition in self.conditions)
