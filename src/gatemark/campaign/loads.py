"""The loads of a run: shares of the line rate turned into frames per second. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from gatemark.config import defaults
from gatemark.config.delay_tables import BackToBackModel, DelayModel
from gatemark.config.model import Campaign, ConnectionEstablishmentRateModel, ThroughputModel
from gatemark.config.types import FRAMES_PER_SECOND_MAX
from gatemark.errors import ConfigError
from gatemark.procedures.delay import DelayLoad
from gatemark.procedures.result import RunResult
from gatemark.search.burst import LOSS_VERIFICATIONS, BurstGoal
from gatemark.search.goal import Goal
from gatemark.search.scan import Scan
from gatemark.trial.cell import Cell
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.units import NANOSECONDS_PER_SECOND, LineShare, frames_in, theoretical_maximum

VLAN_TAG_OCTETS = 4


def line_maximum(campaign: Campaign, cell: Cell, line_bits_per_second: int | None) -> int | None:
    """Return the most frames/s that the medium carries in one direction (RFC 5180 appendix A.1); None if not known.

    The largest frame on any segment of the path decides, with its VLAN tag.
    """
    if line_bits_per_second is None:
        return None
    tagged = any(side is not None and side.vlan is not None for side in (campaign.left, campaign.right))
    return theoretical_maximum(line_bits_per_second, cell.frame_sizes.largest + (VLAN_TAG_OCTETS if tagged else 0))


def throughput_goal(campaign: Campaign, line_maximum: int | None) -> Goal:
    """Return what a throughput search looks for.

    Raises ConfigError if a share of a line rate is asked for that is not known, or if the loads contradict each other
    at this frame size.
    """
    throughput = campaign.throughput
    assert throughput is not None, "the plan holds no throughput run without the table"
    search_duration_ns = min(throughput.search_duration_ns, campaign.trial.duration_ns)
    one_frame = -(-NANOSECONDS_PER_SECOND // search_duration_ns)  # a trial below this load would have no frame
    found = interval(campaign, "throughput", throughput, line_maximum, slowest=one_frame)
    return Goal(
        maximum=found.maximum,
        minimum=min(found.minimum, found.maximum),
        resolution=found.resolution,
        ceiling=found.ceiling,
        search_duration_ns=search_duration_ns,
        trial_duration_ns=campaign.trial.duration_ns,
        loss_tolerance=throughput.loss_tolerance,
    )


def throughput_form(campaign: Campaign) -> TrialForm:
    """Return what trials of a throughput search do beyond counting: a frame may be too late to count as forwarded."""
    return PLAIN if campaign.throughput is None else TrialForm(timeout_ns=campaign.throughput.frame_timeout_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The loads of a search, as `Goal` has them."""

    maximum: int
    minimum: int
    resolution: int | Fraction
    ceiling: int | None


def interval(
    campaign: Campaign,
    table: str,
    model: ThroughputModel | ConnectionEstablishmentRateModel,
    line_maximum: int | None,
    *,
    slowest: int,
) -> Interval:
    """Return the loads of a search that tries none below `slowest`; raise ConfigError if they contradict each other."""
    unit = "frames/s" if isinstance(model, ThroughputModel) else "connections/s"
    minimum = load_of(campaign, f"{table}.minimum", model.minimum, line_maximum)
    maximum = maximum_of(campaign, f"{table}.maximum", model.maximum, line_maximum)
    if maximum is not None and minimum > maximum:
        raise ConfigError(
            what=f"{minimum} {unit} is above the maximum of {maximum}",
            where=f"{campaign.source}: {table}.minimum",
            fix="write a lower minimum",
        )
    minimum = max(minimum, slowest)
    resolution = resolution_of(campaign, f"{table}.resolution", model.resolution, maximum, unit)
    return Interval(
        maximum=first_load(minimum, resolution) if maximum is None else maximum,
        minimum=minimum,
        resolution=resolution,
        ceiling=FRAMES_PER_SECOND_MAX if maximum is None else None,
    )


def first_load(minimum: int, resolution: int | Fraction) -> int:
    """Return the load with which an open-ended search begins; it is never below a resolution that is a load."""
    return max(defaults.SEARCH_START, minimum, 2 * resolution if isinstance(resolution, int) else 0)


def maximum_of(campaign: Campaign, key: str, rate: int | LineShare | None, line_maximum: int | None) -> int | None:
    """Return where a search begins: by default 100 % of the line; None where a medium without one leaves it open.

    Raises ConfigError if a share of a line rate is asked for that is not known.
    """
    if rate is None:
        return None if line_maximum is None else max(1, line_maximum)
    return load_of(campaign, key, rate, line_maximum)


def resolution_of(
    campaign: Campaign, key: str, value: int | LineShare, maximum: int | None, unit: str
) -> int | Fraction:
    """Return the distance of the bounds at which a search ends, a share of a maximum that is still to be found.

    Raises ConfigError if it is as wide as the search.
    """
    if maximum is None:
        return value
    resolution = int(value * maximum) if isinstance(value, LineShare) else value
    if resolution >= maximum > 1:
        raise ConfigError(
            what=f"{resolution} {unit} is not below the maximum of {maximum}",
            where=f"{campaign.source}: {key}",
            fix='write for example resolution = "0.1%" of the maximum',
        )
    return max(1, resolution)


def frame_loss_scan(campaign: Campaign, line_maximum: int | None, load_with_loss: int | None) -> Scan:
    """Return the loads of a frame loss measurement, highest first (RFC 2544 section 26.3).

    A list of rates is tried whole. Otherwise the loads fall from the maximum by one step each, until two successive
    trials without loss. The maximum is by default that of the line; where there is none, it is `load_with_loss`. Raises
    ConfigError if a share of a line rate is asked for that is not known, and if nothing says with which load to begin.
    """
    frame_loss = campaign.frame_loss
    assert frame_loss is not None, "the plan holds no frame loss run without the table"
    if frame_loss.rates is not None:
        rates = {load_of(campaign, "frame_loss.rates", rate, line_maximum) for rate in frame_loss.rates}
        return Scan(
            rates=tuple(sorted(rates, reverse=True)),
            duration_ns=campaign.trial.duration_ns,
            ends_when_lossless=False,
        )
    maximum = maximum_of(campaign, "frame_loss.maximum", frame_loss.maximum, line_maximum)
    maximum = load_with_loss if maximum is None else maximum
    if maximum is None:
        raise ConfigError(
            what="the medium has no line rate, or the port does not report it, and the campaign measures no throughput,"
            " so nothing says with which load to begin",
            where=f"{campaign.source}: frame_loss.maximum",
            fix='write the load in frames/s, maximum = "1M", the bit/s of the medium, line.rate = "10G", or add a table'
            " [throughput]",
        )
    steps = range(int(1 / frame_loss.step) + 1)
    loads = [int((1 - frame_loss.step * step) * maximum) for step in steps]
    return Scan(
        rates=tuple(dict.fromkeys(load for load in loads if load > 0)),
        duration_ns=campaign.trial.duration_ns,
        ends_when_lossless=True,
    )


def load_with_loss(throughput: RunResult | None) -> int | None:
    """Return a load at which a gateway loses frames: twice the highest throughput of any repetition.

    Where none of them found any, it is the highest load that they tried. None if no throughput was measured.
    """
    if throughput is None:
        return None
    tried = max(result.highest_load for result in throughput.repetitions)
    return min(2 * max(throughput.lower_bounds) or tried, FRAMES_PER_SECOND_MAX)


def throughput_of(cell: Cell, earlier: Sequence[RunResult]) -> RunResult | None:
    """Return the throughput run that the campaign has made with the same traffic; None if there is none."""
    return next((found for found in earlier if found.run.procedure == "throughput" and found.run.cell == cell), None)


def proven_throughput(throughput: RunResult | None) -> int:
    """Return the throughput that every repetition of a run proved, in frames/s; 0 if there is none.

    Where the Tester was the limit, the gateway may do more: then it is the highest load that is known to pass.
    """
    return min(throughput.lower_bounds, default=0) if throughput is not None else 0


def delay_loads(model: DelayModel, throughput: RunResult | None) -> tuple[DelayLoad, ...]:
    """Return the loads of a delay run in the order of the file; empty if shares are wanted of a throughput of 0."""
    proven = proven_throughput(throughput)
    limited_by = None if throughput is None else throughput.limited_by
    loads = []
    for load in model.load:
        if not isinstance(load, Fraction):
            loads.append(DelayLoad(frames_per_second=load))
        elif proven:
            share_of = max(1, int(load * proven))
            loads.append(
                DelayLoad(frames_per_second=share_of, share=load, throughput=proven, throughput_limited_by=limited_by)
            )
    return tuple(loads)


def burst_goal(model: BackToBackModel, line_rate: int) -> BurstGoal:
    """Return what a search for the longest burst looks for at a line rate in frames/s (RFC 9004 section 6.2)."""
    ceiling = max(1, frames_in(line_rate, model.ceiling_ns))
    resolution = model.resolution
    frames = int(resolution * ceiling) if isinstance(resolution, Fraction) else resolution
    return BurstGoal(
        ceiling=ceiling,
        resolution=max(1, frames),
        verifications=LOSS_VERIFICATIONS if model.search == "loss_verification" else 0,
    )


def load_of(campaign: Campaign, key: str, rate: int | LineShare, line_maximum: int | None) -> int:
    """Return a load in frames/s; raise ConfigError if it is a share of a line rate that is not known."""
    if not isinstance(rate, LineShare):
        return rate
    if line_maximum is None:
        raise ConfigError(
            what=f"{rate} of the line rate is asked for, but the medium has none or the port does not report it",
            where=f"{campaign.source}: {key}",
            fix='write the bit/s of the medium, line.rate = "10G", or the load in frames/s',
        )
    return max(1, rate.frames_per_second(line_maximum))
