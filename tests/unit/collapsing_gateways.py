"""Gateways that stop working in some trials, and campaigns that boot their hosts after it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tests.simulated.engine import SimulatedDevice, SimulatedEngine, SimulatedGateway

from gatemark.campaign.events import Event
from gatemark.campaign.file import campaign_from_dict
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.dut.recipe import complete_campaign
from gatemark.engine.client import JsonObject, ProgressCallback
from gatemark.errors import HostConnectionError, TestBedError
from gatemark.results.run import RunResult
from gatemark.trial.record import TrialRecord

DEVICE = SimulatedDevice(capacity_forward=5000)
THROUGHPUT = {"throughput": {"maximum": 8000, "minimum": 1000, "resolution": 1000, "search_duration": "1s"}}
CAPACITY = {
    "connection_tracking_table_capacity": {"start": 100, "maximum": 400, "maximum_rate": "10k", "resolution": 10}
}
COLLAPSE = TestBedError(what="it is gone", where="health", fix="")
LOST = HostConnectionError(what="no route", where="health", fix="", began=False)


class Mortal(SimulatedGateway):
    """Stops working when it is told to; a boot brings it back."""

    dead: TestBedError | None = None
    boots_fail = False

    def check(self) -> None:
        if self.dead is not None:
            raise self.dead
        super().check()

    def boot(self) -> None:
        self.boots += 1
        if self.boots_fail:
            raise TestBedError(what="the host did not boot", where="boot", fix="")
        self.dead = None

    def restart(self) -> None:
        self.restarts += 1
        self.dead = None


class Killing(SimulatedEngine):
    """Its gateway stops working in some trials, by their numbers."""

    def __init__(self, deadly: Collection[int], *, dies_of: TestBedError = COLLAPSE, per_trial: int = 1) -> None:
        self.mortal = Mortal(DEVICE)
        super().__init__(DEVICE, gateway=self.mortal)
        self._deadly = deadly
        self._dies_of = dies_of
        self._per_trial = per_trial

    def trial(self, body: Mapping[str, Any], on_progress: ProgressCallback | None = None) -> JsonObject:
        answer = super().trial(body, on_progress)
        if body["trial_number"] // self._per_trial in self._deadly:
            self.mortal.dead = self._dies_of
        return answer


def campaign(
    *,
    boots: bool = True,
    stateful: bool = False,
    occasion: str = "column",
    tables: Mapping[str, Any] | None = None,
    **more: Any,
) -> Campaign:
    way = {} if "power_cycle" in more else {"reboot": "reboot"}
    control = {"host": "gw", "boot": occasion, **way, "health": "true", "boot_after_collapse": boots, **more}
    sides = {"left": ("198.18.0.2", "198.18.0.1"), "right": ("198.19.0.2", "198.19.0.1")}
    gateway: dict[str, Any] = {"technology": "router44", "control": control}
    if stateful:
        gateway |= {"technology": "nat44", "pool": ["198.19.0.1"]}
        control |= {} if occasion == "trial" else {"clear_state": "conntrack -F"}
    return complete_campaign(
        campaign_from_dict(
            {
                "repetitions": 2,
                "gateway": gateway,
                "testbed": {"kind": "ports"},
                **{
                    name: {"port": f"pci:{name}", "ipv4": {"address": address, "gateway": router}}
                    for name, (address, router) in sides.items()
                },
                "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
                "validity": {"retries": 0},
                "trial": {"duration": "1s", "settle": "0s", "learn": "0s", "drain": "0s", "rest": "0s"},
                **(
                    tables
                    or {"throughput": {"maximum": 8000, "minimum": 1000, "resolution": 1000, "search_duration": "1s"}}
                ),
                **({"connections": {"count": [100], "rate": 1000}} if stateful else {}),
            }
        )
    )


def run(
    path: Path, wanted: Campaign, engine: SimulatedEngine, events: list[Event] | None = None
) -> tuple[RunResult, ...]:
    told: list[Event] = [] if events is None else events
    with Journal(path) as journal:
        return run_campaign(wanted, plan_of(wanted), engine, journal, can=engine.gateway.can, on_event=told.append)


def loads(records: tuple[TrialRecord, ...]) -> list[tuple[int, int, bool]]:
    """The trials that count."""
    return [
        (record.order.repetition, record.order.step.frames_per_second, record.verdict.passed)
        for record in records
        if record.verdict is not None
    ]
