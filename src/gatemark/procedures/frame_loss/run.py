"""Frame loss rate: the share of the frames that does not come back, load by load (RFC 2544 section 26.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from gatemark.config.model import Campaign
from gatemark.config.types import FRAMES_PER_SECOND_MAX
from gatemark.errors import ConfigError
from gatemark.procedures.frame_loss.result import ClassLoss, FrameLossResult, LossPoint
from gatemark.procedures.frame_loss.table import FrameLossTable
from gatemark.procedures.loads import load_of, maximum_of
from gatemark.procedures.measured import Measured, MeasureStep
from gatemark.procedures.phase_one import rate_before
from gatemark.procedures.procedure import RunTrials
from gatemark.results.coordinates import share_of
from gatemark.results.document import Deviation
from gatemark.results.part import LimitedBy
from gatemark.results.search import RateResult
from gatemark.search.scan import Scan, next_step
from gatemark.trial.report import Counts
from gatemark.units import LineShare, format_ratio

STEP_MAX = Fraction(1, 10)
"""RFC 2544 section 26.3: the granularity must be 10 % of the maximum or finer."""


def measure(trials: RunTrials) -> FrameLossResult:
    """Try the loads of the scan in each repetition."""
    campaign, cell = trials.campaign, trials.run.cell
    shares = frame_loss_loads(campaign, trials.line_maximum, load_with_loss(trials.earlier.frame_rate(cell)))
    scan = Scan(
        rates=tuple(shares),
        duration_ns=campaign.trial.duration_ns,
        ends_when_lossless=campaign.table(FrameLossTable).rates is None,
    )
    rate = rate_before(campaign, cell, trials.earlier, phase_two_ns=campaign.trial.duration_ns)
    scans = [
        scan_once(scan, trials.steps(repetition, connections_per_second=rate)) for repetition in trials.repetitions()
    ]
    points = loss_points(scans, shares)
    return FrameLossResult(
        **trials.facts(),
        limited_by=limited_by(points),
        duration_ns=scan.duration_ns,
        maximum=max(scan.rates, default=None),
        points=points,
    )


def frame_loss_loads(
    campaign: Campaign, line_maximum: int | None, load_with_loss: tuple[int, str] | None
) -> dict[int, str | None]:
    """Return the loads of a frame loss measurement, highest first (RFC 2544 section 26.3), each with what it is a share
    of, if it is one.

    All rates of a list are tried. Otherwise the loads fall from the maximum by one step each, until two successive
    trials have no loss. By default the maximum is that of the line, or `load_with_loss` if there is none. Raises
    ConfigError if a share of an unknown line rate is asked for, or if nothing says with which load to begin.
    """
    table = campaign.table(FrameLossTable)
    if table.rates is not None:
        rates = {
            load_of(campaign, "frame_loss.rates", rate, line_maximum): share_of(rate, "the line")
            if isinstance(rate, LineShare)
            else None
            for rate in table.rates
        }
        return dict(sorted(rates.items(), reverse=True))
    maximum = maximum_of(campaign, "frame_loss.maximum", table.maximum, line_maximum)
    base: tuple[Fraction, str] | None = None
    if maximum is not None:
        share = LineShare(1) if table.maximum is None else table.maximum
        if isinstance(share, LineShare):
            base = (share, "the line")
    elif load_with_loss is not None:
        maximum, words = load_with_loss
        base = (Fraction(1), words)
    else:
        raise ConfigError(
            what="the medium has no line rate, or the port does not report it, and the campaign measures no throughput,"
            " so nothing says with which load to begin",
            where=f"{campaign.source}: frame_loss.maximum",
            fix='write the load in frames/s, maximum = "1M", the bit/s of the medium, line.rate = "10G", or add a table'
            f" [{campaign.frame_rate_key}]",
        )
    parts = [1 - table.step * step for step in range(int(1 / table.step) + 1)]
    return {
        load: None if base is None else share_of(part * base[0], base[1])
        for part in parts
        if (load := int(part * maximum)) > 0
    }


def load_with_loss(throughput: RateResult | None) -> tuple[int, str] | None:
    """Return a load at which a gateway loses frames, and what it is: twice the highest throughput of any repetition.

    If none of them found any, it is the highest load that they tried. None if no throughput was measured.
    """
    if throughput is None:
        return None
    if highest := max(throughput.lower_bounds):
        return min(2 * highest, FRAMES_PER_SECOND_MAX), "twice the throughput"
    return max(search.highest_load for search in throughput.repetitions), "the highest load tried for a throughput"


def scan_once(scan: Scan, measure_step: MeasureStep) -> tuple[Measured, ...]:
    """Try the loads of one scan. The only effects are those of `measure_step`, which must judge without tolerance."""
    measured: list[Measured] = []
    while (step := next_step(scan, [trial.observation for trial in measured])) is not None:
        measured.append(measure_step(step))
    return tuple(measured)


def loss_points(repetitions: Sequence[Sequence[Measured]], shares: Mapping[int, str | None]) -> tuple[LossPoint, ...]:
    """Gather all repetitions load by load, highest load first; `shares` has what each load is a share of.

    A load that no repetition could offer validly stays in the result as not measurable: it shows the Tester's limit.
    """
    by_load: dict[int, list[Measured]] = {}
    for repetition in repetitions:
        for trial in repetition:
            by_load.setdefault(trial.observation.frames_per_second, []).append(trial)
    return tuple(
        _point(load, shares[load], by_load[load], not_tried=len(repetitions) - len(by_load[load]))
        for load in sorted(by_load, reverse=True)
    )


def limited_by(points: Sequence[LossPoint]) -> LimitedBy:
    """Return what limited the run: the gateway only if it lost frames."""
    if any(point.tester_limited for point in points):
        return "tester"
    return "maximum" if all(point.is_lossless for point in points) else "gateway"


def _point(load: int, share: str | None, trials: Sequence[Measured], *, not_tried: int) -> LossPoint:
    valid = [trial.report for trial in trials if trial.report is not None]
    by_class: dict[tuple[str, str], list[Counts]] = {}
    for report in valid:
        for direction, class_, counts in report.counts():
            by_class.setdefault((direction, class_), []).append(counts)
    return LossPoint(
        frames_per_second=load,
        load_share=share,
        repetitions=len(valid),
        tester_limited=len(trials) - len(valid),
        losses=tuple(
            ClassLoss.model_validate(
                {
                    "direction": direction,
                    "class": class_,
                    **{name: [getattr(c, name) for c in counts] for name in _COUNTS},
                    "longest_run": [c.loss.longest_run for c in counts],
                    "not_tried": not_tried,
                }
            )
            for (direction, class_), counts in by_class.items()
        ),
    )


_COUNTS = ("offered", "undelivered", "lost", "faulty", "duplicate", "reordered")


def deviations(campaign: Campaign) -> Iterator[Deviation]:
    """Yield deviations from RFC 2544 section 26.3."""
    table = campaign.table(FrameLossTable)
    if table.rates is not None:
        yield Deviation(
            sentence="Frame loss is measured at listed loads, not from 100% of the line downwards"
            " (RFC 2544 section 26.3).",
            rules_out_claim=True,
        )
        return
    if table.step > STEP_MAX:
        yield Deviation(
            sentence=f"Frame loss steps are {format_ratio(table.step)}, above 10% (RFC 2544 section 26.3).",
            rules_out_claim=True,
        )
    if table.maximum not in (None, LineShare(1)):
        yield Deviation(sentence="Frame loss does not begin at the maximum of the line (RFC 2544 section 26.3).")
    elif table.maximum is None and campaign.line.rate is None:
        yield Deviation(
            sentence="A medium without a line rate has no maximum to begin at (RFC 2544 section 26.3): there frame loss"
            " begins at twice the throughput."
        )
