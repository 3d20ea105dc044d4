"""Tables of back-to-back frames, system recovery and reset as rows of words. Pure; page and terminal print them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gatemark.report.event_words import MS, average_cell, no_bursts, outcome_words
from gatemark.report.plain_table import Column, PlainTable, Section
from gatemark.report.words import (
    DASH,
    PROCEDURES,
    connections_of,
    direction_label,
    format_count,
    format_in,
    format_mix,
    format_sizes,
    way_word,
)
from gatemark.results.schema import ResultDocument, RunPart
from gatemark.units import format_duration_ns


def event_sections(document: ResultDocument) -> tuple[Section, ...]:
    """One section for each of the procedures that the campaign has."""
    sections = (_back_to_back(document), _recovery(document), _reset(document))
    return tuple(section for section in sections if section is not None)


def _back_to_back(document: ResultDocument) -> Section | None:
    runs = [run for run in document.runs if run.procedure == "back_to_back"]
    if not runs:
        return None
    rows = []
    for run in runs:
        found = run.back_to_back
        if found is None:
            continue
        known = found.average_frames is not None
        rows.append(
            (
                *_known(run, runs),
                direction_label(run),
                format_count(found.average_frames) if known else f"no result: {no_bursts(found)}",
                f"{format_count(found.minimum_frames)} {DASH} {format_count(found.maximum_frames)}" if known else DASH,
                format_count(found.standard_deviation_frames),
                str(len(found.bursts)),
                f"{format_count(found.ceiling_frames)}\n{format_count(found.resolution_frames)}",
                f"{format_count(found.line_rate)}\n{format_count(found.throughput)}",
                format_in(found.implied_ns, MS),
                format_in(found.corrected_ns, MS),
            )
        )
    columns = (
        *_known_columns(runs),
        Column(heading="direction", numeric=False),
        Column(heading="average burst,\nframes", strong=True),
        Column(heading=f"minimum {DASH} maximum"),
        Column(heading="standard\ndeviation"),
        Column(heading="searches"),
        Column(heading="ceiling, frames\nstep"),
        Column(heading="line rate, frames/s\nthroughput"),
        Column(heading="implied buffer\ntime, ms"),
        Column(heading="corrected buffer\ntime, ms", strong=True),
    )
    first = next((run.back_to_back for run in runs if run.back_to_back is not None), None)
    lead = [
        "Longest burst at line rate of which no frame was lost (RFC 2544 section 26.4, RFC 9004). Corrected buffer time"
        " is implied buffer time less what the gateway forwarded meanwhile, at its throughput (RFC 9004 section 6.4)."
    ]
    if first is not None:
        search = (
            "binary search"
            if not first.verifications
            else f"binary search with loss verification, {first.verifications} more tries of a burst that lost frames"
        )
        lead.append(f"Found by {search}; {format_duration_ns(first.wait_ns)} of waiting after each burst.")
    return _section("Back-to-back frames", lead, columns, rows, runs)


def _recovery(document: ResultDocument) -> Section | None:
    runs = [run for run in document.runs if run.procedure == "system_recovery"]
    if not runs:
        return None
    rows = []
    for run in runs:
        found = run.recovery
        for one in () if found is None else found.series:
            assert found is not None
            why = f"not known: {outcome_words(one.outcomes) or 'no valid repetition'}"
            before = [ns for ns in one.last_loss_before_ns if ns is not None]
            rows.append(
                (
                    *_known(run, runs),
                    _way(run, one.direction, one.class_),
                    f"{format_count(found.throughput)}{'' if found.throughput_measured else ' (stated)'}",
                    f"{format_count(found.overload)}\n{format_duration_ns(found.overload_ns)}",
                    f"{format_count(found.recovery_load)}\n{format_duration_ns(found.observe_ns)}",
                    average_cell(one.average_ns, one.recovery_ns, why),
                    _of(found.repetitions, found.tester_limited),
                    f"{format_count(one.lost)}\nof {format_count(one.offered)}",
                    format_in(min(before), MS) if before else DASH,
                )
            )
    columns = (
        *_known_columns(runs),
        Column(heading="direction", numeric=False),
        Column(heading="throughput,\nframes/s"),
        Column(heading="overload, frames/s\nfor"),
        Column(heading="then, frames/s\nfor"),
        Column(heading=f"recovery time, ms\nminimum {DASH} maximum", strong=True),
        Column(heading="repe-\ntitions"),
        Column(heading="frames lost"),
        Column(heading="last loss before\nthe fall, ms"),
    )
    lead = [
        "Time from the fall of the load to the last frame that was lost, by the times when frames were due (RFC 2544"
        " section 26.5); 0 if none was lost after the fall. Below the average stand the smallest and the largest."
    ]
    return _section("System recovery", lead, columns, rows, runs)


def _reset(document: ResultDocument) -> Section | None:
    runs = [run for run in document.runs if run.procedure == "reset"]
    if not runs:
        return None
    rows, notes = [], []
    for run in runs:
        found = run.reset
        for one in () if found is None else found.series:
            assert found is not None
            why = f"not known: {outcome_words(one.outcomes) or 'no valid repetition'}"
            known = None if one.average_ns is None else one.reset_by_gap_ns.summary
            gaps = [value for value in one.reset_by_gap_ns.values if value is not None]
            mean = sum(gaps) / len(gaps) if known is not None else None
            rows.append(
                (
                    *_known(run, runs),
                    _way(run, one.direction, one.class_),
                    found.kind,
                    f"{format_count(found.frames_per_second)}{'' if found.throughput_measured else ' (stated)'}",
                    _range(one.lost),
                    average_cell(one.average_ns, one.reset_by_loss_ns, why),
                    average_cell(mean, one.reset_by_gap_ns, DASH),
                    _of(found.repetitions, found.tester_limited),
                    format_in(None if found.took_ns.summary is None else found.took_ns.summary.median, MS),
                )
            )
            if one.lost_before:
                notes.append(
                    f"Run {run.number}, {way_word(run, one.direction)}: frames were lost before the reset began, so not"
                    " every loss is of the reset."
                )
    columns = (
        *_known_columns(runs),
        Column(heading="direction", numeric=False),
        Column(heading="kind", numeric=False),
        Column(heading="load,\nframes/s"),
        Column(heading=f"frames lost,\nminimum {DASH} maximum"),
        Column(heading="reset time by loss, ms\nsmallest and largest", strong=True),
        Column(heading="by the gap, ms\nsmallest and largest"),
        Column(heading="trials"),
        Column(heading="command\ntook, ms"),
    )
    lead = [
        "Frames lost / rate offered, and the longest time between two frames that came back (RFC 6201 section 4), on"
        " average. The protocol is UDP; each direction is told apart, because a gateway that lost its state forwards"
        " answers only after new frames of the Initiator."
    ]
    return _section("Reset", lead, columns, rows, runs, notes)


def _section(
    title: str,
    lead: Sequence[str],
    columns: tuple[Column, ...],
    rows: Sequence[tuple[str, ...]],
    runs: Sequence[RunPart],
    notes: Sequence[str] = (),
) -> Section:
    names = len(_known_columns(runs)) + 1
    tables = (PlainTable(title=title, columns=columns, rows=tuple(rows), names=names),) if rows else ()
    return Section(title=title, lead=tuple(lead), tables=tables, notes=(*notes, *_not_made(runs)))


def _not_made(runs: Sequence[RunPart]) -> Iterator[str]:
    """Say of each run that has no figures why."""
    for run in runs:
        if run.refused is not None:
            reason = run.refused.rstrip(".")
            yield f"Run {run.number}, {format_sizes(run)} octets, {direction_label(run)}: not made, {reason}."
        elif run.limited_by == "tester":
            what = PROCEDURES[run.procedure]
            yield f"Run {run.number}, {what}: the Tester was the limit in at least one repetition."


def _known_columns(runs: Sequence[RunPart]) -> tuple[Column, ...]:
    counted = any(connections_of(run) is not None for run in runs)
    mixed = any(run.mix.m != run.mix.n for run in runs)
    return (
        *((Column(heading="connec-\ntions"),) if counted else ()),
        Column(heading="IPv4 / IPv6\noctets"),
        *((Column(heading="fore:back-\nground"),) if mixed else ()),
    )


def _known(run: RunPart, runs: Sequence[RunPart]) -> tuple[str, ...]:
    counted = any(connections_of(other) is not None for other in runs)
    mixed = any(other.mix.m != other.mix.n for other in runs)
    return (
        *((format_count(connections_of(run)),) if counted else ()),
        format_sizes(run),
        *((format_mix(run),) if mixed else ()),
    )


def _way(run: RunPart, direction: str, kind: str) -> str:
    way = way_word(run, direction)
    return way if run.mix.m == run.mix.n else f"{way},\n{kind}"


def _of(measured: int, tester_limited: int) -> str:
    return f"{measured} of {measured + tester_limited}" if tester_limited else str(measured)


def _range(values: Sequence[int]) -> str:
    if not values:
        return DASH
    lowest, highest = min(values), max(values)
    return format_count(lowest) if lowest == highest else f"{format_count(lowest)} {DASH} {format_count(highest)}"
