"""Overload by echo requests: in each repetition one trial with each number of clients, and each rate if there are any.

What is lost is a value. A gateway that stops working is named, and started again for the next number of clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from gatemark.config.model import Campaign
from gatemark.config.types import Mix
from gatemark.procedures.measured import Measured
from gatemark.procedures.overload.result import (
    RTT_FIGURES,
    EchoClientPart,
    EchoCounts,
    GracefulRules,
    HostFigure,
    OverloadPoint,
    OverloadResult,
    limit_of,
)
from gatemark.procedures.overload.table import DESTINATIONS, OverloadTable, host_count
from gatemark.procedures.procedure import RunTrials
from gatemark.results.document import Deviation
from gatemark.results.part import Figure
from gatemark.search.goal import Measure
from gatemark.stats.percentiles import DELAY_PERCENTILES
from gatemark.trial.cell import Cell
from gatemark.trial.echo import COUNTS, EchoFacts, EchoForm, RoundTrips
from gatemark.trial.echo_request import echo_request
from gatemark.trial.form import TrialForm
from gatemark.trial.messages import FramesRequest
from gatemark.trial.record import TrialRecord
from gatemark.trial.request import frames_of
from gatemark.trial.telemetry import AVAILABLE, Level, TelemetryFacts, figure_of, unit_of, words_of
from gatemark.units import NANOSECONDS_PER_SECOND, format_duration_ns, frames_in

SHOWN_PER_SECOND = 1000
"""Requests per second of frames that are only shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one column is measured with."""

    clients: int
    frames_per_second: int | None
    """Of the requests of all clients; None in a closed loop."""


def measure(trials: RunTrials) -> OverloadResult:
    """Measure every number of clients in each repetition."""
    campaign = trials.campaign
    table = campaign.table(OverloadTable)
    loads = loads_of(table)
    columns: list[list[Measured]] = [[] for _ in loads]
    for repetition in trials.repetitions():
        for load, column in zip(loads, columns, strict=True):
            step = Measure(
                frames_per_second=load.frames_per_second or 0,
                duration_ns=table.sending_ns,
                purpose="load",
                may_collapse=True,
            )
            column.append(trials.steps(repetition, form=form_of(campaign, load))(step))
    points = tuple(point_of(load, column) for load, column in zip(loads, columns, strict=True))
    destinations = table.destinations_of(campaign)
    return OverloadResult(
        **{**trials.facts(), "connections": None, "zero_checksum": None},  # ICMP has neither ports nor such checksums
        limited_by=limit_of(points),
        mode=table.mode,
        window=table.window,
        count=table.count,
        destinations=destinations,
        shared_destinations=table.most_clients * destinations > host_count(campaign, "right"),
        data_octets=table.data_octets,
        pace_without_reply_ns=table.pace_without_reply_ns if table.is_closed_loop else None,
        timeout_ns=table.timeout_ns,
        duration_ns=table.sending_ns,
        rules=GracefulRules(rate=table.graceful.rate, rtt=table.graceful.rtt, loss=table.graceful.loss),
        points=points,
    )


def loads_of(table: OverloadTable) -> tuple[Load, ...]:
    """Return the columns of a table in order."""
    return tuple(
        Load(clients=clients, frames_per_second=rate) for clients in table.clients for rate in (table.rates or (None,))
    )


def form_of(campaign: Campaign, load: Load) -> TrialForm:
    """Return what the trials of a column do."""
    table = campaign.table(OverloadTable)
    echo = EchoForm(
        clients=load.clients,
        window=table.window,
        count=table.count,
        destinations=table.destinations_of(campaign),
        pace_without_reply_ns=table.pace_without_reply_ns if table.is_closed_loop else None,
        timeout_ns=table.timeout_ns,
    )
    return TrialForm(echo=echo, drain_ns=max(campaign.trial.drain_ns, table.timeout_ns))


def point_of(load: Load, column: Sequence[Measured]) -> OverloadPoint:
    """Return what the repetitions of a column found."""
    records = [trial.valid for trial in column if trial.valid is not None]
    answered = [(record, facts) for record in records if (facts := record.report.echo) is not None]
    every = [facts for _, facts in answered]
    return OverloadPoint(
        clients=load.clients,
        frames_per_second=load.frames_per_second,
        repetitions=len(answered),
        tester_limited=len(column) - len(records),
        collapses=tuple(record.collapse for record in records if record.collapse is not None),
        counts=EchoCounts(**{name: tuple(facts.total(name) for facts in every) for name in COUNTS}),
        faults=dict(sorted(sum((_faults(record) for record, _ in answered), Counter[str]()).items())),
        loss_percent=Figure.of([_loss_percent(facts) for facts in every]),
        requests_per_second=Figure.of([_per_second(facts, "requests") for facts in every]),
        replies_per_second=Figure.of([_per_second(facts, "replies") for facts in every]),
        rtt_ns=_round_trips([facts.all for facts in every]),
        first_rtt_ns=_round_trips([facts.first for facts in every]),
        clients_apart=tuple(_client(every, number) for number in range(load.clients if every else 0)),
        outstanding=Figure.of([_outstanding(facts) for facts in every]),
        tester_share_percent=Figure.of([_tester_share(facts) for facts in every]),
        tester_busy_percent=Figure.of([_tester_busy(facts) for facts in every]),
        host=tuple(_host([record.telemetry for record, _ in answered])),
    )


def _faults(record: TrialRecord) -> Counter[str]:
    words = {"forward": "requests", "reverse": "replies"}
    return Counter(
        {
            f"{words[direction.direction]}: {reason}": count
            for direction in record.report.directions
            for reason, count in direction.foreground.faults.items()
            if count
        }
    )


def _loss_percent(facts: EchoFacts) -> Fraction | None:
    requests = facts.total("requests")
    return Fraction(100 * (requests - facts.total("replies")), requests) if requests else None


def _per_second(facts: EchoFacts, name: str) -> Fraction | None:
    """Return a rate of the steady part; None if there is none."""
    if facts.steady is None or facts.steady.lasted_ns <= 0:
        return None
    return Fraction(getattr(facts.steady, name) * NANOSECONDS_PER_SECOND, facts.steady.lasted_ns)


def _outstanding(facts: EchoFacts) -> Fraction | None:
    rate, mean_ns = _per_second(facts, "replies"), facts.all.mean_ns
    return None if rate is None or mean_ns is None else rate * mean_ns / NANOSECONDS_PER_SECOND


def _tester_share(facts: EchoFacts) -> Fraction | None:
    requests, mean_ns = facts.total("requests"), facts.all.mean_ns
    if not requests or not mean_ns:
        return None
    return Fraction(100 * (facts.client_busy_ns + facts.responder_busy_ns), requests * mean_ns)


def _tester_busy(facts: EchoFacts) -> Fraction | None:
    """Return for what share of the time both sides together worked, as if they shared a core."""
    asked = [client for client in facts.clients if client.requests]
    if not asked:
        return None
    lasted_ns = max(client.end_ns for client in asked) - min(client.begin_ns for client in asked)
    busy_ns = facts.client_busy_ns + facts.responder_busy_ns
    return Fraction(100 * busy_ns, lasted_ns) if lasted_ns > 0 else None


def _client(every: Sequence[EchoFacts], client: int) -> EchoClientPart:
    parts = [facts.clients[client] for facts in every]
    return EchoClientPart(
        client=client,
        rtt_ns=_round_trips([part.rtt for part in parts]),
        **{name: tuple(getattr(part, name) for part in parts) for name in COUNTS},
    )


def _round_trips(trips: Sequence[RoundTrips]) -> dict[str, Figure]:
    return {key: Figure.of([_rtt_ns(trip, key) for trip in trips]) for key in RTT_FIGURES}


def _rtt_ns(trip: RoundTrips, key: str) -> int | None:
    if key in DELAY_PERCENTILES:
        return trip.percentile_ns(DELAY_PERCENTILES[key])
    exact = {"minimum": trip.minimum_ns, "mean": trip.mean_ns, "deviation": trip.deviation_ns}
    return exact.get(key, trip.maximum_ns)


def _host(sampled: Sequence[TelemetryFacts | None]) -> Iterator[HostFigure]:
    """Yield what was sampled at the gateway's host while requests were sent."""
    spans = [None if facts is None else facts.span("sending") for facts in sampled]
    series = dict.fromkeys(name for span in spans if span is not None for name in span.levels)
    for name in series:
        levels = [None if span is None else span.levels.get(name) for span in spans]
        baselines = [None if facts is None else facts.level("before", name) for facts in sampled]
        is_memory = unit_of(name) == "kB"
        yield HostFigure(
            series=name,
            name=words_of(name),
            unit=unit_of(name),
            values=Figure.of([None if level is None else figure_of(name, level) for level in levels]),
            deviation=Figure.of([None if level is None else level.sd for level in levels]),
            above_baseline=Figure.of([_more(name, *pair) for pair in zip(baselines, levels, strict=True)])
            if is_memory
            else None,
        )


def _more(series: str, before: Level | None, sending: Level | None) -> float | None:
    """Return how much more memory was in use than before; None if either is not known."""
    if before is None or sending is None:
        return None
    change = figure_of(series, sending) - before.mean
    return -change if series == AVAILABLE else change


def echo_cell(campaign: Campaign, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return one cell: requests go from left to right, and have a size of their own."""
    sizes = campaign.table(OverloadTable).frame_sizes(campaign)
    return (replace(cells[0], direction="forward", mix=Mix(1, 1), frame_sizes=sizes, connections=None),)


def shown_frames(campaign: Campaign, cell: Cell, count: int) -> FramesRequest:
    """Return the request that shows the first requests of the most clients, as if they were due at a constant rate."""
    table = campaign.table(OverloadTable)
    form = form_of(campaign, Load(clients=table.most_clients, frames_per_second=None))
    form = replace(form, echo=replace(form.of_echo, pace_without_reply_ns=None))
    duration_ns = count * NANOSECONDS_PER_SECOND // SHOWN_PER_SECOND
    body = echo_request(
        campaign, cell, frames_per_second=SHOWN_PER_SECOND, duration_ns=duration_ns, trial_number=1, form=form
    )
    return frames_of(campaign, body, count)


def deviations(campaign: Campaign) -> Iterator[Deviation]:
    """Say that this is no procedure of an RFC, and what is left open by the table."""
    table = campaign.table(OverloadTable)
    yield Deviation(
        sentence="Echo requests in a closed loop are no procedure of RFC 8219, whose section 10 asks for flows of the"
        " benchmark itself; Xpd is computed as there, with clients in place of flows."
        if table.is_closed_loop
        else "Echo requests are not a procedure of RFC 8219, whose section 10 asks for flows of the benchmark itself."
    )
    destinations = table.destinations_of(campaign)
    if table.destinations is None and destinations < DESTINATIONS:
        yield Deviation(
            sentence=f"Each client asks {destinations} destinations, not {DESTINATIONS}: there are no more hosts on the"
            " right for the most clients, or no more entries in the gateway's table."
        )
    fitting = table.fitting_rate(campaign, table.most_clients)
    if fitting is not None:
        yield Deviation(
            sentence=f"The gateway's table has {campaign.gateway.table.size} entries,"
            f" {table.most_clients * destinations} are made with {table.most_clients} clients: it holds them only up to"
            f" {fitting} requests/s, if it forgets each after {format_duration_ns(table.state_timeout_ns)}."
        )
    for load in loads_of(table):
        echo = form_of(campaign, load).echo
        if echo is None or load.frames_per_second is None:
            continue
        if frames_in(load.frames_per_second, table.sending_ns) > echo.requests:
            yield Deviation(
                sentence=f"At {load.frames_per_second} requests/s of {load.clients} clients destinations are asked"
                " again after the last one, and then find state that the gateway made before."
            )
            return
