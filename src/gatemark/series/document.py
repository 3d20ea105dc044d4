"""`series.json`, format number 1: the columns of a series, and each metric over all of them.

Figures are those of the `result.json` in the folder of each column; what compares columns is added here. Every key is
described in `docs/reference/result-keys.md`; the JSON Schema is `docs/reference/series.schema.json`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from gatemark.results.connections import PortRange
from gatemark.results.coordinates import Coordinate
from gatemark.results.part import Document, LimitedBy, Part
from gatemark.results.quantity import Better, Quantity
from gatemark.stats.summary import Number
from gatemark.technology import TechnologyName

SERIES_SCHEMA = 1
"""Format number: changes whenever a key of `series.json` changes its name, type or meaning."""

Outcome = Literal["measured", "collapsed", "failed", "skipped", "missing"]
"""How a column ended. ``collapsed``: the gateway stopped working while it was measured, which is a result. ``failed``:
test bed, engine or campaign did not allow to measure it. ``skipped``: it asks for more than one that collapsed.
``missing``: not measured yet."""

ENDED: frozenset[Outcome] = frozenset(("measured", "collapsed", "skipped"))
"""Outcomes of columns that are not tried again when a series is resumed."""


class VariedKeys(Part):
    """Keys that change together: one `[[vary]]` of the campaign file."""

    keys: tuple[str, ...]
    """Paths of the campaign file, such as "connections.count"."""
    titles: tuple[str, ...]
    """One for each value."""


class Parameters(Part):
    """What a column is measured with, where its campaign says it."""

    gateway: str
    """Name of the recipe, or of the gateway that the file names; empty if it names none."""
    technology: TechnologyName
    cores: int | None
    """Cores of the gateway."""
    source_ports: PortRange | None
    """Of the Initiator; of frames from left to right, as the three below, if the gateway is stateless."""
    destination_ports: PortRange | None
    source_hosts: int | None
    destination_hosts: int | None
    edges: int | None = None
    """Customer edges of a MAP-T gateway; null where it has none."""
    map_domains: int | None = None
    """Domains that they are in."""
    connections: tuple[int, ...]
    """Numbers of connections, each of which is measured; none for a stateless gateway, as all to `udp_timeout_ns`
    except the next two."""
    flows: int | None = None
    """Network flows of each direction (RFC 8219 section 10): connections, customer edges, or four-tuples of a stateless
    gateway. Null if the directions differ, or if several numbers of connections are measured."""
    flow_interval_ns: int | None = None
    """From the start of one flow to that of the next (RFC 8219 section 10.2.2); null if all start together."""
    duration_ns: int | None = None
    """Sending time of a trial that makes a result (RFC 2544 section 24)."""
    table_size: int | None
    hash_size: int | None
    udp_timeout_ns: int | None
    repetitions: int
    """Repetitions that the file asks for."""


class SeriesColumn(Part):
    """One campaign of the series."""

    number: int
    """From 1, in the order in which columns are measured."""
    title: str
    folder: str
    """Its result folder, inside that of the series."""
    steps: tuple[int, ...]
    """Which value of each part of `varied` it has, from 0."""
    settings: dict[str, JsonValue]
    """What the varied keys are set to, as the file has it."""
    campaign_sha256: str
    """Of the campaign.toml that its folder must have."""
    expected: dict[str, int] = Field(default_factory=dict)
    """Results of another column near which its searches began, by table: 1.5 times each was the first load."""
    parameters: Parameters
    outcome: Outcome
    reason: str | None
    """Why it has no figures, or not all; null if it was measured."""
    warning: str | None = None
    """What was expected to go wrong when it began; null if nothing was."""
    trials: int
    """Trials made, invalid ones included."""
    invalid_trials: int


class ColumnMemory(Part):
    """Memory of the gateway's host that the connections of a column took."""

    column: int
    connections: int
    trials: int
    """In which the table was filled, with samples before and after."""
    empty_kilobytes: Number
    """Memory available before the first connection: median."""
    full_kilobytes: Number
    """After the last one: median."""
    bytes: float
    """Difference of both for each connection."""
    bytes_minimum: float
    """From the least that was available before to the most afterwards: negative if they overlap."""
    bytes_maximum: float

    @property
    def least_taken(self) -> float:
        """Octets that all connections together took at least."""
        return self.bytes_minimum * self.connections

    @property
    def most_taken(self) -> float:
        """Octets that all connections together took at most."""
        return self.bytes_maximum * self.connections


class MemoryEstimate(Part):
    """What one more connection costs the host of a gateway, by its columns so far."""

    gateway: str
    technology: TechnologyName
    columns: tuple[ColumnMemory, ...]
    reason: str | None
    """Why there is no estimate; null if there is one."""
    bytes: float | None = None
    """For each connection, by the column with most of them; null without an estimate, like all below."""
    bytes_minimum: float | None = None
    bytes_maximum: float | None = None
    available_kilobytes: Number | None = None
    """With an empty table in that column."""

    @property
    def words(self) -> str:
        """The estimate with its spread; empty without one."""
        if self.bytes is None:
            return ""
        return f"{self.bytes:.0f} bytes ({self.bytes_minimum:.0f} to {self.bytes_maximum:.0f})"


class SumOfDirections(Part):
    """The rate of both directions together: twice that of one."""

    median: Number
    p1: Number
    p99: Number
    resolution: int | None


class Degradation(Part):
    """How much worse a figure is than with one flow: Xpd (RFC 8219 section 10.2.1)."""

    flows: int
    """n, the network flows of its column."""
    single_column: int
    """The column with one flow that it is compared with."""
    interval_ns: int | None
    """From the start of one flow to that of the next; null if all start together."""
    percent: float | None
    """(X1 - Xn) / X1 * 100 where higher is better, else (Xn - X1) / X1 * 100: negative if it is better with n flows."""
    error_points: float | None
    """By how many percentage points it may be off, because both searches ended at their resolution; null without."""
    reason: str | None
    """Why there is no percentage; null if there is one."""


class ColumnFigure(Part):
    """One metric in one column."""

    column: int
    where: dict[str, Coordinate]
    """What it was measured with, as far as that depends on the column."""
    repetitions: int
    median: Number | None
    p1: Number | None
    p99: Number | None
    dispersion_percent: float | None
    average: Number | None
    """The figure where the RFC asks for the mean."""
    lower_bound: int | None
    upper_bound: int | None
    resolution: int | None
    limited_by: LimitedBy | None
    """Null: it was read at the gateway's host, and is no bound."""
    tester_limited_at: int | None
    refused: str | None
    """Why it was not measured in this column."""
    certain: bool
    """False if the repetitions differ too much: such a figure is compared with nothing."""
    sum_of_directions: SumOfDirections | None
    """Rates of bidirectional traffic only."""
    ratio_to_previous: float | None
    """Figure / that of the column before, which differs only in the last part of `varied`."""
    scale_up: float | None
    """X(n) / (n X(1)) with n cores, where columns differ in the cores of the gateway."""
    share_of_plain_forwarding: float | None = None
    """Rate / that of the column with a router and the same cores, ports, hosts and frames, if there is one."""
    degradation: Degradation | None = None
    """Of columns with more than one flow, where another differs from them in the number of flows alone and has one."""


class Metric(Part):
    """One quantity over the columns."""

    procedure: str
    quantity: str
    unit: str
    """Empty if no column has a figure."""
    better: Better | None
    headline: bool
    """Whether it is what its procedure is for."""
    where: dict[str, Coordinate]
    """What it was measured with in every column."""
    figures: tuple[ColumnFigure, ...]
    """One for each column that has it, in the order of the columns."""

    def of(self, column: int) -> ColumnFigure | None:
        """Return the figure of a column; None if it has none."""
        return next((figure for figure in self.figures if figure.column == column), None)

    def row(self, figure: ColumnFigure) -> Quantity:
        """Return one of its figures as a row of the tidy table; it belongs to no run."""
        return Quantity(
            run=0,
            procedure=self.procedure,
            name=self.quantity,
            unit=self.unit,
            better=self.better,
            coordinates={**self.where, **figure.where},
            repetitions=figure.repetitions,
            median=figure.median,
            p1=figure.p1,
            p99=figure.p99,
            dispersion_percent=figure.dispersion_percent,
            average=figure.average,
            lower_bound=figure.lower_bound,
            upper_bound=figure.upper_bound,
            resolution=figure.resolution,
            limited_by=figure.limited_by,
            tester_limited_at=figure.tester_limited_at,
            refused=figure.refused,
            is_certain=figure.certain,
            is_headline=self.headline,
        )


class SeriesDocument(Document):
    """All of `series.json`."""

    schema_: Literal[1]
    name: str
    gatemark: str
    status: Literal["complete", "incomplete"]
    """Complete if no column is missing or failed."""
    file: str
    """Path of the campaign file as it was given, to which the path of a recipe is relative."""
    file_sha256: str
    """Of series.toml, so that a changed file is noticed when the series is resumed."""
    varied: tuple[VariedKeys, ...]
    """The last part changes fastest."""
    columns: tuple[SeriesColumn, ...]
    metrics: tuple[Metric, ...]
    memory: tuple[MemoryEstimate, ...] = ()
    """For each gateway whose host was sampled with a full table."""
