"""What figures are counted in: one list of the units that tables, titles and ratios tell apart. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unit:
    """What a figure is counted in; one that is not in the list is only a word."""

    name: str
    is_rate: bool = False
    """Whether it is something per second: searched for, shared, and rounded where it is a quotient."""
    is_one_way: bool = False
    """Whether it counts what passes in one direction, also where both carry traffic: then the sum is twice that."""
    is_share: bool = False
    """Whether it is a part of a whole, in percent."""
    has_direction: bool = True
    """Whether the direction says something about it: a connection has frames in both."""

    @property
    def title(self) -> str:
        """Its name in titles and below axes."""
        return f"{self.name} in one direction" if self.is_one_way else self.name


UNITS: Mapping[str, Unit] = {
    unit.name: unit
    for unit in (
        Unit("frames/s", is_rate=True, is_one_way=True),
        Unit("connections/s", is_rate=True, has_direction=False),
        Unit("packets/s", is_rate=True),
        Unit("1/s", is_rate=True),
        Unit("%", is_share=True),
        Unit("% of a core", is_share=True),
    )
}


def unit_named(name: str) -> Unit:
    """Return what is known of a unit."""
    return UNITS.get(name, Unit(name))
