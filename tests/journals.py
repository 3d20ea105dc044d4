"""What tests ask of a journal."""

from __future__ import annotations

from pathlib import Path

from gatemark.campaign.journal import records_of
from gatemark.trial.record import TrialRecord


def read_journal(path: Path) -> tuple[TrialRecord, ...]:
    """All records at once; a torn last line is left out."""
    return tuple(records_of(path))
