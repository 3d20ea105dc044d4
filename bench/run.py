"""`make bench`: the engine's parts and whole loops, in turn with DPDK's testpmd on the same kind of port.

Prints a table and writes it to build/bench.txt, and everything to build/bench.json (keys: bench/README.md).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import machine
from bench.cases import BY_HAND, GROUPS, PARTNERS, Bar, Group
from bench.output import progress, time_left
from bench.table import table
from bench.testpmd import Testpmd, version
from gatemark.dut.machine import unthrottled_real_time

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "build" / "release" / "bench"
Samples = dict[str, list[float]]


def main() -> int:
    """Measure, print, write; return 0 also where a bar is missed: on another machine that is no fault."""
    options = _options()
    groups = _chosen(options.only)
    before, date = machine.CpuTime.now(), time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    rounds = Rounds(options)
    names = {name for group in groups for name in group.partners} if version() else set()
    with contextlib.ExitStack() as stack:
        cpus = sorted(os.sched_getaffinity(0))
        running = {name: stack.enter_context(Testpmd(PARTNERS[name], cpus[0], cpus[-1:])) for name in sorted(names)}
        for testpmd in running.values():
            testpmd.wait_until_ready()
        began = time.monotonic()
        for number in range(options.runs):
            progress(f"round {number + 1} of {options.runs}{time_left(began, number, options.runs)}")
            rounds.run(groups, running)
    pacing = None
    if re.search(options.only, "pacing"):
        progress("pacing")
        pacing = rounds.pace(200 if options.quick else 3000)
    stolen = machine.CpuTime.now().steal_share_since(before)
    result = {
        "format": 3,
        "date": date,
        "runs": options.runs,
        "machine": machine.facts() | rounds.context | {"testpmd": version()},
        "noise": machine.noise(stolen, rounds.lost_shares, rounds.longest_gap_ns),
        **rounds.figures(groups),
        "pacing": pacing,
    }
    text = table(result)
    progress("")
    print(text, end="")
    (ROOT / "build" / "bench.txt").write_text(text, encoding="utf-8")
    (ROOT / "build" / "bench.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="PATTERN", help="groups or cases that match, or `pacing`")
    parser.add_argument("--runs", type=int, metavar="N", help="rounds to take the median of (5; 2 if quick)")
    parser.add_argument("--quick", action="store_true", help="shorter and fewer: below two minutes, for a first look")
    options = parser.parse_args()
    options.runs = options.runs or (2 if options.quick else 5)
    return options


def _chosen(pattern: str) -> list[Group]:
    """Return the groups with the cases that match. The program's cases and those of cases.py must be the same."""
    listed = _bench("--benchmark_list_tests=true").split()
    known = {case for group in GROUPS for case in group.cases}
    if set(listed) - BY_HAND != known:
        sys.exit(f"error: cases.py and gatemark-bench differ in {sorted(set(listed) - BY_HAND ^ known)}")
    chosen = []
    for group in GROUPS:
        cases = tuple(case for case in group.cases if re.search(pattern, group.name) or re.search(pattern, case))
        if cases:
            chosen.append(replace(group, cases=cases))
    return chosen


def _bench(*arguments: str) -> str:
    command = [str(PROGRAMS / "gatemark-bench"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Rounds:
    """Everything measured so far, one sample a round."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.min_time = 0.03 if options.quick else 0.1
        self.partner_seconds = 0.05 if options.quick else 0.1
        self.context: dict[str, Any] = {}
        self.cycles: Samples = {}
        self.ratios: Samples = {}
        self.partner_cycles: Samples = {}
        self.lost_shares: list[float] = []
        self.longest_gap_ns = 0

    def run(self, groups: list[Group], running: dict[str, Testpmd]) -> None:
        """Measure every case once, each between two measurements of its partner."""
        self._look_for_gaps()
        for group in groups:
            partners = {name: running[name] for name in group.partners if name in running}
            for name in group.partners[1:]:
                if name in partners:
                    self._measure_partner(name, partners[name])
            compared = group.partners[0] if group.partners and group.partners[0] in partners else None
            before = self._measure_partner(compared, partners[compared]) if compared else None
            for case in group.cases:
                cycles = self._measure(case)
                self.cycles.setdefault(case, []).append(cycles)
                if compared and before:
                    after = self._measure_partner(compared, partners[compared])
                    self.ratios.setdefault(case, []).append(2 * cycles / (before + after))
                    before = after

    def _measure_partner(self, name: str, testpmd: Testpmd) -> float:
        rate = 0.0
        while rate == 0.0:  # another program may have had the CPU all the time
            rate = testpmd.frames_per_second(self.partner_seconds)
        cycles = float(self.context["ticks_per_second"] / rate)
        self.partner_cycles.setdefault(name, []).append(cycles)
        return cycles

    def _measure(self, case: str) -> float:
        answer = json.loads(
            _bench(
                f"--benchmark_filter=^{re.escape(case)}$", f"--benchmark_min_time={self.min_time}",
                "--benchmark_format=json",
            )
        )  # fmt: skip
        self.context |= {
            "ticks_per_second": int(answer["context"]["ticks_per_second"]),
            "compiler": answer["context"]["compiler"],
        }
        if len(answer["benchmarks"]) != 1 or "error_message" in answer["benchmarks"][0]:
            sys.exit(f"error: {case}: {[row.get('error_message', 'run') for row in answer['benchmarks']]}")
        return float(answer["benchmarks"][0]["ticks/frame"])

    def _look_for_gaps(self) -> None:
        facts = next(self._pacing(0, 200))
        self.lost_shares.append(facts["share_lost"])
        self.longest_gap_ns = max(self.longest_gap_ns, facts["longest_gap_ns"])
        self.context |= {"ticks_per_second": facts["ticks_per_second"], "compiler": facts["compiler"]}

    def pace(self, milliseconds: int) -> dict[str, Any]:
        """Measure how well frames are paced, in the class of threads that a trial's workers have."""
        with unthrottled_real_time():
            cpu, *rates = self._pacing(milliseconds, milliseconds)
        return {"cpu": cpu, "rates": rates}

    @staticmethod
    def _pacing(each_ms: int, gaps_ms: int) -> Iterator[dict[str, Any]]:
        command = [str(PROGRAMS / "gatemark-pacing"), str(each_ms), str(gaps_ms)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        yield from map(json.loads, done.stdout.splitlines())

    def figures(self, groups: list[Group]) -> dict[str, Any]:
        """Return medians, spreads and verdicts."""
        partners = {name: self._figure(cycles) for name, cycles in self.partner_cycles.items()}
        rows = []
        for group in groups:
            for case in group.cases:
                row = {"name": case, "group": group.name, "partners": group.partners} | self._figure(self.cycles[case])
                row["ratio"] = _summary(self.ratios[case]) if case in self.ratios else None
                row["bar"] = self._verdict(row, group.bars.get(case))
                rows.append(row)
        return {"partners": partners, "cases": rows}

    def _figure(self, cycles: list[float]) -> dict[str, Any]:
        summary = _summary(cycles)
        return {"cycles": summary, "mframes_per_second": self.context["ticks_per_second"] / summary["median"] / 1e6}

    def _verdict(self, row: dict[str, Any], bar: Bar | None) -> dict[str, Any] | None:
        """Hold all rounds against the bar; without testpmd a ratio is held against nothing."""
        if bar is not None and bar.ratio is not None and row["ratio"] is not None:
            return {"ratio": {"limit": bar.ratio, "verdict": verdict(row["ratio"]["runs"], bar.ratio)}}
        if bar is not None and bar.seconds is not None:
            limit = bar.seconds * self.context["ticks_per_second"] / bar.frames
            return {"cycles": {"limit": limit, "verdict": verdict(row["cycles"]["runs"], limit)}}
        return None


def verdict(runs: list[float], limit: float) -> str:
    """Return whether the bar was met: undecided if the middle half of the rounds lies on both sides of it."""
    low, _, high = statistics.quantiles(runs, n=4, method="inclusive") if len(runs) > 1 else runs * 3
    return "met" if high <= limit else "missed" if low > limit else "undecided"


def _summary(values: list[float]) -> dict[str, Any]:
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "runs": values}


if __name__ == "__main__":
    sys.exit(main())
