"""May the failure of a trial be the fault of the gateway's host? Asked of failed trials only. Pure.

A gateway on a machine that others use as well, or that is a guest on another one, is kept from its work now and then.
Frames that arrive meanwhile fill its queue and are lost: a loss of the host, which a search would take for the limit of
the gateway. Such a failure is suspect. It counts for nothing until the trial was made again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from gatemark.trial.echo import EchoForm
from gatemark.trial.facts import Facts
from gatemark.trial.form import PLAIN, TrialForm
from gatemark.trial.host import HostFacts
from gatemark.trial.report import Counts, DirectionResult, TrialReport
from gatemark.trial.verdict import judge
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns, frames_in


class Suspicion(Facts):
    """Why the failure of a trial may be that of the gateway's host."""

    reason: str
    """A sentence with numbers."""


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

    None as well where the host cannot be read (`host` is None) or does not say who had the gateway's CPUs, where the
    gateway has to lose frames, and where it did not fail by lost frames.

    A hold-up excuses the frames that were due while it lasted, and no others: a gateway that keeps up with its load
    catches up afterwards. If the trial had failed with those frames delivered too, it has failed.
    """
    if host is None or not host.sees_work or form.expects_loss or judge(report, loss_tolerance).passed:
        return None
    rates = (_frames_per_second(direction, form) for direction in report.directions)
    filled_ns = host.fills_ns(sum(rates))
    if host.held_up_ns > (filled_ns if policy.held_up_max_ns is None else policy.held_up_max_ns):
        return _of_the_readings(report, host, loss_tolerance, form)
    return _of_the_pattern(report) if policy.asks_for_pattern else None


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
    allowed_ns = host.fills_ns(rate) if policy.held_up_max_ns is None else policy.held_up_max_ns
    under_way = echo.outstanding_max if echo.is_closed_loop else 0
    if not missing or host.held_up_ns <= allowed_ns or missing > frames_in(rate, host.held_up_ns) + 1 + under_way:
        return None
    return Suspicion(
        reason=f"the gateway's CPUs were held up ({_held_up_words(host)}), and no more echo requests were lost or late"
        " than were due meanwhile"
    )


def _held_up_words(host: HostFacts) -> str:
    named = ((host.waited_ns, "by other programs"), (host.stolen_ns, "by the hypervisor"))
    return ", ".join(f"{format_duration_ns(time_ns)} {words}" for time_ns, words in named if time_ns)


def _of_the_readings(
    report: TrialReport, host: HostFacts, loss_tolerance: Fraction, form: TrialForm
) -> Suspicion | None:
    if not judge(_excused(report, host.held_up_ns, form), loss_tolerance).passed:
        return None
    return Suspicion(
        reason=f"the gateway's CPUs were held up ({_held_up_words(host)}), and no more frames were lost"
        " than were due meanwhile"
    )


def _excused(report: TrialReport, held_up_ns: int, form: TrialForm) -> TrialReport:
    """Return the report with as many lost and late frames delivered, and connections established, as a time excuses."""
    directions = tuple(_direction_excused(direction, held_up_ns, form) for direction in report.directions)
    connections = report.connections
    if connections is not None:
        before, after = (sum(way.foreground.received for way in ways) for ways in (report.directions, directions))
        established = min(connections.count, connections.established + after - before)
        connections = connections.model_copy(update={"established": established})
    return report.model_copy(update={"directions": directions, "connections": connections})


def _direction_excused(direction: DirectionResult, held_up_ns: int, form: TrialForm) -> DirectionResult:
    left = frames_in(_frames_per_second(direction, form), held_up_ns) + 1
    classes: dict[str, Counts] = {}
    for name, counts in direction.classes:
        lost = min(counts.lost, left)
        late = min(counts.late, left - lost)
        left -= lost + late
        delivered = {
            "received": counts.received + lost + late,
            "lost": counts.lost - lost,
            "late": counts.late - late,
        }
        classes[name] = counts.model_copy(update=delivered)
    return direction.model_copy(update=classes)


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
