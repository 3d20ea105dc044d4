"""Builds `result.json` from the results of the runs, the journal and the campaign. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from gatemark.campaign.deviations import deviations
from gatemark.config import defaults
from gatemark.config.model import Campaign, SideName
from gatemark.config.types import Span
from gatemark.dut.base import GatewayDescription
from gatemark.procedures.result import ClassLoss, LossPoint, RunResult
from gatemark.results.delay import delay_point_part
from gatemark.results.events import back_to_back_part, recovery_part, reset_part
from gatemark.results.provenance import gatemark_version
from gatemark.results.reasons import count_reasons
from gatemark.results.schema import (
    ClaimPart,
    FrameSizesPart,
    GatewayPart,
    GatewayTablePart,
    GoalPart,
    LossPart,
    LossPointPart,
    MixPart,
    RepetitionPart,
    ResultDocument,
    RunPart,
    SummaryPart,
    TheoreticalMaximumPart,
    ValidityPart,
    WaitsPart,
)
from gatemark.results.stateful import (
    alphas_part,
    capacity_part,
    connections_part,
    port_range,
    ratio_text,
    tear_down_part,
    zero_checksum_frames,
)
from gatemark.results.tester_parts import ClockPart, SelfTestPart
from gatemark.stats.summary import summarise
from gatemark.units import theoretical_maximum

if TYPE_CHECKING:
    from gatemark.trial.record import TrialRecord

VLAN_TAG_OCTETS = 4
STEP_MAX = Fraction(1, 10)
"""RFC 2544 section 26.3: the granularity must be 10 % of the maximum or finer."""
STATEFUL_CLAIM = (
    "RFC 9693 is informational, so no compliance with it is claimed; repetitions, percentiles and all settings of the"
    " gateway that are known are given, as its section 6 asks."
)
TIMED_PROCEDURES = ("throughput", "frame_loss")
"""Procedures whose trials last as `trial.duration` says."""
FRAME_PROCEDURES = ("throughput", "frame_loss", "delay", "back_to_back", "system_recovery", "reset")
"""Tables of the campaign with procedures of RFC 2544."""


def build_document(
    campaign: Campaign,
    gateway: GatewayDescription,
    results: Sequence[RunResult],
    trials: Sequence[TrialRecord],
    *,
    runs_planned: int,
    clock: ClockPart | None = None,
    self_test: SelfTestPart | None = None,
) -> ResultDocument:
    """Gather everything that `result.json` holds; the campaign must be complete (recipe and line rate filled in)."""
    runs = tuple(_run(campaign, result, trials) for result in results)
    return ResultDocument(
        schema_=1,
        name=campaign.name,
        gatemark=gatemark_version(),
        status="complete" if len(runs) == runs_planned else "incomplete",
        gateway=_gateway(campaign, gateway),
        testbed=_testbed(campaign),
        seed=campaign.seed,
        repetitions_asked=campaign.repetitions,
        runs_planned=runs_planned,
        runs=runs,
        validity=validity_of(trials, lateness_max_ns=campaign.validity.lateness_max_ns),
        deviations=deviations(campaign),
        claim=claim_of(campaign, gateway, runs, complete=len(runs) == runs_planned),
        clock=clock,
        self_test=self_test,
    )


def validity_of(trials: Sequence[TrialRecord], *, lateness_max_ns: int) -> ValidityPart:
    """Count valid and invalid trials; reasons without their figures, so that equal ones fall together."""
    invalid = [trial for trial in trials if not trial.validity.valid]
    return ValidityPart(
        trials=len(trials),
        valid=len(trials) - len(invalid),
        invalid=len(invalid),
        lateness_max_ns=lateness_max_ns,
        reasons=count_reasons(trial.validity.reasons for trial in invalid),
    )


def claim_of(campaign: Campaign, gateway: GatewayDescription, runs: Sequence[RunPart], *, complete: bool) -> ClaimPart:
    """What may be claimed (RFC 2544 section 5): nothing unless every MUST of the procedures was met.

    gatemark does not do every SHOULD (routing updates, for one), so the strongest claim is "conditionally compliant".
    Trials and waits shorter than the RFC's count as not met, although the RFC gives no capitals for them. `unmet` holds
    only what the campaign's list of deviations cannot know.
    """
    unmet: list[str] = []
    if not complete:
        unmet.append("Not all runs of the campaign are finished.")
    if any(run.refused for run in runs):
        unmet.append("At least one run was not made, for the reason that it has.")
    if any(run.limited_by == "tester" for run in runs):
        unmet.append("At least one run was limited by the Tester, so it is no result of the gateway.")
    if not (gateway.configuration or campaign.gateway.configuration):
        unmet.append("The configuration of the gateway is not part of the report (RFC 2544 section 7).")
    informational = STATEFUL_CLAIM if campaign.is_stateful else None
    if unmet or _departs(campaign):
        sentence = "No compliance with RFC 2544 is claimed for these figures (RFC 2544 section 5)."
        return ClaimPart(level="none", sentence=sentence, informational=informational, unmet=tuple(unmet))
    sentence = (
        "Conditionally compliant with RFC 2544 (section 5): every MUST of the procedures that were run is met, "
        "not every SHOULD."
    )
    return ClaimPart(level="conditional", sentence=sentence, informational=informational, unmet=())


def _departs(campaign: Campaign) -> bool:
    """Whether the campaign itself rules a claim out."""
    trial, throughput, frame_loss = campaign.trial, campaign.throughput, campaign.frame_loss
    waits = (
        (trial.settle_ns, defaults.SETTLE_NS),
        (trial.learn_ns, defaults.LEARN_NS),
        (trial.drain_ns, defaults.DRAIN_NS),
        (trial.rest_ns, defaults.REST_NS),
    )
    return (
        not campaign.bed.has_gateway
        or not any(getattr(campaign, name) is not None for name in FRAME_PROCEDURES)
        or trial.duration_ns < defaults.TRIAL_DURATION_NS
        or any(given < standard for given, standard in waits)
        or (throughput is not None and throughput.loss_tolerance > 0)
        or (frame_loss is not None and (frame_loss.rates is not None or frame_loss.step > STEP_MAX))
        or _delays_depart(campaign)
        or _events_depart(campaign)
    )


def _delays_depart(campaign: Campaign) -> bool:
    """Whether delays are measured for a shorter time or not so often as RFC 8219 sections 7.2 and 7.3 want."""
    delay = campaign.delay
    if delay is None:
        return False
    shortest_ns = defaults.LATENCY_DURATION_NS if delay.has_latency else defaults.TRIAL_DURATION_NS
    too_few_tags = delay.first_tag_ns < defaults.FIRST_TAG_NS or delay.tags < defaults.TAGS_MIN
    return (
        campaign.repetitions < defaults.REPETITIONS
        or delay.sending_ns < shortest_ns
        or Fraction(1) not in delay.load
        or (delay.has_latency and too_few_tags)
    )


def _events_depart(campaign: Campaign) -> bool:
    """Whether bursts, recovery or reset differ from RFC 2544 sections 26.4 to 26.6; a software reset is not all."""
    bursts, recovery = campaign.back_to_back, campaign.system_recovery
    return (
        campaign.reset is not None
        or (bursts is not None and (bursts.bursts < defaults.BURSTS or bursts.wait_ns < defaults.BURST_WAIT_NS))
        or (bursts is not None and bursts.ceiling_ns < defaults.BURST_CEILING_NS)
        or (recovery is not None and (recovery.overload != defaults.OVERLOAD or recovery.load is not None))
        or (recovery is not None and recovery.duration_ns < defaults.TRIAL_DURATION_NS)
    )


def _gateway(campaign: Campaign, found: GatewayDescription) -> GatewayPart:
    stated, stateful = campaign.gateway, campaign.is_stateful
    table = GatewayTablePart(
        size=stated.table.size, hash_size=stated.table.hash_size, udp_timeout_ns=stated.table.udp_timeout_ns
    )
    return GatewayPart(
        name=found.name or stated.name or "unnamed gateway",
        version=found.version or stated.version,
        technology=campaign.technology.name,
        hop_limit_decrement=campaign.hop_limit_decrement,
        prefix=None if stated.prefix is None else str(stated.prefix),
        inside=campaign.inside if stateful else None,
        pool=tuple(str(prefix) for prefix in stated.pool),
        pool_ports=port_range(stated.pool_ports or Span(*defaults.POOL_PORTS)) if stateful else None,
        mapping=stated.mapping if stateful else None,
        table=table if stateful else None,
        zero_udp_checksum=bool(stated.zero_udp_checksum),
        processors=len(campaign.testbed.gateway_cores) or None,
        configuration=found.configuration or stated.configuration,
        commands="\n".join(found.commands),
    )


def _run(campaign: Campaign, result: RunResult, trials: Sequence[TrialRecord]) -> RunPart:
    run, cell = result.run, result.run.cell
    own = [trial for trial in trials if trial.order.run.number == run.number]
    searches = result.capacities or result.repetitions
    lower, upper = _bounds(result)
    nothing = all(search.kind == "nothing_passes" for search in searches)
    summary = None if result.summary is None or nothing else SummaryPart.of(result.summary)
    rate, established = (summary, None) if run.procedure in TIMED_PROCEDURES else (None, summary)
    both = None
    if rate is not None and cell.direction == "bidirectional":
        both = rate.model_copy(update={"median": 2 * rate.median, "p1": 2 * rate.p1, "p99": 2 * rate.p99})
    return RunPart(
        number=run.number,
        procedure=run.procedure,
        direction=cell.direction,
        frame_sizes=FrameSizesPart(ipv4=cell.frame_sizes.ipv4, ipv6=cell.frame_sizes.ipv6),
        mix=MixPart(m=cell.mix.m, n=cell.mix.n),
        goal=_goal(campaign, result),
        theoretical_maximum=_theoretical(campaign, result),
        limited_by=result.limited_by,
        repetitions=tuple(
            RepetitionPart(
                number=number,
                kind=bound.kind,
                lower_bound=bound.lower_bound,
                upper_bound=bound.upper_bound,
                resolution=bound.resolution,
                tester_limited_at=bound.tester_limited_at,
            )
            for number, bound in enumerate(result.repetitions, start=1)
        ),
        rate_per_direction=rate,
        rate_sum_of_directions=both,
        connections_per_second=established,
        lower_bound=min(lower) if lower and len(lower) == len(searches) else None,
        upper_bound=max(upper, default=None),
        tester_limited_at=result.tester_limited_at,
        points=tuple(_point(point) for point in result.points),
        connections=connections_part(campaign, result, own),
        alpha=ratio_text(_alpha(campaign, result)),
        alphas_tried=alphas_part(result.alphas_tried),
        tear_down=tear_down_part(result.tear_down),
        capacity=capacity_part(campaign, result),
        zero_checksum=zero_checksum_frames(campaign, own),
        trials=len(own),
        invalid_trials=sum(not trial.validity.valid for trial in own),
        delays=tuple(delay_point_part(campaign, point) for point in result.delays),
        back_to_back=back_to_back_part(result.back_to_back),
        recovery=recovery_part(result.recovery),
        reset=reset_part(result.resets),
        refused=result.refused,
    )


def _bounds(result: RunResult) -> tuple[list[int], list[int]]:
    """Return the lower and upper bounds of the repetitions that have one: loads, or connections for the capacity."""
    bounds = [(search.lower_bound, search.upper_bound) for search in result.repetitions]
    bounds += [(capacity.capacity, capacity.upper_bound) for capacity in result.capacities]
    lower = [lowest for lowest, _ in bounds if lowest is not None]
    return lower, [highest for _, highest in bounds if highest is not None]


def _alpha(campaign: Campaign, result: RunResult) -> Fraction | None:
    """Return the share of the rate at which connections were validated (RFC 9693 section 4.6)."""
    capacity = campaign.connection_tracking_table_capacity
    if result.run.procedure == "connection_tracking_table_capacity" and capacity is not None:
        return capacity.alpha
    return result.alpha


def _goal(campaign: Campaign, result: RunResult) -> GoalPart:
    trial, goal, procedure = campaign.trial, result.goal, result.run.procedure
    waits = WaitsPart(
        settle_ns=trial.settle_ns, learn_ns=trial.learn_ns, drain_ns=trial.drain_ns, rest_ns=trial.rest_ns
    )
    search = None
    if procedure.endswith("connection_establishment_rate"):
        search = "binary"
    elif procedure == "throughput" and campaign.throughput is not None:
        search = campaign.throughput.search
    timeout_ns = None
    if procedure == "throughput" and campaign.throughput is not None:
        timeout_ns = campaign.throughput.frame_timeout_ns
    loads = [point.frames_per_second for point in result.points]
    loads += [point.frames_per_second for point in result.delays]
    return GoalPart(
        loss_tolerance=str(goal.loss_tolerance) if goal is not None else "0",
        duration_ns=_duration_ns(campaign, procedure),
        search_duration_ns=None if goal is None else goal.search_duration_ns,
        waits=waits,
        search=search,
        maximum=max(loads, default=None) if goal is None else goal.maximum if goal.ceiling is None else None,
        minimum=None if goal is None else goal.minimum,
        resolution=result.resolution,
        frame_timeout_ns=timeout_ns,
    )


def _duration_ns(campaign: Campaign, procedure: str) -> int | None:
    """Return the sending time of the trials; None where it follows from something else."""
    if procedure == "delay" and campaign.delay is not None:
        return campaign.delay.sending_ns
    return campaign.trial.duration_ns if procedure in TIMED_PROCEDURES else None


def _theoretical(campaign: Campaign, result: RunResult) -> TheoreticalMaximumPart | None:
    """The largest frame of any segment of the path counts, in both directions alike: translation changes the size."""
    line = campaign.line.rate
    if line is None:
        return None
    sizes = result.run.cell.frame_sizes
    sides: tuple[SideName, SideName] = ("left", "right")
    tagged = any(campaign.side(side).vlan is not None for side in sides)
    largest = max(sizes.ipv4 or 0, sizes.ipv6 or 0) + (VLAN_TAG_OCTETS if tagged else 0)
    return TheoreticalMaximumPart(
        line_bits_per_second=line,
        frame_octets_largest=largest,
        frames_per_second=theoretical_maximum(line, largest),
    )


def _point(point: LossPoint) -> LossPointPart:
    return LossPointPart(
        frames_per_second=point.frames_per_second,
        repetitions=point.measured,
        tester_limited=point.tester_limited,
        directions=tuple(_loss(loss) for loss in point.losses if loss.loss_ratios),
    )


def _loss(loss: ClassLoss) -> LossPart:
    percent = summarise([100 * ratio for ratio in loss.loss_ratios])
    return LossPart.model_validate(
        {
            "direction": loss.direction,
            "class": loss.kind,
            "offered": sum(loss.offered),
            "forwarded": sum(loss.offered) - sum(loss.undelivered),
            "faulty": sum(loss.faulty),
            "loss_percent": SummaryPart.of(percent),
        }
    )


def _testbed(campaign: Campaign) -> str:
    words, recipe = campaign.bed.words, campaign.testbed.recipe
    return f"{words}, recipe {recipe}" if recipe else words
