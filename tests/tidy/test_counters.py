"""Every counter of the engine and of the test bed is shown in the report or declared to stay in the journal."""

from __future__ import annotations

from tests.counter_places import JOURNAL_ONLY, SHOWN_ELSEWHERE
from tests.enumerators import enumerators

from gatemark.report.counters import COUNTERS, PLACES
from gatemark.trial.named_counts import FAULTS

HOLDERS = {"counts.loss", "counts.delay", "direction.foreground", "direction.background", "port.foreign"}
"""Keys that hold other places, and are no counters."""


def counters() -> set[str]:
    names = {f"{place}.{name}" for place, model in PLACES.items() for name in model.model_fields}
    return {name for name in names if not name.startswith("record.") or name.endswith("_drops")} - HOLDERS


def test_every_counter_is_shown_or_declared_journal_only() -> None:
    assert counters() - {*COUNTERS, *SHOWN_ELSEWHERE, *JOURNAL_ONLY} == set()


def test_no_counter_is_declared_that_does_not_exist_or_twice() -> None:
    declared = [*COUNTERS, *SHOWN_ELSEWHERE, *JOURNAL_ONLY]
    assert set(declared) - counters() == set()
    assert len(declared) == len(set(declared))


def test_every_reason_of_the_engine_has_its_meaning() -> None:
    assert enumerators("frame/verification.hpp", "Fault") == list(FAULTS)
