"""Echo requests through a simulated gateway: what the engine would report of them. Pure arithmetic.

A closed loop keeps all of its slots busy, so requests per second and round-trip time follow from each other: with few
clients the delay of the gateway sets the pace, with many its capacity. The truth is known for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.simulated.delays import PERCENTILES
from tests.simulated.device import SimulatedDevice
from tests.simulated.zeros import zeros_of

from gatemark.trial.report import Counts
from gatemark.units import frames_in

NANOSECONDS_PER_SECOND = 1_000_000_000
BUSY_NS = 200
"""Time of the simulated Tester for a frame on either side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Echoes:
    """One trial."""

    per_second: int
    round_trip_ns: int
    shortest_ns: int
    requests: int
    lost: int
    late: bool
    sending_ns: int

    @property
    def answered(self) -> int:
        return self.requests - self.lost

    @property
    def replies(self) -> int:
        return 0 if self.late else self.answered


def echo_trial(device: SimulatedDevice, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return `directions` and `echo` of the report of a trial of echo requests."""
    echo = body["echo"]
    echoes = _echoes(device, body)
    clients = [_client(echo, echoes, number) for number in range(echo["clients"])]
    first = sum(client["requests"] for client in clients) // echo["count"]
    return {
        "directions": [_direction(body, echoes, way) for way in ("forward", "reverse")],
        "echo": {
            "steady": {
                "begin_ns": 0,
                "end_ns": echoes.sending_ns,
                "requests": echoes.requests,
                "replies": echoes.replies,
            },
            "clients": clients,
            "all": _round_trips(echoes, echoes.requests, echoes.replies),
            "first": _round_trips(echoes, first, min(first, echoes.replies)),
            "client_busy_ns": echoes.requests * BUSY_NS,
            "responder_busy_ns": echoes.answered * BUSY_NS,
        },
    }


def _echoes(device: SimulatedDevice, body: Mapping[str, Any]) -> _Echoes:
    echo, duration_ns, delay_ns = body["echo"], int(body["duration_ns"]), max(1, device.delays_ns[0])
    wanted = echo["clients"] * echo["destinations"] * echo["count"]
    capacity = device.capacity_forward
    if echo["closed_loop"] is None:
        per_second = int(body["directions"][0]["frames_per_second"])
        requests, sending_ns, round_trip_ns = frames_in(per_second, duration_ns), duration_ns, delay_ns
        overload = max(0, requests - frames_in(capacity, duration_ns))
    else:
        slots = echo["clients"] * echo["window"]
        per_second = min(capacity, slots * NANOSECONDS_PER_SECOND // delay_ns)
        requests, overload = min(wanted, frames_in(per_second, duration_ns)), 0
        sending_ns = requests * NANOSECONDS_PER_SECOND // per_second
        round_trip_ns = slots * NANOSECONDS_PER_SECOND // per_second
    return _Echoes(
        per_second=per_second,
        round_trip_ns=round_trip_ns,
        shortest_ns=delay_ns,
        requests=requests,
        lost=min(requests, overload + int(requests * device.loss_ratio)),
        late=round_trip_ns > echo["timeout_ns"],
        sending_ns=sending_ns,
    )


def _share(total: int, clients: int, number: int) -> int:
    """Return the part of one client; the first ones have what is left over."""
    return total // clients + (number < total % clients)


def _client(echo: Mapping[str, Any], echoes: _Echoes, number: int) -> dict[str, Any]:
    requests, lost = (_share(total, echo["clients"], number) for total in (echoes.requests, echoes.lost))
    replies = 0 if echoes.late else requests - lost
    return {
        "client": number,
        "begin_ns": 0,
        "end_ns": echoes.sending_ns,
        "requests": requests,
        "arrived": requests - lost,
        "replies": replies,
        "late": requests - lost - replies,
        "lost": lost,
        "duplicate": 0,
        "faulty": 0,
        "rtt": _round_trips(echoes, requests, replies),
    }


def _round_trips(echoes: _Echoes, requests: int, samples: int) -> dict[str, Any]:
    known = samples > 0
    rtt_ns = echoes.round_trip_ns
    return {
        "requests": requests,
        "samples": samples,
        "minimum_ns": echoes.shortest_ns if known else None,
        "mean_ns": rtt_ns if known else None,
        "deviation_ns": rtt_ns // 10 if known else None,
        "maximum_ns": 2 * rtt_ns if known else None,
        "percentiles": [
            {"per_100000": rank, "ns": rtt_ns if -(-requests * rank // 100_000) <= samples else None}
            for rank in PERCENTILES
            if requests
        ],
    }


def _direction(body: Mapping[str, Any], echoes: _Echoes, way: str) -> dict[str, Any]:
    is_forward, is_closed = way == "forward", body["echo"]["closed_loop"] is not None
    offered = echoes.requests if is_forward else echoes.answered
    received = echoes.answered if is_forward else echoes.replies
    late = offered - received if echoes.late and not is_forward else 0
    return {
        "direction": way,
        "frames_per_second": echoes.per_second if is_forward and not is_closed else 0,
        "intended_duration_ns": int(body["duration_ns"]),
        "sending_ns": echoes.sending_ns,
        "lateness_max_ns": 0,
        "gave_up": False,
        "lateness_histogram": [],
        "refused": 0,
        "longest_loss_runs": [],
        "late_bursts": [],
        "foreground": _counts(offered=offered, received=received, late=late, lost=offered - received - late),
        "background": _counts(),
    }


def _counts(*, offered: int = 0, received: int = 0, late: int = 0, lost: int = 0) -> dict[str, Any]:
    return {
        **zeros_of(Counts),
        "frame_octets": None,
        "intended": offered,
        "offered": offered,
        "received": received,
        "faulty": 0,
        "late": late,
        "lost": lost,
        "faults": {},
        "loss": {
            "runs": min(1, lost),
            "longest_run": lost,
            "first_index": 0,
            "last_index": max(0, lost - 1),
            "first_runs": [{"index": 0, "length": lost}] if lost else [],
            "by_slice": [lost, *[0] * 99],
        },
        "loss_table": None,
        "delay": {
            "samples": 0,
            "negative": 0,
            "negative_maximum_ns": 0,
            "minimum_ns": None,
            "maximum_ns": None,
            "percentiles": [],
            "histogram": [],
            "tags": None,
            "variation": None,
        },
    }
