"""Words that tables and statements of bursts, recovery and reset share. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gatemark.report.words import DASH, format_count, format_in
from gatemark.results.schema import BackToBackPart, FigurePart

MS = 10**6

OUTCOMES = {
    "recovered": "recovered",
    "not_recovered": "frames were lost to the end of the observation",
    "no_loss": "no frame was lost",
    "unknown": "frames came back wrong or late, so that the time is not known",
}
"""How a repetition of recovery or reset ended."""


def outcome_words(outcomes: Sequence[str]) -> str:
    """How the repetitions ended, without those that did as they should: "no frame was lost (2 of 3)"."""
    seen = Counter(outcomes)
    words = [f"{OUTCOMES[one]} ({n} of {len(outcomes)})" for one, n in seen.items() if one != "recovered"]
    return "; ".join(words)


def no_bursts(found: BackToBackPart) -> str:
    """Why a run of back-to-back frames has no average."""
    limits = [burst.tester_limited_at for burst in found.bursts if burst.kind == "tester_limited"]
    if limits:
        at = min((limit for limit in limits if limit is not None), default=None)
        return f"Tester-limited at {format_count(at)} frames" if at is not None else "Tester-limited"
    if not found.bursts:
        return "no search was finished"
    return f"the search ended at its ceiling of {format_count(found.ceiling_frames)} frames"


def average_cell(average: int | float | None, figure: FigurePart, why: str) -> str:
    """Mean in milliseconds, and below it the smallest and the largest; else why there is none."""
    known = [value for value in figure.values if value is not None]
    if average is None or not known:
        return why
    return f"{format_in(average, MS)}\n{format_in(min(known), MS)} {DASH} {format_in(max(known), MS)}"
