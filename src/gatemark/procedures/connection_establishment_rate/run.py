"""Maximum connection establishment rate: the highest rate at which every new connection is established.

RFC 9693 section 4.5. Only the Initiator sends, each frame opens its own connection, and a trial passes if all of them
arrive translated at the Responder. For a validated rate (section 4.6), after test phase 1 the Responder sends one
frame for each connection at alpha times the rate under test. If the gateway forwards replies more slowly than it
establishes connections, the validation fails at a rate at which every connection was established; alpha is then
lowered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from gatemark.config.model import Campaign
from gatemark.errors import ConfigError
from gatemark.procedures.assumed import AssumedGateway, extremes_of_goal
from gatemark.procedures.cells import upload_cells
from gatemark.procedures.connection_establishment_rate.result import VALIDATED, AlphaTried, EstablishmentResult
from gatemark.procedures.connection_establishment_rate.table import ConnectionEstablishmentRateTable
from gatemark.procedures.loads import expected_words, interval, maximum_of
from gatemark.procedures.measured import MeasureStep, search_rate
from gatemark.procedures.phase_one import foreground_of, slowest_rate
from gatemark.procedures.procedure import RunTrials
from gatemark.results.document import Deviation
from gatemark.results.search import SearchGoal, limited_by
from gatemark.search.goal import Goal, SearchResult
from gatemark.trial.cell import Cell, Run
from gatemark.units import format_ratio

ALPHAS: Final = (Fraction(1), Fraction(4, 5), Fraction(1, 2), Fraction(1, 4))
"""Shares of the rate under test at which a validation is tried, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenAlpha:
    """Outcome of the search for an alpha that does not affect the rate."""

    alpha: Fraction
    result: SearchResult
    """The search with this alpha: the first repetition of the run."""
    tried: tuple[AlphaTried, ...]
    """All shares that were tried, largest first."""


def measure(trials: RunTrials) -> EstablishmentResult:
    """Search once in each repetition; the first one of a validated rate may search for alpha as well."""
    campaign, cell = trials.campaign, trials.run.cell
    table = campaign.table(ConnectionEstablishmentRateTable)
    validated = trials.run.procedure == VALIDATED
    goal = establishment_goal(campaign, cell, trials.line_maximum, validated=validated)
    searches: list[SearchResult] = []
    tried: tuple[AlphaTried, ...] = ()
    for repetition in trials.repetitions():
        steps = trials.steps(repetition, loss_tolerance=goal.loss_tolerance)
        if validated and table.alpha == "search" and repetition == 0:
            reference = trials.earlier.connection_rates(cell)[0].repetitions
            chosen = choose_alpha(goal, reference, steps)
            goal, tried = replace(goal, alpha=chosen.alpha), chosen.tried
            searches.append(chosen.result)
        else:
            searches.append(search_rate(goal.after(searches), steps))
    return EstablishmentResult(
        **trials.facts(),
        limited_by=limited_by([search.kind for search in searches]),
        goal=SearchGoal(
            search="binary",
            maximum=maximum_of(
                campaign, f"{table.key}.maximum", table.maximum, foreground_of(cell, trials.line_maximum)
            ),
            minimum=goal.minimum,
            loss_tolerance=goal.loss_tolerance,
            search_duration_ns=None,
            duration_ns=None,
        ),
        repetitions=tuple(searches),
        alpha=goal.alpha,
        alphas_tried=tried,
    )


def validated_cells(campaign: Campaign, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return the cells in the Initiator's direction, one for each alpha."""
    shares = campaign.table(ConnectionEstablishmentRateTable).shares or (None,)
    return tuple(replace(cell, alpha=share) for cell in upload_cells(campaign, cells) for share in shares)


def establishment_goal(campaign: Campaign, cell: Cell, line_maximum: int | None, *, validated: bool) -> Goal:
    """Return what a search looks for.

    If alpha is searched for, the goal has the first one that is tried. No rate is so low that connections expire before
    the trial ends. Raises ConfigError if the rates contradict each other, if no rate is high enough for that, or if
    nothing is measured that alpha could be judged by.
    """
    table, connections = campaign.table(ConnectionEstablishmentRateTable), cell.connections
    assert connections is not None, "the plan holds no such run without a number of connections"
    if validated and table.alpha == "search" and not table.is_plain:
        raise ConfigError(
            what='"search" judges a validated rate by the rate without validation, which is not measured',
            where=f"{campaign.source}: {table.key}.alpha",
            fix="write validated = [false, true], or a share such as alpha = 1",
        )
    shares = ALPHAS if table.alpha == "search" else table.shares if cell.alpha is None else (cell.alpha,)
    alpha, lowest_alpha = shares[0], shares[-1]
    line = foreground_of(cell, line_maximum)
    maximum = maximum_of(campaign, f"{table.key}.maximum", table.maximum, line)
    slowest = slowest_rate(campaign, connections, lowest_alpha if validated else None, maximum=maximum)
    rates = interval(campaign, table.key, table, line, unit="connections/s", slowest=slowest)
    return Goal(
        maximum=rates.maximum,
        minimum=rates.minimum,
        resolution=rates.resolution,
        ceiling=foreground_of(cell, rates.ceiling),
        loss_tolerance=table.loss_tolerance,
        connections=connections,
        alpha=alpha if validated else None,
    )


def choose_alpha(goal: Goal, reference: Sequence[SearchResult], measure_step: MeasureStep) -> ChosenAlpha:
    """Lower alpha until the validated rate is no lower than the rate without validation, within its noise.

    `reference` holds the repetitions without validation with the same number of connections. The noise reaches down to
    one resolution below the lowest of them. If no alpha gets there, the one with the highest validated rate is chosen:
    then the rate of the validation is not what costs connections. Open-ended searches begin where those of `reference`
    ended.
    """
    floor = min((result.lower_bound or 0) - result.resolution for result in reference)
    searches: list[tuple[Fraction, SearchResult]] = []
    for alpha in ALPHAS:
        search = search_rate(replace(goal.after(reference), alpha=alpha), measure_step)
        searches.append((alpha, search))
        if (search.lower_bound or 0) >= floor:
            break
    alpha, result = max(searches, key=lambda search: search[1].lower_bound or 0)
    return ChosenAlpha(
        alpha=alpha,
        result=result,
        tried=tuple(AlphaTried(alpha=share, lower_bound=search.lower_bound) for share, search in searches),
    )


def gateways(campaign: Campaign, run: Run, line_maximum: int | None) -> Iterator[AssumedGateway]:
    """Yield a fast gateway and a slow one.

    Where alpha is searched for, no validation costs the first one anything. The others forward so few replies that even
    the last alpha costs them more than the noise: all of them are tried, and the last one is the best. A gateway whose
    two rates lie otherwise may still need a few trials more.
    """
    validated = run.procedure == VALIDATED
    goal = establishment_goal(campaign, run.cell, line_maximum, validated=validated)
    fast, slow = extremes_of_goal(campaign, run, line_maximum, goal)
    if not validated or campaign.table(ConnectionEstablishmentRateTable).alpha != "search":
        yield from (fast, slow)
        return
    plain = replace(goal, alpha=None)
    for gateway in (fast, slow):
        reference = search_rate(plain, gateway.measured)
        too_slow = max(0, (reference.lower_bound or 0) - reference.resolution - 1)
        yield replace(gateway, establishment=reference, replies_per_second=int(ALPHAS[-1] * too_slow))
        if gateway is fast:
            yield replace(gateway, establishment=reference)


def deviations(campaign: Campaign) -> Iterator[Deviation]:
    """Yield what is special about the search and the validation (RFC 9693 sections 4.5 and 4.6)."""
    table = campaign.table(ConnectionEstablishmentRateTable)
    if table.expected is not None:
        yield Deviation(
            sentence="The search for the connection establishment rate begins at 1.5 times an expected result,"
            f" {expected_words(table.expected, 'connections/s')}. On a steady gateway it finds the same."
        )
    if table.loss_tolerance:
        yield Deviation(
            sentence=f"{format_ratio(table.loss_tolerance)} of the connections may fail to be established: the result"
            " is not a maximum connection establishment rate (RFC 9693 section 4.5).",
            rules_out_claim=True,
        )
    if not table.validates:
        return
    if table.alpha == "search":
        yield Deviation(
            sentence="The share of the rate at which connections are validated is searched for (RFC 9693 section 4.6)."
        )
        return
    for alpha in table.shares:
        if alpha < 1:
            share = format_ratio(alpha)
            sentence = f"Connections are validated at {share} of the rate under test (RFC 9693 section 4.6)."
            yield Deviation(sentence=sentence)
