"""What a user asked for when pairs were begun: kept in their folder, so that resuming needs nothing else. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gatemark.compare.condition import ANY, Limit, read_limits
from gatemark.errors import ConfigError, Problem
from gatemark.facts import Direction
from gatemark.pairs.conclude import Wanted
from gatemark.pairs.evidence import BED_DIFFERENCE
from gatemark.pairs.figure import FIGURES, FORWARDING_RATE, Figure
from gatemark.results.part import Part
from gatemark.units import format_ratio, parse_duration, parse_ratio

DURATION = "100ms"
"""Sending time of a trial where nothing else is asked for."""


class PairOptions(Part):
    """Options of the command as they were written; files and recipes are absolute paths, or names of built-in ones."""

    files: tuple[str, str]
    recipes: tuple[str | None, str | None]
    size: int | None
    direction: Direction | None
    mix: str | None
    duration: str
    precision: str
    time: str
    fail_if: tuple[str, ...]
    confidence: str
    seed: int
    quantity: str


def wanted_of(options: PairOptions) -> Wanted:
    """Return what was asked for. Raises ConfigError with everything that is wrong with it."""
    problems: list[Problem] = []
    figure = FIGURES.get(options.quantity.casefold(), FORWARDING_RATE)
    if options.quantity.casefold() not in FIGURES:
        fix = f"there are {', '.join(FIGURES)}; gatemark run and gatemark compare measure and judge others"
        problems.append(Problem(what="pairs do not measure it", where=f"--quantity {options.quantity!r}", fix=fix))
    limits = _limits(options.fail_if, figure, problems)
    wanted = Wanted(
        figure=figure,
        precision=_share("--precision", options.precision, BED_DIFFERENCE, Fraction(1), problems),
        time_ns=_duration("--time", options.time, problems),
        confidence=_share("--confidence", options.confidence, Fraction(1, 2), Fraction(1), problems),
        limits=limits,
        trial_ns=_trial_ns(options, figure, problems),
        seed=options.seed,
    )
    if options.seed < 0:
        problems.append(Problem(what="a seed is 0 or more", where=f"--seed {options.seed}", fix="write for example 1"))
    if problems:
        raise ConfigError(problems=problems)
    return wanted


def _trial_ns(options: PairOptions, figure: Figure, problems: list[Problem]) -> int | None:
    """Return the sending time of each trial; None where it follows from the connections."""
    if not figure.establishes:
        return _duration("--duration", options.duration, problems)
    if options.duration != DURATION:
        what = f"the {figure.name} are those of connections.count connections, however long that takes"
        fix = "leave it out, and write another connections.count"
        problems.append(Problem(what=what, where=f"--duration {options.duration}", fix=fix))
    return None


def _limits(texts: Sequence[str], figure: Figure, problems: list[Problem]) -> tuple[Limit, ...]:
    try:
        limits = read_limits(texts)
    except ConfigError as error:
        problems += error.problems
        return ()
    for limit in limits:
        if limit.name not in (figure.name, ANY):
            what = f"these pairs measure the {figure.name}, not {limit.name}"
            bound = format_ratio(limit.limit)
            fix = f'write "{figure.name} worse than {bound}"; gatemark compare judges other quantities'
            problems.append(Problem(what=what, where=f"--fail-if {limit.text!r}", fix=fix))
    return limits


def _duration(name: str, text: str, problems: list[Problem]) -> int:
    try:
        value = parse_duration(text)
    except ValueError as error:
        problems.append(Problem(what=str(error), where=f"{name} {text}", fix="write for example 100ms, 60s or 5min"))
        return 1
    if value <= 0:
        problems.append(Problem(what="it is above 0", where=f"{name} {text}", fix="write for example 100ms or 5min"))
    return value


def _share(name: str, text: str, above: Fraction, below: Fraction, problems: list[Problem]) -> Fraction:
    fix = f"write a share above {format_ratio(above)} and below {format_ratio(below)}"
    try:
        value = parse_ratio(text)
    except ValueError as error:
        problems.append(Problem(what=str(error), where=f"{name} {text}", fix=fix))
        return above
    if not above < value < below:
        problems.append(Problem(what="the share is out of range", where=f"{name} {text}", fix=fix))
    return value
