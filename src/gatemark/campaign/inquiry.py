"""Which of two gateways in a row damaged frames: a short trial after the first with a fault, captured on three links.

It is made at a low load and with few connections, counts for nothing, and leaves the record of the trial before as it
is. Each kind of fault is asked for once in a campaign; a campaign without faults pays nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice

from gatemark.campaign.engine_trial import EngineTrials
from gatemark.campaign.events import DamageAsked
from gatemark.campaign.phases import StatefulTrials
from gatemark.config.model import Campaign
from gatemark.damage.decide import INCOMPLETE, Captured, Kind, Links, arrived_of, decide, unanswered
from gatemark.damage.hop_limits import lowered_by
from gatemark.damage.row import row_of, stated_row
from gatemark.dut.base import MiddleLink
from gatemark.errors import ConfigError, EngineError, TestBedError
from gatemark.facts import TRAFFIC_CLASSES
from gatemark.trial.damage import Damage
from gatemark.trial.form import PLAIN
from gatemark.trial.kinds import kind_of
from gatemark.trial.messages import TrialRequest
from gatemark.trial.order import STEPS_MAX, TrialOrder
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import TrialReport
from gatemark.units import NANOSECONDS_PER_SECOND

INQUIRIES_MAX = 8
"""Short trials of a campaign: faults of more kinds than are met in the first ones are not asked for."""
KINDS_MAX = 16
"""Kinds of fault of which a trial tells."""
PER_SECOND_MAX, CONNECTIONS_MAX, DURATION_NS = 500, 500, 2 * NANOSECONDS_PER_SECOND
"""Frames and connections per second, connections, and time of the phase behind test phase 1."""
MISSED = "test phase 1 of a short trial made to find out missed connections itself"
ASKED_AGAIN = (MISSED, INCOMPLETE)
"""The next short trial may be luckier."""
LAST_STEPS = (STEPS_MAX - 2, STEPS_MAX - 1)
"""Of the phases of a short trial: more are not made before it, unless many attempts fail."""
KEPT_FRAMES = 256
"""Frames of each reason and queue that are kept; each takes 2 KiB for each of some fifty reasons."""


@dataclass(slots=True)
class Inquiries:
    """Asks for each kind of fault of a campaign once, by which of both gateways it was made."""

    trials: EngineTrials
    stateful: StatefulTrials
    _answers: dict[Kind, Damage] = field(default_factory=dict)
    _made: int = 0

    def note(self, record: TrialRecord) -> None:
        """Take note of what a trial of the journal has answered."""
        if record.damages:
            self._made += 1
            self._keep(record.damages)

    def told(self, record: TrialRecord) -> tuple[str, ...]:
        """Return in words what is known of the faults of a trial, whichever trial it was asked for."""
        known = (self._answers.get(kind) for kind in faults_of(record.reports()))
        return tuple(f"{way.direction} {way.traffic_class}, fault {way.reason}: {way.sentence}" for way in known if way)

    def ask(self, record: TrialRecord) -> tuple[Damage, ...]:
        """Return which gateway damaged the frames of a trial, for each kind of fault that is new; the most come first.

        Empty with one gateway, and where nothing is new. Raises Interrupted as a trial does: then it was not made.
        """
        middle = self.trials.can.middle
        counts = faults_of(record.reports())
        settled = {kind for kind, damage in self._answers.items() if not _is_open(damage)}
        new = {kind: count for kind, count in counts.most_common() if kind not in settled}
        if middle is None or not new or not kind_of(record.order).finds_damage or self._made >= INQUIRIES_MAX:
            return ()
        kinds = dict(islice(new.items(), KINDS_MAX))
        self._made += 1
        self.trials.on_event(DamageAsked(trial_number=record.order.trial_number))
        damages = tuple(self._answered(kinds, record.order, middle))
        self._keep(damages)
        return damages

    def _keep(self, damages: Iterable[Damage]) -> None:
        self._answers |= {Kind(damage.direction, damage.traffic_class, damage.reason): damage for damage in damages}

    def _answered(self, kinds: Mapping[Kind, int], order: TrialOrder, middle: MiddleLink) -> Iterator[Damage]:
        try:
            captured, reports = self._made_trial(order, middle)
        except (ConfigError, EngineError, TestBedError) as error:
            why = f"the short trial to find out failed: {error.problems[0].what}"
            yield from (unanswered(kind, count, why) for kind, count in kinds.items())
            return
        again, links = faults_of(reports), Links(captured)
        if middle.standings:
            row = row_of(middle.standings)
        else:
            lowered = (lowered_by(links, "foreground"), lowered_by(links, "background"))
            row = stated_row(self.trials.campaign.forwarding, *lowered)
        kept = [frame for report in reports for frame in report.kept_frames]
        for kind, count in kinds.items():
            if not again[kind] and _misses_connections(reports[-1]):
                yield unanswered(kind, count, MISSED)
            else:
                yield decide(kind, count, again[kind], arrived_of(kind, kept, links, again), links, row)

    def _made_trial(self, order: TrialOrder, middle: MiddleLink) -> tuple[Captured, tuple[TrialReport, ...]]:
        """Make the short trial; return what was captured of it, and the reports of its phases."""
        reports = list[TrialReport]()
        with middle.captured() as capture:
            self.stateful.empty_table(order.trial_number)
            for body in short_requests(self.trials.campaign, order):
                report = self.trials.report(body, order.trial_number)
                reports.append(report)
                if _misses_connections(report):
                    break  # nobody can use connections that are not established
        frames = capture.frames()
        return Captured(**frames.links, lost=frames.lost), tuple(reports)


def _is_open(damage: Damage) -> bool:
    """Whether nothing was found out, for a reason that another short trial may not have."""
    return damage.why in ASKED_AGAIN and damage.undecided == damage.again


def _misses_connections(report: TrialReport) -> bool:
    return report.connections is not None and report.connections.missing > 0


def faults_of(reports: Iterable[TrialReport]) -> Counter[Kind]:
    """Return how many frames arrived with each kind of fault."""
    counted = Counter[Kind]()
    for report in reports:
        for direction in report.directions:
            for name in TRAFFIC_CLASSES:
                counts = getattr(direction, name)
                kinds = {Kind(direction.direction, name, reason): count for reason, count in counts.faults.items()}
                counted.update({kind: count for kind, count in kinds.items() if count})
    return counted


def short_requests(campaign: Campaign, order: TrialOrder) -> Iterator[TrialRequest]:
    """Yield the requests of a short trial in the manner of an order: test phase 1, and what follows it."""
    short = shortened(order)
    for step, body in zip(LAST_STEPS, kind_of(short).requests(campaign, short), strict=False):
        yield {**body, "trial_number": order.step_number(step), "kept_frames_max": KEPT_FRAMES}


def shortened(order: TrialOrder) -> TrialOrder:
    """Return an order of the same kind with a low load, few connections and little time."""
    step = order.step
    assert order.connections is not None, "a stateful trial has a number of connections"
    load, per_second = (min(rate, PER_SECOND_MAX) for rate in (step.frames_per_second, order.phase_one_rate))
    count = min(order.connections, CONNECTIONS_MAX, max(1, per_second * DURATION_NS // NANOSECONDS_PER_SECOND))
    step = replace(
        step,
        frames_per_second=load,
        duration_ns=min(step.duration_ns, DURATION_NS),
        connections=None if step.connections is None else count,
        drawn_frames=None,
        alpha=None if step.alpha is None else Fraction(1),
    )
    run = replace(order.run, cell=replace(order.run.cell, connections=count))
    return replace(order, run=run, step=step, connections_per_second=per_second, form=PLAIN)
