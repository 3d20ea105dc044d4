"""The tables of a campaign file as frozen models: one class for each table, one attribute for each key.

Attributes carry their unit (`duration_ns`); the key in the file does not (`duration = "60s"`), because its value does.
A model checks each value alone; what several keys must satisfy together is in `gatemark.config.check`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, ValidationInfo

from gatemark.bed_kinds import BedKindName, BootOccasion, CoresSetBy
from gatemark.config import defaults
from gatemark.config.only import (
    BEHIND_ROUTER,
    BOOTED,
    BOOTING,
    BOOTING_THROUGHOUT,
    BY_PREFIX,
    CONSTANT_LOAD,
    CONTROLLED,
    CONTROLLED_BUT_LIMITS,
    ELSEWHERE,
    IN_A_ROW,
    IPV6_ALONE,
    LOCAL,
    NO_BOOT_IN_PLACE,
    NOT_EDGE,
    ON_LINK,
    SEEN,
    SIXRD,
    STATEFUL,
    STATELESS,
    TRANSLATORS,
    UDP,
    VARIED,
    WITH_GATEWAY,
    WITH_IPV4,
    WITH_IPV4_OUT,
    WITH_KERNELS,
    WITH_POOL,
    WITH_RECIPE,
    WITH_TRANSLATION,
    WITH_TUNNELS,
)
from gatemark.config.types import (
    AnyIp,
    AsList,
    BadValueError,
    BitRate,
    Count,
    Duration,
    FlowLabel,
    HostSpan,
    InterfaceName,
    IpPrefix,
    Ipv4,
    Ipv4Prefix,
    Ipv6,
    Ipv6Prefix,
    MacAddress,
    Mix,
    MixValue,
    OuterHopLimit,
    OuterTrafficClass,
    PhaseOneRate,
    PortSpan,
    PositiveDuration,
    ProcessName,
    Readings,
    SettingName,
    SettingValue,
    Span,
    SshHost,
    TrafficClasses,
    TranslationPrefix,
    WholeSeconds,
)
from gatemark.facts import Direction, OneWay, Order, Variation
from gatemark.technology import FAMILY_WORDS, DontFragmentRule, EcnMode, Family, MappingKind, SideName, TechnologyName

ENDS: Mapping[OneWay, tuple[SideName, SideName]] = {"forward": ("left", "right"), "reverse": ("right", "left")}
"""Sender and receiver of each direction."""

GatewayAction = Literal[
    "clear_state", "count_connections", "tear_down", "set_table_size", "set_hash_size", "set_udp_timeout", "reset"
]
"""What gatemark can have a gateway do."""


class Table(BaseModel):
    """A table of the campaign file: frozen, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=False, validate_by_alias=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values. What was derived from the old ones and kept is derived again."""
        copy = super().model_copy(update=update, deep=deep)
        for name in copy.__dict__.keys() - type(self).model_fields.keys():
            del copy.__dict__[name]
        return copy


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SetByRecipe:
    """Rule of a field: the file's value, where the recipe has a command that sets it."""

    action: GatewayAction
    variable: str
    """What stands for the value in the command."""
    unit: int = 1
    """Of the value in the command."""
    goes_first: bool = False
    """Whether it is set before the others, which some gateways derive from it."""


class KeyByKey:
    """Rule of a table in a table: each of its keys has a rule of its own."""


OPEN = OfRecipe(may_be_open=True)
GIVEN = OfRecipe(words="gives the gateway")


class EamEntry(Table):
    """One explicit address mapping (RFC 7757 section 3)."""

    ipv4: Ipv4Prefix
    """IPv4 prefix of the mapping."""
    ipv6: Ipv6Prefix
    """IPv6 prefix that it is mapped to; it must have room for as many addresses (RFC 7757 section 3.2)."""


class GatewayTableModel(Table):
    """The connection tracking table of a stateful gateway (RFC 9693 section 4.4)."""

    size: Annotated[Count | None, SetByRecipe(action="set_table_size", variable="size"), STATEFUL, WITH_GATEWAY] = None
    """Connections that the table is configured to hold; fewer than `connections.count` is an error. Default: the
    recipe's."""
    hash_size: Annotated[
        Count | None, SetByRecipe(action="set_hash_size", variable="size", goes_first=True), STATEFUL, WITH_GATEWAY
    ] = None
    """Buckets of its hash table. Default: the recipe's."""
    udp_timeout_ns: Annotated[
        WholeSeconds | None,
        SetByRecipe(action="set_udp_timeout", variable="seconds", unit=defaults.SECOND_NS),
        STATEFUL,
        WITH_GATEWAY,
    ] = Field(None, alias="udp_timeout")
    """Whole seconds without frames after which a UDP connection is deleted. They must be longer than both phases with
    their waits and 2 s (RFC 9693 section 4.4). Default: the recipe's."""


TABLE_SETTINGS: Mapping[str, SetByRecipe] = {
    name: rule
    for name, field in GatewayTableModel.model_fields.items()
    for rule in field.metadata
    if isinstance(rule, SetByRecipe)
}
"""What commands can set of the table, by the attribute that has the value."""


class SettingModel(Table):
    """One setting of the gateway that the user named: its value is that of `gateway.settings`."""

    apply: Annotated[tuple[str, ...], AsList] = Field(min_length=1)
    """Gives the setting its value, written as `{value}`. Write no quotes around it: the shell gets it as one
    word, whatever is in it."""
    read: str | None = None
    """Prints the value and nothing else. Texts are compared without blanks around them, whole numbers as numbers.
    Without it the report says that the value was not read back."""
    at_boot: Annotated[StrictBool, BOOTED, BOOTING] = False
    """Takes effect with the next boot: `apply` runs before each boot, `read` after it. `maxcpus=` on the kernel's
    command line for example."""


LimitName = Literal[
    "clear_state", "count_connections", "tear_down", "set", "reset", "setup", "start", "stop", "health", "describe",
    "boot",
]  # fmt: skip
"""What has a time limit of its own."""


class LimitsModel(Table):
    """How long each command of `gateway.control` or of a recipe may take."""

    clear_state_ns: PositiveDuration = Field(defaults.DELETION_LIMIT_NS, alias="clear_state")
    """To delete all connections: hundreds of millions take a quarter of an hour and more."""
    count_connections_ns: PositiveDuration = Field(defaults.COMMAND_LIMIT_NS, alias="count_connections")
    """To count them."""
    tear_down_ns: PositiveDuration = Field(defaults.DELETION_LIMIT_NS, alias="tear_down")
    """To delete them while that is timed."""
    set_ns: PositiveDuration = Field(defaults.COMMAND_LIMIT_NS, alias="set")
    """Each command that makes a setting or reads it; those of the table as well."""
    reset_ns: PositiveDuration = Field(defaults.START_LIMIT_NS, alias="reset")
    """Each command of `reset`; the gateway may be a machine that boots."""
    setup_ns: Annotated[PositiveDuration, WITH_RECIPE] = Field(defaults.COMMAND_LIMIT_NS, alias="setup")
    """Each command of `setup`."""
    start_ns: PositiveDuration = Field(defaults.START_LIMIT_NS, alias="start")
    """Each command of `start`, and once more until the gateway is healthy. The daemons of a recipe have 5 s until they
    are healthy, or as long as `start` says if this table is there."""
    stop_ns: PositiveDuration = Field(defaults.COMMAND_LIMIT_NS, alias="stop")
    """Each command of `stop`."""
    health_ns: PositiveDuration = Field(defaults.COMMAND_LIMIT_NS, alias="health")
    """Each command of `health`."""
    describe_ns: PositiveDuration = Field(defaults.COMMAND_LIMIT_NS, alias="describe")
    """Each command of `describe`."""
    boot_ns: Annotated[PositiveDuration, BOOTED] = Field(defaults.BOOT_LIMIT_NS, alias="boot")
    """From the command that boots the host until it is another boot and healthy, and once more until both links are up
    and the gateway answers ARP or neighbour discovery."""

    def seconds(self, name: LimitName) -> float:
        """Return one limit in seconds."""
        nanoseconds: int = getattr(self, f"{name}_ns")
        return nanoseconds / defaults.SECOND_NS


class Commands(Table):
    """Commands that control a gateway, of a recipe or of `gateway.control`."""

    clear_state: Annotated[tuple[str, ...], AsList, STATEFUL, NO_BOOT_IN_PLACE] = ()
    """Deletes all connections, before each test phase 1; required."""
    count_connections: Annotated[str | None, STATEFUL] = None
    """Prints the number of connections; the last number of its output counts."""
    tear_down: Annotated[str | None, STATEFUL] = None
    """Deletes all connections and is timed where it runs. Required for `connection_tear_down_rate`."""
    set_table_size: Annotated[tuple[str, ...], AsList, STATEFUL] = ()
    """Sets the table to `{size}` connections."""
    set_hash_size: Annotated[tuple[str, ...], AsList, STATEFUL] = ()
    """Sets the hash table to `{size}` buckets."""
    set_udp_timeout: Annotated[tuple[str, ...], AsList, STATEFUL] = ()
    """Sets the UDP timeout to `{seconds}`."""
    read_table_size: Annotated[str | None, STATEFUL] = None
    """Prints how many connections the table can hold, which must be `gateway.table.size`. The last number of its output
    counts, as in the next two."""
    read_hash_size: Annotated[str | None, STATEFUL] = None
    """Prints the buckets of its hash table. Up to 1 % more than `gateway.table.hash_size` is not an error, because a
    kernel rounds up to whole pages of memory."""
    read_udp_timeout: Annotated[Readings | None, STATEFUL] = None
    """Prints the UDP timeout in seconds, which must be `gateway.table.udp_timeout`. Where the gateway has several
    timeouts, such as for connections with and without reply, a command for each by its name; all must be the same."""
    reset: Annotated[tuple[str, ...], AsList] = ()
    """Resets the gateway while the Tester sends. Required for the table `reset`."""
    start: Annotated[tuple[str, ...], AsList] = ()
    """Starts the gateway after it collapsed, unless `boot_after_collapse`."""
    stop: Annotated[tuple[str, ...], AsList] = ()
    """Stops it before it is started again; a failure is ignored."""
    health: Annotated[tuple[str, ...], AsList] = ()
    """Succeeds while the gateway works; asked after each trial."""
    settings: dict[SettingName, SettingModel] = Field({}, alias="set")
    """Settings that you name yourself, by the names to which `gateway.settings` gives values."""


class HostModel(Table):
    """A gateway's host: how commands reach it, and what they are that only ask."""

    host: SshHost | None = None
    """Where the commands run, reached by OpenSSH: `"root@192.0.2.1"`, or a name of `~/.ssh/config`. Default: this
    machine."""
    sudo: StrictBool = False
    """Run them as root by `sudo -n`, which must not ask for a password."""
    shell: str = Field("sh -s", min_length=1)
    """The POSIX shell, which reads a script from its standard input, on the host or on this machine: `"ip netns exec
    gateway sh -s"` for example."""
    describe: Annotated[tuple[str, ...], AsList] = ()
    """Prints versions and configuration for the report (RFC 2544 section 7)."""
    count_middle: Annotated[str | None, IN_A_ROW] = None
    """Prints how many frames of the traffic this gateway has handed to the link between both; the last number of its
    output counts. Packets of its own, such as neighbour discovery, must not be among them. Both hosts have such a
    command or none."""
    outer_interface: Annotated[InterfaceName | None, IN_A_ROW] = None
    """Its interface to the Tester. tcpdump captures there in the short trial that finds out which of both gateways
    damages frames. Name `outer_interface` of both hosts and `gateway.control.middle_interface`, or none."""

    @property
    def words(self) -> list[str]:
        """Return the words that start the shell, wherever it is. Raises ValueError if they cannot be split."""
        return [*(("sudo", "-n") if self.sudo else ()), *shlex.split(self.shell)]


class OtherHostModel(HostModel):
    """The host of the other gateway of a row: asked and watched, never changed."""

    health: Annotated[tuple[str, ...], AsList] = ()
    """Succeeds while the gateway works; asked after each trial."""


class GatewayControlModel(HostModel, Commands):
    """Commands that control a gateway that somebody else set up."""

    middle_interface: Annotated[InterfaceName | None, IN_A_ROW] = None
    """Its interface to the other gateway, for captures as at `outer_interface`."""
    commands: Annotated[tuple[str, ...], AsList] = ()
    """Files with more keys of this table. Values in the campaign file itself take precedence."""
    boot: BootOccasion = "never"
    """When the host is booted. `column`: before the first trial of each session. `repetition`: before each further
    repetition as well. `trial`: before each trial; the boot then also empties the table, before each test phase 1, in
    place of `clear_state`."""
    boot_after_collapse: Annotated[StrictBool, BOOTING_THROUGHOUT] = False
    """Boot the host also when the gateway stopped working in a trial, and continue the campaign. Needs `health`."""
    reboot: Annotated[tuple[str, ...], AsList, BOOTING] = ()
    """Boots the host, from there; it may take its connection with it."""
    power_cycle: Annotated[tuple[str, ...], AsList, BOOTING] = ()
    """Boots the host, from this machine: by IPMI or a power distribution unit for example."""
    boot_id: Annotated[str | None, BOOTING] = None
    """Prints a value on the host that changes with each boot. Required without `host`. Default: `boot_id` of Linux,
    `kern.boottime` of a BSD."""
    after_boot: Annotated[tuple[str, ...], AsList, BOOTING] = ()
    """Run after each boot, before the settings: what a boot forgets."""
    limits: Annotated[LimitsModel, WITH_GATEWAY] = LimitsModel()
    """How long each command may take."""


class TelemetryModel(Table):
    """What is sampled at the gateway's host beside each trial, by a program that runs there."""

    enabled: StrictBool = True
    """Whether the host is sampled."""
    interval_ns: PositiveDuration = Field(defaults.TELEMETRY_INTERVAL_NS, alias="interval")
    """Time from one sample to the next, 0.1 s to 60 s. Each sample costs the host about a millisecond of CPU time. A
    share counts for the sending time only if both of its samples lie in it, so a trial should be some intervals
    long."""
    cpus: Annotated[tuple[Annotated[StrictInt, Field(ge=0)], ...], ELSEWHERE] = ()
    """CPUs of its host that do its work. Required where commands run on this machine, where the Tester also works.
    Kind `netns` takes those of `testbed.gateway_cores`. Default: all."""
    processes: Annotated[tuple[ProcessName, ...], AsList] = ()
    """Names of processes whose memory and CPU time are sampled, all of one name together. A name has at most 15
    characters, as the kernel keeps it (`ps -o comm`). Linux only."""
    commands: dict[SettingName, str] = {}
    """Commands of your own by name, each of which prints one number: `{entries = "conntrack -C"}` for example. They run
    with each sample, for 5 s at most; their time is part of its cost."""
    required: StrictBool = False
    """A trial without samples is invalid, and repeated like any other that is. Otherwise the report says why there are
    none."""


_HopLimitDecrement = Annotated[StrictInt, Field(ge=0, le=254)]


class TunnelModel(Table):
    """The tunnels of a gateway: packets inside others (RFC 2473)."""

    address: Annotated[AnyIp | None, NOT_EDGE] = None
    """The gateway's end of all tunnels, such as the BR address of MAP-E (RFC 7597 section 8) or an AFTR's; of 6rd an
    IPv4 address; of a B4 its own. No host has it. Required."""
    hop_limit: OuterHopLimit = "any"
    """Hop limit with which an outer header leaves the gateway, as it arrives at the Tester; no RFC has a value."""
    traffic_class: OuterTrafficClass = "copied"
    """Traffic class of an outer header, in both directions: that of the packet inside, as DS-Lite has it (RFC
    6333 section 7.1), or always the same octet (RFC 2473 section 6.4)."""
    ecn: EcnMode | None = None
    """What the congestion field of an outer header is, the last two bits of its traffic class, in both directions.
    `"normal"`: that of the packet inside (RFC 6040 section 4.1). `"compatibility"`: 0, *not capable* (the same).
    `"full_functionality"`: that of the packet, but *capable* where that has experienced congestion (RFC 3168 section
    9.1.1), as Linux writes it, also where the rest of its traffic class is fixed. Default: as `traffic_class` says."""
    prefix: Annotated[Ipv6Prefix | None, SIXRD] = None
    """What the prefixes of all customer edges begin with (RFC 5969 section 4). Required."""
    ipv4_mask_length: Annotated[Annotated[StrictInt, Field(ge=0, le=24)] | None, SIXRD] = None
    """Bits at the begin of an edge's IPv4 address that are not in its prefix, as all edges have the same
    (RFC 5969 section 4). Default: 0."""

    @property
    def masked_bits(self) -> int:
        """Return how many bits of a 6rd edge's IPv4 address are not in its prefix."""
        return self.ipv4_mask_length or 0

    def outer_class(self, octet: int) -> int:
        """Return the traffic class of the outer header of a packet with this class."""
        whole, field = octet if self.traffic_class == "copied" else self.traffic_class, octet & 3
        if self.ecn is None:
            return whole
        if self.ecn == "full_functionality" and field == 3:
            field = 2
        return whole & 0xFC | (0 if self.ecn == "compatibility" else field)

    @property
    def made_hop_limit(self) -> int:
        """Return the hop limit of outer headers that a gateway gets which gatemark makes."""
        return defaults.TUNNEL_HOP_LIMIT if self.hop_limit == "any" else self.hop_limit


class GatewayModel(Table):
    """What the gateway does to a frame."""

    technology: Annotated[TechnologyName | None, OfRecipe()] = None
    """What it does, and the families on its left and on its right. Default: the recipe's; else required."""
    hop_limit_decrement: Annotated[_HopLimitDecrement | None, OfRecipe(), WITH_GATEWAY] = None
    """By how much hop limit or time to live comes out lower. Default: the recipe's, else 1 for each gateway."""
    background_hop_limit_decrement: Annotated[_HopLimitDecrement | None, OPEN] = None
    """The same for native IPv6 background, which is only forwarded. Default: 1 for each translator
    and end of a tunnel, else that of the foreground."""
    prefix: Annotated[TranslationPrefix | None, OfRecipe(), BY_PREFIX] = None
    """Translation prefix (RFC 6052). Its length is 32, 40, 48, 56, 64 or 96, and its bits 64 to 71 are zero."""
    eam: Annotated[tuple[EamEntry, ...], OfRecipe(), BY_PREFIX] = ()
    """Explicit address mappings (RFC 7757)."""
    dont_fragment_rule: Annotated[DontFragmentRule | None, OfRecipe(), WITH_IPV4_OUT] = None
    """DF in the IPv4 packets that a translator makes. `rfc7915`: 0 up to 1260 octets, else 1 (RFC 7915 section 5.1).
    `rfc6145`: always 1 (RFC 6145 section 5.1). Default: `"rfc7915"` for a translator. From IPv4 to IPv4 DF stays as it
    is, unless two translators in a row make it (RFC 6877), whose default is that of one."""
    reverse_dont_fragment_rule: Annotated[DontFragmentRule | None, OfRecipe(), IN_A_ROW] = None
    """The same of two translators in a row for packets towards the customer, which the customer's own makes. Default:
    `dont_fragment_rule`."""
    lowest_ipv6_mtu: Annotated[
        Annotated[StrictInt, Field(ge=1280, le=65535)] | None, WITH_TRANSLATION, WITH_GATEWAY
    ] = None
    """The translator's setting of that name: it fragments larger packets without DF (RFC 7915 section 4). Default:
    1280."""
    well_known_prefix_allowed: Annotated[StrictBool, TRANSLATORS, WITH_GATEWAY] = False
    """The gateway translates non-global IPv4 addresses under `64:ff9b::/96`, against RFC 6052 section 3.1."""
    inside: Annotated[SideName | None, OfRecipe(), STATEFUL] = None
    """Side of the Initiator (RFC 9693 section 4.1). Default: the recipe's, else `"left"`."""
    pool: Annotated[tuple[IpPrefix, ...], OPEN, WITH_POOL, WITH_GATEWAY] = ()
    """Public addresses that connections are translated to, of the outside's family. At most 2^40 in all; no host is
    among them. Default: the recipe's; else required."""
    pool_ports: Annotated[PortSpan | None, OPEN, STATEFUL, WITH_GATEWAY] = None
    """Ports of each public address that the gateway uses, for the check of the port space. For a customer edge: those
    ports of its set that are in this range; by default all but port 0. Default: the recipe's, else `"1024-65535"`."""
    mapping: Annotated[MappingKind | None, OPEN, STATEFUL, WITH_GATEWAY] = None
    """How the gateway maps (RFC 4787 section 4.1), for the check of the port space: each source endpoint needs a public
    port, or each of one destination does. The report shows the mapping observed. Default: the recipe's."""
    zero_udp_checksum: Annotated[StrictBool | None, OPEN, WITH_TRANSLATION] = None
    """The translator writes UDP checksum 0x0000 where 0xffff is due (against RFC 768). Exactly these frames count as
    correct; they are counted separately, and the report says so. Any 0x0000 counts as correct where 0xffff may be due
    in a packet inside the gateway: in the Initiator's direction of a stateful gateway, in the Responder's of a customer
    edge, in both of a NAT46, and from customer edges through a border relay. Default: the recipe's, else `false`."""
    middle_mtu: Annotated[Annotated[StrictInt, Field(ge=1280, le=65535)] | None, OfRecipe(), IN_A_ROW] = None
    """Largest IP packet of the link between two gateways in a row, octets. Default: the recipe's, else 1500."""
    tunnel: Annotated[TunnelModel | None, OfRecipe(), WITH_TUNNELS] = None
    """Its tunnels; required of gateways that have any."""
    table: Annotated[GatewayTableModel, KeyByKey] = GatewayTableModel()
    """Its connection tracking table."""
    settings: dict[SettingName, SettingValue] = {}
    """Values of settings that you name yourself. They are made before the first trial and read back. The recipe or
    `gateway.control` has their commands."""
    cores: Annotated[Annotated[StrictInt, Field(ge=1, le=65536)] | None, ELSEWHERE] = None
    """Number of cores that do its work, for tables and plots. `testbed.gateway_cores` names those of a namespace."""
    cores_set_by: CoresSetBy | None = None
    """How it was given that number: by `maxcpus=` and a boot, by taking CPUs offline, or by binding its work to them.
    With the first two, the host that `gateway.control.host` names must have that many CPUs online."""
    control: Annotated[GatewayControlModel | None, CONTROLLED_BUT_LIMITS] = None
    """Commands that control it: of two gateways in a row, the one that keeps the connections."""
    other_host: Annotated[OtherHostModel | None, IN_A_ROW, CONTROLLED] = None
    """The host of the other one of two gateways in a row."""
    telemetry: Annotated[TelemetryModel | None, WITH_GATEWAY] = None
    """What is sampled at its host beside each trial. Default: CPUs, memory and connections each second for kind
    `netns`, else nothing."""
    name: str = ""
    """Name of the gateway for the report; a recipe describes itself."""
    version: str = ""
    """Its version for the report."""
    configuration: str = ""
    """Its configuration for the report (RFC 2544 section 7)."""

    @property
    def initiator(self) -> SideName:
        """Return the side of the Initiator."""
        return self.inside or "left"

    @property
    def public_ports(self) -> Span:
        """Return the ports of each public address that it uses; a customer edge has those of its set among them."""
        return self.pool_ports or Span(*defaults.POOL_PORTS)

    @property
    def made_dont_fragment(self) -> DontFragmentRule:
        """Return what it makes of DF where it translates."""
        return self.dont_fragment_rule or "rfc7915"


class KnownGateway(GatewayModel):
    """The gateway of a complete campaign, and that of a recipe."""

    technology: Annotated[TechnologyName, OfRecipe()]


class TestbedModel(Table):
    """Where the gateway is."""

    __test__ = False

    kind: BedKindName
    """`netns`: a gateway in network namespaces of this machine. `ports`: between two ports of this machine. `loopback`:
    no gateway, to test the Tester."""
    recipe: Annotated[str | None, WITH_RECIPE] = Field(None, min_length=1)
    """Name of a built-in recipe, or path of a recipe from the folder of the campaign file; required."""
    kernel: Annotated[str, WITH_KERNELS] = Field("host", min_length=1)
    """Kernel of the gateway. `host`: this machine's, or, where it lacks a module that the recipe needs, the one of
    `uml`. `uml`: the newest that `gatemark kernel build` built. A path: a User-Mode Linux kernel of your own."""
    cores: tuple[Annotated[StrictInt, Field(ge=0)], ...] = ()
    """Cores of the Tester's workers. Default: chosen by gatemark."""
    huge_pages: Literal["auto", "never"] = "auto"
    """Whether huge pages are used where there are any."""
    gateway_cores: Annotated[tuple[Annotated[StrictInt, Field(ge=0)], ...], LOCAL] = ()
    """Cores of the gateway. Default: all others."""


HostMacs = Literal["fixed", "random"]
UdpChecksum = Literal["computed", "zero"]
ExtensionHeader = Literal["hop_by_hop", "destination_options", "routing", "fragment"]
"""RFC 8200 section 4."""


class HostsModel(Table):
    """Which hosts are emulated: the two octets at `offset` take the values of `range`."""

    offset: Annotated[Annotated[StrictInt, Field(ge=0, le=14)] | None, VARIED] = None
    """First of the two octets, counted from 0; at most 2 for IPv4 and 14 for IPv6. Required unless `fixed`."""
    mode: Variation = "fixed"
    """How they vary; `fixed` takes the address as it stands."""
    range: Annotated[HostSpan | None, VARIED] = None
    """Values of the two octets as one 16-bit number, both ends included. Required unless `fixed`."""


_Address = TypeVar("_Address", bound=IPv4Address | IPv6Address)


class _FamilyModel(Table, Generic[_Address]):
    """One family on one side."""

    address: _Address
    """The Tester's own host, and the pattern of all emulated hosts."""
    gateway: Annotated[_Address | None, GIVEN] = None
    """The gateway's address on this side. Default: the recipe's; else required unless `gateway_mac` is set."""
    router: Annotated[_Address | None, BEHIND_ROUTER] = None
    """Router before the hosts, for which the Tester answers; required."""
    hosts: HostsModel = HostsModel()
    """Emulated hosts. Default: one host."""


class Ipv4Model(_FamilyModel[Ipv4]):
    """IPv4 on one side."""


class Ipv6Model(_FamilyModel[Ipv6]):
    """IPv6 on one side."""


FamilyModel = Ipv4Model | Ipv6Model


class B4Model(Table):
    """The hosts behind each B4 of an AFTR (RFC 6333 section 5). The B4s are the IPv6 hosts of the inside."""

    address: Ipv4 = defaults.B4_HOST
    """The host behind each B4, and the pattern of all of them: a private address (RFC 1918) or one of `192.0.0.0/29`
    (RFC 6333 section 5.7). It is the same behind all B4s."""
    hosts: HostsModel = HostsModel()
    """Hosts behind each B4. Default: one."""


_Mtu = Annotated[StrictInt, Field(ge=576, le=9216 + 20)]


class SideModel(Table):
    """One port of the Tester and the hosts behind it."""

    port: str | None = Field(None, min_length=1)
    """The port by its short name, such as `pci:0000:01:00.0`. Required for `ports`; `"ring"` for `loopback`."""
    ipv4: Annotated[Ipv4Model | None, KeyByKey] = None
    """IPv4 hosts of this side; of a B4 those on the right are behind the AFTR, and have no `gateway`."""
    ipv6: Annotated[Ipv6Model | None, KeyByKey] = None
    """IPv6 hosts of this side; both sides need them for background traffic. On the right of a B4 `address` is its
    AFTR."""
    address_mode: Literal["onlink", "nexthop"] = "onlink"
    """`onlink`: every host is a neighbour of the gateway. `nexthop`: all lie behind one router (RFC 2544 appendix
    C.2.2.2)."""
    host_macs: Annotated[HostMacs, ON_LINK] = "fixed"
    """`fixed`: every emulated host has the MAC address of the port. `random`: each has one of its own (RFC 4814 section
    4.2)."""
    gateway_mac: Annotated[MacAddress | None, WITH_GATEWAY] = None
    """The gateway's address on this side, which then needs no ARP or neighbour discovery."""
    vlan: Annotated[StrictInt, Field(ge=1, le=4094)] | None = None
    """IEEE 802.1Q VLAN identifier of every frame on this side."""
    queues: Annotated[StrictInt, Field(ge=1, le=64)] | None = None
    """Queues of the port, each with a sender and a receiver. Default: chosen by gatemark."""
    ring_frames: Annotated[StrictInt, Field(ge=32, le=65536)] = defaults.RING_FRAMES
    """Frames that a receive or transmit ring holds."""
    mtu: Annotated[_Mtu | None, OfRecipe(words="sets", is_limit=True)] = None
    """Largest IP packet on this side, octets. Default: the recipe's, else 1500."""

    def family(self, family: Family) -> FamilyModel | None:
        """Return the hosts of one family."""
        return self.ipv4 if family == "ipv4" else self.ipv6

    @property
    def families(self) -> Mapping[Family, FamilyModel]:
        """Return the hosts of each family that the side has."""
        return {family: model for family in FAMILY_WORDS if (model := self.family(family)) is not None}

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

    family: Family
    """Which family's frame `octets` are; across translation the other is 20 octets off."""
    octets: Annotated[tuple[Annotated[StrictInt, AfterValidator(_within_limits)], ...], AsList] = Field(min_length=1)
    """Frame sizes with FCS and without VLAN tag, 64 to 9216 of IPv4 or 84 to 9236 of IPv6 (RFC 8219 section 5.1.1)."""


class PortsModel(Table):
    """UDP ports (RFC 4814 section 4.5)."""

    mode: Variation = "pseudorandom"
    """How the port varies from frame to frame."""
    range: PortSpan
    """Ports, inclusive; one value for mode fixed."""


class SourcePortsModel(PortsModel):
    """UDP source ports."""

    range: PortSpan = Span(*defaults.SOURCE_PORTS)
    """Ports (RFC 4814 section 4.5); one port for `fixed`."""


class DestinationPortsModel(PortsModel):
    """UDP destination ports."""

    range: PortSpan = Span(*defaults.DESTINATION_PORTS)
    """Ports (RFC 4814 section 4.5); one port for `fixed`."""


_HopLimit = Annotated[StrictInt, Field(ge=1, le=255)]
_Networks = Annotated[StrictInt, Field(ge=1, le=256)]


class DirectionTrafficModel(Table):
    """Traffic of one direction where it differs from the other."""

    source_ports: SourcePortsModel | None = None
    """UDP source ports of this direction. Default: that of `traffic`."""
    destination_ports: DestinationPortsModel | None = None
    """UDP destination ports of this direction. Default: that of `traffic`."""
    destination_networks: Annotated[_Networks | None, STATELESS] = None
    """Destination networks of this direction: of the hosts on the right for `forward`, on the left for `reverse`.
    Default: that of `traffic`."""
    hop_limit: _HopLimit | None = None
    """Hop limit or time to live as sent. Default: that of `traffic`."""
    traffic_class: TrafficClasses | None = None
    """Traffic class or type of service as sent. Default: that of `traffic`."""
    dont_fragment: Annotated[StrictBool | None, WITH_IPV4] = None
    """DF of IPv4 frames as sent. Default: that of `traffic`."""
    udp_checksum: UdpChecksum | None = None
    """UDP checksum of IPv4 frames as sent. Default: that of `traffic`."""


class TrafficModel(Table):
    """What is sent. Lists of directions, sizes and shares are swept: each combination is measured."""

    direction: Annotated[tuple[Direction, ...], AsList] = Field(("bidirectional",), min_length=1)
    """Directions to be measured (RFC 2544 section 14, RFC 8219 section 5.3)."""
    frame_sizes: FrameSizesModel | None = None
    """Frame sizes to be measured. Default: the sizes of RFC 8219 section 5.1.1 that the MTUs carry."""
    mix: Annotated[tuple[MixValue, ...], AsList] = Field((Mix(1, 1),), min_length=1)
    """Frame i is foreground if and only if i mod n < m (RFC 8219 section 5.3); the others are native IPv6. `"0/1"` is
    background only."""
    source_ports: SourcePortsModel = SourcePortsModel()
    """UDP source ports; of a stateful gateway those of background only."""
    destination_ports: DestinationPortsModel = DestinationPortsModel()
    """UDP destination ports; of a stateful gateway those of background only."""
    destination_networks: Annotated[_Networks, STATELESS] = 1
    """n above 1 draws the destination network of each frame: the third octet of IPv4, or bits 56 to 63 of IPv6, are 0
    to n - 1 (RFC 2544 section 12 has 256). Not towards customer edges."""
    flow_interval_ns: Annotated[PositiveDuration | None, CONSTANT_LOAD] = Field(None, alias="flow_interval")
    """Network flows start so long after each other (RFC 8219 section 10.2.2), without background. Default: all start
    together."""
    hop_limit: _HopLimit = defaults.HOP_LIMIT
    """Hop limit or time to live as sent (RFC 2544 appendix C.2.6.4)."""
    traffic_class: TrafficClasses = (0,)
    """Traffic class or type of service as sent (RFC 2474). `{by_flow = [...]}` draws one of these for each flow."""
    flow_label: FlowLabel = 0
    """Flow label of IPv6 frames as sent. `by_flow` gives each flow one of its own, never 0 (RFC 6437 section 3)."""
    extension_headers: Annotated[tuple[ExtensionHeader, ...], AsList, IPV6_ALONE, UDP] = Field((), max_length=4)
    """Extension headers of all frames, in this order (RFC 5180 section 5.3)."""
    trailer_octets: Annotated[StrictInt, Field(ge=0, le=defaults.TRAILER_OCTETS_MAX), UDP] = 0
    """Octets at the end of all frames that are behind the IP packet and no part of it (RFC 894, RFC 2464 section 3)."""
    dont_fragment: Annotated[StrictBool, WITH_IPV4] = False
    """DF of IPv4 frames as sent."""
    udp_checksum: UdpChecksum = "computed"
    """UDP checksum of IPv4 frames as sent. `zero`: they have none (RFC 768). Background is IPv6 and always has one."""
    forward: DirectionTrafficModel | None = None
    """Differences from left to right."""
    reverse: DirectionTrafficModel | None = None
    """Differences from right to left."""

    @property
    def has_foreground(self) -> bool:
        """Whether any mix holds foreground."""
        return any(mix.has_foreground for mix in self.mix)

    @property
    def has_background(self) -> bool:
        """Whether any mix holds native IPv6 background."""
        return any(mix.has_background for mix in self.mix)


class TrialModel(Table):
    """The phases of a trial (RFC 2544 section 23)."""

    duration_ns: PositiveDuration = Field(defaults.TRIAL_DURATION_NS, alias="duration")
    """Sending time (RFC 2544 section 24)."""
    settle_ns: Duration = Field(defaults.SETTLE_NS, alias="settle")
    """Wait before the learning frames."""
    learn_ns: Duration = Field(defaults.LEARN_NS, alias="learn")
    """Wait after the learning frames."""
    drain_ns: Duration = Field(defaults.DRAIN_NS, alias="drain")
    """Wait for residual frames."""
    rest_ns: Duration = Field(defaults.REST_NS, alias="rest")
    """Wait before the next trial."""

    @property
    def waits_ns(self) -> int:
        """Return all waits of a trial together."""
        return self.settle_ns + self.learn_ns + self.drain_ns + self.rest_ns


class ValidityModel(Table):
    """When a trial says nothing about the gateway: the Tester fell short, or other work held up the gateway's host."""

    retries: Annotated[StrictInt, Field(ge=0, le=1000)] = defaults.RETRIES
    """How often an invalid trial is repeated before the load counts as Tester-limited; more often where such trials end
    early."""
    lateness_max_ns: PositiveDuration = Field(defaults.LATENESS_MAX_NS, alias="lateness_max")
    """How late a frame may leave, and how long one that has arrived may wait for a worker that is held up."""
    held_up_max_ns: Annotated[PositiveDuration | None, SEEN] = Field(None, alias="held_up_max")
    """How long others may have the gateway's CPUs before a failure that this can explain is suspect: in all of a trial,
    or at a time where it is made again and its host watched.
    Default: the time in which the gateway's smallest queue fills at the load of the trial."""
    suspect_retries: Annotated[StrictInt, Field(ge=0, le=1000)] = defaults.SUSPECT_RETRIES
    """How often a trial with a suspect failure is repeated before its load is left undecided."""


class LineModel(Table):
    """The medium."""

    rate: BitRate | None = None
    """Rate of the medium, for `%` and for the theoretical maximum. Default: what the port of a network card reports;
    none for veth pairs and rings."""


class ConnectionsModel(Table):
    """The connections of a stateful test (RFC 9693 section 4.1 to 4.4)."""

    count: Annotated[tuple[Count, ...], AsList] = ()
    """Numbers of connections N, each of which is measured. Required unless only the capacity is."""
    source_ports: PortSpan = Span(*defaults.CONNECTION_SOURCE_PORTS)
    """Source ports that the Initiator combines: a few times 10,000 (RFC 9693 section 4.1)."""
    destination_ports: PortSpan | None = None
    """Destination ports that it combines. Default: from 1 on as many as N needs."""
    order: Order = "pseudorandom"
    """Order in which connections are established (RFC 9693 section 4.2)."""
    send_order: Variation = "pseudorandom"
    """Order in which the Initiator uses the connections in phase 2. `pseudorandom` draws them, so one may come again
    before another has come (RFC 4814 section 4.5)."""
    read_order: Variation = "pseudorandom"
    """Order in which the Responder reads its state table in phase 2 (RFC 9693 section 4.10)."""
    rate: PhaseOneRate = Field(default_factory=lambda: Fraction(1, 2))
    """Rate of test phase 1 before phase 2 and tear-down, in connections/s. A share is of the lowest establishment rate
    that the same campaign measured with as many connections; a rate above that one is refused."""
    timeout_ns: PositiveDuration = Field(defaults.PHASE_ONE_TIMEOUT_NS, alias="timeout")
    """Wait for the last frames of test phase 1."""
    gap_ns: Duration = Field(defaults.PHASE_GAP_NS, alias="gap")
    """Wait before test phase 2 and before the validation."""
    retries: Annotated[StrictInt, Field(ge=0, le=100)] = defaults.PHASE_ONE_RETRIES
    """How often test phase 1 is repeated before phase 2 or tear-down, at half the rate if connections were lost."""
