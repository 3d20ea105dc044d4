"""`series.json`, format number 1: the columns of a series, and each metric over all of them.

Figures are those of the `result.json` in the folder of each column; what compares columns is added here. Every key is
described in `docs/reference/result-keys.md`; the JSON Schema is `docs/reference/series.schema.json`.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from gatemark.results.connections import PortRange
from gatemark.results.coordinates import Coordinate
from gatemark.results.part import Document, LimitedBy, Part
from gatemark.results.quantity import Better, Quantity
from gatemark.results.telemetry import Spread
from gatemark.stats.summary import Number
from gatemark.technology import TECHNOLOGIES, TechnologyName

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
    """Paths of keys of the campaign file, such as `connections.count`."""
    titles: tuple[str, ...]
    """Titles, one for each value."""


class Parameters(Part):
    """What a column is measured with, where its campaign says it."""

    gateway: str
    """Name of the recipe, or of the gateway that the file names; empty if it names none."""
    technology: TechnologyName
    """What the gateway does, as in `result.json`."""
    cores: int | None
    """Cores of the gateway. Null if the file does not say them."""
    source_ports: PortRange | None
    """Ports that the Initiator combines; for a stateless gateway those of frames from left to right, as in the next
    three keys. Null for a stateless gateway in files of earlier versions."""
    destination_ports: PortRange | None
    """The same for destination ports, for the most connections of the column."""
    source_hosts: int | None
    """Hosts of the Initiator."""
    destination_hosts: int | None
    """Hosts of the Responder."""
    edges: int | None = None
    """Customer edges of a MAP-T gateway (RFC 7597). Null where it has none."""
    map_domains: int | None = None
    """Domains that the customer edges are in. Null where there are none."""
    b4s: int | None = Field(default=None, exclude_if=lambda b4s: b4s is None)
    """B4s of an AFTR (RFC 6333). Absent where there are none."""
    connections: tuple[int, ...]
    """Numbers of connections, each of which is measured; empty for a stateless gateway."""
    flows: int | None = None
    """Network flows of each direction (RFC 8219 section 10): connections, customer edges of a border relay, else pairs
    of addresses and ports. Null if the directions differ, if several numbers of connections are measured, and in files
    of earlier versions."""
    flow_interval_ns: int | None = None
    """From the start of one flow to that of the next (RFC 8219 section 10.2.2). Null if all start together."""
    duration_ns: int | None = None
    """Sending time of a trial that makes a result (RFC 2544 section 24). Null in files of earlier versions."""
    table_size: int | None
    """Connections that the connection tracking table is configured to hold. Null if not stated."""
    hash_size: int | None
    """Buckets of its hash table. Null if not stated."""
    udp_timeout_ns: int | None
    """Time without frames after which the gateway deletes a connection. Null if not stated."""
    repetitions: int
    """Repetitions that the file asks for."""

    @property
    def subscribers(self) -> int | None:
        """Customers of a provider's gateway: customer edges, lwB4s, B4s, or the hosts inside of a NAT; else None."""
        technology = TECHNOLOGIES[self.technology]
        if technology.has_edges or technology.has_b4s:
            return self.edges or self.b4s
        is_at_the_customer = technology.is_subscriber or technology.is_edge or technology.in_a_row is not None
        return self.source_hosts if technology.is_stateful and not is_at_the_customer else None


class SeriesColumn(Part):
    """One campaign of the series."""

    number: int
    """Number of the column, from 1, in the order in which columns are measured."""
    title: str
    """Its name in tables."""
    folder: Annotated[str, Field(pattern="^[A-Za-z0-9_-][A-Za-z0-9._-]*$", max_length=255)]
    """Its result folder, inside that of the series."""
    steps: tuple[int, ...]
    """Which value of each part of `varied` it has, from 0."""
    settings: dict[str, JsonValue]
    """Values of the varied keys, as the file has it."""
    campaign_sha256: str
    """SHA-256 of the `campaign.toml` that its folder must have; another one is refused."""
    expected: dict[str, int] = Field(default_factory=dict)
    """Results of another column near which its searches began, by table, in frames/s or connections/s: 1.5 times each
    was the first load. Empty if they began elsewhere."""
    parameters: Parameters
    """What it is measured with, as far as its campaign says it."""
    outcome: Outcome
    """`collapsed`: the gateway stopped working while it was measured. `failed`: test bed, engine or campaign did not
    allow it. `skipped`: it asks for more than one that collapsed. `missing`: not measured yet."""
    reason: str | None
    """Why it has no figures, or not all. Null if it was measured, or not tried yet."""
    warning: str | None = None
    """What was expected to go wrong when it began: its connections may not fit into the gateway's memory. Null if
    nothing was."""
    trials: int
    """Trials made, invalid ones included."""
    invalid_trials: int
    """Trials that say nothing about the gateway."""


class ColumnMemory(Part):
    """Memory of the gateway's host that the connections of a column took."""

    column: int
    """Number of the column."""
    connections: int
    """Number of connections, all of which were established."""
    trials: int
    """Trials in which the table was filled, with samples before and after."""
    empty_kilobytes: Number
    """Memory available before the first connection: median."""
    full_kilobytes: Number
    """Memory available after the last one: median."""
    bytes: float
    """Difference of both for each connection, bytes."""
    bytes_minimum: float
    """The same from the least that was available before to the most afterwards; negative if they overlap."""
    bytes_maximum: float
    """The same from the most before to the least afterwards."""

    @property
    def least_taken(self) -> float:
        """Octets that all connections together took at least."""
        return self.bytes_minimum * self.connections

    @property
    def most_taken(self) -> float:
        """Octets that all connections together took at most."""
        return self.bytes_maximum * self.connections


class MemoryEstimate(Part):
    """Cost of one more connection to the host of a gateway, by its columns so far."""

    gateway: str
    """Name of the gateway, as in the parameters of its columns."""
    technology: TechnologyName
    """What the gateway does, as in `result.json`."""
    columns: tuple[ColumnMemory, ...]
    """One entry for each column and number of connections with samples on both sides."""
    reason: str | None
    """Why there is no estimate. Null if there is one."""
    bytes: float | None = None
    """Memory of the host for each connection, bytes, by the column with most connections. Null without an estimate."""
    bytes_minimum: float | None = None
    """The same by the smallest difference between any two trials."""
    bytes_maximum: float | None = None
    """The same by the largest difference."""
    available_kilobytes: Number | None = None
    """Memory available with an empty table in the column of the estimate. Null without an estimate."""

    @property
    def words(self) -> str:
        """The estimate with its spread; empty without one."""
        return _estimate_words(self.bytes, self.bytes_minimum, self.bytes_maximum)


class ColumnAvailable(Part):
    """Memory that the gateway's host had available in a column while it forwarded."""

    column: int
    """Number of the column."""
    subscribers: int
    """Customers of the gateway."""
    values: int
    """Repetitions of its runs with samples while frames were sent."""
    available: Spread
    """The least memory available in each of them, kB."""


class SubscriberMemory(Part):
    """Cost of one more customer to the host of a provider's gateway, by columns that differ in nothing else."""

    gateway: str
    """Name of the gateway, as in the parameters of its columns."""
    technology: TechnologyName
    """What the gateway does, as in `result.json`."""
    columns: tuple[ColumnAvailable, ...]
    """One entry for each column with samples, the fewest customers first."""
    reason: str | None
    """Why there is no estimate. Null if there is one."""
    bytes: float | None = None
    """Memory of the host for each customer, bytes: the difference between the fewest and the most. Null without an
    estimate."""
    bytes_minimum: float | None = None
    """The same by the smallest difference between any two of their values."""
    bytes_maximum: float | None = None
    """The same by the largest difference."""

    @property
    def words(self) -> str:
        """The estimate with its spread; empty without one."""
        return _estimate_words(self.bytes, self.bytes_minimum, self.bytes_maximum)


def _estimate_words(bytes_: float | None, minimum: float | None, maximum: float | None) -> str:
    return "" if bytes_ is None else f"{bytes_:.0f} bytes ({minimum:.0f} to {maximum:.0f})"


class SumOfDirections(Part):
    """The rate of both directions together: twice that of one."""

    median: Number
    """Median of the sum."""
    p1: Number
    """1st percentile of the sum."""
    p99: Number
    """99th percentile of the sum."""
    resolution: int | None
    """Resolution of the sum. Null without a search."""


class Degradation(Part):
    """How much worse a figure is than with one flow: Xpd (RFC 8219 section 10.2.1)."""

    flows: int
    """n, the network flows of its column."""
    single_column: int
    """Number of the column with one flow, with which it is compared."""
    interval_ns: int | None
    """From the start of one flow to that of the next. Null if all start together."""
    percent: float | None
    """Xpd: (X1 - Xn) / X1 x 100 where higher is better, else (Xn - X1) / X1 x 100; negative if it is better with n
    flows. Null if a figure is a bound or uncertain, X1 is not above 0, Xn is below it, or a trial has fewer frames
    than flows."""
    error_points: float | None
    """By how many percentage points it may be off, because both searches ended at their resolution. Null without
    searches, and if X1 may be 0."""
    reason: str | None
    """Why there is no percentage. Null if there is one."""


class ColumnFigure(Part):
    """One metric in one column."""

    column: int
    """Number of the column."""
    where: dict[str, Coordinate]
    """What it was measured with, as far as that depends on the column."""
    values: tuple[Number | None, ...] = ()
    """One for each valid repetition, null where it could not be measured; empty where the figure has none."""
    repetitions: int
    """Valid repetitions that the figure is made of."""
    median: Number | None
    """Median over the repetitions. Null where nothing was measured, and where `average` is the figure."""
    p1: Number | None
    """1st percentile. Null as `median`."""
    p99: Number | None
    """99th percentile. Null as `median`."""
    dispersion_percent: float | None
    """(p99 - p1) / median, in percent. Null as `median`, and unless that is above 0."""
    average: Number | None
    """Mean, where the RFC asks for it. Null elsewhere."""
    lower_bound: int | None
    """Highest load that passed in every repetition. Null without a search."""
    upper_bound: int | None
    """Largest of the lowest loads that failed in a repetition. Null without a search."""
    resolution: int | None
    """Distance of the bounds at which the searches ended. Null without a search."""
    limited_by: LimitedBy | None
    """What limited it, as in `result.csv`. Null for readings from the gateway's host, which are not bounds."""
    tester_limited_at: int | None
    """Lowest load that the Tester could not offer. Null if there was none."""
    refused: str | None
    """Why it was not measured in this column. Null if it was."""
    certain: bool
    """Whether the repetitions agree well enough; if not, the figure is compared with nothing."""
    sum_of_directions: SumOfDirections | None
    """Both directions together: twice the rate of one, and twice its resolution. Null if it is not a rate of
    bidirectional frames."""
    ratio_to_previous: float | None
    """Figure / that of the column before, which differs only in the last part of `varied`. Null if either is not a
    figure of the gateway, or there is no such column."""
    scale_up: float | None
    """Relative scale-up X(n) / (n X(1)) of a rate with n cores. Null where columns do not differ in the cores of the
    gateway alone, one of them with one core."""
    share_of_plain_forwarding: float | None = None
    """Rate of frames as a part of that of a router with the same cores, ports, hosts and frames. Null without exactly
    one column of that kind that differs in one part of `varied`."""
    degradation: Degradation | None = None
    """How much worse the figure is than with one flow (RFC 8219 section 10.2.1). Null with one flow, and where no
    column differs in the number of flows alone and has one."""


OF_QUANTITY = tuple(field.name for field in fields(Quantity) if field.name in ColumnFigure.model_fields)
"""What a figure has of a row of the tidy table under the same name."""


class Metric(Part):
    """One quantity over the columns."""

    procedure: str
    """Name of the procedure, as in `result.json`."""
    quantity: str
    """Name of the figure, as in `result.csv`."""
    unit: str
    """Unit of all its figures; empty if no column has one."""
    better: Better | None
    """Whether more or less of it is better. Null where neither is."""
    headline: bool
    """Whether it is what its procedure is for: such metrics are plotted."""
    where: dict[str, Coordinate]
    """What it was measured with in every column: columns of `result.csv` with their values."""
    figures: tuple[ColumnFigure, ...]
    """One figure for each column that has it, in the order of the columns."""

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
            is_certain=figure.certain,
            is_headline=self.headline,
            **{name: getattr(figure, name) for name in OF_QUANTITY},
        )


class SeriesDocument(Document):
    """All of `series.json`."""

    schema_: Literal[1]
    """Format number. It changes when a key changes its name, type or meaning."""
    name: str
    """Name of the series."""
    gatemark: str
    """Version that wrote the file."""
    status: Literal["complete", "incomplete"]
    """`incomplete` if a column is missing or failed."""
    file: str
    """Path of the campaign file as it was given, to which the path of a recipe is relative."""
    file_sha256: str
    """SHA-256 of `series.toml`, so that a changed file is noticed when the series is resumed."""
    varied: tuple[VariedKeys, ...]
    """The parts of the series, one for each `[[vary]]`; the last one changes fastest."""
    columns: tuple[SeriesColumn, ...] = Field(min_length=1)
    """One entry for each column, in the order in which they are measured."""
    metrics: tuple[Metric, ...]
    """One entry for each quantity over the columns."""
    memory: tuple[MemoryEstimate, ...] = ()
    """One entry for each gateway whose host was sampled with a full table."""
    subscriber_memory: tuple[SubscriberMemory, ...] = Field(default=(), exclude_if=lambda estimates: not estimates)
    """One entry for each provider's gateway whose columns differ in the number of its customers alone, and whose host
    was sampled. Absent if there is none."""
