"""Test phase 1 before the phase that is measured: how fast it may establish connections. Pure.

RFC 9693 section 4.4: no connection may expire before the trial that uses it has ended.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction

from gatemark.config.model import Campaign
from gatemark.config.stateful import time_needed_ns
from gatemark.config.types import DURATION_MAX_NS, FRAMES_PER_SECOND_MAX
from gatemark.errors import ConfigError, TestBedError
from gatemark.procedures.earlier import Earlier
from gatemark.search.goal import sending_ns
from gatemark.trial.cell import Cell
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns, format_ratio

USUAL_TIMEOUT_NS = 300 * NANOSECONDS_PER_SECOND
"""RFC 4787 section 4.3 and RFC 6146 section 4 recommend five minutes for UDP."""


def foreground_of(cell: Cell, line_maximum: int | None) -> int | None:
    """Return the most connections/s that the medium carries in addition to the background of a cell."""
    return None if line_maximum is None else line_maximum * cell.mix.m // cell.mix.n


def slowest_rate(campaign: Campaign, connections: int, alpha: Fraction | None, *, maximum: int | None) -> int:
    """Return the lowest rate at which no connection expires before the end of a trial (RFC 9693 section 4.4).

    If the gateway's timeout is not known, the usual one is assumed, so that no trial lasts for hours. Raises
    ConfigError if even the maximum is too slow or, without a maximum, every rate is.
    """
    maximum = maximum or FRAMES_PER_SECOND_MAX
    limit_ns = campaign.gateway.table.udp_timeout_ns
    if limit_ns is None:
        limit_ns = USUAL_TIMEOUT_NS if campaign.bed.has_gateway else DURATION_MAX_NS
    slowest = _lowest_within(limit_ns, lambda rate: _needed_ns(campaign, connections, rate, alpha))
    if slowest > maximum:
        needed_ns = _needed_ns(campaign, connections, maximum, alpha)
        raise _too_slow(campaign, connections, maximum, needed_ns, limit_ns)
    return slowest


def lasting_rate(campaign: Campaign, connections: int) -> int:
    """Return the lowest rate of test phase 1 at which no connection expires before the end of any test phase 2.

    It is 1 if the gateway's timeout is not known.
    """
    limit_ns = campaign.gateway.table.udp_timeout_ns
    if limit_ns is None:
        return 1
    lengths_ns = (table.phase_two_ns(campaign) for table in campaign.tables if table.begins_with_full_table)
    phase_two_ns = max((length_ns or 0 for length_ns in lengths_ns), default=0)
    return _lowest_within(limit_ns, lambda rate: time_needed_ns(campaign, connections, rate, phase_two_ns))


def _lowest_within(limit_ns: int, needed_ns: Callable[[int], int]) -> int:
    """Return the lowest rate that needs less than a time; one above all rates if none does."""
    rates = range(1, FRAMES_PER_SECOND_MAX + 1)
    return 1 + bisect_left(rates, True, key=lambda rate: needed_ns(rate) < limit_ns)


def _needed_ns(campaign: Campaign, connections: int, rate: int, alpha: Fraction | None) -> int:
    validation_ns = 0 if alpha is None else sending_ns(connections, max(1, int(alpha * rate)))
    return time_needed_ns(campaign, connections, rate, validation_ns)


def _too_slow(campaign: Campaign, connections: int, rate: int, needed_ns: int, limit_ns: int) -> ConfigError:
    known = campaign.gateway.table.udp_timeout_ns is not None
    timeout = f"the gateway's UDP timeout of {format_duration_ns(limit_ns)}"
    if not known:
        timeout = f"the usual UDP timeout of {format_duration_ns(limit_ns)}, and the gateway's is not stated"
    return ConfigError(
        what=f"{connections} connections at {rate} connections/s need {format_duration_ns(needed_ns)}, more than"
        f" {timeout}: they would expire during the trial",
        where=f"{campaign.source}: gateway.table.udp_timeout",
        fix="raise it on the gateway and here, or measure fewer connections" if known else "state a longer one",
    )


def rate_before(campaign: Campaign, cell: Cell, earlier: Earlier, *, phase_two_ns: int) -> int | None:
    """Return the connections/s of test phase 1 before the trials of a run; None if there are no connections."""
    if cell.connections is None:
        return None
    return phase_one_rate(campaign, cell, earlier, phase_two_ns=phase_two_ns)


def phase_one_rate(campaign: Campaign, cell: Cell, earlier: Earlier, *, phase_two_ns: int) -> int:
    """Return the connections/s of test phase 1 before test phase 2 or tear-down (RFC 9693 section 4.4).

    A share refers to the lowest establishment rate that the campaign found in any repetition with the same connections
    and frames; a rate above that is refused. A rate at which connections would expire before the end of a test phase 2
    of `phase_two_ns` is refused too. Raises ConfigError, or TestBedError if the gateway established none.
    """
    rate_asked, connections = campaign.connections_model.rate, cell.connections
    assert connections is not None, "only a cell with connections has a test phase 1"
    rates = earlier.connection_rates(cell)
    measured = rates[0].proven if rates else None
    where = f"{campaign.source}: connections.rate"
    if measured is None and isinstance(rate_asked, Fraction):
        raise ConfigError(
            what=f"{format_ratio(rate_asked)} of the maximum connection establishment rate is asked for, but the"
            " campaign does not measure it",
            where=where,
            fix=f"add a table [{campaign.connection_rate_key}], or write connections/s",
        )
    if measured == 0:
        raise TestBedError(
            what=f"no rate was found at which the gateway establishes {connections} connections",
            where="test phase 1",
            fix="see why its connection establishment rate is none; it may hold fewer connections",
        )
    rate = max(1, int(rate_asked * measured)) if isinstance(rate_asked, Fraction) and measured else int(rate_asked)
    if measured is not None and rate > measured:
        raise ConfigError(
            what=f"{rate} connections/s is above the measured maximum of {measured} with {connections} connections",
            where=where,
            fix='write a lower rate, or a share such as "50%"',
        )
    needed_ns = time_needed_ns(campaign, connections, rate, phase_two_ns)
    limit_ns = campaign.gateway.table.udp_timeout_ns
    if limit_ns is not None and needed_ns >= limit_ns:
        raise _too_slow(campaign, connections, rate, needed_ns, limit_ns)
    return rate
