"""Parts of `result.json` that only stateful gateways have (RFC 9693). Rates are connections per second."""

from __future__ import annotations

from typing import Literal

from gatemark.results.part import Part, ReasonPart


class PortRange(Part):
    """An inclusive range of UDP ports."""

    minimum: int
    maximum: int

    @property
    def ports(self) -> int:
        """How many ports the range holds."""
        return self.maximum - self.minimum + 1


class GatewayTable(Part):
    """The connection tracking table as the gateway is configured (RFC 9693 section 4.4); null: not stated."""

    size: int | None
    """Connections that it is configured to hold."""
    hash_size: int | None
    """Buckets of its hash table."""
    udp_timeout_ns: int | None


class PhaseOne(Part):
    """Test phase 1 as preparation of what a run measures (RFC 9693 section 4.2): never part of the result."""

    connections_per_second_minimum: int
    connections_per_second_maximum: int
    attempts: int
    """Attempts in all trials of the run."""
    failed: int
    """Attempts that did not establish every connection, or in which the Tester fell short; they were repeated."""
    reasons: tuple[ReasonPart, ...]
    """Why, figures left out."""


class GatewayCounts(Part):
    """The gateway's own count of its connections compared with the Tester's, in trials in which it counted."""

    phase_one: int
    """Trials in which the Tester saw every connection established and the gateway counted as well."""
    phase_one_equal: int
    """How many of these had the same number on both sides."""
    phase_one_minimum: int | None
    """Lowest count of the gateway in these trials; null without any."""
    phase_one_maximum: int | None
    """Highest count of the gateway in these trials; null without any."""
    phase_two: int
    """Trials in which the gateway counted after test phase 2 as well."""
    phase_two_changed: int
    """How many of these had a different number of connections before and after test phase 2."""


class Behaviour(Part):
    """What the Tester's state table says about the gateway, from one trial of the run."""

    established: int
    examined: int
    """Connections examined, evenly spaced; the counts below refer to these."""
    port_preserved: int
    """Translated to the Initiator's own source port."""
    parity_preserved: int
    """Translated to a port with the parity of the Initiator's (RFC 4787 section 4.2.2)."""
    port_class_preserved: int
    """Translated to a port on the same side of 1024 (RFC 4787 section 4.2.1)."""
    public_addresses: int
    """Number of distinct ones; 65,536 means that many or more."""
    public_ports: int
    """Number of distinct ones."""
    public_port_minimum: int
    public_port_maximum: int
    sources_compared: int
    """Endpoints of the Initiator that were compared: those with connections to several destinations."""
    sources_endpoint_independent: int
    """Those with one public endpoint for all destinations (RFC 4787 section 4.1)."""


class Connections(Part):
    """The connections of a stateful run."""

    initiator: Literal["left", "right"]
    count: int | None
    """Number of connections N; null for the capacity, which searches for it and has the ranges of its largest size."""
    source_hosts: int
    destination_hosts: int
    source_ports: PortRange
    destination_ports: PortRange
    order: Literal["increasing", "decreasing", "pseudorandom"]
    send_order: Literal["fixed", "increasing", "decreasing", "pseudorandom"]
    """Order in which the Initiator uses the connections in test phase 2."""
    read_order: Literal["fixed", "increasing", "decreasing", "pseudorandom"]
    timeout_ns: int
    """Wait for the last frames of test phase 1."""
    gap_ns: int
    """Wait between the phases."""
    phase_one: PhaseOne | None
    """Null where test phase 1 is itself what is measured."""
    gateway_counts: GatewayCounts | None
    """Null if the gateway cannot count."""
    behaviour: Behaviour | None
    """Null if no trial established the connections."""
