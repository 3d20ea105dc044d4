"""A gateway and a Tester made of numbers, behind the same methods as the real engine.

For tutorials, examples and tests: the truth is known, nothing is sent, no time passes, and every trial is a pure
function of (device, seed, trial number, load), so an interrupted campaign resumes to the same result.

::

    engine = SimulatedEngine(SimulatedDevice(capacity_forward=812_345, noise=0.01))
    results = run_campaign(campaign, make_plan(campaign), engine, journal, testbed=engine.gateway)
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from gatemark.engine.client import PROTOCOL_VERSION, JsonObject, ProgressCallback
from gatemark.engine.simulated_device import SimulatedDevice
from gatemark.engine.simulated_state import Gaps, SimulatedGateway
from gatemark.errors import EngineError, Interrupted

__all__ = ["SimulatedDevice", "SimulatedEngine", "SimulatedGateway"]

NANOSECONDS_PER_SECOND = 1_000_000_000
STEPS_OF_TRIAL = 16
"""A trial of a stateful campaign has so many numbers, one for each of its phases."""
EXAMINED_MAX = 4_194_304
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


class SimulatedEngine:
    """Has the methods of `EngineClient` and answers from a `SimulatedDevice`."""

    def __init__(
        self, device: SimulatedDevice, *, link_mbps: int = 10_000, gateway: SimulatedGateway | None = None
    ) -> None:
        self.device = device
        self.gateway = gateway or SimulatedGateway(device)
        """Its table and its test bed."""
        self.trials_made = 0
        """Trials that were really asked for, not replayed: what a resumed campaign saves."""
        self._link_mbps = link_mbps
        self._ended = False
        self._cancelled = False
        self._link_up = True
        self._count = self._established = 0

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
        self._meet_fate(_trial_of(body))
        self._check_connections(body)
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
            "connections": {"count": self._count, "established": self._established}
            if body.get("connections") is not None
            else None,
            "kept_frames": [],
        }

    def frames(self, body: Mapping[str, Any]) -> JsonObject:
        """Return no frames: there are none."""
        return {"answer": "ok", "id": 5, "frames": []}

    def connections(self) -> JsonObject:
        """Return what the state table says of the gateway: endpoint-independent, one public address."""
        if not self._count:
            raise EngineError(
                what="no connection was established yet",
                where="simulated engine",
                fix="make a trial of phase `establish` first",
            )
        examined = min(self._established, EXAMINED_MAX)
        ports = min(self._established, 64_512)
        kept = examined if self.device.preserves_ports else 0
        return {
            "answer": "ok",
            "id": 8,
            "count": self._count,
            "established": self._established,
            "examined": examined,
            "port_preserved": kept,
            "parity_preserved": kept,
            "port_class_preserved": examined,
            "public_addresses": 1 if examined else 0,
            "public_ports": ports,
            "public_port_minimum": 1024 if examined else 0,
            "public_port_maximum": 1023 + ports if examined else 0,
            "sources_compared": min(examined, 4096),
            "sources_endpoint_independent": min(examined, 4096),
        }

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

    def _check_connections(self, body: Mapping[str, Any]) -> None:
        """Refuse test phase 2 over a table that is not full, as the engine does."""
        wanted = body.get("connections")
        if wanted is None or wanted["phase"] == "establish":
            return
        if self._count != wanted["count"] or self._established != wanted["count"]:
            raise EngineError(
                what=f"the state table holds {self._established} of {wanted['count']} connections",
                where="connections",
                fix="repeat phase `establish` at a lower rate until every connection is established",
            )

    def _direction(self, body: Mapping[str, Any], wanted: Mapping[str, Any], generator: random.Random) -> JsonObject:
        device, load, duration_ns = self.device, int(wanted["frames_per_second"]), int(body["duration_ns"])
        intended = max(1, load * duration_ns // NANOSECONDS_PER_SECOND)
        limited = self._tester_fails(load, _trial_of(body))
        late = limited and device.tester_fault == "late"
        short = limited and device.tester_fault == "short"
        offered = intended - max(1, intended // 10) if short else intended
        lost = self._lost(str(wanted["direction"]), load, offered, generator)
        m, n = int(wanted["foreground_m"]), int(wanted["foreground_n"])
        totals = [
            [_of_class(total, m, n, foreground=foreground) for total in (intended, offered, offered - lost)]
            for foreground in (True, False)
        ]
        gaps = [Gaps(total=of_offered, tail=of_offered - arriving) for _, of_offered, arriving in totals]
        untranslated = 0
        if body.get("connections") is not None and m:
            gaps[0], untranslated = self._foreground_gaps(body, wanted, totals[0], generator)
        losses = [gaps[0].to_json(max(1, m), n), gaps[1].to_json(max(1, n - m), n, offset=m)]
        counts = [
            self._counts(totals[0][0], gaps[0], untranslated, losses[0]),
            self._counts(totals[1][0], gaps[1], 0, losses[1]),
        ]
        if body.get("connections") is not None and body["connections"]["phase"] == "establish":
            self._count, self._established = int(body["connections"]["count"]), counts[0]["received"]
        return {
            "direction": wanted["direction"],
            "frames_per_second": load,
            "intended_duration_ns": duration_ns,
            "sending_ns": duration_ns + (duration_ns // 50 if late else 0),
            "lateness_max_ns": duration_ns // 50 + NANOSECONDS_PER_SECOND if late else 20_000,
            "gave_up": short,
            "lateness_histogram": [{"below_ns": 1_000_000, "bursts": intended}],
            "refused": 0,
            "foreground": counts[0],
            "background": counts[1],
        }

    def _foreground_gaps(
        self, body: Mapping[str, Any], wanted: Mapping[str, Any], totals: list[int], generator: random.Random
    ) -> tuple[Gaps, int]:
        """Return which frames of connections are lost, and how many come out untranslated."""
        connections, (_, offered, arriving) = body["connections"], totals
        if connections["phase"] == "establish":
            rate = int(wanted["frames_per_second"]) * int(wanted["foreground_m"]) // int(wanted["foreground_n"])
            made = self.gateway.establish(offered, arriving, rate, generator.uniform(-1, 1))
            return made.lost, made.untranslated
        upload = "forward" if connections["initiator"] == "left" else "reverse"
        if wanted["direction"] == upload:
            return Gaps(total=offered, tail=offered - arriving), 0
        return self.gateway.reply(offered, arriving, in_order=connections["read_order"] == "increasing"), 0

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

    def _counts(self, intended: int, lost: Gaps, untranslated: int, loss: Mapping[str, object]) -> JsonObject:
        """Return the counts of one class."""
        device, arrived = self.device, lost.total - lost.count
        faults = {reason: arrived // every for reason, every in device.faults.items() if arrived // every}
        if untranslated:
            faults["untranslated_source"] = untranslated
        faulty = max(faults.values(), default=0)
        return {
            "intended": intended,
            "offered": lost.total,
            "received": arrived - faulty,
            "faulty": faulty,
            "duplicate": arrived // device.duplicate_every if device.duplicate_every else 0,
            "lost": lost.count,
            "zero_checksum": arrived // device.zero_checksum_every if device.zero_checksum_every else 0,
            "reordered": 0,
            "reordering_extent_max": 0,
            "faults": faults,
            "loss": dict(loss),
        }

    def _port_facts(self, body: Mapping[str, Any]) -> JsonObject:
        load = max(int(direction["frames_per_second"]) for direction in body["directions"])
        drops = dict.fromkeys(OWN_DROPS, 0)
        if self.device.tester_fault == "drops" and self._tester_fails(load, _trial_of(body)):
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


def _trial_of(body: Mapping[str, Any]) -> int:
    """Return the number of the campaign's trial that the engine's trial belongs to."""
    number = int(body["trial_number"])
    return number if body.get("connections") is None else number // STEPS_OF_TRIAL


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
