"""The loads of a run: shares of the line rate turned into frames per second, and the interval of a search. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from gatemark.config import defaults
from gatemark.config.model import Campaign
from gatemark.config.sizes import frames_on_links
from gatemark.config.types import FRAMES_PER_SECOND_MAX
from gatemark.errors import ConfigError
from gatemark.trial.cell import Cell
from gatemark.units import LineShare, theoretical_maximum

BEGIN_AT = Fraction(3, 2)
"""Where a search begins, as a multiple of the result that is expected. If that load fails, the halving goes on with
0.75 of the expected result; if it passes, the load doubles."""


def tightest_link(campaign: Campaign, cell: Cell) -> dict[int, int]:
    """Return how many frames of each size a period of the mix has on the link that carries the fewest frames/s, in
    whichever direction: it determines what the line carries. Sizes are octets with FCS and VLAN tag.
    """
    links = frames_on_links(campaign, cell.frame_sizes, cell.direction, cell.mix)
    return max(links, key=lambda frames: sum(octets * number for octets, number in frames.items()))


def line_maximum(campaign: Campaign, cell: Cell, line_bits_per_second: int | None) -> int | None:
    """Return the most frames/s that the medium carries in one direction (RFC 5180 appendix A.1); None if not known."""
    if line_bits_per_second is None:
        return None
    return theoretical_maximum(line_bits_per_second, tightest_link(campaign, cell))


class SearchTable(Protocol):
    """The keys of a table that bound a search."""

    @property
    def maximum(self) -> int | LineShare | None:
        """Highest load; None: 100 % of the line, or found by the search."""

    @property
    def minimum(self) -> int | LineShare:
        """Lowest load."""

    @property
    def resolution(self) -> int | LineShare:
        """Gap at which to stop."""

    @property
    def expected(self) -> int | LineShare | None:
        """Result that is expected; None: nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The loads of a search, as in `Goal`."""

    maximum: int
    minimum: int
    resolution: int | Fraction
    ceiling: int | None
    highest: int | None
    """Highest load of all; None if the search finds it."""


def interval(
    campaign: Campaign, key: str, table: SearchTable, line_maximum: int | None, *, unit: str, slowest: int
) -> Interval:
    """Return the loads of a search that tries nothing below `slowest`; raise ConfigError if they contradict.

    With an expected result the search is open-ended up to its maximum. How many trials it takes depends on what is
    expected; what it finds does not.
    """
    minimum = load_of(campaign, f"{key}.minimum", table.minimum, line_maximum)
    maximum = maximum_of(campaign, f"{key}.maximum", table.maximum, line_maximum)
    if maximum is not None and minimum > maximum:
        raise ConfigError(
            what=f"{minimum} {unit} is above the maximum of {maximum}",
            where=f"{campaign.source}: {key}.minimum",
            fix="write a lower minimum",
        )
    minimum = max(minimum, slowest)
    resolution = resolution_of(campaign, f"{key}.resolution", table.resolution, maximum, unit)
    first = first_load(minimum, resolution) if maximum is None else maximum
    if table.expected is not None:
        expected = load_of(campaign, f"{key}.expected", table.expected, line_maximum)
        begin = max(minimum, int(BEGIN_AT * expected), 2 * resolution if isinstance(resolution, int) else 0)
        first = begin if maximum is None else min(begin, maximum)
    highest = FRAMES_PER_SECOND_MAX if maximum is None else maximum
    return Interval(
        maximum=min(first, highest),
        minimum=minimum,
        resolution=resolution,
        ceiling=highest if first < highest else None,
        highest=maximum,
    )


def expected_words(expected: int | LineShare, unit: str) -> str:
    """Return an expected result in words."""
    return f"{expected} of the line" if isinstance(expected, LineShare) else f"{expected:,} {unit}"


def first_load(minimum: int, resolution: int | Fraction) -> int:
    """Return the load with which an open-ended search begins; it is never below a resolution that is a load."""
    return max(defaults.SEARCH_START, minimum, 2 * resolution if isinstance(resolution, int) else 0)


def maximum_of(campaign: Campaign, key: str, rate: int | LineShare | None, line_maximum: int | None) -> int | None:
    """Return where a search begins: by default 100 % of the line; None if the medium has no line rate.

    Raises ConfigError if a share of an unknown line rate is asked for.
    """
    if rate is None:
        return None if line_maximum is None else max(1, line_maximum)
    return load_of(campaign, key, rate, line_maximum)


def resolution_of(
    campaign: Campaign, key: str, value: int | LineShare, maximum: int | None, unit: str
) -> int | Fraction:
    """Return the distance between the bounds at which a search ends, or a share of a maximum that is not yet known.

    Raises ConfigError if it is as wide as the search.
    """
    if maximum is None:
        return value
    resolution = int(value * maximum) if isinstance(value, LineShare) else value
    if resolution >= maximum > 1:
        raise ConfigError(
            what=f"{resolution} {unit} is not below the maximum of {maximum}",
            where=f"{campaign.source}: {key}",
            fix='write for example resolution = "0.1%" of the maximum',
        )
    return max(1, resolution)


def load_of(campaign: Campaign, key: str, rate: int | LineShare, line_maximum: int | None) -> int:
    """Return a load in frames/s; raise ConfigError if it is a share of an unknown line rate."""
    if not isinstance(rate, LineShare):
        return rate
    if line_maximum is None:
        raise ConfigError(
            what=f"{rate} of the line rate is asked for, but the medium has none or the port does not report it",
            where=f"{campaign.source}: {key}",
            fix='write the bit/s of the medium, line.rate = "10G", or the load in frames/s',
        )
    return max(1, rate.frames_per_second(line_maximum))
