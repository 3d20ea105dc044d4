"""A whole campaign. The tables it is made of are in `gatemark.config.tables`."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args

from pydantic import Field, PrivateAttr, StrictInt

from gatemark.bed_kinds import BED_KINDS, BedKind, BootOccasion
from gatemark.config import defaults
from gatemark.config.map_tables import MapModel
from gatemark.config.table import ProcedureTable, Table
from gatemark.config.tables import (
    ConnectionsModel,
    DirectionTraffic,
    DirectionTrafficModel,
    GatewayAction,
    GatewayModel,
    LineModel,
    OneWay,
    SideModel,
    TelemetryModel,
    TestbedModel,
    TrafficModel,
    TrialModel,
    ValidityModel,
)
from gatemark.map_domains.domain import Edge
from gatemark.technology import TECHNOLOGIES, Family, SideName, Technology

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
