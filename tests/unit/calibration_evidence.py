"""What checks of a calibration may have seen: results of runs, without a gateway."""

from __future__ import annotations

from typing import Any

from gatemark.calibrate.checks import all_checks
from gatemark.calibrate.model import Check, SelfError
from gatemark.config.sizes import FrameSizes
from gatemark.config.types import Mix
from gatemark.procedures.delay_result import DelayPoint, DelaySeries
from gatemark.procedures.result import RunResult
from gatemark.search.goal import SearchResult
from gatemark.trial.cell import Cell, Run

SECOND = 1_000_000_000
CELL = Cell(direction="forward", frame_sizes=FrameSizes(ipv4=64, ipv6=None), mix=Mix(1, 1))
SELF = SelfError(
    minimum_ns=3_000, median_ns=5_000, p90_ns=6_000, p999_ns=9_000, maximum_ns=20_000,
    variation_minimum_ns=-2_000, variation_maximum_ns=2_500,
)  # fmt: skip


def run_of(procedure: str, **parts: Any) -> RunResult:
    return RunResult(run=Run(number=1, procedure=procedure, cell=CELL), **parts)  # type: ignore[arg-type]


def searched(lower: int) -> SearchResult:
    return SearchResult(
        kind="found", lower_bound=lower, upper_bound=lower + 100, resolution=100, highest_load=lower + 100
    )


def throughput_check() -> Check:
    return next(check for check in all_checks() if check.procedure == "throughput")


def series(**values: int) -> DelaySeries:
    one = {name: (value,) for name, value in values.items()}
    zero = dict.fromkeys(("lost", "negative", "impossible", "lateness_max_ns"), (0,))
    same = dict.fromkeys(("p99_ns", "p9999_ns", "p99999_ns"), (7_000,))
    return DelaySeries(direction="forward", kind="foreground", offered=(100,), samples=(100,), **zero, **same, **one)  # type: ignore[arg-type]


def delays(found: DelaySeries) -> RunResult:
    point = DelayPoint(frames_per_second=5_000, share=None, measured=1, tester_limited=0, series=(found,))
    return run_of("delay", limited_by="gateway", delays=(point,))


PATH = {
    "minimum_ns": 3_000, "p50_ns": 5_000, "p90_ns": 6_000, "p999_ns": 9_000, "maximum_ns": 20_000,
    "ipdv_minimum_ns": -2_000, "ipdv_median_ns": 0, "ipdv_maximum_ns": 2_500,
}  # fmt: skip
