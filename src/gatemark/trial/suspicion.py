"""May the failure of a trial be the fault of the gateway's host, or of the Tester? Asked of failed trials only. Pure.

A gateway on a machine that others use as well, or that is a guest on another one, is kept from its work now and then.
Frames that arrive meanwhile fill its queue and are lost: a loss of the host, which a search would take for the limit of
the gateway. Such a failure is suspect. It counts for nothing until the trial was made again. Then the host is watched,
and a hold-up excuses the losses of its own moment alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from gatemark.trial.echo import EchoForm
from gatemark.trial.facts import Facts
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.trial.host import HoldUp, HostFacts
from gatemark.trial.late_bursts import CHANCE_MAX, behind_late_bursts
from gatemark.trial.loss_places import DRAINS, LossPlaces, Missing, chance_of_places, with_delivered
from gatemark.trial.report import DirectionResult, TrialReport
from gatemark.trial.verdict import judge
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns, frames_in

SEVERAL = 2
"""A queue that holds the load, but not what has waited for a CPU, loses at least so many frames at a time."""


class Suspicion(Facts):
    """Why the failure of a trial may not be the gateway's."""

    reason: str
    """A sentence with numbers."""
    whose: Literal["host", "Tester"] = "host"
    """Whose fault it may be instead. The Tester's: it did its job, but frames that it sent late, at once, were lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspicionPolicy:
    """What the campaign file allows the gateway's host."""

    held_up_max_ns: int | None
    """A gateway that others held up for no longer than this answers for its losses itself. None: the time in which its
    queue fills at the load of the trial."""
    asks_for_pattern: bool
    """Whether a loss that looks like a hold-up is suspect although no hold-up was read. Not in the last attempt: a
    host that shows nothing is not blamed again and again."""


def suspect(
    report: TrialReport,
    host: HostFacts | None,
    loss_tolerance: Fraction,
    policy: SuspicionPolicy,
    form: TrialForm = PLAIN,
) -> Suspicion | None:
    """Return why a valid trial that failed is suspect; None if its failure is the gateway's.

    None as well where the gateway has to lose frames, and where it did not fail by lost frames. Where the host cannot
    be read (`host` is None) or does not say who had the gateway's CPUs, only the Tester is asked.

    A hold-up excuses as many frames as were due while it lasted, and no others: a gateway that keeps up with its load
    catches up afterwards. If the trial had failed with those frames delivered too, it has failed. Where the host was
    watched, each hold-up stands alone. One that is longer than the gateway's queue takes to fill excuses the losses of
    its own moment. Shorter ones excuse them only where chance does not put losses there: the gateway may have a queue
    that is shorter than those that can be read.
    """
    if form.expects_loss or judge(report, loss_tolerance).passed:
        return None
    queue_frames = 0 if host is None else host.queue_frames
    if (behind := behind_late_bursts(report, loss_tolerance, form, queue_frames=queue_frames)) is not None:
        return Suspicion(reason=behind, whose="Tester")
    if host is None or not host.sees_work:
        return None
    filled_ns = host.fills_ns(sum(_frames_per_second(direction, form) for direction in report.directions))
    held_up = _long_ones(host, filled_ns if policy.held_up_max_ns is None else policy.held_up_max_ns)
    if held_up is not None and judge(_excused(report, held_up, filled_ns, form), loss_tolerance).passed:
        return Suspicion(reason=f"{held_up.words}, and no more frames were lost than were due meanwhile")
    if policy.held_up_max_ns is None and (short := _of_short_ones(report, host, loss_tolerance, policy, form)):
        return Suspicion(reason=short)
    return _of_the_pattern(report) if policy.asks_for_pattern else None


def _of_short_ones(
    report: TrialReport, host: HostFacts, loss_tolerance: Fraction, policy: SuspicionPolicy, form: TrialForm
) -> str | None:
    """Return that hold-ups too short for the gateway's queue may have made a trial fail, as a sentence; None if not.

    They make it lose several frames at a time. Where the host was not watched, they may have been at any time; the last
    attempt does not count that. Where it was, the chance is bounded as in `late_bursts`.
    """
    held_up, is_watched = _long_ones(host, 0), host.hold_ups is not None
    losses = [counts for *_, counts in report.counts() if counts.lost]
    if held_up is None or not losses or any(counts.lost < SEVERAL * max(1, counts.loss.runs) for counts in losses):
        return None
    if not (form.is_even if is_watched else policy.asks_for_pattern):
        return None
    if not judge(_excused(report, held_up, 0, form), loss_tolerance).passed:
        return None
    if not is_watched:
        return f"{held_up.words}, and no more frames were lost than were due meanwhile"
    losing = [way for way in report.directions if way.longest_loss_runs]
    chances = (
        chance_of_places(way, ((first, end) for first, end, _ in _spans(way, held_up.moments, 0))) for way in losing
    )
    if min(chances, default=0.0) > math.log(CHANCE_MAX):
        return None
    return f"{held_up.words}, and that was when frames were lost, no more of them than were due"


def suspect_echo(
    report: TrialReport, host: HostFacts | None, policy: SuspicionPolicy, echo: EchoForm
) -> Suspicion | None:
    """Return why what a valid trial of echo requests lost may be the fault of the gateway's host; None if it is not.

    A hold-up excuses what was due while it lasted, and in a closed loop what was under way when it began. Such a trial
    has no goal that it could miss, so what was lost is all that can be suspect of it.
    """
    steady = None if report.echo is None else report.echo.steady
    if host is None or steady is None or steady.lasted_ns <= 0:
        return None
    missing = sum(counts.lost + counts.late for _, _, counts in report.counts())
    rate = steady.requests * NANOSECONDS_PER_SECOND // steady.lasted_ns
    held_up = _long_ones(host, host.fills_ns(rate) if policy.held_up_max_ns is None else policy.held_up_max_ns)
    under_way = echo.outstanding_max if echo.is_closed_loop else 0
    if not missing or held_up is None or missing > frames_in(rate, held_up.lasted_ns) + 1 + under_way:
        return None
    return Suspicion(reason=f"{held_up.words}, and no more echo requests were lost or late than were due meanwhile")


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldUp:
    """For how long others held the gateway up, in hold-ups that are long enough to lose frames."""

    words: str
    moments: tuple[HoldUp, ...]
    """Those of which it is known when they were."""
    at_any_time_ns: int
    """How long all others were together."""

    @property
    def lasted_ns(self) -> int:
        return self.at_any_time_ns + sum(moment.held_up_ns for moment in self.moments)


def _long_ones(host: HostFacts, allowed_ns: int) -> _HeldUp | None:
    """Return the hold-ups that lasted longer than what is allowed; None if none did."""
    if host.hold_ups is None:
        if host.held_up_ns <= allowed_ns:
            return None
        named = ((host.waited_ns, "by other programs"), (host.stolen_ns, "by the hypervisor"))
        by_whom = ", ".join(f"{format_duration_ns(time_ns)} {words}" for time_ns, words in named if time_ns)
        words = f"the gateway's CPUs were held up ({by_whom})"
        return _HeldUp(words=words, moments=(), at_any_time_ns=host.held_up_ns)
    moments = tuple(hold_up for hold_up in host.hold_ups if hold_up.held_up_ns > allowed_ns)
    if not moments:
        return None
    longest = format_duration_ns(max(moment.held_up_ns for moment in moments))
    when = f"{len(moments)} times, for up to {longest} each"
    if len(moments) == 1:
        when = f"once, at {format_duration_ns(max(0, moments[0].begin_ns))} for {longest}"
    # Where all that are listed are that long, those for which the list has no room may be as well.
    others_ns = host.other_hold_ups_ns if len(moments) == len(host.hold_ups) else 0
    return _HeldUp(words=f"others had the gateway's CPUs {when}", moments=moments, at_any_time_ns=others_ns)


def _excused(report: TrialReport, held_up: _HeldUp, filled_ns: int, form: TrialForm) -> TrialReport:
    """Return the report with as many lost and late frames delivered, and connections established, as hold-ups excuse.

    `filled_ns`: the time in which the gateway's queue fills.
    """
    excused: dict[str, Missing] = {}
    for direction in report.directions:
        rate = _frames_per_second(direction, form)
        all_due = lost = frames_in(rate, held_up.lasted_ns) + 1
        if held_up.moments and form.is_even:
            lost = frames_in(rate, held_up.at_any_time_ns) + _lost_at(direction, held_up.moments, filled_ns)
        # When late frames were due is not known.
        excused[direction.direction] = Missing(lost=lost, lost_or_late=all_due)
    return with_delivered(report, excused)


def _lost_at(direction: DirectionResult, moments: Sequence[HoldUp], filled_ns: int) -> int:
    """Return how many frames were lost that were due in hold-ups and while the queue was emptied after each.

    Of each moment at most as many as were due while it lasted. A frame that the Tester sent late was due earlier.
    """
    rate, places = direction.frames_per_second, LossPlaces(direction)
    spans = _spans(direction, moments, filled_ns)
    return sum(min(places.take(first, end), frames_in(rate, lasted_ns) + 1) for first, end, lasted_ns in spans)


def _spans(direction: DirectionResult, moments: Sequence[HoldUp], filled_ns: int) -> Iterator[tuple[int, int, int]]:
    """Yield the frames of each moment, the first and the one behind the last, and how long it lasted."""
    spans: list[tuple[int, int, int]] = []
    for moment in moments:
        begin_ns, end_ns = moment.begin_ns - direction.lateness_max_ns, moment.end_ns + DRAINS * filled_ns
        lasted_ns = moment.held_up_ns
        if spans and begin_ns <= spans[-1][1]:  # what was lost in both counts once
            begin_ns, before_ns, held_ns = spans.pop()
            end_ns, lasted_ns = max(end_ns, before_ns), lasted_ns + held_ns
        spans.append((begin_ns, end_ns, lasted_ns))
    for begin_ns, end_ns, lasted_ns in spans:
        first, end = (frames_in(direction.frames_per_second, max(0, time_ns)) for time_ns in (begin_ns, end_ns))
        yield first, end + 1, lasted_ns


def _frames_per_second(direction: DirectionResult, form: TrialForm) -> int:
    """Return the highest rate at which frames of a direction are due."""
    return max(direction.frames_per_second, 0 if form.bursts is None else form.bursts.frames_per_second)


def _of_the_pattern(report: TrialReport) -> Suspicion | None:
    """Whether each direction and class lost frames in one run, all at one time, and both input queues overflowed.

    A gateway that cannot keep up loses some frames of many. One that stands still loses all of them, whatever way they
    go.
    """
    every = list(report.counts())
    both_overflowed = len(report.directions) == 2 and all(port.peer_queue_drops for port in report.ports.values())
    if not both_overflowed or any(counts.loss.runs != 1 or counts.faulty or counts.duplicate for *_, counts in every):
        return None
    spans = list(_spans_ns(report))
    if max(begin for begin, _ in spans) > min(end for _, end in spans):
        return None
    lasted_ns = max(end for _, end in spans) - min(begin for begin, _ in spans)
    return Suspicion(
        reason=f"all frames were lost in one run of {format_duration_ns(lasted_ns)}, in both directions at once, as if"
        " the gateway had stood still"
    )


def _spans_ns(report: TrialReport) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the loss in each direction and class, from the start of sending."""
    for direction in report.directions:
        frame_ns = Fraction(NANOSECONDS_PER_SECOND, direction.frames_per_second)
        for _, counts in direction.classes:
            yield int(counts.loss.first_index * frame_ns), int((counts.loss.last_index + 1) * frame_ns)
