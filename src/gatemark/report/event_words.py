"""Words that tables of bursts, recovery and reset share. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gatemark.report.words import DASH, format_count, format_in
from gatemark.results.part import NOT_THE_GATEWAY
from gatemark.results.run import RunResult
from gatemark.stats.summary import Number

MS = 10**6

OUTCOMES = {
    "recovered": "recovered",
    "not_recovered": "frames were lost to the end of the observation",
    "no_loss": "no frame was lost",
    "unknown": "frames came back wrong or late, so that the time is not known",
}
"""How a repetition of recovery or reset ended."""


def outcome_words(outcomes: Sequence[str]) -> str:
    """How the repetitions ended, leaving out those that recovered: "no frame was lost (2 of 3)"."""
    ended = Counter(outcomes)
    words = [f"{OUTCOMES[outcome]} ({n} of {len(outcomes)})" for outcome, n in ended.items() if outcome != "recovered"]
    return "; ".join(words) or "no valid repetition"


def average_cell(average: Number | None, values: Sequence[Number | None], why: str) -> str:
    """Mean in milliseconds, with the smallest and the largest below it, or why there is none."""
    known = [value for value in values if value is not None]
    if average is None or not known:
        return why
    return f"{format_in(average, MS)}\n{format_in(min(known), MS)} {DASH} {format_in(max(known), MS)}"


LIMIT = {"tester": "the Tester was the limit", "host": "the gateway's host was not quiet"}


def tester_limited_notes(runs: Sequence[RunResult]) -> tuple[str, ...]:
    """Say of which runs not every repetition says something about the gateway."""
    return tuple(
        f"Run {run.number}, {run.procedure_words}: {LIMIT[run.limited_by]} in at least one repetition."
        for run in runs
        if run.refused is None and run.limited_by in NOT_THE_GATEWAY
    )


def of_all(measured: int, tester_limited: int) -> str:
    """Number of valid repetitions, and the total if the Tester could not make all of them."""
    return f"{measured} of {measured + tester_limited}" if tester_limited else str(measured)


def stated(rate: int | None, *, measured: bool) -> str:
    """A rate, and a remark if the campaign file states it."""
    return f"{format_count(rate)}{'' if measured else ' (stated)'}"
