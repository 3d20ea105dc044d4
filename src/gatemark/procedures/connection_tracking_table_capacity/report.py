"""The section of the report about the connection tracking table capacity (RFC 9693 section 4.9). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import collapse_addresses, ip_network
from typing import Any, NamedTuple

from gatemark.map_domains.port_set import PortSet
from gatemark.procedures.connection_tracking_table_capacity.result import (
    NO_CAPACITY,
    CapacityResult,
    CapacitySearch,
    Overflow,
)
from gatemark.report.event_words import LIMIT
from gatemark.report.headline import context_of, not_made
from gatemark.report.model import ReportPart
from gatemark.report.table import Column, Plot, Section, Table, plot, table_of
from gatemark.report.trial_plots import search_plot
from gatemark.report.words import (
    DASH,
    counted_words,
    format_count,
    format_percent,
    format_ratio,
    rate_cell,
    repeated,
    run_name,
    tester_limit,
)
from gatemark.results.document import Gateway, ResultDocument
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.stats.summary import Number

TITLE = "Connection tracking table capacity"
MEANING = (
    "C0 and R0: first size and its validated rate; CS, RS and CT, RT: the last size that was stored and the first that"
    " was not in the exponential search; C: the capacity (RFC 9693 section 4.9)."
)

FAR = 10
"""The capacity is far from the stated size if they differ by more than one of so many parts of that."""
OVERFLOWS: Mapping[Overflow, str] = {
    "refused": "new connections were refused",
    "evicted": "new connections were accepted and established ones lost",
    "untranslated": "frames of new connections were forwarded untranslated",
    **NO_CAPACITY,
    "unusable": (
        "the gateway still counted connections whose frames it no longer passed: they had expired, or half of their"
        " mapping was gone"
    ),
    "collapsed": "the gateway stopped working and was started again",
    "other": "connections failed in some other way",
}
"""What a gateway did with connections beyond its capacity."""
LOST = {
    "oldest": "the oldest connections were lost",
    "newest": "the newest connections were lost",
    "spread": "lost connections were spread over all",
}
"""Which established connections were gone, in order of establishment."""


def section(document: ResultDocument, runs: Sequence[CapacityResult]) -> Section:
    """Return one table per run, with a row per search."""
    tables = tuple(_table(document.gateway, run) for run in runs)
    return Section(title=TITLE, lead=(MEANING,), tables=tables, notes=not_made(runs))


def _table(gateway: Gateway, run: CapacityResult) -> Table:
    title = (
        f"alpha {format_ratio(run.alpha)}, beta {format_ratio(run.beta)}, gamma {format_ratio(run.gamma)},"
        f" E {format_count(run.resolution)} connections, e {format_count(run.rate_resolution)} connections/s"
    )
    rows = [_of_search(run, number, search) for number, search in enumerate(run.repetitions, start=1)]
    if run.capacity is not None and len(rows) > 1:
        rows += [_of_all(run, name, label) for name, label in SUMMARIES.items()]
    return table_of(title, COLUMNS, rows, notes=[words] if (words := size_words(gateway, run)) else [])


class _Row(NamedTuple):
    """One search, or all of them together."""

    label: str
    figures: Mapping[str, Number | None]
    """By symbol."""
    beyond: str = ""
    """What happened beyond the capacity."""


SYMBOLS = ("C0", "R0", "CS", "RS", "CT", "RT", "C")
SUMMARIES = {"median": "median", "p1": "minimum (p1)", "p99": "maximum (p99)"}


def _figure(symbol: str) -> Column[_Row]:
    return Column(symbol, lambda row: format_count(row.figures[symbol]), strong=symbol == "C")


COLUMNS: tuple[Column[_Row], ...] = (
    Column("search", lambda row: row.label, numeric=False),
    *(_figure(symbol) for symbol in SYMBOLS),
    Column("beyond the capacity", lambda row: row.beyond, numeric=False),
)


def _of_search(run: CapacityResult, number: int, search: CapacitySearch) -> _Row:
    words = [OVERFLOWS[search.overflow]] if search.overflow is not None else []
    words += [LOST[search.lost_connections]] if search.lost_connections is not None else []
    if search.kind == "maximum_passed":
        words.append("none was reached: the search ended at its maximum")
    if search.kind == "tester_limited":
        words.append(LIMIT[run.limited_by])
    return _Row(str(number), _figures(search), "; ".join(words))


def _figures(search: CapacitySearch) -> dict[str, Number | None]:
    values = (search.c0, search.r0, search.cs, search.rs, search.ct, search.rt, search.lower_bound)
    return dict(zip(SYMBOLS, values, strict=True))


def _of_all(run: CapacityResult, name: str, label: str) -> _Row:
    """Return a figure over all searches; a size that differs between searches has none."""
    searches = [_figures(search) for search in run.repetitions]
    same = {symbol: values.pop() for symbol in SYMBOLS if len(values := {row[symbol] for row in searches}) == 1}
    summaries = {"R0": run.r0, "RS": run.rs, "C": run.capacity}
    over_all = {symbol: getattr(summary, name, None) for symbol, summary in summaries.items()}
    return _Row(label, {**dict.fromkeys(SYMBOLS), **same, **over_all})


def sentence(part: ReportPart, run: CapacityResult) -> str:
    """Return the capacity, and what happened beyond it."""
    context = (
        f"{context_of(part.document, run)}; validated at alpha {format_ratio(run.alpha)}, resolution"
        f" {format_count(run.resolution)} (RFC 9693 section 4.9)"
    )
    (capacity,) = (quantity for quantity in run.quantities() if quantity.is_headline)
    if run.limited_by in NOT_THE_GATEWAY:
        return f"{TITLE} not measured: {tester_limit(capacity)}, connections; {context}."
    if run.limited_by == "maximum" and run.capacity is None:
        return f"{TITLE}: {rate_cell(capacity)} connections; {context}. Some searches ended at the chosen maximum."
    if run.capacity is None:
        return f"{TITLE}: in some search not even the first size was held; {context}."
    least = "at least " if run.limited_by == "maximum" else ""
    text = f"{TITLE}: {least}{format_count(run.capacity.median)} connections, {repeated(run.capacity)}; {context}."
    if least:
        text += " The search ended at the chosen maximum."
    words = size_words(part.document.gateway, run)
    return f"{text}{overflow_text(run)}{' ' if words else ''}{words}"


class _Stated(NamedTuple):
    """How many connections a gateway is to hold."""

    size: int
    most: int
    """How many it may hold without another size or other ports, if the connections to several endpoints share ports."""
    words: str
    """What says so, as the end of a sentence that begins with the number of connections."""
    other: str
    """What another number means."""


def _stated(gateway: Gateway, run: CapacityResult) -> _Stated | None:
    """Return the number of connections that the gateway is to hold; None if nobody told.

    A customer edge has its ports once for each endpoint of the Responder, if its mapping depends on that. A pool says
    it where no size of a table does, for a single endpoint: smaller sizes may have had fewer than the largest one.
    """
    stated = []
    if gateway.table is not None and gateway.table.size is not None:
        words = "the gateway's table is stated to hold (gateway.table.size)"
        stated.append(_Stated(gateway.table.size, gateway.table.size, words, "another size is in force"))
    if run.connections is not None:
        responders = run.connections.destination_hosts * run.connections.destination_ports.ports
        if gateway.edge is not None:
            words, most = "the ports of the customer edge allow", gateway.edge.ports * responders
            shares = gateway.mapping != "endpoint_independent"
            stated.append(_Stated(most if shares else gateway.edge.ports, most, words, "it has other ports"))
        elif not stated and gateway.pool and gateway.pool_ports is not None:
            prefixes: Iterator[Any] = map(ip_network, gateway.pool)  # all of one family
            addresses = sum(prefix.num_addresses for prefix in collapse_addresses(prefixes))
            words, ports = "the public addresses and ports of the gateway allow", addresses * gateway.pool_ports.ports
            stated.append(_Stated(ports, ports * responders, words, "it has others"))
    return min(stated, default=None)


def size_words(gateway: Gateway, run: CapacityResult) -> str:
    """Say that the capacity is far from the size that is stated, and what the host counted; empty if it is not far.

    It is far if every repetition says so: a tenth of the stated size below it, or above. So a few entries that others
    have in the table, or that a kernel keeps to itself, do not count.
    """
    held = [search.lower_bound for search in run.repetitions if search.lower_bound is not None]
    stated = _stated(gateway, run)
    if stated is None or run.capacity is None or run.lower_bound is None:
        return ""
    size = stated.size
    spread = f"{format_count(min(held))} to {format_count(max(held))} in {len(held)} repetitions"
    figure = spread if len(held) > 1 else f"{format_count(held[0])} in one repetition"
    if FAR * (run.lower_bound - stated.most) > stated.most:
        most = f"the {format_count(stated.most)} connections that {stated.words}"
        return f"The capacity is above {most}: {figure}. So {stated.other}."
    if run.limited_by != "gateway" or run.upper_bound is None or FAR * (size - run.upper_bound) <= size:
        return ""
    share = format_percent(100 * run.capacity.median / size)
    is_known = all(search.overflow == "unusable" for search in run.repetitions)  # it held all, and refused none
    why = "" if is_known else f" {_counted_words(run)}"
    words = f"the {format_count(size)} connections that {stated.words}"
    return f"The capacity is far below {words}: {figure}, a median of {share}.{_range_words(gateway, run)}{why}"


def _range_words(gateway: Gateway, run: CapacityResult) -> str:
    """Say which ranges of a customer edge's port set no connection had; empty if all were in use, or it has only one.

    Only what lies below or above all ports in use is known not to be.
    """
    behaviour = None if run.connections is None else run.connections.behaviour
    if gateway.edge is None or behaviour is None:
        return ""
    edge = gateway.edge
    ranges = [*PortSet(psid_offset=edge.psid_offset, psid_bits=edge.psid_bits, psid=edge.psid).ranges()]
    lowest, highest = behaviour.public_port_minimum, behaviour.public_port_maximum
    unused = [(first, last) for first, last in ranges if last < lowest or first > highest]
    if not unused:
        return ""
    first, last = unused[0]
    return (
        f" Of the {len(ranges)} ranges of its port set {len(unused)} had no connection when"
        f" {format_count(behaviour.established)} were established, the first of them {first} {DASH} {last}."
    )


def _counted_words(run: CapacityResult) -> str:
    read = [search.counted for search in run.repetitions if search.counted is not None]
    if not read:
        return "The gateway's host could not be read, so why is not known."
    said = counted_words(read, f"of {len(run.repetitions)} searches")
    if not said:
        return "No counter of connections of the gateway's host grew then, so why is not known."
    return f"With too many connections the gateway's host counted {said}."


def overflow_text(run: CapacityResult) -> str:
    """What happened beyond the capacity and which connections were lost, as sentences; empty if that is not known."""
    total = len(run.repetitions)
    overflows = Counter(search.overflow for search in run.repetitions if search.overflow is not None)
    lost = Counter(search.lost_connections for search in run.repetitions if search.lost_connections is not None)
    text = "".join(
        f" Beyond it {OVERFLOWS[overflow]} ({n} of {total} searches)." for overflow, n in overflows.most_common()
    )
    return text + "".join(
        f" In the validation {LOST[which]} ({n} of {total} searches)." for which, n in lost.most_common()
    )


def plots(part: ReportPart, runs: Sequence[CapacityResult]) -> Iterator[Plot]:
    """Yield the rates that were tried."""
    for run in runs:
        drawing = search_plot(part.trials_of(run), unit="connections/s")
        yield from plot(drawing, f"Rate of every trial. {run_name(run)}.")
