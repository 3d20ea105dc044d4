"""Back-to-back frames, system recovery and reset against known queues and times. Pure."""

from __future__ import annotations

from fractions import Fraction

from gatemark.calibrate import truth
from gatemark.calibrate.model import GAP_NS_MAX, Check, Comparison, Evidence
from gatemark.procedures.back_to_back.result import BackToBackResult
from gatemark.procedures.bursty_traffic.result import BurstyTrafficResult, gap_ns
from gatemark.procedures.reset.result import ResetResult
from gatemark.procedures.system_recovery.result import SystemRecoveryResult
from gatemark.refdut.document import Flow

LINE_OCTETS = 84
"""A frame of 64 octets on the line: preamble, start of frame and gap are 20 (RFC 5180 appendix A.1)."""
MS = 1_000_000


def event_checks(*, quick: bool) -> list[Check]:
    """Return the checks of bursts, recovery and reset."""
    bursts = ((20_000, 500), (20_000, 1000), (10_000, 400))
    recoveries, resets = (50 * MS, 200 * MS, 400 * MS), (100 * MS, 300 * MS, 700 * MS)
    gaps = (256, 128, 512)
    most = 1 if quick else 3
    return [
        *(_back_to_back(capacity, queue) for capacity, queue in bursts[:most]),
        *(_bursty_traffic(burst) for burst in gaps[:most]),
        *(_recovery(time_ns) for time_ns in recoveries[:most]),
        *(_reset(time_ns) for time_ns in resets[:most]),
    ]


def _back_to_back(capacity: int, queue: int) -> Check:
    line = 2 * capacity
    resolution = max(5, queue // 50)
    true = truth.longest_burst(line, capacity, queue)

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        result = evidence.result(BackToBackResult)
        # What is served while one side is late is the share C / L of what the burst could grow by.
        slack = Fraction(capacity * evidence.unsteadiness_ns, truth.SECOND_NS) / (1 - Fraction(capacity, line)) + 1
        return (
            tuple(
                Comparison(
                    quantity=f"longest burst, search {number}",
                    unit="frames",
                    true=true,
                    measured=burst,
                    allowed_below=resolution + slack,
                    allowed_above=slack,
                )
                for number, burst in enumerate(result.burst_frames, start=1)
            )
            if result is not None
            else (Comparison(quantity="longest burst", unit="frames", true=true, measured=None),)
        )

    return Check(
        procedure="back_to_back",
        name=f"back-to-back-{capacity}-{queue}",
        truth=f"capacity {capacity} frames/s, queue {queue}, line {line} frames/s",
        technology="router44",
        forward=Flow(capacity=capacity, queue=queue),
        tables={
            "trial": {"duration": "500ms"},
            "line": {"rate": line * 8 * LINE_OCTETS},
            "throughput": {
                "maximum": line,
                "minimum": capacity // 10,
                "resolution": capacity // 20,
                "search_duration": "500ms",
            },
            "back_to_back": {"ceiling": "500ms", "resolution": resolution, "bursts": 2, "wait": "100ms"},
        },
        compare=compare,
        poll_gap_max_ns=min(GAP_NS_MAX, queue * truth.SECOND_NS // (4 * capacity)),
    )


def _bursty_traffic(burst: int) -> Check:
    """Return a check of a gateway that forwards half the line rate and keeps what it cannot forward at once."""
    capacity, queue, duration_ns = 10_000, 400, truth.SECOND_NS
    line = 2 * capacity
    resolution = capacity // 50
    true = truth.smallest_gap(line, capacity, queue, burst, duration_ns)

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        result = evidence.result(BurstyTrafficResult)
        # The load that passes is up to a resolution below the true one. While one side is late,
        # frames are served that would have found the queue full, or the other way round.
        load = burst * truth.SECOND_NS / (true + Fraction(burst * truth.SECOND_NS, line))
        slack = Fraction(capacity * evidence.unsteadiness_ns, duration_ns) + 2
        lowest, highest = (
            gap_ns(burst, int(load - resolution - slack), line),
            gap_ns(burst, int(load + slack) + 1, line),
        )
        gaps = result.sizes[0].gaps_ns if result is not None and result.sizes else ()
        return tuple(
            Comparison(
                quantity=f"smallest gap after {burst} frames",
                unit="ns",
                true=true,
                measured=gap,
                allowed_below=true - highest,
                allowed_above=lowest - true,
            )
            for gap in (gaps or (None,))
        )

    return Check(
        procedure="bursty_traffic",
        name=f"bursty-traffic-{burst}",
        truth=f"capacity {capacity} frames/s, queue {queue}, line {line} frames/s, bursts of {burst} frames",
        technology="router44",
        forward=Flow(capacity=capacity, queue=queue),
        tables={
            "trial": {"duration": "1s"},
            "line": {"rate": line * 8 * LINE_OCTETS},
            "bursty_traffic": {"frames": [burst], "resolution": resolution, "search_duration": "1s"},
        },
        compare=compare,
        poll_gap_max_ns=min(GAP_NS_MAX, queue * truth.SECOND_NS // (4 * capacity)),
    )


def _recovery(time_ns: int) -> Check:
    """Return a check of a gateway that keeps losing every second frame for `time_ns` after its last overload.

    At 110 % of the capacity a frame is lost about every 10 / C seconds, so the last loss may come that long before the
    load falls. Then every second frame is lost, the last one up to two frames before the recovery ends.
    """
    capacity, queue = 20_000, 100
    overload = capacity * 11 // 10
    between_drops = Fraction(2 * truth.SECOND_NS, overload - capacity)
    between_frames = Fraction(3 * truth.SECOND_NS, overload // 2)

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        result = evidence.result(SystemRecoveryResult)
        slack = evidence.unsteadiness_ns
        return (
            Comparison(
                quantity="recovery time",
                unit="ns",
                true=time_ns,
                measured=result.series[0].recovery_ns[0] if result is not None and result.series else None,
                allowed_below=between_drops + between_frames + slack,
                allowed_above=slack + 1000,
            ),
        )

    return Check(
        procedure="system_recovery",
        name=f"system-recovery-{time_ns // MS}ms",
        truth=f"every 2nd frame lost for {time_ns // MS} ms after an overload",
        technology="router44",
        forward=Flow(capacity=capacity, queue=queue, recovery_ns=time_ns),
        tables={
            "system_recovery": {"load": capacity, "overload": "110%", "duration": "1s", "observe": "1s"},
        },
        compare=compare,
        poll_gap_max_ns=queue * truth.SECOND_NS // (2 * overload),
    )


def _reset(time_ns: int) -> Check:
    """Return a check of a gateway that drops everything for `time_ns`; frames show that time to within one frame."""
    load = 20_000
    frame_ns = Fraction(truth.SECOND_NS, load)

    def compare(evidence: Evidence) -> tuple[Comparison, ...]:
        result = evidence.result(ResetResult)
        series = result.series[0] if result is not None and result.series else None
        slack = 2 * frame_ns + evidence.unsteadiness_ns
        return tuple(
            Comparison(
                quantity=f"reset time by {way}",
                unit="ns",
                true=time_ns,
                measured=values[0] if values else None,
                allowed_below=slack,
                allowed_above=slack + evidence.reference.late_departure_max_ns,
            )
            for way, values in (
                ("loss", series.reset_by_loss_ns.values if series is not None else ()),
                ("gap", series.reset_by_gap_ns.values if series is not None else ()),
            )
        )

    return Check(
        procedure="reset",
        name=f"reset-{time_ns // MS}ms",
        truth=f"everything lost for {time_ns // MS} ms",
        technology="router44",
        reset_ns=time_ns,
        tables={"reset": {"load": load, "before": "500ms", "observe": "2s"}},
        compare=compare,
    )
