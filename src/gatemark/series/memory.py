"""Memory of the gateway's host for each connection and each subscriber, estimated from measured columns. Pure.

The samples say what the whole host had available, so all that lives there is in them: without a clear difference
between an empty and a full table, and between few and many connections or subscribers, there is no estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import cast

from gatemark.results.document import ResultDocument
from gatemark.results.telemetry import Spread, TableMemory
from gatemark.series.document import ColumnAvailable, ColumnMemory, MemoryEstimate, SeriesColumn, SubscriberMemory
from gatemark.stats.summary import Number
from gatemark.technology import TechnologyName
from gatemark.trial.telemetry import AVAILABLE, MEASURED

TRIALS_MIN = 5
"""With fewer trials, chance too often looks like memory of the connections: with five, all values
of an empty table lie above those of a full one in one of 252 cases."""
KILOBYTE = 1024
GIGABYTE = 10**9


def memory_estimates(
    columns: Sequence[SeriesColumn], results: Mapping[int, ResultDocument]
) -> tuple[MemoryEstimate, ...]:
    """Return an estimate, or why there is none, for each gateway whose host was sampled with a full table."""
    known = sorted(_memory_of(columns, results), key=lambda pair: pair[0])
    return tuple(
        _estimate(gateway, technology, tuple(memory for _, memory in members))
        for (gateway, technology), members in groupby(known, key=lambda pair: pair[0])
    )


def _memory_of(
    columns: Sequence[SeriesColumn], results: Mapping[int, ResultDocument]
) -> Iterator[tuple[tuple[str, TechnologyName], ColumnMemory]]:
    for column in columns:
        result = results.get(column.number)
        if result is None or result.telemetry is None:
            continue
        gateway = column.parameters.gateway, column.parameters.technology
        for table in result.telemetry.tables:
            yield gateway, _of_table(column.number, table)


def _of_table(column: int, table: TableMemory) -> ColumnMemory:
    def per_connection(kilobytes: float) -> float:
        return round(kilobytes * KILOBYTE / table.connections, 3)

    return ColumnMemory(
        column=column,
        connections=table.connections,
        trials=table.trials,
        empty_kilobytes=table.empty.median,
        full_kilobytes=table.full.median,
        bytes=per_connection(float(table.empty.median - table.full.median)),
        bytes_minimum=per_connection(float(table.empty.minimum - table.full.maximum)),
        bytes_maximum=per_connection(float(table.empty.maximum - table.full.minimum)),
    )


def _estimate(gateway: str, technology: TechnologyName, members: tuple[ColumnMemory, ...]) -> MemoryEstimate:
    """Return the estimate of the most connections, where scatter matters least."""
    usable = [member for member in members if member.trials >= TRIALS_MIN]
    most = max(usable, key=lambda member: member.connections, default=None)
    reason = _why_not(usable, most)
    whole = MemoryEstimate(gateway=gateway, technology=technology, columns=members, reason=reason)
    if most is None or reason is not None:
        return whole
    return whole.model_copy(
        update={
            "bytes": most.bytes,
            "bytes_minimum": most.bytes_minimum,
            "bytes_maximum": most.bytes_maximum,
            "available_kilobytes": most.empty_kilobytes,
        }
    )


def subscriber_estimates(
    columns: Sequence[SeriesColumn], results: Mapping[int, ResultDocument]
) -> tuple[SubscriberMemory, ...]:
    """Return an estimate, or why there is none, for each gateway whose columns differ in one part of the series and in
    their subscribers.
    """
    alike: dict[tuple[object, ...], list[ColumnAvailable]] = {}
    for column in columns:
        known, result = column.parameters, results.get(column.number)
        values = () if result is None else tuple(_available(result))
        if known.subscribers is not None and values:
            spread = Spread(minimum=min(values), median=median(values), maximum=max(values))
            member = ColumnAvailable(
                column=column.number, subscribers=known.subscribers, values=len(values), available=spread
            )
            others = known.connections, known.cores, known.table_size, known.hash_size
            for part in range(len(column.steps)):
                same = (part, *column.steps[:part], *column.steps[part + 1 :])
                alike.setdefault((known.gateway, known.technology, others, same), []).append(member)
    estimates = []
    for (gateway, technology, *_), members in alike.items():
        members.sort(key=lambda member: member.subscribers)
        if len({member.subscribers for member in members}) == len(members) > 1:
            estimates.append(_of_subscribers(str(gateway), cast("TechnologyName", technology), tuple(members)))
    return tuple(estimates)


def _available(result: ResultDocument) -> Iterator[Number]:
    for run in result.runs:
        for level in run.telemetry:
            if (level.phase, level.series) == (MEASURED, AVAILABLE):
                yield from (value for value in level.values if value is not None)


def _of_subscribers(gateway: str, technology: TechnologyName, members: tuple[ColumnAvailable, ...]) -> SubscriberMemory:
    """Return the estimate of the fewest and the most subscribers, between which scatter matters least."""
    usable = [member for member in members if member.values >= TRIALS_MIN]
    whole = SubscriberMemory(gateway=gateway, technology=technology, columns=members, reason=None)
    if not usable or usable[0].subscribers == usable[-1].subscribers:
        reason = f"no two columns with different numbers of them have {TRIALS_MIN} samples of memory"
        return whole.model_copy(update={"reason": reason})
    few, many = usable[0], usable[-1]

    def each(before: Number, after: Number) -> float:
        return round(float(before - after) * KILOBYTE / (many.subscribers - few.subscribers), 3)

    if few.available.minimum <= many.available.maximum:
        reason = (
            f"the memory available with {few.subscribers:,} and with {many.subscribers:,} differs by less than it"
            f" scatters: by {each(few.available.median, many.available.median):.0f} bytes each in the median"
        )
        return whole.model_copy(update={"reason": reason})
    return whole.model_copy(
        update={
            "bytes": each(few.available.median, many.available.median),
            "bytes_minimum": each(few.available.minimum, many.available.maximum),
            "bytes_maximum": each(few.available.maximum, many.available.minimum),
        }
    )


def _why_not(usable: Sequence[ColumnMemory], most: ColumnMemory | None) -> str | None:
    if most is None:
        return f"no column has {TRIALS_MIN} trials with samples of memory before and after the table was filled"
    if most.bytes_minimum <= 0:
        return (
            f"the memory available with {most.connections:,} connections in the table and with none differs by less"
            " than it scatters"
        )
    least = min(usable, key=lambda member: member.connections)
    if least.connections < most.connections and most.least_taken <= least.most_taken:
        return (
            f"the memory that {least.connections:,} and {most.connections:,} connections take differs by less than it"
            " scatters"
        )
    return None


def warning(column: SeriesColumn, estimates: Sequence[MemoryEstimate]) -> str | None:
    """Return why the connections of a column may not fit into the memory of the gateway; None if nothing says so."""
    mine = column.parameters.gateway, column.parameters.technology
    estimate = next((known for known in estimates if (known.gateway, known.technology) == mine), None)
    connections = max(column.parameters.connections, default=0)
    if estimate is None or estimate.bytes is None or estimate.bytes_maximum is None:
        return None
    needed, most = (connections * each for each in (estimate.bytes, estimate.bytes_maximum))
    available = (estimate.available_kilobytes or 0) * KILOBYTE
    if most <= available:
        return None
    fit = "will not fit" if needed > available else "may not fit"
    return (
        f"its {connections:,} connections {fit} into the memory of the gateway's host: at {estimate.words} each they"
        f" take {_gigabytes(needed)}, up to {_gigabytes(most)}; {_gigabytes(available)} were available with an empty"
        " table"
    )


def _gigabytes(size: float) -> str:
    return f"{size / GIGABYTE:.3g} GB"
