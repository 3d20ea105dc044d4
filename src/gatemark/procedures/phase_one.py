"""Test phase 1 before the phase that is measured: how fast it may establish connections, and its work. Pure.

RFC 9693 section 4.4: no connection may expire before the trial that uses it has ended.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction

from gatemark.config.model import Campaign
from gatemark.config.stateful import time_needed_ns
from gatemark.config.types import DURATION_MAX_NS, FRAMES_PER_SECOND_MAX
from gatemark.errors import ConfigError, TestBedError
from gatemark.procedures.earlier import Earlier
from gatemark.procedures.loads import maximum_of
from gatemark.procedures.measured import Measured
from gatemark.procedures.work import ASSUMED_CONNECTIONS_PER_SECOND, ASSUMED_RATE_MAX, LeastAndMost, Work
from gatemark.search.goal import Goal, Measure, Observation, Outcome, sending_ns
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
    rates = range(1, FRAMES_PER_SECOND_MAX + 1)
    limit_ns = campaign.gateway.table.udp_timeout_ns
    if limit_ns is None:
        limit_ns = USUAL_TIMEOUT_NS if campaign.bed.has_gateway else DURATION_MAX_NS
    slowest = 1 + bisect_left(rates, True, key=lambda rate: _needed_ns(campaign, connections, rate, alpha) < limit_ns)
    if slowest > maximum:
        needed_ns = _needed_ns(campaign, connections, maximum, alpha)
        raise _too_slow(campaign, connections, maximum, needed_ns, limit_ns)
    return slowest


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


def one_trial_each(campaign: Campaign, cell: Cell, line: int | None, sending_ns: int) -> LeastAndMost:
    """Return the work of a run whose repetitions are one trial each that sends for so long."""
    once = Work(1, sending_ns + campaign.trial.waits_ns)
    least, most = add_phase_one(campaign, cell, line, (once, once))
    return least * campaign.repetitions, most * campaign.repetitions


def add_phase_one(campaign: Campaign, cell: Cell, line: int | None, work: LeastAndMost) -> LeastAndMost:
    """Return the work of trials of test phase 2, including the test phase 1 before each of them."""
    if cell.connections is None:
        return work
    least, most = work
    extra_ns = campaign.connections_model.timeout_ns + campaign.connections_model.gap_ns
    fast, slow = phase_one_rates(campaign, cell, line)
    return (
        least + Work(0, least.trials * (sending_ns(cell.connections, fast) + extra_ns)),
        most + Work(0, most.trials * (sending_ns(cell.connections, slow) + extra_ns)),
    )


def assumed_rates(goal: Goal) -> tuple[int, int]:
    """Return the rates of the fastest gateway and of the slow one for which a search is estimated."""
    fast = goal.maximum if goal.ceiling is None else max(goal.maximum, min(goal.ceiling, ASSUMED_RATE_MAX))
    return fast, max(goal.minimum, min(fast, ASSUMED_CONNECTIONS_PER_SECOND))


def assumed_trial(campaign: Campaign, step: Measure, rate: int, size: int, trials: list[Work]) -> Measured:
    """Count one trial and return its outcome on a gateway with this rate and table."""
    connections = step.connections or 0
    passed = step.frames_per_second <= rate and connections <= size
    trials.append(Work(1, _trial_ns(campaign, step, connections, validated=step.alpha is not None)))
    outcome = Outcome.PASSED if passed else Outcome.FAILED
    observation = Observation(frames_per_second=step.frames_per_second, duration_ns=step.duration_ns, outcome=outcome)
    return Measured(observation=observation)


def _trial_ns(campaign: Campaign, step: Measure, connections: int, *, validated: bool) -> int:
    length = step.duration_ns + phase_one_waits_ns(campaign)
    if validated:
        trial, alpha = campaign.trial, step.alpha or Fraction(1)
        length += sending_ns(connections, max(1, int(alpha * step.frames_per_second)))
        length += campaign.connections_model.gap_ns + trial.drain_ns + trial.rest_ns
    return length


def phase_one_waits_ns(campaign: Campaign) -> int:
    """Return the waits of a trial of test phase 1."""
    return campaign.trial.settle_ns + campaign.trial.learn_ns + campaign.connections_model.timeout_ns


def phase_one_rates(campaign: Campaign, cell: Cell, line: int | None) -> tuple[int, int]:
    """Return the highest rate that test phase 1 may have, and the rate that the most work is estimated with."""
    rate_asked = campaign.connections_model.rate
    if not isinstance(rate_asked, Fraction):
        return rate_asked, rate_asked
    foreground = foreground_of(cell, line)
    table = next((table for table in campaign.tables if table.finds_connection_rate), None)
    if table is None:
        fastest = foreground or ASSUMED_CONNECTIONS_PER_SECOND
    else:
        fastest = maximum_of(campaign, f"{table.key}.maximum", table.highest_rate, foreground) or ASSUMED_RATE_MAX
    slow = min(fastest, ASSUMED_CONNECTIONS_PER_SECOND)
    return max(1, int(rate_asked * fastest)), max(1, int(rate_asked * slow))
