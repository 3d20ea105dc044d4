"""In which of two gateways in a row frames were lost: the link between both has counted those of each direction. Pure.

What a direction offered and the first gateway did not hand to the link was lost in the first, the rest of the losses in
the second. Packets of the gateways' own on that link would be an error; where any are seen, nothing is said. Nor is it
where a gateway answered lost frames with ICMP errors: those of the second one cross the link against the frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gatemark.trial.damage import CUSTOMER, PROVIDER
from gatemark.trial.host import HostFacts
from gatemark.trial.host_counters import counts_icmp_errors
from gatemark.trial.report import DirectionResult, TrialReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One of two gateways in a row."""

    words: str
    lost: int
    """Frames of both classes of a direction that were lost in it."""


Places = tuple[Place, ...]


def places_of(direction: DirectionResult, report: TrialReport, host: HostFacts | None) -> Places:
    """Return both gateways of a row in the direction of the frames; nothing where their link cannot tell."""
    if host is None or host.middle is None or host.middle.strays or _sent_icmp_errors(report, host):
        return ()
    is_forward = direction.direction == "forward"
    first = direction.offered - (host.middle.forward if is_forward else host.middle.reverse)
    lost = sum(counts.lost for _, counts in direction.classes)
    if not 0 <= first <= lost:
        return ()
    names = (CUSTOMER, PROVIDER) if is_forward else (PROVIDER, CUSTOMER)
    return tuple(Place(words=words, lost=count) for words, count in zip(names, (first, lost - first), strict=True))


def _sent_icmp_errors(report: TrialReport, host: HostFacts) -> bool:
    """Whether a gateway sent ICMP errors: its kernel counted some, or the Tester saw some."""
    return counts_icmp_errors(host.counters) or any(port.foreign.icmp for port in report.ports.values())


def place_words(places: Sequence[Place], *, counted: bool = True) -> str:
    """Return where frames were lost: "lost in the provider's gateway", or how many in which."""
    lossy = [place for place in places if place.lost]
    if len(lossy) == 1 or not counted:
        return f"lost in {' and in '.join(place.words for place in lossy)}"
    return "lost: " + ", ".join(f"{place.lost:,} in {place.words}" for place in lossy)
