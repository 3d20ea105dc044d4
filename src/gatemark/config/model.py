"""A campaign as the user wrote it and as it is measured, and what the table of a procedure tells the rest of gatemark.

All are here because they know each other: a campaign asks the tables of its procedures, and each of them checks itself
against the campaign. All other tables are in `gatemark.config.tables`; only `gatemark.config.complete` makes a complete
campaign.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import Field, PrivateAttr, StrictInt

from gatemark.bed_kinds import BED_KINDS, BedKind
from gatemark.config import defaults
from gatemark.config.map_tables import MapModel
from gatemark.config.only import STATEFUL, WITH_B4S, WITH_RULES, Only, without_effect
from gatemark.config.recipe import Recipe
from gatemark.config.tables import (
    B4Model,
    ConnectionsModel,
    FamilyModel,
    GatewayModel,
    KeyByKey,
    KnownGateway,
    LineModel,
    SideModel,
    Table,
    TestbedModel,
    TrafficModel,
    TrialModel,
    ValidityModel,
)
from gatemark.config.views import Control, Directions, Edges, Forwarding, Roles, Sixrd
from gatemark.errors import Problem
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
    only: ClassVar[tuple[Only, ...]] = ()
    """To which technologies and test beds it applies."""
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
    sends_udp: ClassVar[bool] = True
    """Whether it sends the frames that `traffic` describes."""
    sends_echo: ClassVar[bool] = False
    """Whether it sends echo messages, whose identifiers a MAP-T border relay must then know."""
    lets_flows_start_apart: ClassVar[bool] = False
    """Whether its trials have a constant load, which network flows may join one after another."""
    needs_line_rate: ClassVar[bool] = False
    """Whether it cannot be measured without the line rate of the medium."""

    @classmethod
    def is_for(cls, technology: Technology) -> bool:
        """Whether it applies to a technology."""
        return all(rule.refusal(technology, None) is None for rule in cls.only)

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

    def repetitions(self, campaign: CampaignFile) -> int:
        """Return how often the measurement is repeated."""
        return campaign.repetitions

    def phase_two_ns(self, campaign: CampaignFile) -> int | None:
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

    def completed(self, campaign: CampaignFile) -> Self:
        """Return the table with the defaults filled in that depend on other tables."""
        del campaign
        return self

    def problems(self, campaign: CampaignFile) -> Iterator[Problem]:
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


class CampaignFile(Table):
    """A whole campaign: what is measured, on which gateway, how."""

    name: str = Field("campaign", min_length=1, max_length=100)
    """Name of the campaign and of its results. Default: the name of the file without `.toml`."""
    seed: Annotated[StrictInt, Field(ge=0, lt=1 << 63)] = defaults.SEED
    """Seed of everything that is pseudorandom: the same seed sends the same frames."""
    repetitions: Annotated[StrictInt, Field(ge=1, le=10_000)] = defaults.REPETITIONS
    """How often each run is repeated (RFC 8219 section 12)."""
    gateway: Annotated[GatewayModel, KeyByKey] = GatewayModel()
    """What the gateway does to a frame."""
    testbed: TestbedModel
    """Where the gateway is."""
    left: Annotated[SideModel | None, KeyByKey] = None
    """Left port of the Tester and the hosts behind it. Default: from the recipe."""
    right: Annotated[SideModel | None, KeyByKey] = None
    """Right port of the Tester and the hosts behind it. Default: from the recipe."""
    traffic: TrafficModel = TrafficModel()
    """What is sent."""
    trial: TrialModel = TrialModel()
    """Phases of a trial."""
    validity: ValidityModel = ValidityModel()
    """When a trial counts."""
    line: LineModel = LineModel()
    """The medium."""
    connections: Annotated[ConnectionsModel | None, STATEFUL] = None
    """Connections of a stateful test (RFC 9693 section 4)."""
    map: Annotated[MapModel | None, WITH_RULES] = None
    """MAP rules (RFC 7597) or softwires (RFC 7596), and their customer edges: those that the Tester emulates, or the
    one that the gateway is."""
    b4: Annotated[B4Model | None, WITH_B4S] = None
    """Hosts behind the B4s of an AFTR (RFC 6333)."""

    procedure_tables: ClassVar[tuple[type[ProcedureTable], ...]] = ()
    """Tables of procedures that a file may have; the registry of procedures fills it in."""
    complete_model: ClassVar[type[Campaign]]
    """The same file once it is complete, with the same tables; the registry of procedures fills it in."""

    _source: str = PrivateAttr("campaign")

    @property
    def source(self) -> str:
        """Return the name of the file, for messages."""
        return self._source

    @property
    def technology(self) -> Technology | None:
        """Return what the gateway does; None where only the recipe says it."""
        return None if self.gateway.technology is None else TECHNOLOGIES[self.gateway.technology]

    @property
    def connections_model(self) -> ConnectionsModel:
        """Return the connections of a stateful campaign."""
        return self.connections or ConnectionsModel()

    @property
    def b4_model(self) -> B4Model:
        """Return the hosts behind each B4 of an AFTR."""
        return self.b4 or B4Model()

    @cached_property
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
    def bed(self) -> BedKind:
        """Return what the test bed can do."""
        return BED_KINDS[self.testbed.kind]

    def to_document(self) -> dict[str, Any]:
        """Return the campaign as a document that `campaign_from_dict` reads back to the same campaign."""
        document = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        for table in self.tables:
            for key in without_effect(table):
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


class Campaign(CampaignFile):
    """A campaign that can be measured: what its recipe knows is filled in, and all of it is checked."""

    gateway: KnownGateway
    left: SideModel
    right: SideModel

    _recipe: Recipe | None = PrivateAttr(None)

    @classmethod
    def of(cls, file: CampaignFile, recipe: Recipe | None) -> Campaign | None:
        """Return a file, merged with its recipe, with all that must be known; None where it is not."""
        if file.gateway.technology is None or file.left is None or file.right is None:
            return None
        gateway = KnownGateway.model_construct(file.gateway.model_fields_set, **dict(file.gateway))
        campaign = file.complete_model.model_construct(file.model_fields_set, **{**dict(file), "gateway": gateway})
        campaign._source, campaign._recipe = file.source, recipe
        return campaign

    @property
    def recipe(self) -> Recipe | None:
        """Return what the gateway is made of; None where somebody else set it up, or there is none."""
        return self._recipe

    @property
    def technology(self) -> Technology:
        """Return what the gateway does."""
        return TECHNOLOGIES[self.gateway.technology]

    def side(self, name: SideName) -> SideModel:
        """Return one side."""
        return self.left if name == "left" else self.right

    def hosts(self, name: SideName, family: Family | None = None) -> FamilyModel:
        """Return the hosts of one side in a family that is in use; by default those of the foreground."""
        return self.side(name).families[family or self.roles.host_family(name)]

    @property
    def has_random_macs(self) -> bool:
        """Whether the emulated hosts of any side have MAC addresses of their own (RFC 4814 section 4.2)."""
        return "random" in (self.left.host_macs, self.right.host_macs)

    @cached_property
    def roles(self) -> Roles:
        """Return which side is which."""
        mesh = self.map is not None and self.map.mesh is not None
        return Roles(technology=self.technology, inside=self.gateway.initiator, mesh=mesh)

    @cached_property
    def directions(self) -> Directions:
        """Return what is sent in which direction."""
        return Directions(traffic=self.traffic, roles=self.roles, validates=self.validates)

    @cached_property
    def edges(self) -> Edges:
        """Return the customer edges of MAP-T."""
        return Edges(technology=self.technology, map=self.map)

    @cached_property
    def sixrd(self) -> Sixrd | None:
        """Return the gateway and its customer edges if it is a 6rd relay."""
        return Sixrd.of(self.gateway, self.left.ipv4)

    @cached_property
    def forwarding(self) -> Forwarding:
        """Return what the gateway does to a frame."""
        return Forwarding(model=self.gateway, technology=self.technology, bed=self.bed, edge=self.edges.gateway)

    @cached_property
    def control(self) -> Control:
        """Return what gatemark can do with the gateway and its host."""
        return Control(
            gateway=self.gateway,
            testbed=self.testbed,
            bed=self.bed,
            recipe_actions=frozenset() if self.recipe is None else self.recipe.actions,
            recipe_settings=frozenset(() if self.recipe is None else self.recipe.commands.settings),
        )


CampaignFile.complete_model = Campaign
