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

from gatemark.trial.backlogs import DRAINS, Backlog, find_backlogs
from gatemark.trial.echo import EchoForm
from gatemark.trial.facts import Facts
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.trial.host import HoldUp, HostFacts
from gatemark.trial.loss_places import LossPlaces, Missing, chance_of_places, with_delivered
from gatemark.trial.report import DirectionResult, TrialReport
from gatemark.trial.verdict import judge
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns, frames_in

SEVERAL = 2
"""A queue that holds the load, but not what has waited for a CPU, loses at least so many frames at a time."""
CHANCE_MAX = 0.05


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

    Rule: the trial had passed without the frames that were lost where frames had piled up because others had the
    gateway's CPUs, or because the Tester sent late; of each backlog as many at most as had piled up, for a gateway that
    keeps up with its load catches up afterwards. The gateway's queue did not hold these backlogs, or else chance puts
    losses there in at most one of twenty trials: the gateway may have a queue that is shorter than those that can be
    read. A hold-up of which it is not known when it was may have been anywhere.
    """
    if form.expects_loss or judge(report, loss_tolerance).passed:
        return None
    failure = _Failure(
        report=report,
        loss_tolerance=loss_tolerance,
        form=form,
        queue_frames=0 if host is None else host.queue_frames,
        asks_for_pattern=policy.asks_for_pattern,
        counts_short=policy.held_up_max_ns is None,
    )
    late_ns = max((burst.lateness_ns for way in report.directions for burst in way.late_bursts), default=0)
    if late_ns and (behind := failure.behind(_HeldUp(), late_bursts=True)) is not None:
        return Suspicion(reason=_late_bursts_words(report, behind.backlogs), whose="Tester")
    if host is None or not host.sees_work:
        return None
    rate = sum(_frames_per_second(direction, form) for direction in report.directions)
    held_up = _held_up(host, policy, host.fills_ns(rate), is_even=form.is_even)
    if (behind := failure.behind(held_up, late_bursts=False)) is not None:
        return Suspicion(reason=f"{_hold_ups_words(host, behind.hold_ups or held_up.long)}, {behind.conclusion}")
    if late_ns and (behind := failure.behind(held_up, late_bursts=True)) is not None:
        words = _hold_ups_words(host, behind.hold_ups or held_up.long)
        late = f"the Tester sent up to {format_duration_ns(late_ns)} late"
        return Suspicion(reason=f"{words}, {late}, {behind.conclusion}", whose="Tester")
    return _of_the_pattern(report) if policy.asks_for_pattern else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldUp:
    """For how long others held the gateway up."""

    moments: tuple[HoldUp, ...] = ()
    """Those of which it is known when they were."""
    at_any_time_ns: int = 0
    """How long all others were together."""
    long: tuple[HoldUp, ...] = ()
    """Those that were longer than `long_ns`."""
    long_ns: int = 0
    """The gateway's queue holds what is due in this time, and no more."""
    is_watched: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Behind:
    """Behind what the losses lie that made a trial fail."""

    backlogs: Sequence[Backlog]
    conclusion: str = "and no more frames were lost than were due meanwhile"

    @property
    def hold_ups(self) -> tuple[HoldUp, ...]:
        return tuple(hold_up for backlog in self.backlogs for hold_up in backlog.hold_ups)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """A trial that failed by its losses."""

    report: TrialReport
    loss_tolerance: Fraction
    form: TrialForm
    queue_frames: int
    asks_for_pattern: bool
    counts_short: bool
    """Whether hold-ups that the gateway's queue holds are looked at."""

    def behind(self, held_up: _HeldUp, *, late_bursts: bool) -> _Behind | None:
        """Return behind what losses lie, so that the trial had passed without them; None if too many lie elsewhere.

        `held_up`: others had the gateway's CPUs. `late_bursts`: whether it may also be what the Tester sent late.
        """
        ways = [way if late_bursts else way.model_copy(update={"late_bursts": ()}) for way in self.report.directions]
        return self._overflowed(ways, held_up) or (
            self._by_chance(ways, held_up) if held_up.is_watched else self._at_any_time(ways, held_up)
        )

    def _overflowed(self, ways: Sequence[DirectionResult], held_up: _HeldUp) -> _Behind | None:
        """Look at backlogs that the gateway's queue did not hold."""
        backlogs = self._backlogs(ways, held_up, DRAINS)
        longest_ns = max((ns for backlog in backlogs for ns in backlog.waiting_ns.values()), default=0)
        any_time_ns = held_up.at_any_time_ns if held_up.at_any_time_ns + longest_ns > held_up.long_ns else 0
        too_long = [backlog for backlog in backlogs if backlog.overflows or any_time_ns]
        return _Behind(backlogs=too_long) if self._passes_without(ways, too_long, any_time_ns) else None

    def _at_any_time(self, ways: Sequence[DirectionResult], held_up: _HeldUp) -> _Behind | None:
        """Look at a hold-up that the queue holds, of which it is not known when it was; the last attempt does not."""
        if not (held_up.at_any_time_ns and self.counts_short and self.asks_for_pattern and self._loses_several()):
            return None
        backlogs = self._backlogs(ways, held_up, DRAINS)
        return _Behind(backlogs=backlogs) if self._passes_without(ways, backlogs, held_up.at_any_time_ns) else None

    def _by_chance(self, ways: Sequence[DirectionResult], held_up: _HeldUp) -> _Behind | None:
        """Look at all backlogs, and whether chance puts runs of losses there."""
        if held_up.moments and not (self.counts_short and self._loses_several()):
            return None
        widths = (0, DRAINS) if self.form.is_even else (0,)
        for width in widths:
            backlogs = self._backlogs(ways, held_up, width)
            if not self._passes_without(ways, backlogs, 0):
                continue
            losing = [way for way in ways if way.longest_loss_runs]
            chances = (chance_of_places(way, (each.span(way) for each in _with(way, backlogs))) for way in losing)
            if min(chances, default=0.0) + math.log(len(widths)) <= math.log(CHANCE_MAX):
                return _Behind(
                    backlogs=backlogs, conclusion="and that was when frames were lost, no more of them than were due"
                )
        return None

    def _backlogs(self, ways: Sequence[DirectionResult], held_up: _HeldUp, drains: int) -> list[Backlog]:
        """Return them of all directions together; where an index is no time, of each alone and without `drains`."""
        ways_of, drains = ([ways], drains) if self.form.is_even else ([[way] for way in ways], 0)
        facts = {"queue_frames": self.queue_frames, "long_ns": held_up.long_ns, "drains": drains}
        return [backlog for each in ways_of for backlog in find_backlogs(each, held_up.moments, **facts)]

    def _passes_without(self, ways: Sequence[DirectionResult], backlogs: Sequence[Backlog], any_time_ns: int) -> bool:
        """Whether the trial had passed if what was lost in backlogs, or in a time that is not known, had come back."""
        excused: dict[str, Missing] = {}
        for way in ways:
            rate = _frames_per_second(way, self.form)
            lost = frames_in(rate, any_time_ns) + 1 if any_time_ns else 0
            held_up_ns = any_time_ns
            for backlog, lost_there in _lost_in(way, backlogs):
                lost += lost_there
                held_up_ns += sum(hold_up.held_up_ns for hold_up in backlog.hold_ups)
            # When late frames were due is not known.
            late = frames_in(rate, held_up_ns) + 1 if held_up_ns else 0
            excused[way.direction] = Missing(lost=lost, lost_or_late=max(lost, late))
        return judge(with_delivered(self.report, excused), self.loss_tolerance).passed

    def _loses_several(self) -> bool:
        """Whether frames were lost several at a time, as by a queue that was filled."""
        losses = [counts for *_, counts in self.report.counts() if counts.lost]
        return bool(losses) and all(counts.lost >= SEVERAL * max(1, counts.loss.runs) for counts in losses)


def _with(way: DirectionResult, backlogs: Sequence[Backlog]) -> Iterator[Backlog]:
    """Yield those in which frames of a direction piled up."""
    return (backlog for backlog in backlogs if backlog.piled_ns.get(way.direction))


def _lost_in(way: DirectionResult, backlogs: Sequence[Backlog]) -> Iterator[tuple[Backlog, int]]:
    """Yield each of these and how many frames were lost in it, no more than had piled up."""
    places = LossPlaces(way)
    for backlog in _with(way, backlogs):
        yield backlog, min(places.take(*backlog.span(way)), backlog.frames(way))


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
    held_up = _held_up(host, policy, host.fills_ns(rate), is_even=False)
    held_up_ns = held_up.at_any_time_ns
    under_way = echo.outstanding_max if echo.is_closed_loop else 0
    if not missing or held_up_ns <= held_up.long_ns or missing > frames_in(rate, held_up_ns) + 1 + under_way:
        return None
    words = _hold_ups_words(host, held_up.long)
    return Suspicion(reason=f"{words}, and no more echo requests were lost or late than were due meanwhile")


def _held_up(host: HostFacts, policy: SuspicionPolicy, filled_ns: int, *, is_even: bool) -> _HeldUp:
    """Return for how long others held the gateway up, where its queue fills in `filled_ns`."""
    allowed_ns = policy.held_up_max_ns
    long_ns = filled_ns if allowed_ns is None else allowed_ns
    if host.hold_ups is None:
        held_up_ns = host.held_up_ns if allowed_ns is None or host.held_up_ns > allowed_ns else 0
        return _HeldUp(at_any_time_ns=held_up_ns, long_ns=long_ns, is_watched=False)
    long = tuple(hold_up for hold_up in host.hold_ups if hold_up.held_up_ns > long_ns)
    # Where all that are listed are that long, those for which the list has no room may be as well.
    others_ns = host.other_hold_ups_ns if long and len(long) == len(host.hold_ups) else 0
    if not is_even:  # a time is no index
        any_time_ns = others_ns + sum(hold_up.held_up_ns for hold_up in long)
        return _HeldUp(at_any_time_ns=any_time_ns, long=long, long_ns=long_ns)
    moments = host.hold_ups if allowed_ns is None else long
    return _HeldUp(moments=moments, at_any_time_ns=others_ns, long=long, long_ns=long_ns)


def _hold_ups_words(host: HostFacts, moments: Sequence[HoldUp]) -> str:
    """Return for how long others held the gateway up, at these moments if it was watched."""
    if host.hold_ups is None:
        named = ((host.waited_ns, "by other programs"), (host.stolen_ns, "by the hypervisor"))
        by_whom = ", ".join(f"{format_duration_ns(time_ns)} {words}" for time_ns, words in named if time_ns)
        return f"the gateway's CPUs were held up ({by_whom})"
    longest = format_duration_ns(max(moment.held_up_ns for moment in moments))
    when = f"{len(moments)} times, for up to {longest} each"
    if len(moments) == 1:
        when = f"once, at {format_duration_ns(max(0, moments[0].begin_ns))} for {longest}"
    return f"others had the gateway's CPUs {when}"


def _late_bursts_words(report: TrialReport, backlogs: Sequence[Backlog]) -> str:
    of_all = report.lost_count
    lost = bursts = late_ns = 0
    for way in report.directions:
        for backlog, lost_there in _lost_in(way, backlogs):
            late = [burst.lateness_ns for direction, burst in backlog.bursts if direction == way.direction]
            if lost_there:
                lost, bursts, late_ns = lost + lost_there, bursts + len(late), max(late_ns, *late)
    frames = f"all {of_all:,} lost frames" if lost == of_all else f"{lost:,} of {of_all:,} lost frames"
    if of_all == 1:
        frames = "the only lost frame"
    follow, late_words = "follows" if of_all == 1 else "follow", format_duration_ns(late_ns)
    if bursts == 1:
        return f"{frames} {follow} a burst that the Tester sent {late_words} late"
    return f"{frames} {follow} {bursts} bursts that the Tester sent up to {late_words} late"


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
