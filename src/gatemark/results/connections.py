"""Parts of `result.json` that only stateful gateways have (RFC 9693). Rates are connections per second."""

from __future__ import annotations

from gatemark.facts import Order, Variation
from gatemark.results.part import Part, ReasonPart
from gatemark.technology import SideName


class PortRange(Part):
    """An inclusive range of UDP ports."""

    minimum: int
    """First of them."""
    maximum: int
    """Last of them."""

    @property
    def ports(self) -> int:
        """How many ports the range holds."""
        return self.maximum - self.minimum + 1


class GatewayTable(Part):
    """The connection tracking table as the gateway is configured (RFC 9693 section 4.4); null: not stated."""

    size: int | None
    """Connections that it is configured to hold. Null if not stated."""
    hash_size: int | None
    """Buckets of its hash table. Null if not stated."""
    udp_timeout_ns: int | None
    """Time without frames after which it deletes a connection. Null if not stated."""


class PhaseOne(Part):
    """Test phase 1 as preparation of what a run measures (RFC 9693 section 4.2): never part of the result."""

    connections_per_second_minimum: int
    """Lowest rate of an attempt."""
    connections_per_second_maximum: int
    """Highest rate of an attempt."""
    attempts: int
    """Attempts in all trials of the run."""
    failed: int
    """Attempts that did not establish every connection, or in which the Tester fell short; they were repeated."""
    reasons: tuple[ReasonPart, ...]
    """Why they failed."""


class GatewayCounts(Part):
    """The gateway's own count of its connections compared with the Tester's, in trials in which it counted."""

    phase_one: int
    """Trials in which the Tester saw all connections established and the gateway counted."""
    phase_one_equal: int
    """Those of them in which both numbers are equal."""
    phase_one_minimum: int | None
    """Lowest count of the gateway in these trials. Null if there was no such trial."""
    phase_one_maximum: int | None
    """Highest count of the gateway in these trials. Null if there was no such trial."""
    phase_two: int
    """Trials in which the gateway counted after test phase 2 as well."""
    phase_two_changed: int
    """Those of them in which its number had changed."""


class Behaviour(Part):
    """The gateway's behavior in the Tester's state table, from one trial of the run."""

    established: int
    """Connections in the state table."""
    examined: int
    """Connections examined, evenly spaced; all counts below are of these."""
    port_preserved: int
    """Connections with the Initiator's own source port."""
    parity_preserved: int
    """Connections with a port of the same parity (RFC 4787 section 4.2.2)."""
    port_class_preserved: int
    """Connections with a port on the same side of 1024 (RFC 4787 section 4.2.1)."""
    public_addresses: int
    """Number of distinct public addresses; 65,536 means that many or more."""
    public_ports: int
    """Number of distinct public ports."""
    public_port_minimum: int
    """Lowest public port."""
    public_port_maximum: int
    """Highest public port."""
    sources_compared: int
    """Endpoints of the Initiator with connections to several destinations that were compared."""
    sources_endpoint_independent: int
    """Those with one public endpoint for all destinations (RFC 4787 section 4.1)."""


class Connections(Part):
    """The connections of a stateful run."""

    initiator: SideName
    """Side of the Initiator."""
    count: int | None
    """Number of connections N. Null for the capacity, which searches for it and has the ranges of its largest size."""
    source_hosts: int
    """Hosts of the Initiator that are combined."""
    destination_hosts: int
    """Hosts of the Responder that are combined."""
    source_ports: PortRange
    """Source ports that are combined."""
    destination_ports: PortRange
    """Destination ports that are combined."""
    order: Order
    """Order in which four-tuples are enumerated."""
    send_order: Variation
    """Order in which the Initiator uses the connections in test phase 2."""
    read_order: Variation
    """Order in which the Responder reads its state table in test phase 2."""
    timeout_ns: int
    """Wait for the last frames of test phase 1."""
    gap_ns: int
    """Wait between the phases."""
    phase_one: PhaseOne | None
    """Test phase 1 before the measurement (RFC 9693 section 4.2): never part of the result. Null where test phase 1 is
    itself the measurement, or if no attempt was made."""
    gateway_counts: GatewayCounts | None
    """The gateway's own count of its connections, compared with the Tester's. Null if there is none."""
    behaviour: Behaviour | None
    """The gateway's behavior as the Tester's state table shows it after one trial of the run: of several, the one with
    the most connections. Null if no trial established the connections."""
