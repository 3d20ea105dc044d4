"""Measures netem, impairments of the Linux kernel: a known truth that shares nothing with the reference gateway.

The recipe `linux-netem` makes the gateway, in this machine's kernel or in one of its own. It is measured twice: without
any impairment, which gives the path of Tester, links and kernel, then with those of the check. What the kernel itself
says is read from it before and after each trial: how many frames netem dropped, and how late its timers are.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gatemark.calibrate.base import FRAMES, RETRIES, SEED
from gatemark.calibrate.checks_delays import self_error_of
from gatemark.calibrate.model import Check, Evidence, NothingProven, ObservedTrial, Reference, TimerError
from gatemark.campaign.events import Event, EventCallback, RunFinished, TrialFinished, TrialStarted
from gatemark.campaign.file import campaign_from_dict
from gatemark.config.model import Campaign
from gatemark.dut.base import MadeGateway, TestBed
from gatemark.dut.choose_kernel import HOST, find_kernel
from gatemark.dut.open import open_testbed
from gatemark.dut.recipe import load_recipe
from gatemark.dut.steering import CorePlan
from gatemark.errors import GatemarkError
from gatemark.results.run import RunResult
from gatemark.session import measure
from gatemark.tester import Equipment

RECIPE = "linux-netem"
DELAY = "delay_us"
TIMES = {"settle": "0s", "learn": "100ms", "drain": "200ms", "rest": "20ms"}
SLEEPS = 300
"""How often a timer of the gateway's kernel is waited for."""
SLEEP_NS = {"least": 500_000, "most": 5_000_000}
"""How long each time: as long as netem's delay, within these, for a longer one only takes longer."""
PROGRAM = """
import ctypes, time, sys
count, wait_ns = map(int, sys.argv[1:])
ctypes.CDLL(None).prctl(29, 1, 0, 0, 0)  # PR_SET_TIMERSLACK: timers as exact as those of the kernel itself
late = []
for _ in range(count):
    due_ns = time.monotonic_ns() + wait_ns
    time.sleep((due_ns - time.monotonic_ns()) / 1e9)
    late.append(time.monotonic_ns() - due_ns)
print(*sorted(late))
"""
"""Prints how late each of some timers was, nanoseconds, ascending."""


def unavailable() -> str:
    """Return why this machine cannot make such a gateway; empty if it can."""
    if os.geteuid() != 0:
        return "it needs root: network namespaces are made"
    try:
        find_kernel(HOST, load_recipe(RECIPE))
    except GatemarkError as error:
        problem = error.problems[0]
        return f"{problem.what}; {problem.fix}"
    return ""


@dataclass(slots=True, kw_only=True)
class _Observer:
    """Gathers what the campaign finds and what the gateway's kernel counts in each trial."""

    forward: EventCallback
    gateway: MadeGateway | None = None
    wait_ns: int | None = None
    """How long a timer is to wait, where it matters how late the kernel's are."""
    results: list[RunResult] = field(default_factory=list)
    trials: list[ObservedTrial] = field(default_factory=list)
    timer: TimerError | None = None
    _dropped: int = 0

    def open_testbed(self, campaign: Campaign) -> TestBed:
        """Make the test bed and keep its gateway, to ask its kernel."""
        bed = open_testbed(campaign)
        self.gateway = bed.can.gateway
        return bed

    def on_event(self, event: Event) -> None:
        """Take one event of the campaign."""
        assert self.gateway is not None, "events come from a test bed whose gateway a recipe makes"
        match event:
            case TrialStarted():
                if self.timer is None and self.wait_ns is not None:
                    self.timer = timer_error(self.gateway, self.wait_ns)
                self._dropped = netem_drops(self.gateway)
            case TrialFinished():
                counts = {"netem_dropped": netem_drops(self.gateway) - self._dropped}
                self.trials.append(ObservedTrial(record=event.record, counts=counts))
            case RunFinished():
                self.results.append(event.result)
            case _:
                pass
        self.forward(event)


def measure_netem(check: Check, folder: Path, *, cores: CorePlan, on_event: EventCallback) -> Evidence:
    """Measure netem with the impairments of a check; with a delay also its path without any."""
    assert check.netem is not None, "it is a check of netem"
    delay_ns = 1000 * check.netem.get(DELAY, 0)
    self_error = None
    if delay_ns:
        path = _measured(check, {}, folder / "path", cores, _Observer(forward=on_event))
        self_error = self_error_of(path)
        if self_error is None:
            raise NothingProven(
                what="the path without impairments has no delays", where=check.name, fix="see its folder"
            )
    wait_ns = min(max(delay_ns, SLEEP_NS["least"]), SLEEP_NS["most"]) if delay_ns else None
    observer = _Observer(forward=on_event, wait_ns=wait_ns)
    evidence = _measured(check, check.netem, folder / "impaired" if delay_ns else folder, cores, observer)
    return Evidence(
        results=evidence.results,
        trials=evidence.trials,
        reference=Reference(),
        self_error=self_error,
        timer=observer.timer,
    )


def _measured(
    check: Check, settings: Mapping[str, int], folder: Path, cores: CorePlan, observer: _Observer
) -> Evidence:
    folder.parent.mkdir(parents=True, exist_ok=True)
    campaign = campaign_from_dict(netem_campaign(check, settings, cores), where=check.name)
    equipment = Equipment(open_testbed=observer.open_testbed)
    measure(campaign, output=folder, on_event=observer.on_event, equipment=equipment)
    return Evidence(results=tuple(observer.results), trials=tuple(observer.trials), reference=Reference())


def netem_campaign(check: Check, settings: Mapping[str, int], cores: CorePlan) -> dict[str, Any]:
    """Return the campaign of a check as a document, with the impairments of `settings`."""
    tables = dict(check.tables)
    return {
        "name": check.name,
        "seed": SEED,
        "repetitions": 1,
        "testbed": {
            "kind": "netns",
            "recipe": RECIPE,
            "cores": list(cores.tester),
            "gateway_cores": list(cores.gateway),
        },
        "gateway": {"settings": dict(settings)},
        "left": {"mtu": 1500},
        "right": {"mtu": 1500},
        "traffic": {"direction": "forward", "frame_sizes": {"family": "ipv4", "octets": FRAMES["ipv4"]}},
        "trial": {**TIMES, **tables.pop("trial", {})},
        "validity": {"retries": RETRIES, "lateness_max": check.lateness_max},
        **tables,
    }


def netem_drops(gateway: MadeGateway) -> int:
    """Return how many frames netem has dropped on the way out to the right."""
    said = gateway.ask(f"tc -s -j qdisc show dev {gateway.interfaces['right']}")
    return int(next(row["drops"] for row in json.loads(said) if row["kind"] == "netem"))


def timer_error(gateway: MadeGateway, wait_ns: int) -> TimerError:
    """Wait for timers in the gateway's kernel; return how late they were."""
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(SLEEPS), str(wait_ns)]
    late = [int(word) for word in gateway.ask(shlex.join(command)).split()]
    return TimerError(median_ns=late[len(late) // 2], p90_ns=late[len(late) * 9 // 10])
