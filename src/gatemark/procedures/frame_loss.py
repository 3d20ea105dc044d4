"""Frame loss rate: the share of the frames that does not come back, load by load (RFC 2544 section 26.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gatemark.procedures.measured import Measured, MeasureStep
from gatemark.procedures.result import ClassLoss, LossPoint
from gatemark.search.scan import Scan, next_step
from gatemark.trial.report import Counts


def measure_frame_loss(scan: Scan, measure: MeasureStep) -> tuple[Measured, ...]:
    """Try the loads of one scan. The only effects are those of `measure`, which must judge without tolerance."""
    measured: list[Measured] = []
    while (step := next_step(scan, [trial.observation for trial in measured])) is not None:
        measured.append(measure(step))
    return tuple(measured)


def loss_points(repetitions: Iterable[Sequence[Measured]]) -> tuple[LossPoint, ...]:
    """Gather all repetitions load by load, highest load first.

    A load that no repetition could offer validly stays in the result as not measurable: it says where the Tester ends.
    """
    by_load: dict[int, list[Measured]] = {}
    for repetition in repetitions:
        for trial in repetition:
            by_load.setdefault(trial.observation.frames_per_second, []).append(trial)
    return tuple(_point(load, by_load[load]) for load in sorted(by_load, reverse=True))


def _point(load: int, trials: Sequence[Measured]) -> LossPoint:
    valid = [trial.report for trial in trials if trial.report is not None]
    by_class: dict[tuple[str, str], list[Counts]] = {}
    for report in valid:
        for direction, kind, counts in report.counts():
            by_class.setdefault((direction, kind), []).append(counts)
    return LossPoint(
        frames_per_second=load,
        measured=len(valid),
        tester_limited=len(trials) - len(valid),
        losses=tuple(
            ClassLoss(
                direction=direction,
                kind=kind,
                offered=tuple(c.offered for c in counts),
                undelivered=tuple(c.undelivered for c in counts),
                faulty=tuple(c.faulty for c in counts),
                duplicate=tuple(c.duplicate for c in counts),
            )
            for (direction, kind), counts in by_class.items()
        ),
    )
