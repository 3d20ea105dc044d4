"""For all gateways: the establishment rate is one that passed, and the capacity is the truth, however it overflows."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.property.examples import examples
from tests.trial_facts import blank, measured

from gatemark.procedures.connection_establishment_rate.run import ALPHAS, choose_alpha
from gatemark.procedures.connection_tracking_table_capacity.run import CapacityGoal, search_capacity
from gatemark.procedures.measured import Measured, search_rate
from gatemark.search.goal import Goal, Measure, Observation, Outcome, SearchResult, sending_ns
from gatemark.trial.loss import LossFacts
from gatemark.trial.record import ConnectionFacts, PhaseOne
from gatemark.trial.report import Counts, DirectionResult, TrialReport

SLICES = 100
Behaviour = Literal["refused", "evicted", "untranslated", "collapsed"]


@dataclass
class Gateway:
    """A gateway with a table, and a Tester before it; every trial begins with an empty table."""

    rate: int
    """Connections per second that it establishes at most while the table is small."""
    capacity: int = 10**12
    behaviour: Behaviour = "refused"
    evicts: Literal["oldest", "newest", "spread"] = "oldest"
    noise: float = 0.0
    slower: float = 1.0
    """Share of the rate that is left when the table is full."""
    reply_rate: int | None = None
    """Replies per second that it forwards; None: as many as come."""
    tester_limit: int | None = None
    seed: int = 0
    asked: list[Measure] = field(default_factory=list)

    def measure(self, step: Measure) -> Measured:
        """Make one trial."""
        self.asked.append(step)
        connections, rate = step.connections, step.frames_per_second
        assert connections is not None
        assert step.duration_ns == sending_ns(connections, rate)
        if self.tester_limit is not None and rate > self.tester_limit:
            return Measured(observation=observed(step, Outcome.TESTER_LIMITED))
        spread = random.Random(f"{self.seed}/{len(self.asked)}").uniform(-1, 1)
        filled = min(1.0, connections / self.capacity)
        able = int(self.rate * (1 - (1 - self.slower) * filled) * (1 + self.noise * spread))
        over = max(0, connections - self.capacity)
        lost = max(1, connections - connections * able // rate) if rate > able else 0
        if over and self.behaviour == "collapsed":
            return trial(step, Outcome.FAILED, report(connections), ConnectionFacts(collapse="it is gone"))
        refused = max(lost, over) if self.behaviour == "refused" else lost
        untranslated = max(0, over - lost) if self.behaviour == "untranslated" else 0
        first = report(connections, lost=range(connections - refused, connections), untranslated=untranslated)
        if refused or untranslated or step.alpha is None:
            outcome = Outcome.FAILED if refused or untranslated else Outcome.PASSED
            return trial(step, outcome, first, ConnectionFacts(phase_one=(blank(PhaseOne, report=first),)))
        gone = self._evicted(connections, over) if self.behaviour == "evicted" else range(0)
        asked_for = int(step.alpha * rate)
        if not gone and self.reply_rate is not None and asked_for > self.reply_rate:
            gone = range(0, connections, 2)
        outcome = Outcome.FAILED if gone else Outcome.PASSED
        facts = ConnectionFacts(phase_one=(blank(PhaseOne, report=first),))
        return trial(step, outcome, report(connections, lost=gone), facts)

    def _evicted(self, connections: int, over: int) -> Sequence[int]:
        if self.evicts == "oldest":
            return range(over)
        if self.evicts == "newest":
            return range(connections - over, connections)
        return sorted(random.Random(self.seed).sample(range(connections), over))


def observed(step: Measure, outcome: Outcome) -> Observation:
    return Observation(frames_per_second=step.frames_per_second, duration_ns=step.duration_ns, outcome=outcome)


def trial(step: Measure, outcome: Outcome, report: TrialReport, facts: ConnectionFacts) -> Measured:
    return measured(observed(step, outcome), report, connections=facts)


def report(offered: int, *, lost: Sequence[int] = (), untranslated: int = 0) -> TrialReport:
    by_slice = Counter(index * SLICES // offered for index in lost)
    counts = blank(
        Counts,
        intended=offered,
        offered=offered,
        received=offered - len(lost) - untranslated,
        faulty=untranslated,
        lost=len(lost),
        faults={"untranslated_source": untranslated} if untranslated else {},
        loss=blank(LossFacts, by_slice=tuple(by_slice[number] for number in range(SLICES))),
    )
    direction = blank(
        DirectionResult,
        direction="forward",
        frames_per_second=1,
        intended_duration_ns=1,
        sending_ns=1,
        lateness_max_ns=0,
        gave_up=False,
        foreground=counts,
    )
    return blank(TrialReport, directions=(direction,))


def rate_goal(*, maximum: int, minimum: int = 1, resolution: int = 1, connections: int = 1000) -> Goal:
    return Goal(maximum=maximum, minimum=minimum, resolution=resolution, connections=connections)


@st.composite
def rate_goals(draw: st.DrawFn) -> Goal:
    maximum = draw(st.integers(1, 20_000_000))
    return rate_goal(
        maximum=maximum,
        minimum=draw(st.integers(1, maximum)),
        resolution=draw(st.integers(1, max(1, maximum // 2))),
        connections=draw(st.integers(1, 100_000)),
    )


def check_rate(goal: Goal, search_result: SearchResult, asked: list[Measure]) -> None:
    rates = [step.frames_per_second for step in asked]
    assert rates[0] == goal.maximum
    assert len(rates) == len(set(rates))
    assert all(goal.minimum <= rate <= goal.maximum for rate in rates)
    for bound in (search_result.lower_bound, search_result.upper_bound, search_result.tester_limited_at):
        assert bound is None or bound in rates


@examples(50, many=200)
@given(goal=rate_goals(), data=st.data())
def test_the_establishment_rate_is_bracketed_or_the_tester_is_named(goal: Goal, data: st.DataObject) -> None:
    gateway = Gateway(
        rate=data.draw(st.integers(0, goal.maximum * 5 // 4)),
        tester_limit=data.draw(st.one_of(st.none(), st.integers(0, goal.maximum))),
    )
    result = search_rate(goal, gateway.measure)
    check_rate(goal, result, gateway.asked)
    limit = gateway.tester_limit
    reach = gateway.rate if limit is None else min(gateway.rate, limit)
    match result.kind:
        case "found":
            assert result.lower_bound is not None and result.upper_bound is not None
            assert result.lower_bound <= gateway.rate < result.upper_bound <= result.lower_bound + goal.resolution
        case "maximum_passed":
            assert reach >= goal.maximum
        case "nothing_passes":
            assert gateway.rate < goal.minimum
            assert result.upper_bound == goal.minimum
        case "tester_limited":
            assert limit is not None
            assert limit < goal.maximum
            assert (result.lower_bound or 0) <= reach


@examples(25, many=100)
@given(goal=rate_goals(), share=st.fractions(0, 1), noise=st.sampled_from([0.0, 0.1, 0.5]))
def test_every_prefix_of_an_establishment_search_replays(goal: Goal, share: Fraction, noise: float) -> None:
    def gateway() -> Gateway:
        return Gateway(rate=int(share * goal.maximum), noise=noise)

    once, again = gateway(), gateway()
    result = search_rate(goal, once.measure)
    check_rate(goal, result, once.asked)
    replayed = [again.measure(step) for step in once.asked]
    assert again.asked == once.asked
    held = iter(replayed)
    assert search_rate(goal, lambda _: next(held)) == result


@examples(50, many=200)
@given(
    rate=st.integers(1, 1_000_000),
    reply_share=st.one_of(st.none(), st.fractions(Fraction(1, 100), 2)),
    noise=st.sampled_from([0.0, 0.02]),
    seed=st.integers(0, 100),
)
def test_the_alpha_that_does_not_matter_is_the_largest_that_does_not(
    rate: int, reply_share: Fraction | None, noise: float, seed: int
) -> None:
    goal = rate_goal(maximum=1_000_000, resolution=1000)
    reply_rate = None if reply_share is None else int(reply_share * rate)
    gateway = Gateway(rate=rate, reply_rate=reply_rate, noise=noise, seed=seed)
    reference = [search_rate(goal, gateway.measure) for _ in range(5)]
    floor = min(result.lower_bound or 0 for result in reference) - goal.resolution
    chosen = choose_alpha(goal, reference, gateway.measure)
    shares = [tried.alpha for tried in chosen.tried]
    assert shares == list(ALPHAS[: len(shares)])
    *rejected, last = chosen.tried
    assert all((tried.lower_bound or 0) < floor for tried in rejected)
    assert chosen.alpha in shares
    assert chosen.result.lower_bound in [tried.lower_bound for tried in chosen.tried if tried.alpha == chosen.alpha]
    if (last.lower_bound or 0) >= floor:
        assert chosen.alpha == last.alpha
    else:
        assert len(shares) == len(ALPHAS)
        assert (chosen.result.lower_bound or 0) == max(tried.lower_bound or 0 for tried in chosen.tried)
    if noise == 0 and (reply_rate is None or reply_rate >= rate):
        assert chosen.alpha == 1


def capacity_goal(*, start: int, maximum: int, resolution: int = 1, e: int = 1000) -> CapacityGoal:
    rates = Goal(maximum=1_000_000, minimum=1, resolution=e, connections=start, alpha=Fraction(1))
    return CapacityGoal(rates=rates, maximum=maximum, resolution=resolution, beta=Fraction(1, 5), gamma=Fraction(2, 5))


@st.composite
def capacity_goals(draw: st.DrawFn) -> CapacityGoal:
    start = draw(st.integers(1, 5000))
    return capacity_goal(
        start=start,
        maximum=draw(st.integers(start, 100_000)),
        resolution=draw(st.sampled_from([1, 1, 2, 10, 1000])),
        e=draw(st.sampled_from([1, 1000, 10_000, 500_000])),
    )


gateways = st.builds(
    Gateway,
    rate=st.integers(1000, 2_000_000),
    capacity=st.integers(1, 120_000),
    behaviour=st.sampled_from(["refused", "evicted", "untranslated", "collapsed"]),
    evicts=st.sampled_from(["oldest", "newest", "spread"]),
    noise=st.sampled_from([0.0, 0.05, 0.2]),
    slower=st.sampled_from([1.0, 0.9, 0.7]),
    seed=st.integers(0, 1000),
)


@examples(75, many=300)
@given(goal=capacity_goals(), gateway=gateways)
@example(  # as in the papers, a hundredth of the size
    goal=capacity_goal(start=10_000, maximum=400_000, e=100_000),
    gateway=Gateway(rate=600_000, capacity=41_943, behaviour="refused", noise=0.1),
)
def test_the_capacity_is_found_within_its_error(goal: CapacityGoal, gateway: Gateway) -> None:
    result = search_capacity(goal, gateway.measure)
    truth = gateway.capacity
    tried = [(step.connections, step.frames_per_second) for step in gateway.asked]
    assert len(tried) == len(set(tried))
    assert all(step.alpha == goal.rates.alpha for step in gateway.asked)
    match result.kind:
        case "found":
            assert result.lower_bound is not None and result.upper_bound is not None
            assert result.lower_bound <= truth < result.upper_bound <= result.lower_bound + goal.resolution
        case "maximum_passed":
            assert result.lower_bound == goal.maximum <= truth
        case "nothing_passes":
            assert truth < goal.start
            assert result.upper_bound == goal.start
        case kind:
            raise AssertionError(kind)
    if result.upper_bound is None:
        assert result.overflow is None
        assert result.lost_connections is None
    else:
        assert result.overflow == gateway.behaviour
        assert (result.lost_connections is not None) == (gateway.behaviour == "evicted")


@examples(25, many=100)
@given(goal=capacity_goals(), gateway=gateways)
def test_a_size_that_passes_at_the_safe_rate_costs_one_trial(goal: CapacityGoal, gateway: Gateway) -> None:
    gateway.noise, gateway.slower = 0.0, 1.0
    result = search_capacity(goal, gateway.measure)
    per_size = Counter(step.connections for step in gateway.asked)
    for step in result.steps[1:]:
        ceiling = step.rate if step.stored else None
        assert not step.stored or (per_size[step.connections] == 1 and ceiling == result.steps[0].rate)
    sizes = [step.connections for step in result.steps]
    assert max(sizes) <= goal.maximum
    if result.kind == "found" and goal.start < gateway.capacity:
        exponential = [step for step in result.steps if step.search == "exponential"]
        assert [step.connections for step in exponential] == [
            min(goal.start << count, goal.maximum) for count in range(1, len(exponential) + 1)
        ]


@examples(25, many=100)
@given(evicts=st.sampled_from(["oldest", "newest", "spread"]), truth=st.integers(1000, 50_000), seed=st.integers(0, 99))
def test_which_connections_were_evicted(evicts: Literal["oldest", "newest", "spread"], truth: int, seed: int) -> None:
    goal = capacity_goal(start=100, maximum=100_000, resolution=truth // 10)
    gateway = Gateway(rate=100_000, capacity=truth, behaviour="evicted", evicts=evicts, seed=seed)
    result = search_capacity(goal, gateway.measure)
    assume(result.upper_bound is not None and result.upper_bound - truth > 20)
    assert result.lost_connections == evicts


@examples(25, many=100)
@given(goal=capacity_goals(), gateway=gateways, limit=st.integers(0, 1_000_000))
def test_a_tester_at_its_limit_is_never_taken_for_a_full_table(
    goal: CapacityGoal, gateway: Gateway, limit: int
) -> None:
    gateway.tester_limit = limit
    result = search_capacity(goal, gateway.measure)
    assert result.lower_bound is None or result.lower_bound <= gateway.capacity
    assert result.upper_bound is None or result.upper_bound > gateway.capacity
    if result.kind == "nothing_passes":
        assert result.upper_bound == goal.start


@examples(25, many=100)
@given(goal=capacity_goals(), gateway=gateways, share=st.fractions(0, 1))
def test_every_prefix_of_a_capacity_search_replays(goal: CapacityGoal, gateway: Gateway, share: Fraction) -> None:
    held: list[Measured] = []

    def recording(step: Measure) -> Measured:
        held.append(gateway.measure(step))
        return held[-1]

    result = search_capacity(goal, recording)
    cut, whole, count = int(share * len(held)), list(gateway.asked), 0

    def replaying(step: Measure) -> Measured:
        nonlocal count
        assert step == whole[count]
        count += 1
        if count <= cut:
            return held[count - 1]
        gateway.asked = whole[: count - 1]
        return gateway.measure(step)

    assert search_capacity(goal, replaying) == result
    assert count == len(held)
