"""Read the variables at the top of siitperf's scripts as procedures of a campaign. Pure.

Each script makes one measurement; which one is seen from the variables that it sets (`siitperf_scripts.toml`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from gatemark.config.key_value_file import Imported
from gatemark.errors import ConfigError, Problem
from gatemark.technology import TECHNOLOGIES

_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][A-Za-z_0-9]*)=(?P<value>\"[^\"]*\"|'[^']*'|\$\(\(.*?\)\)|[^\s#]*)")

NUMBERS = frozenset(
    (
        "C0", "E", "M", "N", "R", "T", "conntrack", "delay", "e", "fs", "fto", "m", "max", "n", "no_exp", "r",
        "rate_end", "rate_start", "rate_step", "sleept", "tags", "timeout", "to", "x", "xpts",
    )
)  # fmt: skip
"""Variables that hold a whole number."""

COMMANDS = frozenset(("DUT_IP", "startcmd", "stopcmd", "countcmd", "rebootcmd", "rebootsleept", "rsscmd", "lladdrcmd"))
"""Variables about the gateway's host."""

STATEFUL = ("N", "M", "R", "T", "C0")
"""Variables that a script of a stateless test does not set."""

IGNORED = frozenset(("res_dir", "D"))
"""Variables without a meaning here: the folder of results, and what a script computes from the others."""

WORDS = frozenset(("impl", "dir", "fsizes", "alpha", "beta", "gamma"))


@dataclass(slots=True)
class Script:
    """One script: its variables with their lines."""

    where: str
    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    computed: list[str] = field(default_factory=list)
    """Variables that follow from others, whose values are not known."""

    def number(self, name: str, default: int = 0) -> int:
        """Return a variable as a whole number; it was checked before."""
        return int(self.values.get(name, default))

    def place(self, name: str) -> str:
        """Return where a variable is set."""
        return f"{self.where}: line {self.lines[name]}: {name}"

    @property
    def is_mixed(self) -> bool:
        """Whether there is background traffic."""
        return self.number("m", 1) < self.number("n", 1)


def read_script(text: str, *, where: str) -> Script:
    """Return the variables that a script sets at its top, as far as they are written as they are.

    Raises ConfigError if a value is none of its kind, or if it is no script of siitperf.
    """
    script, problems = Script(where), []
    for number, line in enumerate(text.splitlines(), 1):
        assignment = _ASSIGNMENT.match(line)
        if assignment is None or assignment["name"] in script.lines:
            continue  # no variable, or what runs later
        name, value = assignment["name"], assignment["value"].strip("\"'")
        if "$" in value or "`" in value:
            script.computed.append(name)
            script.lines[name] = number
            continue
        if name in NUMBERS and re.fullmatch(r"[0-9]{1,15}", value) is None:
            what = f"{name} is {value!r}, which is not a whole number"
            problems.append(Problem(what=what, where=f"{where}: line {number}", fix="write a number"))
            continue
        script.values[name], script.lines[name] = value, number
    if problems:
        raise ConfigError(problems=problems)
    if _kind(script) is None:
        raise ConfigError(
            what="sets none of the variables that identify a siitperf script",
            where=where,
            fix="name a script such as binary-rate-alg.sh, with its variables at the top",
        )
    return script


def _kind(script: Script) -> Mapping[str, Any] | None:
    return next((kind for kind in _kinds() if all(name in script.values for name in kind["known_by"])), None)


@cache
def _kinds() -> tuple[Mapping[str, Any], ...]:
    text = resources.files("gatemark.config").joinpath("siitperf_scripts.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(text)["kind"])


def with_scripts(imported: Imported, scripts: Sequence[Script]) -> Imported:
    """Return a campaign with the procedures of these scripts. Raises ConfigError where two of them contradict."""
    document = {key: dict(value) if isinstance(value, dict) else value for key, value in imported.document.items()}
    notes, comments = list(imported.notes), dict(imported.comments)
    problems = []
    for script in scripts:
        kind = _kind(script)
        assert kind is not None, "read_script refuses such a script"
        stateful = "connections" in document
        if not stateful and any(name in script.lines for name in STATEFUL):
            name = next(name for name in STATEFUL if name in script.lines)
            fix = "write Stateful 1 or 2 in the configuration file, or name a script of a stateless test"
            problems.append(
                Problem(what="belongs to a stateful test, but Stateful is 0", where=script.place(name), fix=fix)
            )
            continue
        for path, value, *names in (*_common(script, document), *_of_kind(script, kind)):
            table, _, key = path.partition(".")
            target = document.setdefault(table, {}) if key else document
            known = comments.get(path, "").startswith("script ")
            if known and path == "name":
                continue  # each script has a name of its own; that of the first is taken
            if known and target[key or table] != value:
                what = f"{path} is {target[key or table]} by {comments[path]}, and {value} here"
                places = ", ".join(script.place(name) for name in names)
                problems.append(Problem(what=what, where=places, fix="import the scripts one by one"))
                continue
            target[key or table] = value
            places = ", ".join(f"{name} in line {script.lines[name]}" for name in names if name in script.lines)
            comments[path] = f"script {script.where}: {places}" if places else f"script {script.where}"
        notes += _notes(script, document)
    if problems:
        raise ConfigError(problems=problems)
    return Imported(document=document, notes=tuple(notes), comments=comments)


LOADS_MAX = 1000
"""Loads of one script: each is a trial of a minute or so."""

Setting = tuple[Any, ...]
"""Path of a key of the campaign, its value, and the variables that say it."""


def _common(script: Script, document: Mapping[str, Any]) -> Iterator[Setting]:
    """Yield what most scripts set."""
    if "impl" in script.values:
        yield "name", script.values["impl"][:100], "impl"
    if "no_exp" in script.values:
        yield "repetitions", script.number("no_exp"), "no_exp"
    if "xpts" in script.values:
        yield "trial.duration", f"{script.number('xpts')}s", "xpts"
    if "to" in script.values:
        yield "trial.drain", f"{script.number('to')}ms", "to"
    if "sleept" in script.values:
        yield "trial.rest", f"{script.number('sleept')}s", "sleept"
    if "n" in script.values and "m" in script.values:
        m, n = script.number("m"), script.number("n")
        yield "traffic.mix", f"{m}/{n}" if m < n else "1/1", "n", "m"
    sizes = [
        int(size)
        for size in script.values.get("fsizes", script.values.get("fs", "")).split()
        if re.fullmatch("[0-9]{1,9}", size)
    ]
    if sizes:
        families = set(TECHNOLOGIES[document["gateway"]["technology"]].families)
        only_ipv4 = families == {"ipv4"}
        octets = [size - 20 if only_ipv4 else size for size in sizes]
        family = "ipv4" if only_ipv4 else "ipv6"
        name = "fsizes" if "fsizes" in script.values else "fs"
        yield "traffic.frame_sizes", {"family": family, "octets": octets}, name
    if "N" in script.values:
        yield "connections.count", script.number("N"), "N"
    if "T" in script.values:  # of the delay of phase 2, 2 T are left beside the frames of phase 1
        yield "connections.timeout", f"{script.number('T')}ms", "T"
        yield "connections.gap", f"{script.number('T')}ms", "T"
    if "R" in script.values:
        yield "connections.rate", script.number("R"), "R"
    if "conntrack" in script.values:
        size = 1 << min(60, script.number("conntrack"))
        table: dict[str, Any] = {"size": size, "hash_size": size // max(1, script.number("x", 1))}
        if "timeout" in script.values:
            table["udp_timeout"] = f"{script.number('timeout')}s"
        yield "gateway.table", table, "conntrack", "x", "timeout"


def _of_kind(script: Script, kind: Mapping[str, Any]) -> Iterator[Setting]:
    """Yield what a kind of script says of its procedure."""
    yield from ((path, value) for path, value in kind.get("fixed", {}).items())
    for path, name in kind.get("as_is", {}).items():
        if name in script.values:
            yield path, script.number(name) if name in NUMBERS else script.values[name], name
    for path, name in kind.get("seconds", {}).items():
        yield path, f"{script.number(name)}s", name
    for path, name in kind.get("milliseconds", {}).items():
        if script.number(name):
            yield path, f"{script.number(name)}ms", name
    for path, names in kind.get("rows", {}).items():
        first, last, step = (script.number(name) for name in names)
        loads = range(first, last + 1, max(1, step))
        if first < 0 or (last - first) // max(1, step) >= LOADS_MAX:
            raise ConfigError(
                what=f"from {first:,} to {last:,} in steps of {step:,} are more than {LOADS_MAX:,} loads",
                where=", ".join(script.place(name) for name in names),
                fix="choose a larger step",
            )
        yield path, list(loads), *names


def _notes(script: Script, document: Mapping[str, Any]) -> Iterator[str]:
    values = script.values
    directions = {"b": "bidirectional", "f": "forward", "r": "reverse"}
    told = document["traffic"]["direction"]
    if "dir" in values and directions.get(values["dir"]) != told:
        yield (
            f"{script.place('dir')}: {values['dir']}: Forward and Reverse decide which directions are sent, so the"
            f" campaign is {told}; it judges every direction that is sent."
        )
    if "M" in values and values["M"] != values.get("N"):
        yield f"{script.place('M')}: {values['M']}: the state table has an entry for each of the N connections."
    commands = [name for name in script.lines if name in COMMANDS]
    if commands:
        lines = ", ".join(f"{name} in line {script.lines[name]}" for name in commands)
        yield (
            f"{script.where}: {lines}: commands at the gateway's host are not converted: write them as gateway.control."
        )
    for name in script.computed:
        if name in NUMBERS | WORDS:
            yield f"{script.place(name)} is left out: it is computed from other variables."
    for name in values:
        if name in NUMBERS | COMMANDS | IGNORED | WORDS:
            continue
        yield f"{script.place(name)} is left out: siitperf's scripts have no such variable."
