"""How long the runs of stateful gateways take: both test phases at an assumed rate, and all waits. Pure.

A search is estimated by searching: on a gateway that establishes connections as fast as they are tried for the least
work, and on a slow one for the most.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from gatemark.campaign.stateful_loads import capacity_goal, establishment_goal, foreground_of
from gatemark.config.model import Campaign
from gatemark.procedures.measured import Measured
from gatemark.procedures.stateful.connection_establishment import measure_establishment_rate
from gatemark.procedures.stateful.connection_tracking_table_capacity import measure_capacity
from gatemark.procedures.stateful.connection_validation import ALPHAS
from gatemark.search.goal import Goal, Measure, Observation, Outcome, SearchResult, sending_ns
from gatemark.trial.cell import Cell, Run

ASSUMED_CONNECTIONS_PER_SECOND = 100_000
"""What the most work is estimated with: the connection establishment rate of a slow gateway on one processor."""

ASSUMED_RATE_MAX = 10_000_000
"""Frames/s or connections/s up to which a search that finds its maximum itself is estimated."""


@dataclass(frozen=True, slots=True)
class Work:
    """A number of trials, and the nanoseconds that they take."""

    trials: int = 0
    ns: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.trials + other.trials, self.ns + other.ns)

    def __mul__(self, times: int) -> Work:
        return Work(self.trials * times, self.ns * times)


LeastAndMost = tuple[Work, Work]


def least_and_most(works: Collection[Work]) -> LeastAndMost:
    """Return the fewest trials and the shortest time of any of these, and the most and longest."""
    trials, times = [work.trials for work in works], [work.ns for work in works]
    return Work(min(trials), min(times)), Work(max(trials), max(times))


def add_phase_one(campaign: Campaign, cell: Cell, line: int | None, work: LeastAndMost) -> LeastAndMost:
    """Return the work of trials of test phase 2 with the test phase 1 before each of them."""
    if cell.connections is None:
        return work
    least, most = work
    extra_ns = campaign.connections_model.timeout_ns + campaign.connections_model.gap_ns
    fast, slow = _phase_one_rates(campaign, cell, line)
    return (
        least + Work(0, least.trials * (sending_ns(cell.connections, fast) + extra_ns)),
        most + Work(0, most.trials * (sending_ns(cell.connections, slow) + extra_ns)),
    )


def tear_down_work(campaign: Campaign, cell: Cell, line: int | None) -> LeastAndMost:
    """Return the work of one repetition, without the time that the gateway takes to delete connections."""
    assert cell.connections is not None, "a run of this procedure has a number of connections"
    waits_ns = _phase_one_waits_ns(campaign)
    fast, slow = (sending_ns(cell.connections, rate) for rate in _phase_one_rates(campaign, cell, line))
    return Work(2, fast + waits_ns), Work(2, slow + waits_ns)


def establishment_work(campaign: Campaign, run: Run, line: int | None) -> LeastAndMost:
    """Return the work of all repetitions; where alpha is searched for, of finding it as well."""
    validated = run.procedure == "validated_connection_establishment_rate"
    goal = establishment_goal(campaign, run.cell, line, validated=validated)
    model = campaign.connection_establishment_rate
    fast, slow = _assumed_rates(goal)
    if validated and model is not None and model.alpha == "search":
        works = [
            _searched_alpha_work(campaign, goal, fast, ALPHAS[:1]),
            _searched_alpha_work(campaign, goal, slow, ALPHAS),
        ]
    else:
        works = [_repeated_work(campaign, goal, rate, campaign.repetitions) for rate in (fast, slow)]
    return least_and_most(works)


def capacity_work(campaign: Campaign, cell: Cell, line: int | None) -> LeastAndMost:
    """Return the work of all repetitions, if the table holds what it is configured for, else up to the maximum."""
    goal = capacity_goal(campaign, cell, line)
    size = campaign.gateway.table.size or goal.maximum

    def work(rate: int) -> Work:
        trials: list[Work] = []
        known: list[SearchResult] = []
        for _ in range(campaign.repetitions):
            again = replace(goal, rates=goal.rates.after(known))
            found = measure_capacity(again, lambda step: _assumed(campaign, step, rate, size, trials))
            known += [] if found.start is None else [found.start]
        return sum(trials, Work())

    return least_and_most([work(rate) for rate in _assumed_rates(goal.rates)])


def _assumed_rates(goal: Goal) -> tuple[int, int]:
    """Return the rates of the fastest gateway and of the slow one that a search is estimated for."""
    fast = goal.maximum if goal.ceiling is None else max(goal.maximum, ASSUMED_RATE_MAX)
    return fast, max(goal.minimum, min(fast, ASSUMED_CONNECTIONS_PER_SECOND))


def _searched_alpha_work(campaign: Campaign, goal: Goal, rate: int, alphas: Sequence[Fraction]) -> Work:
    """Return the work of all repetitions, of which the first one tries these shares."""
    reference, _ = _search(campaign, replace(goal, alpha=None), rate)
    known = goal.after([reference])
    searches = [_search(campaign, replace(known, alpha=alpha), rate) for alpha in alphas]
    first = sum((work for _, work in searches), Work())
    last = replace(goal, alpha=alphas[-1]).after([searches[-1][0]])
    return first + _repeated_work(campaign, last, rate, campaign.repetitions - 1)


def _repeated_work(campaign: Campaign, goal: Goal, rate: int, repetitions: int) -> Work:
    """Return the work of so many searches on a gateway that establishes `rate` connections per second."""
    found: list[SearchResult] = []
    work = Work()
    for _ in range(repetitions):
        result, added = _search(campaign, goal.after(found), rate)
        found.append(result)
        work += added
    return work


def _search(campaign: Campaign, goal: Goal, rate: int) -> tuple[SearchResult, Work]:
    """Return the outcome and the work of one search on a gateway that establishes `rate` connections per second."""
    assert goal.connections is not None, "the goal of a search for this rate has a number of connections"
    size, trials = goal.connections, list[Work]()
    result = measure_establishment_rate(goal, lambda step: _assumed(campaign, step, rate, size, trials))
    return result, sum(trials, Work())


def _assumed(campaign: Campaign, step: Measure, rate: int, size: int, trials: list[Work]) -> Measured:
    """Note one trial and return what a gateway with this rate and table makes of it."""
    connections = step.connections or 0
    passed = step.frames_per_second <= rate and connections <= size
    trials.append(Work(1, _trial_ns(campaign, step, connections, validated=step.alpha is not None)))
    outcome = Outcome.PASSED if passed else Outcome.FAILED
    observation = Observation(frames_per_second=step.frames_per_second, duration_ns=step.duration_ns, outcome=outcome)
    return Measured(observation=observation)


def _trial_ns(campaign: Campaign, step: Measure, connections: int, *, validated: bool) -> int:
    length = step.duration_ns + _phase_one_waits_ns(campaign)
    if validated:
        trial, alpha = campaign.trial, step.alpha or Fraction(1)
        length += sending_ns(connections, max(1, int(alpha * step.frames_per_second)))
        length += campaign.connections_model.gap_ns + trial.drain_ns + trial.rest_ns
    return length


def _phase_one_waits_ns(campaign: Campaign) -> int:
    return campaign.trial.settle_ns + campaign.trial.learn_ns + campaign.connections_model.timeout_ns


def _phase_one_rates(campaign: Campaign, cell: Cell, line: int | None) -> tuple[int, int]:
    """Return the highest rate that test phase 1 may have, and the one that is assumed for the most work."""
    wanted = campaign.connections_model.rate
    if not isinstance(wanted, Fraction):
        return wanted, wanted
    if campaign.connection_establishment_rate is not None:
        fastest, _ = _assumed_rates(establishment_goal(campaign, cell, line, validated=False))
    else:
        fastest = foreground_of(cell, line) or ASSUMED_CONNECTIONS_PER_SECOND
    slow = min(fastest, ASSUMED_CONNECTIONS_PER_SECOND)
    return max(1, int(wanted * fastest)), max(1, int(wanted * slow))
