"""Two gateways in a row as one: what a chain of recipes does to a frame follows from both (RFC 8219 section 4.2). Pure.

::

    Tester left ── customer's gateway ── middle link, IPv6 only ── provider's gateway ── Tester right

For the Tester the row is one gateway from IPv4 to IPv4. Each gateway sees the other one in the place of the Tester.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from ipaddress import IPv6Address, ip_network
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from gatemark.bed_kinds import RECIPE_BED
from gatemark.config.map_tables import MapModel
from gatemark.config.recipe import OF_ONE_GATEWAY, Recipe, RecipeSide, Standing, keeper_of
from gatemark.config.sizes import middle_overhead
from gatemark.config.tables import B4Model, KnownGateway, SideModel
from gatemark.config.views import Forwarding, TunnelEnd
from gatemark.errors import ConfigError, Problem
from gatemark.technology import OPPOSITE, TECHNOLOGIES, DontFragmentRule, SideName, Technology

MIDDLE_ADDRESSES: Mapping[SideName, str] = {"left": "2001:2:0:f000::1", "right": "2001:2:0:f000::2"}
"""Of the gateway on each side, on the link between both. Their network has a length of 64."""
SUBSCRIBER = IPv6Address("2001:2:0:f001::1")
"""Of a B4, whose recipe has the address that its AFTR has."""
EVERYWHERE = "::/0"


class RowFile(BaseModel):
    """The file of a recipe that is two built-in ones in a row."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    description: str = Field(min_length=1)
    row: tuple[str, str]
    """Names of both recipes, the customer's first."""
    left: RecipeSide | None = None
    """The customer's side. Default: that of the first recipe."""
    right: RecipeSide | None = None
    """The other side. Default: that of the second recipe."""
    map: MapModel | None = None
    """The rules of both gateways, and which customer edge the first is. Default: those of the first recipe."""


class RowRecipe(Recipe):
    """A gateway that is two in a row."""

    first: Recipe
    """The customer's, on the left."""
    second: Recipe
    """The provider's, on the right."""

    @property
    def parts(self) -> tuple[Recipe, ...]:
        """Return both recipes, the customer's first."""
        return (self.first, self.second)

    def standings(
        self, sides: Mapping[str, SideModel], edges: MapModel | None = None, b4: B4Model | None = None
    ) -> tuple[Standing, ...]:
        """Return both gateways between the Tester's sides: each has the other one on the link in the middle."""
        hosts, rules = sides["left"].ipv4, edges or self.map
        customer = B4Model() if hosts is None else B4Model(address=hosts.address, hosts=hosts.hosts)
        return (
            Standing(recipe=self.first, sides={**sides, "right": self.first.side("right")}, edges=rules, b4=B4Model()),
            Standing(recipe=self.second, sides={**sides, "left": self.second.side("left")}, edges=rules, b4=customer),
        )

    def mirrored(self) -> Self:
        """Refuse: the customer's gateway is on the left."""
        what, fix = "is right, but a row has its customer's gateway on the left", "leave the key out"
        raise ConfigError(what=what, where="gateway.inside", fix=fix)


def row_recipe(file: RowFile, first: Recipe, second: Recipe, where: str) -> RowRecipe:
    """Return two recipes in a row as one. Raises ConfigError where no composition of them is defined."""
    names = (first.technology.name, second.technology.name)
    technology = next((row for row in TECHNOLOGIES.values() if row.in_a_row == names), None)
    if technology is None:
        known = "; ".join(" and ".join(row.in_a_row) for row in TECHNOLOGIES.values() if row.in_a_row)
        what = f"{names[0]} and {names[1]} do not form a service in a row"
        raise ConfigError(what=what, where=f"{where}: row", fix=f"choose recipes of {known}")
    if problems := list(_problems(technology, first, second, where)):
        raise ConfigError(problems=problems)
    table = file.map or first.map
    left, right, middle_mtu = file.left or first.left, file.right or second.right, min(first.mtu, second.mtu)
    first = first.model_copy(
        update={
            "gateway": _at_home(first),
            "left": left,
            "right": _towards_provider(second, middle_mtu),
            "map": table,
        }
    )
    second = second.model_copy(
        update={"left": _towards_customer(first, middle_mtu), "right": right, "map": table if second.map else None}
    )
    keeper = (first, second)[keeper_of((first, second))]
    return RowRecipe.model_construct(
        name=file.name,
        description=file.description,
        gateway=_gateway(technology, first, second, keeper.gateway, middle_mtu),
        left=left,
        right=right,
        map=table,
        mtu=middle_mtu - middle_overhead(technology),
        start_limit_ns=max(first.start_limit_ns, second.start_limit_ns),
        programs=first.programs | second.programs,
        modules=first.modules | second.modules,
        sysctl=first.sysctl | second.sysctl,
        host_sysctl=first.host_sysctl | second.host_sysctl,
        commands=keeper.commands.model_copy(update=dict.fromkeys(OF_ONE_GATEWAY, ())),
        first=first,
        second=second,
    )


def _at_home(first: Recipe) -> KnownGateway:
    """Return the customer's gateway with an end of its tunnel that the provider's has not as well."""
    tunnel = first.gateway.tunnel
    if tunnel is None or tunnel.address is None:
        return first.gateway
    return first.gateway.model_copy(update={"tunnel": tunnel.model_copy(update={"address": SUBSCRIBER})})


def _gateway(
    technology: Technology, first: Recipe, second: Recipe, keeper: KnownGateway, middle_mtu: int
) -> KnownGateway:
    """Return what both together do to a frame."""
    gateways = (first.gateway, second.gateway)
    forwardings = [
        Forwarding(model=recipe.gateway, technology=recipe.technology, bed=RECIPE_BED, edge=None)
        for recipe in (first, second)
    ]
    return KnownGateway(
        technology=technology.name,
        inside="left",
        hop_limit_decrement=sum(forwarding.hop_limit_decrement for forwarding in forwardings),
        background_hop_limit_decrement=sum(forwarding.background_hop_limit_decrement for forwarding in forwardings),
        dont_fragment_rule=_dont_fragment_rule(second),
        reverse_dont_fragment_rule=_dont_fragment_rule(first),
        zero_udp_checksum=True if any(gateway.zero_udp_checksum for gateway in gateways) else None,
        middle_mtu=middle_mtu,
        pool=() if technology.is_edge else keeper.pool,
        pool_ports=keeper.pool_ports,
        mapping=keeper.mapping,
        table=keeper.table,
    )


def _dont_fragment_rule(recipe: Recipe) -> DontFragmentRule | None:
    """Return what a translator makes of DF; None of a gateway that leaves it as it is."""
    return recipe.gateway.made_dont_fragment if recipe.technology.is_translation else recipe.gateway.dont_fragment_rule


def _problems(technology: Technology, first: Recipe, second: Recipe, where: str) -> Iterator[Problem]:
    """Find that for which no composition is defined."""
    if not technology.translates_within:
        return
    prefixes = first.gateway.prefix, second.gateway.prefix
    if prefixes[0] != prefixes[1]:
        what = f"{first.name} translates by {prefixes[0]}, {second.name} by {prefixes[1]}"
        yield Problem(
            what=what, where=f"{where}: row", fix="choose two recipes of the same prefix (RFC 6877 section 6.3)"
        )


def _towards_provider(second: Recipe, mtu: int) -> RecipeSide:
    """Return the customer's side of the middle link: all IPv6, the end of the tunnel among it, is behind the other."""
    end = TunnelEnd.of(second.gateway)
    if end is None:
        return _on_middle("left", MIDDLE_ADDRESSES["right"], (EVERYWHERE,), mtu)
    return _on_middle("left", str(end.address), (EVERYWHERE, str(end.address)), mtu)


def _towards_customer(first: Recipe, mtu: int) -> RecipeSide:
    """Return the provider's side of the middle link: the customer's own IPv6 networks and addresses are behind it."""
    tunnel = TunnelEnd.of(first.gateway) if first.technology.is_subscriber else None
    addresses = [] if tunnel is None else [str(tunnel.address)]
    mapped = [str(entry.ipv6) for entry in first.gateway.eam]
    native = [network for network in first.left.networks if ip_network(network).version == 6]
    end = addresses[0] if addresses else MIDDLE_ADDRESSES["left"]
    return _on_middle("right", end, (*native, *mapped, *addresses), mtu)


def _on_middle(side: SideName, address: str, networks: tuple[str, ...], mtu: int) -> RecipeSide:
    """Return the link in the middle as the gateway on one side sees it; `address` is its peer's at the other end."""
    hosts = {"address": address, "gateway": MIDDLE_ADDRESSES[side], "router": MIDDLE_ADDRESSES[OPPOSITE[side]]}
    document = {"networks": networks, "address_mode": "nexthop", "mtu": mtu, "ipv6": hosts}
    return RecipeSide.model_validate_json(json.dumps(document))
