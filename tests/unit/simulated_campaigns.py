"""Campaigns measured with the simulated engine."""

from __future__ import annotations

from pathlib import Path

from tests.simulated.device import SimulatedDevice
from tests.simulated.engine import SimulatedEngine

from gatemark.campaign import runner
from gatemark.campaign.events import Event
from gatemark.campaign.journal import Journal
from gatemark.campaign.plan import plan_of
from gatemark.campaign.runner import run_campaign
from gatemark.config.model import Campaign
from gatemark.results.run import RunResult


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
            testbed=engine.gateway,
        )
