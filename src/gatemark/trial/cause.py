"""Why frames were lost: what a record keeps of it. The rules are in `causes`."""

from __future__ import annotations

from typing import Literal

from gatemark.facts import OneWay, TrafficClass
from gatemark.trial.facts import Facts
from gatemark.trial.loss import LossFieldName

CauseName = Literal[
    "fields", "flows", "residue", "start", "end", "first_frames", "age", "gap", "counted", "uniform", "queue", "gateway"
]
"""The kinds of causes, each with a rule of its own."""


class Cause(Facts):
    """What the lost frames of one class in one direction have in common that those that arrived have not."""

    cause: CauseName
    """Its kind."""
    direction: OneWay
    """Direction of the frames."""
    traffic_class: TrafficClass
    """Class of the frames (RFC 8219 section 5.3)."""
    field: LossFieldName | None
    """By what lost frames are told from others. Null where it is no such thing."""
    sentence: str
    """The cause in words, with its numbers."""
    what: str
    """What sets the lost frames apart, without the counts of this trial: the same in trials that fail alike."""
    lost: int
    """Frames lost in this direction and class."""
    explained: int
    """How many of them the cause explains: at least 95 %."""
    chance_log10: float | None
    """Logarithm of an upper bound of the probability that losses without this cause look like it. Null where the cause
    is that nothing sets lost frames apart."""
    is_fixed: bool
    """Whether what sets the frames apart loses all of them, so that they are lost at any load."""

    @property
    def told(self) -> str:
        """The sentence with the frames that it is about, as a reason of a failure."""
        return f"{self.direction} {self.traffic_class}: {self.sentence}"
