"""The rates of stateful runs: what is searched for, and how fast test phase 1 may be (RFC 9693). Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction

from gatemark.campaign.loads import first_load, interval, maximum_of, resolution_of
from gatemark.config.model import Campaign
from gatemark.config.stateful import count_max, time_needed_ns
from gatemark.config.types import DURATION_MAX_NS, FRAMES_PER_SECOND_MAX
from gatemark.errors import ConfigError, TestBedError
from gatemark.procedures.result import RunResult
from gatemark.procedures.stateful.connection_tracking_table_capacity import CapacityGoal
from gatemark.procedures.stateful.connection_validation import ALPHAS
from gatemark.search.goal import Goal, sending_ns
from gatemark.trial.cell import Cell
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns, format_ratio

USUAL_TIMEOUT_NS = 300 * NANOSECONDS_PER_SECOND
"""RFC 4787 section 4.3 and RFC 6146 section 4 recommend five minutes for UDP."""


def establishment_goal(campaign: Campaign, cell: Cell, line_maximum: int | None, *, validated: bool) -> Goal:
    """Return what a search for the maximum connection establishment rate looks for (RFC 9693 sections 4.5 and 4.6).

    Where alpha is searched for, the goal has the first one that is tried. No rate is so low that connections expire
    before the trial ends. Raises ConfigError as `throughput_goal` does, if no rate is high enough for that, and if
    nothing is measured by which alpha is to be judged.
    """
    model, connections = campaign.connection_establishment_rate, cell.connections
    assert model is not None and connections is not None, "the plan holds no such run without table and count"
    if validated and model.alpha == "search" and False not in model.validated:
        raise ConfigError(
            what='"search" judges a validated rate by the rate without validation, which is not measured',
            where=f"{campaign.source}: connection_establishment_rate.alpha",
            fix="write validated = [false, true], or a share such as alpha = 1",
        )
    alpha = ALPHAS[0] if model.alpha == "search" else model.alpha
    lowest_alpha = ALPHAS[-1] if model.alpha == "search" else model.alpha
    line = foreground_of(cell, line_maximum)
    maximum = maximum_of(campaign, "connection_establishment_rate.maximum", model.maximum, line)
    slowest = slowest_rate(campaign, connections, lowest_alpha if validated else None, maximum=maximum)
    found = interval(campaign, "connection_establishment_rate", model, line, slowest=slowest)
    return Goal(
        maximum=found.maximum,
        minimum=found.minimum,
        resolution=found.resolution,
        ceiling=found.ceiling,
        connections=connections,
        alpha=alpha if validated else None,
    )


def capacity_goal(campaign: Campaign, cell: Cell, line_maximum: int | None) -> CapacityGoal:
    """Return what a search for the connection tracking table capacity looks for (RFC 9693 section 4.9).

    Without a maximum it ends where four-tuples and public endpoints do. Raises ConfigError as `establishment_goal`.
    """
    model, table = campaign.connection_tracking_table_capacity, "connection_tracking_table_capacity"
    assert model is not None, "the plan holds no capacity run without the table"
    highest = maximum_of(campaign, f"{table}.maximum_rate", model.maximum_rate, foreground_of(cell, line_maximum))
    slowest = slowest_rate(campaign, model.start, model.alpha, maximum=highest)
    resolution = resolution_of(campaign, f"{table}.rate_resolution", model.rate_resolution, highest, "connections/s")
    return CapacityGoal(
        rates=Goal(
            maximum=first_load(slowest, resolution) if highest is None else highest,
            minimum=slowest,
            resolution=resolution,
            ceiling=FRAMES_PER_SECOND_MAX if highest is None else None,
            connections=model.start,
            alpha=model.alpha,
        ),
        maximum=model.maximum or count_max(campaign),
        resolution=model.resolution,
        beta=model.beta,
        gamma=model.gamma,
    )


def foreground_of(cell: Cell, line_maximum: int | None) -> int | None:
    """Return the most connections/s that the medium carries beside the background of a cell."""
    return None if line_maximum is None else line_maximum * cell.mix.m // cell.mix.n


def slowest_rate(campaign: Campaign, connections: int, alpha: Fraction | None, *, maximum: int | None) -> int:
    """Return the lowest rate at which no connection expires before the end of a trial (RFC 9693 section 4.4).

    Where the gateway's timeout is not known, it is taken to be the usual one, so that no trial lasts for hours. Raises
    ConfigError if even the maximum is too slow, or any rate where no maximum is given.
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


def rate_before(campaign: Campaign, cell: Cell, earlier: Sequence[RunResult], *, phase_two_ns: int) -> int | None:
    """Return the connections/s of test phase 1 before the trials of a run; None where there are no connections."""
    if cell.connections is None:
        return None
    return phase_one_rate(campaign, cell, earlier, phase_two_ns=phase_two_ns)


def phase_one_rate(campaign: Campaign, cell: Cell, earlier: Sequence[RunResult], *, phase_two_ns: int) -> int:
    """Return the connections/s of test phase 1 before test phase 2 or tear-down (RFC 9693 section 4.4).

    A share is taken of the lowest establishment rate that the campaign found in any repetition with the same
    connections and frames; a rate above that is refused. So is one at which connections would expire before the end of
    a test phase 2 of `phase_two_ns`. Raises ConfigError, or TestBedError if the gateway established none.
    """
    wanted, connections = campaign.connections_model.rate, cell.connections
    assert connections is not None, "only a cell with connections has a test phase 1"
    measured = _measured_rate(cell, earlier)
    where = f"{campaign.source}: connections.rate"
    if measured is None and isinstance(wanted, Fraction):
        raise ConfigError(
            what=f"{format_ratio(wanted)} of the maximum connection establishment rate is asked for, but the campaign"
            " does not measure it",
            where=where,
            fix="add a table [connection_establishment_rate], or write connections/s",
        )
    if measured == 0:
        raise TestBedError(
            what=f"no rate was found at which the gateway establishes {connections} connections",
            where="test phase 1",
            fix="see why its connection establishment rate is none; it may hold fewer connections",
        )
    rate = max(1, int(wanted * measured)) if isinstance(wanted, Fraction) and measured else int(wanted)
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


def _measured_rate(cell: Cell, earlier: Sequence[RunResult]) -> int | None:
    """Return the lowest rate of any repetition with the cell's connections and frames; None if it was not measured.

    Without validation if there is such a run, because test phase 1 is not validated either.
    """
    for procedure in ("connection_establishment_rate", "validated_connection_establishment_rate"):
        for result in earlier:
            own = result.run.cell
            same = (own.connections, own.frame_sizes, own.mix) == (cell.connections, cell.frame_sizes, cell.mix)
            if result.run.procedure == procedure and same and result.repetitions:
                return min(result.lower_bounds)
    return None
