"""Which figures of several sides are the same quantity, by how much they differ, and whether that is shown. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gatemark.compare.document import ComparedQuantity, Comparison, Judgement, SideFigure
from gatemark.results.coordinates import LOAD, Coordinate, ordered
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.quantity import Better, Quantity, true_range
from gatemark.stats.ranks import Interval, difference_interval, ratio_interval, repetitions_needed
from gatemark.stats.summary import Summary, number

Key = tuple[str, str, str, frozenset[tuple[str, Coordinate]]]
"""Procedure, name and unit of a quantity, and what it was measured with apart from its load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A quantity of a side, with the column of the series that it is from."""

    quantity: Quantity
    where: Mapping[str, Coordinate]
    """Keys of the column with their values; empty for a single campaign."""

    @property
    def place(self) -> dict[str, Coordinate]:
        """What it was measured with, without its load."""
        both = {**self.where, **self.quantity.coordinates}
        return {name: value for name, value in both.items() if name != LOAD and value is not None}

    @property
    def key(self) -> Key:
        """What must be equal for two figures to be the same quantity."""
        return self.quantity.procedure, self.quantity.name, self.quantity.unit, frozenset(self.place.items())

    @property
    def load(self) -> Coordinate:
        """Its load, which may follow from what was measured before; None without one."""
        return self.quantity.coordinates.get(LOAD)

    @property
    def asked_load(self) -> Coordinate:
        """The load that the campaign file asks for, perhaps as a share; None without one."""
        return self.quantity.asked.get(LOAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """A quantity with what each side has of it."""

    sides: tuple[Placed | None, ...]
    """One for each side; None where it is missing, or another side has no single one like it."""
    refusals: tuple[str | None, ...]
    """Why a side has none, as far as it says so."""

    @property
    def known(self) -> Placed:
        """What the first side that has it has."""
        return next(placed for placed in self.sides if placed is not None)

    @property
    def is_headline(self) -> bool:
        """Whether any side has it as the purpose of a run."""
        return any(placed is not None and placed.quantity.is_headline for placed in self.sides)


def matched(sides: Sequence[Sequence[Placed]]) -> tuple[Matched, ...]:
    """Return every quantity that any side has, in the order of the sides."""
    by_side: list[dict[Key, list[Placed]]] = []
    for side in sides:
        groups: dict[Key, list[Placed]] = {}
        for placed in side:
            if placed.quantity.unit:
                groups.setdefault(placed.key, []).append(placed)
        by_side.append(groups)
    refused = [[placed for placed in side if not placed.quantity.unit] for side in sides]
    rows: list[Matched] = []
    for key in dict.fromkeys(key for groups in by_side for key in groups):
        for members in _by_load([groups.get(key, []) for groups in by_side]):
            known = next(placed for placed in members if placed is not None)
            refusals = tuple(
                None if member is not None else _refusal(known, others)
                for member, others in zip(members, refused, strict=True)
            )
            rows.append(Matched(sides=members, refusals=refusals))
    return tuple(rows)


def _by_load(members: Sequence[Sequence[Placed]]) -> list[tuple[Placed | None, ...]]:
    """Split what differs in its load alone: by the load that the file asks for.

    Loss and delay are functions of the load, so figures at different loads are different quantities. But a share of the
    line, or of what was measured before, is the same share on each side, although it may be another load.
    """
    loads = dict.fromkeys(placed.asked_load for of_side in members for placed in of_side)
    return [
        tuple(next((placed for placed in of_side if placed.asked_load == load), None) for of_side in members)
        for load in loads
    ]


def _refusal(placed: Placed, refused: Sequence[Placed]) -> str | None:
    """Return why a side did not measure a quantity that another has."""
    where = placed.place
    for other in refused:
        same = all(where.get(name, value) == value for name, value in other.place.items())
        if same and other.quantity.procedure == placed.quantity.procedure:
            return other.quantity.refused
    return None


def pooled(campaigns: Sequence[Sequence[Quantity]]) -> list[Quantity]:
    """Return the quantities of a campaign that was made several times, with a value for each time.

    What changes from one time to the next, such as other work of the machine, all repetitions of a campaign have in
    common; so the campaigns, not their repetitions, are what is independent. What any of them lacks has no value.
    """
    rows = matched([[Placed(quantity=quantity, where={}) for quantity in campaign] for campaign in campaigns])
    quantities = []
    for row in rows:
        known, figures, reason = row.known.quantity, [], None
        for place, placed in enumerate(row.sides, start=1):
            lacks = "does not have it" if placed is None else why_not(placed.quantity)
            if placed is None or lacks is not None or placed.quantity.value is None:
                reason = reason or f"campaign {place} of {len(campaigns)}: {lacks}"
            else:
                figures.append(Fraction(placed.quantity.value))
        whole = None if reason is not None else Summary.of(figures)
        resolutions = [placed.quantity.resolution or 0 for placed in row.sides if placed is not None]
        quantities.append(
            Quantity(
                run=known.run,
                procedure=known.procedure,
                name=known.name,
                unit=known.unit,
                better=known.better,
                coordinates=known.coordinates,
                load_share=known.load_share,
                values=() if whole is None else tuple(number(value) for value in figures),
                repetitions=len(figures),
                resolution=max(resolutions) or None,
                limited_by=known.limited_by if whole is not None else None,
                refused=reason,
                is_headline=row.is_headline,
                median=None if whole is None else whole.median,
                p1=None if whole is None else whole.p1,
                p99=None if whole is None else whole.p99,
            )
        )
    return quantities


def why_not(quantity: Quantity) -> str | None:
    """Return why a figure must be compared with nothing; None if it is the gateway's own and not only a bound."""
    if quantity.refused is not None:
        return quantity.refused
    if quantity.limited_by in NOT_THE_GATEWAY:
        return "the gateway's host was not quiet" if quantity.limited_by == "host" else "the Tester was the limit"
    if quantity.limited_by == "maximum":
        return "the highest load allowed was the limit"
    if not quantity.is_certain:
        return "its repetitions differ too much"
    return "nothing was measured, or not in every repetition" if quantity.value is None else None


def figure_of(side: str, placed: Placed | None, refusal: str | None) -> SideFigure:
    """Return a quantity as one side has it."""
    if placed is None:
        return SideFigure(
            side=side, figure=None, values=(), p1=None, p99=None, repetitions=0, resolution=None, at_least=None,
            limited_by=None, load_frames_per_second=None, reason=refusal or "this side does not have it",
        )  # fmt: skip
    quantity = placed.quantity
    reason = why_not(quantity)
    known = reason is None
    least = quantity.lower_bound if quantity.limited_by in (*NOT_THE_GATEWAY, "maximum") else None
    return SideFigure(
        side=side,
        figure=quantity.value if known else None,
        values=quantity.values,
        p1=quantity.p1 if known else None,
        p99=quantity.p99 if known else None,
        repetitions=quantity.repetitions,
        resolution=quantity.resolution,
        at_least=None if quantity.refused is not None else least,
        limited_by=quantity.limited_by,
        load_frames_per_second=placed.load,
        reason=reason,
    )


def compared(
    rows: Sequence[Matched], labels: Sequence[str], confidence: Fraction
) -> tuple[tuple[ComparedQuantity, ...], int]:
    """Return the quantities with every side against the first, and how many intervals there are.

    The error is shared among the intervals (Bonferroni), so that more figures do not mean more false alarms.
    """
    figures = [tuple(figure_of(*side) for side in zip(labels, row.sides, row.refusals, strict=True)) for row in rows]
    intervals = sum(_unjudged(of_row[0], other) is None for of_row in figures for other in of_row[1:])
    each = 1 - (1 - confidence) / max(1, intervals)
    quantities = []
    for row, of_row in zip(rows, figures, strict=True):
        known = row.known.quantity
        place = row.known.place
        quantities.append(
            ComparedQuantity(
                procedure=known.procedure,
                quantity=known.name,
                unit=known.unit,
                better=known.better,
                headline=row.is_headline,
                where={name: place[name] for name in ordered(place)},
                figures=of_row,
                comparisons=tuple(_comparison(known, of_row[0], other, each) for other in of_row[1:]),
            )
        )
    return tuple(quantities), intervals


def _unjudged(first: SideFigure, other: SideFigure) -> str | None:
    """Return why two figures cannot be judged, whatever their number of repetitions; None if they can."""
    for figure in (first, other):
        if figure.reason is not None:
            return f"{figure.side}: {figure.reason}"
        if not figure.values or None in figure.values:
            return f"{figure.side}: there is one figure for all repetitions, and no value of each"
    return None


def _comparison(quantity: Quantity, first: SideFigure, other: SideFigure, confidence: Fraction) -> Comparison:
    ratio = None
    if first.figure is not None and first.figure > 0 and other.figure is not None and other.figure >= 0:
        ratio = float(Fraction(other.figure) / Fraction(first.figure))
    reason, interval, is_ratio = _unjudged(first, other), None, True
    if reason is None:
        interval, is_ratio = _interval(first, other, quantity.better, confidence)
        if interval is None:
            reason = (
                f"too few values: {len(first.values)} and {len(other.values)}; {repetitions_needed(confidence)} of"
                " each would do"
            )
    judgement: Judgement = "not_judged"
    if interval is not None:
        judgement = judged(interval, 1 if is_ratio else 0, quantity)
    return Comparison(
        side=other.side,
        ratio=ratio,
        interval_of=None if interval is None else "ratio" if is_ratio else "difference",
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        judgement=judgement,
        reason=reason,
    )


def _interval(
    first: SideFigure, other: SideFigure, better: Better | None, confidence: Fraction
) -> tuple[Interval | None, bool]:
    """Return the interval of two figures with all their values, and whether it is that of their ratio."""
    least = [
        [
            float(true_range(Fraction(value), figure.resolution, better)[0])
            for value in figure.values
            if value is not None
        ]
        for figure in (first, other)
    ]
    resolutions = (first.resolution or 0, other.resolution or 0)
    if min(*least[0], *least[1]) > 0:
        return ratio_interval(least[0], least[1], confidence, resolutions=resolutions), True
    return difference_interval(least[0], least[1], confidence, resolutions=resolutions), False


def judged(interval: Interval, neutral: float, quantity: Quantity) -> Judgement:
    """Return what an interval shows, if `neutral` is where figures are equal."""
    if interval.low <= neutral <= interval.high:
        return "no_difference"
    if quantity.better is None:
        return "different"
    return "better" if (interval.low > neutral) == (quantity.better == "higher") else "worse"


def chosen(rows: Sequence[Matched], names: Collection[str], *, everything: bool, headlines: bool) -> list[Matched]:
    """Return the rows to compare: all, those with these names, and with `headlines` the purpose of each run."""
    return [
        row
        for row in rows
        if everything or (headlines and row.is_headline) or row.known.quantity.name.casefold() in names
    ]
