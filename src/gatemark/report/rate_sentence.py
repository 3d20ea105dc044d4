"""One sentence for a run that searched for a rate: rate, size, limit, protocol (RFC 2544 section 26.1). Pure."""

from __future__ import annotations

from gatemark.report.headline import context_of
from gatemark.report.model import ReportPart
from gatemark.report.words import (
    format_bits,
    format_count,
    format_share,
    rate_cell,
    repeated,
    tester_limit,
)
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.search import RateResult
from gatemark.units import format_duration_ns


def rate_sentence(part: ReportPart, run: RateResult, what: str, *, passed: str, of: str) -> str:
    """Return the sentence of one run.

    `what` is the quantity, `passed` the word for what is searched for, "load" or "rate"; `of` says what was measured.
    """
    (rate,) = (quantity for quantity in run.quantities() if quantity.is_headline)
    context = f"{context_of(part.document, run)}; {goal_words(run)}; {limit_of_medium(part, run)}"
    if run.self_test_ceiling is not None:
        return (
            f"{what}: at least {format_count(rate.lower_bound)} {rate.unit} {of}; {context}. Within 5 % of what the"
            f" Tester reaches alone ({format_count(run.self_test_ceiling)}), so it is a lower bound of the gateway."
        )
    if rate.limited_by in NOT_THE_GATEWAY:
        return f"{what} not measured, {of}: {tester_limit(rate)}, {rate.unit}; {context}."
    if rate.limited_by == "maximum" and rate.median is None:
        return f"{what}: {rate_cell(rate)} {rate.unit} {of}; {context}. Some repetitions ended at the chosen maximum."
    summary = run.rate
    if summary is None:
        lowest = format_count(rate.upper_bound)
        return f"{what}: no {passed} from {lowest} {rate.unit} up passed, {of}; {context}.{_forwarded_more(run)}"
    total = rate.sum_of_directions
    both = "" if total is None else f" ({format_count(total)} {rate.unit} as the sum of both directions)"
    least = "at least " if rate.limited_by == "maximum" else ""
    limit = "the chosen maximum load" if rate.limited_by == "maximum" else "the gateway"
    return (
        f"{what}: {least}{format_count(summary.median)} {rate.unit} {of}{both}, {repeated(summary)}; {context}. "
        f"Limited by {limit}.{_forwarded_more(run)}"
    )


def _forwarded_more(run: RateResult) -> str:
    """How much was forwarded with losses, where that is far more; empty where it is not."""
    most = run.maximum_forwarding_rate
    if most is None:
        return ""
    return (
        f" It forwards more: {format_count(most.undelivered)} of {format_count(most.offered)} frames were not delivered"
        f" at {format_count(most.load)} frames/s, a forwarding rate of {format_count(most.frames_per_second)} frames/s"
        " (RFC 2285 section 3.6.3)."
    )


def goal_words(run: RateResult) -> str:
    """The goal in one phrase."""
    goal = run.goal
    words = [f"loss tolerance {format_share(goal.loss_tolerance)}"]
    if goal.duration_ns is not None:
        words.append(f"trials of {format_duration_ns(goal.duration_ns)} confirm the result")
    if goal.frame_timeout_ns is not None:
        words.append(f"frames later than {format_duration_ns(goal.frame_timeout_ns)} count as lost")
    words.append(f"resolution {format_count(run.resolution)} {run.unit}")
    return ", ".join(words)


def limit_of_medium(part: ReportPart, run: RateResult) -> str:
    """What the medium carries, if that is known."""
    limit = run.theoretical_maximum
    if limit is None:
        return part.medium
    octets = " and ".join(map(str, limit.frames))
    return (
        f"theoretical maximum {format_count(limit.frames_per_second)} frames/s per direction "
        f"({octets} octets at {format_bits(limit.line_bits_per_second)}, RFC 5180 appendix A.1)"
    )
