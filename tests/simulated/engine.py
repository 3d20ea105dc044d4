"""A gateway and a Tester made of numbers, behind the same methods as the real engine.

The truth is known, nothing is sent, no time passes, and every trial is a pure
function of (device, seed, trial number, load), so an interrupted campaign resumes to the same result.

::

    engine = SimulatedEngine(SimulatedDevice(capacity_forward=812_345, noise=0.01))
    results = run_campaign(campaign, plan_of(campaign), engine, journal, can=engine.gateway.can)
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from tests.counter_places import OWN_DROPS
from tests.simulated.delays import ClassDelays, tagged
from tests.simulated.device import SimulatedDevice
from tests.simulated.echo import echo_trial
from tests.simulated.state import Gaps, SimulatedGateway, distinct
from tests.simulated.zeros import zeros_of

from gatemark.engine.answers import (
    Behaviour,
    DirectionProgress,
    Frames,
    Hello,
    Layout,
    Link,
    Opened,
    Port,
    Progress,
    Resolved,
)
from gatemark.engine.client import PROTOCOL_VERSION, JsonObject, ProgressCallback
from gatemark.errors import EngineError, Interrupted
from gatemark.technology import SIDES
from gatemark.trial.report import Counts, Foreign
from gatemark.units import frames_before, frames_in

__all__ = ["SimulatedDevice", "SimulatedEngine", "SimulatedGateway"]

NANOSECONDS_PER_SECOND = 1_000_000_000
STEPS_OF_TRIAL = 16
"""How many trial numbers a trial of a stateful campaign takes: one for each of its phases."""
EXAMINED_MAX = 4_194_304
LAYOUT: Layout = {"queues": {"left": 1, "right": 1}, "workers": [{"cpu": 0, "tasks": []}], "why": ["nothing is polled"]}
MAC_ADDRESSES = {"left": "02:00:00:00:00:01", "right": "02:00:00:00:00:02"}


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
        self._in_both = False
        self._count = self._established = 0
        self._held_up_ns = 0
        self._moves = self._moves_known = self._moved_at_trial = 0
        self._silent = False

    def hello(self) -> Hello:
        """Return version and machine."""
        return {
            "protocol": PROTOCOL_VERSION,
            "version": "simulated",
            "dpdk": "none",
            "tsc_hz": NANOSECONDS_PER_SECOND,
            "tsc_invariant": True,
            "build": "simulated",
            "cpus": [0],
            "clock": {"resolution_ps": 1000, "read_ps": 20_000},
        }

    def open(self, body: Mapping[str, Any]) -> Opened:
        """Return two ports."""
        left, right = (self._port(side, body.get(side) or {}) for side in SIDES)
        return {"left": left, "right": right, **LAYOUT, "huge_pages": False}

    def resolve(self, body: Mapping[str, Any]) -> Resolved:
        """Return the gateway's link-layer address."""
        if self._silent:
            what = f"{body['gateway']} did not answer ARP on port simulated:{body['side']}"
            raise EngineError(what=what, where=body["side"], fix="check that the gateway is up")
        self._moves_known = self._moves
        mac = f"02:00:00:00:{1 + self._moves:02}:{'01' if body['side'] == 'left' else '02'}"
        return {"side": body["side"], "gateway": body["gateway"], "mac": mac}

    def trial(self, body: Mapping[str, Any], on_progress: ProgressCallback | None = None) -> JsonObject:
        """Return what the device makes of a trial, with one progress record in its middle."""
        number = int(body["trial_number"])
        self._fail_as_planned(_trial_of(body))
        self._move_as_planned(_trial_of(body))
        self._check_connections(body)
        self.trials_made += 1
        self._cancelled = False
        self._held_up_ns = self._hold_up(_trial_of(body))
        self.gateway.held_up_ns += self._held_up_ns
        echo = None
        if body.get("echo") is not None:
            self.gateway.answer(body["echo"]["clients"])
            echo = echo_trial(self.device, body)
            directions: list[JsonObject] = echo.pop("directions")
        else:
            directions = self._directions(body, None)
        if on_progress is not None:
            resets = self.gateway.resets
            on_progress(self._progress(body, directions))
            if self.gateway.resets > resets:
                directions = self._directions(body, int(body["duration_ns"]) // 2)
        return {
            **(echo or {"echo": None}),
            "answer": "ok",
            "id": 4,
            "trial_number": number,
            "cancelled": self._cancelled,
            "phases": _phases(body),
            "clocks": dict.fromkeys(("cycle_counter_ns", "monotonic_raw_ns"), _clocked_ns(body)),
            "worker_pause_max_ns": 20_000,
            "directions": directions,
            "ports": {side: self._port_facts(body, side, directions) for side in ("left", "right")},
            "connections": {
                "phase": body["connections"]["phase"],
                "count": self._count,
                "established": self._established,
            }
            if body.get("connections") is not None
            else None,
            "kept_frames": [],
        }

    def exchange(self, body: Mapping[str, Any]) -> JsonObject:
        """Return what the device makes of packets; nothing arrives if it makes nothing of them."""
        answer = self.device.exchange
        return {
            "answer": "ok",
            "id": 9,
            "cancelled": False,
            "sent": {side: min(len(body[side]), self.device.packets_sent_max) for side in ("left", "right")},
            "arrived": [] if answer is None else list(answer(body)),
            "not_kept": 0,
        }

    def frames(self, body: Mapping[str, Any]) -> Frames:
        """Show no frame: whatever is asked can be made."""
        del body
        return {"frames": []}

    def connections(self) -> Behaviour:
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

    def link(self) -> Link:
        """Return both ports."""
        return {"left": self._port("left", {}), "right": self._port("right", {})}

    def cancel(self) -> None:
        """Mark the running trial as cancelled."""
        self._cancelled = True

    def move(self) -> None:
        """Give the gateway other Ethernet addresses; what is sent to the ones before is lost."""
        self._moves += 1

    def close(self) -> None:
        """End: nothing to do."""
        self._ended = True

    def _fail_as_planned(self, number: int) -> None:
        device = self.device
        if device.link_down_from_trial is not None and number >= device.link_down_from_trial:
            self._link_up = False
        if self._ended or device.dies_at_trial == number:
            self._ended = True
            raise EngineError(what="it died during the request 'trial'", where="simulated engine", fix="")
        if device.interrupted_at_trial == number:
            raise Interrupted(what="stopped by the user", where="request 'trial'", fix="")

    def _move_as_planned(self, number: int) -> None:
        if number in self.device.moves_at_trials and number != self._moved_at_trial:
            self.move()
            self._moved_at_trial = number
        first_silent = self.device.silent_from_trial
        self._silent = first_silent is not None and number >= first_silent

    def _check_connections(self, body: Mapping[str, Any]) -> None:
        """Refuse test phase 2 over a table that is not full, as the engine does."""
        connections = body.get("connections")
        if connections is None or connections["phase"] == "establish":
            return
        if self._count != connections["count"] or self._established != connections["count"]:
            raise EngineError(
                what=f"the state table holds {self._established} of {connections['count']} connections",
                where="connections",
                fix="repeat phase `establish` at a lower rate until every connection is established",
            )

    def _directions(self, body: Mapping[str, Any], reset_ns: int | None) -> list[JsonObject]:
        """Return what happens in each direction; `reset_ns` is when the gateway is reset, if it is."""
        generator = random.Random(f"{body['seed']}/{body['trial_number']}")
        self._in_both = len(body["directions"]) > 1
        return [self._direction(body, request, generator, reset_ns) for request in body["directions"]]

    def _direction(
        self, body: Mapping[str, Any], request: Mapping[str, Any], generator: random.Random, reset_ns: int | None
    ) -> JsonObject:
        device, load, duration_ns = self.device, int(request["frames_per_second"]), int(body["duration_ns"])
        intended = max(1, _frames_due(request, duration_ns))
        limited = self._tester_fails(load, _trial_of(body))
        sends_late = limited and device.tester_fault == "late"
        gives_up = limited and device.tester_fault == "short"
        offered = intended // 2 if gives_up else intended
        first, end = self._block(request, offered, generator)
        if reset_ns is not None:
            back_ns = min(duration_ns, reset_ns + device.reset_ns)
            first, end = (min(offered, _frames_due(request, ns)) for ns in (reset_ns, back_ns))
        m, n = int(request["foreground_m"]), int(request["foreground_n"])
        totals = [
            [_of_class(total, m, n, foreground=foreground) for total in (intended, offered, first, end)]
            for foreground in (True, False)
        ]
        gaps = [
            Gaps(total=of_offered, tail=of_end - of_first, after=of_offered - of_end)
            for _, of_offered, of_first, of_end in totals
        ]
        untranslated = 0
        if body.get("connections") is not None and m:
            gaps[0], untranslated = self._foreground_gaps(body, request, gaps[0], generator)
        losses = [gaps[0].loss(max(1, m), n), gaps[1].loss(max(1, n - m), n, offset=m)]
        tags = self._tags(body, request, intended)
        counts = [
            self._counts(body, totals[0][0], gaps[0], untranslated, losses[0], tags[0]),
            self._counts(body, totals[1][0], gaps[1], 0, losses[1], tags[1]),
        ]
        for name, of_class in zip(("foreground", "background"), counts, strict=True):
            of_class["frame_octets"] = (request.get(name) or {}).get("frame_octets")
        if body.get("connections") is not None and body["connections"]["phase"] == "establish":
            self._count, self._established = int(body["connections"]["count"]), counts[0]["received"]
            if body["connections"]["send_order"] == "pseudorandom":
                self._established = distinct(self._count, self._established)
        return {
            "direction": request["direction"],
            "frames_per_second": load,
            "intended_duration_ns": duration_ns,
            "sending_ns": duration_ns // 2 if gives_up else duration_ns + (duration_ns // 50 if sends_late else 0),
            "lateness_max_ns": duration_ns // 50 + NANOSECONDS_PER_SECOND if sends_late else 20_000,
            "gave_up": gives_up,
            "lateness_histogram": [{"below_ns": 1_000_000, "bursts": intended}],
            "refused": 0,
            "longest_loss_runs": [],
            "late_bursts": [],
            "foreground": counts[0],
            "background": counts[1],
        }

    def _foreground_gaps(
        self, body: Mapping[str, Any], request: Mapping[str, Any], by_load: Gaps, generator: random.Random
    ) -> tuple[Gaps, int]:
        """Return which frames of connections are lost, and how many come out untranslated."""
        connections, offered = body["connections"], by_load.total
        arriving = offered - by_load.count
        if connections["phase"] == "establish":
            rate = int(request["frames_per_second"]) * int(request["foreground_m"]) // int(request["foreground_n"])
            drawn_from = int(connections["count"]) if connections["send_order"] == "pseudorandom" else None
            spread = generator.uniform(-1, 1)
            establishment = self.gateway.establish(offered, arriving, rate, spread, drawn_from=drawn_from)
            return establishment.lost, establishment.untranslated
        upload = "forward" if connections["initiator"] == "left" else "reverse"
        if request["direction"] == upload or by_load.after:
            return by_load, 0
        return self.gateway.reply(offered, arriving, in_order=connections["read_order"] == "increasing"), 0

    def _tester_fails(self, load: int, number: int) -> bool:
        device = self.device
        hiccup = device.hiccup_every > 0 and number % device.hiccup_every == 0
        return hiccup or (device.tester_limit is not None and load > device.tester_limit)

    def _hold_up(self, number: int) -> int:
        """Return for how long the gateway's CPU is taken away in the trial of this number."""
        every = self.device.held_up_every
        return self.device.held_up_ns if every > 0 and number % every == 0 else 0

    def _block(self, request: Mapping[str, Any], offered: int, generator: random.Random) -> tuple[int, int]:
        """Return first and end of the block of frames that the gateway does not forward.

        It is at the end of the trial; after an overload it begins before the load falls, and ends when the gateway has
        recovered: until then nothing is forwarded.
        """
        direction, load, step = str(request["direction"]), int(request["frames_per_second"]), request.get("step")
        if self._silent or self._moves_known < self._moves:
            return 0, offered
        if step is None:
            lost = self._lost(direction, load, offered, generator)
            if (bursts := request.get("bursts")) is not None:
                lost = max(lost, offered // bursts["frames"] * self._lost_in_burst(direction, **bursts))
            return offered - lost, offered
        before = min(offered, frames_in(load, step["after_ns"]))
        lost = self._lost(direction, load, before, generator)
        lost_later = self._lost(direction, step["frames_per_second"], offered - before, generator)
        if lost_later:
            return max(0, offered - lost - lost_later), offered
        recovering = frames_in(step["frames_per_second"], self.device.recovery_ns) if lost else 0
        return before - lost, min(offered, before + recovering)

    def _lost_in_burst(self, direction: str, frames: int, frames_per_second: int) -> int:
        """Return how many frames of one burst find the gateway's buffer full; it is empty when a burst begins."""
        forwarded = frames * self.device.capacity(direction, in_both=self._in_both) // frames_per_second
        return max(0, frames - forwarded - self.device.buffer_frames)

    def _tags(self, body: Mapping[str, Any], request: Mapping[str, Any], frames: int) -> tuple[list[int], list[int]]:
        """Return the numbers of the tagged frames in each class."""
        tags = (body.get("delays") or {}).get("tags")
        if tags is None:
            return [], []
        first = frames_before(int(request["frames_per_second"]), int(tags["first_ns"])) - _absent(request)
        if tags["count"] > frames - first:
            raise EngineError(
                what=f"{tags['count']} tags are wanted, {frames - first} frames are due after the first of them",
                where="delays.tags.count",
                fix="ask for fewer tags",
            )
        m, n = int(request["foreground_m"]), int(request["foreground_n"])
        of_class: tuple[list[int], list[int]] = ([], [])
        for index in tagged(tags, first, frames):
            is_foreground = index % n < m
            numbers = of_class[0] if is_foreground else of_class[1]
            numbers.append(_of_class(index, m, n, foreground=is_foreground))
        return of_class

    def _lost(self, direction: str, load: int, offered: int, generator: random.Random) -> int:
        """Return how many frames the gateway does not forward."""
        device = self.device
        spread, chance = generator.uniform(-1, 1), generator.random()
        nominal = device.capacity(direction, in_both=self._in_both)
        capacity = int(nominal * (1 + device.noise * spread))
        if any(lowest <= load <= highest for lowest, highest in device.lossless_windows):
            return 0
        lost = max(0, offered - offered * capacity // load - device.buffer_frames) if load > capacity else 0
        if any(lowest <= load <= highest for lowest, highest in device.lossy_windows):
            lost = max(lost, 1)
        expected = offered * device.loss_ratio
        lost += int(expected) + (1 if chance < expected - int(expected) else 0)
        lost += frames_in(load, self._held_up_ns)
        return min(lost, offered)

    def _counts(
        self,
        body: Mapping[str, Any],
        intended: int,
        lost: Gaps,
        untranslated: int,
        loss: Mapping[str, object],
        tags: Sequence[int],
    ) -> JsonObject:
        """Return the counts of one class."""
        device, arrived = self.device, lost.total - lost.count
        faults = {reason: arrived // every for reason, every in device.faults.items() if arrived // every}
        if untranslated:
            faults["untranslated_source"] = untranslated
        faulty = max(faults.values(), default=0)
        options = body.get("delays") or {}
        delays = ClassDelays(lost.keeping(arrived - faulty), self._pattern(body), options.get("timeout_ns"))
        return {
            **zeros_of(Counts),
            "intended": intended,
            "offered": lost.total,
            "received": arrived - faulty - delays.late,
            "faulty": faulty,
            "late": delays.late,
            "duplicate": arrived // device.duplicate_every if device.duplicate_every else 0,
            "lost": lost.count,
            "zero_checksum": arrived // device.zero_checksum_every if device.zero_checksum_every else 0,
            "faults": faults,
            "loss": dict(loss),
            "loss_table": None,
            "delay": delays.report(options, tags),
        }

    def _pattern(self, body: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the delays of this trial."""
        spread = random.Random(f"{body['seed']}/{body['trial_number']}/delays").randint(0, self.device.delay_spread_ns)
        return tuple(delay_ns + spread for delay_ns in self.device.delays_ns)

    def _port_facts(self, body: Mapping[str, Any], side: str, directions: Sequence[JsonObject]) -> JsonObject:
        arriving = {"left": "reverse", "right": "forward"}[side]
        load = max(int(direction["frames_per_second"] or 0) for direction in body["directions"])
        drops = dict.fromkeys(OWN_DROPS, 0)
        if self.device.tester_fault == "drops" and self._tester_fails(load, _trial_of(body)):
            drops["socket_drops"] = 17
        return {
            "link_up": self._link_up,
            "link_losses": 0 if self._link_up else 1,
            "clock_error_ns": self.device.clock_error_ns,
            "received_by_queue": [
                sum(
                    direction[of_class]["received"]
                    for direction in directions
                    if direction["direction"] == arriving
                    for of_class in ("foreground", "background")
                )
            ],
            "foreign": {**zeros_of(Foreign), "neighbour": 2, "icmp": {}},
            "own_drops": drops,
            "peer_queue_drops": 0,
        }

    def _progress(self, body: Mapping[str, Any], directions: list[JsonObject]) -> Progress:
        halves: list[DirectionProgress] = [
            {
                "direction": direction["direction"],
                "offered": (direction["foreground"]["offered"] + direction["background"]["offered"]) // 2,
                "received": (direction["foreground"]["received"] + direction["background"]["received"]) // 2,
            }
            for direction in directions
        ]
        elapsed_ns = int(body["duration_ns"]) // 2
        return {"phase": "send", "elapsed_ns": elapsed_ns, "directions": halves}

    def _port(self, side: str, request: Mapping[str, Any]) -> Port:
        return {
            "port": request.get("port", f"simulated:{side}"),
            "driver": "simulated",
            "mac": MAC_ADDRESSES[side],
            "numa_node": -1,
            "link_up": self._link_up,
            "link_mbps": self._link_mbps,
            "mtu": request.get("mtu", 1500),
            "timestamps": "software",
        }


def _trial_of(body: Mapping[str, Any]) -> int:
    """Return the number of the campaign's trial that the engine's trial belongs to."""
    number = int(body["trial_number"])
    return number if body.get("connections") is None else number // STEPS_OF_TRIAL


def _frames_due(request: Mapping[str, Any], duration_ns: int) -> int:
    """Return how many frames of a direction are due within a time, both loads counted."""
    load, step = int(request["frames_per_second"]), request.get("step")
    if request.get("flow_start") is not None:
        return frames_in(load, duration_ns) - _absent(request)
    if step is None or duration_ns <= step["after_ns"]:
        return frames_in(load, duration_ns)
    return frames_in(load, step["after_ns"]) + frames_in(step["frames_per_second"], duration_ns - step["after_ns"])


def _absent(request: Mapping[str, Any]) -> int:
    """Return how many frames a direction lacks at a time when all of its flows have started."""
    flow_start = request.get("flow_start")
    if flow_start is None:
        return 0
    flows = int(flow_start["flows"])
    return int(flow_start["rounds_between"]) * (flows * (flows - 1) // 2)


def _of_class(total: int, m: int, n: int, *, foreground: bool) -> int:
    """Return how many of the first `total` frames are of the class: frame i is foreground iff i mod n < m."""
    of_foreground = total // n * m + min(total % n, m)
    return of_foreground if foreground else total - of_foreground


def _clocked_ns(body: Mapping[str, Any]) -> int:
    """Return how long sending and the wait for residual frames take, on either clock."""
    return int(body["duration_ns"]) + int(body.get("waits", {}).get("drain_ns", 0))


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
