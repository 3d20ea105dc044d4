"""The arithmetic of `make bench`: bars, table, instruction counts; no program is run."""

from __future__ import annotations

import re
from argparse import Namespace
from typing import Any

import pytest
from bench import instructions, machine
from bench.cases import BY_HAND, GROUPS, PARTNERS, Bar, cycles_and_ratio
from bench.run import Rounds
from bench.table import _bar, table

CASE = "send_on_null/ipv4_both"


@pytest.fixture
def rounds() -> Rounds:
    rounds_ = Rounds(Namespace(quick=True))
    rounds_.context = {"ticks_per_second": 1_300_000_000, "compiler": "g++"}
    rounds_.cycles = {CASE: [50.0, 40.0, 90.0]}
    rounds_.ratios = {CASE: [2.0, 1.5, 1.7]}
    rounds_.partner_cycles = {"txonly": [25.0, 26.0, 54.0]}
    return rounds_


def test_every_bar_belongs_to_a_case_and_every_partner_is_known() -> None:
    names = [case for group in GROUPS for case in group.cases]
    assert len(names) == len(set(names))
    assert not BY_HAND & set(names)
    for group in GROUPS:
        assert set(group.bars) <= set(group.cases)
        assert set(group.partners) <= set(PARTNERS)
        assert all(bar.ratio is None or group.partners for bar in group.bars.values())


def test_a_ratio_is_judged_by_its_own_median(rounds: Rounds) -> None:
    group = next(group for group in GROUPS if CASE in group.cases)
    only = [type(group)(name=group.name, about="", cases=(CASE,), partners=("txonly",), bars={CASE: Bar(ratio=1.8)})]
    row = rounds.figures(only)["cases"][0]
    assert row["cycles"]["median"] == 50.0
    assert row["mframes_per_second"] == pytest.approx(26.0)
    assert row["bar"] == {"ratio": {"limit": 1.8, "met": True}}


@pytest.mark.parametrize(("cycles", "met"), [(99.9, False), (100.0, True)])
def test_a_bar_in_cycles_is_converted_to_the_counter_of_this_machine(rounds: Rounds, cycles: float, met: bool) -> None:
    row: dict[str, Any] = {"cycles": {"median": 50.0}, "ratio": None}
    bar = rounds._verdict(row, Bar(cycles=cycles))
    assert bar == {"cycles": {"limit": pytest.approx(cycles / 2), "stated": cycles, "met": met}}


@pytest.mark.parametrize(("cycles", "ratio"), [(60, "2.26 x"), (70, "2.64 x"), (80, "3.02 x")])
def test_a_bar_in_cycles_is_judged_as_a_ratio_as_well_and_neither_is_hidden(cycles: float, ratio: str) -> None:
    slow = Rounds(Namespace(quick=True))
    slow.context = {"ticks_per_second": 2_600_000_000}
    row: dict[str, Any] = {"cycles": {"median": 3 * cycles}, "ratio": {"median": 2.0}}  # txonly is slow here, too
    assert _bar(slow._verdict(row, cycles_and_ratio(cycles)) or {}) == f"{ratio}: met, {cycles} cycles: missed"
    row = {"cycles": {"median": cycles / 2}, "ratio": {"median": 3.1}}
    assert _bar(slow._verdict(row, cycles_and_ratio(cycles)) or {}) == f"{ratio}: missed, {cycles} cycles: met"


def test_a_bar_in_cycles_that_is_a_ratio_as_well_is_held_against_txonly() -> None:
    for group in GROUPS:
        for bar in group.bars.values():
            assert bar.cycles is None or bar.ratio is None or group.partners[0] == "txonly"


def test_without_testpmd_no_ratio_is_judged(rounds: Rounds) -> None:
    row: dict[str, Any] = {"cycles": {"median": 1.0}, "ratio": None}
    assert rounds._verdict(row, Bar(ratio=9.0)) is None
    assert set(rounds._verdict(row, cycles_and_ratio(60)) or {}) == {"cycles"}


def test_a_noisy_machine_is_called_noisy_in_the_table(rounds: Rounds) -> None:
    pacing = {
        key: dict.fromkeys(("p50", "p99", "p99.9", "p99.99", "max"), 7) for key in ("gap_error_ns", "lateness_ns")
    }
    result = {
        "date": "today", "runs": 3, "noise": machine.noise(0.003, [0.0], 1_000),
        "machine": {
            "commit": "x", "cpu": "p", "cpus": [0], "hypervisor": True, "kernel": "k", "compiler": "c",
            "ticks_per_second": 1, "testpmd": "22.11",
        },
        **rounds.figures([]),
        "pacing": {
            "cpu": {"gaps": 1, "gaps_over_ns": 999, "longest_gap_ns": 5_000_000, "share_lost": 0.01},
            "rates": [pacing | {"frames_per_second": 1000, "frames": 4, "share_within_1us": 0.5, "bursts": {"1": 3}}],
        },
    }  # fmt: skip
    text = table(result)
    assert "NOISY" in text
    assert re.search(r"lateness +7 ns.*50\.000% +75\.00%", text)
    assert machine.noise(0.0, [0.0], 1_000)["quiet"]


@pytest.mark.parametrize(("now", "status"), [(100.0, 0), (101.0, 0), (103.0, 1), (97.0, 1)])
def test_instructions_may_neither_rise_nor_fall_unnoticed(now: float, status: int) -> None:
    assert instructions.compare({"send": 100.0}, {"send": now}) == status


def test_a_case_that_is_not_counted_any_more_is_told() -> None:
    assert instructions.compare({"send": 1.0}, {}) == 1
    assert instructions.compare({}, {"send": 1.0}) == 1
