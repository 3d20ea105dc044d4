"""What the report says about each run, in one sentence that can stand alone, and the figures that it shows large.

A Tester-limited run has no result; it has a load up to which the gateway passed and a load at which the Tester gave up.
Pure: the same document gives the same words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

from gatemark.report.delay_statements import delay_statement
from gatemark.report.event_statements import back_to_back_statement, recovery_statement, reset_statement
from gatemark.report.headline import Statement, context_of, said
from gatemark.report.words import (
    ESTABLISHMENT_RATES,
    PROCEDURES,
    at_least,
    connections_of,
    direction_label,
    format_bits,
    format_count,
    format_long_time,
    format_mix,
    format_percent,
    format_ratio_text,
    format_sizes,
    found_summary,
    goal_text,
    rate_cell,
    spread_cell,
    tester_limit,
    unit_of,
    worst_loss,
)
from gatemark.results.schema import CapacityPart, ResultDocument, RunPart, SummaryPart

OVERFLOWS = {
    "refused": "new connections were refused",
    "evicted": "new connections were accepted and established ones lost",
    "untranslated": "frames of new connections were forwarded untranslated",
    "collapsed": "the gateway stopped working and was started anew",
    "other": "connections failed in some other way",
}
"""What a gateway did with connections beyond its capacity (RFC 9693 section 4.9)."""

LOST = {
    "oldest": "the oldest connections were lost",
    "newest": "the newest connections were lost",
    "spread": "lost connections were spread over all",
}
"""Which established connections were gone, in order of establishment."""

SOME_AT_THE_MAXIMUM = (
    "In some repetitions the chosen maximum passed, in others it did not, so the lowest of them is given."
)


def statement(document: ResultDocument, run: RunPart, medium: str) -> Statement:
    """The headline of one run: rate, size, theoretical limit and protocol in a sentence (RFC 2544 section 26.1)."""
    if run.refused is not None:
        return _refused_statement(document, run, run.refused)
    if run.procedure in _OF_PROCEDURE:
        return _OF_PROCEDURE[run.procedure](document, run)
    if run.procedure == "frame_loss":
        return _loss_statement(document, run)
    if run.procedure == "connection_tear_down_rate":
        return _tear_down_statement(document, run)
    if run.capacity is not None:
        return _capacity_statement(document, run, run.capacity)
    return _rate_statement(document, run, medium)


_OF_PROCEDURE: dict[str, Callable[[ResultDocument, RunPart], Statement]] = {
    "delay": delay_statement,
    "back_to_back": back_to_back_statement,
    "system_recovery": recovery_statement,
    "reset": reset_statement,
}


def _refused_statement(document: ResultDocument, run: RunPart, reason: str) -> Statement:
    what = PROCEDURES[run.procedure]
    context = f"{context_of(document, run)}, {direction_label(run)}"
    sentence = f"{what.capitalize()} not measured: {reason.rstrip('.')}; {context}."
    return said(run, "not made", f"{what}, {_label(run)}", sentence)


def headlines(runs: Sequence[RunPart], statements: Sequence[Statement]) -> tuple[Statement, ...]:
    """Choose the statements whose figures are shown large.

    Frame loss only where nothing else was measured, runs that were not made never; of a series over numbers of
    connections the first and the last.
    """
    made = [run for run in runs if run.refused is None]
    chosen = [run for run in made if run.procedure != "frame_loss"] or made
    series: dict[tuple[str, str, str, str], list[RunPart]] = {}
    for run in chosen:
        key = (run.procedure, run.direction, format_sizes(run), format_mix(run))
        series.setdefault(key, []).append(run)
    ends = {run.number for members in series.values() for run in (members[0], members[-1])}
    return tuple(said for said in statements if said.run in ends)


def _rate_statement(document: ResultDocument, run: RunPart, medium: str) -> Statement:
    what, unit = _what(run), unit_of(run)
    count = connections_of(run)
    context = f"{context_of(document, run)}; {goal_text(run)}; {_limit_of_medium(run, medium)}"
    label = _label(run)
    way, of = direction_label(run), f" {direction_label(run)}"
    if run.procedure in ESTABLISHMENT_RATES:
        way, of = f"{format_count(count)} connections", f", {format_count(count)} connections"
    if run.limited_by == "tester":
        sentence = f"{what} not measured, {way}: {tester_limit(run)}, {unit}; {context}."
        return said(run, "Tester-limited", label, sentence)
    rate = found_summary(run)
    if rate is None and run.limited_by == "maximum":
        sentence = f"{what}: at least {format_count(at_least(run))} {unit}{of}; {context}. {SOME_AT_THE_MAXIMUM}"
        return said(run, rate_cell(run), label, sentence, unit=unit)
    if rate is None:
        floor = format_count(run.goal.minimum)
        kind = "rate" if run.procedure in ESTABLISHMENT_RATES else "load"
        sentence = f"{what}: no {kind} from {floor} {unit} up passed, {way}; {context}."
        return said(run, "nothing passed", label, sentence, limited_by="gateway")
    both = ""
    if run.rate_sum_of_directions is not None:
        both = f" ({format_count(run.rate_sum_of_directions.median)} frames/s as the sum of both directions)"
    least = "at least " if run.limited_by == "maximum" else ""
    sentence = (
        f"{what}: {least}{format_count(rate.median)} {unit}{of}{both}, {_repeated(rate)}; {context}. "
        f"Limited by {'the chosen maximum load' if run.limited_by == 'maximum' else 'the gateway'}."
    )
    return said(run, rate_cell(run), label, sentence, unit=unit)


def _capacity_statement(document: ResultDocument, run: RunPart, capacity: CapacityPart) -> Statement:
    what, label = "Connection tracking table capacity", "connection tracking table capacity"
    context = (
        f"{context_of(document, run)}; validated at alpha {format_ratio_text(run.alpha)}, resolution"
        f" {format_count(capacity.resolution)} (RFC 9693 section 4.9)"
    )
    found = capacity.capacity
    if run.limited_by == "tester":
        sentence = f"{what} not measured: {tester_limit(run)}, connections; {context}."
        return said(run, "Tester-limited", label, sentence)
    if found is None and run.limited_by == "maximum":
        sentence = f"{what}: at least {format_count(at_least(run))} connections; {context}. {SOME_AT_THE_MAXIMUM}"
        return said(run, rate_cell(run), label, f"{sentence}{overflow_text(capacity)}", unit="connections")
    if found is None:
        sentence = f"{what}: in some search not even the first size was held; {context}."
        return said(run, "nothing passed", label, sentence, limited_by="gateway")
    least = "at least " if run.limited_by == "maximum" else ""
    sentence = f"{what}: {least}{format_count(found.median)} connections, {_repeated(found)}; {context}."
    if least:
        sentence += " The search ended at the chosen maximum."
    return said(run, rate_cell(run), label, f"{sentence}{overflow_text(capacity)}", unit="connections")


def overflow_text(capacity: CapacityPart) -> str:
    """What happened beyond the capacity and which connections were lost, as sentences; empty if nothing was seen."""
    total = len(capacity.repetitions)
    seen = Counter(one.overflow for one in capacity.repetitions if one.overflow is not None)
    lost = Counter(one.lost_connections for one in capacity.repetitions if one.lost_connections is not None)
    text = "".join(f" Beyond it {OVERFLOWS[kind]} ({n} of {total} searches)." for kind, n in seen.most_common())
    return text + "".join(
        f" In the validation {LOST[which]} ({n} of {total} searches)." for which, n in lost.most_common()
    )


def _tear_down_statement(document: ResultDocument, run: RunPart) -> Statement:
    what, found = "Connection tear-down rate", run.tear_down
    label = f"tear-down, {format_count(connections_of(run))} connections"
    context = f"on the gateway's clock, all connections at once (RFC 9693 section 4.8); {context_of(document, run)}"
    if found is None:
        sentence = f"{what} not measured, {format_count(connections_of(run))} connections; {context}."
        return said(run, "not measured", label, sentence)
    times = (
        f"{format_count(found.connections)} connections in {format_long_time(found.net_ns)} net: full table"
        f" {format_long_time(found.full_ns.median)}, empty table {format_long_time(found.empty_ns.median)},"
        f" medians of {found.full_ns.count}"
    )
    if found.connections_per_second is None:
        sentence = f"{what}: the full table was not deleted more slowly than the empty one; {times}; {context}."
        return said(run, "no difference", label, sentence)
    figure = format_count(round(found.connections_per_second))
    doubt = "" if found.reliable else ". Uncertain: the spreads of both times exceed a tenth of their difference"
    sentence = f"{what}: {figure} connections/s; {times}; {context}{doubt}."
    return said(run, figure if found.reliable else f"({figure})", label, sentence, unit="connections/s")


def _loss_statement(document: ResultDocument, run: RunPart) -> Statement:
    measured = [point for point in run.points if point.directions]
    label = f"frame loss, {_label(run)}"
    context = f"{context_of(document, run)}, {direction_label(run)}"
    skipped = len(run.points) - len(measured)
    tail = f" {skipped} of {len(run.points)} loads could not be offered by the Tester." if skipped else ""
    if not measured:
        sentence = f"Frame loss not measured; {context}.{tail}"
        return said(run, "Tester-limited", label, sentence, limited_by="tester")
    worst = max(measured, key=lambda point: worst_loss(point.directions))
    clean = [point.frames_per_second for point in measured if worst_loss(point.directions) == 0]
    figure = f"{format_percent(worst_loss(worst.directions))} lost"
    sentence = (
        f"Frame loss: up to {format_percent(worst_loss(worst.directions))} at "
        f"{format_count(worst.frames_per_second)} frames/s; "
        f"{f'none at {format_count(max(clean))} frames/s' if clean else 'no load without loss'}; {context}.{tail}"
    )
    return said(run, figure, label, sentence)


def _what(run: RunPart) -> str:
    """What is measured; a rate of connections is never called throughput."""
    if run.procedure == "connection_establishment_rate":
        return "Maximum connection establishment rate"
    if run.procedure == "validated_connection_establishment_rate":
        return f"Validated maximum connection establishment rate (alpha {format_ratio_text(run.alpha)})"
    tolerant = Fraction(run.goal.loss_tolerance) > 0
    return "Rate with loss tolerated (not RFC 2544 throughput)" if tolerant else "Throughput"


def _label(run: RunPart) -> str:
    """What a large figure is the figure of."""
    sizes = f"{format_sizes(run)} octets (IPv4 / IPv6)"
    if run.procedure in ESTABLISHMENT_RATES:
        validated = "validated " if run.procedure.startswith("validated") else ""
        return f"{validated}connection establishment, {format_count(connections_of(run))} connections, {sizes}"
    label = f"{sizes}, {direction_label(run)}"
    if connections_of(run) is None:
        return label
    throughput = "throughput, " if run.procedure == "throughput" else ""
    return f"{throughput}{format_count(connections_of(run))} connections, {label}"


def _repeated(found: SummaryPart) -> str:
    """How often, and how far apart the repetitions are."""
    several = "s" if found.count != 1 else ""
    return f"median of {found.count} repetition{several}, 1st to 99th percentile {spread_cell(found)}"


def _limit_of_medium(run: RunPart, medium: str) -> str:
    limit = run.theoretical_maximum
    if limit is None:
        return medium
    return (
        f"theoretical maximum {format_count(limit.frames_per_second)} frames/s per direction "
        f"({limit.frame_octets_largest} octets at {format_bits(limit.line_bits_per_second)}, RFC 5180 appendix A.1)"
    )
