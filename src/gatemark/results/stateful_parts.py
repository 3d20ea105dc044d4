"""Parts of `result.json` that only stateful gateways have (RFC 9693).

Rates of connections are connections per second. The keys of the capacity are the symbols of RFC 9693 section 4.9.
"""

from __future__ import annotations

from typing import Literal

from gatemark.results.parts import Number, Part, ReasonPart, SummaryPart


class PortRangePart(Part):
    """An inclusive range of UDP ports."""

    minimum: int
    maximum: int

    @property
    def ports(self) -> int:
        """How many ports the range holds."""
        return self.maximum - self.minimum + 1


class GatewayTablePart(Part):
    """The connection tracking table as the gateway is configured (RFC 9693 section 4.4); null: not stated."""

    size: int | None
    """Connections that it is configured to hold."""
    hash_size: int | None
    """Buckets of its hash table."""
    udp_timeout_ns: int | None


class PhaseOnePart(Part):
    """Test phase 1 as preparation of what a run measures (RFC 9693 section 4.2): never part of the result."""

    connections_per_second_minimum: int
    connections_per_second_maximum: int
    attempts: int
    """Attempts in all trials of the run."""
    failed: int
    """Attempts that did not establish every connection, or in which the Tester fell short; they were repeated."""
    reasons: tuple[ReasonPart, ...]
    """Why, figures left out."""


class GatewayCountsPart(Part):
    """The gateway's own count of its connections beside the Tester's; trials in which it counted."""

    phase_one: int
    """Trials in which the Tester saw every connection established and the gateway counted as well."""
    phase_one_equal: int
    """Those in which both numbers are the same."""
    phase_one_minimum: int | None
    """Lowest count of the gateway in these trials; null without any."""
    phase_one_maximum: int | None
    """Highest count of the gateway in these trials; null without any."""
    phase_two: int
    """Trials in which the gateway counted after test phase 2 as well."""
    phase_two_changed: int
    """Those in which its number of connections was not the same before and after test phase 2."""


class BehaviourPart(Part):
    """What the Tester's state table says about the gateway, from one trial of the run."""

    established: int
    examined: int
    """Connections looked at, evenly spaced; the counts below are of these."""
    port_preserved: int
    """Translated to the Initiator's own source port."""
    parity_preserved: int
    """Translated to a port that is even or odd as the Initiator's (RFC 4787 section 4.2.2)."""
    port_class_preserved: int
    """Translated to a port on the same side of 1024 (RFC 4787 section 4.2.1)."""
    public_addresses: int
    """Distinct ones; 65,536 stands for as many or more."""
    public_ports: int
    """Distinct ones."""
    public_port_minimum: int
    public_port_maximum: int
    sources_compared: int
    """Endpoints of the Initiator with connections to several destinations that were compared."""
    sources_endpoint_independent: int
    """Those with one public endpoint for all destinations (RFC 4787 section 4.1)."""


class ConnectionsPart(Part):
    """The connections that a stateful run was made with."""

    initiator: Literal["left", "right"]
    count: int | None
    """Number of connections N; null for the capacity, which looks for it. Its ranges are those of its largest size."""
    source_hosts: int
    destination_hosts: int
    source_ports: PortRangePart
    destination_ports: PortRangePart
    order: Literal["increasing", "decreasing", "pseudorandom"]
    read_order: Literal["fixed", "increasing", "decreasing", "pseudorandom"]
    timeout_ns: int
    """Wait for the last frames of test phase 1."""
    gap_ns: int
    """Wait between the phases."""
    phase_one: PhaseOnePart | None
    """Null where test phase 1 is itself what is measured."""
    gateway_counts: GatewayCountsPart | None
    """Null if the gateway cannot count."""
    behaviour: BehaviourPart | None
    """Null if no trial established the connections."""


class AlphaTriedPart(Part):
    """One share of the rate at which a validation was tried (RFC 9693 section 4.6)."""

    alpha: str
    """Exact ratio as a fraction."""
    lower_bound: int | None
    """Highest validated rate that passed with it, connections/s."""


class TearDownPart(Part):
    """Aggregated tear-down (RFC 9693 section 4.8): times on the gateway's clock, nanoseconds."""

    connections: int
    full_ns: SummaryPart
    """Time to delete all connections."""
    empty_ns: SummaryPart
    """Time to delete none: the table was empty."""
    net_ns: Number
    """Difference of the medians."""
    connections_per_second: Number | None
    """N / net time, not rounded; null if the difference is not above 0."""
    reliable: bool
    """Whether both spreads (p99 - p1) together are at most a tenth of the difference."""


class CapacityStepPart(Part):
    """One elementary measurement of the capacity: the validated establishment rate with so many connections."""

    search: Literal["start", "exponential", "binary"]
    connections: int
    rate: int | None
    """Highest validated rate that passed, connections/s; null if none down to the stop rate did."""
    stop_rate: int
    """Rate below which the table was taken for full."""
    stored: bool
    """Whether the gateway held so many connections."""


class CapacityRepetitionPart(Part):
    """One search for the capacity; CS, RS, CT and RT are those with which the exponential search ended."""

    number: int
    kind: Literal["found", "maximum_passed", "nothing_passes", "tester_limited"]
    c0: int
    r0: int | None
    """Validated rate with C0 connections, connections/s."""
    cs: int | None
    """Largest size that the exponential search found to be stored."""
    rs: int | None
    """Its validated rate, connections/s."""
    ct: int | None
    """First size that it found not to be stored; null if there was none up to the maximum."""
    rt: int | None
    """Its validated rate, connections/s; null if no rate passed."""
    lower_bound: int | None
    """C: most connections that were stored and validated."""
    upper_bound: int | None
    """Fewest connections that were not."""
    overflow: Literal["refused", "evicted", "untranslated", "collapsed", "other"] | None
    """What happened to the connections beyond the capacity; null if none was seen."""
    lost_connections: Literal["oldest", "newest", "spread"] | None
    """Which established connections were gone, in order of establishment; null if none was."""
    steps: tuple[CapacityStepPart, ...]


class CapacityPart(Part):
    """Connection tracking table capacity (RFC 9693 section 4.9)."""

    beta: str
    """Share of the safe rate below which the exponential search takes the table for full, exact ratio."""
    gamma: str
    """The same in the final binary search."""
    resolution: int
    """E: error of the size, connections."""
    rate_resolution: int | None
    """e: error of the rate, connections/s."""
    repetitions: tuple[CapacityRepetitionPart, ...]
    r0: SummaryPart | None
    rs: SummaryPart | None
    capacity: SummaryPart | None
    """C over the repetitions; only where every repetition has one: never for a Tester-limited run."""
