"""MLRsearch (RFC 9971) through the package of the same name, with the goal of RFC 2544.

One goal: final trial duration and duration sum are the full trial, the loss ratio is the tolerance, the exceed ratio is
0. Loads are whole frames per second in one direction. The loss ratio handed over is the *highest* of all directions and
classes, not the aggregate, so that a trial passes here exactly if it passes everywhere else. The package calls back and
cannot pause; a killed search resumes because the journal answers `measure` first, which replays it.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from gatemark.search.binary import narrow, next_step, upper_end
from gatemark.search.goal import Goal, Measure, Observation, Outcome, Purpose, SearchResult, bounds_of

SEARCH_SECONDS_MAX = 10.0 * 365 * 86_400
"""The package gives up after this wall time; a search is ended by its bounds, not by a clock."""

RELATIVE_WIDTH_MAX = 0.5
"""The package requires less than 1; a resolution this wide is reached by halving once."""

REFERENCE_MARGIN_DIVISOR = 50
"""The upper bound may be above what was forwarded of the maximum by a fiftieth of what was forwarded."""

NANOSECONDS_PER_SECOND = 1_000_000_000


def search(goal: Goal, measure: Callable[[Measure], Observation]) -> SearchResult:
    """Search with trials made by `measure`; its exceptions pass through.

    MLRsearch takes a relative width. Relative to the maximum, bounds at a tenth of it would be ten times narrower than
    the resolution, at the cost of a full-length trial for each halving. So the width is relative to what the gateway
    forwards of the maximum, the package's first trial. If the bounds turn out to be higher, as with a gateway that
    collapses under overload, the package searches again with a narrower width, and trials already made cost nothing.
    The claim follows the same rule as for the binary search, from the trials of this search. The package's loads are
    finer than whole frames/s, so one of ours may have both passed and failed; where that leaves a gap, full-length
    trials close it.

    An open-ended search first doubles the load of short trials until one does not pass: that is the package's maximum.
    """
    measurer = _Measurer(goal, measure)
    while isinstance(end := upper_end(goal, measurer.history), Measure):
        measurer.observe(end)
    goal = goal.ending_at(end)
    choose = next_step
    if goal.maximum - goal.minimum > goal.gap:  # the package never ends with an interval narrower than its width
        choose = narrow
        reference = _reference(goal, measurer)
        _let_the_package_search(goal, measurer, reference)
        bounds = bounds_of(measurer.history, pass_duration_ns=goal.durations_ns[1])
        if bounds.upper is not None and bounds.upper > reference:
            _let_the_package_search(goal, measurer, bounds.upper)
    while isinstance(step := choose(goal, measurer.history), Measure):
        measurer.observe(step)
    return step


def _reference(goal: Goal, measurer: _Measurer) -> int:
    """Return the load that the relative width refers to: a little above what is forwarded of the maximum."""
    search_ns, _ = goal.durations_ns
    first = measurer.observe(Measure(frames_per_second=goal.maximum, duration_ns=search_ns, purpose="search"))
    if first.outcome is not Outcome.FAILED:
        return goal.maximum
    forwarded = (first.offered - first.undelivered) * NANOSECONDS_PER_SECOND // search_ns
    return min(goal.maximum, max(goal.minimum, forwarded + forwarded // REFERENCE_MARGIN_DIVISOR))


def _let_the_package_search(goal: Goal, measurer: _Measurer, reference: int) -> None:
    search_ns, trial_ns = goal.durations_ns
    config = Config(
        goals=[
            SearchGoal(
                loss_ratio=float(goal.loss_tolerance),
                exceed_ratio=0.0,
                relative_width=min(RELATIVE_WIDTH_MAX, goal.gap / reference),
                initial_trial_duration=search_ns / NANOSECONDS_PER_SECOND,
                final_trial_duration=trial_ns / NANOSECONDS_PER_SECOND,
                duration_sum=trial_ns / NANOSECONDS_PER_SECOND,
                fail_fast=False,
            )
        ],
        min_load=float(goal.minimum),
        max_load=float(goal.maximum),
        search_duration_max=SEARCH_SECONDS_MAX,
        warmup_duration=0.0,
    )
    MultipleLossRatioSearch(config=config).search(measurer=measurer, debug=_ignore)


class _Measurer(AbstractMeasurer):  # type: ignore[misc]  # the package has no types
    """Answers the package's requests, each load and duration once: its loads are finer than whole frames per second."""

    def __init__(self, goal: Goal, measure: Callable[[Measure], Observation]) -> None:
        self._goal = goal
        self._measure = measure
        self._known: dict[tuple[int, int], Observation] = {}

    @property
    def history(self) -> tuple[Observation, ...]:
        """Every trial of this search, in order."""
        return tuple(self._known.values())

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """Make one trial; durations are in seconds, loads in frames per second in one direction."""
        _, trial_ns = self._goal.durations_ns
        duration_ns = min(round(intended_duration * NANOSECONDS_PER_SECOND), trial_ns)
        purpose: Purpose = "confirmation" if duration_ns == trial_ns else "search"
        trial = self.observe(Measure(frames_per_second=int(intended_load), duration_ns=duration_ns, purpose=purpose))
        offered, lost, intended = self._counts(trial)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            intended_count=intended,
            offered_count=offered,
            loss_count=lost,
        )

    def observe(self, step: Measure) -> Observation:
        """Make one trial, or return what it gave before."""
        asked = step.frames_per_second, step.duration_ns
        if asked not in self._known:
            self._known[asked] = self._measure(step)
        return self._known[asked]

    def _counts(self, trial: Observation) -> tuple[int, int, int]:
        """Return offered, lost and intended frames as the package is to see them.

        A load where the Tester was the limit is reported in MLRsearch's own terms, as frames that were not sent: half
        of them, so that the package looks lower. It knows no third outcome, but our own conclusion does.
        """
        if trial.outcome is Outcome.TESTER_LIMITED:
            return (1, 0, 2) if self._goal.loss_tolerance < Fraction(1, 2) else (0, 0, 1)
        offered, lost = max(1, trial.offered), trial.undelivered
        tolerance = float(self._goal.loss_tolerance)
        if trial.outcome is Outcome.FAILED and lost / offered <= tolerance:  # failed for duplicates, say
            lost = min(offered, int(self._goal.loss_tolerance * offered) + 1)
        return offered, lost, offered


def _ignore(_: str) -> None:
    """Take the package's debug text and drop it: every trial is in the journal."""
