"""Why frames were lost: what a record keeps of it. The rules are in `causes`."""

from __future__ import annotations

from gatemark.facts import CauseWords
from gatemark.trial.facts import Facts
from gatemark.trial.loss import LossFieldName

FEW_LOST = 20
"""Of fewer lost frames it may not be possible to say why."""


class Cause(Facts, CauseWords):
    """What the lost frames of one class in one direction have in common that those that arrived have not."""

    field: LossFieldName | None
    """The property that distinguishes lost frames from others. Null where the cause is not such a property."""
    sentence: str
    """The cause in words, with its numbers."""
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
