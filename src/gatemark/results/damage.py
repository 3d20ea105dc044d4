"""Which of two gateways in a row damaged frames of a run."""

from __future__ import annotations

from gatemark.facts import OneWay, TrafficClass
from gatemark.results.part import Part


class FrameDamage(Part):
    """One kind of fault, in the first trial that met it. Counts but `faulty` are of a short trial made to find out."""

    direction: OneWay
    """Direction of the frames."""
    traffic_class: TrafficClass
    """Class of the frames."""
    reason: str
    """The kind of fault, as under `faults` of the journal."""
    trial: int
    """Number of the trial."""
    faulty: int
    """Frames that arrived with this fault in it."""
    again: int
    """Frames that arrived with it in the short trial that followed."""
    customer: int
    """Those of them that the customer's gateway damaged."""
    provider: int
    """Those that the provider's gateway damaged."""
    both: int
    """Those that each of both damaged."""
    undecided: int
    """Those of which it cannot be decided."""
    sentence: str
    """The answer in words, or why there is none."""
