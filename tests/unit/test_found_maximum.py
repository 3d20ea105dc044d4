"""Searches whose maximum is found, not given: on a medium without a line rate."""

from pathlib import Path

import pytest
from tests.journals import read_journal
from tests.simulated.engine import SimulatedDevice
from tests.unit.test_campaign_runner import campaign, run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trials.jsonl"


@pytest.mark.parametrize("search", ["binary", "mlrsearch"])
def test_without_a_line_the_maximum_is_found(path: Path, search: str) -> None:
    wanted = campaign(throughput={"search": search, "resolution": "1%"})
    (result,) = run(path, SimulatedDevice(capacity_forward=432_100), wanted)
    assert result.limited_by == "gateway"
    assert [repetition.highest_load for repetition in result.repetitions] == [640_000, 640_000]
    assert [repetition.resolution for repetition in result.repetitions] == [6400, 6400]
    assert all(425_700 < bound <= 432_100 for bound in result.lower_bounds)
    tried = [record.order.step.frames_per_second for record in read_journal(path) if record.order.repetition == 0]
    assert tried[:7] == [10_000 << step for step in range(7)]
    assert max(tried) == 640_000
    again = [record.order.step.frames_per_second for record in read_journal(path) if record.order.repetition == 1]
    assert again[0] == max(again) == 640_000
    assert len(again) < len(tried)
    assert result.goal.maximum is None
    assert type(result).model_validate_json(result.model_dump_json()) == result


def test_a_search_that_doubles_ends_at_the_testers_limit(path: Path) -> None:
    device = SimulatedDevice(capacity_forward=800_000, tester_limit=300_000)
    (result,) = run(path, device, campaign(throughput={"resolution": "1%"}))
    assert result.limited_by == "tester"
    assert [repetition.highest_load for repetition in result.repetitions] == [320_000, 320_000]


def test_a_line_rate_is_tried_first(path: Path) -> None:
    run(path, SimulatedDevice(capacity_forward=500_000), campaign(throughput={}, line={"rate": "1G"}))
    assert read_journal(path)[0].order.step.frames_per_second == 1_488_095


@pytest.mark.parametrize(("capacity", "first"), [(650_000, 2 * 645_000), (0, 10_000)])
def test_without_a_line_it_begins_above_the_throughput(path: Path, capacity: int, first: int) -> None:
    wanted = campaign(throughput={"resolution": 10_000}, frame_loss={})
    _, result = run(path, SimulatedDevice(capacity_forward=capacity), wanted)
    highest = result.points[0].frames_per_second
    assert abs(highest - first) <= 20_000
    assert result.points[0].losses[0].undelivered[0] > 0
