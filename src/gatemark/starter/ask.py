"""The five questions, asked on a terminal; what an option says is not asked."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gatemark.config.check import nearest
from gatemark.errors import ConfigError
from gatemark.starter.text import HOST, NAMESPACES, PLACES, PORTS, Answers, recipes_for, tables_for
from gatemark.technology import TECHNOLOGIES, Technology
from gatemark.units import parse_duration

T = TypeVar("T")

RFC = "rfc"
"""A time: as long as the RFCs say."""
TIME = "10min"
"""A time that is proposed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the options say; None or nothing: ask."""

    technology: str | None
    place: str | None
    recipe: str | None
    ports: tuple[str, str] | None
    measure: tuple[str, ...]
    time: str | None


def ask_all(given: Given) -> tuple[Answers, int | None]:
    """Return the answers, and the nanoseconds that all may take; None: as the RFCs say.

    Raises ConfigError if an option is wrong, contradicts another one, or if the input ends.
    """
    choices: dict[str, str] = {name: row.describe("left") for name, row in TECHNOLOGIES.items()}
    default = next(iter(choices))
    name = _ask("technology", "What does the gateway do?", choices, default, given.technology)
    technology = next(row for row in TECHNOLOGIES.values() if row.name == name)
    recipes = recipes_for(technology)
    place = _place(given, can_be_made=bool(recipes))
    recipe, ports = None, None
    if place == NAMESPACES:
        _makes_no_sense(given.ports is not None, "--ports", "a gateway in namespaces, whose ports are made")
        recipe = _recipe(recipes, given.recipe)
    else:
        _makes_no_sense(given.recipe is not None, "--recipe", "a gateway that somebody else set up")
        ports = _ports(" ".join(given.ports) if given.ports is not None else None)
    answers = Answers(
        technology=technology, place=place, recipe=recipe, ports=ports, tables=_tables(technology, given.measure)
    )
    return answers, _answer("time", f"How long may it take? Such as {TIME} or 2h; {RFC}: as the RFCs say.", TIME,
                            given.time, _time)  # fmt: skip


def _place(given: Given, *, can_be_made: bool) -> str:
    choices = {place: words for place, words in PLACES.items() if can_be_made or place != NAMESPACES}

    def read(text: str) -> str:
        if text in (NAMESPACES, PORTS) and text in choices:
            return text
        if re.fullmatch(r"[\w.-]+@[\w.:-]+", text) and text != HOST:
            return text
        raise ValueError(f"{text!r} is not one of {', '.join(choices)}")

    implied = given.place
    if implied is None and given.recipe is not None:
        implied = NAMESPACES
    return _answer("place", _with_choices("Where is it?", choices), next(iter(choices)), implied, read)


def _recipe(recipes: Mapping[str, str], given: str | None) -> str:
    def read(text: str) -> str:
        if text in recipes or Path(text).exists():
            return text
        raise ValueError(f"{text!r} is not one of {', '.join(recipes)}, nor a file")

    question = _with_choices("Which gateway? Or the path of a recipe of your own.", recipes)
    return _answer("recipe", question, next(iter(recipes), None), given, read)


def _ports(given: str | None) -> tuple[str, str]:
    def read(text: str) -> tuple[str, str]:
        ports = text.replace(",", " ").split()
        if len(set(ports)) != 2 or len(ports) != 2:
            raise ValueError("two different ports are needed, left and right")
        return ports[0], ports[1]

    question = (
        "Which two ports, left and right? A card by its PCI address, pci:0000:01:00.0, or an interface,"
        " af_packet:eth1 or af_xdp:eth1."
    )
    return _answer("ports", question, None, given, read)


def _tables(technology: Technology, given: tuple[str, ...]) -> tuple[str, ...]:
    known = tables_for(technology)

    def read(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(text.replace(",", " ").split()))
        for name in names:
            if name not in known:
                guess = nearest(name, list(known))
                raise ValueError(f"{name!r} is not one of {', '.join(known)}" + (f"; {guess}?" if guess else ""))
        return names

    default = next(key for key, purpose in known.items() if not purpose.startswith("see"))
    return _answer("measure", _with_choices("What is measured? One or more.", known), default,
                   " ".join(given) or None, read)  # fmt: skip


def _time(text: str) -> int | None:
    return None if text == RFC else parse_duration(text)


def _ask(option: str, question: str, choices: Mapping[str, str], default: str, given: str | None) -> str:
    def read(text: str) -> str:
        if text in choices:
            return text
        guess = nearest(text, list(choices))
        raise ValueError(f"{text!r} is not one of {', '.join(choices)}" + (f"; {guess}?" if guess else ""))

    return _answer(option, _with_choices(question, choices), default, given, read)


def _with_choices(question: str, choices: Mapping[str, str]) -> str:
    width = max(map(len, choices), default=0)
    return "\n".join([question, *(f"  {name:{width}}  {words}" for name, words in choices.items())])


def _answer(option: str, question: str, default: str | None, given: str | None, read: Callable[[str], T]) -> T:
    """Return what an option says, or the answer to a question, which is asked until it is one."""
    if given is not None:
        try:
            return read(given)
        except ValueError as error:
            raise ConfigError(
                what=str(error), where=f"--{option}", fix="correct it, or leave it out and answer"
            ) from None
    print(f"\n{question}", file=sys.stderr)
    while True:
        print(f"{option}{f' [{default}]' if default else ''}: ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise ConfigError(
                what="the input ends before it is answered", where=option, fix=f"answer, or say --{option}"
            )
        try:
            return read(line.strip() or default or "")
        except ValueError as error:
            print(error, file=sys.stderr)


def _makes_no_sense(is_given: bool, option: str, place: str) -> None:
    if is_given:
        raise ConfigError(what=f"does not apply to {place}", where=option, fix="leave it out")
