"""Echo requests of several clients through the gateway, and what came of them. Values only.

The Tester plays the clients on the left and, on the right, the host that answers. A client asks one destination after
the other, each a few times, from as many slots at once as its window has: the way of a shell script that runs a few
echo programs beside each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from gatemark.trial.facts import Facts, Natural
from gatemark.trial.messages import ClosedLoop, Echo
from gatemark.units import NANOSECONDS_PER_SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoForm:
    """Who asks whom, how often, and when a reply counts as lost."""

    clients: int
    """Number of clients."""
    window: int
    """Slots of each client: echo programs that work in parallel."""
    count: int
    """Requests to each destination; those after the first find the gateway's state."""
    destinations: int
    """Destinations of each client, a multiple of its window."""
    pace_without_reply_ns: int | None
    """Closed loop: a slot sends its next request when the reply has come, or so long after one without a reply. Null:
    requests are due at the constant rate of the trial."""
    timeout_ns: int
    """A reply that comes later than this is late."""

    @property
    def client_words(self) -> str:
        """Number of clients, in words."""
        return f"{self.clients} client{'s' if self.clients > 1 else ''}"

    @property
    def is_closed_loop(self) -> bool:
        """Whether the gateway sets the pace of the requests."""
        return self.pace_without_reply_ns is not None

    @property
    def requests(self) -> int:
        """Return how many requests ask every destination of every client `count` times."""
        return self.clients * self.destinations * self.count

    @property
    def outstanding_max(self) -> int:
        """Return how many requests of a closed loop can be under way at once while none is lost."""
        return self.clients * self.window

    def to_json(self, pool: list[str] | None) -> Echo:
        """Return the key `echo` of a request; `pool` has the public addresses of a stateful gateway."""
        pace_ns = self.pace_without_reply_ns
        closed: ClosedLoop | None = None if pace_ns is None else {"pace_without_reply_ns": pace_ns}
        return {
            "clients": self.clients,
            "window": self.window,
            "count": self.count,
            "destinations": self.destinations,
            "pool": pool,
            "closed_loop": closed,
            "timeout_ns": self.timeout_ns,
        }


class RankedRoundTrip(Facts):
    """A percentile of round-trip times over all requests (RFC 2330 section 11.3)."""

    per_100000: Natural
    """Rank in hundred-thousandths: 99,900 is 99.9 %."""
    ns: Natural | None
    """The time. A request without a correct reply in time ranks above all others; null if it has the rank."""


class RoundTrips(Facts):
    """Times from just before a request is handed to its port until just after the poll that returns the reply."""

    requests: Natural
    """Requests handed over, answered or not."""
    samples: Natural
    """Correct replies in time."""
    minimum_ns: int | None
    """Shortest round trip. It is exact, like the mean, the deviation and the maximum; all are null without samples."""
    mean_ns: int | None
    """Mean round trip."""
    deviation_ns: int | None
    """Standard deviation of all samples."""
    maximum_ns: int | None
    """Longest round trip."""
    percentiles: tuple[RankedRoundTrip, ...]
    """Percentiles of all requests, within 0.1 % or 1 ns; empty without requests."""

    def percentile_ns(self, per_100000: int) -> int | None:
        """Return a percentile that the engine reports; None if it does not, or if no reply has that rank."""
        return next((percentile.ns for percentile in self.percentiles if percentile.per_100000 == per_100000), None)


OF_CLIENT = "counted of each client"
Messages = Annotated[Natural, OF_CLIENT]


class EchoClient(Facts):
    """One client. Times are since the start of the trial's schedule."""

    client: Natural
    """Number of the client, from 0."""
    begin_ns: Natural
    """When its first request was handed over."""
    end_ns: Natural
    """When its last request was handed over."""
    requests: Messages
    """Requests handed over."""
    arrived: Messages
    """Requests that arrived correct at the host that answers."""
    replies: Messages
    """Replies correct and in time."""
    late: Messages
    """Correct replies after the timeout."""
    lost: Messages
    """Requests without any reply: `requests` - `replies` - `late` - `faulty`."""
    duplicate: Messages
    """Packets that arrived more than once."""
    faulty: Messages
    """Requests or replies with a fault, each counted once."""
    rtt: RoundTrips
    """Round-trip times of its requests."""


COUNTS = tuple(name for name, field in EchoClient.model_fields.items() if OF_CLIENT in field.metadata)
"""What is counted of each client."""


class EchoSteady(Facts):
    """The time in which all clients ask: from the first request of the last one to the last one of the first one."""

    begin_ns: Natural
    """First request of the last client to begin."""
    end_ns: Natural
    """Last request of the first client to end, or the end of the sending time."""
    requests: Natural
    """Requests handed over meanwhile."""
    replies: Natural
    """Correct replies in time that arrived meanwhile."""

    @property
    def lasted_ns(self) -> int:
        return self.end_ns - self.begin_ns

    @property
    def replies_per_second(self) -> int | None:
        """Return the rate of replies, rounded down; None if it has no length."""
        return self.replies * NANOSECONDS_PER_SECOND // self.lasted_ns if self.lasted_ns > 0 else None


class EchoFacts(Facts):
    """What came of a trial of echo requests, beside the counts of requests (forward) and replies (reverse)."""

    steady: EchoSteady | None
    """The time in which all clients ask. Null where one client had ended before another one began."""
    clients: tuple[EchoClient, ...]
    """Each client by itself."""
    all: RoundTrips
    """Round-trip times of all clients."""
    first: RoundTrips
    """Those of the first request to each destination, for which the gateway makes its state; `all` has them too."""
    client_busy_ns: Natural
    """Time of the Tester's polls on the clients' side that handled a frame."""
    responder_busy_ns: Natural
    """The same of the host that answers."""

    def total(self, name: str) -> int:
        """Return a count of all clients together."""
        return sum(getattr(client, name) for client in self.clients)


def sums_of(facts: EchoFacts) -> Mapping[str, int]:
    """Return the counts of all clients together, by name."""
    return {name: facts.total(name) for name in COUNTS}
