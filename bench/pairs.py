"""How often `gatemark pair` is right, and how soon: as root, `.venv/bin/python -m bench.pairs`.

A router with a chain of so many nftables rules before forwarding is measured in pairs with one that has more of them
and with itself. Each run ends when a difference is shown, the interval is within 3 % of the estimate, or its time ends.
It tells how often a difference was shown, and after what time. `--json FILE` writes all figures.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.judgement import AGAIN, write_campaign
from bench.output import columns, command_line, progress, time_left, write_json

CONDITION = "forwarding rate worse than 0%"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is measured, how long at most, how often."""

    name: str
    rules: int
    time: str
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One run of the command."""

    row: str
    ratio: float | None
    low: float | None
    high: float | None
    judgement: str
    ended: str
    pairs: int
    left_out: int
    measured_s: float
    whole_s: float
    """With opening and closing the test beds, and the report."""
    rates: tuple[float | None, ...]


def measure(first: Path, second: Path, row: Row, output: Path) -> Made:
    """Measure two campaigns in pairs."""
    began = time.monotonic()
    program = Path(sys.executable).with_name("gatemark")
    options = ("--time", row.time, "--seed", str(time.time_ns() % 10**6), "--fail-if", CONDITION)
    command = (program, "pair", first, second, *options, "--output", output, "--json")
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    told = json.loads(ended.stdout or "{}")
    if "judgement" not in told:
        sys.exit(f"{row.name}: {ended.stderr.strip() or ended.stdout.strip()}")
    look = told["look"] or {"ratio_low": None, "ratio_high": None, "low": None, "high": None}
    return Made(
        row=row.name,
        ratio=math.sqrt(look["ratio_low"] * look["ratio_high"]) if look["ratio_low"] and look["ratio_high"] else None,
        low=look["low"],
        high=look["high"],
        judgement=told["judgement"],
        ended=told["ended"],
        pairs=told["pairs"],
        left_out=told["pairs_left_out"],
        measured_s=told["measured_s"],
        whole_s=time.monotonic() - began,
        rates=tuple(side["value"] for side in told["sides"]),
    )


def all_runs(base: int, rows: Sequence[Row]) -> Iterator[Made]:
    """Yield all runs, those of the rows in turn; tells on standard error how far it is."""
    began, done, total = time.monotonic(), 0, sum(row.runs for row in rows)
    with tempfile.TemporaryDirectory(prefix="pairs-") as folder:
        place = Path(folder)
        files = {rules: write_campaign(place, rules) for rules in {base, *(row.rules for row in rows)}}
        for number in range(max(row.runs for row in rows)):
            for row in rows:
                if number < row.runs:
                    progress(f"run {done + 1} of {total}{time_left(began, done, total)}")
                    yield measure(files[base], files[row.rules], row, place / f"{row.name}-{number}")
                    done += 1


def table(results: Sequence[Made], rows: Sequence[Row]) -> str:
    """Write for each row how often a difference was shown."""
    heads = (
        "against itself",
        "B / A, median",
        "of all",
        "worse",
        "better",
        "of",
        "time, median",
        "longest",
        "pairs left out",
    )
    return columns(
        heads, [_words(row, some) for row in rows if (some := [each for each in results if each.row == row.name])],
        numbers_from=1,
    )  # fmt: skip


def _words(row: Row, results: Sequence[Made]) -> tuple[str, ...]:
    ratios = [each.ratio for each in results if each.ratio is not None]
    judged = [each.judgement for each in results]
    times = [each.measured_s for each in results]
    pairs = sum(each.pairs for each in results), sum(each.left_out for each in results)
    return (
        row.name,
        f"{statistics.median(ratios):.3f}" if ratios else "-",
        f"{min(ratios):.3f} to {max(ratios):.3f}" if ratios else "-",
        str(judged.count("worse")),
        str(judged.count("better")),
        str(len(results)),
        f"{statistics.median(times):.0f} s",
        f"{max(times):.0f} s",
        f"{100 * pairs[1] / max(1, sum(pairs)):.0f} %",
    )


def main() -> None:
    """Print the table; write JSON if asked for."""
    parser = command_line(__doc__, whole=True)
    parser.add_argument("--base", type=int, default=300, metavar="N", help="rules of A (default 300)")
    for name, rules, limit, runs in (("large", 440, "60s", 20), ("small", 340, "5min", 20), (AGAIN, None, "60s", 40)):
        option = name.replace("the ", "")
        if rules is not None:
            parser.add_argument(
                f"--{option}", type=int, default=rules, metavar="N", help=f"rules of B (default {rules})"
            )
        parser.add_argument(f"--{option}-runs", type=int, default=runs, metavar="N", help=f"default {runs}")
        parser.add_argument(f"--{option}-time", default=limit, metavar="TIME", help=f"default {limit}")
    wanted = parser.parse_args()
    rows = _rows(wanted)
    results: list[Made] = []
    for each in all_runs(wanted.base, rows):
        results.append(each)
        write_json(wanted.json, [asdict(result) for result in results])
    progress("")
    print(table(results, rows))


def _rows(wanted: argparse.Namespace) -> list[Row]:
    return [
        Row(name=f"{wanted.large} rules", rules=wanted.large, time=wanted.large_time, runs=wanted.large_runs),
        Row(name=f"{wanted.small} rules", rules=wanted.small, time=wanted.small_time, runs=wanted.small_runs),
        Row(name=AGAIN, rules=wanted.base, time=wanted.same_time, runs=wanted.same_runs),
    ]


if __name__ == "__main__":
    main()
