"""Builds `result.json` from the results of the runs, the journal and the campaign. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from gatemark.campaign.deviations import deviations
from gatemark.config import defaults
from gatemark.config.model import Campaign, SideName
from gatemark.dut.base import GatewayDescription
from gatemark.procedures.result import ClassLoss, LossPoint, RunResult
from gatemark.results.provenance import gatemark_version
from gatemark.results.schema import (
    ClaimPart,
    FrameSizesPart,
    GatewayPart,
    GoalPart,
    LossPart,
    LossPointPart,
    MixPart,
    ReasonPart,
    RepetitionPart,
    ResultDocument,
    RunPart,
    SummaryPart,
    TheoreticalMaximumPart,
    ValidityPart,
    WaitsPart,
)
from gatemark.stats.summary import Summary, summarise
from gatemark.units import theoretical_maximum

if TYPE_CHECKING:
    from gatemark.campaign.journal import TrialRecord

VLAN_TAG_OCTETS = 4
STEP_MAX = Fraction(1, 10)
"""RFC 2544 section 26.3: the granularity must be 10 % of the maximum or finer."""


def build_document(
    campaign: Campaign,
    gateway: GatewayDescription,
    results: Sequence[RunResult],
    trials: Sequence[TrialRecord],
    *,
    runs_planned: int,
) -> ResultDocument:
    """Gather everything that `result.json` holds; the campaign must be complete (recipe and line rate filled in)."""
    runs = tuple(_run(campaign, result, trials) for result in results)
    return ResultDocument(
        schema_=1,
        name=campaign.name,
        gatemark=gatemark_version(),
        status="complete" if len(runs) == runs_planned else "incomplete",
        gateway=GatewayPart(
            name=gateway.name or campaign.gateway.name or "unnamed gateway",
            version=gateway.version or campaign.gateway.version,
            mode=campaign.mode,
            hop_limit_decrement=campaign.hop_limit_decrement,
            prefix=None if campaign.gateway.prefix is None else str(campaign.gateway.prefix),
            configuration=gateway.configuration or campaign.gateway.configuration,
            commands="\n".join(gateway.commands),
        ),
        testbed=_testbed(campaign),
        seed=campaign.seed,
        repetitions_asked=campaign.repetitions,
        runs_planned=runs_planned,
        runs=runs,
        validity=validity_of(trials),
        deviations=deviations(campaign),
        claim=claim_of(campaign, gateway, runs, complete=len(runs) == runs_planned),
    )


def validity_of(trials: Sequence[TrialRecord]) -> ValidityPart:
    """Count valid and invalid trials; reasons without their figures, so that equal ones fall together."""
    invalid = [trial for trial in trials if not trial.validity.valid]
    reasons: Counter[str] = Counter()
    for trial in invalid:
        reasons.update(dict.fromkeys((_general(reason) for reason in trial.validity.reasons), 1))
    return ValidityPart(
        trials=len(trials),
        valid=len(trials) - len(invalid),
        invalid=len(invalid),
        reasons=tuple(ReasonPart(reason=reason, trials=count) for reason, count in reasons.most_common()),
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
    if any(run.limited_by == "tester" for run in runs):
        unmet.append("At least one run was limited by the Tester, so it is no result of the gateway.")
    if not (gateway.configuration or campaign.gateway.configuration):
        unmet.append("The configuration of the gateway is not part of the report (RFC 2544 section 7).")
    if unmet or _departs(campaign):
        sentence = "No compliance with RFC 2544 is claimed for these figures (RFC 2544 section 5)."
        return ClaimPart(level="none", sentence=sentence, unmet=tuple(unmet))
    sentence = (
        "Conditionally compliant with RFC 2544 (section 5): every MUST of the procedures that were run is met, "
        "not every SHOULD."
    )
    return ClaimPart(level="conditional", sentence=sentence, unmet=())


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
        campaign.is_loopback
        or trial.duration_ns < defaults.TRIAL_DURATION_NS
        or any(given < standard for given, standard in waits)
        or (throughput is not None and throughput.loss_tolerance > 0)
        or (frame_loss is not None and (frame_loss.rates is not None or frame_loss.step > STEP_MAX))
    )


def _run(campaign: Campaign, result: RunResult, trials: Sequence[TrialRecord]) -> RunPart:
    run, cell = result.run, result.run.cell
    own = [trial for trial in trials if trial.run == run.number]
    lower = [bound.lower_bound for bound in result.repetitions if bound.lower_bound is not None]
    upper = [bound.upper_bound for bound in result.repetitions if bound.upper_bound is not None]
    nothing = all(repetition.kind == "nothing_passes" for repetition in result.repetitions)
    rate = None if result.summary is None or nothing else _summary(result.summary)
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
        lower_bound=min(lower) if lower and len(lower) == len(result.repetitions) else None,
        upper_bound=max(upper, default=None),
        tester_limited_at=result.tester_limited_at,
        points=tuple(_point(point) for point in result.points),
        trials=len(own),
        invalid_trials=sum(not trial.validity.valid for trial in own),
    )


def _goal(campaign: Campaign, result: RunResult) -> GoalPart:
    trial, goal = campaign.trial, result.goal
    waits = WaitsPart(
        settle_ns=trial.settle_ns, learn_ns=trial.learn_ns, drain_ns=trial.drain_ns, rest_ns=trial.rest_ns
    )
    search = campaign.throughput.search if campaign.throughput is not None and goal is not None else None
    loads = [point.frames_per_second for point in result.points]
    return GoalPart(
        loss_tolerance=str(goal.loss_tolerance) if goal is not None else "0",
        duration_ns=trial.duration_ns,
        search_duration_ns=None if goal is None else goal.search_duration_ns,
        waits=waits,
        search=search,
        maximum=goal.maximum if goal is not None else max(loads, default=None),
        minimum=None if goal is None else goal.minimum,
        resolution=None if goal is None else goal.resolution,
    )


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
            "loss_percent": _summary(percent),
        }
    )


def _summary(summary: Summary) -> SummaryPart:
    return SummaryPart(
        median=summary.median,
        p1=summary.p1,
        p99=summary.p99,
        dispersion_percent=summary.dispersion_percent,
        count=summary.count,
    )


def _testbed(campaign: Campaign) -> str:
    words = {"netns": "network namespaces and virtual Ethernet pairs", "ports": "two ports", "loopback": "loop-back"}
    kind = words[campaign.testbed.kind]
    return f"{kind}, recipe {campaign.testbed.recipe}" if campaign.testbed.recipe else kind


def _general(reason: str) -> str:
    """A reason without its figures: "forward: a burst was sent … late, … is allowed"."""
    words = []
    for word in reason.split():
        figure = word.strip("(),;:").replace(".", "").replace(",", "")
        words.append("…" if figure[:1].isdigit() and not word.endswith("port:") else word)
    return " ".join(words)
