"""May a trial be believed? Asks only whether the *Tester* did its job; says nothing about the gateway.

An invalid trial is repeated and stays in the journal with its reasons. It is neither a pass nor a fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gatemark.trial.echo import EchoForm, sums_of
from gatemark.trial.exchange import Exchange, ExchangeFacts
from gatemark.trial.facts import Facts
from gatemark.trial.form import PLAIN, TrialForm, frames_due
from gatemark.trial.report import DirectionResult, PortFacts, SendingClocks, TrialReport, arriving_at
from gatemark.units import format_duration_ns

SENDING_TIME_EXCESS_DIVISOR = 100_000
"""Sending may take longer than intended by a hundred-thousandth of the trial."""

SENDING_TIME_BASE_NS_MIN = 60_000_000_000
"""Shorter trials get the excess of a trial of 60 s: 0.6 ms, about what one wake-up of a kernel thread costs."""

CLOCKS_APART_DIVISOR = 10_000
"""The Tester's two clocks may differ by a ten-thousandth: by as much may two crystal oscillators, if each clock has one
of its own. More says that one of them stood still or was set, because the machine slept or moved."""

CLOCKS_APART_BASE_NS_MIN = 1_000_000_000
"""Shorter times are allowed the difference of a second, 0.1 ms, because reading both takes time."""

FOREIGN_FRAMES_MAX = 1_000
"""How many frames from elsewhere are normal for a port in a trial (routers, switches and name services talking)."""

FOREIGN_SHARE_DIVISOR = 100
"""Above that number they may be a hundredth of what arrived. A share alone would fault a slow trial for a few router
advertisements; a number alone would fault a fast trial for as little. More than both takes receive capacity that
the trial needs, and says that the test network is not isolated (RFC 8219 section 13). Neighbour discovery, ICMP errors,
fragments and stragglers are the gateway's answers to our traffic: they never make a trial invalid, or a gateway that
refuses every frame with an ICMP error would be excused as a Tester at its limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidityPolicy:
    """What the campaign file allows the Tester."""

    lateness_max_ns: int
    """No burst may be sent later than this after its planned time, and no frame may wait longer to be received."""


class Validity(Facts):
    """Whether the Tester did its job in one trial."""

    valid: bool
    """Whether it did."""
    reasons: tuple[str, ...] = ()
    """Why it did not, as sentences with numbers; empty if valid."""


def judge_validity(
    report: TrialReport,
    policy: ValidityPolicy,
    *,
    testbed_drops: Mapping[str, int] | None = None,
    testbed_faults: Sequence[str] = (),
    form: TrialForm = PLAIN,
    of_kind: Iterable[str] = (),
) -> Validity:
    """Say whether the Tester did its job, and if not, everything that went wrong.

    `testbed_drops`: frames that the test bed's own queues towards the Tester dropped during the trial, by place.
    `testbed_faults`: what else the test bed did wrong, in sentences.
    `form`: how the load of each direction was to be spread over time.
    `of_kind`: what is wrong with a trial of this kind, in sentences.
    """
    if report.cancelled:
        return Validity(valid=False, reasons=("the trial was cancelled before its end",))
    reasons: list[str] = []
    if not report.directions:
        reasons.append("the report names no direction")
    given_up = [direction for direction in report.directions if direction.gave_up]
    for direction in given_up or report.directions:  # one that gives up ends the others, through no fault of theirs
        if direction.frames_per_second:  # 0 in a closed loop and of replies: none is due at a given time
            reasons += _sending_problems(direction, policy, form)
    reasons += of_kind
    reasons += _clock_problems(report.clocks)
    reasons += _negative_delays(report)
    if not given_up and report.worker_pause_max_ns > policy.lateness_max_ns:
        reasons.append(
            f"a worker was held up for {format_duration_ns(report.worker_pause_max_ns)} while frames waited for it,"
            f" {format_duration_ns(policy.lateness_max_ns)} is allowed"
        )
    for side, port in report.ports.items():
        reasons += _port_problems(side, port, _arrivals(report, side), may_lose_link=form.reset_after_ns is not None)
    reasons += _testbed_problems(testbed_drops or {}, testbed_faults)
    return Validity(valid=not reasons, reasons=tuple(reasons))


def judge_exchange(
    exchange: Exchange, facts: ExchangeFacts, *, testbed_drops: Mapping[str, int], testbed_faults: Sequence[str]
) -> Validity:
    """Say whether the Tester sent every packet of an exchange and kept every frame that arrived."""
    reasons = [
        f"{side} port: {facts.sent.get(side, 0)} of {len(packets)} packets were sent"
        for side, packets in (("left", exchange.left), ("right", exchange.right))
        if facts.sent.get(side, 0) != len(packets)
    ]
    if facts.not_kept:
        reasons.append(f"{facts.not_kept} frames arrived for which the Tester had no room")
    reasons += _testbed_problems(testbed_drops, testbed_faults)
    return Validity(valid=not reasons, reasons=tuple(reasons))


def _testbed_problems(drops: Mapping[str, int], faults: Sequence[str]) -> Iterator[str]:
    for place, count in drops.items():
        if count:
            yield f"test bed: {count} frames were dropped on the Tester's side ({place})"
    yield from (f"test bed: {fault}" for fault in faults)


def link_is_down(report: TrialReport) -> bool:
    """Whether a port had no link: no load is too high for that, so a search must not go on."""
    return any(not port.link_up for port in report.ports.values())


def sending_ns_max(intended_duration_ns: int) -> int:
    """Return how long sending may take for a trial of the intended duration."""
    base = max(intended_duration_ns, SENDING_TIME_BASE_NS_MIN)
    return intended_duration_ns + base // SENDING_TIME_EXCESS_DIVISOR


def _sending_problems(direction: DirectionResult, policy: ValidityPolicy, form: TrialForm) -> list[str]:
    name = direction.direction
    is_late = direction.lateness_max_ns > policy.lateness_max_ns
    limit = format_duration_ns(policy.lateness_max_ns)
    lateness = f"a burst was sent {format_duration_ns(direction.lateness_max_ns)} late, {limit} is allowed"
    if direction.gave_up:
        cause = lateness if is_late else f"the port took no frame for {limit} after it was due"
        return [f"{name}: {cause}; the trial was ended {format_duration_ns(direction.sending_ns)} after its start"]
    reasons = []
    planned = frames_due(direction.frames_per_second, direction.intended_duration_ns, form)
    if direction.intended == 0 or direction.intended - planned not in (0, 1):  # a broken frame rounds either way
        reasons.append(f"{name}: {direction.intended} frames were intended, load times duration is {planned}")
    reasons += [
        f"{name}: {counts.offered} of {counts.intended} intended {class_name} frames were offered"
        for class_name, counts in direction.classes
        if counts.offered != counts.intended
    ]
    allowed = sending_ns_max(direction.intended_duration_ns)
    if direction.sending_ns > allowed:
        excess = format_duration_ns(direction.sending_ns - direction.intended_duration_ns)
        permitted = format_duration_ns(allowed - direction.intended_duration_ns)
        reasons.append(f"{name}: sending took {excess} longer than intended, {permitted} is allowed")
    if is_late:
        reasons.append(f"{name}: {lateness}")
    return reasons


def echo_problems(report: TrialReport, echo: EchoForm) -> Iterator[str]:
    """Yield what is missing in the report of an echo trial, and where its two accounts of it differ."""
    facts, counts = report.echo, {direction.direction: direction.foreground for direction in report.directions}
    if facts is None or counts.keys() != {"forward", "reverse"}:
        yield "the report says nothing about echo requests: a fault of the engine"
        return
    if len(facts.clients) != echo.clients:
        yield f"the report is of {len(facts.clients)} clients, not of {echo.clients}: a fault of the engine"
        return
    asked, answered = counts["forward"], counts["reverse"]
    if not asked.offered and not any(direction.gave_up for direction in report.directions):
        yield "no echo request was sent"
    due = {"requests": asked.offered, "arrived": asked.received, "replies": answered.received, "late": answered.late}
    for name, total in sums_of(facts).items():
        if name in due and total != due[name]:
            yield f"the clients have {total} {name}, the ports {due[name]}: a fault of the engine"


def _clock_problems(clocks: SendingClocks) -> list[str]:
    apart = abs(clocks.cycle_counter_ns - clocks.monotonic_raw_ns)
    allowed = max(clocks.monotonic_raw_ns, CLOCKS_APART_BASE_NS_MIN) // CLOCKS_APART_DIVISOR
    if apart <= allowed:
        return []
    return [
        f"clocks: after {format_duration_ns(clocks.monotonic_raw_ns)} of CLOCK_MONOTONIC_RAW the processor's counter is"
        f" {format_duration_ns(apart)} away from it, {format_duration_ns(allowed)} is allowed:"
        " the Tester's machine was suspended or moved, or its counter is not steady"
    ]


def _negative_delays(report: TrialReport) -> Iterator[str]:
    for side, port in report.ports.items():
        for direction, class_name, counts in report.counts():
            delay = counts.delay
            if direction == arriving_at(side) and delay.negative_maximum_ns > port.clock_error_ns:
                yield (
                    f"{direction}: {delay.negative} {class_name} frames arrived, by the clock, up to"
                    f" {format_duration_ns(delay.negative_maximum_ns)} before they were sent,"
                    f" {format_duration_ns(port.clock_error_ns)} is allowed: the clocks of the Tester's CPUs or ports"
                    " differ, or time stamps were damaged on the way"
                )


def _port_problems(side: str, port: PortFacts, arrivals: int, *, may_lose_link: bool) -> list[str]:
    """Say what was wrong at a port; a gateway that is reset during the trial may take its link along."""
    reasons = []
    if not port.link_up:
        reasons.append(f"{side} port: the link was down")
    elif port.link_losses and not may_lose_link:
        times = "once" if port.link_losses == 1 else f"{port.link_losses} times"
        reasons.append(f"{side} port: the link went down {times} during the trial and came up again")
    reasons += [
        f"{side} port: {count} frames were lost on the Tester's side ({place})"
        for place, count in port.own_drops.items()
        if count
    ]
    foreign = port.foreign.foreign
    if foreign > FOREIGN_FRAMES_MAX and foreign * FOREIGN_SHARE_DIVISOR > arrivals:
        reasons.append(
            f"{side} port: {foreign} foreign frames arrived with {arrivals} of the trial; "
            f"more than {FOREIGN_FRAMES_MAX} and 1 % are too many"
        )
    return reasons


def _arrivals(report: TrialReport, side: str) -> int:
    """Return the frames of the trial that arrived at a side."""
    arriving = arriving_at(side)
    return sum(
        counts.received + counts.faulty + counts.late + counts.duplicate
        for direction, _, counts in report.counts()
        if direction == arriving
    )
