"""The text of a first campaign file, by the answers to five questions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import jinja2

from gatemark.config.recipe import Recipe
from gatemark.dut.recipe import built_in_recipes, load_recipe
from gatemark.procedures.registry import PROCEDURES
from gatemark.technology import SIDES, Family, SideName, Technology

SCHEMA = "campaign.schema.json"
"""File beside the campaign file, for editors."""
COMMENT_AT = 32
"""Column of comments behind keys, where the key leaves room."""
NAMESPACES = "namespaces"
PORTS = "ports"
HOST = "USER@HOST"
PLACES: Mapping[str, str] = {
    NAMESPACES: "in network namespaces that gatemark makes on this machine",
    PORTS: "between two ports of this machine; somebody else set it up",
    HOST: "the same, and ssh reaches its host",
}
"""Where the gateway is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a user said."""

    technology: Technology
    place: str
    """`NAMESPACES`, `PORTS`, or the host that ssh reaches, of a gateway between two ports."""
    recipe: str | None
    """Of a gateway in namespaces; None for others."""
    ports: tuple[str, str] | None
    """The Tester's, left and right, of a gateway between two ports."""
    tables: tuple[str, ...]
    """Tables of what is measured."""


@cache
def blocks() -> Mapping[str, Any]:
    """Return what a file is put together from."""
    return tomllib.loads(resources.files("gatemark.starter").joinpath("blocks.toml").read_text(encoding="utf-8"))


def tables_for(technology: Technology) -> dict[str, str]:
    """Return the tables of what can be measured of a technology, in their order, with what each is for."""
    tables = {row.table.key: row.table for row in PROCEDURES.values()}
    return {
        key: table.purpose
        for key, table in tables.items()
        if key in blocks()["procedures"]
        and table.is_for(technology)
        and blocks()["procedures"][key].get("single_hosts", False) <= (not technology.has_rules)
    }


def campaign_text(answers: Answers, level: Mapping[str, Any], *, file: str, name: str, time: str = "") -> str:
    """Return the text of a campaign file whose trials are as long and as many as a level says."""
    technology, is_made = answers.technology, answers.recipe is not None
    families = technology.families
    block = {} if is_made else blocks()["technologies"][technology.name]
    recipe = None if answers.recipe is None else load_recipe(answers.recipe)
    text = _template().render(
        schema=SCHEMA,
        words=_words(answers, recipe),
        file=file,
        name=name,
        level=level,
        time=time,
        technology=None if is_made else technology,
        block=block,
        control=_control(answers),
        testbed=blocks()["places"][NAMESPACES if is_made else PORTS]["testbed"],
        recipe=None if recipe is None else {"name": answers.recipe, "description": recipe.description},
        sides=list(_sides(answers, families, block, recipe)),
        sizes=_sizes(technology, level.get("sizes"), is_made=is_made),
        tables=list(_tables(answers, level["values"])),
    )
    return re.sub(r"(?m)^([^#\n]*[^#\s]) +(# .*)$", lambda match: f"{match[1]:{COMMENT_AT - 1}} {match[2]}", text)


@cache
def _template() -> jinja2.Template:
    text = resources.files("gatemark.starter").joinpath("campaign.toml.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=False, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        undefined=jinja2.ChainableUndefined,
    )  # fmt: skip
    return environment.from_string(text)


def _words(answers: Answers, recipe: Recipe | None) -> list[str]:
    """Return what the file is about, a sentence a line."""
    if recipe is not None:
        return [f"{recipe.description} in network namespaces of this machine."]
    described = answers.technology.describe("left")
    words = [f"{described[:1].upper()}{described[1:]}, between two ports of this machine."]
    return words if answers.place == PORTS else [*words, f"ssh reaches its host as {answers.place}."]


def _control(answers: Answers) -> str:
    """Return how the gateway's host is controlled; empty for a recipe, and where nothing has to be."""
    has_host, texts = answers.place not in (NAMESPACES, PORTS), blocks()["control"]
    if answers.recipe is not None or not (has_host or answers.technology.is_stateful):
        return ""
    host = _filled(texts["host"].lstrip("\n"), {"host": answers.place}) if has_host else ""
    return _filled(texts["stateful" if answers.technology.is_stateful else "stateless"], {"host": host})


def _sides(
    answers: Answers, families: tuple[Family, Family], block: Mapping[str, Any], recipe: Recipe | None
) -> Iterator[dict[str, Any]]:
    """Yield what is said of each side; nothing where a recipe says all of it."""
    needs_hosts = any(blocks()["procedures"][key].get("needs_hosts", False) for key in answers.tables)
    if answers.ports is None and not needs_hosts:
        return
    for name, port, family in zip(SIDES, answers.ports or ("", ""), families, strict=True):
        played = None if recipe is None else recipe.side(name).family(family)
        addresses = block.get("addresses", {}).get(name, blocks()["addresses"][name])
        known = addresses[family] if played is None else played.model_dump()
        lines = block[name].strip().splitlines() if name in block else _address(name, family, known, needs_hosts)
        mtu = [f"mtu = {block['mtu']}"] if "mtu" in block else []
        yield {"name": name, "port": port, "lines": [*mtu, *lines]}


def _address(side: SideName, family: Family, known: Mapping[str, Any], needs_hosts: bool) -> list[str]:
    """Return the lines of the Tester's address on one side."""
    address, gateway = known["address"], known["gateway"]
    if not needs_hosts:
        return [f'{family} = {{address = "{address}", gateway = "{gateway}"}}']
    offset, numbers = blocks()["hosts"]["offsets"][family], blocks()["hosts"]["ranges"][side]
    hosts = f'hosts = {{offset = {offset}, mode = "increasing", range = "{numbers}"}}'
    return ["", f"[{side}.{family}]", f'address = "{address}"', f'gateway = "{gateway}"', hosts]


def _sizes(technology: Technology, count: int | None, *, is_made: bool) -> dict[str, Any] | None:
    """Return frame sizes of the family that has the larger headers; None for those of the RFCs.

    `is_made`: by a recipe, which leaves the lowest IPv6 MTU of a translator as it is.
    """
    family: Family = "ipv6" if "ipv6" in technology.packet_families else "ipv4"
    known = blocks()["sizes"]
    sizes = (known["translated"] if is_made and technology.translates_within else known)[family]
    return None if count is None else {"family": family, "octets": sizes[:count]}


def _tables(answers: Answers, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text of every table that is needed, in the order of the procedures."""
    known, wanted = blocks()["procedures"], set(answers.tables)
    wanted |= {needed for key in answers.tables for needed in known[key].get("needs", ())}
    tables = {row.table.key: row.table for row in PROCEDURES.values()}
    counted = answers.technology.is_stateful and any(
        not (tables[key].finds_connection_count or tables[key].sends_echo) for key in wanted
    )
    if counted:
        wanted |= set(blocks()["connections"]["needs"])
        count = blocks()["technologies"][answers.technology.name].get("count", 1000)
        yield _filled(blocks()["connections"]["text"], {"count": count})
    for key in (key for key in known if key in wanted):
        has_line = answers.ports is not None and "text_with_line" in known[key]
        yield "\n" + _filled(known[key]["text_with_line" if has_line else "text"].lstrip("\n"), values)


def _filled(text: str, values: Mapping[str, Any]) -> str:
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def recipes_for(technology: Technology) -> dict[str, str]:
    """Return gatemark's own recipes of a technology, with what each is."""
    recipes = ((name, load_recipe(name)) for name in built_in_recipes())
    return {name: recipe.description for name, recipe in recipes if recipe.technology is technology}
