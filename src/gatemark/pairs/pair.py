"""A pair of trials, one of each gateway at one load, and what may be concluded from it. Pure.

The figure of a trial is the forwarding rate (RFC 2285 section 3.6.1) at a load above what the gateway forwards, so at
the maximum offered load (section 3.6.2): frames delivered correctly, divided by the sending time. It needs no search.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from gatemark.trial.record import TrialRecord
from gatemark.units import NANOSECONDS_PER_SECOND

Side = Literal["A", "B"]
SIDES: tuple[Side, Side] = ("A", "B")

Outcome = Literal["measured", "bound", "invalid", "suspect"]
"""What a trial says. ``bound``: the gateway forwarded nearly all that was offered, so it may be faster than its figure.
``invalid``: the Tester did not do its job. ``suspect``: others held up the gateway's host."""

BOUND_BELOW = Fraction(1, 20)
"""A gateway that lost a smaller share in a direction may not have been the limit: where its speed changes within a
trial, it forwarded all for part of the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideTrial:
    """One trial of a pair."""

    trial_number: int
    outcome: Outcome
    rate: float
    """Frames delivered per second of sending, in all directions together."""
    highest_rate: float
    """The same of the direction that delivered most."""
    loss_ratio: Fraction
    """Share not delivered, of the direction that lost least."""
    reasons: tuple[str, ...]
    seconds: float
    """From its start to the end of its judgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two trials at one load."""

    number: int
    """From 1, those of searches for a load included."""
    load: int
    """Frames/s in each direction."""
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
        return all(trial.outcome in ("measured", "bound") for trial in self.trials.values())

    @property
    def counts(self) -> bool:
        """Whether the estimate rests on it."""
        return self.is_kept and not self.is_search

    @property
    def logarithms(self) -> tuple[float, float]:
        """Between what the logarithm of B's rate / A's rate lies; both ends are equal if neither trial is a bound.

        A trial that is a bound does not limit the ratio from the side on which its gateway may be faster.
        """
        ratio = _logarithm(self.trials["B"].rate) - _logarithm(self.trials["A"].rate)
        if math.isnan(ratio):  # neither gateway forwarded anything
            return -math.inf, math.inf
        is_bound = {side: trial.outcome == "bound" for side, trial in self.trials.items()}
        return -math.inf if is_bound["A"] else ratio, math.inf if is_bound["B"] else ratio


def _logarithm(rate: float) -> float:
    return math.log(rate) if rate else -math.inf


def side_trial(record: TrialRecord) -> SideTrial:
    """Return what a trial says of its gateway."""
    rates, losses = [], []
    for direction in record.report.directions:
        offered = sum(counts.offered for _, counts in direction.classes)
        received = sum(counts.received for _, counts in direction.classes)
        rates.append(received * NANOSECONDS_PER_SECOND / max(1, direction.sending_ns))
        losses.append(1 - Fraction(received, offered) if offered else Fraction(0))
    outcome, reasons = _outcome(record, min(losses, default=Fraction(0)))
    return SideTrial(
        trial_number=record.order.trial_number,
        outcome=outcome,
        rate=sum(rates),
        highest_rate=max(rates, default=0.0),
        loss_ratio=min(losses, default=Fraction(0)),
        reasons=reasons,
        seconds=record.seconds,
    )


def _outcome(record: TrialRecord, least_loss: Fraction) -> tuple[Outcome, tuple[str, ...]]:
    if not record.validity.valid:
        return "invalid", record.validity.reasons
    if record.suspicion is not None:
        return "suspect", (record.suspicion.reason,)
    return ("bound" if least_loss < BOUND_BELOW else "measured"), ()
