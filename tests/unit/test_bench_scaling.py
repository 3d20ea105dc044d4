"""The arithmetic of `bench.scaling`: common time, ratios within a round, the machine's part; no engine runs."""

from __future__ import annotations

from typing import Any

import pytest
from bench.machine import CpuTime
from bench.output import columns
from bench.scaling import Engines, Measured, Scaled, campaign_of, summary_of, table
from tests.simulated.engine import SimulatedDevice, SimulatedEngine


def way(offered: int, sending_ns: int) -> dict[str, Any]:
    return {
        "foreground": {"offered": offered, "received": offered - 1, "faulty": 1, "duplicate": 0},
        "sending_ns": sending_ns,
    }


def engines(port: str, count: int) -> Engines:
    engines_ = Engines(campaign_of([port, port], "bidirectional", 64), [[number] for number in range(count)])
    engine = SimulatedEngine(SimulatedDevice(capacity_forward=1))
    engines_._opened = [engine.open({"left": {"port": port}, "right": {"port": port}})] * count
    return engines_


def measured(rate: float, cpus: int) -> Measured:
    return Measured(
        cpus=list(range(cpus)), queues=cpus, offered=int(rate), took_ns=1_000_000_000,
        start_spread_ns=0, stolen=0.01, waited=0.0, received=None, wrong=0,
    )  # fmt: skip


def test_all_frames_count_in_the_time_until_the_last_sender_of_all_engines_was_done() -> None:
    fast = {"directions": [way(1000, 1_000_000_000), way(1000, 1_100_000_000)]}
    slow = {"directions": [way(1000, 1_900_000_000), way(1000, 1_200_000_000)]}
    result = engines("ring", 2)._together(
        [(5_000, fast), (5_000 + 100_000_000, slow)], stolen=0.0, waited_ns=40_000_000
    )
    assert result.took_ns == 2_000_000_000
    assert result.start_spread_ns == 100_000_000
    assert result.frames_per_second == 2000.0
    assert (result.offered, result.received, result.wrong) == (4000, 3996, 4)
    assert result.waited == 0.01


def test_null_ports_return_nothing_so_nothing_is_called_lost() -> None:
    result = engines("null", 1)._together([(0, {"directions": [way(10, 1000)]})], stolen=0.0, waited_ns=0)
    assert result.received is None


def both_of(workers: float, apart: float, testpmd: float) -> Scaled:
    return Scaled(workers=measured(workers, 2), apart=measured(apart, 2), testpmd=testpmd)


def test_ratios_are_taken_within_a_round_and_the_share_is_of_the_engines_apart() -> None:
    first, other = measured(20.0, 1), measured(10.0, 1)
    rounds = [
        [Scaled(workers=first, apart=first, testpmd=50.0), both_of(36, 40, 90.0)],
        [Scaled(workers=other, apart=other, testpmd=20.0), both_of(18, 18, 40.0)],
        [Scaled(workers=first, apart=first, testpmd=50.0), both_of(38, 38, 85.0)],
    ]
    alone, both = summary_of(rounds)
    assert (alone["ratio"]["median"], alone["share"]["median"]) == (1.0, 1.0)
    assert (both["ratio"]["median"], both["ratio"]["max"]) == (1.8, 1.9)
    assert both["apart_ratio"]["median"] == pytest.approx(1.9)
    assert both["share"]["median"] == 1.0
    assert both["share"]["min"] == pytest.approx(0.9)
    assert both["testpmd_ratio"]["median"] == pytest.approx(1.8)
    assert table([alone, both]).splitlines()[-1].split() == [
        "2", "2", "0.0", "0.0-0.0", "1.80", "1.80-1.90", "1.90", "1.00", "1.80",
        "1.0%,", "1.0%", "0.0%,", "0.0%", "-", "-",
    ]  # fmt: skip


def test_ports_that_one_engine_alone_can_have_get_no_control() -> None:
    (row,) = summary_of([[Scaled(workers=measured(20.0, 1), apart=None, testpmd=None)]])
    assert row["apart_ratio"] is row["share"] is row["testpmd_ratio"] is row["apart_stolen"] is None
    assert table([row]).splitlines()[-1].split()[6:9] == ["-", "-", "-"]


def test_time_taken_by_the_hypervisor_is_that_of_the_cpus_named() -> None:
    before, after = CpuTime(total=100, steal=5), CpuTime(total=300, steal=15)
    assert after.steal_share_since(before) == 0.05
    everything = CpuTime.now()
    assert everything.total >= CpuTime.now([0]).total - 100


def test_columns_are_as_wide_as_their_widest_cell_and_numbers_stand_on_the_right() -> None:
    text = columns(("what", "count"), [("a", "1"), ("longer", "22")], numbers_from=1)
    assert text.splitlines() == ["what    count", "------  -----", "a           1", "longer     22"]
    assert columns(("what", "n"), [("a", "22")]).splitlines()[-1] == "a     22"
