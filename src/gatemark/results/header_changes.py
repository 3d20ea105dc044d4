"""What a gateway wrote into the headers of a run's frames, and behind them, that it may or should have written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from gatemark.results.part import Part

REPEATS_SAID_MIN = 64
"""Of fewer frames nothing is said."""
REPEATS_SHARE = 8
"""One of so many repeats is no chance: of 256 random identifications one in 512 comes again, and of 64 frames an
eighth would not do so once in 10^10 runs."""


@dataclass(frozen=True, slots=True)
class Told:
    """At a count: what is said of a run where it is not 0."""

    words: str


REPEATED = (
    "{count} of {identifications} that may be fragmented later have the same IPv4 identification as an earlier one"
    " between the same hosts, so their fragments may be mistaken for each other (RFC 7915 section 5.1, RFC 6864"
    " section 4.1)"
)
"""The same of repeated identifications."""


class HeaderChanges(Part):
    """Headers of correct frames that the gateway changed, and octets behind them; a count of 0 if none."""

    congestion_experienced: Annotated[
        int,
        Told("the gateway marked {frames} as congestion experienced (RFC 3168 section 5), which counts as delivered"),
    ]
    """Frames that it marked *congestion experienced*, as it may (RFC 3168 section 5)."""
    congestion_outside: Annotated[
        int,
        Told(
            "a router marked the tunnel of {frames} as congestion experienced (RFC 6040 section 4.1), which counts as"
            " delivered"
        ),
    ] = Field(default=0, exclude_if=lambda frames: frames == 0)
    """Frames in whose outer header a router marked *congestion experienced* (RFC 6040 section 4.1)."""
    flow_label_set: Annotated[
        int,
        Told("the gateway gave {frames} without flow label one (RFC 6437 section 3), which counts as delivered"),
    ]
    """IPv6 frames that were sent with flow label 0 and that it gave another one, as a router may (RFC 6437 section 3).
    """
    with_trailer: Annotated[
        int,
        Told(
            "{frames} had octets behind the IP packet, which are not part of it (RFC 894, RFC 2464 section 3), and"
            " count as delivered"
        ),
    ] = Field(default=0, exclude_if=lambda frames: frames == 0)
    """Frames that had octets behind the IP packet, which are not part of it (RFC 894, RFC 2464 section 3)."""
    identifications: int
    """Frames whose IPv4 identification it chose, with DF clear, and which were compared with others of the same pair of
    hosts: in each trial at most the first 16,384 and 256 of a pair."""
    distinct_identifications: int
    """How many different ones they have, counted for each pair of hosts in each trial."""

    @property
    def repeated_identifications(self) -> int:
        """Frames whose identification an earlier one between the same hosts had, if chance cannot be why.

        0 otherwise (RFC 7915 section 5.1, RFC 6864 section 4.1).
        """
        repeats = self.identifications - self.distinct_identifications
        said = self.identifications >= REPEATS_SAID_MIN and repeats * REPEATS_SHARE >= self.identifications
        return repeats if said else 0

    def told(self) -> tuple[tuple[str, int], ...]:
        """Return what is to be said, and of how many frames."""
        fields = HeaderChanges.model_fields.items()
        marked = (
            (mark.words, getattr(self, name))
            for name, field in fields
            for mark in field.metadata
            if isinstance(mark, Told)
        )
        return tuple((words, count) for words, count in (*marked, (REPEATED, self.repeated_identifications)) if count)
