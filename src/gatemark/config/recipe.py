"""What a recipe says: a gateway in the tables of a campaign file, and which commands set it up. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gatemark.config import defaults
from gatemark.config.b4_gateway import B4GatewayModel, made_aftr
from gatemark.config.map_gateway import made_edge, made_relay
from gatemark.config.map_tables import MapGatewayModel, MapModel
from gatemark.config.only import WITH_B4S, WITH_RULES
from gatemark.config.reserved import Network
from gatemark.config.tables import B4Model, Commands, GatewayAction, KnownGateway, SideModel
from gatemark.config.types import AsList, PositiveDuration
from gatemark.config.views import Edges, Roles, TunnelEnd
from gatemark.technology import TECHNOLOGIES, Family, SideName, Technology, keeper_among

FACT_VARIABLES = ("prefix", "pool", "pool_ports")
"""Names in braces that stand for keys of the recipe, so that the gateway is what the recipe says."""

MAP_VARIABLES = ("map_tayga", "map_nftables", "map_routes")
"""The same where the recipe has a `map_gateway`: what is made of the campaign's rules (`GatewayFiles`); without tunnels
also of tayga."""

B4_VARIABLES = ("b4_nftables", "b4_routes")
"""The same where the recipe has a `b4_gateway`: what is made of the campaign's B4s."""

RELAY_VARIABLE, SUBSCRIBER_VARIABLE = "relay", "subscriber"
"""The same where the gateway is a subscriber: the Tester's end of its tunnel, and the gateway's own."""

OF_ONE_GATEWAY = ("setup", "start", "stop", "reset", "version", "configuration", "health")
"""Commands of a recipe that are run for its gateway alone. Which of two in a row a reset would be of is open."""

MACHINE_VARIABLES: dict[str, GatewayAction] = {"{table_size}": "set_table_size", "{hash_size}": "set_hash_size"}
"""What stands for these values in settings of the whole machine."""

NEXTHOP_PREFIX_LENGTHS: dict[Family, int] = {"ipv4": 24, "ipv6": 64}
"""Length of the link network between the gateway and the emulated router (RFC 2544 appendix C.2.2: /24)."""

MTU_MAX = 9236
"""Largest MTU that a campaign file can name, octets."""


def _network(text: str) -> str:
    return str(ipaddress.ip_network(text))


def _file_name(text: str) -> str:
    if not text or "/" in text or text in {".", ".."}:
        raise ValueError("write a file name without folders; files go to {dir}")
    return text


def _module_name(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*", text) is None:
        raise ValueError("write the name of a kernel module, such as nf_conntrack")
    return text


def _sysctl_name(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_{}-]*(\.[A-Za-z0-9_{}/-]+)+", text) is None:
        raise ValueError("write the name of a kernel setting with dots, such as net.ipv4.ip_forward")
    return text


class RecipeCommands(Commands):
    """Shell commands (`sh -eu`), run inside the gateway's namespace in the order written.

    Daemons of `start` are kept in the foreground and pinned to the gateway's cores; a reset ends them before and starts
    them after it (RFC 6201 section 4). `health` is awaited after `start`, and run again before each run.
    """

    setup: Annotated[tuple[str, ...], AsList] = ()
    """Run once, after the interfaces have their addresses."""
    version: Annotated[tuple[str, ...], AsList] = ()
    """Print the versions that the report must name (RFC 2544 section 7)."""
    configuration: Annotated[tuple[str, ...], AsList] = ()
    """Print configuration that the test bed does not know of."""


class RecipeSide(SideModel):
    """One side of the gateway: the Tester's side as in a campaign file, and the networks behind it."""

    networks: tuple[Annotated[str, AfterValidator(_network)], ...] = Field(min_length=1)
    """Networks that lie on this side; the gateway's address gets the prefix length of the one that holds it."""


def keeper_of(recipes: Sequence[Recipe]) -> int:
    """Return which of gateways in a row keeps the connections, from 0; the first where none does."""
    return keeper_among([recipe.technology for recipe in recipes])


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One gateway of a test bed: what it is, and what it sees on both sides."""

    recipe: Recipe
    sides: Mapping[str, SideModel]
    """What is there: the Tester, or another gateway."""
    edges: MapModel | None
    """The rules of customer edges and relays."""
    b4: B4Model
    """The hosts behind each B4."""


class Recipe(BaseModel):
    """A checked recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    description: str = Field(min_length=1)
    gateway: KnownGateway
    """What the gateway is; its keys stand at the top of the file. The Initiator is on the left."""
    left: RecipeSide
    right: RecipeSide
    map: Annotated[MapModel | None, WITH_RULES] = None
    """MAP-T: the domains of campaigns that have no table `map`."""
    map_gateway: Annotated[MapGatewayModel | None, WITH_RULES] = None
    """The gateway is made of the campaign's rules: MAP-T of tayga and nftables, MAP-E of the kernel and nftables."""
    b4_gateway: Annotated[B4GatewayModel | None, WITH_B4S] = None
    """The AFTR's tunnels are made of the campaign's B4s, of the kernel and nftables; its NAT is the recipe's own."""
    mtu: int = Field(default=defaults.MTU, ge=1280, le=MTU_MAX)
    """Largest IP packet on both links, octets; IPv6 needs 1280 (RFC 8200 section 5)."""
    start_limit_ns: PositiveDuration = Field(5 * defaults.SECOND_NS, alias="start_limit")
    """How long it may take from its start until its health commands succeed, where the campaign does not say it."""
    programs: dict[str, str] = Field(default_factory=dict)
    """Programs that the commands need, each with its Debian package."""
    modules: dict[Annotated[str, AfterValidator(_module_name)], str] = Field(default_factory=dict)
    """Kernel modules that it needs, each with the option of the kernel that builds it (`CONFIG_TUN`) or, where it does
    not come with the kernel, its Debian package. They are loaded before `setup`."""
    sysctl: dict[Annotated[str, AfterValidator(_sysctl_name)], str | int] = Field(default_factory=dict)
    """Kernel settings of the gateway's namespace, beyond or instead of those of the test bed."""
    host_sysctl: dict[Annotated[str, AfterValidator(_sysctl_name)], str | int] = Field(default_factory=dict)
    """Kernel settings that Linux keeps once for the whole machine; {table_size} and {hash_size} stand for those of the
    table. The values before are written back when the test bed is closed."""
    files: dict[Annotated[str, AfterValidator(_file_name)], str] = Field(default_factory=dict)
    """Files written to {dir} before `setup`, by name."""
    commands: RecipeCommands = Field(default_factory=RecipeCommands)

    @property
    def technology(self) -> Technology:
        """What the gateway does."""
        return TECHNOLOGIES[self.gateway.technology]

    @property
    def inside(self) -> SideName:
        """Side of the Initiator: left as written, right where the recipe is mirrored."""
        return self.gateway.initiator

    @property
    def roles(self) -> Roles:
        """Which side is which."""
        return Roles(technology=self.technology, inside=self.inside)

    @property
    def tables(self) -> Mapping[str, BaseModel | None]:
        """Return the tables of a campaign file that the recipe fills in, by name."""
        return {"gateway": self.gateway, "left": self.side("left"), "right": self.side("right"), "map": self.map}

    def side(self, name: SideName) -> SideModel:
        """Return one side with its MTU, without the networks behind it."""
        side = dict(self.left if name == "left" else self.right)
        stated = {key: side[key] for key in SideModel.model_fields}
        return SideModel.model_construct(**{**stated, "mtu": stated["mtu"] or self.mtu})

    @property
    def parts(self) -> tuple[Recipe, ...]:
        """Return the recipe of each gateway in a row, from the left: this one alone."""
        return (self,)

    def standings(
        self, sides: Mapping[str, SideModel], edges: MapModel | None = None, b4: B4Model | None = None
    ) -> tuple[Standing, ...]:
        """Return each gateway in a row, from the left: this one alone between the Tester's sides.

        `edges`: rules in place of those of the recipe; `b4`: hosts behind each B4.
        """
        return (Standing(recipe=self, sides=sides, edges=edges or self.map, b4=b4 or B4Model()),)

    @property
    def actions(self) -> frozenset[GatewayAction]:
        """What a campaign may have the gateway do: what the recipe has commands or settings for."""
        actions: tuple[GatewayAction, ...] = get_args(GatewayAction)
        return frozenset(action for action in actions if getattr(self.commands, action)) | self.set_by_machine

    @property
    def set_by_machine(self) -> frozenset[GatewayAction]:
        """What settings of the whole machine do."""
        settings = " ".join(str(value) for value in self.host_sysctl.values())
        return frozenset(action for variable, action in MACHINE_VARIABLES.items() if variable in settings)

    @property
    def texts(self) -> Iterator[tuple[str, str]]:
        """Files and commands in which variables stand, each with its key."""
        yield from ((f"files.{name}", text) for name, text in self.files.items())
        for action in OF_ONE_GATEWAY:
            yield from ((f"commands.{action}", line) for line in getattr(self.commands, action))

    @property
    def fact_variables(self) -> dict[str, str]:
        """What FACT_VARIABLES stand for; addresses of the pool with spaces between."""
        gateway = self.gateway
        ports = gateway.pool_ports
        facts = {
            "prefix": None if gateway.prefix is None else str(gateway.prefix),
            "pool": " ".join(map(str, gateway.pool)) or None,
            "pool_ports": None if ports is None else f"{ports.minimum}-{ports.maximum}",
        }
        return {name: value for name, value in facts.items() if value is not None}

    def map_variables(self, table: MapModel | None, *, echo: bool = False) -> dict[str, str]:
        """Return what MAP_VARIABLES stand for; nothing for a gateway that is not made of the rules.

        With `echo` a border relay knows the identifiers of echo messages. Raises ConfigError if no such gateway can be
        made of them.
        """
        edges, gateway = Edges(technology=self.technology, map=table), self.map_gateway
        if gateway is not None and edges.gateway is not None:
            files = made_edge(edges.gateway, edges.peers, gateway, has_tunnels=self.technology.has_tunnels)
        elif gateway is not None and edges.emulated is not None:
            files = made_relay(edges.emulated, gateway, TunnelEnd.of(self.gateway), echo=echo)
        else:
            return {}
        return dict(zip(MAP_VARIABLES, (files.tayga, files.nftables, "\n".join(files.routes)), strict=True))

    def b4_variables(self, inside: SideModel, behind: B4Model) -> dict[str, str]:
        """Return what B4_VARIABLES stand for with the B4s of a complete side; nothing if they make no AFTR."""
        end = TunnelEnd.of(self.gateway)
        if self.b4_gateway is None or end is None:
            return {}
        files = made_aftr(inside, behind, self.b4_gateway, end)
        return dict(zip(B4_VARIABLES, (files.nftables, "\n".join(files.routes)), strict=True))

    def end_variables(self, outside: SideModel, table: MapModel | None) -> dict[str, str]:
        """Return what RELAY_VARIABLE and SUBSCRIBER_VARIABLE stand for with a complete side of the tunnel and rules;
        nothing of other gateways."""
        if not self.technology.is_subscriber or outside.ipv6 is None:
            return {}
        edge = Edges(technology=self.technology, map=table).gateway
        stated = None if self.gateway.tunnel is None else self.gateway.tunnel.address
        subscriber = stated if edge is None else edge.address
        return {RELAY_VARIABLE: str(outside.ipv6.address), SUBSCRIBER_VARIABLE: str(subscriber)}

    def link(self, name: SideName, side: SideModel, family: Family) -> Network | None:
        """Return the network of the link between the gateway and one side of the Tester, None where it has none.

        On-link hosts are neighbours of the gateway, so it is the network of this side that holds the gateway's address.
        A router before the hosts has a link of its own (RFC 2544 appendix C.2.2).
        """
        model = side.family(family)
        gateway = None if model is None else model.gateway
        if gateway is None:
            return None
        if side.address_mode == "nexthop":
            return ipaddress.ip_interface(f"{gateway}/{NEXTHOP_PREFIX_LENGTHS[family]}").network
        networks = map(ipaddress.ip_network, (self.left if name == "left" else self.right).networks)
        return next((network for network in networks if gateway in network), None)

    def facing(self, inside: SideName | None) -> Self:
        """Return the same gateway with the Initiator on the side asked for; as it is where none is asked for."""
        return self if None in (inside, self.gateway.inside) or inside == self.gateway.inside else self.mirrored()

    def mirrored(self) -> Self:
        """Return the same stateful gateway with its sides swapped: what was left, `{left}` as well, is then right."""
        swapped = {"left": "right", "right": "left"}
        gateway = self.gateway.model_copy(update={"inside": swapped.get(self.gateway.inside or "")})
        return self.model_copy(update={"left": self.right, "right": self.left, "gateway": gateway})
