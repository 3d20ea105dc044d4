"""The tables of a campaign file as frozen models: one class for each table, one attribute for each key.

Attributes carry their unit (`duration_ns`); the key in the file does not (`duration = "60s"`), because its value does.
A model checks each value alone; what several keys must satisfy together is in `gatemark.config.check`.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, ValidationInfo

from gatemark.bed_kinds import BedKindName, BootOccasion, CoresSetBy, bed_kinds_where
from gatemark.config import defaults
from gatemark.config.only import (
    LOCAL,
    SEEN,
    STATEFUL,
    TRANSLATORS,
    WITH_GATEWAY,
    WITH_KERNELS,
    WITH_RECIPE,
)
from gatemark.config.types import (
    AsList,
    BadValueError,
    BitRate,
    Count,
    Duration,
    HostSpan,
    IpPrefix,
    Ipv4,
    Ipv4Prefix,
    Ipv6,
    Ipv6Prefix,
    MacAddress,
    Mix,
    MixValue,
    PhaseOneRate,
    PortSpan,
    PositiveDuration,
    ProcessName,
    SettingName,
    SettingValue,
    Span,
    SshHost,
    TranslationPrefix,
)
from gatemark.technology import FAMILY_WORDS, Family, SideName, TechnologyName

Direction = Literal["forward", "reverse", "bidirectional"]
OneWay = Literal["forward", "reverse"]
Variation = Literal["fixed", "increasing", "decreasing", "pseudorandom"]

GatewayAction = Literal[
    "clear_state", "count_connections", "tear_down", "set_table_size", "set_hash_size", "set_udp_timeout", "reset"
]
"""What gatemark can have a gateway do; all but a reset only with a stateful one."""


class Table(BaseModel):
    """A table of the campaign file: frozen, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=False, validate_by_alias=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfRecipe:
    """Rule of a field: where a recipe makes the gateway, its value is the recipe's.

    A field without a rule is the file's, and the recipe's only where the file is silent.
    """

    words: str = "makes a gateway with"
    """How the recipe comes to its value, for the message about a file that contradicts it."""
    may_be_open: bool = False
    """Whether the file may say it where the recipe is silent."""
    is_limit: bool = False
    """Whether the file may say less."""

    def allows(self, ours: Any, theirs: Any) -> bool:
        """Whether a file may have one value where its recipe has another."""
        if self.is_limit:
            return theirs is None or bool(ours <= theirs)
        return self.may_be_open and theirs in (None, ())


@dataclass(frozen=True, slots=True)
class SetByRecipe:
    """Rule of a field: the file's value, where the recipe has a command that sets it."""

    action: GatewayAction


class KeyByKey:
    """Rule of a table in a table: each of its keys has a rule of its own."""


OPEN = OfRecipe(may_be_open=True)
GIVEN = OfRecipe(words="gives the gateway")


class EamEntry(Table):
    """One explicit address mapping (RFC 7757 section 3)."""

    ipv4: Ipv4Prefix = Field(description="IPv4 prefix of the mapping")
    ipv6: Ipv6Prefix = Field(description="IPv6 prefix that the IPv4 prefix is mapped to")


class GatewayTableModel(Table):
    """The connection tracking table of a stateful gateway (RFC 9693 section 4.4)."""

    size: Annotated[Count | None, SetByRecipe("set_table_size"), STATEFUL, WITH_GATEWAY] = Field(
        None, description="connections that the table is configured to hold"
    )
    hash_size: Annotated[Count | None, SetByRecipe("set_hash_size"), STATEFUL, WITH_GATEWAY] = Field(
        None, description="buckets of its hash table"
    )
    udp_timeout_ns: Annotated[PositiveDuration | None, SetByRecipe("set_udp_timeout"), STATEFUL, WITH_GATEWAY] = Field(
        None, alias="udp_timeout", description="after what time without frames a UDP connection is deleted"
    )


class SettingModel(Table):
    """One setting of the gateway that the user named: its value is that of `gateway.settings`."""

    apply: Annotated[tuple[str, ...], AsList] = Field(min_length=1, description="gives the setting the value {value}")
    read: str | None = Field(None, description="prints the value that it has, and nothing else")
    at_boot: StrictBool = Field(
        False, description="takes effect with the next boot, before which it is made; gateway.control only"
    )


LimitName = Literal[
    "clear_state", "count_connections", "tear_down", "set", "reset", "setup", "start", "stop", "health", "describe",
    "boot",
]  # fmt: skip
"""What has a time limit of its own."""


class LimitsModel(Table):
    """How long each command of `gateway.control` or of a recipe may take."""

    clear_state_ns: PositiveDuration = Field(
        defaults.DELETION_LIMIT_NS, alias="clear_state", description="to delete all connections"
    )
    count_connections_ns: PositiveDuration = Field(
        defaults.COMMAND_LIMIT_NS, alias="count_connections", description="to count them"
    )
    tear_down_ns: PositiveDuration = Field(
        defaults.DELETION_LIMIT_NS, alias="tear_down", description="to delete them while that is timed"
    )
    set_ns: PositiveDuration = Field(
        defaults.COMMAND_LIMIT_NS, alias="set", description="to make a setting or to read it, the table's as well"
    )
    reset_ns: PositiveDuration = Field(
        defaults.START_LIMIT_NS, alias="reset", description="to reset the gateway; it may be a machine that boots"
    )
    setup_ns: PositiveDuration = Field(
        defaults.COMMAND_LIMIT_NS, alias="setup", description="each command of `setup`; of a recipe only"
    )
    start_ns: PositiveDuration = Field(
        defaults.START_LIMIT_NS, alias="start", description="to start the gateway, and again until it is healthy"
    )
    stop_ns: PositiveDuration = Field(defaults.COMMAND_LIMIT_NS, alias="stop", description="to stop the gateway")
    health_ns: PositiveDuration = Field(
        defaults.COMMAND_LIMIT_NS, alias="health", description="to tell whether the gateway works"
    )
    describe_ns: PositiveDuration = Field(
        defaults.COMMAND_LIMIT_NS, alias="describe", description="to print versions and configuration"
    )
    boot_ns: PositiveDuration = Field(
        defaults.BOOT_LIMIT_NS,
        alias="boot",
        description="to boot: until the host is another boot, healthy, its links up and the gateway resolved",
    )

    def seconds(self, name: LimitName) -> float:
        """Return one limit in seconds."""
        nanoseconds: int = getattr(self, f"{name}_ns")
        return nanoseconds / defaults.SECOND_NS


class Commands(Table):
    """Commands that control a gateway, of a recipe or of `gateway.control`."""

    clear_state: Annotated[tuple[str, ...], AsList, STATEFUL] = Field((), description="deletes all connections")
    count_connections: Annotated[str | None, STATEFUL] = Field(None, description="prints the number of connections")
    tear_down: Annotated[str | None, STATEFUL] = Field(
        None, description="deletes all connections; it is timed where it runs"
    )
    set_table_size: Annotated[tuple[str, ...], AsList, STATEFUL] = Field(
        (), description="sets the table to {size} connections"
    )
    set_hash_size: Annotated[tuple[str, ...], AsList, STATEFUL] = Field(
        (), description="sets the hash table to {size} buckets"
    )
    set_udp_timeout: Annotated[tuple[str, ...], AsList, STATEFUL] = Field(
        (), description="sets the UDP timeout to {seconds}"
    )
    read_table_size: Annotated[str | None, STATEFUL] = Field(
        None, description="prints how many connections the table can hold"
    )
    read_hash_size: Annotated[str | None, STATEFUL] = Field(None, description="prints the buckets of its hash table")
    read_udp_timeout: Annotated[str | None, STATEFUL] = Field(None, description="prints the UDP timeout in seconds")
    reset: Annotated[tuple[str, ...], AsList] = Field((), description="resets the gateway while the Tester sends")
    start: Annotated[tuple[str, ...], AsList] = Field((), description="starts the gateway, also after it collapsed")
    stop: Annotated[tuple[str, ...], AsList] = Field((), description="stops the gateway before it is started again")
    health: Annotated[tuple[str, ...], AsList] = Field((), description="succeeds while the gateway works")
    settings: dict[SettingName, SettingModel] = Field(
        {}, alias="set", description="settings of your own, by the names that gateway.settings gives values to"
    )


class GatewayControlModel(Commands):
    """Commands that control a gateway that somebody else set up; with a recipe only their limits."""

    commands: Annotated[tuple[str, ...], AsList] = Field(
        (),
        description="names or paths of files with more keys of this table, such as linux and jool; what the campaign"
        " file says itself wins",
    )
    host: SshHost | None = Field(
        None,
        description="where the commands run, reached by ssh: a name of ~/.ssh/config, or root@192.0.2.1 for example;"
        " default: this machine",
    )
    sudo: StrictBool = Field(False, description="run them as root by `sudo -n`, which must not ask for a password")
    shell: str = Field(
        "sh -s", min_length=1, description="POSIX shell that reads a script from its standard input and runs it"
    )
    describe: Annotated[tuple[str, ...], AsList] = Field((), description="prints versions and configuration")
    boot: BootOccasion = Field(
        "never", description="before what the host is booted; column: before the first trial of a session"
    )
    boot_after_collapse: StrictBool = Field(
        False, description="boot the host as well when the gateway stopped working, and go on; boot says when else"
    )
    reboot: Annotated[tuple[str, ...], AsList] = Field(
        (), description="boots the host, from there; the connection may be lost over it"
    )
    power_cycle: Annotated[tuple[str, ...], AsList] = Field(
        (), description="boots the host, from this machine: by IPMI or a power distribution unit"
    )
    boot_id: str | None = Field(
        None,
        description="runs at the host; its output must change with each boot; default: Linux boot_id or kern.boottime",
    )
    after_boot: Annotated[tuple[str, ...], AsList] = Field(
        (), description="run after each boot, before the settings: what a boot forgets"
    )
    limits: LimitsModel = Field(LimitsModel(), description="how long each command may take")

    @property
    def words(self) -> list[str]:
        """Return the words that start the shell, wherever it is. Raises ValueError if they cannot be split."""
        return [*(("sudo", "-n") if self.sudo else ()), *shlex.split(self.shell)]


class TelemetryModel(Table):
    """What is sampled at the gateway's host beside each trial, by a program that runs there."""

    enabled: StrictBool = Field(True, description="sample the gateway's host")
    interval_ns: PositiveDuration = Field(
        defaults.TELEMETRY_INTERVAL_NS, alias="interval", description="time from one sample to the next"
    )
    cpus: tuple[Annotated[StrictInt, Field(ge=0)], ...] = Field(
        (), description="CPUs of its host that do its work, default: all; needed where that is this machine"
    )
    processes: Annotated[tuple[ProcessName, ...], AsList] = Field(
        (), description="names of processes of which memory and CPU time are sampled"
    )
    commands: dict[SettingName, str] = Field({}, description="commands of your own, each of which prints one number")
    required: StrictBool = Field(False, description="a trial without samples is invalid")


_HopLimitDecrement = Annotated[StrictInt, Field(ge=0, le=254)]


class GatewayModel(Table):
    """What the gateway does to a frame."""

    technology: Annotated[TechnologyName | None, OfRecipe()] = Field(
        None, description="what it does, and to which families; the recipe gives it for a netns test bed"
    )
    hop_limit_decrement: Annotated[_HopLimitDecrement | None, OfRecipe()] = Field(
        None, description="by how much hop limit and time to live come out lower; default 1 or what the recipe says"
    )
    background_hop_limit_decrement: Annotated[_HopLimitDecrement | None, OPEN] = Field(
        None, description="the same for native IPv6 background; default 1 for translators, else as for the foreground"
    )
    prefix: Annotated[TranslationPrefix | None, OfRecipe(), TRANSLATORS] = Field(
        None, description="translation prefix (RFC 6052)"
    )
    eam: Annotated[tuple[EamEntry, ...], OfRecipe(), TRANSLATORS] = Field(
        (), description="explicit address mappings (RFC 7757)"
    )
    dont_fragment_rule: Annotated[Literal["rfc7915", "rfc6145"] | None, OfRecipe(), TRANSLATORS] = Field(
        None,
        description="DF in the IPv4 packets that a translator makes: by RFC 7915 section 5.1 (default; 0 up to 1260"
        " octets, else 1) or RFC 6145 section 5.1 (always 1)",
    )
    lowest_ipv6_mtu: Annotated[Annotated[StrictInt, Field(ge=1280, le=65535)] | None, TRANSLATORS, WITH_GATEWAY] = (
        Field(
            None,
            description="lowest-ipv6-mtu that the translator is configured with, default 1280 (RFC 7915 section 4)",
        )
    )
    well_known_prefix_allowed: Annotated[StrictBool, TRANSLATORS, WITH_GATEWAY] = Field(
        False, description="the gateway translates non-global IPv4 addresses under 64:ff9b::/96 against RFC 6052"
    )
    inside: Annotated[SideName | None, OfRecipe(), STATEFUL] = Field(
        None, description="side of the Initiator (RFC 9693 section 4.1), default left"
    )
    pool: Annotated[tuple[IpPrefix, ...], OPEN, STATEFUL, WITH_GATEWAY] = Field(
        (),
        description="public addresses that connections are translated to; of a customer edge they follow from its rule",
    )
    pool_ports: Annotated[PortSpan | None, OPEN, STATEFUL, WITH_GATEWAY] = Field(
        None,
        description="ports of each public address that the gateway uses, default 1024-65535",
    )
    mapping: Annotated[Literal["endpoint_independent", "endpoint_dependent"] | None, OPEN, STATEFUL, WITH_GATEWAY] = (
        Field(
            None,
            description="how the gateway maps (RFC 4787 section 4.1), for the check of the port space; default:"
            " not known",
        )
    )
    zero_udp_checksum: Annotated[StrictBool | None, OPEN, TRANSLATORS] = Field(
        None,
        description="the translator writes UDP checksum 0x0000 where 0xffff is due (against RFC 768); such frames are"
        " then accepted and counted apart",
    )
    table: Annotated[GatewayTableModel, KeyByKey] = Field(
        GatewayTableModel(), description="its connection tracking table"
    )
    settings: dict[SettingName, SettingValue] = Field(
        {}, description="values of the settings that recipe or gateway.control name; made before the first trial"
    )
    cores: Annotated[StrictInt, Field(ge=1, le=65536)] | None = Field(
        None,
        description="number of cores that do its work; kind"
        f" {bed_kinds_where(lambda kind: kind.has_gateway and not kind.gateway_is_local)} only",
    )
    cores_set_by: CoresSetBy | None = Field(
        None, description="how it was given that number of cores, for the report; needs cores"
    )
    control: GatewayControlModel | None = Field(
        None,
        description=f"commands that control it; kind {bed_kinds_where(lambda kind: kind.takes_control)} only, but for"
        " limits, which a recipe's commands have as well",
    )
    telemetry: TelemetryModel | None = Field(
        None,
        description="what is sampled at its host beside each trial; default: CPUs, memory and connections for kind"
        f" {bed_kinds_where(lambda kind: kind.sees_host)}, else nothing",
    )
    name: str = Field("", description="name of the gateway for the report")
    version: str = Field("", description="version of the gateway for the report")
    configuration: str = Field("", description="configuration of the gateway for the report (RFC 2544 section 7)")


class KnownGateway(GatewayModel):
    """The gateway of a complete campaign, and that of a recipe."""

    technology: Annotated[TechnologyName, OfRecipe()]


class TestbedModel(Table):
    """Where the gateway is."""

    __test__ = False

    kind: BedKindName = Field(description="network namespaces, two ports, or no gateway")
    recipe: Annotated[str | None, WITH_RECIPE] = Field(
        None,
        min_length=1,
        description="name or path of the gateway's recipe",
    )
    kernel: Annotated[str, WITH_KERNELS] = Field(
        "host",
        min_length=1,
        description="kernel of the gateway: this machine's (`host`), the newest that `gatemark kernel build` built"
        " (`uml`), or the path of a User-Mode Linux kernel",
    )
    cores: tuple[Annotated[StrictInt, Field(ge=0)], ...] = Field((), description="CPUs of the Tester's workers")
    huge_pages: Literal["auto", "never"] = Field("auto", description="use huge pages where there are any")
    gateway_cores: Annotated[tuple[Annotated[StrictInt, Field(ge=0)], ...], LOCAL] = Field(
        (), description="CPUs of the gateway"
    )


HostMacs = Literal["fixed", "random"]
UdpChecksum = Literal["computed", "zero"]


class HostsModel(Table):
    """Which hosts are emulated: the two octets at `offset` take the values of `range`."""

    offset: Annotated[StrictInt, Field(ge=0, le=14)] | None = Field(
        None, description="first of the two octets that vary, counted from 0; at most 2 for IPv4 and 14 for IPv6"
    )
    mode: Variation = Field("fixed", description="how the two octets vary from frame to frame")
    range: HostSpan | None = Field(None, description="values of the two octets as one 16-bit number, inclusive")


class Ipv4Model(Table):
    """IPv4 on one side."""

    address: Ipv4 = Field(description="the Tester's own host, and the pattern of all emulated hosts")
    gateway: Annotated[Ipv4 | None, GIVEN] = Field(None, description="the gateway's address on this side")
    router: Ipv4 | None = Field(None, description="router before the hosts; only with address_mode nexthop")
    hosts: HostsModel = Field(HostsModel(), description="emulated hosts")


class Ipv6Model(Table):
    """IPv6 on one side."""

    address: Ipv6 = Field(description="the Tester's own host, and the pattern of all emulated hosts")
    gateway: Annotated[Ipv6 | None, GIVEN] = Field(None, description="the gateway's address on this side")
    router: Ipv6 | None = Field(None, description="router before the hosts; only with address_mode nexthop")
    hosts: HostsModel = Field(HostsModel(), description="emulated hosts")


_Mtu = Annotated[StrictInt, Field(ge=576, le=9216 + 20)]


class SideModel(Table):
    """One port of the Tester and the hosts behind it."""

    port: str | None = Field(None, min_length=1, description="port by its short name, for example pci:0000:01:00.0")
    ipv4: Annotated[Ipv4Model | None, KeyByKey] = Field(None, description="IPv4 hosts of this side")
    ipv6: Annotated[Ipv6Model | None, KeyByKey] = Field(None, description="IPv6 hosts of this side")
    address_mode: Literal["onlink", "nexthop"] = Field(
        "onlink", description="hosts are neighbours of the gateway, or lie behind one router (RFC 2544 C.2.2.2)"
    )
    host_macs: HostMacs = Field(
        "fixed",
        description="every emulated host has the port's MAC address, or each has one of its own (RFC 4814 section 4.2)",
    )
    gateway_mac: Annotated[MacAddress | None, WITH_GATEWAY] = Field(
        None, description="static address of the gateway in place of ARP and NDP"
    )
    vlan: Annotated[StrictInt, Field(ge=1, le=4094)] | None = Field(None, description="IEEE 802.1Q VLAN identifier")
    queues: Annotated[StrictInt, Field(ge=1, le=64)] | None = Field(
        None, description="queues of the port, default one for each worker where the port spreads frames, else 1"
    )
    ring_frames: Annotated[StrictInt, Field(ge=32, le=65536)] = Field(
        defaults.RING_FRAMES, description="frames that a receive or transmit ring holds"
    )
    mtu: Annotated[_Mtu | None, OfRecipe(words="sets", is_limit=True)] = Field(
        None, description="largest IP packet on this side in octets, default 1500 or what the recipe sets"
    )

    def family(self, family: Family) -> Ipv4Model | Ipv6Model | None:
        """Return the hosts of one family."""
        return self.ipv4 if family == "ipv4" else self.ipv6

    def link_address(self, family: Family) -> IPv4Address | IPv6Address | None:
        """Return the address that the gateway has as its neighbour: of the router before the hosts, else theirs."""
        model = self.family(family)
        if model is None:
            return None
        return model.router if self.address_mode == "nexthop" else model.address


def _within_limits(octets: int, info: ValidationInfo) -> int:
    family: Family | None = info.data.get("family")
    if family is None:  # has a problem itself
        return octets
    low, high = defaults.FRAME_OCTETS_IPV4 if family == "ipv4" else defaults.FRAME_OCTETS_IPV6
    if low <= octets <= high:
        return octets
    raise BadValueError(
        f"{octets} is not between {low} and {high}, the limits of an {FAMILY_WORDS[family]} frame",
        f"write a size of {low} to {high}: the smallest leaves 18 octets of UDP data (RFC 8219 section 5.1.1)",
    )


class FrameSizesModel(Table):
    """Frame sizes, named by the family that has them."""

    family: Family = Field(description="which side's frame the octets are; across translation the other is 20 off")
    octets: Annotated[tuple[Annotated[StrictInt, AfterValidator(_within_limits)], ...], AsList] = Field(
        min_length=1, description="frame sizes with FCS and without VLAN tag (RFC 8219 section 5.1.1)"
    )


class PortsModel(Table):
    """UDP ports (RFC 4814 section 4.5)."""

    mode: Variation = Field("pseudorandom", description="how the port varies from frame to frame")
    range: PortSpan = Field(description="ports, inclusive; one value for mode fixed")


class SourcePortsModel(PortsModel):
    """UDP source ports."""

    range: PortSpan = Field(Span(*defaults.SOURCE_PORTS), description="ports, inclusive; one value for mode fixed")


class DestinationPortsModel(PortsModel):
    """UDP destination ports."""

    range: PortSpan = Field(Span(*defaults.DESTINATION_PORTS), description="ports, inclusive; one value for mode fixed")


_OctetValue = Annotated[StrictInt, Field(ge=0, le=255)]
_HopLimit = Annotated[StrictInt, Field(ge=1, le=255)]
_Networks = Annotated[StrictInt, Field(ge=1, le=256)]


class DirectionTrafficModel(Table):
    """Traffic of one direction where it differs from the other."""

    source_ports: SourcePortsModel | None = Field(None, description="UDP source ports of this direction")
    destination_ports: DestinationPortsModel | None = Field(None, description="UDP destination ports of this direction")
    destination_networks: _Networks | None = Field(None, description="destination networks of this direction")
    hop_limit: _HopLimit | None = Field(None, description="hop limit or time to live as sent")
    traffic_class: _OctetValue | None = Field(None, description="traffic class or type of service as sent")
    dont_fragment: StrictBool | None = Field(None, description="DF of IPv4 frames as sent")
    udp_checksum: UdpChecksum | None = Field(None, description="UDP checksum of IPv4 frames as sent")


class TrafficModel(Table):
    """What is sent. Lists are swept: each combination is measured."""

    direction: Annotated[tuple[Direction, ...], AsList] = Field(
        ("bidirectional",), min_length=1, description="directions to be measured (RFC 8219 section 5.3)"
    )
    frame_sizes: FrameSizesModel | None = Field(
        None, description="frame sizes; by default those of RFC 8219 section 5.1.1 that the path carries whole"
    )
    mix: Annotated[tuple[MixValue, ...], AsList] = Field(
        (Mix(1, 1),), min_length=1, description="m of every n frames are foreground (RFC 8219 section 5.3)"
    )
    source_ports: SourcePortsModel = Field(SourcePortsModel(), description="UDP source ports")
    destination_ports: DestinationPortsModel = Field(DestinationPortsModel(), description="UDP destination ports")
    destination_networks: _Networks = Field(
        1, description="number of destination networks, the network of each frame drawn from them (RFC 2544 section 12)"
    )
    flow_interval_ns: PositiveDuration | None = Field(
        None,
        alias="flow_interval",
        description="network flows start so long after each other (RFC 8219 section 10.2.2); all together without it",
    )
    hop_limit: _HopLimit = Field(defaults.HOP_LIMIT, description="hop limit or time to live as sent")
    traffic_class: _OctetValue = Field(0, description="traffic class or type of service as sent")
    dont_fragment: StrictBool = Field(False, description="DF of IPv4 frames as sent")
    udp_checksum: UdpChecksum = Field(
        "computed", description="UDP checksum of IPv4 frames as sent; zero: they have none (RFC 768)"
    )
    forward: DirectionTrafficModel | None = Field(None, description="what is different from left to right")
    reverse: DirectionTrafficModel | None = Field(None, description="what is different from right to left")

    @property
    def has_foreground(self) -> bool:
        """Whether any mix holds foreground."""
        return any(mix.has_foreground for mix in self.mix)

    @property
    def has_background(self) -> bool:
        """Whether any mix holds native IPv6 background."""
        return any(mix.has_background for mix in self.mix)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionTraffic:
    """Traffic of one direction, everything decided."""

    source_ports: PortsModel
    destination_ports: PortsModel
    destination_networks: int
    hop_limit: int
    traffic_class: int
    dont_fragment: bool
    udp_checksum: UdpChecksum


class TrialModel(Table):
    """The phases of a trial (RFC 2544 section 23)."""

    duration_ns: PositiveDuration = Field(
        defaults.TRIAL_DURATION_NS, alias="duration", description="sending time (RFC 2544 section 24)"
    )
    settle_ns: Duration = Field(defaults.SETTLE_NS, alias="settle", description="wait before the learning frames")
    learn_ns: Duration = Field(defaults.LEARN_NS, alias="learn", description="wait after the learning frames")
    drain_ns: Duration = Field(defaults.DRAIN_NS, alias="drain", description="wait for residual frames")
    rest_ns: Duration = Field(defaults.REST_NS, alias="rest", description="wait before the next trial")

    @property
    def waits_ns(self) -> int:
        """Return all waits of a trial together."""
        return self.settle_ns + self.learn_ns + self.drain_ns + self.rest_ns


class ValidityModel(Table):
    """When a trial says nothing about the gateway: the Tester fell short, or others held up the gateway's host."""

    retries: Annotated[StrictInt, Field(ge=0, le=1000)] = Field(
        defaults.RETRIES, description="how often an invalid trial is repeated"
    )
    lateness_max_ns: PositiveDuration = Field(
        defaults.LATENESS_MAX_NS, alias="lateness_max", description="how late a frame may leave"
    )
    held_up_max_ns: Annotated[PositiveDuration | None, SEEN] = Field(
        None,
        alias="held_up_max",
        description="how long others may have the gateway's CPUs before its losses are suspect, default: until its"
        " queue is full",
    )
    suspect_retries: Annotated[StrictInt, Field(ge=0, le=1000), SEEN] = Field(
        defaults.SUSPECT_RETRIES, description="how often a trial is repeated whose failure is suspect"
    )


class LineModel(Table):
    """The medium."""

    rate: BitRate | None = Field(None, description="bit/s of the medium, default: what the port reports")


class ConnectionsModel(Table):
    """The connections of a stateful test (RFC 9693 section 4.1 to 4.4); stateful gateways only."""

    count: Annotated[tuple[Count, ...], AsList] = Field(
        (), description="numbers of connections; each is measured; not needed for the capacity"
    )
    source_ports: PortSpan = Field(
        Span(*defaults.CONNECTION_SOURCE_PORTS), description="source ports that the Initiator combines"
    )
    destination_ports: PortSpan | None = Field(
        None, description="destination ports that it combines; default: from 1 on as many as count needs"
    )
    order: Literal["increasing", "decreasing", "pseudorandom"] = Field(
        "pseudorandom", description="order in which four-tuples are enumerated (RFC 9693 section 4.2)"
    )
    send_order: Variation = Field(
        "pseudorandom", description="order in which the Initiator uses the connections in phase 2"
    )
    read_order: Variation = Field(
        "pseudorandom", description="order in which the Responder reads its state table (RFC 9693 section 4.10)"
    )
    rate: PhaseOneRate = Field(
        default_factory=lambda: Fraction(1, 2),
        description="connections/s of phase 1 before phase 2 and tear-down, or % of the establishment rate that the"
        " campaign measures",
    )
    timeout_ns: PositiveDuration = Field(
        defaults.PHASE_ONE_TIMEOUT_NS, alias="timeout", description="wait for the last frames of phase 1"
    )
    gap_ns: Duration = Field(defaults.PHASE_GAP_NS, alias="gap", description="wait between the phases")
    retries: Annotated[StrictInt, Field(ge=0, le=100)] = Field(
        defaults.PHASE_ONE_RETRIES, description="how often phase 1 is repeated; at half the rate if it lost connections"
    )
