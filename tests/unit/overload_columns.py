"""Columns of results of echo requests with given figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gatemark.procedures.overload.result import (
    RTT_FIGURES,
    EchoClientPart,
    EchoCounts,
    GracefulRules,
    HostFigure,
    OverloadPoint,
    OverloadResult,
)
from gatemark.results.part import Figure
from gatemark.results.run import FrameSizes, Mix

RULES = GracefulRules(rate="9/10", rtt="5/4", loss="1/1000")


def figure(*values: float | None) -> Figure:
    """A figure whose summary is of its values."""
    known = [round(value * 1000) for value in values if value is not None]
    plain = Figure.of(known if len(known) == len(values) else [*known, None])
    if plain.summary is None:
        return Figure(values=values, summary=None)
    scaled = {name: getattr(plain.summary, name) / 1000 for name in ("median", "p1", "p99")}
    return Figure(values=values, summary=plain.summary.model_copy(update=scaled))


@dataclass(frozen=True)
class Column:
    """What is known of one number of clients."""

    clients: int
    per_second: float
    mean_ns: float
    loss_percent: float = 0.0


def point(column: Column, **given: Any) -> OverloadPoint:
    """A column of one repetition with these figures."""
    round_trips = {key: figure(column.mean_ns) for key in RTT_FIGURES}
    ones = dict.fromkeys(EchoCounts.model_fields, (100,))
    client = EchoClientPart(client=0, rtt_ns=round_trips, **ones)
    busy = HostFigure(
        series="busy",
        name="busy share, mean of the cores",
        unit="%",
        values=figure(50.0),
        deviation=figure(3.0),
        above_baseline=None,
    )
    memory = HostFigure(
        series="memory_available",
        name="memory available",
        unit="kB",
        values=figure(100_000.0),
        deviation=figure(10.0),
        above_baseline=figure(2048.0),
    )
    fields: dict[str, Any] = {
        "clients": column.clients,
        "frames_per_second": None,
        "repetitions": 1,
        "tester_limited": 0,
        "collapses": (),
        "counts": EchoCounts(**ones),
        "faults": {},
        "loss_percent": figure(column.loss_percent),
        "requests_per_second": figure(column.per_second),
        "replies_per_second": figure(column.per_second),
        "rtt_ns": round_trips,
        "first_rtt_ns": round_trips,
        "clients_apart": (client,) * column.clients,
        "outstanding": figure(column.per_second * column.mean_ns / 1e9),
        "tester_share_percent": figure(1.0),
        "tester_busy_percent": figure(2.0),
        "host": (busy, memory),
    }
    return OverloadPoint(**(fields | given))


def result(points: Sequence[OverloadPoint], **given: Any) -> OverloadResult:
    """A run with these columns."""
    fields: dict[str, Any] = {
        "number": 1,
        "direction": "forward",
        "frame_sizes": FrameSizes(ipv4=102, ipv6=122),
        "mix": Mix(m=1, n=1),
        "theoretical_maximum": None,
        "limited_by": "gateway",
        "connections": None,
        "zero_checksum": None,
        "trials": len(points),
        "invalid_trials": 0,
        "mode": "closed_loop",
        "window": 4,
        "count": 11,
        "destinations": 16_384,
        "shared_destinations": False,
        "data_octets": 56,
        "pace_without_reply_ns": 10_000_000,
        "timeout_ns": 10**9,
        "duration_ns": 600 * 10**9,
        "rules": RULES,
        "points": tuple(points),
    }
    return OverloadResult(**(fields | given))


TAYGA = (
    Column(1, 5721, 447_000, 0.01),
    Column(2, 6614, 957_000, 0.01),
    Column(4, 7085, 1_986_000, 0.03),
    Column(8, 6890, 4_406_000, 0.03),
)
"""What the first experiment of this kind found of TAYGA."""

PF = (
    Column(1, 5909, 405_000, 0.02),
    Column(2, 11_091, 486_000, 0.02),
    Column(4, 18_367, 606_000, 0.02),
    Column(8, 22_886, 1_194_000, 0.02),
)
"""The same of PF."""
