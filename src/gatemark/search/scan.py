"""Which loads a frame loss measurement tries (RFC 2544 section 26.3): a list, or steps down from a maximum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gatemark.search.goal import Measure, Observation, Outcome

LOSSLESS_TRIALS_TO_END = 2
"""RFC 2544 section 26.3: until there are two successive trials in which no frames are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The loads to try in turn, in frames per second in one direction, highest first, each once."""

    rates: tuple[int, ...]
    """In the RFC's scan 100 %, 90 %, ... of the maximum, in steps of 10 % of it or finer."""
    duration_ns: int
    ends_when_lossless: bool
    """Whether two successive trials without loss end the scan (as the RFC says), or every load is tried (a list)."""


def next_step(scan: Scan, history: Sequence[Observation]) -> Measure | None:
    """Choose the next load after `history`; None when done. Pure: same history, same answer.

    The outcome must have been judged without tolerance: passed means that no frame was lost. A load at which the Tester
    was the limit has neither passed nor failed, so it breaks the succession.
    """
    last = [trial.outcome for trial in history[-LOSSLESS_TRIALS_TO_END:]]
    lossless = len(last) == LOSSLESS_TRIALS_TO_END and all(outcome is Outcome.PASSED for outcome in last)
    if len(history) >= len(scan.rates) or (scan.ends_when_lossless and lossless):
        return None
    return Measure(frames_per_second=scan.rates[len(history)], duration_ns=scan.duration_ns, purpose="load")
