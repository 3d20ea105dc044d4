"""Where frames of a trial were lost, as far as that is known, and what it would be if some of them had come back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gatemark.trial.loss import LOSS_SLICES, chance_inside
from gatemark.trial.report import Counts, DirectionResult, TrialReport


class LossPlaces:
    """Where frames of a direction were lost: its longest runs of losses, and how many others in each hundredth.

    Of the others it is not known where in their hundredth they are: they count for the first who asks for a part of it.
    """

    def __init__(self, direction: DirectionResult) -> None:
        self._runs = direction.longest_loss_runs
        self._frames = direction.intended
        of_classes = [counts.loss.by_slice for _, counts in direction.classes]
        self._others = [
            max(0, sum(lost) - self._in_runs(self._begin_of(number), self._begin_of(number + 1)))
            for number, lost in enumerate(zip(*of_classes, strict=True))
        ]

    def take(self, first: int, end: int) -> int:
        """Return how many frames at most were lost from index `first` to before `end`."""
        lost = self._in_runs(first, end)
        for number, others in enumerate(self._others):
            if self._begin_of(number) < end and first < self._begin_of(number + 1):
                lost += others
                self._others[number] = 0
        return lost

    def _begin_of(self, number: int) -> int:
        """Return the first index of a hundredth."""
        return -(-number * self._frames // LOSS_SLICES)

    def _in_runs(self, first: int, end: int) -> int:
        return sum(max(0, min(end, run.index + run.length) - max(first, run.index)) for run in self._runs)


def chance_of_places(direction: DirectionResult, spans: Iterable[tuple[int, int]]) -> float:
    """Return the natural logarithm of the chance that as many runs of losses begin in spans of frames as do.

    Spans are the first frame and that behind the last one, and share no frames. A run is one event, however long.
    """
    covered = inside = 0
    for first, end in spans:
        covered += max(0, min(end, direction.intended) - first)
        inside += sum(1 for run in direction.longest_loss_runs if first <= run.index < end)
    return chance_inside(len(direction.longest_loss_runs), inside, covered / direction.intended)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """How many frames of a direction, of whatever class, are taken for delivered."""

    lost: int
    lost_or_late: int


def with_delivered(report: TrialReport, excused: Mapping[str, Missing]) -> TrialReport:
    """Return the report with so many frames of directions delivered, and as many connections established."""
    directions = tuple(
        _with_delivered(direction, excused[direction.direction]) if direction.direction in excused else direction
        for direction in report.directions
    )
    connections = report.connections
    if connections is not None:
        before, after = (sum(way.foreground.received for way in ways) for ways in (report.directions, directions))
        established = min(connections.count, connections.established + after - before)
        connections = connections.model_copy(update={"established": established})
    return report.model_copy(update={"directions": directions, "connections": connections})


def _with_delivered(direction: DirectionResult, excused: Missing) -> DirectionResult:
    lost_left, left = excused.lost, excused.lost_or_late
    classes: dict[str, Counts] = {}
    for name, counts in direction.classes:
        lost = min(counts.lost, lost_left, left)
        late = min(counts.late, left - lost)
        lost_left -= lost
        left -= lost + late
        delivered = {
            "received": counts.received + lost + late,
            "lost": counts.lost - lost,
            "late": counts.late - late,
        }
        classes[name] = counts.model_copy(update=delivered)
    return direction.model_copy(update=classes)
