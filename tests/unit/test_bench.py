"""The arithmetic of `make bench`: bars, table, instruction counts; no program is run."""

from __future__ import annotations

import re
from argparse import Namespace
from typing import Any

import pytest
from bench import instructions, machine
from bench.cases import BY_HAND, GROUPS, PARTNERS, Bar
from bench.run import Rounds, verdict
from bench.table import table

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


def test_a_ratio_is_judged_by_all_rounds(rounds: Rounds) -> None:
    group = next(group for group in GROUPS if CASE in group.cases)
    only = [type(group)(name=group.name, about="", cases=(CASE,), partners=("txonly",), bars={CASE: Bar(ratio=1.8)})]
    row = rounds.figures(only)["cases"][0]
    assert row["cycles"]["median"] == 50.0
    assert row["mframes_per_second"] == pytest.approx(26.0)
    assert row["bar"] == {"ratio": {"limit": 1.8, "verdict": "undecided"}}


@pytest.mark.parametrize(
    ("runs", "word"),
    [
        ([1.0, 1.1, 1.2, 9.0, 1.1], "met"),
        ([1.4, 1.5, 0.2, 1.6, 1.5], "missed"),
        ([1.2, 1.4, 1.3, 1.25, 1.5], "undecided"),
        ([1.0], "met"),
        ([2.0], "missed"),
    ],
)
def test_a_bar_is_undecided_where_rounds_disagree(runs: list[float], word: str) -> None:
    assert verdict(runs, 1.3) == word


@pytest.mark.parametrize(("seconds", "word"), [(30e-9, "missed"), (80e-9, "met")])
def test_a_bar_in_seconds_is_converted_to_the_counter_of_this_machine(
    rounds: Rounds, seconds: float, word: str
) -> None:
    row: dict[str, Any] = {"cycles": {"runs": [50.0, 51.0]}, "ratio": None}
    for bar in (Bar(seconds=seconds), Bar(seconds=1000 * seconds, frames=1000)):
        judged = rounds._verdict(row, bar)
        assert judged == {"cycles": {"limit": pytest.approx(1.3e9 * seconds), "verdict": word}}


def test_without_testpmd_no_ratio_is_judged(rounds: Rounds) -> None:
    row: dict[str, Any] = {"cycles": {"runs": [1.0]}, "ratio": None}
    assert rounds._verdict(row, Bar(ratio=9.0)) is None


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
