"""A pair of trials, one of each gateway at one load, and what may be concluded from it. Pure.

The figure of a trial needs no search. It is the forwarding rate (RFC 2285 section 3.6.1) at a load above what the
gateway forwards, so at the maximum offered load (section 3.6.2): frames delivered correctly, divided by the sending
time. Or it is the median delay at a load that both gateways forward. Or it is the connections that are established
during test phase 1 (RFC 9693 section 4.2) at a rate above what the gateway establishes, divided by the sending time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from gatemark.pairs.figure import Figure, delay_of, established_of, rate_of
from gatemark.trial.record import TrialRecord
from gatemark.trial.report import DirectionResult
from gatemark.units import NANOSECONDS_PER_SECOND

Side = Literal["A", "B"]
SIDES: tuple[Side, Side] = ("A", "B")
OTHER: Mapping[Side, Side] = {"A": "B", "B": "A"}

Outcome = Literal["measured", "bound", "lossy", "invalid", "suspect"]
"""What a trial says. ``bound``: the gateway forwarded nearly all that was offered, so its rate may be higher than
measured. ``lossy``: it lost frames at a load that was to be below its limit, so its delay is another one. ``invalid``:
the Tester did not do its job. ``suspect``: other work held up the gateway's host."""

LEFT_OUT: frozenset[Outcome] = frozenset(("lossy", "invalid", "suspect"))
"""Trials that take their partner with them."""

BOUND_BELOW = Fraction(1, 20)
"""A gateway that lost a smaller share in a direction may not have been the limit: where its speed changes within a
trial, it forwarded all for part of the time."""

LOSSY_ABOVE = Fraction(1, 100)
"""A gateway that lost a larger share in a direction was overloaded for part of the trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideTrial:
    """One trial of a pair, or one search."""

    trial_number: int
    """Of a search, that of its last trial."""
    outcome: Outcome
    value: float
    """The figure: frames delivered per second of sending, in all directions together; the median delay, ns;
    connections established per second of sending; or the throughput that a search found, frames/s."""
    highest_rate: float
    """Frames delivered, or connections established, per second of sending, of the direction with most."""
    loss_ratio: Fraction
    """Share not delivered or established, of the direction with the least."""
    reasons: tuple[str, ...]
    seconds: float
    """From its start to the end of its judgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two trials at one load."""

    number: int
    """From 1, those of searches for a load included."""
    load: int
    """Frames/s in each direction, or connections/s."""
    is_search: bool
    """Whether it was made to find a load; then it does not count."""
    first: Side
    """Which trial was made first."""
    trials: Mapping[Side, SideTrial]
    at_s: float
    """When it began, seconds of measuring."""

    @property
    def is_kept(self) -> bool:
        """Whether both trials are valid and not suspect: one that is not takes its partner with it."""
        return not any(trial.outcome in LEFT_OUT for trial in self.trials.values())

    @property
    def counts(self) -> bool:
        """Whether the estimate rests on it."""
        return self.is_kept and not self.is_search

    @property
    def logarithms(self) -> tuple[float, float]:
        """Between what the logarithm of B's figure / A's figure lies; both ends are equal if neither trial is a bound.

        A trial that is a bound does not limit the ratio from the side on which its gateway may be faster.
        """
        ratio = _logarithm(self.trials["B"].value) - _logarithm(self.trials["A"].value)
        if math.isnan(ratio):  # neither gateway has a figure
            return -math.inf, math.inf
        is_bound = {side: trial.outcome == "bound" for side, trial in self.trials.items()}
        return -math.inf if is_bound["A"] else ratio, math.inf if is_bound["B"] else ratio


def _logarithm(value: float) -> float:
    return math.log(value) if value else -math.inf


def side_trial(record: TrialRecord, figure: Figure, *, is_search: bool) -> SideTrial:
    """Return what a trial says of its gateway."""
    directions = record.report.directions
    rates = [_established_rate(record)] if figure.establishes else [rate_of(direction) for direction in directions]
    losses = _losses(record, figure) or [Fraction(0)]
    least, most = min(losses), max(losses)
    outcome: Outcome = "measured"
    if figure.is_overload and least < BOUND_BELOW:
        outcome = "bound"
    elif not figure.is_overload and not is_search and most > LOSSY_ABOVE:
        outcome = "lossy"
    reasons: tuple[str, ...] = ()
    if not record.validity.valid:
        outcome, reasons = "invalid", record.validity.reasons
    elif record.suspicion is not None:
        outcome, reasons = "suspect", (record.suspicion.reason,)
    return SideTrial(
        trial_number=record.order.trial_number,
        outcome=outcome,
        value=sum(rates) if figure.is_overload else max((delay_of(direction) for direction in directions), default=0),
        highest_rate=max(rates, default=0.0),
        loss_ratio=least,
        reasons=reasons,
        seconds=record.seconds,
    )


def _established_rate(record: TrialRecord) -> float:
    sending_ns = sum(direction.sending_ns for direction in record.report.directions)  # only the Initiator sends
    return established_of(record) * NANOSECONDS_PER_SECOND / max(1, sending_ns)


def _losses(record: TrialRecord, figure: Figure) -> list[Fraction]:
    if not figure.establishes:
        return [_loss_ratio(direction) for direction in record.report.directions]
    connections = record.report.connections
    return [] if connections is None else [1 - Fraction(established_of(record), connections.count)]


def _loss_ratio(direction: DirectionResult) -> Fraction:
    offered = sum(counts.offered for _, counts in direction.classes)
    received = sum(counts.received for _, counts in direction.classes)
    return 1 - Fraction(received, offered) if offered else Fraction(0)
