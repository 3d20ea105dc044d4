"""One sentence for each run of back-to-back frames, system recovery or reset. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gatemark.report.event_words import MS, no_bursts, outcome_words
from gatemark.report.headline import Statement, context_of, said
from gatemark.report.words import direction_label, format_count, format_in, format_sizes, way_word
from gatemark.results.schema import RecoverySeriesPart, ResetSeriesPart, ResultDocument, RunPart
from gatemark.units import format_duration_ns


def back_to_back_statement(document: ResultDocument, run: RunPart) -> Statement:
    """The average of the longest bursts and the buffer time that follows from it (RFC 9004 sections 6.3 and 6.4)."""
    found, label = run.back_to_back, _label("back-to-back frames", run)
    if found is None:
        return _nothing("Back-to-back frames", document, run, label)
    context = f"{context_of(document, run)}, {direction_label(run)}"
    if found.average_frames is None:
        sentence = f"Back-to-back frames not measured: {no_bursts(found)}; {context}."
        return said(run, "Tester-limited" if run.limited_by == "tester" else "no result", label, sentence)
    several = "es" if len(found.bursts) != 1 else ""
    sentence = (
        f"Back-to-back frames: {format_count(found.average_frames)} frames at {format_count(found.line_rate)} frames/s"
        f" on average, {format_count(found.minimum_frames)} to {format_count(found.maximum_frames)} in"
        f" {len(found.bursts)} search{several}, step {format_count(found.resolution_frames)}; buffer time"
        f" {format_in(found.corrected_ns, MS)} ms corrected, {format_in(found.implied_ns, MS)} ms implied"
        f" (RFC 9004 section 6.4); {context}."
    )
    return said(run, format_count(found.average_frames), label, sentence, unit="frames")


def recovery_statement(document: ResultDocument, run: RunPart) -> Statement:
    """How long frames went on being lost after an overload (RFC 2544 section 26.5)."""
    found, label = run.recovery, _label("system recovery", run)
    if found is None or not found.series:
        return _nothing("System recovery", document, run, label)
    words = "; ".join(_recovery_words(run, one) for one in found.series)
    sentence = (
        f"System recovery from {format_count(found.overload)} frames/s for {format_duration_ns(found.overload_ns)} to"
        f" {format_count(found.recovery_load)} frames/s: {words}; {context_of(document, run)}, {direction_label(run)}."
    )
    return _longest(run, [one.average_ns for one in found.series], label, sentence)


def reset_statement(document: ResultDocument, run: RunPart) -> Statement:
    """How long the gateway was away after a reset (RFC 6201 section 4)."""
    found, label = run.reset, _label("reset", run)
    if found is None or not found.series:
        return _nothing("Reset", document, run, label)
    words = "; ".join(_reset_words(run, one) for one in found.series)
    sentence = (
        f"Reset ({found.kind}) at {format_count(found.frames_per_second)} frames/s: {words};"
        f" {context_of(document, run)}, {direction_label(run)}."
    )
    return _longest(run, [one.average_ns for one in found.series], label, sentence)


def _longest(run: RunPart, averages: Sequence[int | float | None], label: str, sentence: str) -> Statement:
    """The time of the direction that took longest; only if that of every one is known."""
    known = [average for average in averages if average is not None]
    if len(known) < len(averages):
        return said(run, "not known", label, sentence)
    return said(run, format_in(max(known), MS), label, sentence, unit="ms")


def _recovery_words(run: RunPart, one: RecoverySeriesPart) -> str:
    way = way_word(run, one.direction)
    if one.average_ns is None:
        return f"{way} not known: {outcome_words(one.outcomes) or 'no valid repetition'}"
    return f"{format_in(one.average_ns, MS)} ms {way}, average of {len(one.outcomes)}"


def _reset_words(run: RunPart, one: ResetSeriesPart) -> str:
    way = way_word(run, one.direction)
    lost = f"{format_count(sum(one.lost))} frames lost in {len(one.lost)} trial{'s' if len(one.lost) != 1 else ''}"
    if one.average_ns is None:
        return f"{way} not known: {outcome_words(one.outcomes) or 'no valid repetition'}; {lost}"
    return f"{format_in(one.average_ns, MS)} ms {way} by {lost}, average"


def _label(what: str, run: RunPart) -> str:
    return f"{what}, {format_sizes(run)} octets (IPv4 / IPv6), {direction_label(run)}"


def _nothing(what: str, document: ResultDocument, run: RunPart, label: str) -> Statement:
    """A run whose trials the Tester could not make."""
    sentence = (
        f"{what} not measured: the Tester could not offer the load; {context_of(document, run)},"
        f" {direction_label(run)}."
    )
    return said(run, "Tester-limited", label, sentence, limited_by="tester")
