"""The same frames are lost at every load: a frame is a function of its index, so it is the same one in every trial.

Rule: every frame that was lost in the failed trial with the lowest load was also lost in all others of which the lost
frames are known, at other loads too, and arrived in no trial that passed. Error: frames lost one after the other are
one event. If a trial loses frames without regard to which they are, such a run lies among them with the chance that the
first of its frames does: the share that is lost; and it begins where one of theirs does with the chance that a run
begins there. The chances of all runs and of the trials at other loads are multiplied: at one load a gateway may do the
same again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gatemark.causes.fields import WORDS
from gatemark.causes.losses import CHANCE_MAX, TRIED
from gatemark.trial.loss import LossRun
from gatemark.trial.report import DirectionResult
from gatemark.units import format_rate

NAMES_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Which frames of a direction were lost in a trial."""

    load: int
    offered: int
    runs: tuple[LossRun, ...]
    """All of them, ascending."""
    names: tuple[str, ...]
    """Flows or connections of some of them, or what else is known of a single one."""

    @property
    def count(self) -> int:
        return sum(run.length for run in self.runs)

    def holds(self, run: LossRun) -> bool:
        """Whether all frames of a run are among them."""
        return any(
            other.index <= run.index and run.index + run.length <= other.index + other.length for other in self.runs
        )

    def chance_of(self, run: LossRun) -> float:
        """Return the natural logarithm of the chance that they hold a run, in the way in which they do."""
        begins_alike = any(other.index == run.index for other in self.runs)
        return math.log((len(self.runs) if begins_alike else self.count) / self.offered)


def lost_of(direction: DirectionResult, load: int) -> Lost | None:
    """Return which frames a trial lost; None if it lost none, or in more places than are known."""
    lost = sum(counts.lost for _, counts in direction.classes)
    if not lost or sum(run.length for run in direction.longest_loss_runs) != lost:
        return None
    tables = [counts.loss_table for _, counts in direction.classes if counts.loss_table is not None]
    fields = [field for table in tables for field in table.fields]
    names = [
        f"connection {value.name}" if field.field == "connection" else value.name
        for field in fields
        if field.field in ("connection", "flow")
        for value in field.heaviest
    ]
    if lost == 1 and not names:  # its flow is none of those that were drawn
        known = [(WORDS[field.field], field.heaviest) for field in fields if field.field in WORDS and field.values > 1]
        names = [", ".join(f"{words} {value.name}" for words, heaviest in known for value in heaviest)]
    return Lost(
        load=load, offered=direction.offered, runs=direction.longest_loss_runs, names=tuple(filter(None, names))
    )


def same_frames(name: str, failed: Iterable[Lost], arrived: int) -> str | None:
    """Return that the same frames are lost at every load, as a sentence; None if chance may have done it.

    `arrived`: so many frames at most, from the first one on, all arrived in a trial that passed.
    """
    ascending = sorted(failed, key=lambda lost: lost.load)
    if len(ascending) < 2 or arrived > ascending[0].runs[0].index:
        return None
    first, *others = ascending
    if others[-1].load == first.load or not all(lost.holds(run) for lost in others for run in first.runs):
        return None
    elsewhere = [lost for lost in others if lost.load != first.load]
    chance = math.log(TRIED) + sum(lost.chance_of(run) for lost in elsewhere for run in first.runs)
    if chance > math.log(CHANCE_MAX):
        return None
    return (
        f"in {len(ascending)} failed trials from {format_rate(first.load)} to {format_rate(others[-1].load)} frames/s"
        f" {name} lost {_frames_words(first)}"
    )


def _frames_words(lost: Lost) -> str:
    count = lost.count
    words = "the same frame" if count == 1 else f"the same {count:,} frames"
    named: Sequence[str] = lost.names[:NAMES_MAX]
    return words if not named else f"{words} ({'; '.join(named)}{'; ...' if count > len(named) else ''})"
