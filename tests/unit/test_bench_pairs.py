"""How often pairs are right: what is measured for it, and what is counted."""

from __future__ import annotations

from bench import pairs as script

LARGE = script.Row(name="440 rules", rules=440, time="60s", runs=20)
SAME = script.Row(name="the same", rules=300, time="60s", runs=40)


def run(row: script.Row, *, ratio: float | None, judgement: str, measured_s: float) -> script.Made:
    return script.Made(
        row=row.name, ratio=ratio, low=None, high=None, judgement=judgement, ended="decided", pairs=30, left_out=10,
        measured_s=measured_s, whole_s=measured_s + 5, rates=(1000.0, 900.0),
    )  # fmt: skip


def test_each_row_has_its_counts_and_times() -> None:
    results = [
        run(LARGE, ratio=0.8, judgement="worse", measured_s=6),
        run(LARGE, ratio=0.9, judgement="worse", measured_s=8),
        run(LARGE, ratio=None, judgement="not_judged", measured_s=60),
        run(SAME, ratio=1.01, judgement="no_difference", measured_s=60),
    ]
    _, _, large, same = script.table(results, (LARGE, SAME)).splitlines()
    assert large.split("  ")[0] == "440 rules"
    assert large.split()[2:] == ["0.850", "0.800", "to", "0.900", "2", "0", "3", "8", "s", "60", "s", "25", "%"]
    assert same.split()[2:] == ["1.010", "1.010", "to", "1.010", "0", "0", "1", "60", "s", "60", "s", "25", "%"]
