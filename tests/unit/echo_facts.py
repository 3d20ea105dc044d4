"""Reports of trials of echo requests, as the engine would make them."""

from __future__ import annotations

from typing import Any

from tests.trial_facts import blank, changed

from gatemark.trial.echo import EchoClient, EchoFacts, EchoForm, EchoSteady, RankedRoundTrip, RoundTrips
from gatemark.trial.report import Counts, DirectionResult, PortFacts, TrialReport

FORM = EchoForm(
    clients=2, window=4, count=11, destinations=8, pace_without_reply_ns=10_000_000, timeout_ns=1_000_000_000
)
RATE_FORM = EchoForm(clients=2, window=4, count=11, destinations=8, pace_without_reply_ns=None, timeout_ns=10**9)


def round_trips(requests: int, samples: int, mean_ns: int = 1_000_000) -> RoundTrips:
    """Round trips of which the mean is known, and all else follows."""
    if not samples:
        return blank(RoundTrips, requests=requests)
    ranks = (50_000, 90_000, 99_000, 99_900, 99_990, 99_999)
    return RoundTrips(
        requests=requests,
        samples=samples,
        minimum_ns=mean_ns // 2,
        mean_ns=mean_ns,
        deviation_ns=mean_ns // 10,
        maximum_ns=3 * mean_ns,
        percentiles=tuple(
            RankedRoundTrip(per_100000=rank, ns=None if requests * rank > samples * 100_000 else mean_ns + rank)
            for rank in ranks
        ),
    )


def client(number: int, *, requests: int = 88, lost: int = 0, late: int = 0, mean_ns: int = 1_000_000) -> EchoClient:
    """One client of a second; what was not lost arrived, was answered, and came back."""
    replies = requests - lost - late
    return EchoClient(
        client=number,
        begin_ns=0,
        end_ns=10**9,
        requests=requests,
        arrived=requests - lost,
        replies=replies,
        late=late,
        lost=lost,
        duplicate=0,
        faulty=0,
        rtt=round_trips(requests, replies, mean_ns),
    )


def direction(name: str, *, offered: int, received: int, late: int = 0, **given: Any) -> DirectionResult:
    """One direction: what neither arrived nor was late is lost."""
    counts = blank(
        Counts,
        intended=offered,
        offered=offered,
        received=received,
        late=late,
        lost=offered - received - late,
    )
    return blank(
        DirectionResult,
        direction=name,
        intended_duration_ns=10**9,
        sending_ns=10**9,
        foreground=counts,
        **given,
    )


def report(*clients: EchoClient, mean_ns: int = 1_000_000, frames_per_second: int = 0, **given: Any) -> TrialReport:
    """The report of a trial with these clients."""
    total = {
        name: sum(getattr(one_of, name) for one_of in clients) for name in EchoClient.model_fields if name != "rtt"
    }
    echo = EchoFacts(
        steady=EchoSteady(begin_ns=0, end_ns=10**9, requests=total["requests"], replies=total["replies"]),
        clients=clients,
        all=round_trips(total["requests"], total["replies"], mean_ns),
        first=round_trips(min(16, total["requests"]), min(16, total["replies"]), 2 * mean_ns),
        client_busy_ns=1000 * total["requests"],
        responder_busy_ns=1000 * total["arrived"],
    )
    port = blank(PortFacts, link_up=True)
    whole = blank(
        TrialReport,
        trial_number=1,
        directions=(
            direction(
                "forward",
                offered=total["requests"],
                received=total["arrived"],
                frames_per_second=frames_per_second,
            ),
            direction("reverse", offered=total["arrived"], received=total["replies"], late=total["late"]),
        ),
        ports={"left": port, "right": port},
        echo=echo,
    )
    return changed(whole, **given)
