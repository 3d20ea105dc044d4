"""A gateway and a Tester made of numbers, behind the same methods as the real engine.

For tutorials, examples and tests: the truth is known, nothing is sent, no time passes, and every trial is a pure
function of (device, seed, trial number, load), so an interrupted campaign resumes to the same result.

::

    engine = SimulatedEngine(SimulatedDevice(capacity_forward=812_345, noise=0.01))
    results = run_campaign(campaign, make_plan(campaign), engine, journal)
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gatemark.engine.client import PROTOCOL_VERSION, JsonObject, ProgressCallback
from gatemark.errors import EngineError, Interrupted

NANOSECONDS_PER_SECOND = 1_000_000_000
SLICES = 100
MAC_ADDRESSES = {"left": "02:00:00:00:00:01", "right": "02:00:00:00:00:02"}
OWN_DROPS = (
    "rx_missed",
    "rx_no_buffer",
    "rx_errors",
    "tx_errors",
    "socket_drops",
    "interface_rx_dropped",
    "interface_tx_dropped",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedDevice:
    """A gateway and the Tester before it. Loads and capacities are frames/s in one direction."""

    capacity_forward: int
    """Highest load that is forwarded whole; above it, exactly the capacity is forwarded."""
    capacity_reverse: int | None = None
    """None: as forward."""
    noise: float = 0.0
    """Each trial has a capacity of its own, evenly spread over +- this share of the nominal one."""
    loss_ratio: float = 0.0
    """Each frame is lost with this probability, whatever the load; below one expected frame, at random."""
    lossy_windows: tuple[tuple[int, int], ...] = ()
    """Loads (lowest, highest) at which one frame is lost although the capacity would do: loss inversion."""
    lossless_windows: tuple[tuple[int, int], ...] = ()
    """Loads (lowest, highest) at which nothing is lost although the capacity would not do: loss inversion."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """Reason -> n: every n-th frame comes back with this fault."""
    duplicate_every: int = 0
    """Every n-th frame arrives twice; 0 is never."""
    tester_limit: int | None = None
    """Highest load that the Tester can offer; above it, trials are invalid."""
    tester_fault: Literal["late", "drops", "short"] = "late"
    """What happens above the limit: bursts leave late, the Tester drops what it receives, or it gives up sending."""
    hiccup_every: int = 0
    """Every n-th trial is invalid whatever the load, as if the Tester's processor had been taken away; 0 is never."""
    link_down_from_trial: int | None = None
    """From this trial number on the links are down."""
    dies_at_trial: int | None = None
    """The engine dies in the trial of this number, once."""
    interrupted_at_trial: int | None = None
    """The user presses Ctrl-C in the trial of this number, once."""

    def capacity(self, direction: str) -> int:
        """Return the nominal capacity of one direction."""
        if direction == "reverse" and self.capacity_reverse is not None:
            return self.capacity_reverse
        return self.capacity_forward


class SimulatedEngine:
    """Has the methods of `EngineClient` and answers from a `SimulatedDevice`."""

    def __init__(self, device: SimulatedDevice, *, link_mbps: int = 10_000) -> None:
        self.device = device
        self.trials_made = 0
        """Trials that were really asked for, not replayed: what a resumed campaign saves."""
        self._link_mbps = link_mbps
        self._ended = False
        self._cancelled = False
        self._link_up = True

    def hello(self) -> JsonObject:
        """Return version and machine."""
        return {
            "answer": "ok",
            "id": 1,
            "protocol": PROTOCOL_VERSION,
            "version": "simulated",
            "dpdk": "none",
            "tsc_hz": NANOSECONDS_PER_SECOND,
            "tsc_invariant": True,
            "build": "simulated",
            "processors": [0],
        }

    def open(self, body: Mapping[str, Any]) -> JsonObject:
        """Return two ports."""
        ports = {side: self._port(side, body.get(side) or {}) for side in ("left", "right")}
        return {"answer": "ok", "id": 2, **ports, "workers": [{"processor": 0, "tasks": []}], "huge_pages": False}

    def resolve(self, body: Mapping[str, Any]) -> JsonObject:
        """Return the gateway's link-layer address."""
        mac = "02:00:00:00:01:01" if body["side"] == "left" else "02:00:00:00:01:02"
        return {"answer": "ok", "id": 3, "side": body["side"], "gateway": body["gateway"], "mac": mac}

    def trial(self, body: Mapping[str, Any], on_progress: ProgressCallback | None = None) -> JsonObject:
        """Return what the device makes of a trial, with one progress record in its middle."""
        number = int(body["trial_number"])
        self._meet_fate(number)
        self.trials_made += 1
        self._cancelled = False
        generator = random.Random(f"{body['seed']}/{number}")
        directions = [self._direction(body, wanted, generator) for wanted in body["directions"]]
        if on_progress is not None:
            on_progress(self._progress(body, directions))
        return {
            "answer": "ok",
            "id": 4,
            "trial_number": number,
            "cancelled": self._cancelled,
            "phases": _phases(body),
            "directions": directions,
            "ports": {side: self._port_facts(body) for side in ("left", "right")},
            "kept_frames": [],
        }

    def frames(self, body: Mapping[str, Any]) -> JsonObject:
        """Return no frames: there are none."""
        return {"answer": "ok", "id": 5, "frames": []}

    def link(self) -> JsonObject:
        """Return both ports."""
        return {"answer": "ok", "id": 6, **{side: self._port(side, {}) for side in ("left", "right")}}

    def cancel(self) -> None:
        """Mark the running trial as cancelled."""
        self._cancelled = True

    def close(self) -> None:
        """End: nothing to do."""
        self._ended = True

    def _meet_fate(self, number: int) -> None:
        device = self.device
        if device.link_down_from_trial is not None and number >= device.link_down_from_trial:
            self._link_up = False
        if self._ended or device.dies_at_trial == number:
            self._ended = True
            raise EngineError(what="it died during the request 'trial'", where="simulated engine", fix="")
        if device.interrupted_at_trial == number:
            raise Interrupted(what="stopped by the user", where="request 'trial'", fix="")

    def _direction(self, body: Mapping[str, Any], wanted: Mapping[str, Any], generator: random.Random) -> JsonObject:
        device, load, duration_ns = self.device, int(wanted["frames_per_second"]), int(body["duration_ns"])
        intended = max(1, load * duration_ns // NANOSECONDS_PER_SECOND)
        limited = self._tester_fails(load, int(body["trial_number"]))
        late = limited and device.tester_fault == "late"
        short = limited and device.tester_fault == "short"
        offered = intended - max(1, intended // 10) if short else intended
        lost = self._lost(str(wanted["direction"]), load, offered, generator)
        m, n = int(wanted["foreground_m"]), int(wanted["foreground_n"])
        return {
            "direction": wanted["direction"],
            "frames_per_second": load,
            "intended_duration_ns": duration_ns,
            "sending_ns": duration_ns + (duration_ns // 50 if late else 0),
            "lateness_max_ns": duration_ns // 50 + NANOSECONDS_PER_SECOND if late else 20_000,
            "gave_up": short,
            "lateness_histogram": [{"below_ns": 1_000_000, "bursts": intended}],
            "refused": 0,
            "foreground": self._counts(intended, offered, lost, m, n, foreground=True),
            "background": self._counts(intended, offered, lost, m, n, foreground=False),
        }

    def _tester_fails(self, load: int, number: int) -> bool:
        device = self.device
        hiccup = device.hiccup_every > 0 and number % device.hiccup_every == 0
        return hiccup or (device.tester_limit is not None and load > device.tester_limit)

    def _lost(self, direction: str, load: int, offered: int, generator: random.Random) -> int:
        """Return how many frames the gateway does not forward."""
        device = self.device
        spread, chance = generator.uniform(-1, 1), generator.random()
        capacity = int(device.capacity(direction) * (1 + device.noise * spread))
        if any(lowest <= load <= highest for lowest, highest in device.lossless_windows):
            return 0
        lost = offered - offered * capacity // load if load > capacity else 0
        if any(lowest <= load <= highest for lowest, highest in device.lossy_windows):
            lost = max(lost, 1)
        expected = offered * device.loss_ratio
        lost += int(expected) + (1 if chance < expected - int(expected) else 0)
        return min(lost, offered)

    def _counts(self, intended: int, offered: int, lost: int, m: int, n: int, *, foreground: bool) -> JsonObject:
        """Return the counts of one class. The last frames offered are the ones lost."""
        device = self.device
        share = [_of_class(total, m, n, foreground=foreground) for total in (intended, offered, offered - lost)]
        class_intended, class_offered, arrived = share
        faults = {reason: arrived // every for reason, every in device.faults.items() if arrived // every}
        faulty = max(faults.values(), default=0)
        class_lost = class_offered - arrived
        runs = [{"index": offered - lost, "length": lost}] if class_lost else []
        by_slice = [0] * SLICES
        if class_lost:
            by_slice[-1] = class_lost
        return {
            "intended": class_intended,
            "offered": class_offered,
            "received": arrived - faulty,
            "faulty": faulty,
            "duplicate": arrived // device.duplicate_every if device.duplicate_every else 0,
            "lost": class_lost,
            "reordered": 0,
            "reordering_extent_max": 0,
            "faults": faults,
            "loss": {
                "runs": len(runs),
                "longest_run": lost if class_lost else 0,
                "first_index": offered - lost if class_lost else 0,
                "last_index": offered - 1 if class_lost else 0,
                "first_runs": runs,
                "by_slice": by_slice,
            },
        }

    def _port_facts(self, body: Mapping[str, Any]) -> JsonObject:
        load = max(int(direction["frames_per_second"]) for direction in body["directions"])
        drops = dict.fromkeys(OWN_DROPS, 0)
        if self.device.tester_fault == "drops" and self._tester_fails(load, int(body["trial_number"])):
            drops["socket_drops"] = 17
        return {
            "link_up": self._link_up,
            "foreign": {"other_trial": 0, "neighbour": 2, "icmp": {}, "fragment": 0, "foreign": 0},
            "own_drops": drops,
            "peer_queue_drops": 0,
        }

    def _progress(self, body: Mapping[str, Any], directions: list[JsonObject]) -> JsonObject:
        halves = [
            {
                "direction": direction["direction"],
                "offered": (direction["foreground"]["offered"] + direction["background"]["offered"]) // 2,
                "received": (direction["foreground"]["received"] + direction["background"]["received"]) // 2,
            }
            for direction in directions
        ]
        elapsed_ns = int(body["duration_ns"]) // 2
        return {"answer": "progress", "id": 4, "phase": "send", "elapsed_ns": elapsed_ns, "directions": halves}

    def _port(self, side: str, wanted: Mapping[str, Any]) -> JsonObject:
        return {
            "port": wanted.get("port", f"simulated:{side}"),
            "driver": "simulated",
            "mac": MAC_ADDRESSES[side],
            "numa_node": -1,
            "link_up": self._link_up,
            "link_mbps": self._link_mbps,
            "mtu": wanted.get("mtu", 1500),
        }


def _of_class(total: int, m: int, n: int, *, foreground: bool) -> int:
    """Return how many of the first `total` frames are of the class: frame i is foreground iff i mod n < m."""
    of_foreground = total // n * m + min(total % n, m)
    return of_foreground if foreground else total - of_foreground


def _phases(body: Mapping[str, Any]) -> list[JsonObject]:
    waits = body.get("waits", {})
    durations = [
        ("settle", waits.get("settle_ns", 0)),
        ("learn", waits.get("learn_ns", 0)),
        ("send", body["duration_ns"]),
        ("drain", waits.get("drain_ns", 0)),
        ("rest", waits.get("rest_ns", 0)),
    ]
    return [{"phase": phase, "duration_ns": duration_ns} for phase, duration_ns in durations]
