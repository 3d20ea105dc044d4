"""Which frames of a trial were lost: when, and by what they differ from those that arrived. Facts of the engine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from gatemark.trial.facts import Counter, Facts, Natural

LOSS_SLICES = 100
"""Parts of a trial in which losses are counted."""
RARE = math.log(15_000)
"""Minus the natural logarithm of a chance of 1 in 15,000, as of four standard deviations of a normal number."""


def chance_inside(drawn: int, inside: int, share: float) -> float:
    """Return the natural logarithm of an upper bound of a chance, at most 0 (Chernoff; Hoeffding 1963, theorems 1, 4).

    It is the chance that, of so many things drawn without regard to anything, at least `inside` are in a share of all.
    """
    if not drawn or not 0 < share < 1 or inside / drawn <= share:
        return 0.0
    ratio = inside / drawn
    divergence = ratio * math.log(ratio / share)
    if ratio < 1:
        divergence += (1 - ratio) * math.log((1 - ratio) / (1 - share))
    return -drawn * divergence


class LossRun(Facts):
    """Frames lost one after the other."""

    index: Natural
    """Index of the first of them in its direction, from 0."""
    length: Natural
    """Number of frames."""


class LossFacts(Facts):
    """Where in a trial frames were lost. Indexes are of the direction, both classes together."""

    runs: Annotated[Natural, Counter(words="runs of successive lost frames", whose="gateway")]
    """Series of frames lost one after the other."""
    longest_run: Annotated[Natural, Counter(words="longest run of lost frames", whose="gateway", total=max)]
    """Length of the longest series, frames."""
    first_index: Natural
    """First frame lost."""
    last_index: Natural
    """Last frame lost."""
    first_runs: tuple[LossRun, ...]
    """First 16 series."""
    by_slice: tuple[Natural, ...]
    """Frames lost in each hundredth of the trial."""


class LossCount(Facts):
    """Frames that were looked at."""

    lost: Natural
    """How many of them were lost."""
    arrived: Natural
    """How many arrived, correct or not."""

    @property
    def offered(self) -> int:
        return self.lost + self.arrived


class LossOfValue(LossCount):
    """Frames with one value of a field."""

    name: str
    """The value for people: a port, an address, a number, or both ends of a flow."""


class DeadRange(Facts):
    """Values next to each other of which no frame arrived; values that no frame had are passed over."""

    first: str
    """The first value."""
    last: str
    """The last value."""
    values: Natural
    """Values in it that were offered."""
    lost: Natural
    """Lost frames with these values."""


LossFieldName = Literal[
    "source_port",
    "destination_port",
    "source_host",
    "destination_host",
    "destination_network",
    "traffic_class",
    "customer_edge",
    "connection",
    "host_pair",
    "flow",
    "index_residue",
]
"""What frames differ by."""


class LossField(LossCount):
    """Lost frames by one thing that frames of a class differ by. The counts are of the frames with a counted value."""

    field: LossFieldName
    """What it is. `index_residue` is the index in the direction modulo `modulus`, `flow` a four-tuple. `connection`
    stands for the flow of a stateful trial."""
    modulus: Natural | None
    """Of an index residue: the smallest, up to 64, that separates 95 % of the losses from the rest. Null for all
    others."""
    values: Natural
    """Values counted: all that were offered, or of `customer_edge`, `connection`, `host_pair` and `flow` a sample of
    16,384 at most, each with all of its frames that were looked at."""
    losing: Natural
    """Values with a lost frame."""
    dead: Natural
    """Values of which no frame arrived."""
    lost_in_dead: Natural
    """Lost frames with such a value."""
    firsts: Natural | None
    """Lost frames that were the first with their value. Null unless all frames of the class and all values were looked
    at."""
    heaviest: tuple[LossOfValue, ...]
    """Up to 8 values with most losses."""
    ranges: tuple[DeadRange, ...]
    """Up to 8 ranges of values with most losses, ascending; of ports, hosts, networks and traffic classes."""
    bits: tuple[LossCount, ...]
    """Frames in whose value a bit is set, lowest bit first; of ports, hosts, networks and traffic classes."""

    def heaviest_together(self) -> Iterator[LossCount]:
        """Yield the frames with the value that lost most, with that and the next one, and so on."""
        lost = arrived = 0
        for value in self.heaviest:
            lost, arrived = lost + value.lost, arrived + value.arrived
            yield LossCount(lost=lost, arrived=arrived)

    def with_and_without_bits(self) -> Iterator[tuple[LossCount, LossCount]]:
        """Yield the frames in whose value a bit is set, and those in which it is not, lowest bit first."""
        for bit in self.bits:
            yield bit, LossCount(lost=self.lost - bit.lost, arrived=self.arrived - bit.arrived)


class LossAges(LossCount):
    """Frames of established connections by how long these had been silent: nothing of them had arrived, either way.

    A frame counts only if the one before it of its connection, in the same direction, arrived: of losses in a row the
    first. About 32,768 connections are followed, and 2^19 of their frames at most, among the first 2^22 frames of each
    direction. A connection is silent since it was established at latest.
    """

    silent_ns: Natural
    """The time that best separates lost frames from those that arrived."""
    after: Natural = Field(default=0, exclude_if=lambda frames: not frames)
    """Only frames count before which this many of their connection arrived in the trial: the first is old in any case.
    1 to 3 where such frames are 95 % of the lost ones at least, and less than half of `older` arrived; else 0."""
    older: LossCount
    """Frames of connections that had been silent for so long or longer."""


class LossTable(LossCount):
    """Which frames of a class were lost, by what they differ by.

    A frame is a function of its index, so the fields of a frame that never arrived are known. The counts are of the
    frames that were looked at: about 2^20 lost ones and as many others at most, all where there are fewer. Where there
    are more, whole words of 64 frames are drawn.
    """

    fields: tuple[LossField, ...]
    """Everything of which the class has more than one value."""
    ages: LossAges | None = None
    """Of the foreground where established connections are used. Null elsewhere, and where the load is not even."""
