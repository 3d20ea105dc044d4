"""The table [overload] of the campaign file: echo requests of more and more clients."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PlainSerializer, PlainValidator

from gatemark.config import defaults
from gatemark.config.hosts import HostSet
from gatemark.config.load_types import FrameCount
from gatemark.config.model import Campaign, CampaignFile, EchoAsked, ProcedureTable
from gatemark.config.only import FREE_ANSWERS, With
from gatemark.config.problems import listed_twice, problem
from gatemark.config.sizes import FrameSizes, mtu_of
from gatemark.config.stateful import b4_hosts, distinct
from gatemark.config.tables import Table
from gatemark.config.types import (
    RATIO_PATTERN,
    AsList,
    BadValueError,
    LossRatio,
    PositiveDuration,
    Share,
    Written,
    with_remedy,
    write_ratio,
    written_as,
)
from gatemark.errors import Problem
from gatemark.technology import SIDES, SideName
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns, parse_ratio

Mode = Literal["closed_loop", "constant_rate"]

CLIENTS_MAX = 1024
WINDOW_MAX = 64
COUNT_MAX = 10_000
DESTINATIONS_MAX = 1 << 20
IDENTIFIERS = 1 << 16
"""Identifiers of echo requests: what ports are to UDP (RFC 6146 section 3.5.3)."""
DATA_OCTETS = 56
"""What an echo program sends unless it is told otherwise: an IPv6 packet of 104 octets, an IPv4 packet of 84."""
DATA_OCTETS_MIN = 18
"""The mark of the Tester."""
DATA_OCTETS_MAX = 9000
ICMP_OCTETS = 8
IP_OCTETS = {"ipv4": 20, "ipv6": 40}
DESTINATIONS = 16_384
"""Of each client, where there are hosts for it: 64 x 256 as in the first experiment of this kind."""
PACE_NS = 10 * defaults.MILLISECOND_NS
"""An echo program that waits for nothing sends its next request after this time without a reply."""
DURATION_NS = 600 * defaults.SECOND_NS
STATE_TIMEOUT_NS = 30 * defaults.SECOND_NS
"""Linux forgets a query after this time without packets; RFC 6146 section 4 has 60 s."""
RTT_FACTOR_MAX = 100
LOOP_SLOTS_MAX = 60_000
"""The self-test has so many hosts."""
FEW_CONNECTIONS = 10
NEIGHBOURS = "neighbours"
"""The setting of a Linux gateway that says how many neighbours it keeps."""


def _factor(value: Any) -> Fraction:
    ratio = parse_ratio(value)
    if not 1 <= ratio <= RTT_FACTOR_MAX:
        raise BadValueError(f"{value!r} is not from 100% to {RTT_FACTOR_MAX}00%", "write for example 125%")
    return ratio


Factor = Annotated[
    Fraction,
    PlainValidator(with_remedy(_factor)),
    PlainSerializer(write_ratio),
    written_as(RATIO_PATTERN, "125%"),
    Written("ratio, 100 % to 10000 %"),
]
"""A ratio of at least 1."""


class GracefulModel(Table):
    """What the judgement of graceful degradation asks for."""

    rate: Share = Field(default_factory=lambda: Fraction(9, 10))
    """Least replies/s beyond saturation, as a share of the most."""
    rtt: Factor = Field(default_factory=lambda: Fraction(5, 4))
    """Longest mean round-trip time beyond saturation, as a share of one that grows like the number of clients."""
    loss: LossRatio = Field(default_factory=lambda: Fraction(1, 1000))
    """Most requests without a correct reply in time, of each number of clients; below 100 %."""


AT_RATES = With(
    key="mode",
    holds=lambda mode: mode == "constant_rate",
    write='mode = "constant_rate"',
    lack="in a closed loop the gateway sets the pace",
)
IN_LOOP = With(
    key="mode",
    holds=lambda mode: mode == "closed_loop",
    write='mode = "closed_loop"',
    lack="a constant rate waits for no reply",
)


class OverloadTable(ProcedureTable):
    """Echo requests of more and more clients: does the gateway degrade gracefully?"""

    key = "overload"
    purpose = "drive the gateway into overload by echo requests"
    only = (FREE_ANSWERS,)
    begins_with_full_table = False
    sends_udp = False
    sends_echo = True

    clients: Annotated[tuple[Annotated[int, Field(strict=True, ge=1, le=CLIENTS_MAX)], ...], AsList] = Field(
        (1, 2, 4, 8), min_length=1
    )
    """Numbers of clients, a column of the results for each."""
    window: Annotated[int, Field(strict=True, ge=1, le=WINDOW_MAX)] = 4
    """Requests of each client that are under way at once."""
    count: Annotated[int, Field(strict=True, ge=1, le=COUNT_MAX)] = 11
    """Requests to each destination, with one identifier."""
    destinations: Annotated[int, Field(strict=True, ge=1, le=DESTINATIONS_MAX)] | None = None
    """Destinations of each client, a multiple of `window`; with more than the default the clients share hosts. Default:
    16,384, or as many as the hosts on the right and `gateway.table.size` allow for the most clients."""
    data_octets: Annotated[int, Field(strict=True, ge=DATA_OCTETS_MIN, le=DATA_OCTETS_MAX)] = Field(
        DATA_OCTETS, alias="data"
    )
    """Octets of data in a request; 56 make an IPv6 packet of 104 octets, or an IPv4 packet of 84."""
    mode: Mode = "closed_loop"
    """`closed_loop`: a slot sends its next request on the reply to the last one. `constant_rate`: requests are due at
    the rates."""
    rates: Annotated[tuple[FrameCount, ...], AsList, AT_RATES] = ()
    """Requests/s of all clients together, each with every number of clients."""
    pace_without_reply_ns: Annotated[PositiveDuration, IN_LOOP] = Field(PACE_NS, alias="pace_without_reply")
    """Time after which a slot continues without a reply."""
    timeout_ns: PositiveDuration = Field(defaults.SECOND_NS, alias="timeout")
    """A reply that comes later is late."""
    duration_ns: PositiveDuration | None = Field(None, alias="duration")
    """Longest sending time of a closed loop, which ends when every destination was asked; sending time at a constant
    rate. Default: `"10min"`, at a constant rate `trial.duration`."""
    state_timeout_ns: PositiveDuration = Field(STATE_TIMEOUT_NS, alias="state_timeout")
    """Time after which a stateful gateway forgets an identifier without packets, for checks before anything is sent.
    Linux has 30 s, RFC 6146 section 4 has 60 s."""
    graceful: GracefulModel = GracefulModel()
    """The rules of the judgement."""

    @property
    def is_closed_loop(self) -> bool:
        """Whether the gateway sets the pace."""
        return self.mode == "closed_loop"

    @property
    def most_clients(self) -> int:
        """Return the largest number of clients."""
        return max(self.clients)

    @property
    def first_count(self) -> int:
        """Return a few: its echo requests need no connections, but a single trial of its campaign does."""
        return FEW_CONNECTIONS

    def completed(self, campaign: CampaignFile) -> Self:
        """Fill in the sending time."""
        default = DURATION_NS if self.is_closed_loop else campaign.trial.duration_ns
        return self.model_copy(update={"duration_ns": self.duration_ns or default})

    @property
    def sending_ns(self) -> int:
        """Return the longest sending time of a trial."""
        assert self.duration_ns is not None, "only of a table that is complete"
        return self.duration_ns

    def estimate_assumptions(self) -> Iterator[str]:
        """Say what is assumed of a closed loop."""
        if self.is_closed_loop:
            yield "a closed loop lasts as long as the gateway takes for its replies, but never longer than its duration"

    def destinations_of(self, campaign: Campaign) -> int:
        """Return how many destinations each client has; 0 if there are too few hosts. Once the sides are known."""
        if self.destinations is not None:
            return self.destinations
        most = min(DESTINATIONS, host_count(campaign, "right") // self.most_clients)
        size = campaign.gateway.table.size if campaign.technology.is_stateful else None
        if size is not None and not self.knows_state_timeout:
            most = min(most, size // self.most_clients)
        return most // self.window * self.window

    @property
    def knows_state_timeout(self) -> bool:
        """Whether the file says when the gateway forgets an identifier, so that not all need room at once."""
        return "state_timeout_ns" in self.model_fields_set

    def fitting_rate(self, campaign: Campaign, clients: int) -> int | None:
        """Return up to how many requests/s the gateway's table holds all of its entries; None if it always does."""
        size = campaign.gateway.table.size if campaign.technology.is_stateful else None
        if size is None or clients * self.destinations_of(campaign) <= size:
            return None
        return size * self.count * NANOSECONDS_PER_SECOND // self.state_timeout_ns

    def problems(self, campaign: CampaignFile) -> Iterator[Problem]:
        """Check that rates and destinations can be used and nothing is listed twice."""
        yield from listed_twice(campaign, f"{self.key}.clients", self.clients, "number")
        yield from listed_twice(campaign, f"{self.key}.rates", self.rates, "number")
        if not self.is_closed_loop and not self.rates:
            what = "is missing: nothing says at which rates requests are sent"
            yield problem(campaign, f"{self.key}.rates", what, 'write for example rates = ["1k", "10k"]')
        if self.destinations is not None and self.destinations % self.window:
            nearest = -(-self.destinations // self.window) * self.window
            what = f"is {self.destinations}, which the {self.window} slots of a client cannot share evenly"
            yield problem(campaign, f"{self.key}.destinations", what, f"write a multiple of window, such as {nearest}")

    def complete_problems(self, campaign: Campaign) -> Iterator[Problem]:
        """Check everything that can be known before the first request is sent."""
        if campaign.technology.is_stateful and campaign.roles.inside != "left":
            what = "is right, but the clients of echo requests are on the left"
            yield problem(campaign, "gateway.inside", what, 'write inside = "left" and swap the ports')
        yield from self._mark_problems(campaign)
        if any(campaign.side(name).family(campaign.roles.family(name)) is None for name in SIDES):
            return  # what is missing has a problem of its own
        yield from self._size_problems(campaign)
        hosts = list(self._host_problems(campaign))
        yield from hosts
        if not hosts:
            yield from self._neighbour_problems(campaign)
        if not hosts and campaign.technology.is_stateful:
            yield from self._state_problems(campaign)

    def _mark_problems(self, campaign: Campaign) -> Iterator[Problem]:
        """All echo requests have one traffic class and flow label."""
        fix = "write one number, or measure this in a campaign without overload"
        if len(campaign.directions.traffic_of("forward").traffic_class) > 1:
            yield problem(campaign, "traffic.traffic_class", "differs by flow, but not in echo requests", fix)
        if campaign.traffic.flow_label == "by_flow":
            yield problem(campaign, "traffic.flow_label", "differs by flow, but not in echo requests", fix)

    def _size_problems(self, campaign: Campaign) -> Iterator[Problem]:
        for name in SIDES:
            packet = self.frame_sizes(campaign).of(campaign.roles.frame_kind(name)) - defaults.LINK_OVERHEAD
            mtu = mtu_of(campaign, name)
            if packet > mtu:
                what = f"makes packets of {packet} octets on the {name} side, more than its MTU of {mtu}"
                fix = f"write at most {mtu - packet + self.data_octets}"
                yield problem(campaign, f"{self.key}.data", what, fix)

    def _host_problems(self, campaign: Campaign) -> Iterator[Problem]:
        """Each client needs a host of its own, and its destinations as well."""
        right, edges = host_count(campaign, "right"), campaign.edges.emulated
        family = campaign.roles.family("left")
        if edges is not None and edges.edge_count < self.most_clients:
            what = f"{self.most_clients} clients need as many customer edges, there are {edges.edge_count}"
            yield problem(campaign, "map.edges", what, "write more or fewer clients, or give the rules more EA bits")
        elif edges is None and (left := host_count(campaign, "left")) < self.most_clients:
            example = f'{{offset = {2 if family == "ipv4" else 14}, mode = "increasing", range = "2-{left_end(self)}"}}'
            what = f"{self.most_clients} clients need as many hosts, the left side has {left}"
            yield problem(campaign, f"left.{family}.hosts", what, f"write for example hosts = {example}")
        family = campaign.roles.family("right")
        wanted = self.destinations_of(campaign)
        if not wanted or wanted > right:
            needed = wanted or self.window * self.most_clients
            example = f'{{offset = {2 if family == "ipv4" else 14}, mode = "increasing", range = "2-{needed + 1}"}}'
            what = f"the right side has {right} host{'s' if right > 1 else ''}, fewer than the {needed} destinations"
            what += (
                " of a client" if wanted else f" that {self.most_clients} clients with a window of {self.window} need"
            )
            yield problem(campaign, f"right.{family}.hosts", what, f"write for example hosts = {example}")

    def _neighbour_problems(self, campaign: Campaign) -> Iterator[Problem]:
        """A gateway that forgets neighbours looks for them again and again, and loses what is for them meanwhile."""
        kept, edges = campaign.gateway.settings.get(NEIGHBOURS), campaign.edges.emulated
        asking = self.most_clients if edges is None or edges.onlink else 1
        asked = min(self.most_clients * self.destinations_of(campaign), host_count(campaign, "right"))
        for name, side, hosts in (("left", campaign.left, asking), ("right", campaign.right, asked)):
            is_onlink = side.address_mode == "onlink"
            if isinstance(kept, int) and is_onlink and hosts > kept:
                what = f"is {kept}, fewer than the {hosts} on-link hosts that are asked on the {name} side"
                fix = f'write {2 * hosts}, or set {name}.address_mode = "nexthop"'
                yield problem(campaign, f"gateway.settings.{NEIGHBOURS}", what, fix)

    def _state_problems(self, campaign: Campaign) -> Iterator[Problem]:
        """Each client has an identifier for each of its destinations, and the gateway an entry for each of these."""
        destinations, key = self.destinations_of(campaign), f"{self.key}.destinations"
        entries, size = self.most_clients * destinations, campaign.gateway.table.size
        fitting = self.fitting_rate(campaign, self.most_clients)
        if self.knows_state_timeout and fitting is not None and any(rate > fitting for rate in self.rates):
            what = (
                f"is above {fitting} requests/s, with which {size} entries of gateway.table.size live for state_timeout"
            )
            yield problem(campaign, f"{self.key}.rates", what, "write lower rates, or fewer destinations")
        elif size is not None and entries > size and not self.knows_state_timeout:
            what = (
                f"makes {entries} entries in the gateway's table with {self.most_clients} clients, gateway.table.size"
            )
            fix = f"write at most {size // self.most_clients}, or the state_timeout with which the gateway makes room"
            yield problem(campaign, key, f"{what} is {size}", fix)
        edge = campaign.edges.gateway
        identifiers = IDENTIFIERS if edge is None else edge.ports.count
        pool = sum(prefix.num_addresses for prefix in distinct(campaign.forwarding.pool)) * identifiers
        needed = self.most_clients * min(destinations, IDENTIFIERS)
        if campaign.bed.has_gateway and campaign.gateway.mapping == "endpoint_independent" and needed > pool > 0:
            what = f"needs {needed} identifiers of the pool, which has {pool}"
            yield problem(
                campaign,
                key,
                what,
                "write fewer, or give the gateway more public addresses"
                if edge is None
                else "write fewer, or another rule",
            )
        yield from self._timeout_problems(campaign, destinations)

    def _timeout_problems(self, campaign: Campaign, destinations: int) -> Iterator[Problem]:
        """At a constant rate an identifier must not be forgotten before it is used again."""
        key = f"{self.key}.rates"
        for clients in self.clients if not self.is_closed_loop else ():
            for rate in self.rates:
                gap_ns = clients * self.window * NANOSECONDS_PER_SECOND // rate
                round_ns = clients * destinations * self.count * NANOSECONDS_PER_SECOND // rate
                words = f"at {rate} requests/s of {clients} clients an identifier"
                if self.count > 1 and gap_ns >= self.state_timeout_ns:
                    what = f"{words} is used each {format_duration_ns(gap_ns)}, and the gateway forgets it after"
                elif round_ns >= self.state_timeout_ns and round_ns < self.sending_ns:
                    what = (
                        f"{words} is used again {format_duration_ns(round_ns)} later, and the gateway forgets it after"
                    )
                else:
                    continue
                fix = "write a higher rate, another duration, or the state_timeout that the gateway really has"
                yield problem(campaign, key, f"{what} {format_duration_ns(self.state_timeout_ns)}", fix)
                return

    def asked_echo(self, campaign: Campaign) -> EchoAsked:
        """Return the closed loops that the Tester must be far faster in than the gateway: those of the columns.

        At a constant rate there are no slots that could limit it, so it has as many as there can be.
        """
        family = campaign.technology.packet_families[0]
        slots = self.window if self.is_closed_loop else WINDOW_MAX
        clients = self.clients if self.is_closed_loop else (self.most_clients,)
        return EchoAsked(
            family=family,
            frame_octets=self.frame_sizes(campaign).of(family),
            shapes=tuple((number, slots) for number in clients if number * slots <= LOOP_SLOTS_MAX),
        )

    def frame_sizes(self, campaign: Campaign) -> FrameSizes:
        """Return the sizes of a request on both sides."""
        families = {campaign.roles.packet_family(name) for name in SIDES}
        octets = {family: defaults.LINK_OVERHEAD + IP_OCTETS[family] + ICMP_OCTETS for family in families}
        sizes = {family: overhead + self.data_octets for family, overhead in octets.items()}
        inside, outer = campaign.technology.inside_tunnels, campaign.technology.outer_family
        tunnel = None if inside is None else sizes[inside] + defaults.HEADER_OCTETS[outer]
        return FrameSizes(ipv4=sizes.get("ipv4"), ipv6=sizes.get("ipv6"), tunnel=tunnel)


def left_end(table: OverloadTable) -> int:
    """Return the last host of an example with as many clients as are needed."""
    return table.most_clients + 1


def host_count(campaign: Campaign, name: SideName) -> int:
    """Return how many hosts one side emulates for the clients or for their destinations; each B4 has its own."""
    family = campaign.roles.family(name)
    networks = campaign.directions.networks(name) if name == "right" else 1
    hosts = HostSet.of(family, campaign.hosts(name, family), networks=networks)
    behind = len(b4_hosts(campaign).numbers) if campaign.technology.has_b4s and name == "left" else 1
    return (hosts.maximum - hosts.minimum + 1) * hosts.networks * behind
