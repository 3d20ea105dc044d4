"""Reads what is compared: result folders, folders of series, and folders that hold several result folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from gatemark.bed_kinds import BED_KINDS
from gatemark.compare.document import ComparedSide
from gatemark.compare.judge import Placed, pooled
from gatemark.compare.setup import flat
from gatemark.config.vary import value_words
from gatemark.errors import ConfigError, GatemarkError, Problem, ResultError
from gatemark.facts import Facts, lasting_fields
from gatemark.results.coordinates import Coordinate
from gatemark.results.document import ResultDocument
from gatemark.results.provenance import Provenance, port_fields
from gatemark.results.quantity import Quantity
from gatemark.results.store import ResultFolder
from gatemark.series.store import SeriesFolder, is_series
from gatemark.stored import provenance_of, read_document

SIDES_MAX = len(ascii_uppercase)
MEASURED_AT = ("result", "measured_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One campaign of a side."""

    where: Mapping[str, Coordinate]
    """Varied keys of its column with their values; empty for a single campaign."""
    documents: tuple[ResultDocument, ...]
    """Several if it was made several times."""
    facts: Mapping[tuple[str, str], Any]
    """The set-up: topic and key with a value of JSON."""
    configuration: str
    """Of the gateway, as it described itself."""

    @property
    def quantities(self) -> list[Quantity]:
        """Its figures; where it was made several times, each time is a value."""
        if len(self.documents) > 1:
            return pooled([[row.quantity for row in document.rows()] for document in self.documents])
        return [row.quantity for row in self.documents[0].rows()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One folder with its campaigns."""

    about: ComparedSide
    members: tuple[Member, ...]

    @property
    def quantities(self) -> list[Placed]:
        """All figures of all its campaigns."""
        return [
            Placed(quantity=quantity, where=member.where) for member in self.members for quantity in member.quantities
        ]


def read_sides(folders: Sequence[Path]) -> tuple[Side, ...]:
    """Read two folders or more. Raises ConfigError or ResultError with everything that is wrong with any of them."""
    if not 2 <= len(folders) <= SIDES_MAX:
        raise ConfigError(
            what=f"{len(folders)} folder{'' if len(folders) == 1 else 's'} named",
            where="gatemark compare",
            fix=f"name 2 to {SIDES_MAX} folders that `gatemark run` wrote, the one to compare with first",
        )
    sides: list[Side] = []
    problems: list[Problem] = []
    for label, path in zip(ascii_uppercase, folders, strict=False):
        try:
            sides.append(_side(label, path))
        except GatemarkError as error:
            problems += error.problems
    if problems:
        raise ResultError(problems=problems)
    return tuple(sides)


def _side(label: str, path: Path) -> Side:
    kind, members = _members(path)
    documents = [document for member in members for document in member.documents]
    gateways = (f"{document.gateway.name} {document.gateway.version}".strip() for document in documents)
    begins = [str(begin) for member in members if (begin := member.facts.get(MEASURED_AT))]
    about = ComparedSide.model_validate(
        {
            "label": label,
            "folder": str(path),
            "kind": kind,
            "folders": len(documents),
            "campaigns": tuple(dict.fromkeys(document.name for document in documents)),
            "gateways": tuple(dict.fromkeys(gateways)),
            "gatemark": tuple(dict.fromkeys(document.gatemark for document in documents)),
            "measured_at": min(begins, default=None),
            "incomplete": any(document.status != "complete" for document in documents),
            "trials": sum(document.validity.trials for document in documents),
            "invalid_trials": sum(document.validity.invalid for document in documents),
        }
    )
    return Side(about=about, members=members)


def _members(path: Path) -> tuple[str, tuple[Member, ...]]:
    if is_series(path):
        folder = SeriesFolder.open(path)
        series = folder.read()
        results = folder.results(series)
        columns = [column for column in series.columns if column.number in results]
        if not columns:
            raise ResultError(what="no column was measured", where=str(path), fix=f"gatemark run --resume {path}")
        return "series", tuple(
            _member(
                folder.column(column.folder),
                {key: value_words(value) for key, value in column.settings.items()},
                results[column.number],
            )
            for column in columns
        )
    if (path / "result.json").is_file() or (path / "campaign.toml").is_file():
        return "campaign", (_member(ResultFolder.open(path), {}, None),)
    folders = ResultFolder.open_below(path)
    documents = [read_document(member) for member in folders]
    if len(folders) > 1 and len({document.name for document in documents}) == 1:
        return "repeated", (_repeated(folders, documents),)
    return "campaigns", tuple(
        _member(member, {"campaign": document.name}, document)
        for member, document in zip(folders, documents, strict=True)
    )


def _repeated(folders: Sequence[ResultFolder], documents: Sequence[ResultDocument]) -> Member:
    """Return a campaign that was made several times; a fact in which they differ has all its values."""
    members = [_member(folder, {}, document) for folder, document in zip(folders, documents, strict=True)]
    facts = {}
    for name in dict.fromkeys(name for member in members for name in member.facts):
        values = [member.facts.get(name) for member in members]
        others = [value for at, value in enumerate(values) if value not in values[:at]]
        facts[name] = others[0] if len(others) == 1 else {"several": others}
    begins = [str(begin) for member in members if (begin := member.facts.get(MEASURED_AT))]
    facts[MEASURED_AT] = min(begins, default=None)
    return Member(where={}, documents=tuple(documents), facts=facts, configuration=members[0].configuration)


def _member(folder: ResultFolder, where: Mapping[str, Coordinate], document: ResultDocument | None) -> Member:
    if document is None:
        document = read_document(folder)
    gateway = folder.read_json("gateway.json") if folder.has("gateway.json") else {}
    return Member(
        where=where,
        documents=(document,),
        facts=dict(_facts(folder, document, gateway)),
        configuration=str(gateway.get("configuration", "")),
    )


def _facts(
    folder: ResultFolder, document: ResultDocument, gateway: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield every fact that a figure may depend on."""
    campaign = folder.read_json("campaign.json") if folder.has("campaign.json") else {}
    for key, value in flat({key: value for key, value in campaign.items() if key not in ("file", "name")}):
        yield ("campaign", key), value
    described = ("name", "version", "commands" if gateway.get("commands") else "configuration")
    for key in described:  # the configuration text has counters, and addresses that the kernel draws each time
        yield ("gateway", key), gateway.get(key)
    yield ("result", "status"), document.status
    yield ("result", "self_test"), "none" if document.self_test is None else "measured"
    provenance = provenance_of(folder)
    if provenance is not None:
        yield from _equipment(provenance, makes_ports=bool(campaign) and _makes_ports(folder, campaign))


def _makes_ports(folder: ResultFolder, campaign: Mapping[str, Any]) -> bool:
    testbed = campaign.get("testbed")
    named = testbed.get("kind") if isinstance(testbed, dict) else None
    kind = next((row for row in BED_KINDS.values() if row.name == named), None)
    if kind is None:
        what, fix = "campaign.json is damaged at testbed.kind", "restore the file, or measure again"
        raise ResultError(what=what, where=str(folder.path), fix=fix)
    return kind.makes_ports


def _equipment(provenance: Provenance, *, makes_ports: bool) -> Iterator[tuple[tuple[str, str], Any]]:
    session = provenance.last
    yield MEASURED_AT, provenance.sessions[0].started_at
    yield ("gateway", "recipe_sha256"), provenance.recipe_sha256
    for setting in session.settings:
        yield ("gateway", f"settings.{setting.name}"), setting.value if setting.read is None else setting.read
    if session.gateway_host is not None:
        yield from _group("gateway's host", "", session.gateway_host)
    if session.other_gateway_host is not None:
        yield from _group("gateway's host", "other.", session.other_gateway_host)
    yield from _group("machine", "", session.machine)
    yield ("machine", "tester_cpus"), list(provenance.tester_cpus)
    yield from _group("engine", "", session.engine)
    yield ("software", "gatemark"), session.software.gatemark
    yield ("software", "python"), session.software.python
    for name, version in session.software.packages.items():
        yield ("software", name), version
    names = port_fields(makes_ports=makes_ports)
    yield from _group("ports", "left.", session.left, names)
    yield from _group("ports", "right.", session.right, names)
    yield ("ports", "line_bits_per_second"), provenance.line_bits_per_second


def _group(
    topic: str, prefix: str, facts: Facts, names: Sequence[str] | None = None
) -> Iterator[tuple[tuple[str, str], Any]]:
    values = facts.model_dump(mode="json")
    for name in lasting_fields(type(facts)) if names is None else names:
        yield (topic, f"{prefix}{name}"), values[name]
