"""A pair of searches whose trials alternate: the next trial of each, and what its end says of the gateway. Pure.

Both searches begin at a load that is too high for both gateways, and halve until they know the throughput (RFC 2544
section 26.1) as closely as the resolution. Neither waits for the other: one that has ended leaves its turns out.

A trial here is short, and one burst can make it lose a frame far below the throughput. So a search does not end on one
failed trial below which all others passed: that load is tried once more, and has failed only if frames are lost again
(as RFC 9004 section 6.2 verifies losses).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from gatemark.pairs.pair import Outcome, SideTrial
from gatemark.search.binary import next_step
from gatemark.search.goal import Goal, Measure, Observation, SearchResult, sending_ns
from gatemark.search.goal import Outcome as LoadOutcome
from gatemark.trial.record import TrialRecord

RESOLUTION = Fraction(1, 256)
"""Distance of the bounds at which a search ends, as a share of its first load."""
TRIES = 3
"""Trials at one load that say nothing about the gateway, one after the other, before the search is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSearch:
    """The search of one side, as far as it got."""

    goal: Goal
    history: tuple[Observation, ...] = ()
    tries: int = 0
    """Latest trials that said nothing, all at the load of the next one."""
    last: TrialRecord | None = None
    seconds: float = 0.0
    """Of all its trials."""

    @property
    def step(self) -> Measure | SearchResult:
        """The next trial, or how it ended."""
        step = next_step(self.goal, self.history)
        if isinstance(step, SearchResult) and (doubtful := self._doubtful(step)) is not None:
            return Measure(frames_per_second=doubtful, duration_ns=self.goal.durations_ns[1], purpose="search")
        return step

    def _doubtful(self, end: SearchResult) -> int | None:
        """Return the lowest load that failed if it failed in a single trial, after which all others passed."""
        at_bound = [trial for trial in self.history if trial.frames_per_second == end.upper_bound]
        return end.upper_bound if len(at_bound) == 1 and at_bound[0] != self.history[-1] else None

    @property
    def is_over(self) -> bool:
        """Whether no trial follows."""
        return self.tries >= TRIES or isinstance(self.step, SearchResult)

    def after(self, record: TrialRecord) -> SideSearch:
        """Return the search after its next trial."""
        known = replace(self, last=record, seconds=self.seconds + record.seconds)
        if record.observation.outcome is LoadOutcome.TESTER_LIMITED:
            return replace(known, tries=self.tries + 1)
        load = record.observation.frames_per_second
        passed = record.observation.outcome is LoadOutcome.PASSED
        earlier = (trial for trial in self.history if not (passed and trial.frames_per_second == load))
        return replace(known, history=(*earlier, record.observation), tries=0)

    def result(self) -> SideTrial:
        """Return what the search says once it is over."""
        assert self.last is not None, "a search has at least one trial"
        outcome: Outcome = "measured"
        reasons: tuple[str, ...] = ()
        throughput = 0
        if isinstance(self.step, Measure):
            outcome, reasons = "suspect" if self.last.validity.valid else "invalid", self.last.reasons
        else:
            throughput = self.step.lower_bound or 0
            if self.step.kind == "maximum_passed":
                outcome = "bound"
        return SideTrial(
            trial_number=self.last.order.trial_number,
            outcome=outcome,
            value=throughput,
            highest_rate=throughput,
            loss_ratio=Fraction(0),
            reasons=reasons,
            seconds=self.seconds,
        )


def search_from(load: int, trial_ns: int) -> SideSearch:
    """Return a search that begins at a load, with trials of this length."""
    gap = max(1, int(RESOLUTION * load))
    one_frame = sending_ns(1, trial_ns)  # a trial at a lower load would have no frame
    return SideSearch(
        goal=Goal(
            maximum=load,
            minimum=min(load, max(gap, one_frame)),
            resolution=gap,
            search_duration_ns=trial_ns,
            trial_duration_ns=trial_ns,
        )
    )
