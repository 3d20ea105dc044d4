"""The order of a trial: what makes two trials the same, and which part of two orders differs first."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from tests.trial_facts import ORDER, record_of

from gatemark.config.types import Mix
from gatemark.trial.form import RateStep, Tags, TrialForm
from gatemark.trial.order import Difference, TrialOrder, difference
from gatemark.trial.record import TrialRecord


def with_step(**given: Any) -> TrialOrder:
    return replace(ORDER, step=replace(ORDER.step, **given))


def with_cell(**given: Any) -> TrialOrder:
    return replace(ORDER, run=replace(ORDER.run, cell=replace(ORDER.run.cell, **given)))


OTHERS = [
    (with_step(frames_per_second=7), "step.frames_per_second"),
    (with_step(alpha=Fraction(4, 5)), "step.alpha"),
    (with_cell(mix=Mix(1, 2)), "run.cell.mix.n"),
    (with_cell(direction="reverse", connections=5), "run.cell.direction"),
    (replace(ORDER, run=replace(ORDER.run, procedure="frame_loss")), "run.procedure"),
    (replace(ORDER, attempt=1), "attempt"),
    (replace(ORDER, connections_per_second=100), "connections_per_second"),
    (replace(ORDER, form=TrialForm(tags=Tags(first_ns=1, count=2))), "form.tags"),
    (replace(ORDER, form=TrialForm(step=RateStep(after_ns=1, frames_per_second=2))), "form.step"),
]


@pytest.mark.parametrize(("other", "part"), OTHERS)
def test_the_first_part_that_differs_is_named(other: TrialOrder, part: str) -> None:
    result = difference(ORDER, other)
    assert result is not None
    assert result.part == part
    assert result.first != result.second


def test_equal_orders_do_not_differ() -> None:
    assert difference(ORDER, replace(ORDER)) is None
    assert difference(with_step(duration_ns=1), with_step(duration_ns=2)) == Difference(
        part="step.duration_ns", first=1, second=2
    )


@pytest.mark.parametrize("order", [ORDER, *(other for other, _ in OTHERS)])
def test_an_order_is_read_from_the_journal_as_it_was_written(order: TrialOrder) -> None:
    record = record_of(order=order)
    for line in (record.model_dump_json(exclude_defaults=True), record.model_dump_json()):
        assert TrialRecord.model_validate_json(line) == record


def test_the_number_of_connections_is_that_of_the_step_or_of_the_cell() -> None:
    assert ORDER.connections is None
    assert with_cell(connections=9).connections == 9
    assert replace(with_cell(connections=9), step=with_step(connections=0).step).connections == 0
