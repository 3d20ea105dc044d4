"""What lost frames of a run had in common, trial by trial."""

from __future__ import annotations

from gatemark.facts import OneWay, TrafficClass
from gatemark.results.part import Part


class LossCause(Part):
    """One cause of lost frames, in the failed trials in which it was claimed."""

    cause: str
    """Its kind: `fields`, `flows`, `residue`, `start`, `end`, `first_frames`, `age`, `gap`, `counted`, `uniform`,
    `queue`."""
    direction: OneWay
    """Direction of the frames."""
    traffic_class: TrafficClass
    """Class of the frames."""
    what: str
    """What sets the lost frames apart."""
    trials: int
    """Failed trials in which it was claimed."""
    load_minimum: int
    """Lowest load of them, as the loads of the run."""
    load_maximum: int
    """Highest load of them."""
    lost: int
    """Frames lost in them, in this direction and class."""
    explained: int
    """How many of these it explains."""
    sentence: str
    """What was said of the trial that lost most of them."""
