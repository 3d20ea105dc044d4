"""Conditions on a comparison: `throughput worse than 5%`. Which way is worse is known by the quantity. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isinf

from gatemark.compare.document import Check, ComparedQuantity, Comparison, Condition, Outcome
from gatemark.config.check import nearest
from gatemark.errors import ConfigError, Problem
from gatemark.units import format_ratio, parse_ratio

ANY = "any"
"""In place of a name: every quantity that is the purpose of a run."""

_FORM = re.compile(r"\s*(?P<name>.+?)\s+(?P<may>may\s+be\s+)?worse\s+than\s+(?P<limit>\S.*?)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One condition as it was written."""

    text: str
    name: str
    """Of the quantity, without capitals; or `ANY`."""
    limit: Fraction
    """In [0, 1) for quantities of which more is better."""
    may: bool
    """Met unless it is shown that the figure is not worse than the limit; else only if it is shown that it is."""


def read_limits(texts: Sequence[str]) -> tuple[Limit, ...]:
    """Return conditions. Raises ConfigError with everything that is wrong with any of them."""
    limits, problems = [], []
    for text in texts:
        where = f"--fail-if {text!r}"
        form = _FORM.fullmatch(text)
        if form is None:
            fix = 'write for example "throughput worse than 5%", or "throughput may be worse than 5%"'
            problems.append(Problem(what="is not a condition", where=where, fix=fix))
            continue
        try:
            share = parse_ratio(form["limit"])
        except ValueError as error:
            problems.append(Problem(what=str(error), where=where, fix="write a share such as 5% or 1/20"))
            continue
        name = form["name"].casefold().replace("_", " ")
        limits.append(Limit(text=text, name=name, limit=share, may=form["may"] is not None))
    if problems:
        raise ConfigError(problems=problems)
    return tuple(limits)


def check_names(limits: Sequence[Limit], chosen: Sequence[str], known: Collection[str]) -> None:
    """Raise ConfigError if a condition or `--quantity` names what no side has; `known` is without capitals."""
    places = [(f"--fail-if {limit.text!r}", limit.name) for limit in limits if limit.name != ANY]
    places += [(f"--quantity {name!r}", name.casefold()) for name in chosen]
    problems = []
    for where, name in places:
        if name not in known:
            guess = nearest(name, known)
            fix = f"did you mean {guess}?" if guess else f"there are {', '.join(sorted(known))}"
            problems.append(Problem(what=f"no folder has a quantity {name}", where=where, fix=fix))
    if problems:
        raise ConfigError(problems=problems)


def condition_of(limit: Limit, quantities: Sequence[ComparedQuantity]) -> Condition:
    """Return a condition with its outcome for every quantity of its name, on every side but the first."""
    checks = tuple(
        _check(limit, quantity, comparison)
        for quantity in quantities
        if (quantity.headline if limit.name == ANY else quantity.quantity.casefold() == limit.name)
        for comparison in quantity.comparisons
    )
    outcomes = {check.outcome for check in checks} or {"cannot_be_judged"}
    order: tuple[Outcome, ...] = ("met", "cannot_be_judged", "not_met")
    return Condition(text=limit.text, outcome=next(each for each in order if each in outcomes), checks=checks)


def _check(limit: Limit, quantity: ComparedQuantity, comparison: Comparison) -> Check:
    outcome, reason = _judged(limit, quantity, comparison)
    return Check(
        procedure=quantity.procedure,
        quantity=quantity.quantity,
        where=quantity.where,
        side=comparison.side,
        outcome=outcome,
        reason=reason,
    )


def _judged(limit: Limit, quantity: ComparedQuantity, comparison: Comparison) -> tuple[Outcome, str]:
    if quantity.better is None:
        return "cannot_be_judged", "neither more nor less of it is better"
    if comparison.low is None or comparison.high is None:
        return "cannot_be_judged", comparison.reason or "it was not measured"
    return judged_shares(
        limit, *_shares_lost(quantity, comparison.low, comparison.high, is_ratio=comparison.interval_of == "ratio")
    )


def judged_shares(limit: Limit, best: float, worst: float) -> tuple[Outcome, str]:
    """Return the outcome of a condition if a figure is worse by a share between `best` and `worst`; below 0 better."""
    words = f"{_words(best)} to {_words(worst)}"
    bound = format_ratio(limit.limit)
    if best > limit.limit:
        return "met", f"{words}: all of it is above {bound}"
    if worst <= limit.limit:
        return "not_met", f"{words}: none of it is above {bound}"
    outcome: Outcome = "met" if limit.may else "not_met"
    return outcome, f"{words}: it may be above {bound} or below; more values would decide"


def _shares_lost(quantity: ComparedQuantity, low: float, high: float, *, is_ratio: bool) -> tuple[float, float]:
    """Return by what share of the first side's figure another is worse, at least and at most; below 0 it is better."""
    if not is_ratio:
        first = abs(float(quantity.figures[0].figure or 0))
        low, high = (1 + share for share in _over(first, low, high))
    return (1 - high, 1 - low) if quantity.better == "higher" else (low - 1, high - 1)


def _over(first: float, low: float, high: float) -> Iterator[float]:
    for difference in (low, high):
        if first:
            yield difference / first
        else:
            yield 0.0 if difference == 0 else float("inf") if difference > 0 else float("-inf")


def _words(share: float) -> str:
    if isinf(share):
        return "any amount better" if share < 0 else "any amount worse"
    return f"{100 * abs(share):.1f} % {'worse' if share > 0 else 'better'}"
