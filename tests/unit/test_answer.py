"""A report that is not the answer to what was asked is a fault of the engine, whether it is made or read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.property.router_campaign import ROUTER
from tests.simulated.engine import SimulatedDevice, SimulatedEngine
from tests.trial_facts import blank, changed

from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal, line_of, records_of
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.engine.client import Engine
from gatemark.errors import EngineError, ResultError
from gatemark.results.run import RunResult
from gatemark.trial.loss import DeadRange, LossAges, LossCount, LossField, LossOfValue, LossRun, LossTable
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import DirectionResult, EstablishedConnections, LateBurst

THREE = EstablishedConnections(phase="establish", count=3, established=3)
DEVICE = SimulatedDevice(capacity_forward=40_000)


def router() -> Campaign:
    return complete_campaign(campaign_from_dict({**ROUTER, "repetitions": 1}))


def run(path: Path, engine: Engine) -> tuple[RunResult, ...]:
    campaign = router()
    with Journal(path) as journal:
        return run_campaign(campaign, plan_of(campaign), engine, journal)


def first(record: TrialRecord) -> DirectionResult:
    return record.report.directions[0]


def with_report(record: TrialRecord, **facts: Any) -> TrialRecord:
    return changed(record, report=changed(record.report, **facts))


def with_direction(record: TrialRecord, **facts: Any) -> TrialRecord:
    return with_report(record, directions=(changed(first(record), **facts), *record.report.directions[1:]))


def with_counts(record: TrialRecord, **facts: Any) -> TrialRecord:
    return with_direction(record, foreground=changed(first(record).foreground, **facts))


FIELD = blank(LossField, field="flow", values=9)
TABLES = {
    "the whole": blank(LossTable, lost=99_999_999),
    "dead values": blank(LossTable, fields=(changed(FIELD, dead=3),)),
    "lost frames of dead values": blank(LossTable, fields=(changed(FIELD, lost_in_dead=1),)),
    "a value": blank(LossTable, fields=(changed(FIELD, heaviest=(LossOfValue(name="7", lost=1, arrived=0),)),)),
    "a bit": blank(LossTable, fields=(changed(FIELD, bits=(LossCount(lost=0, arrived=1),)),)),
    "a range": blank(LossTable, fields=(changed(FIELD, ranges=(DeadRange(first="1", last="2", values=1, lost=1),)),)),
    "first frames": blank(LossTable, fields=(changed(FIELD, firsts=1),)),
    "ages": blank(LossTable, ages=blank(LossAges, older=LossCount(lost=1, arrived=0))),
}
"""Tables of losses of which one part has more frames than the whole."""

LIES = {
    "it is of trial 9 of the engine, not of 1": lambda record: with_report(record, trial_number=9),
    "not of forward": lambda record: with_direction(record, direction="reverse"),
    "it is of no direction": lambda record: with_report(record, directions=()),
    "it is of 7 frames/s, not of": lambda record: with_direction(record, frames_per_second=7),
    "it is of 1 ns, not of": lambda record: with_direction(record, intended_duration_ns=1),
    "it is of 3 connections, not of 0": lambda record: with_report(record, connections=THREE),
    "its frames are of 84 octets, not of 64": lambda record: with_counts(record, frame_octets=84),
    "it has the phases none, not settle, learn, send, drain, rest": lambda record: with_report(record, phases=()),
    "are accounted for": lambda record: with_counts(record, lost=first(record).foreground.lost + 1),
    "frames were lost, and 99999999 in runs": lambda record: with_direction(
        record, longest_loss_runs=(LossRun(index=0, length=99_999_999),)
    ),
    "intended, and later ones left late": lambda record: with_direction(
        record, late_bursts=(LateBurst(index=99_999_999, frames=1, lateness_ns=1),)
    ),
    "by queues": lambda record: with_counts(
        record, received=first(record).foreground.received - 1, late=first(record).foreground.late + 1
    ),
}
"""What is said, and the lie of the first trial that makes it be said."""


@pytest.mark.parametrize("words", LIES)
def test_a_journal_with_another_report_is_refused(words: str, tmp_path: Path) -> None:
    """However well the line is forged: it has its check, and is judged as its report deserves."""
    assert words in refusal_of(LIES[words], tmp_path)


@pytest.mark.parametrize("part", TABLES)
def test_a_table_of_losses_adds_up(part: str, tmp_path: Path) -> None:
    words = "forward foreground: the counts of the properties of lost frames do not add up"
    assert words in refusal_of(lambda record: with_counts(record, loss_table=TABLES[part]), tmp_path)


def refusal_of(lie: Callable[[TrialRecord], TrialRecord], folder: Path) -> str:
    """Return why a journal is refused whose first trial was forged."""
    run(folder / "honest.jsonl", SimulatedEngine(DEVICE))
    record = next(records_of(folder / "honest.jsonl"))
    (folder / "forged.jsonl").write_bytes(line_of(lie(record)))
    with pytest.raises(ResultError, match="line 1: ") as caught:
        run(folder / "forged.jsonl", SimulatedEngine(DEVICE))
    return str(caught.value)


def test_a_report_of_a_lower_load_does_not_move_the_result(tmp_path: Path) -> None:
    run(tmp_path / "honest.jsonl", SimulatedEngine(DEVICE))
    records = list(records_of(tmp_path / "honest.jsonl"))
    passed = next(record for record in records if record.verdict is not None and record.verdict.passed)
    failed = next(record for record in records if record.verdict is not None and not record.verdict.passed)
    again = changed(failed, report=passed.report, validity=passed.validity, verdict=passed.verdict)
    lines = [line_of(again if record is failed else record) for record in records]
    (tmp_path / "forged.jsonl").write_bytes(b"".join(lines))
    with pytest.raises(ResultError, match="its report is not the answer to what was asked: it is of trial"):
        run(tmp_path / "forged.jsonl", SimulatedEngine(DEVICE))


class OneTrialBehind(SimulatedEngine):
    """Answers with the report of the trial before."""

    _before: dict[str, Any] | None = None

    def trial(self, *arguments: Any) -> dict[str, Any]:
        report, self._before = self._before, super().trial(*arguments)
        return self._before if report is None else report


def test_an_engine_that_is_one_trial_behind_is_found_out(tmp_path: Path) -> None:
    journal = tmp_path / "trials.jsonl"
    with pytest.raises(
        EngineError, match="the report of trial 2 is not the answer to what was asked: it is of trial 1"
    ):
        run(journal, OneTrialBehind(DEVICE))
    assert len(list(records_of(journal))) == 1, "nothing of it was recorded"
    assert run(journal, SimulatedEngine(DEVICE)) == run(tmp_path / "honest.jsonl", SimulatedEngine(DEVICE))
