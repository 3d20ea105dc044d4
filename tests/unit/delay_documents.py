"""Result documents with delays, bursts, recovery and reset, built by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.unit.stateful_documents import document, run

from gatemark.facts import SelfLatency
from gatemark.procedures.back_to_back.result import BackToBackResult
from gatemark.procedures.delay.result import (
    DelayPoint,
    DelayResult,
    DelaySeries,
    DelayVariation,
    Latency,
    PacketPairs,
)
from gatemark.procedures.reset.result import BEGAN_ERROR_NS, ResetResult, ResetSeries
from gatemark.procedures.system_recovery.result import RecoverySeries, SystemRecoveryResult
from gatemark.report.model import DirectionRow, TrialRow
from gatemark.results.document import ResultDocument
from gatemark.results.part import Figure
from gatemark.results.run import FrameSizes, RunResult
from gatemark.results.tester_parts import CeilingPart, ClockPart, SelfTestPart
from gatemark.search.burst import BurstKind, BurstResult
from gatemark.stats.hdr import hdr_string
from gatemark.trial.validity import Validity

SECOND = 10**9
US = 1000
BEGAN_NS = 15 * SECOND
"""When resets began."""
CLOCK = ClockPart(resolution_ps=1200, read_ps=11_400, timestamps="software")
PLACES = {
    "minimum": 0.9, "p50": 1, "p90": 1.1, "p99": 2, "p99.9": 6, "p99.99": 12, "p99.999": 20, "maximum": 30,
}  # fmt: skip
"""Where the figures of a distribution lie, as a multiple of its middle."""


def hump(middle_ns: int, frames: int) -> tuple[tuple[int, int], ...]:
    """A histogram around a delay, with a tail of single frames at up to 30 times of it."""
    shares = ((0.90, 0.02), (0.95, 0.13), (1.0, 0.5), (1.05, 0.2), (1.1, 0.1), (1.3, 0.04), (2.0, 0.009))
    body = [(int(middle_ns * place), int(frames * share)) for place, share in shares]
    return (*body, *((int(middle_ns * (3 + 3 * n)), max(1, frames // 10_000 >> n)) for n in range(10)))


def series(
    middle_ns: int = 22_900,
    *,
    direction: str = "forward",
    class_: str = "foreground",
    repetitions: int = 3,
    frames: int = 1_000_000,
    delay_ns: Mapping[str, Sequence[int | None]] | None = None,
    latency: Mapping[str, Any] | None = None,
    pdv_ns: Sequence[int | None] | None = None,
    ipdv: Mapping[str, Any] | None = None,
    **changes: Any,
) -> DelaySeries:
    """Delays around a middle, a little longer in each repetition; what is given takes the place of any of it."""
    scale = [100 + n for n in range(repetitions)]

    def times(factor: float) -> tuple[int | None, ...]:
        return tuple(int(middle_ns * factor * percent) // 100 for percent in scale)

    histogram = hump(middle_ns, frames)
    same = (0,) * repetitions
    delays = {**{key: times(place) for key, place in PLACES.items()}, **(delay_ns or {})}
    spreads = times(5.1) if pdv_ns is None else pdv_ns
    lows = delays["minimum"]
    tagged = {
        "first_tag_ns": 60 * SECOND, "tags": (50_000,) * repetitions, "tags_lost": same, "typical_ns": times(1),
        "worst_case_ns": times(6.5), **(latency or {}),
    }  # fmt: skip
    pairs = {
        "minimum_ns": times(-29), "median_ns": same, "maximum_ns": times(29), "pairs": (frames - 1,) * repetitions,
        "skipped": same,
        "histogram": (*((-ns, count) for ns, count in reversed(histogram)), (0, frames), *histogram),
        **(ipdv or {}),
    }  # fmt: skip
    fields: dict[str, Any] = {
        "direction": direction, "class_": class_, "offered": (frames,) * repetitions, "undelivered": same,
        "samples": (frames,) * repetitions, "negative": same,
        "lateness_max_ns": (41_000,) * repetitions,
        "delay_ns": {key: Figure.of(values) for key, values in delays.items()},
        "latency": Latency(**figures(tagged, "typical_ns", "worst_case_ns")),
        "pdv": DelayVariation(
            pdv_ns=Figure.of(spreads),
            p999_offered_ns=Figure.of(
                [
                    None if low is None or spread is None else low + spread
                    for low, spread in zip(lows, spreads, strict=True)
                ]
            ),
        ),
        "ipdv": PacketPairs(**figures(pairs, "minimum_ns", "median_ns", "maximum_ns")),
        "hdr": hdr_string(histogram),
    }  # fmt: skip
    return DelaySeries(**(fields | changes))


def figures(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The fields of a part, of which these hold figures."""
    return {name: Figure.of(value) if name in names else value for name, value in fields.items()}


def point(
    load: int, ways: Sequence[DelaySeries], *, share: Fraction | None = None, repetitions: int = 3, **changes: Any
) -> DelayPoint:
    fields: dict[str, Any] = {
        "frames_per_second": load, "share": share, "throughput": None if share is None else int(load / share),
        "throughput_limited_by": None if share is None else "gateway", "repetitions": repetitions, "tester_limited": 0,
        "series": tuple(ways),
    }  # fmt: skip
    return DelayPoint(**(fields | changes))


def both(middle_ns: int, **changes: Any) -> list[DelaySeries]:
    return [series(middle_ns, **changes), series(middle_ns * 6 // 5, direction="reverse", **changes)]


def delay_run(
    points: Sequence[DelayPoint],
    *,
    number: int = 1,
    sizes: tuple[int, int] = (64, 84),
    direction: str = "bidirectional",
    **changes: Any,
) -> DelayResult:
    parts = {
        "points": tuple(points), "duration_ns": 120 * SECOND, "frame_sizes": sized(sizes), "connections": None,
    }  # fmt: skip
    result = run("delay", number=number, direction=direction, changes=parts | changes)
    assert isinstance(result, DelayResult)
    return result


def sized(sizes: tuple[int, int]) -> FrameSizes:
    return FrameSizes(ipv4=sizes[0], ipv6=sizes[1])


def stateless(runs: Sequence[RunResult], **changes: Any) -> ResultDocument:
    whole = document(runs, technology="siit64", inside=None)
    return whole.model_copy(update={"name": "delays", **changes})


def self_test(ceiling: int = 900_000) -> SelfTestPart:
    families = (("ipv4", 64), ("ipv6", 84))
    return SelfTestPart(
        machine="tester, some CPU", port_kind="netns-af_packet", measured_at="2026-11-21T10:00:00+00:00",
        lateness_max_ns=10**6,
        entries=tuple(
            CeilingPart(
                family=family, frame_octets=octets + more, direction=way, mode=mode, kind="frames",
                frames_per_second=ceiling - more - (1000 if mode == "random_both" else 0),
            )
            for family, octets in families
            for more in (0, 1000)
            for way in ("forward", "bidirectional")
            for mode in ("fixed", "random_both")
        ),
        self_latency=tuple(
            SelfLatency(
                family=family, frame_octets=octets, frames_per_second=load, direction=way, samples=1000, negative=0,
                minimum_ns=8000, p50_ns=9000 + load // 100, p99_ns=15_000, p999_ns=19_000 + load // 100,
                maximum_ns=60_000,
            )
            for family, octets in families
            for load in (10_000, 100_000, 500_000)
            for way in ("forward", "reverse")
        ),
    )  # fmt: skip


def event_run(procedure: str, *, number: int, **fields: Any) -> RunResult:
    """A run of back-to-back frames, system recovery or reset."""
    return run(procedure, number=number, direction="bidirectional", changes={"connections": None, **fields})


def bursts(
    *lengths: int, ceiling: int = 446_000, kind: BurstKind = "found", number: int = 1, **changes: Any
) -> BackToBackResult:
    """A run of back-to-back frames with searches that found these bursts; none where it was refused."""
    searches = tuple(
        BurstResult(
            kind=kind, frames=length, upper_frames=length + 4460, trials=8,
            tester_limited_at=ceiling if kind == "tester_limited" else None,
        )
        for length in lengths
    )  # fmt: skip
    fields: dict[str, Any] = {
        "bursts": searches, "ceiling_frames": ceiling, "resolution_frames": 4460, "line_rate": 148_809,
        "throughput": 100_000, "search": "binary", "verifications": 0, "wait_ns": 2 * SECOND,
    }  # fmt: skip
    result = event_run("back_to_back", number=number, **(fields | changes))
    assert isinstance(result, BackToBackResult)
    return result


def recovery(*ways: RecoverySeries, number: int = 1, **changes: Any) -> SystemRecoveryResult:
    fields: dict[str, Any] = {
        "overload": 110_000, "recovery_load": 55_000, "throughput": 100_000, "throughput_measured": True,
        "overload_ns": 60 * SECOND, "observe_ns": 60 * SECOND, "repetitions": 3, "tester_limited": 0, "series": ways,
    }  # fmt: skip
    result = event_run("system_recovery", number=number, **(fields | changes))
    assert isinstance(result, SystemRecoveryResult)
    return result


def recovery_series(times: Sequence[int | None], direction: str = "forward", **changes: Any) -> RecoverySeries:
    fields: dict[str, Any] = {
        "direction": direction, "class_": "foreground", "offered": (9_900_000,) * len(times),
        "lost": (600_000,) * len(times), "faulty": (0,) * len(times),
        "outcomes": tuple("not_recovered" if ns is None else "recovered" for ns in times),
        "recovery_ns": tuple(times), "last_loss_before_ns": (None,) * len(times),
    }  # fmt: skip
    return RecoverySeries(**(fields | changes))


def reset(*ways: ResetSeries, number: int = 1, **changes: Any) -> ResetResult:
    count = len(ways[0].undelivered) if ways else 0
    fields: dict[str, Any] = {
        "kind": "software", "frames_per_second": 100_000, "throughput_measured": True, "before_ns": BEGAN_NS,
        "observe_ns": 60 * SECOND, "repetitions": count, "tester_limited": 0, "began_ns": (BEGAN_NS,) * count,
        "took_ns": (1_400_000_000,) * count, "series": ways,
    }  # fmt: skip
    result = event_run("reset", number=number, **(fields | changes))
    assert isinstance(result, ResetResult)
    return result


def reset_series(undelivered: Sequence[int], direction: str = "forward", **changes: Any) -> ResetSeries:
    count = len(undelivered)
    first_ns = changes.get("first_loss_ns", (16 * SECOND,) * count)
    fields: dict[str, Any] = {
        "direction": direction, "class_": "foreground", "sending_ns": 75 * SECOND, "offered": (7_500_000,) * count,
        "undelivered": tuple(undelivered), "faulty": (0,) * count, "longest_run": tuple(undelivered),
        "first_loss_ns": first_ns, "last_loss_ns": (18 * SECOND,) * count, "outcomes": ("recovered",) * count,
        "lost_before": any(ns is not None and ns < BEGAN_NS - BEGAN_ERROR_NS for ns in first_ns),
    }  # fmt: skip
    return ResetSeries(**(fields | changes))


def trial(
    number: int, procedure_run: int, purpose: str, load: int, slices: Sequence[int], *, seconds: int = 60
) -> TrialRow:
    row = DirectionRow(
        direction="forward", intended=load * seconds, offered=load * seconds, received=load * seconds - sum(slices),
        faulty=0, duplicate=0, lost=sum(slices), lateness_max_ns=9000, loss_by_slice=tuple(slices),
    )  # fmt: skip
    return TrialRow(
        trial_number=number, run=procedure_run, repetition=1, attempt=1, purpose=purpose, frames_per_second=load,
        duration_ns=seconds * SECOND, outcome="failed" if any(slices) else "passed", validity=Validity(valid=True),
        reasons=(), directions=(row,),
    )  # fmt: skip


def everything() -> tuple[ResultDocument, list[TrialRow]]:
    """Every procedure of the classic metrics, at two sizes, with a self-test."""
    loads = ((400_000, Fraction(1), 22_900), (200_000, Fraction(1, 2), 15_300), (40_000, Fraction(1, 10), 12_100))
    throughput = run(
        "throughput", (400_000, 401_000, 402_000), number=1, direction="bidirectional", changes={"connections": None}
    )
    runs: list[RunResult] = [throughput]
    for number, sizes in enumerate(((64, 84), (512, 532), (1518, 1538)), start=2):
        points = [point(load, both(middle + 12 * sizes[0]), share=share) for load, share, middle in loads]
        runs.append(delay_run(points, number=number, sizes=sizes))
    lossy = series(
        150_000,
        latency={
            "typical_ns": (150_000, 151_000, 152_000), "worst_case_ns": (None, 990_000, None),
            "tags_lost": (51, 7, 400),
        },
        undelivered=(1200, 300, 9000), pdv_ns=(None, 800_000, None), negative=(3, 0, 0),
    )  # fmt: skip
    runs.append(delay_run([point(395_000, [lossy]), point(900_000, [], repetitions=0, tester_limited=3)], number=5,
                          direction="forward"))  # fmt: skip
    runs.append(bursts(40_120, 41_000, 39_888, number=6))
    line_rate = "the throughput is the line rate (RFC 9004 section 5)"
    runs.append(bursts(number=7, refused=line_rate, frame_sizes=sized((1518, 1538))))
    ways = (recovery_series((98_000_000, 101_500_000, 99_700_000)), recovery_series((0, None, 0), "reverse"))
    runs.append(recovery(*ways, number=8))
    resets = (reset_series((141_000, 139_500, 143_200)), reset_series((141_900, 139_000, 143_700), "reverse"))
    runs.append(reset(*resets, number=9))
    trials = [
        trial(1, 8, "recovery", 110_000, [900] * 67 + [300] + [0] * 32, seconds=120),
        trial(2, 9, "reset", 100_000, [0] * 21 + [75_000, 66_000] + [0] * 77, seconds=75),
    ]
    return stateless(runs, clock=CLOCK, self_test=self_test(401_500)), trials
