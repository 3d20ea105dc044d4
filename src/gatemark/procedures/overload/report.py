"""The section of the report about echo requests of more and more clients. Pure.

The table has one column for each number of clients. Its first rows are those that such experiments print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from operator import attrgetter, itemgetter

from gatemark.procedures.overload.result import (
    BUSY_SHARE_MAX,
    LOOP_FACTOR,
    OUTSTANDING_EXCESS,
    OWN_SHARE_MAX,
    EchoClientPart,
    EchoCounts,
    GracefulCheck,
    HostFigure,
    OverloadPoint,
    OverloadResult,
    OwnLoop,
    rtt_words,
)
from gatemark.report.headline import not_made
from gatemark.report.model import ReportPart
from gatemark.report.plots import AXES, axis_of, plot_against
from gatemark.report.table import Block, Column, Plot, Section, Table, plot, table_of, turned
from gatemark.report.words import (
    DASH,
    format_count,
    format_in,
    format_percent,
    format_share,
    format_sizes,
    format_time,
    name_sizes,
    technology_words,
    unit_of_times,
)
from gatemark.results.document import ResultDocument
from gatemark.results.part import Figure
from gatemark.results.quantity import Row
from gatemark.results.telemetry import is_of_one_core
from gatemark.results.unit import unit_named
from gatemark.stats.percentiles import DELAY_PERCENTILES
from gatemark.stats.summary import Number
from gatemark.units import format_duration_ns

TITLE = "Overload by echo requests"
COLUMNS_MAX = 8
CLIENTS_SHOWN_MAX = 16
"""More clients than this have no table of their own: `result.json` has all of them."""
KILOBYTES_PER_MEGABYTE = 1024

Words = Callable[[Number], str]


def section(document: ResultDocument, runs: Sequence[OverloadResult]) -> Section:
    """Return the tables of all runs, the judgement, and what stands against the figures."""
    tables = [table for run in runs if run.refused is None for table in _tables(run)]
    notes = [note for run in runs if run.refused is None for note in (*judgement_words(run), *_notes(run))]
    return Section(
        title=TITLE,
        lead=tuple(dict.fromkeys(meaning(run) for run in runs)),
        tables=tuple(tables),
        notes=(*dict.fromkeys(notes), *not_made(runs)),
    )


def meaning(run: OverloadResult) -> str:
    """Say what was sent, and what counts as what."""
    pace = f" or {format_duration_ns(run.pace_without_reply_ns)} without one" if run.pace_without_reply_ns else ""
    how = (
        f"has {run.window} requests under way, each slot sending its next one on the reply to the last{pace}"
        if run.mode == "closed_loop"
        else "sends its part of a constant rate"
    )
    return (
        f"Each client {how}, {run.count} to each of {format_count(run.destinations)} destinations with an identifier"
        f" of its own; frames of {format_sizes(run)} octets (IPv4 / IPv6). A round trip is from just before the"
        " request is handed to its port until just after the poll that returns the reply; the first request to a"
        " destination, for which the gateway makes its state, is in all figures but where it stands apart. Loss is"
        f" requests without a correct reply within {format_duration_ns(run.timeout_ns)}. Such a request ranks above"
        " every round trip: percentiles"
        f' are of all requests, and one that falls on it is "{NO_REPLY}"; the other times are of the replies. Packets/s'
        " are of the time in which all clients ask,"
        " and of requests or replies alone. Shown are medians of the repetitions, with 1st and 99th percentile."
    )


NO_REPLY = "no reply"
"""In the place of a percentile of the round-trip times that falls on a request without a correct reply in time."""


def _tables(run: OverloadResult) -> Iterator[Table]:
    unit, unit_ns = unit_of_times(
        value for point in run.points for figure in point.rtt_ns.values() for value in figure.values
    )
    for at in range(0, len(run.points), COLUMNS_MAX):
        points = run.points[at : at + COLUMNS_MAX]
        yield turned(
            f"{TITLE}, {'closed loop' if run.mode == 'closed_loop' else 'constant rate'}",
            "",
            [_heading(point) for point in points],
            [Block(lines, points, heading) for heading, lines in _lines(run, points, unit, unit_ns).items()],
        )
    shown = [point for point in run.points if 1 < point.clients <= CLIENTS_SHOWN_MAX and point.repetitions]
    if shown:
        yield _client_table(shown, unit, unit_ns)


def _heading(point: OverloadPoint) -> str:
    words = f"{point.clients} client{'s' if point.clients > 1 else ''}"
    if point.frames_per_second is not None:
        words += f"\n{format_count(point.frames_per_second)}/s"
    return words


PointColumn = Column[OverloadPoint]


def _lines(
    run: OverloadResult, points: Sequence[OverloadPoint], unit: str, unit_ns: int
) -> dict[str, Iterable[PointColumn]]:
    """Return the lines of the table by their headings; first those that such experiments print, in their order."""

    def time(key: str) -> PointColumn:
        return Column(f"{rtt_words(key)}, {unit}", lambda point: _round_trip(point.rtt_ns, key, unit_ns))

    def first_time(key: str) -> PointColumn:
        label = f"first of each destination, {rtt_words(key)}, {unit}"
        return Column(label, lambda point: _round_trip(point.first_rtt_ns, key, unit_ns))

    collapsed: PointColumn = Column("gateway", lambda point: "collapsed" if point.is_collapsed else "works")
    return {
        "": (
            *((collapsed,) if any(point.is_collapsed for point in points) else ()),
            _line("echo loss", lambda point: point.loss_percent, _percent),
        ),
        "Round-trip time": (time("mean"), time("deviation"), time("maximum")),
        "Gateway's host": tuple(_host_lines(points)),
        "Traffic": (
            _line("requests, packets/s", lambda point: point.requests_per_second, _count),
            _line("replies, packets/s", lambda point: point.replies_per_second, _count),
        ),
        "Round-trip time, all of it": (
            *map(time, ("minimum", "p50", "p99", "p99.9")),
            *map(first_time, ("mean", "p99.9")),
        ),
        "Packets of all repetitions": [column.of(attrgetter("counts")) for column in COUNTS],
        "Consistency": tuple(_consistency(run, points)),
        "Xpd against one client, %": tuple(_degradations(run)) if run.mode == "closed_loop" else (),
    }


def _line(label: str, choose: Callable[[OverloadPoint], Figure], words: Words) -> PointColumn:
    return Column(label, lambda point: _cell(choose(point), words))


REQUESTS: Column[EchoCounts] = Column("requests", lambda counts: format_count(sum(counts.requests)))
NO_REPLIES: tuple[Column[EchoCounts], ...] = (
    Column("late", lambda counts: format_count(sum(counts.late))),
    Column("lost", lambda counts: format_count(sum(counts.lost))),
    Column("duplicate", lambda counts: format_count(sum(counts.duplicate))),
    Column("faulty", lambda counts: format_count(sum(counts.faulty))),
)
COUNTS: tuple[Column[EchoCounts], ...] = (
    REQUESTS,
    Column("arrived at the host that answers", lambda counts: format_count(sum(counts.arrived))),
    Column("correct replies in time", lambda counts: format_count(sum(counts.replies))),
    *NO_REPLIES,
)
CLIENT_COUNTS: tuple[Column[EchoCounts], ...] = (
    REQUESTS,
    Column("correct replies\nin time", lambda counts: format_count(sum(counts.replies))),
    *NO_REPLIES,
)


def _host_lines(points: Sequence[OverloadPoint]) -> Iterator[PointColumn]:
    """Yield what the gateway's host did: CPU with its deviation, memory above the baseline."""
    first = {sampled.series: sampled for point in reversed(points) for sampled in reversed(point.host)}
    for series in dict.fromkeys(sampled.series for point in points for sampled in point.host):
        name, unit = first[series].name, first[series].unit
        if is_of_one_core(series):
            continue
        if unit_named(unit).is_share:
            yield _host_line(f"{name}, {unit}", series, lambda figure: figure.values, _short)
            yield _host_line(f"{name}, standard deviation", series, lambda figure: figure.deviation, _short)
        elif first[series].above_baseline is not None:
            label = f"{name}, in use above baseline, MB"
            yield _host_line(label, series, lambda figure: figure.above_baseline, _megabytes)
        else:
            yield _host_line(f"{name}, most", series, lambda figure: figure.values, _count)


def _host_line(label: str, series: str, choose: Callable[[HostFigure], Figure | None], words: Words) -> PointColumn:
    def cell(point: OverloadPoint) -> str:
        sampled = next((figure for figure in point.host if figure.series == series), None)
        figure = None if sampled is None else choose(sampled)
        return DASH if figure is None else _cell(figure, words)

    return Column(label, cell)


def _consistency(run: OverloadResult, points: Sequence[OverloadPoint]) -> Iterator[PointColumn]:
    """Yield the Tester's own part, and how packets/s and round trips fit together."""
    yield _line("under way: replies/s x mean round trip", lambda point: point.outstanding, _short)
    if run.mode == "closed_loop":
        yield Column("slots", lambda point: format_count(point.clients * run.window))
    yield _line("Tester's share of a round trip, %", lambda point: point.tester_share_percent, _short)
    yield _line("Tester busy, % of a core", lambda point: point.tester_busy_percent, _short)
    unit, unit_ns = unit_of_times(point.tester_loop.rtt_ns for point in points if point.tester_loop is not None)
    loop_lines: tuple[Column[OwnLoop], ...] = (
        Column("Tester alone, replies/s", lambda loop: format_count(loop.replies_per_second), optional=True),
        Column(f"Tester alone, round trip, median, {unit}", lambda loop: _rtt_of_loop(loop, unit_ns), optional=True),
    )
    yield from (line.of(attrgetter("tester_loop")) for line in loop_lines)


def _rtt_of_loop(loop: OwnLoop, unit_ns: int) -> str:
    if loop.rtt_ns is None or loop.rtt_frames_per_second is None:
        return DASH
    return f"{format_in(loop.rtt_ns, unit_ns)}\nat {format_count(loop.rtt_frames_per_second)}/s"


def _degradations(run: OverloadResult) -> Iterator[PointColumn]:
    """Yield Xpd of each quantity."""
    by_quantity: dict[str, dict[int, float | None]] = {}
    for entry in run.degradations:
        by_quantity.setdefault(entry.quantity, {})[entry.clients] = entry.percent
    for quantity, percents in by_quantity.items():
        yield Column(quantity, _percent_of(percents))


def _percent_of(percents: Mapping[int, float | None]) -> Callable[[OverloadPoint], str]:
    def cell(point: OverloadPoint) -> str:
        percent = percents.get(point.clients)
        return DASH if percent is None else f"{percent:,.2f}"

    return cell


def _client_table(points: Sequence[OverloadPoint], unit: str, unit_ns: int) -> Table:
    """Return the clients one by one: a client that gets less than the others is seen here."""

    def time(key: str) -> Callable[[tuple[OverloadPoint, EchoClientPart]], str]:
        return lambda row: _round_trip(row[1].rtt_ns, key, unit_ns).split("\n")[0]

    columns: tuple[Column[tuple[OverloadPoint, EchoClientPart]], ...] = (
        Column("column", lambda row: _heading(row[0]).replace("\n", ", "), names=True, numeric=False),
        Column("client", lambda row: str(row[1].client + 1), names=True),
        *(column.of(itemgetter(1)) for column in CLIENT_COUNTS),
        Column(f"round trip,\nmean, {unit}", time("mean")),
        Column(f"99.9 %,\n{unit}", time("p99.9")),
    )
    rows = ((point, client) for point in points for client in point.clients_apart)
    return table_of("Clients one by one, all repetitions", columns, rows)


def _cell(figure: Figure, words: Words) -> str:
    """Return the median, and below it the spread of several repetitions."""
    summary = figure.summary
    if summary is None:
        return "not known" if any(value is not None for value in figure.values) else DASH
    if summary.count == 1 or summary.p1 == summary.p99:
        return words(summary.median)
    return f"{words(summary.median)}\n{words(summary.p1)} {DASH} {words(summary.p99)}"


def _round_trip(figures: Mapping[str, Figure], key: str, unit_ns: int) -> str:
    """Return a round-trip time; a percentile that falls on a request without a reply says in how many repetitions."""
    values = figures[key].values
    unanswered = values.count(None) if key in DELAY_PERCENTILES else 0
    if not unanswered:
        return _cell(figures[key], _in(unit_ns))
    return NO_REPLY if unanswered == len(values) else f"{NO_REPLY}\nin {unanswered} of {len(values)}"


def _in(unit_ns: int) -> Words:
    return lambda value: format_in(value, unit_ns)


def _count(value: Number) -> str:
    return format_count(round(value))


def _percent(value: Number) -> str:
    return format_percent(float(value))


def _short(value: Number) -> str:
    return f"{value:,.1f}" if abs(value) >= 10 or not value else f"{value:.2f}"


def _megabytes(kilobytes: Number) -> str:
    return f"{kilobytes / KILOBYTES_PER_MEGABYTE:,.1f}".replace("-", "\u2212")


def judgement_words(run: OverloadResult) -> Iterator[str]:
    """Say whether the gateway degrades gracefully, by which rules, and with every figure that decides it."""
    judgement, rules = run.judgement, run.rules
    if judgement.graceful is None:
        yield f"Degradation is not judged: {judgement.reason}."
        return
    rule = (
        "Graceful means: the gateway works after the run; with more clients than saturate it, replies/s are at least"
        f" {format_share(rules.rate)} of the most that it reaches, and the mean round-trip time is at most"
        f" {format_share(rules.rtt)} of one that grows like the number of clients; with every number of clients at most"
        f" {format_share(rules.loss)} of the requests have no correct reply in time. The fewest clients with that share"
        " of the most replies/s saturate it."
    )
    yield f"{verdict_words(run)} {rule}"


def verdict_words(run: OverloadResult) -> str:
    """Return the judgement alone, with the figures of what failed, or of what decided."""
    judgement = run.judgement
    if judgement.graceful is None:
        return f"Degradation is not judged: {judgement.reason}."
    failed = [check for check in judgement.checks if not check.holds]
    if failed:
        return f"Degradation is not graceful: {'; '.join(_check_words(check) for check in failed)}."
    deciding = [check for check in judgement.checks if check.rule != "loss"]
    most = max((check for check in judgement.checks if check.rule == "loss"), key=lambda check: check.value or 0)
    figures = [_check_words(check) for check in (*deciding, most)]
    if judgement.left_out:
        named = ", ".join(map(str, judgement.left_out))
        figures.append(
            f"left out: {named} client{'s' if judgement.left_out != (1,) else ''}, where the Tester was the limit"
        )
    largest = max(point.clients for point in run.points)
    if judgement.saturated_at == largest:
        figures.insert(0, f"fewer than {largest} clients do not saturate the gateway, so nothing is beyond saturation")
    return f"Degradation is graceful: {'; '.join(figures)}."


def _check_words(check: GracefulCheck) -> str:
    many = f"with {check.clients} client{'s' if check.clients > 1 else ''}"
    if check.rule == "health" or check.value is None or check.limit is None:
        return f"{many} the gateway collapsed"
    if check.rule == "rate":
        return (
            f"{many} {format_count(round(check.value))} replies/s, at least {format_count(round(check.limit))} are due"
        )
    if check.rule == "rtt":
        times = format_time(round(check.value)), format_time(round(check.limit))
        return f"{many} a mean round trip of {times[0]}, at most {times[1]} are allowed"
    return f"{many} {format_percent(float(check.value))} lost, at most {format_percent(float(check.limit))} are allowed"


def _notes(run: OverloadResult) -> Iterator[str]:
    yield from _collapse_notes(run)
    yield from _tester_notes(run)
    yield own_round_trip(run)
    yield from _consistency_notes(run)
    faults: dict[str, int] = {}
    for point in run.points:
        for name, count in point.faults.items():
            faults[name] = faults.get(name, 0) + count
    if faults:
        named = ", ".join(f"{name.replace('_', ' ')} {format_count(count)}" for name, count in faults.items())
        yield f"Faults of all columns, of which a packet may have several: {named}."
    if run.shared_destinations:
        yield "There are fewer hosts than destinations of all clients, so some clients asked the same hosts."
    if not any(point.host for point in run.points):
        yield "The gateway's host was not sampled: its CPU and memory are not known."


def _collapse_notes(run: OverloadResult) -> Iterator[str]:
    for point in run.points:
        for how in dict.fromkeys(point.collapses):
            times = sum(collapse == how for collapse in point.collapses)
            yield (
                f"With {_heading(point).replace(chr(10), ' at ')} the gateway collapsed in {times} of"
                f" {times + point.repetitions + point.tester_limited} repetitions: {how}. It was started again for the"
                " next column."
            )


def _tester_notes(run: OverloadResult) -> Iterator[str]:
    for point in run.points:
        column = _heading(point).replace("\n", " at ")
        if point.tester_limited:
            have = "repetition has" if point.tester_limited == 1 else "repetitions have"
            yield f"With {column}, {point.tester_limited} {have} no valid trial: figures are of the others."
        if point.is_busy:
            yield (
                f"With {column} the Tester, not the gateway, was the limit: its own work took more than"
                f" {OWN_SHARE_MAX} % of a round trip, or more than {BUSY_SHARE_MAX} % of a core."
            )
        if point.is_near_loop and point.tester_loop is not None:
            yield (
                f"With {column} the Tester may have been the limit: without a gateway it reaches"
                f" {format_count(point.tester_loop.replies_per_second)} replies/s, less than {LOOP_FACTOR} times that."
            )


def own_round_trip(run: OverloadResult) -> str:
    """Say what of a round trip is the Tester's own, and the rule that it must be far faster than the gateway."""
    known = [point.tester_loop for point in run.points if point.tester_loop is not None]
    if not known:
        return (
            "The limits of the Tester alone and its own round trip are unknown: run `gatemark selftest` with the"
            " campaign file to measure them."
        )
    return (
        "Tester alone: its clients ask its own host that answers, without a gateway, in its self-test; median round"
        " trips at the lowest rate there that is not below the gateway's. They are part of every round trip here, and"
        f" are not subtracted. With as many slots it must reach {LOOP_FACTOR} times the replies/s of the gateway; where"
        " it does not, the Tester counts as the limit."
    )


def _consistency_notes(run: OverloadResult) -> Iterator[str]:
    """Compare requests under way with the slots of a closed loop (Little's law)."""
    if run.mode != "closed_loop":
        return
    beyond = []
    for point in run.points:
        slots = point.clients * run.window
        most = max((Fraction(value) for value in point.outstanding.values if value is not None), default=Fraction(0))
        if most > (1 + OUTSTANDING_EXCESS) * slots:
            beyond.append((point, float(most), slots))
    pace_ns = run.pace_without_reply_ns or 0
    for point, value, slots in beyond:
        missing = sum(point.counts.lost) + sum(point.counts.late)
        longest_ns = max((ns for ns in point.rtt_ns["maximum"].values if ns is not None), default=0)
        why = "no reply took so long that a slot continued without it, so these figures contradict each other"
        if missing or longest_ns > pace_ns:
            why = (
                f"{format_count(missing)} requests were lost or late, and the longest round trip took"
                f" {format_time(round(longest_ns))}; a slot continues after {format_duration_ns(pace_ns)} without a"
                " reply, so it may have several under way"
            )
        yield f"With {_heading(point)} replies/s x mean round trip is {value:,.1f}, more than the {slots} slots: {why}."
    if not beyond and any(point.outstanding.summary for point in run.points):
        yield (
            "Replies/s x mean round trip is never more than the slots of the clients, as it must be: no more requests"
            " can be under way in a closed loop."
        )


def sentence(part: ReportPart, run: OverloadResult) -> str:
    """Describe one run in a sentence that can stand alone."""
    gateway = technology_words(part.document.gateway)
    known = [
        f"{format_count(round(point.replies_per_second.summary.median))}"
        if point.replies_per_second.summary is not None
        else ("collapsed" if point.is_collapsed else "not known")
        for point in run.points
    ]
    clients = ", ".join(_heading(point).replace("\n", " at ") for point in run.points)
    return (
        f"Echo requests through the gateway ({gateway}), {name_sizes(run)} frames,"
        f" {run.mode.replace('_', ' ')}, {clients}: {', '.join(known)} replies/s. {verdict_words(run)}"
    )


PLOTS = (
    (("echo replies", "echo requests"), "Packets/s", "Requests and correct replies in time"),
    (("round-trip time mean", "round-trip time 99.9 %"), "Round-trip time", "Round-trip time, mean and 99.9 %"),
    (("echo loss",), "Echo loss", "Requests without a correct reply in time, in per cent"),
    (("busy share, mean of the cores under echo requests",), "CPU", "Busy share of the gateway's cores, in per cent"),
)
"""Quantities, name and caption of each plot."""


def plots(part: ReportPart, runs: Sequence[OverloadResult]) -> Iterator[Plot]:
    """Yield packets/s, round-trip time, loss and CPU against the number of clients, or the rate."""
    document = part.document
    for run in runs:
        if run.refused is not None:
            continue
        rows = [Row(campaign=document.name, gateway=document.gateway.name, quantity=q) for q in run.own_quantities()]
        clients = sorted({point.clients for point in run.points})
        axis = axis_of("clients", clients) if run.mode == "closed_loop" else AXES["load"]
        for names, name, caption in PLOTS:
            drawn = [row for row in rows if row.quantity.name in names]
            against = axis.heading if run.mode == "closed_loop" else "rate of requests"
            svg = plot_against(drawn, axis, name=f"{name} against the {against}, run {run.number}")
            yield from plot(svg, f"{caption}, against the {against}: medians, bars from p1 to p99.")
