"""By how much each of two gateways lowers hop limits, from what three links carried. Pure."""

from __future__ import annotations

from collections import Counter

from gatemark.damage.decide import Links
from gatemark.damage.row import LoweredBy
from gatemark.damage.sighting import read_sighting
from gatemark.facts import TrafficClass


def lowered_by(links: Links, traffic_class: TrafficClass) -> LoweredBy:
    """Return by how much both gateways lower the hop limits of most frames of a class; None if of no value most are."""
    customer, provider = Counter[int](), Counter[int]()
    for way, passage in links.passages(traffic_class):
        first, second = (customer, provider) if way == "forward" else (provider, customer)
        for counted, before, behind in (
            (first, passage.entered, passage.middle),
            (second, passage.middle, passage.leaving),
        ):
            limits = [_hop_limit(frames) for frames in (before, behind)]
            if limits[0] is not None and limits[1] is not None:
                counted[limits[0] - limits[1]] += 1
    return _of_most(customer), _of_most(provider)


def _hop_limit(frames: tuple[bytes, ...]) -> int | None:
    """Return that of the packet itself; None of a frame that was not captured, or more than once."""
    sighting = read_sighting(frames[0]) if len(frames) == 1 else None
    return None if sighting is None else sighting.ip.hop_limit


def _of_most(counted: Counter[int]) -> int | None:
    ((value, count),) = counted.most_common(1) or [(0, 0)]
    return value if 2 * count > counted.total() else None
