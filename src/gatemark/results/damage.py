"""Which of two gateways in a row damaged frames of a run."""

from __future__ import annotations

from gatemark.facts import DamageCounts


class FrameDamage(DamageCounts):
    """One kind of fault, in the first trial that met it. Counts but `faulty` are of a short trial made to find out."""

    trial: int
    """Number of the trial."""
    faulty: int
    """Frames that arrived with this fault in it."""
    sentence: str
    """The answer in words, or why there is none."""
