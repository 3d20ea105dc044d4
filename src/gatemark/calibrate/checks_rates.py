"""Throughput, frame loss rate and per-frame timeout against known capacity, loss and delay. Pure.

Both sides are unsteady: the Tester sends a burst late, the gateway looks at its ports late. While a queue
fills, that moves a result by what the gateway forwards in that time; both sides report how long it was at most.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from gatemark.calibrate import truth
from gatemark.calibrate.model import GAP_NS_MAX, ONLY_COUNTS, Check, Comparison, Evidence
from gatemark.procedures.frame_loss.result import FrameLossResult
from gatemark.procedures.throughput.result import ThroughputResult
from gatemark.refdut.document import Delay, Flow, Selector
from gatemark.units import NANOSECONDS_PER_SECOND, format_rate, frames_in

QUEUE = 1000
HELD_UP_CAPACITY, HELD_UP_QUEUE, HELD_UP_RESOLUTION = 20_000, 200, 3_000
"""The queue lasts for 10 ms, so that what runs on a machine by itself does no harm, and 30 ms do. The resolution is
coarse, so that a load above the capacity fails by more than what such a machine can excuse."""


def rate_checks(*, quick: bool) -> list[Check]:
    """Return the checks of rates without connections; `quick`: one truth of each, shorter trials."""
    duration_ns = 500_000_000 if quick else 1_000_000_000
    checks = [_throughput(capacity, duration_ns) for capacity in (20_000, 50_000, 100_000)[: 1 if quick else 3]]
    checks += [_overload_loss(20_000, duration_ns), *([] if quick else [_overload_loss(50_000, duration_ns)])]
    checks += [_planted_loss(every, duration_ns) for every in (10, 1000)[: 1 if quick else 2]]
    checks += [_frame_timeout(every, duration_ns) for every in (10, 250)[: 1 if quick else 2]]
    checks.append(_held_up(duration_ns))
    return checks


def _throughput(capacity: int, duration_ns: int, queue: int = QUEUE, resolution: int | None = None) -> Check:
    true = truth.throughput(capacity, queue, duration_ns)
    resolution = resolution or capacity // 200

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        run = evidence.result(ThroughputResult)
        slack = _served(capacity, evidence.unsteadiness_ns) / Fraction(duration_ns, truth.SECOND_NS) + 2
        bounds = run.published_bounds if run is not None and run.limited_by == "gateway" else ()
        measured = bounds[0] if bounds else None
        return (
            Comparison(
                quantity="throughput",
                unit="frames/s",
                true=true,
                measured=measured,
                allowed_below=resolution + slack,
                allowed_above=slack,
            ),
        )

    return Check(
        procedure="throughput",
        name=f"throughput-{format_rate(capacity)}",
        truth=f"capacity {capacity} frames/s, queue {queue}",
        technology="router44",
        forward=Flow(capacity=capacity, queue=queue),
        tables={
            "trial": {"duration": f"{duration_ns}ns"},
            "throughput": {
                "maximum": 2 * capacity,
                "minimum": capacity // 10,
                "resolution": resolution,
                "search_duration": f"{duration_ns}ns",
            },
        },
        compare=compare,
        poll_gap_max_ns=_gap(capacity),
    )


def _held_up(duration_ns: int) -> Check:
    """The same throughput, while another program takes the gateway's CPU away: its losses are suspect, and repeated."""
    check = _throughput(HELD_UP_CAPACITY, duration_ns, HELD_UP_QUEUE, HELD_UP_RESOLUTION)

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        suspects = [trial for trial in evidence.trials if trial.record.suspicion is not None]
        said = "some" if suspects else "none"
        return (*check.compare(evidence), Comparison(quantity="suspect trials", unit="", true="some", measured=said))

    return replace(
        check,
        procedure="host",
        name="host-held-up",
        truth=f"{check.truth}, its CPU taken away for 30 ms of each 100 ms in the first trial at each load",
        compare=compare,
        is_held_up=True,
        lateness_max="10ms",
        poll_gap_max_ns=NANOSECONDS_PER_SECOND,
        late_departure_max_ns=NANOSECONDS_PER_SECOND,
    )


def _overload_loss(capacity: int, duration_ns: int) -> Check:
    loads = (capacity * 2, capacity * 3 // 2, capacity * 5 // 4)

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        run = evidence.result(FrameLossResult)
        points = {point.frames_per_second: point for point in run.points} if run is not None else {}
        slack = _served(capacity, evidence.unsteadiness_ns) + 2
        comparisons = []
        for load in loads:
            frames = frames_in(load, duration_ns)
            losses = points[load].losses if load in points else ()
            ratio = (
                Fraction(sum(losses[0].undelivered), sum(losses[0].offered)) if losses and losses[0].offered else None
            )
            comparisons.append(
                Comparison(
                    quantity=f"loss at {load} frames/s",
                    unit="%",
                    true=100 * truth.frames_lost(load, capacity, QUEUE, duration_ns) / frames,
                    measured=None if ratio is None else 100 * ratio,
                    allowed_below=100 * slack / frames,
                    allowed_above=100 * slack / frames,
                )
            )
        return tuple(comparisons)

    return Check(
        procedure="frame_loss",
        name=f"frame-loss-{format_rate(capacity)}",
        truth=f"capacity {capacity} frames/s, queue {QUEUE}",
        technology="router44",
        forward=Flow(capacity=capacity, queue=QUEUE),
        tables={"trial": {"duration": f"{duration_ns}ns"}, "frame_loss": {"rates": list(loads)}},
        compare=compare,
        poll_gap_max_ns=_gap(capacity),
    )


def _planted_loss(every: int, duration_ns: int) -> Check:
    load = 20_000
    frames = frames_in(load, duration_ns)

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        run = evidence.result(FrameLossResult)
        losses = run.points[0].losses if run is not None and run.points else ()
        lost = losses[0].undelivered[0] if losses and losses[0].undelivered else None
        return (Comparison(quantity="frames lost", unit="frames", true=frames // every, measured=lost),)

    return Check(
        procedure="frame_loss",
        name=f"frame-loss-every-{every}",
        truth=f"every {every}th of {frames} frames lost",
        technology="router44",
        forward=Flow(loss=(Selector(every=every),)),
        tables={"trial": {"duration": f"{duration_ns}ns"}, "frame_loss": {"rates": [load]}},
        compare=compare,
        **ONLY_COUNTS,
    )


def _frame_timeout(every: int, duration_ns: int) -> Check:
    """Return a check in which one frame of `every` is ten times slower than the timeout."""
    load, timeout_ns = 5_000, 5_000_000
    frames = frames_in(load, duration_ns)
    delays = (10 * timeout_ns, *[100_000] * (every - 1))

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        trials = [trial for trial in evidence.trials if trial.record.validity.valid]
        late = trials[-1].record.report.directions[0].foreground.late if trials else None
        run = evidence.result(ThroughputResult)
        kind = run.repetitions[0].kind if run is not None and run.repetitions else None
        return (
            Comparison(quantity="frames too late", unit="frames", true=frames // every, measured=late),
            Comparison(quantity="outcome", unit="", true="nothing_passes", measured=kind),
        )

    return Check(
        procedure="frame_timeout",
        name=f"frame-timeout-{every}",
        truth=f"one of {every} frames takes 50 ms, the timeout is 5 ms",
        technology="router44",
        forward=Flow(delay=Delay(kind="periodic", values_ns=delays), keep_order=False),
        tables={
            "trial": {"duration": f"{duration_ns}ns"},
            "throughput": {
                "maximum": load,
                "minimum": load,
                "resolution": 100,
                "search_duration": f"{duration_ns}ns",
                "frame_timeout": f"{timeout_ns}ns",
            },
        },
        compare=compare,
        poll_gap_max_ns=timeout_ns // 2,
        late_departure_max_ns=timeout_ns // 2,
    )


def _served(capacity: int, time_ns: int) -> Fraction:
    """Return the frames that the gateway forwards in this time."""
    return Fraction(capacity * time_ns, truth.SECOND_NS)


def _gap(capacity: int) -> int:
    """Return the longest time for which half of the queue can take what arrives at twice the capacity."""
    return min(GAP_NS_MAX, QUEUE * truth.SECOND_NS // (4 * capacity))
