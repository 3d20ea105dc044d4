"""The tidy quantities of all columns as one table: which figures are the same metric, and how they compare. Pure.

Nothing here knows a procedure: what makes two figures the same metric are their names and coordinates.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gatemark.config.vary import value_words
from gatemark.results.coordinates import CONNECTIONS, LOAD, SIZES, Coordinate, ordered
from gatemark.results.document import ResultDocument
from gatemark.results.part import LimitedBy
from gatemark.results.quantity import Quantity, Row, true_range
from gatemark.results.unit import unit_named
from gatemark.series.document import (
    ENDED,
    OF_QUANTITY,
    ColumnFigure,
    Degradation,
    Metric,
    SeriesColumn,
    SeriesDocument,
    SumOfDirections,
)
from gatemark.series.memory import memory_estimates, subscriber_estimates
from gatemark.stats.series import (
    degradation_error,
    degradation_percent,
    ratios_to_previous,
    relative_scale_ups,
)
from gatemark.stats.summary import Number
from gatemark.technology import TECHNOLOGIES

Name = tuple[str, str, str]
"""Procedure, name and unit of a quantity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRows:
    """What is known of one column."""

    number: int
    steps: tuple[int, ...]
    """Which value of each `[[vary]]` it has."""
    unvaried: frozenset[int] = frozenset()
    """Each `[[vary]]` of which it has no key: it is the same whatever their value."""
    cores: int | None
    quantities: tuple[Quantity, ...]
    """None where it was not measured."""
    connections: int | None = None
    """Number of connections, where its campaign has one: known also of a column that was not measured."""
    is_plain_forwarding: bool = False
    """Whether its gateway is a router, the reference of translators and NATs."""
    endpoints: tuple[object, ...] = ()
    """Ports and hosts of its frames: a share of plain forwarding compares columns with the same."""
    flows: int | None = None
    """Network flows of each direction (RFC 8219 section 10)."""
    flow_interval_ns: int | None = None
    """From the start of one flow to that of the next; None if all start together."""
    gateway: tuple[str, ...] = ()
    """What is measured: only figures of the same gateway have a degradation."""
    frames_needed_ns: int | None = None
    """Sending time in which each flow must have a frame; None where every flow is in the gateway before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """One figure of a metric under way."""

    column: ColumnRows
    quantity: Quantity
    where: Mapping[str, Coordinate]


def joined(
    document: SeriesDocument, results: Mapping[int, ResultDocument], more: Mapping[int, Sequence[Quantity]]
) -> SeriesDocument:
    """Return a series with the metrics of its columns as they are now.

    `results` has what was found in columns, `more` the figures of columns under way, which have no newer result.
    """
    columns = [_with_trials(column, results.get(column.number)) for column in document.columns]
    rows = [
        ColumnRows(
            number=column.number,
            steps=column.steps,
            unvaried=frozenset(
                part for part, varied in enumerate(document.varied) if not set(varied.keys) & set(column.settings)
            ),
            cores=column.parameters.cores,
            quantities=_quantities(column, results, more),
            connections=column.parameters.connections[0] if len(column.parameters.connections) == 1 else None,
            is_plain_forwarding=TECHNOLOGIES[column.parameters.technology].is_plain_forwarding,
            endpoints=_endpoints(column),
            flows=column.parameters.flows,
            flow_interval_ns=column.parameters.flow_interval_ns,
            gateway=(column.parameters.gateway, column.parameters.technology),
            frames_needed_ns=None if column.parameters.connections else column.parameters.duration_ns,
        )
        for column in columns
    ]
    complete = all(column.outcome in ENDED for column in columns)
    return document.model_copy(
        update={
            "columns": tuple(columns),
            "metrics": metrics_of(rows),
            "memory": memory_estimates(columns, results),
            "subscriber_memory": subscriber_estimates(columns, results),
            "status": "complete" if complete else "incomplete",
        }
    )


def _endpoints(column: SeriesColumn) -> tuple[object, ...]:
    known = column.parameters
    return known.source_ports, known.destination_ports, known.source_hosts, known.destination_hosts


def _with_trials(column: SeriesColumn, result: ResultDocument | None) -> SeriesColumn:
    """Return a column as its result folder has it: it may have been measured to its end by itself."""
    if result is None:
        return column
    update: dict[str, object] = {"trials": result.validity.trials, "invalid_trials": result.validity.invalid}
    if result.status == "complete":
        update |= {"outcome": "measured", "reason": None}
    return column.model_copy(update=update)


def _quantities(
    column: SeriesColumn, results: Mapping[int, ResultDocument], more: Mapping[int, Sequence[Quantity]]
) -> tuple[Quantity, ...]:
    if column.number in more:
        return tuple(more[column.number])
    result = results.get(column.number)
    return () if result is None else tuple(row.quantity for row in result.rows())


def csv_rows(
    document: SeriesDocument, results: Mapping[int, ResultDocument], more: Mapping[int, Sequence[Quantity]]
) -> Iterator[Row]:
    """Yield the tidy table of all columns; a column without figures has one row that says why."""
    for column in document.columns:
        parameters, result = column.parameters, results.get(column.number)
        where: dict[str, Coordinate] = {"column": column.number, "title": column.title, "outcome": column.outcome}
        where |= {"cores": parameters.cores} if parameters.cores is not None else {}
        where |= {key: value_words(value) for key, value in column.settings.items()}
        quantities = _quantities(column, results, more)
        if not quantities:
            reason = column.reason or "not measured yet"
            quantities = (Quantity(run=0, procedure="", name="", unit="", better=None, coordinates={}, refused=reason),)
        for quantity in quantities:
            yield Row(
                campaign=document.name if result is None else result.name,
                gateway=parameters.gateway if result is None else result.gateway.name,
                quantity=quantity,
                coordinates=where,
            )


def metrics_of(columns: Sequence[ColumnRows]) -> tuple[Metric, ...]:
    """Return every metric over the columns, in the order in which the columns have them."""
    of_column = {name: {*_of_the_column(columns, name)} for name in _names(columns)}
    groups: dict[tuple[Name, tuple[tuple[str, Coordinate], ...]], list[_Member]] = {}
    for column in columns:
        for quantity in column.quantities:
            if quantity.unit:
                name, where = _name(quantity), quantity.coordinates
                places = [key for key in ordered(where) if key != LOAD]
                fixed = tuple((key, where[key]) for key in places if key not in of_column[name])
                apart = {key: where[key] for key in places if key in of_column[name]}
                member = _Member(column=column, quantity=quantity, where=apart)
                groups.setdefault((name, fixed), []).append(member)
    joined: list[_Joined] = []
    for (name, fixed), members in groups.items():
        together = [members] if LOAD in of_column[name] else _by_load(members)
        joined += [(name, dict(fixed), same) for same in together]
    return tuple(_metric(columns, *whole) for whole in _with_refusals(columns, joined))


def _names(columns: Iterable[ColumnRows]) -> dict[Name, None]:
    return dict.fromkeys(_name(quantity) for column in columns for quantity in column.quantities)


def _name(quantity: Quantity) -> Name:
    return quantity.procedure, quantity.name, quantity.unit


def _of_the_column(columns: Iterable[ColumnRows], name: Name) -> Iterator[str]:
    """Yield the coordinates of a quantity that have one value in each column, but not the same in all."""
    measured: list[list[Mapping[str, Coordinate]]] = []
    planned: set[Coordinate] = set()  # numbers of connections of columns without this quantity
    for column in columns:
        if places := [quantity.asked for quantity in column.quantities if _name(quantity) == name]:
            measured.append(places)
        elif column.connections is not None:
            planned.add(column.connections)
    for key in dict.fromkeys(key for of_column in measured for where in of_column for key in where):
        values = [{where.get(key) for where in of_column} for of_column in measured]
        more = planned if key == CONNECTIONS and {None} not in values else set()
        if all(len(of_column) == 1 for of_column in values) and len(more.union(*values)) > 1:
            yield key


_Joined = tuple[Name, dict[str, Coordinate], list[_Member]]


def _by_load(members: Iterable[_Member]) -> Iterable[list[_Member]]:
    """Split figures that differ in their load alone by the load that the file asks for: a share is another one in each
    column."""
    by_load: dict[Coordinate, list[_Member]] = {}
    for member in members:
        by_load.setdefault(member.quantity.asked.get(LOAD), []).append(member)
    return by_load.values()


def _with_refusals(columns: Sequence[ColumnRows], joined: list[_Joined]) -> Iterator[_Joined]:
    """Add what a column refused to measure to the metrics that others have of the same procedure."""
    refused = [
        _Member(column=column, quantity=quantity, where={})
        for column in columns
        for quantity in column.quantities
        if not quantity.unit
    ]
    told: list[_Member] = []
    for name, fixed, members in joined:
        there = {member.column.number for member in members}
        nearest: dict[int, _Member] = {}
        for member in sorted(refused, key=lambda member: _common(member.quantity, fixed)):
            if member.quantity.procedure == name[0] and member.column.number not in there:
                nearest[member.column.number] = member
        told += nearest.values()
        yield name, fixed, sorted([*members, *nearest.values()], key=lambda member: member.column.number)
    alone: dict[Name, dict[int, _Member]] = {}
    for member in refused:
        if member not in told:
            alone.setdefault(_name(member.quantity), {}).setdefault(member.column.number, member)
    for name, first in alone.items():
        yield name, {}, [first[number] for number in sorted(first)]


def _common(quantity: Quantity, where: Mapping[str, Coordinate]) -> int:
    """Return how many of these coordinates a quantity has."""
    return sum(quantity.coordinates.get(key) == value for key, value in where.items())


def _metric(columns: Sequence[ColumnRows], name: Name, fixed: dict[str, Coordinate], members: list[_Member]) -> Metric:
    known = {member.column.number: member for member in members}
    where = _common_load(fixed, members)
    ratios, scale_ups = _ratios(columns, known), _scale_ups(columns, known)
    degradations = dict(_degradations(columns, known))
    first = next((member.quantity for member in members if member.quantity.unit), members[0].quantity)
    return Metric(
        procedure=name[0],
        quantity=name[1],
        unit=name[2],
        better=first.better,
        headline=first.is_headline,
        where=where,
        figures=tuple(
            _figure(
                member,
                where,
                ratio=ratios.get(number),
                scale_up=scale_ups.get(number),
                share=_share(columns, member),
                degradation=degradations.get(number),
            )
            for number, member in known.items()
        ),
    )


def _common_load(fixed: dict[str, Coordinate], members: Sequence[_Member]) -> dict[str, Coordinate]:
    """Return the coordinates that all figures have, with the load if it is the same."""
    loads = {member.quantity.coordinates.get(LOAD) for member in members if member.quantity.unit}
    return {**fixed, LOAD: loads.pop()} if len(loads) == 1 and loads != {None} else fixed


def _figure(
    member: _Member,
    where: Mapping[str, Coordinate],
    *,
    ratio: Fraction | None,
    scale_up: Fraction | None,
    share: Fraction | None,
    degradation: Degradation | None,
) -> ColumnFigure:
    quantity = member.quantity
    load = quantity.coordinates.get(LOAD)
    own_load = {} if load is None or LOAD in where else {LOAD: load}
    return ColumnFigure(
        column=member.column.number,
        where={**member.where, **own_load},
        certain=quantity.is_certain,
        sum_of_directions=_sum(quantity),
        ratio_to_previous=None if ratio is None else float(ratio),
        scale_up=None if scale_up is None else float(scale_up),
        share_of_plain_forwarding=None if share is None else float(share),
        degradation=degradation,
        **{name: getattr(quantity, name) for name in OF_QUANTITY},
    )


def _sum(quantity: Quantity) -> SumOfDirections | None:
    """Return a rate of both directions together; None if it is no rate of bidirectional frames."""
    both, error = quantity.sum_of_directions, quantity.resolution
    if both is None or quantity.p1 is None or quantity.p99 is None:
        return None
    return SumOfDirections(
        median=both,
        p1=2 * quantity.p1,
        p99=2 * quantity.p99,
        resolution=None if error is None else 2 * error,
    )


def _ratios(columns: Sequence[ColumnRows], known: Mapping[int, _Member]) -> dict[int, Fraction]:
    """Return the ratio of each figure to that of the column before, along the part that changes fastest."""
    lines: dict[tuple[tuple[int, ...], bool], list[ColumnRows]] = {}
    for column in columns:  # a router beside a translator is compared by its share
        lines.setdefault((column.steps[:-1], column.is_plain_forwarding), []).append(column)
    ratios = {}
    for line in lines.values():
        values = [known[c.number].quantity.comparable if c.number in known else None for c in line]
        steps = ratios_to_previous([Fraction(value or 0) for value in values])
        ratios.update(
            {
                column.number: ratio
                for column, ratio, value in zip(line, steps, values, strict=True)
                if ratio is not None and value is not None
            }
        )
    return ratios


def expected_results(quantities: Iterable[Quantity]) -> dict[str, int]:
    """Return what a search of another column may expect, by procedure: the middle of its rates that the gateway limits.

    Only where a search begins depends on it, so one figure will do for all frame sizes and directions of a column.
    """
    rates: dict[str, list[Number]] = {}
    for quantity in quantities:
        value = quantity.comparable
        if quantity.is_headline and quantity.resolution is not None and value and unit_named(quantity.unit).is_rate:
            rates.setdefault(quantity.procedure, []).append(value)
    return {procedure: int(statistics.median_low(values)) for procedure, values in rates.items()}


def _share(columns: Sequence[ColumnRows], member: _Member) -> Fraction | None:
    """Return a rate of frames as a part of that of a router with the same cores, ports, hosts and frames.

    None unless exactly one column has such a router and differs from that of the rate in one part of the series, and
    unless the gateway limited both. Both rates are those of the same direction.
    """
    column, rate = member.column, member.quantity
    value = rate.comparable if unit_named(rate.unit).is_one_way else None
    if column.is_plain_forwarding or not value:
        return None
    routers = [other for other in columns if other.is_plain_forwarding and _differ_in_one_part(column, other)]
    rates = [
        quantity
        for other in routers
        if other.cores == column.cores and other.endpoints == column.endpoints
        for quantity in other.quantities
        if _name(quantity) == _name(rate) and _same_frames(quantity, rate)
    ]
    whole = rates[0].comparable if len(rates) == 1 else None
    return Fraction(value) / Fraction(whole) if whole else None


def _differ_in_one_part(column: ColumnRows, router: ColumnRows) -> bool:
    """Whether both differ in one part, not counting those of which the router has no key."""
    pairs = enumerate(zip(column.steps, router.steps, strict=True))
    return sum(mine != theirs for part, (mine, theirs) in pairs if part not in router.unvaried) == 1


def _same_frames(router: Quantity, translator: Quantity) -> bool:
    """Whether both were measured with the same frames: a router has no connections, and one family of sizes."""
    mine = {key for key, value in router.coordinates.items() if value is not None}
    theirs = {key for key, value in translator.coordinates.items() if value is not None}
    free = {CONNECTIONS, *SIZES}
    if mine - free != theirs - free or not mine & theirs & {*SIZES}:
        return False
    return all(router.coordinates[key] == translator.coordinates[key] for key in mine & theirs)


def _scale_ups(columns: Sequence[ColumnRows], known: Mapping[int, _Member]) -> dict[int, Fraction]:
    """Return X(n) / (n X(1)) of each rate in columns that differ in the cores of the gateway alone.

    None where two columns have as many cores, or where something else that matters differs: then nothing says which
    of them, or what, is compared.
    """
    scale_ups: dict[int, Fraction] = {}
    for group in core_groups(columns):
        rates: dict[int, Fraction] = {}
        for cores, column in group.items():
            member = known.get(column.number)
            value = None if member is None else member.quantity.comparable
            if member is not None and value and unit_named(member.quantity.unit).is_rate:
                rates[cores] = Fraction(value)
        base = known.get(group[1].number)
        if 1 not in rates or base is None:
            continue
        alike = {cores for cores in rates if _place(known[group[cores].number]) == _place(base)}
        of_cores = relative_scale_ups({cores: rate for cores, rate in rates.items() if cores in alike})
        scale_ups |= {group[cores].number: ratio for cores, ratio in of_cores.items()}
    return scale_ups


def core_groups(columns: Sequence[ColumnRows]) -> Iterator[dict[int, ColumnRows]]:
    """Yield columns that differ in cores alone, by cores: one core and more of them."""
    for members in _along_each_part(columns):
        by_cores = {column.cores: column for column in members if column.cores is not None}
        if len(by_cores) == len(members) > 1 and 1 in by_cores:
            yield by_cores


def flow_groups(columns: Sequence[ColumnRows]) -> Iterator[dict[int, ColumnRows]]:
    """Yield columns that differ in flows, by their number: one flow and more of them, of one gateway with its cores."""
    for members in _along_each_part(columns):
        by_flows = {column.flows: column for column in members if column.flows is not None}
        gateways = {(column.gateway, column.cores) for column in members}
        if len(by_flows) == len(members) > 1 and 1 in by_flows and len(gateways) == 1:
            yield by_flows


def _along_each_part(columns: Sequence[ColumnRows]) -> Iterator[list[ColumnRows]]:
    """Yield the columns that differ in one part of the series alone, for each part."""
    for part in range(len(columns[0].steps) if columns else 0):
        groups: dict[tuple[int, ...], list[ColumnRows]] = {}
        for column in columns:
            groups.setdefault((*column.steps[:part], *column.steps[part + 1 :]), []).append(column)
        yield from groups.values()


def _degradations(columns: Sequence[ColumnRows], known: Mapping[int, _Member]) -> Iterator[tuple[int, Degradation]]:
    """Yield the degradation of each figure with n flows, by its column; of a metric that is better or worse."""
    for group in flow_groups(columns):
        single = known.get(group[1].number)
        for flows, column in sorted(group.items()):
            many = known.get(column.number)
            if flows == 1 or single is None or many is None or many.quantity.better is None:
                continue
            if {**_place(many), CONNECTIONS: None} == {**_place(single), CONNECTIONS: None}:
                yield column.number, _degradation(flows, single, many)


def _degradation(flows: int, single: _Member, many: _Member) -> Degradation:
    """Return Xpd of two figures, or why there is none."""
    before, after = single.quantity.comparable, many.quantity.comparable
    reason = _why_none(single, 1) or _why_none(many, flows)
    percent = error = None
    if reason is None and before is not None and after is not None:
        if before <= 0:
            reason = "the figure with 1 flow is not above 0"
        elif after < 0:
            reason = f"the figure with {flows} flows is below 0"
        else:
            x1, xn = Fraction(before), Fraction(after)
            percent = float(degradation_percent(x1, xn, higher_is_better=many.quantity.better == "higher"))
            figures = [(x1, single.quantity.resolution), (xn, many.quantity.resolution)]
            if all(resolution is not None for _, resolution in figures):
                ranges = [true_range(value, resolution, many.quantity.better) for value, resolution in figures]
                points = degradation_error(x1, xn, *ranges)
                error = None if points is None else float(points)
    return Degradation(
        flows=flows,
        single_column=single.column.number,
        interval_ns=many.column.flow_interval_ns,
        percent=percent,
        error_points=error,
        reason=reason,
    )


_NO_FIGURE: Mapping[LimitedBy | None, str] = {
    "tester": "the Tester limited it",
    "host": "the gateway's host was not quiet",
    "maximum": "it is only a lower bound",
}
"""Why a figure is not the gateway's own, in words."""


def _why_none(member: _Member, flows: int) -> str | None:
    """Return why a figure is nothing to compare; None if it is."""
    quantity, words = member.quantity, "1 flow" if flows == 1 else f"{flows:,} flows"
    if quantity.comparable is None:
        return f"with {words} {_NO_FIGURE.get(quantity.limited_by, 'it is not certain or not measured')}"
    rate = quantity.value if unit_named(quantity.unit).is_one_way else quantity.coordinates.get(LOAD)
    time_ns = member.column.frames_needed_ns
    if time_ns is None or not isinstance(rate, int | float) or not 0 < rate * time_ns < flows * 10**9:
        return None
    return f"a trial has fewer frames than the {flows:,} flows"


def _place(member: _Member) -> dict[str, Coordinate]:
    return {key: value for key, value in member.quantity.coordinates.items() if key != LOAD}
