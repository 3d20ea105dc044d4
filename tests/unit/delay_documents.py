"""Result documents with delays, bursts, recovery and reset, built by hand from results of runs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from stateful_documents import document, run

from gatemark.config.load import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.procedures.delay_result import DelayPoint, DelaySeries
from gatemark.procedures.event_result import BackToBack, Recovery, RecoverySeries, Reset, ResetSeries
from gatemark.report.model import DirectionRow, TrialRow
from gatemark.results.delay import delay_point_part
from gatemark.results.events import back_to_back_part, recovery_part, reset_part
from gatemark.results.schema import (
    CeilingPart,
    ClockPart,
    FrameSizesPart,
    MixPart,
    ResultDocument,
    RunPart,
    SelfLatencyPart,
    SelfTestPart,
)
from gatemark.search.burst import BurstResult
from gatemark.stats.hdr import hdr_string

SECOND = 10**9
US = 1000
CLOCK = ClockPart(resolution_ps=1200, read_ps=11_400, timestamps="software")


def delay_campaign() -> Campaign:
    return campaign_from_dict(
        {
            "name": "delays",
            "gateway": {"technology": "router44"},
            "testbed": {"kind": "loopback"},
            "left": {"port": "ring", "ipv4": {"address": "198.18.0.2"}},
            "right": {"port": "ring", "ipv4": {"address": "198.19.0.2"}},
            "throughput": {"maximum": "1M"},
            "delay": {},
        },
        where="test",
    )


def hump(middle_ns: int, frames: int) -> tuple[tuple[int, int], ...]:
    """A histogram around a delay, with a tail of single frames at up to 30 times of it."""
    shares = ((0.90, 0.02), (0.95, 0.13), (1.0, 0.5), (1.05, 0.2), (1.1, 0.1), (1.3, 0.04), (2.0, 0.009))
    body = [(int(middle_ns * place), int(frames * share)) for place, share in shares]
    return (*body, *((int(middle_ns * (3 + 3 * n)), max(1, frames // 10_000 >> n)) for n in range(10)))


def series(
    middle_ns: int = 22_900,
    *,
    direction: str = "forward",
    kind: str = "foreground",
    repetitions: int = 3,
    frames: int = 1_000_000,
    **changes: Any,
) -> DelaySeries:
    """Delays around a middle, a little longer in each repetition."""
    scale = [100 + n for n in range(repetitions)]

    def times(factor: float) -> tuple[int | None, ...]:
        return tuple(int(middle_ns * factor * percent) // 100 for percent in scale)

    histogram = hump(middle_ns, frames)
    same = (0,) * repetitions
    fields: dict[str, Any] = {
        "direction": direction, "kind": kind, "offered": (frames,) * repetitions, "lost": same,
        "samples": (frames,) * repetitions, "negative": same, "impossible": same,
        "lateness_max_ns": (41_000,) * repetitions,
        "minimum_ns": times(0.9), "p50_ns": times(1), "p90_ns": times(1.1), "p99_ns": times(2), "p999_ns": times(6),
        "p9999_ns": times(12), "p99999_ns": times(20), "maximum_ns": times(30),
        "tags": (50_000,) * repetitions, "tags_lost": same, "typical_latency_ns": times(1),
        "worst_case_latency_ns": times(6.5), "pdv_ns": times(5.1), "ipdv_minimum_ns": times(-29),
        "ipdv_median_ns": tuple(0 for _ in scale), "ipdv_maximum_ns": times(29),
        "ipdv_pairs": (frames - 1,) * repetitions, "ipdv_skipped": same, "histogram": histogram,
        "ipdv_histogram": (
            *((-ns, count) for ns, count in reversed(histogram)), (0, frames), *histogram,
        ),
        "hdr": hdr_string(histogram),
    }  # fmt: skip
    return DelaySeries(**(fields | changes))


def point(
    load: int, ways: Sequence[DelaySeries], *, share: Fraction | None = None, measured: int = 3, **changes: Any
) -> DelayPoint:
    fields: dict[str, Any] = {
        "frames_per_second": load, "share": share, "throughput": None if share is None else int(load / share),
        "throughput_limited_by": None if share is None else "gateway", "measured": measured, "tester_limited": 0,
        "series": tuple(ways),
    }  # fmt: skip
    return DelayPoint(**(fields | changes))


def both(middle_ns: int, **changes: Any) -> list[DelaySeries]:
    return [series(middle_ns, **changes), series(middle_ns * 6 // 5, direction="reverse", **changes)]


def delay_run(
    points: Sequence[DelayPoint], *, number: int = 1, sizes: tuple[int, int] = (64, 84), **changes: Any
) -> RunPart:
    campaign = delay_campaign()
    parts = {
        "delays": tuple(delay_point_part(campaign, one) for one in points), "frame_sizes": sized(sizes),
        "connections": None, "mix": MixPart(m=1, n=1),
    }  # fmt: skip
    direction = changes.pop("direction", "bidirectional")
    return run("delay", number=number, direction=direction, changes=parts | changes)


def sized(sizes: tuple[int, int]) -> FrameSizesPart:
    return FrameSizesPart(ipv4=sizes[0], ipv6=sizes[1])


def stateless(runs: Sequence[RunPart], **changes: Any) -> ResultDocument:
    found = document(runs, technology="siit64", inside=None)
    return found.model_copy(update={"name": "delays", **changes})


def self_test(ceiling: int = 900_000) -> SelfTestPart:
    families = (("ipv4", 64), ("ipv6", 84))
    return SelfTestPart(
        machine="tester, some processor", port_kind="netns-af_packet", measured_at="2026-11-21T10:00:00+00:00",
        lateness_max_ns=10**6,
        entries=tuple(
            CeilingPart(
                family=family, frame_octets=octets + more, direction=way, mode=mode, kind="throughput",
                frames_per_second=ceiling - more - (1000 if mode == "random_both" else 0),
            )
            for family, octets in families
            for more in (0, 1000)
            for way in ("forward", "bidirectional")
            for mode in ("fixed", "random_both")
        ),
        self_latency=tuple(
            SelfLatencyPart(
                family=family, frame_octets=octets, frames_per_second=load, direction=way, samples=1000, negative=0,
                minimum_ns=8000, p50_ns=9000 + load // 100, p99_ns=15_000, p999_ns=19_000 + load // 100,
                maximum_ns=60_000,
            )
            for family, octets in families
            for load in (10_000, 100_000, 500_000)
            for way in ("forward", "reverse")
        ),
    )  # fmt: skip


def bursts(*lengths: int, ceiling: int = 446_000, kind: str = "found", **changes: Any) -> BackToBack:
    searches = tuple(
        BurstResult(
            kind=kind, frames=length, upper_frames=length + 4460, trials=8,
            tester_limited_at=ceiling if kind == "tester_limited" else None,
        )
        for length in lengths
    )  # fmt: skip
    fields: dict[str, Any] = {
        "searches": searches, "ceiling_frames": ceiling, "resolution_frames": 4460, "line_rate": 148_809,
        "throughput": 100_000, "search": "binary", "verifications": 0, "wait_ns": 2 * SECOND,
    }  # fmt: skip
    return BackToBack(**(fields | changes))


def recovery(*ways: RecoverySeries, **changes: Any) -> Recovery:
    fields: dict[str, Any] = {
        "overload_fps": 110_000, "recovery_fps": 55_000, "throughput_fps": 100_000, "is_measured_throughput": True,
        "duration_ns": 60 * SECOND, "observe_ns": 60 * SECOND, "measured": 3, "tester_limited": 0, "series": ways,
    }  # fmt: skip
    return Recovery(**(fields | changes))


def recovery_series(times: Sequence[int | None], direction: str = "forward", **changes: Any) -> RecoverySeries:
    fields: dict[str, Any] = {
        "direction": direction, "kind": "foreground", "offered": (9_900_000,) * len(times),
        "lost": (600_000,) * len(times), "faulty": (0,) * len(times),
        "outcomes": tuple("not_recovered" if ns is None else "recovered" for ns in times),
        "recovery_ns": tuple(times), "last_loss_before_ns": (None,) * len(times),
    }  # fmt: skip
    return RecoverySeries(**(fields | changes))


def reset(*ways: ResetSeries, **changes: Any) -> Reset:
    count = len(ways[0].lost) if ways else 0
    fields: dict[str, Any] = {
        "kind": "software", "load": 100_000, "is_measured_throughput": True, "before_ns": 15 * SECOND,
        "observe_ns": 60 * SECOND, "measured": count, "tester_limited": 0, "began_ns": (15 * SECOND,) * count,
        "took_ns": (1_400_000_000,) * count, "series": ways,
    }  # fmt: skip
    return Reset(**(fields | changes))


def reset_series(lost: Sequence[int], direction: str = "forward", **changes: Any) -> ResetSeries:
    count = len(lost)
    fields: dict[str, Any] = {
        "direction": direction, "kind": "foreground", "sending_ns": 75 * SECOND, "offered": (7_500_000,) * count,
        "lost": tuple(lost), "faulty": (0,) * count, "longest_run": tuple(lost),
        "first_loss_ns": (16 * SECOND,) * count, "last_loss_ns": (18 * SECOND,) * count,
        "outcomes": ("recovered",) * count,
    }  # fmt: skip
    return ResetSeries(**(fields | changes))


def event_run(procedure: str, *, number: int = 1, **changes: Any) -> RunPart:
    """A run of one of the three procedures; `refused` or its result is in `changes`."""
    parts: dict[str, Any] = {"connections": None, "back_to_back": None, "recovery": None, "reset": None}
    for key, make in (("back_to_back", back_to_back_part), ("recovery", recovery_part), ("reset", reset_part)):
        if key in changes:
            parts[key] = make(changes.pop(key))  # type: ignore[operator]
    return run(procedure, number=number, direction="bidirectional", changes=parts | changes)


def trial(
    number: int, procedure_run: int, purpose: str, load: int, slices: Sequence[int], *, seconds: int = 60
) -> TrialRow:
    row = DirectionRow(
        direction="forward", intended=load * seconds, offered=load * seconds, received=load * seconds - sum(slices),
        faulty=0, duplicate=0, lost=sum(slices), lateness_max_ns=9000, loss_by_slice=tuple(slices),
    )  # fmt: skip
    return TrialRow(
        trial_number=number, run=procedure_run, repetition=1, attempt=1, purpose=purpose, frames_per_second=load,
        duration_ns=seconds * SECOND, outcome="failed" if any(slices) else "passed", reasons=(), directions=(row,),
    )  # fmt: skip


def everything() -> tuple[ResultDocument, list[TrialRow]]:
    """Every procedure of the classic metrics, at two sizes, with a self-test."""
    loads = ((400_000, Fraction(1), 22_900), (200_000, Fraction(1, 2), 15_300), (40_000, Fraction(1, 10), 12_100))
    throughput = run(
        "throughput", (400_000, 401_000, 402_000), number=1, direction="bidirectional", changes={"connections": None}
    )
    runs = [throughput]
    for number, sizes in enumerate(((64, 84), (512, 532), (1518, 1538)), start=2):
        points = [point(load, both(middle + 12 * sizes[0]), share=share) for load, share, middle in loads]
        runs.append(delay_run(points, number=number, sizes=sizes))
    lossy = series(
        150_000, typical_latency_ns=(150_000, 151_000, 152_000), worst_case_latency_ns=(None, 990_000, None),
        tags_lost=(51, 7, 400), lost=(1200, 300, 9000), pdv_ns=(None, 800_000, None), negative=(3, 0, 0),
        impossible=(0, 1, 0),
    )  # fmt: skip
    runs.append(delay_run([point(395_000, [lossy]), point(900_000, [], measured=0, tester_limited=3)], number=5,
                          direction="forward"))  # fmt: skip
    runs.append(event_run("back_to_back", number=6, back_to_back=bursts(40_120, 41_000, 39_888)))
    line_rate = "the throughput is the line rate (RFC 9004 section 5)"
    runs.append(event_run("back_to_back", number=7, refused=line_rate, frame_sizes=sized((1518, 1538))))
    ways = (recovery_series((98_000_000, 101_500_000, 99_700_000)), recovery_series((0, None, 0), "reverse"))
    runs.append(event_run("system_recovery", number=8, recovery=recovery(*ways)))
    resets = (reset_series((141_000, 139_500, 143_200)), reset_series((141_900, 139_000, 143_700), "reverse"))
    runs.append(event_run("reset", number=9, reset=reset(*resets)))
    trials = [
        trial(1, 8, "recovery", 110_000, [900] * 67 + [300] + [0] * 32, seconds=120),
        trial(2, 9, "reset", 100_000, [0] * 21 + [75_000, 66_000] + [0] * 77, seconds=75),
    ]
    return stateless(runs, clock=CLOCK, self_test=self_test(401_500)), trials
