"""A whole campaign, and what the table of a procedure tells it and the rest of gatemark.

Both are here because they know each other: a campaign asks the tables of its procedures, and each of them checks itself
against the campaign. All other tables are in `gatemark.config.tables`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import IPv4Network, IPv6Network
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args

from pydantic import Field, PrivateAttr, StrictInt

from gatemark.bed_kinds import BED_KINDS, BedKind, BootOccasion
from gatemark.config import defaults
from gatemark.config.map_tables import MapModel
from gatemark.config.tables import (
    ConnectionsModel,
    DirectionTraffic,
    DirectionTrafficModel,
    GatewayAction,
    GatewayModel,
    LineModel,
    OneWay,
    SideModel,
    Table,
    TelemetryModel,
    TestbedModel,
    TrafficModel,
    TrialModel,
    ValidityModel,
)
from gatemark.errors import Problem
from gatemark.map_domains.domain import Edge
from gatemark.technology import TECHNOLOGIES, Family, SideName, Technology
from gatemark.units import LineShare


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRule:
    """When a trial of frames passes."""

    loss_tolerance: Fraction = Fraction(0)
    """Highest ratio of frames not delivered in each direction and class."""
    frame_timeout_ns: int | None = None
    """A frame that takes longer is not delivered; None: no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoAsked:
    """Echo requests of the Tester to itself, without a gateway, which a procedure needs to know its own part."""

    family: Family
    frame_octets: int
    shapes: tuple[tuple[int, int], ...]
    """Numbers of clients, and slots of each."""


class ProcedureTable(Table):
    """The table of a procedure: the procedure is run if the file has it.

    The checks are methods; each may read `campaign`, of which other tables may be wrong unless `reads` names them.
    """

    key: ClassVar[str]
    """Name of the table in the file."""
    purpose: ClassVar[str]
    """What the table asks for, for the description of the file."""
    reads: ClassVar[frozenset[str]] = frozenset()
    """Other tables that `problems` reads; it is left out while one of them has problems of its own."""
    reads_frame_rate: ClassVar[bool] = False
    """Whether `problems` asks if the campaign finds the highest rate of frames: it reads the tables that do."""
    is_stateful_only: ClassVar[bool] = False
    """Whether it makes sense only for a gateway that keeps state (RFC 9693)."""
    finds_frame_rate: ClassVar[bool] = False
    """Whether it finds the highest rate of frames that passes, of which others take shares."""
    finds_connection_rate: ClassVar[bool] = False
    """Whether it finds the rate of connections of which test phase 1 of others takes a share."""
    finds_connection_count: ClassVar[bool] = False
    """Whether it looks for the number of connections itself, so that `connections.count` is not needed."""
    begins_with_full_table: ClassVar[bool] = True
    """Through a stateful gateway: whether its trials begin with test phase 1, at a rate known before."""
    measures_delays: ClassVar[bool] = False
    """Whether it measures delays, of which the Tester's own path has a part."""
    sends_echo: ClassVar[bool] = False
    """Whether it sends echo messages, whose identifiers a MAP-T border relay must then know."""
    lets_flows_start_apart: ClassVar[bool] = False
    """Whether its trials have a constant load, which network flows may join one after another."""
    needs_line_rate: ClassVar[bool] = False
    """Whether it cannot be measured without the line rate of the medium."""

    @property
    def validates(self) -> bool:
        """Whether the Responder checks every connection (RFC 9693 section 4.6)."""
        return False

    @property
    def pass_rule(self) -> PassRule | None:
        """Return when a trial passes by this table, for a single trial; None if it does not say."""
        return None

    @property
    def highest_rate(self) -> int | LineShare | None:
        """Return the highest rate of connections that it tries; None if it is found, or if it tries none."""
        return None

    def asked_echo(self, campaign: Campaign) -> EchoAsked | None:
        """Return the echo requests whose way through the Tester alone it is reported with; None if it sends none."""
        del campaign
        return None

    @property
    def is_open_ended(self) -> bool:
        """Whether a search takes the line rate as its maximum, or finds one where the medium has none."""
        return False

    @property
    def first_count(self) -> int | None:
        """Return the number of connections where the file has none; None if it needs one from there."""
        return None

    @property
    def largest_count(self) -> int | None:
        """Return the most connections that it tries by itself, where the file says it."""
        return None

    def repetitions(self, campaign: Campaign) -> int:
        """Return how often the measurement is repeated."""
        return campaign.repetitions

    def phase_two_ns(self, campaign: Campaign) -> int | None:
        """Return the longest sending time of trials that offer frames, which is test phase 2; None if none does."""
        del campaign
        return None

    def lifetimes(self, campaign: Campaign, count: int) -> Iterator[tuple[int, str]]:
        """Yield for how long `count` connections must live by this table alone (nanoseconds), and for what."""
        del campaign, count
        yield from ()

    def shares_of_line(self) -> Iterator[LineShare]:
        """Yield the loads of the table that are shares of the line rate; a resolution is a share of the maximum."""
        for name in (name for name in type(self).model_fields if not name.endswith("resolution")):
            value = getattr(self, name)
            items = value if isinstance(value, tuple) else (value,)
            yield from (item for item in items if isinstance(item, LineShare))

    def estimate_assumptions(self) -> Iterator[str]:
        """Yield what an estimate of its time assumes of the gateway, a sentence each."""
        yield from ()

    def completed(self, campaign: Campaign) -> Self:
        """Return the table with the defaults filled in that depend on other tables."""
        del campaign
        return self

    def left_out_of_documents(self) -> tuple[str, ...]:
        """Return keys that have no effect together with others, and are refused there."""
        return ()

    def problems(self, campaign: Campaign) -> Iterator[Problem]:
        """Yield what its keys must satisfy together, before anything is known from a recipe."""
        del campaign
        yield from ()

    def complete_problems(self, campaign: Campaign) -> Iterator[Problem]:
        """Yield what it must satisfy once technology and sides are known."""
        del campaign
        yield from ()

    def stateful_problems(self, campaign: Campaign) -> Iterator[Problem]:
        """Yield what it must satisfy with the connections of a stateful gateway, whose hosts are known."""
        del campaign
        yield from ()


T = TypeVar("T", bound=ProcedureTable)


class Campaign(Table):
    """A whole campaign: what is measured, on which gateway, how."""

    name: str = Field("campaign", min_length=1, max_length=100, description="name of the campaign and its results")
    seed: Annotated[StrictInt, Field(ge=0, lt=1 << 63)] = Field(
        defaults.SEED, description="seed of everything that is pseudorandom"
    )
    repetitions: Annotated[StrictInt, Field(ge=1, le=10_000)] = Field(
        defaults.REPETITIONS, description="how often each measurement is repeated (RFC 8219 section 12)"
    )
    gateway: GatewayModel = Field(GatewayModel(), description="what the gateway does")
    testbed: TestbedModel = Field(description="where the gateway is")
    left: SideModel | None = Field(None, description="left port and its hosts")
    right: SideModel | None = Field(None, description="right port and its hosts")
    traffic: TrafficModel = Field(TrafficModel(), description="what is sent")
    trial: TrialModel = Field(TrialModel(), description="phases of a trial")
    validity: ValidityModel = Field(ValidityModel(), description="when a trial counts")
    line: LineModel = Field(LineModel(), description="the medium")
    connections: ConnectionsModel | None = Field(None, description="the connections of a stateful test")
    map: MapModel | None = Field(None, description="the customer edges of a MAP-T test")

    procedure_tables: ClassVar[tuple[type[ProcedureTable], ...]] = ()
    """Tables of procedures that a file may have; the registry of procedures fills it in."""

    _source: str = PrivateAttr("campaign")
    _actions: frozenset[GatewayAction] = PrivateAttr(frozenset())
    _setting_names: frozenset[str] = PrivateAttr(frozenset())

    @property
    def source(self) -> str:
        """Return the name of the file, for messages."""
        return self._source

    @property
    def technology(self) -> Technology:
        """Return what the gateway does; only once it is known."""
        assert self.gateway.technology is not None, "the technology is not known before merge_recipe"
        return TECHNOLOGIES[self.gateway.technology]

    @property
    def is_translation(self) -> bool:
        """Whether the two sides have different families."""
        return self.technology.is_translation

    @property
    def is_stateful(self) -> bool:
        """Whether the gateway keeps state for each connection (RFC 9693)."""
        return self.technology.is_stateful

    @property
    def inside(self) -> SideName:
        """Return the side of the Initiator (RFC 9693 section 4.1)."""
        return self.gateway.inside or "left"

    @property
    def outside(self) -> SideName:
        """Return the side of the Responder (RFC 9693 section 4.1)."""
        return "right" if self.inside == "left" else "left"

    @property
    def upload(self) -> OneWay:
        """Return the direction of the Initiator's frames."""
        return "forward" if self.inside == "left" else "reverse"

    @property
    def download(self) -> OneWay:
        """Return the direction of the Responder's frames."""
        return "reverse" if self.inside == "left" else "forward"

    @property
    def connections_model(self) -> ConnectionsModel:
        """Return the connections of a stateful campaign."""
        return self.connections or ConnectionsModel()

    @property
    def tables(self) -> tuple[ProcedureTable, ...]:
        """Return the tables of the procedures that are to be run."""
        tables = (getattr(self, table.key) for table in self.procedure_tables)
        return tuple(table for table in tables if table is not None)

    def table(self, table_type: type[T]) -> T:
        """Return the table of a procedure that is to be run."""
        table: T | None = getattr(self, table_type.key)
        assert table is not None, f"the campaign has no table {table_type.key}"
        return table

    @property
    def validates(self) -> bool:
        """Whether the Responder checks every connection in any measurement (RFC 9693 section 4.6)."""
        return any(table.validates for table in self.tables)

    @property
    def finds_frame_rate(self) -> bool:
        """Whether the campaign finds the highest rate of frames, of which other procedures take shares."""
        return any(table.finds_frame_rate for table in self.tables)

    @property
    def finds_connection_rate(self) -> bool:
        """Whether the campaign finds the highest rate of connections, of which test phase 1 takes a share."""
        return any(table.finds_connection_rate for table in self.tables)

    @property
    def actions(self) -> frozenset[GatewayAction]:
        """Return what gatemark can have the gateway do, by its recipe or by `gateway.control`."""
        control = self.gateway.control
        if control is None:
            return self._actions
        actions: tuple[GatewayAction, ...] = get_args(GatewayAction)
        return frozenset(action for action in actions if getattr(control, action))

    @property
    def setting_names(self) -> frozenset[str]:
        """Return the settings of the user's own for which recipe or `gateway.control` has commands."""
        control = self.gateway.control
        return self._setting_names if control is None else self._setting_names | frozenset(control.settings)

    @property
    def boots_before(self) -> BootOccasion:
        """Return before what the gateway's host is booted."""
        control = self.gateway.control
        return "never" if control is None else control.boot

    @property
    def boots_after_collapse(self) -> bool:
        """Return whether the gateway's host is booted when the gateway stopped working."""
        control = self.gateway.control
        return control is not None and control.boot_after_collapse

    @property
    def boot_wait_s(self) -> float:
        """Return how long a boot may take, seconds; 0 where there are none."""
        control = self.gateway.control
        return 0.0 if control is None or control.boot == "never" else control.limits.seconds("boot")

    @property
    def telemetry(self) -> TelemetryModel | None:
        """Return what is sampled at the gateway's host beside each trial; None if nothing is."""
        asked = self.gateway.telemetry
        if asked is None:
            return TelemetryModel() if self.bed.sees_host else None
        return asked if asked.enabled else None

    @property
    def bed(self) -> BedKind:
        """Return what the test bed can do."""
        return BED_KINDS[self.testbed.kind]

    @property
    def core_count(self) -> int | None:
        """Return the number of the gateway's cores; None if the file does not say it."""
        return len(self.testbed.gateway_cores) or self.gateway.cores

    @property
    def hop_limit_decrement(self) -> int:
        """Return how much the gateway takes off hop limits; 0 in a loop-back."""
        if self.bed.forwards_unchanged:
            return 0
        decrement = self.gateway.hop_limit_decrement
        return defaults.HOP_LIMIT_DECREMENT if decrement is None else decrement

    @property
    def background_hop_limit_decrement(self) -> int:
        """Return the same for native background, which a translator merely forwards."""
        if self.bed.forwards_unchanged:
            return 0
        decrement = self.gateway.background_hop_limit_decrement
        if decrement is not None:
            return decrement
        return defaults.HOP_LIMIT_DECREMENT if self.is_translation else self.hop_limit_decrement

    @property
    def has_background(self) -> bool:
        """Whether any mix holds native IPv6 background."""
        return any(mix.has_background for mix in self.traffic.mix)

    def side(self, name: SideName) -> SideModel:
        """Return one side; only once it is known."""
        side = self.left if name == "left" else self.right
        assert side is not None, "the sides are not known before merge_recipe"
        return side

    def foreground_family(self, name: SideName) -> Family:
        """Return the family of the foreground on one side."""
        return self.technology.families[0 if name == (self.inside if self.is_stateful else "left") else 1]

    def families_in_use(self, name: SideName) -> tuple[Family, ...]:
        """Return the families of the frames that one side sends and receives, foreground first."""
        foreground = self.foreground_family(name) if any(mix.has_foreground for mix in self.traffic.mix) else None
        background: Family | None = "ipv6" if self.has_background else None
        return tuple(dict.fromkeys(family for family in (foreground, background) if family is not None))

    def one_ways(self) -> tuple[OneWay, ...]:
        """Return the single directions in which any frame is sent, including phases before the one that is measured."""
        both = "bidirectional" in self.traffic.direction
        ways: tuple[OneWay, ...] = ("forward", "reverse")
        needed = {self.upload} if self.is_stateful else set()
        if self.validates:
            needed.add(self.download)
        return tuple(way for way in ways if both or way in self.traffic.direction or way in needed)

    def direction_traffic(self, direction: OneWay) -> DirectionTraffic:
        """Return the traffic of one direction with its own settings applied."""
        common = self.traffic
        overrides = (common.forward if direction == "forward" else common.reverse) or DirectionTrafficModel()
        return DirectionTraffic(
            source_ports=overrides.source_ports or common.source_ports,
            destination_ports=overrides.destination_ports or common.destination_ports,
            destination_networks=common.destination_networks
            if overrides.destination_networks is None
            else overrides.destination_networks,
            hop_limit=common.hop_limit if overrides.hop_limit is None else overrides.hop_limit,
            traffic_class=common.traffic_class if overrides.traffic_class is None else overrides.traffic_class,
            dont_fragment=common.dont_fragment if overrides.dont_fragment is None else overrides.dont_fragment,
            udp_checksum=overrides.udp_checksum or common.udp_checksum,
        )

    @property
    def sends_without_checksum(self) -> bool:
        """Whether UDP frames of any direction are sent without checksum."""
        ways: tuple[OneWay, ...] = ("forward", "reverse")
        return any(self.direction_traffic(way).udp_checksum == "zero" for way in ways)

    @property
    def has_random_macs(self) -> bool:
        """Whether the emulated hosts of any side have MAC addresses of their own (RFC 4814 section 4.2)."""
        return any(side is not None and side.host_macs == "random" for side in (self.left, self.right))

    @property
    def emulated_edges(self) -> MapModel | None:
        """Return the table of the customer edges that the Tester emulates; None without any."""
        return None if self.gateway.technology is not None and self.technology.is_edge else self.map

    @property
    def map_domain_count(self) -> int:
        """Return the number of domains of emulated customer edges; 0 without any."""
        return 0 if self.emulated_edges is None else len(self.emulated_edges.domains)

    @property
    def gateway_edge(self) -> Edge | None:
        """Return the customer edge that the gateway is; None for other gateways, and where its rule has a problem."""
        is_edge = self.gateway.technology is not None and self.technology.is_edge
        return self.map.gateway_edge if self.map is not None and is_edge else None

    @property
    def pool(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Return the public addresses of a stateful gateway: those of the file, or a customer edge's MAP address."""
        edge = self.gateway_edge
        return self.gateway.pool if edge is None else (IPv6Network(edge.address),)

    @property
    def translation_prefix(self) -> IPv6Network | None:
        """Return the prefix under which hosts of the other family are known, of a border relay too many to say."""
        edge = self.gateway_edge
        return self.gateway.prefix if edge is None else edge.domain.dmr

    def networks(self, side: SideName) -> int:
        """Return how many networks the hosts of a side are in: those that frames go to which are sent to it."""
        return self.direction_traffic("forward" if side == "right" else "reverse").destination_networks

    def to_document(self) -> dict[str, Any]:
        """Return the campaign as a document that `campaign_from_dict` reads back to the same campaign."""
        document = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        for table in self.tables:
            for key in table.left_out_of_documents():
                document[table.key].pop(key, None)
        return document

    def renamed(self, *, name: str | None = None, source: str | None = None) -> Self:
        """Return a copy with another name, or with another file name for messages."""
        copy = self.model_copy(update={} if name is None else {"name": name})
        if source is not None:
            copy._source = source
        return copy

    @property
    def frame_rate_key(self) -> str:
        """Return the name of the table that has the highest rate of frames found."""
        return next(table.key for table in self.procedure_tables if table.finds_frame_rate)

    @property
    def connection_rate_key(self) -> str:
        """Return the name of the table that has the highest rate of connections found."""
        return next(table.key for table in self.procedure_tables if table.finds_connection_rate)
