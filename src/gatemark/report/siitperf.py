"""A trial in the lines for which scripts of the tester siitperf look, so that they can go on with gatemark. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gatemark.trial.record import TrialRecord


def siitperf_lines(record: TrialRecord) -> Iterator[str]:
    """Yield counts of test phase 1 and of each direction, and why the trial does not count.

    A frame counts as received once, and only if it was correct and in time. So sent and received differ if a frame is
    missing; where none is, a trial that failed says why, such as by frames that arrived again. Lines with "invalid" or
    "Error:" are those by which the scripts take a trial for failed.
    """
    if record.attempts:
        established = record.attempts[-1].report.established
        yield f"Preliminary frames received: {established}"
        if established != record.order.connections:
            yield f"Error: Failed to fill state table: {established} of {record.order.connections} connections"
    if (report := record.measured) is not None:
        for direction in report.directions:
            name = direction.direction.capitalize()
            yield f"{name} frames sent: {direction.offered}"
            yield f"{name} frames received: {direction.offered - direction.undelivered}"
        if record.verdict is not None and not any(direction.undelivered for direction in report.directions):
            yield from (f"Error: {reason}" for reason in record.verdict.reasons)
    for reason in record.validity.reasons:
        yield f"The trial is invalid: {reason}"
    if record.suspicion is not None:
        yield f"The trial is invalid: its failure is suspect: {record.suspicion.reason}"
