"""Recipes: small TOML files that say what a gateway is and which commands set it up in its network namespace."""

from __future__ import annotations

import difflib
import hashlib
import ipaddress
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import resources
from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from gatemark.config import defaults
from gatemark.config.check import TABLE_KEYS, table_value
from gatemark.config.complete import complete
from gatemark.config.map_gateway import made_gateway, unmade_gateway
from gatemark.config.map_tables import MapDomainModel, MapGatewayModel, MapModel
from gatemark.config.merge import RecipeFacts
from gatemark.config.model import Campaign, CampaignFile
from gatemark.config.tables import EamEntry, GatewayAction, GatewayTableModel, SettingModel, SideModel
from gatemark.config.types import (
    BadValueError,
    IpPrefix,
    PortSpan,
    PositiveDuration,
    SettingName,
    TranslationPrefix,
)
from gatemark.errors import ConfigError, Problem
from gatemark.map_domains.problems import domain_problems
from gatemark.map_domains.tayga import PRIVATE
from gatemark.technology import TECHNOLOGIES, SideName, TechnologyName, technologies_where

FACT_VARIABLES = ("prefix", "pool", "pool_ports")
"""Names that may stand in braces in commands and files, beside those of both interfaces of the gateway, its folder and
its cores: keys of the recipe, so that the gateway is what the recipe says, each where it has the key."""

MAP_VARIABLES = ("map_tayga", "map_nftables", "map_routes")
"""The same where the recipe has a `map_gateway`: what is made of the campaign's rules (`GatewayFiles`)."""

TABLE_VARIABLES: dict[GatewayAction, str] = {
    "set_table_size": "size",
    "set_hash_size": "size",
    "set_udp_timeout": "seconds",
}
"""What stands for the value in the commands that set up the connection tracking table."""

MACHINE_VARIABLES: dict[str, GatewayAction] = {"{table_size}": "set_table_size", "{hash_size}": "set_hash_size"}
"""What stands for these values in settings of the whole machine."""

MTU_MAX = 9236
"""Largest MTU that a campaign file can name, octets."""


def _network(text: str) -> str:
    return str(ipaddress.ip_network(text))


def _file_name(text: str) -> str:
    if not text or "/" in text or text in {".", ".."}:
        raise ValueError("write a file name without folders; files go to {dir}")
    return text


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Commands(_Strict):
    """Shell commands (`sh -eu`), run inside the gateway's namespace in the order written."""

    setup: tuple[str, ...] = ()
    """Run once, after the interfaces have their addresses."""
    start: tuple[str, ...] = ()
    """Daemons, started after `setup` and kept in the foreground; each is pinned to the gateway's cores."""
    stop: tuple[str, ...] = ()
    """Run before the daemons are ended; a failure is ignored."""
    clear_state: tuple[str, ...] = ()
    """Delete all connections."""
    count_connections: str | None = None
    """Print the number of connections; the last number of the output counts."""
    tear_down: str | None = None
    """Delete all connections; timed (RFC 9693 section 4.8)."""
    set_table_size: tuple[str, ...] = ()
    """Let the connection tracking table hold {size} connections."""
    set_hash_size: tuple[str, ...] = ()
    """Give its hash table {size} buckets."""
    set_udp_timeout: tuple[str, ...] = ()
    """Let UDP connections without frames live for {seconds}."""
    read_table_size: str | None = None
    """Print how many connections the table can hold; the last number of the output counts, here and below."""
    read_hash_size: str | None = None
    """Print the buckets of its hash table."""
    read_udp_timeout: str | None = None
    """Print the UDP timeout in seconds."""
    settings: dict[SettingName, SettingModel] = Field(default_factory=dict, alias="set")
    """Settings of the user's own, to which a campaign gives values (`gateway.settings`)."""
    reset: tuple[str, ...] = ()
    """Reset the gateway while the Tester sends (RFC 6201 section 4). Daemons are ended before and started after it."""
    version: tuple[str, ...] = ()
    """Print the versions that the report must name (RFC 2544 section 7)."""
    configuration: tuple[str, ...] = ()
    """Print configuration that the test bed does not know of."""
    health: tuple[str, ...] = ()
    """Succeed while the gateway works; awaited after `start`, run again before each run."""


class RecipeSide(_Strict):
    """One side of the gateway: its networks, and the Tester's side as in a campaign file."""

    networks: tuple[Annotated[str, AfterValidator(_network)], ...] = Field(min_length=1)
    """Networks that lie on this side; the gateway's address gets the prefix length of the one that holds it."""
    side: SideModel


class Recipe(_Strict):
    """A checked recipe."""

    name: str = Field(min_length=1)
    description: str = Field(min_length=1)
    technology: TechnologyName
    hop_limit_decrement: int = Field(default=1, ge=0, le=255)
    prefix: TranslationPrefix | None = None
    eam: tuple[EamEntry, ...] = ()
    dont_fragment_rule: Literal["rfc7915", "rfc6145"] | None = None
    """DF in the IPv4 packets that the translator makes: RFC 7915 section 5.1, or RFC 6145 section 5.1 (always set)."""
    zero_udp_checksum: bool | None = None
    """The translator writes UDP checksum 0x0000 where 0xffff is due (against RFC 768)."""
    pool: tuple[IpPrefix, ...] = ()
    """Stateful: public addresses that connections are translated to. The Initiator is on the left."""
    pool_ports: PortSpan | None = None
    """Stateful: ports of each public address that the gateway uses."""
    mapping: Literal["endpoint_independent", "endpoint_dependent"] | None = None
    """Stateful: how the gateway maps (RFC 4787 section 4.1)."""
    table: GatewayTableModel = Field(default_factory=GatewayTableModel)
    """Stateful: what the connection tracking table is set to where the campaign sets nothing."""
    map: MapModel | None = None
    """MAP-T: the domains of campaigns that have no table `map`."""
    map_gateway: MapGatewayModel | None = None
    """MAP-T: the gateway is made of tayga and nftables from the campaign's rules."""
    mtu: int = Field(default=1500, ge=1280, le=MTU_MAX)
    """Largest IP packet on both links, octets; IPv6 needs 1280 (RFC 8200 section 5)."""
    start_limit_ns: PositiveDuration = Field(5 * defaults.SECOND_NS, alias="start_limit")
    """How long it may take from its start until its health commands succeed, where the campaign does not say it."""
    programs: dict[str, str] = Field(default_factory=dict)
    """Programs that the commands need, each with its Debian package."""
    modules: dict[str, str] = Field(default_factory=dict)
    """Kernel modules that it needs, each with the option of the kernel that builds it (`CONFIG_TUN`) or, where it does
    not come with the kernel, its Debian package. They are loaded before `setup`."""
    left: RecipeSide
    right: RecipeSide
    sysctl: dict[str, str | int] = Field(default_factory=dict)
    """Kernel settings of the gateway's namespace, beyond or instead of those of the test bed."""
    host_sysctl: dict[str, str | int] = Field(default_factory=dict)
    """Kernel settings that Linux keeps once for the whole machine; {table_size} and {hash_size} stand for those of the
    table. The values before are written back when the test bed is closed."""
    files: dict[Annotated[str, AfterValidator(_file_name)], str] = Field(default_factory=dict)
    """Files written to {dir} before `setup`, by name."""
    commands: Commands = Field(default_factory=Commands)

    _inside: SideName = PrivateAttr("left")

    @property
    def inside(self) -> SideName:
        """Side of the Initiator: left as written, right where the recipe is mirrored."""
        return self._inside

    @property
    def is_stateful(self) -> bool:
        return TECHNOLOGIES[self.technology].is_stateful

    @property
    def actions(self) -> frozenset[GatewayAction]:
        """What the recipe has commands or settings for."""
        actions: tuple[GatewayAction, ...] = get_args(GatewayAction)
        settings = " ".join(str(value) for value in self.host_sysctl.values())
        by_setting = {action for variable, action in MACHINE_VARIABLES.items() if variable in settings}
        return frozenset(action for action in actions if getattr(self.commands, action)) | by_setting

    @property
    def facts(self) -> RecipeFacts:
        return RecipeFacts(
            name=self.name,
            technology=self.technology,
            hop_limit_decrement=self.hop_limit_decrement,
            prefix=self.prefix,
            eam=self.eam,
            dont_fragment_rule=self.dont_fragment_rule,
            zero_udp_checksum=self.zero_udp_checksum,
            inside=self.inside if self.is_stateful else None,
            pool=self.pool,
            pool_ports=self.pool_ports,
            mapping=self.mapping,
            table=self.table,
            actions=self.actions if self.is_stateful else self.actions & {"reset"},
            setting_names=frozenset(self.commands.settings),
            map=self.map,
            map_gateway=self.map_gateway,
            left=self.left.side,
            right=self.right.side,
            mtu=self.mtu,
        )

    @property
    def texts(self) -> Iterator[tuple[str, str]]:
        """Files and commands in which variables stand, each with its key."""
        yield from ((f"files.{name}", text) for name, text in self.files.items())
        for action in ("setup", "start", "stop", "reset", "version", "configuration", "health"):
            yield from ((f"commands.{action}", line) for line in getattr(self.commands, action))

    @property
    def fact_variables(self) -> dict[str, str]:
        """What FACT_VARIABLES stand for; addresses of the pool with spaces between."""
        facts = {
            "prefix": None if self.prefix is None else str(self.prefix),
            "pool": " ".join(map(str, self.pool)) or None,
            "pool_ports": None if self.pool_ports is None else f"{self.pool_ports.minimum}-{self.pool_ports.maximum}",
        }
        return {name: value for name, value in facts.items() if value is not None}

    def map_variables(self, table: MapModel | None, *, echo: bool = False) -> dict[str, str]:
        """Return what MAP_VARIABLES stand for; nothing for a gateway that is not made of the rules.

        With `echo` a border relay knows the identifiers of echo messages. Raises ConfigError if no such gateway can be
        made of them.
        """
        if self.map_gateway is None or table is None:
            return {}
        files = made_gateway(TECHNOLOGIES[self.technology], table, self.map_gateway, echo=echo)
        return dict(zip(MAP_VARIABLES, (files.tayga, files.nftables, "\n".join(files.routes)), strict=True))

    def mirrored(self) -> Self:
        """Return the same gateway with its sides swapped: what was left, `{left}` as well, is then right."""
        copy = self.model_copy(update={"left": self.right, "right": self.left})
        copy._inside = "right" if self.inside == "left" else "left"
        return copy


def built_in_recipes() -> list[str]:
    """Names of the recipes that come with gatemark."""
    folder = resources.files("gatemark.dut") / "recipes"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_recipe(name_or_path: str | Path) -> Recipe:
    """Load a built-in recipe by name, or a file, or the file `recipe.toml` of a folder.

    Raises ConfigError with everything that is wrong.
    """
    text, where = _read(str(name_or_path))
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not TOML, or a number or a depth that Python does not read
        raise ConfigError(what=f"not TOML: {error}", where=where, fix="correct the line named") from None
    return recipe_from_dict(table, where)


def complete_campaign(file: CampaignFile) -> Campaign:
    """Complete a campaign by the recipe that it names, if it names one.

    Raises ConfigError with every reason why it cannot be run.
    """
    recipe = file.testbed.recipe
    return complete(file, None if recipe is None else load_recipe(recipe).facts)


def recipe_from_dict(document: Mapping[str, Any], where: str = "recipe") -> Recipe:
    """Build a recipe from the document that a file holds. Raises ConfigError with everything that is wrong."""
    table = dict(document)
    for side in ("left", "right"):
        if isinstance(table.get(side), dict):
            rest = dict(table[side])
            networks = rest.pop("networks", [])
            table[side] = {"networks": networks, "side": rest}
    try:
        recipe = Recipe.model_validate_json(json.dumps(table, default=str))
    except ValidationError as error:
        raise ConfigError(problems=[_problem(detail, where) for detail in error.errors()]) from None
    problems = _contradictions(recipe, where)
    if problems:
        raise ConfigError(problems=problems)
    return recipe


def recipe_text(name_or_path: str | Path) -> str:
    """Return the text of a recipe. Raises ConfigError if it cannot be read."""
    return _read(str(name_or_path))[0]


def recipe_sha256(name_or_path: str | Path) -> str:
    """Return the digest of a recipe's text, in hexadecimal. Raises ConfigError if it cannot be read."""
    return hashlib.sha256(recipe_text(name_or_path).encode()).hexdigest()


def substitute(text: str, values: dict[str, str]) -> str:
    """Replace the names of `values` in braces; all other braces stay as they are, as shell and nft need."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def _read(name: str) -> tuple[str, str]:
    """Return the text of a recipe and where it came from."""
    if name in built_in_recipes():
        text = (resources.files("gatemark.dut") / "recipes" / f"{name}.toml").read_text(encoding="utf-8")
        return text, f"recipe {name}"
    path = Path(name)
    try:
        if path.is_dir():
            path = path / "recipe.toml"
        return path.read_text(encoding="utf-8"), str(path)
    except FileNotFoundError:
        known = ", ".join(built_in_recipes())
        near = difflib.get_close_matches(name, built_in_recipes(), n=1)
        fix = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(
            what=f"no recipe `{name}`: neither built in nor a file",
            where="testbed.recipe",
            fix=f"{fix}built in are {known}; or give the path of a recipe file",
        ) from None
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a name that no file can have
        raise ConfigError(what=f"cannot read the recipe: {error}", where=str(path), fix="check the file") from None


def _problem(detail: Any, where: str) -> Problem:
    """Turn one finding of pydantic into a problem with the key path as the user wrote it."""
    path = [str(part) for part in detail["loc"]]
    if path[:1] in (["left"], ["right"]) and path[1:2] == ["side"]:
        del path[1]
    key = ".".join(path)
    if detail["type"] == "extra_forbidden":
        known = _known_keys(path[:-1])
        near = difflib.get_close_matches(path[-1], known, n=1)
        fix = f"did you mean `{near[0]}`?" if near else f"the keys allowed here are {', '.join(known)}"
        return Problem(what=f"unknown key `{path[-1]}`", where=f"{where}: {key}", fix=fix)
    if detail["type"] == "missing":
        return Problem(what="this key is required", where=f"{where}: {key}", fix="copy it from a built-in recipe")
    error = detail.get("ctx", {}).get("error")
    if isinstance(error, BadValueError):
        return Problem(what=error.what, where=f"{where}: {key}", fix=error.fix)
    what = str(detail["msg"]).removeprefix("Value error, ")
    return Problem(what=f"{detail['input']!r}: {what}"[:300], where=f"{where}: {key}", fix="see the built-in recipes")


def _known_keys(path: list[str]) -> list[str]:
    if path == ["commands"]:
        return sorted(field.alias or name for name, field in Commands.model_fields.items())
    if path == ["table"]:
        return list(TABLE_KEYS)
    if path in (["left"], ["right"]):
        return ["networks", *sorted(SideModel.model_fields)]
    if path[:1] in (["map"], ["map_gateway"]):
        model = MapGatewayModel if path == ["map_gateway"] else MapModel if path == ["map"] else MapDomainModel
        return sorted(model.model_fields)
    return sorted(Recipe.model_fields) if not path else []


def _contradictions(recipe: Recipe, where: str) -> list[Problem]:
    """Find what each key allows but all together do not."""
    problems = []
    for name, setting in recipe.commands.settings.items():
        if setting.at_boot:
            what, fix = "is not allowed in a recipe: a namespace does not boot", "leave it out"
            problems.append(Problem(what=what, where=f"{where}: commands.set.{name}.at_boot", fix=fix))
        if not any("{value}" in command for command in setting.apply):
            what = "does not say where the value goes: {value} is missing"
            fix = "for example `echo {value} > /proc/sys/...`"
            problems.append(Problem(what=what, where=f"{where}: commands.set.{name}.apply", fix=fix))
    technology = TECHNOLOGIES[recipe.technology]
    for name, side, family in zip(("left", "right"), (recipe.left, recipe.right), technology.families, strict=True):
        if side.side.family(family) is None:
            what = f"{recipe.technology} needs {family} on the {name}"
            problems.append(Problem(what=what, where=f"{where}: {name}", fix=f"add {name}.{family}"))
    if technology.translates_by_prefix and recipe.prefix is None and not recipe.eam:
        what = f"{recipe.technology} needs a prefix (RFC 6052) or address mappings (RFC 7757)"
        problems.append(Problem(what=what, where=f"{where}: prefix", fix='for example prefix = "2001:2:0:6400::/96"'))
    problems += _unknown_facts(recipe, where)
    return [*problems, *_state_contradictions(recipe, where), *_map_contradictions(recipe, where)]


def _unknown_facts(recipe: Recipe, where: str) -> Iterator[Problem]:
    """Find variables that stand for keys which the recipe has not."""
    for name in FACT_VARIABLES:
        key = next((key for key, text in recipe.texts if f"{{{name}}}" in text), None)
        if key is not None and name not in recipe.fact_variables:
            yield Problem(what=f"{{{name}}} is undefined", where=f"{where}: {key}", fix=f"write the key {name}")


def _map_contradictions(recipe: Recipe, where: str) -> Iterator[Problem]:
    """Find rules that contradict each other or the technology, and variables that stand for nothing or are not used."""
    technology, table, gateway = TECHNOLOGIES[recipe.technology], recipe.map, recipe.map_gateway
    if not technology.has_rules:
        fix = f"leave it out, or set technology to {technologies_where(lambda row: row.has_rules)}"
        for key in (key for key in ("map", "map_gateway") if getattr(recipe, key) is not None):
            what = f"does not apply to {recipe.technology}, which has no customer edges"
            yield Problem(what=what, where=f"{where}: {key}", fix=fix)
        return
    texts = dict(recipe.texts)
    for name in MAP_VARIABLES:
        users = [key for key, text in texts.items() if f"{{{name}}}" in text]
        if users and gateway is None:
            what = f"{{{name}}} is undefined without map_gateway"
            yield Problem(what=what, where=f"{where}: {users[0]}", fix="write map_gateway = {}")
        elif gateway is not None and not users:
            what = f"{{{name}}} is in no file and no command"
            yield Problem(what=what, where=f"{where}: map_gateway", fix="write it where the gateway needs it")
    if gateway is not None:
        yield from _private_problems(recipe, gateway.private, f"{where}: map_gateway.private")
    if table is None:
        return
    rules = table.whole_rules
    unsound = list(domain_problems(rules, edges=table.edges))
    if gateway is not None and not unsound:
        unsound = list(unmade_gateway(technology, table, gateway, private_at="map_gateway.private"))
    yield from (replace(problem, where=f"{where}: {problem.where}") for problem in unsound)


def _private_problems(recipe: Recipe, private: IPv4Network, at: str) -> Iterator[Problem]:
    for network in (*recipe.left.networks, *recipe.right.networks):
        other = ipaddress.ip_network(network)
        if isinstance(other, IPv4Network) and private.overlaps(other):
            what = f"{private} overlaps {network}, a network of the gateway's links"
            yield Problem(what=what, where=at, fix=f"choose an unused network, such as {PRIVATE}")


def _state_contradictions(recipe: Recipe, where: str) -> list[Problem]:
    """Find keys about state in a stateless recipe, and settings of the table without value or without command."""
    problems = []
    if not recipe.is_stateful:
        keys = [key for key in ("pool", "pool_ports", "mapping") if getattr(recipe, key)]
        keys += [f"table.{key}" for key in TABLE_KEYS if table_value(recipe.table, key) is not None]
        keys += [f"commands.{key}" for key in sorted(recipe.actions - {"clear_state", "reset"})]
        what = f"does not apply to {recipe.technology}, which keeps no state"
        fix = f"leave it out, or set technology to {technologies_where(lambda row: row.is_stateful)}"
        problems += [Problem(what=what, where=f"{where}: {key}", fix=fix) for key in keys]
    if (recipe.table.udp_timeout_ns or 0) % defaults.SECOND_NS:
        what = "is not a whole number of seconds"
        problems.append(Problem(what=what, where=f"{where}: table.udp_timeout", fix="round it up"))
    for action, variable in TABLE_VARIABLES.items():
        commands: tuple[str, ...] = getattr(recipe.commands, action)
        if commands and not any("{" + variable + "}" in command for command in commands):
            what = f"does not say where the value goes: {{{variable}}} is missing"
            fix = f"for example `echo {{{variable}}} > /proc/sys/...`"
            problems.append(Problem(what=what, where=f"{where}: commands.{action}", fix=fix))
    return problems
