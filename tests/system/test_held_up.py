"""A gateway whose CPU others take away: its losses are suspect and repeated, and blame nobody. Needs root."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.beds import QUICK, OpenBed, netns_campaign, open_bed
from tests.system.machine import missing

from gatemark.calibrate.disturber import Disturber
from gatemark.campaign.events import Event, TrialFinished, TrialStarted
from gatemark.campaign.journal import Journal, read_journal
from gatemark.campaign.plan import make_plan
from gatemark.campaign.runner import run_campaign
from gatemark.dut.steering import usable_cpus
from gatemark.procedures.frame_loss.result import FrameLossResult
from gatemark.trial.record import TrialRecord

MISSING = missing("ip", "ethtool", "taskset", "setpriv", "nft", "tayga", root=True)
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"namespaces need {', '.join(MISSING)}"),
    pytest.mark.skipif(len(usable_cpus()) < 2, reason="a gateway with a CPU of its own needs two"),
]
RECIPE = "tayga-siit64"
"""A gateway that is a process: it stands still while another one has its CPU."""
LOAD = 20_000
"""Each way. In 30 ms twice as many frames arrive as the 500 that its queue holds."""
ATTEMPTS = 8
READINGS = 200
READING_SECONDS_MAX = 0.002
"""Both readings of a trial together must stay below 5 ms."""


@pytest.fixture(scope="module")
def bed() -> Iterator[OpenBed]:
    tables = {
        "traffic": {"frame_sizes": {"family": "ipv4", "octets": 64}},
        "trial": {**QUICK, "duration": "1s"},
        "frame_loss": {"rates": [LOAD]},
        "validity": {"retries": 10, "lateness_max": "5s", "suspect_retries": ATTEMPTS},
        "repetitions": 1,
    }
    with open_bed(netns_campaign(RECIPE, **tables)) as opened:
        yield opened


@pytest.fixture
def disturber(bed: OpenBed) -> Iterator[Disturber]:
    with Disturber(bed.bed.gateway_cores[0]) as opened:
        yield opened


def failed_trial(bed: OpenBed) -> TrialRecord:
    """Return a valid trial that failed."""
    for _ in range(ATTEMPTS):
        record = bed.trial(frames_per_second=LOAD, duration_ns=1_000_000_000)
        if record.verdict is not None and not record.verdict.passed:
            return record
    pytest.skip("on this machine no frame is lost while a program takes the gateway's CPU away")


def test_a_loss_while_others_have_the_cpu_is_suspect(bed: OpenBed, disturber: Disturber) -> None:
    disturber.start()
    record = failed_trial(bed)
    assert record.validity.valid
    assert record.host is not None and record.host.held_up_ns > 10_000_000
    assert record.suspicion is not None, record.verdict
    assert not record.is_decisive


def test_a_campaign_repeats_it_and_blames_nobody_for_it(bed: OpenBed, disturber: Disturber, tmp_path: Path) -> None:
    """The disturbance ends after two attempts; the machine may be busy by itself, which must not look like loss."""

    def watch(event: Event) -> None:
        if isinstance(event, TrialStarted) and event.order.attempt < 2:
            disturber.start()
        if isinstance(event, TrialFinished):
            disturber.stop()

    campaign = bed.tester.campaign
    with Journal(tmp_path / "trials.jsonl") as journal:
        (result,) = run_campaign(
            campaign, make_plan(campaign), bed.tester.engine, journal, on_event=watch, testbed=bed.bed
        )
    records = read_journal(tmp_path / "trials.jsonl")
    assert isinstance(result, FrameLossResult)
    assert result.suspect_trials == sum(record.suspicion is not None for record in records)
    if not any(record.suspicion for record in records):
        pytest.skip("on this machine no frame was lost while a program took the gateway's CPU away")
    if result.limited_by == "host":
        pytest.skip(f"other programs held the gateway up in all of {len(records)} trials")
    assert result.limited_by == "maximum"
    (point,) = result.points
    assert [loss.undelivered for loss in point.losses] == [(0,), (0,)], [record.suspicion for record in records]


def test_a_gateway_that_is_too_slow_fails_whatever_others_do(bed: OpenBed) -> None:
    with bed.rules("limit rate over 1000/second drop"):
        record = failed_trial(bed)
    assert record.is_decisive


def test_reading_the_host_costs_little(bed: OpenBed) -> None:
    begin = time.process_time()
    for _ in range(READINGS):
        assert bed.bed.read_host() is not None
    assert (time.process_time() - begin) / READINGS < READING_SECONDS_MAX
