"""What the failed trials of a run have in common, and whether a search ended on a loss that is no limit. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from gatemark.causes.bursts import CausesOfBursts
from gatemark.causes.losses import CHANCE_MAX
from gatemark.causes.rare import Offered, lost_alike
from gatemark.causes.same_frames import Lost, lost_of, same_frames
from gatemark.facts import CauseWords, LossCause, fields_of
from gatemark.trial.cause import FEW_LOST, Cause
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import TrialReport
from gatemark.units import format_rate

AT_OTHER_LOADS = frozenset(("uniform", "residue"))
"""Causes of which one load does not tell whether they depend on it."""
LOADS_APART = Fraction(3, 2)
"""A loss of the same share is independent of the load if the loads differ by this factor at least."""
SHARES_APART = 2
"""Shares are the same if they differ by less than this factor."""
RUNS_MIN = 20
"""Of fewer runs of losses the share says little: a run is one event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What a failed trial lost of a class in a direction."""

    direction: str
    offered: int
    """Frames."""
    lost: int
    runs: int
    """Runs of losses."""
    first_index: int
    """First frame lost, of the direction."""
    events: Fraction
    """Runs of losses for each frame of the direction: how frequent they are."""

    @property
    def share(self) -> Fraction:
        """Lost of the frames offered."""
        return Fraction(self.lost, self.offered)


@dataclass(slots=True)
class Failure:
    """A failed trial: its load, how many frames it offered and lost, and why."""

    load: int
    lost: int
    undelivered: int
    """Lost, late or faulty."""
    offered: int
    parts: Mapping[str, _Part]
    """By direction and class."""
    causes: tuple[Cause, ...]
    frames: Mapping[str, Lost]
    """Which frames were lost, by direction, where that is known."""

    @property
    def forwarded(self) -> int:
        """Frames forwarded per second, in the measure of the load."""
        return self.load * (self.offered - self.lost) // self.offered

    @property
    def delivered(self) -> int:
        """The same without frames that arrived faulty or late (RFC 2285 section 3.6.1)."""
        return self.load * (self.offered - self.undelivered) // self.offered if self.offered else 0


@dataclass(slots=True)
class _Silence:
    """A trial in which not a single frame of some direction arrived."""

    number: int
    repetition: int
    load: int
    ways: frozenset[str]
    """Directions of which this holds, and did in the trials before it that are kept."""


@dataclass(slots=True)
class CausesOfRun:
    """The causes of a run. Memory grows with the number of failed trials, and of loads at which trials passed."""

    delivered_most: Failure | None = None
    """The failed trial with the highest forwarding rate."""
    _claims: dict[CauseWords, list[tuple[int, Cause]]] = field(default_factory=dict)
    """In which trials each cause was claimed: load, and cause of the trial."""
    _failures: dict[int, list[Failure]] = field(default_factory=dict)
    _offered: dict[str, dict[int, Offered]] = field(default_factory=dict)
    """By direction and class, then load: the frames of all trials."""
    _arrived: dict[tuple[int, int], dict[str, int]] = field(default_factory=dict)
    """By repetition and load, then direction: so many frames, from the first one on, arrived in a trial that passed."""
    _passed_maximum: int = 0
    """Highest load at which a trial passed."""
    _silent: list[_Silence] = field(default_factory=list)
    """The last trials, as far back as no frame of some direction arrived in any of them."""
    _bursts: CausesOfBursts = field(default_factory=CausesOfBursts)
    """What the run sent in place of loads, if it looked for the longest burst."""

    def add(self, trial: TrialRecord) -> None:
        """Count a trial, of whatever outcome."""
        if not trial.is_decisive or trial.verdict is None:
            return
        if trial.order.step.is_burst:
            self._bursts.add(trial)
        else:
            self._note_silence(trial)
        parts, load = _parts_of(trial.report), trial.order.step.frames_per_second
        self._note_offered(parts, load, failed=not trial.verdict.passed)
        if trial.verdict.passed:
            self._note_arrivals(trial)
            return
        failure = Failure(
            load=load,
            lost=trial.report.lost_count,
            undelivered=sum(way.undelivered for way in trial.report.directions),
            offered=sum(way.offered for way in trial.report.directions),
            parts=parts,
            causes=trial.causes,
            frames={way.direction: lost for way in trial.report.directions if (lost := lost_of(way, load)) is not None},
        )
        self._failures.setdefault(trial.order.repetition, []).append(failure)
        if self.delivered_most is None or failure.delivered > self.delivered_most.delivered:
            self.delivered_most = failure
        for cause in trial.causes:
            words = CauseWords(**fields_of(cause, CauseWords))
            self._claims.setdefault(words, []).append((load, cause))

    def _note_offered(self, parts: Mapping[str, _Part], load: int, *, failed: bool) -> None:
        for name, part in parts.items():
            offered = self._offered.setdefault(name, {}).setdefault(load, Offered(load=load))
            offered.frames += part.offered
            offered.lost += part.lost
            offered.events += part.runs
            offered.failed += failed

    def _note_arrivals(self, trial: TrialRecord) -> None:
        load = trial.order.step.frames_per_second
        self._passed_maximum = max(self._passed_maximum, load)
        arrived = self._arrived.setdefault((trial.order.repetition, load), {})
        for way in trial.report.directions:
            first = min([way.offered, *(counts.loss.first_index for _, counts in way.classes if counts.lost)])
            arrived[way.direction] = max(arrived.get(way.direction, 0), first)

    def _note_silence(self, trial: TrialRecord) -> None:
        ways = frozenset(way.direction for way in trial.report.directions if way.is_lost)
        order, kept = trial.order, ways & self._silent[-1].ways if self._silent else ways
        if not kept:
            self._silent.clear()
        if ways:
            load = order.step.frames_per_second
            self._silent.append(
                _Silence(number=order.trial_number, repetition=order.repetition, load=load, ways=kept or ways)
            )

    def most_shared(self) -> list[LossCause]:
        """Return the causes, those of most trials first."""
        shared = [_shared(words, claims) for words, claims in self._claims.items()]
        return sorted(shared, key=lambda cause: (-cause.trials, -cause.lost))

    def no_limit(self) -> str | None:
        """Return why the searches of the run end on a loss that is no limit, as a sentence; None if they do not."""
        if self._bursts.any_sent:
            return self._bursts.no_limit()
        if (words := self._stopped_words()) is not None:
            return words
        told = (self._fixed_words(repetition) or self._same_share(repetition) for repetition in self._failures)
        words = next(filter(None, told), None) or self._same_frames() or self._rare()
        return (
            None
            if words is None
            else f"the loss does not depend on the load, so no load is a limit of the gateway: {words}; mend that, or"
            " leave it out of the traffic"
        )

    def _stopped_words(self) -> str | None:
        """Return that the gateway has stopped for good, and a search took that for its limit; None if it did not."""
        loads = [trial.load for trial in self._silent]
        if not loads or min(loads) > self._passed_maximum:
            return None
        repetitions = {trial.repetition for trial in self._silent}
        lowest = min(failure.load for repetition in repetitions for failure in self._failures[repetition])
        if min(loads) > lowest:
            return None
        ways = " and ".join(sorted(self._silent[-1].ways))
        return (
            f"the gateway stopped forwarding, so no load is a limit of it: {ways} no frame arrived from trial"
            f" {self._silent[0].number} to the end of the run, {_loads_words(loads)}, and before that"
            f" {format_rate(self._passed_maximum)} frames/s passed; see why it stopped, and start it again"
        )

    def _same_frames(self) -> str | None:
        """Return that the lowest failures of the run lost the same frames in a direction; None if they did not."""
        every = [failure for failures in self._failures.values() for failure in failures]
        if not every:
            return None
        for direction in min(every, key=lambda failure: failure.load).frames:
            lost = [failure.frames[direction] for failure in every if direction in failure.frames]
            arrived = max((frames.get(direction, 0) for frames in self._arrived.values()), default=0)
            if (words := same_frames(direction, lost, arrived)) is not None:
                return words
        return None

    def _rare(self) -> str | None:
        """Return that frames were lost equally often at loads far apart, seldom as it was; None if they were not."""
        for name, at_loads in self._offered.items():
            if alike := lost_alike(at_loads.values(), LOADS_APART):
                failed = [offered for offered in alike if offered.failed]
                frames, events = (sum(getattr(offered, key) for offered in alike) for key in ("frames", "events"))
                return (
                    f"{_trials_words([offered.load for offered in failed for _ in range(offered.failed)])} {name} lost"
                    f" frames about as often as in all trials up to there, once in {frames // events:,} frames"
                )
        return None

    def _fixed_words(self, repetition: int) -> str | None:
        """Return what the losses of a repetition depend on in place of the load; None if it ended on a limit."""
        ascending = sorted(self._failures[repetition], key=lambda failure: failure.load)
        explained = next((failure for failure in ascending if failure.causes or failure.lost >= FEW_LOST), None)
        if explained is None or not all(cause.is_fixed or cause.cause in AT_OTHER_LOADS for cause in explained.causes):
            return None
        standing = (cause for cause in explained.causes if not self._is_refuted(repetition, explained, cause))
        if (first := next(standing, None)) is None:
            return None
        name = _name_of(first)
        alike = [failure for failure in ascending if any(_is_same(cause, first) for cause in failure.causes)]
        if first.cause in AT_OTHER_LOADS:
            alike = _of_one_share(alike, explained, name)
            if alike[-1].load < LOADS_APART * alike[0].load:
                return None
        return f"{_trials_words(failure.load for failure in alike)} {name} lost {first.what}"

    def _same_share(self, repetition: int) -> str | None:
        """Return that two trials lost the same share, although more was forwarded in one than was offered in the other.

        None if no two did. A gateway at its limit does not: it can forward what it forwards at a higher load. One whose
        queue is seldom emptied may, but then a trial at a still lower load shows that it has a limit.
        """
        ascending = sorted(self._failures[repetition], key=lambda failure: failure.load)
        for low in ascending:
            for name, part in low.parts.items():
                if part.runs < RUNS_MIN or self._would_have_shown(repetition, low, part):
                    continue
                alike = [each for each in _of_one_share(ascending, low, name) if each.parts[name].runs >= RUNS_MIN]
                high = alike[-1]
                if high.load >= LOADS_APART * low.load and high.forwarded > low.load:
                    share = f"{100 * float(part.share):.2g} %"
                    trials = _trials_words(each.load for each in alike)
                    return f"{trials} {name} lost about the same share of its frames ({share})"
        return None

    def _is_refuted(self, repetition: int, failure: Failure, cause: Cause) -> bool:
        """Whether a trial that passed at a lower load shows that a loss depends on it: what it takes arrived."""
        part = failure.parts[_name_of(cause)]
        if cause.cause == "uniform":
            return self._would_have_shown(repetition, failure, part)
        return part.first_index < self._arrived_below(repetition, failure, part)

    def _would_have_shown(self, repetition: int, failure: Failure, part: _Part) -> bool:
        """Whether so many frames arrived at a lower load that losses as frequent would have shown among them."""
        return -self._arrived_below(repetition, failure, part) * part.events < math.log(CHANCE_MAX)

    def _arrived_below(self, repetition: int, failure: Failure, part: _Part) -> int:
        """Return how many frames of a direction, from the first one on, arrived at a lower load in a trial that passed.

        Only of the same repetition: a gateway may have changed since another one.
        """
        lower = (frames for (of, load), frames in self._arrived.items() if of == repetition and load < failure.load)
        return max((frames.get(part.direction, 0) for frames in lower), default=0)


def _shared(words: CauseWords, claims: Sequence[tuple[int, Cause]]) -> LossCause:
    loads, causes = zip(*claims, strict=True)
    return LossCause(
        **dict(words),
        trials=len(claims),
        load_minimum=min(loads),
        load_maximum=max(loads),
        lost=sum(cause.lost for cause in causes),
        explained=sum(cause.explained for cause in causes),
        sentence=max(causes, key=lambda cause: cause.explained).sentence,
    )


def _parts_of(report: TrialReport) -> dict[str, _Part]:
    return {
        f"{way.direction} {name}": _Part(
            direction=way.direction,
            offered=counts.offered,
            lost=counts.lost,
            runs=counts.loss.runs,
            first_index=counts.loss.first_index,
            events=Fraction(counts.loss.runs, way.offered),
        )
        for way in report.directions
        for name, counts in way.classes
        if counts.offered
    }


def _name_of(cause: Cause) -> str:
    return f"{cause.direction} {cause.traffic_class}"


def _of_one_share(failures: Iterable[Failure], like: Failure, name: str) -> list[Failure]:
    """Return those that lost about as large a share of a direction and class as one of them."""
    share = like.parts[name].share
    return [
        failure
        for failure in failures
        if name in failure.parts
        and share < SHARES_APART * failure.parts[name].share
        and failure.parts[name].share < SHARES_APART * share
    ]


def _trials_words(loads: Iterable[int]) -> str:
    each = list(loads)
    trials = "a failed trial" if len(each) == 1 else f"{len(each)} failed trials"
    return f"in {trials} {_loads_words(each)}"


def _loads_words(loads: Iterable[int]) -> str:
    ascending = sorted(loads)
    lowest, highest = format_rate(ascending[0]), format_rate(ascending[-1])
    return f"at {lowest} frames/s" if lowest == highest else f"from {lowest} to {highest} frames/s"


def _is_same(cause: Cause, other: Cause) -> bool:
    """Whether two trials lost the same frames of a direction and class by the same."""
    kinds = [(each.cause, _name_of(each), each.what, each.is_fixed) for each in (cause, other)]
    return kinds[0] == kinds[1]
