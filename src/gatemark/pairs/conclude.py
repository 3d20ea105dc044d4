"""From the pairs to the document: figures, judgement, conditions, findings. Pure: the same pairs, the same document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import median

from gatemark.compare.condition import Limit
from gatemark.compare.document import Check, Condition, SetupDifference
from gatemark.pairs.document import PAIR_SCHEMA, Ended, PairDocument, PairLook, PairRow, PairSide, PairTrial
from gatemark.pairs.evidence import (
    DRIFT_TOLD,
    UNEQUAL_CHANCE,
    Look,
    autocorrelation,
    chance_of_left_out,
    drift,
    is_autocorrelated,
    is_decided,
    left_out,
    look_at,
)
from gatemark.pairs.figure import Figure
from gatemark.pairs.pair import SIDES, Pair, Side, SideTrial
from gatemark.stats.looks import looks_made, pairs_at
from gatemark.units import NANOSECONDS_PER_SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What was asked for."""

    figure: Figure
    precision: Fraction
    """Half the width of the interval at which it ends, as a share."""
    time_ns: int
    confidence: Fraction
    limits: tuple[Limit, ...]
    trial_ns: int | None
    """Sending time of a trial; None where it follows from the connections."""
    seed: int

    @property
    def error(self) -> Fraction:
        return 1 - self.confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFacts:
    """What is known of a side beside its trials."""

    file: str
    recipe: str
    gateway: str
    idle_cpu_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What was measured, and with what."""

    version: str
    traffic: str
    sides: Mapping[Side, SideFacts]
    differences: tuple[SetupDifference, ...]


def end_of(pairs: Sequence[Pair], measured_s: float, wanted: Wanted) -> Ended | None:
    """Return why no more pairs are made; None if there is to be another one. Looks are the only moments to decide."""
    counting = [pair for pair in pairs if pair.counts]
    number = looks_made(len(counting))
    is_due = number and len(counting) == pairs_at(number)  # between two looks nothing new is known
    look = look_at(counting, number, wanted.error, wanted.figure.better) if is_due else None
    if look is not None and wanted.limits and is_decided(look, wanted.precision, wanted.limits):
        return "decided"
    if look is not None and look.precision <= wanted.precision:
        return "precision"
    return "time" if measured_s * NANOSECONDS_PER_SECOND >= wanted.time_ns else None


def conclude(pairs: Sequence[Pair], measured_s: float, wanted: Wanted, setting: Setting, ended: Ended) -> PairDocument:
    """Return the document of these pairs."""
    counting = [pair for pair in pairs if pair.counts]
    looks = [
        look
        for number in range(1, looks_made(len(counting)) + 1)
        if (look := look_at(counting, number, wanted.error, wanted.figure.better)) is not None
    ]
    last = looks[-1] if looks else None
    return PairDocument(
        schema_=PAIR_SCHEMA,
        gatemark=setting.version,
        quantity=wanted.figure.name,
        unit=wanted.figure.unit,
        better=wanted.figure.better,
        traffic=setting.traffic,
        sides=tuple(_side(side, setting.sides[side], pairs, counting) for side in SIDES),
        differences=setting.differences,
        trial_ns=wanted.trial_ns,
        seed=wanted.seed,
        confidence_percent=float(100 * wanted.confidence),
        precision=float(wanted.precision),
        time_s=wanted.time_ns / NANOSECONDS_PER_SECOND,
        measured_s=round(measured_s, 3),
        ended=ended,
        pairs=len(counting),
        pairs_left_out=sum(not pair.is_kept for pair in pairs),
        look=None if last is None else look_part(last),
        judgement="not_judged" if last is None else last.judgement,
        autocorrelation=autocorrelation(counting),
        findings=tuple(findings(pairs, wanted.figure)),
        conditions=tuple(_condition(limit, last, wanted.figure) for limit in wanted.limits),
        decided=last is not None and is_decided(last, wanted.precision, wanted.limits),
        looks=tuple(map(look_part, looks)),
        rows=tuple(map(_row, pairs)),
    )


def _side(side: Side, facts: SideFacts, pairs: Sequence[Pair], counting: Sequence[Pair]) -> PairSide:
    outcomes = [pair.trials[side].outcome for pair in pairs]
    values = [pair.trials[side].value for pair in counting]
    return PairSide(
        side=side,
        file=facts.file,
        recipe=facts.recipe,
        gateway=facts.gateway,
        value=median(values) if values else None,
        drift=drift(counting, side),
        lossy=outcomes.count("lossy"),
        bounds=sum(pair.trials[side].outcome == "bound" for pair in counting),
        invalid=outcomes.count("invalid"),
        suspect=outcomes.count("suspect"),
        idle_cpu_share=facts.idle_cpu_share,
    )


def look_part(look: Look) -> PairLook:
    """Return a look as it is published."""
    return PairLook(
        pairs=look.pairs,
        ratio_low=_known(look.ratio_low),
        ratio_high=_known(look.ratio_high),
        low=_known(look.low),
        high=_known(look.high),
    )


def _known(value: float) -> float | None:
    return value if value and math.isfinite(value) else None


def _row(pair: Pair) -> PairRow:
    return PairRow(
        number=pair.number,
        at_s=round(pair.at_s, 3),
        load=pair.load,
        search=pair.is_search,
        first=pair.first,
        a=_trial(pair.trials["A"]),
        b=_trial(pair.trials["B"]),
    )


def _trial(trial: SideTrial) -> PairTrial:
    return PairTrial(trial=trial.trial_number, value=round(trial.value, 1), outcome=trial.outcome)


def _condition(limit: Limit, look: Look | None, figure: Figure) -> Condition:
    if look is None:
        outcome, reason = "cannot_be_judged", "there are too few pairs that count"
    else:
        outcome, reason = look.judged(limit)
    check = Check(procedure="pair", quantity=figure.name, where={}, side="B", outcome=outcome, reason=reason)
    return Condition(text=limit.text, outcome=outcome, checks=(check,))


def findings(pairs: Sequence[Pair], figure: Figure) -> Iterator[str]:
    """Yield what else is to be known of the pairs."""
    counting = [pair for pair in pairs if pair.counts]
    if (chance := chance_of_left_out(pairs)) < UNEQUAL_CHANCE:
        counts = {side: left_out(pairs, side) for side in SIDES}
        yield (
            f"Of {len(pairs)} trials of each side, {counts['A']} of A and {counts['B']} of B were left out;"
            f" chance makes such a difference in {float(chance):.2g} of all cases: the sides differ in this as well."
        )
    for side in SIDES:
        bounds = sum(pair.trials[side].outcome == "bound" for pair in counting)
        if bounds:
            yield (
                f"In {bounds} of {len(counting)} trials {side} forwarded nearly all that was offered, so it may be"
                " faster: such a pair limits the ratio from one side only."
            )
        moved = drift(counting, side)
        if moved is not None and abs(moved) >= DRIFT_TOLD:
            way = "rose" if moved > 0 else "fell"
            share = f"{abs(100 * moved):.0f} %"
            yield f"The {figure.name} of {side} {way} by {share} from the first third of the pairs to the last."
    correlation = autocorrelation(counting)
    if correlation is not None and is_autocorrelated(correlation, len(counting)):
        yield (
            f"Successive ratios are correlated ({correlation:.2f}): the ratio changes with time. Chance decides which"
            " gateway comes first, so equal gateways are still shown to differ no more often than stated."
        )
    is_search = [False, *(pair.is_search for pair in pairs)]
    searches = sum(now and not before for before, now in pairwise(is_search))
    if searches > 1:
        again = f"{searches - 1} time{'s' if searches > 2 else ''}"
        yield f"The load was searched for again, {again}: a gateway or the Tester became faster or slower."
