"""Builds the parts of `result.json` for back-to-back frames, system recovery and reset. Pure."""

from __future__ import annotations

from fractions import Fraction

from gatemark.procedures.event_result import BackToBack, Recovery, RecoverySeries, Reset, ResetSeries
from gatemark.results.event_parts import (
    BackToBackPart,
    BurstPart,
    RecoveryPart,
    RecoverySeriesPart,
    ResetPart,
    ResetSeriesPart,
)
from gatemark.results.parts import FigurePart, Number
from gatemark.units import NANOSECONDS_PER_SECOND


def back_to_back_part(found: BackToBack | None) -> BackToBackPart | None:
    """The published form of a run of back-to-back frames."""
    if found is None:
        return None
    return BackToBackPart(
        bursts=tuple(
            BurstPart(
                number=number,
                kind=burst.kind,
                lower_bound=burst.frames,
                upper_bound=burst.upper_frames,
                tester_limited_at=burst.tester_limited_at,
            )
            for number, burst in enumerate(found.searches, start=1)
        ),
        search=found.search,
        verifications=found.verifications,
        ceiling_frames=found.ceiling_frames,
        resolution_frames=found.resolution_frames,
        wait_ns=found.wait_ns,
        line_rate=found.line_rate,
        throughput=found.throughput,
        near_ceiling=found.near_ceiling,
        average_frames=_number(found.average),
        minimum_frames=found.minimum,
        maximum_frames=found.maximum,
        standard_deviation_frames=found.standard_deviation,
        implied_ns=_nanoseconds(found.implied_seconds),
        corrected_ns=_nanoseconds(found.corrected_seconds),
    )


def recovery_part(found: Recovery | None) -> RecoveryPart | None:
    """The published form of a run of system recovery."""
    if found is None:
        return None
    return RecoveryPart(
        throughput=found.throughput_fps,
        throughput_measured=found.is_measured_throughput,
        overload=found.overload_fps,
        overload_ns=found.duration_ns,
        recovery_load=found.recovery_fps,
        observe_ns=found.observe_ns,
        repetitions=found.measured,
        tester_limited=found.tester_limited,
        series=tuple(_recovery_series(one) for one in found.series),
    )


def reset_part(found: Reset | None) -> ResetPart | None:
    """The published form of a run of resets."""
    if found is None:
        return None
    return ResetPart(
        kind=found.kind,
        frames_per_second=found.load,
        throughput_measured=found.is_measured_throughput,
        before_ns=found.before_ns,
        observe_ns=found.observe_ns,
        repetitions=found.measured,
        tester_limited=found.tester_limited,
        took_ns=FigurePart.of(found.took_ns),
        series=tuple(_reset_series(found, one) for one in found.series),
    )


def _recovery_series(one: RecoverySeries) -> RecoverySeriesPart:
    return RecoverySeriesPart.model_validate(
        {
            "direction": one.direction,
            "class": one.kind,
            "offered": sum(one.offered),
            "lost": sum(one.lost),
            "faulty": sum(one.faulty),
            "outcomes": one.outcomes,
            "recovery_ns": FigurePart.of(one.recovery_ns),
            "average_ns": _number(one.average_ns),
            "last_loss_before_ns": one.last_loss_before_ns,
        }
    )


def _reset_series(found: Reset, one: ResetSeries) -> ResetSeriesPart:
    return ResetSeriesPart.model_validate(
        {
            "direction": one.direction,
            "class": one.kind,
            "offered": sum(one.offered),
            "lost": one.lost,
            "faulty": one.faulty,
            "outcomes": one.outcomes,
            "reset_by_loss_ns": FigurePart.of(one.reset_ns_by_loss),
            "reset_by_gap_ns": FigurePart.of(one.reset_ns_by_gap),
            "average_ns": _number(one.average_ns),
            "lost_before": found.lost_before(one),
        }
    )


def _number(value: Fraction | None) -> Number | None:
    """An exact value as JSON holds it: whole ones exactly, others as the nearest float."""
    if value is None:
        return None
    return value.numerator if value.denominator == 1 else float(value)


def _nanoseconds(seconds: Fraction | None) -> Number | None:
    return None if seconds is None else _number(seconds * NANOSECONDS_PER_SECOND)
