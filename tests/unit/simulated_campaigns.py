"""Campaigns measured with the simulated engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.simulated.device import SimulatedDevice
from tests.simulated.engine import SimulatedEngine

from gatemark.campaign import runner
from gatemark.campaign.events import Event
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.results.run import RunResult

CONNTRACK = {"clear_state": "conntrack -F", "count_connections": "conntrack -C", "tear_down": "conntrack -F"}
"""Commands of a gateway that Linux's connection tracking makes."""


def nat44(**gateway: Any) -> dict[str, Any]:
    """Return the tables of a campaign file for a NAT44 between two ports; `gateway` has more of its keys."""
    return {
        "gateway": {"technology": "nat44", "pool": ["198.19.0.1"], "control": CONNTRACK, **gateway},
        "testbed": {"kind": "ports"},
        "left": {"port": "pci:1", "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"}},
        "right": {"port": "pci:2", "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.254"}},
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": [64]}},
    }


def measure(
    path: Path, device: SimulatedDevice, wanted: Campaign, *, events: list[Event] | None = None
) -> tuple[RunResult, ...]:
    """Run all of a campaign against a device, with its journal at `path`; return the results of its runs."""
    engine = SimulatedEngine(device)
    with Journal(path) as journal:
        return run_campaign(
            wanted,
            plan_of(wanted),
            engine,
            journal,
            on_event=runner.ignore if events is None else events.append,
            can=engine.gateway.can,
        )
